//! The raw files of attributes and dimensions: values, offsets, validity, and headers.

pub mod array_form;
pub mod columns;
pub(crate) mod coordinates;
pub mod enums;
pub mod lines;
pub mod meta;
pub(crate) mod missing;
pub(crate) mod notes;
pub mod rasters;
pub(crate) mod row_labels;
pub(crate) mod table_notes;
pub mod told;
pub(crate) mod whole_units;
pub mod xattrs;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_export::Field;
use tilefs_export::column::extension::of_datatype;
use tilefs_format::schema::{ArraySchema, CellValNum};
use tilefs_reader::array::Context;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::listing::Listing;

use crate::cells::{FieldId, Subarray, describe_field};
use crate::fields::array_form::ArrayForm;
use crate::fields::told::Told;
use crate::names::{FileNames, ReservedNames};
use crate::shown::ShownViews;
use crate::sizing::Sizing;

/// The file names of an array's fields, without extensions.
#[derive(Debug)]
pub struct FieldNames {
    pub attributes: Vec<String>,
    pub dimensions: Vec<String>,
    /// The numbers of the attributes in the order of their names, once one was looked up.
    sorted: OnceLock<Vec<usize>>,
}

impl FieldNames {
    /// Names the fields so that no file of one is called like another file. The views say which names are reserved.
    pub fn of(schema: &ArraySchema, reserved: &ReservedNames) -> Self {
        let mut names = FileNames::new(&reserved.in_array);
        let attributes = schema
            .attributes
            .iter()
            .map(|attribute| {
                let values = format!(".{}", of_datatype(attribute.datatype));
                let endings: Vec<String> =
                    reserved.endings.iter().map(|ending| ending.replace(".EXT", &values)).collect();
                let endings: Vec<&str> = endings.iter().map(String::as_str).collect();
                names.give_attribute(&attribute.name, &endings)
            })
            .collect();
        let mut names = FileNames::new(&[]);
        let dimensions = schema
            .dimensions
            .iter()
            .zip(schema.dimension_names())
            .map(|(dimension, name)| {
                let values = format!(".{}", of_datatype(dimension.datatype));
                names.give(&name, &[&values, ".offsets.u64", ".txt"])
            })
            .collect();
        FieldNames { attributes, dimensions, sorted: OnceLock::new() }
    }

    /// Returns the same with a letter of `axes` as the name of each dimension, or else its name, in lower case, if these
    /// differ from each other.
    pub fn with_axes(self, axes: Option<&str>) -> Self {
        let of_axes = axes.map(|axes| axes.chars().map(String::from).collect::<Vec<_>>());
        let of_axes = of_axes.filter(|axes| axes.len() == self.dimensions.len());
        let names = of_axes.as_ref().unwrap_or(&self.dimensions);
        let dimensions: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        let are_distinct = dimensions.iter().collect::<HashSet<_>>().len() == dimensions.len();
        if are_distinct { FieldNames { dimensions, ..self } } else { self }
    }

    /// Returns the name of a field's files without extension.
    pub fn of_field(&self, field: FieldId) -> &str {
        match field {
            FieldId::Attribute(number) => &self.attributes[number],
            FieldId::Dimension(number) => &self.dimensions[number],
        }
    }

    /// Returns the fields whose files have this name without extension.
    pub fn called(&self, stem: &str) -> impl Iterator<Item = FieldId> {
        let sorted = self.sorted.get_or_init(|| {
            let mut sorted: Vec<usize> = (0..self.attributes.len()).collect();
            sorted.sort_unstable_by_key(|&number| &self.attributes[number]);
            sorted
        });
        let place = sorted.binary_search_by_key(&stem, |&number| &self.attributes[number]);
        let attribute = place.ok().and_then(|place| sorted.get(place)).map(|&number| FieldId::Attribute(number));
        let dimension = self.dimensions.iter().position(|name| name == stem).map(FieldId::Dimension);
        attribute.into_iter().chain(dimension)
    }

    /// Returns the description of a field for the formats.
    pub fn describe(&self, schema: &ArraySchema, field: FieldId) -> Field {
        describe_field(field, schema, self.of_field(field))
    }
}

/// The common properties of the files of one folder.
#[derive(Clone)]
pub struct FieldFolder {
    pub subarray: Arc<dyn Subarray>,
    pub names: Arc<FieldNames>,
    pub modified: SystemTime,
    /// Optional views that are listed.
    pub shown: ShownViews,
    pub form: ArrayForm,
    /// What the metadata of the array tell, once read: the same for all parts of it.
    pub told: Arc<SingleFlight<Told>>,
}

impl FieldFolder {
    pub fn schema(&self) -> &ArraySchema {
        self.subarray.array().schema()
    }

    /// Returns the storage, caches and saved results of the array.
    pub fn context(&self) -> &Context {
        self.subarray.array().context()
    }

    /// Returns a file that is made of the fields when it is first needed.
    pub fn file(&self, make: impl Fn(&Self) -> Result<Arc<dyn Content>> + Send + Sync + 'static) -> LazyFile {
        let this = self.clone();
        LazyFile::new(self.modified, move || make(&this))
    }

    /// Returns what the metadata of the array tell, which is read once.
    ///
    /// # Errors
    /// As for [`Told::of`].
    pub fn told(&self) -> Result<&Told> {
        self.told.get_or_retry(|| Told::of(self.subarray.array()))
    }

    /// Returns the attributes in the order of the schema.
    pub fn attributes(&self) -> impl Iterator<Item = FieldId> + use<> {
        (0..self.schema().attributes.len()).map(FieldId::Attribute)
    }

    pub fn dimensions(&self) -> impl Iterator<Item = FieldId> + use<> {
        (0..self.schema().dimensions.len()).map(FieldId::Dimension)
    }

    pub fn describe(&self, field: FieldId) -> Field {
        self.names.describe(self.schema(), field)
    }

    /// Returns the number of cells in a field's files, if known without reading.
    pub fn known_cells(&self, field: FieldId) -> Option<u64> {
        let shape = self.subarray.known_shape()?;
        match field {
            FieldId::Dimension(axis) if !self.schema().is_sparse() => shape.get(axis).copied(),
            _ => Some(shape.iter().product()),
        }
    }

    /// Returns whether `ls` shows a file whose size depends on `sizing`.
    pub fn listing(&self, sizing: Sizing) -> Listing {
        if !self.has_one_axis() {
            return Listing::Always;
        }
        let subarray = self.subarray.clone();
        Listing::if_quick(move || {
            // The file itself reports the damage.
            subarray.row_count().map_or(true, |rows| sizing.is_listed(rows.most(), rows.exact().is_some()))
        })
    }

    /// Like [`FieldFolder::listing`], for a file of the stored values of one field.
    pub fn listing_of_values(&self, field: &Field) -> Listing {
        self.listing(match field.values_per_cell {
            Some(_) => Sizing::Count,
            None => Sizing::Tiles { fragments: self.subarray.array().fragment_count() },
        })
    }

    /// Like [`FieldFolder::listing`], for a file whose sizing is [`FieldFolder::sizing_of_all`].
    pub fn listing_of_all(&self) -> Listing {
        self.listing(self.sizing_of_all())
    }

    /// Returns the sizing of a file that contains all fields: it depends on the values of fields of variable size, and
    /// on which lists are null, if there are any.
    pub fn sizing_of_all(&self) -> Sizing {
        let is_variable = |count: CellValNum, nullable: bool| {
            count == CellValNum::Variable || (nullable && count != CellValNum::Fixed(1))
        };
        let schema = self.schema();
        let has_variable = schema.attributes.iter().any(|one| is_variable(one.cell_count, one.nullable))
            || schema.dimensions.iter().any(|one| is_variable(one.cell_count, false));
        if has_variable { Sizing::Cells } else { Sizing::Count }
    }

    /// Returns the field's own name.
    pub fn user_name(&self, id: FieldId) -> Cow<'_, str> {
        match id {
            FieldId::Attribute(number) => self.schema().attributes[number].name.as_str().into(),
            FieldId::Dimension(number) => self.schema().dimension_name(number),
        }
    }

    /// Returns whether all files are one row of cells: those of a sparse array, and of a dense one with one dimension.
    pub fn has_one_axis(&self) -> bool {
        self.schema().is_sparse() || self.schema().dimensions.len() == 1
    }

    /// Returns whether the values of a field are codes of an enumeration, one per cell.
    pub fn has_labels(&self, id: FieldId) -> bool {
        let FieldId::Attribute(number) = id else { return false };
        let attribute = &self.schema().attributes[number];
        attribute.enumeration.is_some() && attribute.cell_count == CellValNum::Fixed(1)
    }
}
