//! Array schemas of every format version (the format's "Array Schema" page).

mod attribute;
mod current_domain;
mod dimension;
mod field;
#[cfg(any(test, feature = "testing"))]
pub mod fixture;
mod label;
mod names;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use tilefs_base::error::{Error, Locate, Result};

use super::cursor::Cursor;
use super::datatype::Kind;
use super::pipeline::Pipeline;
use super::scalar::Range;
use super::version::check_version;

pub use attribute::Attribute;
pub use dimension::Dimension;
use field::no_filters;
pub use field::{CellValNum, DataOrder};
pub use label::DimensionLabel;
pub use names::Names;

/// The file name of the only schema of an array before format version 10. Fragments of those versions use this schema.
pub const FIRST_SCHEMA: &str = "__array_schema.tdb";

/// The most dimensions of an array in Hilbert order.
const MAX_HILBERT_DIMENSIONS: usize = 16;

/// Dense or sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayType {
    /// Every cell of the domain has a value.
    Dense,
    /// Only written cells have values, and coordinates are stored.
    Sparse,
}

/// An order of tiles or cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The last dimension varies fastest.
    RowMajor,
    /// The first dimension varies fastest.
    ColMajor,
    /// Only for the cells of sparse arrays.
    Hilbert,
}

/// An array schema: the content of one file of `__schema`, or of [`FIRST_SCHEMA`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArraySchema {
    /// Format version of the library that wrote the schema. Fragments may have lower or higher versions.
    pub version: u32,
    /// Dense or sparse.
    pub array_type: ArrayType,
    /// Whether several cells may have the same coordinates.
    pub allows_duplicates: bool,
    /// Never Hilbert.
    pub tile_order: Layout,
    /// The order of cells in a tile.
    pub cell_order: Layout,
    /// Cells in every tile of a sparse fragment except the last one; at least 1 in sparse arrays.
    pub capacity: u64,
    /// The filters of coordinates whose dimensions have none of their own.
    pub coords_filters: Pipeline,
    /// The filters of offsets of variable-length values.
    pub offsets_filters: Pipeline,
    /// The filters of validities.
    pub validity_filters: Pipeline,
    /// At least one. The index is the number in file names (`d0`, ...).
    pub dimensions: Vec<Dimension>,
    /// In stored order. The index is the number in file names (`a0`, ...).
    pub attributes: Vec<Attribute>,
    /// The dimension labels.
    pub labels: Vec<DimensionLabel>,
    /// Names of enumerations, and of their files in `__schema/__enumerations`. In stored order.
    pub enumerations: Vec<(String, String)>,
    /// One range per dimension, if a current domain is set.
    pub current_domain: Option<Vec<Range>>,
    /// Indexes of names in the lists above.
    pub names: Names,
}

impl ArraySchema {
    /// Reads the unfiltered payload of a schema's generic tile. Fields that the stored version does not have get
    /// TileDB's defaults.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for unknown versions, types, orders and names, which the message names;
    /// [`Error::Damaged`] if the bytes contradict the format or each other.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(payload);
        let schema = Self::read(&mut cursor)?;
        cursor.expect_end("end of schema")?;
        schema.check()?;
        Ok(schema)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let version = cursor.u32("version")?;
        check_version(version).in_field("version").at(0)?;
        let allows_duplicates = version >= 5 && cursor.u8("allows duplicates")? != 0;
        let array_type = match cursor.u8("array type")? {
            0 => ArrayType::Dense,
            1 => ArrayType::Sparse,
            other => return Err(cursor.error("array type", format!("array type {other}"))),
        };
        let tile_order = layout(cursor, "tile order")?;
        let cell_order = layout(cursor, "cell order")?;
        let capacity = cursor.u64("capacity")?;
        let coords_filters = Pipeline::parse(cursor)?;
        let offsets_filters = Pipeline::parse(cursor)?;
        let validity_filters = if version >= 7 { Pipeline::parse(cursor)? } else { no_filters() };
        let dimensions = dimension::parse_domain(cursor, version)?;
        let attributes = attribute::parse_attributes(cursor, version)?;
        let labels = if version >= 18 { label::parse_labels(cursor)? } else { Vec::new() };
        let enumerations = if version >= 20 { enumeration_files(cursor)? } else { Vec::new() };
        let current_domain = if version >= 22 { current_domain::parse(cursor, &dimensions)? } else { None };
        Ok(ArraySchema {
            version,
            array_type,
            allows_duplicates,
            tile_order,
            cell_order,
            capacity,
            coords_filters,
            offsets_filters,
            validity_filters,
            dimensions,
            attributes,
            labels,
            enumerations,
            current_domain,
            names: Names::default(),
        })
    }

    /// Returns whether the array is sparse.
    pub fn is_sparse(&self) -> bool {
        self.array_type == ArrayType::Sparse
    }

    /// Returns the number of cells in every tile of a dense fragment: the product of the tile extents. `None` if it
    /// does not fit 64 bits, or if a dimension is not an integer, date or time.
    pub fn cells_per_dense_tile(&self) -> Option<u64> {
        self.dimensions.iter().try_fold(1u64, |cells, dimension| {
            let length = match dimension.extent_length() {
                Some(length) => length,
                None => dimension.last_position()?.checked_add(1)?,
            };
            cells.checked_mul(length)
        })
    }

    /// Returns the filters of a dimension's coordinates: its own or, if it has none, those that the schema has for
    /// coordinates.
    pub fn coordinate_filters<'a>(&'a self, dimension: &'a Dimension) -> &'a Pipeline {
        if dimension.filters.filters.is_empty() { &self.coords_filters } else { &dimension.filters }
    }

    /// Returns whether the array has a dimension or an attribute of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.dimensions.iter().any(|dimension| dimension.name == name) || self.attribute_named(name).is_some()
    }

    /// Returns the name under which a dimension is shown: its own, or for an anonymous one TileDB-Py's name `__dim_0`.
    pub fn dimension_name(&self, number: usize) -> Cow<'_, str> {
        match self.dimensions.get(number).map(|dimension| dimension.name.as_str()) {
            Some(name) if !name.is_empty() => name.into(),
            _ => format!("__dim_{number}").into(),
        }
    }

    /// Returns the names of all dimensions as [`ArraySchema::dimension_name`], in order.
    pub fn dimension_names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.dimensions.len()).map(|number| self.dimension_name(number))
    }

    /// Returns the index of the attribute of this name.
    pub fn attribute_named(&self, name: &str) -> Option<usize> {
        self.names.attribute(name, &self.attributes)
    }

    /// Returns the file in `__schema/__enumerations` that stores the enumeration of this name.
    pub fn enumeration_file(&self, name: &str) -> Option<&str> {
        self.names.enumeration(name, &self.enumerations).map(|(_, file)| file.as_str())
    }

    /// Checks that the fields agree with each other.
    fn check(&self) -> Result<()> {
        match self.array_type {
            ArrayType::Dense => self.check_dense()?,
            ArrayType::Sparse if self.capacity == 0 => {
                return Err(Error::damaged("no cell per tile").in_field("capacity"));
            }
            ArrayType::Sparse => {}
        }
        if self.tile_order == Layout::Hilbert {
            return Err(Error::damaged("Hilbert order of tiles").in_field("tile order"));
        }
        if self.cell_order == Layout::Hilbert
            && (self.array_type == ArrayType::Dense || self.dimensions.len() > MAX_HILBERT_DIMENSIONS)
        {
            let reason = format!("Hilbert order of a dense array or of {} dimensions", self.dimensions.len());
            return Err(Error::damaged(reason).in_field("cell order"));
        }
        self.check_names()?;
        for label in &self.labels {
            if label.dimension as usize >= self.dimensions.len() {
                let reason = format!("label of dimension {} of {}", label.dimension, self.dimensions.len());
                return Err(Error::damaged(reason).in_field(&label.name));
            }
        }
        Ok(())
    }

    fn check_dense(&self) -> Result<()> {
        if self.attributes.is_empty() {
            return Err(Error::damaged("dense array without attributes"));
        }
        let mut types = self.dimensions.iter().map(|dimension| dimension.datatype);
        let first = types.next();
        if types.any(|datatype| Some(datatype) != first) {
            return Err(Error::damaged("dense array with dimensions of several types"));
        }
        match first {
            Some(datatype) if matches!(datatype.kind(), Kind::Signed | Kind::Unsigned) => Ok(()),
            Some(datatype) => Err(Error::unsupported(format!("dense array with {} dimensions", datatype.name()))),
            None => Err(Error::damaged("no dimensions")),
        }
    }

    fn check_names(&self) -> Result<()> {
        let mut fields = HashSet::new();
        let names = self.dimensions.iter().map(|dimension| &dimension.name);
        let names = names.chain(self.attributes.iter().map(|attribute| &attribute.name));
        for name in names.chain(self.labels.iter().map(|label| &label.name)) {
            if !fields.insert(name.as_str()) {
                return Err(Error::damaged("two fields of this name").in_field(name));
            }
        }
        let mut enumerations = HashSet::new();
        for (name, file) in &self.enumerations {
            if !enumerations.insert(name.as_str()) {
                return Err(Error::damaged("two enumerations of this name").in_field(name));
            }
            if file.is_empty() || file == "." || file == ".." || file.contains(['/', '\\', '\0']) {
                return Err(Error::damaged(format!("enumeration file {file:?}")).in_field(name));
            }
        }
        for attribute in &self.attributes {
            if let Some(wanted) = &attribute.enumeration
                && !enumerations.contains(wanted.as_str())
            {
                return Err(Error::damaged(format!("no enumeration {wanted:?}")).in_field(&attribute.name));
            }
        }
        Ok(())
    }
}

fn layout(cursor: &mut Cursor<'_>, field: &str) -> Result<Layout> {
    match cursor.u8(field)? {
        0 => Ok(Layout::RowMajor),
        1 => Ok(Layout::ColMajor),
        4 => Ok(Layout::Hilbert),
        other => Err(Error::unsupported(format!("layout {other}")).in_field(field).at(cursor.position() as u64 - 1)),
    }
}

fn enumeration_files(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    let count = cursor.u32("number of enumerations")?;
    let count = cursor.checked_count(u64::from(count), 8, "number of enumerations")?;
    let mut enumerations = Vec::new();
    for _ in 0..count {
        let name = cursor.text32("enumeration name")?;
        enumerations.push((name.to_owned(), cursor.text32("enumeration file")?.to_owned()));
    }
    Ok(enumerations)
}
