//! Positions on the Earth: coordinate systems, and what GDAL stores about rasters.

pub mod georeference;
#[doc(hidden)]
pub mod pam;
pub mod pam_metadata;
#[doc(hidden)]
pub mod projjson;
#[doc(hidden)]
pub mod wkt;
