//! Reads little-endian fields from untrusted bytes.

use tilefs_base::error::{Error, Locate, Result};

/// A position in a byte slice. Every read takes the name of its field, for error messages.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, position: 0 }
    }

    /// Returns the number of bytes before this position.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes after the current position.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Returns whether all bytes were read.
    pub fn is_at_end(&self) -> bool {
        self.remaining() == 0
    }

    /// Reads the next `length` bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`] if fewer are left.
    pub fn bytes(&mut self, length: usize, field: &str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.position..];
        match rest.get(..length) {
            Some(taken) => {
                self.position += length;
                Ok(taken)
            }
            None => Err(self.error(field, format!("{length} bytes wanted, {} left", rest.len()))),
        }
    }

    /// Reads like [`Cursor::bytes`], with a length that was stored as 64 bits.
    pub fn bytes_u64(&mut self, length: u64, field: &str) -> Result<&'a [u8]> {
        match usize::try_from(length) {
            Ok(length) => self.bytes(length, field),
            Err(_) => Err(self.error(field, format!("{length} bytes wanted, {} left", self.remaining()))),
        }
    }

    fn array<const N: usize>(&mut self, field: &str) -> Result<[u8; N]> {
        let taken = self.bytes(N, field)?;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        Ok(array)
    }

    /// Reads one byte. `field` names it in errors, as in all methods.
    pub fn u8(&mut self, field: &str) -> Result<u8> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Reads a little-endian number.
    pub fn u16(&mut self, field: &str) -> Result<u16> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads a little-endian number.
    pub fn u32(&mut self, field: &str) -> Result<u32> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads a little-endian number.
    pub fn i32(&mut self, field: &str) -> Result<i32> {
        self.array(field).map(i32::from_le_bytes)
    }

    /// Reads a little-endian number.
    pub fn u64(&mut self, field: &str) -> Result<u64> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a little-endian IEEE 754 number.
    pub fn f32(&mut self, field: &str) -> Result<f32> {
        self.array(field).map(f32::from_le_bytes)
    }

    /// Reads a little-endian IEEE 754 number.
    pub fn f64(&mut self, field: &str) -> Result<f64> {
        self.array(field).map(f64::from_le_bytes)
    }

    /// Reads a `u32` length and that many bytes.
    pub fn str32(&mut self, field: &str) -> Result<&'a [u8]> {
        let length = self.u32(field)?;
        self.bytes_u64(u64::from(length), field)
    }

    /// Reads a `u64` length and that many bytes.
    pub fn str64(&mut self, field: &str) -> Result<&'a [u8]> {
        let length = self.u64(field)?;
        self.bytes_u64(length, field)
    }

    /// Reads a `u32` length and that many bytes of text. The format allows any bytes in names; this library requires
    /// UTF-8.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes end early, [`Error::Unsupported`] if they are not UTF-8.
    pub fn text32(&mut self, field: &str) -> Result<&'a str> {
        let bytes = self.str32(field)?;
        self.text(bytes, field)
    }

    /// Reads like [`Cursor::text32`], with a `u64` length.
    pub fn text64(&mut self, field: &str) -> Result<&'a str> {
        let bytes = self.str64(field)?;
        self.text(bytes, field)
    }

    fn text(&self, bytes: &'a [u8], field: &str) -> Result<&'a str> {
        // The bytes are not quoted: a link may have led to a file that the reader of the message may not see.
        let wrong = |_| Error::unsupported("text that is not UTF-8").in_field(field).at(self.position as u64);
        std::str::from_utf8(bytes).map_err(wrong)
    }

    /// Checks that no bytes are left. `what` is the field that an error names.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there are more bytes.
    pub fn expect_end(&self, what: &str) -> Result<()> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(self.error(what, format!("{} bytes too many", self.remaining())))
    }

    /// Checks a stored count of items that each take at least `min_bytes` of the remaining bytes. A loop or an
    /// allocation by the result is bounded by the size of the file.
    ///
    /// # Errors
    /// [`Error::Damaged`] if that many items do not fit.
    pub fn checked_count(&self, count: u64, min_bytes: usize, field: &str) -> Result<usize> {
        let max = self.remaining() / min_bytes.max(1);
        match usize::try_from(count) {
            Ok(count) if count <= max => Ok(count),
            _ => Err(self.error(field, format!("{count} entries claimed, {max} at most fit in what is left"))),
        }
    }

    /// Returns [`Error::Damaged`] at this position.
    pub fn error(&self, field: &str, reason: impl Into<String>) -> Error {
        Error::damaged(reason).in_field(field).at(self.position as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut cursor = Cursor::new(&[1, 2, 0, 3, 0, 0, 0, b'a', b'b', b'c']);
        assert_eq!(cursor.u8("a").unwrap(), 1);
        assert_eq!(cursor.u16("b").unwrap(), 2);
        assert_eq!(cursor.str32("c").unwrap(), b"abc");
        assert!(cursor.is_at_end());
        let error = cursor.u32("late").unwrap_err();
        assert_eq!(error.place().unwrap().field.as_deref(), Some("late"));
        assert_eq!(error.place().unwrap().offset, Some(10));
    }

    #[test]
    fn text_is_utf8() {
        assert_eq!(Cursor::new(&[2, 0, 0, 0, 0xc3, 0xa9]).text32("name").unwrap(), "\u{e9}");
        assert_eq!(Cursor::new(&[1, 0, 0, 0, 0, 0, 0, 0, b'x']).text64("name").unwrap(), "x");
        let error = Cursor::new(&[1, 0, 0, 0, 0xe9]).text32("name").unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
        assert!(!error.to_string().contains("xe9"), "{error}");
        assert!(Cursor::new(&[1, 0]).expect_end("it").is_err());
        assert!(Cursor::new(&[]).expect_end("it").is_ok());
    }

    #[test]
    fn counts_are_bounded_by_the_remaining_bytes() {
        let cursor = Cursor::new(&[0; 64]);
        assert_eq!(cursor.checked_count(8, 8, "n").unwrap(), 8);
        assert!(cursor.checked_count(9, 8, "n").is_err());
        assert!(cursor.checked_count(u64::MAX, 1, "n").is_err());
    }
}
