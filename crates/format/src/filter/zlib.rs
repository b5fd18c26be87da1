//! zlib streams of known decoded length, by two decoders.
//!
//! libdeflate takes about half the time of a streaming decoder, and keeps its state without allocating for each stream.
//! flate2 decodes the streams that libdeflate rejects: only a stream that both reject counts as damaged.

use flate2::{Decompress, FlushDecompress, Status};

use super::libdeflate::{self, DecompressError};

/// The state of libdeflate, 11 KiB, allocated on first use. That of flate2, 48 KiB, only lives during a call.
#[derive(Default)]
pub(super) struct ZlibDecompressor(libdeflate::Decompressor);

impl ZlibDecompressor {
    /// Decodes the zlib stream at the start of `stream` into `out`, which it must fill exactly, and returns the length
    /// of that stream. After a [`DecompressError`], the content of `out` is unspecified.
    pub fn decompress(&mut self, stream: &[u8], out: &mut [u8]) -> Result<usize, DecompressError> {
        match self.0.decompress_zlib(stream, out) {
            Err(DecompressError::Damaged) => decompress_with_flate2(stream, out),
            decided => decided,
        }
    }
}

fn decompress_with_flate2(stream: &[u8], out: &mut [u8]) -> Result<usize, DecompressError> {
    let mut decoder = Decompress::new(true);
    let decoded = decoder.decompress(stream, out, FlushDecompress::Finish);
    let status = decoded.map_err(|_| DecompressError::Damaged)?;
    // Neither count exceeds the length of its slice.
    let (read, written) = (decoder.total_in() as usize, decoder.total_out() as usize);
    match status {
        Status::StreamEnd if written == out.len() => Ok(read),
        Status::StreamEnd => Err(DecompressError::TooShort),
        _ if written == out.len() && read < stream.len() => Err(DecompressError::TooLong),
        _ => Err(DecompressError::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn both_decoders_give_the_same_bytes_lengths_and_reasons() {
        for length in [0, 1, 1000, 100_000] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * i % 251) as u8).collect();
            let stream = zlib(&bytes);
            let behind = [&stream[..], b"more"].concat();
            let mut states = ZlibDecompressor::default();
            for input in [&stream, &behind] {
                let (mut fast, mut streaming) = (vec![1; length], vec![2; length]);
                assert_eq!(states.0.decompress_zlib(input, &mut fast), Ok(stream.len()), "{length}");
                assert_eq!(decompress_with_flate2(input, &mut streaming), Ok(stream.len()), "{length}");
                assert!(fast == bytes && streaming == bytes, "{length}");
            }
            let mut longer = vec![0; length + 1];
            assert_eq!(states.0.decompress_zlib(&stream, &mut longer), Err(DecompressError::TooShort));
            assert_eq!(decompress_with_flate2(&stream, &mut longer), Err(DecompressError::TooShort), "{length}");
            if length > 0 {
                let mut shorter = vec![0; length - 1];
                assert_eq!(states.decompress(&stream, &mut shorter), Err(DecompressError::TooLong), "{length}");
                assert_eq!(decompress_with_flate2(&stream, &mut shorter), Err(DecompressError::TooLong), "{length}");
            }
            let mut out = vec![0; length];
            for cut in [0, 1, stream.len() / 2, stream.len() - 1] {
                // libdeflate reads zeros past the end of a stream, and may find that they decode to too many bytes.
                assert!(states.decompress(&stream[..cut], &mut out).is_err(), "{length}, {cut}");
                let cut_off = decompress_with_flate2(&stream[..cut], &mut out);
                assert_eq!(cut_off, Err(DecompressError::Damaged), "{length}, {cut}");
            }
        }
    }
}
