//! Tests of the general compressors, GZIP, ZSTD, LZ4 and BZIP2, with data that their libraries encode.

use std::io::Write;

use proptest::prelude::*;
use tilefs_base::error::{Error, Result};

use super::bzip2::Bzip2;
use super::encoded_parts::EncodedPart;
use super::gzip::Gzip;
use super::lz4::Lz4;
use super::scratch::CodecStates;
use super::stage::DecodePart;
use super::zstd::Zstd;

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(bytes, 3).unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(bytes)
}

fn decode(codec: &dyn DecodePart, states: &mut CodecStates, encoded: &[u8], out: &mut [u8]) -> Result<()> {
    codec.decode(EncodedPart { extra: &[], encoded, out }, states)
}

#[test]
fn every_codec_fills_its_output_exactly_or_fails() {
    type Codec<'a> = (&'a str, fn(&[u8]) -> Vec<u8>, &'a dyn DecodePart);
    let codecs: [Codec<'_>; 4] =
        [("zlib", zlib, &Gzip), ("zstd", zstd, &Zstd), ("lz4", lz4, &Lz4), ("bzip2", bzip2, &Bzip2)];
    let text: Vec<u8> = (0..5000u32).map(|i| (i * i / 7 % 61) as u8).collect();
    for (name, encode, codec) in codecs {
        let mut states = CodecStates::default();
        let mut decode = |encoded: &[u8], out: &mut [u8]| decode(codec, &mut states, encoded, out);
        for length in [0, 1, 2, 7, 100, 5000] {
            let encoded = encode(&text[..length]);
            let mut out = vec![0; length];
            decode(&encoded, &mut out).unwrap_or_else(|error| panic!("{name} {length}: {error}"));
            assert_eq!(out, text[..length], "{name} {length}");
            assert!(decode(&encoded, &mut vec![0; length + 1]).is_err(), "{name}: short output");
            if length > 0 {
                assert!(decode(&encoded, &mut vec![0; length - 1]).is_err(), "{name}: long output");
                assert!(decode(&encoded[..encoded.len() - 1], &mut out).is_err(), "{name}: cut off");
            }
            decode(&encoded, &mut out).expect("the state survives errors");
        }
        assert!(decode(&[], &mut [0; 4]).is_err(), "{name}: nothing");
        assert!(decode(&[0xff; 40], &mut [0; 4]).is_err(), "{name}: rubbish");
    }
}

#[test]
fn bombs_stop_at_the_output() {
    let zeros = vec![0; 64 << 20];
    let mut states = CodecStates::default();
    let mut out = vec![0; 1000];
    assert!(decode(&Zstd, &mut states, &zstd(&zeros), &mut out).is_err());
    assert!(decode(&Gzip, &mut states, &zlib(&zeros), &mut out).is_err());
    assert!(decode(&Lz4, &mut states, &lz4(&zeros), &mut out).is_err());
    assert!(decode(&Bzip2, &mut states, &bzip2(&zeros), &mut out).is_err());
}

/// Decodes with flate2 a zlib stream that must be all of `stream` and decode to exactly `length` bytes.
fn inflate(stream: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut zlib = flate2::Decompress::new(true);
    let mut out = vec![0; length];
    let status = zlib.decompress(stream, &mut out, flate2::FlushDecompress::Finish).ok()?;
    let whole = (zlib.total_in(), zlib.total_out()) == (stream.len() as u64, length as u64);
    (status == flate2::Status::StreamEnd && whole).then_some(out)
}

/// Computes the checksum at the end of a zlib stream (Adler-32).
fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    high << 16 | low
}

/// Checks that the filter accepts what flate2 accepts, and decodes it to the same bytes. It must report all other
/// streams as damaged, unless the decoded bytes match the checksum: some damage changes no decoded byte.
fn check_against_flate2(
    states: &mut CodecStates,
    stream: &[u8],
    length: usize,
) -> std::result::Result<(), TestCaseError> {
    let mut out = vec![0; length];
    let result = decode(&Gzip, states, stream, &mut out);
    match (inflate(stream, length), result) {
        (Some(bytes), result) => {
            prop_assert!(result.is_ok(), "{result:?}");
            prop_assert!(out == bytes);
        }
        (None, Ok(())) => prop_assert!(stream.ends_with(&adler32(&out).to_be_bytes()), "the checksum is another"),
        (None, result) => prop_assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}"),
    }
    Ok(())
}

/// Generates bytes of all kinds: noise, few distinct values, runs, and repetitions.
fn plain_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        prop::collection::vec(0u8..4, 0..400),
        (any::<u8>(), 0usize..600).prop_map(|(byte, count)| vec![byte; count]),
        (prop::collection::vec(any::<u8>(), 1..20), 1usize..60).prop_map(|(word, count)| word.repeat(count)),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Encodes with any setting, so that streams have stored blocks, fixed codes, dynamic codes, and blocks that end early.
fn zlib_stream(bytes: &[u8], level: u32, flushed_at: usize) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
    let (head, tail) = bytes.split_at(flushed_at.min(bytes.len()));
    encoder.write_all(head).unwrap();
    if !head.is_empty() {
        encoder.flush().unwrap();
    }
    encoder.write_all(tail).unwrap();
    encoder.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn gzip_decodes_as_flate2_does(bytes in plain_bytes(), level in 0u32..10, flushed_at in 0usize..1000) {
        let mut states = CodecStates::default();
        let stream = zlib_stream(&bytes, level, flushed_at);
        prop_assert!(inflate(&stream, bytes.len()) == Some(bytes.clone()));
        check_against_flate2(&mut states, &stream, bytes.len())?;
        check_against_flate2(&mut states, &stream, bytes.len() + 1)?;
        check_against_flate2(&mut states, &stream, bytes.len().saturating_sub(1))?;
    }

    #[test]
    fn gzip_refuses_what_flate2_refuses(
        bytes in plain_bytes(),
        level in 0u32..10,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        behind in prop::collection::vec(any::<u8>(), 1..9),
    ) {
        let mut states = CodecStates::default();
        let stream = zlib_stream(&bytes, level, 0);
        let mut changed = stream.clone();
        for (at, byte) in &changes {
            *at.get_mut(&mut changed) = *byte;
        }
        check_against_flate2(&mut states, &changed, bytes.len())?;
        check_against_flate2(&mut states, &stream[..cut.index(stream.len())], bytes.len())?;
        check_against_flate2(&mut states, &[&stream[..], &behind].concat(), bytes.len())?;
        // The state still works after all these errors.
        check_against_flate2(&mut states, &stream, bytes.len())?;
    }

    #[test]
    fn gzip_takes_any_bytes_as_flate2_does(mut stream in prop::collection::vec(any::<u8>(), 0..200), length in 0usize..300) {
        // A valid header, so that both decode the blocks.
        if let Some(header) = stream.first_chunk_mut() {
            *header = [0x78, 0x9c];
        }
        check_against_flate2(&mut CodecStates::default(), &stream, length)?;
    }
}

/// In each stream, at most one flipped bit goes unnoticed: it turns length code 285 into code 287. The decoded bytes
/// are right.
#[test]
fn a_flipped_bit_is_damage_or_changes_nothing() {
    let text: Vec<u8> = (0..200).map(|i| (i * i % 23) as u8).collect();
    let bytes = [&[7; 300][..], b"abcdefghijklmnopqrstuvwxyz0123456789", &[9; 200], &text].concat();
    let mut most_overlooked = 0;
    for level in 0..10 {
        for plain in [&bytes[..], &bytes[..300], &bytes[100..500], &bytes[..336]] {
            let stream = zlib_stream(plain, level, 0);
            let mut overlooked = 0;
            for bit in 0..stream.len() * 8 {
                let mut changed = stream.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let mut out = vec![0; plain.len()];
                let taken = decode(&Gzip, &mut CodecStates::default(), &changed, &mut out).is_ok();
                assert!(!taken || out == plain, "level {level}, {} bytes, bit {bit}", plain.len());
                assert!(taken || inflate(&changed, plain.len()).is_none(), "level {level}, bit {bit}");
                overlooked += usize::from(taken && inflate(&changed, plain.len()).is_none());
            }
            most_overlooked = most_overlooked.max(overlooked);
        }
    }
    assert_eq!(most_overlooked, 1, "of one stream");
}

/// bzip2 always has a checksum of each block; a zstd frame has one if its writer asked for it.
#[test]
fn checksums_of_other_codecs_find_flipped_bits() {
    let text: Vec<u8> = (0..700u32).map(|i| (i * i % 41) as u8).collect();
    let mut with_checksum = ::zstd::bulk::Compressor::new(3).unwrap();
    with_checksum.include_checksum(true).unwrap();
    let frame = with_checksum.compress(&text).unwrap();
    assert_eq!(frame.len(), zstd(&text).len() + 4);
    let codecs: [(&str, Vec<u8>, &dyn DecodePart); 2] = [("zstd", frame, &Zstd), ("bzip2", bzip2(&text), &Bzip2)];
    for (name, encoded, codec) in codecs {
        let mut found = 0;
        for bit in 0..encoded.len() * 8 {
            let (mut changed, mut out) = (encoded.clone(), vec![0; text.len()]);
            changed[bit / 8] ^= 1 << (bit % 8);
            let taken = decode(codec, &mut CodecStates::default(), &changed, &mut out).is_ok();
            assert!(!taken || out == text, "{name}, bit {bit}");
            found += usize::from(!taken);
        }
        assert!(found > encoded.len() * 7, "{name}: {found} of {} bits", encoded.len() * 8);
    }
    let flags = [&Gzip as &dyn DecodePart, &Bzip2, &Zstd, &Lz4].map(DecodePart::has_checksum);
    assert_eq!(flags, [true, true, false, false]);
}

/// Blocks that no encoder writes, with right checksums: the checksum does not protect from an attacker.
#[test]
fn streams_that_no_encoder_makes() {
    let adler_of_nothing = [0, 0, 0, 1];
    for (block, accepted) in [
        // Stored blocks: an empty one, one with a wrong complement, and one that is not marked as the last.
        (&[1, 0, 0, 0xff, 0xff][..], true),
        (&[1, 0, 0, 0xff, 0xfe], false),
        (&[0, 0, 0, 0xff, 0xff], false),
        // Fixed codes: an immediate end of the block; the reserved block type.
        (&[3, 0], true),
        (&[7, 0], false),
    ] {
        let stream = [&[0x78, 0x9c], block, &adler_of_nothing].concat();
        assert_eq!(inflate(&stream, 0).is_some(), accepted, "{block:?}");
        check_against_flate2(&mut CodecStates::default(), &stream, 0).unwrap();
        let wrong = [&stream[..stream.len() - 1], &[2]].concat();
        assert!(
            decode(&Gzip, &mut CodecStates::default(), &wrong, &mut []).is_err(),
            "{block:?} with a wrong checksum"
        );
    }
    // A window of 64 KiB, another method, a dictionary, and a wrong header check.
    for header in [[0x88, 0x1c], [0x77, 0x89], [0x78, 0xbb], [0x78, 0x9d]] {
        let stream = [&header[..], &[3, 0], &adler_of_nothing].concat();
        assert!(inflate(&stream, 0).is_none());
        check_against_flate2(&mut CodecStates::default(), &stream, 0).unwrap();
    }
}
