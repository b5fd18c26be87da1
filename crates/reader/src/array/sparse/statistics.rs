//! Statistics of rows, from the metadata of fragments: the row at which each tile begins, and bounds of its values.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::datatype::Datatype;
use tilefs_format::fragment::SIGNED_TIMES_SINCE;

use super::rows::segments::{RowSegment, VisitedRows};
use super::select::cells::TileCells;
use super::view::SparseView;
use crate::array::FieldId;
use crate::array::bounds::{BoundsOfCells, CellsOfTile, Extreme, NullsOfCells, ValueBounds, are_recorded};

/// The statistics of a field of the rows of a view: bounds of its values, from metadata alone.
///
/// The boxes of tiles bound coordinates; the minimum and maximum that writers record for each tile bound the values of
/// attributes.
pub struct RowStatistics {
    view: Arc<SparseView>,
    field: FieldId,
    datatype: Datatype,
}

impl RowStatistics {
    /// Returns `None` for fields without recorded bounds.
    pub fn new(view: Arc<SparseView>, field: FieldId) -> Option<Self> {
        let schema = view.array().schema();
        let datatype = match field {
            FieldId::Dimension(number) => schema.dimensions.get(number)?.datatype,
            FieldId::Attribute(number) => {
                schema.attributes.get(number).filter(|attribute| are_recorded(attribute))?.datatype
            }
        };
        Some(RowStatistics { view, field, datatype })
    }

    /// Returns bounds of the values in `rows` that are not null; `None` if they are not known.
    ///
    /// # Errors
    /// Any damage in the metadata that record them.
    pub fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        let mut bounds = BoundsOfCells::new(self.datatype);
        self.view.for_each_tile(rows, |fragment, TileCells { tile, count, in_tile, .. }, are_rows| {
            let cells = CellsOfTile { tile: (fragment, tile), shown: are_rows.then_some(count), in_tile };
            match self.field {
                FieldId::Dimension(dimension) => self.add_box(&mut bounds, dimension, cells),
                FieldId::Attribute(attribute) => bounds.add_tile(self.view.array(), attribute, cells),
            }
        })?;
        bounds.finish()
    }

    /// Returns the number of nulls in `rows`; `None` if it is not known.
    ///
    /// # Errors
    /// Any damage in the metadata that record them.
    pub fn nulls(&self, rows: Range<u64>) -> Result<Option<u64>> {
        let array = self.view.array();
        let attribute = match self.field {
            FieldId::Attribute(number) if array.schema().attributes.get(number).is_some_and(|own| own.nullable) => {
                number
            }
            _ => return Ok(Some(0)),
        };
        let mut nulls = NullsOfCells::new();
        self.view.for_each_tile(rows, |fragment, cells, are_rows| {
            nulls.add_tile(array, attribute, (fragment, cells.tile), are_rows.then_some(cells.count), cells.in_tile)
        })?;
        Ok(nulls.finish())
    }

    /// Adds the box around the cells of a tile, on whose edges there are cells.
    fn add_box(&self, bounds: &mut BoundsOfCells, dimension: usize, cells: CellsOfTile) -> Result<()> {
        let (Some(is_whole), (fragment, tile)) = (bounds.count(cells), cells.tile) else { return Ok(()) };
        let array = self.view.array();
        // Older writers ordered times before 1970 after all others.
        if array.outline(fragment)?.facts.version < SIGNED_TIMES_SINCE && self.datatype.is_datetime() {
            bounds.add_unknown();
            return Ok(());
        }
        let range = array.folder().mbrs(array.number(fragment))?.range(tile, dimension);
        let range = range.in_fragment(array.fragment_name(fragment)).in_array(array.path())?;
        if range.is_open() {
            bounds.add_unknown();
            return Ok(());
        }
        let rounding = self.view.query()?.plan.axes.get(dimension).and_then(|axis| axis.rounding);
        match rounding.map_or(Some(range.clone()), |rounding| rounding.around(&range)) {
            Some(range) => {
                let is_exact = is_whole && rounding.is_none();
                bounds.add(Extreme::new(range.low, is_exact), Extreme::new(range.high, is_exact));
            }
            None => bounds.add_unknown(),
        }
        Ok(())
    }
}

impl SparseView {
    /// Returns the last of some rows that is the first row of a tile, or that lies among interleaved rows; `None` if
    /// there is none.
    ///
    /// # Errors
    /// Any damage in the data that determines which cells are rows.
    pub fn last_tile_start(&self, rows: Range<u64>) -> Result<Option<u64>> {
        let map = self.map()?;
        let mut end = rows.end.min(map.count()?);
        while end > rows.start {
            let segment = map.segment_of(end - 1)?;
            let own = map.rows_of(segment)?;
            let Some(RowSegment::CellSlab { fragment, position, .. }) = map.slab(segment) else {
                return Ok(Some(end - 1));
            };
            let cells = &self.query()?.cells[*fragment as usize];
            let at = position + (end - 1 - own.start);
            let tile = cells.positions_of(cells.place_of(at)).start;
            // The rows before the slab belong to another fragment.
            let start = own.start + tile.saturating_sub(*position);
            if start >= rows.start {
                return Ok(Some(start));
            }
            end = own.start.min(start);
        }
        Ok(None)
    }

    /// Visits the tiles that hold the cells of some rows, each at least once: the number of the fragment, the cells, and
    /// whether all of these cells are certain to be rows.
    ///
    /// # Errors
    /// Those of `visit`; any damage in the data that determines which cells are rows.
    pub(crate) fn for_each_tile(
        &self,
        rows: Range<u64>,
        mut visit: impl FnMut(usize, TileCells, bool) -> Result<()>,
    ) -> Result<()> {
        let cells = &self.query()?.cells;
        self.map()?.for_each(rows.start, rows.end - rows.start, |rows| match rows {
            VisitedRows::CellSlab { fragment, position, rows } => {
                cells[fragment as usize].for_each_tile(position, rows, |_, cells| visit(fragment as usize, cells, true))
            }
            VisitedRows::Interleaved(interleaved) => {
                let all: u64 = interleaved.parts.iter().map(|part| part.cells).sum();
                let are_rows = interleaved.rows == all;
                interleaved.parts.iter().filter(|part| part.cells > 0).try_for_each(|part| {
                    let fragment = part.fragment as usize;
                    cells[fragment]
                        .for_each_tile(part.position, part.cells, |_, cells| visit(fragment, cells, are_rows))
                })
            }
            VisitedRows::Scattered(addresses) => addresses.iter().try_for_each(|address| {
                let fragment = address.fragment() as usize;
                let cell = cells[fragment].at(address.position(), 1);
                visit(fragment, cell.ok_or_else(|| Error::damaged("a cell past the end of the fragment"))?, true)
            }),
        })
    }
}
