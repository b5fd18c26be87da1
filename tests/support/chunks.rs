//! Chunks as filters store them, made without tilefs: for benchmarks of filters, and for counts of their instructions.

use std::io::Write;
use std::sync::Arc;

use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use sha2::Digest;
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::{Decoder, Key, TileContext};
use tilefs_format::pipeline::{Filter, Pipeline, WebpFormat};

/// The size of the cells of a chunk, at most.
pub const CHUNK: usize = 65536;

/// A chunk that decodes to `original` bytes: the whole cells in [`CHUNK`] bytes.
pub struct Chunk {
    filters: Vec<Filter>,
    datatype: Datatype,
    cell_size: usize,
    key: Option<Arc<Key>>,
    pub original: usize,
    pub metadata: Vec<u8>,
    pub data: Vec<u8>,
}

impl Chunk {
    /// Returns what decodes the chunk.
    pub fn decoder(&self) -> Decoder {
        let context = TileContext {
            datatype: self.datatype,
            cell_size: self.cell_size,
            format_version: 22,
            writer_version: None,
            key: self.key.clone(),
        };
        let pipeline = Pipeline { max_chunk_size: CHUNK as u32, filters: self.filters.clone() };
        Decoder::new(&pipeline, &context).expect("a pipeline of this format")
    }
}

const COMPRESSORS: [&str; 4] = ["gzip", "zstd", "lz4", "bzip2"];

/// The names of [`chunk`].
pub const FILTERS: [&str; 39] = [
    "none",
    "gzip",
    "zstd",
    "lz4",
    "bzip2",
    "byteshuffle u16",
    "byteshuffle u32",
    "byteshuffle u64",
    "bitshuffle u8",
    "bitshuffle u16",
    "bitshuffle u32",
    "bitshuffle u64",
    "xor u8",
    "xor u32",
    "xor u64",
    "delta u8",
    "delta u32",
    "delta u64",
    "double delta u32",
    "double delta u64",
    "positive delta u8",
    "positive delta u32",
    "positive delta u64",
    "bwr 8 to i16",
    "bwr 8 to u32",
    "bwr 16 to i32",
    "bwr 32 to i64",
    "scale float i16 to f32",
    "scale float i32 to f64",
    "scale float i64 to f64",
    "rle u8, runs of 40",
    "rle u32, runs of 5",
    "rle 12 bytes, runs of 5",
    "md5",
    "sha256",
    "aes",
    "webp lossless",
    "byteshuffle u32 + zstd",
    "bitshuffle u32 + lz4",
];

fn cell_size(name: &str) -> usize {
    match name {
        "rle u32, runs of 5" => 4,
        "rle 12 bytes, runs of 5" => 12,
        _ => 1,
    }
}

/// Returns little-endian numbers.
pub fn le(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Returns measurements with some noise, as typical input of compressors.
pub fn samples(bytes: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut value = 20_000u32;
    let mut step = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value = value.wrapping_add(state >> 28).wrapping_sub(7);
        value.to_le_bytes()
    };
    (0..bytes / 4).flat_map(|_| step()).collect()
}

/// Returns lines of words and numbers.
pub fn text(bytes: usize) -> Vec<u8> {
    let words = ["station", "north", "south", "temperature", "ok", "missing", "sensor", "ice", "wind", "depth"];
    let noise = noise();
    let line = |at: usize| {
        let byte = |from: usize| usize::from(noise[(at * 7 + from) % CHUNK]);
        let word = |from: usize| words[byte(from) % words.len()];
        format!("{} {} {}.{:02} {}\n", word(0), word(1), byte(2), byte(3) % 100, word(4))
    };
    (0..).flat_map(|at| line(at).into_bytes()).take(bytes).collect()
}

fn noise() -> Vec<u8> {
    let mut state = 1u64;
    let mut step = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..CHUNK).map(|_| step()).collect()
}

/// Returns bytes compressed by the library of a compressor's name.
pub fn compress(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name {
        "gzip" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::bulk::compress(bytes, 3).unwrap(),
        "lz4" => lz4_flex::block::compress(bytes),
        _ => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// Shuffles bytes as BYTESHUFFLE does.
pub fn unshuffled(bytes: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|byte| bytes.iter().skip(byte).step_by(width).copied()).collect()
}

/// Shuffles bits as BITSHUFFLE does, for whole blocks of 8192 bytes.
pub fn bits_apart(bytes: &[u8], width: usize) -> Vec<u8> {
    let row = |block: &[u8], bit: usize| -> Vec<u8> {
        let eights = block.chunks_exact(8 * width);
        eights.map(|eight| (0..8).map(|i| (eight[i * width + bit / 8] >> (bit % 8) & 1) << i).sum()).collect()
    };
    bytes.chunks_exact(8192).flat_map(|block| (0..8 * width).flat_map(move |bit| row(block, bit))).collect()
}

fn compressor(name: &str) -> Filter {
    match name {
        "gzip" => Filter::Gzip { level: -1 },
        "zstd" => Filter::Zstd { level: -1 },
        "lz4" => Filter::Lz4 { level: -1 },
        _ => Filter::Bzip2 { level: -1 },
    }
}

fn unsigned(name: &str) -> (Datatype, usize) {
    match name.rsplit_once(' ').map_or("", |(_, last)| last) {
        "i16" => (Datatype::Int16, 2),
        "u16" => (Datatype::UInt16, 2),
        "i32" => (Datatype::Int32, 4),
        "u32" => (Datatype::UInt32, 4),
        "i64" => (Datatype::Int64, 8),
        "u64" => (Datatype::UInt64, 8),
        "f32" => (Datatype::Float32, 4),
        "f64" => (Datatype::Float64, 8),
        _ => (Datatype::UInt8, 1),
    }
}

/// Returns a chunk for a filter. Most filters decode any bytes, and their speed does not depend on the values, so noise
/// is good enough for them.
pub fn chunk(name: &str) -> Chunk {
    let (datatype, width) = unsigned(name);
    let size = CHUNK as u32;
    let one_part = |data: &[u8]| le(&[1, data.len() as u32]);
    let encoded = |data: &[u8]| le(&[0, 1, size, data.len() as u32]);
    let chunk = |filter: Filter, metadata: Vec<u8>, data: Vec<u8>| Chunk {
        filters: vec![filter],
        datatype,
        cell_size: cell_size(name),
        key: None,
        original: CHUNK,
        metadata,
        data,
    };
    let starts = |text: &str| name.starts_with(text);
    if COMPRESSORS.contains(&name) {
        let data = compress(name, &samples(CHUNK));
        return chunk(compressor(name), encoded(&data), data);
    }
    if let Some((shuffle, codec)) = name.split_once(" u32 + ") {
        let (shuffle, shuffled) = match shuffle {
            "byteshuffle" => (Filter::Byteshuffle, unshuffled(&samples(CHUNK), 4)),
            _ => (Filter::Bitshuffle, bits_apart(&samples(CHUNK), 4)),
        };
        let data = compress(codec, &shuffled);
        let inner = compress(codec, &one_part(&shuffled));
        let metadata = le(&[1, 1, 8, inner.len() as u32, size, data.len() as u32]);
        let both = [inner, data].concat();
        let filters = vec![shuffle, compressor(codec)];
        return Chunk {
            filters,
            datatype: Datatype::UInt32,
            cell_size: 1,
            key: None,
            original: CHUNK,
            metadata,
            data: both,
        };
    }
    match name {
        _ if starts("byteshuffle") => chunk(Filter::Byteshuffle, one_part(&noise()), noise()),
        _ if starts("bitshuffle") => chunk(Filter::Bitshuffle, one_part(&noise()), noise()),
        _ if starts("xor") => chunk(Filter::Xor, one_part(&noise()), noise()),
        _ if starts("delta") => {
            let data = [(CHUNK / width).to_le_bytes().to_vec(), noise()].concat();
            chunk(Filter::Delta { level: -1, reinterpret_datatype: None }, encoded(&data), data)
        }
        _ if starts("double delta") => {
            let (bits, count) = (9, CHUNK / width);
            let words = ((count - 2) * (bits + 1)).div_ceil(64);
            let mut data = vec![bits as u8];
            data.extend(count.to_le_bytes());
            data.extend(&noise()[..2 * width + 8 * words]);
            chunk(Filter::DoubleDelta { level: -1, reinterpret_datatype: None }, encoded(&data), data)
        }
        _ if starts("positive delta") => {
            let mut metadata = le(&[size / 1024]);
            for _ in 0..size / 1024 {
                metadata.extend(&[1; 8][..width]);
                metadata.extend(le(&[1024]));
            }
            chunk(Filter::PositiveDelta { max_window: 1024 }, metadata, noise())
        }
        _ if starts("bwr") => {
            let bits: usize = name.split(' ').nth(1).unwrap().parse().unwrap();
            let mut metadata = le(&[size, size / 256]);
            for _ in 0..size / 256 {
                metadata.extend(&[1; 8][..width]);
                metadata.push(bits as u8);
                metadata.extend(le(&[256]));
            }
            let data = noise()[..CHUNK / width * bits / 8].to_vec();
            chunk(Filter::BitWidthReduction { max_window: 256 }, metadata, data)
        }
        _ if starts("scale float") => {
            let byte_width = if name.contains("i16") {
                2
            } else if name.contains("i32") {
                4
            } else {
                8
            };
            let data = noise()[..CHUNK / width * byte_width].to_vec();
            let filter = Filter::ScaleFloat { scale: 0.25, offset: 3.0, byte_width: byte_width as u64 };
            chunk(filter, one_part(&data), data)
        }
        _ if starts("rle") => {
            let (cell, run) = (cell_size(name), if starts("rle u8") { 40 } else { 5 });
            let (cells, noise) = (CHUNK / cell, noise());
            let mut data = Vec::new();
            for start in (0..cells).step_by(run) {
                data.extend(&noise[start..start + cell]);
                data.extend((run.min(cells - start) as u16).to_be_bytes());
            }
            let original = cells * cell;
            let metadata = le(&[0, 1, original as u32, data.len() as u32]);
            Chunk { original, ..chunk(Filter::Rle { level: -1 }, metadata, data) }
        }
        "md5" => {
            let digest = md5::Md5::digest(noise());
            let metadata = [le(&[0, 1, size, 0]), digest.to_vec()].concat();
            chunk(Filter::ChecksumMd5, metadata, noise())
        }
        "sha256" => {
            let digest = sha2::Sha256::digest(noise());
            let metadata = [le(&[0, 1, size, 0]), digest.to_vec()].concat();
            chunk(Filter::ChecksumSha256, metadata, noise())
        }
        "aes" => {
            let cipher = Aes256Gcm::new(&[7; 32].into());
            let mut data = noise();
            let tag = cipher.encrypt_inout_detached(&[0; 12].into(), &[], data.as_mut_slice().into()).unwrap();
            let metadata = [le(&[0, 1, size, size]), vec![0; 12], tag.to_vec()].concat();
            let key = Some(Arc::new(Key::parse(&[7; 32]).unwrap()));
            Chunk { filters: vec![], datatype, cell_size: 1, key, original: CHUNK, metadata, data }
        }
        "webp lossless" => {
            let mut data = Vec::new();
            let encoder = image_webp::WebPEncoder::new(&mut data);
            encoder.encode(&samples(CHUNK), 128, 128, image_webp::ColorType::Rgba8).unwrap();
            let filter = Filter::Webp { quality: 100.0, format: WebpFormat::Rgba, lossless: true };
            chunk(filter, one_part(&data), data)
        }
        _ => Chunk {
            filters: vec![],
            datatype,
            cell_size: 1,
            key: None,
            original: CHUNK,
            metadata: vec![],
            data: noise(),
        },
    }
}
