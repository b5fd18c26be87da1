//! Copies of cells at equal distances.

/// Cells of `size` bytes, each `step` bytes after the previous one; neither is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strided {
    pub(crate) size: usize,
    pub(crate) step: usize,
}

impl Strided {
    /// Returns `None` if either is 0.
    pub fn new(size: usize, step: usize) -> Option<Self> {
        (size > 0 && step > 0).then_some(Strided { size, step })
    }

    /// Returns how many cells lie completely within the first `bytes` bytes, from the first cell on.
    pub fn cells_within(&self, bytes: usize) -> usize {
        bytes.checked_sub(self.size).map_or(0, |behind| behind / self.step + 1)
    }

    /// Copies cells from the start of `from` to the start of `out`, where they are `out_step` bytes apart: at most
    /// `count` cells, and only cells that lie within both.
    pub fn copy(&self, count: usize, from: &[u8], out: &mut [u8], out_step: usize) {
        match self.size {
            1 => self.copy_all::<1>(count, from, out, out_step),
            2 => self.copy_all::<2>(count, from, out, out_step),
            4 => self.copy_all::<4>(count, from, out, out_step),
            8 => self.copy_all::<8>(count, from, out, out_step),
            size => {
                let cells = out.chunks_mut(out_step).zip(from.chunks(self.step)).take(count);
                for (to, from) in cells.filter(|(to, from)| to.len() >= size && from.len() >= size) {
                    to[..size].copy_from_slice(&from[..size]);
                }
            }
        }
    }

    /// The same for a size that is known at compile time.
    fn copy_all<const SIZE: usize>(&self, count: usize, from: &[u8], out: &mut [u8], out_step: usize) {
        for (to, from) in out.chunks_mut(out_step).zip(from.chunks(self.step)).take(count) {
            if let (Some(to), Some(from)) = (to.first_chunk_mut::<SIZE>(), from.first_chunk::<SIZE>()) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_are_copied_one_by_one(size in 1usize..10, gap in 0usize..7, out_gap in 0usize..5, count in 0usize..40) {
            let (strided, out_step) = (Strided::new(size, size + gap).unwrap(), size + out_gap);
            let from: Vec<u8> = (0..200).map(|byte| byte as u8 + 1).collect();
            let count = count.min(strided.cells_within(from.len()));
            let mut expected = vec![0; (count * out_step).saturating_sub(out_gap)];
            for cell in 0..count {
                expected[cell * out_step..][..size].copy_from_slice(&from[cell * strided.step..][..size]);
            }
            let mut out = vec![0; expected.len()];
            strided.copy(count, &from, &mut out, out_step);
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn cells_within_counts_complete_cells(size in 1usize..10, gap in 0usize..7, bytes in 0usize..100) {
            let strided = Strided::new(size, size + gap).unwrap();
            let whole = (0..100).take_while(|cell| cell * strided.step + size <= bytes).count();
            prop_assert_eq!(strided.cells_within(bytes), whole);
        }
    }
}
