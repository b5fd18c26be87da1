//! Rasters that GDAL's driver wrote. Their images are what they are stored for, so listings show these.

use tilefs_base::error::Result;
use tilefs_reader::array::OpenedArray;

use crate::domains::Domain;
use crate::fields::told::is_described_by_gdal;

/// The domain: arrays that GDAL described as rasters.
pub const DOMAIN: Domain = Domain { own_view: Some(image), ..Domain::NONE };

/// The word of the images.
const TIFF: &str = "tiff";

fn image(array: &OpenedArray) -> Result<Option<&'static str>> {
    Ok(is_described_by_gdal(array)?.then_some(TIFF))
}
