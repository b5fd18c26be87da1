//! Damages an array with knowledge of the format: not only raw bytes, but also the fields within compressed metadata,
//! the headers of chunks, lists of commits and names of files.

use std::sync::Arc;

use support::generic_tile::compressed;
use support::metadata_file::{generic_tiles, replace_generic_tile};
use tilefs_reader::array::Context;
use tilefs_reader::array::decode_inline_tile;
use tilefs_storage::{MemoryStorage, Storage, StoreKey};

/// A generator of numbers that depend only on the seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Numbers at the edges of ranges.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    8,
    127,
    128,
    255,
    256,
    65535,
    65536,
    1 << 20,
    1 << 28,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    1 << 55,
    1 << 62,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Damages one to three places.
pub fn damage(storage: &MemoryStorage, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        damage_one(storage, random);
    }
}

fn damage_one(storage: &MemoryStorage, random: &mut Random) {
    let keys = storage.keys();
    let Some(key) = (!keys.is_empty()).then(|| random.pick(&keys).clone()) else { return };
    match random.below(40) {
        0 => drop(storage.remove(&key)),
        1 => rename(storage, &key, random),
        2 => {
            if let Some((bytes, length)) = object(storage, random.pick(&keys)) {
                storage.put_with_hole(key, bytes, length);
            }
        }
        // A longer or shorter file; the added part is a hole.
        3 => {
            if let Some((mut bytes, length)) = object(storage, &key) {
                let length = *random.pick(&[0, length / 2, length + 1, 1 << 20, 1 << 30, 1 << 40]);
                bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
                storage.put_with_hole(key, bytes, length);
            }
        }
        _ => damage_file(storage, &key, random),
    }
}

/// Returns the bytes of an object, and its length.
fn object(storage: &MemoryStorage, key: &StoreKey) -> Option<(Vec<u8>, u64)> {
    Some((storage.bytes(key)?.to_vec(), storage.length(key).ok()?))
}

/// Renames a file: one character of its name becomes another digit or letter.
fn rename(storage: &MemoryStorage, key: &StoreKey, random: &mut Random) {
    let Some((mut bytes, folder)) = key.name().map(<[u8]>::to_vec).zip(key.parent()) else { return };
    let place = random.below(bytes.len());
    if let Some(byte) = bytes.get_mut(place) {
        *byte = *random.pick(b"0123456789_.abcdeft");
    }
    if let Some((stored, length)) = object(storage, key) {
        storage.remove(key);
        storage.put_with_hole(folder.join(bytes), stored, length);
    }
}

fn damage_file(storage: &MemoryStorage, key: &StoreKey, random: &mut Random) {
    let Some((mut bytes, _)) = object(storage, key) else { return };
    let is_metadata = key.name() == Some(b"__fragment_metadata.tdb");
    match random.below(4) {
        0 => damage_bytes(&mut bytes, random),
        // Damage the places of numbers: footers, and the headers of chunks.
        1 if is_metadata => {
            let start = bytes.len().saturating_sub(400);
            damage_bytes_from(&mut bytes, start, random);
        }
        1 => {
            let end = bytes.len().min(40);
            let mut head = bytes[..end].to_vec();
            damage_number(&mut head, 0, random);
            bytes.splice(..end, head);
        }
        _ => {
            let tiles = generic_tiles(&bytes);
            match tiles.is_empty() {
                true => damage_bytes(&mut bytes, random),
                false => {
                    let (start, end) = *random.pick(&tiles);
                    damage_payload(&mut bytes, start, end, random);
                }
            }
        }
    }
    storage.put(key.clone(), bytes);
}

/// Damages the payload of a generic tile, and compresses it again. Adjusts the footer's offsets of the tiles after it.
fn damage_payload(bytes: &mut Vec<u8>, start: usize, end: usize, random: &mut Random) {
    let context = Context::new(Arc::new(MemoryStorage::new()), 1 << 20, 1, None);
    let Ok(mut payload) = decode_inline_tile(&context, &bytes[start..end]) else { return };
    match random.below(12) {
        // Many repetitions of a few bytes.
        0 => {
            let part: Vec<u8> = payload.iter().copied().take(1 + random.below(64)).collect();
            payload.extend(part.repeat(1 + random.below(20_000)));
        }
        1 => payload.extend(vec![*random.pick(&[0, 1, b'\n', 255]); random.below(2 << 20)]),
        _ => damage_bytes(&mut payload, random),
    }
    let Some(version) = bytes[start..end].first_chunk().copied().map(u32::from_le_bytes) else { return };
    replace_generic_tile(bytes, start, &compressed(&payload, version));
}

fn damage_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    damage_bytes_from(bytes, 0, random);
}

/// Alters, removes or adds bytes after `start`.
fn damage_bytes_from(bytes: &mut Vec<u8>, start: usize, random: &mut Random) {
    let length = bytes.len() - start;
    let place = start + random.below(length);
    let end = bytes.len().min(place + 1 + random.below(16));
    match random.below(10) {
        0 => bytes.truncate(place),
        1 => drop(bytes.splice(place.min(end)..end, [])),
        2 => {
            let part = bytes[place.min(end)..end].to_vec();
            bytes.splice(place.min(end)..place.min(end), part.repeat(1 + random.below(8)));
        }
        3 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte = random.next() as u8;
            }
        }
        4 | 5 => {
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << random.below(8);
            }
        }
        _ => damage_number(bytes, start, random),
    }
}

/// Replaces a number of 1, 2, 4 or 8 bytes somewhere after `start`.
fn damage_number(bytes: &mut [u8], start: usize, random: &mut Random) {
    let width = *random.pick(&[1, 2, 4, 4, 8, 8]);
    let Some(room) = (bytes.len() - start).checked_sub(width) else { return };
    let place = start + random.below(room + 1);
    let mut old = [0; 8];
    old[..width].copy_from_slice(&bytes[place..place + width]);
    let old = u64::from_le_bytes(old);
    let new = match random.below(6) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old ^ (1 << random.below(8 * width)),
        3 => old << random.below(16),
        _ => *random.pick(&EDGES),
    };
    bytes[place..place + width].copy_from_slice(&new.to_le_bytes()[..width]);
}
