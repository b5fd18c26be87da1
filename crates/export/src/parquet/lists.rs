//! The levels of lists that can be null, or of which each has its own length: for each value, and for each list without
//! one, whether a list begins there and how much of it there is.
//!
//! Levels are numbers of one or two bits. To find those of any place, the lists are counted once, block by block.

use std::ops::Range;
use std::sync::Arc;

use tilefs_format::error::{Error, Result};
use tilefs_reader::read::Output;

use super::chunk::packed_head;
use super::values::BLOCK_ROWS;
use crate::compose::Concat;
use crate::content::{Content, check_range};

/// So many blocks are counted at once.
const BLOCKS_AT_ONCE: u64 = 32;

/// Bytes of the length before levels.
const LENGTH: u64 = 4;

/// The lists of some rows of a column.
#[derive(Clone)]
pub struct Lists {
    pub rows: Range<u64>,
    /// Bytes of a value, in the column.
    pub value_size: u64,
    pub lengths: Lengths,
    /// A byte a row of the column, 0 where there is no list, if that can be.
    pub present: Option<Arc<dyn Content>>,
}

/// How many values lists have.
#[derive(Clone)]
pub enum Lengths {
    /// All have so many; at least one.
    Same(u64),
    /// The offsets in bytes of the column's values.
    Offsets(Arc<dyn Content>),
}

/// Lists that were counted. Takes 8 bytes of memory for 1024 rows.
pub struct CountedLists {
    lists: Lists,
    /// How many levels there are before each block, and at the end of all.
    before: Vec<u64>,
    /// How many values the lists have that are there.
    pub values: u64,
}

/// Which of the two levels that there are of each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 0 where a list begins, else 1.
    Repetition,
    /// Of a value the highest one, below it that of an empty list, and of null 0.
    Definition,
}

impl Lists {
    /// Reads all lengths, and which lists are there.
    ///
    /// # Errors
    /// When these cannot be read.
    pub fn count(self) -> Result<CountedLists> {
        let (mut before, mut levels, mut values) = (vec![0], 0u64, 0u64);
        let mut row = self.rows.start;
        while row < self.rows.end {
            let end = row.saturating_add(BLOCK_ROWS * BLOCKS_AT_ONCE).min(self.rows.end);
            for block in self.read(row..end)?.chunks(BLOCK_ROWS as usize) {
                for length in block {
                    levels = levels.saturating_add(levels_of(*length));
                    values = values.saturating_add(length.unwrap_or(0));
                }
                before.push(levels);
            }
            row = end;
        }
        Ok(CountedLists { lists: self, before, values })
    }

    /// The number of values in each of some lists; `None` of null.
    fn read(&self, rows: Range<u64>) -> Result<Vec<Option<u64>>> {
        let count = (rows.end - rows.start) as usize;
        let mut lengths: Vec<Option<u64>> = match &self.lengths {
            Lengths::Same(values) => vec![Some(*values); count],
            Lengths::Offsets(offsets) => {
                let mut bytes = vec![0; 8 * (count + 1)];
                offsets.read_at(8 * rows.start, &mut bytes)?;
                let offset = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
                let ends = bytes.as_chunks().0.windows(2).map(|ends| (offset(&ends[0]), offset(&ends[1])));
                let length = |(start, end): (u64, u64)| {
                    let length = end.checked_sub(start).filter(|length| length.is_multiple_of(self.value_size));
                    length.map(|length| Some(length / self.value_size))
                };
                let lengths: Option<Vec<_>> = ends.map(length).collect();
                lengths.ok_or_else(|| Error::damaged("offsets of values that fall, or lie within a value"))?
            }
        };
        if let Some(present) = &self.present {
            let mut marks = vec![0; count];
            present.read_at(rows.start, &mut marks)?;
            for (length, _) in lengths.iter_mut().zip(&marks).filter(|(_, mark)| **mark == 0) {
                *length = None;
            }
        }
        Ok(lengths)
    }

    /// Has the lengths of some lists read ahead.
    fn read_ahead(&self, rows: Range<u64>) -> Result<()> {
        let count = rows.end - rows.start;
        if let Lengths::Offsets(offsets) = &self.lengths {
            offsets.read(8 * rows.start, Output::Ahead(8 * (count + 1)))?;
        }
        self.present.as_ref().map_or(Ok(()), |present| present.read(rows.start, Output::Ahead(count)))
    }

    /// Bits of a definition level: there are three of them where lists can be null, else two.
    fn definition_bits(&self) -> u64 {
        if self.present.is_some() { 2 } else { 1 }
    }
}

/// A list has a level for each value; one without values has one for itself.
fn levels_of(length: Option<u64>) -> u64 {
    length.unwrap_or(0).max(1)
}

/// Bytes that the levels of so many lists with so many values take at most, but one a value.
pub fn most_levels_length(rows: u64) -> Option<u64> {
    // Three bits a level, and twice what stands before them, which rounds up to groups of eight.
    rows.checked_mul(3)?.div_ceil(8).checked_add(2 * (LENGTH + MOST_HEAD) + 3)
}

/// Bytes of the longest head.
const MOST_HEAD: u64 = 10;

impl CountedLists {
    /// How many levels there are of each kind.
    pub fn levels(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Bytes of all levels.
    pub fn length(&self) -> u64 {
        let head = packed_head(self.levels()).len() as u64;
        let bits = 1 + self.lists.definition_bits();
        2 * (LENGTH + head) + self.levels().div_ceil(8).saturating_mul(bits)
    }

    /// Both kinds of levels, as a page has them before the values.
    pub fn content(self) -> Concat {
        let head = packed_head(self.levels());
        let of_definition = self.lists.definition_bits();
        let this = Arc::new(self);
        let kinds = [(Kind::Repetition, 1), (Kind::Definition, of_definition)];
        let parts = kinds.into_iter().flat_map(|(kind, bits)| {
            let levels = Levels { of: this.clone(), kind, bits };
            let length = head.len() as u64 + levels.len();
            let before = [&(length as u32).to_le_bytes()[..], &head].concat();
            [Arc::new(before) as Arc<dyn Content>, Arc::new(levels)]
        });
        Concat::new(parts.collect())
    }

    /// The rows of a block, counted in the column.
    fn block(&self, number: usize) -> Range<u64> {
        let rows = &self.lists.rows;
        let row = |block: u64| rows.start.saturating_add(block.saturating_mul(BLOCK_ROWS)).min(rows.end);
        row(number as u64)..row(number as u64 + 1)
    }

    /// The blocks that have some of the levels.
    fn blocks(&self, levels: &Range<u64>) -> Range<usize> {
        let first = self.before.partition_point(|&before| before <= levels.start).saturating_sub(1);
        let end = self.before.partition_point(|&before| before < levels.end);
        first..end.min(self.before.len().saturating_sub(1)).max(first)
    }
}

/// The levels of one kind, end to end. Those behind the last one mean nothing.
struct Levels {
    of: Arc<CountedLists>,
    kind: Kind,
    bits: u64,
}

impl Levels {
    /// The levels of `levels`, which begin with a byte, into `out`.
    fn fill(&self, levels: Range<u64>, out: &mut [u8]) -> Result<()> {
        let per_byte = 8 / self.bits;
        let highest = if self.bits == 2 { 0b1010_1010 } else { 0b1111_1111 };
        out.fill(highest);
        for block in self.of.blocks(&levels) {
            let mut level = self.of.before[block];
            for length in self.of.lists.read(self.of.block(block))? {
                // Of the levels of a list only the first is not the highest one.
                let lower = match (self.kind, length) {
                    (Kind::Repetition, _) | (Kind::Definition, None) => Some(0),
                    (Kind::Definition, Some(0)) => Some(self.bits as u8 - 1),
                    (Kind::Definition, Some(_)) => None,
                };
                if let Some(lower) = lower.filter(|_| levels.contains(&level)) {
                    let place = level - levels.start;
                    let shift = place % per_byte * self.bits;
                    let mask = ((1u8 << self.bits) - 1) << shift;
                    if let Some(byte) = out.get_mut((place / per_byte) as usize) {
                        *byte = *byte & !mask | lower << shift;
                    }
                }
                level = level.saturating_add(levels_of(length));
            }
        }
        Ok(())
    }
}

impl Content for Levels {
    fn len(&self) -> u64 {
        self.of.levels().div_ceil(8) * self.bits
    }

    fn read(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        check_range(self.len(), offset, out.len())?;
        let per_byte = 8 / self.bits;
        let levels = offset * per_byte..(offset + out.len()) * per_byte;
        match out.wanted() {
            Some(out) => self.fill(levels, out),
            None if levels.is_empty() => Ok(()),
            None => {
                let blocks = self.of.blocks(&levels);
                let rows = self.of.block(blocks.start).start..self.of.block(blocks.end).start;
                if rows.is_empty() { Ok(()) } else { self.of.lists.read_ahead(rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead_within, read_all};
    use proptest::prelude::*;

    fn lists(lengths: &[Option<u64>], value_size: u64) -> Lists {
        let ends = lengths.iter().scan(0, |end, length| {
            // A null has values too.
            *end += length.unwrap_or(3) * value_size;
            Some(*end)
        });
        let offsets: Vec<u8> = std::iter::once(0).chain(ends).flat_map(u64::to_le_bytes).collect();
        let marks: Vec<u8> = lengths.iter().map(|length| u8::from(length.is_some())).collect();
        let present: Option<Arc<dyn Content>> = marks.contains(&0).then(|| Arc::new(marks) as _);
        Lists { rows: 0..lengths.len() as u64, value_size, lengths: Lengths::Offsets(Arc::new(offsets)), present }
    }

    /// Levels as the specification of the format has them, one list after the other.
    fn expected(lengths: &[Option<u64>]) -> (Vec<u8>, Vec<u8>) {
        let highest = if lengths.contains(&None) { 2 } else { 1 };
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        for length in lengths {
            repetition.push(0);
            match length {
                None => definition.push(0),
                Some(0) => definition.push(highest - 1),
                Some(length) => {
                    repetition.extend(vec![1; *length as usize - 1]);
                    definition.extend(vec![highest; *length as usize]);
                }
            }
        }
        (repetition, definition)
    }

    fn unpacked(bytes: &[u8], bits: usize, count: usize) -> Vec<u8> {
        let level = |place: usize| bytes[place * bits / 8] >> (place * bits % 8) & ((1 << bits) - 1);
        (0..count).map(level).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn levels_are_those_of_the_format(
            lengths in proptest::collection::vec(proptest::option::weighted(0.8, 0u64..9), 0..2500),
            without_nulls: bool,
            value_size in 1u64..9,
        ) {
            let lengths: Vec<Option<u64>> =
                lengths.into_iter().map(|length| if without_nulls { Some(length.unwrap_or(0)) } else { length }).collect();
            let (repetition, definition) = expected(&lengths);
            let counted = lists(&lengths, value_size).count().unwrap();
            let (levels, bits) = (counted.levels() as usize, counted.lists.definition_bits() as usize);
            prop_assert_eq!(levels, repetition.len());
            prop_assert_eq!(counted.values, lengths.iter().flatten().sum::<u64>());
            let most = most_levels_length(lengths.len() as u64).unwrap() + counted.values;
            let length = counted.length();
            prop_assert!(length <= most);
            let content = counted.content();
            let whole = read_all(&content);
            prop_assert_eq!(whole.len() as u64, length);
            let head = packed_head(levels as u64).len();
            let (first, rest) = whole[4 + head..].split_at(levels.div_ceil(8));
            prop_assert!(unpacked(first, 1, levels) == repetition);
            prop_assert!(unpacked(&rest[4 + head..], bits, levels) == definition);
            assert_random_access(&content);
        }
    }

    #[test]
    fn lengths_are_read_ahead() {
        let lengths: Vec<Option<u64>> = (0..9000).map(|row| (row % 7 != 0).then_some(row % 5)).collect();
        assert_reads_ahead_within(8 * BLOCK_ROWS, |sources| {
            let Lists { rows, value_size, lengths, present } = lists(&lengths, 8);
            let Lengths::Offsets(offsets) = lengths else { unreachable!() };
            let lengths = Lengths::Offsets(sources.values(offsets));
            let present = present.map(|present| sources.values(present));
            Arc::new(Lists { rows, value_size, lengths, present }.count().unwrap().content())
        });
    }

    #[test]
    fn offsets_within_values_are_errors() {
        for offsets in [[0u64, 8, 4], [0, 6, 8], [8, 0, 8]] {
            let offsets: Vec<u8> = offsets.into_iter().flat_map(u64::to_le_bytes).collect();
            let lengths = Lengths::Offsets(Arc::new(offsets));
            assert!(Lists { rows: 0..2, value_size: 4, lengths, present: None }.count().is_err());
        }
    }
}
