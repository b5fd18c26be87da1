//! The bytes of a FASTA file, which is stored as it is or compressed in blocks (BGZF), as `bgzip` does.
//!
//! The places of blocks follow from their headers, so no index of them (`.gzi`) is needed.
//!
//! Source: the specification of SAM, "The BGZF compression format".

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use tilefs_base::content::Forward;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;

/// The first bytes of a file that is compressed in any way of gzip.
const GZIP: &[u8] = b"\x1f\x8b";

/// Bytes of a block before and after its compressed bytes: the header with the length of the block, and the checksum and
/// the length of the text.
const HEAD: usize = 18;
const TAIL: usize = 8;

/// The largest text of a block.
const MAX_TEXT: usize = 1 << 16;

/// Bytes of a text that are read together in sequence.
const READ: usize = 1 << 20;

/// Number of blocks after which cancellation is checked.
const BLOCKS_OF_A_CHECK: usize = 1 << 10;

/// The bytes of a file. Memory: 16 bytes for each block of a compressed one.
pub(super) struct StoredText {
    file: File,
    /// The blocks, once determined, if the file is compressed.
    blocks: Option<SingleFlight<Blocks>>,
}

/// The blocks of a compressed file.
struct Blocks {
    /// For each block, its place in the file and that of its text.
    places: Vec<[u64; 2]>,
    /// The length of the text.
    length: u64,
}

/// Opens a regular file: a pipe or a device could make its reader wait, or have no end.
pub(super) fn opened(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

impl StoredText {
    /// Opens a file, and reads the first byte of its text.
    ///
    /// # Errors
    /// Fails if the file cannot be read, and if it is compressed, but not in blocks.
    pub fn open(path: &Path) -> Result<(Self, Option<u8>)> {
        let file = opened(path).map_err(Error::io)?;
        let mut start = [0; 2];
        let length = file.read_at(&mut start, 0).map_err(Error::io)?;
        if start != GZIP {
            return Ok((StoredText { file, blocks: None }, start.first().copied().filter(|_| length > 0)));
        }
        let first = block_at(&file, 0)?.text(&file)?.first().copied();
        Ok((StoredText { file, blocks: Some(SingleFlight::new()) }, first))
    }

    /// Returns the length of the text.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or a block is malformed.
    pub fn length(&self) -> Result<u64> {
        match &self.blocks {
            Some(blocks) => Ok(blocks.get_or_retry(|| self.all_blocks())?.length),
            None => self.stored_length(),
        }
    }

    /// Reads a part of the text.
    ///
    /// # Errors
    /// As for [`StoredText::length`]; fails if the text ends before.
    pub fn read_at(&self, position: u64, out: &mut [u8]) -> Result<()> {
        let Some(blocks) = &self.blocks else {
            return self.file.read_exact_at(out, position).map_err(Error::io);
        };
        let blocks = blocks.get_or_retry(|| self.all_blocks())?;
        let mut number = blocks.places.partition_point(|[_, text]| *text <= position).saturating_sub(1);
        let (mut at, mut rest) = (position, out);
        while !rest.is_empty() {
            cancellation::check()?;
            let ended = || Error::damaged("the FASTA file ends before");
            let [place, start] = *blocks.places.get(number).ok_or_else(ended)?;
            let text = block_at(&self.file, place)?.text(&self.file)?;
            let within = usize::try_from(at - start).ok().and_then(|from| text.get(from..)).unwrap_or_default();
            let (now, later) = rest.split_at_mut(within.len().min(rest.len()));
            now.copy_from_slice(&within[..now.len()]);
            at += now.len() as u64;
            rest = later;
            number += 1;
        }
        Ok(())
    }

    /// Reads the text from its beginning.
    pub fn in_sequence(&self) -> Result<TextInSequence<'_>> {
        Ok(TextInSequence { text: self, at: 0, length: self.length()? })
    }

    /// Returns the properties of the file.
    pub fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map_err(Error::io)
    }

    fn stored_length(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn all_blocks(&self) -> Result<Blocks> {
        let (stored, mut blocks) = (self.stored_length()?, Blocks { places: Vec::new(), length: 0 });
        let mut place = 0;
        while place < stored {
            if blocks.places.len().is_multiple_of(BLOCKS_OF_A_CHECK) {
                cancellation::check()?;
            }
            let block = block_at(&self.file, place)?;
            // An empty block is usually the end, but any may be.
            match block.text {
                0 => _ = block.text(&self.file)?,
                _ => blocks.places.push([place, blocks.length]),
            }
            blocks.length += block.text as u64;
            place += block.length as u64;
        }
        Ok(blocks)
    }
}

/// A block: its place and length in the file, and the length of its text.
struct BgzfBlock {
    place: u64,
    length: usize,
    text: usize,
}

/// Reads the lengths of a block.
fn block_at(file: &File, place: u64) -> Result<BgzfBlock> {
    let read = || {
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, place).map_err(Error::io)?;
        let [0x1f, 0x8b, 8, 4, _, _, _, _, _, _, 6, 0, b'B', b'C', 2, 0, length @ ..] = head else {
            let reason = "compressed, but not in blocks (BGZF); compress it with bgzip, or decompress it";
            return Err(Error::unsupported(reason));
        };
        let length = usize::from(u16::from_le_bytes(length)) + 1;
        let mut text = [0; 4];
        let last = place.saturating_add((length - length.min(text.len())) as u64);
        file.read_exact_at(&mut text, last).map_err(Error::io)?;
        let text = usize::try_from(u32::from_le_bytes(text)).unwrap_or(usize::MAX);
        match length > HEAD + TAIL && text <= MAX_TEXT {
            true => Ok(BgzfBlock { place, length, text }),
            false => Err(Error::damaged(format!("a block of {length} bytes with a text of {text}"))),
        }
    };
    read().map_err(|error| error.at(place))
}

impl BgzfBlock {
    /// Returns the text.
    fn text(&self, file: &File) -> Result<Vec<u8>> {
        let read = || {
            let mut stored = vec![0; self.length];
            file.read_exact_at(&mut stored, self.place).map_err(Error::io)?;
            let (compressed, tail) = stored.split_at(self.length - TAIL);
            let compressed = compressed.get(HEAD..).unwrap_or_default();
            let mut text = vec![0; self.text];
            let mut decoder = Decompress::new(false);
            let refused = |error| Error::refused("a block that cannot be decompressed", error);
            let status = decoder.decompress(compressed, &mut text, FlushDecompress::Finish).map_err(refused)?;
            let mut checksum = Crc::new();
            checksum.update(&text);
            let is_whole = status == Status::StreamEnd && decoder.total_out() == self.text as u64;
            match is_whole && tail.first_chunk() == Some(&checksum.sum().to_le_bytes()) {
                true => Ok(text),
                false => Err(Error::damaged("a block whose text has another length or checksum")),
            }
        };
        read().map_err(|error| error.at(self.place))
    }
}

/// Reads a text sequentially, wherever others read it at the same time.
pub(super) struct TextInSequence<'t> {
    text: &'t StoredText,
    at: u64,
    length: u64,
}

impl Forward for TextInSequence<'_> {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let length = (self.length - self.at).min(READ as u64);
        out.resize(usize::try_from(length).unwrap_or(READ), 0);
        self.text.read_at(self.at, out)?;
        self.at += length;
        Ok(length > 0)
    }
}

#[cfg(test)]
pub(super) mod testing {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;

    use super::*;

    /// Returns a text in blocks of this many bytes, compressed as `bgzip` does.
    pub fn compressed(text: &[u8], of_block: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for part in text.chunks(of_block).chain([&[][..]]) {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part).unwrap();
            let compressed = encoder.finish().unwrap();
            let length = (HEAD + compressed.len() + TAIL - 1) as u16;
            out.extend_from_slice(&[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0]);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&compressed);
            let mut checksum = Crc::new();
            checksum.update(part);
            out.extend_from_slice(&checksum.sum().to_le_bytes());
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use proptest::prelude::*;

    use super::testing::compressed;
    use super::*;

    fn stored(bytes: &[u8]) -> (tempfile::NamedTempFile, Result<(StoredText, Option<u8>)>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let opened = StoredText::open(file.path());
        (file, opened)
    }

    proptest! {
        #[test]
        fn parts_of_a_compressed_text_are_those_of_the_text(
            text in prop::collection::vec(any::<u8>(), 1..2000), of_block in 1usize..500,
            at in prop::collection::vec((any::<prop::sample::Index>(), 0usize..900), 1..10),
        ) {
            let (_file, opened) = stored(&compressed(&text, of_block));
            let (opened, first) = opened.unwrap();
            prop_assert_eq!((opened.length().unwrap(), first), (text.len() as u64, text.first().copied()));
            let (mut all, mut part, mut sequence) = (Vec::new(), Vec::new(), opened.in_sequence().unwrap());
            while sequence.next(&mut part).unwrap() {
                all.append(&mut part);
            }
            prop_assert_eq!(&all, &text);
            for (from, length) in at {
                let from = from.index(text.len());
                let mut part = vec![0; length];
                let read = opened.read_at(from as u64, &mut part);
                prop_assert_eq!(read.ok().map(|()| part.as_slice()), text.get(from..from + length));
            }
        }

        #[test]
        fn damaged_blocks_are_errors(
            text in prop::collection::vec(any::<u8>(), 1..300), of_block in 1usize..200, at: prop::sample::Index, bit in 0u8..8,
        ) {
            let mut bytes = compressed(&text, of_block);
            // Without its first bytes, it is no compressed file.
            let at = GZIP.len() + at.index(bytes.len() - GZIP.len());
            bytes[at] ^= 1 << bit;
            let (_file, opened) = stored(&bytes);
            let Ok((opened, _)) = opened else { return Ok(()) };
            let mut part = vec![0; text.len()];
            // The time, the flags and the system in a header say nothing about the text.
            if opened.read_at(0, &mut part).is_ok() {
                prop_assert_eq!(part, text);
            }
        }
    }

    #[test]
    fn other_compressed_files_are_refused() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(b">1\nACGT\n").unwrap();
        let error = stored(&gzip.finish().unwrap()).1.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("bgzip"), "{error}");
        for length in [2, 17, 20, 30] {
            assert!(stored(&compressed(b">1\nACGT\n", 100)[..length]).1.is_err(), "{length}");
        }
        let (_file, opened) = stored(&compressed(b">1\nACGT\n", 4)[..40]);
        assert!(opened.unwrap().0.length().is_err());
    }
}
