//! One chunk on its way back through the filters: two streams, metadata and data, each either still
//! bytes of the chunk or in one of two buffers that take turns.

use super::aes::{self, Cipher};
use super::bitsort::{self, StoredOrder};
use super::checksum::Checksum;
use super::codec::Codecs;
use super::element::with_element;
use super::parts::Parts;
use super::scratch::{Scratch, room};
use super::shuffle_parts::PartLengths;
use super::step::{Encoder, Step};
use super::string_dictionary::Entries;
use super::{bit_width_reduction, bitshuffle, byteshuffle, delta, double_delta, positive_delta};
use super::{rle, string_dictionary, string_rle, webp, xor};
use crate::error::{Error, Result};
use crate::format::cursor::Cursor;

/// Where the bytes of a stream are.
#[derive(Clone, Copy)]
enum Place<'a> {
    Chunk(&'a [u8]),
    /// The first so many bytes of the front buffer.
    Front(usize),
}

impl<'a> Place<'a> {
    fn bytes<'b>(self, consumed: usize, front: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Place::Chunk(bytes) => &bytes[consumed..],
            Place::Front(length) => &front[consumed..length],
        }
    }
}

/// Metadata or data: what is left of it, and the buffers it goes through.
struct Stream<'a, 's> {
    place: Place<'a>,
    /// Bytes at the front that filters have consumed.
    consumed: usize,
    /// The buffer that holds the stream now, if any does, and the one that the next filter writes.
    front: &'s mut Vec<u8>,
    back: &'s mut Vec<u8>,
}

impl<'a, 's> Stream<'a, 's> {
    fn new(bytes: &'a [u8], [front, back]: &'s mut [Vec<u8>; 2]) -> Self {
        Stream { place: Place::Chunk(bytes), consumed: 0, front, back }
    }

    fn bytes(&self) -> &[u8] {
        self.place.bytes(self.consumed, self.front)
    }

    /// What is left, and the buffer to write while reading it.
    fn split(&mut self) -> (&[u8], &mut Vec<u8>) {
        (self.place.bytes(self.consumed, self.front), self.back)
    }

    /// Goes on with the first `length` bytes of the back buffer.
    fn turn(&mut self, length: usize) {
        std::mem::swap(&mut self.front, &mut self.back);
        self.place = Place::Front(length);
        self.consumed = 0;
    }
}

/// What undoing a filter may need that is not in the chunk.
#[derive(Clone, Copy)]
pub(super) struct Outside<'a> {
    pub cipher: Option<&'a Cipher>,
    pub order: Option<&'a StoredOrder>,
}

/// The state between two filters.
pub(super) struct Passage<'a, 's> {
    metadata: Stream<'a, 's>,
    data: Stream<'a, 's>,
    codecs: &'s mut Codecs,
    entries: &'s mut Entries,
    outside: Outside<'a>,
    most_bytes: u64,
}

impl<'a, 's> Passage<'a, 's> {
    pub fn new(
        metadata: &'a [u8],
        data: &'a [u8],
        original_bytes: usize,
        outside: Outside<'a>,
        scratch: &'s mut Scratch,
    ) -> Self {
        Passage {
            metadata: Stream::new(metadata, &mut scratch.metadata),
            data: Stream::new(data, &mut scratch.data),
            codecs: &mut scratch.codecs,
            entries: &mut scratch.entries,
            outside,
            most_bytes: most_bytes(original_bytes),
        }
    }

    /// Undoes one filter, into `out` if it is given, which must be the filter's exact output, and
    /// otherwise into a buffer.
    pub fn undo(&mut self, step: Step, out: Option<&mut [u8]>) -> Result<()> {
        match step {
            Step::Encoder(encoder) => {
                self.decode(8, out, |codecs, _, encoded, out| decode(encoder, codecs, encoded, out))
            }
            Step::Aes => {
                let missing = || Error::key("the data is encrypted and no key was given");
                let cipher = self.outside.cipher.ok_or_else(missing)?;
                let entry_bytes = 8 + aes::EXTRA_BYTES;
                self.decode(entry_bytes, out, |_, extra, encoded, out| cipher.decrypt(extra, encoded, out))
            }
            Step::Checksum(checksum) => {
                let mut metadata = Cursor::new(self.metadata.bytes());
                checksum.check(&mut metadata, self.data.bytes())?;
                self.metadata.consumed += metadata.position();
                Ok(())
            }
            _ => self.transform(step, out),
        }
    }

    /// Undoes RLE or DICTIONARY, as the last filter, on strings stored along with their offsets.
    pub fn undo_strings(&mut self, step: Step, out: &mut [u8], offsets: &mut [u64]) -> Result<()> {
        let mut metadata = Cursor::new(self.metadata.bytes());
        match step {
            Step::Encoder(Encoder::Dictionary) => {
                string_dictionary::undo(&mut metadata, self.data.bytes(), out, offsets, self.entries)?;
            }
            _ => string_rle::undo(&mut metadata, self.data.bytes(), out, offsets)?,
        }
        self.metadata.consumed += metadata.position();
        Ok(())
    }

    /// Checks the final output.
    pub fn check(&mut self, checksum: Checksum, out: &[u8]) -> Result<()> {
        let mut metadata = Cursor::new(self.metadata.bytes());
        checksum.check(&mut metadata, out)?;
        self.metadata.consumed += metadata.position();
        Ok(())
    }

    /// The filters must have consumed all metadata.
    pub fn finish(self) -> Result<()> {
        match self.metadata.bytes().len() {
            0 => Ok(()),
            left => Err(Error::damaged(format!("{left} bytes of filter metadata are left over"))),
        }
    }

    /// Undoes a filter that encodes metadata and data part by part.
    fn decode(
        &mut self,
        entry_bytes: usize,
        out: Option<&mut [u8]>,
        mut decode: impl FnMut(&mut Codecs, &[u8], &[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (metadata, metadata_buffer) = self.metadata.split();
        let (data, data_buffer) = self.data.split();
        let parts = Parts::parse(metadata, entry_bytes)?;
        let (metadata_bytes, data_bytes) = parts.decoded_bytes();
        let is_last = out.is_some();
        let out = target(out, data_buffer, data_bytes, self.most_bytes)?;
        let metadata_out = target(None, metadata_buffer, metadata_bytes, self.most_bytes)?;
        let (metadata_bytes, data_bytes) = (metadata_out.len(), out.len());
        parts.decode_all(data, metadata_out, out, |part| decode(self.codecs, part.extra, part.encoded, part.out))?;
        self.metadata.turn(metadata_bytes);
        if !is_last {
            self.data.turn(data_bytes);
        }
        Ok(())
    }

    /// Undoes a filter that puts its metadata in front of that of earlier filters.
    fn transform(&mut self, step: Step, out: Option<&mut [u8]>) -> Result<()> {
        let mut metadata = Cursor::new(self.metadata.bytes());
        let (data, buffer) = self.data.split();
        let bytes = match step {
            Step::BitWidthReduction { .. } => bit_width_reduction::decoded_bytes(metadata.clone())?,
            Step::ScaleFloat(filter) => filter.decoded_bytes(data.len()),
            Step::Webp(format) => webp::decoded_bytes(format, data)?,
            _ => data.len() as u64,
        };
        let is_last = out.is_some();
        let out = target(out, buffer, bytes, self.most_bytes)?;
        let bytes = out.len();
        transform(step, self.outside.order, &mut metadata, data, out)?;
        self.metadata.consumed += metadata.position();
        if !is_last {
            self.data.turn(bytes);
        }
        Ok(())
    }
}

/// The most bytes that a stream may have between two filters. No filter makes much more of its input;
/// windows of one value make the most, five bytes of metadata for one of data. The constant is for
/// those, in chunks of the usual 64 KiB.
fn most_bytes(original_bytes: usize) -> u64 {
    (original_bytes as u64).saturating_mul(4).saturating_add(4 << 20)
}

/// Where a filter writes `bytes` bytes: to `out` if it is given, otherwise to a buffer.
fn target<'o>(out: Option<&'o mut [u8]>, buffer: &'o mut Vec<u8>, bytes: u64, most_bytes: u64) -> Result<&'o mut [u8]> {
    match (out, usize::try_from(bytes)) {
        (Some(out), _) if out.len() as u64 == bytes => Ok(out),
        (Some(out), _) => Err(Error::damaged(format!("decodes to {bytes} bytes instead of {}", out.len()))),
        (None, Ok(length)) if bytes <= most_bytes => Ok(room(buffer, length)),
        _ => Err(Error::damaged(format!("decodes to {bytes} bytes, more than any filter makes of its chunk"))),
    }
}

fn decode(encoder: Encoder, codecs: &mut Codecs, encoded: &[u8], out: &mut [u8]) -> Result<()> {
    match encoder {
        Encoder::Gzip => codecs.gzip(encoded, out),
        Encoder::Zstd => codecs.zstd(encoded, out),
        Encoder::Lz4 => codecs.lz4(encoded, out),
        Encoder::Bzip2 => codecs.bzip2(encoded, out),
        Encoder::Rle(cell) => rle::decode(cell, encoded, out),
        Encoder::DoubleDelta(width) => with_element!(width, double_delta::decode(encoded, out)),
        Encoder::Delta(width) => with_element!(width, delta::decode(encoded, out)),
        Encoder::Dictionary => {
            Err(Error::damaged("strings whose offsets tile does not say that they hold their offsets"))
        }
    }
}

fn transform(
    step: Step,
    order: Option<&StoredOrder>,
    metadata: &mut Cursor<'_>,
    data: &[u8],
    out: &mut [u8],
) -> Result<()> {
    match step {
        Step::Byteshuffle(width) => PartLengths::parse(metadata, data.len())?.for_each(data, out, |part, out| {
            byteshuffle::undo_part(width, part, out);
            Ok(())
        }),
        Step::Bitshuffle(width) => PartLengths::parse(metadata, data.len())?.for_each(data, out, |part, out| {
            bitshuffle::undo_part(width, part, out);
            Ok(())
        }),
        Step::Bitsort(width) => bitsort::undo(width, metadata, order, data, out),
        Step::Xor(width) => {
            let parts = PartLengths::parse(metadata, data.len())?;
            parts.for_each(data, out, |part, out| with_element!(width, xor::undo_part(part, out)))
        }
        Step::ScaleFloat(filter) => {
            PartLengths::parse(metadata, data.len())?;
            filter.undo(data, out)
        }
        Step::BitWidthReduction { width, signed } => {
            with_element!(width, bit_width_reduction::undo(signed, metadata, data, out))
        }
        Step::PositiveDelta(width) => with_element!(width, positive_delta::undo(metadata, data, out)),
        Step::Webp(format) => webp::undo(format, metadata, data, out),
        Step::Encoder(_) | Step::Aes | Step::Checksum(_) => Err(Error::damaged("not a filter of this family")),
    }
}
