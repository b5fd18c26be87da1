//! Datasets of TileDB-VCF: an array of variant calls, and an array of the headers of the source files.
//!
//! In layout 4, samples are identified by name, and the array of headers has a row for each sample. In layouts 2 and 3,
//! samples are identified by number, their names are in the metadata of `data`, and the array of headers is dense.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{ArraySchema, CellValNum};
use tilefs_reader::array::sparse::{CoordinateRange, RowCount, SparseView};
use tilefs_reader::array::{Metadata, OpenedArray};
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;

use crate::header::Header;
use crate::layout::{Contigs, DatasetLayout, sample_numbers};

/// The attribute of the headers, and the dimension of their samples.
const HEADER: &str = "header";
const SAMPLE: &str = "sample";

/// Number of headers that are read together: one has up to some hundred KiB.
const HEADERS_AT_ONCE: u64 = 256;

/// Maximum size of a list in the metadata: the names of all samples of a dataset of layout 2 or 3, or its contigs.
const MAX_LIST: u64 = 256 << 20;

/// A dataset. Memory: in layouts 2 and 3, the names of its samples and contigs.
pub struct VariantDataset {
    pub data: Arc<OpenedArray>,
    headers: Arc<OpenedArray>,
    pub layout: DatasetLayout,
    /// The names of samples and contigs in layouts 2 and 3, loaded on first use.
    numbered: SingleFlight<Arc<Numbered>>,
}

/// The samples of layouts 2 and 3 by name, and the contigs by position.
#[derive(Hash)]
pub struct Numbered {
    samples: BTreeMap<Vec<u8>, u32>,
    pub contigs: Arc<Contigs>,
}

impl Numbered {
    /// Returns the name of each sample by its number.
    pub fn samples_by_number(&self) -> HashMap<u32, Vec<u8>> {
        self.samples.iter().map(|(name, number)| (*number, name.clone())).collect()
    }
}

/// A sample of a dataset: its name, and in layouts 2 and 3 its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sample {
    pub name: Vec<u8>,
    number: Option<u32>,
}

/// Records the array of variant calls, and the names that go with its numbers. Headers are constants of whatever is made
/// of them.
impl Recorded for VariantDataset {
    fn record(&self, recorder: &mut Recorder) {
        let Self { data, headers: _, layout, numbered: _ } = self;
        data.record(recorder);
        match self.numbered() {
            Ok(numbered) => recorder.add::<Self>((layout, numbered.as_deref())),
            Err(_) => recorder.add_unknown(),
        }
    }
}

impl VariantDataset {
    /// Creates the dataset of an array of variant calls and an array of headers; `None` if `data` is no array of
    /// variant calls. Reads no cell.
    ///
    /// # Errors
    /// Fails if the metadata cannot be read, and for layouts other than 2, 3 and 4.
    pub fn new(data: Arc<OpenedArray>, headers: Arc<OpenedArray>) -> Result<Option<Self>> {
        let Some(version) = version_of(data.schema()) else { return Ok(None) };
        let layout = layout_of(&*data.metadata()?, version).in_array(data.path())?;
        Ok(Some(VariantDataset { data, headers, layout, numbered: SingleFlight::new() }))
    }

    /// Returns the names of samples and contigs; `None` in layout 4.
    ///
    /// # Errors
    /// Fails if the metadata cannot be read, or lack the lists.
    pub fn numbered(&self) -> Result<Option<Arc<Numbered>>> {
        if self.layout.version() == 4 {
            return Ok(None);
        }
        let make = || {
            let metadata = self.data.metadata()?;
            let list = |key: &str| list(&metadata, key);
            let contigs = Contigs::parse(&list("contig_offsets")?, &list("contig_lengths")?)?;
            let samples = sample_numbers(&list("sample_ids")?)?.into_iter().collect();
            Ok(Arc::new(Numbered { samples, contigs: Arc::new(contigs) }))
        };
        self.numbered.get_or_retry(|| make().in_array(self.data.path())).cloned().map(Some)
    }

    /// Returns the sample with a name, if there is one.
    ///
    /// # Errors
    /// Fails if the array of headers or the metadata cannot be read.
    pub fn sample(&self, name: &[u8]) -> Result<Option<Sample>> {
        let number = match self.numbered()? {
            Some(numbered) => match numbered.samples.get(name) {
                Some(number) => Some(*number),
                None => return Ok(None),
            },
            None => match self.has_header(name)? {
                true => None,
                false => return Ok(None),
            },
        };
        Ok(Some(Sample { name: name.to_vec(), number }))
    }

    /// Returns the header of a sample's file.
    ///
    /// # Errors
    /// Fails if the header cannot be read, or is malformed.
    pub fn header(&self, sample: &Sample) -> Result<Header> {
        let parsed = match sample.number {
            None => self.stored_header(&sample.name, Header::parse)?,
            Some(number) => {
                let values = self.headers.dense()?.read_values(HEADER, &[number..=number])?;
                values.get(0).map(Header::parse)
            }
        };
        let parsed = parsed.unwrap_or_else(|| Err(Error::missing("the header of the sample")));
        parsed.in_field(HEADER).in_array(self.headers.path())
    }

    /// Returns the headers of some samples, in their order. Samples with the same header share it.
    ///
    /// # Errors
    /// Fails if a header cannot be read, or is malformed.
    pub fn headers(&self, samples: &[Sample]) -> Result<Vec<Arc<Header>>> {
        let mut known: HashMap<Vec<u8>, Arc<Header>> = HashMap::new();
        let mut parsed = |stored: &[u8]| -> Result<Arc<Header>> {
            if let Some(header) = known.get(stored) {
                return Ok(header.clone());
            }
            let header = Header::parse(stored).in_field(HEADER).in_array(self.headers.path())?;
            let header = Arc::new(header);
            known.insert(stored.to_vec(), header.clone());
            Ok(header)
        };
        let missing = |name: &[u8]| {
            let reason = format!("the header of the sample {}", String::from_utf8_lossy(name));
            Error::missing(reason).in_array(self.headers.path())
        };
        if self.layout.version() < 4 {
            let of_number = |sample: &Sample| {
                let number = sample.number.ok_or_else(|| missing(&sample.name))?;
                let values = self.headers.dense()?.read_values(HEADER, &[number..=number])?;
                parsed(values.get(0).ok_or_else(|| missing(&sample.name))?)
            };
            return samples.iter().map(of_number).collect();
        }
        let ranges = vec![Some(samples.iter().map(Sample::range).collect())];
        let mut found: HashMap<Vec<u8>, Arc<Header>> = HashMap::new();
        let rows = self.headers.rows()?.columns(&[SAMPLE, HEADER])?.rows_of_batch(HEADERS_AT_ONCE);
        for batch in rows.select(&ranges)?.batches()? {
            let batch = batch?;
            let (names, headers) = (batch.column(SAMPLE)?, batch.column(HEADER)?);
            for row in 0..batch.len() {
                if let Some((name, header)) = names.get(row).zip(headers.get(row)) {
                    found.insert(name.to_vec(), parsed(header)?);
                }
            }
        }
        samples.iter().map(|one| found.get(&one.name).cloned().ok_or_else(|| missing(&one.name))).collect()
    }

    /// Calls `visit` with each sample's coordinate in the array of variant calls and its stored header: in the order of
    /// the names in layout 4, otherwise of the numbers. Memory: some hundred headers.
    ///
    /// # Errors
    /// Fails if a header cannot be read; adds the place to errors of `visit`.
    pub fn for_each_header(&self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut visit =
            |sample: &[u8], header: &[u8]| visit(sample, header).in_field(HEADER).in_array(self.headers.path());
        if let Some(numbered) = self.numbered()? {
            let mut numbers: Vec<u32> = numbered.samples.values().copied().collect();
            numbers.sort_unstable();
            let headers = self.headers.dense()?;
            for number in numbers {
                cancellation::check()?;
                let values = headers.read_values(HEADER, &[number..=number])?;
                let missing =
                    || Error::missing(format!("the header of the sample {number}")).in_array(self.headers.path());
                visit(&number.to_le_bytes(), values.get(0).ok_or_else(missing)?)?;
            }
            return Ok(());
        }
        for batch in self.headers.rows()?.columns(&[SAMPLE, HEADER])?.rows_of_batch(HEADERS_AT_ONCE).batches()? {
            cancellation::check()?;
            let batch = batch?;
            let (names, headers) = (batch.column(SAMPLE)?, batch.column(HEADER)?);
            for (name, header) in (0..batch.len()).filter_map(|row| names.get(row).zip(headers.get(row))) {
                visit(name, header)?;
            }
        }
        Ok(())
    }

    /// Returns all samples, sorted by their names. Reads no variant call.
    ///
    /// # Errors
    /// Fails if the array of headers or the metadata cannot be read.
    pub fn all_samples(&self) -> Result<Vec<Sample>> {
        if let Some(numbered) = self.numbered()? {
            let sample = |(name, number): (&Vec<u8>, &u32)| Sample { name: name.clone(), number: Some(*number) };
            return Ok(numbered.samples.iter().map(sample).collect());
        }
        let mut samples = Vec::new();
        for batch in self.headers.rows()?.columns(&[SAMPLE])?.batches()? {
            let batch = batch?;
            let names = batch.column(SAMPLE)?;
            let sample = |row| Some(Sample { name: names.get(row)?.to_vec(), number: None });
            samples.extend((0..batch.len()).filter_map(sample));
        }
        samples.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(samples)
    }

    /// Passes the header of a sample in layout 4 to `read`; returns `None` if there is no such sample.
    fn stored_header<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        for batch in self.headers.rows()?.columns(&[HEADER])?.select(&row_of(name))?.batches()? {
            if let Some(header) = batch?.column(HEADER)?.get(0) {
                return Ok(Some(read(header)));
            }
        }
        Ok(None)
    }

    /// Returns whether there is a header of a sample in layout 4. Reads no header.
    fn has_header(&self, name: &[u8]) -> Result<bool> {
        let rows = self.headers.rows()?.columns(&[SAMPLE])?.select(&row_of(name))?;
        Ok(rows.known_count()?.most() > 0 && rows.count()? > 0)
    }

    /// Returns the name of the dimension of positions in the array of variant calls.
    pub fn position_dimension(&self) -> &'static str {
        if self.layout.version() == 2 { "end_pos" } else { "start_pos" }
    }

    /// Returns the number of cells of all samples, as far as footers tell.
    ///
    /// # Errors
    /// Fails if a footer cannot be read.
    pub fn row_count(&self) -> Result<RowCount> {
        SparseView::new(self.data.clone())?.known_row_count()
    }
}

impl Sample {
    /// Returns the sample's number in layouts 2 and 3.
    pub fn number(&self) -> Option<u32> {
        self.number
    }

    /// Returns the range along the dimension of samples that selects only this sample.
    pub fn range(&self) -> CoordinateRange {
        only(match self.number {
            Some(number) => Scalar::Unsigned(number.into()),
            None => Scalar::Text(self.name.clone()),
        })
    }

    /// Returns whether the sample has a column in its file. TileDB-VCF stores a sample without a name for files without
    /// samples.
    pub fn has_column(&self) -> bool {
        !self.name.is_empty()
    }
}

/// Returns the ranges of the array of headers in layout 4 that select one sample.
fn row_of(sample: &[u8]) -> [Option<Vec<CoordinateRange>>; 1] {
    [Some(vec![only(Scalar::Text(sample.to_vec()))])]
}

fn only(coordinate: Scalar) -> CoordinateRange {
    CoordinateRange { low: Some(coordinate.clone()), high: Some(coordinate), step: 1 }
}

/// Returns the layout version that matches the dimensions and attributes of an array of variant calls.
fn version_of(schema: &ArraySchema) -> Option<u32> {
    let dimensions: Vec<(&str, Datatype, bool)> = schema
        .dimensions
        .iter()
        .map(|dimension| (dimension.name.as_str(), dimension.datatype, dimension.is_variable()))
        .collect();
    let (text, number) = (Datatype::StringAscii, Datatype::UInt32);
    let version = match dimensions.as_slice() {
        [("contig", contig, true), ("start_pos", position, false), (SAMPLE, sample, true)]
            if [*contig, *position, *sample] == [text, number, text] =>
        {
            4
        }
        [(SAMPLE, sample, false), ("start_pos", position, false)] if [*sample, *position] == [number; 2] => 3,
        [(SAMPLE, sample, false), ("end_pos", position, false)] if [*sample, *position] == [number; 2] => 2,
        _ => return None,
    };
    let [start, end] = extent_attributes(version);
    let fixed = [(start, number), (end, number), ("qual", Datatype::Float32)];
    let variable = ["alleles", "id", "filter_ids", "info", "fmt"];
    let attribute = |name: &str| schema.attributes.iter().find(|attribute| attribute.name == name);
    let has_fixed = fixed.iter().all(|(name, datatype)| {
        attribute(name).is_some_and(|found| {
            found.datatype == *datatype && found.cell_count == CellValNum::Fixed(1) && !found.nullable
        })
    });
    let has_variable =
        variable.iter().all(|name| attribute(name).is_some_and(|found| found.is_variable() && !found.nullable));
    (schema.is_sparse() && has_fixed && has_variable).then_some(version)
}

/// Returns whether an array has the dimensions and attributes of an array of variant calls.
pub fn is_calls(schema: &ArraySchema) -> bool {
    version_of(schema).is_some()
}

/// Returns whether an array has statistics of alleles: `variant_stats` or `allele_count` of a dataset.
pub fn is_statistics(schema: &ArraySchema) -> bool {
    let dimensions = schema.dimensions.get(..2).is_some_and(|dimensions| {
        let [contig, position] = [("contig", Datatype::StringAscii), ("pos", Datatype::UInt32)];
        dimensions.iter().map(|dimension| (dimension.name.as_str(), dimension.datatype)).eq([contig, position])
    });
    let has = |names: &[&str]| names.iter().all(|name| schema.attributes.iter().any(|found| found.name == *name));
    schema.is_sparse() && dimensions && (has(&["allele", "ac"]) || has(&["ref", "alt", "filter", "gt", "count"]))
}

/// Returns the names of the attributes with the first and the last position of a record.
pub fn extent_attributes(version: u32) -> [&'static str; 2] {
    if version == 2 { ["pos", "real_end"] } else { ["real_start_pos", "end_pos"] }
}

fn layout_of(metadata: &Metadata, version: u32) -> Result<DatasetLayout> {
    let number = |key: &str| {
        let value = metadata.get(key).filter(|value| value.datatype == Datatype::UInt32 && value.count == 1);
        let bytes = value.and_then(|value| value.bytes()?.first_chunk().copied());
        bytes.map(u32::from_le_bytes).ok_or_else(|| Error::damaged(format!("no {key} in the metadata")))
    };
    let stated = number("version")?;
    if stated != version {
        return Err(Error::damaged(format!("dimensions of layout {version}, where the metadata say {stated}")));
    }
    DatasetLayout::new(version, number("anchor_gap")?)
}

/// Returns the bytes of a list in the metadata.
fn list(metadata: &Metadata, key: &str) -> Result<Vec<u8>> {
    let value = metadata.get(key).ok_or_else(|| Error::damaged(format!("no {key} in the metadata")))?;
    let length = usize::try_from(value.len().min(MAX_LIST + 1)).unwrap_or(usize::MAX);
    if value.len() > MAX_LIST {
        return Err(Error::unsupported(format!("a list of more than {MAX_LIST} bytes in the metadata: {key}")));
    }
    let mut bytes = vec![0; length];
    value.read_at(0, &mut bytes)?;
    Ok(bytes)
}
