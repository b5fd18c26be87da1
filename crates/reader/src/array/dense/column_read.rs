//! Reads of a dense column: of cached cells at once, of others by a plan, and of many cells in parts.

use std::sync::atomic::{AtomicBool, Ordering};

use tilefs_base::error::Result;
use tilefs_base::output::Output;
use tilefs_threads as threads;

use super::column::DenseColumn;
use super::column_plan::ColumnPlan;
use crate::array::tiles::unit::TileUnit;
use crate::read::{Batches, Decoding};

/// The minimum size of a part of a large read that one thread reads.
const PART_BYTES: usize = 4 << 20;

/// The minimum size of such a part in storage with high latency: as much as is requested at once.
const REMOTE_PART_BYTES: usize = 16 << 20;

/// The most parts that are read from such storage at once, so that there are requests in flight while a part is
/// decoded.
const REMOTE_PARTS_AT_ONCE: usize = 4;

impl DenseColumn {
    /// Reads whole cells from cell `first` on.
    ///
    /// # Errors
    /// Any damage in the data that is required for these cells.
    pub fn read<'o>(&self, first: u64, out: impl Into<Output<'o>>) -> Result<()> {
        match out.into() {
            Output::Into(out) => self.read_into(first, out),
            Output::Ahead(bytes) => {
                let plan = self.plan(first, bytes / self.cell_size.max(1) as u64)?;
                self.batches(&plan, Decoding::OnThisThread).fetch_all()
            }
        }
    }

    fn read_into(&self, first: u64, out: &mut [u8]) -> Result<()> {
        if self.read_cached(first, out)? {
            return Ok(());
        }
        let ends = self.part_ends(first, out.len());
        if ends.len() < 2 {
            return self.read_part(first, out, Decoding::OnManyThreads);
        }
        let has_failed = AtomicBool::new(false);
        let (mut start, mut rest) = (first, out);
        let parts = ends.into_iter().take_while(|_| !has_failed.load(Ordering::Relaxed)).map(|end| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut((end - start) as usize * self.cell_size);
            rest = behind;
            (std::mem::replace(&mut start, end), part)
        });
        let read = |(first, part): (u64, &mut [u8]), how| {
            self.read_part(first, part, how).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))
        };
        let outcomes = if self.view.array().is_remote() {
            let at_once = self.remote_parts_at_once();
            threads::map_waiting("tilefs-part", at_once, parts, |part| read(part, Decoding::OnManyThreads))
        } else {
            threads::map(parts, |part| read(part, Decoding::OnThisThread))
        };
        outcomes.into_iter().collect()
    }

    /// Returns how many parts are read from storage with high latency at once: as many as the cache can hold a tile of.
    /// More parts would evict each other's tiles, some of which are read line by line.
    fn remote_parts_at_once(&self) -> usize {
        let tile = self.extents.iter().fold(self.cell_size, |size, &extent| size.saturating_mul(extent));
        let most = self.view.array().context().budget().tiles_at_once(tile.max(REMOTE_PART_BYTES) as u64);
        most.min(REMOTE_PARTS_AT_ONCE as u64) as usize
    }

    /// Returns where the parts of a large read of `bytes` end, as cells of the column. A thread reads, decodes and
    /// copies each part: filling new memory takes as long as decoding does. Parts are bands, or lines of whole tiles in
    /// storage with high latency, where tiles are read as a whole. Returns at most one end if the read has no such
    /// parts, or if the cache is too small for several parts.
    fn part_ends(&self, first: u64, bytes: usize) -> Vec<u64> {
        let is_remote = self.view.array().is_remote();
        let least = if is_remote { REMOTE_PART_BYTES } else { PART_BYTES };
        let mut ends = Vec::new();
        if bytes < 2 * least || is_remote && self.remote_parts_at_once() < 2 {
            return ends;
        }
        let end = first.saturating_add((bytes / self.cell_size.max(1)) as u64);
        let (mut start, mut at) = (first, first);
        while at < end {
            let band = if is_remote { self.line_of_tiles(at) } else { self.band(at) };
            let Some(band) = band.filter(|band| band.end > at) else { return Vec::new() };
            at = band.end.min(end);
            if at == end || (at - start) as usize * self.cell_size >= least {
                ends.push(at);
                start = at;
            }
        }
        ends
    }

    fn read_part(&self, first: u64, out: &mut [u8], how: Decoding) -> Result<()> {
        let plan = self.plan(first, (out.len() / self.cell_size.max(1)) as u64)?;
        self.copy(&plan, &mut self.batches(&plan, how), out)
    }

    fn batches<'p>(&'p self, plan: &'p ColumnPlan, how: Decoding) -> Batches<'p, TileUnit> {
        Batches::new(&self.view.array().context().fetcher, &plan.units, how)
    }
}
