//! Extended attributes `user.tiledb.*`: `getfattr -d FILE` shows the meaning of the bytes of a file.
//!
//! All are text. Lists are separated by commas; a comma within a name is `%2C` (a percent sign `%25`).
//!
//! | of | attributes |
//! |---|---|
//! | values of attributes and dimensions | `name`, `kind` (attribute, dimension), `type` (TileDB's name), `dtype` (NumPy's), `values_per_cell` (a number or `var`), `filters` |
//! | attributes, in addition | `nullable`, `fill`, `enumeration` |
//! | dimensions, in addition | `domain`, `extent` |
//! | all of these and those below | `shape`, `order` (`C`: the last axis fastest; `rows`: sparse), `dims`, `origin` (the first coordinate along each dimension; dense), `format_version`, `timestamp` |
//! | offsets and validity | `name`, `kind` (offsets, validity), `type`, `dtype` |
//! | tables | `kind` (table), `attributes`; `shape` is the number of rows |
//! | sparse arrays whose rows are not counted yet | `rows_at_most` instead of `shape` |
//! | an array's folder | `object`, `array_type`, `shape`, `dims`, `attributes`, `origin`, `tile_order`, `cell_order`, `format_version`, `timestamp`, `path` |
//! | a group's folder | `object`, `members`, `timestamp`, `path` |
//! | a plain folder of arrays and groups | `object` (directory), `path` |

use std::borrow::Cow;

use tilefs_base::hex::hex;
use tilefs_export::{Field, npy, number};
use tilefs_format::datatype::Datatype;
use tilefs_format::schema::{ArraySchema, Layout};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::group::OpenedGroup;
use tilefs_select::time::extended;
use tilefs_select::{coordinate_text, range_text};
use tilefs_storage::StoreKey;
use tilefs_vfs::node::ExtendedAttributes;

use crate::cells::FieldId;
use crate::cells::axis_summary::AxisSummary;
use crate::fields::FieldFolder;
use crate::wording::filters::pipeline_text;

/// Returns the attributes of the file of a variable-length field's offsets: one more than there are cells.
pub fn of_offsets(fields: &FieldFolder, id: FieldId) -> ExtendedAttributes {
    beside_values(fields, id, "offsets", Datatype::UInt64)
}

/// Returns the attributes of the file of a nullable attribute's validity.
pub fn of_validity(fields: &FieldFolder, id: FieldId) -> ExtendedAttributes {
    beside_values(fields, id, "validity", Datatype::UInt8)
}

fn beside_values(fields: &FieldFolder, id: FieldId, kind: &str, datatype: Datatype) -> ExtendedAttributes {
    let mut out = AttributesBuilder::default();
    out.add("name", fields.user_name(id));
    out.add("kind", kind);
    out.add("type", datatype.name());
    out.add("dtype", npy::dtype(datatype));
    out.add_place(fields, Some(id));
    out.attributes
}

/// Returns the attributes of the file of a field's values.
pub fn of_values(fields: &FieldFolder, id: FieldId) -> ExtendedAttributes {
    let schema = fields.schema();
    let field = fields.describe(id);
    let mut out = AttributesBuilder::default();
    out.add("name", fields.user_name(id));
    out.add("kind", if matches!(id, FieldId::Attribute(_)) { "attribute" } else { "dimension" });
    out.add("type", field.datatype.name());
    out.add("dtype", npy::dtype(field.datatype));
    out.add("values_per_cell", field.values_per_cell.map_or("var".to_owned(), |count| count.to_string()));
    match id {
        FieldId::Attribute(number) => {
            let attribute = &schema.attributes[number];
            out.add("filters", pipeline_text(&attribute.filters));
            out.add("nullable", if attribute.nullable { "1" } else { "0" });
            out.add("fill", fill_text(&field, &attribute.fill));
            if let Some(enumeration) = &attribute.enumeration {
                out.add("enumeration", enumeration);
            }
        }
        FieldId::Dimension(number) => {
            let dimension = &schema.dimensions[number];
            if schema.is_sparse() {
                out.add("filters", pipeline_text(schema.coordinate_filters(dimension)));
            }
            if let Some(domain) = &dimension.domain {
                out.add("domain", range_text(dimension.datatype, domain));
            }
            if let Some(extent) = dimension.unwrapped_extent() {
                out.add("extent", extent.to_string());
            }
        }
    }
    out.add_place(fields, Some(id));
    out.attributes
}

/// Returns the attributes of a file in which each cell is a row of all dimensions and attributes.
pub fn of_table(fields: &FieldFolder) -> ExtendedAttributes {
    let mut out = AttributesBuilder::default();
    out.add("kind", "table");
    out.add("attributes", list(fields.schema().attributes.iter().map(|attribute| attribute.name.as_str().into())));
    out.add_place(fields, None);
    out.attributes
}

/// Returns the attributes of the folder of an array, or of a slice of one.
pub fn of_folder(fields: &FieldFolder) -> ExtendedAttributes {
    let schema = fields.schema();
    let mut out = AttributesBuilder::default();
    out.add("object", "array");
    out.add("array_type", if schema.is_sparse() { "sparse" } else { "dense" });
    out.add("attributes", list(schema.attributes.iter().map(|attribute| attribute.name.as_str().into())));
    out.add("tile_order", order_name(schema.tile_order));
    out.add("cell_order", order_name(schema.cell_order));
    out.add_place(fields, None);
    out.add("path", fields.subarray.array().path().to_string());
    out.attributes
}

/// Returns the attributes of the folder of an unopened member of a group.
pub fn of_unopened(path: &StoreKey) -> ExtendedAttributes {
    let mut out = AttributesBuilder::default();
    out.add("path", path.to_string());
    out.attributes
}

/// Returns the attributes of the folder of a group.
pub fn of_group(group: &OpenedGroup, last_commit: Option<u64>) -> ExtendedAttributes {
    let mut out = AttributesBuilder::default();
    out.add("object", "group");
    if let Ok(members) = group.members() {
        out.add("members", members.iter().filter(|member| member.place.path().is_some()).count().to_string());
    }
    out.add_time(last_commit);
    out.add("path", group.path().to_string());
    out.attributes
}

/// Returns the attributes of a plain folder of arrays and groups.
pub fn of_directory(path: &StoreKey) -> ExtendedAttributes {
    let mut out = AttributesBuilder::default();
    out.add("object", "directory");
    out.add("path", path.to_string());
    out.attributes
}

#[derive(Default)]
struct AttributesBuilder {
    attributes: ExtendedAttributes,
}

impl AttributesBuilder {
    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.attributes.push((format!("user.tiledb.{name}"), value.into().into_bytes()));
    }

    /// Adds the attributes that identify the cells.
    fn add_place(&mut self, fields: &FieldFolder, id: Option<FieldId>) {
        let schema = fields.schema();
        let axes = match (id, fields.subarray.selection()) {
            (Some(FieldId::Dimension(axis)), Some(_)) => axis..axis + 1,
            _ => 0..schema.dimensions.len(),
        };
        match (fields.subarray.selection(), fields.subarray.row_count()) {
            (Some(selection), _) => {
                let lengths = selection.shape();
                let lengths = lengths.get(axes.clone()).unwrap_or_default();
                self.add("shape", lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
            }
            (None, Ok(RowCount::Exactly(rows))) => self.add("shape", rows.to_string()),
            (None, Ok(RowCount::AtMost(most))) => self.add("rows_at_most", most.to_string()),
            // The files report the error.
            (None, Err(_)) => {}
        }
        self.add("order", if schema.is_sparse() { "rows" } else { "C" });
        let dimensions = schema.dimensions.get(axes.clone()).unwrap_or_default();
        self.add("dims", list(axes.clone().map(|axis| schema.dimension_name(axis))));
        let selected = fields.subarray.selection().and_then(|selection| selection.axes().get(axes));
        let first = |(axis, dimension)| {
            let first = AxisSummary::of(axis, dimension).first?;
            Some(coordinate_text(dimension.datatype, &first))
        };
        let origin: Option<Vec<String>> =
            selected.map(|axes| axes.iter().zip(dimensions)).and_then(|axes| axes.map(first).collect());
        if let Some(origin) = origin {
            self.add("origin", origin.join(","));
        }
        self.add_version(fields.subarray.array(), schema);
    }

    fn add_version(&mut self, array: &OpenedArray, schema: &ArraySchema) {
        self.add("format_version", schema.version.to_string());
        self.add_time(array.last_commit());
    }

    fn add_time(&mut self, last_commit: Option<u64>) {
        if let Some(time) = last_commit {
            self.add("timestamp", extended(time));
        }
    }
}

/// Returns the value of an unwritten cell: numbers as text, everything else as hexadecimal digits.
fn fill_text(field: &Field, fill: &[u8]) -> String {
    let numbers: Option<Vec<String>> =
        fill.chunks(field.datatype.size()).map(|one| number::text(field.datatype, one)).collect();
    numbers.map_or_else(|| hex(fill), |numbers| numbers.join(","))
}

fn order_name(layout: Layout) -> &'static str {
    match layout {
        Layout::RowMajor => "row-major",
        Layout::ColMajor => "col-major",
        Layout::Hilbert => "hilbert",
    }
}

fn list<'a>(names: impl Iterator<Item = Cow<'a, str>>) -> String {
    names.map(|name| name.replace('%', "%25").replace(',', "%2C")).collect::<Vec<_>>().join(",")
}
