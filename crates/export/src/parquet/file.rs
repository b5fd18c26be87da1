//! The whole file: the chunks of all row groups, and the footer that locates them.

use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_base::output::Output;
use tilefs_reader::array::ValueBounds;
use tilefs_threads::single_flight::SingleFlight;

use super::chunk::ChunkRows;
use super::groups::RowGroups;
use super::metadata::{ChunkStatistics, ColumnChunk, MAGIC, SchemaColumn, footer, row_group};
use super::statistics::{MAX_STATISTIC, statistics};
use super::types::ParquetColumn;
use crate::arrow;
use crate::arrow::schema::ArrowField;
use crate::column::{FormatResult, Unrepresentable};
use crate::content::compose::{Concat, Repeat};
use crate::content::offsets::wrong_offsets;
use crate::content::{MEMORY_PAGE as PAGE, read_head, read_parts};

/// Bytes at the end of a file that readers ask for first, together with the footer.
const READ_WITH_FOOTER: u64 = 64 << 10;

/// Number of recently read chunks to keep: making one may require reading all its rows.
const RECENT_CHUNKS: usize = 64;

/// A Parquet file; the parts that depend on cells are made when first read.
pub struct ParquetFile {
    columns: Vec<ParquetColumn>,
    groups: RowGroups,
    /// Keys and values; the last value is the Arrow schema in base 64.
    metadata: Vec<(String, String)>,
    /// Bytes reserved for each column in each row group, group by group, excluding values of variable length.
    reserved: Vec<u64>,
    /// The end of the chunks, where the tail begins.
    chunks_end: u64,
    length: u64,
    places: SingleFlight<Places>,
    tail: SingleFlight<Arc<Concat>>,
    /// Recently read chunks, latest first.
    recent: LruCache<usize, Arc<dyn Content>>,
}

/// The positions of the chunks.
struct Places {
    /// The start of the space reserved for each chunk, and the end of the last chunk's space.
    starts: Vec<u64>,
    /// For each column of variable length, where the values of each row group begin among all values, and where the
    /// values of the last group end. Lists are counted in elements, other values in bytes. Empty for other columns.
    offsets: Vec<Vec<u64>>,
    /// For each column of lists of texts, where the texts of each row group begin among the bytes of all texts, and
    /// where the texts of the last group end. Empty for other columns.
    texts: Vec<Vec<u64>>,
}

impl Places {
    /// Returns the range of the values of a group, given the starts of all groups; an empty range for a column without
    /// starts.
    fn between(starts: &[Vec<u64>], column: usize, group: usize) -> Range<u64> {
        match starts.get(column).and_then(|starts| starts.get(group..)?.first_chunk()) {
            Some([start, end]) => *start..*end,
            None => 0..0,
        }
    }
}

impl ParquetFile {
    /// Makes everything that does not depend on cells.
    pub fn new(
        columns: Vec<ParquetColumn>,
        groups: RowGroups,
        mut metadata: Vec<(String, String)>,
    ) -> FormatResult<Self> {
        let fields = arrow_fields(&columns);
        // Readers that convert to Arrow take all metadata from the Arrow schema.
        metadata.push(("ARROW:schema".to_owned(), STANDARD.encode(arrow::schema_message(fields, metadata.clone()))));
        let mut reserved = Vec::new();
        let mut end = MAGIC.len() as u64;
        let too_long = || Unrepresentable::new("the Parquet file would be longer than 2^63 bytes");
        for rows in groups.iter() {
            for column in &columns {
                let length = column.reserved_length(rows.end - rows.start).ok_or_else(|| {
                    Unrepresentable::new(format!("{}: too many bytes per row for Parquet", column.field.name))
                })?;
                let room = if column.may_refuse { length.checked_add(ROOM_FOR_PAGES) } else { Some(length) };
                end = room.and_then(|room| end.checked_add(room)).ok_or_else(too_long)?;
                reserved.push(length);
            }
        }
        for column in columns.iter().filter(|column| column.offsets.is_some()) {
            let length = column.reserved_for_values(column.last_offset(), column.values.len()).ok_or_else(too_long)?;
            end = end.checked_add(length).ok_or_else(too_long)?;
        }
        let mut file = ParquetFile {
            columns,
            groups,
            metadata,
            reserved,
            chunks_end: end,
            length: 0,
            places: SingleFlight::new(),
            tail: SingleFlight::new(),
            recent: LruCache::new(RECENT_CHUNKS),
        };
        let tail = file
            .most_of_groups(None)
            .and_then(|groups| file.reserved_for_tail(groups))
            .and_then(|length| length.checked_add(file.gap_before_footer(length)));
        file.length = tail.and_then(|length| end.checked_add(length)).ok_or_else(too_long)?;
        if file.length > i64::MAX as u64 {
            return Err(too_long());
        }
        Ok(file)
    }

    /// Returns the bytes to leave free in front of a footer of this length, so that readers of the footer do not read
    /// values that may be refused.
    fn gap_before_footer(&self, footer: u64) -> u64 {
        match self.columns.iter().any(|column| column.may_refuse) && self.groups.count() > 0 {
            true => (READ_WITH_FOOTER + PAGE).saturating_sub(footer),
            false => 0,
        }
    }

    fn schema_columns(&self) -> Vec<SchemaColumn<'_>> {
        let columns = self.columns.iter().map(|column| SchemaColumn {
            name: &column.field.name,
            within: column.within.as_deref(),
            leaf: &column.leaf,
            is_optional: column.validity.is_some(),
            is_list: column.layout.is_list(),
            has_nullable_elements: column.elements.is_some(),
            encodings: column.encodings(),
        });
        columns.collect()
    }

    /// Returns the numbers of the columns by which rows are sorted, the most significant first.
    fn sorted_by(&self) -> Vec<i32> {
        let of_rank = |rank| self.columns.iter().position(|column| column.sort_rank == Some(rank));
        // If a column is left out, rows are only sorted by those before it.
        (0..self.columns.len()).map_while(of_rank).filter_map(|column| i32::try_from(column).ok()).collect()
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.groups.total()
    }

    /// Returns the maximum length in bytes of the footer's row groups. `place` is the path of this file, if the footer is in
    /// another one.
    pub fn most_of_groups(&self, place: Option<&str>) -> Option<u64> {
        let columns = self.schema_columns();
        let most = ColumnChunk {
            place,
            values: i64::MAX as u64,
            dictionary: None,
            data: i64::MAX as u64,
            bytes: i64::MAX as u64,
            statistics: ChunkStatistics::default(),
        };
        let chunks: Vec<ColumnChunk> = self
            .columns
            .iter()
            .map(|column| {
                let longest = vec![0xff; MAX_STATISTIC];
                let statistics = column.statistics.as_ref().map(|_| ChunkStatistics {
                    bounds: Some(ValueBounds { least: longest.clone(), greatest: longest, ..ValueBounds::default() }),
                    nulls: Some(i64::MAX as u64),
                });
                ColumnChunk {
                    dictionary: column.dictionary.as_ref().map(|_| i64::MAX as u64),
                    statistics: statistics.unwrap_or_default(),
                    ..most.clone()
                }
            })
            .collect();
        let group = row_group(i16::MAX as usize, i64::MAX as u64, &chunks, &columns, &self.sorted_by()).len() as u64;
        (self.groups.count() as u64).checked_mul(group)
    }

    /// Returns the footer with these row groups of files with the same columns, which have `rows` rows.
    pub fn footer_of(&self, rows: u64, groups: Vec<Vec<u8>>) -> Vec<u8> {
        footer(&self.schema_columns(), rows, groups.into_iter(), &self.metadata)
    }

    /// Returns the maximum length in bytes of a footer with row groups of `groups` bytes, its length and the magic bytes.
    pub fn reserved_for_tail(&self, groups: u64) -> Option<u64> {
        // The length of the list of groups takes at most five bytes, the number of rows ten.
        let empty = self.footer_of(0, Vec::new()).len() as u64 + 15;
        let footer = groups.checked_add(empty)?;
        Some(footer).filter(|&footer| footer <= u32::MAX.into()).map(|footer| footer + TAIL)
    }

    fn places(&self) -> Result<&Places> {
        self.places.get_or_make(|| {
            let (mut offsets, mut texts) = (Vec::new(), Vec::new());
            for column in &self.columns {
                let starts = self.starts(column).in_field(&column.field.name)?;
                texts.push(text_starts(column, &starts).in_field(&column.field.name)?);
                offsets.push(starts);
            }
            let mut starts = vec![MAGIC.len() as u64];
            let mut place = MAGIC.len() as u64;
            if self.columns.first().is_some_and(|column| column.may_refuse) {
                // A chunk's values are at the end of its space, so this keeps values off the file's first page.
                place += PAGE;
            }
            for (number, length) in self.reserved.iter().enumerate() {
                let (group, column) = (number / self.columns.len(), number % self.columns.len());
                let next = &self.columns[(number + 1) % self.columns.len()];
                let values = Places::between(&offsets, column, group);
                let texts = Places::between(&texts, column, group);
                let (values, texts) = (values.end - values.start, texts.end - texts.start);
                place += length + self.columns[column].reserved_for_values(values, texts).unwrap_or(0);
                if self.columns[column].may_refuse || next.may_refuse {
                    // Then a value that is refused makes no other column's values unreadable.
                    place = place.next_multiple_of(PAGE);
                }
                starts.push(place);
            }
            if let [_, .., last] = &mut starts[..] {
                *last = self.chunks_end;
            }
            Ok(Places { starts, offsets, texts })
        })
    }

    /// Returns the start of each group's values in a column of variable length, as for `Places::offsets`.
    fn starts(&self, column: &ParquetColumn) -> Result<Vec<u64>> {
        let Some(offsets) = &column.offsets else {
            return Ok(Vec::new());
        };
        let mut starts = Vec::new();
        for row in self.groups.iter().map(|rows| rows.start).chain([self.groups.total()]) {
            starts.push(offsets.at(row)?);
        }
        let agrees = starts.first() == Some(&0)
            && starts.is_sorted()
            && starts.last() == Some(&column.last_offset())
            && (column.elements.is_some() || starts.iter().all(|start| start.is_multiple_of(column.size.max(1))));
        // A table without rows has no groups.
        if agrees { Ok(starts) } else { Err(wrong_offsets()) }
    }

    /// Returns the rows of a chunk.
    fn rows_of(&self, number: usize, places: &Places) -> ChunkRows {
        let (group, column) = (number / self.columns.len(), number % self.columns.len());
        let offsets = Places::between(&places.offsets, column, group);
        ChunkRows { rows: self.groups.rows(group), offsets, texts: Places::between(&places.texts, column, group) }
    }

    /// Returns the row groups as in a footer, numbered from `first` on. `place` is the path of this file, if the footer is in
    /// another one.
    ///
    /// # Errors
    /// Fails if data that locate values cannot be read.
    pub fn row_groups(&self, place: Option<&str>, first: usize) -> Result<Vec<Vec<u8>>> {
        let (places, columns, sorted_by) = (self.places()?, self.schema_columns(), self.sorted_by());
        let mut groups = Vec::new();
        for (group, rows) in self.groups.iter().enumerate() {
            let mut chunks = Vec::new();
            for (number, column) in self.columns.iter().enumerate() {
                let chunk = group * self.columns.len() + number;
                let of = self.rows_of(chunk, places);
                let statistics = statistics(column, of.rows.clone());
                chunks.push(ColumnChunk { place, statistics, ..column.chunk(&of, places.starts[chunk + 1])? });
            }
            groups.push(row_group(first + group, rows.end - rows.start, &chunks, &columns, &sorted_by));
        }
        Ok(groups)
    }

    fn tail(&self) -> Result<&Arc<Concat>> {
        self.tail.get_or_make(|| {
            let footer = self.footer_of(self.rows(), self.row_groups(None, 0)?);
            Ok(Arc::new(tail(footer, self.length - self.chunks_end)?))
        })
    }

    fn chunk(&self, number: usize, places: &Places) -> Result<Arc<dyn Content>> {
        self.recent.get_or_make(number, || {
            let column = &self.columns[number % self.columns.len()];
            let reserved = places.starts[number + 1] - places.starts[number];
            Ok(Arc::new(column.content(&self.rows_of(number, places), reserved)?))
        })
    }
}

/// Returns the fields of a table with these columns, of which some are members of structs.
fn arrow_fields(columns: &[ParquetColumn]) -> Vec<ArrowField> {
    let groups = columns.chunk_by(|one, next| one.within.is_some() && one.within == next.within);
    let field = |group: &[ParquetColumn]| {
        let members: Vec<ArrowField> = group.iter().map(|column| column.field.clone()).collect();
        match group.first()?.within.as_deref() {
            Some(name) => Some(ArrowField::of_members(name, members)),
            None => members.into_iter().next(),
        }
    };
    groups.filter_map(field).collect()
}

/// Returns a footer at the end of its reserved space, its length and the magic bytes.
///
/// # Errors
/// Fails if the space is too short.
pub fn tail(footer: Vec<u8>, reserved: u64) -> Result<Concat> {
    let gap = reserved.checked_sub(footer.len() as u64 + TAIL);
    let gap = gap.ok_or_else(|| Error::internal("a Parquet footer larger than its reserved space"))?;
    let end = [&(footer.len() as u32).to_le_bytes()[..], &MAGIC].concat();
    Ok(Concat::new(vec![Arc::new(Repeat::zeros(gap)), Arc::new(footer), Arc::new(end)]))
}

/// Returns the start of each group's texts in a column of lists of texts, given the start of each group's elements.
fn text_starts(column: &ParquetColumn, elements: &[u64]) -> Result<Vec<u64>> {
    let Some(offsets) = column.elements.as_ref().and_then(|elements| elements.offsets.as_ref()) else {
        return Ok(Vec::new());
    };
    let starts = elements.iter().map(|&element| offsets.at(element)).collect::<Result<Vec<_>>>()?;
    let agrees = starts.is_sorted() && starts.last().is_none_or(|last| *last <= column.values.len());
    if agrees { Ok(starts) } else { Err(wrong_offsets()) }
}

/// The most bytes by which page alignment moves chunks for one chunk whose values may be refused. Such a chunk begins
/// and ends on a page of its own, and not on the file's first page.
const ROOM_FOR_PAGES: u64 = 3 * PAGE;

/// Bytes of the footer's length and the magic bytes.
const TAIL: u64 = 8;

impl Content for ParquetFile {
    fn len(&self) -> u64 {
        self.length
    }

    /// Prefetching reads all nulls of a chunk into memory, because the positions of the chunk's values depend on them.
    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (offset, rest) = read_head(&MAGIC, offset, out);
        read_parts(offset, rest, |at| {
            if at >= self.chunks_end {
                return Ok((self.chunks_end..self.length, self.tail()?.clone()));
            }
            let places = self.places()?;
            let number = places.starts.partition_point(|&start| start <= at).saturating_sub(1);
            Ok((places.starts[number]..places.starts[number + 1], self.chunk(number, places)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tilefs_format::datatype::Datatype;

    use super::*;
    use crate::testing::read_all;
    use crate::{Column, Field};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_of_any_length_have_known_positions(
            texts in proptest::collection::vec(proptest::collection::vec(0u8..0x80, 0..20), 1..600),
            rows_of_group in 1u64..300,
        ) {
            let mut offsets = vec![0u64];
            texts.iter().for_each(|text| offsets.push(offsets[offsets.len() - 1] + text.len() as u64));
            let offsets: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
            let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
            let count = texts.len() as u64;
            let column = Column::variable(field, vec![count], Arc::new(texts.concat()), Arc::new(offsets));
            let groups = RowGroups::new(count, rows_of_group, None);
            let file = ParquetFile::new(vec![ParquetColumn::new(&column).unwrap()], groups, Vec::new()).unwrap();
            let (whole, places) = (read_all(&file), file.places().unwrap());
            for (rows, end) in file.groups.iter().zip(&places.starts[1..]) {
                let here = &texts[rows.start as usize..rows.end as usize];
                let page: Vec<u8> =
                    here.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text].concat()).collect();
                prop_assert!(whole[..*end as usize].ends_with(&page));
            }
        }
    }

    #[test]
    fn a_text_that_is_refused_leaves_other_columns_readable() {
        let text = |name: &str, bytes: &[u8]| {
            let field = Field::new(name, Datatype::StringUtf8).with_values_per_cell(None);
            let offsets = [0, 1, 2].map(u64::to_le_bytes).concat();
            Column::variable(field, vec![2], Arc::new(bytes.to_vec()), Arc::new(offsets))
        };
        let number = |name: &str| Column::fixed(Field::new(name, Datatype::UInt8), vec![2], Arc::new(vec![7, 8]));
        let orders: [&[Column]; 3] = [
            &[text("bad", b"a\xff"), number("n")],
            &[number("n"), text("bad", b"\xffa"), text("good", b"ab"), number("m")],
            &[number("n"), text("good", b"ab"), text("bad", b"\xff\xff")],
        ];
        for columns in orders {
            let stored = columns.iter().map(|column| ParquetColumn::new(column).unwrap()).collect();
            let file = ParquetFile::new(stored, RowGroups::new(2, 1, None), Vec::new()).unwrap();
            let mut refused = HashSet::new();
            let mut page = vec![0; PAGE as usize];
            for start in (0..file.len()).step_by(PAGE as usize) {
                let part = &mut page[..PAGE.min(file.len() - start) as usize];
                if file.read_at(start, part).is_err() {
                    refused.insert(start / PAGE);
                }
            }
            // Readers of the footer ask for 64 KiB.
            let last = (file.len() - READ_WITH_FOOTER) / PAGE;
            assert!(!refused.is_empty() && refused.iter().all(|page| *page < last), "{refused:?} of {}", file.len());
            let places = file.places().unwrap();
            for (chunk, ends) in places.starts.windows(2).enumerate() {
                let column = &file.columns[chunk % columns.len()];
                if column.field.name != "bad" {
                    // The values, without the free space in front of them.
                    let from = (ends[1] - 64).max(ends[0]) / PAGE;
                    let name = &column.field.name;
                    assert!((from..=(ends[1] - 1) / PAGE).all(|page| !refused.contains(&page)), "{name}: {refused:?}");
                }
            }
        }
    }
}
