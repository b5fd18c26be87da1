//! Undoes a whole pipeline on one chunk, last filter first.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};

use super::bind::bind;
use super::chunk_buffers::ChunkBuffers;
use super::key::Key;
use super::scratch::Scratch;
use super::stage::{FilterInput, Stage, Undo};
use super::stored_order::StoredOrder;
use crate::datatype::Datatype;
use crate::pipeline::{Filter, Pipeline};

/// The first format version whose libraries give each filter the output type of the filter before it. Older libraries
/// gave every filter the tile's own type.
const TYPES_ARE_CHAINED: u32 = 20;

/// The properties of a tile that its filters depend on.
#[derive(Debug, Clone)]
pub struct TileContext {
    /// The type of the tile's values: the type of the attribute or dimension; `UINT64` for offsets and timestamps,
    /// `UINT8` for validity.
    pub datatype: Datatype,
    /// Bytes of a cell, the unit of RLE: all values of a fixed-length cell, one value of variable-length data, 8 for
    /// offsets and timestamps, 1 for validity, all dimensions for zipped coordinates.
    pub cell_size: usize,
    /// Format version of the fragment.
    pub format_version: u32,
    /// Format version of the library that wrote the fragment: the version in the header of the fragment's generic
    /// tiles, which may be newer than the fragment's own. In fragments before version 20 it decides the type that each
    /// filter sees. If it is `None`, the decoder tries the old rule, then the new one.
    pub writer_version: Option<u32>,
    /// The key of an encrypted array.
    pub key: Option<Arc<Key>>,
}

/// A pipeline bound to one kind of tile.
pub struct Decoder {
    stages: Stages,
    /// The stages under the new type rule, if it is unknown which rule applies and they differ.
    alternative: Option<Stages>,
}

impl Decoder {
    /// Returns a decoder for `pipeline`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] names a filter that cannot be undone, or not on this type; [`Error::Key`] if the pipeline
    /// encrypts and there is no key.
    pub fn new(pipeline: &Pipeline, context: &TileContext) -> Result<Self> {
        Self::bind(pipeline, context, None)
    }

    /// Returns a decoder for a tile of one chunk whose values the filter BITSORT has sorted. `order` restores their
    /// order; the decoders of [`Decoder::new`] refuse such chunks.
    ///
    /// # Errors
    /// Those of [`Decoder::new`], and [`Error::Unsupported`] if the pipeline sorts twice.
    pub fn of_sorted_tile(pipeline: &Pipeline, context: &TileContext, order: &Arc<StoredOrder>) -> Result<Self> {
        if pipeline.filters.iter().filter(|filter| **filter == Filter::Bitsort).count() > 1 {
            return Err(Error::unsupported("filter BITSORT twice in one pipeline"));
        }
        Self::bind(pipeline, context, Some(order))
    }

    fn bind(pipeline: &Pipeline, context: &TileContext, order: Option<&Arc<StoredOrder>>) -> Result<Self> {
        let filters = filters(pipeline, context);
        let bind = |chained| Stages::bind(&filters, context, order, chained);
        let (stages, alternative) = match context.types_are_chained() {
            Some(chained) => (bind(chained)?, None),
            None => match (bind(false), bind(true)) {
                (Ok(old), Ok(new)) if old.inputs != new.inputs => (old, Some(new)),
                (Ok(stages), _) | (_, Ok(stages)) => (stages, None),
                (Err(error), Err(_)) => return Err(error),
            },
        };
        Ok(Decoder { stages, alternative })
    }

    /// Returns the decoder of an empty pipeline without encryption.
    pub fn unfiltered() -> Self {
        Decoder { stages: Stages::default(), alternative: None }
    }

    /// Returns whether the version of the library that wrote a tile decides how its pipeline is undone, so that
    /// [`TileContext::writer_version`] should be set.
    pub fn depends_on_writer(pipeline: &Pipeline, context: &TileContext) -> bool {
        let filters = filters(pipeline, context);
        let bind = |chained| Stages::bind(&filters, context, None, chained);
        context.format_version < TYPES_ARE_CHAINED
            && match (bind(false), bind(true)) {
                (Ok(old), Ok(new)) => old.inputs != new.inputs,
                (Err(_), Err(_)) => false,
                _ => true,
            }
    }

    /// Returns whether the pipeline changes nothing, so that the stored data of a chunk is its content.
    pub fn is_unfiltered(&self) -> bool {
        self.stages.filters.is_empty() && self.stages.checks.is_empty()
    }

    /// Returns whether the pipeline has checksums, so that every decoded chunk is known to be as written: a filter for
    /// them, or a codec whose streams always have one. A zstd frame has one only if its writer asked for it.
    pub fn has_checksums(&self) -> bool {
        let checks = |stage: &Stage| match &stage.undo {
            Undo::Check(_) => true,
            Undo::Parts(codec) => codec.has_checksum(),
            Undo::Nothing | Undo::Data(_) => false,
        };
        !self.stages.checks.is_empty() || self.stages.filters.iter().any(checks)
    }

    /// Returns whether the pipeline can store strings with their offsets. It has done so for a tile with cells if the
    /// offsets tile has no chunks; then the values are one chunk, for [`Decoder::decode_strings`].
    pub fn encodes_offsets(&self) -> bool {
        self.stages.encodes_offsets
    }

    /// Decodes one chunk into `out`, whose length is the chunk's original length.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the chunk does not decode to exactly that length, [`Error::Key`] if the key is wrong. The
    /// content of `out` is then unspecified.
    pub fn decode(&self, metadata: &[u8], data: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        self.run(metadata, data, out, None, scratch)
    }

    /// Decodes one chunk of strings that were stored with their offsets. Fills `out`, and `offsets`, one per cell, with
    /// the start of each string in `out`.
    ///
    /// # Errors
    /// Those of [`Decoder::decode`].
    pub fn decode_strings(
        &self,
        metadata: &[u8],
        data: &[u8],
        out: &mut [u8],
        offsets: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<()> {
        if !self.encodes_offsets() {
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
        let mut result = self.stages.undo(metadata, data, out, offsets.as_deref_mut(), scratch);
        if let (Err(_), Some(alternative)) = (&result, &self.alternative)
            && alternative.undo(metadata, data, out, offsets, scratch).is_ok()
        {
            result = Ok(());
        }
        scratch.trim();
        result
    }
}

impl TileContext {
    /// Returns whether the new type rule ([`TYPES_ARE_CHAINED`]) applies; `None` if that is unknown.
    fn types_are_chained(&self) -> Option<bool> {
        match self.writer_version {
            _ if self.format_version >= TYPES_ARE_CHAINED => Some(true),
            Some(writer) => Some(writer >= TYPES_ARE_CHAINED),
            None => None,
        }
    }
}

/// Returns the filters of a tile: the filters of the pipeline without no-ops. With a key, encryption is always the last
/// filter, even if the pipeline does not list it.
fn filters(pipeline: &Pipeline, context: &TileContext) -> Vec<Filter> {
    let mut filters: Vec<Filter> = pipeline.filters.iter().copied().filter(|f| *f != Filter::Noop).collect();
    if context.key.is_some() && filters.last() != Some(&Filter::Aes256Gcm) {
        filters.push(Filter::Aes256Gcm);
    }
    filters
}

/// The stages that are not no-ops, in the order of the pipeline.
#[derive(Default)]
struct Stages {
    /// Checksums before the first filter that changes data. They are checked on the final output.
    checks: Vec<Stage>,
    /// The first filter that changes data, and all after it. The first one is undone last and writes the output.
    filters: Vec<Stage>,
    /// The input types of all filters.
    inputs: Vec<Datatype>,
    encodes_offsets: bool,
}

impl Stages {
    fn bind(
        filters: &[Filter],
        context: &TileContext,
        stored_order: Option<&Arc<StoredOrder>>,
        chained: bool,
    ) -> Result<Self> {
        let mut stages = Stages::default();
        let mut datatype = context.datatype;
        for filter in filters {
            let stage = bind(
                filter,
                &FilterInput {
                    name: filter.name(),
                    datatype,
                    cell_size: context.cell_size,
                    format_version: context.format_version,
                    key: context.key.as_deref(),
                    stored_order,
                },
            )?;
            if chained {
                datatype = stage.output;
            }
            stages.encodes_offsets |= stages.inputs.is_empty() && stage.strings.is_some();
            stages.inputs.push(stage.input);
            match stage.undo {
                Undo::Nothing => {}
                Undo::Check(_) if stages.filters.is_empty() => stages.checks.push(stage),
                _ => stages.filters.push(stage),
            }
        }
        Ok(stages)
    }

    fn undo(
        &self,
        metadata: &[u8],
        data: &[u8],
        out: &mut [u8],
        offsets: Option<&mut [u64]>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut chunk = ChunkBuffers::new(metadata, data, out.len(), scratch);
        match self.filters.split_first() {
            None => copy(data, out)?,
            Some((last, others)) => {
                for stage in others.iter().rev() {
                    chunk.undo(stage, None)?;
                }
                match offsets {
                    Some(offsets) => chunk.undo_strings(last, out, offsets)?,
                    None => chunk.undo(last, Some(out))?,
                }
            }
        }
        for stage in self.checks.iter().rev() {
            chunk.undo(stage, Some(out))?;
        }
        chunk.finish()
    }
}

fn copy(data: &[u8], out: &mut [u8]) -> Result<()> {
    if data.len() != out.len() {
        return Err(Error::damaged(format!("{} bytes stored, {} expected", data.len(), out.len())));
    }
    out.copy_from_slice(data);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::WebpFormat;

    fn context(datatype: Datatype, format_version: u32) -> TileContext {
        TileContext { datatype, cell_size: datatype.size(), format_version, writer_version: None, key: None }
    }

    fn decoder(filters: &[Filter], context: &TileContext) -> Result<Decoder> {
        Decoder::new(&Pipeline { max_chunk_size: 65536, filters: filters.to_vec() }, context)
    }

    fn le(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    const ZSTD: Filter = Filter::Zstd { level: 3 };
    const HALVES: Filter = Filter::ScaleFloat { scale: 0.5, offset: 0.0, byte_width: 4 };

    /// Returns the metadata and data of 1, 2, 3 and 4 halves as 4-byte integers, shuffled as values of `width` bytes.
    fn scaled_and_shuffled(width: usize) -> (Vec<u8>, Vec<u8>) {
        let integers = le(&[1, 2, 3, 4]);
        let data = (0..width).flat_map(|byte| integers.iter().skip(byte).step_by(width).copied()).collect();
        (le(&[1, 16, 1, 16]), data)
    }

    fn floats() -> Vec<u8> {
        [0.5f64, 1.0, 1.5, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn the_writer_decides_which_type_a_filter_sees() {
        let filters = [HALVES, Filter::Byteshuffle];
        for (format_version, writer_version, width) in
            [(22, None, 4), (22, Some(22), 4), (12, Some(22), 4), (12, Some(12), 8), (12, Some(19), 8), (12, None, 8)]
        {
            let context = TileContext { writer_version, ..context(Datatype::Float64, format_version) };
            let (metadata, data) = scaled_and_shuffled(width);
            let mut out = vec![0; 32];
            let decoder = decoder(&filters, &context).unwrap();
            decoder.decode(&metadata, &data, &mut out, &mut Scratch::new()).unwrap();
            assert_eq!(out, floats(), "version {format_version} by {writer_version:?}");
        }
    }

    #[test]
    fn for_an_unknown_writer_both_rules_are_tried() {
        // Old rule: bit width reduction sees floats and passes them through. New rule: it sees integers.
        let filters = [HALVES, Filter::BitWidthReduction { max_window: 256 }];
        let decoder = decoder(&filters, &context(Datatype::Float64, 19)).unwrap();
        let old = (le(&[1, 16]), le(&[1, 2, 3, 4]));
        let mut new = (le(&[16, 1, 1]), vec![0, 1, 2, 3]);
        new.0.push(8);
        new.0.extend(le(&[16, 1, 16]));
        for (metadata, data) in [old, new] {
            let mut out = vec![0; 32];
            decoder.decode(&metadata, &data, &mut out, &mut Scratch::new()).unwrap();
            assert_eq!(out, floats());
        }
        assert!(decoder.decode(&le(&[9, 9]), &[0; 16], &mut [0; 32], &mut Scratch::new()).is_err());
    }

    #[test]
    fn filters_that_cannot_be_undone_are_refused_by_name() {
        let refused = |filter: Filter, datatype| match decoder(&[filter], &context(datatype, 22)) {
            Err(Error::Unsupported { what, .. }) => assert!(what.contains(&*filter.name()), "{what}"),
            _ => panic!("{filter:?} on {datatype:?} is not refused"),
        };
        refused(Filter::Unknown { number: 20 }, Datatype::Int32);
        refused(Filter::DoubleDelta { level: 1, reinterpret_datatype: None }, Datatype::Float32);
        refused(Filter::Delta { level: 1, reinterpret_datatype: Some(Datatype::Float64) }, Datatype::Int64);
        refused(Filter::Dictionary { level: 1 }, Datatype::Int32);
        refused(Filter::ScaleFloat { scale: 1.0, offset: 0.0, byte_width: 3 }, Datatype::Float32);
        refused(HALVES, Datatype::Int16);
        let webp = |format| Filter::Webp { quality: 1.0, format, lossless: true };
        refused(webp(WebpFormat::Unspecified), Datatype::UInt8);
        refused(webp(WebpFormat::Rgb), Datatype::Int8);
        let no_cells = TileContext { cell_size: 0, ..context(Datatype::Int8, 22) };
        assert!(decoder(&[Filter::Rle { level: 1 }], &no_cells).is_err());
        assert!(matches!(decoder(&[Filter::Aes256Gcm], &context(Datatype::Int8, 22)), Err(Error::Key { .. })));
    }

    #[test]
    fn with_a_key_unencrypted_chunks_are_refused() {
        let key = Some(Arc::new(Key::parse(&[1; 32]).unwrap()));
        let context = TileContext { key, ..context(Datatype::UInt8, 22) };
        for filters in [&[][..], &[Filter::Aes256Gcm], &[Filter::Aes256Gcm, Filter::Noop], &[Filter::ChecksumMd5]] {
            let decoder = decoder(filters, &context).unwrap();
            assert!(!decoder.is_unfiltered());
            // Metadata of unencrypted chunks, and of parts without encryption.
            for metadata in [le(&[]), le(&[0, 0]), le(&[0, 1, 4, 4])] {
                let mut out = [0; 4];
                assert!(
                    decoder.decode(&metadata, &[1, 2, 3, 4], &mut out, &mut Scratch::new()).is_err(),
                    "{filters:?}"
                );
            }
        }
    }

    #[test]
    fn filters_that_pass_everything_leave_a_plain_pipeline() {
        let bwr = Filter::BitWidthReduction { max_window: 256 };
        let plain = |filters: &[Filter], context: &TileContext| decoder(filters, context).unwrap().is_unfiltered();
        assert!(plain(&[], &context(Datatype::Int32, 22)));
        assert!(plain(&[Filter::Noop, Filter::Noop], &context(Datatype::Int32, 22)));
        assert!(plain(&[bwr, Filter::PositiveDelta { max_window: 1024 }], &context(Datatype::Float32, 22)));
        assert!(plain(&[bwr], &context(Datatype::DateTimeDay, 19)));
        assert!(!plain(&[bwr], &context(Datatype::DateTimeDay, 20)));
        assert!(!plain(&[Filter::ChecksumMd5], &context(Datatype::Int32, 22)));
        let key = Some(Arc::new(Key::parse(&[1; 32]).unwrap()));
        assert!(!plain(&[], &TileContext { key, ..context(Datatype::Int32, 22) }));
    }

    #[test]
    fn only_strings_are_stored_with_their_offsets() {
        let encodes =
            |filters: &[Filter], datatype| decoder(filters, &context(datatype, 22)).unwrap().encodes_offsets();
        let (rle, dictionary) = (Filter::Rle { level: 1 }, Filter::Dictionary { level: 1 });
        assert!(encodes(&[rle], Datatype::StringAscii));
        assert!(encodes(&[Filter::Noop, dictionary, ZSTD], Datatype::StringUtf8));
        assert!(!encodes(&[rle], Datatype::Char));
        assert!(!encodes(&[ZSTD, rle], Datatype::StringAscii));
        let decoder = decoder(&[ZSTD], &context(Datatype::StringAscii, 22)).unwrap();
        assert!(decoder.decode_strings(&[], &[], &mut [], &mut [], &mut Scratch::new()).is_err());
    }

    /// Whatever sizes a chunk claims, memory stays within a small multiple of its decoded size.
    #[test]
    fn claimed_sizes_are_checked_before_allocation() {
        let most = u32::MAX;
        let chain = [Filter::Byteshuffle, ZSTD];
        let encoders = [
            ZSTD,
            Filter::Gzip { level: 1 },
            Filter::Lz4 { level: 1 },
            Filter::Bzip2 { level: 1 },
            Filter::Rle { level: 1 },
            Filter::DoubleDelta { level: 1, reinterpret_datatype: None },
            Filter::Delta { level: 1, reinterpret_datatype: None },
        ];
        let mut cases: Vec<(Vec<Filter>, Vec<u8>)> = Vec::new();
        for encoder in encoders {
            for metadata in [
                le(&[most, most]),
                le(&[0, most, 1, 1]),
                le(&[0, 1, most, 4]),
                le(&[1, 1, most, 2, 64, 2]),
                le(&[0, 2, most, 2, most, 2]),
            ] {
                cases.push((vec![encoder], metadata.clone()));
                cases.push((vec![Filter::Byteshuffle, encoder], metadata));
            }
        }
        for filter in [Filter::Byteshuffle, Filter::Bitshuffle, Filter::Xor, HALVES] {
            cases.push((vec![filter], le(&[most])));
            cases.push((vec![filter], le(&[2, most, most])));
            cases.push((vec![Filter::Byteshuffle, filter], le(&[1, 4, 1, most])));
        }
        for filter in [Filter::BitWidthReduction { max_window: 1 }, Filter::PositiveDelta { max_window: 1 }] {
            cases.push((vec![filter], le(&[most, most, most, most])));
            cases.push((vec![filter, filter], le(&[most, 1, 0, 1, 0])));
        }
        cases.push((vec![Filter::ChecksumMd5], le(&[most, most])));
        cases.push((vec![Filter::ChecksumSha256], le(&[0, most])));
        let bomb = zstd::bulk::compress(&vec![0; 100 << 20], 3).unwrap();
        let bomb_metadata = le(&[0, 1, 100 << 20, bomb.len() as u32]);
        let mut scratch = Scratch::new();
        let mut undo = |filters: &[Filter], metadata: &[u8], data: &[u8]| {
            let decoder = decoder(filters, &context(Datatype::UInt32, 22)).unwrap();
            let result = decoder.decode(metadata, data, &mut [0; 64], &mut scratch);
            assert!(result.is_err(), "{filters:?} {metadata:?}");
            let held: usize = scratch.data.iter().chain(&scratch.metadata).map(Vec::capacity).sum();
            assert!(held < 1 << 20, "{filters:?} {metadata:?} hold {held} bytes");
        };
        for (filters, metadata) in cases {
            undo(&filters, &metadata, &[1, 2, 3, 4]);
        }
        undo(&chain, &bomb_metadata, &bomb);
        undo(&[ZSTD], &bomb_metadata, &bomb);
    }

    /// libtiledb 2.8 to 2.26 wrote the first six of eight bytes of the zlib stream of nothing.
    #[test]
    fn what_decodes_to_nothing_needs_no_stream() {
        let cut_off = [0x78, 0x5e, 3, 0, 0, 0];
        let compressors = [
            Filter::Gzip { level: -1 },
            ZSTD,
            Filter::Lz4 { level: 1 },
            Filter::Bzip2 { level: 1 },
            Filter::Rle { level: -1 },
            Filter::Delta { level: -1, reinterpret_datatype: None },
            Filter::DoubleDelta { level: -1, reinterpret_datatype: None },
        ];
        let mut scratch = Scratch::new();
        for filter in compressors {
            for stream in [&cut_off[..], &[]] {
                let decoder = decoder(&[filter], &context(Datatype::Int32, 22)).unwrap();
                let mut decode = |decoded: u32, out: &mut [u8]| {
                    decoder.decode(&le(&[0, 1, decoded, stream.len() as u32]), stream, out, &mut scratch)
                };
                decode(0, &mut []).unwrap_or_else(|error| panic!("{filter:?} {stream:?}: {error}"));
                assert!(decode(4, &mut [0; 4]).is_err(), "{filter:?} {stream:?}");
            }
        }
        // The metadata of an earlier filter is a part of its own, which has bytes.
        let metadata = zstd::bulk::compress(&le(&[1, 0]), 3).unwrap();
        let parts = le(&[1, 1, 8, metadata.len() as u32, 0, 2]);
        let decoder = decoder(&[Filter::Byteshuffle, ZSTD], &context(Datatype::Int32, 22)).unwrap();
        decoder.decode(&parts, &[&metadata[..], &[9, 9]].concat(), &mut [], &mut scratch).unwrap();
        assert!(decoder.decode(&parts, &[&[9; 8][..], &metadata].concat(), &mut [], &mut scratch).is_err());
    }

    #[test]
    fn an_encrypted_part_of_nothing_is_checked() {
        let key = Some(Arc::new(Key::parse(&[1; 32]).unwrap()));
        let decoder = decoder(&[], &TileContext { key, ..context(Datatype::UInt8, 22) }).unwrap();
        let mut metadata = le(&[0, 1, 0, 0]);
        metadata.resize(metadata.len() + 28, 7);
        assert!(decoder.decode(&metadata, &[], &mut [], &mut Scratch::new()).is_err());
    }

    #[test]
    fn errors_name_the_filter() {
        let decoder = decoder(&[Filter::Byteshuffle, ZSTD], &context(Datatype::Int32, 22)).unwrap();
        let error = decoder.decode(&[0; 3], &[], &mut [0; 4], &mut Scratch::new()).unwrap_err();
        let place = error.place().unwrap();
        assert_eq!(place.to_string(), "filter ZSTD, field number of metadata parts");
    }

    #[test]
    fn leftover_metadata_is_an_error() {
        let plain = decoder(&[], &context(Datatype::Int32, 22)).unwrap();
        let mut out = [0; 4];
        plain.decode(&[], &[1, 2, 3, 4], &mut out, &mut Scratch::new()).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        assert!(plain.decode(&[0], &[1, 2, 3, 4], &mut out, &mut Scratch::new()).is_err());
        assert!(plain.decode(&[], &[1, 2, 3], &mut out, &mut Scratch::new()).is_err());
    }
}
