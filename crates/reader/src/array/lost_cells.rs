//! Compares the cells of a consolidated dense fragment with those of the fragments of which it was made, as long as these
//! are there.
//!
//! Consolidation in libtiledb 2.10 to 2.27 can write the fill value over cells. Before 2.28, it also writes other integers
//! than it has read where bit width reduction overflows: the fill value in a tile and a cell's value may lie more than half
//! the range of their type apart. Everyone then shows what was written, and the cells are lost once the fragments that have
//! them are vacuumed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::memory;
use tilefs_format::datatype::Datatype;
use tilefs_format::name::TimestampedName;
use tilefs_format::schema::Attribute;
use tilefs_format::time_text;
use tilefs_threads::{self as threads, cancellation};

use super::OpenedArray;
use super::dense::grid::PositionBox;
use super::dense::{AxisSelection, DenseColumn, DenseVarColumn, DenseView, Selection};
use super::folder::outline::FieldFile;

/// The maximum number of cells that are compared at a time.
const CELLS_AT_ONCE: u64 = 1 << 16;

/// The same for attributes with values of variable size.
const VAR_CELLS_AT_ONCE: u64 = 1 << 12;

/// The bytes that are compared at a time, unless one cell has more.
const BYTES_AT_ONCE: u64 = 1 << 19;

/// The result of a comparison.
#[derive(Debug)]
pub(super) struct LostCells {
    /// The number of compared cells.
    cells: u64,
    /// The number of cells with another value than the originals have.
    differing: u64,
    /// The names of the attributes with such cells.
    attributes: Vec<String>,
    /// The number of originals, and their first and last time.
    originals: usize,
    times: (u64, u64),
    /// Whether the order of the originals is certain: no two of them have times that overlap.
    is_ordered: bool,
}

impl LostCells {
    /// Returns whether cells are lost. `None` if the cells differ, but may do so because two originals were written at
    /// the same time.
    pub fn are_certain(&self) -> Option<bool> {
        match (self.differing, self.is_ordered) {
            (0, _) => Some(false),
            (_, true) => Some(true),
            (_, false) => None,
        }
    }

    /// Returns a sentence about the cells and how to read the originals.
    pub fn reason(&self) -> String {
        let LostCells { cells, differing, attributes, originals, times: (first, last), .. } = self;
        let (attributes, end) = (attributes.join(", "), text_of(*last));
        format!(
            "{differing} of {cells} cells (of {attributes}) differ from the {originals} fragments of which it was made, \
             written from {} to {end}, and still there; read these with --originals or, as of times before {end}, with \
             --at or in .history/, and do not vacuum the array",
            text_of(*first)
        )
    }
}

/// Returns a time in ISO 8601, in UTC.
fn text_of(milliseconds: u64) -> String {
    let mut text = String::new();
    let value = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    time_text::print(Datatype::DateTimeMs, value, |bytes| text = String::from_utf8_lossy(bytes).trim().to_owned());
    text + "Z"
}

/// Compares a consolidated dense fragment with its originals, both by their numbers in the folder. Attributes with
/// filters that round are left out. Calls `done` for each compared tile. Memory: the cache, and 2 MiB per thread, or a
/// few values if these are larger.
///
/// # Errors
/// Any damage in one of the fragments; [`Error::Unsupported`] if an attribute has changed its type.
pub(super) fn compare(
    array: &OpenedArray,
    consolidated: usize,
    originals: Vec<usize>,
    done: impl Fn() + Sync,
) -> Result<LostCells> {
    let schema = array.folder().outline(consolidated)?.schema.clone();
    let times: Vec<TimestampedName> =
        originals.iter().filter_map(|&number| array.folder().fragment(number)).map(|entry| entry.times).collect();
    let is_ordered = times.windows(2).all(|pair| pair[0].t2 < pair[1].t1);
    let ends = times.iter().fold((u64::MAX, 0), |(first, last), own| (own.t1.min(first), own.t2.max(last)));
    let count = originals.len();
    let view = |fragments| DenseView::new(Arc::new(array.of_fragments(schema.clone(), fragments))).map(Arc::new);
    let comparison =
        Comparison { both: [view(vec![consolidated])?, view(originals)?], attributes: compared(&schema.attributes) };
    let (cells, differing, attributes) = comparison.run(done).in_array(array.path())?;
    Ok(LostCells { cells, differing, attributes, originals: count, times: ends, is_ordered })
}

/// Returns the attributes that are compared, with their numbers.
fn compared(attributes: &[Attribute]) -> Vec<(usize, Attribute)> {
    let exact = attributes.iter().enumerate().filter(|(_, attribute)| !attribute.filters.is_lossy());
    exact.map(|(number, attribute)| (number, attribute.clone())).collect()
}

/// The views of the consolidated fragment alone and of its originals.
struct Comparison {
    both: [Arc<DenseView>; 2],
    attributes: Vec<(usize, Attribute)>,
}

/// The columns of an attribute in both views, over the cells of a tile.
struct BothColumns {
    /// The number of the attribute among the compared ones.
    number: usize,
    values: BothValues,
    validity: Option<[DenseColumn; 2]>,
}

enum BothValues {
    Fixed(Box<[DenseColumn; 2]>),
    Var(Box<[DenseVarColumn; 2]>),
}

impl Comparison {
    /// Returns the number of cells, the number of those that differ, and the names of the attributes that do.
    fn run(&self, done: impl Fn() + Sync) -> Result<(u64, u64, Vec<String>)> {
        if self.attributes.is_empty() {
            return Ok((0, 0, Vec::new()));
        }
        let grid = self.both[0].grid();
        let Some(whole) = self.both[0].non_empty_box() else { return Ok((0, 0, Vec::new())) };
        let tiles = TilesOfBox::new(&whole, &grid.axes.iter().map(|axis| axis.extent).collect::<Vec<_>>())?;
        let (cells, differing, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let (first_error, differ) = (Mutex::new(None), self.attributes.iter().map(|_| AtomicBool::new(false)));
        let differ: Vec<AtomicBool> = differ.collect();
        // The footer alone says how many tiles there are: after a failure, no other is looked at.
        let numbers = (0..tiles.count).take_while(|_| !failed.load(Ordering::Relaxed));
        threads::for_each(numbers, |tile| {
            let own = tiles.at(tile).map(|tile| grid.tile_box(&tile)).and_then(|own| own.intersection(&whole));
            let compared = own.map_or(Ok((0, 0)), |own| self.tile(&own, &differ));
            match cancellation::check().and(compared) {
                Ok((compared, found)) => {
                    cells.fetch_add(compared, Ordering::Relaxed);
                    differing.fetch_add(found, Ordering::Relaxed);
                    done();
                }
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        });
        if let Some(error) = first_error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let names = self.attributes.iter().zip(&differ).filter(|(_, differ)| differ.load(Ordering::Relaxed));
        let names = names.map(|((_, attribute), _)| attribute.name.clone()).collect();
        Ok((cells.into_inner(), differing.into_inner(), names))
    }

    /// Compares the cells of a box within a tile. Returns their number, and how many differ.
    fn tile(&self, own: &PositionBox, differ: &[AtomicBool]) -> Result<(u64, u64)> {
        let axes = own.low.iter().zip(&own.high).map(|(low, high)| AxisSelection::contiguous(*low, high - low + 1));
        let selection = Arc::new(Selection::new(axes.collect())?);
        let columns = (0..self.attributes.len()).map(|number| self.columns(number, &selection));
        let columns: Vec<BothColumns> = columns.collect::<Result<_>>()?;
        let (cells, at_once) = (selection.cells(), self.cells_at_once());
        let (mut first, mut found) = (0, 0);
        while first < cells {
            cancellation::check()?;
            let count = at_once.min(cells - first);
            let mut marked = vec![false; count as usize];
            for columns in &columns {
                let own = columns.differing(first, count)?;
                if own.contains(&true) {
                    differ[columns.number].store(true, Ordering::Relaxed);
                }
                marked.iter_mut().zip(own).for_each(|(marked, own)| *marked |= own);
            }
            found += marked.iter().filter(|marked| **marked).count() as u64;
            first += count;
        }
        Ok((cells, found))
    }

    /// Returns how many cells are compared at a time.
    fn cells_at_once(&self) -> u64 {
        let of_one = self.attributes.iter().map(|(_, attribute)| match attribute.is_variable() {
            true => VAR_CELLS_AT_ONCE,
            false => (BYTES_AT_ONCE / attribute.fill.len().max(1) as u64).clamp(1, CELLS_AT_ONCE),
        });
        of_one.min().unwrap_or(CELLS_AT_ONCE)
    }

    fn columns(&self, number: usize, selection: &Arc<Selection>) -> Result<BothColumns> {
        let (attribute, field) = &self.attributes[number];
        let [a, b] = &self.both;
        let fixed = |view: &Arc<DenseView>, file, fill: &[u8]| {
            DenseColumn::new(view.clone(), selection.clone(), *attribute, file, fill.to_vec())
        };
        let var = |view: &Arc<DenseView>| {
            DenseVarColumn::new(view.clone(), selection.clone(), *attribute, field.fill.clone())
        };
        let values = match field.is_variable() {
            true => BothValues::Var(Box::new([var(a)?, var(b)?])),
            false => BothValues::Fixed(Box::new([
                fixed(a, FieldFile::Data, &field.fill)?,
                fixed(b, FieldFile::Data, &field.fill)?,
            ])),
        };
        let valid = |view| fixed(view, FieldFile::Validity, &[field.fill_validity]);
        let validity = if field.nullable { Some([valid(a)?, valid(b)?]) } else { None };
        Ok(BothColumns { number, values, validity })
    }
}

impl BothColumns {
    /// Returns which of some cells differ. What lies under a null does not count.
    fn differing(&self, first: u64, count: u64) -> Result<Vec<bool>> {
        let mut differ = match &self.values {
            BothValues::Fixed(columns) => {
                let [a, b] = read_both(columns, first, count)?;
                let size = columns[0].cell_size().max(1);
                a.chunks(size).zip(b.chunks(size)).map(|(a, b)| a != b).collect()
            }
            BothValues::Var(columns) => differing_values(columns, first, count)?,
        };
        if let Some(columns) = &self.validity {
            let [a, b] = read_both(columns, first, count)?;
            for ((differ, a), b) in differ.iter_mut().zip(a).zip(b) {
                *differ = if a == 0 || b == 0 { (a == 0) != (b == 0) } else { *differ };
            }
        }
        Ok(differ)
    }
}

fn read_both(columns: &[DenseColumn; 2], first: u64, count: u64) -> Result<[Vec<u8>; 2]> {
    let read = |column: &DenseColumn| {
        let mut bytes = memory::zeros(count, column.cell_size(), "cells to compare")?;
        column.read(first, &mut bytes[..])?;
        Ok::<_, Error>(bytes)
    };
    Ok([read(&columns[0])?, read(&columns[1])?])
}

/// Returns which of some values of variable size differ.
fn differing_values(columns: &[DenseVarColumn; 2], first: u64, count: u64) -> Result<Vec<bool>> {
    let offsets = |column: &DenseVarColumn| {
        let mut offsets = vec![0u64; count as usize + 1];
        column.read_offsets(first, &mut offsets[..])?;
        Ok::<_, Error>(offsets)
    };
    let [a, b] = [offsets(&columns[0])?, offsets(&columns[1])?];
    let mut differ: Vec<bool> = a.windows(2).zip(b.windows(2)).map(|(a, b)| a[1] - a[0] != b[1] - b[0]).collect();
    // Runs of values of equal lengths are compared together, as far as they have few bytes.
    let mut cell = 0;
    while cell < differ.len() {
        let mut end = cell;
        while end < differ.len() && !differ[end] && (end == cell || a[end + 1] - a[cell] <= BYTES_AT_ONCE) {
            end += 1;
        }
        if end == cell {
            cell += 1;
            continue;
        }
        differing_bytes(columns, [&a[cell..=end], &b[cell..=end]], &mut differ[cell..end])?;
        cell = end;
    }
    Ok(differ)
}

/// Marks which of some values with equal lengths differ, given where they begin and end.
fn differing_bytes(columns: &[DenseVarColumn; 2], [a, b]: [&[u64]; 2], differ: &mut [bool]) -> Result<()> {
    let (start, total) = ([a[0], b[0]], a[a.len() - 1] - a[0]);
    let (mut done, mut cell) = (0, 0);
    while done < total {
        cancellation::check()?;
        let size = BYTES_AT_ONCE.min(total - done);
        let read = |number: usize| {
            let mut bytes = vec![0; size as usize];
            columns[number].read_values(start[number] + done, &mut bytes[..])?;
            Ok::<_, Error>(bytes)
        };
        let [own, other] = [read(0)?, read(1)?];
        for (at, _) in own.iter().zip(&other).enumerate().filter(|(_, (own, other))| own != other) {
            while a[cell + 1] - a[0] <= done + at as u64 {
                cell += 1;
            }
            differ[cell] = true;
        }
        done += size;
    }
    Ok(())
}

/// The space tiles that a box touches, numbered in row-major order.
struct TilesOfBox {
    /// The first tile along each axis, and the number of tiles.
    axes: Vec<(u64, u64)>,
    count: u64,
}

impl TilesOfBox {
    fn new(of: &PositionBox, extents: &[u64]) -> Result<Self> {
        let ends = of.low.iter().zip(&of.high).zip(extents);
        let axes: Vec<(u64, u64)> =
            ends.map(|((low, high), extent)| (low / extent, high / extent - low / extent + 1)).collect();
        let count = axes.iter().try_fold(1u64, |count, (_, along)| count.checked_mul(*along));
        Ok(TilesOfBox { axes, count: count.ok_or_else(|| Error::damaged("more than 2^64 tiles"))? })
    }

    /// Returns a tile by its number; `None` past the last one.
    fn at(&self, number: u64) -> Option<Vec<u64>> {
        let mut rest = number;
        let mut tile = vec![0; self.axes.len()];
        for (place, (first, along)) in tile.iter_mut().zip(&self.axes).rev() {
            *place = first + rest % along;
            rest /= along;
        }
        (rest == 0).then_some(tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tile_of_a_box_has_one_number() {
        let of = PositionBox { low: vec![3, 10], high: vec![8, 10] };
        let tiles = TilesOfBox::new(&of, &[2, 4]).unwrap();
        let all: Vec<_> = (0..tiles.count).map(|number| tiles.at(number).unwrap()).collect();
        assert_eq!(all, [[1, 2], [2, 2], [3, 2], [4, 2]]);
        assert_eq!(tiles.at(4), None);
        let huge = PositionBox { low: vec![0, 0], high: vec![u64::MAX - 1; 2] };
        assert!(TilesOfBox::new(&huge, &[1, 1]).is_err());
    }
}
