//! The cells of a dataset: which of its samples, contigs and regions have records, and how to read these in order.

pub mod arrays;
pub mod cells;
pub mod contigs;
pub mod regions;
pub mod spans;
