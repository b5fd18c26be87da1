//! LZ4: each part is a bare LZ4 block.

use tilefs_base::error::{Error, Result};

use super::encoded_parts::{EncodedPart, check_filled};
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.parts(Lz4))
}

pub(super) struct Lz4;

impl DecodePart for Lz4 {
    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        let written = lz4_flex::block::decompress_into(part.encoded, part.out);
        let written = written.map_err(|error| Error::refused("bad LZ4 block", error))?;
        check_filled(written as u64, part.out)
    }
}
