//! Sparse matrices of TileDB-SOMA: the three arrays of SciPy's compressed rows or columns, whose memory tilefs fills.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use tilefs_export::zarr::anndata::{self, Compressed};
use tilefs_export::{Column, npy};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_threads::{self as threads, PerProcess};
use tilefs_tree::domains::soma::{MatrixAxis, sparse_matrix};

use crate::call;
use crate::numpy_memory::filled;
use crate::opened_array::OpenedArray;

/// Cells that a thread reads at a time.
const CELLS_AT_ONCE: u64 = 1 << 20;

/// A sparse matrix, in each process that reads it.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Matrix {
    array: Arc<OpenedArray>,
    lengths: [Option<u64>; 2],
    matrix: PerProcess<anndata::CompressedMatrix>,
}

impl Matrix {
    pub fn new(py: Python<'_>, array: Arc<OpenedArray>, lengths: [Option<u64>; 2]) -> PyResult<Self> {
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

    /// Reads `indptr`.
    fn indptr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let column = call::run(py, || Ok(self.here()?.indptr()))?;
        let count = column.cells();
        read(py, &column, &[(0, count)])
    }

    /// Reads `indices` of ranges of cells, one after the other: of each, the first cell and the one after the last.
    fn indices<'py>(&self, py: Python<'py>, ranges: Vec<(u64, u64)>) -> PyResult<Bound<'py, PyAny>> {
        read(py, &call::run(py, || Ok(self.here()?.indices()))?, &ranges)
    }

    /// Reads `data` of ranges of cells.
    fn data<'py>(&self, py: Python<'py>, ranges: Vec<(u64, u64)>) -> PyResult<Bound<'py, PyAny>> {
        read(py, &call::run(py, || Ok(self.here()?.values.clone()))?, &ranges)
    }
}

fn matrix_of(array: &OpenedArray, lengths: [Option<u64>; 2]) -> Result<anndata::CompressedMatrix> {
    let array = &array.here()?.array;
    let axes = lengths.map(|length| MatrixAxis { length, cut: None });
    let matrix = sparse_matrix(array, [&axes[0], &axes[1]])?;
    matrix.map_err(|reason| Error::unsupported(format!("no matrix: {reason}"))).in_array(array.path())
}

/// Reads ranges of the cells of a column into a new NumPy array.
fn read<'py>(py: Python<'py>, column: &Column, ranges: &[(u64, u64)]) -> PyResult<Bound<'py, PyAny>> {
    let count = ranges.iter().fold(0u64, |count, (first, end)| count.saturating_add(end.saturating_sub(*first)));
    let size = column.field.datatype.size() as u64;
    filled(py, &[count], &npy::dtype(column.field.datatype), false, |mut bytes| {
        let mut tasks: Vec<(u64, &mut [u8])> = Vec::new();
        for part in ranges.iter().flat_map(|&(first, end)| parts(first..end)) {
            let length = usize::try_from((part.end - part.start).saturating_mul(size)).unwrap_or(usize::MAX);
            let Some((own, rest)) = bytes.split_at_mut_checked(length) else {
                return Err(Error::internal("ranges of more cells than were counted"));
            };
            tasks.push((part.start.saturating_mul(size), own));
            bytes = rest;
        }
        let outcomes = threads::map(tasks.into_iter(), |(offset, own)| column.values.read_at(offset, own));
        outcomes.into_iter().collect()
    })
}

/// Splits a range of cells into those that a thread reads at a time.
fn parts(cells: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let count = cells.end.saturating_sub(cells.start).div_ceil(CELLS_AT_ONCE);
    (0..count).map(move |number| {
        let first = cells.start.saturating_add(number.saturating_mul(CELLS_AT_ONCE));
        first..cells.end.min(first.saturating_add(CELLS_AT_ONCE))
    })
}
