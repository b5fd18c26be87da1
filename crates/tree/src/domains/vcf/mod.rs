//! Datasets of TileDB-VCF: a group with an array of variant calls and an array of headers, shown as VCF files and tables.

pub mod files;
pub mod forms;
pub mod group;
pub mod lists;
pub mod tables;
