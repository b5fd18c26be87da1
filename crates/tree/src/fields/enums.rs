//! `enums/NAME.txt`: the labels of an enumeration; line k + 1 is the label of code k.
//!
//! Text is UTF-8 as stored (UTF-16 and UTF-32 are converted), except that a line break within a label becomes a space.
//! Numbers are decimal, dates and times in ISO 8601, booleans `true` and `false`, separated by spaces within a label;
//! blobs are hexadecimal. schema.json has the exact labels of enumerations of up to a few MiB.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::hex::hex;
use tilefs_export::{Labels, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::enumeration::Enumeration;
use tilefs_format::schema::CellValNum;
use tilefs_format::text;
use tilefs_reader::array::OpenedArray;

use crate::fields::lines::{LONG, Lines};

/// Memory that a label takes in addition to its bytes when all labels of an enumeration are held.
const LABEL_OVERHEAD: usize = 48;

/// Memory that labels may take however small the cache is.
const ALWAYS_LABELLED: usize = 8 << 20;

/// Returns the labels of an attribute's codes; `None` if it has no enumeration, or if a label consists of several
/// numbers, which no format supports.
///
/// # Errors
/// As for [`OpenedArray::enumeration`]; [`Error::Unsupported`] for more labels than the cache may hold.
pub fn labels(array: &OpenedArray, attribute: usize) -> Result<Option<Arc<Labels>>> {
    let name = array.schema().attributes.get(attribute).and_then(|attribute| attribute.enumeration.as_deref());
    let Some(name) = name else { return Ok(None) };
    let enumeration = array.enumeration(name)?;
    if enumeration.datatype.kind() != Kind::Bytes && enumeration.cell_count != CellValNum::Fixed(1) {
        return Ok(None);
    }
    let needed = enumeration.memory().saturating_add(enumeration.len().saturating_mul(LABEL_OVERHEAD));
    if needed > array.context().budget().bytes().max(ALWAYS_LABELLED) {
        let what = format!("an enumeration of {} labels, more than --cache-size allows", enumeration.len());
        return Err(Error::unsupported(what).in_field(name).in_array(array.path()));
    }
    Ok(Some(Arc::new(Labels {
        name: enumeration.name.clone(),
        datatype: enumeration.datatype,
        ordered: enumeration.ordered,
        values: enumeration.values().map(<[u8]>::to_vec).collect(),
    })))
}

/// Returns the text of `NAME.txt`. The whole enumeration is in memory while the text is measured; afterwards, its labels
/// are read page by page.
pub fn lines(array: &OpenedArray, name: &str) -> Result<impl Content + use<>> {
    let enumeration = array.enumeration(name)?;
    let (is_text, datatype) = (is_text_in_disguise(&enumeration), enumeration.datatype);
    let labels = array.enumeration_pages(name)?;
    Lines::new(labels.count(), move |positions, text| {
        let mut next = positions.start;
        labels.for_each(positions, |value| {
            add_line(datatype, value, is_text, text);
            next += 1;
            text.len() < LONG
        })?;
        Ok(next)
    })
}

/// Appends the line of one label.
fn add_line(datatype: Datatype, value: &[u8], is_text: bool, lines: &mut Vec<u8>) {
    let start = lines.len();
    match is_text {
        true => lines.extend(value),
        false => lines.extend(label(datatype, value)),
    }
    for byte in &mut lines[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    lines.push(b'\n');
}

/// Returns whether labels of a numeric type are text, as TileDB-MariaDB has written them. Numeric labels have one value
/// each, text any number.
fn is_text_in_disguise(enumeration: &Enumeration) -> bool {
    let is_text = |value: &[u8]| std::str::from_utf8(value).is_ok_and(|text| !text.contains(char::is_control));
    enumeration.datatype.kind() != Kind::Bytes
        && enumeration.cell_count == CellValNum::Variable
        && enumeration.values().all(is_text)
}

fn label(datatype: Datatype, value: &[u8]) -> Vec<u8> {
    if datatype.kind() != Kind::Bytes && value.len().is_multiple_of(datatype.size()) {
        let numbers = value.chunks(datatype.size()).filter_map(|one| number::word(datatype, one));
        return numbers.collect::<Vec<_>>().join(" ").into_bytes();
    }
    match text::decode(datatype, value) {
        Some(text) => text.into_owned().into_bytes(),
        // Text in an unknown encoding is more readable as it is than as digits.
        None if text::is_text(datatype) && datatype.size() == 1 => value.to_vec(),
        None => hex(value).into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An enumeration file as the format describes it.
    fn enumeration(datatype: u8, count: u32, values: &[&[u8]]) -> Enumeration {
        let mut bytes = 0u32.to_le_bytes().to_vec();
        for name in ["e", "file"] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.push(datatype);
        bytes.extend(count.to_le_bytes());
        bytes.push(0);
        let data = values.concat();
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(data);
        if count == u32::MAX {
            bytes.extend((8 * values.len() as u64).to_le_bytes());
            let mut start = 0u64;
            for value in values {
                bytes.extend(start.to_le_bytes());
                start += value.len() as u64;
            }
        }
        Enumeration::parse(&bytes).unwrap()
    }

    fn bytes_of(enumeration: &Enumeration) -> Vec<u8> {
        let (is_text, mut text) = (is_text_in_disguise(enumeration), Vec::new());
        enumeration.values().for_each(|value| add_line(enumeration.datatype, value, is_text, &mut text));
        text
    }

    fn text_of(datatype: u8, count: u32, values: &[&[u8]]) -> String {
        String::from_utf8(bytes_of(&enumeration(datatype, count, values))).unwrap()
    }

    #[test]
    fn a_line_for_each_code() {
        let (utf8, utf16, int16, float32, blob) = (12, 13, 7, 2, 40);
        assert_eq!(text_of(utf8, u32::MAX, &[b"red", b"", "blä\r\nu".as_bytes()]), "red\n\nblä  u\n");
        assert_eq!(text_of(utf8, u32::MAX, &[]), "");
        assert_eq!(text_of(utf16, u32::MAX, &[&[0xe4, 0], &[0, 0xd8]]), "ä\n00d8\n");
        assert_eq!(text_of(int16, 1, &[&[1, 0], &[0xff, 0xff]]), "1\n-1\n");
        assert_eq!(text_of(int16, 2, &[&[1, 0, 2, 0]]), "1 2\n");
        assert_eq!(text_of(int16, u32::MAX, &[&[1, 0, 2, 0], b"ee", &[0xff]]), "1 2\n25957\nff\n");
        assert_eq!(text_of(int16, u32::MAX, &[b"ee", b"abc"]), "ee\nabc\n");
        assert_eq!(text_of(float32, 1, &[&0.1f32.to_le_bytes()]), "0.1\n");
        assert_eq!(text_of(blob, u32::MAX, &[&[0, 255]]), "00ff\n");
        assert_eq!(bytes_of(&enumeration(4, u32::MAX, &[&[0xe4]])), [0xe4, b'\n']);
    }
}
