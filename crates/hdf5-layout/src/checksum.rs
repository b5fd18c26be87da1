//! The checksum of metadata, and the hash of names: Bob Jenkins' `lookup3` (`hashlittle`) with the initial value 0
//! (specification, "Disk Format: Level 0").

/// Returns the checksum of some bytes.
pub fn lookup3(bytes: &[u8]) -> u32 {
    // The algorithm uses arithmetic modulo 2^32.
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk::<12>().filter(|(_, behind)| !behind.is_empty()) {
        add(block, &mut a, &mut b, &mut c);
        mix(&mut a, &mut b, &mut c);
        rest = behind;
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    add(&last, &mut a, &mut b, &mut c);
    finish(&mut a, &mut b, &mut c);
    c
}

/// Appends the checksum of the bytes of `out` from `start` on.
pub fn append(out: &mut Vec<u8>, start: usize) {
    let sum = lookup3(out.get(start..).unwrap_or(&[]));
    out.extend(sum.to_le_bytes());
}

fn add(block: &[u8; 12], a: &mut u32, b: &mut u32, c: &mut u32) {
    let [a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3] = *block;
    *a = a.wrapping_add(u32::from_le_bytes([a0, a1, a2, a3]));
    *b = b.wrapping_add(u32::from_le_bytes([b0, b1, b2, b3]));
    *c = c.wrapping_add(u32::from_le_bytes([c0, c1, c2, c3]));
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: &mut u32, z: u32, bits: u32| {
        *x = x.wrapping_sub(*y) ^ y.rotate_left(bits);
        *y = y.wrapping_add(z);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_values_of_lookup3() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn agrees_with_the_checksum_of_a_superblock_that_the_library_wrote() {
        let mut superblock = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
        superblock.extend([0; 8]);
        superblock.extend([0xff; 8]);
        superblock.extend(0x18de_u64.to_le_bytes());
        superblock.extend(48_u64.to_le_bytes());
        append(&mut superblock, 0);
        assert_eq!(superblock[44..], [0x91, 0x2e, 0xc1, 0x49]);
    }
}
