//! The key of a saved result: a hash of everything that the result depends on.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The length of a key in bytes.
const LENGTH: usize = 32;

/// The key of an entry: a hash of everything that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryKey([u8; LENGTH]);

/// Computes an [`EntryKey`] from its parts.
#[derive(Default)]
pub struct KeyWriter(Sha256);

impl KeyWriter {
    /// Starts the description of a value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part. Parts are delimited, so different parts give different keys.
    pub fn part(&mut self, part: impl fmt::Display) {
        self.bytes(part.to_string().as_bytes());
    }

    /// As [`KeyWriter::part`], for bytes.
    pub fn bytes(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Returns the key of the described value.
    pub fn finish(self) -> EntryKey {
        EntryKey(self.0.finalize().into())
    }
}

impl EntryKey {
    /// Returns the digest.
    pub fn digest(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Returns the key of one of several results about the same thing.
    pub fn of(&self, what: impl fmt::Display) -> EntryKey {
        let mut writer = KeyWriter::new();
        writer.0.update(self.0);
        writer.part(what);
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_different_parts_differ() {
        let of = |parts: &[&str]| {
            let mut writer = KeyWriter::new();
            parts.iter().for_each(|part| writer.part(part));
            writer.finish()
        };
        let keys = [of(&[]), of(&[""]), of(&["ab"]), of(&["a", "b"]), of(&["", "ab"]), of(&["a"]).of("b"), of(&["a"])];
        for (number, one) in keys.iter().enumerate() {
            assert!(keys[..number].iter().all(|other| other != one), "{number}");
        }
    }
}
