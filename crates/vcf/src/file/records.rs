//! The bytes of a VCF or BCF file of a dataset: the records of one sample, or of several merged samples, window by
//! window.
//!
//! The width of a window of positions is adapted so that it has about a fixed number of cells; if several contigs or
//! regions have so few, one window has them all. Lines are made on all cores, in pieces of at most about [`PIECE`] bytes.
//! For random access, one pass records the positions and the length of each piece. The first pieces of this pass stay in
//! the cache for the read that usually follows.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};
use tilefs_export::content::compose::Concat;
use tilefs_export::{Content, Forward};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_reader::array::{IndexKey, Indexes};
use tilefs_reader::lru_cache::LruCache;
use tilefs_reader::read::Output;
use tilefs_threads::{self as threads, cancellation, for_all};

use crate::bcf::{BcfHeader, BcfRecords};
use crate::dataset::arrays::{Sample, VariantDataset};
use crate::dataset::cells::{RecordKey, SampleCells, Span, SpanCells, WindowRecords};
use crate::dataset::regions::WrittenRegion;
use crate::dataset::spans::{FileSamples, SelectedRegions};
use crate::header::Header;
use crate::layout::Window;
use crate::merge::{FileRecord, MergedFile, MergedLines, Merger};
use crate::tabix::{IndexFormat, csi_of_bcf, tabix};

/// Number of cells of a window: the first number or, if more, the second one for each sample.
const WINDOW_CELLS: u64 = 1 << 16;
const WINDOW_CELLS_OF_SAMPLE: u64 = 64;

/// Maximum number of cells of a window, likewise. More are an error, because one position, or the anchor gap before a
/// region, cannot be divided.
const MAX_CELLS: u64 = 1 << 22;
const MAX_CELLS_OF_SAMPLE: u64 = 1024;

/// The number of positions of the first window.
const FIRST_WINDOW: u32 = 1 << 16;

/// Bytes of text made together; more only if one position has more.
const PIECE: usize = 1 << 20;

/// Bytes that most lines have at least, for memory.
const LEAST_LINE: usize = 32;

/// Number of pieces that are cached for reads at nearby offsets.
const KEPT: usize = 4;

/// The encoding of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// VCF, a text.
    Text,
    /// BCF. Files in BCF are always in BGZF.
    Bcf,
}

/// The records of some samples as the bytes of a file. Memory: the header and the name of each sample; while lines are
/// made, also a window of cells and a few pieces of text.
pub struct VariantText {
    dataset: Arc<VariantDataset>,
    lines: Lines,
    /// The header of the BCF file, if it is one.
    bcf: Option<BcfHeader>,
    samples: Vec<Sample>,
    is_all: bool,
    cells: SampleCells,
    /// The regions to which the records are restricted.
    selected: Option<SelectedRegions>,
    /// All spans in order, each as wide as possible.
    spans: Vec<Span>,
}

/// The conversion of records to lines.
enum Lines {
    /// The records of one sample, each as a line.
    Separate {
        header: Arc<Header>,
        sample: Option<Vec<u8>>,
    },
    Merged(Merger),
}

impl Lines {
    fn head(&self) -> Result<Vec<u8>> {
        match self {
            Lines::Separate { header, sample } => header.text(sample.as_deref()),
            Lines::Merged(merger) => merger.head(),
        }
    }

    fn header(&self) -> &Header {
        match self {
            Lines::Separate { header, .. } => header,
            Lines::Merged(merger) => merger.header(),
        }
    }

    /// Prepares to make lines.
    fn writer(&self) -> LineWriter<'_> {
        match self {
            Lines::Separate { header, sample } => LineWriter::Separate { header, has_sample: sample.is_some() },
            Lines::Merged(merger) => LineWriter::Merged(merger.lines()),
        }
    }
}

/// Makes lines of records, one position after the other.
enum LineWriter<'l> {
    Separate { header: &'l Header, has_sample: bool },
    Merged(MergedLines<'l>),
}

impl LineWriter<'_> {
    /// Appends the lines of all records at one position.
    fn append(&mut self, records: &[FileRecord<'_>], out: &mut Vec<u8>) -> Result<()> {
        match self {
            LineWriter::Separate { header, has_sample } => {
                records.iter().try_for_each(|one| one.record.append(header, *has_sample, out))
            }
            LineWriter::Merged(lines) => lines.append(records, out),
        }
    }
}

impl VariantText {
    /// Opens the records of one sample: all, or those that overlap some regions. Reads its header, and the metadata and
    /// coordinates that tell which contigs have records.
    ///
    /// # Errors
    /// Fails if these cannot be read.
    pub fn of_sample(
        dataset: Arc<VariantDataset>,
        sample: &Sample,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
    ) -> Result<Self> {
        let header = Arc::new(dataset.header(sample)?);
        let lines = Lines::Separate { header, sample: sample.has_column().then(|| sample.name.clone()) };
        Self::new(dataset, lines, std::slice::from_ref(sample), false, regions, encoding)
    }

    /// Like [`VariantText::of_sample`], for several samples that are merged. `is_all` says whether these are all
    /// samples of the dataset.
    ///
    /// # Errors
    /// As for [`VariantText::of_sample`].
    pub fn merged(
        dataset: Arc<VariantDataset>,
        samples: &[Sample],
        is_all: bool,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
    ) -> Result<Self> {
        let headers = dataset.headers(samples)?;
        let files = samples
            .iter()
            .zip(headers)
            .map(|(sample, header)| MergedFile { header, sample: sample.has_column().then(|| sample.name.clone()) });
        let lines = Lines::Merged(Merger::new(files.collect())?);
        Self::new(dataset, lines, samples, is_all, regions, encoding)
    }

    fn new(
        dataset: Arc<VariantDataset>,
        lines: Lines,
        samples: &[Sample],
        is_all: bool,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
    ) -> Result<Self> {
        let cells = SampleCells::new(dataset.clone(), samples, is_all)?;
        let file = FileSamples { dataset: &dataset, samples, is_all, header: lines.header() };
        let selected = regions.map(|regions| file.selected(regions)).transpose()?;
        let spans = match &selected {
            Some(selected) => file.spans_of(&selected.regions)?,
            None => file.spans_of_all()?,
        };
        let bcf = match encoding {
            Encoding::Text => None,
            Encoding::Bcf => {
                let more = file.unnamed_contigs(&spans, selected.is_none())?;
                Some(BcfHeader::new(&lines.head()?, &more).in_array(dataset.data.path())?)
            }
        };
        Ok(VariantText { dataset, lines, bcf, samples: samples.to_vec(), is_all, cells, selected, spans })
    }

    /// Returns the file without BGZF. Measuring its length takes a pass over all records, unless an earlier mount has
    /// saved the result. Sets `remark` if there is one.
    ///
    /// # Errors
    /// Fails if a record cannot be read or represented.
    pub fn content(self: Arc<Self>, remark: &Arc<OnceLock<String>>) -> Result<Arc<dyn Content>> {
        let (head, owner) = (self.head()?, self.indexes().new_owner());
        let saved = &self.dataset.data.context().saved;
        let key = self.dataset.saved_key(self.description(), &head)?;
        let encode = |(pieces, length): &(Vec<Piece>, u64)| encode(pieces, *length);
        let (pieces, length) = saved.get_or_make(key, |bytes| self.decode(bytes), encode, || self.measure(owner))?;
        if length.checked_add(head.len() as u64).is_none_or(|length| length > i64::MAX as u64) {
            return Err(Error::unsupported("the text would be longer than 2^63 bytes"));
        }
        self.set_remark(remark, pieces.iter().map(|piece| piece.span))?;
        let groups = self.groups(&pieces, length);
        let lines = TextContent { records: self, pieces, groups, length, owner, kept: LruCache::new(KEPT) };
        Ok(Arc::new(Concat::new(vec![Arc::new(head), Arc::new(lines)])))
    }

    /// Returns the same bytes sequentially. The first bytes require only the first records. Sets `remark` with the last
    /// bytes, if there is one.
    ///
    /// # Errors
    /// Fails if the header is missing.
    pub fn forward(self: Arc<Self>, remark: &Arc<OnceLock<String>>) -> Result<Box<dyn Forward>> {
        let (head, remark) = (Some(self.head()?), remark.clone());
        let (walk, ready, spans) = (Walk::new(self), VecDeque::new(), BTreeSet::new());
        Ok(Box::new(InSequence { head, walk, ready, spans, remark }))
    }

    /// Returns the index of the file in BGZF. Building it takes a pass over all records, unless an earlier mount has
    /// saved it.
    ///
    /// # Errors
    /// As for [`tabix`].
    pub fn index(&self, content: &dyn Content, format: IndexFormat) -> Result<Vec<u8>> {
        self.dataset.index(self.description(), &self.head()?, format, || match &self.bcf {
            Some(header) => csi_of_bcf(content, header),
            None => tabix(content, format),
        })
    }
    /// Sets the remark, if there is one, about a file with records in these spans.
    fn set_remark(&self, remark: &Arc<OnceLock<String>>, spans: impl Iterator<Item = usize>) -> Result<()> {
        let contigs = spans.filter_map(|span| self.spans.get(span)?.contig.as_deref()).collect();
        let VariantText { dataset, samples, is_all, .. } = self;
        let file = FileSamples { dataset, samples, is_all: *is_all, header: self.lines.header() };
        if let Some(found) = file.remark(self.selected.as_ref(), &contigs)? {
            // The same text if there is one already.
            let _ = remark.set(found);
        }
        Ok(())
    }

    /// Returns the bytes before the records.
    fn head(&self) -> Result<Vec<u8>> {
        match &self.bcf {
            Some(header) => Ok(header.bytes().to_vec()),
            None => self.lines.head(),
        }
    }

    /// Returns the intended number of cells of a window.
    fn window_cells(&self) -> u64 {
        WINDOW_CELLS.max(WINDOW_CELLS_OF_SAMPLE.saturating_mul(self.samples.len() as u64))
    }

    /// Returns the bytes of some records of a window, span by span. `first` is the number of the window's first span.
    fn texts_of(&self, records: &WindowRecords, first: usize, keys: &[RecordKey]) -> Result<Vec<MadePiece>> {
        let mut pieces = Vec::new();
        for own in keys.chunk_by(|one, next| one.span == next.span) {
            let [Some(low), Some(high)] = [own.first(), own.last()] else { continue };
            let piece = Piece { span: first + low.span as usize, first: low.start, last: high.start, place: 0 };
            pieces.push((piece, self.text_of(records, own)?));
        }
        Ok(pieces)
    }

    /// Returns the bytes of some records of a window.
    fn text_of(&self, records: &WindowRecords, keys: &[RecordKey]) -> Result<Vec<u8>> {
        let mut text = Vec::with_capacity(keys.len().saturating_mul(LEAST_LINE));
        let (mut lines, mut writer) = (Vec::new(), self.lines.writer());
        let mut bcf = self.bcf.as_ref().map(BcfRecords::new);
        let made = self.cells.for_each_position(records, keys, |at_position| {
            cancellation::check()?;
            let Some(bcf) = &mut bcf else { return writer.append(at_position, &mut text) };
            lines.clear();
            writer.append(at_position, &mut lines)?;
            bcf.append(&lines, &mut text)
        });
        made.in_array(self.dataset.data.path())?;
        Ok(text)
    }

    /// Returns the bytes of consecutive pieces.
    fn text(&self, pieces: &[Piece]) -> Result<Vec<u8>> {
        let span = |piece: &Piece| {
            let span = self.spans.get(piece.span).ok_or_else(|| Error::internal("a piece of no contig"))?;
            let window = Window { starts: piece.first..=piece.last, ..span.window.clone() };
            Ok(Span { window, ..span.clone() })
        };
        let cells = self.cells.find(pieces.iter().map(span).collect::<Result<_>>()?)?;
        let records = self.cells.read(cells)?;
        self.text_of(&records, records.order())
    }

    /// Divides pieces into groups of at most about [`PIECE`] bytes that one query can find; returns the number of the
    /// first piece of each. `length` is that of the text of all pieces.
    fn groups(&self, pieces: &[Piece], length: u64) -> Vec<usize> {
        let layout = &self.dataset.layout;
        // A contig that has other pieces is not whole in one of these.
        let is_whole = |number: usize| {
            let span = |number: usize| pieces.get(number).map(|piece| piece.span);
            span(number) != span(number + 1) && number.checked_sub(1).is_none_or(|before| span(number) != span(before))
        };
        let can_join = |number: usize, first: usize| {
            let spans = [first, number].map(|number| self.spans.get(pieces.get(number)?.span));
            let [Some(one), Some(other)] = spans else { return false };
            one.contig == other.contig || one.can_join(other, layout) && is_whole(number) && is_whole(first)
        };
        let mut groups: Vec<usize> = Vec::new();
        for number in 0..pieces.len() {
            let end = pieces.get(number + 1).map_or(length, |next| next.place);
            let place = |first: usize| pieces.get(first).map_or(0, |piece| piece.place);
            let fits = |first: &usize| end - place(*first) <= PIECE as u64 && can_join(number, *first);
            if !groups.last().is_some_and(fits) {
                groups.push(number);
            }
        }
        groups
    }

    /// Returns all pieces, and the length of their text. Caches the first ones under the number of `owner`.
    fn measure(self: &Arc<Self>, owner: u64) -> Result<(Vec<Piece>, u64)> {
        let most = self.dataset.data.context().budget().text_pieces() as u64;
        let (mut pieces, mut length, mut walk) = (Vec::new(), 0u64, Walk::new(self.clone()));
        while let Some(made) = walk.next()? {
            for (piece, text) in made.into_iter().filter(|(_, text)| !text.is_empty()) {
                let (place, size) = (length, text.len());
                length = length.saturating_add(size as u64);
                if length <= most {
                    let key = IndexKey::TextPiece(owner, pieces.len() as u64);
                    self.indexes().get_or_load(key, || Ok((text, size)))?;
                }
                pieces.push(Piece { place, ..piece });
            }
        }
        self.dataset.data.context().saved.note_measured(walk.records);
        Ok((pieces, length))
    }

    fn indexes(&self) -> &Indexes {
        &self.dataset.data.context().indexes
    }

    /// Describes which records of the dataset these are, and their encoding.
    fn description(&self) -> String {
        let kind = if matches!(self.lines, Lines::Merged(_)) { "merged" } else { "separate" };
        let encoding = if self.bcf.is_some() { "bcf " } else { "" };
        let mut digest = Sha256::new();
        self.spans.iter().for_each(|span| digest.update(format!("{span:?}")));
        format!("{encoding}{kind} {:?}", digest.finalize())
    }

    /// Decodes pieces that an earlier mount has saved; `None` if they are malformed.
    fn decode(&self, bytes: &[u8]) -> Option<(Vec<Piece>, u64)> {
        let (numbers, []) = bytes.as_chunks() else { return None };
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let (length, rest) = numbers.split_first()?;
        let (found, []) = rest.as_chunks::<4>() else { return None };
        let piece = |[span, first, last, place]: &[u64; 4]| {
            let span = usize::try_from(*span).ok().filter(|span| *span < self.spans.len())?;
            Some(Piece { span, first: u32::try_from(*first).ok()?, last: u32::try_from(*last).ok()?, place: *place })
        };
        let pieces = found.iter().map(piece).collect::<Option<Vec<Piece>>>()?;
        let ascends = pieces
            .windows(2)
            .all(|two| two[0].place < two[1].place && (two[0].span, two[0].last) < (two[1].span, two[1].first));
        let begins = pieces.first().map_or(*length, |first| first.place) == 0;
        let ends = pieces.last().is_none_or(|last| last.place < *length) && *length <= i64::MAX as u64;
        let is_sound = ascends && begins && ends && pieces.iter().all(|piece| piece.first <= piece.last);
        is_sound.then_some((pieces, *length))
    }
}

fn encode(pieces: &[Piece], length: u64) -> Vec<u8> {
    let numbers =
        pieces.iter().flat_map(|piece| [piece.span as u64, piece.first.into(), piece.last.into(), piece.place]);
    [length].into_iter().chain(numbers).flat_map(u64::to_le_bytes).collect()
}

/// A range of positions on a contig, and the offset of its text in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// The number of the span.
    span: usize,
    first: u32,
    last: u32,
    place: u64,
}

/// A piece and its text.
type MadePiece = (Piece, Vec<u8>);

/// Reads all records in order, and makes their lines.
struct Walk {
    records_of: Arc<VariantText>,
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
    records: u64,
}

/// The most times by which the width of a window grows.
const GROWTH: u64 = 8;

impl Walk {
    fn new(records_of: Arc<VariantText>) -> Self {
        let text_of_position = 64 + 8 * records_of.samples.len();
        let mut walk = Walk {
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
    fn next(&mut self) -> Result<Option<Vec<MadePiece>>> {
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
        let (number, found, cells) = self.find(first)?;
        let [count, growth] = [found.spans().len(), self.growth(cells) as usize];
        let last = found.spans().last().map(|span| span.window.clone());
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
            self.width = self.width.saturating_mul(growth as u32);
        }
        if cells > 0 {
            let window = self.records_of.cells.read(found)?;
            self.records += window.order().len() as u64;
            self.window = Some((number, window));
        }
        self.done = 0;
        match end.checked_add(1).filter(|_| !is_at_end) {
            Some(next) => self.next = Some(next),
            None => self.go_to(number + count),
        }
        Ok(true)
    }

    /// Returns by how much the next window may be wider than one with this number of cells.
    fn growth(&self, cells: u64) -> u64 {
        (self.records_of.window_cells() / cells.max(1)).clamp(1, GROWTH)
    }

    /// Returns the next window: the number of its first span, its cells and their number. `first` is the position at
    /// which it begins.
    fn find(&mut self, first: u32) -> Result<(usize, SpanCells, u64)> {
        let wanted = self.records_of.window_cells();
        loop {
            let spans = self.spans_from(first);
            let (is_one, is_anchored) = (spans.len() == 1, spans.iter().all(|span| span.window.anchored_at.is_some()));
            let found = self.records_of.cells.find(spans)?;
            let most = found.most()?;
            // Counting takes reading the coordinates of that many cells.
            if !is_one && most > self.most_cells.saturating_mul(GROWTH).max(wanted) {
                self.together = found.spans().len() / 2;
                continue;
            }
            let cells = found.count()?;
            if cells <= wanted.saturating_mul(2) || is_one && (self.width == 1 || is_anchored) {
                self.most_cells = most;
                self.check(cells)?;
                return Ok((self.span, found, cells));
            }
            let share = |of: u64| u64::try_from(u128::from(of) * u128::from(wanted) / u128::from(cells)).unwrap_or(of);
            if is_one {
                self.width = u32::try_from(share(self.width.into())).unwrap_or(self.width).clamp(1, self.width - 1);
            } else {
                self.together = usize::try_from(share(found.spans().len() as u64)).unwrap_or(1).max(1);
            }
        }
    }

    /// Returns the spans of the next window, which begins at a position: several whole ones or a part of one.
    fn spans_from(&self, first: u32) -> Vec<Span> {
        let VariantText { spans, dataset, .. } = &*self.records_of;
        let rest = spans.get(self.span..).unwrap_or_default();
        let Some(span) = rest.first() else { return Vec::new() };
        if first == *span.window.starts.start() {
            let joined = rest.iter().take_while(|other| span.can_join(other, &dataset.layout));
            let joined: Vec<Span> = joined.take(self.together).cloned().collect();
            if joined.len() > 1 {
                return joined;
            }
        }
        let mut starts = span.window.starts.clone();
        // All records that begin before a region have their anchors at the same coordinates, so a narrower range of
        // starts has as many cells.
        if span.window.anchored_at.is_none() {
            let width = Some(self.width - 1).filter(|_| self.width < u32::MAX);
            let last = width.and_then(|width| first.checked_add(width)).unwrap_or(u32::MAX);
            starts = first..=last.min(*starts.end());
        }
        vec![Span { window: Window { starts, ..span.window.clone() }, ..span.clone() }]
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

/// The bytes of a file, read sequentially.
struct InSequence {
    head: Option<Vec<u8>>,
    walk: Walk,
    ready: VecDeque<Vec<u8>>,
    /// The spans that had records so far.
    spans: BTreeSet<usize>,
    remark: Arc<OnceLock<String>>,
}

impl Forward for InSequence {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(head) = self.head.take() {
            *out = head;
            return Ok(true);
        }
        loop {
            if let Some(text) = self.ready.pop_front() {
                *out = text;
                return Ok(true);
            }
            let Some(made) = self.walk.next()? else {
                self.walk.records_of.set_remark(&self.remark, self.spans.iter().copied())?;
                return Ok(false);
            };
            for (piece, mut text) in made.into_iter().filter(|(_, text)| !text.is_empty()) {
                self.spans.insert(piece.span);
                match self.ready.back_mut().filter(|last| last.len() + text.len() <= PIECE) {
                    Some(last) => last.append(&mut text),
                    None => self.ready.push_back(text),
                }
            }
        }
    }
}

/// The records of a file with random access. Memory: 32 bytes for each piece, and the text of a few groups. Pieces from
/// the measuring pass are in the cache of indexes.
struct TextContent {
    records: Arc<VariantText>,
    pieces: Vec<Piece>,
    /// The first piece of each group of pieces that are read together.
    groups: Vec<usize>,
    length: u64,
    /// Identifies this file's pieces in the cache.
    owner: u64,
    kept: LruCache<usize, Arc<Vec<u8>>>,
}

impl TextContent {
    /// Returns the pieces of a group.
    fn pieces_of(&self, group: usize) -> Range<usize> {
        let first = |group: usize| self.groups.get(group).copied().unwrap_or(self.pieces.len());
        first(group)..first(group + 1)
    }

    /// Returns the range of a group in the file.
    fn place(&self, group: usize) -> Range<u64> {
        let start = |number: usize| self.pieces.get(number).map_or(self.length, |piece| piece.place);
        let pieces = self.pieces_of(group);
        start(pieces.start)..start(pieces.end)
    }

    /// Returns the number of the group that contains a byte.
    fn group_at(&self, place: u64) -> usize {
        let piece = self.pieces.partition_point(|piece| piece.place <= place).saturating_sub(1);
        self.groups.partition_point(|first| *first <= piece).saturating_sub(1)
    }

    fn text(&self, group: usize) -> Result<Arc<Vec<u8>>> {
        if let Some(text) = self.kept.get(&group) {
            return Ok(text);
        }
        let numbers = self.pieces_of(group);
        let text = match self.measured(&numbers)? {
            Some(measured) => measured,
            None => Arc::new(self.records.text(self.pieces.get(numbers.clone()).unwrap_or_default())?),
        };
        let place = self.place(group);
        if text.len() != place.end - place.start {
            let first = self.pieces.get(numbers.start).map_or(0, |piece| piece.first);
            let reason = format!("records at {first} that have another length than they had");
            return Err(Error::damaged(reason).in_array(self.records.dataset.data.path()));
        }
        self.kept.put(group, text.clone());
        Ok(text)
    }

    /// Returns the text of pieces of the measuring pass, if all are still cached.
    fn measured(&self, numbers: &Range<usize>) -> Result<Option<Arc<Vec<u8>>>> {
        let piece = |number: usize| self.records.indexes().get(IndexKey::TextPiece(self.owner, number as u64));
        if numbers.len() == 1 {
            return piece(numbers.start);
        }
        let mut text: Vec<u8> = Vec::new();
        for number in numbers.clone() {
            let Some(own) = piece(number)? else { return Ok(None) };
            text.extend_from_slice(&own);
        }
        Ok(Some(Arc::new(text)))
    }
}

impl Content for TextContent {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let group = self.group_at(at);
            let place = self.place(group);
            let text = self.text(group)?;
            let within = at.checked_sub(place.start).and_then(|from| text.get(usize::try_from(from).ok()?..));
            let within = within.filter(|within| !within.is_empty());
            let within = within.ok_or_else(|| Error::internal("a read past the end of a text"))?;
            let (mut now, later) = rest.split_at(within.len() as u64);
            if let Some(now) = now.wanted() {
                now.copy_from_slice(&within[..now.len()]);
            }
            at += now.len();
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        self.place(self.group_at(offset))
    }
}
