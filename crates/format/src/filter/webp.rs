//! WEBP: the tile of a two-dimensional array of bytes as one WebP image. A row of the tile is a row of pixels.
//!
//! ```text
//! metadata: number of parts u32 (1), bytes of the image u32; then the metadata of earlier filters
//! data    : the image
//! ```

use tilefs_base::error::{Error, Result};

use super::libwebp;
use super::part_lengths::PartLengths;
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::pipeline::WebpFormat;

pub(super) fn bind(input: &FilterInput<'_>, format: WebpFormat) -> Result<Stage> {
    if input.datatype != Datatype::UInt8 {
        return Err(input.unsupported_type(input.datatype));
    }
    let Some(depth) = depth(format) else { return Err(input.unsupported("without a pixel format")) };
    Ok(input.transform(Webp { format, depth }))
}

/// Returns the bytes per pixel; `None` if the pipeline does not specify the format.
fn depth(format: WebpFormat) -> Option<usize> {
    match format {
        WebpFormat::Unspecified => None,
        WebpFormat::Rgb | WebpFormat::Bgr => Some(3),
        WebpFormat::Rgba | WebpFormat::Bgra => Some(4),
    }
}

struct Webp {
    format: WebpFormat,
    /// Bytes of a pixel.
    depth: usize,
}

impl Transform for Webp {
    /// Returns less than 2^30, by the bounds of [`libwebp::dimensions`].
    fn decoded_bytes(&self, _: Cursor<'_>, image: &[u8]) -> Result<u64> {
        let (stride, height) = self.shape(image)?;
        Ok(stride as u64 * u64::from(height))
    }

    fn undo(&self, metadata: &mut Cursor<'_>, image: &[u8], out: &mut [u8]) -> Result<()> {
        let parts = PartLengths::parse(metadata, image.len())?.count();
        if parts != 1 {
            return Err(Error::damaged(format!("{parts} images in one tile")));
        }
        let (stride, _) = self.shape(image)?;
        libwebp::decode(self.format, image, out, stride).ok_or_else(|| Error::damaged("the WebP image is damaged"))
    }
}

impl Webp {
    /// Returns the bytes of a row, and the number of rows.
    fn shape(&self, image: &[u8]) -> Result<(usize, u32)> {
        let (width, height) = libwebp::dimensions(image).ok_or_else(|| Error::damaged("no WebP image"))?;
        Ok((width as usize * self.depth, height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_image_is_the_tile() {
        let pixels: Vec<u8> = (0..30).collect();
        let mut image = Vec::new();
        image_webp::WebPEncoder::new(&mut image).encode(&pixels, 5, 2, image_webp::ColorType::Rgb8).unwrap();
        let rgb = Webp { format: WebpFormat::Rgb, depth: 3 };
        let bgra = Webp { format: WebpFormat::Bgra, depth: 4 };
        assert_eq!(rgb.decoded_bytes(Cursor::new(&[]), &image).unwrap(), 30);
        assert_eq!(bgra.decoded_bytes(Cursor::new(&[]), &image).unwrap(), 40);

        let mut metadata = vec![1, 0, 0, 0];
        metadata.extend((image.len() as u32).to_le_bytes());
        metadata.push(9);
        let mut out = vec![0; 30];
        let mut cursor = Cursor::new(&metadata);
        rgb.undo(&mut cursor, &image, &mut out).unwrap();
        assert_eq!(out, pixels);
        assert_eq!(cursor.remaining(), 1);

        let mut twice = metadata.clone();
        twice[0] = 2;
        twice.splice(8..8, [0; 4]);
        assert!(rgb.undo(&mut Cursor::new(&twice), &image, &mut out).is_err());
        assert!(rgb.undo(&mut Cursor::new(&metadata), &image[1..], &mut out).is_err());
        assert!(rgb.decoded_bytes(Cursor::new(&[]), &image[1..]).is_err());
    }
}
