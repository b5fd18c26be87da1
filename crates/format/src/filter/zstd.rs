//! ZSTD: each part is a zstd frame.

use tilefs_base::error::{Error, Result};

use super::encoded_parts::{EncodedPart, check_filled};
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.parts(Zstd))
}

pub(super) struct Zstd;

impl DecodePart for Zstd {
    /// Decodes a frame. Memory is bounded: decoding stops at the end of the output, whatever size or window the frame
    /// claims.
    fn decode(&self, part: EncodedPart<'_, '_>, states: &mut CodecStates) -> Result<()> {
        let zstd = match &mut states.zstd {
            Some(zstd) => zstd,
            none => none.insert(::zstd::bulk::Decompressor::new().map_err(Error::io)?),
        };
        let written = zstd.decompress_to_buffer(part.encoded, part.out);
        let written = written.map_err(|error| Error::refused("bad zstd frame", error))?;
        check_filled(written as u64, part.out)
    }
}
