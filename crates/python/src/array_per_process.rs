//! An opened array, and what is read of it, in each process.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::schema::Attribute;
use tilefs_reader::array::FieldFile;
use tilefs_reader::array::dense::grid::{GridAxis, PositionBox};
use tilefs_reader::array::dense::{AxisRange, AxisSelection, DenseColumn, DenseView, Selection};
use tilefs_threads::PerProcess;
use tilefs_threads::single_flight::SingleFlight;

use crate::call;
use crate::context::ProcessContext;

/// An array in each process that reads it.
pub struct ArrayPerProcess {
    pub context: Arc<ProcessContext>,
    array: PerProcess<Opened>,
}

/// An array in one process.
pub struct Opened {
    pub array: Arc<tilefs_reader::OpenedArray>,
    pub view: SingleFlight<Arc<DenseView>>,
}

/// For each axis, the selected ranges in order: the first position, the step, and the number of cells.
pub type StepRanges = Vec<Vec<(u64, i64, u64)>>;

impl ArrayPerProcess {
    pub fn new(array: Arc<tilefs_reader::OpenedArray>, context: Arc<ProcessContext>) -> Self {
        ArrayPerProcess { context, array: PerProcess::of(Opened::new(array)) }
    }

    /// Returns the array of this process.
    pub fn here(&self) -> Result<&Opened> {
        self.array.get_or_make(|parents| {
            let parents = parents.ok_or_else(|| Error::internal("an array that no process has opened"))?;
            Ok(Opened::new(Arc::new(parents.array.in_context(self.context.get()?.clone()))))
        })
    }
}

impl Opened {
    fn new(array: Arc<tilefs_reader::OpenedArray>) -> Self {
        Opened { array, view: SingleFlight::new() }
    }

    /// Returns whether reading a column takes only a moment: the array is not remote, and the column's tiles are small
    /// together, even if no tile is decoded yet.
    pub fn is_short(&self, column: &DenseColumn) -> Result<bool> {
        let view = self.view()?;
        let axes = column.selection().axes().iter().zip(&view.grid().axes);
        let cells = axes.fold(1u64, |cells, (selected, axis)| cells.saturating_mul(positions_of_tiles(selected, axis)));
        Ok(!self.array.is_remote() && cells.saturating_mul(column.cell_size() as u64) < call::LONG)
    }

    pub fn view(&self) -> Result<Arc<DenseView>> {
        if self.array.schema().is_sparse() {
            return Err(Error::usage(format!("{} is sparse: read its rows", self.array.path())));
        }
        self.view.get_or_retry(|| Ok(Arc::new(DenseView::new(self.array.clone())?))).cloned()
    }

    /// Returns the box of all cells: the current domain if one is set, else the domain.
    pub fn whole(&self) -> Result<PositionBox> {
        let view = self.view()?;
        match &self.array.schema().current_domain {
            Some(ranges) => view.grid().box_of(ranges).in_field("current domain").in_array(self.array.path()),
            None => Ok(view.grid().domain()),
        }
    }

    pub fn attribute(&self, number: usize) -> Result<&Attribute> {
        self.array.schema().attributes.get(number).ok_or_else(|| Error::usage("the array has no such attribute"))
    }

    pub fn column(&self, attribute: usize, axes: &StepRanges, file: FieldFile, fill: Vec<u8>) -> Result<DenseColumn> {
        DenseColumn::new(self.view()?, self.selection(axes)?, attribute, file, fill)
    }

    /// Converts positions within the shape to positions within the domain.
    pub fn selection(&self, axes: &StepRanges) -> Result<Arc<Selection>> {
        let (whole, view) = (self.whole()?, self.view()?);
        let grid = view.grid();
        if axes.len() != grid.axes.len() {
            return Err(Error::usage(format!("{} indices for {} dimensions", axes.len(), grid.axes.len())));
        }
        let axes = axes.iter().zip(&whole.low).zip(&grid.axes).map(|((ranges, low), axis)| {
            let placed = ranges.iter().map(|&(first, step, count)| {
                let first = low.checked_add(first).ok_or_else(|| Error::usage("an index outside the domain"))?;
                Ok(AxisRange { first, step, count })
            });
            AxisSelection::new(placed.collect::<Result<Vec<_>>>()?, axis.size)
        });
        Ok(Arc::new(Selection::new(axes.collect::<Result<_>>()?)?))
    }
}

/// Returns the most positions along an axis that the tiles of the selected positions have together.
fn positions_of_tiles(selected: &AxisSelection, axis: &GridAxis) -> u64 {
    let tiles_of = |range: &AxisRange| {
        let last = range.count.saturating_sub(1).saturating_mul(range.step.unsigned_abs());
        range.count.min((last / axis.extent.max(1)).saturating_add(2))
    };
    let tiles = selected.ranges().iter().fold(0u64, |tiles, range| tiles.saturating_add(tiles_of(range)));
    tiles.saturating_mul(axis.extent)
}
