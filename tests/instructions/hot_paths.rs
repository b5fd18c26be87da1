//! The hot paths: what a reader waits for. Each works on a small input, in one thread, and begins where the program
//! does: with a stored chunk, or with the path of an array.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::rc::Rc;

use support::chunks::{Chunk, FILTERS, chunk};
use support::generated::array::{Array, Object};
use support::handmade::{Stored, UINT8, attribute, schema};
use support::paths::{bytes, file};
use tempfile::TempDir;
use tilefs_fixtures::fixtures;
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::Scratch;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_tree::select::calendar::Calendar;
use tilefs_tree::select::{Addressing, DimensionBounds};
use tilefs_tree::{TreeOptions, open};

pub struct HotPath {
    pub name: String,
    pub work: Box<dyn FnMut()>,
}

/// Returns all hot paths.
pub fn hot_paths() -> Vec<HotPath> {
    let mut paths: Vec<HotPath> = FILTERS.iter().map(|name| decoding(name)).collect();
    let dense = Rc::new(dense());
    paths.extend([
        reading("dense: a whole attribute", &dense, "a.u8"),
        reading("dense: a slice", &dense, "slice/1000..150000/a.u8"),
    ]);
    // Fragments of a sparse matrix over the same rows.
    let overlapping = Rc::new(generated("overlapping-8e3-f4-o4-t1000"));
    paths.extend([
        reading("sparse: a merge of four fragments", &overlapping, "data.f32"),
        reading("sparse: coordinates of a merge", &overlapping, "dims/obs.i64"),
    ]);
    // Fragments of a table, one after the other.
    let table = Rc::new(generated("table-3e3-f2-t1000"));
    paths.extend([
        reading("sparse: a few rows", &table, "slice/3000..3300/count.i32"),
        reading("table: tab-separated text", &table, "text/cells.tsv"),
        reading("table: JSON lines", &table, "text/cells.jsonl"),
        reading("table: Arrow", &table, "arrow/cells.arrow"),
        reading("table: Parquet", &table, "parquet/cells.parquet"),
        reading("table: README.txt", &table, "README.txt"),
    ]);
    let variants = Rc::new(Input { path: fixtures().join("variants/v4"), folder: None });
    paths.extend([
        streaming("variants: lines of all samples", &variants, "vcf/merged/all.vcf"),
        streaming("variants: lines of a sample", &variants, "vcf/NA%2F1.vcf"),
    ]);
    paths.push(selecting());
    paths
}

/// An array or a dataset.
struct Input {
    path: PathBuf,
    /// The folder that is removed at the end.
    #[expect(dead_code, reason = "removes itself when it is dropped")]
    folder: Option<TempDir>,
}

/// Writes a generated array.
fn generated(name: &str) -> Input {
    let array = Array::named(name).expect("a generated array");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for object in (0..array.objects()).map(|number| array.object(number)) {
        let file = folder.path().join(array.key(object));
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder is made");
        let bytes = match object {
            Object::Commit(_) => Vec::new(),
            _ => array.read(object, 0..array.len(object)),
        };
        fs::write(file, bytes).expect("an object is written");
    }
    Input { path: folder.path().to_owned(), folder: Some(folder) }
}

/// Makes a dense array of four tiles of bytes.
fn dense() -> Input {
    const TILE: u32 = 65536;
    let (cells, extent) = (4 * u64::from(TILE), u64::from(TILE));
    let stored = Stored::new(&schema(cells, extent, [attribute("a", UINT8, None)].into_iter()));
    // One chunk: its sizes before and after filters, which there are none of, and that of their metadata.
    let head = [1u64.to_le_bytes().to_vec(), [TILE, TILE, 0].map(u32::to_le_bytes).concat()].concat();
    let tile = [head, (0..TILE).map(|cell| (cell.wrapping_mul(cell) >> 5) as u8).collect()].concat();
    stored.add_fragment(cells, &vec![tile; 4]);
    Input { path: stored.path(), folder: Some(stored.into_folder()) }
}

fn decoding(name: &str) -> HotPath {
    let chunk = chunk(name);
    let decoder = chunk.decoder();
    let (mut scratch, mut out) = (Scratch::new(), vec![0; chunk.original]);
    let work = move || {
        let Chunk { metadata, data, .. } = &chunk;
        decoder.decode(metadata, black_box(data), &mut out, &mut scratch).expect("a chunk");
    };
    HotPath { name: format!("filter: {name}"), work: Box::new(work) }
}

/// Opens an array and reads a whole file of it.
fn reading(name: &str, array: &Rc<Input>, path: &'static str) -> HotPath {
    let array = Rc::clone(array);
    let work = move || {
        let root = open(&array.path, &options()).expect("an array");
        black_box(bytes(&root, path));
    };
    HotPath { name: name.to_owned(), work: Box::new(work) }
}

/// Opens a dataset and reads a file of it in sequence, as `tilefs cat` does.
fn streaming(name: &str, dataset: &Rc<Input>, path: &'static str) -> HotPath {
    let dataset = Rc::clone(dataset);
    let work = move || {
        let root = open(&dataset.path, &options()).expect("a dataset");
        let mut forward = file(&root, path).forward().expect("a file").expect("a file that is read in sequence");
        let mut part = Vec::new();
        while forward.next(&mut part).expect("lines") {
            black_box(&part);
        }
    };
    HotPath { name: name.to_owned(), work: Box::new(work) }
}

fn options() -> TreeOptions {
    let mut options = TreeOptions::default();
    options.reading.threads = 1;
    options
}

/// Parses a selection of many ranges.
fn selecting() -> HotPath {
    let text = (0..1000).map(|n| format!("{}..{}", n * 7 % 991, n + 991)).collect::<Vec<_>>().join("+");
    let range = Some(Range { low: Scalar::Unsigned(0), high: Scalar::Unsigned(1 << 40) });
    let bounds = [DimensionBounds {
        name: "x".to_owned(),
        datatype: Datatype::UInt64,
        domain: range.clone(),
        limit: range.clone(),
        shown: range,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }];
    let work = move || drop(black_box(tilefs_tree::select::dense(&text, Addressing::Coordinate, &bounds)));
    HotPath { name: "selection: 1,000 ranges".to_owned(), work: Box::new(work) }
}
