//! The stages of a pipeline: filters bound to the type of their values, ready to be undone.

use std::borrow::Cow;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};

use super::checksum::Checksum;
use super::encoded_parts::EncodedPart;
use super::integer::Width;
use super::key::Key;
use super::scratch::CodecStates;
use super::stored_order::StoredOrder;
use crate::cursor::Cursor;
use crate::datatype::Datatype;

/// The input of a filter when the tile was written, and everything besides the chunk that undoing the filter may need.
pub(super) struct FilterInput<'a> {
    /// The name of the filter.
    pub name: Cow<'static, str>,
    /// The type of the values.
    pub datatype: Datatype,
    /// See [`TileContext`](super::TileContext).
    pub cell_size: usize,
    pub format_version: u32,
    pub key: Option<&'a Key>,
    pub stored_order: Option<&'a Arc<StoredOrder>>,
}

/// The first format version in which filters for integers also apply to dates and times.
const TIMES_ARE_INTEGERS: u32 = 20;

impl FilterInput<'_> {
    pub fn width(&self) -> Width {
        Width::of(self.datatype)
    }

    /// Returns whether filters for integers apply to dates and times.
    pub fn times_are_integers(&self) -> bool {
        self.format_version >= TIMES_ARE_INTEGERS
    }

    /// Returns a stage that changes nothing, for filters that leave values of this type unchanged.
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

    /// Returns the error that the filter cannot be undone, with the reason.
    pub fn unsupported(&self, why: &str) -> Error {
        Error::unsupported(format!("filter {} {why}", self.name))
    }

    pub fn unsupported_type(&self, datatype: Datatype) -> Error {
        self.unsupported(&format!("on values of type {}", datatype.name()))
    }
}

/// A filter ready to be undone.
pub(super) struct Stage {
    name: Cow<'static, str>,
    /// The type of the values before filtering.
    pub input: Datatype,
    /// The type of the values after filtering.
    pub output: Datatype,
    pub undo: Undo,
    /// The decoder of strings stored with their offsets, if the filter can store them that way.
    pub strings: Option<DecodeStrings>,
}

impl Stage {
    /// Sets the type of the values after filtering.
    pub fn with_output(self, output: Datatype) -> Self {
        Stage { output, ..self }
    }

    /// Sets the decoder of strings stored with their offsets.
    pub fn with_strings(self, decode: DecodeStrings) -> Self {
        Stage { strings: Some(decode), ..self }
    }

    /// Adds the name of the filter to an error, and drops the offset, which is within the filter's metadata and of no
    /// use to users.
    pub fn locate_error(&self, error: Error) -> Error {
        error.locate(|place| {
            place.offset = None;
            place.filter = Some(self.name.clone().into_owned());
        })
    }
}

/// The kinds of filters, by the signature of undoing them.
pub(super) enum Undo {
    Nothing,
    Check(Checksum),
    Parts(Box<dyn DecodePart>),
    Data(Box<dyn Transform>),
}

/// Undoes a filter that encodes the metadata of earlier filters and the data part by part: a compressor or the
/// encryption.
pub(super) trait DecodePart: Send + Sync {
    /// Returns the bytes in the entry of a part after its two lengths.
    fn extra_bytes(&self) -> usize {
        0
    }

    /// Returns whether the stored bytes of a part are checked even if it decodes to no bytes.
    fn checks_empty_parts(&self) -> bool {
        false
    }

    /// Returns whether the stored form of each part has a checksum of what it decodes to, which decoding compares.
    fn has_checksum(&self) -> bool {
        false
    }

    /// Decodes a part. It must fill its output exactly.
    fn decode(&self, part: EncodedPart<'_, '_>, states: &mut CodecStates) -> Result<()>;
}

/// Undoes a filter that changes the data and prepends its own metadata to the metadata of earlier filters.
pub(super) trait Transform: Send + Sync {
    /// Returns the bytes that the data decodes to. The result is untrusted; the caller bounds it.
    fn decoded_bytes(&self, _metadata: Cursor<'_>, data: &[u8]) -> Result<u64> {
        Ok(data.len() as u64)
    }

    /// Fills `out`, whose length is [`Transform::decoded_bytes`], and leaves the cursor at the metadata of earlier
    /// filters.
    fn undo(&self, metadata: &mut Cursor<'_>, data: &[u8], out: &mut [u8]) -> Result<()>;
}

/// Decodes strings, `(metadata, data, out, offsets, ..)`: fills `out` exactly, and `offsets` with the start of each
/// string in it. Leaves the cursor at the metadata of earlier filters.
pub(super) type DecodeStrings = fn(&mut Cursor<'_>, &[u8], &mut [u8], &mut [u64], &mut CodecStates) -> Result<()>;
