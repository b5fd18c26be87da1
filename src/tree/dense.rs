//! A dense array, or a box cut out of it, as files.

use std::sync::{Arc, OnceLock};

use crate::array::dense::{AxisCoordinates, AxisSelection, DenseColumn, DenseView, Selection, grid::Grid};
use crate::array::{Array, FieldFile};
use crate::error::{Error, Locate, Result};
use crate::export::raw::RawFile;
use crate::export::{Column, Content, Field};
use crate::format::schema::{Attribute, CellValNum};

use super::options::Extent;

/// No file is longer than this.
const MOST_FILE: u64 = i64::MAX as u64;

/// A dense array whose fragments are looked at when a cell is first wanted.
pub struct DenseArray {
    array: Arc<Array>,
    grid: Grid,
    view: OnceLock<Arc<DenseView>>,
}

/// Which box the files of an array cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covered {
    Domain,
    CurrentDomain,
    NonEmpty,
    /// A selection made by the user.
    Selected,
}

impl DenseArray {
    /// Reads nothing that is not read already.
    ///
    /// # Errors
    /// When the schema's domain makes no grid.
    pub fn new(array: Arc<Array>) -> Result<Self> {
        let grid = Grid::of_schema(array.schema()).in_array(array.path())?;
        Ok(DenseArray { array, grid, view: OnceLock::new() })
    }

    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The fragments' boxes; reads all footers the first time.
    ///
    /// # Errors
    /// As [`DenseView::new`].
    pub fn view(&self) -> Result<Arc<DenseView>> {
        if let Some(view) = self.view.get() {
            return Ok(view.clone());
        }
        let view = Arc::new(DenseView::new(self.array.clone())?);
        Ok(self.view.get_or_init(|| view).clone())
    }

    /// The cells that files cover when nobody asks for others: the current domain where one is set, else
    /// the domain; the non-empty box where that is wanted, or where the domain is no size for a file.
    ///
    /// # Errors
    /// When the non-empty box is needed and a footer cannot be read, or when even that is too large.
    pub fn default_selection(&self, extent: Extent) -> Result<(Selection, Covered)> {
        let whole = match &self.array.schema().current_domain {
            Some(ranges) => (self.grid.box_of(ranges).in_field("current domain")?, Covered::CurrentDomain),
            None => (self.grid.domain(), Covered::Domain),
        };
        if extent == Extent::Domain
            && let Some(selection) = self.selection_of(&whole.0.low, &whole.0.high)
        {
            return Ok((selection, whole.1));
        }
        let Some(found) = self.view()?.non_empty_box() else {
            let nothing = self.grid.axes.iter().map(|_| AxisSelection::contiguous(0, 0)).collect();
            return Ok((Selection::new(nothing)?, Covered::NonEmpty));
        };
        let cropped = found.intersection(&whole.0).unwrap_or(found);
        let selection = self.selection_of(&cropped.low, &cropped.high).ok_or_else(|| {
            Error::unsupported("its non-empty box is larger than any file; use slices").in_array(self.array.path())
        })?;
        Ok((selection, Covered::NonEmpty))
    }

    /// A box of positions, if a file of each attribute can hold it.
    fn selection_of(&self, low: &[u64], high: &[u64]) -> Option<Selection> {
        let axes = low.iter().zip(high).map(|(low, high)| AxisSelection::contiguous(*low, high - low + 1)).collect();
        let selection = Selection::new(axes).ok()?;
        let largest = self.array.schema().attributes.iter().map(|one| one.cell_size().unwrap_or(8).max(8)).max();
        selection.cells().checked_add(1)?.checked_mul(largest.unwrap_or(8) as u64).filter(|&size| size <= MOST_FILE)?;
        Some(selection)
    }
}

/// A dense array seen through a selection.
#[derive(Clone)]
pub struct DenseShown {
    pub dense: Arc<DenseArray>,
    pub selection: Arc<Selection>,
    pub covered: Covered,
}

impl DenseShown {
    fn attribute(&self, number: usize) -> &Attribute {
        &self.dense.array.schema().attributes[number]
    }

    /// The raw values of a fixed-size attribute.
    ///
    /// # Errors
    /// When a fragment's metadata cannot be read.
    pub fn values(&self, attribute: usize) -> Result<Arc<dyn Content>> {
        let fill = self.attribute(attribute).fill.clone();
        Ok(Arc::new(RawFile(self.column(attribute, FieldFile::Data, fill)?)))
    }

    /// The validity bytes of a nullable attribute.
    ///
    /// # Errors
    /// When a fragment's metadata cannot be read.
    pub fn validity(&self, attribute: usize) -> Result<Arc<dyn Content>> {
        let fill = vec![self.attribute(attribute).fill_validity];
        Ok(Arc::new(RawFile(self.column(attribute, FieldFile::Validity, fill)?)))
    }

    fn column(&self, attribute: usize, file: FieldFile, fill: Vec<u8>) -> Result<DenseColumn> {
        DenseColumn::new(self.dense.view()?, self.selection.clone(), attribute, file, fill)
    }

    /// The coordinates along one axis.
    pub fn coordinates(&self, axis: usize) -> Arc<dyn Content> {
        let datatype = self.dense.array.schema().dimensions[axis].datatype;
        let low = self.dense.grid.axes[axis].low;
        Arc::new(RawFile(AxisCoordinates::new(self.selection.axes()[axis].clone(), low, datatype.size())))
    }
}

/// How an attribute is described to the formats.
pub fn field_of(attribute: &Attribute, name: &str) -> Field {
    let values = match attribute.cell_count {
        CellValNum::Fixed(count) => Some(count),
        CellValNum::Variable => None,
    };
    Field::new(name, attribute.datatype)
        .with_values_per_cell(values)
        .with_nullable(attribute.nullable)
        .with_fill(attribute.fill.clone())
}

/// An attribute of fixed size with all that the formats may want of it.
///
/// # Errors
/// When a fragment's metadata cannot be read.
pub fn fixed_column(shown: &DenseShown, attribute: usize, name: &str) -> Result<Column> {
    let one = shown.attribute(attribute);
    let column = Column::fixed(field_of(one, name), shown.selection.shape(), shown.values(attribute)?);
    Ok(if one.nullable { column.with_validity(shown.validity(attribute)?) } else { column })
}
