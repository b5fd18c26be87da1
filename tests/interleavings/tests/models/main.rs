//! Models of the files in which threads wait for each other: each must end under every order of steps, and hang if any
//! wake-up of its file is lost.

mod cache;
mod coverage;
mod flawed;
mod scheduling;
mod threads;
mod waiting;
