//! One value as text: as short as it can be, or padded on the left to a width that depends on its type alone, so
//! that offsets are arithmetic.
//!
//! Every text reads back to the same value.

use tilefs_format::datatype::{Datatype, Kind};

use super::time;
use crate::column::{Field, FormatResult, Unrepresentable};
use crate::number;

/// How the stored bytes of one value become text.
#[derive(Debug, Clone)]
enum Kinds {
    Signed,
    Unsigned,
    Float32,
    Float64,
    /// `true` or `false`, in tables.
    Boolean,
    /// A date or time.
    Time,
    /// A code: what is shown for each.
    Label(Vec<Vec<u8>>),
    /// A byte of text, as it is.
    Text,
    /// A byte as two hexadecimal digits.
    Hex,
}

/// Writes the values of one field.
#[derive(Debug, Clone)]
pub struct Printer {
    kind: Kinds,
    datatype: Datatype,
    width: usize,
}

impl Printer {
    /// The printer of a field's values. `labels` are what is shown instead of codes, in the order of these.
    ///
    /// UTF-16 and UTF-32 text has no printer: its length as UTF-8 is not known without reading it.
    pub fn new(field: &Field, labels: Option<Vec<Vec<u8>>>) -> FormatResult<Self> {
        let datatype = field.datatype;
        let (kind, width) = match (datatype.kind(), datatype.size(), labels) {
            (_, _, Some(labels)) => {
                // Room for "NA", which a code without label is.
                let longest = labels.iter().map(Vec::len).max().unwrap_or(0).max(NO_VALUE.len());
                (Kinds::Label(labels), longest)
            }
            _ if datatype.time_unit().is_some() => (Kinds::Time, time::width(datatype)),
            (Kind::Signed, size, _) => (Kinds::Signed, [4, 6, 11, 20][size.ilog2() as usize]),
            (Kind::Unsigned, size, _) => (Kinds::Unsigned, [3, 5, 10, 20][size.ilog2() as usize]),
            (Kind::Float, 4, _) => (Kinds::Float32, 16),
            (Kind::Float, ..) => (Kinds::Float64, 24),
            (Kind::Bytes, 1, _) if datatype.is_string() || datatype == Datatype::GeomWkt => (Kinds::Text, 1),
            (Kind::Bytes, 1, _) => (Kinds::Hex, 2),
            (Kind::Bytes, ..) => {
                return Err(Unrepresentable::new(
                    "UTF-16 and UTF-32 text has no UTF-8 form of a length known without reading",
                ));
            }
        };
        Ok(Printer { kind, datatype, width })
    }

    /// The same printer for a table, where booleans are `true` and `false`: readers that guess types take 0 and 1 for
    /// integers. In a grid they stay numbers, as readers of grids know nothing else.
    pub fn in_table(mut self) -> Self {
        if self.datatype == Datatype::Bool && matches!(self.kind, Kinds::Unsigned) {
            (self.kind, self.width) = (Kinds::Boolean, "false".len());
        }
        self
    }

    /// Whether a NUL at the end of a value is no part of the text: in a `CHAR`, as C writes it. TileDB-VCF's `alleles` end
    /// in one.
    pub fn is_terminated(&self) -> bool {
        self.is_text() && self.datatype == Datatype::Char
    }

    /// Characters of the longest value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether one value is a byte of a longer text, which has no spaces between values.
    pub fn is_run(&self) -> bool {
        self.is_text() || self.is_hex()
    }

    /// Whether one value is a byte of the user's text.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kinds::Text)
    }

    /// Whether one value is a byte in two hexadecimal digits.
    pub fn is_hex(&self) -> bool {
        matches!(self.kind, Kinds::Hex)
    }

    /// Writes one value, little-endian, into `out` of exactly [`Self::width`] characters. A code without label is `NA`.
    pub fn print(&self, value: &[u8], out: &mut [u8]) {
        match &self.kind {
            Kinds::Text | Kinds::Hex => self.print_run(value, out),
            Kinds::Label(_) => right(out, self.label(value).unwrap_or(NO_VALUE)),
            _ => self.value(value, |text| right(out, text)),
        }
    }

    /// Appends one value, little-endian, in as few characters as it has. What is no value, a time that is none and a
    /// code without label, has none.
    pub fn append(&self, value: &[u8], out: &mut Vec<u8>) {
        match &self.kind {
            Kinds::Hex => value.iter().for_each(|byte| out.extend(hex(*byte))),
            Kinds::Text => out.extend_from_slice(value),
            Kinds::Label(_) => out.extend_from_slice(self.label(value).unwrap_or_default()),
            Kinds::Time if unsigned(value) as i64 == i64::MIN => {}
            _ => self.value(value, |text| out.extend_from_slice(text)),
        }
    }

    /// Calls `write` with the text of a number, date or time.
    fn value(&self, value: &[u8], write: impl FnOnce(&[u8])) {
        match self.kind {
            Kinds::Signed => write(itoa::Buffer::new().format(signed(value)).as_bytes()),
            Kinds::Float32 => write(zmij::Buffer::new().format(f32::from_bits(unsigned(value) as u32)).as_bytes()),
            Kinds::Float64 => write(zmij::Buffer::new().format(f64::from_bits(unsigned(value))).as_bytes()),
            Kinds::Boolean => write(if value.iter().all(|byte| *byte == 0) { b"false" } else { b"true" }),
            Kinds::Time => time::print(self.datatype, unsigned(value) as i64, write),
            _ => write(itoa::Buffer::new().format(unsigned(value)).as_bytes()),
        }
    }

    fn label(&self, code: &[u8]) -> Option<&[u8]> {
        let Kinds::Label(labels) = &self.kind else { return None };
        let code = number::integer(self.datatype, code).and_then(|code| usize::try_from(code).ok());
        code.and_then(|code| labels.get(code)).map(Vec::as_slice)
    }

    /// Writes many bytes of text or a blob; `out` has [`Self::width`] characters for each. Line breaks become spaces.
    pub fn print_run(&self, values: &[u8], out: &mut [u8]) {
        if self.is_hex() {
            for (value, out) in values.iter().zip(out.as_chunks_mut().0) {
                *out = hex(*value);
            }
        } else {
            for (value, out) in values.iter().zip(out) {
                *out = without_line_break(*value);
            }
        }
    }

    /// Writes a null: `NA`, for floats `NaN`, which all readers of numbers know; blanks for text.
    pub fn print_null(&self, out: &mut [u8]) {
        match self.kind {
            Kinds::Text | Kinds::Hex => out.fill(b' '),
            Kinds::Float32 | Kinds::Float64 => right(out, b"NaN"),
            _ => right(out, NO_VALUE),
        }
    }
}

/// What stands in columns of fixed width where there is no value.
const NO_VALUE: &[u8] = b"NA";

/// A byte of text that stands on one line with others.
pub fn without_line_break(byte: u8) -> u8 {
    if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }
}

fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Right-aligned. The widths above leave room for the longest text of each type.
fn right(out: &mut [u8], text: &[u8]) {
    debug_assert!(text.len() <= out.len(), "{} characters in {}", text.len(), out.len());
    let start = out.len().saturating_sub(text.len());
    let (blank, rest) = out.split_at_mut(start);
    blank.fill(b' ');
    for (to, from) in rest.iter_mut().zip(text) {
        *to = *from;
    }
}

fn unsigned(value: &[u8]) -> u64 {
    match *value {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

fn signed(value: &[u8]) -> i64 {
    match *value {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => unsigned(value) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(field: &Field, value: &[u8]) -> String {
        let printer = Printer::new(field, None).unwrap();
        let mut out = vec![b'#'; printer.width()];
        printer.print(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_longest_numbers_fit_exactly() {
        let width = |datatype| Printer::new(&Field::new("a", datatype), None).unwrap().width();
        for (datatype, value, text) in [
            (Datatype::Int8, i64::from(i8::MIN), "-128"),
            (Datatype::Int16, i64::from(i16::MIN), "-32768"),
            (Datatype::Int32, i64::from(i32::MIN), "-2147483648"),
            (Datatype::Int64, i64::MIN, "-9223372036854775808"),
            (Datatype::UInt8, -1, "255"),
            (Datatype::UInt16, -1, "65535"),
            (Datatype::UInt32, -1, "4294967295"),
            (Datatype::UInt64, -1, "18446744073709551615"),
        ] {
            let bytes = &value.to_le_bytes()[..datatype.size()];
            assert_eq!(print(&Field::new("a", datatype), bytes), text);
            assert_eq!(width(datatype), text.len());
        }
        let field = Field::new("a", Datatype::Float64);
        assert_eq!(print(&field, &(-f64::MIN_POSITIVE).to_le_bytes()), "-2.2250738585072014e-308");
        // The longest of all 2^32 floats.
        let field = Field::new("a", Datatype::Float32);
        assert_eq!(print(&field, &(-0.0000010000001f32).to_le_bytes()), "-0.0000010000001");
    }

    #[test]
    fn special_floats_are_spelt_as_readers_expect() {
        let field = Field::new("a", Datatype::Float32);
        let text = |value: f32| print(&field, &value.to_le_bytes()).trim_start().to_owned();
        assert_eq!(text(f32::NAN), "NaN");
        assert_eq!(text(-f32::NAN), "NaN");
        assert_eq!(text(f32::INFINITY), "inf");
        assert_eq!(text(f32::NEG_INFINITY), "-inf");
        assert_eq!(text(-0.0), "-0.0");
    }

    #[test]
    fn codes_are_shown_as_labels() {
        let labels = vec![b"T cell".to_vec(), "ß".into()];
        let printer = Printer::new(&Field::new("a", Datatype::Int8), Some(labels)).unwrap();
        for (code, padded, plain) in
            [(0, "T cell", "T cell"), (1, "    ß", "ß"), (2, "    NA", ""), (255, "    NA", "")]
        {
            let mut out = vec![b'#'; printer.width()];
            printer.print(&[code], &mut out);
            assert_eq!(String::from_utf8_lossy(&out), padded);
            let mut out = Vec::new();
            printer.append(&[code], &mut out);
            assert_eq!(String::from_utf8_lossy(&out), plain);
        }
    }

    proptest! {
        #[test]
        fn floats_read_back(bits: u32, wide: u64) {
            let value = f32::from_bits(bits);
            let back: f32 = print(&Field::new("a", Datatype::Float32), &value.to_le_bytes()).trim().parse().unwrap();
            prop_assert!(back.to_bits() == bits || value.is_nan() && back.is_nan());
            let value = f64::from_bits(wide);
            let back: f64 = print(&Field::new("a", Datatype::Float64), &value.to_le_bytes()).trim().parse().unwrap();
            prop_assert!(back.to_bits() == wide || value.is_nan() && back.is_nan());
        }

        #[test]
        fn every_value_of_every_type_fits(number in 0u8..44, bits: u64) {
            let datatype = Datatype::from_number(number).unwrap();
            let field = Field::new("a", datatype);
            if let Ok(printer) = Printer::new(&field, None) {
                let mut out = vec![b'#'; printer.width()];
                // `right` asserts that the text fits.
                let value = &bits.to_le_bytes()[..datatype.size()];
                printer.print(value, &mut out);
                let mut appended = Vec::new();
                printer.append(value, &mut appended);
                // Only tables keep line breaks.
                let shown: Vec<u8> = appended.into_iter().map(without_line_break).collect();
                prop_assert!(shown.is_empty() || out.ends_with(&shown));
                if let Some(integer) = number::integer(datatype, &bits.to_le_bytes()[..datatype.size()])
                    && datatype.time_unit().is_none() {
                    prop_assert_eq!(String::from_utf8(out).unwrap().trim().parse::<i128>(), Ok(integer));
                }
            }
        }
    }
}
