//! One value as text of a width that depends on its type alone, so that offsets are arithmetic.
//!
//! Every text reads back to the same value. Numbers, dates and labels are padded with spaces on the left.

use super::time;
use crate::export::column::{Field, Fit, Labels, Misfit};
use crate::export::number;
use crate::format::datatype::{Datatype, Kind};

/// What a text is part of, which decides the characters that it may not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Lines of values: a text may have no line break.
    Lines,
    /// Tab-separated: nor tabs, nor zero bytes.
    Tsv,
    /// Comma-separated, texts in quotes: nor quotes, nor zero bytes.
    Csv,
}

impl Style {
    /// Replaces what cannot stand in a text of this style, byte for byte.
    pub fn clean(self, text: &mut [u8]) {
        let each = |change: fn(u8) -> u8, text: &mut [u8]| text.iter_mut().for_each(|byte| *byte = change(*byte));
        match self {
            Style::Lines => each(|b| if b == b'\n' || b == b'\r' { b' ' } else { b }, text),
            Style::Tsv => each(|b| if b == b'\n' || b == b'\r' || b == b'\t' || b == 0 { b' ' } else { b }, text),
            Style::Csv => each(
                |b| match b {
                    b'\n' | b'\r' | 0 => b' ',
                    b'"' => b'\'',
                    _ => b,
                },
                text,
            ),
        }
    }

    /// A label or column name: quoted where CSV needs that, with quotes doubled.
    pub fn word(self, word: &str) -> Vec<u8> {
        let mut bytes = word.as_bytes().to_vec();
        if self == Style::Csv && word.contains([',', '"', '\n', '\r']) {
            bytes = format!("\"{}\"", word.replace('"', "\"\"")).into_bytes();
            bytes.iter_mut().filter(|b| matches!(b, b'\n' | b'\r' | 0)).for_each(|b| *b = b' ');
        } else if self != Style::Csv {
            self.clean(&mut bytes);
        }
        bytes
    }
}

/// How the stored bytes of one value become text.
#[derive(Debug, Clone)]
enum Kinds {
    Signed,
    Unsigned,
    Float32,
    Float64,
    /// A date or time: its datatype.
    Time(Datatype),
    /// A code: the text of each label, and whether codes are signed.
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
    style: Style,
    datatype: Datatype,
    width: usize,
}

impl Printer {
    /// The printer of a field's values. `labels` instead of codes, where the field has any.
    ///
    /// UTF-16 and UTF-32 text has no printer: its length as UTF-8 is not known without reading it.
    pub fn new(field: &Field, style: Style, labels: bool) -> Fit<Self> {
        let datatype = field.datatype;
        let label_texts = field.labels.as_ref().filter(|_| labels).map(|labels| texts(labels, style));
        let (kind, width) = match (datatype.kind(), datatype.size()) {
            _ if label_texts.is_some() => {
                let texts = label_texts.unwrap_or_default();
                // Room for "NA", which a code without label is.
                let longest = texts.iter().map(Vec::len).max().unwrap_or(0).max(2);
                (Kinds::Label(texts), longest)
            }
            _ if datatype.time_unit().is_some() => (Kinds::Time(datatype), time::width(datatype)),
            (Kind::Signed, size) => (Kinds::Signed, [4, 6, 11, 20][size.ilog2() as usize]),
            (Kind::Unsigned, size) => (Kinds::Unsigned, [3, 5, 10, 20][size.ilog2() as usize]),
            (Kind::Float, 4) => (Kinds::Float32, 16),
            (Kind::Float, _) => (Kinds::Float64, 24),
            (Kind::Bytes, 1) if datatype.is_string() || datatype == Datatype::GeomWkt => (Kinds::Text, 1),
            (Kind::Bytes, 1) => (Kinds::Hex, 2),
            (Kind::Bytes, _) => {
                return Err(Misfit::new("UTF-16 and UTF-32 text has no UTF-8 form of a length known without reading"));
            }
        };
        Ok(Printer { kind, style, datatype, width })
    }

    /// Characters of one value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether one value is a byte of a longer text, which has no spaces between values.
    pub fn is_run(&self) -> bool {
        matches!(self.kind, Kinds::Text | Kinds::Hex)
    }

    /// Whether a cell is text of the user's, which CSV has to put in quotes.
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kinds::Text)
    }

    /// Writes one value, little-endian, into `out` of exactly [`Self::width`] characters.
    pub fn print(&self, value: &[u8], out: &mut [u8]) {
        match &self.kind {
            Kinds::Signed => right(out, itoa::Buffer::new().format(signed(value)).as_bytes()),
            Kinds::Unsigned => right(out, itoa::Buffer::new().format(unsigned(value)).as_bytes()),
            Kinds::Float32 => float(out, f32::from_bits(unsigned(value) as u32)),
            Kinds::Float64 => float(out, f64::from_bits(unsigned(value))),
            Kinds::Time(datatype) => time::print(*datatype, unsigned(value) as i64, |text| right(out, text)),
            Kinds::Label(texts) => {
                let code = number::integer(self.datatype, value).and_then(|code| usize::try_from(code).ok());
                right(out, code.and_then(|code| texts.get(code)).map_or(b"NA", Vec::as_slice));
            }
            Kinds::Text => self.print_run(value, out),
            Kinds::Hex => self.print_run(value, out),
        }
    }

    /// Writes many bytes of text or a blob; `out` has [`Self::width`] characters for each.
    pub fn print_run(&self, values: &[u8], out: &mut [u8]) {
        if let Kinds::Hex = self.kind {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            for (value, out) in values.iter().zip(out.as_chunks_mut().0) {
                *out = [DIGITS[usize::from(value >> 4)], DIGITS[usize::from(value & 15)]];
            }
        } else {
            let length = values.len().min(out.len());
            out[..length].copy_from_slice(&values[..length]);
            self.style.clean(&mut out[..length]);
        }
    }

    /// Writes a null: `NA`, for floats `NaN`, which all readers of numbers know; blanks for text.
    pub fn print_null(&self, out: &mut [u8]) {
        match self.kind {
            Kinds::Text | Kinds::Hex => out.fill(b' '),
            Kinds::Float32 | Kinds::Float64 => right(out, b"NaN"),
            _ => right(out, b"NA"),
        }
    }
}

/// The text of each label, in a style.
pub fn texts(labels: &Labels, style: Style) -> Vec<Vec<u8>> {
    labels.texts().iter().map(|text| style.word(text)).collect()
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

/// The shortest decimal that reads back to the same value; `NaN`, `Inf` and `-Inf` as R and Fortran spell them.
fn float<F: zmij::Float + PartialOrd + Default + PartialEq + Copy>(out: &mut [u8], value: F) {
    let mut buffer = zmij::Buffer::new();
    right(
        out,
        match buffer.format(value) {
            "inf" => b"Inf",
            "-inf" => b"-Inf",
            text => text.as_bytes(),
        },
    );
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
    use std::sync::Arc;

    fn print(field: &Field, value: &[u8]) -> String {
        let printer = Printer::new(field, Style::Tsv, true).unwrap();
        let mut out = vec![b'#'; printer.width()];
        printer.print(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_longest_numbers_fit_exactly() {
        let width = |datatype| Printer::new(&Field::new("a", datatype), Style::Tsv, true).unwrap().width();
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
        assert_eq!(text(f32::INFINITY), "Inf");
        assert_eq!(text(f32::NEG_INFINITY), "-Inf");
        assert_eq!(text(-0.0), "-0.0");
    }

    #[test]
    fn codes_are_shown_as_labels() {
        let labels = |datatype, values: Vec<Vec<u8>>| {
            let labels = Labels { name: "l".into(), datatype, ordered: false, values };
            Field::new("a", Datatype::Int8).with_labels(Arc::new(labels))
        };
        let field = labels(Datatype::StringUtf8, vec![b"T\tcell".to_vec(), "ß".into()]);
        assert_eq!(print(&field, &[0]), "T cell");
        assert_eq!(print(&field, &[1]), "    ß");
        assert_eq!(print(&field, &[2]), "    NA");
        assert_eq!(print(&field, &[255]), "    NA");
        let field = labels(Datatype::Int16, vec![vec![1, 1], vec![255, 255]]);
        assert_eq!(print(&field, &[0]), "257");
        let field = labels(Datatype::StringUtf16, vec![vec![b'a', 0, b'b', 0, b'c', 0]]);
        assert_eq!(print(&field, &[0]), "abc");
    }

    #[test]
    fn csv_quotes_words_that_need_it() {
        assert_eq!(Style::Csv.word("a b"), b"a b");
        assert_eq!(Style::Csv.word("a,b \"c\"\n"), b"\"a,b \"\"c\"\" \"");
        assert_eq!(Style::Tsv.word("a\t\"b\"\n"), b"a \"b\" ");
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
            if let Ok(printer) = Printer::new(&field, Style::Tsv, true) {
                let mut out = vec![b'#'; printer.width()];
                // `right` asserts that the text fits.
                printer.print(&bits.to_le_bytes()[..datatype.size()], &mut out);
                if let Some(integer) = number::integer(datatype, &bits.to_le_bytes()[..datatype.size()])
                    && datatype.time_unit().is_none() {
                    prop_assert_eq!(String::from_utf8(out).unwrap().trim().parse::<i128>(), Ok(integer));
                }
            }
        }
    }
}
