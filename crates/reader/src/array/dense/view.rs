//! Determines which fragment owns which cells of a dense array.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::lru_cache::LruCache;

use super::box_tree::BoxTree;
use super::grid::{Grid, PositionBox};
use super::pieces::{TileOwner, TileOwners};
use super::scattered::ScatteredCells;
use crate::array::OpenedArray;

/// The number of space tiles whose owners are cached, because finding them costs as much as decoding if many fragments
/// overlap.
const CACHED_TILES: usize = 4096;

/// The owners of cells, by tile.
type Owners = LruCache<Box<[u64]>, Arc<[TileOwner]>>;

/// The boxes of all visible fragments of a dense array, in positions. Memory: the box tree, and the owners of the
/// last 4096 tiles.
pub struct DenseView {
    array: Arc<OpenedArray>,
    grid: Grid,
    /// Non-empty domains by the number of the fragment in the array, oldest first.
    boxes: BoxTree,
    /// The cells of sparse fragments, by the number of the fragment.
    scattered: HashMap<usize, ScatteredCells>,
    /// The only fragment with cells, if there is only one and it is dense. Finding owners then needs no cache, which
    /// small reads of many tiles notice.
    only: Option<(usize, Arc<PositionBox>)>,
    owners: Owners,
}

impl DenseView {
    /// Reads the footers of all visible fragments.
    ///
    /// # Errors
    /// If any footer cannot be read: the cells of that fragment are then unknown, so no cell could be proven right.
    pub fn new(array: Arc<OpenedArray>) -> Result<Self> {
        let grid = Grid::of_schema(array.schema()).in_array(array.path())?;
        array.read_outlines();
        let mut scattered = HashMap::new();
        let mut box_of = |number: usize| {
            let outline = array.outline(number)?;
            if !outline.facts.dense {
                scattered.insert(number, ScatteredCells::read(&array, number, &grid)?);
            }
            let domain = outline.facts.non_empty_ranges();
            domain.map(|ranges| grid.box_of(&ranges)).transpose().in_field("non-empty domain")
        };
        let boxes = BoxTree::new(
            grid.axes.len(),
            (0..array.fragment_count())
                .map(|number| box_of(number).in_fragment(array.fragment_name(number)).in_array(array.path())),
        )?;
        Ok(Self::of_boxes(array, grid, boxes, scattered))
    }

    /// Returns the same array with its axes reversed: column-major order becomes row-major order.
    pub fn reversed(&self) -> Self {
        let boxes = self.boxes.boxes().map(|one| Ok::<_, Infallible>(one.map(|one| one.reversed())));
        let Ok(boxes) = BoxTree::new(self.grid.axes.len(), boxes);
        let scattered = self.scattered.iter().map(|(fragment, cells)| (*fragment, cells.reversed())).collect();
        Self::of_boxes(self.array.clone(), self.grid.reversed(), boxes, scattered)
    }

    fn of_boxes(
        array: Arc<OpenedArray>,
        grid: Grid,
        boxes: BoxTree,
        scattered: HashMap<usize, ScatteredCells>,
    ) -> Self {
        let only = {
            let mut with_cells = boxes.boxes().enumerate().filter_map(|(fragment, one)| Some((fragment, one?.into())));
            with_cells.next().filter(|_| with_cells.next().is_none() && scattered.is_empty())
        };
        DenseView { array, grid, boxes, scattered, only, owners: LruCache::new(CACHED_TILES) }
    }

    /// Returns the array.
    pub fn array(&self) -> &Arc<OpenedArray> {
        &self.array
    }

    /// Returns the grid of tiles.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the number of cells of a tile of a fragment's files.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no such tile.
    pub fn cells_in_tile(&self, fragment: usize, tile: u64) -> Result<u64> {
        if !self.scattered.contains_key(&fragment) {
            return Ok(self.grid.cells_per_tile());
        }
        let outline = self.array.outline(fragment)?;
        let cells = outline.facts.cells_in_tile(&outline.schema, tile);
        cells.ok_or_else(|| Error::damaged(format!("the fragment has no tile {tile}")))
    }

    /// Returns the smallest box that contains all fragments; `None` if there are none.
    pub fn non_empty_box(&self) -> Option<PositionBox> {
        self.boxes.union()
    }

    /// Returns the fragments that own cells of a tile, newest first. As in libtiledb, a fragment is left out if its
    /// part of the tile lies within that of a single newer one, whatever attributes they have.
    pub fn owners(&self, tile: &[u64]) -> Result<TileOwners> {
        if let Some((fragment, positions)) = &self.only
            && let Some(number) = self.grid.tile_number(positions, tile)
        {
            let positions = positions.clone();
            return Ok(TileOwners::One(TileOwner { fragment: *fragment, positions, tile: number, cells: None }));
        }
        if let Some(known) = self.owners.get(tile) {
            return Ok(TileOwners::Many(known));
        }
        let mut owners: Vec<TileOwner> = Vec::new();
        self.boxes.newest_first(&self.grid.tile_box(tile), |found| {
            if owners.iter().any(|newer| newer.cells.is_none() && newer.positions.contains(&found.positions)) {
                return Ok(false);
            }
            if let Some(fragment) = found.fragment {
                owners.extend(self.owner(fragment, found.positions.clone().into(), tile)?);
            }
            Ok(true)
        })?;
        let owners: Arc<[TileOwner]> = owners.into();
        self.owners.put(tile.into(), owners.clone());
        Ok(TileOwners::Many(owners))
    }

    /// Visits the boxes of dense fragments that intersect a box, newest first, each clipped to that box.
    pub(super) fn for_each_dense_box(
        &self,
        wanted: &PositionBox,
        mut visit: impl FnMut(usize, &PositionBox) -> Result<()>,
    ) -> Result<()> {
        self.boxes.newest_first(wanted, |found| {
            if let Some(fragment) = found.fragment.filter(|fragment| !self.scattered.contains_key(fragment)) {
                visit(fragment, &found.positions)?;
            }
            Ok(true)
        })
    }

    /// Returns what a fragment owns of a tile: `positions` or, for a sparse fragment, its cells there, if any.
    fn owner(&self, fragment: usize, positions: Arc<PositionBox>, tile: &[u64]) -> Result<Option<TileOwner>> {
        if let Some(cells) = self.scattered.get(&fragment) {
            let cells = cells.of_tile(tile).cloned();
            return Ok(cells.map(|cells| TileOwner { fragment, positions, tile: 0, cells: Some(cells) }));
        }
        let domain = self.boxes.get(fragment);
        let number = domain.and_then(|domain| self.grid.tile_number(&domain, tile)).ok_or_else(|| {
            Error::damaged("the fragment has more than 2^64 tiles")
                .in_fragment(self.array.fragment_name(fragment))
                .in_array(self.array.path())
        })?;
        Ok(Some(TileOwner { fragment, positions, tile: number, cells: None }))
    }
}
