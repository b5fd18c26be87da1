//! The program `tilefs`: its mounts through the real kernel, its commands, and its packages.

mod commands;
mod faults;
mod mounts;
mod packages;
mod recipes;
