//! The intermediate state of a chunk while its filters are undone: filtered metadata and filtered data. Each is either
//! still in the stored chunk, or in one of two scratch buffers that alternate (ping-pong).

use tilefs_base::error::{Error, Result};

use super::encoded_parts::{EncodedPart, EncodedParts};
use super::scratch::{CodecStates, Scratch, reserve};
use super::stage::{DecodePart, Stage, Transform, Undo};
use crate::cursor::Cursor;

/// The metadata and the data of a chunk between two filters.
pub(super) struct ChunkBuffers<'a, 's> {
    metadata: FilterBuffer<'a, 's>,
    data: FilterBuffer<'a, 's>,
    states: &'s mut CodecStates,
    max_bytes: u64,
}

impl<'a, 's> ChunkBuffers<'a, 's> {
    /// Starts with a stored chunk that decodes to `original_bytes`.
    pub fn new(metadata: &'a [u8], data: &'a [u8], original_bytes: usize, scratch: &'s mut Scratch) -> Self {
        ChunkBuffers {
            metadata: FilterBuffer::new(metadata, &mut scratch.metadata),
            data: FilterBuffer::new(data, &mut scratch.data),
            states: &mut scratch.states,
            max_bytes: max_bytes(original_bytes),
        }
    }

    /// Undoes a filter. Writes to `out` if it is given, else to a scratch buffer; the length of `out` must be exact. A
    /// filter that changes nothing, such as a checksum, reads `out`, which is already filled.
    pub fn undo(&mut self, stage: &Stage, out: Option<&mut [u8]>) -> Result<()> {
        let result = match &stage.undo {
            Undo::Nothing => Ok(()),
            Undo::Check(checksum) => {
                let data = out.as_deref().unwrap_or_else(|| self.data.bytes());
                self.metadata.consume(|metadata| checksum.check(metadata, data))
            }
            Undo::Parts(filter) => self.decode_parts(&**filter, out),
            Undo::Data(filter) => self.transform(&**filter, out),
        };
        result.map_err(|error| stage.locate_error(error))
    }

    /// Undoes the last remaining filter on strings that it stored with their offsets.
    pub fn undo_strings(&mut self, stage: &Stage, out: &mut [u8], offsets: &mut [u64]) -> Result<()> {
        let result = match stage.strings {
            Some(decode) => {
                self.metadata.consume(|metadata| decode(metadata, self.data.bytes(), out, offsets, self.states))
            }
            None => Err(Error::damaged("the offsets of the strings are missing")),
        };
        result.map_err(|error| stage.locate_error(error))
    }

    /// Checks that the filters have consumed all metadata.
    pub fn finish(self) -> Result<()> {
        match self.metadata.bytes().len() {
            0 => Ok(()),
            left => Err(Error::damaged(format!("{left} bytes of filter metadata are left over"))),
        }
    }

    fn decode_parts(&mut self, filter: &dyn DecodePart, out: Option<&mut [u8]>) -> Result<()> {
        let (metadata, metadata_buffer) = self.metadata.split();
        let (data, data_buffer) = self.data.split();
        let parts = EncodedParts::parse(metadata, filter.extra_bytes())?;
        let (metadata_bytes, data_bytes) = parts.decoded_bytes();
        let is_last = out.is_some();
        let out = target(out, data_buffer, data_bytes, self.max_bytes)?;
        let metadata_out = target(None, metadata_buffer, metadata_bytes, self.max_bytes)?;
        let (metadata_bytes, data_bytes) = (metadata_out.len(), out.len());
        // libtiledb 2.8 to 2.26 cut off the zlib stream of no bytes. What decodes to nothing needs no stream.
        let is_decoded = |part: &EncodedPart<'_, '_>| !part.out.is_empty() || filter.checks_empty_parts();
        parts.decode_all(data, metadata_out, out, |part| match is_decoded(&part) {
            true => filter.decode(part, self.states),
            false => Ok(()),
        })?;
        self.metadata.swap(metadata_bytes);
        if !is_last {
            self.data.swap(data_bytes);
        }
        Ok(())
    }

    fn transform(&mut self, filter: &dyn Transform, out: Option<&mut [u8]>) -> Result<()> {
        let (data, buffer) = self.data.split();
        let bytes = filter.decoded_bytes(Cursor::new(self.metadata.bytes()), data)?;
        let is_last = out.is_some();
        let out = target(out, buffer, bytes, self.max_bytes)?;
        let bytes = out.len();
        self.metadata.consume(|metadata| filter.undo(metadata, data, out))?;
        if !is_last {
            self.data.swap(bytes);
        }
        Ok(())
    }
}

/// The remaining metadata or data, and the two buffers that filters alternately read and write.
struct FilterBuffer<'a, 's> {
    contents: Contents<'a>,
    /// Bytes at the front that filters have consumed.
    consumed: usize,
    /// The buffer with the contents, unless they are still in the stored chunk.
    current: &'s mut Vec<u8>,
    /// The buffer that the next filter writes.
    next: &'s mut Vec<u8>,
}

#[derive(Clone, Copy)]
enum Contents<'a> {
    /// Bytes of the stored chunk.
    Stored(&'a [u8]),
    /// The length of the contents at the start of the current buffer.
    Buffered(usize),
}

impl<'a, 's> FilterBuffer<'a, 's> {
    fn new(bytes: &'a [u8], [current, next]: &'s mut [Vec<u8>; 2]) -> Self {
        FilterBuffer { contents: Contents::Stored(bytes), consumed: 0, current, next }
    }

    fn bytes(&self) -> &[u8] {
        self.contents.bytes(self.consumed, self.current)
    }

    /// Returns the remaining bytes, and the buffer to write to while reading them.
    fn split(&mut self) -> (&[u8], &mut Vec<u8>) {
        (self.contents.bytes(self.consumed, self.current), self.next)
    }

    /// Lets `read` consume bytes at the front.
    fn consume(&mut self, read: impl FnOnce(&mut Cursor<'_>) -> Result<()>) -> Result<()> {
        let mut bytes = Cursor::new(self.bytes());
        read(&mut bytes)?;
        self.consumed += bytes.position();
        Ok(())
    }

    /// Makes the first `length` bytes of the written buffer the contents.
    fn swap(&mut self, length: usize) {
        std::mem::swap(&mut self.current, &mut self.next);
        self.contents = Contents::Buffered(length);
        self.consumed = 0;
    }
}

impl<'a> Contents<'a> {
    fn bytes<'b>(self, consumed: usize, current: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Contents::Stored(bytes) => &bytes[consumed..],
            Contents::Buffered(length) => &current[consumed..length],
        }
    }
}

/// Returns the limit for metadata or data between two filters. No filter expands its input much: windows of one value
/// expand it most, with five bytes of metadata for each byte of data. The constant allows for those in chunks of the
/// usual 64 KiB.
fn max_bytes(original_bytes: usize) -> u64 {
    (original_bytes as u64).saturating_mul(4).saturating_add(4 << 20)
}

/// Returns the output of a filter that writes `bytes` bytes: `out` if it is given, else part of `buffer`.
fn target<'o>(out: Option<&'o mut [u8]>, buffer: &'o mut Vec<u8>, bytes: u64, max_bytes: u64) -> Result<&'o mut [u8]> {
    match (out, usize::try_from(bytes)) {
        (Some(out), _) if out.len() as u64 == bytes => Ok(out),
        (Some(out), _) => Err(Error::damaged(format!("decodes to {bytes} bytes instead of {}", out.len()))),
        (None, Ok(length)) if bytes <= max_bytes => Ok(reserve(buffer, length)),
        _ => {
            Err(Error::damaged(format!("decodes to {bytes} bytes, more than any filter makes of a chunk of this size")))
        }
    }
}
