//! The records of several samples of a dataset that begin in some windows of positions. Records are held in memory in
//! merge order: by window, by position, then by sample.

use std::sync::Arc;

use foldhash::HashMap;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_reader::{RowBatch, RowReader, Values};

use super::arrays::{Sample, VariantDataset, extent_attributes};
use super::contigs::CONTIG;
use crate::emptied;
use crate::layout::{CellPositions, DatasetLayout, PositionWindow};
use crate::merge::FileRecord;
use crate::record::Record;

/// The dimension of samples.
const SAMPLE: &str = "sample";

/// The cells of some samples.
pub struct SampleCells {
    dataset: Arc<VariantDataset>,
    reader: RowReader,
    /// In layout 4, a reader that also reads the contigs.
    with_contigs: Option<RowReader>,
    /// The number of each sample among the merged samples, by the bytes of the sample's coordinate.
    numbers: HashMap<Vec<u8>, u32>,
    /// The ranges that select the samples; `None` for all samples.
    ranges: Option<Vec<CoordinateRange>>,
    fields: AttributeNames,
}

/// The names of the columns to read.
struct AttributeNames {
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
pub struct RecordSpan {
    /// The contig; `None` for positions without a contig, which may not have records.
    pub contig: Option<Arc<[u8]>>,
    /// The position in the dataset at which the contig begins; 0 in layout 4.
    pub contig_start: u32,
    /// The window, in positions of the dataset.
    pub window: PositionWindow,
}

impl RecordSpan {
    /// Returns whether the span has all positions of a contig, in layout 4.
    fn is_whole(&self) -> bool {
        let PositionWindow { starts, least_end, anchored_at } = &self.window;
        *starts == (0..=u32::MAX) && *least_end == 0 && anchored_at.is_none()
    }

    /// Returns whether one query can find the records of both spans, and no other records. In layout 4, a query has
    /// ranges of contigs and ranges of positions, and finds every combination of both.
    pub fn can_join(&self, other: &RecordSpan, layout: &DatasetLayout) -> bool {
        layout.version() < 4 || self.contig == other.contig || self.is_whole() && other.is_whole()
    }
}

/// The cells that the search for the records of some spans visits.
pub struct SpanCells {
    reader: RowReader,
    spans: Vec<RecordSpan>,
}

impl SpanCells {
    /// Returns the spans.
    pub fn spans(&self) -> &[RecordSpan] {
        &self.spans
    }

    /// Returns an upper bound for the number of cells. Reads no cell.
    ///
    /// # Errors
    /// Fails if a footer cannot be read.
    pub fn most(&self) -> Result<u64> {
        Ok(self.reader.known_count()?.most())
    }

    /// Returns the number of cells. Reads the coordinates of tiles that also have other cells.
    ///
    /// # Errors
    /// Fails if coordinates or R-trees cannot be read.
    pub fn count(&self) -> Result<u64> {
        match self.most()? {
            0 => Ok(0),
            _ => self.reader.count(),
        }
    }
}

/// The coordinates that the search for the records of a span visits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VisitedRange<'s> {
    /// The contig in layout 4, otherwise empty.
    contig: &'s [u8],
    low: u32,
    high: u32,
    /// The number of the span.
    span: usize,
    /// The highest `high` of this range and of all earlier ranges on the contig.
    reach: u32,
}

/// The coordinates of several spans, in order.
struct VisitedRanges<'s>(Vec<VisitedRange<'s>>);

impl<'s> VisitedRanges<'s> {
    fn new(spans: &'s [RecordSpan], layout: &DatasetLayout) -> Self {
        let range = |(span, one): (usize, &'s RecordSpan)| {
            let (low, high) = layout.coordinates(&one.window).into_inner();
            let contig = one.contig.as_deref().filter(|_| layout.version() == 4).unwrap_or_default();
            VisitedRange { contig, low, high, span, reach: high }
        };
        let mut ranges: Vec<VisitedRange<'_>> = spans.iter().enumerate().map(range).collect();
        ranges.sort_unstable();
        let mut before: Option<(&[u8], u32)> = None;
        for range in &mut ranges {
            let reach = before.filter(|(contig, _)| *contig == range.contig).map_or(0, |(_, reach)| reach);
            range.reach = range.high.max(reach);
            before = Some((range.contig, range.reach));
        }
        VisitedRanges(ranges)
    }

    /// Returns the coordinates on a contig.
    fn on(&self, contig: &[u8]) -> ContigRanges<'_, 's> {
        let start = self.0.partition_point(|range| range.contig < contig);
        let end = self.0.partition_point(|range| range.contig <= contig);
        ContigRanges(self.0.get(start..end).unwrap_or_default())
    }
}

/// The coordinates of several spans on one contig, in order.
struct ContigRanges<'v, 's>(&'v [VisitedRange<'s>]);

impl<'v> ContigRanges<'v, '_> {
    /// Returns the spans whose search visits a coordinate.
    fn spans(&self, coordinate: u32) -> impl Iterator<Item = usize> + use<'v, '_> {
        let end = self.0.partition_point(|range| range.low <= coordinate);
        let begun = self.0.get(..end).unwrap_or_default().iter().rev();
        let visiting = begun.take_while(move |range| range.reach >= coordinate);
        visiting.filter(move |range| range.high >= coordinate).map(|range| range.span)
    }
}

/// The records of some spans, and their merge order.
pub struct WindowRecords {
    batches: Vec<RowBatch>,
    order: Vec<RecordKey>,
    spans: Vec<RecordSpan>,
    /// The reader of the batches, which locates the stored cell of a row.
    reader: RowReader,
}

/// A record of a line: the number of its span, the position of the line, the number of its sample, and its row. The
/// position is the first one of the record; if each site of a block is a line, it is that site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    pub span: u32,
    pub position: u32,
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
                Some(number) => number.to_le_bytes().to_vec(),
                None => sample.name.clone(),
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
        let fields = AttributeNames { coordinate, start, end, info: of_kind("info_"), format: of_kind("fmt_") };
        let own = fields.info.iter().chain(&fields.format).map(|(attribute, _)| attribute.as_str());
        let fixed = [SAMPLE, coordinate, start, end, "qual", "alleles", "id", "filter_ids", "info", "fmt"];
        let mut names: Vec<&str> = fixed.into_iter().chain(own).collect();
        let all = dataset.data.rows()?.rows_of_batch(u64::from(u32::MAX));
        let reader = all.clone().columns(&names)?;
        names.push(CONTIG);
        let with_contigs = if dataset.layout.version() == 4 { Some(all.columns(&names)?) } else { None };
        Ok(SampleCells { dataset, reader, with_contigs, numbers, ranges, fields })
    }

    /// Finds the cells that may hold the records of some spans. Reads no cell.
    ///
    /// # Errors
    /// Fails if the R-trees cannot be read.
    pub fn find(&self, spans: Vec<RecordSpan>) -> Result<SpanCells> {
        let layout = &self.dataset.layout;
        let mut contigs: Vec<&Arc<[u8]>> = spans.iter().filter_map(|span| span.contig.as_ref()).collect();
        contigs.dedup();
        let has_several_contigs = layout.version() == 4 && contigs.len() > 1;
        let range = |low: Scalar, high: Scalar| CoordinateRange { low: Some(low), high: Some(high), step: 1 };
        let visited = |span: &RecordSpan| {
            let (low, high) = layout.coordinates(&span.window).into_inner();
            range(Scalar::Unsigned(low.into()), Scalar::Unsigned(high.into()))
        };
        // Spans on several contigs are whole, so their query needs no range of positions.
        let positions = (!has_several_contigs).then(|| spans.iter().map(visited).collect());
        let only = |contig: &&Arc<[u8]>| range(Scalar::Text(contig.to_vec()), Scalar::Text(contig.to_vec()));
        let samples = self.ranges.clone();
        let ranges = match layout.version() {
            4 => vec![Some(contigs.iter().map(only).collect()), positions, samples],
            _ => vec![samples, positions],
        };
        let reader = self.with_contigs.as_ref().filter(|_| has_several_contigs).unwrap_or(&self.reader);
        let reader = reader.clone().select(&ranges).in_array(self.dataset.data.path())?;
        Ok(SpanCells { reader, spans })
    }

    /// Reads the records of the spans from the cells that [`SampleCells::find`] has found.
    ///
    /// # Errors
    /// Fails if a cell cannot be read, is at a coordinate where its record has no cell, or belongs to a sample without
    /// a header. The error names the cell's fragment.
    pub fn read(&self, found: SpanCells) -> Result<WindowRecords> {
        let SpanCells { reader, spans } = found;
        let read = || {
            let batches = reader.clone().batches()?.collect::<Result<Vec<_>>>()?;
            let mut records = WindowRecords { batches, order: Vec::new(), spans, reader };
            let visited = VisitedRanges::new(&records.spans, &self.dataset.layout);
            let mut order = Vec::new();
            for (number, batch) in records.batches.iter().enumerate() {
                self.add_wanted(&records, &visited, number as u32, batch, &mut order)?;
            }
            order.sort_unstable();
            records.order = order;
            Ok(records)
        };
        read().in_array(self.dataset.data.path())
    }

    /// Adds the keys of a batch's records.
    fn add_wanted(
        &self,
        records: &WindowRecords,
        visited: &VisitedRanges<'_>,
        number: u32,
        batch: &RowBatch,
        order: &mut Vec<RecordKey>,
    ) -> Result<()> {
        let (layout, fields) = (&self.dataset.layout, &self.fields);
        let (coordinate, start) = (batch.column(fields.coordinate)?, batch.column(fields.start)?);
        let (end, sample) = (batch.column(fields.end)?, batch.column(SAMPLE)?);
        // If this column is not read, all spans are on one contig.
        let contigs = batch.column(CONTIG).ok();
        let only_contig = records.spans.first().and_then(|span| span.contig.as_deref());
        let mut contig = only_contig.filter(|_| layout.version() == 4).unwrap_or_default();
        let mut on_contig = visited.on(contig);
        for row in 0..batch.len() {
            let cell = CellPositions {
                coordinate: number_at(coordinate, row),
                start: number_at(start, row),
                end: number_at(end, row),
            };
            if let Some(next) = contigs.and_then(|contigs| contigs.get(row)).filter(|next| *next != contig) {
                (contig, on_contig) = (next, visited.on(next));
            }
            let row = u32::try_from(row).map_err(|_| Error::internal("a batch of 2^32 rows"))?;
            for span in on_contig.spans(cell.coordinate) {
                let Some(RecordSpan { window, .. }) = records.spans.get(span) else { continue };
                let is_wanted = layout.is_in_window(window, cell);
                if is_wanted.map_err(|error| records.locate(error, number, row).in_field(fields.coordinate))? {
                    let unknown = || {
                        let reason = "a record of a sample that has no header";
                        records.locate(Error::damaged(reason), number, row).in_field(SAMPLE)
                    };
                    let found = self.numbers.get(sample.get(row as usize).unwrap_or_default());
                    let sample = *found.ok_or_else(unknown)?;
                    order.push(RecordKey { span: span as u32, position: cell.start, sample, batch: number, row });
                }
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
        visit: impl FnMut(&[FileRecord<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.for_each_group(records, keys, RecordKey::is_at_position_of, visit)
    }

    /// Calls `visit` with each record, once for all its lines that are next to each other; `keys` selects from `records`.
    ///
    /// # Errors
    /// The errors of `visit`.
    pub fn for_each_record(
        &self,
        records: &WindowRecords,
        keys: &[RecordKey],
        visit: impl FnMut(&[FileRecord<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.for_each_group(records, keys, RecordKey::is_of_record_of, visit)
    }

    fn for_each_group(
        &self,
        records: &WindowRecords,
        keys: &[RecordKey],
        is_together: impl FnMut(&RecordKey, &RecordKey) -> bool,
        mut visit: impl FnMut(&[FileRecord<'_>]) -> Result<()>,
    ) -> Result<()> {
        let columns = BatchColumns::of_all(&records.batches, &self.fields)?;
        let lost = || Error::internal("a record of no batch");
        let [mut info, mut format] = [const { Vec::<(&[u8], &[u8])>::new() }; 2];
        let mut buffer = Vec::<FileRecord<'_>>::new();
        for group in keys.chunk_by(is_together) {
            info.clear();
            format.clear();
            for key in group {
                let columns = columns.get(key.batch as usize).ok_or_else(lost)?;
                let row = key.row as usize;
                info.extend(columns.info.iter().map(|(name, values)| (*name, values.get(row).unwrap_or_default())));
                format.extend(columns.format.iter().map(|(name, values)| (*name, values.get(row).unwrap_or_default())));
            }
            let (own_info, own_format) = (self.fields.info.len(), self.fields.format.len());
            let mut of_group = emptied(std::mem::take(&mut buffer));
            let made = group.iter().enumerate().try_for_each(|(place, key)| {
                let columns = columns.get(key.batch as usize).ok_or_else(lost)?;
                let row = key.row as usize;
                let [start, end] = [columns.start, columns.end].map(|column| number_at(column, row));
                let misplaced = || {
                    let reason = format!("a record from {start} to {end}, where its contig is not");
                    Error::damaged(reason).in_field(self.fields.start)
                };
                let RecordSpan { contig, contig_start, .. } = records.spans.get(key.span as usize).ok_or_else(lost)?;
                let record = Record {
                    contig: contig.as_deref().ok_or_else(misplaced)?,
                    start: start.checked_sub(*contig_start).ok_or_else(misplaced)?,
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
                let position = key.position.checked_sub(*contig_start).ok_or_else(misplaced)?;
                of_group.push(FileRecord { file: key.sample as usize, record, position });
                Ok(())
            });
            let visited = made.and_then(|()| visit(&of_group));
            buffer = emptied(of_group);
            visited.map_err(|error| records.locate_record(error, group))?;
        }
        Ok(())
    }
}

impl WindowRecords {
    /// Returns the records in order.
    pub fn order(&self) -> &[RecordKey] {
        &self.order
    }

    /// Returns the same records with other lines, whose keys have numbers of these spans.
    pub fn with_lines(self, spans: Vec<RecordSpan>, order: Vec<RecordKey>) -> Self {
        WindowRecords { spans, order, ..self }
    }

    /// Adds the location of the record of some lines to an error. If there are several records, the error names the
    /// sample of one.
    fn locate_record(&self, error: Error, lines: &[RecordKey]) -> Error {
        match lines {
            [one, others @ ..] if others.iter().all(|other| other.is_of_record_of(one)) => {
                self.locate(error, one.batch, one.row)
            }
            _ => error,
        }
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
            // Report the original error rather than an error of locating it.
            Ok(None) | Err(_) => error,
        }
    }
}

impl RecordKey {
    /// Returns the key of another line of the record.
    pub fn at(self, span: u32, position: u32) -> Self {
        RecordKey { span, position, ..self }
    }

    /// Returns whether two lines are of the same record of a span.
    fn is_of_record_of(&self, other: &Self) -> bool {
        (self.span, self.batch, self.row) == (other.span, other.batch, other.row)
    }

    /// Returns whether the lines of two records are at the same position of a span.
    pub fn is_at_position_of(&self, other: &Self) -> bool {
        (self.span, self.position) == (other.span, other.position)
    }
}

/// The columns of a batch.
struct BatchColumns<'b> {
    start: &'b Values,
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
    fn of_all(batches: &'b [RowBatch], fields: &'b AttributeNames) -> Result<Vec<Self>> {
        batches.iter().map(|batch| Self::new(batch, fields)).collect()
    }

    fn new(batch: &'b RowBatch, fields: &'b AttributeNames) -> Result<Self> {
        let own = |names: &'b [(String, Vec<u8>)]| {
            let columns = names.iter().map(|(attribute, name)| Ok((name.as_slice(), batch.column(attribute)?)));
            columns.collect::<Result<Vec<_>>>()
        };
        Ok(BatchColumns {
            start: batch.column(fields.start)?,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each record of a span is found once among the cells of all spans, whether these share a query or not.
        #[test]
        fn spans_of_a_cell_are_found(
            version in 2u32..=4,
            spans in prop::collection::vec((0usize..3, 0u32..200, 0u32..60, prop::option::of(0u32..200)), 0..20),
        ) {
            let layout = DatasetLayout::new(version, 30).unwrap();
            let contigs: [Arc<[u8]>; 3] = [b"a", b"b", b"c"].map(|name| Arc::from(&name[..]));
            let span = |(contig, first, length, anchored_at): (usize, u32, u32, Option<u32>)| {
                let window = PositionWindow { starts: first..=first + length, least_end: 0, anchored_at };
                RecordSpan { contig: Some(contigs[contig].clone()), contig_start: 0, window }
            };
            let spans: Vec<RecordSpan> = spans.into_iter().map(span).collect();
            let visited = VisitedRanges::new(&spans, &layout);
            for contig in &contigs {
                for coordinate in 0..300 {
                    // Only layout 4 has a dimension of contigs.
                    let own = if version == 4 { &contig[..] } else { b"" };
                    let mut found: Vec<usize> = visited.on(own).spans(coordinate).collect();
                    found.sort_unstable();
                    let wanted = spans.iter().enumerate().filter(|(_, span)| {
                        let is_on = version < 4 || span.contig.as_ref() == Some(contig);
                        is_on && layout.coordinates(&span.window).contains(&coordinate)
                    });
                    prop_assert_eq!(found, wanted.map(|(number, _)| number).collect::<Vec<_>>());
                }
            }
        }
    }
}
