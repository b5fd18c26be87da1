//! Reads the records of a file in order, window by window.
//!
//! The width of a window of positions is adapted so that it has about a fixed number of cells; if several contigs or
//! regions have so few, one window has them all. Lines are made on all cores, in pieces of at most about [`PIECE`] bytes.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::{self as threads, cancellation, for_all};

use super::records::{MadePiece, VariantText};
use super::sites::FoundParts;
use crate::dataset::cells::{RecordKey, RecordSpan, WindowRecords};
use crate::layout::PositionWindow;

/// Number of cells of a window: the first number or, if more, the second one for each sample.
const WINDOW_CELLS: u64 = 1 << 16;
const WINDOW_CELLS_OF_SAMPLE: u64 = 64;

/// Maximum number of cells of a window, likewise. More are an error, because one position, or the anchor gap before a
/// region, cannot be divided.
const MAX_CELLS: u64 = 1 << 22;
const MAX_CELLS_OF_SAMPLE: u64 = 1024;

/// The number of positions of the first window.
const FIRST_WINDOW: u32 = 1 << 16;

/// Number of positions of a window, and of lines, where each site of a block is a line: a block has any number of them.
const WINDOW_SITES: u32 = 1 << 18;
const MAX_SITES: usize = 1 << 20;

/// Bytes of text made together; more only if one position has more.
pub(super) const PIECE: usize = 1 << 20;

/// Reads all records in order, and makes their lines.
pub(super) struct RecordWalk {
    pub records_of: Arc<VariantText>,
    /// The number of the first span that no window has covered yet.
    span: usize,
    /// The first position of this span that no window has covered yet.
    next: Option<u32>,
    /// The number of positions of the next window if it has a part of a span (`u32::MAX` for all that are left), and that
    /// of spans if it has several.
    width: u32,
    together: usize,
    /// The most cells that the last window could have, according to the boxes of tiles.
    most_cells: u64,
    /// The current window, and the number of its first span.
    window: Option<(usize, WindowRecords)>,
    /// The number of records of the window whose lines are made.
    done: usize,
    /// The average length of the text at one position.
    text_of_position: usize,
    /// The number of records that were read.
    pub records: u64,
}

/// A window that was read.
struct NextWindow {
    /// The number of its first span.
    number: usize,
    /// Its spans: several whole ones or a part of one.
    parts: Vec<RecordSpan>,
    cells: u64,
    /// Its records, if it has cells.
    records: Option<WindowRecords>,
}

/// The most times by which the width of a window grows.
const GROWTH: u64 = 8;

impl RecordWalk {
    pub(super) fn new(records_of: Arc<VariantText>) -> Self {
        let text_of_position = 64 + 8 * records_of.samples.len();
        let mut walk = RecordWalk {
            records_of,
            span: 0,
            next: None,
            width: FIRST_WINDOW,
            together: 1,
            most_cells: 0,
            window: None,
            done: 0,
            text_of_position,
            records: 0,
        };
        walk.go_to(0);
        walk
    }

    /// Continues at the beginning of a span.
    fn go_to(&mut self, span: usize) {
        self.span = span;
        self.next = self.records_of.spans.get(span).map(|span| *span.window.starts.start());
    }

    /// Returns the next pieces and their texts; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Vec<MadePiece>>> {
        loop {
            cancellation::check()?;
            if let Some((first, window)) = &self.window
                && let Some(rest) = window.order().get(self.done..).filter(|rest| !rest.is_empty())
            {
                let parts = parts(rest, (PIECE / self.text_of_position).max(1), 2 * threads::decoding());
                let made = for_all(parts.len(), |number| {
                    let keys = parts.get(number).cloned().and_then(|part| rest.get(part)).unwrap_or_default();
                    self.records_of.texts_of(window, *first, keys)
                })?;
                let made: Vec<MadePiece> = made.into_iter().flatten().collect();
                let done = parts.last().map_or(0, |part| part.end);
                let positions = rest[..done].chunk_by(RecordKey::is_at_position_of).count();
                let bytes: usize = made.iter().map(|(_, text)| text.len()).sum();
                self.text_of_position = (bytes / positions.max(1)).max(1);
                self.done += done;
                return Ok(Some(made));
            }
            self.window = None;
            if !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next window; returns `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(first) = self.next else { return Ok(false) };
        let NextWindow { number, parts, cells, records } = self.read(first)?;
        let [count, growth] = [parts.len(), self.growth(cells) as usize];
        let last = parts.last().map(|span| span.window.clone());
        let (Some(last), Some(whole)) = (last, self.records_of.spans.get(number + count - 1)) else {
            return Err(Error::internal("a window without a span"));
        };
        let (starts, end) = (&whole.window.starts, *last.starts.end());
        let is_at_end = end == *starts.end();
        // A window may have several spans once one was a window by itself, with few cells.
        match count {
            1 if is_at_end && first == *starts.start() => self.together = self.together.saturating_mul(growth),
            1 => self.together = 1,
            _ => self.together = self.together.saturating_mul(growth),
        }
        if count == 1 {
            let most = if records.is_some() && self.records_of.sites().is_some() { WINDOW_SITES } else { u32::MAX };
            self.width = self.width.saturating_mul(growth as u32).min(most);
        }
        self.records += records.as_ref().map_or(0, |records| records.order().len() as u64);
        self.window = records.map(|records| (number, records));
        self.done = 0;
        match end.checked_add(1).filter(|_| !is_at_end) {
            Some(next) => self.next = Some(next),
            None => self.go_to(number + count),
        }
        Ok(true)
    }

    /// Returns the intended number of cells of a window.
    fn window_cells(&self) -> u64 {
        WINDOW_CELLS.max(WINDOW_CELLS_OF_SAMPLE.saturating_mul(self.records_of.samples.len() as u64))
    }

    /// Returns by how much the next window may be wider than one with this number of cells.
    fn growth(&self, cells: u64) -> u64 {
        (self.window_cells() / cells.max(1)).clamp(1, GROWTH)
    }

    /// Reads the next window, which begins at a position.
    fn read(&mut self, first: u32) -> Result<NextWindow> {
        loop {
            let (number, found, cells) = self.find(first)?;
            let parts = found.parts.clone();
            if cells == 0 {
                return Ok(NextWindow { number, parts, cells, records: None });
            }
            // At one position, there are no more lines than cells.
            let most = if self.width == 1 { usize::MAX } else { MAX_SITES };
            if let Some(records) = self.records_of.read(found, most)? {
                return Ok(NextWindow { number, parts, cells, records: Some(records) });
            }
            self.width = (self.width / 2).max(1);
        }
    }

    /// Returns the next window: the number of its first span, its cells and their number. `first` is the position at
    /// which it begins.
    fn find(&mut self, first: u32) -> Result<(usize, FoundParts, u64)> {
        let (wanted, has_sites) = (self.window_cells(), self.records_of.sites().is_some());
        loop {
            let spans = self.spans_from(first);
            let (is_one, is_anchored) = (spans.len() == 1, spans.iter().all(|span| span.window.anchored_at.is_some()));
            let found = self.records_of.find(spans)?;
            let most = found.cells.most()?;
            // Counting takes reading the coordinates of that many cells.
            if !is_one && most > self.most_cells.saturating_mul(GROWTH).max(wanted) {
                self.together = found.parts.len() / 2;
                continue;
            }
            let cells = found.cells.count()?;
            if has_sites && cells > 0 && self.width > WINDOW_SITES {
                self.width = WINDOW_SITES;
                continue;
            }
            if cells <= wanted.saturating_mul(2) || is_one && (self.width == 1 || is_anchored) {
                self.most_cells = most;
                self.check(cells)?;
                return Ok((self.span, found, cells));
            }
            let share = |of: u64| u64::try_from(u128::from(of) * u128::from(wanted) / u128::from(cells)).unwrap_or(of);
            if is_one {
                self.width = u32::try_from(share(self.width.into())).unwrap_or(self.width).clamp(1, self.width - 1);
            } else {
                self.together = usize::try_from(share(found.parts.len() as u64)).unwrap_or(1).max(1);
            }
        }
    }

    /// Returns the spans of the next window, which begins at a position: several whole ones or a part of one.
    fn spans_from(&self, first: u32) -> Vec<RecordSpan> {
        let VariantText { spans, dataset, .. } = &*self.records_of;
        let rest = spans.get(self.span..).unwrap_or_default();
        let Some(span) = rest.first() else { return Vec::new() };
        let has_sites = self.records_of.sites().is_some();
        // A few cells of several contigs could have any number of sites.
        if first == *span.window.starts.start() && !has_sites {
            let joined = rest.iter().take_while(|other| span.can_join(other, &dataset.layout));
            let joined: Vec<RecordSpan> = joined.take(self.together).cloned().collect();
            if joined.len() > 1 {
                return joined;
            }
        }
        let mut starts = span.window.starts.clone();
        // All records that begin before a region have their anchors at the same coordinates, so a narrower range of
        // starts has as many cells.
        if span.window.anchored_at.is_none() {
            let width = Some(self.width - 1).filter(|_| self.width < u32::MAX);
            // Blocks have no line before the region.
            let from = if has_sites { first.max(span.window.least_end) } else { first };
            let last = width.and_then(|width| from.checked_add(width)).unwrap_or(u32::MAX);
            starts = first..=last.min(*starts.end());
        }
        vec![RecordSpan { window: PositionWindow { starts, ..span.window.clone() }, ..span.clone() }]
    }

    /// Rejects a window of too many cells.
    fn check(&self, cells: u64) -> Result<()> {
        let VariantText { samples, dataset, .. } = &*self.records_of;
        if cells > MAX_CELLS.max(MAX_CELLS_OF_SAMPLE.saturating_mul(samples.len() as u64)) {
            let reason = format!("{cells} cells at one position, or within one anchor gap");
            return Err(Error::unsupported(reason).in_array(dataset.data.path()));
        }
        Ok(())
    }
}

/// Divides records between positions into at most `most` parts of about `positions` positions each.
fn parts(records: &[RecordKey], positions: usize, most: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut end, mut in_part) = (Vec::new(), 0, 0, 0);
    for position in records.chunk_by(RecordKey::is_at_position_of) {
        end += position.len();
        in_part += 1;
        if in_part == positions || end == records.len() {
            parts.push(start..end);
            (start, in_part) = (end, 0);
            if parts.len() == most {
                break;
            }
        }
    }
    parts
}
