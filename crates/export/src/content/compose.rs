//! Contents made of other contents: concatenations, parts, and repeated patterns.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::{Content, unknown_band};
use tilefs_base::error::Result;
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;

/// Several contents in sequence, such as a header and its data.
pub struct Concat {
    parts: Vec<Arc<dyn Content>>,
    /// The end of each part, in the order of the parts; never decreasing.
    ends: Vec<u64>,
}

impl Concat {
    /// Concatenates the parts in file order. The sum of their lengths must be below 2^64; the formats check that.
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
}

impl Content for Concat {
    fn record(&self, recorder: &mut Recorder) {
        let Self { parts, ends } = self;
        recorder.add::<Self>(ends);
        parts.iter().for_each(|part| part.record(recorder));
    }

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (mut at, mut rest) = (offset, out);
        let first = self.ends.partition_point(|&end| end <= offset);
        for (part, &end) in self.parts.iter().zip(&self.ends).skip(first) {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at(end - at);
            let length = now.len();
            if length > 0 {
                part.read(at - (end - part.len()), now)?;
            }
            (at, rest) = (at + length, later);
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        let number = self.ends.partition_point(|&end| end <= offset);
        let Some((part, end)) = self.parts.get(number).zip(self.ends.get(number)) else {
            return unknown_band(self.len(), offset);
        };
        let start = end - part.len();
        let band = part.band(offset - start);
        start + band.start..start + band.end
    }

    fn decoded_per_byte(&self) -> u64 {
        self.parts.iter().map(|part| part.decoded_per_byte()).max().unwrap_or(1)
    }
}

/// A part of another content.
pub struct Slice {
    of: Arc<dyn Content>,
    start: u64,
    length: u64,
}

impl Slice {
    /// Creates a view of the `length` bytes of `of` from `start`, cut off at its end.
    pub fn new(of: Arc<dyn Content>, start: u64, length: u64) -> Self {
        let start = start.min(of.len());
        let length = length.min(of.len() - start);
        Slice { of, start, length }
    }
}

impl Content for Slice {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, start, length } = self;
        recorder.add::<Self>((start, length));
        of.record(recorder);
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        self.of.read(self.start + offset, out)
    }
}

/// A few bytes repeated: padding, or the fill value of unwritten cells.
pub struct Repeat {
    pattern: Vec<u8>,
    length: u64,
}

impl Repeat {
    /// Repeats `pattern` up to `length` bytes; an empty pattern gives zeros.
    pub fn new(pattern: impl Into<Vec<u8>>, length: u64) -> Self {
        let mut pattern = pattern.into();
        if pattern.is_empty() {
            pattern.push(0);
        }
        Repeat { pattern, length }
    }

    /// Creates `length` zero bytes.
    pub fn zeros(length: u64) -> Self {
        Repeat::new([0], length)
    }
}

impl Content for Repeat {
    fn record(&self, recorder: &mut Recorder) {
        let Self { pattern, length } = self;
        recorder.add::<Self>((pattern, length));
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        let Some(buf) = out.wanted() else { return Ok(()) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
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

    #[test]
    fn parts_are_prefetched() {
        assert_reads_ahead(|sources| {
            let slice = Slice::new(sources.values(Arc::new(vec![3; 100])), 30, 50);
            let middle = sources.values(Arc::new(vec![4; 70]));
            let none = sources.values(Arc::new(Vec::new()));
            Arc::new(Concat::new(vec![Arc::new(slice), none, middle.clone(), Arc::new(Slice::new(middle, 10, 20))]))
        });
    }

    #[test]
    fn prefetching_any_length_costs_nothing() {
        let huge = Concat::new(vec![Arc::new(vec![7u8; 3]), Arc::new(Repeat::new([1, 2], 1 << 62))]);
        huge.read(1, Output::Ahead(1 << 62)).unwrap();
        assert!(huge.read(1, Output::Ahead(u64::MAX)).is_err());
    }
}
