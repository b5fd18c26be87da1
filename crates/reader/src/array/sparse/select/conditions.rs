//! Conditions on attributes by which a reader selects rows: ranges of values, and nulls.
//!
//! A row counts if every condition holds for it. Deletes, times and the newest of several cells come first: a cell that a
//! condition leaves out still hides older ones of its coordinates.

use std::cmp::Ordering;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::fragment::FragmentField;
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{Attribute, CellValNum};

use super::cells::TileCells;
use super::files::{FixedFile, append_strings};
use crate::array::OpenedArray;
use crate::array::folder::outline::FieldFile;
use crate::array::order::key::AxisColumn;

/// A range of values, both ends included. An end that is `None` is open.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRange {
    /// The least value.
    pub low: Option<Scalar>,
    /// The greatest value.
    pub high: Option<Scalar>,
}

/// A condition on the values of an attribute: they lie in one of the ranges, or are null.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCondition {
    /// The number of the attribute in the array's schema.
    pub attribute: usize,
    /// Ranges of values. Not-a-number is only in those without ends.
    pub ranges: Vec<ValueRange>,
    /// Whether it holds for null.
    pub with_null: bool,
}

impl RowCondition {
    /// Checks that the attribute has one value per cell, a number or a text of single bytes, and that the ranges are of
    /// its type.
    ///
    /// # Errors
    /// [`Error::Usage`] if not.
    pub(crate) fn check(&self, array: &OpenedArray) -> Result<()> {
        let attributes = &array.schema().attributes;
        let attribute = attributes.get(self.attribute).ok_or_else(|| Error::usage("no such attribute".to_owned()))?;
        if !has_one_value(attribute) {
            let what = format!("{} has cells of several values, by which no rows are selected", attribute.name);
            return Err(Error::usage(what));
        }
        for end in self.ranges.iter().flat_map(|range| [&range.low, &range.high]).flatten() {
            end.to_bytes(attribute.datatype)?;
        }
        Ok(())
    }
}

/// Returns whether each cell of an attribute is one number or one text, by which rows can be selected.
pub fn has_one_value(attribute: &Attribute) -> bool {
    match attribute.datatype.kind() {
        Kind::Bytes => attribute.datatype.size() == 1,
        _ => attribute.cell_count == CellValNum::Fixed(1),
    }
}

/// A condition, applied to the cells of one fragment.
pub struct ConditionOfFragment<'a> {
    array: &'a OpenedArray,
    /// The number of the fragment in the array's folder.
    fragment: usize,
    condition: &'a RowCondition,
    /// The attribute as the array has it, and its number in the fragment.
    attribute: &'a Attribute,
    number: usize,
}

impl<'a> ConditionOfFragment<'a> {
    /// # Errors
    /// [`Error::Unsupported`] if the fragment was written before the array had the attribute, or had it in this form: the
    /// cells then show other values than it stores.
    pub fn new(array: &'a OpenedArray, fragment: usize, condition: &'a RowCondition) -> Result<Self> {
        let wanted = array.schema().attributes.get(condition.attribute);
        let wanted = wanted.ok_or_else(|| Error::internal("a condition on no attribute"))?;
        let outline = array.outline(fragment)?;
        let form = |one: &Attribute| (one.name.clone(), one.datatype, one.cell_count, one.nullable);
        let own = outline.schema.attributes.iter().position(|one| form(one) == form(wanted));
        match own {
            Some(number) => {
                let fragment = array.number(fragment);
                Ok(ConditionOfFragment { array, fragment, condition, attribute: wanted, number })
            }
            None => {
                Err(Error::unsupported("a selection by an attribute that the array had not when cells were written"))
                    .in_field(&wanted.name)
            }
        }
    }

    /// Clears in `shown` the cells of a tile for which the condition does not hold.
    ///
    /// # Errors
    /// Any damage in the attribute's files.
    pub fn apply(&self, cells: TileCells, shown: &mut [bool]) -> Result<()> {
        self.try_apply(cells, shown).in_field(&self.attribute.name)
    }

    fn try_apply(&self, cells: TileCells, shown: &mut [bool]) -> Result<()> {
        let (folder, field) = (self.array.folder(), FragmentField::Attribute(self.number));
        let within = match self.attribute.cell_size() {
            Some(size) => {
                let file =
                    FixedFile::Own { tiles: folder.tiles(self.fragment, field, FieldFile::Data)?, cell_size: size };
                let bytes = read(&file, cells, size)?;
                match self.attribute.datatype.kind() {
                    Kind::Bytes => bytes.chunks_exact(size.max(1)).map(|cell| self.has_text(cell)).collect(),
                    _ => numbers_within(&bytes, self.attribute.datatype, &self.condition.ranges)?,
                }
            }
            None => {
                let tiles = folder.var_tiles(self.fragment, field, self.attribute.datatype.size())?;
                let mut column = AxisColumn::default();
                append_strings(&self.array.context().fetcher, &tiles, cells, &mut column)?;
                (0..shown.len()).map(|cell| self.has_text(column.text(cell))).collect::<Vec<bool>>()
            }
        };
        let validity = match self.attribute.nullable {
            true => {
                let tiles = folder.tiles(self.fragment, field, FieldFile::Validity)?;
                Some(read(&FixedFile::Own { tiles, cell_size: 1 }, cells, 1)?)
            }
            false => None,
        };
        for (cell, (shown, within)) in shown.iter_mut().zip(within).enumerate() {
            let is_null = validity.as_ref().is_some_and(|bytes| bytes.get(cell) == Some(&0));
            *shown &= if is_null { self.condition.with_null } else { within };
        }
        Ok(())
    }

    /// Returns whether a text lies in a range. Texts of fixed size end with zeros.
    fn has_text(&self, cell: &[u8]) -> bool {
        let padding =
            self.attribute.cell_size().map_or(0, |_| cell.iter().rev().take_while(|byte| **byte == 0).count());
        let text = cell.get(..cell.len() - padding).unwrap_or(cell);
        let compare = |end: &Scalar| match end {
            Scalar::Text(end) => Some(text.cmp(end.as_slice())),
            _ => None,
        };
        self.condition.ranges.iter().any(|range| is_within(range, compare))
    }
}

/// Returns whether a value lies in a range, by how it compares with the ends.
fn is_within(range: &ValueRange, compare: impl Fn(&Scalar) -> Option<Ordering>) -> bool {
    range.low.as_ref().is_none_or(|low| compare(low).is_some_and(Ordering::is_ge))
        && range.high.as_ref().is_none_or(|high| compare(high).is_some_and(Ordering::is_le))
}

fn read(file: &FixedFile, cells: TileCells, size: usize) -> Result<Vec<u8>> {
    let mut bytes = memory::zeros(cells.count, size, "the cells that a condition compares")?;
    file.read(cells, &mut bytes)?;
    Ok(bytes)
}

/// Returns for each number whether it lies in a range.
fn numbers_within(bytes: &[u8], datatype: Datatype, ranges: &[ValueRange]) -> Result<Vec<bool>> {
    match (datatype.kind(), datatype.size()) {
        (Kind::Signed, 1) => test(bytes, datatype, ranges, i8::from_le_bytes),
        (Kind::Signed, 2) => test(bytes, datatype, ranges, i16::from_le_bytes),
        (Kind::Signed, 4) => test(bytes, datatype, ranges, i32::from_le_bytes),
        (Kind::Signed, _) => test(bytes, datatype, ranges, i64::from_le_bytes),
        (Kind::Float, 4) => test(bytes, datatype, ranges, f32::from_le_bytes),
        (Kind::Float, _) => test(bytes, datatype, ranges, f64::from_le_bytes),
        (_, 1) => test(bytes, datatype, ranges, u8::from_le_bytes),
        (_, 2) => test(bytes, datatype, ranges, u16::from_le_bytes),
        (_, 4) => test(bytes, datatype, ranges, u32::from_le_bytes),
        (..) => test(bytes, datatype, ranges, u64::from_le_bytes),
    }
}

/// As [`numbers_within`], for numbers of one type.
fn test<const SIZE: usize, T: PartialOrd + Copy>(
    bytes: &[u8],
    datatype: Datatype,
    ranges: &[ValueRange],
    parse: impl Fn([u8; SIZE]) -> T,
) -> Result<Vec<bool>> {
    let end = |end: &Option<Scalar>| -> Result<Option<T>> {
        let Some(end) = end else { return Ok(None) };
        let bytes: [u8; SIZE] = end.to_bytes(datatype)?.try_into().map_err(|_| Error::internal("another size"))?;
        Ok(Some(parse(bytes)))
    };
    let ends = ranges.iter().map(|range| Ok((end(&range.low)?, end(&range.high)?))).collect::<Result<Vec<_>>>()?;
    let has_all = ends.iter().any(|(low, high)| low.is_none() && high.is_none());
    let spans = joined(ends);
    let is_within = |cell: T| {
        // NaN is in no range that has an end, nor in several that have all numbers together.
        if cell.partial_cmp(&cell).is_none() {
            return has_all;
        }
        // Only the last span that begins at or before a number can have it.
        let before = spans.partition_point(|(low, _)| low.is_none_or(|low| low <= cell));
        let last = before.checked_sub(1).and_then(|last| spans.get(last));
        last.is_some_and(|(_, high)| high.is_none_or(|high| cell <= high))
    };
    Ok(bytes.as_chunks().0.iter().map(|cell| is_within(parse(*cell))).collect())
}

/// Returns ranges in the order of their ends, those that overlap each other as one; `None` is an open end.
fn joined<T: PartialOrd + Copy>(mut ranges: Vec<(Option<T>, Option<T>)>) -> Vec<(Option<T>, Option<T>)> {
    // No number lies in a range that ends at NaN.
    let is_number = |end: &Option<T>| end.is_none_or(|end| end.partial_cmp(&end).is_some());
    ranges.retain(|(low, high)| is_number(low) && is_number(high));
    ranges.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
        _ => one.is_some().cmp(&other.is_some()),
    });
    let mut spans: Vec<(Option<T>, Option<T>)> = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match spans.last_mut() {
            Some((_, end)) if end.is_none_or(|end| low.is_none_or(|low| low <= end)) => {
                *end = end.zip(high).map(|(end, high)| if high > end { high } else { end });
            }
            _ => spans.push((low, high)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end() -> impl Strategy<Value = Option<f32>> {
        prop_oneof![2 => (-6i8..6).prop_map(|number| Some(f32::from(number) / 2.0)), 1 => Just(None), 1 => Just(Some(f32::NAN))]
    }

    proptest! {
        #[test]
        fn numbers_lie_in_joined_ranges_as_in_each(ranges in prop::collection::vec((end(), end()), 0..6)) {
            let cells: Vec<f32> = (-15i8..15).map(|number| f32::from(number) / 4.0).chain([f32::NAN, -0.0]).collect();
            let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
            let scalar = |end: Option<f32>| end.map(Scalar::Float32);
            let typed: Vec<ValueRange> =
                ranges.iter().map(|(low, high)| ValueRange { low: scalar(*low), high: scalar(*high) }).collect();
            let found = numbers_within(&bytes, Datatype::Float32, &typed).unwrap();
            for (cell, found) in cells.iter().zip(found) {
                let is_in = |(low, high): &(Option<f32>, Option<f32>)| {
                    low.is_none_or(|low| low <= *cell) && high.is_none_or(|high| *cell <= high)
                };
                prop_assert_eq!(found, ranges.iter().any(is_in), "{} in {:?}", cell, ranges);
            }
        }
    }
}
