//! The records of several samples of a dataset that begin in a window of positions, in memory, in the order in which they
//! are merged: by position, then sample by sample.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tilefs_export::vcf::{CellPositions, FileRecord, Record};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_reader::{RowBatch, RowReader, Values};

use super::variants::{Sample, VariantDataset, extent_attributes};

/// The cells of some samples.
pub struct SampleCells {
    dataset: Arc<VariantDataset>,
    reader: RowReader,
    /// The number of each sample among those that are merged, by its coordinate.
    numbers: HashMap<Coordinate, u32>,
    /// `None` for all samples.
    ranges: Option<Vec<CoordinateRange>>,
    fields: FieldNames,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Coordinate {
    Name(Vec<u8>),
    Number(u32),
}

/// The names of the columns that are read.
struct FieldNames {
    coordinate: &'static str,
    start: &'static str,
    end: &'static str,
    /// INFO fields with attributes of their own: the attribute, and the name of the field.
    info: Vec<(String, Vec<u8>)>,
    /// The same for FORMAT fields.
    format: Vec<(String, Vec<u8>)>,
}

/// Records of one contig that begin at some positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The contig.
    pub contig: Vec<u8>,
    /// The position of the dataset at which the contig begins; 0 in layout 4.
    pub contig_start: u32,
    /// The first positions of the records, counted as the dataset does.
    pub starts: RangeInclusive<u32>,
    /// The records end here or behind it.
    pub least_end: u32,
    /// Set for records that begin before a region and are found by their anchors: the first coordinate of the region.
    pub anchored_at: Option<u32>,
}

/// The records of a window.
pub struct WindowRecords {
    batches: Vec<RowBatch>,
    order: Vec<RecordKey>,
    contig: Vec<u8>,
    contig_start: u32,
}

/// A record: its first position, the number of its sample, and its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    pub start: u32,
    sample: u32,
    batch: u32,
    row: u32,
}

impl SampleCells {
    /// Creates the cells of some samples; `is_all` tells whether the dataset has no others.
    ///
    /// # Errors
    /// Fails if a footer of the array of variant calls cannot be read.
    pub fn new(dataset: Arc<VariantDataset>, samples: &[Sample], is_all: bool) -> Result<Self> {
        let number = |(number, sample): (usize, &Sample)| {
            let coordinate = match sample.number() {
                Some(number) => Coordinate::Number(number),
                None => Coordinate::Name(sample.name.clone()),
            };
            (coordinate, number as u32)
        };
        let numbers = samples.iter().enumerate().map(number).collect();
        let ranges = (!is_all).then(|| samples.iter().map(Sample::range).collect());
        let [start, end] = extent_attributes(dataset.layout.version());
        let coordinate = if dataset.layout.version() == 2 { "end_pos" } else { "start_pos" };
        let of_kind = |prefix: &str| {
            let attributes = dataset.data.schema().attributes.iter();
            let found = attributes.filter_map(|attribute| {
                Some((attribute.name.clone(), attribute.name.strip_prefix(prefix)?.as_bytes().to_vec()))
            });
            found.collect()
        };
        let fields = FieldNames { coordinate, start, end, info: of_kind("info_"), format: of_kind("fmt_") };
        let own = fields.info.iter().chain(&fields.format).map(|(attribute, _)| attribute.as_str());
        let fixed = ["sample", coordinate, start, end, "qual", "alleles", "id", "filter_ids", "info", "fmt"];
        let names: Vec<&str> = fixed.into_iter().chain(own).collect();
        let reader = dataset.data.rows()?.columns(&names)?.rows_of_batch(u64::from(u32::MAX));
        Ok(SampleCells { dataset, reader, numbers, ranges, fields })
    }

    fn select(&self, contig: &[u8], coordinates: RangeInclusive<u32>) -> Result<RowReader> {
        let end = |position: &u32| Some(Scalar::Unsigned((*position).into()));
        let range = CoordinateRange { low: end(coordinates.start()), high: end(coordinates.end()), step: 1 };
        let (samples, positions) = (self.ranges.clone(), Some(vec![range]));
        let contig = Some(Scalar::Text(contig.to_vec()));
        let contig = CoordinateRange { low: contig.clone(), high: contig, step: 1 };
        self.reader.clone().select(&match self.dataset.layout.version() {
            4 => vec![Some(vec![contig]), positions, samples],
            _ => vec![samples, positions],
        })
    }

    /// Returns the coordinates of the cells by which the records of a window are found.
    fn coordinates(&self, window: &Window) -> RangeInclusive<u32> {
        let (layout, starts) = (&self.dataset.layout, &window.starts);
        match window.anchored_at {
            Some(low) => low..=low.saturating_add(layout.anchor_gap()),
            None if layout.is_by_end() => *starts.start()..=starts.end().saturating_add(layout.anchor_gap()),
            None => starts.clone(),
        }
    }

    /// Returns the number of cells by which the records of a window are found. Reads coordinates of the tiles that lie
    /// at its ends.
    ///
    /// # Errors
    /// Fails if these, or R-trees, cannot be read.
    pub fn count(&self, window: &Window) -> Result<u64> {
        let selected = self.select(&window.contig, self.coordinates(window))?;
        match selected.known_count()?.most() {
            0 => Ok(0),
            _ => selected.count(),
        }
    }

    /// Reads the records of a window.
    ///
    /// # Errors
    /// Fails if a cell cannot be read, lies where its record has none, or belongs to a sample without a header.
    pub fn read(&self, window: &Window) -> Result<WindowRecords> {
        let read = || {
            let batches =
                self.select(&window.contig, self.coordinates(window))?.batches()?.collect::<Result<Vec<_>>>()?;
            let mut order = Vec::new();
            for (number, batch) in batches.iter().enumerate() {
                self.add_wanted(window, number as u32, batch, &mut order)?;
            }
            order.sort_unstable();
            let (contig, contig_start) = (window.contig.clone(), window.contig_start);
            Ok(WindowRecords { batches, order, contig, contig_start })
        };
        read().in_array(self.dataset.data.path())
    }

    fn add_wanted(&self, window: &Window, number: u32, batch: &RowBatch, order: &mut Vec<RecordKey>) -> Result<()> {
        let [coordinate, start, end] =
            [self.fields.coordinate, self.fields.start, self.fields.end].map(|name| batch.column(name));
        let (coordinate, start, end, sample) = (coordinate?, start?, end?, batch.column("sample")?);
        for row in 0..batch.len() {
            let cell = CellPositions {
                coordinate: number_at(coordinate, row),
                start: number_at(start, row),
                end: number_at(end, row),
            };
            let before = self.dataset.layout.cell_before(cell)?;
            let is_its_cell = match window.anchored_at {
                Some(low) => before.is_none_or(|before| before < low),
                None => before.is_none(),
            };
            let is_wanted = window.starts.contains(&cell.start) && cell.end.max(cell.start) >= window.least_end;
            if is_its_cell && is_wanted {
                let bytes = sample.get(row).unwrap_or_default();
                let found = match bytes.first_chunk().filter(|_| self.dataset.layout.version() < 4) {
                    Some(number) => self.numbers.get(&Coordinate::Number(u32::from_le_bytes(*number))),
                    None => self.numbers.get(&Coordinate::Name(bytes.to_vec())),
                };
                let unknown = || Error::damaged("a record of a sample that has no header").in_field("sample");
                let sample = *found.ok_or_else(unknown)?;
                let row = u32::try_from(row).map_err(|_| Error::internal("a batch of 2^32 rows"))?;
                order.push(RecordKey { start: cell.start, sample, batch: number, row });
            }
        }
        Ok(())
    }

    /// Calls `visit` with the records at each position, sample by sample; `keys` are some of the `records`.
    ///
    /// # Errors
    /// The errors of `visit`.
    pub fn for_each_position(
        &self,
        records: &WindowRecords,
        keys: &[RecordKey],
        mut visit: impl FnMut(&[FileRecord<'_>]) -> Result<()>,
    ) -> Result<()> {
        let columns = records.batches.iter().map(|batch| BatchColumns::new(batch, &self.fields));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let lost = || Error::internal("a record of no batch");
        let [mut info, mut format] = [const { Vec::<(&[u8], &[u8])>::new() }; 2];
        for position in keys.chunk_by(|one, next| one.start == next.start) {
            info.clear();
            format.clear();
            for key in position {
                let columns = columns.get(key.batch as usize).ok_or_else(lost)?;
                let row = key.row as usize;
                info.extend(columns.info.iter().map(|(name, values)| (*name, values.get(row).unwrap_or_default())));
                format.extend(columns.format.iter().map(|(name, values)| (*name, values.get(row).unwrap_or_default())));
            }
            let (own_info, own_format) = (self.fields.info.len(), self.fields.format.len());
            let record = |(place, key): (usize, &RecordKey)| {
                let columns = columns.get(key.batch as usize).ok_or_else(lost)?;
                let row = key.row as usize;
                let end = number_at(columns.end, row);
                let before = || Error::damaged(format!("a record that ends at {end}, before its contig begins"));
                let record = Record {
                    contig: &records.contig,
                    start: key.start.checked_sub(records.contig_start).ok_or_else(before)?,
                    end: end.checked_sub(records.contig_start).ok_or_else(before)?,
                    quality: number_at(columns.quality, row),
                    alleles: columns.alleles.get(row).unwrap_or_default(),
                    id: columns.id.get(row).unwrap_or_default(),
                    filters: columns.filters.get(row).unwrap_or_default(),
                    info: columns.info_blob.get(row).unwrap_or_default(),
                    format: columns.format_blob.get(row).unwrap_or_default(),
                    extracted_info: info.get(place * own_info..(place + 1) * own_info).unwrap_or_default(),
                    extracted_format: format.get(place * own_format..(place + 1) * own_format).unwrap_or_default(),
                };
                Ok(FileRecord { file: key.sample as usize, record })
            };
            let at_position = position.iter().enumerate().map(record).collect::<Result<Vec<_>>>()?;
            visit(&at_position)?;
        }
        Ok(())
    }
}

impl WindowRecords {
    /// Returns the records in order.
    pub fn order(&self) -> &[RecordKey] {
        &self.order
    }
}

/// The columns of a batch.
struct BatchColumns<'b> {
    end: &'b Values,
    quality: &'b Values,
    alleles: &'b Values,
    id: &'b Values,
    filters: &'b Values,
    info_blob: &'b Values,
    format_blob: &'b Values,
    info: Vec<(&'b [u8], &'b Values)>,
    format: Vec<(&'b [u8], &'b Values)>,
}

impl<'b> BatchColumns<'b> {
    fn new(batch: &'b RowBatch, fields: &'b FieldNames) -> Result<Self> {
        let own = |names: &'b [(String, Vec<u8>)]| {
            let columns = names.iter().map(|(attribute, name)| Ok((name.as_slice(), batch.column(attribute)?)));
            columns.collect::<Result<Vec<_>>>()
        };
        Ok(BatchColumns {
            end: batch.column(fields.end)?,
            quality: batch.column("qual")?,
            alleles: batch.column("alleles")?,
            id: batch.column("id")?,
            filters: batch.column("filter_ids")?,
            info_blob: batch.column("info")?,
            format_blob: batch.column("fmt")?,
            info: own(&fields.info)?,
            format: own(&fields.format)?,
        })
    }
}

fn number_at(values: &Values, row: usize) -> u32 {
    values.get(row).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
