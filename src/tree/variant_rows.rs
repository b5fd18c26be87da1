//! The file of a sample: its header, and the lines of its records contig by contig, in the order of the header.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tilefs_export::compose::Concat;
use tilefs_export::vcf::{Columns, ContigOf, Extracted, ExtractedKind, Header, VariantRows};
use tilefs_export::{Column, Content, Forward, text};
use tilefs_format::error::{Error, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::sparse::CoordinateRange;

use super::formats::unrepresentable;
use super::parts::PartByPart;
use super::sparse::SparseSubarray;
use super::subarray::{FieldId, Subarray, column};
use super::tables::measured;
use super::variant_forms::VcfRecords;
use super::variants::{Sample, VariantDataset, extent_attributes};

/// The dimension of contigs of layout 4, its place among the dimensions, and that of samples.
const CONTIG: &str = "contig";
const CONTIG_AXIS: usize = 0;
const SAMPLE_AXIS: usize = 2;

/// A region of a contig: positions from the first to the last, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub contig: Vec<u8>,
    pub positions: RangeInclusive<u32>,
}

/// All positions of a contig.
pub const ALL: RangeInclusive<u32> = 0..=u32::MAX;

/// The file of a sample, or of the part of it that overlaps a region.
pub struct SampleFile {
    dataset: Arc<VariantDataset>,
    sample: Sample,
    header: Arc<Header>,
    /// The records in order, in parts.
    parts: Vec<Part>,
}

/// Records of one contig, or of all whose positions count all contigs.
#[derive(Clone)]
struct Part {
    subarray: Arc<dyn Subarray>,
    contig: PartContig,
    /// The selected positions, counted as the dataset does.
    positions: Option<RangeInclusive<u32>>,
}

#[derive(Debug, Clone)]
enum PartContig {
    One(Vec<u8>),
    /// Contigs that the header does not name.
    Others,
    /// All contigs of a dataset of layout 2 or 3.
    ByPosition,
}

impl SampleFile {
    /// Finds the contigs of a sample. Reads its header and the footers of fragments, and no record.
    ///
    /// # Errors
    /// Fails if these cannot be read.
    pub fn new(dataset: Arc<VariantDataset>, sample: Sample, region: Option<&Region>) -> Result<Self> {
        let header = Arc::new(dataset.header(&sample)?);
        let parts = match dataset.numbered()? {
            Some(numbered) => {
                let positions = match region {
                    None => Some(None),
                    Some(region) => numbered.contigs.positions_of(&region.contig, &region.positions).map(Some),
                };
                let part = |positions: Option<RangeInclusive<u32>>| {
                    let range = positions.as_ref().map(|positions| coordinates(&dataset, positions));
                    Part {
                        subarray: selected(&dataset, vec![Some(vec![sample.range()]), range]),
                        contig: PartContig::ByPosition,
                        positions,
                    }
                };
                positions.map(part).into_iter().collect()
            }
            None => match region {
                Some(region) => {
                    let positions = Some(&region.positions).filter(|positions| **positions != ALL);
                    vec![contig_part(&dataset, &sample, &region.contig, positions)]
                }
                None => all_contigs(&dataset, &sample, &header)?,
            },
        };
        Ok(SampleFile { dataset, sample, header, parts })
    }

    fn head(&self) -> Result<Vec<u8>> {
        self.header.text(self.sample.has_column().then_some(self.sample.name.as_slice()))
    }

    /// Returns the lines of some rows of a part.
    fn rows(&self, part: &Part, subarray: Arc<dyn Subarray>) -> Result<Arc<VariantRows>> {
        let columns = self.columns(part, &*subarray)?;
        let (layout, header) = (self.dataset.layout.clone(), self.header.clone());
        let rows = VariantRows::new(columns, layout, header, self.sample.has_column(), part.positions.clone())?;
        Ok(Arc::new(rows.map_err(unrepresentable)?))
    }

    fn columns(&self, part: &Part, subarray: &dyn Subarray) -> Result<Columns> {
        let schema = subarray.array().schema();
        let dimension = |name: &str| -> Result<Column> {
            let number = schema.dimensions.iter().position(|dimension| dimension.name == name);
            let id = FieldId::Dimension(number.ok_or_else(|| Error::internal("a dimension is gone"))?);
            column(subarray, id, id.describe(schema, name))
        };
        let attribute = |name: &str| -> Result<Column> {
            let number = schema.attributes.iter().position(|attribute| attribute.name == name);
            let id = FieldId::Attribute(number.ok_or_else(|| Error::internal("an attribute is gone"))?);
            column(subarray, id, id.describe(schema, name))
        };
        let version = self.dataset.layout.version();
        let [start, end] = extent_attributes(version);
        let extracted = schema.attributes.iter().filter_map(|attribute| {
            let (kind, name) = match attribute.name.split_once('_')? {
                ("info", name) => (ExtractedKind::Info, name),
                ("fmt", name) => (ExtractedKind::Format, name),
                _ => return None,
            };
            Some((kind, name.as_bytes().to_vec(), attribute.name.as_str()))
        });
        let extracted = extracted.map(|(kind, name, of)| Ok(Extracted { kind, name, column: attribute(of)? }));
        Ok(Columns {
            array: subarray.array().path().to_string(),
            coordinate: dimension(if version == 2 { "end_pos" } else { "start_pos" })?,
            start: attribute(start)?,
            end: attribute(end)?,
            quality: attribute("qual")?,
            alleles: attribute("alleles")?,
            id: attribute("id")?,
            filters: attribute("filter_ids")?,
            info: attribute("info")?,
            format: attribute("fmt")?,
            extracted: extracted.collect::<Result<_>>()?,
            contig: match (&part.contig, self.dataset.numbered()?) {
                (PartContig::One(name), _) => ContigOf::One(name.clone()),
                (PartContig::ByPosition, Some(numbered)) => ContigOf::Positions(numbered.contigs.clone()),
                _ => ContigOf::Column(Box::new(dimension(CONTIG)?)),
            },
        })
    }
}

impl VcfRecords for SampleFile {
    fn content(self: Arc<Self>) -> Result<Arc<dyn Content>> {
        let head = self.head()?;
        // The lines also depend on what is not in the array of variant calls, or may change there.
        let digest = Sha256::digest(&head);
        let mut contents: Vec<Arc<dyn Content>> = vec![Arc::new(head)];
        for part in &self.parts {
            let rows = self.rows(part, part.subarray.clone())?;
            let what = format_args!("variants {digest:?} {:?} {:?}", self.dataset.layout, part.positions);
            contents.push(Arc::new(measured(&*part.subarray, what, rows)?));
        }
        let total = contents.iter().try_fold(0u64, |total, content| total.checked_add(content.len()));
        match total.filter(|&total| total <= i64::MAX as u64) {
            Some(_) => Ok(Arc::new(Concat::new(contents))),
            None => Err(Error::unsupported("the text would be longer than 2^63 bytes")),
        }
    }

    fn forward(self: Arc<Self>) -> Result<Box<dyn Forward>> {
        let head = Some(self.head()?);
        Ok(Box::new(InSequence { parts: self.parts.iter().cloned().collect(), file: self, head, current: None }))
    }

    fn index(&self, text: &dyn Content) -> Result<Vec<u8>> {
        let places: Vec<_> = self.parts.iter().map(|part| (&part.contig, &part.positions)).collect();
        self.dataset.index(format_args!("{:?} {places:?}", self.sample), &self.head()?, text)
    }
}

/// Returns the cells of a selection, sorted by coordinates.
fn selected(dataset: &VariantDataset, ranges: Vec<Option<Vec<CoordinateRange>>>) -> Arc<dyn Subarray> {
    Arc::new(SparseSubarray::selected(dataset.data.clone(), ranges))
}

/// Returns the coordinates at which records that overlap some positions have cells.
fn coordinates(dataset: &VariantDataset, positions: &RangeInclusive<u32>) -> Vec<CoordinateRange> {
    let coordinates = dataset.layout.coordinates_of(positions);
    let end = |position: &u32| Some(Scalar::Unsigned((*position).into()));
    vec![CoordinateRange { low: end(coordinates.start()), high: end(coordinates.end()), step: 1 }]
}

fn texts(low: Option<Vec<u8>>, high: Option<Vec<u8>>) -> CoordinateRange {
    CoordinateRange { low: low.map(Scalar::Text), high: high.map(Scalar::Text), step: 1 }
}

/// Returns the records of a contig, or those that overlap some positions of it.
fn contig_part(
    dataset: &VariantDataset,
    sample: &Sample,
    contig: &[u8],
    positions: Option<&RangeInclusive<u32>>,
) -> Part {
    let range = texts(Some(contig.to_vec()), Some(contig.to_vec()));
    let of_positions = positions.map(|positions| coordinates(dataset, positions));
    let ranges = vec![Some(vec![range]), of_positions, Some(vec![sample.range()])];
    Part {
        subarray: selected(dataset, ranges),
        contig: PartContig::One(contig.to_vec()),
        positions: positions.cloned(),
    }
}

/// Returns the contigs of a sample in the order of its header, then those that the header does not name.
fn all_contigs(dataset: &VariantDataset, sample: &Sample, header: &Header) -> Result<Vec<Part>> {
    let spans = contig_spans(dataset, std::slice::from_ref(sample))?;
    let is_there = |contig: &&Vec<u8>| spans.iter().any(|(low, high)| (low..=high).contains(contig));
    let named = header.contigs().iter().filter(is_there).map(|contig| contig_part(dataset, sample, contig, None));
    let mut parts: Vec<Part> = named.collect();
    let known: HashSet<&Vec<u8>> = header.contigs().iter().collect();
    if spans.iter().any(|(low, high)| low != high || !known.contains(low)) {
        let others = between(header.contigs());
        parts.push(Part {
            subarray: selected(dataset, vec![Some(others), None, Some(vec![sample.range()])]),
            contig: PartContig::Others,
            positions: None,
        });
    }
    Ok(parts)
}

/// Returns the names of the contigs on which some samples may have records: those of a header in its order, then the
/// others, sorted. Only contigs that no header names are searched for, in the tiles that may have some.
///
/// # Errors
/// Fails if a footer, or a coordinate of these tiles, cannot be read.
pub fn contig_names(dataset: &VariantDataset, samples: &[Sample], named: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    if let Some(numbered) = dataset.numbered()? {
        let mut names = named.to_vec();
        names.extend(
            numbered.contigs.names().filter(|name| !named.iter().any(|known| known == name)).map(<[u8]>::to_vec),
        );
        return Ok(names);
    }
    let spans = contig_spans(dataset, samples)?;
    let is_there = |contig: &&Vec<u8>| spans.iter().any(|(low, high)| (low..=high).contains(contig));
    let mut names: Vec<Vec<u8>> = named.iter().filter(is_there).cloned().collect();
    let known: HashSet<&Vec<u8>> = named.iter().collect();
    if spans.iter().any(|(low, high)| low != high || !known.contains(low)) {
        let mut others = BTreeSet::new();
        let rows = dataset.data.rows()?.columns(&[CONTIG])?;
        for batch in rows.select(&[Some(between(named)), None, None])?.batches()? {
            let batch = batch?;
            let contigs = batch.column(CONTIG)?;
            others.extend((0..batch.len()).filter_map(|row| contigs.get(row)).map(<[u8]>::to_vec));
        }
        names.extend(others);
    }
    Ok(names)
}

/// Returns between which contigs, both included, the records of some samples are: those of each fragment that may have
/// some.
fn contig_spans(dataset: &VariantDataset, samples: &[Sample]) -> Result<BTreeSet<(Vec<u8>, Vec<u8>)>> {
    let (data, mut spans) = (&dataset.data, BTreeSet::new());
    let names: BTreeSet<&[u8]> = samples.iter().map(|sample| sample.name.as_slice()).collect();
    data.read_outlines();
    for fragment in 0..data.fragment_count() {
        let outline = data.outline(fragment)?;
        let span = |number: usize| {
            let range = outline.facts.non_empty_domain.as_deref()?.get(number)?;
            match (&range.low, &range.high) {
                (Scalar::Text(low), Scalar::Text(high)) => Some((low.clone(), high.clone())),
                _ => None,
            }
        };
        let has_sample = span(SAMPLE_AXIS)
            .is_none_or(|(low, high)| low <= high && names.range(low.as_slice()..=high.as_slice()).next().is_some());
        if has_sample {
            // Above all ASCII texts, where a fragment does not tell.
            spans.insert(span(CONTIG_AXIS).unwrap_or((Vec::new(), vec![0xff])));
        }
    }
    Ok(spans)
}

/// Returns the ranges that hold every ASCII text but these.
fn between(names: &[Vec<u8>]) -> Vec<CoordinateRange> {
    let sorted: BTreeSet<&Vec<u8>> = names.iter().collect();
    let mut ranges = Vec::new();
    // The least text that is not yet in a range, or one of the names.
    let mut low = Vec::new();
    for name in sorted {
        // The greatest text below the name: above all ASCII texts that begin like it, with a lesser last byte.
        let below = match name.split_last() {
            None => None,
            Some((0, rest)) => Some(rest.to_vec()),
            Some((last, rest)) => Some([rest, &[last - 1, 0xff]].concat()),
        };
        if let Some(below) = below.filter(|below| *below >= low) {
            ranges.push(texts(Some(low), Some(below)));
        }
        low = [name, &b"\0"[..]].concat();
    }
    ranges.push(texts(Some(low), None));
    ranges
}

/// The bytes of a file in sequence.
struct InSequence {
    file: Arc<SampleFile>,
    /// The header, before it has been returned.
    head: Option<Vec<u8>>,
    parts: VecDeque<Part>,
    current: Option<Box<dyn Forward>>,
}

impl InSequence {
    /// Returns the lines of a part. Where the rows of a contig come in the order of their records, only some of them are
    /// located at a time.
    fn lines(&self, part: Part) -> Result<Box<dyn Forward>> {
        let is_in_order = self.file.dataset.layout.version() > 2 && part.positions.is_none();
        if !is_in_order {
            return Ok(Box::new(text::forward(self.file.rows(&part, part.subarray.clone())?)));
        }
        let (file, of_part) = (self.file.clone(), part.clone());
        let make = move |subarray, _is_first| -> Result<Box<dyn Forward>> {
            Ok(Box::new(text::forward(file.rows(&of_part, subarray)?)))
        };
        Ok(Box::new(PartByPart::new(part.subarray, make)?))
    }
}

impl Forward for InSequence {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(head) = self.head.take() {
            *out = head;
            return Ok(true);
        }
        loop {
            if let Some(current) = &mut self.current
                && current.next(out)?
            {
                return Ok(true);
            }
            let Some(part) = self.parts.pop_front() else { return Ok(false) };
            self.current = Some(self.lines(part)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_a_name_or_between_names(names in proptest::collection::vec("[ab\0]{0,3}", 0..6), text in "[ab\0]{0,4}") {
            let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
            let text = Scalar::Text(text.into_bytes());
            let holds = |range: &CoordinateRange| {
                let (Some(Scalar::Text(low)), Scalar::Text(text)) = (&range.low, &text) else { panic!("{range:?}") };
                let high = match &range.high {
                    Some(Scalar::Text(high)) => Some(high),
                    _ => None,
                };
                low <= text && high.is_none_or(|high| text <= high)
            };
            let count = between(&names).iter().filter(|range| holds(range)).count();
            let is_name = names.iter().any(|name| Scalar::Text(name.clone()) == text);
            prop_assert_eq!(count, usize::from(!is_name));
        }
    }
}
