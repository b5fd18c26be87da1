//! The key of an encrypted array: 32 secret bytes that are wiped from memory when dropped.

use std::fmt;

use tilefs_base::error::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A key for AES-256-GCM, the only encryption TileDB has.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    /// Length of a key in bytes.
    pub const BYTES: usize = 32;

    /// Parses the content of a key file: 32 raw bytes, or 64 hexadecimal digits. One line break may follow.
    ///
    /// # Errors
    /// [`Error::Key`] for anything else. The message does not quote the content.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if let Ok(key) = bytes.try_into() {
            return Ok(Key(key));
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(key) = line.try_into() {
            return Ok(Key(key));
        }
        let wrong = || Error::key("the key must be 32 bytes, or 64 hexadecimal digits");
        if line.len() != 2 * Key::BYTES {
            return Err(wrong());
        }
        let mut key = Zeroizing::new([0; Key::BYTES]);
        for (byte, digits) in key.iter_mut().zip(line.chunks_exact(2)) {
            let (Some(high), Some(low)) = (hex_digit(digits[0]), hex_digit(digits[1])) else { return Err(wrong()) };
            *byte = high << 4 | low;
        }
        Ok(Key(*key))
    }

    pub(super) fn bytes(&self) -> &[u8; Key::BYTES] {
        &self.0
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: &[u8; 32] = b"0123456789abcdeF0123456789abcde\n";

    #[test]
    fn raw_and_hexadecimal_keys_are_the_same() {
        let hex: String = RAW.iter().map(|byte| format!("{byte:02x}")).collect();
        let raw = Key::parse(RAW).unwrap();
        assert_eq!(raw.bytes(), RAW);
        for text in [hex.clone(), hex.to_uppercase(), format!("{hex}\n"), format!("{hex}\r\n")] {
            assert_eq!(Key::parse(text.as_bytes()).unwrap(), raw);
        }
        let with_line_break = [RAW.as_slice(), b"\n"].concat();
        assert_eq!(Key::parse(&with_line_break).unwrap(), raw);
    }

    #[test]
    fn malformed_keys_are_refused_and_not_quoted() {
        for bad in ["", "secret", &"g".repeat(64), &"a".repeat(63), &"a".repeat(66)] {
            let error = Key::parse(bad.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::Key { .. }));
            assert!(!error.to_string().contains("secret"));
        }
        assert_eq!(format!("{:?}", Key::parse(RAW).unwrap()), "Key(..)");
    }
}
