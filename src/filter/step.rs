//! One filter of a pipeline, ready to be undone: its options together with the type, the cell size
//! and the format version that decide what it does.

use super::checksum::Checksum;
use super::element::Width;
use super::scale_float::ScaleFloat;
use super::webp;
use crate::error::{Error, Result};
use crate::format::datatype::Datatype;
use crate::format::pipeline::{Filter, WebpFormat};

/// From this format version on, filters of integers take dates and times for integers.
const TIMES_ARE_INTEGERS: u32 = 20;

/// A filter that does something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Encoder(Encoder),
    Aes,
    Checksum(Checksum),
    Byteshuffle(Width),
    Bitshuffle(Width),
    Bitsort(Width),
    BitWidthReduction { width: Width, signed: bool },
    PositiveDelta(Width),
    Xor(Width),
    ScaleFloat(ScaleFloat),
    Webp(WebpFormat),
}

/// The filters that encode part by part, the metadata of earlier filters included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoder {
    Gzip,
    Zstd,
    Lz4,
    Bzip2,
    /// Bytes of a cell.
    Rle(usize),
    DoubleDelta(Width),
    Delta(Width),
    /// Of strings only.
    Dictionary,
}

impl Step {
    /// What `filter` does to values of type `seen`; `None` if it passes everything through.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a filter that cannot be undone, or not on this type.
    pub fn new(filter: &Filter, seen: Datatype, cell_size: usize, format_version: u32) -> Result<Option<Step>> {
        let refuse = |why: &str| Err(Error::unsupported(format!("filter {} {why}", filter.name())));
        let width = Width::of(seen);
        let times_pass = format_version < TIMES_ARE_INTEGERS;
        let encoder = match *filter {
            Filter::Noop => return Ok(None),
            Filter::Gzip { .. } => Encoder::Gzip,
            Filter::Zstd { .. } => Encoder::Zstd,
            Filter::Lz4 { .. } => Encoder::Lz4,
            Filter::Bzip2 { .. } => Encoder::Bzip2,
            Filter::Rle { .. } if cell_size == 0 => return refuse("on cells of no bytes"),
            Filter::Rle { .. } => Encoder::Rle(cell_size),
            Filter::DoubleDelta { reinterpret, .. } | Filter::Delta { reinterpret, .. } => {
                let values = reinterpret.unwrap_or(seen);
                let Some(width) = difference_width(values) else {
                    return refuse(&format!("on values of type {}", values.name()));
                };
                match filter {
                    Filter::Delta { .. } => Encoder::Delta(width),
                    _ => Encoder::DoubleDelta(width),
                }
            }
            Filter::Dictionary { .. } if !holds_folded_strings(seen) => {
                return refuse(&format!("on values of type {}", seen.name()));
            }
            Filter::Dictionary { .. } => Encoder::Dictionary,
            Filter::Aes256Gcm => return Ok(Some(Step::Aes)),
            Filter::ChecksumMd5 => return Ok(Some(Step::Checksum(Checksum::Md5))),
            Filter::ChecksumSha256 => return Ok(Some(Step::Checksum(Checksum::Sha256))),
            Filter::Byteshuffle => return Ok(Some(Step::Byteshuffle(width))),
            Filter::Bitshuffle => return Ok(Some(Step::Bitshuffle(width))),
            Filter::Xor => return Ok(Some(Step::Xor(width))),
            Filter::BitWidthReduction { .. } => {
                let step = reduces_width(seen, times_pass).map(|signed| Step::BitWidthReduction { width, signed });
                return Ok(step);
            }
            Filter::PositiveDelta { .. } => {
                return Ok(takes_positive_delta(seen, times_pass).then_some(Step::PositiveDelta(width)));
            }
            Filter::ScaleFloat { scale, offset, byte_width } => {
                let Some(stored) = integer_width(byte_width) else {
                    return refuse(&format!("with integers of {byte_width} bytes"));
                };
                if !matches!(width, Width::Four | Width::Eight) {
                    return refuse(&format!("on values of type {}", seen.name()));
                }
                return Ok(Some(Step::ScaleFloat(ScaleFloat { scale, offset, stored, float: width })));
            }
            Filter::Webp { format, .. } => {
                if seen != Datatype::UInt8 {
                    return refuse(&format!("on values of type {}", seen.name()));
                }
                if webp::depth(format).is_none() {
                    return refuse("without a pixel format");
                }
                return Ok(Some(Step::Webp(format)));
            }
            Filter::Bitsort if cell_size != width.bytes() => return refuse("on cells of several values"),
            Filter::Bitsort => return Ok(Some(Step::Bitsort(width))),
            Filter::Unknown { .. } => return refuse("is not known, or has an option that is not"),
        };
        Ok(Some(Step::Encoder(encoder)))
    }

    /// Its name in TileDB's C API, without the prefix.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Encoder(Encoder::Gzip) => "GZIP",
            Step::Encoder(Encoder::Zstd) => "ZSTD",
            Step::Encoder(Encoder::Lz4) => "LZ4",
            Step::Encoder(Encoder::Bzip2) => "BZIP2",
            Step::Encoder(Encoder::Rle(_)) => "RLE",
            Step::Encoder(Encoder::DoubleDelta(_)) => "DOUBLE_DELTA",
            Step::Encoder(Encoder::Delta(_)) => "DELTA",
            Step::Encoder(Encoder::Dictionary) => "DICTIONARY",
            Step::Aes => "AES_256_GCM",
            Step::Checksum(Checksum::Md5) => "CHECKSUM_MD5",
            Step::Checksum(Checksum::Sha256) => "CHECKSUM_SHA256",
            Step::Byteshuffle(_) => "BYTESHUFFLE",
            Step::Bitshuffle(_) => "BITSHUFFLE",
            Step::Bitsort(_) => "BITSORT",
            Step::BitWidthReduction { .. } => "BIT_WIDTH_REDUCTION",
            Step::PositiveDelta(_) => "POSITIVE_DELTA",
            Step::Xor(_) => "XOR",
            Step::ScaleFloat(_) => "SCALE_FLOAT",
            Step::Webp(_) => "WEBP",
        }
    }
}

/// The type of what a filter makes of values of type `seen`.
pub(super) fn output_type(filter: &Filter, seen: Datatype) -> Datatype {
    match *filter {
        Filter::ScaleFloat { byte_width, .. } => integer_width(byte_width).map_or(seen, integer),
        Filter::Xor => integer(Width::of(seen)),
        Filter::DoubleDelta { reinterpret, .. } | Filter::Delta { reinterpret, .. } => reinterpret.unwrap_or(seen),
        Filter::Aes256Gcm => Datatype::Blob,
        _ => seen,
    }
}

/// The var-length strings whose offsets RLE and DICTIONARY can store along with them.
pub(super) fn holds_folded_strings(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8)
}

fn integer(width: Width) -> Datatype {
    match width {
        Width::One => Datatype::Int8,
        Width::Two => Datatype::Int16,
        Width::Four => Datatype::Int32,
        Width::Eight => Datatype::Int64,
    }
}

fn integer_width(bytes: u64) -> Option<Width> {
    match bytes {
        1 => Some(Width::One),
        2 => Some(Width::Two),
        4 => Some(Width::Four),
        8 => Some(Width::Eight),
        _ => None,
    }
}

/// Width of the integers that DELTA and DOUBLE_DELTA take values for: all text is bytes.
fn difference_width(datatype: Datatype) -> Option<Width> {
    match datatype {
        Datatype::Float32 | Datatype::Float64 => None,
        _ if datatype.is_string() => Some(Width::One),
        _ => Some(Width::of(datatype)),
    }
}

/// Whether BIT_WIDTH_REDUCTION does anything to values of a type, and then whether they are signed.
fn reduces_width(datatype: Datatype, times_pass: bool) -> Option<bool> {
    match datatype {
        Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => Some(true),
        Datatype::UInt16 | Datatype::UInt32 | Datatype::UInt64 => Some(false),
        _ if datatype.is_datetime() || datatype.is_time() => (!times_pass).then_some(true),
        _ => None,
    }
}

fn takes_positive_delta(datatype: Datatype, times_pass: bool) -> bool {
    match datatype {
        Datatype::Int8 | Datatype::UInt8 | Datatype::Blob | Datatype::Bool => true,
        Datatype::GeomWkb | Datatype::GeomWkt => true,
        _ => reduces_width(datatype, times_pass).is_some(),
    }
}
