//! Undoes a whole pipeline on one chunk: the filters last to first, each on what the one before it
//! (in this order) gave.

use std::sync::Arc;

use super::aes::Cipher;
use super::checksum::Checksum;
use super::key::Key;
use super::passage::Passage;
use super::scratch::Scratch;
use super::step::{Step, holds_folded_strings, output_type};
use crate::error::{Error, Locate, Result};
use crate::format::datatype::Datatype;
use crate::format::pipeline::{Filter, Pipeline};

/// From this format version on, libraries give each filter the type that the one before it makes;
/// older ones gave every filter the tile's own.
const TYPES_ARE_CHAINED: u32 = 20;

/// What a pipeline is applied to, as far as the filters need to know.
#[derive(Debug, Clone)]
pub struct TileContext {
    /// Type of the tile's values: that of the attribute or dimension; `UINT64` for offsets and
    /// timestamps, `UINT8` for validity.
    pub datatype: Datatype,
    /// Bytes of a cell, what RLE counts: all values of a fixed-length cell, one value of var-length
    /// data, 8 for offsets and timestamps, 1 for validity, all dimensions for zipped coordinates.
    pub cell_size: usize,
    /// Format version of the fragment.
    pub format_version: u32,
    /// Format version of the library that wrote the fragment: the version in the header of the
    /// fragment's generic tiles, which may be newer than the fragment's own. It decides the type each
    /// filter sees in fragments before version 20. With `None` the old rule is tried, then the new.
    pub writer_version: Option<u32>,
    /// The key of an encrypted array.
    pub key: Option<Arc<Key>>,
}

/// A pipeline bound to one kind of tile.
pub struct Decoder {
    program: Program,
    /// What the pipeline is under the other rule of types, where nothing says which one applies.
    alternative: Option<Program>,
    cipher: Option<Cipher>,
    folds_offsets: bool,
}

impl Decoder {
    /// Prepares to undo `pipeline`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names a filter that cannot be undone or not on this type; [`Error::Key`]
    /// when the pipeline encrypts and there is no key.
    pub fn new(pipeline: &Pipeline, context: &TileContext) -> Result<Self> {
        let mut filters: Vec<Filter> = pipeline.filters.iter().copied().filter(|f| *f != Filter::Noop).collect();
        let lists_encryption = filters.contains(&Filter::Aes256Gcm);
        let cipher = context.key.as_deref().map(Cipher::new);
        if cipher.is_some() && !lists_encryption {
            filters.push(Filter::Aes256Gcm);
        }
        if lists_encryption && cipher.is_none() {
            return Err(Error::Key { reason: "the data is encrypted and no key was given".to_owned() });
        }
        let (program, alternative) = programs(&filters, context)?;
        let first = matches!(filters.first(), Some(Filter::Rle { .. } | Filter::Dictionary { .. }));
        let folds_offsets = first && holds_folded_strings(context.datatype);
        Ok(Decoder { program, alternative, cipher, folds_offsets })
    }

    /// Whether the pipeline does nothing, so that a chunk's data is the chunk.
    pub fn is_plain(&self) -> bool {
        self.program.steps.is_empty() && self.program.checks.is_empty()
    }

    /// Whether the pipeline can hold the offsets of var-length strings along with the strings. It does
    /// so if the offsets tile has no chunks though the tile has cells; the values then are one chunk
    /// for [`Decoder::undo_strings`].
    pub fn folds_offsets(&self) -> bool {
        self.folds_offsets
    }

    /// Decodes one chunk into `out`, which has the chunk's original length and is filled.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the chunk does not decode to exactly that, [`Error::Key`] if the key does
    /// not fit; `out` then holds nothing of use.
    pub fn undo(&self, metadata: &[u8], data: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        self.run(metadata, data, out, None, scratch)
    }

    /// As [`Decoder::undo`], for strings stored along with their offsets: fills also `offsets`, one per
    /// cell, with the start of each string in `out`.
    pub fn undo_strings(
        &self,
        metadata: &[u8],
        data: &[u8],
        out: &mut [u8],
        offsets: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        if !self.folds_offsets {
            return Err(Error::damaged("the offsets of the strings are missing"));
        }
        self.run(metadata, data, out, Some(offsets), scratch)
    }

    fn run(
        &self,
        metadata: &[u8],
        data: &[u8],
        out: &mut [u8],
        mut offsets: Option<&mut [u64]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let cipher = self.cipher.as_ref();
        let mut result = self.program.run(cipher, metadata, data, out, offsets.as_deref_mut(), scratch);
        if let (Err(_), Some(alternative)) = (&result, &self.alternative)
            && alternative.run(cipher, metadata, data, out, offsets, scratch).is_ok()
        {
            result = Ok(());
        }
        scratch.trim();
        result
    }
}

/// The program of a list of filters, and another one if it depends on a rule that is not known.
fn programs(filters: &[Filter], context: &TileContext) -> Result<(Program, Option<Program>)> {
    let chained = || Program::new(filters, context, true);
    let unchained = || Program::new(filters, context, false);
    match context.writer_version {
        _ if context.format_version >= TYPES_ARE_CHAINED => Ok((chained()?, None)),
        Some(writer) if writer >= TYPES_ARE_CHAINED => Ok((chained()?, None)),
        Some(_) => Ok((unchained()?, None)),
        None => match (unchained(), chained()) {
            (Ok(old), Ok(new)) if old != new => Ok((old, Some(new))),
            (Ok(program), _) | (_, Ok(program)) => Ok((program, None)),
            (Err(error), Err(_)) => Err(error),
        },
    }
}

/// The filters that do something, in the order of the list.
#[derive(Debug, PartialEq)]
struct Program {
    /// Checksums in front of the first filter that changes data. They are checked on the final output.
    checks: Vec<Checksum>,
    /// The first filter that changes data, which therefore writes the output, and all after it.
    steps: Vec<Step>,
}

impl Program {
    fn new(filters: &[Filter], context: &TileContext, chained: bool) -> Result<Self> {
        let mut program = Program { checks: Vec::new(), steps: Vec::new() };
        let mut datatype = context.datatype;
        for filter in filters {
            let seen = if chained { datatype } else { context.datatype };
            datatype = output_type(filter, datatype);
            match Step::new(filter, seen, context.cell_size, context.format_version)? {
                None => {}
                Some(Step::Checksum(checksum)) if program.steps.is_empty() => program.checks.push(checksum),
                Some(step) => program.steps.push(step),
            }
        }
        Ok(program)
    }

    fn run(
        &self,
        cipher: Option<&Cipher>,
        metadata: &[u8],
        data: &[u8],
        out: &mut [u8],
        offsets: Option<&mut [u64]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut passage = Passage::new(metadata, data, out.len(), cipher, scratch);
        match self.steps.split_first() {
            None => copy(data, out)?,
            Some((last, others)) => {
                for &step in others.iter().rev() {
                    passage.undo(step, None).map_err(|error| in_filter(error, step))?;
                }
                let result = match offsets {
                    Some(offsets) => passage.undo_strings(*last, out, offsets),
                    None => passage.undo(*last, Some(out)),
                };
                result.map_err(|error| in_filter(error, *last))?;
            }
        }
        for &checksum in self.checks.iter().rev() {
            passage.check(checksum, out).map_err(|error| in_filter(error, Step::Checksum(checksum)))?;
        }
        passage.finish()
    }
}

fn copy(data: &[u8], out: &mut [u8]) -> Result<()> {
    if data.len() != out.len() {
        return Err(Error::damaged(format!("{} bytes stored, {} expected", data.len(), out.len())));
    }
    out.copy_from_slice(data);
    Ok(())
}

/// Names the filter in which decoding failed. Offsets within its metadata say nothing to anyone.
fn in_filter(error: Error, step: Step) -> Error {
    error.locate(|place| {
        place.offset = None;
        let field = place.field.take().unwrap_or_default();
        place.field = Some(format!("{} {field}", step.name()).trim_end().to_owned());
    })
}
