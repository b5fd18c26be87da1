//! Trees as files of HDF5, and what h5py and HDF5's own programs read in them.
//!
//! * [`particular_trees`], [`random_trees`]: the tests
//! * [`model`]: files with their values in memory
//! * [`random`]: random files
//! * [`expected`]: the contents that a reader must find in a file, as JSON
//! * [`readers`]: h5py and the programs of HDF5

mod expected;
mod model;
mod particular_trees;
mod random;
mod random_trees;
mod readers;
