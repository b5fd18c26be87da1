//! Opens our files with the programs that they are made for, and compares the values.
//!
//! The programs come from `scripts/install_test_tools.sh`; a test whose program is missing says so and passes.

mod arrow;
mod gdal;
mod netcdf;
mod numpy;
mod text;
mod tools;
