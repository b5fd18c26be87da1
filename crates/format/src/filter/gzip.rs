//! GZIP: each part is a zlib stream (and not a gzip file).

use super::encoded_parts::{EncodedPart, check_read};
use super::libdeflate::Problem;
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};
use crate::error::{Error, Result};

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.parts(Gzip))
}

pub(super) struct Gzip;

impl DecodePart for Gzip {
    fn decode(&self, part: EncodedPart<'_, '_>, states: &mut CodecStates) -> Result<()> {
        let read = states.zlib.decompress_zlib(part.encoded, part.out).map_err(|problem| match problem {
            Problem::OutOfMemory => Error::io(std::io::ErrorKind::OutOfMemory.into()),
            Problem::Damaged => Error::damaged("the zlib stream is damaged or cut off"),
            Problem::TooShort => Error::damaged("the zlib stream holds less than it claims"),
            Problem::TooLong => Error::damaged("the zlib stream holds more than it claims"),
        })?;
        check_read(read as u64, part.encoded)
    }
}
