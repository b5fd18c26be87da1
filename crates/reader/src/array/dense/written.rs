//! Determines whether cells were ever written, from the boxes of the fragments.

use tilefs_base::error::Result;

use super::grid::PositionBox;
use super::view::DenseView;

/// The maximum number of pieces into which the rest of a box may be divided, if fragments leave gaps of odd shapes.
const MAX_PIECES: usize = 4096;

impl DenseView {
    /// Returns whether every cell of a box was written with a value of an attribute. `None` if finding out would take
    /// too long.
    ///
    /// # Errors
    /// If the schema of a fragment cannot be read.
    pub fn all_written(&self, attribute: usize, wanted: &PositionBox) -> Result<Option<bool>> {
        let mut left = vec![wanted.clone()];
        let mut gave_up = false;
        self.for_each_dense_box(wanted, |fragment, written| {
            if left.is_empty() || gave_up || !self.array().has_attribute(fragment, attribute)? {
                return Ok(());
            }
            left = left.iter().flat_map(|piece| outside(piece, written)).collect();
            gave_up = left.len() > MAX_PIECES;
            Ok(())
        })?;
        Ok((!gave_up).then_some(left.is_empty()))
    }
}

/// Returns the part of a box outside another one: at most two pieces per axis.
fn outside(of: &PositionBox, other: &PositionBox) -> Vec<PositionBox> {
    let Some(common) = of.intersection(other) else { return vec![of.clone()] };
    let mut rest = of.clone();
    let mut pieces = Vec::new();
    for axis in 0..of.low.len() {
        if rest.low[axis] < common.low[axis] {
            let mut below = rest.clone();
            below.high[axis] = common.low[axis] - 1;
            pieces.push(below);
        }
        if rest.high[axis] > common.high[axis] {
            let mut above = rest.clone();
            above.low[axis] = common.high[axis] + 1;
            pieces.push(above);
        }
        (rest.low[axis], rest.high[axis]) = (common.low[axis], common.high[axis]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_box() -> impl Strategy<Value = PositionBox> {
        proptest::collection::vec((0u64..6, 0u64..4), 2).prop_map(|axes| PositionBox {
            low: axes.iter().map(|(low, _)| *low).collect(),
            high: axes.iter().map(|(low, length)| low + length).collect(),
        })
    }

    proptest! {
        #[test]
        fn outside_returns_the_positions_that_are_not_in_the_other_box(of in any_box(), other in any_box()) {
            let pieces = outside(&of, &other);
            for y in 0..10 {
                for x in 0..10 {
                    let at = [y, x];
                    let found = pieces.iter().filter(|piece| piece.contains_position(&at)).count();
                    prop_assert_eq!(found, usize::from(of.contains_position(&at) && !other.contains_position(&at)));
                }
            }
        }
    }
}
