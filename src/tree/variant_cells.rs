//! The records of several samples of a dataset that begin in a window of positions. They are held in memory in merge
//! order: by position, then by sample.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_export::vcf::{CellPositions, FileRecord, Record, Window};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_reader::{RowBatch, RowReader, Values};

use super::variants::{Sample, VariantDataset, extent_attributes};

/// The dimension of samples.
const SAMPLE: &str = "sample";

/// The cells of some samples.
pub struct SampleCells {
    dataset: Arc<VariantDataset>,
    reader: RowReader,
    /// The number of each sample among the merged ones, by its coordinate.
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

/// The names of the columns to read.
struct FieldNames {
    coordinate: &'static str,
    start: &'static str,
    end: &'static str,
    /// INFO fields with attributes of their own: the attribute, and the name of the field.
    info: Vec<(String, Vec<u8>)>,
    /// The same for FORMAT fields.
    format: Vec<(String, Vec<u8>)>,
}

/// A window of records on one contig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The contig; `None` for positions without a contig, which may not have records.
    pub contig: Option<Arc<[u8]>>,
    /// The position in the dataset at which the contig begins; 0 in layout 4.
    pub contig_start: u32,
    /// The window, in positions of the dataset.
    pub window: Window,
}

/// The records of a window, and their merge order.
pub struct WindowRecords {
    batches: Vec<RowBatch>,
    order: Vec<RecordKey>,
    span: Span,
    /// The reader of the batches, which locates the stored cell of a row.
    reader: RowReader,
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
    /// Creates the cells of some samples; `is_all` says whether these are all samples of the dataset.
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
        let coordinate = dataset.position_dimension();
        let of_kind = |prefix: &str| {
            let attributes = dataset.data.schema().attributes.iter();
            let found = attributes.filter_map(|attribute| {
                Some((attribute.name.clone(), attribute.name.strip_prefix(prefix)?.as_bytes().to_vec()))
            });
            found.collect()
        };
        let fields = FieldNames { coordinate, start, end, info: of_kind("info_"), format: of_kind("fmt_") };
        let own = fields.info.iter().chain(&fields.format).map(|(attribute, _)| attribute.as_str());
        let fixed = [SAMPLE, coordinate, start, end, "qual", "alleles", "id", "filter_ids", "info", "fmt"];
        let names: Vec<&str> = fixed.into_iter().chain(own).collect();
        let reader = dataset.data.rows()?.columns(&names)?.rows_of_batch(u64::from(u32::MAX));
        Ok(SampleCells { dataset, reader, numbers, ranges, fields })
    }

    fn select(&self, span: &Span) -> Result<RowReader> {
        let coordinates = self.dataset.layout.coordinates(&span.window);
        let end = |position: &u32| Some(Scalar::Unsigned((*position).into()));
        let range = CoordinateRange { low: end(coordinates.start()), high: end(coordinates.end()), step: 1 };
        let (samples, positions) = (self.ranges.clone(), Some(vec![range]));
        let contig = span.contig.as_ref().map(|contig| Scalar::Text(contig.to_vec()));
        let contig = CoordinateRange { low: contig.clone(), high: contig, step: 1 };
        self.reader.clone().select(&match self.dataset.layout.version() {
            4 => vec![Some(vec![contig]), positions, samples],
            _ => vec![samples, positions],
        })
    }

    /// Returns the number of cells that the search for a span's records visits. Reads coordinates of the tiles at its
    /// ends.
    ///
    /// # Errors
    /// Fails if these, or the R-trees, cannot be read.
    pub fn count(&self, span: &Span) -> Result<u64> {
        let selected = self.select(span)?;
        match selected.known_count()?.most() {
            0 => Ok(0),
            _ => selected.count(),
        }
    }

    /// Reads the records of a span.
    ///
    /// # Errors
    /// Fails if a cell cannot be read, is at a coordinate at which its record cannot have one, or belongs to a sample
    /// without a header; the error names its fragment.
    pub fn read(&self, span: &Span) -> Result<WindowRecords> {
        let read = || {
            let reader = self.select(span)?;
            let batches = reader.clone().batches()?.collect::<Result<Vec<_>>>()?;
            let mut records = WindowRecords { batches, order: Vec::new(), span: span.clone(), reader };
            let mut order = Vec::new();
            for (number, batch) in records.batches.iter().enumerate() {
                self.add_wanted(&records, number as u32, batch, &mut order)?;
            }
            order.sort_unstable();
            records.order = order;
            Ok(records)
        };
        read().in_array(self.dataset.data.path())
    }

    fn add_wanted(
        &self,
        records: &WindowRecords,
        number: u32,
        batch: &RowBatch,
        order: &mut Vec<RecordKey>,
    ) -> Result<()> {
        let (layout, fields) = (&self.dataset.layout, &self.fields);
        let (coordinate, start) = (batch.column(fields.coordinate)?, batch.column(fields.start)?);
        let (end, sample) = (batch.column(fields.end)?, batch.column(SAMPLE)?);
        for row in 0..batch.len() {
            let cell = CellPositions {
                coordinate: number_at(coordinate, row),
                start: number_at(start, row),
                end: number_at(end, row),
            };
            let row = u32::try_from(row).map_err(|_| Error::internal("a batch of 2^32 rows"))?;
            let is_wanted = layout.is_in_window(&records.span.window, cell);
            if is_wanted.map_err(|error| records.locate(error, number, row).in_field(fields.coordinate))? {
                let bytes = sample.get(row as usize).unwrap_or_default();
                let found = match bytes.first_chunk().filter(|_| layout.version() < 4) {
                    Some(number) => self.numbers.get(&Coordinate::Number(u32::from_le_bytes(*number))),
                    None => self.numbers.get(&Coordinate::Name(bytes.to_vec())),
                };
                let unknown = || {
                    let reason = "a record of a sample that has no header";
                    records.locate(Error::damaged(reason), number, row).in_field(SAMPLE)
                };
                let sample = *found.ok_or_else(unknown)?;
                order.push(RecordKey { start: cell.start, sample, batch: number, row });
            }
        }
        Ok(())
    }

    /// Calls `visit` with the records at each position, sample by sample; `keys` selects from `records`.
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
                let misplaced = || {
                    let reason = format!("a record from {} to {end}, where its contig is not", key.start);
                    Error::damaged(reason).in_field(self.fields.start)
                };
                let Span { contig, contig_start, .. } = &records.span;
                let record = Record {
                    contig: contig.as_deref().ok_or_else(misplaced)?,
                    start: key.start.checked_sub(*contig_start).ok_or_else(misplaced)?,
                    end: end.checked_sub(*contig_start).ok_or_else(misplaced)?,
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
            let made = position.iter().enumerate().map(record).collect::<Result<Vec<_>>>();
            let visited = made.and_then(|at_position| visit(&at_position));
            if let Err(error) = visited {
                // If there are several samples, the error names the record's own.
                return Err(match position {
                    [only] => records.locate(error, only.batch, only.row),
                    _ => error,
                });
            }
        }
        Ok(())
    }
}

impl WindowRecords {
    /// Returns the records in order.
    pub fn order(&self) -> &[RecordKey] {
        &self.order
    }

    /// Adds the location of a row's stored cell to an error: the fragment, and the cell there.
    fn locate(&self, error: Error, batch: u32, row: u32) -> Error {
        match self.reader.origin(batch as usize, row.into()) {
            Ok(Some((fragment, cell))) => {
                let error = error.in_fragment(&fragment);
                match error.place().is_some_and(|place| place.file.is_none()) {
                    true => error.in_file(format_args!("cell {cell}")),
                    false => error,
                }
            }
            // Report the original error rather than that of locating it.
            Ok(None) | Err(_) => error,
        }
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
