//! The chunks of a Zarr array as a series of files: a reader of two consecutive chunks gets the next one prefetched.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_export::zarr::ZarrArray;

/// Number of recently read chunks to remember: enough for that many readers, each with chunks of its own.
const MAX_KNOWN: usize = 16;

/// The chunks of an array, in row-major order. Memory: the numbers and contents of `MAX_KNOWN` chunks.
pub struct ChunkSeries {
    array: Arc<ZarrArray>,
    grid: Vec<u64>,
    history: Mutex<ReadHistory>,
}

#[derive(Default)]
struct ReadHistory {
    /// Chunks that readers have recently begun to read.
    read: VecDeque<u64>,
    /// Chunks that were announced as next.
    next: VecDeque<(u64, Arc<dyn Content>)>,
}

/// A chunk of the series.
struct ReadChunk {
    content: Arc<dyn Content>,
    /// Weak, because the series keeps the next chunk: strong references would form a cycle.
    series: Weak<ChunkSeries>,
    number: u64,
}

impl ChunkSeries {
    pub fn new(array: Arc<ZarrArray>) -> Self {
        ChunkSeries { grid: array.grid(), array, history: Mutex::default() }
    }

    pub fn array(&self) -> &ZarrArray {
        &self.array
    }

    /// Returns the number of chunks along each axis.
    pub fn grid(&self) -> &[u64] {
        &self.grid
    }

    /// Returns the chunk with these numbers, one along each axis.
    ///
    /// # Errors
    /// As for [`ZarrArray::chunk`].
    pub fn open(self: &Arc<Self>, numbers: &[u64]) -> Result<Arc<dyn Content>> {
        let number = self.number(numbers);
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = history.next.iter().position(|(next, _)| Some(*next) == number)
            && let Some((_, content)) = history.next.remove(at)
        {
            return Ok(content);
        }
        drop(history);
        self.make(numbers, number)
    }

    fn make(self: &Arc<Self>, numbers: &[u64], number: Option<u64>) -> Result<Arc<dyn Content>> {
        let content = self.array.chunk(numbers)?.ok_or_else(|| Error::internal("a chunk outside of its grid"))?;
        // If chunks vary in size, their lengths are known only after reading cells, so they are not prefetched.
        match number.filter(|_| self.array.chunk_bytes().is_some()) {
            Some(number) => Ok(Arc::new(ReadChunk { content, series: Arc::downgrade(self), number })),
            None => Ok(content),
        }
    }

    /// Returns the index of a chunk in the series.
    fn number(&self, numbers: &[u64]) -> Option<u64> {
        let mut axes = self.grid.iter().zip(numbers);
        axes.try_fold(0u64, |number, (length, along)| number.checked_mul(*length)?.checked_add(*along))
    }

    /// Returns the numbers of a chunk along each axis; `None` past the last.
    fn numbers(&self, mut number: u64) -> Option<Vec<u64>> {
        let mut numbers = vec![0; self.grid.len()];
        for (along, &length) in numbers.iter_mut().zip(&self.grid).rev() {
            *along = number.checked_rem(length)?;
            number /= length;
        }
        (number == 0).then_some(numbers)
    }

    /// Records that a chunk is being read; returns the next one if the previous one was read recently.
    fn next_of(self: &Arc<Self>, number: u64) -> Option<Arc<dyn Content>> {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let is_series = number.checked_sub(1).is_some_and(|before| history.read.contains(&before));
        if !history.read.contains(&number) {
            push(&mut history.read, number);
        }
        let next = number.checked_add(1)?;
        if !is_series || history.read.contains(&next) || history.next.iter().any(|(known, _)| *known == next) {
            return None;
        }
        drop(history);
        // Opening that chunk will report the error.
        let content = self.make(&self.numbers(next)?, Some(next)).ok()?;
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        push(&mut history.next, (next, content.clone()));
        Some(content)
    }
}

/// Adds an item, and drops the oldest if there are too many.
fn push<T>(known: &mut VecDeque<T>, one: T) {
    if known.len() >= MAX_KNOWN {
        known.pop_front();
    }
    known.push_back(one);
}

impl Content for ReadChunk {
    fn len(&self) -> u64 {
        self.content.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        self.content.read(offset, out)
    }

    fn band(&self, offset: u64) -> Range<u64> {
        self.content.band(offset)
    }

    fn decoded_per_byte(&self) -> u64 {
        self.content.decoded_per_byte()
    }

    fn next_file(&self) -> Option<Arc<dyn Content>> {
        self.series.upgrade()?.next_of(self.number)
    }
}

#[cfg(test)]
mod tests {
    use tilefs_export::column::boxes::{BoxedColumns, Boxes};
    use tilefs_export::column::{Column, Field};
    use tilefs_export::zarr::{ZarrNode, zarr};
    use tilefs_format::datatype::Datatype;
    use tilefs_reader::array::dense::IndexBox;

    use super::*;

    /// A column of bytes, 5 by 6 in tiles of 2 by 2, whose values are the numbers of the cells.
    struct Numbers(Field);

    impl Boxes for Numbers {
        fn field(&self) -> &Field {
            &self.0
        }

        fn shape(&self) -> &[u64] {
            &[5, 6]
        }

        fn extents(&self) -> Vec<u64> {
            vec![2, 2]
        }

        fn column(&self, cells: &IndexBox) -> Result<Column> {
            let along = |axis: usize| cells.first[axis]..cells.first[axis] + cells.count[axis];
            let values: Vec<u8> = along(0).flat_map(|y| along(1).map(move |x| (y * 6 + x) as u8)).collect();
            Ok(Column::fixed(self.0.clone(), cells.count.clone(), Arc::new(values)))
        }
    }

    fn series() -> Arc<ChunkSeries> {
        let attribute: Arc<dyn Boxes> = Arc::new(Numbers(Field::new("a", Datatype::UInt8)));
        let group = zarr(&BoxedColumns {
            sparse: false,
            dimensions: Vec::new(),
            attributes: vec![attribute],
            metadata: Vec::new(),
            auxiliary: Vec::new(),
            georeference: None,
        });
        match &group.members[..] {
            [(_, ZarrNode::Array(array))] => Arc::new(ChunkSeries::new(array.clone())),
            _ => panic!("one array"),
        }
    }

    fn bytes(content: &dyn Content) -> Vec<u8> {
        let mut bytes = vec![0; content.len() as usize];
        content.read_at(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn chunk_after_two_consecutive_ones_is_next() {
        let series = series();
        assert_eq!(series.grid(), [3, 3]);
        let open = |y, x| series.open(&[y, x]).unwrap();
        assert!(open(0, 1).next_file().is_none(), "one chunk is no series");
        let next = open(0, 2).next_file().expect("two in a row");
        assert_eq!(bytes(&*next), [12, 13, 18, 19]);
        assert!(open(0, 2).next_file().is_none(), "announced once");
        assert!(Arc::ptr_eq(&open(1, 0), &next), "opening it returns the prefetched chunk");
        assert!(!Arc::ptr_eq(&open(1, 0), &next));
        // Down a column, and past the last.
        for y in 0..3 {
            assert!(series.open(&[y, 1]).unwrap().next_file().is_none(), "{y}");
        }
        assert!(open(2, 2).next_file().is_none());
        assert!(series.open(&[3, 0]).is_err());
    }

    #[test]
    fn unopened_chunk_does_not_keep_its_array() {
        let series = series();
        assert!(series.open(&[0, 0]).unwrap().next_file().is_none());
        let next = series.open(&[0, 1]).unwrap().next_file();
        let array = Arc::downgrade(&series.array);
        drop(series);
        assert!(next.is_some_and(|next| bytes(&*next) == [4, 5, 10, 11] && next.next_file().is_none()));
        assert!(array.upgrade().is_none());
    }

    #[test]
    fn several_readers_have_their_own_series() {
        let series = series();
        let next = |y, x| series.open(&[y, x]).unwrap().next_file().map(|next| bytes(&*next));
        assert_eq!((next(0, 0), next(1, 1)), (None, None));
        assert_eq!(next(0, 1), Some(vec![4, 5, 10, 11]));
        assert_eq!(next(1, 2), Some(vec![24, 25, 0, 0]));
    }

    #[test]
    fn numbers_are_row_major() {
        let series = series();
        for number in 0..9 {
            let numbers = series.numbers(number).unwrap();
            assert_eq!(numbers, [number / 3, number % 3]);
            assert_eq!(series.number(&numbers), Some(number));
        }
        assert!(series.numbers(9).is_none());
    }
}
