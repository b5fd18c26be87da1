//! A text as BGZF: gzip in blocks, so that readers of VCF can seek to a virtual offset.
//!
//! Blocks are stored, not compressed, and all but the last have the same length. So every byte of the file is located
//! by arithmetic, and a read produces only the blocks that it touches.
//!
//! Source: the specification of SAM, "The BGZF compression format"; RFC 1951 and RFC 1952.

use std::sync::Arc;

use flate2::Crc;
use tilefs_base::content::{Content, Forward, unknown_band};
use tilefs_base::error::Result;
use tilefs_base::output::Output;

/// Bytes of text in a block, as in files that htslib writes.
const TEXT: usize = 0xff00;

/// Bytes of a block before and after its text: the gzip header with the length of the block, the header of a stored
/// block, and the checksum and length of the text.
const BEFORE: usize = 18 + 5;
const BEHIND: usize = 8;

/// Bytes of a full block.
const BLOCK: u64 = (BEFORE + TEXT + BEHIND) as u64;

/// The empty block that ends a file.
const END: [u8; 28] = [
    0x1f, 0x8b, 0x08, 0x04, 0, 0, 0, 0, 0, 0xff, 0x06, 0, b'B', b'C', 0x02, 0, 0x1b, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// A text as BGZF.
pub struct Bgzf {
    text: Arc<dyn Content>,
    length: u64,
}

impl Bgzf {
    /// Creates the file of a text of fewer than 2^63 bytes.
    pub fn new(text: Arc<dyn Content>) -> Self {
        let blocks = text.len().div_ceil(TEXT as u64);
        let length = text.len().saturating_add(blocks.saturating_mul((BEFORE + BEHIND) as u64)) + END.len() as u64;
        Bgzf { text, length }
    }

    /// Returns the position in the text at which a block begins, and the length of its text.
    fn text_of(&self, block: u64) -> (u64, usize) {
        let start = block.saturating_mul(TEXT as u64).min(self.text.len());
        (start, usize::try_from(self.text.len() - start).map_or(TEXT, |rest| rest.min(TEXT)))
    }
}

/// Returns the virtual offset of a byte of a text: the offset of its block in the file, and its offset in the block.
pub(super) fn virtual_offset(place: u64) -> u64 {
    let (block, within) = (place / TEXT as u64, place % TEXT as u64);
    block.saturating_mul(BLOCK) << 16 | within
}

/// Appends a block of at most [`TEXT`] bytes.
fn append_block(text: &[u8], out: &mut Vec<u8>) {
    let size = (BEFORE + text.len() + BEHIND - 1) as u16;
    let length = text.len() as u16;
    out.extend_from_slice(&[0x1f, 0x8b, 0x08, 0x04, 0, 0, 0, 0, 0, 0xff, 0x06, 0, b'B', b'C', 0x02, 0]);
    out.extend_from_slice(&size.to_le_bytes());
    // A stored block, the last one of its deflate stream.
    out.push(1);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(text);
    let mut checksum = Crc::new();
    checksum.update(text);
    out.extend_from_slice(&checksum.sum().to_le_bytes());
    out.extend_from_slice(&u32::from(length).to_le_bytes());
}

/// Returns a text in memory as BGZF.
pub fn bgzf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    text.chunks(TEXT).for_each(|part| append_block(part, &mut out));
    out.extend_from_slice(&END);
    out
}

impl Content for Bgzf {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let end = offset + out.len();
        let mut rest = match out {
            Output::Into(rest) => rest,
            Output::Ahead(_) => {
                let first = self.text_of(offset / BLOCK).0;
                let (last, length) = self.text_of((end - 1) / BLOCK);
                return self.text.read(first, Output::Ahead(last + length as u64 - first));
            }
        };
        let (mut at, mut text, mut block) = (offset, Vec::new(), Vec::new());
        while !rest.is_empty() {
            let number = at / BLOCK;
            let (start, length) = self.text_of(number);
            block.clear();
            if length > 0 {
                text.resize(length, 0);
                self.text.read_at(start, &mut text)?;
                append_block(&text, &mut block);
            }
            if length < TEXT {
                block.extend_from_slice(&END);
            }
            // A block has at most 64 KiB, and the end is after the last block.
            let within = block.get((at - number * BLOCK) as usize..).unwrap_or_default();
            let (now, later) = rest.split_at_mut(within.len().min(rest.len()));
            now.copy_from_slice(&within[..now.len()]);
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> std::ops::Range<u64> {
        unknown_band(self.length, offset)
    }
}

/// Reads a text sequentially as BGZF: the same bytes as [`Bgzf`].
pub struct BgzfForward<F> {
    text: F,
    /// Text that does not fill a block yet.
    pending: Vec<u8>,
    is_at_end: bool,
}

impl<F: Forward> BgzfForward<F> {
    /// Converts the text from its first byte on.
    pub fn new(text: F) -> Self {
        BgzfForward { text, pending: Vec::new(), is_at_end: false }
    }
}

impl<F: Forward> Forward for BgzfForward<F> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        if self.text.next(out)? {
            self.pending.append(out);
            let full = self.pending.len() / TEXT * TEXT;
            self.pending.drain(..full).as_slice().chunks(TEXT).for_each(|part| append_block(part, out));
            return Ok(true);
        }
        *out = bgzf(&self.pending);
        self.is_at_end = true;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use proptest::prelude::*;

    use super::*;
    use tilefs_export::testing::{assert_random_access, assert_reads_ahead_within, read_all};

    fn decoded(file: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
        text
    }

    /// A text in parts of some length.
    struct Parts(Vec<u8>, usize);

    impl Forward for Parts {
        fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
            let rest = self.0.split_off(self.1.min(self.0.len()));
            *out = std::mem::replace(&mut self.0, rest);
            Ok(!out.is_empty())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn blocks_hold_the_text(length in prop_oneof![0usize..100, (0usize..5).prop_map(|by| TEXT - 2 + by), 0usize..200_000], seed: u8, part in 1usize..90_000) {
            let text: Vec<u8> = (0..length).map(|at| (at * 7) as u8 ^ seed).collect();
            let file = Bgzf::new(Arc::new(text.clone()));
            let bytes = read_all(&file);
            prop_assert!(decoded(&bytes) == text);
            prop_assert!(bgzf(&text) == bytes && bytes.ends_with(&END));
            let (mut forward, mut all, mut next) = (BgzfForward::new(Parts(text.clone(), part)), Vec::new(), Vec::new());
            while forward.next(&mut next).unwrap() {
                all.extend_from_slice(&next);
            }
            prop_assert!(all == bytes);
            // A reader that starts at a virtual offset must find the rest of the text.
            let place = (seed as usize * 800).min(text.len());
            let (block, within) = (virtual_offset(place as u64) >> 16, virtual_offset(place as u64) & 0xffff);
            prop_assert!(decoded(&bytes[block as usize..])[within as usize..] == text[place..]);
        }
    }

    #[test]
    fn any_part_can_be_read_and_prefetched() {
        let text: Vec<u8> = (0..3 * TEXT + 100).map(|at| at as u8).collect();
        assert_random_access(&Bgzf::new(Arc::new(text.clone())));
        assert_reads_ahead_within(2 * BLOCK, |sources| Arc::new(Bgzf::new(sources.values(Arc::new(text.clone())))));
    }
}
