//! The files of a fragment whose cells the filter BITSORT sorted: see [`crate::array::tiles::bitsort`].

use tilefs_format::fragment::FragmentField;
use tilefs_format::pipeline::Filter;
use tilefs_format::schema::Attribute;

use super::outline::{FieldFile, Outline};

/// A file that is in the order of the sorted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortedFile {
    /// The size of each coordinate in bytes.
    Coordinates { size: usize },
    /// The size of each value in bytes.
    Values { size: usize },
}

impl SortedFile {
    /// Returns the kind of a file; `None` for a file in the usual order.
    pub fn of(outline: &Outline, field: FragmentField, file: FieldFile) -> Option<Self> {
        let attributes = &outline.schema.attributes;
        if outline.facts.dense || file != FieldFile::Data || !attributes.iter().any(is_sorted) {
            return None;
        }
        match field {
            FragmentField::Dimension(number) => {
                let dimension = outline.schema.dimensions.get(number)?;
                Some(SortedFile::Coordinates { size: dimension.datatype.size() })
            }
            FragmentField::Attribute(number) => {
                let attribute = attributes.get(number).filter(|one| is_sorted(one))?;
                Some(SortedFile::Values { size: attribute.datatype.size() })
            }
            _ => None,
        }
    }
}

impl SortedFile {
    /// Returns the bytes of a cell.
    pub fn cell_size(self) -> usize {
        match self {
            SortedFile::Coordinates { size } | SortedFile::Values { size } => size,
        }
    }
}

/// Returns whether the filter sorted the values of an attribute.
pub fn is_sorted(attribute: &Attribute) -> bool {
    attribute.filters.filters.contains(&Filter::Bitsort)
}
