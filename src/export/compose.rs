//! Contents made of contents: one after the other, a part of one, the same bytes again and again.

use std::sync::Arc;

use super::content::{Content, check_range};
use crate::error::Result;

/// Several contents, one after the other: a header and what follows it.
pub struct Concat {
    parts: Vec<Arc<dyn Content>>,
    /// Where each part ends; as many as there are parts, never falling.
    ends: Vec<u64>,
}

impl Concat {
    /// The parts in file order. The sum of their lengths must be below 2^64, which the formats check.
    pub fn new(parts: Vec<Arc<dyn Content>>) -> Self {
        let ends = parts
            .iter()
            .scan(0u64, |end, part| {
                *end = end.saturating_add(part.len());
                Some(*end)
            })
            .collect();
        Concat { parts, ends }
    }

    /// Calls `visit` with each part that the range touches: the part, the offset within it and the range
    /// of the caller's bytes that it gives.
    fn touched(
        &self,
        offset: u64,
        length: u64,
        mut visit: impl FnMut(&dyn Content, u64, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let end = offset + length;
        let mut at = offset;
        let first = self.ends.partition_point(|&part_end| part_end <= offset);
        for (part, &part_end) in self.parts.iter().zip(&self.ends).skip(first) {
            if at >= end {
                break;
            }
            let upto = part_end.min(end);
            if upto > at {
                visit(part, at - (part_end - part.len()), at - offset, upto - offset)?;
                at = upto;
            }
        }
        Ok(())
    }
}

impl Content for Concat {
    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, buf.len())?;
        self.touched(offset, buf.len() as u64, |part, within, from, to| {
            part.read_at(within, &mut buf[from as usize..to as usize])
        })
    }

    fn prepare(&self, offset: u64, length: u64) {
        let length = length.min(self.len().saturating_sub(offset));
        let _ = self.touched(offset, length, |part, within, from, to| {
            part.prepare(within, to - from);
            Ok(())
        });
    }
}

/// A part of another content.
pub struct Slice {
    of: Arc<dyn Content>,
    start: u64,
    length: u64,
}

impl Slice {
    /// The `length` bytes of `of` from `start`; what lies past its end is cut off.
    pub fn new(of: Arc<dyn Content>, start: u64, length: u64) -> Self {
        let start = start.min(of.len());
        let length = length.min(of.len() - start);
        Slice { of, start, length }
    }
}

impl Content for Slice {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.length, offset, buf.len())?;
        self.of.read_at(self.start + offset, buf)
    }

    fn prepare(&self, offset: u64, length: u64) {
        let length = length.min(self.length.saturating_sub(offset));
        self.of.prepare(self.start.saturating_add(offset), length);
    }
}

/// The same few bytes again and again: padding, and the value of what was never written.
pub struct Repeat {
    pattern: Vec<u8>,
    length: u64,
}

impl Repeat {
    /// `pattern` repeated up to `length` bytes; an empty pattern gives zeros.
    pub fn new(pattern: impl Into<Vec<u8>>, length: u64) -> Self {
        let mut pattern = pattern.into();
        if pattern.is_empty() {
            pattern.push(0);
        }
        Repeat { pattern, length }
    }

    /// That many zero bytes.
    pub fn zeros(length: u64) -> Self {
        Repeat::new([0], length)
    }
}

impl Content for Repeat {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.length, offset, buf.len())?;
        if let &[byte] = self.pattern.as_slice() {
            buf.fill(byte);
            return Ok(());
        }
        let phase = (offset % self.pattern.len() as u64) as usize;
        for (to, from) in buf.iter_mut().zip(self.pattern.iter().cycle().skip(phase)) {
            *to = *from;
        }
        Ok(())
    }
}

/// The coordinates of one axis, written once per cell of a dense array: each element `inner` times in a
/// row, and the whole as often as it takes to reach `cells` elements.
pub struct PerCell {
    axis: Arc<dyn Content>,
    /// Bytes of one coordinate: 1, 2, 4 or 8.
    width: usize,
    inner: u64,
    cells: u64,
}

impl PerCell {
    /// The coordinates along axis `number` of an array of this `shape`, row-major.
    ///
    /// `axis` holds `shape[number]` elements of `width` bytes, at most 8.
    pub fn new(axis: Arc<dyn Content>, width: usize, shape: &[u64], number: usize) -> Self {
        let product = |axes: &[u64]| axes.iter().fold(1u64, |product, &n| product.saturating_mul(n));
        let inner = product(shape.get(number + 1..).unwrap_or(&[]));
        PerCell { axis, width: width.clamp(1, 8), inner: inner.max(1), cells: product(shape) }
    }
}

impl Content for PerCell {
    fn len(&self) -> u64 {
        self.cells.saturating_mul(self.width as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(self.len(), offset, buf.len())?;
        let (width, size) = (self.width as u64, self.axis.len() / self.width as u64);
        let end = offset + buf.len() as u64;
        let mut element = [0; 8];
        let element = &mut element[..self.width];
        let mut at = offset;
        while at < end {
            let cell = at / width;
            let run = cell / self.inner;
            self.axis.read_at(run % size.max(1) * width, element)?;
            let upto = (run + 1).saturating_mul(self.inner).saturating_mul(width).min(end);
            let phase = (at % width) as usize;
            let out = &mut buf[(at - offset) as usize..(upto - offset) as usize];
            for (to, from) in out.iter_mut().zip(element.iter().cycle().skip(phase)) {
                *to = *from;
            }
            at = upto;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{assert_random_access, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn concat_is_the_parts_in_order(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let whole: Vec<u8> = parts.concat();
            let concat = Concat::new(parts.into_iter().map(|part| Arc::new(part) as Arc<dyn Content>).collect());
            prop_assert_eq!(read_all(&concat), whole);
            assert_random_access(&concat);
        }

        #[test]
        fn slice_is_the_bytes_between(bytes in proptest::collection::vec(any::<u8>(), 0..60), start in 0u64..80, length in 0u64..80) {
            let from = bytes.len().min(start as usize);
            let to = bytes.len().min((start + length) as usize);
            let expected = bytes[from..to].to_vec();
            let slice = Slice::new(Arc::new(bytes), start, length);
            prop_assert_eq!(read_all(&slice), expected);
            assert_random_access(&slice);
        }

        #[test]
        fn repeat_cycles_its_pattern(pattern in proptest::collection::vec(any::<u8>(), 1..5), length in 0u64..50) {
            let expected: Vec<u8> = (0..length as usize).map(|i| pattern[i % pattern.len()]).collect();
            let repeat = Repeat::new(pattern, length);
            prop_assert_eq!(read_all(&repeat), expected);
            assert_random_access(&repeat);
        }

        #[test]
        fn coordinates_follow_the_cells(shape in proptest::collection::vec(1u64..5, 1..4), pick in 0usize..3) {
            let axis = pick % shape.len();
            let coordinates: Vec<u8> = (0..shape[axis] as u16).flat_map(|i| (i * 300).to_le_bytes()).collect();
            let mut expected = Vec::new();
            let cells: u64 = shape.iter().product();
            for cell in 0..cells {
                let mut rest = cell;
                let mut position = vec![0; shape.len()];
                for d in (0..shape.len()).rev() {
                    position[d] = rest % shape[d];
                    rest /= shape[d];
                }
                expected.extend((position[axis] as u16 * 300).to_le_bytes());
            }
            let content = PerCell::new(Arc::new(coordinates), 2, &shape, axis);
            prop_assert_eq!(read_all(&content), expected);
            assert_random_access(&content);
        }
    }

    #[test]
    fn reading_past_the_end_is_an_error() {
        let concat = Concat::new(vec![Arc::new(vec![1u8, 2]), Arc::new(vec![3u8])]);
        assert!(concat.read_at(2, &mut [0; 2]).is_err());
        assert!(concat.read_at(u64::MAX, &mut [0; 2]).is_err());
        assert!(Repeat::zeros(3).read_at(3, &mut [0; 1]).is_err());
    }

    #[test]
    fn huge_contents_need_no_memory() {
        let huge = Concat::new(vec![Arc::new(vec![7u8; 3]), Arc::new(Repeat::new([1, 2], 1 << 62))]);
        let mut buf = [0; 4];
        huge.read_at((1 << 62) - 1, &mut buf).unwrap();
        assert_eq!(buf, [1, 2, 1, 2]);
    }
}
