//! Decodes the tiles in tests/fixtures/filters, which libtiledb filtered, and compares them with the
//! cells that libtiledb reads. scripts/make_filter_vectors.py makes the vectors and describes the files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tilefs::error::Error;
use tilefs::filter::{Chunks, Decoder, Key, Scratch, TileContext};
use tilefs::format::cursor::Cursor;
use tilefs::format::datatype::Datatype;
use tilefs::format::pipeline::Pipeline;

const FORMAT_VERSION: u32 = 22;

struct Vector {
    name: String,
    pipeline: Pipeline,
    context: TileContext,
    tile: Vec<u8>,
    cells: Vec<u8>,
    /// Of strings stored along with their offsets.
    offsets: Option<Vec<u64>>,
}

impl Vector {
    fn decoder(&self) -> Decoder {
        Decoder::new(&self.pipeline, &self.context).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Decodes the tile as it is, or as changed by a test.
    fn decode(&self, tile: &[u8], scratch: &mut Scratch) -> Result<(Vec<u8>, Option<Vec<u64>>), Error> {
        let decoder = self.decoder();
        let mut cells = vec![0xee; self.cells.len()];
        let mut offsets = self.offsets.as_ref().map(|offsets| vec![u64::MAX; offsets.len()]);
        let mut rest = cells.as_mut_slice();
        for chunk in Chunks::new(tile)? {
            let chunk = chunk?;
            let out = rest.split_off_mut(..chunk.original_bytes as usize);
            let out = out.ok_or_else(|| Error::damaged("the chunks are longer than the tile"))?;
            match &mut offsets {
                Some(offsets) => decoder.undo_strings(chunk.metadata, chunk.data, out, offsets, scratch)?,
                None => decoder.undo(chunk.metadata, chunk.data, out, scratch)?,
            }
        }
        if !rest.is_empty() {
            return Err(Error::damaged("the chunks are shorter than the tile"));
        }
        Ok((cells, offsets))
    }
}

fn unzip(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/filters").join(name);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn vectors() -> Vec<Vector> {
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

#[test]
fn every_vector_decodes_to_the_cells_that_libtiledb_reads() {
    let mut scratch = Scratch::new();
    let mut failures = Vec::new();
    let mut filters = BTreeMap::new();
    for vector in vectors() {
        for filter in &vector.pipeline.filters {
            *filters.entry(filter.name()).or_insert(0) += 1;
        }
        match vector.decode(&vector.tile, &mut scratch) {
            Err(error) => failures.push(format!("{}: {error}", vector.name)),
            Ok((cells, offsets)) => {
                if cells != vector.cells || offsets != vector.offsets {
                    failures.push(format!("{}: other cells", vector.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(filters.len(), 18, "filters that have vectors: {filters:?}");
}

#[test]
fn a_wrong_key_is_an_error_of_the_key() {
    let mut scratch = Scratch::new();
    let mut tried = 0;
    for mut vector in vectors().into_iter().filter(|vector| vector.context.key.is_some()) {
        vector.context.key = Some(Arc::new(Key::parse(&[7; 32]).unwrap()));
        // Of an empty chunk nothing at all may have been encrypted.
        if !vector.cells.is_empty() {
            let result = vector.decode(&vector.tile, &mut scratch);
            assert!(matches!(result, Err(Error::Key { .. })), "{}: {result:?}", vector.name);
            tried += 1;
        }
    }
    assert!(tried > 20);
}

/// Every cut and every changed byte of the small vectors gives an error or some cells, and never a
/// panic. Where a checksum or the encryption is over everything, changed data must be found.
#[test]
fn damage_never_panics_and_checksums_find_it() {
    let mut scratch = Scratch::new();
    for vector in vectors().iter().filter(|vector| vector.tile.len() < 220).step_by(3) {
        for cut in 0..vector.tile.len() {
            assert!(vector.decode(&vector.tile[..cut], &mut scratch).is_err(), "{} cut at {cut}", vector.name);
        }
        let sealed =
            vector.context.key.is_some() || vector.name.starts_with("sha256") || vector.name.starts_with("md5");
        for at in 0..vector.tile.len() {
            for change in [1, 0x80, 0xff] {
                let mut tile = vector.tile.clone();
                tile[at] ^= change;
                if let Ok((cells, _)) = vector.decode(&tile, &mut scratch) {
                    assert!(!sealed || cells == vector.cells, "{} changed at {at}", vector.name);
                }
            }
        }
    }
}
