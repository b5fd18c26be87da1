//! WEBP: the tile of a two-dimensional array of bytes as one WebP image.

use crate::error::{Error, Result};
use crate::format::cursor::Cursor;
use crate::format::pipeline::WebpFormat;

/// Bytes per pixel, `None` where the pipeline does not say the format.
pub(super) fn depth(format: WebpFormat) -> Option<usize> {
    match format {
        WebpFormat::Unspecified => None,
        WebpFormat::Rgb | WebpFormat::Bgr => Some(3),
        WebpFormat::Rgba | WebpFormat::Bgra => Some(4),
    }
}

/// Bytes that the filter's output has, by the image's own header.
pub(super) fn decoded_bytes(_format: WebpFormat, _metadata: Cursor<'_>, _data: &[u8]) -> Result<u64> {
    Err(Error::unsupported("filter WEBP"))
}

/// Undoes the filter.
pub(super) fn undo(_format: WebpFormat, _metadata: &mut Cursor<'_>, _data: &[u8], _out: &mut [u8]) -> Result<()> {
    Err(Error::unsupported("filter WEBP"))
}
