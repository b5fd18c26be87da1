//! The vectors in tests/fixtures/filters: tiles that libtiledb filtered, and the cells it reads from them.
//! tests/fixtures/generators/make_filter_vectors.py makes them and describes the files.

use std::io::Read;
use std::sync::Arc;

use tilefs_base::error::Error;
use tilefs_format::cursor::Cursor;
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::{Chunks, Decoder, Key, Scratch, TileContext};
use tilefs_format::pipeline::Pipeline;

const FORMAT_VERSION: u32 = 22;

pub struct Vector {
    pub name: String,
    pub pipeline: Pipeline,
    pub context: TileContext,
    pub tile: Vec<u8>,
    pub cells: Vec<u8>,
    /// The offsets of strings that are stored with them.
    pub offsets: Option<Vec<u64>>,
}

impl Vector {
    pub fn decoder(&self) -> Decoder {
        Decoder::new(&self.pipeline, &self.context).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// Decodes the chunks of a tile, which must fill `out`.
pub fn decode_into(
    decoder: &Decoder,
    tile: &[u8],
    mut out: &mut [u8],
    mut offsets: Option<&mut [u64]>,
    scratch: &mut Scratch,
) -> Result<(), Error> {
    for chunk in Chunks::new(tile)? {
        let chunk = chunk?;
        let out = out.split_off_mut(..chunk.original_bytes as usize);
        let out = out.ok_or_else(|| Error::damaged("the chunks are longer than the tile"))?;
        match &mut offsets {
            Some(offsets) => decoder.decode_strings(chunk.metadata, chunk.data, out, offsets, scratch)?,
            None => decoder.decode(chunk.metadata, chunk.data, out, scratch)?,
        }
    }
    if out.is_empty() { Ok(()) } else { Err(Error::damaged("the chunks are shorter than the tile")) }
}

fn unzip(name: &str) -> Vec<u8> {
    let path = tilefs_fixtures::fixtures().join("filters").join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

pub fn vectors() -> Vec<Vector> {
    let blobs = unzip("blobs.gz");
    let blob = |text: &str| {
        let (start, length) = text.split_once('+').unwrap();
        let (start, length): (usize, usize) = (start.parse().unwrap(), length.parse().unwrap());
        blobs[start..start + length].to_vec()
    };
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let index = String::from_utf8(unzip("index.tsv.gz")).unwrap();
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[name, datatype, cell_size, kind, key, pipeline, tile, cells, offsets] = fields.as_slice() else {
            panic!("bad line {line}")
        };
        assert_eq!(kind == "strings", offsets != "-");
        let pipeline = hex(pipeline);
        let mut cursor = Cursor::new(&pipeline);
        let parsed = Pipeline::parse(&mut cursor).unwrap();
        assert!(cursor.is_at_end());
        let words = |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        Vector {
            name: name.to_owned(),
            pipeline: parsed,
            context: TileContext {
                datatype: Datatype::from_number(datatype.parse().unwrap()).unwrap(),
                cell_size: cell_size.parse().unwrap(),
                format_version: FORMAT_VERSION,
                writer_version: None,
                key: (key != "-").then(|| Arc::new(Key::parse(&hex(key)).unwrap())),
            },
            tile: blob(tile),
            cells: blob(cells),
            offsets: (offsets != "-").then(|| words(blob(offsets))),
        }
    };
    index.lines().map(parse).collect()
}
