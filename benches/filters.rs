//! Decoded bytes per second of every filter, on chunks of 64 KiB, compared with the codec library alone on the same
//! payload and with a plain copy: `cargo bench --bench filters`.

use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};
use divan::Bencher;
use divan::counter::BytesCount;
use sha2::Digest;
use support::chunks::{CHUNK, FILTERS, bits_apart, chunk, compress, le, samples, text, unshuffled};
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::{Decoder, Scratch, TileContext};
use tilefs_format::pipeline::{Filter, Pipeline};

fn main() {
    divan::main();
}

/// Decodes as the program does, with buffers that have been used before.
#[divan::bench(args = FILTERS)]
fn undo(bencher: Bencher, name: &str) {
    let chunk = chunk(name);
    let decoder = chunk.decoder();
    let (mut scratch, mut out) = (Scratch::new(), vec![0; chunk.original]);
    decoder.decode(&chunk.metadata, &chunk.data, &mut out, &mut scratch).unwrap();
    bencher
        .counter(BytesCount::new(chunk.original))
        .bench_local(|| decoder.decode(divan::black_box(&chunk.metadata), &chunk.data, &mut out, &mut scratch));
}

/// GZIP as the program decodes it, with libdeflate, compared with zlib-rs, a streaming decoder.
mod gzip {
    use super::*;

    const CHUNKS: [&str; 4] = ["numbers, 64 KiB", "numbers, 1 MiB", "text, 64 KiB", "text, 1 MiB"];

    fn bytes(name: &str) -> Vec<u8> {
        let length = if name.ends_with("1 MiB") { 1 << 20 } else { 64 << 10 };
        if name.starts_with("numbers") { samples(length) } else { text(length) }
    }

    #[divan::bench(args = CHUNKS)]
    fn libdeflate(bencher: Bencher, name: &str) {
        let bytes = bytes(name);
        let data = compress("gzip", &bytes);
        let context = TileContext {
            datatype: Datatype::UInt8,
            cell_size: 1,
            format_version: 22,
            writer_version: None,
            key: None,
        };
        let filters = vec![Filter::Gzip { level: -1 }];
        let decoder = Decoder::new(&Pipeline { max_chunk_size: 65536, filters }, &context).unwrap();
        let metadata = le(&[0, 1, bytes.len() as u32, data.len() as u32]);
        let (mut scratch, mut out) = (Scratch::new(), vec![0; bytes.len()]);
        decoder.decode(&metadata, &data, &mut out, &mut scratch).unwrap();
        bencher
            .counter(BytesCount::new(bytes.len()))
            .bench_local(|| decoder.decode(&metadata, divan::black_box(&data), &mut out, &mut scratch));
    }

    #[divan::bench(args = CHUNKS)]
    fn zlib_rs(bencher: Bencher, name: &str) {
        let bytes = bytes(name);
        let data = compress("gzip", &bytes);
        let mut zlib = flate2::Decompress::new(true);
        let mut out = vec![0; bytes.len()];
        bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
            zlib.reset(true);
            zlib.decompress(divan::black_box(&data), &mut out, flate2::FlushDecompress::Finish).unwrap()
        });
    }
}

/// Decodes with the libraries alone, with a reused state if the library allows that.
#[divan::bench(args = ["copy", "gzip", "zstd", "lz4", "bzip2", "md5", "sha256", "aes", "shuffled zstd", "shuffled lz4"])]
fn library(bencher: Bencher, name: &str) {
    let (data, mut out) = match name {
        "shuffled zstd" => (compress("zstd", &unshuffled(&samples(CHUNK), 4)), vec![0; CHUNK]),
        "shuffled lz4" => (compress("lz4", &bits_apart(&samples(CHUNK), 4)), vec![0; CHUNK]),
        _ => (chunk(name).data, vec![0; CHUNK]),
    };
    let bencher = bencher.counter(BytesCount::new(CHUNK));
    match name.rsplit(' ').next().unwrap_or_default() {
        "gzip" => {
            let mut zlib = flate2::Decompress::new(true);
            bencher.bench_local(|| {
                zlib.reset(true);
                zlib.decompress(divan::black_box(&data), &mut out, flate2::FlushDecompress::Finish).unwrap()
            });
        }
        "zstd" => {
            let mut zstd = zstd::bulk::Decompressor::new().unwrap();
            bencher.bench_local(|| zstd.decompress_to_buffer(divan::black_box(&data), out.as_mut_slice()).unwrap());
        }
        "lz4" => bencher.bench_local(|| lz4_flex::block::decompress_into(divan::black_box(&data), &mut out).unwrap()),
        "bzip2" => bencher.bench_local(|| {
            bzip2::Decompress::new(false).decompress(divan::black_box(&data), &mut out).unwrap();
        }),
        "md5" => bencher.bench_local(|| md5::Md5::digest(divan::black_box(&data))),
        "sha256" => bencher.bench_local(|| sha2::Sha256::digest(divan::black_box(&data))),
        "aes" => {
            let cipher = Aes256Gcm::new(&[7; 32].into());
            bencher.bench_local(|| {
                let buffer = InOutBuf::new(divan::black_box(&data), &mut out).unwrap();
                cipher.encrypt_inout_detached(&[0; 12].into(), &[], buffer).unwrap()
            });
        }
        _ => bencher.bench_local(|| out.copy_from_slice(divan::black_box(&data))),
    }
}
