//! Opens exported files with the programs that they are made for, and compares the values.
//!
//! The programs come from `scripts/install_test_tools.sh`; a test whose program is missing reports that and passes, and
//! so do tests that need a mount if mounting is impossible.

mod arrow;
mod coordinate_systems;
mod documented;
mod gdal;
mod hdf5;
mod hdf5_damage;
mod missing_times;
mod mounted;
mod netcdf;
mod numpy;
mod pages;
mod parquet;
mod rhdf5;
mod text;
mod tools;
