//! A sparse array whose rows lie on a grid, or a part of it, as the cells of a dense array: the axes are the distinct
//! coordinates along its dimensions.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::inputs::Recorder;
use tilefs_export::content::grid::{CoordinateAxis, RowCoordinates, RowGrid, SelectedCells};
use tilefs_export::content::validity::Validity;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::{IndexBox, Selection};
use tilefs_reader::array::sparse::RowCount;
use tilefs_select::Addressing;
use tilefs_select::error::{SelectionError, SelectionErrorKind};

use crate::cells::sparse::SparseSubarray;
use crate::cells::{FieldId, Subarray};

/// Number of cells of a part that formats read at once.
const CELLS_OF_PART: u64 = 1 << 18;

/// The rows of a sparse array as the cells of a grid. Attributes have one value per cell and no nulls; a cell without a
/// row holds the attribute's fill value.
pub struct GridArray {
    rows: Arc<SparseSubarray>,
    grid: Arc<RowGrid>,
}

impl GridArray {
    /// Places the rows of an array, sorted by coordinates, along axes that have all of its coordinates. Reads these.
    ///
    /// # Errors
    /// As for [`RowGrid::new`].
    pub fn new(rows: Arc<SparseSubarray>, axes: Vec<Arc<CoordinateAxis>>) -> Result<Self> {
        let coordinates = (0..axes.len()).map(|dimension| coordinates_of(&rows, dimension));
        let grid = RowGrid::new(coordinates.zip(axes).map(|(one, axis)| Ok((one?, axis))).collect::<Result<_>>()?)?;
        Ok(GridArray { rows, grid: Arc::new(grid) })
    }

    pub fn array(&self) -> &Arc<OpenedArray> {
        self.rows.array()
    }

    fn shape(&self) -> Vec<u64> {
        self.grid.axes().map(|axis| axis.len()).collect()
    }
}

/// Returns the coordinates of rows along a dimension of numbers, dates or times.
///
/// # Errors
/// Fails if required metadata cannot be read.
pub fn coordinates_of(rows: &SparseSubarray, dimension: usize) -> Result<RowCoordinates> {
    let datatype = rows.array().schema().dimensions[dimension].datatype;
    Ok(RowCoordinates { datatype, values: rows.values(FieldId::Dimension(dimension))? })
}

/// The cells at some indexes along each axis of a grid.
pub struct GridSubarray {
    of: Arc<GridArray>,
    shown: Selection,
}

impl GridSubarray {
    /// Creates the part; the selected indexes lie within the grid.
    pub fn new(of: Arc<GridArray>, shown: Selection) -> Self {
        GridSubarray { of, shown }
    }

    fn has_no(what: &str) -> Error {
        Error::internal(format!("the cells of a grid have no {what}"))
    }
}

impl Subarray for GridSubarray {
    fn array(&self) -> &Arc<OpenedArray> {
        self.of.array()
    }

    fn are_rows(&self) -> bool {
        false
    }

    fn shape(&self) -> Result<Vec<u64>> {
        Ok(self.shown.shape())
    }

    fn bounds(&self, dimension: usize) -> Result<Option<(i128, i128)>> {
        self.of.rows.bounds(dimension)
    }

    fn row_count(&self) -> Result<RowCount> {
        Ok(RowCount::Exactly(self.shown.cells()))
    }

    fn record(&self, recorder: &mut Recorder) {
        recorder.add_unknown();
    }

    fn known_shape(&self) -> Option<Vec<u64>> {
        Some(self.shown.shape())
    }

    fn all_written(&self, _attribute: usize) -> Result<Option<bool>> {
        Ok(Some(self.of.grid.is_complete()))
    }

    fn sorted_by(&self) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    fn values(&self, field: FieldId) -> Result<Arc<dyn Content>> {
        let FieldId::Attribute(number) = field else { return Err(Self::has_no("coordinates")) };
        let fill = self.array().schema().attributes[number].fill.clone();
        let width = fill.len();
        let cells = self.of.grid.values(self.of.rows.values(field)?, fill);
        Ok(SelectedCells::within(cells, self.of.shape(), self.shown.clone(), width))
    }

    fn offsets(&self, _field: FieldId) -> Result<Arc<dyn Content>> {
        Err(Self::has_no("values of variable length"))
    }

    fn validity(&self, _field: FieldId) -> Result<Validity> {
        Err(Self::has_no("nulls"))
    }

    /// Returns whole lines, of which about 2^18 cells are read at once.
    fn extents(&self) -> Option<Vec<u64>> {
        let mut room = CELLS_OF_PART;
        let mut extents: Vec<u64> = Vec::new();
        for length in self.of.shape().into_iter().rev() {
            let extent = length.min(room).max(1);
            room /= extent;
            extents.push(extent);
        }
        extents.reverse();
        Some(extents)
    }

    fn part(&self, cells: &IndexBox) -> Result<Arc<dyn Subarray>> {
        Ok(Arc::new(GridSubarray::new(self.of.clone(), self.shown.part(cells)?)))
    }

    fn spaced_part(&self, indexes: &Selection) -> Result<Arc<dyn Subarray>> {
        Ok(Arc::new(GridSubarray::new(self.of.clone(), self.shown.select(indexes)?)))
    }

    fn part_starts(&self, _most: u64) -> Result<Vec<u64>> {
        Err(Self::has_no("parts of rows"))
    }

    fn part_of_rows(&self, _number: usize, _most: u64) -> Result<Arc<dyn Subarray>> {
        Err(Self::has_no("parts of rows"))
    }

    fn select(&self, _selection: &str, _by: Addressing) -> std::result::Result<Arc<dyn Subarray>, SelectionError> {
        let cause = Self::has_no("selections of their own");
        Err(SelectionError {
            kind: SelectionErrorKind::Unread,
            at: 0,
            length: 0,
            message: cause.to_string(),
            valid: None,
            cause: Some(Box::new(cause)),
        })
    }
}
