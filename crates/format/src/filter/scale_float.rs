//! SCALE_FLOAT: floats stored as integers; a float is `scale * integer + offset`.

use tilefs_base::error::{Error, Result};

use super::integer::Width;
use super::part_lengths::PartLengths;
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;

/// Binds the filter with its options; `byte_width` is the width of the stored integers.
pub(super) fn bind(input: &FilterInput<'_>, scale: f64, offset: f64, byte_width: u64) -> Result<Stage> {
    let Some(stored) = Width::of_bytes(byte_width) else {
        return Err(input.unsupported(&format!("with integers of {byte_width} bytes")));
    };
    let float = input.width();
    if !matches!(float, Width::Four | Width::Eight) {
        return Err(input.unsupported_type(input.datatype));
    }
    Ok(input.transform(ScaleFloat { scale, offset, stored, float }).with_output(stored.signed()))
}

#[derive(Clone, Copy)]
struct ScaleFloat {
    scale: f64,
    offset: f64,
    /// Width of the stored integers.
    stored: Width,
    /// Width of the floats, `Four` or `Eight`.
    float: Width,
}

impl Transform for ScaleFloat {
    fn decoded_bytes(&self, _: Cursor<'_>, data: &[u8]) -> Result<u64> {
        Ok((data.len() / self.stored.bytes()) as u64 * self.float.bytes() as u64)
    }

    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        PartLengths::parse(metadata, data.len())?;
        self.scale(data, out)
    }
}

impl ScaleFloat {
    fn scale(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if !data.len().is_multiple_of(self.stored.bytes()) {
            return Err(Error::damaged(format!("{} bytes are not a whole number of integers", data.len())));
        }
        // As in TileDB, the integer is first rounded to the float's own type; then the product and the sum are each
        // rounded as doubles, and the result to the float's type. A fused multiply-add would differ in the last bit.
        let double = |value: f64| (self.scale * value + self.offset).to_le_bytes();
        let single = |value: f32| ((self.scale * f64::from(value) + self.offset) as f32).to_le_bytes();
        match (self.stored, self.float) {
            (Width::One, Width::Four) => map(data, out, |[byte]| single(f32::from(byte as i8))),
            (Width::Two, Width::Four) => map(data, out, |bytes| single(f32::from(i16::from_le_bytes(bytes)))),
            (Width::Four, Width::Four) => map(data, out, |bytes| single(i32::from_le_bytes(bytes) as f32)),
            (Width::Eight, Width::Four) => map(data, out, |bytes| single(i64::from_le_bytes(bytes) as f32)),
            (Width::One, _) => map(data, out, |[byte]| double(f64::from(byte as i8))),
            (Width::Two, _) => map(data, out, |bytes| double(f64::from(i16::from_le_bytes(bytes)))),
            (Width::Four, _) => map(data, out, |bytes| double(f64::from(i32::from_le_bytes(bytes)))),
            (Width::Eight, _) => map(data, out, |bytes| double(i64::from_le_bytes(bytes) as f64)),
        }
        Ok(())
    }
}

#[inline(always)]
fn map<const I: usize, const O: usize>(data: &[u8], out: &mut [u8], convert: impl Fn([u8; I]) -> [u8; O]) {
    for (&stored, out) in data.as_chunks::<I>().0.iter().zip(out.as_chunks_mut::<O>().0) {
        *out = convert(stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_rounded_to_the_floats_type_first() {
        let filter = ScaleFloat { scale: 1.0, offset: 0.0, stored: Width::Eight, float: Width::Four };
        let mut out = [0; 4];
        // 2^24 + 1 is not an f32 value. Converted through f64, the sum with the offset would differ.
        filter.scale(&16_777_217i64.to_le_bytes(), &mut out).unwrap();
        assert_eq!(f32::from_le_bytes(out), 16_777_216.0);
        let shifted = ScaleFloat { offset: -16_777_216.0, ..filter };
        shifted.scale(&16_777_217i64.to_le_bytes(), &mut out).unwrap();
        assert_eq!(f32::from_le_bytes(out), 0.0);
    }

    #[test]
    fn all_widths() {
        let bytes = (-77i64).to_le_bytes();
        for stored in [Width::One, Width::Two, Width::Four, Width::Eight] {
            for float in [Width::Four, Width::Eight] {
                let filter = ScaleFloat { scale: 0.5, offset: 3.0, stored, float };
                let integer = &bytes[..stored.bytes()];
                assert_eq!(filter.decoded_bytes(Cursor::new(&[]), integer).unwrap(), float.bytes() as u64);
                let mut out = [0; 8];
                filter.scale(integer, &mut out[..float.bytes()]).unwrap();
                if float == Width::Four {
                    assert_eq!(out[..4], (-35.5f32).to_le_bytes());
                } else {
                    assert_eq!(out, (-35.5f64).to_le_bytes());
                }
            }
        }
        let filter = ScaleFloat { scale: 0.5, offset: 3.0, stored: Width::Two, float: Width::Four };
        assert!(filter.scale(&[0; 3], &mut [0; 4]).is_err());
    }
}
