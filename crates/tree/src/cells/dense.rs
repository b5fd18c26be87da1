//! A dense array, or a box of it, as files.

use std::collections::HashMap;
use std::ops;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_export::column::ColumnStatistics;
use tilefs_export::content::raw::RawFile;
use tilefs_export::content::validity::Validity;
use tilefs_export::content::var::{VarOffsets, VarValues};
use tilefs_export::parquet::TileRows;
use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{Attribute, DimensionLabel as StoredLabel};
use tilefs_reader::array::dense::{
    AxisCoordinates, AxisSelection, CellStatistics, DenseColumn, DenseVarColumn, DenseView, IndexBox, Selection,
    grid::{Grid, PositionBox},
};
use tilefs_reader::array::origin::{self, CellOrigin, CellRun};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::array::{FieldFile, OpenedArray};
use tilefs_reader::array::{LabelArray, ValueBounds};
use tilefs_select::SelectableLabel;
use tilefs_select::{self as select, Addressing, DimensionBounds};
use tilefs_threads::single_flight::SingleFlight;

use crate::cells::{FieldId, Subarray};

/// Maximum length of a file.
const MAX_FILE: u64 = i64::MAX as u64;

/// The box of cells that the files of a dense array cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extent {
    /// The domain, or the current domain if set.
    #[default]
    Domain,
    /// The smallest box that holds every written cell.
    NonEmpty,
}

/// The box of a dense array that its files cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoveredBox {
    Domain,
    CurrentDomain,
    NonEmpty,
    Selection,
}

/// A dense array whose fragments are read when a cell is first needed.
pub struct DenseArray {
    array: Arc<OpenedArray>,
    grid: Grid,
    view: SingleFlight<Arc<DenseView>>,
    /// The labels by which each dimension can be selected, dimension by dimension; empty for an array from which nobody
    /// selects by labels.
    labels: Vec<Vec<SelectableLabel>>,
}

impl DenseArray {
    /// Creates the array without reading anything new. No dimension can be selected by labels.
    ///
    /// # Errors
    /// Fails if the schema's domain does not form a grid.
    pub fn new(array: Arc<OpenedArray>) -> Result<Self> {
        let grid = Grid::of_schema(array.schema()).in_array(array.path())?;
        Ok(DenseArray { array, grid, view: SingleFlight::new(), labels: Vec::new() })
    }

    /// Lets each dimension be selected by these labels, too.
    pub fn with_labels(self, labels: Vec<Vec<SelectableLabel>>) -> Self {
        DenseArray { labels, ..self }
    }

    pub fn array(&self) -> &Arc<OpenedArray> {
        &self.array
    }

    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the view of the fragments' boxes; reads all footers the first time.
    ///
    /// # Errors
    /// As for [`DenseView::new`].
    pub fn view(&self) -> Result<Arc<DenseView>> {
        self.view.get_or_retry(|| Ok(Arc::new(DenseView::new(self.array.clone())?))).cloned()
    }

    /// Returns the cells that files cover by default: the current domain if set, otherwise the domain; the non-empty
    /// box if requested, or if the domain is too large for a file.
    ///
    /// # Errors
    /// Fails if the non-empty box is needed and a footer cannot be read, or if even that box is too large.
    pub fn default_selection(&self, extent: Extent) -> Result<(Selection, CoveredBox)> {
        let whole = match &self.array.schema().current_domain {
            Some(ranges) => (self.grid.box_of(ranges).in_field("current domain")?, CoveredBox::CurrentDomain),
            None => (self.grid.domain(), CoveredBox::Domain),
        };
        if extent == Extent::Domain
            && let Some(selection) = self.selection_of(&whole.0.low, &whole.0.high)
        {
            return Ok((selection, whole.1));
        }
        let Some(found) = self.view()?.non_empty_box() else {
            let nothing = self.grid.axes.iter().map(|_| AxisSelection::contiguous(0, 0)).collect();
            return Ok((Selection::new(nothing)?, CoveredBox::NonEmpty));
        };
        let cropped = found.intersection(&whole.0).unwrap_or(found);
        let selection = self.selection_of(&cropped.low, &cropped.high).ok_or_else(|| {
            Error::unsupported("its non-empty box is larger than any file; use slices").in_array(self.array.path())
        })?;
        Ok((selection, CoveredBox::NonEmpty))
    }

    /// Returns the bounds of the dimensions, for selections among the cells in `shown`.
    pub fn selectable(&self, shown: &Selection) -> Vec<DimensionBounds> {
        let mut bounds = DimensionBounds::of_schema(self.array.schema());
        for ((bounds, axis), whole) in bounds.iter_mut().zip(shown.axes()).zip(&self.grid.axes) {
            bounds.shown = shown_range(bounds, axis, whole.low);
        }
        for (bounds, labels) in bounds.iter_mut().zip(&self.labels) {
            bounds.labels.clone_from(labels);
        }
        bounds
    }

    /// Returns a box of positions as a selection, if a file of each attribute can hold it.
    fn selection_of(&self, low: &[u64], high: &[u64]) -> Option<Selection> {
        let axes = low.iter().zip(high).map(|(low, high)| AxisSelection::contiguous(*low, high - low + 1)).collect();
        let selection = Selection::new(axes).ok()?;
        let largest = self.array.schema().attributes.iter().map(|one| one.cell_size().unwrap_or(8).max(8)).max();
        selection.cells().checked_add(1)?.checked_mul(largest.unwrap_or(8) as u64).filter(|&size| size <= MAX_FILE)?;
        Some(selection)
    }
}

/// A selection of a dense array.
pub struct DenseSubarray {
    dense: Arc<DenseArray>,
    selection: Arc<Selection>,
    /// Variable-length attributes that were opened; they keep the positions of their values.
    var_columns: Mutex<HashMap<usize, Arc<DenseVarColumn>>>,
}

impl DenseSubarray {
    pub fn new(dense: Arc<DenseArray>, selection: Selection) -> Self {
        DenseSubarray { dense, selection: Arc::new(selection), var_columns: Mutex::default() }
    }

    /// Returns a label's array, and the part of it with the label's values (its only relevant attribute): at the
    /// positions along the labelled dimension that `axis` selects, or at all positions without `axis`.
    ///
    /// # Errors
    /// As for [`OpenedArray::label`].
    pub fn of_label(
        array: &OpenedArray,
        label: &StoredLabel,
        axis: Option<&AxisSelection>,
    ) -> Result<(LabelArray, Self)> {
        let opened = array.label(label)?;
        let dense = Arc::new(DenseArray::new(opened.array.clone())?);
        let selection = match axis {
            Some(axis) => Selection::new(vec![axis.clone()])?,
            None => dense.default_selection(Extent::Domain)?.0,
        };
        Ok((opened, DenseSubarray::new(dense, selection)))
    }

    pub fn dense(&self) -> &Arc<DenseArray> {
        &self.dense
    }

    fn attribute(&self, field: FieldId) -> Result<(usize, &Attribute)> {
        match field {
            FieldId::Attribute(number) => Ok((number, &self.dense.array.schema().attributes[number])),
            FieldId::Dimension(_) => {
                Err(Error::internal("coordinates of a dense array have neither offsets nor nulls"))
            }
        }
    }

    /// Returns the number of rows along the only axis, and the rows per part: whole tiles if all cells are shown.
    fn rows_of_parts(&self, most: u64) -> Result<(u64, u64)> {
        let (shape, extents) = (self.selection.shape(), self.extents().unwrap_or_default());
        let ([rows], [extent]) = (shape.as_slice(), extents.as_slice()) else {
            return Err(Error::internal("rows of an array of several axes"));
        };
        let extent = (*extent).max(1);
        Ok((*rows, (most / extent).max(1).saturating_mul(extent)))
    }

    fn column(&self, attribute: usize, file: FieldFile, fill: Vec<u8>) -> Result<Arc<dyn Content>> {
        let column = DenseColumn::new(self.dense.view()?, self.selection.clone(), attribute, file, fill)?;
        Ok(Arc::new(RawFile(column)))
    }

    fn var_column(&self, attribute: usize, fill: &[u8]) -> Result<Arc<DenseVarColumn>> {
        let columns = || self.var_columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = columns().get(&attribute) {
            return Ok(known.clone());
        }
        let view = self.dense.view()?;
        let column = Arc::new(DenseVarColumn::new(view, self.selection.clone(), attribute, fill.to_owned())?);
        // Another thread may have made one meanwhile, which already has the positions of its values.
        Ok(columns().entry(attribute).or_insert(column).clone())
    }
}

impl Subarray for DenseSubarray {
    fn array(&self) -> &Arc<OpenedArray> {
        &self.dense.array
    }

    fn shape(&self) -> Result<Vec<u64>> {
        Ok(self.selection.shape())
    }

    fn bounds(&self, dimension: usize) -> Result<Option<(i128, i128)>> {
        let low = self.dense.grid.axes[dimension].low;
        let low = match self.dense.array.schema().dimensions[dimension].datatype.kind() {
            Kind::Unsigned => i128::from(low),
            _ => i128::from(low as i64),
        };
        let ends = self.selection.axes()[dimension].ranges().iter().filter(|range| range.count > 0).flat_map(|range| {
            let first = i128::from(range.first);
            [first, first + i128::from(range.step) * (i128::from(range.count) - 1)]
        });
        let (least, greatest) = ends.fold((i128::MAX, i128::MIN), |(least, most), end| (least.min(end), most.max(end)));
        // If there are no coordinates, any bounds will do.
        Ok(Some(if least > greatest { (low, low) } else { (low + least, low + greatest) }))
    }

    fn row_count(&self) -> Result<RowCount> {
        Ok(RowCount::Exactly(self.selection.shape().iter().copied().fold(1, u64::saturating_mul)))
    }

    fn record(&self, recorder: &mut Recorder) {
        let Self { dense, selection, var_columns: _ } = self;
        dense.array.record(recorder);
        recorder.add::<Self>(selection);
    }

    fn known_shape(&self) -> Option<Vec<u64>> {
        Some(self.selection.shape())
    }

    fn selection(&self) -> Option<&Selection> {
        Some(&self.selection)
    }

    fn all_written(&self, attribute: usize) -> Result<Option<bool>> {
        let mut shown = PositionBox { low: Vec::new(), high: Vec::new() };
        for axis in self.selection.axes() {
            let ends = axis.ranges().iter().filter(|range| range.count > 0).flat_map(|range| {
                let last = range.first.wrapping_add_signed(range.step.wrapping_mul(range.count as i64 - 1));
                [range.first, last]
            });
            let (Some(low), Some(high)) = (ends.clone().min(), ends.max()) else { return Ok(Some(true)) };
            shown.low.push(low);
            shown.high.push(high);
        }
        self.dense.view()?.all_written(attribute, &shown)
    }

    /// Supports one dimension with consecutive cells.
    fn tile_rows(&self) -> Result<Option<Arc<dyn TileRows>>> {
        let ([axis], [whole]) = (self.selection.axes(), &*self.dense.grid.axes) else { return Ok(None) };
        Ok(match axis.ranges() {
            [range] if range.step == 1 && whole.extent > 0 => {
                Some(Arc::new(AxisTiles { first: range.first, extent: whole.extent }))
            }
            _ => None,
        })
    }

    fn statistics(&self, field: FieldId) -> Result<Option<Arc<dyn ColumnStatistics>>> {
        let axis = match field {
            FieldId::Dimension(axis) => axis,
            FieldId::Attribute(number) => {
                let statistics = CellStatistics::new(self.dense.view()?, self.selection.clone(), number)?;
                return Ok(statistics.map(|statistics| Arc::new(statistics) as Arc<dyn ColumnStatistics>));
            }
        };
        let size = self.dense.array.schema().dimensions[axis].datatype.size() as u64;
        Ok(match self.selection.axes()[axis].ranges() {
            [range] => Some(Arc::new(RunOfCoordinates { values: self.values(field)?, size, step: range.step })),
            _ => None,
        })
    }

    fn sorted_by(&self) -> Result<Vec<usize>> {
        Ok(match self.selection.axes() {
            [axis] if axis.ranges().len() <= 1 && axis.ranges().iter().all(|range| range.step > 0) => vec![0],
            _ => Vec::new(),
        })
    }

    fn values(&self, field: FieldId) -> Result<Arc<dyn Content>> {
        if let FieldId::Dimension(axis) = field {
            let datatype = self.dense.array.schema().dimensions[axis].datatype;
            let selection = self.selection.axes()[axis].clone();
            let low = self.dense.grid.axes[axis].low;
            return Ok(Arc::new(RawFile(AxisCoordinates::new(selection, low, datatype.size()))));
        }
        let (number, attribute) = self.attribute(field)?;
        if attribute.is_variable() {
            return Ok(Arc::new(VarValues::new(self.var_column(number, &attribute.fill)?)?));
        }
        self.column(number, FieldFile::Data, attribute.fill.clone())
    }

    fn offsets(&self, field: FieldId) -> Result<Arc<dyn Content>> {
        let (number, attribute) = self.attribute(field)?;
        Ok(Arc::new(RawFile(VarOffsets::new(self.var_column(number, &attribute.fill)?)?)))
    }

    fn cell_origin(&self, attribute: usize, cell: u64) -> Result<Option<CellOrigin>> {
        origin::origin_of_cell(&self.dense.view()?, &self.selection, attribute, cell)
    }

    fn runs(&self, attribute: usize, most: usize) -> Result<Vec<CellRun>> {
        origin::runs_of_cells(&self.dense.view()?, &self.selection, attribute, 0, most)
    }

    fn validity(&self, field: FieldId) -> Result<Validity> {
        let (number, attribute) = self.attribute(field)?;
        Ok(self.column(number, FieldFile::Validity, vec![attribute.fill_validity])?.into())
    }

    fn column_major_values(&self, field: FieldId) -> Result<Option<Arc<dyn Content>>> {
        let (number, attribute) = self.attribute(field)?;
        if attribute.is_variable() {
            return Ok(None);
        }
        // Reversing the axes makes column-major order row-major.
        let view = Arc::new(self.dense.view()?.reversed());
        let selection = Selection::new(self.selection.axes().iter().rev().cloned().collect())?;
        let fill = attribute.fill.clone();
        let column = DenseColumn::new(view, Arc::new(selection), number, FieldFile::Data, fill)?;
        Ok(Some(Arc::new(RawFile(column))))
    }

    fn extents(&self) -> Option<Vec<u64>> {
        Some(self.dense.grid.axes.iter().map(|axis| axis.extent.max(1)).collect())
    }

    fn part(&self, cells: &IndexBox) -> Result<Arc<dyn Subarray>> {
        Ok(Arc::new(DenseSubarray::new(self.dense.clone(), self.selection.part(cells)?)))
    }

    fn spaced_part(&self, indexes: &Selection) -> Result<Arc<dyn Subarray>> {
        Ok(Arc::new(DenseSubarray::new(self.dense.clone(), self.selection.select(indexes)?)))
    }

    fn part_starts(&self, most: u64) -> Result<Vec<u64>> {
        let (rows, step) = self.rows_of_parts(most)?;
        Ok((0..rows.div_ceil(step)).map(|number| number * step).collect())
    }

    fn part_of_rows(&self, number: usize, most: u64) -> Result<Arc<dyn Subarray>> {
        let (rows, step) = self.rows_of_parts(most)?;
        let first = (number as u64).checked_mul(step).filter(|first| *first < rows);
        let first = first.ok_or_else(|| Error::internal("no such part"))?;
        self.part(&IndexBox { first: vec![first], count: vec![step.min(rows - first)] })
    }

    fn select(&self, selection: &str, by: Addressing) -> select::error::Result<Arc<dyn Subarray>> {
        let selection = select::dense(selection, by, &self.dense.selectable(&self.selection))?;
        Ok(Arc::new(DenseSubarray::new(self.dense.clone(), selection)))
    }
}

/// Tiles of consecutive cells along one dimension, starting at a position.
struct AxisTiles {
    first: u64,
    extent: u64,
}

impl TileRows for AxisTiles {
    fn last_start(&self, rows: ops::Range<u64>) -> Option<u64> {
        let last = self.first.checked_add(rows.end.checked_sub(1)?)?;
        let tile = last - last % self.extent;
        tile.checked_sub(self.first).filter(|start| rows.contains(start))
    }
}

/// Coordinates that change by a constant step.
struct RunOfCoordinates {
    values: Arc<dyn Content>,
    size: u64,
    step: i64,
}

impl ColumnStatistics for RunOfCoordinates {
    fn bounds(&self, rows: ops::Range<u64>) -> Result<Option<ValueBounds>> {
        let Some(last) = rows.end.checked_sub(1).filter(|&last| last >= rows.start) else { return Ok(None) };
        let (mut least, mut greatest) = (vec![0; self.size as usize], vec![0; self.size as usize]);
        self.values.read_at(rows.start * self.size, &mut least)?;
        self.values.read_at(last * self.size, &mut greatest)?;
        if self.step < 0 {
            std::mem::swap(&mut least, &mut greatest);
        }
        Ok(Some(ValueBounds { least, greatest, is_least_exact: true, is_greatest_exact: true }))
    }

    fn nulls(&self, _rows: ops::Range<u64>) -> Result<Option<u64>> {
        Ok(Some(0))
    }
}

/// Returns the range of coordinates of a run of positions; `None` if it is empty.
fn shown_range(bounds: &DimensionBounds, axis: &AxisSelection, low: u64) -> Option<Range> {
    let run = axis.ranges().first().filter(|run| run.count > 0)?;
    let coordinate = |position: u64| match bounds.datatype.kind() {
        Kind::Unsigned => Scalar::Unsigned(low.wrapping_add(position)),
        _ => Scalar::Signed(low.wrapping_add(position) as i64),
    };
    Some(Range { low: coordinate(run.first), high: coordinate(run.first + (run.count - 1)) })
}
