//! Transposes the cells of a tile from column-major to row-major order.
//!
//! Files are row-major. A tile with column-major cells is transposed once; then reads copy lines from the result.

/// Cells along the side of a square block that is transposed at a time: two blocks of 8-byte cells fit into the L1
/// cache.
const BLOCK: usize = 32;

/// Writes the cells of `column_major` to `row_major`; both have `extents` cells of `cell_size` bytes. Does nothing if a
/// slice has another length.
pub fn to_row_major(column_major: &[u8], extents: &[usize], cell_size: usize, row_major: &mut [u8]) {
    let cells: usize = extents.iter().product();
    if cell_size == 0 || column_major.len() != cells * cell_size || row_major.len() != cells * cell_size {
        return;
    }
    match cell_size {
        1 => transpose::<1>(column_major, extents, row_major),
        2 => transpose::<2>(column_major, extents, row_major),
        4 => transpose::<4>(column_major, extents, row_major),
        8 => transpose::<8>(column_major, extents, row_major),
        16 => transpose::<16>(column_major, extents, row_major),
        _ => for_each_plane(extents, |plane| {
            plane.for_each_cell(|from, to| {
                let (from, to) = (from * cell_size, to * cell_size);
                row_major[to..to + cell_size].copy_from_slice(&column_major[from..from + cell_size]);
            });
        }),
    }
}

fn transpose<const SIZE: usize>(column_major: &[u8], extents: &[usize], row_major: &mut [u8]) {
    let (from_cells, _) = column_major.as_chunks::<SIZE>();
    let (to_cells, _) = row_major.as_chunks_mut::<SIZE>();
    for_each_plane(extents, |plane| plane.for_each_cell(|from, to| to_cells[to] = from_cells[from]));
}

/// The first and the last axis at fixed indices of the axes between them: the first varies fastest in column-major
/// order, the last in row-major order.
struct Plane {
    from: usize,
    to: usize,
    first_extent: usize,
    last_extent: usize,
    /// The distance of neighbours along the last axis in column-major order.
    from_stride: usize,
    /// The distance of neighbours along the first axis in row-major order.
    to_stride: usize,
}

impl Plane {
    /// Visits (column-major number, row-major number) of each cell, block by block.
    fn for_each_cell(&self, mut visit: impl FnMut(usize, usize)) {
        for first_block in (0..self.first_extent).step_by(BLOCK) {
            let first_end = (first_block + BLOCK).min(self.first_extent);
            for last_block in (0..self.last_extent).step_by(BLOCK) {
                let last_end = (last_block + BLOCK).min(self.last_extent);
                for first in first_block..first_end {
                    let to = self.to + first * self.to_stride;
                    for last in last_block..last_end {
                        visit(self.from + first + last * self.from_stride, to + last);
                    }
                }
            }
        }
    }
}

fn for_each_plane(extents: &[usize], mut visit: impl FnMut(&Plane)) {
    let (&first_extent, &last_extent) = match extents {
        [] => return,
        // With one axis both orders are equal: a plane of one line.
        [only] => {
            visit(&Plane { from: 0, to: 0, first_extent: *only, last_extent: 1, from_stride: 0, to_stride: 1 });
            return;
        }
        [first, .., last] => (first, last),
    };
    let middle = &extents[1..extents.len() - 1];
    let from_stride = extents[..extents.len() - 1].iter().product();
    let to_stride = extents[1..].iter().product();
    for number in 0..middle.iter().product::<usize>() {
        let (mut rest, mut from, mut to) = (number, 0, 0);
        let mut from_step = first_extent;
        let mut to_step = to_stride;
        for &extent in middle {
            to_step /= extent;
            let index = rest % extent;
            rest /= extent;
            from += index * from_step;
            to += index * to_step;
            from_step *= extent;
        }
        visit(&Plane { from, to, first_extent, last_extent, from_stride, to_stride });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn transposed_cells_are_at_their_indices(
            extents in prop::collection::vec(1usize..40, 1..4),
            cell_size in prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(8), Just(16)],
        ) {
            let cells: usize = extents.iter().product();
            let column_major: Vec<u8> = (0..cells * cell_size).map(|byte| (byte * 7 + byte / 256) as u8).collect();
            let mut row_major = vec![0; column_major.len()];
            to_row_major(&column_major, &extents, cell_size, &mut row_major);
            for cell in 0..cells {
                let (mut rest, mut from, mut stride) = (cell, 0, cells);
                for axis in (0..extents.len()).rev() {
                    stride /= extents[axis];
                    from += rest % extents[axis] * stride;
                    rest /= extents[axis];
                }
                prop_assert_eq!(
                    &row_major[cell * cell_size..][..cell_size],
                    &column_major[from * cell_size..][..cell_size]
                );
            }
        }
    }
}
