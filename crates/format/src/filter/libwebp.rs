//! The decoder of libwebp, behind a safe interface. Decoding lossy images to the same bytes as TileDB requires the same
//! C library, because its chroma upsampling is specific to it.
//!
//! Invariant of the `unsafe` blocks: every pointer comes from a slice that outlives the call and is passed with that
//! slice's own length; libwebp keeps none of them. It never reads beyond the input length or writes beyond the output
//! length, whatever the image claims.
#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::pipeline::WebpFormat;

/// Returns the width and height of an image in pixels, each 1 to 16383, from its header; `None` if the header is
/// invalid.
pub(super) fn dimensions(image: &[u8]) -> Option<(u32, u32)> {
    let (mut width, mut height): (c_int, c_int) = (0, 0);
    // SAFETY: `image` is readable for its length, and the two integers are writable.
    let valid = unsafe { libwebp_sys::WebPGetInfo(image.as_ptr(), image.len(), &mut width, &mut height) };
    let dimensions = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let within = |side| (1..=16383).contains(&side);
    (valid != 0 && within(dimensions.0) && within(dimensions.1)).then_some(dimensions)
}

/// Decodes an image into rows of `stride` bytes. Returns `None` if the image is damaged or `out` is too short for it.
pub(super) fn decode(format: WebpFormat, image: &[u8], out: &mut [u8], stride: usize) -> Option<()> {
    let decode = match format {
        WebpFormat::Unspecified => return None,
        WebpFormat::Rgb => libwebp_sys::WebPDecodeRGBInto,
        WebpFormat::Bgr => libwebp_sys::WebPDecodeBGRInto,
        WebpFormat::Rgba => libwebp_sys::WebPDecodeRGBAInto,
        WebpFormat::Bgra => libwebp_sys::WebPDecodeBGRAInto,
    };
    let stride = c_int::try_from(stride).ok()?;
    // SAFETY: `image` is readable and `out` writable for its length; libwebp checks the stride against that length and
    // the size of the image.
    let written = unsafe { decode(image.as_ptr(), image.len(), out.as_mut_ptr(), out.len(), stride) };
    (!written.is_null()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32, depth: usize) -> (Vec<u8>, Vec<u8>) {
        let pixels: Vec<u8> = (0..width * height * depth as u32).map(|i| (i * i / 11 + i % 17) as u8).collect();
        let mut encoded = Vec::new();
        let color = if depth == 3 { image_webp::ColorType::Rgb8 } else { image_webp::ColorType::Rgba8 };
        image_webp::WebPEncoder::new(&mut encoded).encode(&pixels, width, height, color).unwrap();
        (encoded, pixels)
    }

    /// Compares with a decoder in safe Rust.
    #[test]
    fn agrees_with_a_safe_decoder_on_lossless_images() {
        for (width, height) in [(1, 1), (2, 3), (33, 17), (64, 64), (300, 5)] {
            for (depth, format) in [(3, WebpFormat::Rgb), (4, WebpFormat::Rgba)] {
                let (encoded, pixels) = image(width, height, depth);
                assert_eq!(dimensions(&encoded), Some((width, height)));
                let mut safe = vec![0; pixels.len()];
                image_webp::WebPDecoder::new(std::io::Cursor::new(&encoded)).unwrap().read_image(&mut safe).unwrap();
                let mut out = vec![0; pixels.len()];
                decode(format, &encoded, &mut out, width as usize * depth).unwrap();
                assert_eq!(out, safe);
                assert_eq!(out, pixels);
            }
        }
    }

    #[test]
    fn blue_and_red_are_swapped() {
        let (encoded, pixels) = image(7, 5, 4);
        let mut out = vec![0; pixels.len()];
        decode(WebpFormat::Bgra, &encoded, &mut out, 28).unwrap();
        let swapped: Vec<u8> = pixels.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, a]| [b, g, r, a]).collect();
        assert_eq!(out, swapped);
    }

    #[test]
    fn damaged_images_and_short_buffers_fail() {
        let (encoded, pixels) = image(33, 17, 3);
        let mut out = vec![0; pixels.len()];
        assert!(decode(WebpFormat::Rgb, &encoded, &mut out[1..], 99).is_none());
        assert!(decode(WebpFormat::Rgb, &encoded, &mut out, 98).is_none());
        assert!(decode(WebpFormat::Rgb, &encoded, &mut out, usize::MAX).is_none());
        assert!(decode(WebpFormat::Unspecified, &encoded, &mut out, 99).is_none());
        assert!(decode(WebpFormat::Rgb, &encoded[..encoded.len() / 2], &mut out, 99).is_none());
        assert!(decode(WebpFormat::Rgb, &[], &mut out, 99).is_none());
        assert_eq!(dimensions(&encoded[..20]), None);
        assert_eq!(dimensions(&[]), None);
    }
}
