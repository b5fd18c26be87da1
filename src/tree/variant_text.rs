//! The bytes of a VCF or BCF file of a dataset: the records of one sample, or of several merged samples, window by
//! window.
//!
//! The width of a window of positions is adapted so that it has about a fixed number of cells. Lines are made on all
//! cores, in pieces of about [`PIECE`] bytes. For random access, one pass records the positions and the length of each
//! piece. The first pieces of this pass stay in the cache for the read that usually follows.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tilefs_export::compose::Concat;
use tilefs_export::vcf::{BcfHeader, FileRecord, Header, IndexFormat, MergedFile, Merger, Window, csi_of_bcf, tabix};
use tilefs_export::{Content, Forward};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_reader::array::{IndexKey, Indexes};
use tilefs_reader::read::Output;
use tilefs_reader::recent::Recent;
use tilefs_reader::threads::{self, cancellation, for_all};

use super::lazy::Remark;
use super::variant_cells::{RecordKey, SampleCells, Span, WindowRecords};
use super::variant_forms::{Encoding, VcfRecords};
use super::variant_regions::WrittenRegion;
use super::variant_spans::{FileSamples, SelectedRegions};
use super::variants::{Sample, VariantDataset};

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

/// Number of pieces that are cached for reads at nearby offsets.
const KEPT: usize = 4;

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

    /// Appends the lines of all records at one position.
    fn append(&self, records: &[FileRecord<'_>], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Lines::Separate { header, sample } => {
                records.iter().try_for_each(|one| one.record.append(header, sample.is_some(), out))
            }
            Lines::Merged(merger) => merger.append(records, out),
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

    /// Sets the remark, if there is one, about a file with records in these spans.
    fn set_remark(&self, remark: &Remark, spans: impl Iterator<Item = usize>) -> Result<()> {
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

    /// Returns the bytes of some records of a window.
    fn text_of(&self, records: &WindowRecords, keys: &[RecordKey]) -> Result<Vec<u8>> {
        let (mut text, mut lines) = (Vec::new(), Vec::new());
        let made = self.cells.for_each_position(records, keys, |at_position| {
            cancellation::check()?;
            let Some(header) = &self.bcf else { return self.lines.append(at_position, &mut text) };
            lines.clear();
            self.lines.append(at_position, &mut lines)?;
            header.append_records(&lines, &mut text)
        });
        made.in_array(self.dataset.data.path())?;
        Ok(text)
    }

    /// Returns the bytes of a piece.
    fn text(&self, piece: &Piece) -> Result<Vec<u8>> {
        let span = self.spans.get(piece.span).ok_or_else(|| Error::internal("a piece of no contig"))?;
        let window = Window { starts: piece.first..=piece.last, ..span.window.clone() };
        let records = self.cells.read(&Span { window, ..span.clone() })?;
        self.text_of(&records, records.order())
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

impl VcfRecords for VariantText {
    fn content(self: Arc<Self>, remark: &Remark) -> Result<Arc<dyn Content>> {
        let (head, owner) = (self.head()?, self.indexes().new_owner());
        let saved = &self.dataset.data.context().saved;
        let key = self.dataset.saved_key(self.description(), &head)?;
        let encode = |(pieces, length): &(Vec<Piece>, u64)| encode(pieces, *length);
        let (pieces, length) = saved.get_or_make(key, |bytes| self.decode(bytes), encode, || self.measure(owner))?;
        if length.checked_add(head.len() as u64).is_none_or(|length| length > i64::MAX as u64) {
            return Err(Error::unsupported("the text would be longer than 2^63 bytes"));
        }
        self.set_remark(remark, pieces.iter().map(|piece| piece.span))?;
        let lines = TextContent { records: self, pieces, length, owner, kept: Recent::new(KEPT) };
        Ok(Arc::new(Concat::new(vec![Arc::new(head), Arc::new(lines)])))
    }

    fn forward(self: Arc<Self>, remark: &Remark) -> Result<Box<dyn Forward>> {
        let (head, remark) = (Some(self.head()?), remark.clone());
        let (walk, ready, spans) = (Walk::new(self), VecDeque::new(), BTreeSet::new());
        Ok(Box::new(InSequence { head, walk, ready, spans, remark }))
    }

    fn index(&self, content: &dyn Content, format: IndexFormat) -> Result<Vec<u8>> {
        self.dataset.index(self.description(), &self.head()?, format, || match &self.bcf {
            Some(header) => csi_of_bcf(content, header),
            None => tabix(content, format),
        })
    }
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
    span: usize,
    /// The first position of the span that no window has covered yet.
    next: Option<u32>,
    /// The number of positions of the next window.
    width: u32,
    window: Option<WindowRecords>,
    /// The number of records of the window whose lines are made.
    done: usize,
    /// The average length of the text at one position.
    text_of_position: usize,
    /// The number of records that were read.
    records: u64,
}

impl Walk {
    fn new(records_of: Arc<VariantText>) -> Self {
        let text_of_position = 64 + 8 * records_of.samples.len();
        let next = records_of.spans.first().map(|span| *span.window.starts.start());
        Walk { records_of, span: 0, next, width: FIRST_WINDOW, window: None, done: 0, text_of_position, records: 0 }
    }

    /// Returns the next pieces and their texts; `None` at the end.
    fn next(&mut self) -> Result<Option<Vec<MadePiece>>> {
        loop {
            cancellation::check()?;
            if let Some(window) = &self.window
                && let Some(rest) = window.order().get(self.done..).filter(|rest| !rest.is_empty())
            {
                let parts = parts(rest, (PIECE / self.text_of_position).max(1), 2 * threads::decoding());
                let made = for_all(parts.len(), |number| {
                    let keys = parts.get(number).cloned().and_then(|part| rest.get(part)).unwrap_or_default();
                    let ends = keys.first().zip(keys.last()).map_or((0, 0), |(first, last)| (first.start, last.start));
                    let piece = Piece { span: self.span, first: ends.0, last: ends.1, place: 0 };
                    Ok::<_, Error>((piece, self.records_of.text_of(window, keys)?))
                })?;
                let done = parts.last().map_or(0, |part| part.end);
                let positions = rest[..done].chunk_by(|one, next| one.start == next.start).count();
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
        let Some(span) = self.records_of.spans.get(self.span) else { return Ok(false) };
        let Some(first) = self.next else {
            self.span += 1;
            self.next = self.records_of.spans.get(self.span).map(|span| *span.window.starts.start());
            return Ok(true);
        };
        let wanted = self.records_of.window_cells();
        let window = |width: u32| {
            let last = first.saturating_add(width - 1).min(*span.window.starts.end());
            Span { window: Window { starts: first..=last, ..span.window.clone() }, ..span.clone() }
        };
        let (mut found, cells) = loop {
            let found = window(self.width);
            let cells = self.records_of.cells.count(&found)?;
            // All records that begin earlier have their anchors at the same coordinates, so a narrower range of starts
            // has as many cells.
            if cells <= wanted.saturating_mul(2) || self.width == 1 || found.window.anchored_at.is_some() {
                break (found, cells);
            }
            let share = u128::from(self.width) * u128::from(wanted) / u128::from(cells);
            self.width = u32::try_from(share).unwrap_or(self.width).clamp(1, self.width - 1);
        };
        if cells > MAX_CELLS.max(MAX_CELLS_OF_SAMPLE.saturating_mul(self.records_of.samples.len() as u64)) {
            let reason = format!("{cells} cells at one position, or within one anchor gap");
            return Err(Error::unsupported(reason).in_array(self.records_of.dataset.data.path()));
        }
        if found.window.anchored_at.is_some() {
            found.window.starts = span.window.starts.clone();
        }
        let last = *found.window.starts.end();
        if cells > 0 {
            let window = self.records_of.cells.read(&found)?;
            self.records += window.order().len() as u64;
            self.window = Some(window);
        }
        self.done = 0;
        self.next = last.checked_add(1).filter(|next| next <= span.window.starts.end());
        let growth = (wanted / cells.max(1)).clamp(1, 8) as u32;
        self.width = self.width.saturating_mul(growth);
        Ok(true)
    }
}

/// Divides records between positions into at most `most` parts of about `positions` positions each.
fn parts(records: &[RecordKey], positions: usize, most: usize) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut end, mut in_part) = (Vec::new(), 0, 0, 0);
    for position in records.chunk_by(|one, next| one.start == next.start) {
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
    remark: Remark,
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
            for (piece, text) in made.into_iter().filter(|(_, text)| !text.is_empty()) {
                self.spans.insert(piece.span);
                self.ready.push_back(text);
            }
        }
    }
}

/// The records of a file with random access. Memory: 24 bytes for each [`PIECE`], and a few pieces. Pieces from the
/// measuring pass are in the cache of indexes.
struct TextContent {
    records: Arc<VariantText>,
    pieces: Vec<Piece>,
    length: u64,
    /// Identifies this file's pieces in the cache.
    owner: u64,
    kept: Recent<usize, Arc<Vec<u8>>>,
}

impl TextContent {
    /// Returns the range of a piece in the file.
    fn place(&self, number: usize) -> Range<u64> {
        let start = |number: usize| self.pieces.get(number).map_or(self.length, |piece| piece.place);
        start(number)..start(number + 1)
    }

    /// Returns the number of the piece that contains a byte.
    fn piece_at(&self, place: u64) -> usize {
        self.pieces.partition_point(|piece| piece.place <= place).saturating_sub(1)
    }

    fn text(&self, number: usize) -> Result<Arc<Vec<u8>>> {
        if let Some(text) = self.kept.get(&number) {
            return Ok(text);
        }
        let piece = self.pieces.get(number).ok_or_else(|| Error::internal("a piece past the end"))?;
        let text = match self.records.indexes().get(IndexKey::TextPiece(self.owner, number as u64))? {
            Some(measured) => measured,
            None => Arc::new(self.records.text(piece)?),
        };
        let place = self.place(number);
        if text.len() != place.end - place.start {
            let reason = format!("records at {} that have another length than they had", piece.first);
            return Err(Error::damaged(reason).in_array(self.records.dataset.data.path()));
        }
        self.kept.put(number, text.clone());
        Ok(text)
    }
}

impl Content for TextContent {
    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let number = self.piece_at(at);
            let place = self.place(number);
            let text = self.text(number)?;
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
        self.place(self.piece_at(offset))
    }
}
