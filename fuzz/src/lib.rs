//! Shared code of the fuzz targets for filters: parses an input as one chunk of a tile, and writes chunks as inputs, to
//! make seeds of real chunks.

use std::sync::Arc;

use tilefs_format::cursor::Cursor;
use tilefs_format::datatype::Datatype;
use tilefs_base::error::Result;
use tilefs_format::filter::{Decoder, Key, Scratch, StoredOrder, TileContext};
use tilefs_format::pipeline::{Filter, Pipeline};

pub mod schema_and_rest;

/// Limits the memory of every target to 256 MiB.
#[global_allocator]
static MEMORY: support::bounded_allocator::Bounded = support::bounded_allocator::Bounded::new();

/// The key of encrypted inputs: the key of the vectors in tests/fixtures/filters.
pub const KEY: &[u8; 32] = b"0123456789abcdef0123456789ABCDEF";

/// The longest original length of a chunk, to keep runs fast.
pub const MAX_ORIGINAL: usize = 1 << 20;

/// A chunk, and the properties of its tile.
#[derive(Debug, Clone)]
pub struct Input {
    /// Selects the filter, in targets with several filters.
    pub choice: u8,
    pub datatype: Datatype,
    pub cell_size: usize,
    pub format_version: u32,
    pub encrypted: bool,
    pub original: usize,
    pub cells: usize,
    /// A pipeline as stored in a schema; only used by the target for whole pipelines.
    pub pipeline: Vec<u8>,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
}

impl Input {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let choice = cursor.u8("choice")?;
        let datatype = Datatype::from_number(cursor.u8("datatype")? % 44)?;
        let cell_size = usize::from(cursor.u8("cell size")?).max(1);
        let flags = cursor.u8("flags")?;
        let original = cursor.u32("original")? as usize % (MAX_ORIGINAL + 1);
        let cells = usize::from(cursor.u16("cells")?);
        let pipeline = usize::from(cursor.u16("pipeline length")?).min(cursor.remaining());
        let pipeline = cursor.bytes(pipeline, "pipeline")?.to_vec();
        let metadata = (cursor.u32("metadata length")? as usize).min(cursor.remaining());
        let metadata = cursor.bytes(metadata, "metadata")?.to_vec();
        let data = cursor.bytes(cursor.remaining(), "data")?.to_vec();
        let format_version = if flags & 1 == 0 { 22 } else { 19 };
        let encrypted = flags & 2 != 0;
        Ok(Input { choice, datatype, cell_size, format_version, encrypted, original, cells, pipeline, metadata, data })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let flags = u8::from(self.format_version < 20) | u8::from(self.encrypted) << 1;
        let mut bytes = vec![self.choice, self.datatype as u8, self.cell_size as u8, flags];
        bytes.extend((self.original as u32).to_le_bytes());
        bytes.extend((self.cells as u16).to_le_bytes());
        bytes.extend((self.pipeline.len() as u16).to_le_bytes());
        bytes.extend(&self.pipeline);
        bytes.extend((self.metadata.len() as u32).to_le_bytes());
        bytes.extend(&self.metadata);
        bytes.extend(&self.data);
        bytes
    }

    /// Decodes the chunk; also as strings with offsets, if the filters can store those.
    pub fn decode(&self, filters: Vec<Filter>) {
        let context = TileContext {
            datatype: self.datatype,
            cell_size: self.cell_size,
            format_version: self.format_version,
            writer_version: None,
            key: self.encrypted.then(|| Arc::new(Key::parse(KEY).expect("32 bytes are a key"))),
        };
        let sorts = filters.contains(&Filter::Bitsort);
        let pipeline = Pipeline { max_chunk_size: 65536, filters };
        let Ok(decoder) = Decoder::new(&pipeline, &context) else { return };
        let mut scratch = Scratch::new();
        let mut out = vec![0; self.original];
        if sorts && self.cells <= self.data.len() {
            // Some coordinates are equal.
            let order = StoredOrder::new(self.cells, |a, b| (a * 7 % 1000).cmp(&(b * 7 % 1000))).expect("few cells");
            if let Ok(sorted) = Decoder::of_sorted_tile(&pipeline, &context, &Arc::new(order)) {
                let _ = sorted.decode(&self.metadata, &self.data, &mut out, &mut Scratch::new());
            }
        }
        let _ = decoder.decode(&self.metadata, &self.data, &mut out, &mut scratch);
        if decoder.encodes_offsets() {
            let mut offsets = vec![0; self.cells];
            let _ = decoder.decode_strings(&self.metadata, &self.data, &mut out, &mut offsets, &mut scratch);
        }
    }
}

/// Returns the filters that a target tries.
pub fn choices(target: &str) -> Vec<Filter> {
    use tilefs_format::pipeline::WebpFormat::{Bgr, Bgra, Rgb, Rgba};
    let webp = |format| Filter::Webp { quality: 60.0, format, lossless: false };
    let scale = |byte_width| Filter::ScaleFloat { scale: 0.25, offset: -3.0, byte_width };
    match target {
        "filter_compressors" => vec![
            Filter::Gzip { level: -1 },
            Filter::Zstd { level: -1 },
            Filter::Lz4 { level: -1 },
            Filter::Bzip2 { level: -1 },
        ],
        "filter_shuffles" => {
            let scaled = [1, 2, 4, 8].map(scale);
            [&[Filter::Byteshuffle, Filter::Bitshuffle, Filter::Xor, Filter::Bitsort], &scaled[..]].concat()
        }
        "filter_rle" => vec![Filter::Rle { level: -1 }],
        "filter_dictionary" => vec![Filter::Dictionary { level: -1 }],
        "filter_double_delta" => vec![Filter::DoubleDelta { level: -1, reinterpret_datatype: None }],
        "filter_delta" => vec![Filter::Delta { level: -1, reinterpret_datatype: None }],
        "filter_bit_width_reduction" => vec![Filter::BitWidthReduction { max_window: 256 }],
        "filter_positive_delta" => vec![Filter::PositiveDelta { max_window: 1024 }],
        "filter_checksums" => vec![Filter::ChecksumMd5, Filter::ChecksumSha256],
        "filter_webp" => vec![webp(Rgb), webp(Bgr), webp(Rgba), webp(Bgra)],
        "filter_aes" => vec![Filter::Aes256Gcm],
        _ => Vec::new(),
    }
}

/// Decodes the input with the filter of the target that it selects.
pub fn one_filter(target: &str, bytes: &[u8]) {
    let choices = choices(target);
    let Ok(mut input) = Input::parse(bytes) else { return };
    if target == "filter_dictionary" && input.datatype != Datatype::StringUtf8 {
        input.datatype = Datatype::StringAscii;
    }
    input.encrypted = target == "filter_aes";
    let filter = choices[usize::from(input.choice) % choices.len()];
    input.decode(vec![filter]);
}
