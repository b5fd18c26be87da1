//! Sparse matrices of TileDB-SOMA: the three arrays of SciPy's compressed rows or columns, whose memory tilefs fills.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::npy;
use tilefs_export::zarr::anndata::{self, Compressed};
use tilefs_threads::PerProcess;
use tilefs_tree::domains::soma::{MatrixAxis, row_numbers, sparse_matrix};

use crate::array_per_process::ArrayPerProcess;
use crate::call;
use crate::numpy_memory::{all_filled, filled};

/// Returns why rows with these numbers, as the bytes of 64-bit integers, are not numbered from 0 on, each once; `None` if
/// they are.
#[pyfunction]
pub fn why_not_numbered(py: Python<'_>, numbers: &[u8]) -> Option<String> {
    let (numbers, _) = numbers.as_chunks::<8>();
    let mut numbers: Vec<i64> = numbers.iter().copied().map(i64::from_ne_bytes).collect();
    py.detach(|| row_numbers::check(&mut numbers)).err().map(|reason| reason.to_string())
}

/// A sparse matrix, in each process that reads it.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Matrix {
    array: Arc<ArrayPerProcess>,
    lengths: [Option<u64>; 2],
    matrix: PerProcess<anndata::CompressedMatrix>,
}

impl Matrix {
    pub fn new(py: Python<'_>, array: Arc<ArrayPerProcess>, lengths: [Option<u64>; 2]) -> PyResult<Self> {
        let matrix = call::run(py, || matrix_of(&array, lengths))?;
        Ok(Matrix { array, lengths, matrix: PerProcess::of(matrix) })
    }

    fn here(&self) -> Result<&anndata::CompressedMatrix> {
        self.matrix.get_or_make(|_| matrix_of(&self.array, self.lengths))
    }
}

#[pymethods]
impl Matrix {
    /// Returns whether rows are compressed, instead of columns; and the numbers of rows, columns and cells.
    fn outline(&self, py: Python<'_>) -> PyResult<(bool, [u64; 2], u64)> {
        call::run_short(py, || {
            let matrix = self.here()?;
            Ok((matrix.compressed == Compressed::Rows, matrix.shape, matrix.values.cells()))
        })
    }

    /// Reads the values of all cells, row by row, if no cell of the shape is missing; otherwise returns `None`. No cell may
    /// be stored twice.
    fn full<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let matrix = call::run_short(py, || self.here())?;
        if !matrix.is_full() {
            return Ok(None);
        }
        let dtype = npy::dtype(matrix.values.field.datatype);
        filled(py, &matrix.shape, &dtype, false, |bytes| matrix.read_full(bytes)).map(Some)
    }

    /// Reads `indptr`.
    fn indptr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let column = call::run(py, || Ok(self.here()?.whole_indptr()))?;
        filled(py, &[column.cells()], &npy::dtype(column.field.datatype), false, |bytes| {
            column.values.read_at(0, bytes)
        })
    }

    /// Reads `data` and `indices` of ranges of cells, one after the other: of each, the first cell and the one after the
    /// last. Ranges have whole rows, or columns if these are compressed.
    fn cells<'py>(&self, py: Python<'py>, ranges: Vec<(u64, u64)>) -> PyResult<[Bound<'py, PyAny>; 2]> {
        let matrix = call::run_short(py, || self.here())?;
        let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(first, end)| first..end).collect();
        let length = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let shape = [ranges.iter().fold(0u64, |count, range| count.saturating_add(length(range)))];
        let kinds = [matrix.values.field.datatype, matrix.indices().field.datatype].map(npy::dtype);
        let arrays = [(&shape[..], &*kinds[0]), (&shape[..], &*kinds[1])];
        all_filled(py, arrays, false, |[data, indices]| matrix.read(&ranges, indices, data))
    }
}

fn matrix_of(array: &ArrayPerProcess, lengths: [Option<u64>; 2]) -> Result<anndata::CompressedMatrix> {
    let array = &array.here()?.array;
    let axes = lengths.map(|length| MatrixAxis { length, cut: None });
    let matrix = sparse_matrix(array, [&axes[0], &axes[1]])?;
    matrix.map_err(|reason| Error::unsupported(format!("no matrix: {reason}"))).in_array(array.path())
}
