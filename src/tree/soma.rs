//! The arrays of TileDB-SOMA as AnnData has them: data frames, whose rows are found by their place, and matrices.
//!
//! They are known by the names that SOMA keeps for itself: the row of a data frame is numbered by `soma_joinid`, the
//! cells of a matrix have the coordinates `soma_dim_0` and `soma_dim_1` and the value `soma_data`. AnnData's rows have no
//! numbers, so that of a data frame has to have the rows 0 to n - 1, each once.
//!
//! Source: the specification of SOMA's data model, and what TileDB-SOMA writes.

use std::sync::Arc;

use tilefs_export::boxes::{Boxes, Rows};
use tilefs_export::zarr::anndata::{self, Compressed, DataFrame, FrameColumn, Matrix};
use tilefs_export::zarr::{Group, Node};
use tilefs_export::{Content, Field, FormatResult, Unrepresentable};
use tilefs_format::datatype::Datatype;
use tilefs_format::error::Result;
use tilefs_format::schema::{ArraySchema, ArrayType, CellValNum};
use tilefs_format::text;
use tilefs_reader::array::{Array, Metadata};

use super::dense::{DenseArray, DenseSubarray};
use super::enums;
use super::matrix::{matrix_domain, written_length};
use super::meta;
use super::names::dimension_name;
use super::options::Extent;
use super::sparse::SparseSubarray;
use super::subarray::{DenseBoxes, FieldId, Subarray, column};

/// The number of a data frame's row.
const JOINID: &str = "soma_joinid";

/// The coordinates of a matrix's cell.
const COORDINATES: [&str; 2] = ["soma_dim_0", "soma_dim_1"];

/// The value of a matrix's cell.
const VALUE: &str = "soma_data";

/// The metadata key under which it stands, as JSON, what the column of the rows' names was called before.
const INDEX_KEY: &str = "soma_dataframe_original_index_name";

/// What that column is called where it had no name: of observations, of variables, and of other data frames.
const INDEXES: [&str; 3] = ["obs_id", "var_id", "index"];

/// The metadata key under which it stands what something is.
const TYPE_KEY: &str = "soma_object_type";

/// What SOMA says that something is (`SOMAExperiment`), by its metadata.
pub fn object_type(metadata: &Metadata) -> Option<String> {
    let value = metadata.get(TYPE_KEY)?;
    Some(text::decode(value.datatype, value.bytes()?)?.into_owned())
}

/// What an array is to AnnData.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    DataFrame,
    SparseMatrix,
    DenseMatrix,
}

impl Element {
    /// Told by the names of attributes and dimensions.
    pub fn of(schema: &ArraySchema) -> Option<Self> {
        let is_sparse = schema.array_type == ArrayType::Sparse;
        let mut dimensions = schema.dimensions.iter().map(|dimension| dimension.name.as_str());
        let has_attribute = |name: &str| schema.attributes.iter().any(|attribute| attribute.name == name);
        if dimensions.clone().eq(COORDINATES) && has_attribute(VALUE) {
            return Some(if is_sparse { Element::SparseMatrix } else { Element::DenseMatrix });
        }
        let is_frame = is_sparse && (dimensions.any(|name| name == JOINID) || has_attribute(JOINID));
        is_frame.then_some(Element::DataFrame)
    }
}

/// A data frame, and how many rows it has.
pub struct Frame {
    pub group: Group,
    pub rows: u64,
}

fn reason<T>(text: impl Into<std::borrow::Cow<'static, str>>) -> Result<FormatResult<T>> {
    Ok(Err(Unrepresentable::new(text)))
}

/// The data frame of an array, or why there is none. To find out whether its rows are there without a gap the first and
/// the last are looked at.
///
/// # Errors
/// When metadata, enumerations or what decides which cells are rows cannot be read.
pub fn data_frame(array: &Arc<Array>) -> Result<FormatResult<Frame>> {
    let schema = array.schema();
    if schema.allows_duplicates {
        return reason("it may have rows twice");
    }
    let [dimension] = schema.dimensions.as_slice() else {
        return reason(format!("its rows are not in the order of {JOINID}"));
    };
    if dimension.name != JOINID {
        return reason(format!("its rows are in the order of {}, not of {JOINID}", dimension_name(schema, 0)));
    }
    if dimension.datatype != Datatype::Int64 {
        return reason(format!("its {JOINID} is no INT64"));
    }
    let subarray: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
    let rows = subarray.shape()?.first().copied().unwrap_or(0);
    let joinids = subarray.values(FieldId::Dimension(0))?;
    if rows > 0 {
        let ends = [number_at(&joinids, 0)?, number_at(&joinids, rows - 1)?];
        // No number is there twice: from 0 to n - 1 they are all.
        if ends.map(|end| u64::try_from(end).ok()) != [Some(0), Some(rows - 1)] {
            let [first, last] = ends;
            return reason(format!(
                "its {rows} rows have a {JOINID} from {first} to {last}; AnnData counts them from 0 without a gap"
            ));
        }
    }
    let metadata = array.metadata()?;
    let named = index_name(&metadata).and_then(|name| position(schema, &name));
    let number = named.or_else(|| INDEXES.iter().find_map(|name| position(schema, name)));
    let attributes = (0..schema.attributes.len()).filter(|other| Some(*other) != number);
    let columns = attributes.map(|number| frame_column(&subarray, FieldId::Attribute(number), rows));
    let frame = DataFrame {
        index: frame_column(&subarray, number.map_or(FieldId::Dimension(0), FieldId::Attribute), rows)?,
        index_is_named: named.is_some(),
        columns: columns.collect::<Result<_>>()?,
        metadata: meta::for_formats(&metadata),
    };
    Ok(Ok(Frame { group: frame.group()?, rows }))
}

/// The attribute of this name, if it can name rows.
fn position(schema: &ArraySchema, name: &str) -> Option<usize> {
    let number = schema.attributes.iter().position(|attribute| attribute.name == name)?;
    let field = FieldId::Attribute(number).describe(schema, name);
    (anndata::check(&field).is_ok() && schema.attributes[number].enumeration.is_none()).then_some(number)
}

fn index_name(metadata: &Metadata) -> Option<String> {
    let value = metadata.get(INDEX_KEY)?;
    let stored = text::decode(value.datatype, value.bytes()?)?;
    serde_json::from_str::<Option<String>>(&stored).ok()?
}

fn number_at(numbers: &Arc<dyn Content>, row: u64) -> Result<i64> {
    let mut bytes = [0; 8];
    numbers.read_at(row.saturating_mul(8), &mut bytes)?;
    Ok(i64::from_le_bytes(bytes))
}

fn frame_column(subarray: &Arc<dyn Subarray>, id: FieldId, rows: u64) -> Result<FrameColumn> {
    let array = subarray.array();
    let schema = array.schema();
    let mut field = match id {
        FieldId::Attribute(number) => id.describe(schema, &schema.attributes[number].name),
        FieldId::Dimension(number) => id.describe(schema, &dimension_name(schema, number)),
    };
    if let FieldId::Attribute(number) = id
        && field.values_per_cell == Some(1)
    {
        field.labels = enums::labels(array, number)?;
    }
    let validity = field.nullable.then(|| subarray.validity(id)).transpose()?;
    let (subarray, described) = (subarray.clone(), field.clone());
    let cells = Arc::new(Rows::new(field, rows, move || column(&*subarray, id, described.clone())));
    Ok(FrameColumn { cells, validity })
}

/// How many rows and columns a matrix is to have, where that is known.
pub type Lengths = [Option<u64>; 2];

/// The matrix of a sparse array, or why there is none: by compressed columns where its cells are stored in their order,
/// else by rows. No cell is read.
///
/// # Errors
/// When metadata or what decides which cells are rows cannot be read.
pub fn sparse_matrix(array: &Arc<Array>, lengths: Lengths) -> Result<FormatResult<Matrix>> {
    let schema = array.schema();
    if schema.allows_duplicates {
        return reason("it may have cells twice");
    }
    if schema.dimensions.iter().any(|dimension| dimension.datatype != Datatype::Int64) {
        return reason("its coordinates are no INT64");
    }
    let (id, field) = match value_field(schema) {
        Ok(value) => value,
        Err(reason) => return Ok(Err(reason)),
    };
    let domain = matrix_domain(array)?;
    if domain.first != [0; 2] {
        return reason("its coordinates do not begin at 0");
    }
    let mut shape = [0; 2];
    for (axis, dimension) in schema.dimensions.iter().enumerate().take(2) {
        shape[axis] = lengths[axis].unwrap_or(domain.lengths[axis]);
        let Some(range) = &dimension.domain else { return reason("it has no domain") };
        let written = written_length(array, axis, range)?;
        if written > shape[axis] {
            let (name, least) = (COORDINATES[axis], shape[axis]);
            return reason(format!("it has cells up to {name} {}, of {least} that are annotated", written - 1));
        }
    }
    let stored = SparseSubarray::new(array.clone(), false);
    let (compressed, subarray) = match stored.is_column_major()? {
        true => (Compressed::Columns, stored),
        false => (Compressed::Rows, SparseSubarray::new(array.clone(), true)),
    };
    let coordinates = |axis: usize| {
        let id = FieldId::Dimension(axis);
        column(&subarray, id, id.describe(schema, COORDINATES[axis]))
    };
    let (major, minor) = match compressed {
        Compressed::Rows => (0, 1),
        Compressed::Columns => (1, 0),
    };
    let (major, minor) = (coordinates(major)?, coordinates(minor)?);
    Ok(Ok(Matrix { compressed, shape, major, minor, values: column(&subarray, id, field)? }))
}

/// The values of a dense array as a matrix, or why there is none.
///
/// # Errors
/// When its shape cannot be told.
pub fn dense_matrix(array: &Arc<Array>, lengths: Lengths) -> Result<FormatResult<Node>> {
    let (id, field) = match value_field(array.schema()) {
        Ok(value) => value,
        Err(reason) => return Ok(Err(reason)),
    };
    let dense = Arc::new(DenseArray::new(array.clone())?);
    let (selection, _) = dense.default_selection(Extent::Domain)?;
    let subarray: Arc<dyn Subarray> = Arc::new(DenseSubarray::new(dense, selection));
    let shape = subarray.shape()?;
    if !lengths.iter().zip(&shape).all(|(wanted, own)| wanted.is_none_or(|wanted| wanted == *own)) {
        let text = |lengths: Vec<String>| lengths.join(" x ");
        let own = text(shape.iter().map(u64::to_string).collect());
        let wanted = text(lengths.iter().map(|one| one.map_or("any".to_owned(), |one| one.to_string())).collect());
        return reason(format!("it has {own} cells, where {wanted} are annotated"));
    }
    let values: Arc<dyn Boxes> = Arc::new(DenseBoxes::new(subarray, id, field)?);
    Ok(anndata::dense(&values))
}

/// The attribute of a matrix's values, if they are numbers, one a cell.
fn value_field(schema: &ArraySchema) -> FormatResult<(FieldId, Field)> {
    let number = schema.attributes.iter().position(|attribute| attribute.name == VALUE);
    let number = number.ok_or_else(|| Unrepresentable::new(format!("it has no {VALUE}")))?;
    let attribute = &schema.attributes[number];
    if attribute.nullable {
        return Err(Unrepresentable::new("AnnData's matrices have no nulls"));
    }
    let field = FieldId::Attribute(number).describe(schema, VALUE);
    if attribute.cell_count != CellValNum::Fixed(1) || field.is_bytes() || field.datatype.time_unit().is_some() {
        return Err(Unrepresentable::new("AnnData's matrices have one number a cell"));
    }
    Ok((FieldId::Attribute(number), field))
}

/// Whether a matrix has a value in every cell of its shape, in row-major order.
pub fn is_full(matrix: &Matrix) -> bool {
    let [rows, columns] = matrix.shape;
    matrix.compressed == Compressed::Rows && rows.checked_mul(columns) == Some(matrix.values.cells())
}
