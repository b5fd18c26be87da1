//! The arrays of TileDB-SOMA in AnnData's terms: data frames, whose rows are identified by position, and matrices.
//!
//! The arrays are recognised by the names that SOMA reserves: `soma_joinid` numbers the rows of a data frame, and the
//! cells of a matrix have the coordinates `soma_dim_0` and `soma_dim_1` and the value `soma_data`. AnnData's rows have
//! no numbers, so the rows of a data frame must be 0 to n - 1, each once.
//!
//! Source: the specification of SOMA's data model, and the output of TileDB-SOMA.

pub(crate) mod cell_ranger;
pub(crate) mod cut;
pub(crate) mod experiment;
pub(crate) mod group;
pub(crate) mod h5ad;
pub(crate) mod plane_map;
pub mod row_numbers;
pub(crate) mod slices;
pub(crate) mod spatial;
pub(crate) mod uns;

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::json;
use tilefs_export::column::boxes::{BoxedRows, Boxes};
use tilefs_export::content::element::{Converted, ConvertedColumn};
use tilefs_export::zarr::anndata::{
    self, BandLimits, BandedMatrix, CELLS_OF_A_PART, CellOrder, Compressed, CompressedMatrix, Cuts, DataFrame,
    FrameColumn, InRowOrder, RowBands, RowStarts, Sections,
};
use tilefs_export::zarr::{self, ZarrGroup, ZarrNode};
use tilefs_export::{Column, Field, FormatResult, Unrepresentable};
use tilefs_format::datatype::Datatype;
use tilefs_format::schema::{ArraySchema, ArrayType, CellValNum};
use tilefs_reader::array::{Metadata, OpenedArray};
use tilefs_select::Addressing;
use tilefs_threads::cancellation;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::matrix::{matrix_domain, written_length};
use crate::cells::sparse::SparseSubarray;
use crate::cells::{DenseBoxes, FieldId, Subarray, column, describe_field};
use crate::domains::soma::row_numbers::JOINID;
use crate::fields::array_form::{ArrayForm, ZarrForm};
use crate::fields::enums;
use crate::fields::meta;
use crate::options::Extent;

/// The coordinates of a matrix's cell.
const COORDINATES: [&str; 2] = ["soma_dim_0", "soma_dim_1"];

/// The value of a matrix's cell.
const VALUE: &str = "soma_data";

/// The metadata key of the original name, as JSON, of the column of row names.
const INDEX_KEY: &str = "soma_dataframe_original_index_name";

/// The names of the column of row names if it had none: in observations, in variables, and in other data frames.
const INDEXES: [&str; 3] = ["obs_id", "var_id", "index"];

/// The metadata key of an object's type.
const TYPE_KEY: &str = "soma_object_type";

/// The most fragments with cells in a band, on average, if each takes a request to a remote storage.
const REMOTE_FRAGMENTS_OF_A_BAND: u64 = 4;

/// The most cells of a remote array that a pass over all of them reads at a time.
const CELLS_OF_A_REMOTE_PART: u64 = 1 << 20;

/// Returns the type of an object (`SOMAExperiment`) from its metadata.
pub fn object_type(metadata: &Metadata) -> Option<String> {
    meta::text_value(metadata, TYPE_KEY)
}

/// The AnnData type of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    DataFrame,
    SparseMatrix,
    DenseMatrix,
}

impl Element {
    /// Returns the type of an array, which the names of its attributes and dimensions show.
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

/// Returns the form of a data frame or a sparse matrix: that of AnnData.
pub fn array_form(schema: &ArraySchema) -> Option<ArrayForm> {
    let zarr = match Element::of(schema)? {
        Element::DataFrame => ZarrForm {
            what: "a data frame",
            check: anndata::check,
            make: |array| Ok(data_frame(array, None)?.map(|frame| frame.group)),
        },
        Element::SparseMatrix => ZarrForm {
            what: "a sparse matrix",
            check: zarr::check,
            make: |array| Ok(sparse_matrix(array, [&MatrixAxis::default(); 2])?.and_then(CompressedMatrix::group)),
        },
        Element::DenseMatrix => return None,
    };
    Some(ArrayForm { zarr: Some(zarr), ..ArrayForm::default() })
}

/// A data frame, and the number of rows of its array.
pub struct Frame {
    pub group: ZarrGroup,
    pub all: u64,
}

fn reason<T>(text: impl Into<std::borrow::Cow<'static, str>>) -> Result<FormatResult<T>> {
    Ok(Err(Unrepresentable::new(text)))
}

/// Returns the data frame of an array, or of some of its rows, or the reason why there is none. Reads the first and the
/// last row number to check that there are no gaps.
///
/// # Errors
/// Fails if metadata, enumerations, or data that determine which cells are rows cannot be read.
pub fn data_frame(array: &Arc<OpenedArray>, wanted: Option<&Range<u64>>) -> Result<FormatResult<Frame>> {
    let schema = array.schema();
    if schema.allows_duplicates {
        return reason("it may have duplicate rows");
    }
    let [dimension] = schema.dimensions.as_slice() else {
        return reason(format!("its rows are not in the order of {JOINID}"));
    };
    if dimension.name != JOINID {
        return reason(format!("its rows are in the order of {}, not of {JOINID}", schema.dimension_name(0)));
    }
    if dimension.datatype != Datatype::Int64 {
        return reason(format!("its {JOINID} is not INT64"));
    }
    let mut subarray: Arc<dyn Subarray> = Arc::new(SparseSubarray::new(array.clone(), true));
    let all = subarray.shape()?.first().copied().unwrap_or(0);
    let mut rows = all;
    let joinids = subarray.values(FieldId::Dimension(0))?;
    if rows > 0 {
        let ends = [number_at(&joinids, 0)?, number_at(&joinids, rows - 1)?];
        // A dimension without duplicates has distinct numbers.
        if let Err(refused) = row_numbers::check_ends(ends, rows) {
            return Ok(Err(refused));
        }
    }
    if let Some(wanted) = wanted {
        let wanted = wanted.start..wanted.end.min(all);
        if wanted.is_empty() {
            return reason(format!("it has {all} rows, and none from {JOINID} {} on", wanted.start));
        }
        subarray = selected(&*subarray, &format!("{JOINID}={}..{}", wanted.start, wanted.end - 1))?;
        rows = wanted.end - wanted.start;
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
    Ok(Ok(Frame { group: frame.group()?, all }))
}

/// Returns the attribute of this name, if it can name rows.
fn position(schema: &ArraySchema, name: &str) -> Option<usize> {
    let number = schema.attributes.iter().position(|attribute| attribute.name == name)?;
    let field = describe_field(FieldId::Attribute(number), schema, name);
    (anndata::check(&field).is_ok() && schema.attributes[number].enumeration.is_none()).then_some(number)
}

fn index_name(metadata: &Metadata) -> Option<String> {
    json::parse::<Option<String>>(&meta::text_value(metadata, INDEX_KEY)?, cancellation::check).ok()?
}

fn number_at(numbers: &Arc<dyn Content>, row: u64) -> Result<i64> {
    let mut bytes = [0; 8];
    numbers.read_at(row.saturating_mul(8), &mut bytes)?;
    Ok(i64::from_le_bytes(bytes))
}

/// Returns a field of a data frame with `rows` rows.
///
/// # Errors
/// Fails if enumerations cannot be read.
pub fn frame_column(subarray: &Arc<dyn Subarray>, id: FieldId, rows: u64) -> Result<FrameColumn> {
    let array = subarray.array();
    let schema = array.schema();
    let mut field = match id {
        FieldId::Attribute(number) => describe_field(id, schema, &schema.attributes[number].name),
        FieldId::Dimension(number) => describe_field(id, schema, &schema.dimension_name(number)),
    };
    if let FieldId::Attribute(number) = id
        && field.values_per_cell == Some(1)
    {
        field.labels = enums::labels(array, number)?;
    }
    let validity = field.nullable.then(|| subarray.validity(id)).transpose()?;
    let (subarray, described) = (subarray.clone(), field.clone());
    let cells = Arc::new(BoxedRows::new(field, rows, move || column(&*subarray, id, described.clone())));
    Ok(FrameColumn { cells, validity })
}

/// Returns the part of a subarray that a selection by coordinates selects.
fn selected(of: &dyn Subarray, selection: &str) -> Result<Arc<dyn Subarray>> {
    of.select(selection, Addressing::Coordinate).map_err(|error| error.into_error(selection))
}

/// An axis of a matrix.
#[derive(Debug, Clone, Default)]
pub struct MatrixAxis {
    /// The required number of rows or columns, if known.
    pub length: Option<u64>,
    /// The selected rows or columns; `None` selects all.
    pub cut: Option<Range<u64>>,
}

/// The rows and the columns.
pub type MatrixAxes<'a> = [&'a MatrixAxis; 2];

/// Returns the selection of the requested part of a matrix; `None` for the whole matrix.
fn selection_of(axes: MatrixAxes<'_>) -> Option<String> {
    let parts = axes.iter().zip(COORDINATES);
    let part = |(axis, name): (&&MatrixAxis, &str)| {
        let cut = axis.cut.as_ref()?;
        Some(format!("{name}={}..{}", cut.start, cut.end.checked_sub(1)?))
    };
    let parts: Vec<String> = parts.filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// Returns the matrix of a sparse array, or the reason why there is none. It is compressed by columns if its cells are
/// stored in column order, otherwise by rows; a part is compressed in the same way. Reads no cell.
///
/// # Errors
/// Fails if metadata, or data that determine which cells are rows, cannot be read.
pub fn sparse_matrix(array: &Arc<OpenedArray>, axes: MatrixAxes<'_>) -> Result<FormatResult<CompressedMatrix>> {
    let schema = array.schema();
    if schema.allows_duplicates {
        return reason("it may have duplicate cells");
    }
    if schema.dimensions.iter().any(|dimension| dimension.datatype != Datatype::Int64) {
        return reason("its coordinates are not INT64");
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
        shape[axis] = axes[axis].length.unwrap_or(domain.lengths[axis]);
        let Some(range) = &dimension.domain else { return reason("it has no domain") };
        let written = written_length(array, axis, range)?;
        if written > shape[axis] {
            let (name, least) = (COORDINATES[axis], shape[axis]);
            return reason(format!("it has cells up to {name} {}, of {least} that are required", written - 1));
        }
    }
    if let Some(selection) = selection_of(axes) {
        return part_of_matrix(array, axes, shape, &selection, (id, field)).map(Ok);
    }
    let stored = SparseSubarray::new(array.clone(), false);
    if stored.is_column_major()? {
        let starts = starts_of(array, coordinates_of(&stored, 1)?, shape[1]);
        let (minor, values) = (coordinates_of(&stored, 0)?, column(&stored, id, field)?);
        return Ok(Ok(CompressedMatrix {
            compressed: Compressed::Columns,
            shape,
            starts,
            minor,
            values,
            banded: None,
        }));
    }
    let by_row = SparseSubarray::new(array.clone(), true);
    let (rows, columns) = (coordinates_of(&by_row, 0)?, coordinates_of(&by_row, 1)?);
    let values = column(&by_row, id, field.clone())?;
    let starts = starts_of(array, rows, shape[0]);
    let (compressed, minor) = (Compressed::Rows, columns);
    let sorted = CompressedMatrix { compressed, shape, starts, minor, values, banded: None };
    match stored.band_of_rows()? {
        Some(extent) => in_row_order(array, stored, extent, sorted, (id, field)).map(Ok),
        None if stored.sorted_by()? == [0, 1] => {
            let extent = rows_of_a_band(shape[0], sorted.values.cells());
            let banded = banded_matrix(array, stored, extent, shape[0], (id, field))?;
            Ok(Ok(CompressedMatrix { banded, ..sorted }))
        }
        None => Ok(Ok(sorted)),
    }
}

/// Returns the number of rows that are read together of a matrix that is stored row by row. There are fewer bands than
/// rows, but enough for all cores.
fn rows_of_a_band(rows: u64, cells: u64) -> u64 {
    let cells_of_a_row = cells / rows.max(1);
    (2 * CELLS_OF_A_PART / cells_of_a_row.max(1)).max(256)
}

/// Returns a matrix whose cells are put in row order without sorting, band by band. `sorted` is the same matrix: it is
/// returned if bands would take too much memory, and provides the cells of bands that are too scattered.
fn in_row_order(
    array: &Arc<OpenedArray>,
    stored: SparseSubarray,
    extent: u64,
    sorted: CompressedMatrix,
    value: (FieldId, Field),
) -> Result<CompressedMatrix> {
    let banded = banded_matrix(array, stored, extent, sorted.shape[0], value)?;
    let Some(banded) = banded else { return Ok(sorted) };
    let in_rows = |of: &Arc<dyn Content>, sorted: Column, are_columns: bool| {
        let size = sorted.field.datatype.size();
        let values = InRowOrder::new(banded.bands.clone(), of.clone(), size, are_columns, sorted.values);
        Column { values: Arc::new(values), ..sorted }
    };
    let minor = in_rows(&banded.columns, sorted.minor, true);
    let values = in_rows(&banded.values, sorted.values, false);
    let starts = banded.bands.starts().clone();
    Ok(CompressedMatrix { starts, minor, values, banded: Some(banded), ..sorted })
}

/// Returns the cells of a matrix in bands of `extent` rows, for passes over whole rows; `None` if bands would take too
/// much memory.
fn banded_matrix(
    array: &Arc<OpenedArray>,
    stored: SparseSubarray,
    extent: u64,
    rows: u64,
    (id, field): (FieldId, Field),
) -> Result<Option<BandedMatrix>> {
    let budget = array.context().budget();
    let BandedCells { cells, counted, order, cuts } = banded_cells(array, stored, extent, rows)?;
    let row_of_cells = coordinates_of(&cells, 0)?;
    // The runs of cells in another order are of no use.
    let (counted, most_runs) = match counted {
        Some(counted) => (coordinates_of(&counted, 0)?.values, 0),
        None => (row_of_cells.values.clone(), budget.bands()),
    };
    let starts = RowStarts::new(counted, order, rows, budget.matrix_starts(), Some(array.context().clone()));
    let Some(starts) = starts else { return Ok(None) };
    let starts = Arc::new(starts.cut_at(cuts.clone(), most_runs));
    let limits = BandLimits {
        band: budget.band(),
        all: budget.bands(),
        tiles: budget.band_tiles() as u64,
        tile_cells: array.schema().capacity,
    };
    let Some(bands) = RowBands::new(row_of_cells.values, starts, extent, limits) else { return Ok(None) };
    let (columns, values) = (coordinates_of(&cells, 1)?.values, column(&cells, id, field)?);
    let value_size = values.field.datatype.size();
    Ok(Some(BandedMatrix { bands, columns, values: values.values, value_size, cuts }))
}

/// The cells of a matrix in which each band of rows is found.
struct BandedCells {
    cells: SparseSubarray,
    /// The same cells in another order, from which the starts of rows are counted instead.
    counted: Option<SparseSubarray>,
    order: CellOrder,
    /// The cells at which a pass over them is divided into parts.
    cuts: Cuts,
}

/// Returns the cells in which bands of `extent` rows of a matrix are found: fragment by fragment, without a merge, if
/// their places take little memory and few requests; otherwise those of `stored`.
fn banded_cells(array: &OpenedArray, stored: SparseSubarray, extent: u64, rows: u64) -> Result<BandedCells> {
    let unsorted =
        |cells, counted| BandedCells { cells, counted, order: CellOrder::Any, cuts: cuts_of(array, Vec::new()) };
    let Some((unmerged, starts)) = stored.unmerged()? else { return Ok(unsorted(stored, None)) };
    if starts.len() <= 1 {
        return Ok(unsorted(unmerged, None));
    }
    let stretches = stored.bands_of_fragments()?.unwrap_or(u64::MAX);
    // Together with where rows begin.
    let memory = stretches.saturating_mul(Sections::STRETCH_BYTES as u64).saturating_add(rows.saturating_mul(8));
    // A merge requests the cells of all fragments at once.
    let is_slow =
        array.is_remote() && stretches > rows.div_ceil(extent.max(1)).saturating_mul(REMOTE_FRAGMENTS_OF_A_BAND);
    let cuts = cuts_of(array, starts.clone());
    let sections = Sections::new(extent, starts).filter(|_| memory <= array.context().budget().matrix_starts() as u64);
    Ok(match sections.filter(|_| !is_slow) {
        Some(sections) => BandedCells { cells: unmerged, counted: None, order: CellOrder::InSections(sections), cuts },
        None => unsorted(stored, Some(unmerged)),
    })
}

/// Returns the cells at which a pass over an array's stored cells is divided; its fragments begin at `firsts`.
fn cuts_of(array: &OpenedArray, firsts: Vec<u64>) -> Cuts {
    // Each part of a remote array should be worth its request.
    let most = if array.is_remote() { CELLS_OF_A_REMOTE_PART } else { CELLS_OF_A_PART };
    Cuts::new(firsts, array.schema().capacity, most)
}

/// Returns the coordinates of a matrix's cells along an axis.
fn coordinates_of(cells: &dyn Subarray, axis: usize) -> Result<Column> {
    let id = FieldId::Dimension(axis);
    column(cells, id, describe_field(id, cells.array().schema(), COORDINATES[axis]))
}

/// Returns the index of the first cell of each row, or of each column, of a matrix whose cells are sorted by
/// `coordinates`. If the result is saved for later mounts, and fits in memory, all of it is computed when it is first
/// needed.
fn starts_of(array: &Arc<OpenedArray>, coordinates: Column, length: u64) -> Arc<dyn Content> {
    let context = array.context();
    let most = if context.saved.is_worth(coordinates.cells()) { context.budget().matrix_starts() } else { 0 };
    let rows = coordinates.values.clone();
    match RowStarts::new(rows, CellOrder::Sorted, length, most, Some(context.clone())) {
        Some(starts) => Arc::new(starts.cut_at(cuts_of(array, Vec::new()), 0)),
        None => anndata::starts_of(coordinates.values, length),
    }
}

/// Returns some rows and columns of a matrix of this shape, numbered from 0.
fn part_of_matrix(
    array: &Arc<OpenedArray>,
    axes: MatrixAxes<'_>,
    mut shape: [u64; 2],
    selection: &str,
    (id, field): (FieldId, Field),
) -> Result<CompressedMatrix> {
    let part = selected(&SparseSubarray::new(array.clone(), true), selection)?;
    let coordinates = |axis: usize| -> Result<Column> {
        let stored = coordinates_of(&*part, axis)?;
        let first = axes[axis].cut.as_ref().map_or(0, |cut| cut.start);
        let from_zero = move |coordinate: i64| coordinate.checked_sub_unsigned(first).map(i64::to_le_bytes);
        let named = ConvertedColumn::new(&stored.field.name);
        Ok(Column {
            values: Arc::new(Converted::integers(stored.values, "before the first coordinate", named, from_zero)),
            ..stored
        })
    };
    for (length, axis) in shape.iter_mut().zip(axes) {
        if let Some(cut) = &axis.cut {
            *length = cut.end.saturating_sub(cut.start);
        }
    }
    let starts = anndata::starts_of(coordinates(0)?.values, shape[0]);
    let (minor, values) = (coordinates(1)?, column(&*part, id, field)?);
    Ok(CompressedMatrix { compressed: Compressed::Rows, shape, starts, minor, values, banded: None })
}

/// Returns the numbers of rows and columns of a SOMA sparse matrix; `None` for other arrays.
///
/// # Errors
/// As for `matrix_domain`.
pub fn matrix_lengths(array: &OpenedArray) -> Result<Option<[u64; 2]>> {
    match Element::of(array.schema()) {
        Some(Element::SparseMatrix) => matrix_domain(array).map(|domain| Some(domain.lengths)),
        _ => Ok(None),
    }
}

/// Returns the values of a dense array, or the reason why there are none. If `axes` require lengths, it is a matrix.
///
/// # Errors
/// Fails if its shape cannot be determined.
pub fn dense_array(array: &Arc<OpenedArray>, axes: MatrixAxes<'_>) -> Result<FormatResult<ZarrNode>> {
    let lengths = axes.map(|axis| axis.length);
    let (id, field) = match value_field(array.schema()) {
        Ok(value) => value,
        Err(reason) => return Ok(Err(reason)),
    };
    let dense = Arc::new(DenseArray::new(array.clone())?);
    let (selection, _) = dense.default_selection(Extent::Domain)?;
    let mut subarray: Arc<dyn Subarray> = Arc::new(DenseSubarray::new(dense, selection));
    let shape = subarray.shape()?;
    if !lengths.iter().zip(&shape).all(|(wanted, own)| wanted.is_none_or(|wanted| wanted == *own)) {
        let text = |lengths: Vec<String>| lengths.join(" x ");
        let own = text(shape.iter().map(u64::to_string).collect());
        let wanted = text(lengths.iter().map(|one| one.map_or("any".to_owned(), |one| one.to_string())).collect());
        return reason(format!("it has {own} cells, where {wanted} are required"));
    }
    if let Some(selection) = selection_of(axes) {
        subarray = selected(&*subarray, &selection)?;
    }
    let values: Arc<dyn Boxes> = Arc::new(DenseBoxes::new(subarray, id, field)?);
    Ok(anndata::dense(&values))
}

/// Returns the attribute of a matrix's values, if they are numbers, one per cell.
fn value_field(schema: &ArraySchema) -> FormatResult<(FieldId, Field)> {
    let number = schema.attributes.iter().position(|attribute| attribute.name == VALUE);
    let number = number.ok_or_else(|| Unrepresentable::new(format!("it has no {VALUE}")))?;
    let attribute = &schema.attributes[number];
    if attribute.nullable {
        return Err(Unrepresentable::new("AnnData's matrices have no nulls"));
    }
    let field = describe_field(FieldId::Attribute(number), schema, VALUE);
    if attribute.cell_count != CellValNum::Fixed(1) || field.is_bytes() || field.datatype.time_unit().is_some() {
        return Err(Unrepresentable::new("AnnData's matrices have one number per cell"));
    }
    Ok((FieldId::Attribute(number), field))
}

/// Returns whether a matrix has a value in every cell of its shape, in row-major order.
pub fn is_full(matrix: &CompressedMatrix) -> bool {
    let [rows, columns] = matrix.shape;
    matrix.compressed == Compressed::Rows && rows.checked_mul(columns) == Some(matrix.values.cells())
}
