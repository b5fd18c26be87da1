//! Plans the contents of a netCDF file of an array: dimensions, variables and attributes.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text::is_utf8;

use super::metadata;
use super::plan::{FilePlan, Meaning, NcAttribute, NcDimension, PlannedVariable};
use super::types::{NcEncoding, NcType, Version};
use crate::cf::names::UniqueNames;
use crate::cf::plan::{CfVariables, EarthAxis, add_array, add_dataset};
use crate::cf::{self, Note};
use crate::column::dataset::{CfDataset, Variable};
use crate::column::{AuxiliaryCoordinates, Column, Columns, Field, FormatResult, Labels, Metadatum, Unrepresentable};
use crate::content::blanked::Blanked;
use crate::content::compose::Repeat;
use crate::content::element::Swapped;
use crate::content::masked::Masked;
use crate::content::offsets::Offsets;
use crate::content::padded::Padded;
use crate::content::validity::Validity;
use crate::geo::georeference::Georeference;

/// The longest dimension of CDF-2.
const LONGEST_DIMENSION_OF_CDF2: u64 = i32::MAX as u64 - 3;

/// Maximum size in bytes of the labels of an enumeration, padded to the longest in memory.
const MAX_LABEL_BYTES: u64 = 64 << 20;

/// Maximum size in bytes of the padded texts of a column of variable length, unless they take at most
/// `MAX_PADDING_RATIO` times the size of the texts.
const MAX_PADDED: u64 = 64 << 20;
const MAX_PADDING_RATIO: u64 = 16;

/// Maximum number of texts stored as strings of netCDF-4, which requires the length of each text. More texts are stored
/// end to end in one variable.
const MAX_STRINGS: u64 = 1 << 26;

impl FilePlan {
    /// Plans an array's file in a version; returns the reason if that version cannot hold it.
    pub fn of(columns: &Columns, version: Version) -> FormatResult<Self> {
        check(columns, version)?;
        let mut builder = PlanBuilder::new(version);
        builder.global_attributes(&columns.metadata);
        builder.add_conventions(&columns.metadata);
        add_array(&mut builder, columns)?;
        Ok(builder.plan)
    }

    /// Plans a file of variables that share dimensions; returns the reason if that version cannot hold it.
    pub fn of_dataset(dataset: &CfDataset<Column>, version: Version) -> FormatResult<Self> {
        check_dataset(dataset, version)?;
        let mut builder = PlanBuilder::new(version);
        builder.global_attributes(&dataset.metadata);
        let dimensions = add_dataset(&mut builder, dataset)?;
        let numbers = dataset.growing.iter().filter_map(|&growing| dimensions.get(growing).copied());
        builder.plan.grow_along(numbers.collect());
        Ok(builder.plan)
    }
}

/// Checks that the lengths of all columns of an array agree.
fn check(columns: &Columns, version: Version) -> FormatResult<()> {
    let all = || columns.dimensions.iter().chain(&columns.attributes);
    let wrong = |column: &Column, reason: &str| Err(Unrepresentable::new(format!("{}: {reason}", column.field.name)));
    let labels = columns.auxiliary.iter().map(|labels| &labels.column);
    all().chain(labels).try_for_each(Column::check)?;
    if columns.sparse {
        let cells = all().next().map_or(0, Column::cells);
        return match all().find(|column| column.cells() != cells) {
            Some(column) => wrong(column, "not the same number of rows as the others"),
            None => Ok(()),
        };
    }
    let lengths: Vec<u64> = columns.dimensions.iter().map(Column::cells).collect();
    if lengths.contains(&0) && version.is_classic() {
        return Err(Unrepresentable::empty_axis());
    }
    for AuxiliaryCoordinates { axis, column } in &columns.auxiliary {
        if lengths.get(*axis) != Some(&column.cells()) {
            return wrong(column, "not the same number of labels as the axis has cells");
        }
    }
    match columns.attributes.iter().find(|column| column.shape != lengths) {
        Some(column) => wrong(column, "its shape is not that of the axes"),
        None => Ok(()),
    }
}

/// Checks that the shapes of all variables are those of their axes.
fn check_dataset(dataset: &CfDataset<Column>, version: Version) -> FormatResult<()> {
    let empty = dataset.dimensions.iter().find(|(_, length)| *length == 0);
    if let Some((name, _)) = empty.filter(|_| version.is_classic()) {
        return Err(Unrepresentable::new(format!("{name}: {}", Unrepresentable::empty_axis())));
    }
    for Variable { axes, column } in &dataset.variables {
        column.check()?;
        let lengths: Vec<u64> = axes.iter().filter_map(|&axis| Some(dataset.dimensions.get(axis)?.1)).collect();
        if column.shape != lengths || axes.len() != lengths.len() {
            return Err(Unrepresentable::new(format!("{}: its shape is not that of its axes", column.field.name)));
        }
    }
    Ok(())
}

struct PlanBuilder {
    version: Version,
    plan: FilePlan,
    names: UniqueNames,
    /// Attributes that every variable over the cells gets.
    shared: Vec<NcAttribute>,
}

/// The form of the cells of a column in a variable.
struct CellForm {
    /// The dimensions of the cells, then that of the values of a cell; or only that of all values end to end.
    dimensions: Vec<usize>,
    meaning: Meaning,
    /// The length to which texts are padded.
    padded: Option<u64>,
    /// Whether readers decode the characters of a cell to a text.
    is_decoded: bool,
}

impl CellForm {
    fn is_strings(&self) -> bool {
        matches!(self.meaning, Meaning::Strings { .. })
    }
}

impl CfVariables for PlanBuilder {
    type Column = Column;
    type Failure = Unrepresentable;

    fn names(&mut self) -> &mut UniqueNames {
        &mut self.names
    }

    fn count(&self) -> usize {
        self.plan.variables.len()
    }

    fn is_along_cells(&self, column: &Column) -> bool {
        match column.field.values_per_cell {
            Some(values) => values == 1,
            None => column.field.is_bytes() && padded_width(column).is_some(),
        }
    }

    fn add_dimension(&mut self, name: String, length: u64) -> FormatResult<usize> {
        let longest = match self.version {
            Version::Cdf2 => LONGEST_DIMENSION_OF_CDF2,
            Version::Cdf5 | Version::NetCdf4 => i64::MAX as u64 - 3,
        };
        if length > longest {
            return Err(Unrepresentable::new(format!("a dimension of length {length} is too long for netCDF")));
        }
        self.plan.dimensions.push(NcDimension { name, length });
        Ok(self.plan.dimensions.len() - 1)
    }

    fn add_axis(
        &mut self,
        name: String,
        dimension: usize,
        axis: &Column,
        on_earth: Option<&EarthAxis<'_>>,
    ) -> FormatResult<()> {
        if axis.field.is_bytes() {
            // Texts stored end to end are not coordinates of the axis, and may not have its name.
            return match padded_width(axis) {
                Some(_) => self.add_column_of_name(name, axis, &[dimension]),
                None => self.add_column(axis, &[dimension]),
            };
        }
        let computed = on_earth.and_then(|on_earth| on_earth.coordinates(axis.cells()));
        let (nc_type, content, mut attributes) = match computed {
            Some(content) if self.version.is_classic() => {
                (NcType::Double, Arc::new(Swapped::new(content, 8)) as Arc<dyn Content>, Vec::new())
            }
            Some(content) => (NcType::Double, content, Vec::new()),
            None => {
                let encoding = self.encoding(axis)?;
                let attributes = attributes_of(axis, &name, encoding);
                (encoding.nc_type, self.stored(encoding, axis.values.clone(), &axis.field.name), attributes)
            }
        };
        for attribute in on_earth.map(EarthAxis::attributes).unwrap_or_default() {
            if attributes.iter().all(|own| own.name != attribute.name) {
                attributes.push(attribute.into());
            }
        }
        self.add_notes(&mut attributes, axis, None);
        self.add(name, vec![dimension], nc_type, content, attributes, Meaning::Values);
        Ok(())
    }

    fn add_column(&mut self, column: &Column, dimensions: &[usize]) -> FormatResult<()> {
        let name = self.names.give(&column.field.name);
        self.add_column_of_name(name, column, dimensions)
    }

    fn add_column_of_name(&mut self, name: String, column: &Column, cells: &[usize]) -> FormatResult<()> {
        let field = &column.field;
        let encoding = self.encoding(column)?;
        let Some(form) = self.form(column, encoding, cells)? else { return Ok(()) };
        let mut attributes = attributes_of(column, &name, encoding);
        if form.is_decoded {
            // Makes readers decode the characters to texts.
            attributes.push(NcAttribute::text("_Encoding", "utf-8"));
        }
        let missing = field.no_data.as_ref().or(field.null.as_ref().filter(|_| column.validity.is_some()));
        let missing = missing.filter(|_| !form.is_strings());
        let missing = missing.and_then(|value| Some((value, encoding.apply_to(value)?)));
        let is_single = field.values_per_cell == Some(1) && column.validity.is_none();
        let marker = missing.as_ref().map(|(_, values)| values.clone());
        if let Some(values) = marker.or_else(|| encoding.not_a_time().filter(|_| is_single)) {
            attributes.push(NcAttribute { name: "_FillValue".into(), nc_type: encoding.nc_type, values });
        }
        if form.dimensions.starts_with(cells) {
            attributes.extend(self.shared.iter().cloned());
        }
        let mut values = column.values.clone();
        if let Some(validity) = &column.validity {
            let valid = self.add_validity(&name, field, validity, cells);
            attributes
                .extend(cf::list_of_names([&*valid]).map(|names| NcAttribute::text("ancillary_variables", names)));
            if let (Some((value, _)), Some(per_cell)) = (missing, field.values_per_cell) {
                values = Arc::new(Masked::new(values, validity.clone(), value.repeat(per_cell as usize)));
            }
        }
        if let Some(labels) = &field.labels {
            attributes.extend(flags(labels, encoding, field.datatype));
            self.labels(&name, labels)?;
        }
        let content = self.content(&name, column, encoding, &form, values)?;
        let nc_type = if form.is_strings() { NcType::String } else { encoding.nc_type };
        self.add_notes(&mut attributes, column, Some(encoding));
        self.add(name, form.dimensions, nc_type, content, attributes, form.meaning);
        Ok(())
    }

    /// Shares as coordinates the variables of one value or text for each position along one of the dimensions.
    fn share_coordinates(&mut self, from: usize, dimensions: &[usize]) {
        let coordinates = self.plan.variables[from..].iter().filter(|variable| match variable.dimensions[..] {
            [axis] => dimensions.contains(&axis),
            [axis, _] => dimensions.contains(&axis) && variable.nc_type == NcType::Char,
            _ => false,
        });
        if let Some(coordinates) = cf::list_of_names(coordinates.map(|variable| variable.name.as_str())) {
            self.shared.push(NcAttribute::text("coordinates", coordinates));
        }
    }

    fn add_grid_mapping(&mut self, place: &Georeference) {
        let name = self.names.give("crs");
        self.shared.push(NcAttribute::text("grid_mapping", name.clone()));
        let attributes = cf::grid_mapping(place).into_iter().map(NcAttribute::from).collect();
        self.add(name, Vec::new(), NcType::Int, Arc::new(Repeat::zeros(4)), attributes, Meaning::Values);
    }
}

impl PlanBuilder {
    fn new(version: Version) -> Self {
        let plan = FilePlan {
            dimensions: Vec::new(),
            attributes: Vec::new(),
            variables: Vec::new(),
            record: None,
            growing: Vec::new(),
            left_out: Vec::new(),
        };
        PlanBuilder { version, plan, names: UniqueNames::of_netcdf(), shared: Vec::new() }
    }

    /// Chooses the form of a column's cells, and adds the dimension of the values of a cell. Returns `None` if the
    /// column is left out.
    fn form(&mut self, column: &Column, encoding: NcEncoding, cells: &[usize]) -> FormatResult<Option<CellForm>> {
        let field = &column.field;
        let size = field.datatype.size() as u64;
        let is_text = encoding.nc_type == NcType::Char;
        // Not all readers accept characters without an encoding as strings.
        let is_encoded = is_utf8(field.datatype);
        let strings = column.offsets.as_ref().filter(|_| is_encoded && self.has_strings(column.cells()));
        if let Some(offsets) = strings.filter(|_| field.values_per_cell.is_none()) {
            let meaning = Meaning::Strings { offsets: offsets.clone() };
            return Ok(Some(CellForm { dimensions: cells.to_vec(), meaning, padded: None, is_decoded: false }));
        }
        let padded = padded_width(column).filter(|_| is_text && self.version.is_classic());
        let mut dimensions = cells.to_vec();
        let mut meaning = if field.datatype == Datatype::Bool { Meaning::Booleans } else { Meaning::Values };
        match (field.values_per_cell, padded) {
            (Some(1), _) => {}
            (Some(values), _) => {
                dimensions.push(self.dimension_of(field, "values", u64::from(values))?);
                if is_text {
                    meaning = Meaning::Characters;
                }
            }
            (None, Some(width)) => dimensions.push(self.dimension_of(field, "length", width)?),
            (None, None) if column.values.len() < size && self.version.is_classic() => {
                let reason = Unrepresentable::new("it has no values at all, and netCDF classic has no empty dimension");
                self.plan.left_out.push((field.name.clone(), reason));
                return Ok(None);
            }
            (None, None) => dimensions = vec![self.dimension_of(field, "values", column.values.len() / size)?],
        }
        let is_unicode = matches!(field.datatype, Datatype::StringAscii | Datatype::StringUtf8);
        let is_decoded = is_unicode && dimensions.len() == cells.len() + 1;
        Ok(Some(CellForm { dimensions, meaning, padded, is_decoded }))
    }

    /// Adds the dimension of a field's values, or of the length of its texts.
    fn dimension_of(&mut self, field: &Field, what: &str, length: u64) -> FormatResult<usize> {
        let name = self.names.give(&format!("{}_{what}", field.name));
        self.add_dimension(name, length)
    }

    /// Adds the variable that marks the cells with a value; returns its name.
    fn add_validity(&mut self, name: &str, field: &Field, validity: &Validity, cells: &[usize]) -> String {
        let valid = self.names.give(&format!("{}_valid", field.name));
        let flags = vec![
            NcAttribute { name: "flag_values".into(), nc_type: NcType::Byte, values: vec![0, 1] },
            NcAttribute::text("flag_meanings", "null valid"),
            NcAttribute::text("standard_name", "status_flag"),
            NcAttribute::text("long_name", format!("whether {name} has a value")),
        ];
        self.add(valid.clone(), cells.to_vec(), NcType::Byte, validity.content(), flags, Meaning::Booleans);
        valid
    }

    /// Returns the content of a variable; adds the offsets of values that are stored end to end.
    fn content(
        &mut self,
        name: &str,
        column: &Column,
        encoding: NcEncoding,
        form: &CellForm,
        values: Arc<dyn Content>,
    ) -> FormatResult<Arc<dyn Content>> {
        let field = &column.field;
        let values: Arc<dyn Content> = match (&column.offsets, &column.validity) {
            _ if !form.is_decoded && !form.is_strings() => values,
            (Some(offsets), validity) => Blanked::of(values, offsets, validity.as_ref()),
            (None, Some(validity)) => {
                let size = field.cell_size().unwrap_or(1);
                Arc::new(Masked::new(values, validity.clone(), vec![0; size as usize]))
            }
            (None, None) => values,
        };
        Ok(match (&column.offsets, form.padded) {
            _ if form.is_strings() => values,
            (Some(offsets), Some(width)) => Arc::new(Padded::new(values, offsets.clone(), width)),
            (Some(offsets), None) => {
                self.offsets(name, column, offsets)?;
                self.stored(encoding, values, &field.name)
            }
            (None, _) => self.stored(encoding, values, &field.name),
        })
    }

    /// Adds the array's metadata about this field to the generated attributes. `encoding` is that of the field.
    fn add_notes(&self, attributes: &mut Vec<NcAttribute>, column: &Column, encoding: Option<NcEncoding>) {
        let mut names = UniqueNames::of_netcdf();
        attributes.iter().for_each(|ours| drop(names.give(&ours.name)));
        for note in &column.field.notes {
            let ours = attributes.iter_mut().find(|ours| ours.name == note.key);
            match (Note::of(note, &column.field, ours.is_some()), ours) {
                (Note::Text(text), Some(ours)) => *ours = NcAttribute::text(&note.key, text),
                (Note::Names(more), Some(ours)) => {
                    ours.values.push(b' ');
                    ours.values.extend(more.into_bytes());
                }
                (Note::New { like_the_values }, _) => {
                    let name = names.give(&note.key);
                    let values = encoding.filter(|_| like_the_values).and_then(|encoding| {
                        let each = note.value.chunks_exact(note.datatype.size());
                        let values = each.map(|value| encoding.apply_to(value)).collect::<Option<Vec<_>>>()?;
                        Some(NcAttribute { name: name.clone(), nc_type: encoding.nc_type, values: values.concat() })
                    });
                    attributes.push(values.unwrap_or_else(|| metadata::attribute(name, note, self.version)));
                }
                _ => {}
            }
        }
    }

    /// Adds the variable `NAME_offsets`: the byte at which the values of each cell begin in `NAME`, and the end of the
    /// last cell's values.
    fn offsets(&mut self, name: &str, column: &Column, offsets: &Offsets) -> FormatResult<()> {
        let offsets_name = self.names.give(&format!("{name}_offsets"));
        let dimension = self.names.give(&format!("{name}_offset"));
        let dimension = self.add_dimension(dimension, column.cells().saturating_add(1))?;
        let bounds = Some((0, i128::from(column.values.len())));
        // Signed in CDF-5 too: no length exceeds 2^63, and the type is more common.
        let encoding = NcEncoding::of(Datatype::Int64, bounds, self.version).ok_or_else(|| unrepresentable(column))?;
        let text = format!("byte offsets into {name}: those of cell i begin at the i-th and end at the next");
        let attributes = vec![NcAttribute::text("long_name", text)];
        let content = self.stored(encoding, offsets.content(), name);
        self.add(offsets_name, vec![dimension], encoding.nc_type, content, attributes, Meaning::Values);
        Ok(())
    }

    /// Adds all labels as a variable: texts padded to the longest, numbers as they are.
    fn labels(&mut self, name: &str, labels: &Labels) -> FormatResult<()> {
        // Characters of 16 or 32 bits become UTF-8, which netCDF's readers know.
        let is_wide = labels.datatype.kind() == Kind::Bytes && labels.datatype.size() > 1 && labels.are_text();
        let datatype = if is_wide { Datatype::StringUtf8 } else { labels.datatype };
        let stored = if is_wide { labels.shown() } else { labels.values.clone() };
        let size = datatype.size();
        let longest = stored.iter().map(Vec::len).max().unwrap_or(0).next_multiple_of(size);
        if longest == 0 {
            return Ok(());
        }
        let variable_name = self.names.give(&format!("{name}_labels"));
        let long_name = NcAttribute::text("long_name", format!("labels of the codes of {name}, from 0 on"));
        let column = labels.column(name);
        // Strings end at a NUL, and must be valid text.
        let are_strings = labels.are_text() && labels.shown().iter().all(|label| !label.contains(&0));
        if let Some(offsets) = column.offsets.filter(|_| are_strings && self.has_strings(labels.values.len() as u64)) {
            let dimension = self.names.give(&format!("{name}_label"));
            let dimensions = vec![self.add_dimension(dimension, labels.values.len() as u64)?];
            let meaning = Meaning::Strings { offsets };
            self.add(variable_name, dimensions, NcType::String, column.values, vec![long_name], meaning);
            return Ok(());
        }
        if (longest as u64).saturating_mul(labels.values.len() as u64) > MAX_LABEL_BYTES {
            let reason = format!("the labels, padded to the longest, are over {} MiB", MAX_LABEL_BYTES >> 20);
            self.plan.left_out.push((variable_name, Unrepresentable::new(reason)));
            return Ok(());
        }
        // Only the type matters; no bounds would allow a narrower type than the values' own.
        let Some(encoding) = NcEncoding::of(datatype, labels.bounds(), self.version) else {
            return Err(Unrepresentable::new("CDF-2 cannot hold the labels"));
        };
        let padded: Vec<u8> = stored
            .iter()
            .flat_map(|label| label.iter().copied().chain(std::iter::repeat_n(0, longest - label.len())))
            .collect();
        let dimension = self.names.give(&format!("{name}_label"));
        let mut dimensions = vec![self.add_dimension(dimension, labels.values.len() as u64)?];
        if longest > size {
            let dimension = self.names.give(&format!("{name}_label_length"));
            dimensions.push(self.add_dimension(dimension, (longest / size) as u64)?);
        }
        let mut attributes = vec![long_name];
        attributes.extend(cf::field_attributes(&Field::new(name, datatype), name).into_iter().map(NcAttribute::from));
        if encoding.nc_type == NcType::Char && stored.iter().all(|label| std::str::from_utf8(label).is_ok()) {
            // Makes readers decode the characters to texts.
            attributes.push(NcAttribute::text("_Encoding", "utf-8"));
        }
        let content = self.stored(encoding, Arc::new(padded), name);
        let meaning = if datatype == Datatype::Bool { Meaning::Booleans } else { Meaning::Values };
        self.add(variable_name, dimensions, encoding.nc_type, content, attributes, meaning);
        Ok(())
    }

    fn global_attributes(&mut self, metadata: &[Metadatum]) {
        let mut names = UniqueNames::of_netcdf();
        for metadatum in metadata {
            let name = names.give(&metadatum.key);
            self.plan.attributes.push(metadata::attribute(name, metadatum, self.version));
        }
    }

    /// Adds the attribute `Conventions`, unless the array's metadata contain one.
    fn add_conventions(&mut self, metadata: &[Metadatum]) {
        if !metadata.iter().any(|metadatum| metadatum.key == "Conventions") {
            self.plan.attributes.push(NcAttribute::text("Conventions", "CF-1.8"));
        }
    }

    fn encoding(&self, column: &Column) -> FormatResult<NcEncoding> {
        NcEncoding::of(column.field.datatype, column.bounds, self.version).ok_or_else(|| unrepresentable(column))
    }

    fn add(
        &mut self,
        name: String,
        dimensions: Vec<usize>,
        nc_type: NcType,
        content: Arc<dyn Content>,
        attributes: Vec<NcAttribute>,
        meaning: Meaning,
    ) {
        self.plan.variables.push(PlannedVariable { name, dimensions, attributes, nc_type, content, meaning });
    }

    /// Converts values of the column `name` to the representation of this form.
    fn stored(&self, encoding: NcEncoding, values: Arc<dyn Content>, name: &str) -> Arc<dyn Content> {
        match self.version.is_classic() {
            true => encoding.apply(values, name),
            false => encoding.apply_little_endian(values, name),
        }
    }

    /// Returns whether this many texts of variable length are stored as strings.
    fn has_strings(&self, texts: u64) -> bool {
        !self.version.is_classic() && texts <= MAX_STRINGS
    }
}

/// Returns the attributes that the values of any column get.
fn attributes_of(column: &Column, name: &str, encoding: NcEncoding) -> Vec<NcAttribute> {
    let attributes = cf::field_attributes(&column.field, name).into_iter().map(NcAttribute::from);
    attributes.chain(encoding.unsigned.then(|| NcAttribute::text("_Unsigned", "true"))).collect()
}

fn unrepresentable(column: &Column) -> Unrepresentable {
    Unrepresentable::new(format!("{}: CDF-2 has no 64-bit integers", column.field.name))
}

/// Returns the length to which all texts of a column are padded; `None` if the padded texts would be too large.
fn padded_width(column: &Column) -> Option<u64> {
    let width = column.longest.filter(|_| column.field.values_per_cell.is_none())?.max(1);
    let most = MAX_PADDED.max(column.values.len().saturating_mul(MAX_PADDING_RATIO));
    column.cells().checked_mul(width).filter(|&bytes| bytes <= most).map(|_| width)
}

/// Returns CF's `flag_values` and `flag_meanings` of up to 256 text labels.
fn flags(labels: &Labels, encoding: NcEncoding, codes: Datatype) -> Vec<NcAttribute> {
    let Some(meanings) = cf::flag_meanings(labels) else { return Vec::new() };
    let values = (0..labels.values.len() as u64).map(|code| encoding.apply_to(&code.to_le_bytes()[..codes.size()]));
    match values.collect::<Option<Vec<_>>>() {
        Some(values) => vec![
            NcAttribute { name: "flag_values".into(), nc_type: encoding.nc_type, values: values.concat() },
            NcAttribute::text("flag_meanings", meanings),
        ],
        None => Vec::new(),
    }
}
