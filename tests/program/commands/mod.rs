//! The program `tilefs` itself, run as people run it: its options select what libtiledb read, and it reports damage by
//! errors, exit statuses and lines that name the place.

mod damaged;
mod explain;
mod hints;
mod streams;
mod values;

use std::process::{Command, Output};

use support::manifest::{Object, load};
use tilefs_fixtures::fixtures;

/// Runs the program until it ends.
fn tilefs(arguments: &[impl AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilefs")).args(arguments).output().expect("the program starts")
}

/// Returns the output of the program, which must succeed without an error message.
#[track_caller]
fn printed(arguments: &[impl AsRef<std::ffi::OsStr> + std::fmt::Debug]) -> Vec<u8> {
    let output = tilefs(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{arguments:?}: {} {complaint}", output.status);
    output.stdout
}

/// Returns a fixture by its path.
fn fixture(name: &str) -> Object {
    let found = load(&fixtures().join("manifest.json"), "").into_iter().find(|object| object.name == name);
    found.unwrap_or_else(|| panic!("no fixture {name}"))
}
