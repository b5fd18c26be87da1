//! Cases that random trees do not reach: very many members, attributes and chunks, and files larger than a disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use hdf5_layout::{Dataset, Dataspace, Datatype, FileLayout, ObjectId, Segment, Tree};
use tempfile::TempDir;

use crate::model::{Elements, Model, ModelAttribute, ModelDataset, ModelObject};
use crate::readers::{H5py, has_programs, run_all};
use support::skip::python_with;

fn root(attributes: Vec<ModelAttribute>) -> ModelObject {
    ModelObject { parent: 0, name: String::new(), dataset: None, attributes, scale: None }
}

fn dataset(name: &str, dataset: ModelDataset) -> ModelObject {
    ModelObject { parent: 0, name: name.to_owned(), dataset: Some(dataset), attributes: Vec::new(), scale: None }
}

/// Numbers of four bytes along some axes.
fn numbers(shape: &[u64], chunk_shape: Option<&[u64]>) -> ModelDataset {
    let elements: u64 = shape.iter().product();
    ModelDataset {
        datatype: Datatype::unsigned(4),
        dataspace: Dataspace::Simple(shape.to_vec()),
        chunk_shape: chunk_shape.map(<[u64]>::to_vec),
        fill_value: None,
        elements: Elements::Fixed((0..elements as u32).flat_map(u32::to_le_bytes).collect()),
    }
}

fn attribute(name: &str, length: u64) -> ModelAttribute {
    let bytes = (0..length).flat_map(|number| (number as f64).to_le_bytes()).collect();
    ModelAttribute {
        name: name.to_owned(),
        datatype: Datatype::Float { size: 8 },
        dataspace: Dataspace::vector(length),
        elements: Elements::Fixed(bytes),
    }
}

fn check(model: &Model) {
    let mut stored = model.store();
    let bytes = stored.bytes();
    if let Some(mut h5py) = H5py::start() {
        h5py.read(model, &bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    if has_programs() {
        run_all(model, &stored, &bytes, TempDir::new().unwrap().path());
    }
}

#[test]
fn attributes_larger_than_a_message() {
    check(&Model(vec![root(vec![attribute("small", 1), attribute("large", 100_000), attribute("é", 8190)])]));
    let mut many: Vec<ModelAttribute> = (0..3000).map(|number| attribute(&format!("attribute {number}"), 1)).collect();
    many.insert(1500, attribute("large", 20_000));
    check(&Model(vec![root(many)]));
}

#[test]
fn very_many_attributes_and_members() {
    let attributes = (0..2000).map(|number| attribute(&format!("attribute {number}"), 2)).collect();
    let mut objects = vec![root(attributes)];
    let group = |number| ModelObject { name: format!("group {number}"), ..root(Vec::new()) };
    objects.extend((0..60).map(group));
    let model = Model(objects);
    check(&model);
    // Only h5py: the other readers start a process for each object.
    let mut objects = vec![root(Vec::new())];
    objects.extend((0..20_000).map(group));
    let model = Model(objects);
    if let Some(mut h5py) = H5py::start() {
        h5py.read(&model, &model.store().bytes()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn an_index_of_four_levels() {
    check(&Model(vec![root(Vec::new()), dataset("numbers", numbers(&[523, 509], Some(&[1, 1])))]));
}

#[test]
fn chunks_with_edges_along_all_axes() {
    let grid = numbers(&[37, 11, 23], Some(&[5, 11, 7]));
    check(&Model(vec![root(Vec::new()), dataset("numbers", grid)]));
}

/// Runs a Python script on a file.
fn run_python(script: &str, file: &Path) {
    let Some(python) = python_with("h5py, numpy") else { return };
    let output = Command::new(python).arg("-c").arg(script).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn references_lead_to_objects() {
    let mut tree = Tree::new();
    let group = tree.group(ObjectId::ROOT, "group").unwrap();
    let dataset = Dataset::new(Datatype::ObjectReference, Dataspace::vector(2));
    let references = tree.dataset(group, "references", dataset).unwrap();
    let layout = FileLayout::build(tree).unwrap();
    let addresses = [group, references].map(|object| layout.address(object).unwrap().to_le_bytes());
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("references.h5");
    let mut file = BufWriter::new(File::create(&path).unwrap());
    for segment in layout.segments(0..layout.len()) {
        match segment {
            Segment::Metadata(bytes) => file.write_all(&bytes).unwrap(),
            Segment::Values { .. } => file.write_all(addresses.as_flattened()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    drop(file);
    let script = "import h5py, sys
file = h5py.File(sys.argv[1])
assert [file[reference].name for reference in file['group/references'][()]] == ['/group', '/group/references']";
    run_python(script, &path);
}

#[test]
fn elements_that_were_never_written_are_fill_values() {
    let mut tree = Tree::new();
    let space = || Dataspace::Simple(vec![1 << 30, 1 << 20]);
    let filled = Dataset::new(Datatype::signed(2), space()).fill_value(vec![7, 0]).unwritten();
    tree.dataset(ObjectId::ROOT, "filled", filled).unwrap();
    let chunked = Dataset::new(Datatype::signed(2), space()).chunked(vec![64, 64]).unwritten();
    tree.dataset(ObjectId::ROOT, "chunked", chunked).unwrap();
    tree.dataset(ObjectId::ROOT, "texts", Dataset::new(Datatype::text(), space()).unwritten()).unwrap();
    let layout = FileLayout::build(tree).unwrap();
    assert_eq!(layout.len(), layout.metadata_bytes());
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("unwritten.h5");
    let mut file = File::create(&path).unwrap();
    for segment in layout.segments(0..layout.len()) {
        let Segment::Metadata(bytes) = segment else { panic!("{segment:?}") };
        file.write_all(&bytes).unwrap();
    }
    let script = "import h5py, sys
file = h5py.File(sys.argv[1])
assert file['filled'][5, -2:].tolist() == [7, 7]
assert file['chunked'][5, -2:].tolist() == [0, 0]
assert file['texts'][5, -2:].tolist() == [b'', b'']";
    run_python(script, &path);
}

#[test]
fn a_dataset_in_chunks_can_grow() {
    let mut tree = Tree::new();
    let space = Dataspace::Simple(vec![3, 2]);
    let dataset = Dataset::new(Datatype::signed(4), space).chunked(vec![2, 2]).unlimited(vec![0]);
    tree.dataset(ObjectId::ROOT, "numbers", dataset).unwrap();
    let layout = FileLayout::build(tree).unwrap();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("growing.h5");
    let mut file = File::create(&path).unwrap();
    let numbers = [1_i32, 2, 3, 4, 5, 6, 0, 0].map(i32::to_le_bytes);
    for segment in layout.segments(0..layout.len()) {
        match segment {
            Segment::Metadata(bytes) => file.write_all(&bytes).unwrap(),
            Segment::Values { .. } => file.write_all(numbers.as_flattened()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    let script = "import h5py, sys
with h5py.File(sys.argv[1], 'r+') as file:
    numbers = file['numbers']
    assert numbers.maxshape == (None, 2) and numbers[...].tolist() == [[1, 2], [3, 4], [5, 6]]
    numbers.resize(6, axis=0)
    numbers[3:] = 7
with h5py.File(sys.argv[1]) as file:
    assert file['numbers'][...].tolist() == [[1, 2], [3, 4], [5, 6], [7, 7], [7, 7], [7, 7]]";
    run_python(script, &path);
}

#[test]
fn chunks_of_a_file_larger_than_the_disk() {
    // 8 TiB in a million chunks of 8 MiB, only two of which are not all zeros: the rest is a hole.
    let mut tree = Tree::new();
    let (length, chunk) = (1 << 40, 1 << 20);
    let dataset =
        Dataset::new(Datatype::unsigned(8), Dataspace::Simple(vec![length / chunk, chunk])).chunked(vec![1, chunk]);
    let numbers = tree.dataset(ObjectId::ROOT, "numbers", dataset).unwrap();
    let layout = FileLayout::build(tree).unwrap();
    assert!(layout.metadata_bytes() < 400);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("large.h5");
    let file = File::create(&path).unwrap();
    let mut at = 0;
    for segment in layout.segments(0..layout.len()) {
        match &segment {
            Segment::Metadata(bytes) => file.write_all_at(bytes, at).unwrap(),
            Segment::Values { dataset, range } => {
                assert_eq!((*dataset, range), (numbers, &(0..length * 8)));
                for element in [0, 3 * chunk + 7, length - 1] {
                    file.write_all_at(&(element + 1).to_le_bytes(), at + element * 8).unwrap();
                }
            }
            other => panic!("{other:?}"),
        }
        at += segment.len();
    }
    file.set_len(at).unwrap();
    assert_eq!(at, layout.len());
    let script = "import h5py, sys
numbers = h5py.File(sys.argv[1])['numbers']
rows, columns = numbers.shape
assert numbers.chunks == (1, columns)
assert numbers[0, :2].tolist() == [1, 0]
assert numbers[3, 6:9].tolist() == [0, 3 * columns + 8, 0]
assert numbers[rows - 1, columns - 1] == rows * columns
assert numbers[rows // 2, 5] == 0";
    run_python(script, &path);
}
