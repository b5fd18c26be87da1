//! Positions on the Earth: coordinate systems, what GDAL stores about rasters, and geometries.

pub mod bands;
pub mod georeference;
#[doc(hidden)]
pub mod pam;
pub mod pam_metadata;
#[doc(hidden)]
pub mod projjson;
#[doc(hidden)]
pub mod projjson_of_wkt;
pub(crate) mod wkb;
#[doc(hidden)]
pub mod wkt;
