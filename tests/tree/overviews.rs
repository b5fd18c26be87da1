//! Overviews of TIFFs: what is decoded for one of them, and for a copy of the whole file.

use std::collections::BTreeMap;
use std::path::Path;

use tilefs_base::content::Content;
use tilefs_base::statistics::Value;
use tilefs_tree::{self as tree, IndexOptions, TreeOptions};
use tilefs_vfs::Node;

/// The number of lines of the array `big_tile`, of lines of each of its chunks, and of bytes of a chunk. Each value is the
/// number of its line.
const LINES: u64 = 4096;
const LINES_OF_CHUNK: u64 = 4;
const CHUNK: u64 = 64 << 10;

/// The number of its chunks.
const CHUNKS: u64 = LINES / LINES_OF_CHUNK;

/// Its TIFF in a mount that saves results in a folder, or nowhere.
struct Mounted {
    tree: tree::MountedTree,
    image: std::sync::Arc<dyn Content>,
}

impl Mounted {
    fn new(index: Option<&Path>) -> Self {
        let index = index.map(|folder| IndexOptions {
            folder: folder.to_owned(),
            most: 64 << 20,
            is_required: true,
            least_cells: 0,
        });
        let reading = tilefs_reader::ReaderOptions { index, threads: 2, cache_size: 32 << 20, ..Default::default() };
        let options = TreeOptions { reading, ..TreeOptions::default() };
        let array = tilefs_fixtures::fixtures().join("arrays/dense/big_tile");
        let stored = tree::open_stored(&array, &options).unwrap();
        let tree = tree::MountedTree::new(stored, &options).unwrap();
        let mut node = Node::Folder(tilefs_vfs::ServedTree::root(&tree));
        for name in ["tiff", "row.tif"] {
            let Node::Folder(folder) = node else { panic!("no folder with {name}") };
            node = folder.lookup(name).unwrap().unwrap();
        }
        let Node::File(file) = node else { panic!("no image") };
        let image = file.open().unwrap();
        Mounted { tree, image }
    }

    /// Returns how many bytes have been decoded.
    fn decoded(&self) -> u64 {
        let statistics = tilefs_vfs::ServedTree::statistics(&self.tree);
        let found = statistics.iter().find(|one| one.name == "decoded_bytes").map(|one| one.value);
        let Some(Value::Total(bytes)) = found else { panic!("nothing counts what is decoded") };
        bytes
    }

    /// Returns how many chunks have been decoded since `decoded` bytes were. Metadata have fewer bytes than one.
    fn chunks_since(&self, decoded: u64) -> u64 {
        (self.decoded() - decoded) / CHUNK
    }

    /// Returns the tags of each directory: the position of the values of 64 bits, or the value itself, and their number.
    fn directories(&self) -> Vec<BTreeMap<u16, (u64, u64)>> {
        // Not more than the directories, because the pixels of the image follow them.
        let bytes = |at: u64, length: u64| {
            let mut bytes = vec![0; length as usize];
            self.image.read_at(at, &mut bytes).unwrap();
            bytes
        };
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let (mut all, mut at) = (Vec::new(), 16);
        while at != 0 {
            let count = number(&bytes(at, 8));
            let tags = bytes(at + 8, 20 * count);
            let tag = |tag: &[u8]| (u16::from_le_bytes([tag[0], tag[1]]), (number(&tag[12..]), number(&tag[4..])));
            all.push(tags.chunks(20).map(tag).collect());
            at = number(&bytes(at + 8 + 20 * count, 8));
        }
        all
    }

    /// Reads the overview of a level and checks its values; returns how many chunks were decoded.
    fn read(&self, level: usize) -> u64 {
        let before = self.decoded();
        let tags = &self.directories()[level];
        let [width, height, wide, high] = [256, 257, 322, 323].map(|tag| tags[&tag].0);
        assert_eq!([width, height], [LINES >> level; 2]);
        let (place, count) = tags[&324];
        let mut places = vec![0; 8 * count as usize];
        match count {
            1 => places.copy_from_slice(&place.to_le_bytes()),
            _ => self.image.read_at(place, &mut places).unwrap(),
        }
        for (number, place) in places.as_chunks().0.iter().enumerate() {
            let mut tile = vec![0; (4 * wide * high) as usize];
            self.image.read_at(u64::from_le_bytes(*place), &mut tile).unwrap();
            let first = number as u64 / width.div_ceil(wide) * high;
            for (line, values) in (first..).zip(tile.chunks(4 * wide as usize)) {
                let expected = ((line << level) as f32).to_le_bytes();
                // A tile may be wider than the image.
                let mut values = values.chunks(4).take(width as usize);
                assert!(values.all(|value| value == expected), "level {level}, line {line}");
            }
        }
        self.chunks_since(before)
    }
}

#[test]
fn an_overview_decodes_only_chunks_that_have_its_pixels() {
    assert_eq!(Mounted::new(None).directories().len(), 5);
    for level in 1..5 {
        let lines_between = 1 << level;
        let chunks = LINES / LINES_OF_CHUNK.max(lines_between);
        assert_eq!(Mounted::new(None).read(level), chunks, "level {level}");
    }
}

#[test]
fn another_mount_finds_overviews_saved() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    assert_eq!(Mounted::new(Some(&index)).read(3), CHUNKS / 2);
    let other = Mounted::new(Some(&index));
    // The smaller overview consists of pixels of the larger one.
    assert_eq!([3, 4].map(|level| other.read(level)), [0, 0]);
}

#[test]
fn a_copy_of_the_whole_file_does_not_decode_the_array_for_each_overview() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Mounted::new(Some(&folder.path().join("index")));
    let before = mounted.decoded();
    let (mut at, mut piece) = (0, vec![0; 128 << 10]);
    while at < mounted.image.len() {
        let length = (mounted.image.len() - at).min(128 << 10) as usize;
        mounted.image.read_at(at, &mut piece[..length]).unwrap();
        at += length as u64;
    }
    // At most once for the image, for the overview by 2, which is not saved, and for that by 4, of which the others are
    // made; and for the smallest one, by 16, which comes first in the file.
    let chunks = mounted.chunks_since(before);
    assert!((CHUNKS..=3 * CHUNKS + CHUNKS * LINES_OF_CHUNK / 16).contains(&chunks), "{chunks}");
    assert_eq!([2, 3, 4].map(|level| mounted.read(level)), [0; 3]);
}
