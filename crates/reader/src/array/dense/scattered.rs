//! Sparse fragments of dense arrays. Releases before 2.5 could write single cells into a dense array; such a fragment
//! stores coordinates and owns only those cells.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};

use super::grid::Grid;
use crate::array::OpenedArray;
use crate::array::sparse::coordinates_of_tile;

/// The cells of a sparse fragment in one space tile. Maps the cell number within the space tile to the tile in the
/// fragment's files and the cell number there.
pub type ScatteredTile = HashMap<u64, (u64, u64)>;

/// The cells of a sparse fragment by space tile. Memory: some 50 bytes per cell.
#[derive(Debug, Clone, Default)]
pub struct ScatteredCells {
    tiles: HashMap<Box<[u64]>, Arc<ScatteredTile>>,
}

impl ScatteredCells {
    /// Reads all coordinates of a sparse fragment.
    ///
    /// # Errors
    /// Any damage in the coordinates; [`Error::Damaged`] for a cell outside the domain.
    pub fn read(array: &OpenedArray, fragment: usize, grid: &Grid) -> Result<Self> {
        let outline = array.outline(fragment)?;
        let strides = grid.cell_strides();
        let mut tiles: HashMap<Box<[u64]>, ScatteredTile> = HashMap::new();
        for tile in 0..outline.facts.sparse_tiles {
            let cells = outline.facts.cells_in_tile(&outline.schema, tile).unwrap_or(0);
            let axes = coordinates_of_tile(array, fragment, tile, cells)?;
            for cell in 0..cells {
                let (mut space_tile, mut number) = (Vec::with_capacity(grid.axes.len()), 0);
                for ((axis, stride), coordinates) in grid.axes.iter().zip(&strides).zip(&axes) {
                    let position = coordinates.get(cell as usize).and_then(|one| axis.position(one));
                    let Some(position) = position.filter(|&position| position < axis.size) else {
                        let reason = format!("tile {tile}, cell {cell}: coordinates outside the domain");
                        return Err(Error::damaged(reason)).in_field("coordinates");
                    };
                    space_tile.push(position / axis.extent);
                    number += position % axis.extent * stride;
                }
                tiles.entry(space_tile.into()).or_default().insert(number, (tile, cell));
            }
        }
        Ok(ScatteredCells { tiles: tiles.into_iter().map(|(tile, cells)| (tile, Arc::new(cells))).collect() })
    }

    /// Returns the fragment's cells in a space tile, if any.
    pub(crate) fn of_tile(&self, tile: &[u64]) -> Option<&Arc<ScatteredTile>> {
        self.tiles.get(tile)
    }

    /// Returns the same cells with the axes reversed. The order within tiles is then reversed, too, so cells keep their
    /// numbers.
    pub fn reversed(&self) -> Self {
        let turn = |tile: &[u64]| tile.iter().rev().copied().collect();
        ScatteredCells { tiles: self.tiles.iter().map(|(tile, cells)| (turn(tile), cells.clone())).collect() }
    }
}
