//! What the formats are given: the values of one attribute or dimension, in file order, whatever array
//! or slice they come from.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::error;
use tilefs_format::text;

use super::content::Content;
use super::georeference::GeoreferencedAxes;
use super::number;

/// Why a format cannot hold something, as a sentence for people: "ENVI has no 8-bit signed integers".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrepresentable(pub Cow<'static, str>);

impl Unrepresentable {
    /// From a constant or a made-up sentence.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Unrepresentable(reason.into())
    }
}

impl fmt::Display for Unrepresentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file in some format, or why that format cannot hold it. Making one reads no cells.
pub type FormatResult<T> = Result<T, Unrepresentable>;

/// The name of each column that a format left out, and why.
pub type LeftOut = Vec<(String, Unrepresentable)>;

/// A file of several columns, and those that the format had to leave out.
#[derive(Clone)]
pub struct Exported {
    pub content: Arc<dyn Content>,
    pub left_out: LeftOut,
}

/// What a format makes of the columns of a table that it can hold, and why it leaves out the others.
pub(super) fn held_columns<T>(
    columns: &[Column],
    format: &str,
    make: impl Fn(&Column) -> FormatResult<T>,
) -> FormatResult<(Vec<T>, LeftOut)> {
    let rows = columns.first().map_or(0, Column::cells);
    let (mut held, mut left_out) = (Vec::new(), Vec::new());
    for column in columns {
        column.check()?;
        if column.cells() != rows {
            return Err(Unrepresentable::new(format!("{}: not as many rows as the others", column.field.name)));
        }
        match make(column) {
            Ok(made) => held.push(made),
            Err(reason) => left_out.push((column.field.name.clone(), reason)),
        }
    }
    if held.is_empty() {
        return Err(Unrepresentable::new(format!("{format} can hold no column of this array")));
    }
    Ok((held, left_out))
}

/// The labels of an enumeration, in the order of their codes.
#[derive(Debug, Clone)]
pub struct Labels {
    /// The enumeration's name.
    pub name: String,
    /// Of one value of a label. Text labels are any number of these values, numbers exactly one.
    pub datatype: Datatype,
    /// Whether the order of the codes means something.
    pub ordered: bool,
    /// Each label's bytes, little-endian.
    pub values: Vec<Vec<u8>>,
}

impl Labels {
    /// Whether all labels are text in the encoding that their type has.
    pub fn are_text(&self) -> bool {
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
        self.datatype.kind() == Kind::Bytes && self.values.iter().all(is_text)
    }

    /// The labels as UTF-8 if all of them are text, else as they are stored, so that none loses what tells it from others.
    pub fn utf8_or_stored(&self) -> Vec<Vec<u8>> {
        match self.are_text() {
            true => self.shown(),
            false => self.values.clone(),
        }
    }

    /// Each label as texts show it: decoded as UTF-8 where it is text, printed where it is a number, else as it is stored, so
    /// that none loses what tells it from others.
    pub fn shown(&self) -> Vec<Vec<u8>> {
        let shown = |label: &Vec<u8>| match self.datatype.kind() {
            Kind::Bytes => {
                text::decode(self.datatype, label).map_or(label.clone(), |text| text.into_owned().into_bytes())
            }
            _ => number::text(self.datatype, label).unwrap_or_default().into_bytes(),
        };
        self.values.iter().map(shown).collect()
    }

    /// The labels as a column of this name: numbers, UTF-8, or bytes where not all of them are text.
    pub fn column(&self, name: &str) -> Column {
        let count = self.values.len() as u64;
        if self.datatype.kind() != Kind::Bytes {
            return Column::fixed(Field::new(name, self.datatype), vec![count], Arc::new(self.values.concat()));
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

/// What is known of an attribute or dimension without reading any cell: enough to tell whether a format
/// can hold it.
#[derive(Debug, Clone)]
pub struct Field {
    /// As the user named it; never empty.
    pub name: String,
    pub datatype: Datatype,
    /// The array's own type, where the values were converted from that.
    pub stored_as: Option<Datatype>,
    /// Values in each cell; `None` where every cell has its own number.
    pub values_per_cell: Option<u32>,
    pub nullable: bool,
    /// The bytes of one cell that was never written; empty where there is no such thing (dimensions).
    pub fill: Vec<u8>,
    /// The value, one of a cell's, that marks what is missing: the writer chose it for that, or it is what cells hold
    /// that were never written and no other cell does.
    pub no_data: Option<Vec<u8>>,
    /// A value, one of a cell's, that no valid cell has and that may stand for null.
    pub null: Option<Vec<u8>>,
    pub labels: Option<Arc<Labels>>,
    /// What the array's metadata says of this field alone, and remarks of ours, for formats that have a place for it.
    pub notes: Vec<Metadatum>,
}

impl Field {
    /// A field of single values that is not nullable and has neither fill value nor labels.
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

    /// The same field with so many values in each cell, `None` for a number that varies.
    pub fn with_values_per_cell(mut self, values: Option<u32>) -> Self {
        self.values_per_cell = values;
        self
    }

    /// The same field, nullable or not.
    pub fn with_nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }

    /// The same field with this fill value, the bytes of one cell.
    pub fn with_fill(mut self, fill: impl Into<Vec<u8>>) -> Self {
        self.fill = fill.into();
        self
    }

    /// The same field, in which this value marks what is missing.
    pub fn with_no_data(mut self, value: impl Into<Vec<u8>>) -> Self {
        self.no_data = Some(value.into());
        self
    }

    /// The same field, whose values are codes of these labels.
    pub fn with_labels(mut self, labels: Arc<Labels>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// Bytes of one cell; `None` where it varies.
    pub fn cell_size(&self) -> Option<u64> {
        self.values_per_cell.map(|values| u64::from(values) * self.datatype.size() as u64)
    }

    /// Whether a cell is a run of bytes or characters rather than of numbers.
    pub fn is_bytes(&self) -> bool {
        self.datatype.kind() == Kind::Bytes
    }

    /// The fill value of one value, where all values of the cell have the same.
    pub fn fill_of_one_value(&self) -> Option<&[u8]> {
        let size = self.datatype.size();
        let first = self.fill.get(..size)?;
        self.fill.chunks(size).all(|value| value == first).then_some(first)
    }
}

/// The values of one attribute or dimension in file order.
#[derive(Clone)]
pub struct Column {
    pub field: Field,
    /// Dense: the length of each axis, row-major. Sparse, and the coordinates along one axis: the rows.
    pub shape: Vec<u64>,
    /// The values, little-endian, cell after cell.
    pub values: Arc<dyn Content>,
    /// Where the number of values varies: for n cells n + 1 offsets in bytes into `values`, u64
    /// little-endian, the first 0, none lower than the one before, the last the length of `values`.
    pub offsets: Option<Arc<dyn Content>>,
    /// Nullable: one byte a cell, 0 for null. A null cell still has a value.
    pub validity: Option<Arc<dyn Content>>,
    /// Of text of variable length: bytes of the longest value, where the caller looked at all of them.
    pub longest: Option<u64>,
    /// No integer (or date) value lies outside these, where that is known without reading: the ends of an
    /// axis, a sparse array's non-empty domain. Lets a format choose a narrower type.
    pub bounds: Option<(i128, i128)>,
    /// What is known of the values without reading them, for the formats that say it.
    pub summaries: Option<Arc<dyn Summaries>>,
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("field", &self.field).field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Column {
    /// A column whose cells all have the same size. `values` holds as many cells as `shape` says.
    pub fn fixed(field: Field, shape: Vec<u64>, values: Arc<dyn Content>) -> Self {
        Column { field, shape, values, offsets: None, validity: None, longest: None, bounds: None, summaries: None }
    }

    /// A column whose cells have a size each.
    pub fn variable(field: Field, shape: Vec<u64>, values: Arc<dyn Content>, offsets: Arc<dyn Content>) -> Self {
        Column {
            field,
            shape,
            values,
            offsets: Some(offsets),
            validity: None,
            longest: None,
            bounds: None,
            summaries: None,
        }
    }

    /// The same column, nullable.
    pub fn with_validity(mut self, validity: Arc<dyn Content>) -> Self {
        self.field.nullable = true;
        self.validity = Some(validity);
        self
    }

    /// The same column, none of whose integers lies outside `lowest..=highest`.
    pub fn with_bounds(mut self, lowest: i128, highest: i128) -> Self {
        self.bounds = Some((lowest, highest));
        self
    }

    /// How many cells there are.
    pub fn cells(&self) -> u64 {
        self.shape.iter().fold(1, |product, &length| product.saturating_mul(length))
    }

    /// Whether the lengths of the contents agree with the shape, as every format assumes.
    pub fn check(&self) -> FormatResult<()> {
        let cells = self.cells();
        let agree = match (self.field.cell_size(), &self.offsets) {
            (Some(size), _) => cells.checked_mul(size) == Some(self.values.len()),
            (None, Some(offsets)) => cells.checked_add(1).and_then(|n| n.checked_mul(8)) == Some(offsets.len()),
            (None, None) => false,
        };
        if !agree || self.validity.as_ref().is_some_and(|validity| validity.len() != cells) {
            return Err(Unrepresentable::new(format!("{}: its length does not agree with its shape", self.field.name)));
        }
        Ok(())
    }
}

/// What is known of the values of consecutive rows without reading them.
pub trait Summaries: Send + Sync {
    /// Of the values in some rows; `None` where nothing is known of them.
    ///
    /// # Errors
    /// When metadata that say it cannot be read.
    fn summary(&self, rows: Range<u64>) -> error::Result<Option<Summary>>;
}

/// Bounds: no value in some rows that is not null is less or greater. They need not be values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The bytes of a value, little-endian.
    pub least: Vec<u8>,
    pub greatest: Vec<u8>,
}

/// One key of the array's metadata.
#[derive(Debug, Clone)]
pub struct Metadatum {
    pub key: String,
    pub datatype: Datatype,
    /// The values, little-endian.
    pub value: Vec<u8>,
}

/// Coordinates along one axis beside those that cells are looked up by.
#[derive(Clone)]
pub struct AuxiliaryCoordinates<C> {
    pub axis: usize,
    pub column: C,
}

/// All that one array or slice shows, for the formats that hold all of it in one file.
#[derive(Clone)]
pub struct Columns {
    /// Whether there is one row per cell, rather than a grid.
    pub sparse: bool,
    /// Dense: the coordinates along each axis. Sparse: one coordinate per cell.
    pub dimensions: Vec<Column>,
    /// Dense: one value per cell of the grid, row-major. Sparse: one per row.
    pub attributes: Vec<Column>,
    /// The array's metadata.
    pub metadata: Vec<Metadatum>,
    /// Dense: further coordinates along axes.
    pub auxiliary: Vec<AuxiliaryCoordinates<Column>>,
    /// Dense: which axes lie where on the Earth, if the metadata says so.
    pub georeference: Option<GeoreferencedAxes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_knows_whether_its_lengths_agree() {
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
    fn the_fill_of_one_value_is_that_of_all() {
        let field = Field::new("a", Datatype::Int16).with_values_per_cell(Some(2));
        assert_eq!(field.clone().with_fill([1, 2, 1, 2]).fill_of_one_value(), Some(&[1u8, 2][..]));
        assert_eq!(field.clone().with_fill([1, 2, 3, 4]).fill_of_one_value(), None);
        assert_eq!(field.fill_of_one_value(), None);
    }
}
