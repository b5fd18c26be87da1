//! The values of one field for some cells, in memory.

use std::str;

use tilefs_base::error::{Error, Result};
use tilefs_format::datatype::Datatype;

use super::number::Number;

/// The values of a dimension or an attribute for consecutive cells or rows: little-endian, end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    field: String,
    datatype: Datatype,
    bytes: Vec<u8>,
    extent: ValueExtent,
    /// One byte for each cell, 0 for null; `None` if the field is not nullable.
    validity_bytes: Option<Vec<u8>>,
}

/// The location of each cell's value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueExtent {
    /// All cells have this many bytes.
    Fixed(usize),
    /// The offset of each value, and the end of the last.
    Variable(Vec<u64>),
}

impl Values {
    /// Creates values of `size` bytes each.
    pub(super) fn fixed(field: &str, datatype: Datatype, size: usize, bytes: Vec<u8>) -> Self {
        Self::new(field, datatype, ValueExtent::Fixed(size.max(1)), bytes)
    }

    /// Creates values that lie between consecutive `offsets`, which ascend from 0 to the length of `bytes`.
    pub(super) fn variable(field: &str, datatype: Datatype, offsets: Vec<u64>, bytes: Vec<u8>) -> Self {
        Self::new(field, datatype, ValueExtent::Variable(offsets), bytes)
    }

    fn new(field: &str, datatype: Datatype, extent: ValueExtent, bytes: Vec<u8>) -> Self {
        Values { field: field.to_owned(), datatype, bytes, extent, validity_bytes: None }
    }

    /// Adds a validity byte for each cell.
    pub(super) fn with_validity(self, validity_bytes: Option<Vec<u8>>) -> Self {
        Values { validity_bytes, ..self }
    }

    /// Returns the name of the dimension or attribute.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the type of each value.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        match &self.extent {
            ValueExtent::Fixed(size) => self.bytes.len() / size,
            ValueExtent::Variable(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Returns whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of all values, end to end. Null cells have the bytes that are stored for them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the byte offset of each value of variable size, and the end of the last one; `None` if all values have
    /// one size.
    pub fn offsets(&self) -> Option<&[u64]> {
        match &self.extent {
            ValueExtent::Fixed(_) => None,
            ValueExtent::Variable(offsets) => Some(offsets),
        }
    }

    /// Returns a byte for each cell, 0 for null; `None` if the field is not nullable.
    pub fn validity(&self) -> Option<&[u8]> {
        self.validity_bytes.as_deref()
    }

    /// Returns whether a cell is null; false past the end.
    pub fn is_null(&self, cell: usize) -> bool {
        self.validity_bytes.as_ref().and_then(|bytes| bytes.get(cell)) == Some(&0)
    }

    /// Returns the bytes of one cell; `None` for null and past the end.
    pub fn get(&self, cell: usize) -> Option<&[u8]> {
        if self.is_null(cell) {
            return None;
        }
        match &self.extent {
            ValueExtent::Fixed(size) => self.bytes.chunks_exact(*size).nth(cell),
            ValueExtent::Variable(offsets) => {
                let (start, end) = (*offsets.get(cell)?, *offsets.get(cell.checked_add(1)?)?);
                self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
            }
        }
    }

    /// Returns the text of one cell; `None` for null, past the end, and for bytes that are not UTF-8.
    pub fn text(&self, cell: usize) -> Option<&str> {
        self.get(cell).and_then(|bytes| str::from_utf8(bytes).ok())
    }

    /// Returns all values as numbers, including null cells. A cell of several values gives several numbers.
    ///
    /// # Errors
    /// [`Error::Usage`] if the values do not have this type.
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        expect_type::<T>(&self.field, self.datatype)?;
        let numbers = self.bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
        Ok(numbers.map(T::of_little_endian).collect())
    }
}

/// Checks that values of a type can be read as numbers of another.
pub(super) fn expect_type<T: Number>(field: &str, datatype: Datatype) -> Result<()> {
    if T::reads(datatype) {
        return Ok(());
    }
    Err(Error::usage(format!("the values of {field} are {}, not {}", datatype.name(), std::any::type_name::<T>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_divided_by_size_or_by_offsets() {
        let fixed = Values::fixed("a", Datatype::Int16, 2, vec![1, 0, 2, 0, 3, 0]);
        assert_eq!((fixed.len(), fixed.get(2), fixed.get(3)), (3, Some(&[3, 0][..]), None));
        assert_eq!(fixed.to_vec::<i16>().unwrap(), [1, 2, 3]);
        assert!(fixed.to_vec::<u16>().is_err_and(|error| error.to_string().contains("INT16, not u16")));

        let text = Values::variable("b", Datatype::StringUtf8, vec![0, 2, 2, 3], b"abc".to_vec());
        let text = text.with_validity(Some(vec![1, 1, 0]));
        assert_eq!((text.len(), text.text(0), text.text(1), text.text(2)), (3, Some("ab"), Some(""), None));
        assert!(text.is_null(2) && !text.is_null(3));
    }
}
