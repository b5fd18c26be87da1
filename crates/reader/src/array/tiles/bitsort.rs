//! Sparse fragments in which the filter BITSORT sorted the values of an attribute.
//!
//! TileDB 2.13 and 2.14 write them as follows: a tile of the attribute has its values in ascending order, in one chunk.
//! The tiles of the dimensions have the coordinates in the same order and are raw: without chunks, filters or
//! encryption, whatever the schema says. All other files are in the order of the array as usual; the coordinates
//! determine that order.
//!
//! TileDB loses three kinds of attributes when it writes them: those whose tiles take several chunks, those of variable
//! size, and those with several values per cell.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::filter::{Decoder, StoredOrder, TileContext};
use tilefs_format::fragment::FragmentField;
use tilefs_format::pipeline::Pipeline;
use tilefs_format::schema::{ArraySchema, CellValNum};

use super::tile_file::TileFile;
use crate::array::context::IndexKey;
use crate::array::folder::ArrayFolder;
use crate::array::folder::outline::{FieldFile, Outline};
use crate::array::folder::sorted_file::is_sorted;
use crate::array::order::key::{AxisColumn, KeyOrder, KeyPlan};

/// The stored coordinates of a fragment, and the order that they determine.
pub struct SortedCells {
    plan: KeyPlan,
    /// One file per dimension, which is read without decoding.
    stored: Vec<TileFile>,
    /// The file of the values.
    values: TileFile,
    /// The pipeline of the values, without the order of a tile.
    pipeline: Pipeline,
    context: TileContext,
}

impl SortedCells {
    /// Returns the decoder for the values of a tile with `cells` cells.
    ///
    /// # Errors
    /// As [`SortedCells::order`].
    pub fn decoder(&self, tile: u64, cells: u64) -> Result<Decoder> {
        Decoder::of_sorted_tile(&self.pipeline, &self.context, &self.order(tile, cells)?)
    }

    /// Returns the order of the `cells` cells of a tile, which is cached.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the number of coordinates is wrong or one is outside the domain, [`Error::Unsupported`]
    /// for more cells than the cache may hold.
    pub fn order(&self, tile: u64, cells: u64) -> Result<Arc<StoredOrder>> {
        let context = self.values.context()?;
        let bytes = (8 * (self.plan.words() + self.stored.len())) as u64;
        if cells.saturating_mul(bytes) > (context.budget().bytes() as u64).max(ALWAYS_ALLOWED_KEY_BYTES) {
            return Err(Error::unsupported(format!("a tile of {cells} cells, which have to be sorted together")));
        }
        context.indexes.get_or_load(IndexKey::StoredOrder(self.values.number(), tile), || {
            if self.values.chunks(tile)? > 1 {
                let what = "filter BITSORT in a tile of several chunks: TileDB lost the coordinates of its cells";
                return Err(Error::unsupported(what).in_file(self.values.path()));
            }
            let mut columns = Vec::with_capacity(self.stored.len());
            for (axis, stored) in self.plan.axes.iter().zip(&self.stored) {
                let size = cells.saturating_mul(axis.datatype.size() as u64);
                let mut column = AxisColumn::default();
                let bytes = stored.stored(tile, size).in_field(&axis.name)?;
                axis.positions(&bytes, &mut column.positions).in_file(stored.path())?;
                columns.push(column);
            }
            // Their number follows from the bytes.
            let cells = cells as usize;
            let mut keys = Vec::new();
            self.plan.keys(&columns, cells, &mut keys);
            let keys = keys.chunks_exact(self.plan.words()).collect::<Vec<_>>();
            let order = StoredOrder::new(cells, |a, b| keys[a].cmp(keys[b]))?;
            Ok((order, cells * size_of::<u32>()))
        })
    }
}

impl ArrayFolder {
    /// Returns the coordinates of a fragment that has a [`SortedFile`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] for data that TileDB itself did not write or lost in writing; any damage in the metadata
    /// of the dimensions.
    pub(crate) fn sorted_cells(&self, fragment: usize, outline: &Outline) -> Result<Arc<SortedCells>> {
        self.context.indexes.get_or_load(IndexKey::SortedCells(self.first_file(fragment)), || {
            let attribute = sorted_attribute(&outline.schema)?;
            let plan = KeyPlan::new(&outline.schema, KeyOrder::Global)?;
            let file = |field: FragmentField| self.tile_file(fragment, outline, field, FieldFile::Data);
            let dimensions = 0..outline.schema.dimensions.len();
            let stored =
                dimensions.map(|number| file(FragmentField::Dimension(number))).collect::<Result<Vec<TileFile>>>()?;
            let values = file(FragmentField::Attribute(attribute))?;
            let (pipeline, context) =
                self.tile_context(fragment, outline, FragmentField::Attribute(attribute), FieldFile::Data)?;
            let weight = (stored.len() + 1) * (8 * values.count() as usize + size_of::<TileFile>());
            Ok((SortedCells { plan, stored, values, pipeline: pipeline.clone(), context }, weight))
        })
    }
}

/// Keys may take this many bytes whatever the cache budget is.
const ALWAYS_ALLOWED_KEY_BYTES: u64 = 16 << 20;

/// Returns the sorted attribute, if TileDB can have written it without losing values.
fn sorted_attribute(schema: &ArraySchema) -> Result<usize> {
    let refuse = |why: &str| Err(Error::unsupported(format!("filter BITSORT {why}")));
    let mut attributes = schema.attributes.iter().enumerate().filter(|(_, one)| is_sorted(one));
    let (Some((number, attribute)), None) = (attributes.next(), attributes.next()) else {
        return refuse("of several attributes");
    };
    if attribute.cell_count != CellValNum::Fixed(1) || attribute.nullable {
        return refuse("of an attribute that has not one value in every cell");
    }
    if schema.dimensions.iter().any(|dimension| dimension.is_variable()) {
        return refuse("in an array with dimensions of text");
    }
    Ok(number)
}
