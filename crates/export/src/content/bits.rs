//! Validity and booleans as Arrow and Parquet store them: one bit per cell, lowest bit first.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;

use crate::content::element::{BLOCK, by_elements};

/// One bit for each byte of another content: 0 where the byte is 0.
pub struct Bits {
    of: Arc<dyn Content>,
}

impl Bits {
    pub fn new(of: Arc<dyn Content>) -> Self {
        Bits { of }
    }
}

impl Content for Bits {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of } = self;
        recorder.add::<Self>(());
        of.record(recorder);
    }

    fn len(&self) -> u64 {
        self.of.len().div_ceil(8)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        by_elements(1, BLOCK / 8, offset, out, |first, mut out| {
            let start = first * 8;
            let count = out.len().saturating_mul(8).min(self.of.len() - start);
            self.of.read(start, out.aside(count, &mut bytes))?;
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let bits = out.wanted().into_iter().flatten();
            bits.zip(bytes.as_chunks().0).for_each(|(bits, eight)| *bits = pack(u64::from_le_bytes(*eight)));
            Ok(())
        })
    }
}

/// Returns one bit for each of the eight bytes, set if the byte is not zero.
fn pack(bytes: u64) -> u8 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // Sets the highest bit of each byte in which any bit is set.
    let set = (((bytes & LOW) + LOW) | bytes) & !LOW;
    // Gathers the eight bits in the highest byte.
    ((set >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_bit_equals_its_byte(bytes in proptest::collection::vec(prop::sample::select(vec![0u8, 1, 2, 0x80, 0xff]), 0..20_000)) {
            let bits = Bits::new(Arc::new(bytes.clone()));
            let packed = read_all(&bits);
            for (number, byte) in bytes.iter().enumerate() {
                prop_assert_eq!((packed[number / 8] >> (number % 8)) & 1 == 1, *byte != 0);
            }
        }
    }

    #[test]
    fn any_part_can_be_read() {
        assert_random_access(&Bits::new(Arc::new((0..9001u32).map(|i| (i % 7 % 2) as u8).collect::<Vec<u8>>())));
    }

    #[test]
    fn whole_bytes_of_bits_are_prefetched() {
        assert_reads_ahead(|sources| Arc::new(Bits::new(sources.values(Arc::new(vec![1; 200_003])))));
    }
}
