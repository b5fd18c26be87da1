//! Locates the values of a dimension label, for selections by label.
//!
//! Labels that TileDB keeps in order are found by binary search, with a few reads; other labels by a linear search. As
//! in TileDB, only the written part counts: the cells around it hold fill values, which are not in order.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::search::partition_point;
use tilefs_export::Column;
use tilefs_export::content::offsets::wrong_offsets;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::{self, Scalar};
use tilefs_format::schema::{CellValNum, DataOrder, DimensionLabel as StoredLabel};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::{AxisSelection, Selection};
use tilefs_select::calendar::Calendar;
use tilefs_select::{DimensionBounds, Label, SelectableLabel};
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::{FieldId, column, describe_field};

/// Maximum number of unordered labels that are searched.
const MAX_SEARCHED: u64 = 1 << 26;

/// Number of unordered labels read at a time.
const READ_AT_ONCE: u64 = 8192;

/// Maximum number of runs of cells in a selection of unordered labels.
const MAX_RUNS: usize = 1 << 20;

/// Maximum length in bytes of a text that is compared.
const LONGEST_TEXT: u64 = 1 << 20;

/// Maximum number of values in [`LabelValues`], and maximum number of bytes of all values.
const MAX_LISTED: u64 = 1 << 20;
const MAX_LISTED_BYTES: u64 = 32 << 20;

/// Returns the dimensions of a sparse array as selections see them, with their labels.
pub fn selectable(array: &Arc<OpenedArray>) -> Vec<DimensionBounds> {
    let dimensions = DimensionBounds::of_schema(array.schema());
    let labels = labels_by_dimension(array);
    dimensions.into_iter().zip(labels).map(|(dimension, labels)| DimensionBounds { labels, ..dimension }).collect()
}

/// Creates a dense array whose dimensions can also be selected by their labels. Reads nothing new.
///
/// # Errors
/// As for [`DenseArray::new`].
pub fn labelled(array: Arc<OpenedArray>) -> Result<DenseArray> {
    let labels = labels_by_dimension(&array);
    Ok(DenseArray::new(array)?.with_labels(labels))
}

/// Returns the labels of each dimension of an array that selections can use: those with one number, date or text per
/// cell.
fn labels_by_dimension(array: &Arc<OpenedArray>) -> Vec<Vec<SelectableLabel>> {
    let schema = array.schema();
    let mut labels = vec![Vec::new(); schema.dimensions.len()];
    for label in &schema.labels {
        if let Some(labels) = labels.get_mut(label.dimension as usize).filter(|_| has_one_value(label)) {
            let searched = SearchedLabel { array: array.clone(), label: label.clone(), written: SingleFlight::new() };
            labels.push(SelectableLabel(Arc::new(searched)));
        }
    }
    labels
}

/// Returns whether each cell of a label has one number, date or text.
fn has_one_value(label: &StoredLabel) -> bool {
    match label.cell_count {
        CellValNum::Fixed(count) => count == 1 && label.datatype.kind() != Kind::Bytes,
        CellValNum::Variable => label.datatype.kind() == Kind::Bytes && label.datatype.size() == 1,
    }
}

/// All values of a label. Memory: about 48 bytes for each value in addition to its own; at most [`MAX_LISTED`] values,
/// of [`MAX_LISTED_BYTES`] together.
pub struct LabelValues {
    /// The position of the first value.
    pub first: u64,
    /// The bytes of each value, little-endian.
    pub values: Vec<Vec<u8>>,
}

/// Returns the values of a label from the first that was written to the last; `None` if selections cannot use the
/// label, or if the values are too many.
///
/// # Errors
/// Fails if the array of the label cannot be read.
pub fn label_values(array: &Arc<OpenedArray>, label: &StoredLabel) -> Result<Option<LabelValues>> {
    if !has_one_value(label) {
        return Ok(None);
    }
    let searched = SearchedLabel { array: array.clone(), label: label.clone(), written: SingleFlight::new() };
    let Some(written) = searched.written()? else { return Ok(Some(LabelValues { first: 0, values: Vec::new() })) };
    if written.column.cells() > MAX_LISTED || written.column.values.len() > MAX_LISTED_BYTES {
        return Ok(None);
    }
    let mut values = Vec::new();
    written.each(|_, value| {
        values.push(value.to_bytes(label.datatype)?);
        Ok(())
    })?;
    Ok(Some(LabelValues { first: written.first, values }))
}

/// A label of an array. The label's own array is opened when a selection uses it. Memory: that of an open array.
struct SearchedLabel {
    array: Arc<OpenedArray>,
    label: StoredLabel,
    /// The written values, if any.
    written: SingleFlight<Option<WrittenRange>>,
}

impl SearchedLabel {
    fn written(&self) -> Result<Option<&WrittenRange>> {
        self.written.get_or_retry(|| self.open()).map(Option::as_ref)
    }

    fn open(&self) -> Result<Option<WrittenRange>> {
        let opened = self.array.label(&self.label)?;
        let dense = Arc::new(DenseArray::new(opened.array.clone())?);
        Ok(match dense.view()?.non_empty_box() {
            Some(found) if !found.low.is_empty() => {
                let (low, high) = (found.low[0], found.high[0]);
                let shown = Selection::new(vec![AxisSelection::contiguous(low, high - low + 1)])?;
                let subarray = DenseSubarray::new(dense, shown);
                let id = FieldId::Attribute(opened.attribute);
                let field = describe_field(id, opened.array.schema(), &self.label.name);
                let column = column(&subarray, id, field)?;
                Some(WrittenRange { first: low, column, order: self.label.order })
            }
            _ => None,
        })
    }

    fn try_bounds(&self) -> Result<DimensionBounds> {
        let ends = match self.written()? {
            Some(written) if self.label.datatype.kind() != Kind::Bytes => written.ends()?,
            _ => None,
        };
        Ok(bounds_of_values(&self.label.name, self.label.datatype, ends))
    }

    fn try_positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Vec<Range<u64>>> {
        let Some(written) = self.written()? else { return Ok(Vec::new()) };
        let runs = match written.order {
            DataOrder::Unordered => written.looked_through(low, high)?,
            DataOrder::Increasing | DataOrder::Decreasing => vec![written.searched(low, high)?],
        };
        let of_dimension = |run: Range<u64>| written.first + run.start..written.first + run.end;
        Ok(runs.into_iter().filter(|run| !run.is_empty()).map(of_dimension).collect())
    }
}

impl Label for SearchedLabel {
    fn name(&self) -> &str {
        &self.label.name
    }

    fn bounds(&self) -> Result<DimensionBounds> {
        self.try_bounds().in_field(&self.label.name).in_array(self.array.path())
    }

    fn positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Vec<Range<u64>>> {
        self.try_positions(low, high).in_field(&self.label.name).in_array(self.array.path())
    }
}

/// A column of numbers or dates as a label: in no order.
pub struct ColumnLabel {
    name: String,
    values: WrittenRange,
    /// The calendar of dates.
    calendar: Calendar,
}

impl ColumnLabel {
    /// Creates the label; `None` if cells are not single numbers or dates, or if there are none.
    pub fn new(name: &str, column: Column) -> Option<Self> {
        let is_number = column.field.values_per_cell == Some(1) && column.field.datatype.kind() != Kind::Bytes;
        let values = WrittenRange { first: 0, column, order: DataOrder::Unordered };
        let calendar = Calendar::default();
        (is_number && values.column.cells() > 0).then(|| ColumnLabel { name: name.to_owned(), values, calendar })
    }

    /// Sets the calendar of the dates.
    pub fn in_calendar(self, calendar: Calendar) -> Self {
        ColumnLabel { calendar, ..self }
    }
}

impl Label for ColumnLabel {
    fn name(&self) -> &str {
        &self.name
    }

    fn bounds(&self) -> Result<DimensionBounds> {
        let bounds = bounds_of_values(&self.name, self.values.datatype(), self.values.ends().in_field(&self.name)?);
        Ok(DimensionBounds { calendar: self.calendar, ..bounds })
    }

    fn positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Vec<Range<u64>>> {
        self.values.looked_through(low, high).in_field(&self.name)
    }
}

/// Returns a label, given its least and greatest value, as selections see it.
fn bounds_of_values(name: &str, datatype: Datatype, ends: Option<(Scalar, Scalar)>) -> DimensionBounds {
    let range = ends.map(|(low, high)| scalar::Range { low, high });
    DimensionBounds {
        name: name.to_owned(),
        datatype,
        domain: None,
        limit: range.clone(),
        shown: range,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }
}

/// The values of a label from the first that was written to the last.
struct WrittenRange {
    /// The position of the first value.
    first: u64,
    column: Column,
    order: DataOrder,
}

impl WrittenRange {
    fn datatype(&self) -> Datatype {
        self.column.field.datatype
    }

    fn value(&self, number: u64) -> Result<Scalar> {
        let (start, end) = match (&self.column.offsets, self.column.field.cell_size()) {
            (Some(offsets), _) => {
                let mut ends = [0; 2];
                offsets.read_into(number, &mut ends)?;
                (ends[0], ends[1])
            }
            (None, size) => {
                let size = size.unwrap_or(1);
                (number.saturating_mul(size), number.saturating_add(1).saturating_mul(size))
            }
        };
        let length = end.checked_sub(start).ok_or_else(wrong_offsets)?;
        if length > LONGEST_TEXT {
            return Err(Error::unsupported(format!("a label of {length} bytes to be searched")));
        }
        let mut bytes = vec![0; length as usize];
        self.column.values.read_at(start, &mut bytes)?;
        Scalar::parse(self.datatype(), &bytes)
    }

    /// Returns the least and the greatest value; `None` if no value is a number.
    fn ends(&self) -> Result<Option<(Scalar, Scalar)>> {
        let last = self.column.cells().checked_sub(1).ok_or_else(|| Error::internal("a label of no cells"))?;
        if self.order == DataOrder::Unordered {
            let mut ends: Option<(Scalar, Scalar)> = None;
            self.each(|_, value| {
                match &mut ends {
                    _ if value.is_nan() => {}
                    None => ends = Some((value.clone(), value)),
                    Some((least, greatest)) if value.compare(least).is_lt() => *least = value,
                    Some((_, greatest)) if value.compare(greatest).is_gt() => *greatest = value,
                    Some(_) => {}
                }
                Ok(())
            })?;
            return Ok(ends);
        }
        let (mut low, mut high) = (self.value(0)?, self.value(last)?);
        if self.order == DataOrder::Decreasing {
            std::mem::swap(&mut low, &mut high);
        }
        match low.compare(&high).is_le() && !low.is_nan() && !high.is_nan() {
            true => Ok(Some((low, high))),
            false => Err(self.disordered()),
        }
    }

    /// Returns the cells from `low` to `high`, for ordered labels.
    fn searched(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Range<u64>> {
        let below = |value: &Scalar| low.is_some_and(|low| value.compare(low).is_lt());
        let above = |value: &Scalar| high.is_some_and(|high| value.compare(high).is_gt());
        Ok(match self.order {
            DataOrder::Decreasing => self.first_after(above)?..self.first_after(|value| !below(value))?,
            _ => self.first_after(below)?..self.first_after(|value| !above(value))?,
        })
    }

    /// Returns the first cell for which `is_before` is false. `is_before` must be true for all cells before that cell,
    /// and false for all cells after it.
    fn first_after(&self, is_before: impl Fn(&Scalar) -> bool) -> Result<u64> {
        let (mut least, mut greatest): (Option<Scalar>, Option<Scalar>) = (None, None);
        partition_point(0..self.column.cells(), |cell| {
            let value = self.value(cell)?;
            let is_between = least.as_ref().is_none_or(|least| self.in_order(least, &value))
                && greatest.as_ref().is_none_or(|greatest| self.in_order(&value, greatest));
            if !is_between || value.is_nan() {
                return Err(self.disordered());
            }
            let is_before = is_before(&value);
            *if is_before { &mut least } else { &mut greatest } = Some(value);
            Ok(is_before)
        })
    }

    fn in_order(&self, first: &Scalar, second: &Scalar) -> bool {
        match self.order {
            DataOrder::Decreasing => first.compare(second).is_ge(),
            _ => first.compare(second).is_le(),
        }
    }

    fn disordered(&self) -> Error {
        Error::damaged("labels that are not in the order that the schema declares")
    }

    /// Returns the cells from `low` to `high`, for unordered labels.
    fn looked_through(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> Result<Vec<Range<u64>>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        self.each(|number, value| {
            let is_within = !value.is_nan()
                && low.is_none_or(|low| value.compare(low).is_ge())
                && high.is_none_or(|high| value.compare(high).is_le());
            if !is_within {
                return Ok(());
            }
            if let Some(last) = runs.last_mut().filter(|last| last.end == number) {
                last.end += 1;
                return Ok(());
            }
            if runs.len() == MAX_RUNS {
                return Err(Error::unsupported(format!("a selection of labels in more than {MAX_RUNS} runs of cells")));
            }
            runs.push(number..number + 1);
            Ok(())
        })?;
        Ok(runs)
    }

    /// Calls `look` with the number and value of each cell.
    fn each(&self, mut look: impl FnMut(u64, Scalar) -> Result<()>) -> Result<()> {
        let cells = self.column.cells();
        if cells > MAX_SEARCHED {
            let what = format!("{cells} labels in no order to be looked through; select by the dimension");
            return Err(Error::unsupported(what));
        }
        let Some(size) = self.column.field.cell_size().filter(|_| self.column.offsets.is_none()) else {
            return (0..cells).try_for_each(|number| {
                if number % READ_AT_ONCE == 0 {
                    cancellation::check()?;
                }
                look(number, self.value(number)?)
            });
        };
        let mut bytes = Vec::new();
        for first in (0..cells).step_by(READ_AT_ONCE as usize) {
            cancellation::check()?;
            bytes.resize((READ_AT_ONCE.min(cells - first) * size) as usize, 0);
            self.column.values.read_at(first * size, &mut bytes)?;
            for (number, value) in (first..).zip(bytes.chunks_exact((size as usize).max(1))) {
                look(number, Scalar::parse(self.datatype(), value)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tilefs_export::Field;

    use super::*;
    use proptest::prelude::*;

    fn written(order: DataOrder, values: &[i32]) -> WrittenRange {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let field = Field::new("l", Datatype::Int32);
        WrittenRange { first: 0, column: Column::fixed(field, vec![values.len() as u64], Arc::new(bytes)), order }
    }

    fn cells(runs: impl IntoIterator<Item = Range<u64>>) -> Vec<u64> {
        runs.into_iter().flatten().collect()
    }

    proptest! {
        #[test]
        fn labels_are_searched_in_the_order_that_they_have(
            mut values in prop::collection::vec(-20i32..20, 1..40), low in -22i64..22, length in 0i64..20, open in 0u8..4
        ) {
            let ends = (Some(Scalar::Signed(low)).filter(|_| open & 1 == 0), Some(Scalar::Signed(low + length)).filter(|_| open & 2 == 0));
            let (from, to) = (ends.0.as_ref(), ends.1.as_ref());
            let is_within = |value: i32| {
                (open & 1 != 0 || i64::from(value) >= low) && (open & 2 != 0 || i64::from(value) <= low + length)
            };
            let wanted = |values: &[i32]| -> Vec<u64> {
                (0..).zip(values).filter(|(_, value)| is_within(**value)).map(|(number, _)| number).collect()
            };
            prop_assert_eq!(cells(written(DataOrder::Unordered, &values).looked_through(from, to).unwrap()), wanted(&values));
            values.sort_unstable();
            let searched = written(DataOrder::Increasing, &values);
            prop_assert_eq!(cells([searched.searched(from, to).unwrap()]), wanted(&values));
            prop_assert_eq!(searched.ends().unwrap(), Some((Scalar::Signed(values[0].into()), Scalar::Signed(values[values.len() - 1].into()))));
            values.reverse();
            prop_assert_eq!(cells([written(DataOrder::Decreasing, &values).searched(from, to).unwrap()]), wanted(&values));
        }
    }

    #[test]
    fn labels_out_of_order_are_damage() {
        let seven = Scalar::Signed(7);
        for (order, values) in [(DataOrder::Increasing, [5, 9, 8, 10]), (DataOrder::Decreasing, [10, 5, 6, 3])] {
            let found = written(order, &values).searched(Some(&seven), Some(&seven));
            assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
        }
        assert!(written(DataOrder::Increasing, &[5, 4]).ends().is_err());
        assert_eq!(written(DataOrder::Unordered, &[5, 4]).ends().unwrap().unwrap().0, Scalar::Signed(4));
    }
}
