//! Descriptions of tables that Parquet and Arrow files carry for the programs that read them.

mod boxes;
pub mod geometries;
pub mod geometry_layout;
pub mod geoparquet;
pub mod pandas;
pub mod reach;
