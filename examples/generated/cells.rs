//! Which cells a generated fragment has: what both shapes of arrays tell the rest, so that all that is stored of a
//! fragment follows from the numbers of its cells.

use std::ops::Range;

/// A dimension or an attribute.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub datatype: Datatype,
    /// Values of a cell; `None` where cells have values of different lengths.
    pub values: Option<u32>,
    /// After so many cells the values of an attribute come again; 0 for what has no least and greatest values.
    pub period: u64,
}

impl Field {
    /// Bytes of a cell, where all have the same.
    pub fn cell_size(&self) -> Option<u64> {
        self.values.map(|values| u64::from(values) * self.datatype.size())
    }
}

/// The types that are there, by their numbers in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datatype {
    Int32 = 0,
    Int64 = 1,
    Float32 = 2,
    Char = 4,
    Utf8 = 12,
}

impl Datatype {
    pub fn size(self) -> u64 {
        match self {
            Datatype::Int64 => 8,
            Datatype::Int32 | Datatype::Float32 => 4,
            Datatype::Char | Datatype::Utf8 => 1,
        }
    }

    /// One value that says that there is none.
    pub fn fill(self) -> &'static [u8] {
        match self {
            Datatype::Int32 => &[0, 0, 0, 0x80],
            Datatype::Int64 => &[0, 0, 0, 0, 0, 0, 0, 0x80],
            Datatype::Float32 => &[0, 0, 0xc0, 0x7f],
            Datatype::Char => &[0x80],
            Datatype::Utf8 => &[0],
        }
    }
}

/// A dimension's domain, from its low to its high end, and the extent of its space tiles.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub domain: (i64, i64),
    pub extent: i64,
}

/// The least and the greatest coordinate of each dimension.
pub type Bounds = Vec<(i64, i64)>;

/// The cells of all fragments of an array. Fragments, and the cells of each in global order, are known by their numbers.
pub trait Cells: Send + Sync {
    fn axes(&self) -> &[Axis];

    fn dimensions(&self) -> &[Field];

    fn attributes(&self) -> &[Field];

    /// The smallest box with some cells of a fragment.
    fn bounds(&self, fragment: u64, cells: Range<u64>) -> Bounds;

    /// The sum of the coordinates of some cells of a fragment along a dimension.
    fn sum_of_coordinates(&self, dimension: usize, fragment: u64, cells: Range<u64>) -> i64;

    /// Appends the coordinates of some cells of a fragment along a dimension.
    fn write_dimension(&self, dimension: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>);

    /// Appends the values of some cells of a fragment.
    fn write_attribute(&self, attribute: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>);

    /// The bytes of the values before a cell of a fragment, of an attribute whose values have different lengths.
    fn bytes_before(&self, attribute: usize, fragment: u64, cell: u64) -> u64;
}
