//! Arrays: their schema, boxes of dense ones as NumPy arrays, and rows.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_export::npy;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_format::schema::{Attribute, CellValNum};
use tilefs_format::text;
use tilefs_reader::array::FieldFile;
use tilefs_reader::array::dense::DenseVarColumn;
use tilefs_tree::array::array_folder;
use tilefs_tree::cells::MAX_PART_ROWS;
use tilefs_tree::views::arrow::ArrowValues;
use tilefs_vfs::{Folder, Node};

use crate::array_per_process::{ArrayPerProcess, Opened, StepRanges};
use crate::call;
use crate::context::ProcessContext;
use crate::matrix::Matrix;
use crate::metadata::{self, PyMetadataValue};
use crate::numpy_memory::filled;
use crate::rows::{RowQuery, Rows};

/// An array at one point in time.
#[pyclass(frozen, name = "Array", module = "tilefs._tilefs")]
pub struct PythonArray(Arc<ArrayPerProcess>);

/// Name, datatype, NumPy's type of one value and of a cell (`None` if cells vary in size), values per cell (`None` if
/// they vary), whether it is nullable, and the name of its enumeration.
type AttributeOutline = (String, &'static str, String, Option<String>, Option<u32>, bool, Option<String>);

/// Name, datatype, NumPy's type of one value (`None` for text), and the ends of the domain (`None` for text).
type DimensionOutline<'py> = (String, &'static str, Option<String>, Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>);

/// Whether labels have an order, NumPy's type of one (`None` for text), and the labels, as text or bytes.
type LabelList<'py> = (bool, Option<String>, Vec<Bound<'py, PyAny>>);

/// Name, first and last time in milliseconds since 1970, format version, whether it is dense, number of cells, lowest
/// and highest coordinate along each dimension (none for a fragment without cells), and stored bytes.
type FragmentOutline<'py> = (String, (u64, u64), u32, bool, u64, Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>, u64);

impl PythonArray {
    pub fn new(array: Arc<tilefs_reader::OpenedArray>, context: Arc<ProcessContext>) -> Self {
        PythonArray(Arc::new(ArrayPerProcess::new(array, context)))
    }

    /// Runs work that may take long with the array of this process.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Opened) -> Result<T> + Send) -> PyResult<T> {
        call::run(py, || work(self.0.here()?))
    }

    /// Runs work that takes a moment with the array of this process.
    fn run_short<'a, T: Send>(
        &'a self,
        py: Python<'_>,
        work: impl FnOnce(&'a Opened) -> Result<T> + Send,
    ) -> PyResult<T> {
        call::run_short(py, || work(self.0.here()?))
    }

    /// Makes a column of a dense array. This takes long only if the fragments are yet to be examined, or are remote.
    fn column<T: Send>(&self, py: Python<'_>, make: impl FnOnce(&Opened) -> Result<T> + Send) -> PyResult<T> {
        let is_short = self.run_short(py, |here| Ok(here.view.get().is_some() && !here.array.is_remote()))?;
        call::run_unless(py, is_short, || make(self.0.here()?))
    }
}

#[pymethods]
impl PythonArray {
    fn uri(&self, py: Python<'_>) -> PyResult<String> {
        self.run_short(py, |here| Ok(here.array.path().to_string()))
    }

    fn is_sparse(&self, py: Python<'_>) -> PyResult<bool> {
        self.run_short(py, |here| Ok(here.array.schema().is_sparse()))
    }

    /// Returns the time whose state is read, in milliseconds since 1970.
    fn time(&self, py: Python<'_>) -> PyResult<u64> {
        self.run_short(py, |here| Ok(here.array.window().end))
    }

    fn attributes(&self, py: Python<'_>) -> PyResult<Vec<AttributeOutline>> {
        let outline = |attribute: &Attribute| {
            let values = match attribute.cell_count {
                CellValNum::Fixed(values) => Some(values),
                CellValNum::Variable => None,
            };
            let (datatype, labels) = (attribute.datatype, attribute.enumeration.clone());
            let (one, cell) = (npy::dtype(datatype), values.map(|_| cell_type(attribute).0));
            (attribute.name.clone(), datatype.name(), one, cell, values, attribute.nullable, labels)
        };
        self.run_short(py, |here| Ok(here.array.schema().attributes.iter().map(outline).collect()))
    }

    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Vec<DimensionOutline<'py>>> {
        let schema = self.run_short(py, |here| Ok(here.array.schema()))?;
        let outline = |(number, dimension): (usize, &tilefs_format::schema::Dimension)| {
            let datatype = dimension.datatype;
            let dtype = (datatype.kind() != Kind::Bytes).then(|| npy::dtype(datatype));
            let current = schema.current_domain.as_ref().and_then(|ranges| ranges.get(number));
            let ends = match current.or(dimension.domain.as_ref()).filter(|_| dtype.is_some()) {
                Some(range) => Some((scalar(py, &range.low)?, scalar(py, &range.high)?)),
                None => None,
            };
            Ok((schema.dimension_name(number).into_owned(), datatype.name(), dtype, ends))
        };
        schema.dimensions.iter().enumerate().map(outline).collect()
    }

    /// Returns the text of `schema.json` in the array's folder of the tree.
    fn schema_json(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |here| {
            let folder = array_folder(here.array.clone(), Arc::default())?;
            let Some(Node::File(file)) = folder.lookup("schema.json")? else {
                return Err(Error::internal("an array without schema.json"));
            };
            let content = file.open()?;
            let mut text = Vec::new();
            let length = usize::try_from(content.len()).unwrap_or(usize::MAX);
            memory::resize(&mut text, length, "the schema as text")?;
            content.read_at(0, &mut text)?;
            String::from_utf8(text).map_err(|error| Error::refused("schema.json", error))
        })
    }

    /// Returns the number of cells along each axis of a dense array: of the current domain if one is set, else of the
    /// domain.
    fn shape(&self, py: Python<'_>) -> PyResult<Vec<u128>> {
        self.run(py, |here| {
            let whole = here.whole()?;
            Ok(whole.low.iter().zip(&whole.high).map(|(low, high)| u128::from(high - low) + 1).collect())
        })
    }

    /// Reads the values of an attribute whose cells have a fixed size.
    fn read<'py>(&self, py: Python<'py>, attribute: usize, axes: StepRanges) -> PyResult<Bound<'py, PyAny>> {
        let (column, is_short, (dtype, values)) = self.column(py, |here| {
            let field = here.attribute(attribute)?;
            let column = here.column(attribute, &axes, FieldFile::Data, field.fill.clone())?;
            let is_short = here.is_short(&column)?;
            Ok((column, is_short, cell_type(field)))
        })?;
        let mut shape = column.selection().shape();
        shape.extend(values);
        filled(py, &shape, &dtype, is_short, |bytes| column.read(0, bytes))
    }

    /// Reads which cells of a nullable attribute are null: true for null.
    fn read_nulls<'py>(&self, py: Python<'py>, attribute: usize, axes: StepRanges) -> PyResult<Bound<'py, PyAny>> {
        let (column, is_short) = self.column(py, |here| {
            let field = here.attribute(attribute)?;
            let column = here.column(attribute, &axes, FieldFile::Validity, vec![field.fill_validity])?;
            let is_short = here.is_short(&column)?;
            Ok((column, is_short))
        })?;
        filled(py, &column.selection().shape(), "|b1", is_short, |bytes| {
            column.read(0, &mut *bytes)?;
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte == 0));
            Ok(())
        })
    }

    /// Reads the values of an attribute whose cells vary in size: n + 1 byte offsets, and the bytes of all values.
    fn read_variable<'py>(
        &self,
        py: Python<'py>,
        attribute: usize,
        axes: StepRanges,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (column, total) = self.run(py, |here| {
            let field = here.attribute(attribute)?;
            let column = DenseVarColumn::new(here.view()?, here.selection(&axes)?, attribute, field.fill.clone())?;
            let total = column.byte_count()?;
            Ok((column, total))
        })?;
        let count = column.cells().saturating_add(1);
        let offsets = filled(py, &[count], "<u8", false, |bytes| {
            // A few thousand at a time: the column's offsets are numbers, and these are bytes.
            let mut numbers = vec![0; OFFSETS_AT_ONCE.min(bytes.len() / size_of::<u64>())];
            let mut first = 0;
            for part in bytes.chunks_mut(OFFSETS_AT_ONCE * size_of::<u64>()) {
                let some = numbers.get_mut(..part.len() / size_of::<u64>()).unwrap_or_default();
                column.read_offsets(first, &mut *some)?;
                first += some.len() as u64;
                for (to, from) in part.as_chunks_mut().0.iter_mut().zip(some) {
                    *to = from.to_le_bytes();
                }
            }
            Ok(())
        })?;
        let values = filled(py, &[total], "|u1", false, |bytes| column.read_values(0, bytes))?;
        Ok((offsets, values))
    }

    /// Returns the selected rows of a sparse array, or of a dense array with one dimension.
    #[pyo3(signature = (selection=None, columns=None, by_row=false, as_stored=false))]
    fn rows(
        &self,
        py: Python<'_>,
        selection: Option<String>,
        columns: Option<Vec<String>>,
        by_row: bool,
        as_stored: bool,
    ) -> PyResult<Rows> {
        Rows::new(
            py,
            RowQuery {
                array: self.0.clone(),
                selection,
                columns,
                by_row,
                values: if as_stored { ArrowValues::Stored } else { ArrowValues::Meant },
                within: Vec::new(),
                most: MAX_PART_ROWS,
                parts: None,
            },
        )
    }

    /// Returns the lowest and the highest position along each axis of the cells that were written, counted from the
    /// first cell of the shape; `None` if no cell was written.
    fn non_empty_box(&self, py: Python<'_>) -> PyResult<Option<Vec<(u64, u64)>>> {
        self.run(py, |here| {
            let (whole, written) = (here.whole()?, here.view()?.non_empty_box());
            let Some(written) = written.and_then(|written| written.intersection(&whole)) else { return Ok(None) };
            let ends = written.low.iter().zip(&written.high).zip(&whole.low);
            Ok(Some(ends.map(|((first, last), low)| (first - low, last - low)).collect()))
        })
    }

    /// Returns the labels of an enumeration.
    fn enumeration<'py>(&self, py: Python<'py>, name: &str) -> PyResult<LabelList<'py>> {
        let labels = self.run(py, |here| here.array.enumeration(name))?;
        let datatype = labels.datatype;
        let shown = |label: &[u8]| match text::decode(datatype, label) {
            Some(text) => Ok(text.into_pyobject(py)?.into_any()),
            None => Ok(PyBytes::new(py, label).into_any()),
        };
        let dtype = (datatype.kind() != Kind::Bytes).then(|| npy::dtype(datatype));
        Ok((labels.ordered, dtype, labels.values().map(shown).collect::<PyResult<_>>()?))
    }

    /// Opens the array of a dimension label; returns the array, and the number of the attribute with the label.
    fn open_label(&self, py: Python<'_>, name: &str) -> PyResult<(PythonArray, usize)> {
        let label = self.run(py, |here| {
            let label = here.array.schema().labels.iter().find(|label| label.name == name);
            here.array.label(label.ok_or_else(|| Error::usage("the array has no such dimension label"))?)
        })?;
        Ok((PythonArray::new(label.array, self.0.context.clone()), label.attribute))
    }

    /// Returns the fragments that are read, oldest first.
    fn fragments<'py>(&self, py: Python<'py>) -> PyResult<Vec<FragmentOutline<'py>>> {
        let found = self.run(py, |here| {
            let array = &here.array;
            array.read_outlines();
            let outline = |fragment| {
                let facts = &array.outline(fragment)?.facts;
                let times = array.fragment_times(fragment).map_or((0, 0), |times| (times.t1, times.t2));
                let cells = array.fragment_cells(fragment)?;
                let name = array.fragment_name(fragment).to_owned();
                Ok((name, times, facts.version, facts.dense, cells, facts.non_empty_ranges(), facts.stored_bytes))
            };
            (0..array.fragment_count()).map(outline).collect::<Result<Vec<_>>>()
        })?;
        let shown = found.into_iter().map(|(name, times, version, is_dense, cells, ranges, bytes)| {
            let ranges = ranges.unwrap_or_default();
            let ends = ranges.iter().map(|range| Ok((scalar(py, &range.low)?, scalar(py, &range.high)?)));
            Ok((name, times, version, is_dense, cells, ends.collect::<PyResult<_>>()?, bytes))
        });
        shown.collect()
    }

    /// Returns a matrix of TileDB-SOMA; `lengths` are the required numbers of rows and columns, if known.
    fn matrix(&self, py: Python<'_>, lengths: [Option<u64>; 2]) -> PyResult<Matrix> {
        Matrix::new(py, self.0.clone(), lengths)
    }

    fn metadata_keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(metadata::keys(py, &*self.run(py, |here| here.array.metadata())?))
    }

    fn metadata_value<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<PyMetadataValue<'py>>> {
        metadata::value(py, &self.run(py, |here| here.array.metadata())?, key)
    }
}

/// The number of offsets that are converted at once.
const OFFSETS_AT_ONCE: usize = 1 << 16;

/// Returns NumPy's type of a cell of fixed size, and the length of a further axis if a cell has several numbers.
fn cell_type(field: &Attribute) -> (String, Option<u64>) {
    let (datatype, values) = (field.datatype, field.fill.len() / field.datatype.size());
    match (is_bytes(datatype), values) {
        (true, _) => (format!("|{}{values}", if datatype.is_string() { 'S' } else { 'V' }), None),
        (false, 1) => (npy::dtype(datatype), None),
        (false, _) => (npy::dtype(datatype), Some(values as u64)),
    }
}

fn is_bytes(datatype: Datatype) -> bool {
    datatype.kind() == Kind::Bytes && datatype.size() == 1
}

fn scalar<'py>(py: Python<'py>, value: &Scalar) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Scalar::Signed(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Unsigned(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Float32(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Float64(value) => value.into_pyobject(py)?.into_any(),
        Scalar::Text(text) => PyBytes::new(py, text).into_any(),
    })
}
