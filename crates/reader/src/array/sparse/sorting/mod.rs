//! Sorts of more cells than fit in memory.

pub mod bucket_sort;
pub mod external_sort;
pub mod radix;
