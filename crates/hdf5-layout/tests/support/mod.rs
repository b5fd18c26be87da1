//! Support for the tests of files.
//!
//! * [`model`]: files with their values in memory
//! * [`random`]: random ones
//! * [`expected`]: what a reader is to find in one, as JSON
//! * [`readers`]: h5py and the programs of HDF5
//! * [`skip`]: what cannot be done here, said aloud

#![allow(dead_code)] // each test program uses a part

pub mod expected;
pub mod model;
pub mod random;
pub mod readers;
#[path = "../../../../tests/support/skip.rs"]
pub mod skip;
