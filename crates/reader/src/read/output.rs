//! Where a read puts what it finds: into memory, or nowhere.

use std::ops::Range;

/// What a read is to do with the values that it finds, so many of them.
///
/// Reading ahead is a read whose output is [`Output::Ahead`]: all that the read needs is fetched and decoded, and stays
/// in the cache; nothing is copied.
#[derive(Debug)]
pub enum Output<'a, T = u8> {
    /// Copy all of them here.
    Into(&'a mut [T]),
    /// Only have so many of them decoded.
    Ahead(u64),
}

impl<'a, T> Output<'a, T> {
    /// How many values.
    pub fn len(&self) -> u64 {
        match self {
            Output::Into(values) => values.len() as u64,
            Output::Ahead(count) => *count,
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory to fill, where the values themselves are wanted.
    pub fn wanted(&mut self) -> Option<&mut [T]> {
        match self {
            Output::Into(values) => Some(values),
            Output::Ahead(_) => None,
        }
    }

    /// The first `count` of the values, or all where there are fewer, and the others.
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

    /// Some of the values, as an output of their own; those of the range that are not there are left out.
    pub fn part(&mut self, range: Range<u64>) -> Output<'_, T> {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        match self {
            Output::Into(values) => Output::Into(&mut values[start as usize..end as usize]),
            Output::Ahead(_) => Output::Ahead(end - start),
        }
    }

    /// An output of `count` values of another kind that are read for the sake of these: in `scratch`, which it takes
    /// only where these values are wanted themselves.
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
    fn both_kinds_are_cut_alike() {
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
    fn memory_is_taken_where_it_is_wanted() {
        let mut scratch: Vec<u64> = Vec::new();
        assert_eq!(Output::<u8>::Ahead(1).aside(1 << 40, &mut scratch).len(), 1 << 40);
        assert_eq!(scratch.capacity(), 0);
        assert_eq!(Output::from(&mut [0u8; 3][..]).aside(7, &mut scratch).wanted().map(|values| values.len()), Some(7));
    }
}
