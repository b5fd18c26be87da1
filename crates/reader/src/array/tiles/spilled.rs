//! Tiles of variable-size cells that are too large for the cache: decoded once, to a temporary file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;

use tilefs_base::error::{Error, Locate, Result};

use crate::read::Decoded;

/// Bytes that are converted at a time.
const PART: usize = 4096;

/// The offsets and the values of a decoded tile, in an unnamed temporary file that is deleted with this value. Memory:
/// negligible.
#[derive(Debug)]
pub struct SpilledTile {
    file: File,
    /// The number of offsets: one more than there are cells.
    offsets: u64,
    /// The number of bytes of the values.
    size: u64,
}

impl SpilledTile {
    /// Writes a tile to a temporary file.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no space for temporary files.
    pub fn write(decoded: &Decoded) -> Result<Self> {
        let write = || {
            let file = tempfile::tempfile()?;
            let mut out = BufWriter::new(&file);
            for part in decoded.offsets.chunks(PART / size_of::<u64>()) {
                for offset in part {
                    out.write_all(&offset.to_le_bytes())?;
                }
            }
            out.write_all(&decoded.bytes)?;
            out.flush()?;
            drop(out);
            Ok(SpilledTile { file, offsets: decoded.offsets.len() as u64, size: decoded.bytes.len() as u64 })
        };
        write().map_err(Error::io).in_file(std::env::temp_dir().display())
    }

    /// Returns the number of bytes on disk.
    pub fn disk(&self) -> u64 {
        self.offsets * size_of::<u64>() as u64 + self.size
    }

    /// Reads the offsets of cells from cell `first` on within the values; the last offset is the end of the last cell.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Damaged`] past the last cell.
    pub fn offsets(&self, first: u64, out: &mut [u64]) -> Result<()> {
        let end = first.checked_add(out.len() as u64).filter(|end| *end <= self.offsets);
        end.ok_or_else(|| Error::damaged("cells past the end of the tile"))?;
        let mut bytes = [0; PART];
        let mut at = first * size_of::<u64>() as u64;
        for part in out.chunks_mut(PART / size_of::<u64>()) {
            let bytes = &mut bytes[..size_of_val(part)];
            self.read_at(at, bytes)?;
            for (offset, stored) in part.iter_mut().zip(bytes.as_chunks().0) {
                *offset = u64::from_le_bytes(*stored);
            }
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Copies the values from byte `start`.
    ///
    /// # Errors
    /// As [`SpilledTile::offsets`].
    pub fn copy(&self, start: u64, out: &mut [u8]) -> Result<()> {
        let end = start.checked_add(out.len() as u64).filter(|end| *end <= self.size);
        end.ok_or_else(|| Error::damaged("values past the end of the tile"))?;
        self.read_at(self.offsets * size_of::<u64>() as u64 + start, out)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(out, offset).map_err(Error::io).in_file(std::env::temp_dir().display())
    }
}
