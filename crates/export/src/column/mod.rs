//! The input of all formats: the values of one attribute or dimension in file order, from any array or slice.

#[doc(hidden)]
pub mod boxes;
#[doc(hidden)]
pub mod computed;
pub mod dataset;
#[doc(hidden)]
pub mod extension;
#[doc(hidden)]
pub mod microseconds;
pub(crate) mod missing;
pub(crate) mod reasons;
pub mod samples;
mod statistics;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error;
use tilefs_base::hex::hex;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;

use crate::content::offsets::Offsets;
use crate::content::validity::Validity;
use crate::geo::georeference::GeoreferencedAxes;
use crate::number;

pub use statistics::ColumnStatistics;

/// The reason why a format cannot hold something, as a sentence for people: "ENVI has no 8-bit signed integers".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrepresentable(pub Cow<'static, str>);

impl Unrepresentable {
    /// Creates a reason from a constant or formatted sentence.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Unrepresentable(reason.into())
    }
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Unrepresentable> for error::Error {
    fn from(Unrepresentable(reason): Unrepresentable) -> Self {
        error::Error::unsupported(reason)
    }
}

/// A file in some format, or the reason why that format cannot hold it. Making a file reads no cells.
pub type FormatResult<T> = Result<T, Unrepresentable>;

/// The name of each column that a format omitted, with the reason.
pub type LeftOut = Vec<(String, Unrepresentable)>;

/// A file of several columns, and the columns that the format had to omit.
#[derive(Clone)]
pub struct Exported {
    /// The content of the file.
    pub content: Arc<dyn Content>,
    /// The columns that the format cannot hold, each with the reason.
    pub left_out: LeftOut,
}

/// Checks the lengths of columns that have a cell for each row, and returns the number of rows.
pub(super) fn checked_rows(columns: &[Column]) -> FormatResult<u64> {
    let rows = columns.first().map_or(0, Column::cells);
    for column in columns {
        column.check()?;
        if column.cells() != rows {
            let name = &column.field.name;
            return Err(Unrepresentable::new(format!("{name}: not the same number of rows as the others")));
        }
    }
    Ok(rows)
}

/// Applies `make` to each column that a format can hold; returns the reasons for the columns it omits.
pub(super) fn held_columns<T>(
    columns: &[Column],
    format: &str,
    make: impl Fn(&Column) -> FormatResult<T>,
) -> FormatResult<(Vec<T>, LeftOut)> {
    checked_rows(columns)?;
    let (mut held, mut left_out) = (Vec::new(), Vec::new());
    for column in columns {
        match make(column) {
            Ok(made) => held.push(made),
            Err(reason) => left_out.push((column.field.name.clone(), reason)),
        }
    }
    if held.is_empty() {
        return Err(Unrepresentable::new(format!("{format} cannot hold any column of this array")));
    }
    Ok((held, left_out))
}

/// The labels of an enumeration, in the order of their codes.
#[derive(Debug, Clone)]
pub struct Labels {
    /// The enumeration's name.
    pub name: String,
    /// The datatype of one value. A text label consists of any number of values, a numeric label of exactly one.
    pub datatype: Datatype,
    /// Whether the order of the codes is meaningful.
    pub ordered: bool,
    /// Each label's bytes, little-endian.
    pub values: Vec<Vec<u8>>,
}

impl Labels {
    /// Returns whether the labels are of a type of text, and all of them valid in its encoding.
    pub(crate) fn are_text(&self) -> bool {
        let is_text = |label: &Vec<u8>| match self.datatype.size() {
            2 => {
                let (units, rest) = label.as_chunks();
                rest.is_empty()
                    && char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit))).all(|c| c.is_ok())
            }
            4 => {
                let (codes, rest) = label.as_chunks();
                rest.is_empty() && codes.iter().all(|code| char::from_u32(u32::from_le_bytes(*code)).is_some())
            }
            _ => std::str::from_utf8(label).is_ok(),
        };
        text::is_text(self.datatype) && self.values.iter().all(is_text)
    }

    /// Returns the labels as UTF-8 if all of them are text, otherwise as stored, so that distinct labels stay distinct.
    pub(crate) fn utf8_or_stored(&self) -> Vec<Vec<u8>> {
        if self.are_text() { self.shown() } else { self.values.clone() }
    }

    /// Returns each label as texts show values of its type: text as UTF-8, or as stored if it is not valid, so that
    /// distinct labels stay distinct; bytes hexadecimal; numbers, dates and booleans in words.
    pub fn shown(&self) -> Vec<Vec<u8>> {
        let shown = |label: &Vec<u8>| match self.datatype.kind() {
            Kind::Bytes if text::is_text(self.datatype) => {
                text::decode(self.datatype, label).map_or(label.clone(), |text| text.into_owned().into_bytes())
            }
            Kind::Bytes => hex(label).into_bytes(),
            _ => number::word(self.datatype, label).unwrap_or_default().into_bytes(),
        };
        self.values.iter().map(shown).collect()
    }

    /// Returns the least and the greatest label, if all of them are integers, dates or times.
    pub(crate) fn bounds(&self) -> Option<(i128, i128)> {
        let numbers = self.values.iter().map(|label| number::integer(self.datatype, label));
        numbers.collect::<Option<Vec<_>>>().and_then(|n| Some((*n.iter().min()?, *n.iter().max()?)))
    }

    /// Returns the labels as a column of this name: numbers, UTF-8, or bytes if not all of them are text.
    pub fn column(&self, name: &str) -> Column {
        let count = self.values.len() as u64;
        if self.datatype.kind() != Kind::Bytes {
            let field = Field::new(name, self.datatype);
            let column = Column::fixed(field, vec![count], Arc::new(self.values.concat()));
            return Column { bounds: self.bounds(), ..column };
        }
        let stored = self.utf8_or_stored();
        let mut end = 0;
        let ends = stored.iter().map(|label| {
            end += label.len() as u64;
            end
        });
        let datatype = if self.are_text() { Datatype::StringUtf8 } else { Datatype::Blob };
        let offsets: Vec<u8> = [0].into_iter().chain(ends).flat_map(u64::to_le_bytes).collect();
        let field = Field::new(name, datatype).with_values_per_cell(None);
        Column::variable(field, vec![count], Arc::new(stored.concat()), Arc::new(offsets))
    }
}

/// The description of an attribute or dimension, known without reading any cell: enough to decide whether a format can
/// hold it.
#[derive(Debug, Clone)]
pub struct Field {
    /// The user's name for it; never empty.
    pub name: String,
    /// The stored type of a value.
    pub datatype: Datatype,
    /// The array's own type, if the values were converted from it.
    pub stored_as: Option<Datatype>,
    /// Number of values in each cell; `None` if it varies from cell to cell.
    pub values_per_cell: Option<u32>,
    /// Whether cells can be null.
    pub nullable: bool,
    /// The bytes of a cell that was never written; empty for dimensions, which have none.
    pub fill: Vec<u8>,
    /// One value that marks missing data: either chosen by the writer for that purpose, or the value of unwritten cells
    /// if no other cell has it.
    pub no_data: Option<Vec<u8>>,
    /// One value that no valid cell has and that can represent null.
    pub null: Option<Vec<u8>>,
    /// The labels of the values, if they are codes of an enumeration.
    pub labels: Option<Arc<Labels>>,
    /// Metadata of the array about this field alone, and notes added by tilefs, for formats that can store them.
    pub notes: Vec<Metadatum>,
}

impl Field {
    /// Creates a field of single values that is not nullable and has neither fill value nor labels.
    pub fn new(name: impl Into<String>, datatype: Datatype) -> Self {
        let name = name.into();
        Field {
            name,
            datatype,
            stored_as: None,
            values_per_cell: Some(1),
            nullable: false,
            fill: Vec::new(),
            no_data: None,
            null: None,
            labels: None,
            notes: Vec::new(),
        }
    }

    /// Sets the number of values in each cell, `None` if it varies.
    pub fn with_values_per_cell(mut self, values: Option<u32>) -> Self {
        self.values_per_cell = values;
        self
    }

    /// Sets whether the field is nullable.
    pub fn with_nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }

    /// Sets the fill value, as the bytes of one cell.
    pub fn with_fill(mut self, fill: impl Into<Vec<u8>>) -> Self {
        self.fill = fill.into();
        self
    }

    /// Sets the value that marks missing data.
    pub fn with_no_data(mut self, value: impl Into<Vec<u8>>) -> Self {
        self.no_data = Some(value.into());
        self
    }

    /// Sets the labels of which the values are codes.
    pub fn with_labels(mut self, labels: Arc<Labels>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// Returns the number of bytes of one cell; `None` if it varies.
    pub fn cell_size(&self) -> Option<u64> {
        self.values_per_cell.map(|values| u64::from(values) * self.datatype.size() as u64)
    }

    /// Returns whether a cell is a sequence of bytes or characters rather than of numbers.
    pub fn is_bytes(&self) -> bool {
        self.datatype.kind() == Kind::Bytes
    }

    /// Returns the fill value of a single value, if all values of a cell have the same fill value.
    pub fn fill_of_one_value(&self) -> Option<&[u8]> {
        let size = self.datatype.size();
        let first = self.fill.get(..size)?;
        self.fill.chunks(size).all(|value| value == first).then_some(first)
    }
}

/// The values of one attribute or dimension in file order.
#[derive(Clone)]
pub struct Column {
    /// Name, type and description of the values.
    pub field: Field,
    /// Dense: the length of each axis, row-major. Sparse, and for coordinates along one axis: the number of rows.
    pub shape: Vec<u64>,
    /// The values, little-endian, cell by cell.
    pub values: Arc<dyn Content>,
    /// If the number of values varies: for n cells, n + 1 byte offsets into `values` (u64, little-endian). The first is
    /// 0, they never decrease, and the last is the length of `values`.
    pub offsets: Option<Offsets>,
    /// Lists whose elements are texts or can be null: `offsets` then count elements instead of bytes, and a null cell
    /// has no elements. Only Arrow and Parquet hold such columns.
    pub elements: Option<Elements>,
    /// Which cells are null, if the field is nullable. A null cell still has a value.
    pub validity: Option<Validity>,
    /// Text of variable length: the bytes of the longest value, if the caller has examined all values.
    pub longest: Option<u64>,
    /// Bounds of all integer (or date) values, if known without reading them: the ends of an axis, or a sparse array's
    /// non-empty domain. They let a format choose a narrower type.
    pub bounds: Option<(i128, i128)>,
    /// The least and the greatest integer or date that the array has in this field, in any row, if they are known. "Not a
    /// time" counts as its number.
    pub extremes: Option<(i128, i128)>,
    /// Bounds of the values of row ranges known without reading them, for formats that store such statistics.
    pub statistics: Option<Arc<dyn ColumnStatistics>>,
    /// If rows are sorted by this column: the number of columns by which they are sorted first.
    pub sort_rank: Option<usize>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("field", &self.field).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Column {
    /// Creates a column whose cells all have the same size. `values` holds as many cells as `shape` implies.
    pub fn fixed(field: Field, shape: Vec<u64>, values: Arc<dyn Content>) -> Self {
        Column {
            field,
            shape,
            values,
            offsets: None,
            elements: None,
            validity: None,
            longest: None,
            bounds: None,
            extremes: None,
            statistics: None,
            sort_rank: None,
        }
    }

    /// Creates a column whose cells vary in size.
    pub fn variable(field: Field, shape: Vec<u64>, values: Arc<dyn Content>, offsets: impl Into<Offsets>) -> Self {
        Column { offsets: Some(offsets.into()), ..Self::fixed(field, shape, values) }
    }

    /// Makes the cells lists of such elements. The field then describes an element, and its offsets count elements.
    pub fn with_elements(mut self, elements: Elements) -> Self {
        self.elements = Some(elements);
        self
    }

    /// Makes the column nullable.
    pub fn with_validity(mut self, validity: impl Into<Validity>) -> Self {
        self.field.nullable = true;
        self.validity = Some(validity.into());
        self
    }

    /// Sets the bounds: no integer of the column lies outside `lowest..=highest`.
    pub fn with_bounds(mut self, lowest: i128, highest: i128) -> Self {
        self.bounds = Some((lowest, highest));
        self
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.shape.iter().fold(1, |product, &length| product.saturating_mul(length))
    }

    /// Checks that the lengths of the contents agree with the shape, as every format assumes.
    pub fn check(&self) -> FormatResult<()> {
        let cells = self.cells();
        let agree = match (self.field.cell_size(), &self.offsets) {
            (Some(size), _) => cells.checked_mul(size) == Some(self.values.len()),
            (None, Some(offsets)) => cells.checked_add(1).and_then(|n| n.checked_mul(8)) == Some(offsets.len()),
            (None, None) => false,
        };
        let agree = agree && self.elements.as_ref().is_none_or(|elements| elements.agree_with(self));
        if !agree || self.validity.as_ref().is_some_and(|validity| validity.len() != cells) {
            return Err(Unrepresentable::new(format!("{}: its length does not agree with its shape", self.field.name)));
        }
        Ok(())
    }
}

/// The elements of cells that are lists: texts, or numbers of which any can be null.
#[derive(Clone)]
pub struct Elements {
    /// For texts, the position in the values, in bytes, at which each element begins, and the end of the last element.
    /// `None` for numbers, which all have the same size.
    pub offsets: Option<Offsets>,
    /// Which elements are null. A null number still has a value; a null text is empty.
    pub validity: Validity,
}

impl Elements {
    /// Returns the number of elements of all cells.
    pub fn count(&self) -> u64 {
        self.validity.len()
    }

    fn agree_with(&self, column: &Column) -> bool {
        let length = match &self.offsets {
            Some(offsets) => self.count().checked_add(1).and_then(|n| n.checked_mul(8)) == Some(offsets.len()),
            None => self.count().checked_mul(column.field.datatype.size() as u64) == Some(column.values.len()),
        };
        length && column.offsets.is_some()
    }
}

/// One key of the array's metadata.
#[derive(Debug, Clone)]
pub struct Metadatum {
    /// The key.
    pub key: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// The values, little-endian.
    pub value: Vec<u8>,
}

impl Metadatum {
    /// Creates a key whose value is a text.
    pub fn text(key: impl Into<String>, text: impl Into<String>) -> Self {
        Metadatum { key: key.into(), datatype: Datatype::StringUtf8, value: text.into().into_bytes() }
    }
}

/// Additional coordinates along one axis, besides those by which cells are looked up.
#[derive(Clone)]
pub struct AuxiliaryCoordinates<C> {
    /// The number of the dimension that the coordinates describe.
    pub axis: usize,
    /// The coordinates.
    pub column: C,
}

/// All columns of one array or slice, for formats that hold all of them in one file. `C` is the representation of the
/// cells.
#[derive(Clone)]
pub struct Columns<C = Column> {
    /// Whether there is one row per cell, rather than a grid.
    pub sparse: bool,
    /// Dense: the coordinates along each axis. Sparse: one coordinate per cell.
    pub dimensions: Vec<C>,
    /// Dense: one value per cell of the grid, row-major. Sparse: one per row.
    pub attributes: Vec<C>,
    /// The array's metadata.
    pub metadata: Vec<Metadatum>,
    /// Dense: additional coordinates along axes.
    pub auxiliary: Vec<AuxiliaryCoordinates<C>>,
    /// Dense: the axes that have a georeference, if the metadata contains one.
    pub georeference: Option<GeoreferencedAxes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_compares_lengths_with_the_shape() {
        let field = Field::new("a", Datatype::Int16);
        let right = Column::fixed(field.clone(), vec![2, 3], Arc::new(vec![0; 12]));
        assert!(right.check().is_ok());
        assert!(right.clone().with_validity(Arc::new(vec![1; 5])).check().is_err());
        assert!(Column::fixed(field.clone(), vec![2, 3], Arc::new(vec![0; 11])).check().is_err());
        let field = field.with_values_per_cell(None);
        assert!(Column::variable(field.clone(), vec![2], Arc::new(vec![]), Arc::new(vec![0; 24])).check().is_ok());
        assert!(Column::variable(field, vec![2], Arc::new(vec![]), Arc::new(vec![0; 16])).check().is_err());
    }

    #[test]
    fn fill_of_one_value_requires_equal_values() {
        let field = Field::new("a", Datatype::Int16).with_values_per_cell(Some(2));
        assert_eq!(field.clone().with_fill([1, 2, 1, 2]).fill_of_one_value(), Some(&[1u8, 2][..]));
        assert_eq!(field.clone().with_fill([1, 2, 3, 4]).fill_of_one_value(), None);
        assert_eq!(field.fill_of_one_value(), None);
    }
}
