//! Thrift's compact protocol, as far as Parquet's metadata use it: structs of integers, booleans, bytes, structs and
//! lists. Source: the specification `thrift-compact-protocol.md` of Apache Thrift. Since version 59, the crate
//! `parquet` no longer exports its implementation or the headers of pages, whose lengths are needed before any page is
//! made.

/// The type of a field or a list element, by its number in the protocol.
#[derive(Debug, Clone, Copy)]
enum ThriftType {
    True = 1,
    False = 2,
    I16 = 4,
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// Writes a struct. Fields must be written in ascending order of their numbers.
pub struct StructFields<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

/// Returns the bytes of a struct.
pub fn structure(fill: impl FnOnce(&mut StructFields<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, fill);
    out
}

/// Appends the bytes of a struct.
fn append(out: &mut Vec<u8>, fill: impl FnOnce(&mut StructFields<'_>)) {
    let mut fields = StructFields { out, last: 0 };
    fill(&mut fields);
    fields.out.push(0);
}

/// Appends a number, seven bits per byte, lowest first.
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Maps small negative numbers to small positive ones, so that they are short too.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

impl StructFields<'_> {
    fn head(&mut self, number: i16, kind: ThriftType) {
        debug_assert!(number > self.last);
        match number - self.last {
            step @ 1..=15 => self.out.push((step as u8) << 4 | kind as u8),
            _ => {
                self.out.push(kind as u8);
                varint(self.out, zigzag(number.into()));
            }
        }
        self.last = number;
    }

    pub fn bool(&mut self, number: i16, value: bool) {
        self.head(number, if value { ThriftType::True } else { ThriftType::False });
    }

    /// Writes a byte as a field, which is not a variable-length number.
    pub fn i8(&mut self, number: i16, value: i8) {
        const BYTE: u8 = 3;
        debug_assert!(number - self.last <= 15);
        self.out.push(((number - self.last) as u8) << 4 | BYTE);
        self.out.push(value as u8);
        self.last = number;
    }

    pub fn i16(&mut self, number: i16, value: i16) {
        self.head(number, ThriftType::I16);
        varint(self.out, zigzag(value.into()));
    }

    pub fn i32(&mut self, number: i16, value: i32) {
        self.head(number, ThriftType::I32);
        varint(self.out, zigzag(value.into()));
    }

    pub fn i64(&mut self, number: i16, value: i64) {
        self.head(number, ThriftType::I64);
        varint(self.out, zigzag(value));
    }

    pub fn bytes(&mut self, number: i16, value: &[u8]) {
        self.head(number, ThriftType::Binary);
        length_and_bytes(self.out, value);
    }

    pub fn structure(&mut self, number: i16, fill: impl FnOnce(&mut StructFields<'_>)) {
        self.head(number, ThriftType::Struct);
        append(self.out, fill);
    }

    pub fn i32s(&mut self, number: i16, values: &[i32]) {
        self.list(number, ThriftType::I32, values.len());
        values.iter().for_each(|&value| varint(self.out, zigzag(value.into())));
    }

    pub fn texts(&mut self, number: i16, values: &[&str]) {
        self.list(number, ThriftType::Binary, values.len());
        values.iter().for_each(|value| length_and_bytes(self.out, value.as_bytes()));
    }

    /// Writes a list of structs made by [`structure`].
    pub fn structures(&mut self, number: i16, values: impl ExactSizeIterator<Item = impl AsRef<[u8]>>) {
        self.list(number, ThriftType::Struct, values.len());
        values.for_each(|value| self.out.extend_from_slice(value.as_ref()));
    }

    fn list(&mut self, number: i16, kind: ThriftType, length: usize) {
        self.head(number, ThriftType::List);
        match length {
            0..=14 => self.out.push((length as u8) << 4 | kind as u8),
            _ => {
                self.out.push(0xf0 | kind as u8);
                varint(self.out, length as u64);
            }
        }
    }
}

fn length_and_bytes(out: &mut Vec<u8>, value: &[u8]) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the specification, worked out by hand.
    #[test]
    fn fields_follow_the_protocol() {
        let bytes = structure(|fields| {
            fields.i32(1, -1);
            fields.bool(2, true);
            fields.bool(4, false);
            fields.i64(20, 150);
            fields.bytes(21, b"ab");
            fields.structure(22, |inner| inner.i16(1, 1));
            fields.i32s(23, &[1, -2]);
            fields.texts(24, &["x"; 15]);
            fields.i8(25, -3);
        });
        let mut expected = vec![0x15, 1, 0x11, 0x22, 0x06, 40, 0xac, 0x02, 0x18, 2, b'a', b'b'];
        expected.extend([0x1c, 0x14, 2, 0, 0x19, 0x25, 2, 3, 0x19, 0xf8, 15]);
        expected.extend([1, b'x'].repeat(15));
        expected.extend([0x13, 0xfd, 0]);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn numbers_take_a_byte_for_seven_bits() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out.len(), length, "{value}");
        }
        assert_eq!([0, -1, 1, i64::MIN].map(zigzag), [0, 1, 2, u64::MAX]);
    }
}
