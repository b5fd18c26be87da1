//! The bands of a sparse matrix whose cells are stored tile by tile: rows as high as a tile.
//!
//! The cells of a band are consecutive, or if the matrix was written in several parts, consecutive in each of them. Within
//! the band the cells of a row are ordered from left to right, like the tiles and the cells within a tile. So nothing needs
//! sorting: the numbers of cells of all rows give the cells of each band, and a pass over the rows of a band's cells gives
//! their [runs](Runs). That pass also verifies that the cells are in bands; cells stored in another order are an error.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_threads::for_all;
use tilefs_threads::single_flight::SingleFlight;

use super::runs::{RunFinder, Runs, fetch, for_each_block, for_each_row, pieces_of};
use super::starts::RowStarts;

/// Minimum number of bands whose runs are kept, for readers at two positions.
const MIN_BANDS: usize = 2;

/// The bands of a matrix. Memory: recently used runs of [`BandLimits::all`] bytes in total, or those of `MIN_BANDS` bands.
pub struct RowBands {
    /// The row of each cell in stored order, `i64`.
    rows: Arc<dyn Content>,
    starts: Arc<RowStarts>,
    /// Number of rows of a band.
    extent: u64,
    limits: BandLimits,
    /// Keyed by first cell.
    kept: LruCache<u64, Arc<RowBand>>,
}

/// The memory that bands may take.
#[derive(Debug, Clone, Copy)]
pub struct BandLimits {
    /// Maximum size in bytes of the runs of a band.
    pub band: usize,
    /// Total size in bytes of the runs that are kept.
    pub all: usize,
    /// Maximum size in bytes of the tiles of a band that contain the same row: those that are decoded together.
    pub tiles: u64,
    /// Number of cells of a tile.
    pub tile_cells: u64,
}

/// A band.
pub struct RowBand {
    pub rows: Range<u64>,
    /// Its cells, numbered in row order.
    pub cells: Range<u64>,
    /// The same cells as stored.
    stored: Vec<Range<u64>>,
    /// `None` if they take more memory than allowed.
    runs: SingleFlight<Option<Runs>>,
}

impl RowBand {
    /// Returns where cells are stored whose numbers in the band, as stored, are given.
    pub fn stored(&self, numbers: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut first = 0;
        let own = self.stored.iter().map(move |stored| {
            let before = first;
            first += stored.end - stored.start;
            let at = |number: u64| stored.start + number.clamp(before, first) - before;
            at(numbers.start)..at(numbers.end)
        });
        own.filter(|stored| !stored.is_empty())
    }
}

impl RowBands {
    /// Creates the bands, each `extent` rows high, of cells with these rows. `None` for bands without rows.
    pub fn new(rows: Arc<dyn Content>, starts: Arc<RowStarts>, extent: u64, limits: BandLimits) -> Option<Arc<Self>> {
        let kept = LruCache::with_bytes(usize::MAX, limits.all).at_least(MIN_BANDS);
        (extent > 0).then(|| Arc::new(RowBands { rows, starts, extent, limits, kept }))
    }

    /// Returns where rows begin.
    pub fn starts(&self) -> &Arc<RowStarts> {
        &self.starts
    }

    /// Returns the band that contains a cell.
    ///
    /// # Errors
    /// Fails if the rows of all cells cannot be counted.
    pub fn band_of(&self, cell: u64) -> Result<Arc<RowBand>> {
        let starts = self.starts.get()?;
        let row = (starts.partition_point(|start| *start <= cell) as u64).saturating_sub(1);
        let first = row - row % self.extent;
        let rows = first..first.saturating_add(self.extent).min(self.starts.rows());
        let at = |row: u64| starts.get(row as usize).copied().ok_or_else(|| Error::internal("no such row"));
        let cells = at(rows.start)?..at(rows.end)?;
        if !cells.contains(&cell) {
            return Err(Error::internal("a cell past the last one"));
        }
        self.kept.get_or_make(cells.start, || {
            let stored = match self.starts.stretches()? {
                Some(stretches) => stretches.of_band(first / self.extent).collect(),
                None => vec![cells.clone()],
            };
            Ok(Arc::new(RowBand { rows, cells, stored, runs: SingleFlight::new() }))
        })
    }

    /// Returns the runs of a band; `None` if they are not worth it, because they take more memory than allowed or are in
    /// more tiles than can be decoded together.
    ///
    /// # Errors
    /// Fails if the rows of the band's cells cannot be read; [`Error::Damaged`] for cells that are not in bands.
    pub fn runs<'b>(&self, band: &'b RowBand) -> Result<Option<&'b Runs>> {
        let find = || {
            let runs = self.find_runs(band)?;
            let memory = runs.as_ref().map_or(0, Runs::memory) + band.stored.len() * size_of::<Range<u64>>();
            self.kept.change(|kept| kept.resize(&band.cells.start, |_| memory));
            Ok(runs)
        };
        let runs = band.runs.get_or_make(find)?.as_ref();
        let limit = self.limits.tiles / 8;
        let cells = |runs: &Runs| self.limits.tile_cells.saturating_mul(runs.ascents() as u64);
        Ok(runs.filter(|runs| cells(runs).min(band.cells.end - band.cells.start) <= limit))
    }

    fn find_runs(&self, band: &RowBand) -> Result<Option<Runs>> {
        if band.cells.end - band.cells.start > u64::from(u32::MAX) {
            // Runs count the cells of a band in 32 bits.
            return Ok(None);
        }
        let starts = self.starts.get()?.get(band.rows.start as usize..=band.rows.end as usize).unwrap_or_default();
        let mut finder = RunFinder::new(band.rows.start, starts, self.limits.band / 8)?;
        self.for_each_run(band, |row, cells| finder.add_cells(row, cells.end - cells.start))?;
        finder.finish()
    }

    /// Calls `visit` with the row and the stored cells of each run of a band, in stored order. A run may come in parts.
    ///
    /// # Errors
    /// Fails if the rows of cells cannot be read, and those of `visit`.
    pub fn for_each_run(&self, band: &RowBand, mut visit: impl FnMut(u64, Range<u64>) -> Result<()>) -> Result<()> {
        if let Some(runs) = self.starts.runs()? {
            return band.stored.iter().try_for_each(|stored| runs.for_each(stored, &mut visit));
        }
        let pieces: Vec<Range<u64>> = band.stored.iter().flat_map(pieces_of).collect();
        for_all(pieces.len(), |number| fetch(&*self.rows, &pieces[number]))?;
        for stored in &band.stored {
            let mut cell = stored.start;
            for_each_block(&*self.rows, stored.clone(), |block| {
                for_each_row(block, |row, cells| {
                    let own = cell..cell + cells;
                    cell = own.end;
                    visit(row, own)
                })
            })?;
        }
        Ok(())
    }
}
