//! BZIP2: each part is a bzip2 stream.

use tilefs_base::error::{Error, Result};

use super::encoded_parts::{EncodedPart, check_filled, check_read};
use super::scratch::CodecStates;
use super::stage::{DecodePart, FilterInput, Stage};

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    Ok(input.parts(Bzip2))
}

pub(super) struct Bzip2;

impl DecodePart for Bzip2 {
    /// Each block of bzip2 has the CRC-32 of what it decodes to.
    fn has_checksum(&self) -> bool {
        true
    }

    /// Decodes a stream. The library cannot reuse its state; it allocates at most 4 MB for every stream.
    fn decode(&self, part: EncodedPart<'_, '_>, _: &mut CodecStates) -> Result<()> {
        let EncodedPart { encoded, out, .. } = part;
        let mut bzip2 = ::bzip2::Decompress::new(false);
        loop {
            let (read, written) = (bzip2.total_in(), bzip2.total_out());
            // Neither total exceeds its slice.
            let status = bzip2.decompress(&encoded[read as usize..], &mut out[written as usize..]);
            match status.map_err(|error| Error::refused("bad bzip2 stream", error))? {
                ::bzip2::Status::StreamEnd => break,
                _ if (read, written) == (bzip2.total_in(), bzip2.total_out()) => {
                    let end = if read == encoded.len() as u64 { "is cut off" } else { "decodes to more than claimed" };
                    return Err(Error::damaged(format!("the bzip2 stream {end}")));
                }
                _ => {}
            }
        }
        check_read(bzip2.total_in(), encoded)?;
        check_filled(bzip2.total_out(), out)
    }
}
