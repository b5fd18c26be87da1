//! Columns of rows: the coordinate, value or validity of each row, read from the files of the fragments.

pub mod fixed_column;
pub mod gather;
pub mod saved_values;
pub mod var_column;
pub mod var_files;
