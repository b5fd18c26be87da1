//! Plans the contents of a netCDF file of an array: dimensions, variables and attributes.

use std::sync::Arc;

use tilefs_format::datatype::Datatype;
use tilefs_format::text::is_utf8;

use super::Version;
use super::header::{Attribute, Dimension};
use super::metadata;
use super::types::{Encoding, NcType};
use crate::cf::names::Names;
use crate::cf::{self, Direction, Note};
use crate::column::dataset::{Dataset, Variable};
use crate::column::{AuxiliaryCoordinates, Column, Columns, FormatResult, Labels, LeftOut, Metadatum, Unrepresentable};
use crate::content::Content;
use crate::content::compose::Repeat;
use crate::content::element::Swapped;
use crate::content::masked::Masked;
use crate::content::padded::Padded;
use crate::content::utf8::Utf8Values;
use crate::geo::georeference::Georeference;
use crate::number;

/// A variable; its content is the data, big-endian in the classic forms and little-endian in netCDF-4.
pub struct PlannedVariable {
    pub name: String,
    /// Indexes into the list of dimensions, slowest first.
    pub dimensions: Vec<usize>,
    pub attributes: Vec<Attribute>,
    pub nc_type: NcType,
    pub content: Arc<dyn Content>,
    pub meaning: Meaning,
}

/// The meaning of a variable's values that netCDF's types do not express.
#[derive(Clone)]
pub enum Meaning {
    /// The values mean what their type says.
    Values,
    /// Bytes that are 0 or 1.
    Booleans,
    /// The last dimension is that of the characters of a text.
    Characters,
    /// Strings. `offsets` has the start of each in the content and the end of the last, in bytes, `u64` little-endian.
    Strings { offsets: Arc<dyn Content> },
}

impl PlannedVariable {
    /// Returns the size of the variable in bytes, or of one record if it has the unlimited dimension.
    pub fn size(&self, dimensions: &[Dimension]) -> u64 {
        let lengths = self.dimensions.iter().filter_map(|&number| dimensions.get(number));
        let lengths = lengths.map(|dimension| dimension.length).filter(|&length| length > 0);
        lengths.fold(self.nc_type.size() as u64, u64::saturating_mul)
    }
}

/// The longest variable of CDF-2 that another may follow.
const LONGEST_IN_CDF2: u64 = u32::MAX as u64 - 3;

/// The longest dimension of CDF-2.
const LONGEST_DIMENSION_OF_CDF2: u64 = i32::MAX as u64 - 3;

/// Maximum size in bytes of the labels of an enumeration, padded to the longest in memory.
const MAX_LABEL_BYTES: u64 = 64 << 20;

/// Maximum size in bytes of text of variable length padded to the longest, unless it is at most this many times its own
/// size.
const MAX_PADDED: u64 = 64 << 20;
const MAX_PADDING_RATIO: u64 = 16;

/// Maximum number of texts stored as strings of netCDF-4, which requires the length of each. More are stored as one
/// variable of all values.
const MAX_STRINGS: u64 = 1 << 26;

/// Everything that the header lists.
pub struct FilePlan {
    pub dimensions: Vec<Dimension>,
    pub attributes: Vec<Attribute>,
    pub variables: Vec<PlannedVariable>,
    pub left_out: LeftOut,
}

impl FilePlan {
    /// Plans an array's file in a version; returns the reason if that version cannot hold it.
    pub fn of(columns: &Columns, version: Version) -> FormatResult<Self> {
        let mut builder = Builder::new(version);
        builder.global_attributes(&columns.metadata);
        builder.add_conventions(&columns.metadata);
        if columns.sparse {
            builder.sparse(columns)?
        } else {
            builder.dense(columns)?
        }
        Ok(builder.plan)
    }

    /// Plans a file of variables that share dimensions; returns the reason if that version cannot hold it.
    pub fn of_dataset(dataset: &Dataset<Column>, version: Version) -> FormatResult<Self> {
        let mut builder = Builder::new(version);
        builder.global_attributes(&dataset.metadata);
        for (name, length) in &dataset.dimensions {
            if *length == 0 {
                return Err(Unrepresentable::new(format!("{name}: netCDF classic has no axis of length 0")));
            }
            let name = builder.names.give(name);
            builder.dimension(name, *length)?;
        }
        for Variable { axes, column } in &dataset.variables {
            column.check()?;
            let lengths: Vec<u64> = axes.iter().filter_map(|&axis| Some(dataset.dimensions.get(axis)?.1)).collect();
            if column.shape != lengths || axes.len() != lengths.len() {
                return Err(Unrepresentable::new(format!("{}: its shape is not that of its axes", column.field.name)));
            }
            let own = dataset.dimension_of_coordinates(&column.field.name, axes);
            match own.and_then(|axis| Some(builder.plan.dimensions.get(axis)?.name.clone())) {
                Some(name) if is_along_cells(column) => builder.column_of_name(name, column, axes)?,
                _ => builder.column(column, axes)?,
            }
        }
        Ok(builder.plan)
    }

    /// Moves the one variable over 4 GiB to the end, the only place where CDF-2 allows it.
    pub fn move_longest_to_the_end(&mut self) -> FormatResult<()> {
        let too_long = |variable: &PlannedVariable| variable.content.len() > LONGEST_IN_CDF2;
        match self.variables.iter().filter(|variable| too_long(variable)).count() {
            0 => {}
            1 => self.variables.sort_by_key(too_long),
            _ => return Err(Unrepresentable::new("CDF-2 has only one variable over 4 GiB")),
        }
        Ok(())
    }
}

struct Builder {
    version: Version,
    plan: FilePlan,
    /// Names of variables and dimensions; only an axis has the same name as its coordinates.
    names: Names,
    /// Attributes that every variable over the cells gets.
    shared: Vec<Attribute>,
}

impl Builder {
    fn new(version: Version) -> Self {
        let plan =
            FilePlan { dimensions: Vec::new(), attributes: Vec::new(), variables: Vec::new(), left_out: Vec::new() };
        Builder { version, plan, names: Names::of_netcdf(), shared: Vec::new() }
    }

    fn dense(&mut self, columns: &Columns) -> FormatResult<()> {
        let mut axes = Vec::new();
        for axis in &columns.dimensions {
            axis.check()?;
            if axis.cells() == 0 && self.version.is_classic() {
                return Err(Unrepresentable::new("netCDF classic has no axis of length 0"));
            }
            let name = self.names.give(&axis.field.name);
            let dimension = self.dimension(name.clone(), axis.cells())?;
            axes.push(dimension);
            let earthly = columns.georeference.as_ref().filter(|georeference| !georeference.place.is_rotated());
            let earthly = earthly.and_then(|georeference| match dimension {
                _ if dimension == georeference.samples => Some((&georeference.place, Direction::Samples)),
                _ if dimension == georeference.lines => Some((&georeference.place, Direction::Lines)),
                _ => None,
            });
            let are_labelled = columns.georeference.as_ref().is_some_and(|georeference| georeference.are_labelled);
            let transform = earthly.and_then(|(place, _)| place.transform).filter(|_| !are_labelled);
            let mut on_earth = match earthly {
                Some((place, direction)) if are_labelled || transform.is_some() => {
                    cf::axis_attributes(place, direction).into_iter().map(Attribute::from).collect()
                }
                _ => Vec::new(),
            };
            if axis.field.is_bytes() {
                // Texts stored end to end are not coordinates of the axis, and may not have its name.
                match padded_width(axis) {
                    Some(_) => self.column_of_name(name, axis, &[dimension])?,
                    None => self.column(axis, &[dimension])?,
                }
                continue;
            }
            let (nc_type, content, mut attributes) = match (transform, earthly) {
                (Some(transform), Some((_, direction))) => {
                    let content = cf::coordinates(transform, direction, axis.cells());
                    let content = match self.version.is_classic() {
                        true => Arc::new(Swapped::new(content, 8)) as Arc<dyn Content>,
                        false => content,
                    };
                    (NcType::Double, content, Vec::new())
                }
                _ => {
                    let encoding = self.encoding(axis)?;
                    let attributes = attributes_of(axis, &name, encoding);
                    on_earth.retain(|added| attributes.iter().all(|own| own.name != added.name));
                    (encoding.nc_type, self.stored(encoding, axis.values.clone(), &axis.field.name), attributes)
                }
            };
            attributes.append(&mut on_earth);
            self.add_notes(&mut attributes, axis, None);
            self.add(name, vec![dimension], nc_type, content, attributes, Meaning::Values);
        }
        let lengths: Vec<u64> = columns.dimensions.iter().map(Column::cells).collect();
        let before = self.plan.variables.len();
        for AuxiliaryCoordinates { axis, column } in &columns.auxiliary {
            column.check()?;
            match axes.get(*axis).filter(|_| lengths.get(*axis) == Some(&column.cells())) {
                Some(&axis) => self.column(column, &[axis])?,
                None => {
                    let name = &column.field.name;
                    return Err(Unrepresentable::new(format!(
                        "{name}: not the same number of labels as the axis has cells"
                    )));
                }
            }
        }
        self.share_coordinates(before, &axes);
        if let Some(georeference) = columns.georeference.as_ref().filter(|axes| axes.need_a_system()) {
            self.grid_mapping(&georeference.place);
        }
        for column in &columns.attributes {
            column.check()?;
            if column.shape != lengths {
                return Err(Unrepresentable::new(format!("{}: its shape is not that of the axes", column.field.name)));
            }
            self.column(column, &axes)?;
        }
        Ok(())
    }

    fn sparse(&mut self, columns: &Columns) -> FormatResult<()> {
        let all = || columns.dimensions.iter().chain(&columns.attributes);
        let cells = all().next().map_or(0, Column::cells);
        for column in all() {
            column.check()?;
            if column.cells() != cells {
                return Err(Unrepresentable::new(format!(
                    "{}: not the same number of rows as the others",
                    column.field.name
                )));
            }
        }
        let cell_dimension = match columns.dimensions.as_slice() {
            // The coordinates of the cells are those of their axis.
            [axis] if is_along_cells(axis) => {
                let name = self.names.give(&axis.field.name);
                let dimension = self.dimension(name.clone(), cells)?;
                self.column_of_name(name, axis, &[dimension])?;
                [dimension]
            }
            several => {
                let name = self.names.give("cells");
                let dimension = [self.dimension(name, cells)?];
                let before = self.plan.variables.len();
                for column in several {
                    self.column(column, &dimension)?;
                }
                self.share_coordinates(before, &dimension);
                dimension
            }
        };
        for column in &columns.attributes {
            self.column(column, &cell_dimension)?;
        }
        Ok(())
    }

    /// Makes the variables from index `from` the coordinates of all later variables: those with one value, or one text,
    /// for each position along one of the axes.
    fn share_coordinates(&mut self, from: usize, axes: &[usize]) {
        let coordinates = self.plan.variables[from..].iter().filter(|variable| match variable.dimensions[..] {
            [axis] => axes.contains(&axis),
            [axis, _] => axes.contains(&axis) && variable.nc_type == NcType::Char,
            _ => false,
        });
        if let Some(coordinates) = cf::list_of_names(coordinates.map(|variable| variable.name.as_str())) {
            self.shared.push(Attribute::text("coordinates", coordinates));
        }
    }

    /// Adds one attribute, or coordinates of cells, and the variables that explain it.
    fn column(&mut self, column: &Column, cell_dimensions: &[usize]) -> FormatResult<()> {
        let name = self.names.give(&column.field.name);
        self.column_of_name(name, column, cell_dimensions)
    }

    /// Like [`Self::column`], under a name that is already legal and reserved.
    fn column_of_name(&mut self, name: String, column: &Column, cell_dimensions: &[usize]) -> FormatResult<()> {
        let field = &column.field;
        let encoding = self.encoding(column)?;
        let size = field.datatype.size() as u64;
        let is_text = encoding.nc_type == NcType::Char;
        let padded = padded_width(column).filter(|_| is_text && self.version.is_classic());
        // Not all readers accept characters without an encoding as strings.
        let is_encoded = is_utf8(field.datatype);
        let strings = column.offsets.as_ref().filter(|_| is_encoded && self.has_strings(column.cells()));
        let mut dimensions = cell_dimensions.to_vec();
        let mut meaning = if field.datatype == Datatype::Bool { Meaning::Booleans } else { Meaning::Values };
        match field.values_per_cell {
            None if strings.is_some() => {}
            Some(1) => {}
            Some(values) => {
                let name = self.names.give(&format!("{}_values", field.name));
                dimensions.push(self.dimension(name, u64::from(values))?);
                if is_text {
                    meaning = Meaning::Characters;
                }
            }
            None if padded.is_none() && column.values.len() < size && self.version.is_classic() => {
                let reason = Unrepresentable::new("it has no values at all, and netCDF classic has no empty dimension");
                self.plan.left_out.push((field.name.clone(), reason));
                return Ok(());
            }
            None => match padded {
                Some(width) => {
                    let name = self.names.give(&format!("{}_length", field.name));
                    dimensions.push(self.dimension(name, width)?);
                }
                None => {
                    let name = self.names.give(&format!("{}_values", field.name));
                    dimensions = vec![self.dimension(name, column.values.len() / size)?];
                }
            },
        }
        let mut attributes = attributes_of(column, &name, encoding);
        let is_unicode = matches!(field.datatype, Datatype::StringAscii | Datatype::StringUtf8);
        let is_decoded = is_unicode && dimensions.len() == cell_dimensions.len() + 1;
        if is_decoded {
            // Makes readers decode the characters to texts.
            attributes.push(Attribute::text("_Encoding", "utf-8"));
        }
        let missing = field.no_data.as_ref().or(field.null.as_ref().filter(|_| column.validity.is_some()));
        let missing = missing.filter(|_| strings.is_none());
        let missing = missing.and_then(|value| Some((value, encoding.apply_to(value)?)));
        let is_single = field.values_per_cell == Some(1) && column.validity.is_none();
        let marker = missing.as_ref().map(|(_, values)| values.clone());
        if let Some(values) = marker.or_else(|| encoding.not_a_time().filter(|_| is_single)) {
            attributes.push(Attribute { name: "_FillValue".into(), nc_type: encoding.nc_type, values });
        }
        if dimensions.starts_with(cell_dimensions) {
            attributes.extend(self.shared.iter().cloned());
        }
        let mut values = column.values.clone();
        if let Some(validity) = &column.validity {
            let valid_name = self.names.give(&format!("{}_valid", field.name));
            attributes.extend(
                cf::list_of_names([valid_name.as_str()]).map(|names| Attribute::text("ancillary_variables", names)),
            );
            let mut flags = vec![Attribute { name: "flag_values".into(), nc_type: NcType::Byte, values: vec![0, 1] }];
            flags.push(Attribute::text("flag_meanings", "null valid"));
            flags.push(Attribute::text("standard_name", "status_flag"));
            flags.push(Attribute::text("long_name", format!("whether {name} has a value")));
            let dimensions = cell_dimensions.to_vec();
            self.add(valid_name, dimensions, NcType::Byte, validity.clone(), flags, Meaning::Booleans);
            if let (Some((value, _)), Some(per_cell)) = (missing, field.values_per_cell) {
                values = Arc::new(Masked::new(values, validity.clone(), value.repeat(per_cell as usize)));
            }
        }
        if let Some(labels) = &field.labels {
            attributes.extend(flags(labels, encoding, field.datatype));
            self.labels(&name, labels)?;
        }
        if is_decoded {
            values = match (&column.offsets, field.cell_size()) {
                (Some(offsets), _) => Arc::new(Utf8Values::new(values, offsets.clone(), None, &field.name)),
                (None, size) => Arc::new(Utf8Values::of_size(values, size.unwrap_or(1), &field.name)),
            };
        }
        let mut nc_type = encoding.nc_type;
        let content = match (&column.offsets, padded) {
            (Some(offsets), _) if strings.is_some() => {
                nc_type = NcType::String;
                meaning = Meaning::Strings { offsets: offsets.clone() };
                values
            }
            (Some(offsets), Some(width)) => Arc::new(Padded::new(values, offsets.clone(), width)),
            (Some(offsets), None) => {
                self.offsets(&name, column, offsets)?;
                self.stored(encoding, values, &field.name)
            }
            (None, _) => self.stored(encoding, values, &field.name),
        };
        self.add_notes(&mut attributes, column, Some(encoding));
        self.add(name, dimensions, nc_type, content, attributes, meaning);
        Ok(())
    }

    /// Adds the array's metadata about this field to the generated attributes. `encoding` is that of its values.
    fn add_notes(&self, attributes: &mut Vec<Attribute>, column: &Column, encoding: Option<Encoding>) {
        let mut names = Names::of_netcdf();
        attributes.iter().for_each(|ours| drop(names.give(&ours.name)));
        for note in &column.field.notes {
            let ours = attributes.iter_mut().find(|ours| ours.name == note.key);
            match (Note::of(note, &column.field, ours.is_some()), ours) {
                (Note::Text(text), Some(ours)) => *ours = Attribute::text(&note.key, text),
                (Note::Names(more), Some(ours)) => {
                    ours.values.push(b' ');
                    ours.values.extend(more.into_bytes());
                }
                (Note::New { like_the_values }, _) => {
                    let name = names.give(&note.key);
                    let values = encoding.filter(|_| like_the_values).and_then(|encoding| {
                        let each = note.value.chunks_exact(note.datatype.size());
                        let values = each.map(|value| encoding.apply_to(value)).collect::<Option<Vec<_>>>()?;
                        Some(Attribute { name: name.clone(), nc_type: encoding.nc_type, values: values.concat() })
                    });
                    attributes.push(values.unwrap_or_else(|| metadata::attribute(name, note, self.version)));
                }
                _ => {}
            }
        }
    }

    /// Adds the offsets of the values of each cell, and the final end.
    fn offsets(&mut self, name: &str, column: &Column, offsets: &Arc<dyn Content>) -> FormatResult<()> {
        let offsets_name = self.names.give(&format!("{name}_offsets"));
        let dimension = self.names.give(&format!("{name}_offset"));
        let dimension = self.dimension(dimension, column.cells().saturating_add(1))?;
        let bounds = Some((0, i128::from(column.values.len())));
        // Signed in CDF-5 too: no length exceeds 2^63, and the type is more common.
        let encoding = Encoding::of(Datatype::Int64, bounds, self.version).ok_or_else(|| unrepresentable(column))?;
        let text = format!("byte offsets into {name}: those of cell i begin at the i-th and end at the next");
        let attributes = vec![Attribute::text("long_name", text)];
        let content = self.stored(encoding, offsets.clone(), name);
        self.add(offsets_name, vec![dimension], encoding.nc_type, content, attributes, Meaning::Values);
        Ok(())
    }

    /// Adds all labels as a variable: texts padded to the longest, numbers as they are.
    fn labels(&mut self, name: &str, labels: &Labels) -> FormatResult<()> {
        let size = labels.datatype.size();
        let longest = labels.values.iter().map(Vec::len).max().unwrap_or(0).next_multiple_of(size);
        if longest == 0 {
            return Ok(());
        }
        let variable_name = self.names.give(&format!("{name}_labels"));
        let long_name = Attribute::text("long_name", format!("labels of the codes of {name}, from 0 on"));
        let column = labels.column(name);
        // Strings end at a NUL, and must be valid text.
        let are_strings = labels.are_text() && labels.shown().iter().all(|label| !label.contains(&0));
        if let Some(offsets) = column.offsets.filter(|_| are_strings && self.has_strings(labels.values.len() as u64)) {
            let dimension = self.names.give(&format!("{name}_label"));
            let dimensions = vec![self.dimension(dimension, labels.values.len() as u64)?];
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
        let Some(encoding) = Encoding::of(labels.datatype, label_bounds(labels), self.version) else {
            return Err(Unrepresentable::new("CDF-2 cannot hold the labels"));
        };
        let padded: Vec<u8> = labels
            .values
            .iter()
            .flat_map(|label| label.iter().copied().chain(std::iter::repeat_n(0, longest - label.len())))
            .collect();
        let dimension = self.names.give(&format!("{name}_label"));
        let mut dimensions = vec![self.dimension(dimension, labels.values.len() as u64)?];
        if longest > size {
            let dimension = self.names.give(&format!("{name}_label_length"));
            dimensions.push(self.dimension(dimension, (longest / size) as u64)?);
        }
        let mut attributes = vec![long_name];
        if encoding.nc_type == NcType::Char && labels.values.iter().all(|label| std::str::from_utf8(label).is_ok()) {
            // Makes readers decode the characters to texts.
            attributes.push(Attribute::text("_Encoding", "utf-8"));
        }
        let content = self.stored(encoding, Arc::new(padded), name);
        self.add(variable_name, dimensions, encoding.nc_type, content, attributes, Meaning::Values);
        Ok(())
    }

    /// Adds the variable that describes the coordinate system for GDAL and CF readers.
    fn grid_mapping(&mut self, place: &Georeference) {
        let name = self.names.give("crs");
        self.shared.push(Attribute::text("grid_mapping", name.clone()));
        let attributes = cf::grid_mapping(place).into_iter().map(Attribute::from).collect();
        self.add(name, Vec::new(), NcType::Int, Arc::new(Repeat::zeros(4)), attributes, Meaning::Values);
    }

    fn global_attributes(&mut self, metadata: &[Metadatum]) {
        let mut names = Names::of_netcdf();
        for metadatum in metadata {
            let name = names.give(&metadatum.key);
            self.plan.attributes.push(metadata::attribute(name, metadatum, self.version));
        }
    }

    /// Adds the attribute `Conventions`, unless the array's metadata contain one.
    fn add_conventions(&mut self, metadata: &[Metadatum]) {
        if !metadata.iter().any(|metadatum| metadatum.key == "Conventions") {
            self.plan.attributes.push(Attribute::text("Conventions", "CF-1.8"));
        }
    }

    fn encoding(&self, column: &Column) -> FormatResult<Encoding> {
        Encoding::of(column.field.datatype, column.bounds, self.version).ok_or_else(|| unrepresentable(column))
    }

    /// Adds a dimension of a name that is already legal and reserved.
    fn dimension(&mut self, name: String, length: u64) -> FormatResult<usize> {
        let longest = match self.version {
            Version::Cdf2 => LONGEST_DIMENSION_OF_CDF2,
            Version::Cdf5 | Version::NetCdf4 => i64::MAX as u64 - 3,
        };
        if length > longest {
            return Err(Unrepresentable::new(format!("a dimension of length {length} is too long for netCDF")));
        }
        self.plan.dimensions.push(Dimension { name, length });
        Ok(self.plan.dimensions.len() - 1)
    }

    fn add(
        &mut self,
        name: String,
        dimensions: Vec<usize>,
        nc_type: NcType,
        content: Arc<dyn Content>,
        attributes: Vec<Attribute>,
        meaning: Meaning,
    ) {
        self.plan.variables.push(PlannedVariable { name, dimensions, attributes, nc_type, content, meaning });
    }

    /// Converts values of the column `name` to the representation of this form.
    fn stored(&self, encoding: Encoding, values: Arc<dyn Content>, name: &str) -> Arc<dyn Content> {
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
fn attributes_of(column: &Column, name: &str, encoding: Encoding) -> Vec<Attribute> {
    let attributes = cf::field_attributes(&column.field, name).into_iter().map(Attribute::from);
    attributes.chain(encoding.unsigned.then(|| Attribute::text("_Unsigned", "true"))).collect()
}

fn unrepresentable(column: &Column) -> Unrepresentable {
    Unrepresentable::new(format!("{}: CDF-2 has no 64-bit integers", column.field.name))
}

/// Returns whether a variable of a column has one value, or one text, for each cell.
fn is_along_cells(column: &Column) -> bool {
    match column.field.values_per_cell {
        Some(values) => values == 1,
        None => column.field.is_bytes() && padded_width(column).is_some(),
    }
}

/// Returns the length to which all values of a text are padded, unless the result would be too large.
fn padded_width(column: &Column) -> Option<u64> {
    let width = column.longest.filter(|_| column.field.values_per_cell.is_none())?.max(1);
    let most = MAX_PADDED.max(column.values.len().saturating_mul(MAX_PADDING_RATIO));
    column.cells().checked_mul(width).filter(|&bytes| bytes <= most).map(|_| width)
}

fn label_bounds(labels: &Labels) -> Option<(i128, i128)> {
    let numbers = labels.values.iter().map(|label| number::integer(labels.datatype, label));
    numbers.collect::<Option<Vec<_>>>().and_then(|n| Some((*n.iter().min()?, *n.iter().max()?)))
}

/// Returns CF's `flag_values` and `flag_meanings` of up to 256 text labels.
fn flags(labels: &Labels, encoding: Encoding, codes: Datatype) -> Vec<Attribute> {
    let Some(meanings) = cf::flag_meanings(labels) else { return Vec::new() };
    let values = (0..labels.values.len() as u64).map(|code| encoding.apply_to(&code.to_le_bytes()[..codes.size()]));
    match values.collect::<Option<Vec<_>>>() {
        Some(values) => vec![
            Attribute { name: "flag_values".into(), nc_type: encoding.nc_type, values: values.concat() },
            Attribute::text("flag_meanings", meanings),
        ],
        None => Vec::new(),
    }
}
