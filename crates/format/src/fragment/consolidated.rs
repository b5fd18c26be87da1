//! Consolidated fragment metadata (`.meta` files): copies of the footers of many fragments in one generic tile.

use tilefs_base::error::{Error, Locate, Result};

use crate::cursor::Cursor;

/// The longest fragment name that [`FooterReader`] accepts, in bytes.
const MAX_NAME: u64 = 1 << 16;

/// The longest footer that [`FooterReader`] accepts, in bytes.
const MAX_FOOTER: u64 = 1 << 24;

/// The footer of one fragment in a file of consolidated fragment metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterCopy<'a> {
    /// The fragment's name; in files of format versions before 9, its URI at that time.
    pub name: &'a str,
    /// The footer of the fragment's own metadata file, without the length that follows it there from version 10.
    pub footer: &'a [u8],
}

/// Reads the payload of a `.meta` file: a count, a name and an offset for each fragment, then the footers.
///
/// # Errors
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) if the bytes end early, or offsets leave the payload or decrease.
pub fn parse_consolidated_footers(payload: &[u8]) -> Result<Vec<FooterCopy<'_>>> {
    let mut cursor = Cursor::new(payload);
    let count = cursor.u32("number of fragments")?;
    // An entry has at least the length of a name and an offset.
    let count = cursor.checked_count(u64::from(count), 16, "number of fragments")?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        names.push((cursor.text64("fragment name")?, cursor.u64("footer offset")?));
    }
    let ends = names.iter().skip(1).map(|(_, offset)| *offset).chain([payload.len() as u64]);
    let mut end_of_last = cursor.position() as u64;
    let mut copies = Vec::with_capacity(count);
    for (&(name, start), end) in names.iter().zip(ends) {
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let footer = range.and_then(|(start, end)| payload.get(start..end)).filter(|_| start >= end_of_last);
        let footer = footer.ok_or_else(|| cursor.error("footer offset", format!("a footer from {start} to {end}")))?;
        end_of_last = end;
        copies.push(FooterCopy { name, footer });
    }
    Ok(copies)
}

/// A streaming reader of the payload of a `.meta` file, which has a few hundred MiB for 10^6 fragments. It visits the
/// footers of the wanted fragments; if a footer has several copies, only the first.
///
/// Memory: 32 bytes for each wanted fragment, the longest footer, and one part.
#[derive(Debug, Default)]
pub struct FooterReader {
    /// Bytes that were received and not yet consumed.
    pending: Vec<u8>,
    /// The offset of `pending` in the payload.
    at: u64,
    /// The number of names still to come; `None` before the count was read.
    names_left: Option<u32>,
    /// The last footer offset that was read.
    last_offset: u64,
    /// The numbers of the wanted fragments, the starts of their footers and, once the next name was read, the ends.
    wanted: Vec<(usize, u64, Option<u64>)>,
    /// The index in `wanted` of the next footer to visit.
    next: usize,
}

impl FooterReader {
    /// Consumes the next part. `find` returns the number of the fragment of a name, or `None` if the fragment is not
    /// wanted or its number was returned before. `visit` gets the number and the footer.
    ///
    /// # Errors
    /// [`Error::Damaged`] for offsets that point into the table of names or decrease, and for names and footers of
    /// implausible lengths; errors of `visit`.
    pub fn take(
        &mut self,
        part: &[u8],
        mut find: impl FnMut(&str) -> Option<usize>,
        mut visit: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.pending.extend_from_slice(part);
        let mut taken = 0;
        while let Some(length) = self.take_name(taken, &mut find)? {
            taken += length;
        }
        if self.names_left == Some(0) {
            self.take_footers(&mut taken, &mut visit)?;
        }
        self.pending.drain(..taken);
        self.at += taken as u64;
        Ok(())
    }

    /// Visits the last footer, which ends with the payload.
    ///
    /// # Errors
    /// The errors of [`FooterReader::take`], and [`Error::Damaged`] for a payload that ends early.
    pub fn finish(mut self, mut visit: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let end = self.at + self.pending.len() as u64;
        if self.names_left != Some(0) || self.last_offset > end {
            return Err(self.damaged("the payload ends early"));
        }
        if let Some((_, _, open @ None)) = self.wanted.last_mut() {
            *open = Some(end);
        }
        self.take_footers(&mut 0, &mut visit)
    }

    /// Reads the count or the next name from `pending`, after its first `taken` bytes. Returns the bytes read, or
    /// `None` if there is no further name or it has not arrived completely.
    fn take_name(&mut self, taken: usize, find: &mut impl FnMut(&str) -> Option<usize>) -> Result<Option<usize>> {
        let bytes = self.pending.get(taken..).unwrap_or_default();
        let Some(left) = self.names_left else {
            self.names_left = bytes.first_chunk().map(|count| u32::from_le_bytes(*count));
            return Ok(self.names_left.map(|_| 4));
        };
        let Some(left) = left.checked_sub(1) else { return Ok(None) };
        let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let length = u64::from_le_bytes(*length);
        if length > MAX_NAME {
            return Err(self.damaged(&format!("a name of {length} bytes")));
        }
        let Some((name, rest)) = rest.split_at_checked(length as usize) else { return Ok(None) };
        let Some(offset) = rest.first_chunk().map(|offset| u64::from_le_bytes(*offset)) else { return Ok(None) };
        let end = self.at + taken as u64 + length + 16;
        let number = str::from_utf8(name).ok().and_then(find);
        if offset < self.last_offset || offset < end {
            return Err(self.damaged(&format!("a footer from {offset}")));
        }
        if let Some((_, _, open @ None)) = self.wanted.last_mut() {
            *open = Some(offset);
        }
        self.last_offset = offset;
        self.wanted.extend(number.map(|number| (number, offset, None)));
        self.names_left = Some(left);
        Ok(Some(length as usize + 16))
    }

    /// Visits the footers that have arrived completely, and skips the bytes between them.
    fn take_footers(&mut self, taken: &mut usize, visit: &mut impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        // The end of the pending bytes in the payload, and the index in `pending` of an offset in the payload.
        let there = self.at + self.pending.len() as u64;
        let place = |offset: u64| offset.checked_sub(self.at).and_then(|place| usize::try_from(place).ok());
        while let Some(&(number, start, end)) = self.wanted.get(self.next) {
            if end.unwrap_or(there) - start.min(there) > MAX_FOOTER {
                return Err(self.damaged(&format!("a footer of more than {MAX_FOOTER} bytes")));
            }
            let range = end.filter(|end| *end <= there).and_then(|end| Some(place(start)?..place(end)?));
            let Some(range) = range else {
                *taken = place(start.min(there)).unwrap_or(*taken).max(*taken);
                return Ok(());
            };
            let footer = self.pending.get(range.clone()).ok_or_else(|| self.damaged("a footer in the table"))?;
            visit(number, footer)?;
            *taken = range.end;
            self.next += 1;
        }
        *taken = self.pending.len();
        Ok(())
    }

    fn damaged(&self, reason: &str) -> Error {
        Error::damaged(reason).in_field("consolidated footers").at(self.at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(copies: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = (copies.len() as u32).to_le_bytes().to_vec();
        let mut offset = 4 + copies.iter().map(|(name, _)| 16 + name.len()).sum::<usize>();
        for (name, footer) in copies {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name.bytes());
            bytes.extend((offset as u64).to_le_bytes());
            offset += footer.len();
        }
        bytes.extend(copies.iter().flat_map(|(_, footer)| footer));
        bytes
    }

    /// Reads the footers of the wanted fragments from a payload that arrives in parts.
    fn read_in_parts(bytes: &[u8], part: usize, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Vec<u8>)>> {
        let (mut reader, mut names, mut read) = (FooterReader::default(), Vec::<String>::new(), Vec::new());
        for part in bytes.chunks(part) {
            let find = |name: &str| {
                let is_new = is_wanted(name) && names.iter().all(|other| other != name);
                is_new.then(|| names.push(name.to_owned())).map(|()| names.len() - 1)
            };
            reader.take(part, find, |number, footer| {
                read.push((number, footer.to_vec()));
                Ok(())
            })?;
        }
        reader.finish(|number, footer| {
            read.push((number, footer.to_vec()));
            Ok(())
        })?;
        Ok(read.into_iter().map(|(number, footer)| (names[number].clone(), footer)).collect())
    }

    proptest! {
        #[test]
        fn footers_round_trip(copies in prop::collection::vec(("[a-z0-9_]{1,9}", prop::collection::vec(any::<u8>(), 0..20)), 0..6)) {
            let bytes = written(&copies);
            let parsed: Vec<_> = parse_consolidated_footers(&bytes).unwrap().iter()
                .map(|copy| (copy.name.to_owned(), copy.footer.to_vec())).collect();
            prop_assert_eq!(parsed, copies);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_consolidated_footers(&bytes);
            let _ = read_in_parts(&bytes, 7, |_| true);
        }

        #[test]
        fn reading_in_parts_equals_reading_the_whole(
            copies in prop::collection::vec(("[a-c]{1,2}", prop::collection::vec(any::<u8>(), 0..20)), 0..9),
            damage in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
            cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
            part in 1usize..60,
        ) {
            let mut bytes = written(&copies);
            if let Some((place, byte)) = damage {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let is_wanted = |name: &str| name.starts_with('a');
            match (parse_consolidated_footers(&bytes), read_in_parts(&bytes, part, is_wanted)) {
                (Ok(whole), read) => {
                    let mut expected: Vec<(String, Vec<u8>)> = Vec::new();
                    for copy in whole.iter().filter(|copy| is_wanted(copy.name)) {
                        if expected.iter().all(|(name, _)| name != copy.name) {
                            expected.push((copy.name.to_owned(), copy.footer.to_vec()));
                        }
                    }
                    prop_assert_eq!(read.unwrap(), expected);
                }
                // The reader may overlook damage of names that are not wanted.
                (Err(_), read) => prop_assert!(read.is_err() || damage.is_some()),
            }
        }
    }

    #[test]
    fn footers_outside_their_area_are_refused() {
        let copies = [("a".to_owned(), vec![1; 8]), ("b".to_owned(), vec![2; 8])];
        let good = written(&copies);
        assert!(parse_consolidated_footers(&good).is_ok());
        for (place, offset) in [(13, 20u8), (13, 47), (30, 30), (30, 200)] {
            let mut bad = good.clone();
            bad[place] = offset;
            assert!(parse_consolidated_footers(&bad).is_err(), "{offset} at {place}");
        }
        assert!(parse_consolidated_footers(&u32::MAX.to_le_bytes()).is_err());
    }
}
