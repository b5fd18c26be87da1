//! Consolidated fragment metadata (`.meta` files): copies of the footers of many fragments in one generic tile.

use crate::error::Result;
use crate::format::cursor::Cursor;

/// The footer of one fragment in a file of consolidated fragment metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterCopy<'a> {
    /// The fragment's name, or in files of format versions before 9 the URI it had then.
    pub name: &'a str,
    /// As in the fragment's own metadata file, without the length that follows there from version 10.
    pub footer: &'a [u8],
}

/// Reads the payload of a `.meta` file: a count, a name and an offset for each fragment, then the footers.
///
/// # Errors
/// [`Error::Damaged`](crate::error::Error::Damaged) where the bytes end early, or offsets leave the payload or go
/// backwards.
pub fn parse_consolidated_footers(payload: &[u8]) -> Result<Vec<FooterCopy<'_>>> {
    let mut cursor = Cursor::new(payload);
    let count = cursor.u32("number of fragments")?;
    // At least the length of a name and an offset for each.
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

    proptest! {
        #[test]
        fn copies_come_back(copies in prop::collection::vec(("[a-z0-9_]{1,9}", prop::collection::vec(any::<u8>(), 0..20)), 0..6)) {
            let bytes = written(&copies);
            let parsed: Vec<_> = parse_consolidated_footers(&bytes).unwrap().iter()
                .map(|copy| (copy.name.to_owned(), copy.footer.to_vec())).collect();
            prop_assert_eq!(parsed, copies);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_consolidated_footers(&bytes);
        }
    }

    #[test]
    fn footers_stay_where_they_can_be() {
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
