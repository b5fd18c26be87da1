//! Data frames.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use tilefs_base::error::{Error, Result};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_reader::array::dense::IndexBox;

use super::{encoding, encoding_of_array, note_new_name};
use crate::cf::names::UniqueNames;
use crate::column::boxes::{BoxedRows, Boxes};
use crate::column::{Column, Field, FormatResult, Metadatum, Unrepresentable};
use crate::content::element::Converted;
use crate::content::validity::Validity;
use crate::number;
use crate::zarr::array::{ArrayLayout, Attributes, ZarrArray, chunk_of};
use crate::zarr::json::metadatum;
use crate::zarr::types::ZarrType;
use crate::zarr::{LEFT_OUT, METADATA, ZarrGroup, ZarrNode};

/// The attribute that names the column of row names, and the name of that column if it has none.
const INDEX: &str = "_index";

/// A column of a data frame.
pub struct FrameColumn {
    /// With one axis: the rows.
    pub cells: Arc<dyn Boxes>,
    /// Which rows are null, if the column is nullable.
    pub validity: Option<Validity>,
}

impl FrameColumn {
    /// Returns the column alone, as an array or another encoding that AnnData has for such values.
    ///
    /// # Errors
    /// As for [`DataFrame::group`].
    pub fn node(&self) -> Result<ZarrNode> {
        node_of(&self.cells.field().name, self)
    }
}

/// The contents of a data frame.
pub struct DataFrame {
    /// The names of the rows, and whether their column has a name of its own.
    pub index: FrameColumn,
    /// Whether the index has a name of its own, rather than that of AnnData's default.
    pub index_is_named: bool,
    /// Columns for which AnnData has no encoding are omitted.
    pub columns: Vec<FrameColumn>,
    /// Metadata that become attributes of the group.
    pub metadata: Vec<Metadatum>,
}

/// Checks whether a data frame can hold a field; returns the reason if not.
pub fn check(field: &Field) -> FormatResult<()> {
    use Datatype::{DateTimeMs, DateTimeNs, DateTimeSec, DateTimeUs, StringAscii, StringUtf8};
    match (field.values_per_cell, field.datatype) {
        (None, StringAscii | StringUtf8) => Ok(()),
        (Some(1), DateTimeSec | DateTimeMs | DateTimeUs | DateTimeNs) => Ok(()),
        (Some(1), datatype) if datatype.time_unit().is_some() => {
            Err(Unrepresentable::new("AnnData's data frames have dates in seconds, ms, us and ns only"))
        }
        (Some(1), datatype) if datatype.kind() != Kind::Bytes => Ok(()),
        (Some(1) | None, datatype) if datatype.kind() == Kind::Bytes => {
            Err(Unrepresentable::new("AnnData's data frames have no bytes but UTF-8"))
        }
        _ => Err(Unrepresentable::new("AnnData's data frames have one value per row")),
    }
}

impl DataFrame {
    /// Returns the group of the data frame. To find out whether a nullable column has nulls, its validity is read up to
    /// the first one, unless there are very many rows; no value is read.
    ///
    /// # Errors
    /// Fails if the validity cannot be read.
    pub fn group(&self) -> Result<ZarrGroup> {
        let mut builder =
            FrameBuilder { group: ZarrGroup::default(), names: UniqueNames::of_zarr(), given: HashMap::new() };
        builder.names.give(METADATA);
        builder.names.give(INDEX);
        let columns: Vec<&FrameColumn> =
            self.columns.iter().filter(|column| check(column.cells.field()).is_ok()).collect();
        let own_index = self.index_is_named.then_some(&self.index).into_iter();
        let all = own_index.chain(columns.iter().copied()).map(|column| &*column.cells.field().name);
        builder.given = column_names(all, &mut builder.names);
        let index = match self.index_is_named {
            true => builder.column(&self.index)?,
            false => {
                builder.group.members.push((INDEX.to_owned(), node_of(INDEX, &self.index)?));
                INDEX.to_owned()
            }
        };
        let mut order: Vec<Value> = Vec::new();
        for column in columns {
            order.push(builder.column(column)?.into());
        }
        let renamed = builder.group.attributes.remove(LEFT_OUT);
        let mut attributes: Attributes = self.metadata.iter().map(|one| (one.key.clone(), metadatum(one))).collect();
        attributes.extend(encoding("dataframe", "0.2.0"));
        attributes.insert(INDEX.to_owned(), index.into());
        attributes.insert("column-order".to_owned(), order.into());
        attributes.extend(renamed.map(|renamed| (LEFT_OUT.to_owned(), renamed)));
        builder.group.attributes = attributes;
        Ok(builder.group)
    }
}

/// Maximum number of rows that are searched for nulls, so that opening stays fast.
const MAX_SEARCHED: u64 = 1 << 26;

/// Returns whether any row may be null; assumes so if there are too many rows to search.
fn has_nulls(column: &FrameColumn) -> Result<bool> {
    match &column.validity {
        None => Ok(false),
        Some(validity) if validity.len() > MAX_SEARCHED => Ok(true),
        Some(validity) => validity.has_nulls(),
    }
}

struct FrameBuilder {
    group: ZarrGroup,
    names: UniqueNames,
    /// The names of columns here, by their names in the array.
    given: HashMap<String, String>,
}

impl FrameBuilder {
    /// Adds a column and returns its name.
    fn column(&mut self, column: &FrameColumn) -> Result<String> {
        let own = &column.cells.field().name;
        let name = self.given.get(own).cloned().unwrap_or_else(|| self.names.give(own));
        note_new_name(&mut self.group, own, &name);
        let path: Vec<&str> = name.split('/').collect();
        insert_nested(&mut self.group, &path, node_of(&name, column)?);
        Ok(name)
    }
}

/// Maximum number of parts of a name with slashes, which is the depth of a group.
const MAX_PARTS: usize = 16;

/// Returns the names of columns here, by their names in the array.
///
/// AnnData reads columns with slashes from groups in groups: `a/b` is `b` in the group `a`. Such a name is possible if no
/// other column is at `a`. A name that is not possible becomes a similar one.
fn column_names<'n>(columns: impl Iterator<Item = &'n str>, names: &mut UniqueNames) -> HashMap<String, String> {
    let (legal, others): (Vec<&str>, Vec<&str>) = columns.partition(|name| *name != METADATA && names.is_legal(name));
    let is_path = |name: &&str| {
        let is_short = (2..=MAX_PARTS).contains(&name.split('/').take(MAX_PARTS + 1).count());
        is_short && name.split('/').all(|part| part != METADATA && names.is_legal(part))
    };
    let (paths, mut changed): (Vec<&str>, Vec<&str>) = others.into_iter().partition(is_path);
    let taken: HashSet<&str> = legal.iter().chain(&paths).copied().chain([INDEX]).collect();
    let mut given: HashMap<String, String> = legal.iter().map(|name| ((*name).to_owned(), names.give(name))).collect();
    for path in paths {
        let group = path.split('/').next().unwrap_or(path);
        match path.match_indices('/').any(|(end, _)| taken.contains(path.split_at(end).0)) {
            true => changed.push(path),
            false => {
                // The group may have other columns already.
                names.reserve(group);
                given.insert(path.to_owned(), path.to_owned());
            }
        }
    }
    given.extend(changed.into_iter().map(|name| (name.to_owned(), names.give(name))));
    given
}

/// Adds a node to the group in which it belongs, below `group`, and makes that group if it is missing.
fn insert_nested(group: &mut ZarrGroup, parts: &[&str], node: ZarrNode) {
    let (part, node) = match parts {
        [] => return,
        [last] => (*last, node),
        [first, rest @ ..] => {
            let known = group.members.iter_mut().find_map(|(name, member)| match member {
                ZarrNode::Group(inner) if name == first => Arc::get_mut(inner),
                _ => None,
            });
            if let Some(inner) = known {
                return insert_nested(inner, rest, node);
            }
            let mut inner = ZarrGroup::default();
            insert_nested(&mut inner, rest, node);
            (*first, ZarrNode::Group(Arc::new(inner)))
        }
    };
    group.members.push((part.to_owned(), node));
}

/// Returns a column as an array or another encoding; `name` is that of its labels.
fn node_of(name: &str, column: &FrameColumn) -> Result<ZarrNode> {
    let nulls = has_nulls(column)?;
    let cells = &column.cells;
    let field = cells.field();
    match &field.labels {
        // Categories are text or numbers; for other labels, the codes are shown.
        Some(labels) if labels.column(name).check().is_ok() && labels.column(name).field.datatype != Datatype::Blob => {
            categorical(cells, labels.column(name), labels.ordered)
        }
        _ => match (nulls, field.datatype) {
            (false, _) => plain(cells, None),
            (true, Datatype::Bool) => nullable(cells, "nullable-boolean"),
            (true, datatype) if datatype.is_string() => nullable(cells, "nullable-string-array"),
            (true, datatype) => match nothing(datatype) {
                Some(nothing) => plain(cells, Some(nothing)),
                None => nullable(cells, "nullable-integer"),
            },
        },
    }
}

/// Returns the value that represents a missing one, if the type has one.
fn nothing(datatype: Datatype) -> Option<Vec<u8>> {
    match datatype {
        Datatype::Float32 => Some(f32::NAN.to_le_bytes().to_vec()),
        Datatype::Float64 => Some(f64::NAN.to_le_bytes().to_vec()),
        _ => datatype.time_unit().map(|_| i64::MIN.to_le_bytes().to_vec()),
    }
}

fn layout(cells: &Arc<dyn Boxes>, attributes: Attributes) -> ArrayLayout {
    ArrayLayout { chunk: chunk_of(cells), dimensions: vec!["rows".to_owned()], attributes }
}

/// Returns the values alone; `null` replaces nulls.
fn plain(cells: &Arc<dyn Boxes>, null: Option<Vec<u8>>) -> Result<ZarrNode> {
    let field = cells.field();
    let kind = ZarrType::with_dates(field).map_err(|reason| Error::internal(reason.to_string()))?;
    let attributes = match field.values_per_cell {
        None => encoding("string-array", "0.2.0"),
        Some(_) => encoding_of_array(),
    };
    Ok(ZarrNode::Array(Arc::new(ZarrArray::of_values(cells, kind, null, layout(cells, attributes)))))
}

/// Returns the values, and a mask of nulls.
fn nullable(cells: &Arc<dyn Boxes>, name: &str) -> Result<ZarrNode> {
    let mask = ZarrArray::of_marks(cells, Validity::null_cells, layout(cells, encoding_of_array()));
    let members =
        vec![("values".to_owned(), plain(cells, None)?), ("mask".to_owned(), ZarrNode::Array(Arc::new(mask)))];
    Ok(ZarrNode::Group(Arc::new(ZarrGroup { attributes: encoding(name, "0.1.0"), members })))
}

/// Returns codes, of which -1 is null or has no category, and their categories. AnnData reads no other codes without one.
fn categorical(cells: &Arc<dyn Boxes>, labels: Column, ordered: bool) -> Result<ZarrNode> {
    let labels_at_once = labels.cells();
    let signed = KnownCodes::of(cells, labels_at_once);
    // For a signed integer of any width, all bytes of -1 are the same.
    let null = cells.field().nullable.then(|| vec![0xff; signed.field().datatype.size()]);
    let categories: Arc<dyn Boxes> = Arc::new(BoxedRows::of(labels, labels_at_once));
    let mut attributes = encoding("categorical", "0.2.0");
    attributes.insert("ordered".to_owned(), ordered.into());
    let members =
        vec![("codes".to_owned(), plain(&signed, null)?), ("categories".to_owned(), plain(&categories, None)?)];
    Ok(ZarrNode::Group(Arc::new(ZarrGroup { attributes, members })))
}

/// Codes as signed integers, which can represent -1: it stands for all codes without a label.
struct KnownCodes {
    of: Arc<dyn Boxes>,
    field: Field,
    labels: u64,
}

impl KnownCodes {
    fn of(cells: &Arc<dyn Boxes>, labels: u64) -> Arc<dyn Boxes> {
        let mut field = cells.field().clone();
        field.datatype = match field.datatype {
            Datatype::UInt8 | Datatype::Bool => Datatype::Int16,
            Datatype::UInt16 => Datatype::Int32,
            Datatype::UInt32 => Datatype::Int64,
            // There cannot be that many labels.
            Datatype::UInt64 => Datatype::Int64,
            signed => signed,
        };
        field.fill = Vec::new();
        Arc::new(KnownCodes { of: cells.clone(), field, labels })
    }
}

impl Boxes for KnownCodes {
    fn field(&self) -> &Field {
        &self.field
    }

    fn shape(&self) -> &[u64] {
        self.of.shape()
    }

    fn extents(&self) -> Vec<u64> {
        self.of.extents()
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let column = self.of.column(cells)?;
        let (stored, to, labels) = (column.field.datatype, self.field.datatype.size(), i128::from(self.labels));
        let from = stored.size();
        let wide = Converted::new(column.values, from, to, move |from_bytes, to_bytes| {
            for (narrow, wide) in from_bytes.chunks_exact(from).zip(to_bytes.chunks_exact_mut(to)) {
                let code = number::integer(stored, narrow).filter(|code| (0..labels).contains(code)).unwrap_or(-1);
                wide.iter_mut().zip(code.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
            Ok(())
        });
        Ok(Column { field: self.field.clone(), values: Arc::new(wide), ..column })
    }
}
