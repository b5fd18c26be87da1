//! Mounts through the real kernel: what programs see, and how mounts begin and end.
//!
//! The trees are those of `support::toy`, with slow, damaged and huge files, and the sample array of the fixtures for the
//! command line. Every test is bounded in time and unmounts however it ends. If this user cannot mount at all, the tests
//! report that and pass.

mod abandoned;
mod calls;
mod command;
mod descriptor;
mod directory;
mod file_handles;
mod harness;
mod hostile;
mod life;
mod manners;
mod many_names;
mod names;
mod programs;
mod reading;
mod real;
mod recorded;
mod refresh;
mod scarce;
mod statistics;
mod user;
