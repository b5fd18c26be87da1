//! One value as text: as short as possible, or padded on the left to a width that depends only on its type, so that
//! offsets are computed.
//!
//! Every text parses back to the same value.

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::time_text;

use crate::column::{Field, FormatResult, Unrepresentable};
use crate::number;
use crate::text::json::WideIntegers;

/// The conversion of the stored bytes of one value to text.
#[derive(Debug, Clone, Hash)]
enum PrinterKind {
    Signed,
    Unsigned,
    Float32,
    Float64,
    /// `true` or `false`, in tables.
    Boolean,
    /// A date or time.
    Time,
    /// A code: the labels, in the order of the codes.
    Label(Vec<Vec<u8>>),
    /// A byte of text, unchanged.
    Text,
    /// A byte as two hexadecimal digits.
    Hex,
}

/// Writes the values of one field.
#[derive(Debug, Clone, Hash)]
pub struct Printer {
    kind: PrinterKind,
    datatype: Datatype,
    width: usize,
}

impl Printer {
    /// Creates the printer of a field's values. `labels` are shown instead of codes, in the order of the codes.
    ///
    /// UTF-16 and UTF-32 text has no printer: its length as UTF-8 is not known without reading it.
    pub fn new(field: &Field, labels: Option<Vec<Vec<u8>>>) -> FormatResult<Self> {
        let datatype = field.datatype;
        let (kind, width) = match (datatype.kind(), datatype.size(), labels) {
            (_, _, Some(labels)) => {
                // Reserve space for "NA", which is shown for a code without a label.
                let longest = labels.iter().map(Vec::len).max().unwrap_or(0).max(NO_VALUE.len());
                (PrinterKind::Label(labels), longest)
            }
            _ if datatype.time_unit().is_some() => (PrinterKind::Time, time_text::width(datatype)),
            (Kind::Signed, size, _) => (PrinterKind::Signed, [4, 6, 11, 20][size.ilog2() as usize]),
            (Kind::Unsigned, size, _) => (PrinterKind::Unsigned, [3, 5, 10, 20][size.ilog2() as usize]),
            (Kind::Float, 4, _) => (PrinterKind::Float32, 16),
            (Kind::Float, ..) => (PrinterKind::Float64, 24),
            (Kind::Bytes, 1, _) if datatype.is_string() || datatype == Datatype::GeomWkt => (PrinterKind::Text, 1),
            (Kind::Bytes, 1, _) => (PrinterKind::Hex, 2),
            (Kind::Bytes, ..) => {
                return Err(Unrepresentable::wide_text());
            }
        };
        Ok(Printer { kind, datatype, width })
    }

    /// Adapts the printer to a table, in which booleans are `true` and `false`: readers that guess types take 0 and 1
    /// for integers. In a grid they stay numbers, because readers of grids know only numbers.
    pub fn in_table(mut self) -> Self {
        if self.datatype == Datatype::Bool && matches!(self.kind, PrinterKind::Unsigned) {
            (self.kind, self.width) = (PrinterKind::Boolean, "false".len());
        }
        self
    }

    /// Returns whether a NUL at the end of a value is not part of the text: it ends a `CHAR`, as in C. TileDB-VCF's
    /// `alleles` end with one.
    pub fn is_terminated(&self) -> bool {
        self.is_text() && self.datatype == Datatype::Char
    }

    /// Returns the length of the longest value in characters.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns whether one value is a byte of a longer text, without spaces between values.
    pub fn is_run(&self) -> bool {
        self.is_text() || self.is_hex()
    }

    /// Returns whether one value is a byte of the user's text.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, PrinterKind::Text)
    }

    /// Returns whether one value is a byte shown as two hexadecimal digits.
    pub fn is_hex(&self) -> bool {
        matches!(self.kind, PrinterKind::Hex)
    }

    /// Writes one value, little-endian, to `out`, which has exactly [`Self::width`] characters. A code without a label
    /// is `NA`.
    pub fn print(&self, value: &[u8], out: &mut [u8]) {
        match &self.kind {
            PrinterKind::Text | PrinterKind::Hex => self.print_run(value, out),
            PrinterKind::Label(_) => right(out, self.label(value).unwrap_or(NO_VALUE)),
            _ => self.value(value, |text| right(out, text)),
        }
    }

    /// Returns whether a value is "not a time" or a code without a label.
    pub fn is_missing(&self, value: &[u8]) -> bool {
        match &self.kind {
            PrinterKind::Label(_) => self.label(value).is_none(),
            PrinterKind::Time => unsigned(value) as i64 == i64::MIN,
            _ => false,
        }
    }

    /// Appends one value, little-endian, in as few characters as possible: none for "not a time" and a code without a
    /// label.
    pub fn append(&self, value: &[u8], out: &mut Vec<u8>) {
        match &self.kind {
            PrinterKind::Hex => value.iter().for_each(|byte| out.extend(hex(*byte))),
            PrinterKind::Text => out.extend_from_slice(value),
            PrinterKind::Label(_) => out.extend_from_slice(self.label(value).unwrap_or_default()),
            PrinterKind::Time if self.is_missing(value) => {}
            _ => self.value(value, |text| out.extend_from_slice(text)),
        }
    }

    /// Calls `write` with the text of a number, date or time.
    fn value(&self, value: &[u8], write: impl FnOnce(&[u8])) {
        match self.kind {
            PrinterKind::Signed => write(itoa::Buffer::new().format(signed(value)).as_bytes()),
            PrinterKind::Float32 => {
                write(zmij::Buffer::new().format(f32::from_bits(unsigned(value) as u32)).as_bytes())
            }
            PrinterKind::Float64 => write(zmij::Buffer::new().format(f64::from_bits(unsigned(value))).as_bytes()),
            PrinterKind::Boolean => write(if value.iter().all(|byte| *byte == 0) { b"false" } else { b"true" }),
            PrinterKind::Time => time_text::print(self.datatype, unsigned(value) as i64, write),
            _ => write(itoa::Buffer::new().format(unsigned(value)).as_bytes()),
        }
    }

    /// Appends one value as JSON: a number, a string or `null`. The labels of the printer are JSON.
    pub fn append_json(&self, value: &[u8], integers: WideIntegers, out: &mut Vec<u8>) {
        let mut append_quoted = |text: &[u8]| {
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        };
        let float = match self.kind {
            PrinterKind::Float32 => f64::from(f32::from_bits(unsigned(value) as u32)),
            PrinterKind::Float64 => f64::from_bits(unsigned(value)),
            _ => 0.0,
        };
        match &self.kind {
            PrinterKind::Label(_) => out.extend_from_slice(self.label(value).unwrap_or(b"null")),
            PrinterKind::Time if self.is_missing(value) => out.extend_from_slice(b"null"),
            PrinterKind::Time => self.value(value, append_quoted),
            PrinterKind::Signed if value.len() == 8 && integers.is_string(signed(value).unsigned_abs()) => {
                self.value(value, append_quoted)
            }
            PrinterKind::Unsigned if value.len() == 8 && integers.is_string(unsigned(value)) => {
                self.value(value, append_quoted)
            }
            _ if float.is_nan() => append_quoted(b"NaN"),
            _ if float.is_infinite() => append_quoted(if float > 0.0 { b"Infinity" } else { b"-Infinity" }),
            _ => self.append(value, out),
        }
    }

    fn label(&self, code: &[u8]) -> Option<&[u8]> {
        let PrinterKind::Label(labels) = &self.kind else { return None };
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

    /// Writes a null: `NA`, or `NaN` for floats, which all readers of numbers know; blanks for text.
    pub fn print_null(&self, out: &mut [u8]) {
        match self.kind {
            PrinterKind::Text | PrinterKind::Hex => out.fill(b' '),
            PrinterKind::Float32 | PrinterKind::Float64 => right(out, b"NaN"),
            _ => right(out, NO_VALUE),
        }
    }
}

/// The text for a missing value in columns of fixed width.
const NO_VALUE: &[u8] = b"NA";

/// Replaces a line break in a text that shares a line with others.
pub fn without_line_break(byte: u8) -> u8 {
    if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }
}

fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Right-aligns a text. The widths above fit the longest text of each type.
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
