//! GZIP: each part is a zlib stream (and not a gzip file).

use tilefs_base::error::{Error, Result};

use super::encoded_parts::{EncodedPart, check_read};
use super::libdeflate::DecompressError;
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.parts(Gzip))
}

pub(super) struct Gzip;

impl DecodePart for Gzip {
    /// A zlib stream ends with the Adler-32 of what it decodes to.
    fn has_checksum(&self) -> bool {
        true
    }

    fn decode(&self, part: EncodedPart<'_, '_>, states: &mut CodecStates) -> Result<()> {
        let read = states.zlib.decompress(part.encoded, part.out).map_err(|error| match error {
            DecompressError::OutOfMemory => Error::io(std::io::ErrorKind::OutOfMemory.into()),
            DecompressError::Damaged => Error::damaged("the zlib stream is damaged or cut off"),
            DecompressError::TooShort => Error::damaged("the zlib stream decodes to less than claimed"),
            DecompressError::TooLong => Error::damaged("the zlib stream decodes to more than claimed"),
        })?;
        check_read(read as u64, part.encoded)
    }
}
