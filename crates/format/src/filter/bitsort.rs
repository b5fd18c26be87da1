//! BITSORT: the values of a tile, sorted as unsigned integers. Only TileDB 2.13 and 2.14 had this filter. They stored
//! the coordinates of the cells in the same order; the original order of the values can be restored only from those.
//!
//! ```text
//! metadata: number of parts u32 (1), bytes of the part u32; then the metadata of earlier filters
//! data    : the values, sorted
//! ```

use std::sync::Arc;

use tilefs_base::error::{Error, Result};

use super::integer::Width;
use super::part_lengths::PartLengths;
use super::stage::{FilterInput, Stage, Transform};
use super::stored_order::StoredOrder;
use crate::cursor::Cursor;

pub(super) fn bind(input: &FilterInput<'_>) -> Result<Stage> {
    let width = input.width();
    if input.cell_size != width.bytes() {
        return Err(input.unsupported("on cells of several values"));
    }
    Ok(input.transform(Bitsort { width, order: input.stored_order.cloned() }))
}

struct Bitsort {
    width: Width,
    /// `None` if there are no coordinates to restore the order from.
    order: Option<Arc<StoredOrder>>,
}

impl Transform for Bitsort {
    /// Restores the values of a whole tile.
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()> {
        let parts = PartLengths::parse(metadata, data.len())?.count();
        if parts != 1 {
            return Err(Error::damaged(format!("{parts} sorted parts in one tile")));
        }
        let number = |value: &[u8]| value.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        if !data.chunks_exact(self.width.bytes()).is_sorted_by_key(number) {
            return Err(Error::damaged("the values do not ascend"));
        }
        let missing = || Error::unsupported("filter BITSORT without coordinates to restore the order from");
        self.order.as_ref().ok_or_else(missing)?.restore(self.width.bytes(), data, out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(values: &[u16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn filter(order: StoredOrder) -> Bitsort {
        Bitsort { width: Width::Two, order: Some(Arc::new(order)) }
    }

    /// Undoes the filter on values whose cells have these coordinates.
    fn undo_with(coordinates: &[i32], sorted: &[u16]) -> Result<Vec<u8>> {
        let filter = filter(StoredOrder::new(coordinates.len(), |a, b| coordinates[a].cmp(&coordinates[b])).unwrap());
        let mut metadata = vec![1, 0, 0, 0];
        metadata.extend((2 * sorted.len() as u32).to_le_bytes());
        metadata.push(77);
        let mut cursor = Cursor::new(&metadata);
        let mut out = vec![0; 2 * sorted.len()];
        filter.undo(&mut cursor, &bytes(sorted), &mut out)?;
        assert_eq!(cursor.remaining(), 1);
        Ok(out)
    }

    proptest! {
        /// Sorts cells by their values, and restores their order.
        #[test]
        fn undoes_the_filter(cells in prop::collection::btree_map(any::<i32>(), any::<u16>(), 0..100)) {
            let mut stored: Vec<(i32, u16)> = cells.clone().into_iter().collect();
            stored.sort_by_key(|cell| cell.1);
            let (coordinates, sorted): (Vec<i32>, Vec<u16>) = stored.into_iter().unzip();
            let values: Vec<u16> = cells.into_values().collect();
            prop_assert_eq!(undo_with(&coordinates, &sorted).unwrap(), bytes(&values));
        }
    }

    #[test]
    fn cells_of_equal_coordinates_must_have_equal_values() {
        assert_eq!(undo_with(&[2, 2, 1], &[5, 5, 7]).unwrap(), bytes(&[7, 5, 5]));
        assert!(matches!(undo_with(&[2, 1, 2], &[5, 7, 8]), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn values_must_be_sorted_as_unsigned_integers() {
        assert_eq!(undo_with(&[3, 1, 2], &[0x00ff, 0x0100, 0xff00]).unwrap(), bytes(&[0x0100, 0xff00, 0x00ff]));
        assert!(matches!(undo_with(&[3, 1, 2], &[0x0100, 0x00ff, 0xff00]), Err(Error::Damaged { .. })));
    }

    #[test]
    fn orders_of_other_tiles_are_refused() {
        assert!(matches!(undo_with(&[2, 1], &[5, 7, 8]), Err(Error::Damaged { .. })));
        assert!(matches!(undo_with(&[2, 1, 3, 4], &[5, 7, 8]), Err(Error::Damaged { .. })));
        let one = [1, 0, 0, 0, 2, 0, 0, 0];
        let without = Bitsort { width: Width::Two, order: None };
        assert!(without.undo(&mut Cursor::new(&one), &[0; 2], &mut [0; 2]).is_err());
        let two = [2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];
        let filter = filter(StoredOrder::new(2, |a, b| a.cmp(&b)).unwrap());
        assert!(filter.undo(&mut Cursor::new(&two), &[0; 4], &mut [0; 4]).is_err());
    }
}
