//! CHECKSUM_MD5 and CHECKSUM_SHA256: digests of slices of the data, and of the metadata of earlier filters. The data
//! itself is unchanged.
//!
//! ```text
//! metadata: number of metadata digests u32, number of data digests u32,
//!           per digest, metadata first: bytes u64, digest [16 or 32]; then the earlier metadata
//! ```

use md5::Md5;
use sha2::Sha256;
use sha2::digest::{Digest, Output};
use tilefs_base::error::{Error, Result};
use tilefs_base::hex::hex;

use crate::cursor::Cursor;

/// The digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checksum {
    Md5,
    Sha256,
}

impl Checksum {
    /// Checks the data and the metadata of earlier filters. Leaves the cursor at this metadata.
    pub fn check(self, metadata: &mut Cursor<'_>, data: &[u8]) -> Result<()> {
        match self {
            Checksum::Md5 => check::<Md5>(metadata, data),
            Checksum::Sha256 => check::<Sha256>(metadata, data),
        }
    }
}

fn check<D: Digest>(metadata: &mut Cursor<'_>, data: &[u8]) -> Result<()> {
    let entry = 8 + <D as Digest>::output_size();
    let for_metadata = metadata.u32("number of metadata digests")?;
    let for_data = metadata.u32("number of data digests")?;
    let count = u64::from(for_metadata) + u64::from(for_data);
    let count = metadata.checked_count(count, entry, "number of digests")?;
    let entries = metadata.bytes(count * entry, "digests")?;
    let earlier = metadata.clone().bytes(metadata.remaining(), "metadata")?;
    // At most `count`, which is a usize.
    let (of_metadata, of_data) = entries.split_at(for_metadata as usize * entry);
    check_slices::<D>("metadata", of_metadata, earlier)?;
    check_slices::<D>("data", of_data, data)
}

/// Checks consecutive slices of `bytes` against their digests. Together, the slices must cover all of `bytes`.
fn check_slices<D: Digest>(what: &str, entries: &[u8], bytes: &[u8]) -> Result<()> {
    let mut rest = bytes;
    for entry in entries.chunks_exact(8 + <D as Digest>::output_size()) {
        let mut entry = Cursor::new(entry);
        let length = entry.u64("digest length")?;
        let stored = entry.bytes(entry.remaining(), "digest")?;
        let Some(slice) = usize::try_from(length).ok().and_then(|length| rest.split_off(..length)) else {
            return Err(Error::damaged(format!("a digest covers {length} bytes of {what}, {} left", rest.len())));
        };
        let computed = D::digest(slice);
        if *computed != *stored {
            return Err(mismatch::<D>(what, stored, &computed));
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    Err(Error::damaged(format!("{} bytes of {what} have no digest", rest.len())))
}

fn mismatch<D: Digest>(what: &str, stored: &[u8], computed: &Output<D>) -> Error {
    Error::damaged(format!("the checksum of the {what} is {}, stored is {}", hex(computed), hex(stored)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MD5 and SHA-256 of "abc", from RFC 1321 and FIPS 180-2.
    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
    const SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn metadata(data_digest: &str, earlier: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        for at in (0..data_digest.len()).step_by(2) {
            bytes.push(u8::from_str_radix(&data_digest[at..at + 2], 16).unwrap());
        }
        if !earlier.is_empty() {
            bytes[0] = 1;
            let entry: Vec<u8> = bytes[8..].to_vec();
            bytes.splice(8..8, entry);
            bytes.extend(earlier);
        }
        bytes
    }

    #[test]
    fn known_digests_of_data_and_metadata() {
        for (checksum, digest) in [(Checksum::Md5, MD5), (Checksum::Sha256, SHA256)] {
            for earlier in [&b""[..], b"abc"] {
                let metadata = metadata(digest, earlier);
                let mut cursor = Cursor::new(&metadata);
                checksum.check(&mut cursor, b"abc").unwrap();
                assert_eq!(cursor.remaining(), earlier.len());
                let error = checksum.check(&mut Cursor::new(&metadata), b"abd").unwrap_err().to_string();
                assert!(error.contains(digest), "{error}");
                assert!(checksum.check(&mut Cursor::new(&metadata), b"abcd").is_err());
                assert!(checksum.check(&mut Cursor::new(&metadata), b"ab").is_err());
            }
            let wrong = metadata(digest, b"abX");
            assert!(checksum.check(&mut Cursor::new(&wrong), b"abc").is_err());
            assert!(checksum.check(&mut Cursor::new(&[0xff; 100]), b"abc").is_err());
        }
    }
}
