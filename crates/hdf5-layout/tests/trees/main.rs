//! Support for the tests of files.
//!
//! * [`model`]: files with their values in memory
//! * [`random`]: random files
//! * [`expected`]: the contents that a reader must find in a file, as JSON
//! * [`readers`]: h5py and the programs of HDF5
//! * [`skip`]: skips tests whose requirements are missing, with a message

#![allow(dead_code)] // each test program uses a part

pub mod expected;
pub mod model;
pub mod random;
pub mod readers;
#[path = "../../../../tests/support/skip.rs"]
pub mod skip;
