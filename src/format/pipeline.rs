//! Filter pipelines as they are stored (the format's "Filter Pipeline" page): which filters, in which
//! order, with which options. Undoing them is the business of [`crate::filter`].

use std::borrow::Cow;

use super::cursor::Cursor;
use super::datatype::Datatype;
use crate::error::{Error, Locate, Result};

/// More filters than any writer puts in one pipeline; a longer list is damage.
const MOST_FILTERS: u32 = 64;

/// An ordered list of filters. Writing applies them first to last, reading last to first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// Stored, but no reader may rely on it: chunk headers say how long each chunk is.
    pub max_chunk_size: u32,
    pub filters: Vec<Filter>,
}

/// One filter with its options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Filter {
    Noop,
    Gzip {
        level: i32,
    },
    Zstd {
        level: i32,
    },
    Lz4 {
        level: i32,
    },
    Rle {
        level: i32,
    },
    Bzip2 {
        level: i32,
    },
    /// `reinterpret` is the type whose values are differenced; `None` means the incoming type.
    DoubleDelta {
        level: i32,
        reinterpret: Option<Datatype>,
    },
    BitWidthReduction {
        max_window: u32,
    },
    Bitshuffle,
    Byteshuffle,
    PositiveDelta {
        max_window: u32,
    },
    Aes256Gcm,
    ChecksumMd5,
    ChecksumSha256,
    Dictionary {
        level: i32,
    },
    ScaleFloat {
        scale: f64,
        offset: f64,
        byte_width: u64,
    },
    Xor,
    Bitsort,
    Webp {
        quality: f32,
        format: WebpFormat,
        lossless: bool,
    },
    Delta {
        level: i32,
        reinterpret: Option<Datatype>,
    },
    /// One that is not known, or has an option that is not. What went through it cannot be read; all else of an array
    /// can, so it is no reason to refuse a schema.
    Unknown {
        /// The number of the filter's type in the format.
        number: u8,
    },
}

/// How the WebP filter lays out the pixels it decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebpFormat {
    Unspecified,
    Rgb,
    Bgr,
    Rgba,
    Bgra,
}

impl Filter {
    /// Its name in TileDB's C API, without the prefix; `type 99` for one that is not known.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Filter::Noop => "NOOP",
            Filter::Gzip { .. } => "GZIP",
            Filter::Zstd { .. } => "ZSTD",
            Filter::Lz4 { .. } => "LZ4",
            Filter::Rle { .. } => "RLE",
            Filter::Bzip2 { .. } => "BZIP2",
            Filter::DoubleDelta { .. } => "DOUBLE_DELTA",
            Filter::BitWidthReduction { .. } => "BIT_WIDTH_REDUCTION",
            Filter::Bitshuffle => "BITSHUFFLE",
            Filter::Byteshuffle => "BYTESHUFFLE",
            Filter::PositiveDelta { .. } => "POSITIVE_DELTA",
            Filter::Aes256Gcm => "AES_256_GCM",
            Filter::ChecksumMd5 => "CHECKSUM_MD5",
            Filter::ChecksumSha256 => "CHECKSUM_SHA256",
            Filter::Dictionary { .. } => "DICTIONARY",
            Filter::ScaleFloat { .. } => "SCALE_FLOAT",
            Filter::Xor => "XOR",
            Filter::Bitsort => "BITSORT",
            Filter::Webp { .. } => "WEBP",
            Filter::Delta { .. } => "DELTA",
            Filter::Unknown { number } => return Cow::Owned(format!("type {number}")),
        })
    }
}

impl Pipeline {
    /// Reads a pipeline at the cursor. The length of a filter's options decides which of them are
    /// present, so no format version is needed, and which bytes are those of a [`Filter::Unknown`].
    ///
    /// # Errors
    /// [`Error::Damaged`] where the list does not fit its bytes.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let max_chunk_size = cursor.u32("max chunk size")?;
        let count = cursor.u32("number of filters")?;
        if count > MOST_FILTERS {
            return Err(cursor.error("number of filters", format!("{count} filters in one pipeline")));
        }
        let mut filters = Vec::new();
        for _ in 0..count {
            filters.push(parse_filter(cursor)?);
        }
        Ok(Pipeline { max_chunk_size, filters })
    }
}

fn parse_filter(cursor: &mut Cursor<'_>) -> Result<Filter> {
    let start = cursor.position() as u64;
    let number = cursor.u8("filter type")?;
    let options = cursor.str32("filter options")?;
    match filter_with_options(number, &mut Cursor::new(options)) {
        Err(Error::Unsupported { .. }) => Ok(Filter::Unknown { number }),
        filter => filter.in_field("filter options").at(start),
    }
}

fn filter_with_options(number: u8, options: &mut Cursor<'_>) -> Result<Filter> {
    Ok(match number {
        0 => Filter::Noop,
        1..=6 | 14 | 19 => return compressor(number, options),
        7 => Filter::BitWidthReduction { max_window: options.u32("max window size")? },
        8 => Filter::Bitshuffle,
        9 => Filter::Byteshuffle,
        10 => Filter::PositiveDelta { max_window: options.u32("max window size")? },
        11 => Filter::Aes256Gcm,
        12 => Filter::ChecksumMd5,
        13 => Filter::ChecksumSha256,
        15 => Filter::ScaleFloat {
            scale: options.f64("scale")?,
            offset: options.f64("offset")?,
            byte_width: options.u64("byte width")?,
        },
        16 => Filter::Xor,
        17 => Filter::Bitsort,
        18 => {
            let quality = options.f32("quality")?;
            let format = match options.u8("WebP input format")? {
                0 => WebpFormat::Unspecified,
                1 => WebpFormat::Rgb,
                2 => WebpFormat::Bgr,
                3 => WebpFormat::Rgba,
                4 => WebpFormat::Bgra,
                other => return Err(Error::unsupported(format!("WebP input format {other}"))),
            };
            let lossless = options.u8("lossless")? != 0;
            Filter::Webp { quality, format, lossless }
        }
        other => return Err(Error::unsupported(format!("filter type {other}"))),
    })
}

/// A filter of the compressor family. The `Compressor` byte inside the options has an enumeration of
/// its own (7 dictionary, 8 delta) and is what counts; 0 there makes the filter a no-op.
fn compressor(number: u8, options: &mut Cursor<'_>) -> Result<Filter> {
    let compressor = options.u8("compressor")?;
    let level = options.i32("compression level")?;
    let reinterpret = if options.is_at_end() {
        None
    } else {
        Some(Datatype::from_number(options.u8("reinterpret datatype")?)?).filter(|&datatype| datatype != Datatype::Any)
    };
    Ok(match compressor {
        0 => Filter::Noop,
        1 => Filter::Gzip { level },
        2 => Filter::Zstd { level },
        3 => Filter::Lz4 { level },
        4 => Filter::Rle { level },
        5 => Filter::Bzip2 { level },
        6 => Filter::DoubleDelta { level, reinterpret },
        7 => Filter::Dictionary { level },
        8 => Filter::Delta { level, reinterpret },
        other => {
            return Err(Error::unsupported(format!("compressor {other} of filter type {number}")));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Pipeline> {
        let mut cursor = Cursor::new(bytes);
        let pipeline = Pipeline::parse(&mut cursor)?;
        assert!(cursor.is_at_end());
        Ok(pipeline)
    }

    #[test]
    fn the_pipeline_of_generic_tiles() {
        let bytes = [0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0];
        let pipeline = parse(&bytes).unwrap();
        assert_eq!(pipeline.max_chunk_size, 65536);
        assert_eq!(pipeline.filters, [Filter::Gzip { level: 1 }]);
    }

    #[test]
    fn reinterpret_type_is_optional_and_any_means_none() {
        let plain = [0, 0, 1, 0, 1, 0, 0, 0, 6, 5, 0, 0, 0, 6, 255, 255, 255, 255];
        assert_eq!(parse(&plain).unwrap().filters, [Filter::DoubleDelta { level: -1, reinterpret: None }]);
        let any = [0, 0, 1, 0, 1, 0, 0, 0, 19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 17];
        assert_eq!(parse(&any).unwrap().filters, [Filter::Delta { level: -1, reinterpret: None }]);
        let int32 = [0, 0, 1, 0, 1, 0, 0, 0, 19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 0];
        assert_eq!(parse(&int32).unwrap().filters, [Filter::Delta { level: -1, reinterpret: Some(Datatype::Int32) }]);
    }

    #[test]
    fn damage_is_an_error() {
        assert!(parse(&[0, 0, 1, 0, 255, 255, 255, 255]).is_err());
        assert!(parse(&[0, 0, 1, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn what_is_not_known_is_passed_over_by_its_length() {
        let number_of = |filter: &[u8]| {
            let gzip = [1, 5, 0, 0, 0, 1, 1, 0, 0, 0];
            let pipeline = parse(&[&[0, 0, 1, 0, 2, 0, 0, 0], filter, &gzip].concat()).unwrap();
            let [Filter::Unknown { number }, Filter::Gzip { level: 1 }] = pipeline.filters[..] else {
                panic!("{pipeline:?}");
            };
            assert_eq!(pipeline.filters[0].name(), format!("type {number}"));
            number
        };
        assert_eq!(number_of(&[99, 0, 0, 0, 0]), 99);
        assert_eq!(number_of(&[20, 3, 0, 0, 0, 7, 7, 7]), 20);
        // A compressor, a pixel format and a type of later libraries.
        assert_eq!(number_of(&[2, 5, 0, 0, 0, 9, 1, 0, 0, 0]), 2);
        assert_eq!(number_of(&[18, 6, 0, 0, 0, 0, 0, 0, 0, 9, 0]), 18);
        assert_eq!(number_of(&[19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 250]), 19);
    }
}
