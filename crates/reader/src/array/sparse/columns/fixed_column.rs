//! One file of a sparse array's fixed-size column: the coordinate, value or validity byte of each row.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;

use super::gather::{GatherList, interleave, scatter};
use crate::array::folder::outline::FieldFile;
use crate::array::sparse::rows::segments::VisitedRows;
use crate::array::sparse::select::cells::{CellSlab, TileCells};
use crate::array::sparse::select::files::FixedFile;
use crate::array::sparse::view::SparseView;
use crate::array::tiles::open_files::OpenFiles;
use crate::array::tiles::reader::TileReader;
use crate::array::tiles::unit::TileUnit;
use crate::read::{Batches, Decoding};

/// A column of rows of the same size. Reads are independent of each other and may run concurrently.
pub struct FixedColumn {
    view: Arc<SparseView>,
    kind: ColumnKind,
    cell_size: usize,
    files: OpenFiles<Arc<FixedFile>>,
}

#[derive(Debug, Clone, Hash)]
enum ColumnKind {
    Dimension(usize),
    /// The attribute's number in the array's schema, and the fill cell for fragments that lack the attribute.
    Attribute(usize, FieldFile, Vec<u8>),
}

impl Recorded for FixedColumn {
    fn record(&self, recorder: &mut Recorder) {
        let Self { view, kind, cell_size: _, files: _ } = self;
        view.record(recorder);
        recorder.add::<Self>(kind);
    }
}

impl FixedColumn {
    /// Returns the column of the coordinates along a fixed-size dimension.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is no such dimension.
    pub fn of_dimension(view: Arc<SparseView>, dimension: usize) -> Result<Self> {
        let wanted = view.array().schema().dimensions.get(dimension).filter(|wanted| !wanted.is_variable());
        let cell_size = wanted.map(|wanted| wanted.datatype.size());
        let cell_size = cell_size.ok_or_else(|| Error::internal(format!("no fixed-size dimension {dimension}")))?;
        Ok(Self::new(view, ColumnKind::Dimension(dimension), cell_size))
    }

    /// Returns the column of the values of a fixed-size attribute, given its number in the array's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is no such attribute.
    pub fn of_attribute(view: Arc<SparseView>, attribute: usize) -> Result<Self> {
        let wanted = view.array().schema().attributes.get(attribute).filter(|wanted| !wanted.is_variable());
        let fill = wanted.map(|wanted| wanted.fill.clone());
        let fill = fill.ok_or_else(|| Error::internal(format!("no fixed-size attribute {attribute}")))?;
        let cell_size = fill.len().max(1);
        Ok(Self::new(view, ColumnKind::Attribute(attribute, FieldFile::Data, fill), cell_size))
    }

    /// Returns the column of the validity bytes of a nullable attribute, given its number in the array's schema.
    ///
    /// # Errors
    /// [`Error::Internal`] if there is no such attribute.
    pub fn of_validity(view: Arc<SparseView>, attribute: usize) -> Result<Self> {
        let wanted = view.array().schema().attributes.get(attribute).filter(|wanted| wanted.nullable);
        let fill = wanted.map(|wanted| vec![wanted.fill_validity]);
        let fill = fill.ok_or_else(|| Error::internal(format!("no nullable attribute {attribute}")))?;
        Ok(Self::new(view, ColumnKind::Attribute(attribute, FieldFile::Validity, fill), 1))
    }

    fn new(view: Arc<SparseView>, kind: ColumnKind, cell_size: usize) -> Self {
        FixedColumn { view, kind, cell_size, files: OpenFiles::new() }
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// As [`SparseView::row_count`].
    pub fn row_count(&self) -> Result<u64> {
        self.view.row_count()
    }

    /// Returns the bytes of one row, at least 1.
    pub fn cell_size(&self) -> usize {
        self.cell_size
    }

    /// Returns about how many bytes are decoded for each row: its cell, and half of its coordinates if rows must be
    /// merged. It is half, because cells in stretches of a single fragment are not compared.
    ///
    /// # Errors
    /// As [`SparseView::row_count`].
    pub fn decoded_per_row(&self) -> Result<u64> {
        let dimensions = &self.view.array().schema().dimensions;
        let coordinates: usize = dimensions.iter().map(|dimension| dimension.datatype.size()).sum();
        let compared = if self.view.merges_when_read()? { coordinates / 2 } else { 0 };
        Ok((self.cell_size + compared) as u64)
    }

    /// Reads whole rows, starting at row `first`.
    ///
    /// # Errors
    /// Any damage in the data that is needed for these rows.
    pub fn read<'o>(&self, first: u64, out: impl Into<Output<'o>>) -> Result<()> {
        self.read_into(first, out.into(), false)
    }

    /// As [`FixedColumn::read`], for a reader that makes one pass over many rows: whole units do not enter the cache,
    /// unless they were read before. Units of storage with high latency do, because they are requested many at once.
    ///
    /// # Errors
    /// As for [`FixedColumn::read`].
    pub fn read_once(&self, first: u64, out: &mut [u8]) -> Result<()> {
        self.read_into(first, Output::Into(out), true)
    }

    fn read_into(&self, first: u64, mut out: Output<'_>, is_once: bool) -> Result<()> {
        let size = self.cell_size as u64;
        let count = out.len() / size;
        let (mut plan, mut cells, mut gathered) = (Plan::default(), Vec::new(), GatherList::default());
        let mut done = 0;
        self.view.map()?.for_each(first, count, |rows| {
            plan.clear();
            match &rows {
                VisitedRows::CellSlab { fragment, position, rows } => {
                    let slab = CellSlab { fragment: *fragment, position: *position, cells: *rows };
                    self.plan(&mut plan, std::iter::once(slab))?;
                }
                VisitedRows::Interleaved(interleaved) => {
                    self.open_ahead(interleaved.parts.iter().map(|part| part.fragment));
                    self.plan(&mut plan, interleaved.slabs())?;
                }
                VisitedRows::Scattered(addresses) => {
                    gathered.set_scattered(addresses);
                    self.open_ahead(gathered.slabs.iter().map(|slab| slab.fragment));
                    self.plan(&mut plan, gathered.slabs.iter().copied())?;
                }
            }
            let own = done * size..(done + rows.count()) * size;
            done += rows.count();
            let fetcher = &self.view.array().context().fetcher;
            let Output::Into(out) = out.part(own) else {
                return Batches::new(fetcher, &plan.units, Decoding::OnThisThread).fetch_all();
            };
            if let VisitedRows::CellSlab { fragment, .. } = rows
                && self.should_bypass_cache(fragment, &plan, is_once)?
            {
                return self.copy_once(fragment, &plan, out);
            }
            let mut batches = Batches::new(fetcher, &plan.units, Decoding::OnManyThreads);
            if let VisitedRows::CellSlab { .. } = rows {
                return self.copy(&plan, &mut batches, out);
            }
            let bytes = (plan.cells as usize).saturating_mul(self.cell_size);
            memory::resize(&mut cells, bytes, "the cells of several fragments")?;
            self.copy(&plan, &mut batches, &mut cells)?;
            match rows {
                VisitedRows::Interleaved(interleaved) => interleave(interleaved, &cells, self.cell_size, out),
                _ => scatter(&gathered.rows, &cells, self.cell_size, out),
            }
            Ok(())
        })
    }

    /// Adds consecutive cells of fragments to a plan.
    fn plan(&self, plan: &mut Plan, slabs: impl Iterator<Item = CellSlab>) -> Result<()> {
        self.view.query()?.for_each_tile(slabs, |fragment, pieces| {
            let (start, first) = (plan.units.len(), plan.pieces.len());
            self.file(fragment)?.units(pieces, &mut plan.units)?;
            plan.pieces.extend_from_slice(pieces);
            plan.copies.push(Copy { fragment, pieces: first..plan.pieces.len(), units: start..plan.units.len() });
            plan.cells += pieces.iter().map(|cells| cells.count).sum::<u64>();
            Ok(())
        })
    }

    /// Copies the cells of a plan into `out`, one after the other.
    fn copy(&self, plan: &Plan, batches: &mut Batches<'_, TileUnit>, out: &mut [u8]) -> Result<()> {
        for (copy, pieces, out) in plan.copies_into(out, self.cell_size) {
            self.locate(copy.fragment, self.copy_cells(copy, pieces, batches, out))?;
        }
        Ok(())
    }

    /// Adds the fragment and the array to an error.
    fn locate(&self, fragment: u32, outcome: Result<()>) -> Result<()> {
        let array = self.view.array();
        outcome.in_fragment(array.fragment_name(fragment as usize)).in_array(array.path())
    }

    fn copy_cells(
        &self,
        copy: &Copy,
        pieces: &[TileCells],
        batches: &mut Batches<'_, TileUnit>,
        out: &mut [u8],
    ) -> Result<()> {
        let (file, mut reader) = (self.file(copy.fragment)?, TileReader::new(copy.units.clone()));
        for (cells, out) in each_into(pieces, self.cell_size, out) {
            file.read_planned(*cells, &mut reader, batches, out)?;
        }
        self.check(&file, copy.fragment, pieces, out)
    }

    /// Returns whether a plan for cells of one fragment is part of a scan that is too long for the cache, or needs each
    /// cell only once. Storage with high latency needs [`Batches`], which request many units at once.
    fn should_bypass_cache(&self, fragment: u32, plan: &Plan, is_once: bool) -> Result<bool> {
        let array = self.view.array();
        let [wanted, all] = [plan.cells, self.view.query()?.cells[fragment as usize].count()]
            .map(|cells| cells.saturating_mul(self.cell_size as u64));
        let is_long = is_once || array.context().fetcher.should_bypass_cache(wanted, all);
        Ok(is_long && !array.is_remote() && self.file(fragment)?.is_contiguous())
    }

    /// As [`FixedColumn::copy`], for cells of a fragment that are read only once.
    fn copy_once(&self, fragment: u32, plan: &Plan, out: &mut [u8]) -> Result<()> {
        let file = self.file(fragment)?;
        let mut read = || {
            let mut pieces = Vec::with_capacity(plan.units.len());
            for (copy, own, out) in plan.copies_into(out, self.cell_size) {
                let units = plan.units.get(copy.units.clone()).unwrap_or_default();
                for (cells, out) in each_into(own, self.cell_size, out) {
                    file.add_pieces(*cells, units, out, &mut pieces)?;
                }
            }
            self.view.array().context().fetcher.copy_once(pieces)?;
            let mut copies = plan.copies_into(out, self.cell_size);
            copies.try_for_each(|(copy, own, out)| self.check(&file, copy.fragment, own, out))
        };
        self.locate(fragment, read())
    }

    /// Checks cells of a tile that were copied.
    fn check(&self, file: &FixedFile, fragment: u32, pieces: &[TileCells], out: &[u8]) -> Result<()> {
        match self.kind {
            ColumnKind::Dimension(dimension) => {
                self.check_coordinates(dimension, fragment, pieces, out).map_err(|error| match file.path() {
                    Some(path) => error.in_file(path),
                    None => error,
                })
            }
            ColumnKind::Attribute(..) => Ok(()),
        }
    }

    /// Checks that coordinates lie in the domain and in the non-empty domain of the fragment's footer. The planner
    /// relied on that box to determine which cells are rows, and how many.
    fn check_coordinates(&self, dimension: usize, fragment: u32, pieces: &[TileCells], bytes: &[u8]) -> Result<()> {
        let (query, fragment) = (self.view.query()?, fragment as usize);
        let axis = query.plan.axes.get(dimension).ok_or_else(|| Error::internal("no such dimension"))?;
        let footer_range = query.range_in_footer(fragment, dimension)?;
        let Some(cell) = axis.find_outside(bytes, footer_range.unwrap_or((0, axis.last()))) else { return Ok(()) };
        let whose = if footer_range.is_some() { "the fragment's non-empty domain" } else { "the domain" };
        let in_order = pieces.iter().flat_map(|cells| cells.range().map(|number| (cells.tile, number)));
        let (tile, number) = in_order.into_iter().nth(cell).unwrap_or_default();
        let place = format!("tile {tile}, cell {number}");
        Err(Error::damaged(format!("{place}: a coordinate outside {whose}")).in_field(&axis.name))
    }

    fn file(&self, fragment: u32) -> Result<Arc<FixedFile>> {
        self.files.get_or_open(fragment as usize, || self.open(fragment as usize))
    }

    fn open_ahead(&self, fragments: impl Iterator<Item = u32>) {
        let array = self.view.array();
        let fragments = fragments.map(|fragment| fragment as usize);
        self.files.open_ahead(&*array.context().storage, array.path(), fragments, |number| self.open(number));
    }

    fn open(&self, fragment: usize) -> Result<Arc<FixedFile>> {
        let array = &**self.view.array();
        let file = match &self.kind {
            ColumnKind::Dimension(dimension) => FixedFile::of_dimension(array, fragment, *dimension),
            ColumnKind::Attribute(attribute, file, fill) => {
                FixedFile::of_attribute(array, fragment, *attribute, *file, fill)
            }
        };
        file.map(Arc::new)
    }
}

/// The plan of reading some rows: the units to fetch, and the cells to copy from them.
#[derive(Default)]
struct Plan {
    units: Vec<TileUnit>,
    pieces: Vec<TileCells>,
    copies: Vec<Copy>,
    /// The number of cells in all copies.
    cells: u64,
}

/// Pieces of one tile of a fragment, and the range of the plan's units that hold them.
struct Copy {
    fragment: u32,
    pieces: Range<usize>,
    units: Range<usize>,
}

/// Iterates over pieces, each with the part of `out` for its cells, which are `cell_size` bytes each.
fn each_into<'p, 'o>(
    pieces: &'p [TileCells],
    cell_size: usize,
    out: &'o mut [u8],
) -> impl Iterator<Item = (&'p TileCells, &'o mut [u8])> {
    let mut rest = out;
    pieces.iter().map(move |cells| {
        let (out, behind) = std::mem::take(&mut rest).split_at_mut(cells.count as usize * cell_size);
        rest = behind;
        (cells, out)
    })
}

impl Plan {
    /// Iterates over the copies, each with its pieces and the part of `out` for their cells, which are `cell_size`
    /// bytes each.
    fn copies_into<'p, 'o>(
        &'p self,
        out: &'o mut [u8],
        cell_size: usize,
    ) -> impl Iterator<Item = (&'p Copy, &'p [TileCells], &'o mut [u8])> {
        let mut rest = out;
        self.copies.iter().map(move |copy| {
            let pieces = self.pieces.get(copy.pieces.clone()).unwrap_or_default();
            let cells: u64 = pieces.iter().map(|cells| cells.count).sum();
            let (out, behind) = std::mem::take(&mut rest).split_at_mut(cells as usize * cell_size);
            rest = behind;
            (copy, pieces, out)
        })
    }

    fn clear(&mut self) {
        self.units.clear();
        self.pieces.clear();
        self.copies.clear();
        self.cells = 0;
    }
}
