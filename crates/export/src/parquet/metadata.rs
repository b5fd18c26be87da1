//! The metadata of a Parquet file: the headers of pages and the footer. Structures, field numbers and encodings follow
//! `parquet.thrift` of the format's specification.

use tilefs_reader::array::ValueBounds;

use super::thrift::{StructFields, structure};
use super::types::{Leaf, Logical};

/// The first and the last bytes of the file.
pub const MAGIC: [u8; 4] = *b"PAR1";

/// Encodings, by their numbers in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEncoding {
    Plain = 0,
    /// Runs, and bit-packed numbers between them.
    Rle = 3,
    RleDictionary = 8,
}

const OPTIONAL: i32 = 1;
const REPEATED: i32 = 2;
const REQUIRED: i32 = 0;

/// Returns the header of a data page with this many values, including nulls.
pub fn data_page(bytes: i32, values: i32, encoding: PageEncoding) -> Vec<u8> {
    structure(|header| {
        page(header, 0, bytes);
        header.structure(5, |data| {
            data.i32(1, values);
            data.i32(2, encoding as i32);
            data.i32(3, PageEncoding::Rle as i32);
            data.i32(4, PageEncoding::Rle as i32);
        });
    })
}

/// Returns the header of a dictionary page.
pub fn dictionary_page(bytes: i32, values: i32) -> Vec<u8> {
    structure(|header| {
        page(header, 2, bytes);
        header.structure(7, |dictionary| {
            dictionary.i32(1, values);
            dictionary.i32(2, PageEncoding::Plain as i32);
        });
    })
}

fn page(header: &mut StructFields<'_>, kind: i32, bytes: i32) {
    header.i32(1, kind);
    header.i32(2, bytes);
    header.i32(3, bytes);
}

/// A column in the footer's schema.
pub struct SchemaColumn<'a> {
    pub name: &'a str,
    /// The name of the struct of which it is a member.
    pub within: Option<&'a str>,
    pub leaf: &'a Leaf,
    pub is_optional: bool,
    /// Whether each cell is a list.
    pub is_list: bool,
    /// Whether elements of a list can be null.
    pub has_nullable_elements: bool,
    pub encodings: &'a [PageEncoding],
}

impl SchemaColumn<'_> {
    /// Appends the elements of the schema: one, or for a list three nested ones.
    fn elements(&self, out: &mut Vec<Vec<u8>>) {
        let repetition = if self.is_optional { OPTIONAL } else { REQUIRED };
        if !self.is_list {
            out.push(leaf(self.name, repetition, self.leaf));
            return;
        }
        out.push(structure(|group| {
            group.i32(3, repetition);
            group.bytes(4, self.name.as_bytes());
            group.i32(5, 1);
            group.i32(6, CONVERTED_LIST);
            group.structure(10, |logical| logical.structure(3, |_| ()));
        }));
        out.push(structure(|group| {
            group.i32(3, REPEATED);
            group.bytes(4, b"list");
            group.i32(5, 1);
        }));
        let repetition = if self.has_nullable_elements { OPTIONAL } else { REQUIRED };
        out.push(leaf("element", repetition, self.leaf));
    }

    fn path(&self) -> Vec<&str> {
        let of_list: &[&str] = if self.is_list { &["list", "element"] } else { &[] };
        self.within.into_iter().chain([self.name]).chain(of_list.iter().copied()).collect()
    }
}

/// Returns the elements of the schema: those of columns, and of the structs around them.
fn schema_elements(columns: &[SchemaColumn<'_>]) -> Vec<Vec<u8>> {
    let (mut elements, mut count) = (Vec::new(), 0);
    for group in columns.chunk_by(|one, next| one.within.is_some() && one.within == next.within) {
        if let Some(name) = group.first().and_then(|column| column.within) {
            elements.push(structure(|element| {
                element.i32(3, REQUIRED);
                element.bytes(4, name.as_bytes());
                element.i32(5, group.len() as i32);
            }));
        }
        group.iter().for_each(|column| column.elements(&mut elements));
        count += 1;
    }
    let root = structure(|root| {
        root.bytes(4, b"schema");
        root.i32(5, count);
    });
    elements.insert(0, root);
    elements
}

/// The older representation of logical types, by its numbers; times without a time zone have none.
const CONVERTED_UTF8: i32 = 0;
const CONVERTED_LIST: i32 = 3;
const CONVERTED_DATE: i32 = 6;
const CONVERTED_UINT_8: i32 = 11;
const CONVERTED_INT_8: i32 = 15;

fn leaf(name: &str, repetition: i32, leaf: &Leaf) -> Vec<u8> {
    structure(|element| {
        element.i32(1, leaf.physical as i32);
        if let Some(length) = leaf.length {
            element.i32(2, length);
        }
        element.i32(3, repetition);
        element.bytes(4, name.as_bytes());
        let converted = match leaf.logical {
            Some(Logical::String) => Some(CONVERTED_UTF8),
            Some(Logical::Date) => Some(CONVERTED_DATE),
            // For 8, 16, 32 and 64 bits, in this order.
            Some(Logical::Integer { bits, is_signed }) => {
                let first = if is_signed { CONVERTED_INT_8 } else { CONVERTED_UINT_8 };
                Some(first + (bits / 8).ilog2() as i32)
            }
            Some(Logical::Timestamp(_)) | None => None,
        };
        if let Some(converted) = converted {
            element.i32(6, converted);
        }
        let Some(logical) = leaf.logical else { return };
        element.structure(10, |union| match logical {
            Logical::String => union.structure(1, |_| ()),
            Logical::Date => union.structure(6, |_| ()),
            Logical::Timestamp(unit) => union.structure(8, |timestamp| {
                timestamp.bool(1, false);
                timestamp.structure(2, |units| units.structure(unit as i16, |_| ()));
            }),
            Logical::Integer { bits, is_signed } => union.structure(10, |integer| {
                integer.i8(1, bits);
                integer.bool(2, is_signed);
            }),
        });
    })
}

/// A column of a row group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnChunk<'a> {
    /// The path of the file of the chunk, if it is not that of the footer.
    pub place: Option<&'a str>,
    /// Number of values, including nulls; for lists, the values of all of them.
    pub values: u64,
    /// The start of the dictionary page, if there is one.
    pub dictionary: Option<u64>,
    /// The start of the page with the values.
    pub data: u64,
    /// Total length of the pages with their headers.
    pub bytes: u64,
    pub statistics: ChunkStatistics,
}

/// The smallest and the largest value of a column chunk, and its number of nulls, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkStatistics {
    /// Encoded as PLAIN, without a length.
    pub bounds: Option<ValueBounds>,
    pub nulls: Option<u64>,
}

impl ColumnChunk<'_> {
    fn write(&self, column: &SchemaColumn<'_>) -> Vec<u8> {
        structure(|chunk| {
            if let Some(place) = self.place {
                chunk.bytes(1, place.as_bytes());
            }
            chunk.i64(2, self.dictionary.unwrap_or(self.data) as i64);
            chunk.structure(3, |facts| {
                facts.i32(1, column.leaf.physical as i32);
                facts.i32s(2, &column.encodings.iter().map(|&encoding| encoding as i32).collect::<Vec<_>>());
                facts.texts(3, &column.path());
                // Uncompressed.
                facts.i32(4, 0);
                facts.i64(5, self.values as i64);
                facts.i64(6, self.bytes as i64);
                facts.i64(7, self.bytes as i64);
                facts.i64(9, self.data as i64);
                if let Some(dictionary) = self.dictionary {
                    facts.i64(11, dictionary as i64);
                }
                if self.statistics != ChunkStatistics::default() {
                    facts.structure(12, |fields| self.statistics.write(fields));
                }
            });
        })
    }
}

impl ChunkStatistics {
    fn write(&self, fields: &mut StructFields<'_>) {
        // Some readers ignore bounds unless the number of nulls is given.
        if let Some(nulls) = self.nulls {
            fields.i64(3, nulls as i64);
        }
        if let Some(bounds) = &self.bounds {
            fields.bytes(5, &bounds.greatest);
            fields.bytes(6, &bounds.least);
            // Polars skips row groups only by bounds that are values.
            fields.bool(7, bounds.is_greatest_exact);
            fields.bool(8, bounds.is_least_exact);
        }
    }
}

/// Returns a row group with all its columns. Its rows are sorted by the columns with the numbers in `sorted_by`, the most
/// significant first.
pub fn row_group(
    number: usize,
    rows: u64,
    chunks: &[ColumnChunk<'_>],
    columns: &[SchemaColumn<'_>],
    sorted_by: &[i32],
) -> Vec<u8> {
    structure(|group| {
        let bytes = chunks.iter().fold(0u64, |sum, chunk| sum.saturating_add(chunk.bytes)).min(i64::MAX as u64);
        group.structures(1, chunks.iter().zip(columns).map(|(chunk, column)| chunk.write(column)));
        group.i64(2, bytes as i64);
        group.i64(3, rows as i64);
        if !sorted_by.is_empty() {
            let ascending = |&column: &i32| {
                structure(|sorted| {
                    sorted.i32(1, column);
                    sorted.bool(2, false);
                    sorted.bool(3, false);
                })
            };
            group.structures(4, sorted_by.iter().map(ascending));
        }
        if let Some(first) = chunks.first() {
            group.i64(5, first.dictionary.unwrap_or(first.data) as i64);
        }
        group.i64(6, bytes as i64);
        if let Ok(number) = i16::try_from(number) {
            group.i16(7, number);
        }
    })
}

/// Returns the footer, without the length and the magic bytes after it.
pub fn footer(
    columns: &[SchemaColumn<'_>],
    rows: u64,
    groups: impl ExactSizeIterator<Item = Vec<u8>>,
    metadata: &[(String, String)],
) -> Vec<u8> {
    let elements = schema_elements(columns);
    structure(|file| {
        // Version 2 has unsigned numbers and nanoseconds.
        file.i32(1, 2);
        file.structures(2, elements.iter());
        file.i64(3, rows as i64);
        file.structures(4, groups);
        let pair = |(key, value): &(String, String)| {
            structure(|pair| {
                pair.bytes(1, key.as_bytes());
                pair.bytes(2, value.as_bytes());
            })
        };
        file.structures(5, metadata.iter().map(pair));
        file.bytes(6, concat!("tilefs version ", env!("CARGO_PKG_VERSION")).as_bytes());
        // Each column has the order of its type; without this, readers ignore the least and greatest values.
        let order = structure(|union| union.structure(1, |_| ()));
        file.structures(7, columns.iter().map(|_| &order));
    })
}
