//! Stored filter pipelines (the format's "Filter Pipeline" page): filters, their order and their options.
//! [`crate::filter`] undoes them.

use std::borrow::Cow;

use tilefs_base::error::{Error, Locate, Result};

use super::cursor::Cursor;
use super::datatype::Datatype;

/// The most filters that are accepted in one pipeline. A longer list is damage.
const MAX_FILTERS: u32 = 64;

/// An ordered list of filters. Writers apply them first to last, readers undo them last to first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    /// Stored, but not reliable: chunk headers give the length of each chunk.
    pub max_chunk_size: u32,
    /// The filters in the order in which a writer applied them.
    pub filters: Vec<Filter>,
}

/// Declares [`Filter`] from one row per filter: its number in the format, the variant, its name in TileDB's C API
/// without the prefix, and its options in stored order. Rows of the compressor family have two numbers: of the filter
/// and of the compressor.
macro_rules! filters {
    (
        filters { $($number:literal $variant:ident $name:literal $({ $($option:ident: $type:ty),* })?;)* }
        compressors { $($codec_number:literal: $compressor:literal $codec:ident $codec_name:literal { $($codec_option:ident: $codec_type:ty),* };)* }
    ) => {
        /// One filter with its options.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(missing_docs, reason = "the names of TileDB's C API")]
        pub enum Filter {
            $($variant $({ $($option: $type),* })?,)*
            $($codec { $($codec_option: $codec_type),* },)*
            /// A filter that is unknown or has an unknown option. Data filtered by it cannot be read. The rest of the
            /// array can, so the schema is still accepted.
            Unknown {
                /// The number of the filter's type in the format.
                number: u8,
            },
        }

        impl Filter {
            /// Returns the name in TileDB's C API, without the prefix; `type 99` for an unknown filter.
            pub fn name(&self) -> Cow<'static, str> {
                match self {
                    $(Filter::$variant { .. } => Cow::Borrowed($name),)*
                    $(Filter::$codec { .. } => Cow::Borrowed($codec_name),)*
                    Filter::Unknown { number } => Cow::Owned(format!("type {number}")),
                }
            }

            /// Returns the options with their names, in stored order, without unset ones.
            pub fn options(&self) -> Vec<(&'static str, OptionValue)> {
                let options: &[(&'static str, Option<OptionValue>)] = match *self {
                    $(Filter::$variant $({ $($option),* })? => &[$($((stringify!($option), $option.value())),*)?],)*
                    $(Filter::$codec { $($codec_option),* } => {
                        &[$((stringify!($codec_option), $codec_option.value())),*]
                    })*
                    Filter::Unknown { .. } => &[],
                };
                options.iter().filter_map(|&(name, value)| Some((name, value?))).collect()
            }

            /// Returns whether the filter is of the compressor family.
            pub fn is_compressor(&self) -> bool {
                match self {
                    $(Filter::$variant { .. } => false,)*
                    $(Filter::$codec { .. } => true,)*
                    Filter::Unknown { .. } => false,
                }
            }

            /// Reads the options of the filter of this number.
            fn with_options(number: u8, options: &mut Cursor<'_>) -> Result<Self> {
                match number {
                    $($number => Ok(Filter::$variant $({ $($option: FilterOption::parse(options, stringify!($option))?),* })?),)*
                    $($codec_number => Filter::compressor(options),)*
                    other => Err(Error::unsupported(format!("filter type {other}"))),
                }
            }

            /// Reads the options of a filter of the compressor family. The number of the compressor, stored before the
            /// options, determines the filter; the filter's own number does not. Compressor 0 is a no-op.
            fn compressor(options: &mut Cursor<'_>) -> Result<Self> {
                match options.u8("compressor")? {
                    0 => Ok(Filter::Noop),
                    $($compressor => Ok(Filter::$codec {
                        $($codec_option: FilterOption::parse(options, stringify!($codec_option))?),*
                    }),)*
                    other => Err(Error::unsupported(format!("compressor {other}"))),
                }
            }
        }
    };
}

filters! {
    filters {
        0 Noop "NOOP";
        7 BitWidthReduction "BIT_WIDTH_REDUCTION" { max_window: u32 };
        8 Bitshuffle "BITSHUFFLE";
        9 Byteshuffle "BYTESHUFFLE";
        10 PositiveDelta "POSITIVE_DELTA" { max_window: u32 };
        11 Aes256Gcm "AES_256_GCM";
        12 ChecksumMd5 "CHECKSUM_MD5";
        13 ChecksumSha256 "CHECKSUM_SHA256";
        15 ScaleFloat "SCALE_FLOAT" { scale: f64, offset: f64, byte_width: u64 };
        16 Xor "XOR";
        17 Bitsort "BITSORT";
        18 Webp "WEBP" { quality: f32, format: WebpFormat, lossless: bool };
    }
    compressors {
        1: 1 Gzip "GZIP" { level: i32 };
        2: 2 Zstd "ZSTD" { level: i32 };
        3: 3 Lz4 "LZ4" { level: i32 };
        4: 4 Rle "RLE" { level: i32 };
        5: 5 Bzip2 "BZIP2" { level: i32 };
        6: 6 DoubleDelta "DOUBLE_DELTA" { level: i32, reinterpret_datatype: Option<Datatype> };
        14: 7 Dictionary "DICTIONARY" { level: i32 };
        19: 8 Delta "DELTA" { level: i32, reinterpret_datatype: Option<Datatype> };
    }
}

/// The layout of decoded pixels in a tile of the WebP filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebpFormat {
    /// The pipeline does not state the order of the channels.
    Unspecified,
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Red, green, blue, alpha.
    Rgba,
    /// Blue, green, red, alpha.
    Bgra,
}

/// The value of an option, for display.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionValue {
    /// A signed number.
    Signed(i64),
    /// An unsigned number.
    Unsigned(u64),
    /// A number with a fraction.
    Float(f64),
    /// Yes or no.
    Flag(bool),
    /// One of the format's names.
    Name(&'static str),
}

/// A type of filter options.
trait FilterOption: Sized {
    fn parse(options: &mut Cursor<'_>, name: &'static str) -> Result<Self>;

    /// Returns the value for display; `None` if it is unset.
    fn value(self) -> Option<OptionValue>;
}

macro_rules! numbers {
    ($($number:ident $value:ident;)*) => {$(
        impl FilterOption for $number {
            fn parse(options: &mut Cursor<'_>, name: &'static str) -> Result<Self> {
                options.$number(name)
            }

            fn value(self) -> Option<OptionValue> {
                Some(OptionValue::$value(self.into()))
            }
        }
    )*};
}

numbers! {
    i32 Signed;
    u32 Unsigned;
    u64 Unsigned;
    f32 Float;
    f64 Float;
}

impl FilterOption for bool {
    fn parse(options: &mut Cursor<'_>, name: &'static str) -> Result<Self> {
        Ok(options.u8(name)? != 0)
    }

    fn value(self) -> Option<OptionValue> {
        Some(OptionValue::Flag(self))
    }
}

/// The type that the filter assumes for the values instead of their own. It is unset if `ANY` is stored, and in
/// versions that do not store it.
impl FilterOption for Option<Datatype> {
    fn parse(options: &mut Cursor<'_>, name: &'static str) -> Result<Self> {
        if options.is_at_end() {
            return Ok(None);
        }
        let datatype = Datatype::from_number(options.u8(name)?)?;
        Ok(Some(datatype).filter(|&datatype| datatype != Datatype::Any))
    }

    fn value(self) -> Option<OptionValue> {
        self.map(|datatype| OptionValue::Name(datatype.name()))
    }
}

impl FilterOption for WebpFormat {
    fn parse(options: &mut Cursor<'_>, name: &'static str) -> Result<Self> {
        match options.u8(name)? {
            0 => Ok(WebpFormat::Unspecified),
            1 => Ok(WebpFormat::Rgb),
            2 => Ok(WebpFormat::Bgr),
            3 => Ok(WebpFormat::Rgba),
            4 => Ok(WebpFormat::Bgra),
            other => Err(Error::unsupported(format!("WebP input format {other}"))),
        }
    }

    fn value(self) -> Option<OptionValue> {
        Some(OptionValue::Name(match self {
            WebpFormat::Unspecified => "unspecified",
            WebpFormat::Rgb => "RGB",
            WebpFormat::Bgr => "BGR",
            WebpFormat::Rgba => "RGBA",
            WebpFormat::Bgra => "BGRA",
        }))
    }
}

impl Pipeline {
    /// Reads a pipeline at the cursor. The stored length of a filter's options tells which options are present, so that
    /// no format version is needed, and how many bytes a [`Filter::Unknown`] has.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the list does not fit its bytes.
    pub fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let max_chunk_size = cursor.u32("max chunk size")?;
        let count = cursor.u32("number of filters")?;
        if count > MAX_FILTERS {
            return Err(cursor.error("number of filters", format!("{count} filters in one pipeline")));
        }
        let mut filters = Vec::new();
        for _ in 0..count {
            filters.push(parse_filter(cursor)?);
        }
        Ok(Pipeline { max_chunk_size, filters })
    }

    /// Returns whether the values read may differ from those written: scaled numbers are rounded, and pictures are
    /// approximated (even lossless ones, where pixels are transparent).
    pub fn is_lossy(&self) -> bool {
        self.filters.iter().any(Filter::is_lossy)
    }
}

impl Filter {
    /// As [`Pipeline::is_lossy`], of one filter.
    pub fn is_lossy(&self) -> bool {
        matches!(self, Filter::ScaleFloat { .. } | Filter::Webp { .. })
    }
}

fn parse_filter(cursor: &mut Cursor<'_>) -> Result<Filter> {
    let start = cursor.position() as u64;
    let number = cursor.u8("filter type")?;
    let options = cursor.str32("filter options")?;
    match Filter::with_options(number, &mut Cursor::new(options)) {
        Err(Error::Unsupported { .. }) => Ok(Filter::Unknown { number }),
        filter => filter.in_field("filter options").at(start),
    }
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
        assert_eq!(parse(&plain).unwrap().filters, [Filter::DoubleDelta { level: -1, reinterpret_datatype: None }]);
        let any = [0, 0, 1, 0, 1, 0, 0, 0, 19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 17];
        assert_eq!(parse(&any).unwrap().filters, [Filter::Delta { level: -1, reinterpret_datatype: None }]);
        let int32 = [0, 0, 1, 0, 1, 0, 0, 0, 19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 0];
        assert_eq!(
            parse(&int32).unwrap().filters,
            [Filter::Delta { level: -1, reinterpret_datatype: Some(Datatype::Int32) }]
        );
    }

    #[test]
    fn damage_is_an_error() {
        assert!(parse(&[0, 0, 1, 0, 255, 255, 255, 255]).is_err());
        assert!(parse(&[0, 0, 1, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn unknown_filters_are_skipped_by_their_length() {
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
        // A compressor, a pixel format and a datatype that only later libraries know.
        assert_eq!(number_of(&[2, 5, 0, 0, 0, 9, 1, 0, 0, 0]), 2);
        assert_eq!(number_of(&[18, 6, 0, 0, 0, 0, 0, 0, 0, 9, 0]), 18);
        assert_eq!(number_of(&[19, 6, 0, 0, 0, 8, 255, 255, 255, 255, 250]), 19);
    }
}
