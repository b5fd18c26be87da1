//! The general compressors: GZIP, ZSTD, LZ4 and BZIP2. What they store is, in this order, a zlib
//! stream (not gzip), a zstd frame, a bare LZ4 block, and a bzip2 stream.

use crate::error::{Error, Result};

/// States of the codecs that are worth keeping from part to part. LZ4 has none, and BZIP2's library
/// cannot reuse one.
#[derive(Default)]
pub(super) struct Codecs {
    zlib: Option<flate2::Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Codecs {
    /// Inflates a zlib stream that holds exactly `out.len()` bytes.
    pub fn gzip(&mut self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let zlib = self.zlib.get_or_insert_with(|| flate2::Decompress::new(true));
        zlib.reset(true);
        let status = zlib.decompress(encoded, out, flate2::FlushDecompress::Finish);
        let status = status.map_err(|error| Error::refused("bad zlib stream", error))?;
        if status != flate2::Status::StreamEnd {
            let end = if zlib.total_in() == encoded.len() as u64 { "is cut off" } else { "holds more than it claims" };
            return Err(Error::damaged(format!("the zlib stream {end}")));
        }
        whole(zlib.total_in(), encoded)?;
        filled(zlib.total_out(), out)
    }

    /// Decodes a zstd frame that holds exactly `out.len()` bytes. Decoding stops at the end of `out`,
    /// whatever size or window the frame claims.
    pub fn zstd(&mut self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(zstd::bulk::Decompressor::new().map_err(Error::io)?),
        };
        let written = zstd.decompress_to_buffer(encoded, out);
        filled(written.map_err(|error| Error::refused("bad zstd frame", error))? as u64, out)
    }

    /// Decodes an LZ4 block that holds exactly `out.len()` bytes.
    pub fn lz4(&mut self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let written = lz4_flex::block::decompress_into(encoded, out);
        filled(written.map_err(|error| Error::refused("bad LZ4 block", error))? as u64, out)
    }

    /// Decodes a bzip2 stream that holds exactly `out.len()` bytes. The library allocates its state,
    /// 4 MB at most, for every stream.
    pub fn bzip2(&mut self, encoded: &[u8], out: &mut [u8]) -> Result<()> {
        let mut bzip2 = bzip2::Decompress::new(false);
        loop {
            let (read, written) = (bzip2.total_in(), bzip2.total_out());
            // Neither total exceeds its slice.
            let status = bzip2.decompress(&encoded[read as usize..], &mut out[written as usize..]);
            match status.map_err(|error| Error::refused("bad bzip2 stream", error))? {
                bzip2::Status::StreamEnd => break,
                _ if (read, written) == (bzip2.total_in(), bzip2.total_out()) => {
                    let end = if read == encoded.len() as u64 { "is cut off" } else { "holds more than it claims" };
                    return Err(Error::damaged(format!("the bzip2 stream {end}")));
                }
                _ => {}
            }
        }
        whole(bzip2.total_in(), encoded)?;
        filled(bzip2.total_out(), out)
    }
}

fn whole(read: u64, encoded: &[u8]) -> Result<()> {
    if read == encoded.len() as u64 {
        return Ok(());
    }
    Err(Error::damaged(format!("the stream ends after {read} of {} bytes", encoded.len())))
}

fn filled(written: u64, out: &[u8]) -> Result<()> {
    if written == out.len() as u64 {
        return Ok(());
    }
    Err(Error::damaged(format!("decodes to {written} bytes instead of {}", out.len())))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    type Encode = fn(&[u8]) -> Vec<u8>;
    type Decode = fn(&mut Codecs, &[u8], &mut [u8]) -> Result<()>;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 3).unwrap()
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        lz4_flex::block::compress(bytes)
    }

    #[test]
    fn every_codec_fills_its_output_exactly_or_fails() {
        let codecs: [(&str, Encode, Decode); 4] = [
            ("zlib", zlib, Codecs::gzip),
            ("zstd", zstd, Codecs::zstd),
            ("lz4", lz4, Codecs::lz4),
            ("bzip2", bzip2, Codecs::bzip2),
        ];
        let text: Vec<u8> = (0..5000u32).map(|i| (i * i / 7 % 61) as u8).collect();
        for (name, encode, decode) in codecs {
            let mut state = Codecs::default();
            for length in [0, 1, 2, 7, 100, 5000] {
                let encoded = encode(&text[..length]);
                let mut out = vec![0; length];
                decode(&mut state, &encoded, &mut out).unwrap_or_else(|error| panic!("{name} {length}: {error}"));
                assert_eq!(out, text[..length], "{name} {length}");
                assert!(decode(&mut state, &encoded, &mut vec![0; length + 1]).is_err(), "{name}: short output");
                if length > 0 {
                    assert!(decode(&mut state, &encoded, &mut vec![0; length - 1]).is_err(), "{name}: long output");
                    assert!(decode(&mut state, &encoded[..encoded.len() - 1], &mut out).is_err(), "{name}: cut off");
                }
                decode(&mut state, &encoded, &mut out).expect("the state survives errors");
            }
            assert!(decode(&mut state, &[], &mut [0; 4]).is_err(), "{name}: nothing");
            assert!(decode(&mut state, &[0xff; 40], &mut [0; 4]).is_err(), "{name}: rubbish");
        }
    }

    #[test]
    fn bombs_stop_at_the_output() {
        let zeros = vec![0; 64 << 20];
        let mut state = Codecs::default();
        let mut out = vec![0; 1000];
        assert!(state.zstd(&zstd(&zeros), &mut out).is_err());
        assert!(state.gzip(&zlib(&zeros), &mut out).is_err());
        assert!(state.lz4(&lz4(&zeros), &mut out).is_err());
        assert!(state.bzip2(&bzip2(&zeros), &mut out).is_err());
    }
}
