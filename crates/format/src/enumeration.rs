//! Enumerations: lists of labels that the values of an attribute index (the format's "Enumerations" page).

use tilefs_base::error::{Locate, Result};

use super::cursor::Cursor;
use super::datatype::Datatype;
use super::schema::CellValNum;
use super::version::other_version;

/// A list of values. Attributes store indexes into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enumeration {
    /// The name that attributes refer to.
    pub name: String,
    /// The name of the enumeration's file in `__schema/__enumerations`.
    pub file: String,
    /// The type of the values.
    pub datatype: Datatype,
    /// The number of elements of a value.
    pub cell_count: CellValNum,
    /// Whether the order of the list is meaningful.
    pub ordered: bool,
    /// The offset of `data` in the payload of the file.
    data_start: u64,
    data: Vec<u8>,
    /// The start of each value in `data`; only for variable-size values.
    offsets: Vec<u64>,
}

/// Where the payload of an enumeration's file has the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredValues {
    /// The number of values.
    pub count: u64,
    /// The offset of the first value.
    pub start: u64,
    /// The length of all values in bytes.
    pub length: u64,
    /// The size of each value in bytes; `None` for variable-size values.
    pub size: Option<u64>,
}

impl StoredValues {
    /// Returns the offset of the list of where variable-size values start, 8 bytes each: behind the list's length.
    pub fn offsets_start(&self) -> u64 {
        self.start.saturating_add(self.length).saturating_add(8)
    }
}

impl Enumeration {
    /// Reads the payload of an enumeration file.
    ///
    /// # Errors
    /// Fails as unsupported for a later version or an unknown type, and as damaged if there are too few or too many
    /// bytes, or values do not fit the data.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        let version = cursor.u32("version")?;
        if version != 0 {
            return Err(other_version("enumeration", version, 0..=0)).in_field("version").at(0);
        }
        let name = cursor.text32("enumeration name")?.to_owned();
        let file = cursor.text32("enumeration file")?.to_owned();
        let datatype = Datatype::from_number(cursor.u8("datatype")?).in_field("datatype")?;
        let cell_count = CellValNum::parse(&mut cursor)?;
        let ordered = cursor.u8("ordered")? != 0;
        let data = cursor.str64("data")?;
        let data_start = (cursor.position() - data.len()) as u64;
        let offsets = match cell_count {
            CellValNum::Variable => parse_offsets(&mut cursor, data.len() as u64)?,
            CellValNum::Fixed(number) => {
                let size = u64::from(number) * datatype.size() as u64;
                if !(data.len() as u64).is_multiple_of(size) {
                    return Err(cursor.error("data", format!("values of {size} bytes in {}", data.len())));
                }
                Vec::new()
            }
        };
        cursor.expect_end("end of enumeration")?;
        Ok(Enumeration { name, file, datatype, cell_count, ordered, data_start, data: data.to_vec(), offsets })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self.value_size() {
            Some(size) => self.data.len().checked_div(size).unwrap_or(0),
            None => self.offsets.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the little-endian bytes of one value; `None` past the end of the list. Cells may store such indexes;
    /// they have no label.
    pub fn value(&self, position: usize) -> Option<&[u8]> {
        let (start, end) = match self.value_size() {
            Some(size) => {
                let start = position.checked_mul(size)?;
                (start, start.checked_add(size)?)
            }
            None => {
                let start = usize::try_from(*self.offsets.get(position)?).ok()?;
                let next = self.offsets.get(position.checked_add(1)?);
                (start, next.map_or(Some(self.data.len()), |&next| usize::try_from(next).ok())?)
            }
        };
        self.data.get(start..end)
    }

    /// Returns where the payload has the values.
    pub fn stored_values(&self) -> StoredValues {
        StoredValues {
            count: self.len() as u64,
            start: self.data_start,
            length: self.data.len() as u64,
            size: self.value_size().map(|size| size as u64),
        }
    }

    /// Returns the heap memory of this list in bytes.
    pub fn memory(&self) -> usize {
        self.data.capacity() + self.offsets.capacity() * size_of::<u64>()
    }

    /// Returns all values in order.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map_while(|position| self.value(position))
    }

    fn value_size(&self) -> Option<usize> {
        match self.cell_count {
            CellValNum::Fixed(number) => (number as usize).checked_mul(self.datatype.size()),
            CellValNum::Variable => None,
        }
    }
}

/// Reads the starts of values in `data_size` bytes: a size in bytes, and that many bytes of offsets. The end of the
/// last value is not stored.
fn parse_offsets(cursor: &mut Cursor<'_>, data_size: u64) -> Result<Vec<u64>> {
    let bytes = cursor.str64("offsets")?;
    let offsets = parse_starts(bytes, data_size);
    offsets.ok_or_else(|| cursor.error("offsets", format!("offsets that do not fit {data_size} bytes of data")))
}

/// Returns the starts of values that cover `data_size` bytes; `None` unless they begin at 0, never decrease and stay
/// within the data.
pub(super) fn parse_starts(bytes: &[u8], data_size: u64) -> Option<Vec<u64>> {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let starts: Vec<u64> = chunks.iter().map(|&chunk| u64::from_le_bytes(chunk)).collect();
    let covers = match (starts.first(), starts.last()) {
        (Some(&first), Some(&last)) => first == 0 && last <= data_size && starts.is_sorted(),
        _ => data_size == 0,
    };
    (rest.is_empty() && covers).then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilefs_base::error::Error;

    fn write(datatype: Datatype, cell_count: u32, data: &[u8], starts: Option<&[u64]>) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0];
        for name in ["colour", "__0123_0"] {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.push(datatype as u8);
        bytes.extend(cell_count.to_le_bytes());
        bytes.push(1);
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(data);
        if let Some(starts) = starts {
            bytes.extend((8 * starts.len() as u64).to_le_bytes());
            bytes.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        }
        bytes
    }

    proptest! {
        #[test]
        fn strings_come_back(values in prop::collection::vec("\\PC{0,6}", 0..8)) {
            let data = values.concat();
            let starts: Vec<u64> = values.iter().scan(0, |at, value| {
                let start = *at;
                *at += value.len() as u64;
                Some(start)
            }).collect();
            let bytes = write(Datatype::StringUtf8, u32::MAX, data.as_bytes(), Some(&starts));
            let parsed = Enumeration::parse(&bytes).unwrap();
            prop_assert_eq!(parsed.len(), values.len());
            prop_assert!(parsed.values().eq(values.iter().map(|value| value.as_bytes())));
            prop_assert_eq!(parsed.value(values.len()), None);
            let stored = parsed.stored_values();
            prop_assert_eq!((stored.count, stored.size), (values.len() as u64, None));
            prop_assert_eq!(&bytes[stored.start as usize..][..stored.length as usize], data.as_bytes());
            let listed: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
            prop_assert_eq!(&bytes[stored.offsets_start() as usize..], listed);
            for cut in 0..bytes.len() {
                prop_assert!(Enumeration::parse(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn fixed_values() {
        let parsed = Enumeration::parse(&write(Datatype::Int16, 2, &[1, 0, 2, 0, 3, 0, 4, 0], None)).unwrap();
        assert_eq!((parsed.name.as_str(), parsed.file.as_str(), parsed.ordered), ("colour", "__0123_0", true));
        assert_eq!(parsed.value(1), Some(&[3, 0, 4, 0][..]));
        assert_eq!((parsed.len(), parsed.value(2), parsed.value(usize::MAX)), (2, None, None));
        let stored = parsed.stored_values();
        assert_eq!((stored.count, stored.length, stored.size), (2, 8, Some(4)));
        assert!(Enumeration::parse(&write(Datatype::Int16, 2, &[0; 6], None)).is_err());
        assert!(Enumeration::parse(&write(Datatype::Int16, 0, &[], None)).is_err());
        assert!(Enumeration::parse(&write(Datatype::Int64, u32::MAX - 1, &[0; 8], None)).is_err());
    }

    #[test]
    fn empty_lists_and_empty_strings_differ() {
        assert!(Enumeration::parse(&write(Datatype::StringAscii, u32::MAX, &[], Some(&[]))).unwrap().is_empty());
        let one = Enumeration::parse(&write(Datatype::StringAscii, u32::MAX, &[], Some(&[0]))).unwrap();
        assert_eq!((one.len(), one.value(0)), (1, Some(&[][..])));
    }

    #[test]
    fn offsets_that_do_not_fit_are_damage() {
        for starts in [&[0, 3, 2][..], &[0, 5], &[1], &[], &[0, u64::MAX]] {
            let bytes = write(Datatype::StringAscii, u32::MAX, b"abcd", Some(starts));
            assert!(matches!(Enumeration::parse(&bytes), Err(Error::Damaged { .. })), "{starts:?}");
        }
    }
}
