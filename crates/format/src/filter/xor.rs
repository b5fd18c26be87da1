//! XOR: every value of a part except the first is stored XORed with the value before it.

use tilefs_base::error::{Error, Result};

use super::integer::{Integer, Width, with_integer};
use super::part_lengths::PartLengths;
use super::stage::{FilterInput, Stage, Transform};
use crate::cursor::Cursor;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    let width = input.width();
    Ok(input.transform(Xor(width)).with_output(width.signed()))
}

struct Xor(Width);

impl Transform for Xor {
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        let parts = PartLengths::parse(metadata, data.len())?;
        parts.for_each(data, out, |part, out| with_integer!(self.0, undo_part(part, out)))
    }
}

/// Undoes the filter on one part. `part` and `out` have the same length.
fn undo_part<T: Integer>(part: &[u8], out: &mut [u8]) -> Result<()> {
    if !part.len().is_multiple_of(T::BYTES) {
        return Err(Error::damaged(format!("a part of {} bytes is not a whole number of values", part.len())));
    }
    let mut value = T::truncate(0);
    for (stored, out) in part.chunks_exact(T::BYTES).zip(out.chunks_exact_mut(T::BYTES)) {
        value = value.xor(T::load(stored));
        value.store(out);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_the_xor_of_all_up_to_it() {
        let mut out = [0; 6];
        undo_part::<u16>(&[0x34, 0x12, 0x0f, 0, 0, 0xff], &mut out).unwrap();
        assert_eq!(out, [0x34, 0x12, 0x3b, 0x12, 0x3b, 0xed]);
        assert!(undo_part::<u32>(&[0; 6], &mut out).is_err());
    }
}
