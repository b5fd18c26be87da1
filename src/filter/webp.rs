//! WEBP: the tile of a two-dimensional array of bytes as one WebP image, a row of the tile being a row
//! of pixels.
//!
//! ```text
//! metadata: number of parts u32 (1), bytes of the image u32; then the metadata of earlier filters
//! data    : the image
//! ```

use super::libwebp;
use super::shuffle_parts::PartLengths;
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

/// Bytes that the filter's output has, by the image's own header; under 2^30.
pub(super) fn decoded_bytes(format: WebpFormat, image: &[u8]) -> Result<u64> {
    let (stride, height) = shape(format, image)?;
    Ok(stride as u64 * u64::from(height))
}

/// Undoes the filter into `out`, which has the length that [`decoded_bytes`] says.
pub(super) fn undo(format: WebpFormat, metadata: &mut Cursor<'_>, image: &[u8], out: &mut [u8]) -> Result<()> {
    let parts = PartLengths::parse(metadata, image.len())?.count();
    if parts != 1 {
        return Err(Error::damaged(format!("{parts} images in one tile")));
    }
    let (stride, _) = shape(format, image)?;
    libwebp::decode(format, image, out, stride).ok_or_else(|| Error::damaged("the WebP image is damaged"))
}

/// Bytes of a row, and the number of rows.
fn shape(format: WebpFormat, image: &[u8]) -> Result<(usize, u32)> {
    let depth = depth(format).ok_or_else(|| Error::unsupported("WebP images of unknown pixel format"))?;
    let (width, height) = libwebp::dimensions(image).ok_or_else(|| Error::damaged("no WebP image"))?;
    Ok((width as usize * depth, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_image_is_the_tile() {
        let pixels: Vec<u8> = (0..30).collect();
        let mut image = Vec::new();
        image_webp::WebPEncoder::new(&mut image).encode(&pixels, 5, 2, image_webp::ColorType::Rgb8).unwrap();
        assert_eq!(decoded_bytes(WebpFormat::Rgb, &image).unwrap(), 30);
        assert_eq!(decoded_bytes(WebpFormat::Bgra, &image).unwrap(), 40);

        let mut metadata = vec![1, 0, 0, 0];
        metadata.extend((image.len() as u32).to_le_bytes());
        metadata.push(9);
        let mut out = vec![0; 30];
        let mut cursor = Cursor::new(&metadata);
        undo(WebpFormat::Rgb, &mut cursor, &image, &mut out).unwrap();
        assert_eq!(out, pixels);
        assert_eq!(cursor.remaining(), 1);

        let mut twice = metadata.clone();
        twice[0] = 2;
        twice.splice(8..8, [0; 4]);
        assert!(undo(WebpFormat::Rgb, &mut Cursor::new(&twice), &image, &mut out).is_err());
        assert!(undo(WebpFormat::Rgb, &mut Cursor::new(&metadata), &image[1..], &mut out).is_err());
        assert!(decoded_bytes(WebpFormat::Rgb, &image[1..]).is_err());
    }
}
