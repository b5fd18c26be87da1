//! The whole file: the chunks of all row groups, then the footer that says where they are.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_format::error::{Error, Locate, Result};
use tilefs_reader::array::Once;
use tilefs_reader::read::Output;

use super::chunk::ChunkRows;
use super::groups::RowGroups;
use super::metadata::{Chunk, MAGIC, SchemaColumn, Statistics, footer, row_group};
use super::statistics::{MOST_STATISTIC, statistics};
use super::types::ParquetColumn;
use crate::arrow;
use crate::column::{FormatResult, Unrepresentable};
use crate::compose::{Concat, Repeat};
use crate::content::{Content, check_range, read_head};
use crate::var::read_offset;

/// So many chunks stay known: what is made for one may need a look at all its rows.
const RECENT_CHUNKS: usize = 64;

/// A Parquet file; what needs a look at the columns is made when it is first read.
pub struct File {
    columns: Vec<ParquetColumn>,
    groups: RowGroups,
    /// By key; last the columns as Arrow has them, in base 64.
    metadata: Vec<(String, String)>,
    /// Bytes of the room for each column in each row group, group by group, without those of variable length.
    rooms: Vec<u64>,
    /// Where the chunks end and the tail begins.
    chunks_end: u64,
    length: u64,
    places: Once<Places>,
    tail: Once<Concat>,
    /// The chunks that were read last, the latest one first.
    recent: Mutex<VecDeque<(usize, Arc<dyn Content>)>>,
}

/// Where the chunks are.
struct Places {
    /// Where the room of each begins, and where the last one's ends.
    starts: Vec<u64>,
    /// By column: where the bytes of each group's rows begin, and where the last end; none for those of fixed size.
    bytes: Vec<Vec<u64>>,
}

impl File {
    /// Makes what does not depend on cells.
    pub fn new(
        columns: Vec<ParquetColumn>,
        groups: RowGroups,
        mut metadata: Vec<(String, String)>,
    ) -> FormatResult<Self> {
        let fields = columns.iter().map(|column| column.field.clone()).collect();
        // Readers that make Arrow of it take all metadata from Arrow's schema.
        metadata.push(("ARROW:schema".to_owned(), base64(&arrow::schema_message(fields, metadata.clone()))));
        let mut rooms = Vec::new();
        let mut end = MAGIC.len() as u64;
        let too_long = || Unrepresentable::new("the Parquet file would be longer than 2^63 bytes");
        for rows in groups.iter() {
            for column in &columns {
                let room = column.room(rows.end - rows.start).ok_or_else(|| {
                    Unrepresentable::new(format!("{}: too many bytes a row for Parquet", column.field.name))
                })?;
                rooms.push(room);
                end = end.checked_add(room).ok_or_else(too_long)?;
            }
        }
        for column in columns.iter().filter(|column| column.offsets.is_some()) {
            let room = column.room_of_bytes(column.values.len()).ok_or_else(too_long)?;
            end = end.checked_add(room).ok_or_else(too_long)?;
        }
        let mut file = File {
            columns,
            groups,
            metadata,
            rooms,
            chunks_end: end,
            length: 0,
            places: Once::new(),
            tail: Once::new(),
            recent: Mutex::default(),
        };
        file.length = file.tail_room().and_then(|room| end.checked_add(room)).ok_or_else(too_long)?;
        if file.length > i64::MAX as u64 {
            return Err(too_long());
        }
        Ok(file)
    }

    fn schema_columns(&self) -> Vec<SchemaColumn<'_>> {
        let columns = self.columns.iter().map(|column| SchemaColumn {
            name: &column.field.name,
            leaf: &column.leaf,
            is_optional: column.present.is_some(),
            is_list: column.layout.is_list(),
            encodings: column.encodings(),
        });
        columns.collect()
    }

    /// Bytes that the footer, its length and the magic bytes can take at most.
    fn tail_room(&self) -> Option<u64> {
        let columns = self.schema_columns();
        let most = Chunk {
            values: i64::MAX as u64,
            dictionary: None,
            data: i64::MAX as u64,
            bytes: i64::MAX as u64,
            statistics: None,
        };
        let chunks: Vec<Chunk> = self
            .columns
            .iter()
            .map(|column| {
                let longest = vec![0xff; MOST_STATISTIC];
                let statistics =
                    column.summaries.as_ref().map(|_| Statistics { least: longest.clone(), greatest: longest });
                Chunk { dictionary: column.dictionary.as_ref().map(|_| i64::MAX as u64), statistics, ..most.clone() }
            })
            .collect();
        let group = row_group(i16::MAX as usize, i64::MAX as u64, &chunks, &columns).len() as u64;
        // The length of the list of groups takes five bytes at most.
        let empty = footer(&columns, self.groups.total(), std::iter::empty(), &self.metadata).len() as u64 + 5;
        let footer = (self.groups.count() as u64).checked_mul(group)?.checked_add(empty)?;
        Some(footer).filter(|&footer| footer <= u32::MAX.into()).map(|footer| footer + TAIL)
    }

    fn places(&self) -> Result<&Places> {
        self.places.get_or_make(|| {
            let mut bytes = Vec::new();
            for column in &self.columns {
                bytes.push(self.byte_starts(column).in_field(&column.field.name)?);
            }
            let mut starts = vec![MAGIC.len() as u64];
            let mut place = MAGIC.len() as u64;
            for (number, room) in self.rooms.iter().enumerate() {
                let (group, column) = (number / self.columns.len(), number % self.columns.len());
                let values = bytes[column].get(group..group + 2).map_or(0, |ends| ends[1] - ends[0]);
                place += room + self.columns[column].room_of_bytes(values).unwrap_or(0);
                starts.push(place);
            }
            Ok(Places { starts, bytes })
        })
    }

    /// Where the bytes of each group's rows begin in a column of variable length.
    fn byte_starts(&self, column: &ParquetColumn) -> Result<Vec<u64>> {
        let Some(offsets) = &column.offsets else {
            return Ok(Vec::new());
        };
        let mut starts = Vec::new();
        for row in self.groups.iter().map(|rows| rows.start).chain([self.groups.total()]) {
            starts.push(read_offset(offsets, row)?);
        }
        let agrees = starts.first() == Some(&0)
            && starts.is_sorted()
            && starts.last() == Some(&column.values.len())
            && starts.iter().all(|start| start.is_multiple_of(column.size.max(1)));
        // Of no rows there are no groups.
        if agrees { Ok(starts) } else { Err(Error::damaged("offsets of values that do not begin at 0, or fall")) }
    }

    /// The rows of a chunk.
    fn rows_of(&self, number: usize, places: &Places) -> ChunkRows {
        let (group, column) = (number / self.columns.len(), number % self.columns.len());
        let bytes = places.bytes[column].get(group..group + 2).map_or(0..0, |ends| ends[0]..ends[1]);
        ChunkRows { rows: self.groups.rows(group), bytes }
    }

    /// The footer at the end of its room, its length and the magic bytes.
    fn tail(&self) -> Result<&Concat> {
        self.tail.get_or_make(|| {
            let places = self.places()?;
            let columns = self.schema_columns();
            let mut groups = Vec::new();
            for (group, rows) in self.groups.iter().enumerate() {
                let mut chunks = Vec::new();
                for (number, column) in self.columns.iter().enumerate() {
                    let chunk = group * self.columns.len() + number;
                    let of = self.rows_of(chunk, places);
                    let statistics = statistics(column, of.rows.clone());
                    chunks.push(Chunk { statistics, ..column.chunk(&of, places.starts[chunk + 1])? });
                }
                groups.push(row_group(group, rows.end - rows.start, &chunks, &columns));
            }
            let footer = footer(&columns, self.groups.total(), groups.into_iter(), &self.metadata);
            let room = self.length - self.chunks_end;
            let gap = room.checked_sub(footer.len() as u64 + TAIL);
            let gap = gap.ok_or_else(|| Error::internal("a Parquet footer larger than its room"))?;
            let end = [&(footer.len() as u32).to_le_bytes()[..], &MAGIC].concat();
            Ok(Concat::new(vec![Arc::new(Repeat::zeros(gap)), Arc::new(footer), Arc::new(end)]))
        })
    }

    fn chunk(&self, number: usize, places: &Places) -> Result<Arc<dyn Content>> {
        let take = || {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            let known = recent.iter().position(|(known, _)| *known == number)?;
            let known = recent.remove(known)?;
            let content = known.1.clone();
            recent.push_front(known);
            Some(content)
        };
        if let Some(content) = take() {
            return Ok(content);
        }
        // Made while others may read other chunks.
        let column = &self.columns[number % self.columns.len()];
        let room = places.starts[number + 1] - places.starts[number];
        let content: Arc<dyn Content> = Arc::new(column.content(&self.rows_of(number, places), room)?);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_front((number, content.clone()));
        recent.truncate(RECENT_CHUNKS);
        Ok(content)
    }
}

/// Bytes of the footer's length and the magic bytes.
const TAIL: u64 = 8;

impl Content for File {
    fn len(&self) -> u64 {
        self.length
    }

    /// Where the values of a chunk are that has nulls depends on all of these, so they are truly read even ahead.
    fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
        check_range(self.length, offset, out.len())?;
        let (mut at, mut rest) = read_head(&MAGIC, offset, out);
        while !rest.is_empty() {
            if at >= self.chunks_end {
                return self.tail()?.read(at - self.chunks_end, rest);
            }
            let places = self.places()?;
            let number = places.starts.partition_point(|&start| start <= at).saturating_sub(1);
            let content = self.chunk(number, places)?;
            let (start, end) = (places.starts[number], places.starts[number + 1]);
            let (now, later) = rest.split_at(end - at);
            let length = now.len();
            if length == 0 || content.len() != end - start {
                return Err(Error::damaged("offsets that do not agree with the values"));
            }
            content.read(at - start, now)?;
            (at, rest) = (at + length, later);
        }
        Ok(())
    }
}

/// Bytes as text of four characters for three of them (RFC 4648), which Arrow has its schema in.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let value = (number >> (18 - 6 * digit)) & 63;
            text.push(if digit <= three.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;

    use super::*;
    use crate::testing::read_all;
    use crate::{Column, Field};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_of_any_length_have_their_place(
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
            let file = File::new(vec![ParquetColumn::new(&column).unwrap()], groups, Vec::new()).unwrap();
            let (whole, places) = (read_all(&file), file.places().unwrap());
            for (rows, end) in file.groups.iter().zip(&places.starts[1..]) {
                let here = &texts[rows.start as usize..rows.end as usize];
                let page: Vec<u8> =
                    here.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text].concat()).collect();
                prop_assert!(whole[..*end as usize].ends_with(&page));
            }
        }
    }

    /// The examples of RFC 4648.
    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
