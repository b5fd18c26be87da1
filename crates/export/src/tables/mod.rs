//! Descriptions of tables that Parquet and Arrow files carry for the programs that read them.

pub mod geoparquet;
pub mod pandas;
