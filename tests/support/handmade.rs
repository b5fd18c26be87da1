//! Arrays made byte by byte according to the format, so that they can claim anything.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The time and the rest of the name of everything stored.
pub const NAME: &str = "__1_1_0123456789abcdef0123456789abcdef";

pub const INT8: u8 = 5;
pub const UINT8: u8 = 6;
pub const UINT64: u8 = 10;
pub const CHAR: u8 = 4;

/// The number of the filter RLE.
pub const RLE: u8 = 4;

pub fn str32(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

pub fn str64(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
}

/// Returns a pipeline with a compression filter, or with none.
pub fn pipeline(filter: Option<u8>) -> Vec<u8> {
    let mut bytes = 65536u32.to_le_bytes().to_vec();
    bytes.extend(u32::from(filter.is_some()).to_le_bytes());
    if let Some(filter) = filter {
        bytes.push(filter);
        bytes.extend(5u32.to_le_bytes());
        bytes.extend([filter, 0xff, 0xff, 0xff, 0xff]);
    }
    bytes
}

/// An attribute with one value per cell.
pub struct Attribute {
    pub name: String,
    pub datatype: u8,
    pub filter: Option<u8>,
    pub enumeration: &'static str,
}

/// Returns the payload of the schema of a dense array with one dimension `x` (UINT64) of `cells` cells in tiles of
/// `extent`.
pub fn schema(cells: u64, extent: u64, attributes: impl ExactSizeIterator<Item = Attribute>) -> Vec<u8> {
    schema_of(&["x"], cells, extent, attributes)
}

/// As [`schema`], with two such dimensions `y` and `x`.
pub fn plane(cells: u64, extent: u64, attributes: impl ExactSizeIterator<Item = Attribute>) -> Vec<u8> {
    schema_of(&["y", "x"], cells, extent, attributes)
}

fn schema_of(
    dimensions: &[&str],
    cells: u64,
    extent: u64,
    attributes: impl ExactSizeIterator<Item = Attribute>,
) -> Vec<u8> {
    let mut bytes = 22u32.to_le_bytes().to_vec();
    bytes.extend([0, 0, 0, 0]);
    bytes.extend(10_000u64.to_le_bytes());
    (0..3).for_each(|_| bytes.extend(pipeline(None)));
    bytes.extend((dimensions.len() as u32).to_le_bytes());
    for name in dimensions {
        bytes.extend(str32(name));
        bytes.push(UINT64);
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(pipeline(None));
        bytes.extend(16u64.to_le_bytes());
        bytes.extend([0, cells - 1].map(u64::to_le_bytes).concat());
        bytes.push(0);
        bytes.extend(extent.to_le_bytes());
    }
    bytes.extend((attributes.len() as u32).to_le_bytes());
    let mut enumerations = Vec::new();
    for attribute in attributes {
        bytes.extend(str32(&attribute.name));
        bytes.push(attribute.datatype);
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(pipeline(attribute.filter));
        bytes.extend(str64(&[0]));
        bytes.extend([0, 0, 0]);
        bytes.extend(str32(attribute.enumeration));
        enumerations.extend(Some(attribute.enumeration).filter(|name| !name.is_empty()));
    }
    bytes.extend(0u32.to_le_bytes());
    bytes.extend((enumerations.len() as u32).to_le_bytes());
    for name in enumerations {
        bytes.extend(str32(name));
        bytes.extend(str32(NAME));
    }
    bytes.extend(0u32.to_le_bytes());
    bytes.push(1);
    bytes
}

/// Writes a generic tile: a payload of `length` bytes that begins with `start`; the rest are zeros. It is compressed in
/// chunks of 64 KiB, as writers do.
pub fn write_tile(file: &Path, start: &[u8], length: u64) {
    const CHUNK: usize = 65536;
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let chunk = |bytes: &[u8]| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        let data = encoder.finish().unwrap();
        let numbers = [bytes.len(), data.len(), 16, 0, 1, bytes.len(), data.len()].map(|number| number as u32);
        [numbers.map(u32::to_le_bytes).concat(), data].concat()
    };
    let zeros = chunk(&[0; CHUNK]);
    let mut body = Vec::new();
    let mut at = 0;
    while at < length {
        let size = (length - at).min(CHUNK as u64) as usize;
        let there = start.get(at as usize..).unwrap_or_default();
        if there.is_empty() && size == CHUNK {
            body.extend(&zeros);
        } else {
            let mut bytes = there[..there.len().min(size)].to_vec();
            bytes.resize(size, 0);
            body.extend(chunk(&bytes));
        }
        at += size as u64;
    }
    let mut tile = tile_head(8 + body.len() as u64, length);
    tile.extend(length.div_ceil(CHUNK as u64).to_le_bytes());
    tile.extend(body);
    fs::write(file, tile).unwrap();
}

/// Returns the header of a generic tile.
pub fn tile_head(persisted: u64, size: u64) -> Vec<u8> {
    let mut tile = 22u32.to_le_bytes().to_vec();
    tile.extend(persisted.to_le_bytes());
    tile.extend(size.to_le_bytes());
    tile.push(CHAR);
    tile.extend(1u64.to_le_bytes());
    tile.push(0);
    tile.extend(18u32.to_le_bytes());
    tile.extend([0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0]);
    tile
}

/// Extends a file to `length` bytes with a hole.
pub fn lengthen(file: &Path, length: u64) {
    fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// An array in a temporary folder.
pub struct Stored {
    folder: tempfile::TempDir,
}

impl Stored {
    /// Creates an array with this schema and no data.
    pub fn new(schema: &[u8]) -> Self {
        let stored = Stored { folder: tempfile::tempdir().unwrap() };
        write_tile(&stored.path().join("__schema").join(NAME), schema, schema.len() as u64);
        for folder in ["__commits", "__fragments", "__meta"] {
            fs::create_dir_all(stored.path().join(folder)).unwrap();
        }
        stored
    }

    /// Creates an array of 100 cells with an attribute `a` of bytes.
    pub fn of_bytes() -> Self {
        Self::new(&schema(100, 100, [attribute("a", UINT8, None)].into_iter()))
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("array")
    }

    /// Returns the folder around the array, which removes itself when it is dropped.
    pub fn into_folder(self) -> tempfile::TempDir {
        self.folder
    }

    /// Adds a fragment of the whole domain whose only attribute has these stored tiles in one file.
    pub fn add_fragment(&self, cells: u64, tiles: &[Vec<u8>]) {
        let name = format!("{NAME}_22");
        let folder = self.path().join("__fragments").join(&name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(self.path().join("__commits").join(format!("{name}.wrt")), []).unwrap();
        fs::write(folder.join("a0.tdb"), tiles.concat()).unwrap();
        let metadata = folder.join("__fragment_metadata.tdb");
        let mut list = (tiles.len() as u64).to_le_bytes().to_vec();
        let mut end = 0;
        for tile in tiles {
            list.extend((end as u64).to_le_bytes());
            end += tile.len();
        }
        write_tile(&metadata, &list, list.len() as u64);
        let mut footer = 22u32.to_le_bytes().to_vec();
        footer.extend(str64(NAME.as_bytes()));
        footer.extend([1, 0]);
        footer.extend([0, cells - 1].map(u64::to_le_bytes).concat());
        footer.extend([0u64; 2].map(u64::to_le_bytes).concat());
        footer.extend([0, 0]);
        // The slots are the attribute, an unused one, and the dimension: sizes, the R-tree, offsets, statistics.
        let sizes = [end as u64, 0, 0, 0, 0, 0, 0, 0, 0];
        footer.extend(sizes.map(u64::to_le_bytes).concat());
        footer.extend(0u64.to_le_bytes());
        footer.extend([0u64; 12 + 12 + 2].map(u64::to_le_bytes).concat());
        let mut file = fs::File::options().append(true).open(&metadata).unwrap();
        file.write_all(&footer).unwrap();
        file.write_all(&(footer.len() as u64).to_le_bytes()).unwrap();
    }
}

pub fn attribute(name: &str, datatype: u8, filter: Option<u8>) -> Attribute {
    Attribute { name: name.to_owned(), datatype, filter, enumeration: "" }
}

/// Returns a tile of one chunk, filtered by a compressor.
pub fn compressed_chunk(original: u32, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let mut tile = 1u64.to_le_bytes().to_vec();
    tile.extend([original, length, 16, 0, 1, original, length].map(u32::to_le_bytes).concat());
    tile.extend(data);
    tile
}
