//! The cells of generated fragments: the interface between the shapes of arrays and the code that writes files. All
//! stored bytes of a fragment are computed from the numbers of its cells.

use std::ops::Range;

/// A dimension or an attribute.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub datatype: Datatype,
    /// Values of a cell; `None` if they vary in number.
    pub values: Option<u32>,
    /// The number of cells after which the values of an attribute repeat; 0 for fields without stored extremes.
    pub period: u64,
}

impl Field {
    /// Returns the bytes of a cell, if all cells have the same size.
    pub fn cell_size(&self) -> Option<u64> {
        self.values.map(|values| u64::from(values) * self.datatype.size())
    }
}

/// The datatypes in use, with their numbers in the format.
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

    /// Returns the fill value.
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

/// A dimension's domain, both ends included, and the extent of its space tiles.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub domain: (i64, i64),
    pub extent: i64,
}

/// The lowest and the highest coordinate of each dimension.
pub type Bounds = Vec<(i64, i64)>;

/// The cells of all fragments of an array. Fragments are identified by number, and so are the cells of each, in global
/// order.
pub trait Cells: Send + Sync {
    fn axes(&self) -> &[Axis];

    fn dimensions(&self) -> &[Field];

    fn attributes(&self) -> &[Field];

    /// Returns the bounding box of a range of cells.
    fn bounds(&self, fragment: u64, cells: Range<u64>) -> Bounds;

    /// Returns the sum of the coordinates of a range of cells along a dimension.
    fn sum_of_coordinates(&self, dimension: usize, fragment: u64, cells: Range<u64>) -> i64;

    /// Appends the coordinates of a range of cells along a dimension.
    fn write_dimension(&self, dimension: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>);

    /// Appends the values of a range of cells.
    fn write_attribute(&self, attribute: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>);

    /// Returns the bytes of all values before a cell, for an attribute of variable-size values.
    fn bytes_before(&self, attribute: usize, fragment: u64, cell: u64) -> u64;
}
