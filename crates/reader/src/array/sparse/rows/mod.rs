//! Which cell each row is: a map of rows to cells, its parts, and its saved form.

pub mod address;
pub mod parts;
pub mod row_map;
pub mod saved_rows;
pub mod segments;
pub mod store;
