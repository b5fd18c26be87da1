//! The superblock, version 2 (specification, II.A).

use crate::UNDEFINED;
use crate::checksum;

/// Size in bytes of the superblock, with which the file begins.
pub(crate) const SUPERBLOCK: u64 = 48;

/// Returns the superblock of a file of this length with this root group.
pub(crate) fn encode(length: u64, root: u64) -> Vec<u8> {
    let mut out = b"\x89HDF\r\n\x1a\n".to_vec();
    // Version 2, offsets and lengths of 8 bytes, no flags.
    out.extend([2, 8, 8, 0]);
    // Base address, superblock extension, end of file, root group.
    out.extend([0, UNDEFINED, length, root].iter().flat_map(|field| field.to_le_bytes()));
    checksum::append(&mut out, 0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_library() {
        let mut expected = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
        expected.extend([0; 8]);
        expected.extend([0xff; 8]);
        expected.extend([0xde, 0x18, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0x91, 0x2e, 0xc1, 0x49]);
        assert_eq!(encode(0x18de, 0x30), expected);
    }
}
