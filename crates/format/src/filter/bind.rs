//! The table of all filters; each is in the file of its name.

use tilefs_base::error::Result;

use super::checksum::Checksum;
use super::stage::{FilterInput, Stage};
use super::{aes, bit_width_reduction, bitshuffle, bitsort, byteshuffle, bzip2, delta, dictionary};
use super::{double_delta, gzip, lz4, positive_delta, rle, scale_float, webp, xor, zstd};
use crate::pipeline::Filter;

/// Binds a filter to its input.
///
/// # Errors
/// [`Error::Unsupported`], which names the filter, if it cannot be undone, or not on these values; [`Error::Key`] if it
/// encrypts and there is no key.
pub(super) fn bind(filter: &Filter, input: &FilterInput<'_>) -> Result<Stage> {
    match *filter {
        Filter::Noop => Ok(input.pass_through()),
        Filter::Gzip { .. } => gzip::bind(input),
        Filter::Zstd { .. } => zstd::bind(input),
        Filter::Lz4 { .. } => lz4::bind(input),
        Filter::Rle { .. } => rle::bind(input),
        Filter::Bzip2 { .. } => bzip2::bind(input),
        Filter::DoubleDelta { reinterpret_datatype, .. } => double_delta::bind(input, reinterpret_datatype),
        Filter::BitWidthReduction { .. } => bit_width_reduction::bind(input),
        Filter::Bitshuffle => bitshuffle::bind(input),
        Filter::Byteshuffle => byteshuffle::bind(input),
        Filter::PositiveDelta { .. } => positive_delta::bind(input),
        Filter::Aes256Gcm => aes::bind(input),
        Filter::ChecksumMd5 => Ok(input.checksum(Checksum::Md5)),
        Filter::ChecksumSha256 => Ok(input.checksum(Checksum::Sha256)),
        Filter::Dictionary { .. } => dictionary::bind(input),
        Filter::ScaleFloat { scale, offset, byte_width } => scale_float::bind(input, scale, offset, byte_width),
        Filter::Xor => xor::bind(input),
        Filter::Bitsort => bitsort::bind(input),
        Filter::Webp { format, .. } => webp::bind(input, format),
        Filter::Delta { reinterpret_datatype, .. } => delta::bind(input, reinterpret_datatype),
        Filter::Unknown { .. } => Err(input.unsupported("is unknown, or has an unknown option")),
    }
}
