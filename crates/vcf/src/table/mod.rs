//! Presents the array of variant calls of a TileDB-VCF dataset as tables, with a column for each value that its cells
//! encode.
//!
//! `alleles` and `id` lose the NUL that ends them, `filters` has the names of the filters, and `info_NAME` and
//! `fmt_NAME` have the fields that the headers of the dataset's files define, instead of the blobs `info` and `fmt`. In
//! layouts 2 and 3, cells store numbers of samples, and positions across contigs; there, `contig`, `sample_name`,
//! `pos_start` and `pos_end` have the values of VCF.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_base::memory;
use tilefs_base::output::Output;
use tilefs_export::column::computed::{CellKind, Cells, Compute, ComputedColumns, ComputedField, Notation};
use tilefs_export::content::offsets::{Offsets, wrong_offsets};
use tilefs_export::{Column, Field};
use tilefs_format::datatype::Datatype;
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;

use crate::columns::FieldColumns;
use crate::dataset::arrays::{VariantDataset, extent_attributes};
use crate::definitions::{Definitions, FieldKind};
use crate::layout::Contigs;
use crate::record_columns::{push_alleles, push_filters, push_id};

/// The bits of a missing quality.
const MISSING_QUALITY: [u8; 4] = 0x7f80_0001u32.to_le_bytes();

/// Approximate memory of one field's column while a table is read.
const BYTES_OF_A_FIELD: usize = 4 << 10;

/// Memory that the columns may take however small the cache is.
const ALWAYS_SHOWN: usize = 32 << 20;

/// The tables of a dataset's variant calls, whose columns depend on its headers. Memory: the definitions of its fields,
/// and if its files have different filters, the name or number of each sample.
pub struct VariantTables {
    dataset: Arc<VariantDataset>,
    known: SingleFlight<Arc<Known>>,
}

/// The data from the headers, and the names that go with numbers in layouts 2 and 3.
struct Known {
    definitions: Definitions,
    /// For each sample the number of its list of filters, if there are several lists.
    filters_of: Option<HashMap<Vec<u8>, usize>>,
    /// `Some` in layouts 2 and 3.
    numbered: Option<NumberedNames>,
    /// A digest of all headers, with their samples.
    digest: String,
}

impl Recorded for Known {
    fn record(&self, recorder: &mut Recorder) {
        // The definitions are those of the headers and of the array's attributes. The dataset records its names.
        let Self { definitions: _, filters_of: _, numbered: _, digest } = self;
        recorder.add::<Self>(digest);
    }
}

/// The names of samples and contigs, which cells refer to by number.
struct NumberedNames {
    samples: HashMap<u32, Vec<u8>>,
    contigs: Arc<Contigs>,
}

/// Rows of the array of variant calls as they are stored.
pub struct CallRows {
    /// The dimensions and attributes, under their names in the array.
    pub stored: Vec<Column>,
    pub origin: CellOrigin,
}

/// A function from a row to its fragment's name and its cell's number in the fragment; `None` past the last row.
pub type CellOrigin = Box<dyn Fn(u64) -> Result<Option<(String, u64)>> + Send + Sync>;

/// A column of the table.
pub struct CallColumn {
    /// The number of the stored column that this column shows; `None` for a computed column.
    pub stored: Option<usize>,
    pub column: Column,
}

/// The presentation of a stored column in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presentation {
    AsStored,
    /// As stored, with null for a missing quality.
    Quality,
    /// Replaced by computed columns.
    Replaced,
}

impl VariantTables {
    /// Creates the tables of a dataset. Reads nothing.
    pub fn new(dataset: Arc<VariantDataset>) -> Self {
        VariantTables { dataset, known: SingleFlight::new() }
    }

    /// Returns the columns of the table for rows of the array of variant calls.
    ///
    /// # Errors
    /// Fails if the headers cannot be read, or if a cell does not have TileDB-VCF's format; the error names its place.
    pub fn columns(&self, rows: CallRows, notation: Notation) -> Result<Vec<CallColumn>> {
        let CallRows { stored, origin } = rows;
        let cells = CallCells::new(self.dataset.clone(), self.known()?.clone(), &stored, origin, notation)?;
        let fixed = cells.fixed.clone();
        let mut computed = ComputedColumns::new(Box::new(cells)).columns()?.into_iter();
        let mut fixed: Vec<(CommonColumn, Column)> = fixed.into_iter().zip(&mut computed).collect();
        let of_computed = |column| CallColumn { stored: None, column };
        let mut columns = Vec::new();
        for (number, column) in stored.into_iter().enumerate() {
            let beside = fixed.iter().position(|(fixed, _)| fixed.attribute() == Some(column.field.name.as_str()));
            let stored = Some(number);
            match presentation(&column) {
                Presentation::AsStored => columns.push(CallColumn { stored, column }),
                Presentation::Quality => {
                    columns.push(CallColumn { stored, column: column.with_missing(&MISSING_QUALITY) });
                }
                Presentation::Replaced => {}
            }
            columns.extend(beside.map(|place| of_computed(fixed.remove(place).1)));
        }
        columns.extend(fixed.into_iter().map(|(_, column)| column).chain(computed).map(of_computed));
        Ok(columns)
    }

    fn known(&self) -> Result<&Arc<Known>> {
        self.known.get_or_retry(|| {
            let (mut definitions, mut of_samples) = (Definitions::default(), HashMap::new());
            let mut digest = Sha256::new();
            self.dataset.for_each_header(|sample, header| {
                for part in [sample, header] {
                    digest.update((part.len() as u64).to_le_bytes());
                    digest.update(part);
                }
                of_samples.insert(sample.to_vec(), definitions.add(header)?);
                Ok(())
            })?;
            for attribute in &self.dataset.data.schema().attributes {
                if let Some((kind, name)) = extracted(&attribute.name) {
                    definitions.add_stored(kind, name.as_bytes());
                }
            }
            let most = self.dataset.data.context().budget().bytes().max(ALWAYS_SHOWN) / BYTES_OF_A_FIELD;
            if definitions.field_count() > most {
                let count = definitions.field_count();
                let what = format!("{count} fields where --cache-size has room for the columns of {most}");
                return Err(Error::unsupported(what).in_array(self.dataset.data.path()));
            }
            let filters_of = (definitions.filters().len() > 1).then_some(of_samples);
            let numbered = self.dataset.numbered()?.map(|numbered| NumberedNames {
                samples: numbered.samples_by_number(),
                contigs: numbered.contigs.clone(),
            });
            let digest = format!("{:?}", digest.finalize());
            Ok(Arc::new(Known { definitions, filters_of, numbered, digest }))
        })
    }
}

/// Returns the field with an attribute of its own, by the name of the attribute.
fn extracted(attribute: &str) -> Option<(FieldKind, &str)> {
    let kinds = [(FieldKind::Info, "info_"), (FieldKind::Format, "fmt_")];
    kinds.into_iter().find_map(|(kind, prefix)| Some((kind, attribute.strip_prefix(prefix)?)))
}

fn presentation(stored: &Column) -> Presentation {
    match stored.field.name.as_str() {
        "alleles" | "id" | "info" | "fmt" => Presentation::Replaced,
        "qual" => Presentation::Quality,
        name if extracted(name).is_some() && stored.offsets.is_some() && !stored.field.nullable => {
            Presentation::Replaced
        }
        _ => Presentation::AsStored,
    }
}

/// A computed column that does not depend on the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommonColumn {
    Alleles,
    Id,
    Filters,
    Contig,
    SampleName,
    Start,
    End,
}

impl CommonColumn {
    /// The columns of every table.
    const OF_ALL: [CommonColumn; 3] = [CommonColumn::Alleles, CommonColumn::Id, CommonColumn::Filters];

    /// The columns of tables of layouts 2 and 3.
    const OF_NUMBERED: [CommonColumn; 4] =
        [CommonColumn::Contig, CommonColumn::SampleName, CommonColumn::Start, CommonColumn::End];

    /// Returns the attribute beside which the column stands, or which it replaces; `None` for a column that follows all
    /// stored columns.
    fn attribute(self) -> Option<&'static str> {
        match self {
            CommonColumn::Alleles => Some("alleles"),
            CommonColumn::Id => Some("id"),
            CommonColumn::Filters => Some("filter_ids"),
            _ => None,
        }
    }

    fn field(self, notation: Notation) -> ComputedField {
        let (text, number) = (Datatype::StringUtf8, Datatype::UInt32);
        let list = if notation == Notation::Lists { CellKind::Texts } else { CellKind::Text };
        let (name, datatype, kind) = match self {
            CommonColumn::Alleles => ("alleles", text, list),
            CommonColumn::Id => ("id", text, CellKind::Text),
            CommonColumn::Filters => ("filters", text, list),
            CommonColumn::Contig => ("contig", text, CellKind::Text),
            CommonColumn::SampleName => ("sample_name", text, CellKind::Text),
            CommonColumn::Start => ("pos_start", number, CellKind::Value(4)),
            CommonColumn::End => ("pos_end", number, CellKind::Value(4)),
        };
        ComputedField { field: Field::new(name, datatype).with_nullable(self == CommonColumn::Filters), kind }
    }
}

/// The cells of variant calls from which columns are computed.
struct CallCells {
    dataset: Arc<VariantDataset>,
    known: Arc<Known>,
    notation: Notation,
    rows: u64,
    stored: StoredCalls,
    origin: CellOrigin,
    /// All columns: first the fixed columns, then the columns of INFO fields, then the columns of FORMAT fields.
    columns: Vec<ComputedField>,
    fixed: Vec<CommonColumn>,
    info: FieldColumns,
    format: FieldColumns,
}

/// The stored values from which columns are computed.
struct StoredCalls {
    alleles: StoredTexts,
    id: StoredTexts,
    filters: StoredTexts,
    /// The samples: names in layout 4, otherwise numbers.
    samples: RowSamples,
    /// The first and the last position of each record.
    extents: [Arc<dyn Content>; 2],
    info: StoredFields,
    format: StoredFields,
}

/// The stored fields of one kind.
struct StoredFields {
    /// The fields without an attribute of their own.
    blob: StoredTexts,
    /// The fields with an attribute of their own: the name and the values of each field.
    own: Vec<(Vec<u8>, StoredTexts)>,
}

/// The samples of rows.
enum RowSamples {
    Names(StoredTexts),
    Numbers(Arc<dyn Content>),
}

/// Stored values of variable length.
struct StoredTexts {
    name: String,
    values: Arc<dyn Content>,
    offsets: Offsets,
}

/// The values of some rows.
struct SomeTexts {
    ends: Vec<u64>,
    values: Vec<u8>,
}

impl StoredTexts {
    fn new(column: &Column) -> Result<Self> {
        let name = column.field.name.clone();
        let offsets = column.offsets.clone().ok_or_else(|| Error::internal(format!("no offsets of {name}")))?;
        Ok(StoredTexts { name, values: column.values.clone(), offsets })
    }

    /// Returns the start of the value of each row, and the end of the last.
    fn positions(&self, rows: &Range<u64>) -> Result<Vec<u64>> {
        let mut positions = vec![0; (rows.end - rows.start + 1) as usize];
        self.offsets.read_into(rows.start, &mut positions)?;
        match positions.is_sorted() && positions.last().is_some_and(|last| *last <= self.values.len()) {
            true => Ok(positions),
            false => Err(wrong_offsets().in_field(&self.name)),
        }
    }

    fn read(&self, rows: &Range<u64>) -> Result<SomeTexts> {
        let mut ends = self.positions(rows)?;
        let (start, end) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
        let mut values = Vec::new();
        memory::resize(&mut values, usize::try_from(end - start).unwrap_or(usize::MAX), "values of records")?;
        if !values.is_empty() {
            self.values.read_at(start, &mut values)?;
        }
        ends.iter_mut().for_each(|end| *end -= start);
        Ok(SomeTexts { ends, values })
    }

    fn read_ahead(&self, rows: &Range<u64>) -> Result<()> {
        let ends = self.positions(rows)?;
        let (start, end) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
        if start < end { self.values.read(start, Output::Ahead(end - start)) } else { Ok(()) }
    }
}

impl SomeTexts {
    /// Returns the value of a row, numbered from the first one read.
    fn get(&self, row: usize) -> &[u8] {
        let ends = self.ends.get(row..).and_then(|ends| ends.first_chunk::<2>());
        ends.and_then(|ends| self.values.get(ends[0] as usize..ends[1] as usize)).unwrap_or_default()
    }
}

impl StoredCalls {
    fn new(columns: &[Column], known: &Known, version: u32) -> Result<Self> {
        let column = |name: &str| {
            let found = columns.iter().find(|column| column.field.name == name);
            found.ok_or_else(|| Error::internal(format!("no column {name}")))
        };
        let texts = |name: &str| StoredTexts::new(column(name)?);
        let fields = |of: FieldKind, blob: &str| {
            let replaced = columns.iter().filter(|column| presentation(column) == Presentation::Replaced);
            let own = replaced.filter_map(|column| match extracted(&column.field.name) {
                Some((kind, name)) if kind == of => {
                    Some(StoredTexts::new(column).map(|own| (name.as_bytes().to_vec(), own)))
                }
                _ => None,
            });
            Ok::<_, Error>(StoredFields { own: own.collect::<Result<_>>()?, blob: texts(blob)? })
        };
        let samples = match known.numbered {
            None => RowSamples::Names(texts("sample")?),
            Some(_) => RowSamples::Numbers(column("sample")?.values.clone()),
        };
        let [start, end] = extent_attributes(version);
        Ok(StoredCalls {
            alleles: texts("alleles")?,
            id: texts("id")?,
            filters: texts("filter_ids")?,
            samples,
            extents: [column(start)?.values.clone(), column(end)?.values.clone()],
            info: fields(FieldKind::Info, "info")?,
            format: fields(FieldKind::Format, "fmt")?,
        })
    }

    /// Returns all values of variable length.
    fn texts(&self) -> impl Iterator<Item = &StoredTexts> {
        let own = self.info.own.iter().chain(&self.format.own).map(|(_, texts)| texts);
        [&self.alleles, &self.id, &self.filters, &self.info.blob, &self.format.blob].into_iter().chain(own)
    }
}

impl CallCells {
    fn new(
        dataset: Arc<VariantDataset>,
        known: Arc<Known>,
        columns: &[Column],
        origin: CellOrigin,
        notation: Notation,
    ) -> Result<Self> {
        let stored = StoredCalls::new(columns, &known, dataset.layout.version())?;
        let rows = columns.first().map_or(0, Column::cells);
        let is_own = |column: &&Column| {
            presentation(column) == Presentation::Replaced && extracted(&column.field.name).is_some()
        };
        let others = columns.iter().filter(|column| !is_own(column));
        let mut taken: HashSet<String> = others.map(|column| column.field.name.clone()).collect();
        let of_numbered = known.numbered.iter().flat_map(|_| CommonColumn::OF_NUMBERED);
        let fixed: Vec<CommonColumn> = CommonColumn::OF_ALL.into_iter().chain(of_numbered).collect();
        let mut columns: Vec<ComputedField> = fixed.iter().map(|column| column.field(notation)).collect();
        taken.extend(columns.iter().map(|column| column.field.name.clone()));
        let info = FieldColumns::new(&known.definitions, FieldKind::Info, notation, &mut taken);
        let format = FieldColumns::new(&known.definitions, FieldKind::Format, notation, &mut taken);
        columns.extend(info.columns().iter().chain(format.columns()).cloned());
        Ok(CallCells { dataset, known, notation, rows, stored, origin, columns, fixed, info, format })
    }

    /// Adds the place of a row's stored cell to an error.
    fn locate(&self, error: Error, row: u64, attribute: &str) -> Error {
        let error = match (self.origin)(row) {
            Ok(Some((fragment, cell))) => {
                error.in_file(format_args!("{attribute} of cell {cell}")).in_fragment(&fragment)
            }
            // Report the original error rather than an error of locating it.
            Ok(None) | Err(_) => error.in_file(format_args!("{attribute} of row {row}")),
        };
        error.in_array(self.dataset.data.path())
    }

    /// Calls `push` with each value of some rows. Adds the place of the cell to errors.
    fn for_each(
        &self,
        of: &StoredTexts,
        rows: &Range<u64>,
        mut push: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let some = of.read(rows)?;
        for (number, row) in rows.clone().enumerate() {
            push(number, some.get(number)).map_err(|error| self.locate(error, row, &of.name))?;
        }
        Ok(())
    }

    /// Computes a column that does not depend on the headers.
    fn compute_fixed(&self, column: CommonColumn, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let notation = self.notation;
        match column {
            CommonColumn::Alleles => {
                self.for_each(&self.stored.alleles, rows, |_, stored| push_alleles(stored, notation, cells))
            }
            CommonColumn::Id => self.for_each(&self.stored.id, rows, |_, stored| push_id(stored, notation, cells)),
            CommonColumn::Filters => self.compute_filters(rows, cells),
            CommonColumn::SampleName => self.compute_names(rows, cells),
            CommonColumn::Contig | CommonColumn::Start | CommonColumn::End => self.compute_places(column, rows, cells),
        }
    }

    fn compute_filters(&self, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let all = self.known.definitions.filters();
        let samples = match (&self.known.filters_of, &self.stored.samples) {
            (None, _) => None,
            (Some(of), RowSamples::Names(names)) => {
                let names = names.read(rows)?;
                Some((0..names.ends.len() - 1).map(|row| of.get(names.get(row)).copied()).collect::<Vec<_>>())
            }
            (Some(of), RowSamples::Numbers(numbers)) => {
                let numbers = self.numbers(numbers, rows)?;
                Some(numbers.into_iter().map(|number| of.get(&number.to_le_bytes()[..]).copied()).collect())
            }
        };
        self.for_each(&self.stored.filters, rows, |number, stored| {
            let of = match &samples {
                None => Some(0),
                Some(samples) => samples.get(number).copied().flatten(),
            };
            let filters = of.and_then(|of| all.get(of));
            let filters = filters.ok_or_else(|| Error::damaged("a record of a sample that has no header"))?;
            push_filters(stored, filters, self.notation, cells)
        })
    }

    fn numbers(&self, of: &Arc<dyn Content>, rows: &Range<u64>) -> Result<Vec<u32>> {
        let mut bytes = vec![0; 4 * (rows.end - rows.start) as usize];
        of.read_at(4 * rows.start, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }

    fn compute_names(&self, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let (RowSamples::Numbers(numbers), Some(numbered)) = (&self.stored.samples, &self.known.numbered) else {
            return Err(Error::internal("samples without numbers"));
        };
        for (row, number) in rows.clone().zip(self.numbers(numbers, rows)?) {
            let name = numbered.samples.get(&number).ok_or_else(|| {
                let error = Error::damaged(format!("the sample {number}, which has no name"));
                self.locate(error, row, "sample")
            })?;
            cells.push(name);
        }
        Ok(())
    }

    /// Computes the contigs of records, or the positions of records on their contigs, counted from 1.
    fn compute_places(&self, column: CommonColumn, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let numbered = self.known.numbered.as_ref().ok_or_else(|| Error::internal("contigs without positions"))?;
        let [starts, ends] =
            [self.numbers(&self.stored.extents[0], rows)?, self.numbers(&self.stored.extents[1], rows)?];
        for (row, (start, end)) in rows.clone().zip(starts.into_iter().zip(ends)) {
            let misplaced = || {
                let error = Error::damaged(format!("a record from {start} to {end}, where its contig is not"));
                self.locate(error, row, "the positions")
            };
            let (contig, first) = numbered.contigs.contig_at(start).ok_or_else(misplaced)?;
            let on_contig = |position: u32| {
                let position = position.checked_sub(first).and_then(|position| position.checked_add(1));
                position.map(u32::to_le_bytes).ok_or_else(misplaced)
            };
            match column {
                CommonColumn::Contig => cells.push(contig),
                CommonColumn::Start => cells.push(&on_contig(start)?),
                _ => cells.push(&on_contig(end)?),
            }
        }
        Ok(())
    }

    /// Computes one column, or all columns, of a kind of fields.
    fn compute_fields(
        &self,
        (columns, stored): (&FieldColumns, &StoredFields),
        rows: &Range<u64>,
        only: Option<usize>,
        cells: &mut [Cells],
    ) -> Result<()> {
        let own = stored.own.iter().map(|(name, texts)| Ok((name.as_slice(), texts.read(rows)?)));
        let own = own.collect::<Result<Vec<_>>>()?;
        let mut extracted = Vec::with_capacity(own.len());
        self.for_each(&stored.blob, rows, |number, stored| {
            extracted.clear();
            extracted.extend(own.iter().map(|(name, texts)| (*name, texts.get(number))));
            columns.append(stored, &extracted, only, cells)
        })
    }

    /// Returns the columns of each kind of fields, and their stored values.
    fn kinds(&self) -> [(&FieldColumns, &StoredFields); 2] {
        [(&self.info, &self.stored.info), (&self.format, &self.stored.format)]
    }
}

impl Recorded for StoredTexts {
    fn record(&self, recorder: &mut Recorder) {
        let Self { name, values, offsets } = self;
        recorder.add::<Self>(name);
        Content::record(values, recorder);
        offsets.record(recorder);
    }
}

impl Recorded for StoredFields {
    fn record(&self, recorder: &mut Recorder) {
        let Self { blob, own } = self;
        blob.record(recorder);
        recorder.add::<Self>(own.len());
        for (name, values) in own {
            recorder.add::<StoredTexts>(name);
            values.record(recorder);
        }
    }
}

impl Recorded for StoredCalls {
    fn record(&self, recorder: &mut Recorder) {
        let Self { alleles, id, filters, samples, extents, info, format } = self;
        [alleles, id, filters].into_iter().for_each(|texts| texts.record(recorder));
        match samples {
            RowSamples::Names(names) => names.record(recorder),
            RowSamples::Numbers(numbers) => Content::record(numbers, recorder),
        }
        extents.iter().for_each(|extent| Content::record(extent, recorder));
        [info, format].into_iter().for_each(|fields| fields.record(recorder));
    }
}

impl Compute for CallCells {
    fn record(&self, recorder: &mut Recorder) {
        // The places of cells are for errors.
        let Self { dataset, known, notation, rows, stored, origin: _, columns, fixed: _, info: _, format: _ } = self;
        recorder.add_shown::<Self>((notation, rows, columns));
        dataset.record(recorder);
        known.record(recorder);
        stored.record(recorder);
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> &[ComputedField] {
        &self.columns
    }

    fn positions(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let mut sums = vec![0u64; (rows.end - rows.start + 1) as usize];
        for texts in self.stored.texts() {
            let positions = texts.positions(&rows)?;
            sums.iter_mut().zip(positions).for_each(|(sum, position)| *sum = sum.saturating_add(position));
        }
        Ok(sums)
    }

    fn compute(&self, rows: Range<u64>, column: Option<usize>, cells: &mut [Cells]) -> Result<()> {
        cancellation::check()?;
        let mut first = self.fixed.len();
        let Some(column) = column else {
            let (fixed, mut rest) = cells.split_at_mut(first.min(cells.len()));
            for (column, cells) in self.fixed.iter().zip(fixed) {
                self.compute_fixed(*column, &rows, cells)?;
            }
            for kind in self.kinds() {
                let (cells, others) = rest.split_at_mut(kind.0.columns().len().min(rest.len()));
                self.compute_fields(kind, &rows, None, cells)?;
                rest = others;
            }
            return Ok(());
        };
        if let Some(fixed) = self.fixed.get(column) {
            return cells.iter_mut().try_for_each(|cells| self.compute_fixed(*fixed, &rows, cells));
        }
        for kind in self.kinds() {
            let end = first + kind.0.columns().len();
            if column < end {
                return self.compute_fields(kind, &rows, Some(column - first), cells);
            }
            first = end;
        }
        Err(Error::internal("no such column"))
    }

    fn read_ahead(&self, rows: Range<u64>, column: usize) -> Result<()> {
        let ahead = |of: &Arc<dyn Content>| of.read(4 * rows.start, Output::Ahead(4 * (rows.end - rows.start)));
        let samples = || match &self.stored.samples {
            RowSamples::Names(names) => names.read_ahead(&rows),
            RowSamples::Numbers(numbers) => ahead(numbers),
        };
        match self.fixed.get(column) {
            Some(CommonColumn::Alleles) => self.stored.alleles.read_ahead(&rows),
            Some(CommonColumn::Id) => self.stored.id.read_ahead(&rows),
            Some(CommonColumn::Filters) => {
                samples()?;
                self.stored.filters.read_ahead(&rows)
            }
            Some(CommonColumn::SampleName) => samples(),
            Some(CommonColumn::Contig | CommonColumn::Start | CommonColumn::End) => {
                self.stored.extents.iter().try_for_each(ahead)
            }
            None => {
                let is_info = column - self.fixed.len() < self.info.columns().len();
                let fields = if is_info { &self.stored.info } else { &self.stored.format };
                fields.blob.read_ahead(&rows)?;
                fields.own.iter().try_for_each(|(_, texts)| texts.read_ahead(&rows))
            }
        }
    }
}
