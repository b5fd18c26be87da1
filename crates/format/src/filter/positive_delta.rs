//! POSITIVE_DELTA: windows of values, stored as differences of neighbours, none of which is negative.
//!
//! ```text
//! metadata: number of windows u32, per window: base T, bytes u32; then the metadata of earlier filters
//! data    : per window its differences, as wide as the values
//! ```

use tilefs_base::error::{Error, Result};

use super::bit_width_reduction::is_signed;
use super::delta::sum;
use super::integer::{Integer, Width, with_integer};
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// Binds the filter. It leaves values that are not integers unchanged; bytes of any kind count as integers.
pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    let is_integer = match input.datatype {
        Datatype::Int8 | Datatype::UInt8 | Datatype::Blob | Datatype::Bool => true,
        Datatype::GeomWkb | Datatype::GeomWkt => true,
        _ => is_signed(input).is_some(),
    };
    Ok(if is_integer { input.transform(PositiveDelta(input.width())) } else { input.pass_through() })
}

struct PositiveDelta(Width);

impl Transform for PositiveDelta {
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        with_integer!(self.0, undo(metadata, data, out))
    }
}

/// Undoes the filter. `data` and `out` have the same length.
fn undo<T: Integer>(metadata: &mut Cursor<'_>, mut data: &[u8], mut out: &mut [u8]) -> Result<()> {
    let count = metadata.u32("number of windows")?;
    let count = metadata.checked_count(count.into(), T::BYTES + 4, "number of windows")?;
    for _ in 0..count {
        let base = T::load(metadata.bytes(T::BYTES, "window base")?);
        let length = metadata.u32("window length")? as usize;
        let (Some(window), Some(out)) = (data.split_off(..length), out.split_off_mut(..length)) else {
            return Err(Error::damaged(format!("a window of {length} bytes, {} left", data.len())));
        };
        if length.is_multiple_of(T::BYTES) {
            sum(base, window, out);
        } else {
            out.copy_from_slice(window);
        }
    }
    if data.is_empty() {
        return Ok(());
    }
    Err(Error::damaged(format!("{} bytes belong to no window", data.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes as the format describes, in windows of `window` values.
    fn encode(values: &[i16], window: usize) -> (Vec<u8>, Vec<u8>) {
        let mut metadata = (values.len().div_ceil(window) as u32).to_le_bytes().to_vec();
        let mut data = Vec::new();
        for window in values.chunks(window) {
            metadata.extend(window[0].to_le_bytes());
            metadata.extend((2 * window.len() as u32).to_le_bytes());
            let mut last = window[0];
            for &value in window {
                data.extend(value.wrapping_sub(last).to_le_bytes());
                last = value;
            }
        }
        (metadata, data)
    }

    proptest! {
        #[test]
        fn undoes_the_encoder(values in prop::collection::vec(any::<i16>(), 0..300), window in 1usize..100) {
            let (mut metadata, data) = encode(&values, window);
            metadata.push(77);
            let mut cursor = Cursor::new(&metadata);
            let mut out = vec![0; data.len()];
            undo::<u16>(&mut cursor, &data, &mut out).unwrap();
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(cursor.remaining(), 1);
        }
    }

    #[test]
    fn windows_must_cover_the_data() {
        let (metadata, data) = encode(&[5, 6, 7], 2);
        let undo =
            |metadata: &[u8], data: &[u8]| undo::<u16>(&mut Cursor::new(metadata), data, &mut vec![0; data.len()]);
        undo(&metadata, &data).unwrap();
        assert!(undo(&metadata, &data[..4]).is_err());
        assert!(undo(&metadata, &[&data[..], &[0]].concat()).is_err());
        assert!(undo(&metadata[..10], &data).is_err());
        assert!(undo(&[0xff; 12], &data).is_err());
    }

    #[test]
    fn odd_windows_are_copied() {
        let metadata = [1, 0, 0, 0, 9, 9, 3, 0, 0, 0];
        let mut out = [0; 3];
        undo::<u16>(&mut Cursor::new(&metadata), &[1, 2, 3], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3]);
    }
}
