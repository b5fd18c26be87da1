//! A column of a row group: one page with the values, preceded for an enumeration by a dictionary page with the labels.
//!
//! Parquet stores no values of nulls, but a chunk with nulls has the same length as one without: its page is padded
//! after the levels that mark the nulls. Readers decode as many levels as there are rows, and continue with the values
//! at the stored end of the levels. Therefore all positions are known without reading a cell.
//!
//! Lists that can be null, or vary in length, have one level for each value, and one for each list without values.
//! Space for the maximum number of levels is reserved, and the lists are counted to determine where the page begins in
//! this space.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};

use super::lists::{CountedLists, Lengths, Lists, most_levels_length, packed_head};
use super::metadata::{ChunkStatistics, ColumnChunk, PageEncoding, data_page, dictionary_page};
use super::thrift::varint;
use super::types::{PageLayout, ParquetColumn};
use super::values::{self, Compacted, CountedValidity, LengthsAndBytes};
use crate::column::Elements;
use crate::content::bits::Bits;
use crate::content::compose::{Concat, Repeat, Slice};
use crate::content::element::ConvertedColumn;

/// Maximum length of a page, and therefore of a chunk.
const MAX_BYTES: u64 = i32::MAX as u64;

/// The rows of a chunk, and the position of their values in a column of variable length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRows {
    pub rows: Range<u64>,
    /// The range of the column's offsets, in their units: bytes or elements.
    pub offsets: Range<u64>,
    /// The bytes of the texts in lists.
    pub texts: Range<u64>,
}

impl ChunkRows {
    fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Returns the length of the values whose size varies: bytes of texts, or else what the column's offsets count.
    fn bytes(&self) -> u64 {
        let of = if self.texts.is_empty() { &self.offsets } else { &self.texts };
        of.end - of.start
    }
}

/// Size of the length before levels, in bytes.
const LENGTH: u64 = 4;

impl ParquetColumn {
    /// Returns the encodings in the column's pages.
    pub fn encodings(&self) -> &'static [PageEncoding] {
        match self.layout {
            PageLayout::Indices(_) => &[PageEncoding::Plain, PageEncoding::Rle, PageEncoding::RleDictionary],
            _ => &[PageEncoding::Plain, PageEncoding::Rle],
        }
    }

    fn encoding(&self) -> PageEncoding {
        match self.layout {
            PageLayout::Indices(_) => PageEncoding::RleDictionary,
            _ => PageEncoding::Plain,
        }
    }

    /// Returns the length in bytes of the page with the values, without its header, for this many rows whose values of
    /// variable length take `bytes`; `None` if a page cannot be that long. Varying lists must have been counted.
    fn page_length(&self, rows: u64, bytes: u64, lists: Option<&CountedLists>) -> Option<u64> {
        let levels = match (self.layout, &self.validity) {
            (PageLayout::VaryingList { .. } | PageLayout::Elements { .. }, _) => lists?.length(),
            (_, Some(_)) => LENGTH.checked_add(packed_length(rows, 1)?)?,
            (_, None) => 0,
        };
        let values = match self.layout {
            PageLayout::Values(size) => rows.checked_mul(size)?,
            PageLayout::Bits => rows.div_ceil(8),
            PageLayout::Bytes => rows.checked_mul(LENGTH)?.checked_add(bytes)?,
            PageLayout::Indices(size) => packed_length(rows, 8 * size)?.checked_add(1)?,
            PageLayout::List { values, size } => {
                let elements = rows.checked_mul(values)?;
                list_levels_length(elements).checked_add(elements.checked_mul(size)?)?
            }
            PageLayout::VaryingList { size } => lists?.values.checked_mul(size)?,
            PageLayout::Elements { size: 0 } => lists?.values.checked_mul(LENGTH)?.checked_add(bytes)?,
            PageLayout::Elements { size } => lists?.values.checked_mul(size)?,
        };
        levels.checked_add(values).filter(|&length| length <= MAX_BYTES)
    }

    /// Counts the lists of a chunk; `None` for other columns, and for lists of fixed length without nulls.
    fn lists(&self, rows: &Range<u64>) -> Result<Option<CountedLists>> {
        let value_size = match self.layout {
            PageLayout::VaryingList { .. } => self.datatype.size() as u64,
            PageLayout::Elements { .. } => 1,
            _ => return Ok(None),
        };
        let lengths = match &self.offsets {
            Some(offsets) => Lengths::Offsets(offsets.clone()),
            None => Lengths::Same(self.size / value_size),
        };
        let elements = self.elements.as_ref().map(|elements| elements.validity.clone());
        let lists = Lists { rows: rows.clone(), value_size, lengths, validity: self.validity.clone(), elements };
        lists.count().in_field(&self.field.name).map(Some)
    }

    /// Returns the page with the labels, with its header, if there is one.
    fn dictionary_page(&self) -> Option<Vec<Arc<dyn Content>>> {
        let dictionary = self.dictionary.as_ref()?;
        let header = dictionary_page(dictionary.plain.as_slice().len() as i32, dictionary.count);
        Some(vec![Arc::new(header), dictionary.plain.clone()])
    }

    /// Returns the number of bytes to reserve for a chunk of this many rows, without values of variable length; `None`
    /// if a page cannot hold so many.
    pub fn reserved_length(&self, rows: u64) -> Option<u64> {
        let dictionary: u64 = self.dictionary_page().iter().flatten().map(|part| part.len()).sum();
        let header = data_page(i32::MAX, i32::MAX, self.encoding()).len() as u64;
        let page = match self.layout {
            PageLayout::VaryingList { .. } | PageLayout::Elements { .. } => {
                let bytes = if self.offsets.is_some() { 0 } else { rows.checked_mul(self.size)? };
                most_levels_length(rows)?.checked_add(self.reserved_for_values(bytes, 0)?)
            }
            _ => self.page_length(rows, 0, None),
        };
        dictionary.checked_add(header)?.checked_add(page?)
    }

    /// Returns the number of bytes to reserve for values of variable length: `count` bytes or elements, in the units of
    /// the column's offsets, and `texts` bytes of texts in lists.
    pub fn reserved_for_values(&self, count: u64, texts: u64) -> Option<u64> {
        match self.layout {
            // Plus less than one byte per value for the levels.
            PageLayout::VaryingList { size } => (count / self.datatype.size() as u64).checked_mul(size + 1),
            PageLayout::Elements { size: 0 } => count.checked_mul(LENGTH + 1)?.checked_add(texts),
            PageLayout::Elements { size } => count.checked_mul(size + 1),
            _ => Some(count),
        }
    }

    /// Returns the number of values in a chunk of this many rows, including nulls and empty lists.
    fn value_count(&self, rows: u64, lists: Option<&CountedLists>) -> Option<u64> {
        match self.layout {
            PageLayout::List { values, .. } => rows.checked_mul(values),
            PageLayout::VaryingList { .. } | PageLayout::Elements { .. } => lists.map(CountedLists::levels),
            _ => Some(rows),
        }
        .filter(|&values| values <= MAX_BYTES)
    }

    /// Returns the length of the page in bytes, the number of its values, and its header.
    fn data_header(&self, of: &ChunkRows, lists: Option<&CountedLists>) -> Result<(u64, u64, Vec<u8>)> {
        let too_long = || Error::unsupported("a column of a row group over 2^31 bytes").in_field(&self.field.name);
        let length = self.page_length(of.count(), of.bytes(), lists).ok_or_else(too_long)?;
        let values = self.value_count(of.count(), lists).ok_or_else(too_long)?;
        Ok((length, values, data_page(length as i32, values as i32, self.encoding())))
    }

    /// Returns the footer's entry for a chunk whose reserved space ends at `end`, without the statistics. Counts
    /// varying lists.
    ///
    /// # Errors
    /// Fails if it is too long for a page, or lists cannot be counted.
    pub fn chunk(&self, of: &ChunkRows, end: u64) -> Result<ColumnChunk<'static>> {
        let lists = self.lists(&of.rows)?;
        let (length, values, header) = self.data_header(of, lists.as_ref())?;
        let data = end.checked_sub(length + header.len() as u64);
        let data = data.ok_or_else(|| Error::internal("a chunk larger than its reserved space"))?;
        let dictionary = self.dictionary_page().map(|parts| parts.iter().map(|part| part.len()).sum::<u64>());
        Ok(ColumnChunk {
            place: None,
            values,
            dictionary: dictionary.map(|length| data - length),
            data,
            bytes: end - data + dictionary.unwrap_or(0),
            statistics: ChunkStatistics::default(),
        })
    }

    /// Returns the bytes of a chunk's reserved space. Counts nulls, if there can be any, and varying lists.
    ///
    /// # Errors
    /// Fails if the chunk is too long for a page, or if data that locate values cannot be read.
    pub fn content(&self, of: &ChunkRows, reserved: u64) -> Result<Concat> {
        let lists = self.lists(&of.rows)?;
        let (length, _, header) = self.data_header(of, lists.as_ref())?;
        let mut parts: Vec<Arc<dyn Content>> = Vec::new();
        let dictionary = self.dictionary_page().unwrap_or_default();
        let dictionary_length: u64 = dictionary.iter().map(|part| part.len()).sum();
        let gap = reserved.checked_sub(length + header.len() as u64 + dictionary_length);
        parts.push(Arc::new(Repeat::zeros(
            gap.ok_or_else(|| Error::internal("a chunk larger than its reserved space"))?,
        )));
        parts.extend(dictionary);
        parts.push(Arc::new(header));
        // The levels of lists tell which are null, and null lists have no elements.
        let validity = self.validity.as_ref().filter(|_| self.elements.is_none());
        let validity = validity.map(|validity| CountedValidity::of(validity.part(of.rows.start, of.count())));
        let validity = validity.transpose().in_field(&self.field.name)?;
        let values = self.values(of, validity.clone())?;
        if let Some(lists) = lists {
            if lists.length() + values.len() != length {
                return Err(Error::damaged("lists that do not agree with their values").in_field(&self.field.name));
            }
            parts.push(Arc::new(lists.content()));
        } else if let Some(validity) = validity {
            let levels = packed_head(of.count());
            let packed = levels.len() as u64 + of.count().div_ceil(8);
            let padding = length.checked_sub(LENGTH + packed + values.len());
            let padding = padding.ok_or_else(|| Error::damaged("more values than rows").in_field(&self.field.name))?;
            let head = [&((packed + padding) as u32).to_le_bytes()[..], &levels].concat();
            parts.push(Arc::new(head));
            parts.push(Arc::new(validity.bits()));
            parts.push(Arc::new(Repeat::zeros(padding)));
        }
        parts.push(values);
        Ok(Concat::new(parts))
    }

    /// Returns the values of a chunk that are not null: values of fixed size as the column stores them, values of
    /// variable length as the page does.
    fn values_there(&self, of: &ChunkRows, validity: Option<CountedValidity>) -> Result<Arc<dyn Content>> {
        let rows = of.rows.clone();
        let (values, bytes) = (self.values.clone(), of.offsets.clone());
        if let Some(elements) = &self.elements {
            return self.elements_there(of, elements);
        }
        Ok(match (&self.offsets, self.layout, validity) {
            (Some(_), PageLayout::VaryingList { .. }, None) => {
                Arc::new(Slice::new(values, bytes.start, bytes.end - bytes.start))
            }
            (Some(offsets), layout, validity) => {
                let prefix = if layout == PageLayout::Bytes { values::LENGTH } else { 0 };
                let made = LengthsAndBytes::new(values, offsets.clone(), rows, bytes, prefix, validity);
                Arc::new(made.in_field(&self.field.name)?)
            }
            (None, PageLayout::Bytes, _) => return Err(Error::internal("values of variable length without offsets")),
            (None, _, validity) => {
                let part: Arc<dyn Content> =
                    Arc::new(Slice::new(values, rows.start * self.size, of.count() * self.size));
                match validity {
                    Some(validity) => Arc::new(Compacted::new(part, self.size, validity)),
                    None => part,
                }
            }
        })
    }

    /// Returns the elements of a chunk that are not null, as the page stores them.
    fn elements_there(&self, of: &ChunkRows, elements: &Elements) -> Result<Arc<dyn Content>> {
        let (range, size) = (of.offsets.clone(), self.datatype.size() as u64);
        let count = range.end - range.start;
        let validity = CountedValidity::of(elements.validity.part(range.start, count)).in_field(&self.field.name)?;
        let values = self.values.clone();
        Ok(match &elements.offsets {
            Some(offsets) => {
                let (offsets, texts) = (offsets.clone(), of.texts.clone());
                let made = LengthsAndBytes::new(values, offsets, range, texts, values::LENGTH, Some(validity));
                Arc::new(made.in_field(&self.field.name)?)
            }
            None => {
                let part = Slice::new(values, range.start * size, count * size);
                Arc::new(Compacted::new(Arc::new(part), size, validity))
            }
        })
    }

    /// Returns the values of a chunk that are not null, as its page stores them.
    fn values(&self, of: &ChunkRows, validity: Option<CountedValidity>) -> Result<Arc<dyn Content>> {
        let first_row = Some(of.rows.start).filter(|_| validity.is_none());
        let there = self.values_there(of, validity)?;
        let values = match self.conversion {
            Some(convert) => convert(there, ConvertedColumn::new(&self.field.name).from_row(first_row)),
            None => there,
        };
        Ok(match self.layout {
            PageLayout::Bits => Arc::new(Bits::new(values)),
            // Packed indices of whole bytes are just these bytes. Readers ignore those after the last row.
            PageLayout::Indices(size) => {
                let head = [&[8 * size as u8][..], &packed_head(of.count())].concat();
                let padding = of.count().next_multiple_of(8) * size - values.len();
                Arc::new(Concat::new(vec![Arc::new(head), values, Arc::new(Repeat::zeros(padding))]))
            }
            PageLayout::List { values: of_cell, .. } => {
                Arc::new(Concat::new(vec![Arc::new(list_levels(of.count(), of_cell)), values]))
            }
            PageLayout::Values(_)
            | PageLayout::Bytes
            | PageLayout::VaryingList { .. }
            | PageLayout::Elements { .. } => values,
        })
    }
}

/// Returns the length in bytes of this many packed numbers of `bits` bits, with their head.
fn packed_length(values: u64, bits: u64) -> Option<u64> {
    values.div_ceil(8).checked_mul(bits)?.checked_add(packed_head(values).len() as u64)
}

/// Returns the levels of lists of `values` values each, none of which is null: repetition levels (0 where a list
/// begins, otherwise 1), and definition levels, which are all 1.
fn list_levels(rows: u64, values: u64) -> Concat {
    let elements = rows * values;
    // The pattern repeats after as many bytes as a list has elements.
    let bits: Vec<u8> = (0..8 * values).map(|element| u8::from(!element.is_multiple_of(values))).collect();
    let eights = bits.as_chunks::<8>().0.iter();
    let pattern: Vec<u8> = eights.map(|eight| eight.iter().rev().fold(0, |byte, bit| byte << 1 | bit)).collect();
    let head = packed_head(elements);
    let packed = Repeat::new(pattern, elements.div_ceil(8));
    let repetition = [&((head.len() as u64 + packed.len()) as u32).to_le_bytes()[..], &head].concat();
    let run = run_of_ones(elements);
    let definition = [&(run.len() as u32).to_le_bytes()[..], &run].concat();
    Concat::new(vec![Arc::new(repetition), Arc::new(packed), Arc::new(definition)])
}

/// Returns the length in bytes of the levels of lists with this many elements in total.
fn list_levels_length(elements: u64) -> u64 {
    let repetition = packed_head(elements).len() as u64 + elements.div_ceil(8);
    LENGTH + repetition + LENGTH + run_of_ones(elements).len() as u64
}

fn run_of_ones(count: u64) -> Vec<u8> {
    let mut run = Vec::new();
    varint(&mut run, count.saturating_mul(2));
    run.push(1);
    run
}
