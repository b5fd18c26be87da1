//! The INFO and FORMAT fields of a record, as TileDB-VCF stores them.
//!
//! All fields of a kind are one value: their count, then for each field its name (which a NUL ends), the type of its
//! values, their number, and the values. All numbers are 32-bit, little-endian. A field with an attribute of its own
//! (`info_NAME`, `fmt_NAME`) is stored there without its name; a record without the field has one zero byte there.

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::cursor::Cursor;

use super::check_text;

/// The type numbers: htslib's `BCF_HT_FLAG` and so on.
const FLAG: u32 = 0;
const INTEGER: u32 = 1;
const FLOAT: u32 = 2;
const TEXT: u32 = 3;

/// The integers that stand for a missing value, and for the early end of a vector.
pub(super) const MISSING_INTEGER: i32 = i32::MIN;
pub(super) const INTEGER_END: i32 = i32::MIN + 1;

/// The bits of the floats that stand for a missing value, and for the early end of a vector.
pub(super) const MISSING_FLOAT: u32 = 0x7f80_0001;
pub(super) const FLOAT_END: u32 = 0x7f80_0002;

/// The character that htslib stores for a missing text.
pub(super) const MISSING_TEXT: &[u8] = b"\x07";

/// The minimum size of a field: an empty name, its type, and the number of its values.
const LEAST_FIELD: usize = 1 + 4 + 4;

/// The characters that end the name of a field elsewhere in VCF.
const NOT_OF_A_NAME: &[u8] = b"=;: ";

/// For each byte, whether the name of a field may have it.
const IS_OF_A_NAME: [bool; 256] = {
    let mut is_of_a_name = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        is_of_a_name[byte] = !(byte as u8).is_ascii_control();
        byte += 1;
    }
    let mut place = 0;
    while place < NOT_OF_A_NAME.len() {
        is_of_a_name[NOT_OF_A_NAME[place] as usize] = false;
        place += 1;
    }
    is_of_a_name
};

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldValue<'a> {
    /// The name of the field.
    pub name: &'a [u8],
    /// The values of the field.
    pub values: FieldValues<'a>,
}

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValues<'a> {
    /// The field is present, and has no values.
    Flag,
    /// Little-endian 32-bit integers.
    Integers(&'a [[u8; 4]]),
    /// Little-endian 32-bit IEEE 754 numbers.
    Floats(&'a [[u8; 4]]),
    /// Characters.
    Text(&'a [u8]),
}

/// Returns the fields of a record.
///
/// # Errors
/// Fails if the bytes are malformed, or if bytes follow the last field; the error has the offset.
pub fn fields(bytes: &[u8]) -> Result<Vec<FieldValue<'_>>> {
    let mut fields = Vec::new();
    for_each_field(bytes, |field| {
        fields.push(field);
        Ok(())
    })?;
    Ok(fields)
}

/// Calls `visit` with each field of a record.
///
/// # Errors
/// As for [`fields`], and the errors of `visit`.
pub(super) fn for_each_field<'a>(bytes: &'a [u8], mut visit: impl FnMut(FieldValue<'a>) -> Result<()>) -> Result<()> {
    match visit_sound(bytes, |_, rest| FieldHead::at(rest)?.field(rest), &mut visit)? {
        None => Ok(()),
        Some(visited) => visit_others(bytes, visited, visit),
    }
}

/// Calls `visit` with each field that is not malformed and not behind one that is. `next_field` gets the number of a field
/// and the bytes from there on; it returns the field, and the bytes behind it. Returns the number of the fields if the
/// record has others.
fn visit_sound<'a, F>(
    bytes: &'a [u8],
    mut next_field: impl FnMut(usize, &'a [u8]) -> Option<(F, &'a [u8])>,
    mut visit: impl FnMut(F) -> Result<()>,
) -> Result<Option<usize>> {
    let mut visited = 0;
    let mut next = bytes.split_first_chunk::<4>().map(|(count, rest)| (u32::from_le_bytes(*count), rest));
    while let Some((left, rest)) = next {
        if left == 0 && rest.is_empty() {
            return Ok(None);
        }
        let found = if left > 0 { next_field(visited, rest) } else { None };
        next = match found {
            Some((field, behind)) => {
                visit(field)?;
                visited += 1;
                Some((left - 1, behind))
            }
            None => None,
        };
    }
    Ok(Some(visited))
}

/// Calls `visit` with the fields after the first `visited` ones, and returns the error of the malformed field.
fn visit_others<'a>(
    bytes: &'a [u8],
    visited: usize,
    mut visit: impl FnMut(FieldValue<'a>) -> Result<()>,
) -> Result<()> {
    let mut number = 0;
    check_each_field(bytes, |field| {
        number += 1;
        if number > visited { visit(field) } else { Ok(()) }
    })
}

/// The heads of the fields of the previous record, and what was looked up for the name of each field. Most records repeat
/// the heads of the previous record, so no head is parsed. Memory: a copy of the heads of the record with the most fields.
#[derive(Debug)]
pub(super) struct FieldHeads<T>(Vec<(Vec<u8>, FieldHead, T)>);

impl<T> Default for FieldHeads<T> {
    fn default() -> Self {
        FieldHeads(Vec::new())
    }
}

impl<T: Copy> FieldHeads<T> {
    /// Calls `visit` with each field of the next record, and with what `find` returns for its name.
    ///
    /// # Errors
    /// As for [`fields`], and the errors of `visit`.
    pub(super) fn for_each_field<'a>(
        &mut self,
        bytes: &'a [u8],
        mut find: impl FnMut(&[u8]) -> T,
        mut visit: impl FnMut(FieldValue<'a>, T) -> Result<()>,
    ) -> Result<()> {
        let next_field = |number, rest| self.field(number, rest, &mut find);
        match visit_sound(bytes, next_field, |(field, found)| visit(field, found))? {
            None => Ok(()),
            Some(visited) => visit_others(bytes, visited, |field| {
                let found = find(field.name);
                visit(field, found)
            }),
        }
    }

    /// Returns the field at the beginning of some bytes, what was found for its name, and the bytes behind it; `None` if
    /// it is malformed.
    fn field<'a>(
        &mut self,
        number: usize,
        bytes: &'a [u8],
        find: impl FnOnce(&[u8]) -> T,
    ) -> Option<((FieldValue<'a>, T), &'a [u8])> {
        if let Some((_, head, found)) = self.0.get(number).filter(|(stored, ..)| bytes.starts_with(stored)) {
            let (field, behind) = head.field(bytes)?;
            return Some(((field, *found), behind));
        }
        let head = FieldHead::at(bytes)?;
        let (stored, (field, behind)) = (bytes.get(..head.length)?, head.field(bytes)?);
        let found = match self.0.get_mut(number) {
            Some((bytes, before, found)) => {
                // Often only the number of values is another one.
                if bytes.get(..before.name_length) != Some(field.name) {
                    *found = find(field.name);
                }
                bytes.clear();
                bytes.extend_from_slice(stored);
                *before = head;
                *found
            }
            None => {
                let found = find(field.name);
                self.0.push((stored.to_vec(), head, found));
                found
            }
        };
        Some(((field, found), behind))
    }
}

/// The head of a stored field, which comes before the values: the field's name, the type of its values, and their number.
#[derive(Debug, Clone, Copy)]
struct FieldHead {
    name_length: usize,
    kind: u32,
    /// The bytes of the head, and those of the values.
    length: usize,
    size: usize,
}

impl FieldHead {
    /// Returns the head at the beginning of some bytes; `None` if it is malformed.
    fn at(bytes: &[u8]) -> Option<Self> {
        let is_of_a_name = |byte: &u8| IS_OF_A_NAME[usize::from(*byte)];
        let name_length = bytes.iter().position(|byte| !is_of_a_name(byte)).filter(|length| *length > 0)?;
        let behind = bytes.get(name_length..)?.strip_prefix(b"\0")?;
        let (kind, behind) = behind.split_first_chunk::<4>()?;
        let (count, behind) = behind.split_first_chunk::<4>()?;
        let (kind, count) = (u32::from_le_bytes(*kind), usize::try_from(u32::from_le_bytes(*count)).ok()?);
        let size = count.checked_mul(if kind == TEXT { 1 } else { 4 })?;
        Some(FieldHead { name_length, kind, length: bytes.len() - behind.len(), size })
    }

    /// Returns the field of these bytes, which begin with the head, and the bytes behind it.
    fn field(self, bytes: &[u8]) -> Option<(FieldValue<'_>, &[u8])> {
        let (values, behind) = bytes.get(self.length..)?.split_at_checked(self.size)?;
        Some((FieldValue { name: bytes.get(..self.name_length)?, values: values_of(self.kind, values)? }, behind))
    }
}

/// As [`for_each_field`], but slower: its errors say what is malformed, and where.
fn check_each_field<'a>(bytes: &'a [u8], mut visit: impl FnMut(FieldValue<'a>) -> Result<()>) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.u32("number of fields")?;
    let count = cursor.checked_count(u64::from(count), LEAST_FIELD, "number of fields")?;
    for _ in 0..count {
        let at = cursor.position();
        let rest = bytes.get(at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == 0);
        let length = length.ok_or_else(|| Error::damaged("the name of a field does not end").at(at as u64))?;
        let name = cursor.bytes(length, "name of a field")?;
        cursor.bytes(1, "end of a name")?;
        check_text(name, NOT_OF_A_NAME, "the name of a field").map_err(|error| error.at(at as u64))?;
        if name.is_empty() {
            return Err(Error::damaged("a field without a name").at(at as u64));
        }
        visit(FieldValue { name, values: values(&mut cursor)? })?;
    }
    cursor.expect_end("the fields of a record")
}

/// Returns the values of a field with an attribute of its own; `None` if the record lacks the field.
///
/// # Errors
/// As for [`fields`].
pub fn extracted(bytes: &[u8]) -> Result<Option<FieldValues<'_>>> {
    if bytes == [0] {
        return Ok(None);
    }
    let mut cursor = Cursor::new(bytes);
    let values = values(&mut cursor)?;
    cursor.expect_end("the values of a field")?;
    Ok(Some(values))
}

fn values<'a>(cursor: &mut Cursor<'a>) -> Result<FieldValues<'a>> {
    let at = cursor.position() as u64;
    let (kind, count) = (cursor.u32("type of a field")?, cursor.u32("number of values")?);
    let size = if kind == TEXT { 1 } else { 4 };
    let bytes = cursor.bytes_u64(u64::from(count) * size, "values of a field")?;
    let unknown = || Error::damaged(format!("a field with values of the type {kind}")).at(at);
    values_of(kind, bytes).ok_or_else(unknown)
}

/// Returns the values of a type; `None` if there is no such type.
fn values_of(kind: u32, bytes: &[u8]) -> Option<FieldValues<'_>> {
    Some(match kind {
        // A flag is stored with a meaningless value.
        FLAG => FieldValues::Flag,
        INTEGER => FieldValues::Integers(bytes.as_chunks().0),
        FLOAT => FieldValues::Floats(bytes.as_chunks().0),
        TEXT => FieldValues::Text(bytes),
        _ => return None,
    })
}

impl<'a> FieldValues<'a> {
    /// Returns the numbers before the end of the vector, `None` for each missing one. Flags and texts have no numbers.
    pub(super) fn numbers(self) -> Option<Vec<Option<[u8; 4]>>> {
        Some(self.each_number()?.collect())
    }

    /// Like [`FieldValues::numbers`], but returns an iterator.
    pub(super) fn each_number(self) -> Option<impl Iterator<Item = Option<[u8; 4]>> + Clone + use<'a>> {
        let (numbers, missing, end) = match self {
            FieldValues::Flag | FieldValues::Text(_) => return None,
            FieldValues::Integers(integers) => (integers, MISSING_INTEGER.to_le_bytes(), INTEGER_END.to_le_bytes()),
            FieldValues::Floats(floats) => (floats, MISSING_FLOAT.to_le_bytes(), FLOAT_END.to_le_bytes()),
        };
        let numbers = numbers.iter().take_while(move |number| **number != end);
        Some(numbers.map(move |number| (*number != missing).then_some(*number)))
    }

    /// Returns for each allele of a genotype its number (`None` if it is missing), and whether it is phased with the
    /// previous allele. Returns `None` if the values are not integers.
    ///
    /// # Errors
    /// Fails if a value is not an allele.
    pub(super) fn alleles(self) -> Option<impl Iterator<Item = Result<(Option<i32>, bool)>> + use<'a>> {
        let FieldValues::Integers(alleles) = self else { return None };
        let alleles = alleles.iter().map(|bytes| i32::from_le_bytes(*bytes));
        Some(alleles.take_while(|&value| value != INTEGER_END).map(|allele| match allele {
            MISSING_INTEGER | 0 | 1 => Ok((None, allele & 1 == 1)),
            2.. => Ok((Some((allele >> 1) - 1), allele & 1 == 1)),
            _ => Err(Error::damaged(format!("the allele {allele} in a genotype"))),
        }))
    }

    /// Appends the values in VCF's notation, separated by commas; returns whether there are any.
    ///
    /// # Errors
    /// Fails for a text with a character that VCF does not allow there: one of `ends`, a tab or a line break.
    pub(super) fn append(self, ends: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let before = out.len();
        match self {
            FieldValues::Flag => {}
            FieldValues::Integers(integers) => {
                let integers = integers.iter().map(|bytes| i32::from_le_bytes(*bytes));
                list(integers.take_while(|&value| value != INTEGER_END), out, |value, out| match value {
                    MISSING_INTEGER => out.push(b'.'),
                    _ => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
                });
            }
            FieldValues::Floats(floats) => {
                let floats = floats.iter().map(|bytes| u32::from_le_bytes(*bytes));
                list(floats.take_while(|&bits| bits != FLOAT_END), out, append_float);
            }
            FieldValues::Text(MISSING_TEXT) => out.push(b'.'),
            FieldValues::Text(text) => out.extend_from_slice(check_text(unpadded(text), ends, "a text in a field")?),
        }
        Ok(out.len() > before)
    }

    /// Appends a genotype: allele numbers (0 is the reference), separated by `|` if they are phased, otherwise by `/`.
    /// An allele is stored as twice its number plus 2, plus 1 if it is phased with the previous allele. A text must
    /// have this notation already.
    ///
    /// # Errors
    /// If a value is not an allele.
    pub(super) fn append_genotype(self, out: &mut Vec<u8>) -> Result<bool> {
        let before = out.len();
        let Some(alleles) = self.alleles() else {
            return match self {
                FieldValues::Text(MISSING_TEXT) => self.append(b"", out),
                FieldValues::Text(text) if is_genotype(unpadded(text)) => self.append(b"", out),
                _ => Err(Error::damaged("a genotype that is not numbers")),
            };
        };
        for (number, allele) in alleles.enumerate() {
            let (allele, is_phased) = allele?;
            if number > 0 {
                out.push(if is_phased { b'|' } else { b'/' });
            }
            match allele {
                None => out.push(b'.'),
                Some(allele) => out.extend_from_slice(itoa::Buffer::new().format(allele).as_bytes()),
            }
        }
        Ok(out.len() > before)
    }
}

/// Returns whether a text consists of numbers of alleles, or dots, between `/` or `|`.
fn is_genotype(text: &[u8]) -> bool {
    let is_allele = |allele: &[u8]| allele == b"." || !allele.is_empty() && allele.iter().all(u8::is_ascii_digit);
    text.is_empty() || text.split(|byte| b"/|".contains(byte)).all(is_allele)
}

/// Appends values, separated by commas.
fn list<T>(values: impl Iterator<Item = T>, out: &mut Vec<u8>, append: impl Fn(T, &mut Vec<u8>)) {
    for (number, value) in values.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        append(value, out);
    }
}

/// Appends a float with the fewest digits that parse to the same float; `.` for a missing one.
pub(super) fn append_float(bits: u32, out: &mut Vec<u8>) {
    let value = f32::from_bits(bits);
    if bits == MISSING_FLOAT {
        out.push(b'.');
    } else if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value);
        out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
    }
}

/// Returns a text without its padding. TileDB-VCF pads with NULs to the longest text of the record.
pub(super) fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

#[cfg(test)]
pub(super) mod testing {
    //! Writes fields as TileDB-VCF stores them.

    use super::*;

    /// The values of a field to store.
    #[derive(Debug, Clone, PartialEq)]
    pub enum FieldExample {
        Flag,
        Integers(Vec<i32>),
        Floats(Vec<u32>),
        Text(Vec<u8>),
    }

    impl FieldExample {
        pub fn bytes(&self) -> Vec<u8> {
            let (kind, count, values) = match self {
                FieldExample::Flag => (FLAG, 1, vec![1, 0, 0, 0]),
                FieldExample::Integers(values) => {
                    (INTEGER, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
                }
                FieldExample::Floats(values) => {
                    (FLOAT, values.len(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
                }
                FieldExample::Text(text) => (TEXT, text.len(), text.clone()),
            };
            [&kind.to_le_bytes()[..], &(count as u32).to_le_bytes(), &values].concat()
        }
    }

    pub fn stored(fields: &[(&str, FieldExample)]) -> Vec<u8> {
        let mut bytes = (fields.len() as u32).to_le_bytes().to_vec();
        for (name, values) in fields {
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.extend(values.bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::{FieldExample, stored};
    use super::*;

    fn shown(values: &FieldExample) -> Result<String> {
        let (bytes, mut out) = (values.bytes(), Vec::new());
        extracted(&bytes)?.unwrap().append(b";", &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn genotype(alleles: &[i32]) -> Result<String> {
        let (bytes, mut out) = (FieldExample::Integers(alleles.to_vec()).bytes(), Vec::new());
        extracted(&bytes)?.unwrap().append_genotype(&mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_are_shown_as_in_vcf() {
        let integers = |values: &[i32]| shown(&FieldExample::Integers(values.to_vec())).unwrap();
        assert_eq!(integers(&[1, -20, 300]), "1,-20,300");
        assert_eq!(integers(&[MISSING_INTEGER, 5, INTEGER_END, INTEGER_END]), ".,5");
        assert_eq!(integers(&[]), "");
        let floats = |values: &[u32]| shown(&FieldExample::Floats(values.to_vec())).unwrap();
        let bits = [0.5f32, 1e-5, 49.77, -3.0, 1e20, f32::INFINITY, f32::NAN].map(f32::to_bits);
        assert_eq!(floats(&bits), "0.5,0.00001,49.77,-3,1e+20,inf,nan");
        assert_eq!(floats(&[MISSING_FLOAT, FLOAT_END]), ".");
        assert_eq!(shown(&FieldExample::Text(b"a,b=c".to_vec())).unwrap(), "a,b=c");
        assert_eq!(shown(&FieldExample::Text(b"ab\0\0".to_vec())).unwrap(), "ab");
        assert_eq!(shown(&FieldExample::Text(b"\x07".to_vec())).unwrap(), ".");
        for wrong in [&b"a;b"[..], b"a\tb", b"a\nb", b"a\0b"] {
            assert!(shown(&FieldExample::Text(wrong.to_vec())).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn genotypes_are_alleles_with_their_phase() {
        assert_eq!(genotype(&[2, 4]).unwrap(), "0/1");
        assert_eq!(genotype(&[2, 5]).unwrap(), "0|1");
        assert_eq!(genotype(&[4, 6, 9]).unwrap(), "1/2|3");
        assert_eq!(genotype(&[0, 0]).unwrap(), "./.");
        assert_eq!(genotype(&[0, 1]).unwrap(), ".|.");
        assert_eq!(genotype(&[4, INTEGER_END]).unwrap(), "1");
        assert_eq!(genotype(&[i32::MAX]).unwrap(), "1073741822");
        assert!(genotype(&[-4]).is_err());
    }

    #[test]
    fn what_is_no_genotype_is_an_error() {
        let of = |values: FieldExample| {
            let (bytes, mut out) = (values.bytes(), Vec::new());
            extracted(&bytes)?.unwrap().append_genotype(&mut out)?;
            Ok::<_, Error>(String::from_utf8(out).unwrap())
        };
        let text = |text: &str| of(FieldExample::Text(text.as_bytes().to_vec()));
        for sound in ["0/1", ".|10", "1", ".", ""] {
            assert_eq!(text(sound).unwrap(), sound);
        }
        assert_eq!(text("0/1\0\0").unwrap(), "0/1");
        assert_eq!(text("\x07").unwrap(), ".");
        for wrong in ["a", "0/", "/1", "0:1", "-1", "0//1", "0,1", "0\t1"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
        // The bits of 5 are the float 7e-45.
        assert!(of(FieldExample::Floats(vec![5, 4])).is_err());
        assert!(of(FieldExample::Floats(Vec::new())).is_err() && of(FieldExample::Flag).is_err());
    }

    #[test]
    fn a_field_without_values_has_an_attribute_of_one_zero() {
        assert_eq!(extracted(&[0]).unwrap(), None);
        for wrong in [&[][..], &[1], &[0, 0]] {
            assert!(extracted(wrong).is_err());
        }
    }

    fn any_stored() -> impl Strategy<Value = FieldExample> {
        prop_oneof![
            Just(FieldExample::Flag),
            proptest::collection::vec(any::<i32>(), 0..5).prop_map(FieldExample::Integers),
            proptest::collection::vec(any::<u32>(), 0..5).prop_map(FieldExample::Floats),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(FieldExample::Text),
        ]
    }

    #[test]
    fn names_are_looked_up_where_they_change() {
        let (mut heads, mut looked_up) = (FieldHeads::default(), Vec::new());
        for (name, count) in [("A", 1), ("A", 1), ("A", 3), ("AB", 3), ("A", 2), ("A", 0)] {
            let bytes = stored(&[(name, FieldExample::Integers(vec![7; count]))]);
            let find = |name: &[u8]| {
                looked_up.push(name.to_vec());
                name.len()
            };
            let visit = |field: FieldValue<'_>, length| {
                assert_eq!((field.name, length), (name.as_bytes(), name.len()));
                assert_eq!(field.values.numbers().unwrap().len(), count);
                Ok(())
            };
            heads.for_each_field(&bytes, find, visit).unwrap();
        }
        assert_eq!(looked_up, [&b"A"[..], b"AB", b"A"]);
    }

    proptest! {
        #[test]
        fn fields_are_what_was_stored(all in proptest::collection::vec(("[A-Z0-9_.]{1,6}", any_stored()), 0..6)) {
            let named: Vec<(&str, FieldExample)> = all.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
            let bytes = stored(&named);
            let found = fields(&bytes).unwrap();
            prop_assert_eq!(found.len(), all.len());
            for (field, (name, values)) in found.iter().zip(&all) {
                prop_assert_eq!(field.name, name.as_bytes());
                let numbers = |chunks: &[[u8; 4]]| chunks.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
                let back = match field.values {
                    FieldValues::Flag => FieldExample::Flag,
                    FieldValues::Integers(chunks) => FieldExample::Integers(chunks.iter().map(|b| i32::from_le_bytes(*b)).collect()),
                    FieldValues::Floats(chunks) => FieldExample::Floats(numbers(chunks)),
                    FieldValues::Text(text) => FieldExample::Text(text.to_vec()),
                };
                prop_assert_eq!(&back, values);
            }
            // Every shorter or longer value is an error.
            for end in 0..bytes.len() {
                prop_assert!(fields(&bytes[..end]).is_err());
            }
            prop_assert!(fields(&[&bytes[..], &[0]].concat()).is_err());
        }

        /// Fields are the same whether records with other or with the same fields came before, also if bytes are missing
        /// or changed.
        #[test]
        fn records_before_change_nothing(
            records in proptest::collection::vec(
                (
                    proptest::collection::vec(("[AB]{1,2}", any_stored()), 0..4),
                    any::<proptest::sample::Index>(),
                    prop_oneof![Just(None), any::<u8>().prop_map(Some)],
                    any::<bool>(),
                ),
                1..8,
            ),
        ) {
            let mut heads = FieldHeads::default();
            for (all, place, changed, is_repeated) in records {
                let named: Vec<(&str, FieldExample)> = all.iter().map(|(name, values)| (name.as_str(), values.clone())).collect();
                let sound = stored(&named);
                let mut bytes = sound.clone();
                let place = place.index(bytes.len());
                match changed {
                    Some(byte) => bytes[place] = byte,
                    None => bytes.truncate(if is_repeated { bytes.len() } else { place }),
                }
                for bytes in [&sound, &bytes] {
                    let mut found = Vec::new();
                    let outcome = heads.for_each_field(bytes, <[u8]>::len, |field, length| {
                        assert_eq!(length, field.name.len());
                        found.push(field);
                        Ok(())
                    });
                    let expected = fields(bytes);
                    prop_assert_eq!(outcome.map_err(|error| error.to_string()).err(), expected.as_ref().map_err(ToString::to_string).err());
                    if let Ok(expected) = expected {
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }

        #[test]
        fn any_bytes_are_fields_or_an_error(count in 0u32..4, bytes: Vec<u8>) {
            let bytes = [&count.to_le_bytes()[..], &bytes].concat();
            for field in fields(&bytes).unwrap_or_default() {
                let _ = field.values.append(b";", &mut Vec::new());
                let _ = field.values.append_genotype(&mut Vec::new());
            }
        }

        #[test]
        fn floats_are_read_as_the_same(bits: u32) {
            let mut out = Vec::new();
            append_float(bits, &mut out);
            let text = String::from_utf8(out).unwrap();
            let value = f32::from_bits(bits);
            match bits {
                MISSING_FLOAT => prop_assert_eq!(text, "."),
                _ if value.is_nan() => prop_assert_eq!(text, "nan"),
                _ => prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits),
            }
        }
    }
}
