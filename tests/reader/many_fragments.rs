//! The cost of fragments that are not read: memory, measured by a counting allocator, and opened files if the array has
//! consolidated fragment metadata.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::counting_allocator::held;
use support::own_process::in_own_process;
use tilefs_base::error::Result;
use tilefs_reader::array::dense::{AxisSelection, DenseColumn, DenseView, Selection};
use tilefs_reader::array::{ArrayFolder, Context, FieldFile, OpenedArray, TimeWindow};
use tilefs_storage::LocalStorage;

const FRAGMENTS: usize = 2000;

/// A copy of an array of one fragment, with many copies of this fragment. Each is a little newer than the one before.
struct ManyFragments {
    folder: tempfile::TempDir,
    names: Vec<String>,
}

impl ManyFragments {
    fn new(count: usize) -> Self {
        let array = tilefs_fixtures::fixtures().join("arrays/dense/dims_2");
        let folder = tempfile::tempdir().unwrap();
        let copy = |from: &Path, to: &Path| {
            fs::create_dir_all(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        };
        copy(&array.join("__schema"), &folder.path().join("__schema"));
        let stored = fs::read_dir(array.join("__fragments")).unwrap().next().unwrap().unwrap().path();
        fs::create_dir(folder.path().join("__commits")).unwrap();
        let names: Vec<String> = (0..count)
            .map(|number| {
                let time = 1_600_000_001_000 + number;
                format!("__{time}_{time}_{number:032x}_22")
            })
            .collect();
        for name in &names {
            copy(&stored, &folder.path().join("__fragments").join(name));
            fs::write(folder.path().join("__commits").join(format!("{name}.wrt")), b"").unwrap();
        }
        ManyFragments { folder, names }
    }

    fn metadata_of(&self, number: usize) -> PathBuf {
        self.folder.path().join("__fragments").join(&self.names[number]).join("__fragment_metadata.tdb")
    }

    /// Returns the footer of every fragment.
    fn footer(&self) -> Vec<u8> {
        let bytes = fs::read(self.metadata_of(0)).unwrap();
        let (rest, length) = bytes.split_last_chunk::<8>().unwrap();
        rest[rest.len() - u64::from_le_bytes(*length) as usize..].to_vec()
    }

    /// Writes consolidated fragment metadata with this footer for each fragment, as one chunk without filters.
    fn consolidate(&self, footer: &[u8]) -> PathBuf {
        let mut payload = (self.names.len() as u32).to_le_bytes().to_vec();
        let table: usize = 4 + self.names.iter().map(|name| 16 + name.len()).sum::<usize>();
        for (number, name) in self.names.iter().enumerate() {
            payload.extend((name.len() as u64).to_le_bytes());
            payload.extend(name.bytes());
            payload.extend(((table + number * footer.len()) as u64).to_le_bytes());
        }
        self.names.iter().for_each(|_| payload.extend(footer));
        let size = payload.len() as u32;
        let mut tile = 22u32.to_le_bytes().to_vec();
        tile.extend((20 + u64::from(size)).to_le_bytes());
        tile.extend(u64::from(size).to_le_bytes());
        // Char cells of one byte, no encryption, a pipeline of no filters.
        tile.push(4);
        tile.extend(1u64.to_le_bytes());
        tile.push(0);
        tile.extend([8u32, 65536, 0].map(u32::to_le_bytes).concat());
        tile.extend(1u64.to_le_bytes());
        tile.extend([size, size, 0].map(u32::to_le_bytes).concat());
        tile.extend(payload);
        let folder = self.folder.path().join("__fragment_meta");
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("__1_2_{:032x}_22.meta", 1));
        fs::write(&file, tile).unwrap();
        file
    }

    fn open(&self) -> Result<DenseView> {
        let storage = Arc::new(LocalStorage::new());
        let context = Context::new(storage, 1 << 20, 1, None);
        let folder = Arc::new(ArrayFolder::open(Arc::new(context), &self.folder.path().into())?);
        DenseView::new(Arc::new(OpenedArray::open(folder, TimeWindow::ALL)?))
    }
}

/// Reads the bytes of the first cell.
fn first_cell(view: DenseView) -> Result<Vec<u8>> {
    let schema = view.array().schema();
    let (size, fill) = (schema.attributes[0].cell_size().unwrap(), schema.attributes[0].fill.clone());
    let axes = schema.dimensions.iter().map(|_| AxisSelection::contiguous(0, 1)).collect();
    let column = DenseColumn::new(Arc::new(view), Arc::new(Selection::new(axes)?), 0, FieldFile::Data, fill)?;
    let mut cell = vec![0; size];
    column.read(0, &mut cell)?;
    Ok(cell)
}

#[test]
fn a_fragment_that_nobody_reads_takes_less_than_half_a_kib() {
    in_own_process(|| {
        let many = ManyFragments::new(FRAGMENTS);
        drop(many.open().unwrap());
        let before = held();
        let view = many.open().unwrap();
        let each = (held() - before) / FRAGMENTS as i64;
        assert_eq!(view.array().fragment_count(), FRAGMENTS);
        assert!((65..512).contains(&each), "{each} bytes a fragment");
    });
}

#[test]
fn copies_of_footers_stand_for_those_of_the_fragments() {
    let many = ManyFragments::new(100);
    let expected = first_cell(many.open().unwrap()).unwrap();
    many.consolidate(&many.footer());
    assert_eq!(first_cell(many.open().unwrap()).unwrap(), expected);
    // All fragments are alike, so only the newest one is read, and the others need not exist.
    for number in 0..99 {
        fs::remove_file(many.metadata_of(number)).unwrap();
    }
    assert_eq!(first_cell(many.open().unwrap()).unwrap(), expected);
    fs::remove_file(many.metadata_of(99)).unwrap();
    assert!(first_cell(many.open().unwrap()).is_err());
}

#[test]
fn a_copy_that_says_something_else_is_an_error() {
    let many = ManyFragments::new(100);
    let mut footer = many.footer();
    // Alter the number of sparse tiles, which a dense fragment does not use.
    let name_length = u64::from_le_bytes(footer[4..12].try_into().unwrap()) as usize;
    let dimensions = many.open().unwrap().array().schema().dimensions.clone();
    let domain: usize = dimensions.iter().map(|dimension| 2 * dimension.datatype.size()).sum();
    footer[12 + name_length + 2 + domain] ^= 1;
    many.consolidate(&footer);
    let error = first_cell(many.open().unwrap()).unwrap_err().to_string();
    assert!(error.contains("differs from its copy in the consolidated fragment metadata"), "{error}");
}

#[test]
fn copies_that_do_not_parse_are_passed_over() {
    let many = ManyFragments::new(100);
    let expected = first_cell(many.open().unwrap()).unwrap();
    // Not a footer; not a table of footers; not a generic tile.
    let file = many.consolidate(b"no footer");
    assert_eq!(first_cell(many.open().unwrap()).unwrap(), expected);
    let mut bytes = fs::read(&file).unwrap();
    bytes[66] = 0xff;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(first_cell(many.open().unwrap()).unwrap(), expected);
    fs::write(&file, b"none").unwrap();
    assert_eq!(first_cell(many.open().unwrap()).unwrap(), expected);
}

#[test]
fn the_footers_of_many_fragments_are_read_in_parts() {
    let many = ManyFragments::new(FRAGMENTS);
    let footer = many.footer();
    // The fragments are large because of data that they do not use: together they exceed what is read at once.
    many.consolidate(&footer);
    for number in 0..FRAGMENTS - 1 {
        fs::remove_file(many.metadata_of(number)).unwrap();
    }
    let view = many.open().unwrap();
    assert_eq!(view.array().fragment_count(), FRAGMENTS);
    assert!(first_cell(view).is_ok());
}
