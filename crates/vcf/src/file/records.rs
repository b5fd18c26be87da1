//! The records of a VCF or BCF file of a dataset, of one sample or of several merged samples, as the bytes of the file;
//! and those of PLINK's files of merged samples.

use std::sync::{Arc, OnceLock};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_reader::array::Indexes;
use tilefs_threads::cancellation;

use super::sites::{BlockSites, FoundParts};
use crate::bcf::{BcfHeader, BcfRecords};
use crate::dataset::arrays::{Sample, VariantDataset};
use crate::dataset::cells::{RecordKey, RecordSpan, SampleCells, WindowRecords};
use crate::dataset::regions::WrittenRegion;
use crate::dataset::spans::{FileSamples, SelectedRegions};
use crate::header::Header;
use crate::layout::PositionWindow;
use crate::line::Line;
use crate::merge::{FileRecord, LineRule, MergedFile, MergedLines, Merger};
use crate::plink::{self, BED_HEAD};
use crate::reference::{ReferenceBases, ReferenceGenome};

/// Bytes that most lines have at least, for memory.
const LEAST_LINE: usize = 32;

/// The remark about a file of PLINK that has none of the sites.
const NO_SITES: &str =
    "no record here has exactly one alternative allele, as sites in PLINK's files must; vcf/merged/ has the records";

/// The encoding of the records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// VCF, a text.
    Text,
    /// BCF. Files in BCF are always in BGZF.
    Bcf,
    /// The genotypes of sites with one alternative allele, for PLINK.
    Bed,
    /// These sites.
    Bim,
}

/// The records of some samples as the bytes of a file. Memory: the header and the name of each sample; while lines are
/// made, also a window of cells and a few pieces of text.
pub struct VariantText {
    pub(super) dataset: Arc<VariantDataset>,
    lines: RecordLines,
    encoding: Encoding,
    /// The header of the BCF file, if it is one.
    pub(super) bcf: Option<BcfHeader>,
    pub(super) samples: Vec<Sample>,
    is_all: bool,
    pub(super) cells: SampleCells,
    /// The regions to which the records are restricted.
    selected: Option<SelectedRegions>,
    /// All spans in order, each as wide as possible.
    pub(super) spans: Vec<RecordSpan>,
}

/// The conversion of records to lines.
enum RecordLines {
    /// The records of one sample, each as a line, or each site of a block.
    Separate {
        header: Arc<Header>,
        sample: Option<Vec<u8>>,
        sites: Option<BlockSites>,
    },
    Merged(Merger),
}

impl RecordLines {
    fn head(&self) -> Result<Vec<u8>> {
        match self {
            RecordLines::Separate { header, sample, .. } => header.text(sample.as_deref()),
            RecordLines::Merged(merger) => merger.head(),
        }
    }

    fn header(&self) -> &Header {
        match self {
            RecordLines::Separate { header, .. } => header,
            RecordLines::Merged(merger) => merger.header(),
        }
    }

    /// Prepares to make lines.
    fn maker(&self) -> LineMaker<'_> {
        match self {
            RecordLines::Separate { header, sample, sites } => {
                let sites = sites.as_ref().map(|sites| (sites, sites.bases()));
                LineMaker::Separate { header, has_sample: sample.is_some(), sites }
            }
            RecordLines::Merged(merger) => LineMaker::Merged(Box::new(merger.lines())),
        }
    }
}

/// Makes lines of records, one position after the other.
enum LineMaker<'l> {
    Separate { header: &'l Header, has_sample: bool, sites: Option<(&'l BlockSites, ReferenceBases<'l>)> },
    Merged(Box<MergedLines<'l>>),
}

impl LineMaker<'_> {
    /// Calls `visit` with each line of the records at one position or, where each site of a block is a line, with those
    /// of one record.
    fn for_each_line(
        &mut self,
        records: &[FileRecord<'_>],
        mut visit: impl FnMut(&Line<'_>) -> Result<()>,
    ) -> Result<()> {
        match self {
            LineMaker::Separate { header, has_sample, sites: None } => {
                records.iter().try_for_each(|one| visit(&one.record.line(header, *has_sample)?))
            }
            LineMaker::Separate { header, has_sample, sites: Some((sites, bases)) } => {
                sites.for_each_line(records, header, *has_sample, bases, &mut visit)
            }
            LineMaker::Merged(lines) => lines.for_each_line(records, visit),
        }
    }
}

impl Recorded for RecordLines {
    fn record(&self, recorder: &mut Recorder) {
        match self {
            RecordLines::Separate { header, sample, sites } => {
                recorder.add::<Self>((sample, sites.is_some()));
                header.record(recorder);
                sites.iter().for_each(|sites| sites.record(recorder));
            }
            RecordLines::Merged(merger) => merger.record(recorder),
        }
    }
}

impl Recorded for VariantText {
    fn record(&self, recorder: &mut Recorder) {
        // The cells are those of the samples, and the regions are in the spans.
        let Self { dataset, lines, encoding, bcf, samples, is_all, cells: _, selected, spans } = self;
        let bcf = bcf.as_ref().map(BcfHeader::bytes);
        recorder.add::<Self>((encoding, bcf, samples, is_all, selected.is_some()));
        recorder.add_shown::<[RecordSpan]>(spans);
        lines.record(recorder);
        dataset.record(recorder);
    }
}

impl VariantText {
    /// Opens the records of one sample: all, or those that overlap some regions. Given a reference genome, each site of
    /// a block is a record. Reads the sample's header, and the metadata and coordinates that tell which contigs have
    /// records.
    ///
    /// # Errors
    /// Fails if these cannot be read.
    pub fn of_sample(
        dataset: Arc<VariantDataset>,
        sample: &Sample,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
        reference: Option<Arc<ReferenceGenome>>,
    ) -> Result<Self> {
        let header = Arc::new(dataset.header(sample)?);
        let sites = reference.map(|reference| BlockSites::new(reference, &header));
        let name = sample.has_column().then(|| sample.name.clone());
        let lines = RecordLines::Separate { header, sample: name, sites };
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
        rule: LineRule,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
    ) -> Result<Self> {
        let headers = dataset.headers(samples)?;
        let files = samples
            .iter()
            .zip(headers)
            .map(|(sample, header)| MergedFile { header, sample: sample.has_column().then(|| sample.name.clone()) });
        let lines = RecordLines::Merged(Merger::new(files.collect(), rule)?);
        Self::new(dataset, lines, samples, is_all, regions, encoding)
    }

    fn new(
        dataset: Arc<VariantDataset>,
        lines: RecordLines,
        samples: &[Sample],
        is_all: bool,
        regions: Option<&[WrittenRegion]>,
        encoding: Encoding,
    ) -> Result<Self> {
        let cells = SampleCells::new(dataset.clone(), samples, is_all)?;
        let file = FileSamples { dataset: &dataset, samples, is_all, header: lines.header() };
        let selected = regions.map(|regions| file.selected(regions)).transpose()?;
        let has_sites = matches!(lines, RecordLines::Separate { sites: Some(_), .. });
        let spans = match &selected {
            Some(selected) if has_sites => file.lines_of(&selected.regions)?,
            Some(selected) => file.spans_of(&selected.regions)?,
            None => file.spans_of_all()?,
        };
        let bcf = match encoding {
            Encoding::Text | Encoding::Bed | Encoding::Bim => None,
            Encoding::Bcf => {
                let more = file.unnamed_contigs(&spans, selected.is_none())?;
                Some(BcfHeader::new(&lines.head()?, &more).in_array(dataset.data.path())?)
            }
        };
        Ok(VariantText { dataset, lines, encoding, bcf, samples: samples.to_vec(), is_all, cells, selected, spans })
    }

    /// Returns how blocks become lines, and the header, if each site of a block is a line.
    pub(super) fn sites(&self) -> Option<(&BlockSites, &Header)> {
        match &self.lines {
            RecordLines::Separate { header, sites: Some(sites), .. } => Some((sites, header)),
            _ => None,
        }
    }

    /// Sets the remark, if there is one, about a file with text in these spans. `has_records` tells whether any of its
    /// samples' records are in its spans: PLINK's files have no text of some.
    pub(super) fn set_remark(
        &self,
        remark: &Arc<OnceLock<String>>,
        spans: impl Iterator<Item = usize>,
        has_records: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        let mut spans = spans.peekable();
        if spans.peek().is_none() && matches!(self.encoding, Encoding::Bed | Encoding::Bim) && has_records()? {
            let _ = remark.set(NO_SITES.to_owned());
            return Ok(());
        }
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
    pub(super) fn head(&self) -> Result<Vec<u8>> {
        match (&self.bcf, self.encoding) {
            (Some(header), _) => Ok(header.bytes().to_vec()),
            (None, Encoding::Bed) => Ok(BED_HEAD.to_vec()),
            (None, Encoding::Bim) => Ok(Vec::new()),
            (None, Encoding::Text | Encoding::Bcf) => self.lines.head(),
        }
    }

    /// Returns the bytes of some records of a window, span by span. `first` is the number of the window's first span.
    pub(super) fn texts_of(&self, records: &WindowRecords, first: usize, keys: &[RecordKey]) -> Result<Vec<MadePiece>> {
        let mut pieces = Vec::new();
        for own in keys.chunk_by(|one, next| one.span == next.span) {
            let [Some(low), Some(high)] = [own.first(), own.last()] else { continue };
            let piece =
                TextPiece { span: first + low.span as usize, first: low.position, last: high.position, place: 0 };
            pieces.push((piece, self.text_of(records, own)?));
        }
        Ok(pieces)
    }

    /// Returns the bytes of some records of a window.
    fn text_of(&self, records: &WindowRecords, keys: &[RecordKey]) -> Result<Vec<u8>> {
        let mut text = Vec::with_capacity(keys.len().saturating_mul(LEAST_LINE));
        let mut lines = self.lines.maker();
        let columns = self.samples.iter().filter(|sample| sample.has_column()).count();
        let mut bcf = self.bcf.as_ref().map(BcfRecords::new);
        let append = |together: &[FileRecord<'_>]| {
            cancellation::check()?;
            lines.for_each_line(together, |line| match (&mut bcf, self.encoding) {
                (Some(bcf), _) => bcf.append(line, &mut text),
                (None, Encoding::Bed) => plink::append_genotypes(line, columns, &mut text),
                (None, Encoding::Bim) => {
                    plink::append_site(line, &mut text);
                    Ok(())
                }
                (None, Encoding::Text | Encoding::Bcf) => line.append(&mut text),
            })
        };
        let made = match self.sites() {
            Some(_) => self.cells.for_each_record(records, keys, append),
            None => self.cells.for_each_position(records, keys, append),
        };
        made.in_array(self.dataset.data.path())?;
        Ok(text)
    }

    /// Finds the cells that may have the lines of some parts of spans. Reads no cell.
    ///
    /// # Errors
    /// Fails if the R-trees cannot be read.
    pub(super) fn find(&self, parts: Vec<RecordSpan>) -> Result<FoundParts> {
        match self.sites() {
            Some(_) => FoundParts::of_sites(&self.cells, &self.dataset.layout, parts),
            None => FoundParts::of_records(&self.cells, parts),
        }
    }

    /// Reads the records of the lines of some parts; returns `None` if each site of a block is a line, and there are more
    /// than `most`.
    ///
    /// # Errors
    /// Fails if a record cannot be read, or a block is malformed.
    pub(super) fn read(&self, found: FoundParts, most: usize) -> Result<Option<WindowRecords>> {
        match self.sites() {
            Some((sites, header)) => {
                let lines = sites.read((&self.dataset, &self.cells), header, found, most);
                lines.in_array(self.dataset.data.path())
            }
            None => self.cells.read(found.cells).map(Some),
        }
    }

    /// Returns the bytes of consecutive pieces.
    pub(super) fn text(&self, pieces: &[TextPiece]) -> Result<Vec<u8>> {
        let span = |piece: &TextPiece| {
            let span = self.spans.get(piece.span).ok_or_else(|| Error::internal("a piece of no contig"))?;
            let window = PositionWindow { starts: piece.first..=piece.last, ..span.window.clone() };
            Ok(RecordSpan { window, ..span.clone() })
        };
        let found = self.find(pieces.iter().map(span).collect::<Result<_>>()?)?;
        let records = self.read(found, usize::MAX)?.ok_or_else(|| Error::internal("pieces of too many lines"))?;
        self.text_of(&records, records.order())
    }

    pub(super) fn indexes(&self) -> &Indexes {
        &self.dataset.data.context().indexes
    }
}

/// A range of positions on a contig, and the offset of its text in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextPiece {
    /// The number of the span.
    pub span: usize,
    pub first: u32,
    pub last: u32,
    pub place: u64,
}

/// A piece and its text.
pub(super) type MadePiece = (TextPiece, Vec<u8>);
