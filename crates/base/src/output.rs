//! The destination of a read: memory, or only the cache.

use std::ops::Range;

/// The destination of a fixed number of values.
///
/// Prefetching is a read whose output is [`Output::Ahead`]: everything that the read needs is fetched and decoded into
/// the cache, and nothing is copied.
#[derive(Debug)]
pub enum Output<'a, T = u8> {
    /// Copy the values here.
    Into(&'a mut [T]),
    /// Only decode this many values.
    Ahead(u64),
}

impl<'a, T> Output<'a, T> {
    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        match self {
            Output::Into(values) => values.len() as u64,
            Output::Ahead(count) => *count,
        }
    }

    /// Returns whether the number of values is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory to fill; `None` for a prefetch.
    pub fn wanted(&mut self) -> Option<&mut [T]> {
        match self {
            Output::Into(values) => Some(values),
            Output::Ahead(_) => None,
        }
    }

    /// Splits into the first `count` values, or all if there are fewer, and the rest.
    pub fn split_at(self, count: u64) -> (Self, Self) {
        match self {
            Output::Into(values) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX).min(values.len());
                let (first, rest) = values.split_at_mut(count);
                (Output::Into(first), Output::Into(rest))
            }
            Output::Ahead(all) => {
                let count = count.min(all);
                (Output::Ahead(count), Output::Ahead(all - count))
            }
        }
    }

    /// Returns the given range as an output of its own, clipped to the values that exist.
    pub fn part(&mut self, range: Range<u64>) -> Output<'_, T> {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        match self {
            Output::Into(values) => Output::Into(&mut values[start as usize..end as usize]),
            Output::Ahead(_) => Output::Ahead(end - start),
        }
    }

    /// Returns an output of `count` auxiliary values that are needed to produce these. `scratch` is resized only if the
    /// values are copied; a prefetch needs no memory.
    pub fn aside<'b, U: Clone + Default>(&self, count: u64, scratch: &'b mut Vec<U>) -> Output<'b, U> {
        match self {
            Output::Into(_) => {
                scratch.clear();
                scratch.resize(usize::try_from(count).unwrap_or(usize::MAX), U::default());
                Output::Into(scratch)
            }
            Output::Ahead(_) => Output::Ahead(count),
        }
    }
}

impl<'a, T> From<&'a mut [T]> for Output<'a, T> {
    fn from(values: &'a mut [T]) -> Self {
        Output::Into(values)
    }
}

impl<'a, T> From<&'a mut Vec<T>> for Output<'a, T> {
    fn from(values: &'a mut Vec<T>) -> Self {
        Output::Into(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_variants_split_alike() {
        let mut values = [1u8, 2, 3, 4, 5];
        let mut ahead = Output::<u8>::Ahead(5);
        let mut into = Output::Into(&mut values);
        for range in [0..5, 2..4, 3..9, 7..8, 5..5] {
            assert_eq!(into.part(range.clone()).len(), ahead.part(range).len());
        }
        assert_eq!(into.part(1..3).wanted(), Some(&mut [2u8, 3][..]));
        assert!(ahead.wanted().is_none() && !ahead.is_empty());
        for count in [0, 3, 5, 9] {
            let mut values = [0u8; 5];
            let (first, rest) = Output::from(&mut values[..]).split_at(count);
            let (first_ahead, rest_ahead) = Output::<u8>::Ahead(5).split_at(count);
            assert_eq!((first.len(), rest.len()), (first_ahead.len(), rest_ahead.len()));
        }
    }

    #[test]
    fn prefetches_allocate_no_memory() {
        let mut scratch: Vec<u64> = Vec::new();
        assert_eq!(Output::<u8>::Ahead(1).aside(1 << 40, &mut scratch).len(), 1 << 40);
        assert_eq!(scratch.capacity(), 0);
        assert_eq!(Output::from(&mut [0u8; 3][..]).aside(7, &mut scratch).wanted().map(|values| values.len()), Some(7));
    }
}
