//! Presents the array of variant calls of a TileDB-VCF dataset as tables, with a column for each value that its cells
//! encode.
//!
//! `alleles` and `id` lose the NUL that ends them, `filters` has the names of the filters, and `info_NAME` and
//! `fmt_NAME` have the fields that the headers of the dataset's files define, instead of the blobs `info` and `fmt`. In
//! layouts 2 and 3, samples are numbers and positions count across contigs, so `contig`, `sample_name`, `pos_start` and
//! `pos_end` have these values as in VCF.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tilefs_export::computed::{CellKind, Cells, Compute, ComputedColumns, ComputedField};
use tilefs_export::vcf::{self, Contigs, Definitions, FieldColumns, FieldKind, Notation};
use tilefs_export::{Column, Content, Field};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::SingleFlight;
use tilefs_reader::memory;
use tilefs_reader::read::Output;
use tilefs_threads::cancellation;

use crate::cells::{FieldId, Subarray};
use crate::domains::vcf::{VariantDataset, extent_attributes};

/// The bits of a missing quality.
const MISSING_QUALITY: [u8; 4] = 0x7f80_0001u32.to_le_bytes();

/// Approximate memory of one field's column while a table is read.
const BYTES_OF_A_FIELD: usize = 4 << 10;

/// Memory that the columns may take however small the cache is.
const ALWAYS_SHOWN: usize = 32 << 20;

/// The presentation of an array of a TileDB-VCF dataset as a table.
#[derive(Clone)]
pub enum VariantView {
    /// Variant calls.
    Calls(Arc<VariantTables>),
    /// Statistics of alleles, whose `CHAR` values are text.
    Statistics,
}

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
    numbered: Option<Numbered>,
    /// A digest of all headers.
    digest: String,
}

/// The names of samples and contigs, which cells refer to by number.
struct Numbered {
    samples: HashMap<u32, Vec<u8>>,
    contigs: Arc<Contigs>,
}

/// The presentation of an attribute in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// As stored.
    Plain,
    /// Replaced by the columns of its fields.
    Replaced,
    Quality,
    Filters,
    Alleles,
    Id,
}

impl VariantTables {
    /// Creates the tables of a dataset. Reads nothing.
    pub fn new(dataset: Arc<VariantDataset>) -> Self {
        VariantTables { dataset, known: SingleFlight::new() }
    }

    /// Returns the columns for rows of the array of variant calls. `stored` are the columns of its dimensions and
    /// attributes as stored.
    ///
    /// # Errors
    /// Fails if the headers cannot be read, or if a cell does not have TileDB-VCF's format; the error names its place.
    pub fn columns(
        &self,
        subarray: &Arc<dyn Subarray>,
        notation: Notation,
        stored: Vec<(FieldId, Column)>,
    ) -> Result<Vec<(Option<FieldId>, Column)>> {
        let known = self.known()?.clone();
        let names: Vec<String> = stored.iter().map(|(_, column)| column.field.name.clone()).collect();
        let cells = VariantCells::new(subarray.clone(), &self.dataset, known, notation, &names)?;
        let fixed = cells.fixed.len();
        let mut computed = ComputedColumns::new(Box::new(cells)).columns()?;
        let fields = computed.split_off(fixed.min(computed.len()));
        // Alleles, identifier and filters; then the positions for layouts 2 and 3.
        let places = computed.split_off(computed.len().min(FIXED));
        let mut computed = computed.into_iter();
        let (mut alleles, mut id, mut filters) = (computed.next(), computed.next(), computed.next());
        let mut columns = Vec::new();
        for (field, mut column) in stored {
            match role(self.dataset.data.schema(), field) {
                Role::Plain => columns.push((Some(field), column)),
                Role::Replaced => {}
                Role::Quality => {
                    column = column.with_missing(&MISSING_QUALITY);
                    columns.push((Some(field), column));
                }
                Role::Filters => {
                    columns.push((Some(field), column));
                    columns.extend(filters.take().map(|filters| (None, filters)));
                }
                Role::Alleles => columns.extend(alleles.take().map(|alleles| (None, alleles))),
                Role::Id => columns.extend(id.take().map(|id| (None, id))),
            }
        }
        columns.extend(places.into_iter().chain(fields).map(|column| (None, column)));
        Ok(columns)
    }

    /// Returns a text that distinguishes results about these tables from results about the same cells with other
    /// headers.
    ///
    /// # Errors
    /// Fails if the headers cannot be read.
    pub fn digest(&self) -> Result<&str> {
        Ok(&self.known()?.digest)
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
            let numbered = self
                .dataset
                .numbered()?
                .map(|numbered| Numbered { samples: numbered.samples_by_number(), contigs: numbered.contigs.clone() });
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

fn role(schema: &ArraySchema, field: FieldId) -> Role {
    let FieldId::Attribute(number) = field else { return Role::Plain };
    let Some(attribute) = schema.attributes.get(number) else { return Role::Plain };
    match attribute.name.as_str() {
        "alleles" => Role::Alleles,
        "id" => Role::Id,
        "qual" => Role::Quality,
        "filter_ids" => Role::Filters,
        "info" | "fmt" => Role::Replaced,
        name if extracted(name).is_some() && attribute.is_variable() && !attribute.nullable => Role::Replaced,
        _ => Role::Plain,
    }
}

/// The number of computed columns in every table: alleles, identifier and filters.
const FIXED: usize = 3;

/// The content of a computed column that does not depend on the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Alleles,
    Id,
    Filters,
    Contig,
    SampleName,
    Start,
    End,
}

/// The cells of variant calls from which columns are computed.
struct VariantCells {
    subarray: Arc<dyn Subarray>,
    known: Arc<Known>,
    notation: Notation,
    rows: u64,
    columns: Vec<ComputedField>,
    /// The contents of the first columns.
    fixed: Vec<Shown>,
    /// The columns of INFO fields, which come next, and those of FORMAT fields, which come last.
    info: FieldColumns,
    format: FieldColumns,
    alleles: Texts,
    id: Texts,
    filters: Texts,
    /// The samples: names in layout 4, otherwise numbers.
    samples: Samples,
    /// The first and the last position of each record.
    extents: [Arc<dyn Content>; 2],
    info_blob: Texts,
    format_blob: Texts,
    /// The fields with attributes of their own.
    extracted_info: Vec<(Vec<u8>, Texts)>,
    extracted_format: Vec<(Vec<u8>, Texts)>,
}

/// The fields of one kind: their columns, their blob, and the fields with attributes of their own.
#[derive(Clone, Copy)]
struct FieldsOfKind<'c> {
    columns: &'c FieldColumns,
    blob: &'c Texts,
    own: &'c [(Vec<u8>, Texts)],
}

/// The samples of rows.
enum Samples {
    Names(Texts),
    Numbers(Arc<dyn Content>),
}

/// Stored values of variable length.
struct Texts {
    name: String,
    values: Arc<dyn Content>,
    offsets: Arc<dyn Content>,
}

/// The values of some rows.
struct SomeTexts {
    ends: Vec<u64>,
    values: Vec<u8>,
}

impl Texts {
    fn new(subarray: &dyn Subarray, field: FieldId, name: &str) -> Result<Self> {
        Ok(Texts { name: name.to_owned(), values: subarray.values(field)?, offsets: subarray.offsets(field)? })
    }

    /// Returns the start of the value of each row, and the end of the last.
    fn positions(&self, rows: &Range<u64>) -> Result<Vec<u64>> {
        let mut bytes = vec![0; 8 * (rows.end - rows.start + 1) as usize];
        self.offsets.read_at(8 * rows.start, &mut bytes)?;
        let positions: Vec<u64> = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        match positions.is_sorted() && positions.last().is_some_and(|last| *last <= self.values.len()) {
            true => Ok(positions),
            false => Err(Error::damaged("offsets of values that decrease").in_field(&self.name)),
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

impl VariantCells {
    /// Creates the cells; `names` are the names of the stored columns.
    fn new(
        subarray: Arc<dyn Subarray>,
        dataset: &VariantDataset,
        known: Arc<Known>,
        notation: Notation,
        names: &[String],
    ) -> Result<Self> {
        let schema = dataset.data.schema();
        let lost = |name: &str| Error::internal(format!("no attribute {name}"));
        let attribute = |name: &str| {
            let found = schema.attributes.iter().position(|attribute| attribute.name == name);
            found.map(FieldId::Attribute).ok_or_else(|| lost(name))
        };
        let texts = |name: &str| Texts::new(&*subarray, attribute(name)?, name);
        let sample = schema.dimensions.iter().position(|dimension| dimension.name == "sample");
        let sample = FieldId::Dimension(sample.ok_or_else(|| lost("sample"))?);
        let samples = match known.numbered {
            None => Samples::Names(Texts::new(&*subarray, sample, "sample")?),
            Some(_) => Samples::Numbers(subarray.values(sample)?),
        };
        let [start, end] = extent_attributes(dataset.layout.version());
        let extents = [subarray.values(attribute(start)?)?, subarray.values(attribute(end)?)?];
        let (mut extracted_info, mut extracted_format) = (Vec::new(), Vec::new());
        let mut taken: HashSet<String> = names.iter().cloned().collect();
        for (number, attribute) in schema.attributes.iter().enumerate() {
            let field = FieldId::Attribute(number);
            if role(schema, field) == Role::Replaced
                && let Some((kind, name)) = extracted(&attribute.name)
            {
                taken.remove(&attribute.name);
                let texts = (name.as_bytes().to_vec(), Texts::new(&*subarray, field, &attribute.name)?);
                match kind {
                    FieldKind::Info => extracted_info.push(texts),
                    FieldKind::Format => extracted_format.push(texts),
                }
            }
        }
        let mut fixed = vec![Shown::Alleles, Shown::Id, Shown::Filters];
        if known.numbered.is_some() {
            fixed.extend([Shown::Contig, Shown::SampleName, Shown::Start, Shown::End]);
        }
        let mut columns: Vec<ComputedField> = fixed.iter().map(|shown| shown.column(notation)).collect();
        taken.extend(columns.iter().map(|column| column.field.name.clone()));
        let info = FieldColumns::new(&known.definitions, FieldKind::Info, notation, &mut taken);
        let format = FieldColumns::new(&known.definitions, FieldKind::Format, notation, &mut taken);
        columns.extend(info.columns().iter().chain(format.columns()).cloned());
        Ok(VariantCells {
            rows: subarray.shape()?.iter().product(),
            alleles: texts("alleles")?,
            id: texts("id")?,
            filters: texts("filter_ids")?,
            info_blob: texts("info")?,
            format_blob: texts("fmt")?,
            subarray,
            known,
            notation,
            columns,
            fixed,
            info,
            format,
            samples,
            extents,
            extracted_info,
            extracted_format,
        })
    }

    /// Adds the place of a row's stored cell to an error.
    fn locate(&self, error: Error, row: u64, attribute: &str) -> Error {
        let error = match self.subarray.origin(row) {
            Ok(Some((fragment, cell))) => {
                error.in_file(format_args!("{attribute} of cell {cell}")).in_fragment(&fragment)
            }
            // Report the original error rather than that of locating it.
            Ok(None) | Err(_) => error.in_file(format_args!("{attribute} of row {row}")),
        };
        error.in_array(self.subarray.array().path())
    }

    /// Calls `push` with each value of some rows. Adds the place of the cell to errors.
    fn for_each(&self, of: &Texts, rows: &Range<u64>, mut push: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let some = of.read(rows)?;
        for (number, row) in rows.clone().enumerate() {
            push(number, some.get(number)).map_err(|error| self.locate(error, row, &of.name))?;
        }
        Ok(())
    }

    /// Computes a column that does not depend on the headers.
    fn compute_fixed(&self, shown: Shown, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let notation = self.notation;
        match shown {
            Shown::Alleles => {
                self.for_each(&self.alleles, rows, |_, stored| vcf::push_alleles(stored, notation, cells))
            }
            Shown::Id => self.for_each(&self.id, rows, |_, stored| vcf::push_id(stored, notation, cells)),
            Shown::Filters => self.compute_filters(rows, cells),
            Shown::SampleName => self.compute_names(rows, cells),
            Shown::Contig | Shown::Start | Shown::End => self.compute_places(shown, rows, cells),
        }
    }

    fn compute_filters(&self, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let all = self.known.definitions.filters();
        let samples = match (&self.known.filters_of, &self.samples) {
            (None, _) => None,
            (Some(of), Samples::Names(names)) => {
                let names = names.read(rows)?;
                Some((0..names.ends.len() - 1).map(|row| of.get(names.get(row)).copied()).collect::<Vec<_>>())
            }
            (Some(of), Samples::Numbers(numbers)) => {
                let numbers = self.numbers(numbers, rows)?;
                Some(numbers.into_iter().map(|number| of.get(&number.to_le_bytes()[..]).copied()).collect())
            }
        };
        self.for_each(&self.filters, rows, |number, stored| {
            let of = match &samples {
                None => Some(0),
                Some(samples) => samples.get(number).copied().flatten(),
            };
            let filters = of.and_then(|of| all.get(of));
            let filters = filters.ok_or_else(|| Error::damaged("a record of a sample that has no header"))?;
            vcf::push_filters(stored, filters, self.notation, cells)
        })
    }

    fn numbers(&self, of: &Arc<dyn Content>, rows: &Range<u64>) -> Result<Vec<u32>> {
        let mut bytes = vec![0; 4 * (rows.end - rows.start) as usize];
        of.read_at(4 * rows.start, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }

    fn compute_names(&self, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let (Samples::Numbers(numbers), Some(numbered)) = (&self.samples, &self.known.numbered) else {
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

    /// Computes the contigs of records, or their positions on these, counted from 1.
    fn compute_places(&self, shown: Shown, rows: &Range<u64>, cells: &mut Cells) -> Result<()> {
        let numbered = self.known.numbered.as_ref().ok_or_else(|| Error::internal("contigs without positions"))?;
        let [starts, ends] = [self.numbers(&self.extents[0], rows)?, self.numbers(&self.extents[1], rows)?];
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
            match shown {
                Shown::Contig => cells.push(contig),
                Shown::Start => cells.push(&on_contig(start)?),
                _ => cells.push(&on_contig(end)?),
            }
        }
        Ok(())
    }

    /// Computes the columns of a kind of fields, one or all.
    fn compute_fields(
        &self,
        FieldsOfKind { columns, blob, own }: FieldsOfKind<'_>,
        rows: &Range<u64>,
        only: Option<usize>,
        cells: &mut [Cells],
    ) -> Result<()> {
        let own = own.iter().map(|(name, texts)| Ok((name.as_slice(), texts.read(rows)?)));
        let own = own.collect::<Result<Vec<_>>>()?;
        let mut extracted = Vec::with_capacity(own.len());
        self.for_each(blob, rows, |number, stored| {
            extracted.clear();
            extracted.extend(own.iter().map(|(name, texts)| (*name, texts.get(number))));
            columns.append(stored, &extracted, only, cells)
        })
    }

    /// Returns the INFO and the FORMAT fields.
    fn kinds(&self) -> [FieldsOfKind<'_>; 2] {
        [
            FieldsOfKind { columns: &self.info, blob: &self.info_blob, own: &self.extracted_info },
            FieldsOfKind { columns: &self.format, blob: &self.format_blob, own: &self.extracted_format },
        ]
    }

    /// Returns all stored values of variable length.
    fn texts(&self) -> impl Iterator<Item = &Texts> {
        let own = self.extracted_info.iter().chain(&self.extracted_format).map(|(_, texts)| texts);
        [&self.alleles, &self.id, &self.filters, &self.info_blob, &self.format_blob].into_iter().chain(own)
    }
}

impl Compute for VariantCells {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn columns(&self) -> &[ComputedField] {
        &self.columns
    }

    fn positions(&self, rows: Range<u64>) -> Result<Vec<u64>> {
        let mut sums = vec![0u64; (rows.end - rows.start + 1) as usize];
        for texts in self.texts() {
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
            for (shown, cells) in self.fixed.iter().zip(fixed) {
                self.compute_fixed(*shown, &rows, cells)?;
            }
            for kind in self.kinds() {
                let (cells, others) = rest.split_at_mut(kind.columns.columns().len().min(rest.len()));
                self.compute_fields(kind, &rows, None, cells)?;
                rest = others;
            }
            return Ok(());
        };
        if let Some(shown) = self.fixed.get(column) {
            return cells.iter_mut().try_for_each(|cells| self.compute_fixed(*shown, &rows, cells));
        }
        for kind in self.kinds() {
            let end = first + kind.columns.columns().len();
            if column < end {
                return self.compute_fields(kind, &rows, Some(column - first), cells);
            }
            first = end;
        }
        Err(Error::internal("no such column"))
    }

    fn read_ahead(&self, rows: Range<u64>, column: usize) -> Result<()> {
        let ahead = |of: &Arc<dyn Content>| of.read(4 * rows.start, Output::Ahead(4 * (rows.end - rows.start)));
        let samples = || match &self.samples {
            Samples::Names(names) => names.read_ahead(&rows),
            Samples::Numbers(numbers) => ahead(numbers),
        };
        match self.fixed.get(column) {
            Some(Shown::Alleles) => self.alleles.read_ahead(&rows),
            Some(Shown::Id) => self.id.read_ahead(&rows),
            Some(Shown::Filters) => {
                samples()?;
                self.filters.read_ahead(&rows)
            }
            Some(Shown::SampleName) => samples(),
            Some(Shown::Contig | Shown::Start | Shown::End) => self.extents.iter().try_for_each(ahead),
            None => {
                let is_info = column - self.fixed.len() < self.info.columns().len();
                let [info, format] = self.kinds();
                let fields = if is_info { info } else { format };
                fields.blob.read_ahead(&rows)?;
                fields.own.iter().try_for_each(|(_, texts)| texts.read_ahead(&rows))
            }
        }
    }
}

impl Shown {
    fn column(self, notation: Notation) -> ComputedField {
        let (text, number) = (Datatype::StringUtf8, Datatype::UInt32);
        let list = if notation == Notation::Lists { CellKind::Texts } else { CellKind::Text };
        let (name, datatype, kind) = match self {
            Shown::Alleles => ("alleles", text, list),
            Shown::Id => ("id", text, CellKind::Text),
            Shown::Filters => ("filters", text, list),
            Shown::Contig => ("contig", text, CellKind::Text),
            Shown::SampleName => ("sample_name", text, CellKind::Text),
            Shown::Start => ("pos_start", number, CellKind::Value(4)),
            Shown::End => ("pos_end", number, CellKind::Value(4)),
        };
        ComputedField { field: Field::new(name, datatype).with_nullable(self == Shown::Filters), kind }
    }
}
