//! The stages of a pipeline: filters bound to the values they were given when the tile was written, ready
//! to be undone. [`bind`] is the table of all filters; what each does is in the file of its name.

use std::borrow::Cow;
use std::sync::Arc;

use super::bitsort::StoredOrder;
use super::checksum::Checksum;
use super::encoded_parts::EncodedPart;
use super::integer::Width;
use super::key::Key;
use super::scratch::States;
use super::{aes, bit_width_reduction, bitshuffle, bitsort, byteshuffle, bzip2, checksum, delta, dictionary};
use super::{double_delta, gzip, lz4, positive_delta, rle, scale_float, webp, xor, zstd};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::{Error, Locate, Result};
use crate::pipeline::Filter;

/// Makes a filter ready to be undone.
///
/// # Errors
/// [`Error::Unsupported`] naming a filter that cannot be undone, or not on these values; [`Error::Key`] when
/// it encrypts and there is no key.
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
        Filter::ChecksumMd5 => checksum::bind(input, Checksum::Md5),
        Filter::ChecksumSha256 => checksum::bind(input, Checksum::Sha256),
        Filter::Dictionary { .. } => dictionary::bind(input),
        Filter::ScaleFloat { scale, offset, byte_width } => scale_float::bind(input, scale, offset, byte_width),
        Filter::Xor => xor::bind(input),
        Filter::Bitsort => bitsort::bind(input),
        Filter::Webp { format, .. } => webp::bind(input, format),
        Filter::Delta { reinterpret_datatype, .. } => delta::bind(input, reinterpret_datatype),
        Filter::Unknown { .. } => Err(input.refusal("is not known, or has an option that is not")),
    }
}

/// What a filter was given when a tile was written, and what undoing it may need beside the chunk.
pub(super) struct FilterInput<'a> {
    /// Of the filter.
    pub name: Cow<'static, str>,
    /// Type of the values.
    pub datatype: Datatype,
    /// As in a [`TileContext`](super::TileContext).
    pub cell_size: usize,
    pub format_version: u32,
    pub key: Option<&'a Key>,
    pub stored_order: Option<&'a Arc<StoredOrder>>,
}

/// From this format version on, filters of integers take dates and times for integers.
const TIMES_ARE_INTEGERS: u32 = 20;

impl FilterInput<'_> {
    pub fn width(&self) -> Width {
        Width::of(self.datatype)
    }

    /// Whether filters of integers take values of a date or time for integers.
    pub fn times_are_integers(&self) -> bool {
        self.format_version >= TIMES_ARE_INTEGERS
    }

    /// A stage that changes nothing, as the filter does to values of some types.
    pub fn pass_through(&self) -> Stage {
        self.stage(Undo::Nothing)
    }

    pub fn checksum(&self, checksum: Checksum) -> Stage {
        self.stage(Undo::Check(checksum))
    }

    pub fn parts(&self, decoder: impl DecodePart + 'static) -> Stage {
        self.stage(Undo::Parts(Box::new(decoder)))
    }

    pub fn transform(&self, transform: impl Transform + 'static) -> Stage {
        self.stage(Undo::Data(Box::new(transform)))
    }

    fn stage(&self, undo: Undo) -> Stage {
        let (input, output) = (self.datatype, self.datatype);
        Stage { name: self.name.clone(), input, output, undo, strings: None }
    }

    /// The error that the filter cannot be undone, and why.
    pub fn refusal(&self, why: &str) -> Error {
        Error::unsupported(format!("filter {} {why}", self.name))
    }

    pub fn refusal_of_type(&self, datatype: Datatype) -> Error {
        self.refusal(&format!("on values of type {}", datatype.name()))
    }
}

/// A filter ready to be undone.
pub(super) struct Stage {
    name: Cow<'static, str>,
    /// Type of the values that the filter was given.
    pub input: Datatype,
    /// Type of the values that it made of them.
    pub output: Datatype,
    pub undo: Undo,
    /// How it is undone on strings that it stored along with their offsets, if it can do that.
    pub strings: Option<DecodeStrings>,
}

impl Stage {
    /// The same stage, of a filter that makes values of another type.
    pub fn with_output(self, output: Datatype) -> Self {
        Stage { output, ..self }
    }

    /// The same stage, of a filter that can store strings along with their offsets.
    pub fn with_strings(self, decode: DecodeStrings) -> Self {
        Stage { strings: Some(decode), ..self }
    }

    /// Names the filter in what went wrong with it. Offsets within its metadata say nothing to anyone.
    pub fn blame(&self, error: Error) -> Error {
        error.locate(|place| {
            place.offset = None;
            let field = place.field.take().unwrap_or_default();
            place.field = Some(format!("{} {field}", self.name).trim_end().to_owned());
        })
    }
}

/// The kinds of filters, by what undoing them takes and gives.
pub(super) enum Undo {
    Nothing,
    Check(Checksum),
    Parts(Box<dyn DecodePart>),
    Data(Box<dyn Transform>),
}

/// Undoes a filter that encodes the metadata of earlier filters and the data part by part: compression or
/// encryption.
pub(super) trait DecodePart: Send + Sync {
    /// Bytes that the entry of a part has behind its two lengths.
    fn extra_bytes(&self) -> usize {
        0
    }

    /// Decodes a part, which must fill its output.
    fn decode(&self, part: EncodedPart<'_, '_>, states: &mut States) -> Result<()>;
}

/// Undoes a filter that changes the data and puts metadata of its own in front of that of earlier filters.
pub(super) trait Transform: Send + Sync {
    /// Bytes that the data decodes to; not bounded by anything but their integers.
    fn decoded_bytes(&self, _metadata: Cursor<'_>, data: &[u8]) -> Result<u64> {
        Ok(data.len() as u64)
    }

    /// Fills `out`, which has the length that [`Transform::decoded_bytes`] says, and leaves the cursor at the
    /// metadata of earlier filters.
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()>;
}

/// Decodes strings, `(metadata, data, out, offsets, ..)`: exactly `out` and the start of each string in it. The
/// cursor is left as by [`Transform::undo`].
pub(super) type DecodeStrings = fn(&mut Cursor<'_>, &[u8], &mut [u8], &mut [u64], &mut States) -> Result<()>;
