//! The windows of positions that have the records of a file of variants: those of regions, or of all contigs with
//! records.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_threads::cancellation;

use super::arrays::{Sample, VariantDataset};
use super::cells::RecordSpan;
use super::contigs::{NAMES_OF_A_CHECK, OccupiedContig, has_records, occupied_contigs, with_records};
use super::regions::{ALL, Region, WrittenRegion, disjoint};
use crate::header::Header;
use crate::layout::PositionWindow;

/// The samples of a file, and its header.
#[derive(Clone, Copy)]
pub struct FileSamples<'f> {
    pub dataset: &'f VariantDataset,
    pub samples: &'f [Sample],
    /// Whether these are all samples of the dataset.
    pub is_all: bool,
    pub header: &'f Header,
}

/// Regions of a file, in its order.
pub struct SelectedRegions {
    pub regions: Vec<Region>,
    /// The contigs among them that neither the header nor the dataset names.
    pub unnamed: Vec<Vec<u8>>,
}

impl FileSamples<'_> {
    /// Returns the windows of all contigs with records, in the order of the header.
    ///
    /// # Errors
    /// Fails if a footer, an R-tree or a coordinate cannot be read.
    pub fn spans_of_all(&self) -> Result<Vec<RecordSpan>> {
        let occupied = occupied_contigs(self.dataset, self.samples, self.is_all, self.header.contigs())?;
        let is_numbered = self.dataset.numbered()?.is_some();
        let span = |OccupiedContig { name, positions }: OccupiedContig| {
            let contig_start = if is_numbered && name.is_some() { *positions.start() } else { 0 };
            let window = PositionWindow { starts: positions, least_end: 0, anchored_at: None };
            RecordSpan { contig: name.map(Arc::from), contig_start, window }
        };
        Ok(occupied.into_iter().map(span).collect())
    }

    /// Decides what regions mean, and returns them disjoint and in the order of the header. Those of contigs without a
    /// header line come last.
    ///
    /// # Errors
    /// Fails if a footer, an R-tree or a coordinate cannot be read.
    pub fn selected(&self, written: &[WrittenRegion]) -> Result<SelectedRegions> {
        let places = self.places_of(written.iter().flat_map(WrittenRegion::contigs))?;
        let numbered = self.dataset.numbered()?;
        let is_numbered = |name: &[u8]| numbered.as_ref().is_some_and(|all| all.contigs.length(name).is_some());
        let is_named = |name: &[u8]| places.contains_key(name) || is_numbered(name);
        let has_records = |name: &[u8]| match numbered {
            Some(_) => Ok(false),
            None => self.has_records(name),
        };
        let resolved = written.iter().map(|one| one.resolve(is_named, has_records));
        let mut regions = disjoint(resolved.collect::<Result<_>>()?);
        let place = |region: &Region| places.get(region.contig.as_slice()).copied().unwrap_or(usize::MAX);
        // The sort is stable: regions of a contig keep their order.
        regions.sort_by_key(place);
        let mut unnamed: Vec<Vec<u8>> = Vec::new();
        for region in &regions {
            if unnamed.last() != Some(&region.contig) && !is_named(&region.contig) {
                unnamed.push(region.contig.clone());
            }
        }
        Ok(SelectedRegions { regions, unnamed })
    }

    /// Returns the windows of the records of disjoint regions, in their order.
    ///
    /// # Errors
    /// Fails if the contigs of the dataset cannot be read.
    pub fn spans_of(&self, regions: &[Region]) -> Result<Vec<RecordSpan>> {
        self.windows_of(regions, |positions, first| self.dataset.layout.windows(positions, first))
    }

    /// Returns a window for each of some disjoint regions, in their order: the positions at which a record that overlaps
    /// the region begins.
    ///
    /// # Errors
    /// As for [`FileSamples::spans_of`].
    pub fn lines_of(&self, regions: &[Region]) -> Result<Vec<RecordSpan>> {
        self.windows_of(regions, |positions, first| {
            let (least_end, last) = (*positions.start(), *positions.end());
            vec![PositionWindow { starts: first..=last, least_end, anchored_at: None }]
        })
    }

    /// Returns the windows of disjoint regions, in their order. `windows` returns those of the records that overlap some
    /// positions and do not begin before the first one.
    fn windows_of(
        &self,
        regions: &[Region],
        windows: impl Fn(&RangeInclusive<u32>, u32) -> Vec<PositionWindow>,
    ) -> Result<Vec<RecordSpan>> {
        let mut spans = Vec::new();
        let before = [None].into_iter().chain(regions.iter().map(Some));
        for (region, before) in regions.iter().zip(before) {
            cancellation::check()?;
            let before = before.filter(|before| before.contig == region.contig);
            self.add_spans(region, before, &windows, &mut spans)?;
        }
        Ok(spans)
    }

    /// Adds the windows of a region. Leaves out records that overlap the previous region on the same contig, if there is
    /// one.
    fn add_spans(
        &self,
        region: &Region,
        before: Option<&Region>,
        windows: impl Fn(&RangeInclusive<u32>, u32) -> Vec<PositionWindow>,
        spans: &mut Vec<RecordSpan>,
    ) -> Result<()> {
        let (contig_start, positions): (u32, RangeInclusive<u32>) = match self.dataset.numbered()? {
            None => (0, region.positions.clone()),
            Some(numbered) => {
                let whole = numbered.contigs.positions_of(&region.contig, &ALL);
                let positions = numbered.contigs.positions_of(&region.contig, &region.positions);
                let Some((whole, positions)) = whole.zip(positions) else { return Ok(()) };
                (*whole.start(), positions)
            }
        };
        let windows = match region.positions == ALL {
            true => vec![PositionWindow { starts: positions, least_end: 0, anchored_at: None }],
            false => {
                // A record that overlaps both regions begins at the end of the previous one or earlier.
                let first = before.map_or(0, |before| before.positions.end().saturating_add(1));
                windows(&positions, contig_start.saturating_add(first))
            }
        };
        let contig = match spans.last() {
            Some(RecordSpan { contig: Some(last), .. }) if **last == *region.contig => last.clone(),
            _ => Arc::from(region.contig.as_slice()),
        };
        spans.extend(windows.into_iter().map(|window| RecordSpan {
            contig: Some(contig.clone()),
            contig_start,
            window,
        }));
        Ok(())
    }

    /// Returns the contigs of some windows that have records and are missing from the header: sorted by name in layout
    /// 4, otherwise by position.
    ///
    /// # Errors
    /// Fails if a footer, an R-tree or a coordinate cannot be read.
    pub fn unnamed_contigs(&self, spans: &[RecordSpan], are_occupied: bool) -> Result<Vec<Vec<u8>>> {
        let contigs = spans.iter().filter_map(|span| Some((span.contig_start, span.contig.as_deref()?)));
        let mut shown: Vec<(u32, &[u8])> = contigs.collect();
        shown.dedup();
        let places = self.places_of(shown.iter().map(|(_, name)| *name))?;
        shown.retain(|(_, name)| !places.contains_key(name));
        shown.sort_unstable();
        let is_numbered = self.dataset.numbered()?.is_some();
        if !are_occupied && !is_numbered {
            let names: Vec<&[u8]> = shown.iter().map(|(_, name)| *name).collect();
            let found = with_records(self.dataset, (!self.is_all).then_some(self.samples), &names)?;
            shown.retain(|(_, name)| found.contains(*name));
        }
        Ok(shown.into_iter().map(|(_, name)| name.to_vec()).collect())
    }

    fn has_records(&self, contig: &[u8]) -> Result<bool> {
        has_records(self.dataset, (!self.is_all).then_some(self.samples), contig)
    }

    /// Returns the places of some contigs among those of the header, as far as they are there.
    fn places_of<'n>(&self, wanted: impl Iterator<Item = &'n [u8]>) -> Result<HashMap<&'n [u8], usize>> {
        let mut wanted: HashSet<&[u8]> = wanted.collect();
        let mut places = HashMap::new();
        for (place, name) in self.header.contigs().enumerate() {
            if wanted.is_empty() {
                break;
            }
            if place.is_multiple_of(NAMES_OF_A_CHECK) {
                cancellation::check()?;
            }
            if let Some(name) = wanted.take(name) {
                places.insert(name, place);
            }
        }
        Ok(places)
    }
}
