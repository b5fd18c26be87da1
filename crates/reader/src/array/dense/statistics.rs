//! Bounds of the values of cells, from the metadata of fragments.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_format::scalar::Scalar;

use super::column::DenseColumn;
use super::pieces::{Piece, PieceSource};
use super::selection::Selection;
use super::view::DenseView;
use crate::array::bounds::{BoundsOfCells, CellsOfTile, Extreme, NullsOfCells, ValueBounds, are_recorded};
use crate::array::folder::outline::FieldFile;

/// The statistics of an attribute in the cells of a selection: bounds of its values, from metadata alone.
pub struct CellStatistics {
    view: Arc<DenseView>,
    column: DenseColumn,
    attribute: usize,
    /// Whether no cell is selected twice.
    are_distinct: bool,
}

impl CellStatistics {
    /// Returns `None` for attributes without recorded bounds.
    ///
    /// # Errors
    /// If a fragment's schema cannot be read.
    pub fn new(view: Arc<DenseView>, selection: Arc<Selection>, attribute: usize) -> Result<Option<Self>> {
        let schema = view.array().schema();
        let Some(wanted) = schema.attributes.get(attribute).filter(|attribute| are_recorded(attribute)) else {
            return Ok(None);
        };
        let size = wanted.cell_size().unwrap_or(8);
        let are_distinct = selection.axes().iter().all(|axis| axis.ranges().len() <= 1);
        let column = DenseColumn::new(view.clone(), selection, attribute, FieldFile::Data, vec![0; size])?;
        Ok(Some(CellStatistics { view, column, attribute, are_distinct }))
    }

    /// Returns bounds of the non-null values of some cells; `None` if they are not known.
    ///
    /// # Errors
    /// Any damage in the metadata with these bounds.
    pub fn bounds(&self, cells: Range<u64>) -> Result<Option<ValueBounds>> {
        let array = self.view.array();
        let attribute = &array.schema().attributes[self.attribute];
        let mut bounds = BoundsOfCells::new(attribute.datatype);
        self.column.for_each_piece(cells.start, cells.end - cells.start, |piece| {
            match piece.source {
                _ if !bounds.is_known() => {}
                PieceSource::Tile { fragment, tile } => {
                    if !array.outline(fragment)?.facts.dense {
                        bounds.add_unknown();
                        return Ok(());
                    }
                    let in_tile = self.view.cells_in_tile(fragment, tile)?;
                    // Within a piece, no cell is selected twice.
                    let shown = Some(cells_of(&piece)).filter(|&count| self.are_distinct || count == in_tile);
                    bounds.add_tile(array, self.attribute, CellsOfTile { tile: (fragment, tile), shown, in_tile })?;
                }
                // Nulls are ignored.
                PieceSource::Fill if attribute.nullable && attribute.fill_validity == 0 => {}
                PieceSource::Fill => {
                    let fill = Scalar::parse(attribute.datatype, &attribute.fill)?;
                    bounds.add(Extreme::new(fill.clone(), true), Extreme::new(fill, true));
                }
            }
            Ok(())
        })?;
        bounds.finish()
    }

    /// Returns the number of nulls among some cells; `None` if it is not known.
    ///
    /// # Errors
    /// Any damage in the metadata with their numbers.
    pub fn nulls(&self, cells: Range<u64>) -> Result<Option<u64>> {
        let array = self.view.array();
        let attribute = &array.schema().attributes[self.attribute];
        let mut nulls = NullsOfCells::new();
        if !attribute.nullable {
            return Ok(nulls.finish());
        }
        self.column.for_each_piece(cells.start, cells.end - cells.start, |piece| {
            let count = cells_of(&piece);
            match piece.source {
                PieceSource::Tile { fragment, .. } if !array.outline(fragment)?.facts.dense => nulls.add(None),
                PieceSource::Tile { fragment, tile } => {
                    let in_tile = self.view.cells_in_tile(fragment, tile)?;
                    nulls.add_tile(array, self.attribute, (fragment, tile), Some(count), in_tile)?;
                }
                PieceSource::Fill => nulls.add(Some(if attribute.fill_validity == 0 { count } else { 0 })),
            }
            Ok(())
        })?;
        Ok(nulls.finish())
    }
}

fn cells_of(piece: &Piece) -> u64 {
    piece.axes.iter().map(|axis| axis.count).product()
}
