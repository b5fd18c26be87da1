//! The levels of lists that can be null or vary in length. The levels of each value, and of each list without values,
//! tell whether a list begins there, and whether the list and the value exist.
//!
//! Levels are numbers of one or two bits. To locate them, the lists are counted once, block by block.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;

use super::thrift::varint;
use super::values::BLOCK_ROWS;
use crate::content::compose::Concat;
use crate::content::offsets::Offsets;
use crate::content::validity::{RowValidity, Validity};

/// Number of blocks counted at a time.
const BLOCKS_AT_ONCE: u64 = 32;

/// Size of the length before levels, in bytes.
const LENGTH: u64 = 4;

/// Returns the head of bit-packed numbers: their count, in groups of eight.
pub fn packed_head(values: u64) -> Vec<u8> {
    let mut head = Vec::new();
    varint(&mut head, values.div_ceil(8) << 1 | 1);
    head
}

/// The lists of a range of rows of a column.
#[derive(Clone)]
pub struct Lists {
    pub rows: Range<u64>,
    /// Size of a value in the column, in bytes.
    pub value_size: u64,
    pub lengths: Lengths,
    /// Which rows of the column are null; `None` if no list can be null.
    pub validity: Option<Validity>,
    /// Which values of the column are null; `None` if no value can be null.
    pub elements: Option<Validity>,
}

/// The numbers of values of the lists.
#[derive(Clone)]
pub enum Lengths {
    /// All lists have this many values, at least one.
    Same(u64),
    /// The byte offsets of the column's values.
    Offsets(Offsets),
}

/// Lists that were counted. Takes 8 bytes of memory per 1024 rows.
pub struct CountedLists {
    lists: Lists,
    /// Number of levels before each block, and in total.
    before: Vec<u64>,
    /// Number of values that are not null, in all lists.
    pub values: u64,
}

/// The lists of some rows.
struct SomeLists {
    /// The number of the first value among the values of the column.
    first: u64,
    /// The number of values in each list; `None` for null.
    lengths: Vec<Option<u64>>,
}

/// Consecutive values of one list: the numbers of the first level and of the first value, and the count of values.
struct ValueRun {
    level: u64,
    value: u64,
    count: u64,
}

/// The two kinds of levels of each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    /// 0 where a list begins, otherwise 1.
    Repetition,
    /// From high to low: a value, a null value, an empty list, a null list. Nulls that cannot occur have no level.
    Definition,
}

impl Lists {
    /// Reads all lengths, and which lists are null.
    ///
    /// # Errors
    /// Fails if lengths or marks of nulls cannot be read.
    pub fn count(self) -> Result<CountedLists> {
        let (mut before, mut levels, mut values) = (vec![0], 0u64, 0u64);
        let mut row = self.rows.start;
        while row < self.rows.end {
            let end = row.saturating_add(BLOCK_ROWS * BLOCKS_AT_ONCE).min(self.rows.end);
            let lists = self.read(row..end)?;
            let count = values;
            for block in lists.lengths.chunks(BLOCK_ROWS as usize) {
                for length in block {
                    levels = levels.saturating_add(levels_of(*length));
                    values = values.saturating_add(length.unwrap_or(0));
                }
                before.push(levels);
            }
            if let Some(elements) = &self.elements {
                values = values.saturating_sub(elements.part(lists.first, values - count).null_count()?);
            }
            row = end;
        }
        Ok(CountedLists { lists: self, before, values })
    }

    /// Reads the number of values in each list of some rows.
    fn read(&self, rows: Range<u64>) -> Result<SomeLists> {
        let count = (rows.end - rows.start) as usize;
        let mut first = 0;
        let mut lengths: Vec<Option<u64>> = match &self.lengths {
            Lengths::Same(values) => vec![Some(*values); count],
            Lengths::Offsets(offsets) => {
                let mut starts = vec![0; count + 1];
                offsets.read_into(rows.start, &mut starts)?;
                first = starts[0] / self.value_size;
                let length = |ends: &[u64]| {
                    let length = ends[1].checked_sub(ends[0]).filter(|length| length.is_multiple_of(self.value_size));
                    length.map(|length| Some(length / self.value_size))
                };
                let lengths: Option<Vec<_>> = starts.windows(2).map(length).collect();
                lengths.ok_or_else(|| Error::damaged("offsets of values that decrease, or lie within a value"))?
            }
        };
        RowValidity::of(self.validity.as_ref(), rows)?.nulls().for_each(|row| lengths[row] = None);
        Ok(SomeLists { first, lengths })
    }

    /// Prefetches the lengths of some lists.
    fn read_ahead(&self, rows: Range<u64>) -> Result<()> {
        let count = rows.end - rows.start;
        if let Lengths::Offsets(offsets) = &self.lengths {
            offsets.read(8 * rows.start, Output::Ahead(8 * (count + 1)))?;
        }
        RowValidity::default().read(self.validity.as_ref(), rows, &Output::Ahead(count))
    }

    /// Returns the definition level of an empty list: 1 if lists can be null, because null is 0.
    fn empty_level(&self) -> u8 {
        u8::from(self.validity.is_some())
    }

    /// Returns the definition level of a value that is not null.
    fn highest_level(&self) -> u8 {
        self.empty_level() + 1 + u8::from(self.elements.is_some())
    }

    /// Returns the number of bits of a definition level.
    fn definition_bits(&self) -> u64 {
        if self.highest_level() > 1 { 2 } else { 1 }
    }
}

/// Returns the number of levels of a list: one for each value, or a single one if it has no values.
fn levels_of(length: Option<u64>) -> u64 {
    length.unwrap_or(0).max(1)
}

/// Returns the maximum length in bytes of the levels of `rows` lists, in addition to one byte per value.
pub fn most_levels_length(rows: u64) -> Option<u64> {
    // Three bits per list, and the head of each kind of level, rounded up to groups of eight.
    rows.checked_mul(3)?.div_ceil(8).checked_add(2 * (LENGTH + MAX_HEAD) + 3)
}

/// Maximum length of a head in bytes.
const MAX_HEAD: u64 = 10;

impl CountedLists {
    /// Returns the number of levels of each kind.
    pub fn levels(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns the length of all levels in bytes.
    pub fn length(&self) -> u64 {
        let head = packed_head(self.levels()).len() as u64;
        let bits = 1 + self.lists.definition_bits();
        2 * (LENGTH + head) + self.levels().div_ceil(8).saturating_mul(bits)
    }

    /// Returns both kinds of levels, as a page stores them before the values.
    pub fn content(self) -> Concat {
        let head = packed_head(self.levels());
        let of_definition = self.lists.definition_bits();
        let this = Arc::new(self);
        let kinds = [(LevelKind::Repetition, 1), (LevelKind::Definition, of_definition)];
        let parts = kinds.into_iter().flat_map(|(kind, bits)| {
            let levels = Levels { of: this.clone(), kind, bits };
            let length = head.len() as u64 + levels.len();
            let before = [&(length as u32).to_le_bytes()[..], &head].concat();
            [Arc::new(before) as Arc<dyn Content>, Arc::new(levels)]
        });
        Concat::new(parts.collect())
    }

    /// Returns the rows of a block, as row numbers of the column.
    fn block(&self, number: usize) -> Range<u64> {
        let rows = &self.lists.rows;
        let row = |block: u64| rows.start.saturating_add(block.saturating_mul(BLOCK_ROWS)).min(rows.end);
        row(number as u64)..row(number as u64 + 1)
    }

    /// Returns the blocks that contain some of the levels.
    fn blocks(&self, levels: &Range<u64>) -> Range<usize> {
        let first = self.before.partition_point(|&before| before <= levels.start).saturating_sub(1);
        let end = self.before.partition_point(|&before| before < levels.end);
        first..end.min(self.before.len().saturating_sub(1)).max(first)
    }
}

/// The levels of one kind, end to end, and padding after the last level.
struct Levels {
    of: Arc<CountedLists>,
    kind: LevelKind,
    bits: u64,
}

impl Levels {
    /// Writes the levels numbered `levels` to `out`; the first level begins at a byte boundary.
    fn fill(&self, levels: Range<u64>, out: &mut [u8]) -> Result<()> {
        let lists = &self.of.lists;
        let highest = if self.kind == LevelKind::Repetition { 1 } else { lists.highest_level() };
        out.fill(match (self.bits, highest) {
            (1, _) | (_, 3) => 0b1111_1111,
            _ => 0b1010_1010,
        });
        let elements = lists.elements.as_ref().filter(|_| self.kind == LevelKind::Definition);
        for block in self.of.blocks(&levels) {
            let mut level = self.of.before[block];
            let SomeLists { first, lengths } = lists.read(self.of.block(block))?;
            let (mut value, mut runs) = (first, Vec::new());
            for length in lengths {
                // Among the levels of a list, only the first can be lower than the highest, unless values are null.
                let lower = match (self.kind, length) {
                    (LevelKind::Repetition, _) | (LevelKind::Definition, None) => Some(0),
                    (LevelKind::Definition, Some(0)) => Some(lists.empty_level()),
                    (LevelKind::Definition, Some(_)) => None,
                };
                if let Some(lower) = lower.filter(|_| levels.contains(&level)) {
                    self.set(level - levels.start, lower, out);
                }
                let count = length.unwrap_or(0);
                let seen = level.max(levels.start)..level.saturating_add(count).min(levels.end);
                if elements.is_some() && !seen.is_empty() {
                    let from = value.saturating_add(seen.start - level);
                    runs.push(ValueRun { level: seen.start, value: from, count: seen.end - seen.start });
                }
                value = value.saturating_add(count);
                level = level.saturating_add(levels_of(length));
            }
            if let Some(elements) = elements {
                self.mark_nulls(elements, &runs, levels.start, lists.highest_level() - 1, out)?;
            }
        }
        Ok(())
    }

    /// Sets the levels of null values; `out` begins with the level `start`.
    fn mark_nulls(&self, elements: &Validity, runs: &[ValueRun], start: u64, null: u8, out: &mut [u8]) -> Result<()> {
        let Some((first, last)) = runs.first().zip(runs.last()) else { return Ok(()) };
        // Null lists have no values, so the values of all runs are consecutive, and no more than the levels.
        let mut marks = vec![0; (last.value + last.count - first.value) as usize];
        elements.read_at(first.value, &mut marks)?;
        for run in runs {
            let from = (run.value - first.value) as usize;
            let marks = marks.get(from..from + run.count as usize).unwrap_or_default();
            for (number, _) in marks.iter().enumerate().filter(|(_, mark)| **mark == 0) {
                self.set(run.level - start + number as u64, null, out);
            }
        }
        Ok(())
    }

    /// Sets a level of `out`.
    fn set(&self, place: u64, level: u8, out: &mut [u8]) {
        let per_byte = 8 / self.bits;
        let shift = place % per_byte * self.bits;
        let mask = ((1u8 << self.bits) - 1) << shift;
        if let Some(byte) = out.get_mut((place / per_byte) as usize) {
            *byte = *byte & !mask | level << shift;
        }
    }
}

impl Content for Levels {
    fn len(&self) -> u64 {
        self.of.levels().div_ceil(8) * self.bits
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
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
            // Nulls have values too.
            *end += length.unwrap_or(3) * value_size;
            Some(*end)
        });
        let offsets: Vec<u8> = std::iter::once(0).chain(ends).flat_map(u64::to_le_bytes).collect();
        let marks: Vec<u8> = lengths.iter().map(|length| u8::from(length.is_some())).collect();
        let validity = marks.contains(&0).then(|| Arc::new(marks).into());
        let lengths_of = Lengths::Offsets(Arc::new(offsets).into());
        Lists { rows: 0..lengths.len() as u64, value_size, lengths: lengths_of, validity, elements: None }
    }

    /// Returns the levels as specified by the format, list by list.
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
        fn levels_match_the_specification(
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The same with null elements; null lists have none.
        #[test]
        fn levels_of_null_elements_match_the_specification(
            lists in proptest::collection::vec(
                proptest::option::weighted(0.8, proptest::collection::vec(any::<bool>(), 0..9)), 0..2500),
            without_nulls: bool,
        ) {
            let lists: Vec<Option<Vec<bool>>> =
                lists.into_iter().map(|list| if without_nulls { Some(list.unwrap_or_default()) } else { list }).collect();
            let empty = u8::from(lists.contains(&None));
            let (mut repetition, mut definition, mut elements) = (Vec::new(), Vec::new(), Vec::new());
            for list in &lists {
                repetition.push(0);
                match list.as_deref() {
                    None => definition.push(0),
                    Some([]) => definition.push(empty),
                    Some(list) => {
                        repetition.extend(vec![1; list.len() - 1]);
                        definition.extend(list.iter().map(|is_there| empty + 1 + u8::from(*is_there)));
                        elements.extend(list.iter().map(|is_there| u8::from(*is_there)));
                    }
                }
            }
            let ends = lists.iter().scan(0, |end, list| {
                *end += list.as_ref().map_or(0, |list| list.len() as u64);
                Some(*end)
            });
            let offsets: Vec<u8> = std::iter::once(0).chain(ends).flat_map(u64::to_le_bytes).collect();
            let marks: Vec<u8> = lists.iter().map(|list| u8::from(list.is_some())).collect();
            let validity = marks.contains(&0).then(|| Arc::new(marks).into());
            let there = elements.iter().filter(|mark| **mark == 1).count() as u64;
            let (rows, lengths) = (0..lists.len() as u64, Lengths::Offsets(Arc::new(offsets).into()));
            let all = Lists { rows, value_size: 1, lengths, validity, elements: Some(Arc::new(elements).into()) };
            let counted = all.count().unwrap();
            prop_assert_eq!(counted.values, there);
            let levels = counted.levels() as usize;
            prop_assert_eq!(levels, repetition.len());
            prop_assert!(counted.length() <= most_levels_length(lists.len() as u64).unwrap() + levels as u64);
            let content = counted.content();
            let whole = read_all(&content);
            let head = packed_head(levels as u64).len();
            let (first, rest) = whole[4 + head..].split_at(levels.div_ceil(8));
            prop_assert!(unpacked(first, 1, levels) == repetition);
            prop_assert!(unpacked(&rest[4 + head..], 2, levels) == definition);
            assert_random_access(&content);
        }
    }

    #[test]
    fn lengths_are_prefetched() {
        let lengths: Vec<Option<u64>> = (0..9000).map(|row| (row % 7 != 0).then_some(row % 5)).collect();
        assert_reads_ahead_within(8 * BLOCK_ROWS, |sources| {
            let Lists { rows, value_size, lengths, validity, .. } = lists(&lengths, 8);
            let Lengths::Offsets(offsets) = lengths else { unreachable!() };
            let lengths = Lengths::Offsets(sources.values(offsets.content()).into());
            let validity = validity.map(|validity| sources.values(validity.content()).into());
            Arc::new(Lists { rows, value_size, lengths, validity, elements: None }.count().unwrap().content())
        });
    }

    #[test]
    fn offsets_within_values_are_errors() {
        for offsets in [[0u64, 8, 4], [0, 6, 8], [8, 0, 8]] {
            let offsets: Vec<u8> = offsets.into_iter().flat_map(u64::to_le_bytes).collect();
            let lengths = Lengths::Offsets(Arc::new(offsets).into());
            assert!(Lists { rows: 0..2, value_size: 4, lengths, validity: None, elements: None }.count().is_err());
        }
    }
}
