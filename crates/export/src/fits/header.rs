//! The header of a FITS image: cards of 80 characters, each with a keyword and its value.
//!
//! Names that are no keywords follow the convention `HIERARCH`, and texts that one card cannot hold continue in others.

use std::collections::HashSet;

use tilefs_format::datatype::Datatype;
use tilefs_format::text;

use crate::column::{Column, FormatResult, Metadatum, Unrepresentable};
use crate::fits::numbers::StoredNumbers;
use crate::fits::value::{KeywordValue, LONGEST_TEXT, float_of, unit_of};
use crate::fits::world;
use crate::number;
use crate::raster::axis::ImageAxis;

/// Number of characters of a card.
const CARD: usize = 80;

/// Headers and values are padded to a multiple of this many bytes.
pub(super) const BLOCK: u64 = 2880;

/// Maximum number of characters of a keyword of the standard.
const KEYWORD: usize = 8;

/// The convention for other names.
const HIERARCH: &str = "HIERARCH";

/// Maximum number of characters of a name under the convention: a number fits beside it.
const LONG_NAME: usize = 40;

/// The keyword of the unit of the values.
const UNIT: &str = "BUNIT";

/// Keywords that describe the file itself, or all values, so that metadata with their names do not apply. With an
/// asterisk, all that begin so.
const STRUCTURE: [&str; 27] = [
    "SIMPLE", "XTENSION", "BITPIX", "NAXIS*", "PCOUNT", "GCOUNT", "GROUPS", "EXTEND", "BLOCKED", "END", "BSCALE",
    "BZERO", "BLANK", "CHECKSUM", "DATASUM", "CONTINUE", HIERARCH, "TFIELDS", "TTYPE*", "TFORM*", "THEAP", "DATAMIN",
    "DATAMAX", UNIT, "ZIMAGE", "INHERIT", "LONGSTRN",
];

/// Notes of fields that keywords of their own hold.
const HELD: [&str; 4] = ["units", "scale_factor", "add_offset", "_FillValue"];

/// Returns the header of an image.
pub(super) fn header(
    column: &Column,
    numbers: StoredNumbers,
    axes: &[ImageAxis],
    metadata: &[Metadatum],
) -> FormatResult<Vec<u8>> {
    let field = &column.field;
    let mut cards = Cards::default();
    cards.add("SIMPLE", &KeywordValue::Flag(true), "standard FITS");
    cards.add("BITPIX", &KeywordValue::integer(numbers.bits), "bits of a value");
    let per_cell = field.values_per_cell.filter(|&values| values != 1).map(u64::from);
    let lengths: Vec<u64> = per_cell.into_iter().chain(column.shape.iter().rev().copied()).collect();
    if lengths.iter().any(|&length| length > i64::MAX as u64) {
        return Err(Unrepresentable::long_axis());
    }
    cards.add("NAXIS", &KeywordValue::integer(lengths.len() as u64), "number of axes");
    for (length, number) in lengths.iter().zip(1..) {
        cards.add(&format!("NAXIS{number}"), &KeywordValue::integer(*length), "");
    }
    cards.add_numbers(column, numbers, metadata);
    let is_known = KeywordValue::text(&field.name).is_some_and(|name| cards.add("EXTNAME", &name, ""));
    if !is_known {
        cards.add_comment("COMMENT", "The name of the values is not ASCII");
    }
    let first = if per_cell.is_some() { 2 } else { 1 };
    let stored = world::keywords(axes, first, metadata);
    for (keyword, value, comment) in &stored.of_axes {
        cards.add(keyword, value, comment);
    }
    let rest = metadata.iter().filter(|datum| !stored.is_about_axes(&datum.key));
    for datum in field.notes.iter().filter(|note| !HELD.contains(&note.key.as_str())).chain(rest) {
        cards.add_metadatum(datum);
    }
    Ok(cards.finish())
}

/// The cards of a header under construction.
#[derive(Default)]
struct Cards {
    text: Vec<u8>,
    /// Keywords that have a value.
    known: HashSet<String>,
}

impl Cards {
    /// Adds the keywords that say what the stored numbers mean.
    fn add_numbers(&mut self, column: &Column, numbers: StoredNumbers, metadata: &[Metadatum]) {
        let field = &column.field;
        let note = |key: &str| field.notes.iter().find(|note| note.key == key);
        let [scale, offset] = [("scale_factor", 1.0), ("add_offset", 0.0)]
            .map(|(key, default)| note(key).and_then(float_of).filter(|value| value.is_finite()).unwrap_or(default));
        if scale != 1.0 || offset != 0.0 {
            let zero = numbers.zero as f64 * scale + offset;
            for (keyword, value) in [("BSCALE", scale), ("BZERO", zero)] {
                if let Some(value) = KeywordValue::float(value) {
                    self.add(keyword, &value, "value = stored * BSCALE + BZERO");
                }
            }
        } else if numbers.zero != 0 {
            self.add("BSCALE", &KeywordValue::integer(1), "");
            self.add("BZERO", &KeywordValue::integer(numbers.zero), "the value of a stored 0");
        }
        if !numbers.is_float() {
            if let Some(blank) = numbers.blank(column) {
                self.add("BLANK", &KeywordValue::integer(blank), "stored where a value is missing");
            }
        } else if let Some(marked) = field.no_data.as_deref().and_then(|value| number::text(field.datatype, value))
            && let Some(value) = marked.parse().ok().and_then(KeywordValue::float)
        {
            self.add("NODATA", &value, "stays where a value is missing");
        }
        let since = if field.datatype.is_datetime() { "since 1970-01-01" } else { "" };
        if let Some(unit) = unit(&field.notes, field.datatype, metadata) {
            self.add(UNIT, &unit, since);
        }
    }

    /// Adds an entry of the metadata, if FITS can hold it.
    fn add_metadatum(&mut self, datum: &Metadatum) {
        let keyword = keyword_of(&datum.key);
        if keyword == "COMMENT" || keyword == "HISTORY" {
            let text = text::decode(datum.datatype, &datum.value).unwrap_or_default();
            return text.lines().for_each(|line| self.add_comment(&keyword, line));
        }
        if let Some(value) = KeywordValue::of(datum).filter(|_| !is_structure(&keyword)) {
            self.add(&keyword, &value, "");
        }
    }

    /// Adds a keyword, unless there is one of its name already or its name is too long. A comment is omitted if there is
    /// no space for it. Returns whether the keyword was added.
    fn add(&mut self, keyword: &str, value: &KeywordValue, comment: &str) -> bool {
        let Some(name) = name_of(keyword) else { return false };
        if !self.known.insert(name.clone()) {
            return false;
        }
        self.add_card(&name, value, comment);
        true
    }

    fn add_card(&mut self, name: &str, value: &KeywordValue, comment: &str) {
        let is_long = name.len() > KEYWORD;
        let start = if is_long { format!("{name} = ") } else { format!("{name:<KEYWORD$}= ") };
        let (whole, text) = match value {
            // The standard wants values of its own keywords to end at column 30.
            KeywordValue::Number(number) if is_long => (number.clone(), None),
            KeywordValue::Number(number) => (format!("{number:>20}"), None),
            KeywordValue::Flag(flag) => (format!("{:>20}", if *flag { "T" } else { "F" }), None),
            KeywordValue::Text(text) => (format!("'{:<8}'", text.replace('\'', "''")), Some(text)),
        };
        let mut card = format!("{start}{whole}");
        if let Some(text) = text.filter(|_| card.len() > CARD) {
            return self.add_long(&start, text);
        }
        if !comment.is_empty() && card.len() + 3 + comment.len() <= CARD {
            card += &format!(" / {comment}");
        }
        self.push(&card);
    }

    /// Adds a text that needs several cards.
    fn add_long(&mut self, start: &str, text: &str) {
        let mut start = start.to_owned();
        let mut part = String::new();
        for character in text.chars() {
            let next = if character == '\'' { "''".to_owned() } else { character.to_string() };
            // Two quotes and the ampersand.
            if start.len() + part.len() + next.len() + 3 > CARD {
                self.push(&format!("{start}'{part}&'"));
                "CONTINUE  ".clone_into(&mut start);
                part.clear();
            }
            part += &next;
        }
        self.push(&format!("{start}'{part}'"));
    }

    /// Adds a line of a comment, which any number of cards hold.
    fn add_comment(&mut self, keyword: &str, line: &str) {
        let printable: Vec<u8> =
            line.chars().map(|c| if (' '..='~').contains(&c) { c as u8 } else { b'?' }).take(LONGEST_TEXT).collect();
        for part in printable.chunks(CARD - KEYWORD) {
            self.push(&format!("{keyword:<KEYWORD$}{}", String::from_utf8_lossy(part)));
        }
    }

    /// Adds a card of up to 80 characters.
    fn push(&mut self, card: &str) {
        self.text.extend(format!("{card:<CARD$}").bytes().take(CARD));
    }

    fn finish(mut self) -> Vec<u8> {
        self.push("END");
        let length = self.text.len().next_multiple_of(BLOCK as usize);
        self.text.resize(length, b' ');
        self.text
    }
}

/// Returns the unit of the values: the one noted of the attribute, that of its type, or what the metadata of the array
/// keep of a FITS header.
fn unit(notes: &[Metadatum], datatype: Datatype, metadata: &[Metadatum]) -> Option<KeywordValue> {
    let text = |datum: &Metadatum| KeywordValue::of(datum).filter(|unit| matches!(unit, KeywordValue::Text(_)));
    let noted = |key: &str| notes.iter().find(|note| note.key == key).and_then(text);
    let of_type = || Some(KeywordValue::Text(unit_of(datatype)?.to_owned()));
    let kept = || metadata.iter().filter(|datum| keyword_of(&datum.key) == UNIT).find_map(text);
    noted("units").or_else(of_type).or_else(kept)
}

/// Returns the keyword of an entry of the metadata: its key in capitals, with single blanks between words. The convention
/// `HIERARCH` belongs to cards; a key may have kept it.
fn keyword_of(key: &str) -> String {
    let capitals = key.to_uppercase();
    let mut words: Vec<&str> = capitals.split_whitespace().collect();
    if words.len() > 1 && words.first() == Some(&HIERARCH) {
        words.remove(0);
    }
    words.join(" ")
}

/// Returns whether a keyword describes the file or all values.
fn is_structure(keyword: &str) -> bool {
    STRUCTURE.iter().any(|own| match own.strip_suffix('*') {
        Some(start) => keyword.starts_with(start),
        None => *own == keyword,
    })
}

/// Returns a name as a card has it: a keyword of the standard if it can be one; `None` if it is too long. Only names under
/// the convention have blanks.
fn name_of(name: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == ' ' { c.to_ascii_uppercase() } else { '_' };
    let plain: String = name.chars().map(plain).collect();
    match plain.len() {
        0 => None,
        1..=KEYWORD if !plain.contains(' ') => Some(plain),
        1..=LONG_NAME => Some(format!("{HIERARCH} {plain}")),
        _ => None,
    }
}
