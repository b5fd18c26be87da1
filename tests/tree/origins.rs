//! Where each cell of arrays comes from, compared with what was written: `origins.py` writes arrays whose values tell the
//! write that they come from, and says what libtiledb reads from them at several times. The bytes that an explanation names
//! are decoded here, with nothing but the filter that it names.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use serde_json::Value;
use support::corpora::corpus;
use support::manifest::{Object, load};
use support::parallel;
use support::repository::root;
use support::skip::python_with;
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::origin::{
    CellFate, CellOrigin, CellPlace, Deletion, FetchedBytes, FragmentState, OtherCell, StoredValue,
};
use tilefs_tree::array::array_folder;
use tilefs_tree::array::explanation::{AskedPart, Explanation, FieldOrigin, FieldSource, Origins};
use tilefs_tree::cells::dense::{DenseArray, DenseSubarray, Extent};
use tilefs_tree::cells::sparse::SparseSubarray;
use tilefs_tree::cells::{Subarray, describe_field};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{Folder, Node};

/// The values of a write are its number times this, and more.
const PER_WRITE: i64 = 1000;

type Place = (i64, i64);

/// An array, what was written to it, and what libtiledb reads from it.
struct Written(Value);

/// A written cell: its time and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WrittenCell {
    time: u64,
    value: i64,
}

impl Written {
    fn is(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap()
    }

    fn path(&self) -> &Path {
        Path::new(self.0["path"].as_str().unwrap())
    }

    /// Returns everything that was written at each place, oldest first.
    fn cells(&self) -> HashMap<Place, Vec<WrittenCell>> {
        let mut cells: HashMap<Place, Vec<WrittenCell>> = HashMap::new();
        for write in self.0["writes"].as_array().unwrap() {
            let time = write["time"].as_u64().unwrap();
            for (place, value) in placed(write) {
                cells.entry(place).or_default().push(WrittenCell { time, value });
            }
        }
        cells
    }

    /// Returns the time of the first delete that removes a cell as of a time.
    fn deleted_at(&self, cell: WrittenCell, at: u64) -> Option<u64> {
        let applies = |delete: &&Value| {
            let (time, within) = (
                delete["time"].as_u64().unwrap(),
                &delete["above"].as_i64().unwrap() + 1..delete["below"].as_i64().unwrap(),
            );
            (cell.time..=at).contains(&time) && within.contains(&cell.value)
        };
        self.0["deletes"].as_array().unwrap().iter().find(applies).map(|delete| delete["time"].as_u64().unwrap())
    }
}

/// Returns the places and values of a write or a read.
fn placed(of: &Value) -> impl Iterator<Item = (Place, i64)> {
    let place = |cell: &Value| (cell[0].as_i64().unwrap(), cell[1].as_i64().unwrap());
    let (cells, values) = (of["cells"].as_array().unwrap(), of["values"].as_array().unwrap());
    cells.iter().zip(values).map(move |(cell, value)| (place(cell), value.as_i64().unwrap()))
}

fn place_of(coordinates: &[Scalar]) -> Place {
    let number = |one: &Scalar| match one {
        Scalar::Signed(value) => *value,
        other => panic!("{other:?}"),
    };
    (number(&coordinates[0]), number(&coordinates[1]))
}

fn text_of(value: i64) -> String {
    "w".repeat((value % 7) as usize) + &value.to_string()
}

fn number_of(field: &FieldOrigin) -> i64 {
    i32::from_le_bytes(field.value.as_deref().unwrap().try_into().unwrap()).into()
}

/// Returns the times at which the fragment of a cell, or the cell itself, was written.
fn times_of(array: &OpenedArray, place: &CellPlace) -> (u64, u64) {
    let times = array.folder().fragment(place.fragment).unwrap().times;
    place.time.map_or((times.t1, times.t2), |time| (time, time))
}

/// Returns the decoded chunks of a value, which are one behind the other: read from the file and decoded with the filter
/// that is named.
fn decoded(stored: &StoredValue) -> Vec<u8> {
    let file = fs::read(stored.file.to_string()).unwrap();
    let mut decoded = Vec::new();
    for chunk in &stored.chunks {
        let start = chunk.offset as usize + chunk.metadata as usize;
        let end = start + chunk.filtered as usize;
        let is_fetched = |one: &FetchedBytes| one.offset <= chunk.offset && end as u64 <= one.offset + one.length;
        assert!(stored.fetched.iter().any(is_fetched), "the chunk is fetched: {stored:?}");
        let data = &file[start..end];
        let names: Vec<_> = stored.filters.filters.iter().map(|filter| filter.name()).collect();
        match names.as_slice() {
            [] => decoded.extend(data),
            [name] if name == "GZIP" => {
                ZlibDecoder::new(data).read_to_end(&mut decoded).unwrap();
            }
            // What TileDB's Python library gives to fields without filters.
            [name] if name == "ZSTD" => decoded.extend(zstd::stream::decode_all(data).unwrap()),
            others => panic!("{others:?}"),
        }
    }
    let first = stored.chunks.first().map_or(0, |chunk| chunk.decoded.start);
    decoded[(stored.bytes.start - first) as usize..(stored.bytes.end - first) as usize].to_vec()
}

/// A written array as of a time, as the tree shows it.
struct Opened<'a> {
    written: &'a Written,
    root: Arc<dyn Folder>,
    at: u64,
    cells: HashMap<Place, Vec<WrittenCell>>,
}

impl<'a> Opened<'a> {
    fn new(written: &'a Written, at: Option<u64>) -> Self {
        let reading = tilefs_reader::ReaderOptions { threads: 1, at, ..Default::default() };
        let root = tree::open(written.path(), &TreeOptions { reading, ..TreeOptions::default() }).unwrap();
        Opened { written, root, at: at.unwrap_or(u64::MAX), cells: written.cells() }
    }

    fn origins(&self) -> Arc<dyn Origins> {
        tilefs_tree::array::origins::of(&*self.root).expect("the folder of an array")
    }

    /// Checks all fields of a cell that libtiledb reads as `value`, and the other cells at its place.
    fn check_cell(&self, explanation: &Explanation, shown: &mut HashSet<(Place, i64)>) {
        let array = &explanation.array;
        let field = |name: &str| explanation.fields.iter().find(|field| field.name == name).unwrap();
        let (a, s, n) = (field("a"), field("s"), field("n"));
        let origin = a.origin.as_deref().unwrap();
        let (place, value) = (place_of(&origin.coordinates), number_of(a));
        shown.insert((place, value));
        let Some(stored) = &origin.shown else {
            assert!(a.source == FieldSource::Fill && a.stored.is_empty() && n.is_null);
            assert!(value == i64::from(i32::MIN) && s.value.as_deref() == Some(b"\0".as_slice()));
            return self.check_others(array, origin, place, None);
        };
        if value == i64::from(i32::MIN) {
            // A consolidation writes the box around all fragments.
            assert!(self.written.0["consolidated"] != "no" && !self.written.is("sparse"));
            return self.check_others(array, origin, place, None);
        }
        let write = &self.written.0["writes"][(value / PER_WRITE - 1) as usize];
        let (first, last) = times_of(array, stored);
        assert!((first..=last).contains(&write["time"].as_u64().unwrap()), "{place:?} {value}: {first} to {last}");
        assert_eq!(s.value.as_deref(), Some(text_of(value).as_bytes()));
        assert_eq!(n.is_null, self.written.is("sparse") && value % 3 == 0);
        for (field, parts) in [(a, 1), (s, 2), (n, 2)] {
            assert_eq!(field.stored.len(), parts);
            for part in &field.stored {
                assert_eq!(decoded(part), *part.value.as_ref().unwrap(), "{} of {}", field.name, value);
            }
        }
        for dimension in ["y", "x"].map(field) {
            let own = if dimension.name == "y" { place.0 } else { place.1 };
            assert_eq!(number_of(dimension), own);
            assert_eq!(dimension.source == FieldSource::Computed, !self.written.is("sparse"));
            dimension.stored.iter().for_each(|part| assert_eq!(decoded(part), *part.value.as_ref().unwrap()));
        }
        self.check_others(array, origin, place, Some(value));
    }

    /// Checks the cells beside the shown one at a place.
    fn check_others(&self, array: &OpenedArray, origin: &CellOrigin, place: Place, shown: Option<i64>) {
        assert!(origin.is_complete && origin.unread.is_empty());
        let of_place = origin.others.iter().filter(|other| place_of(&other.coordinates) == place);
        // Copies of the same cells, of which only one counts.
        let is_copy = |other: &&OtherCell| match other.fate {
            CellFate::InFragment(FragmentState::Replaced(_) | FragmentState::InOriginals) => true,
            CellFate::InFragment(FragmentState::PartlyOutside) => !self.written.is("sparse"),
            // The consolidated fragment has it with its time.
            CellFate::InFragment(FragmentState::Later) => {
                let (first, last) = times_of(array, &other.place);
                first == last && last > self.at && self.written.is("sparse")
            }
            _ => false,
        };
        let was_consolidated = self.written.0["consolidated"] != "no";
        let mut left: Vec<&OtherCell> = of_place.filter(|other| !was_consolidated || !is_copy(other)).collect();
        let none = Vec::new();
        let written = self.cells.get(&place).unwrap_or(&none);
        for cell in written.iter().filter(|cell| Some(cell.value) != shown) {
            let is_it = |other: &OtherCell| times_of(array, &other.place) == (cell.time, cell.time);
            let found = left.iter().position(|other| is_it(other) && self.is_right(array, other, *cell, written));
            match found {
                Some(number) => {
                    left.remove(number);
                }
                // A consolidation of a dense array leaves out what was overwritten, and a vacuum removes it.
                None => assert!(
                    was_consolidated && !self.written.is("sparse"),
                    "{place:?} {cell:?} as of {} is not told: {left:?} of {written:?}",
                    self.at
                ),
            }
        }
        assert!(left.is_empty(), "{place:?} as of {}: {left:?}", self.at);
    }

    /// Returns whether the fate of a cell is what must have become of it.
    fn is_right(&self, array: &OpenedArray, other: &OtherCell, cell: WrittenCell, written: &[WrittenCell]) -> bool {
        let newest = written.iter().rfind(|cell| cell.time <= self.at);
        match (&other.fate, newest) {
            (CellFate::InFragment(FragmentState::Later), _) => cell.time > self.at,
            (CellFate::OutsideOfTime(time), _) => cell.time > self.at && *time == cell.time,
            (CellFate::Shown, _) => self.written.is("duplicates") && cell.time <= self.at,
            (CellFate::Overwritten(by), Some(newest)) => {
                let (first, last) = times_of(array, by);
                cell.time < newest.time && (first..=last).contains(&newest.time) && !self.written.is("duplicates")
            }
            (CellFate::Deleted(Deletion::Condition { time, .. } | Deletion::Recorded { time }), Some(newest)) => {
                newest.value == cell.value && self.written.deleted_at(cell, self.at) == Some(*time)
            }
            _ => false,
        }
    }

    /// Returns the folder of a slice.
    fn slice(&self, selection: &str) -> Arc<dyn Folder> {
        let Some(Node::Folder(slices)) = self.root.lookup("slice").unwrap() else { panic!("no slices") };
        let Some(Node::Folder(slice)) = slices.lookup(selection).unwrap() else { panic!("no slice {selection}") };
        slice
    }

    /// Checks that the cells at a place, whose values are others, are said to be left out by a condition.
    fn check_unselected(&self, place: Place) {
        let slice = self.slice(&format!("{},{},a={}", place.0, place.1, i32::MAX));
        let explanation = tilefs_tree::array::origins::of(&*slice).unwrap().explain("", AskedPart::Whole).unwrap();
        let hidden = explanation.hidden.expect("few cells");
        assert!(hidden.others.iter().any(|other| other.fate == CellFate::NotSelected), "{hidden:?}");
        assert!(hidden.others.iter().all(|other| other.fate != CellFate::Shown), "{hidden:?}");
    }

    /// Checks a place at which nothing is shown: its slice tells why. Returns the words for what became of its cells.
    fn check_hidden(&self, place: Place) -> Vec<&'static str> {
        let slice = self.slice(&format!("{},{}", place.0, place.1));
        let explanation = tilefs_tree::array::origins::of(&*slice).unwrap().explain("", AskedPart::Whole).unwrap();
        let hidden = explanation.hidden.as_ref().unwrap_or_else(|| panic!("{place:?} shows {:?}", explanation.cell));
        assert!(explanation.cell.is_none() && explanation.count.exact().is_none_or(|count| count == 0));
        self.check_others(&explanation.array, hidden, place, None);
        hidden.others.iter().map(|other| word(&other.fate)).collect()
    }
}

/// Returns the word for what became of a cell.
fn word(fate: &CellFate) -> &'static str {
    match fate {
        CellFate::Shown => "shown",
        CellFate::Overwritten(_) => "overwritten",
        CellFate::Tied(_) => "tied",
        CellFate::NotSelected => "not selected",
        CellFate::Deleted(_) => "deleted",
        CellFate::OutsideOfTime(_) => "outside of time",
        CellFate::InFragment(FragmentState::Later) => "later",
        CellFate::InFragment(_) => "in a fragment",
        CellFate::WithoutValue => "without value",
    }
}

/// Checks an array as of all times; adds the words for what became of cells. Returns the number of explained cells.
fn check(written: &Written, words: &mut HashSet<&'static str>) -> usize {
    let mut explained = 0;
    for read in written.0["reads"].as_array().unwrap() {
        let opened = Opened::new(written, read["at"].as_u64());
        let (origins, mut shown) = (opened.origins(), HashSet::new());
        let expected: HashSet<(Place, i64)> = placed(read).collect();
        for number in 0..placed(read).count() as u64 {
            let explanation = origins.explain("", AskedPart::Cell(number)).unwrap();
            opened.check_cell(&explanation, &mut shown);
            let of_fields = explanation.fields.iter().filter_map(|field| field.origin.as_ref());
            words.extend(of_fields.flat_map(|origin| &origin.others).map(|other| word(&other.fate)));
            let by_byte = origins.explain("a.i32", AskedPart::Byte(4 * number + number % 4)).unwrap();
            assert_eq!(by_byte.cell, Some(number));
            explained += 1;
        }
        assert!(origins.explain("", AskedPart::Cell(placed(read).count() as u64)).is_err(), "a cell past the end");
        assert_eq!(shown, expected, "{} as of {}", written.path().display(), opened.at);
        let whole = origins.explain("", AskedPart::Whole).unwrap();
        let ends = whole.runs.iter().map(|run| run.first + run.count);
        let starts: Vec<u64> = whole.runs.iter().map(|run| run.first).collect();
        let expected_starts: Vec<u64> = std::iter::once(0).chain(ends).take(starts.len()).collect();
        assert_eq!(starts, expected_starts, "the runs are those of the first cells, without a gap");
        if written.is("sparse") {
            let places: HashSet<Place> = expected.iter().map(|(place, _)| *place).collect();
            places.iter().for_each(|place| opened.check_unselected(*place));
            let hidden = opened.cells.keys().filter(|place| !places.contains(place));
            words.extend(hidden.flat_map(|place| opened.check_hidden(*place)));
        }
    }
    explained
}

#[test]
fn every_cell_is_explained_by_the_write_that_gave_its_value() {
    let Some(python) = python_with("numpy, pandas, tiledb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("tests/tree/origins.py");
    let seed = std::env::var("TILEFS_RANDOM_SEED").unwrap_or_else(|_| "1".to_owned());
    let status = Command::new(python).args(["-B", "-W", "ignore"]).arg(script).arg(folder.path()).arg(&seed).status();
    assert!(status.unwrap().success(), "seed {seed}: the arrays cannot be made");
    let manifest = fs::read_to_string(folder.path().join("manifest.json")).unwrap();
    let Value::Array(arrays) = serde_json::from_str(&manifest).unwrap() else { panic!("no list") };
    let mut words = HashSet::new();
    let explained: usize = arrays.into_iter().map(|array| check(&Written(array), &mut words)).sum();
    assert!(explained > 1000, "{explained} cells");
    for wanted in ["shown", "overwritten", "outside of time", "later", "in a fragment", "deleted"] {
        assert!(words.contains(wanted), "no cell was {wanted}: {words:?}");
    }
}

/// The number of cells of an array whose explanations are compared with its files.
const CELLS: u64 = 5;

/// Returns the cells of an array as its folder shows them.
fn shown_cells(array: &Arc<OpenedArray>) -> Result<Arc<dyn Subarray>> {
    if array.schema().is_sparse() {
        return Ok(Arc::new(SparseSubarray::new(array.clone(), false)));
    }
    let dense = Arc::new(DenseArray::new(array.clone())?);
    let (selection, _) = dense.default_selection(Extent::Domain)?;
    Ok(Arc::new(DenseSubarray::new(dense, selection)))
}

/// Returns a cell's value of a field in the files, and whether it is null; at most as much as explanations have.
fn in_files(cells: &dyn Subarray, field: &FieldOrigin, cell: u64) -> Result<(Vec<u8>, bool)> {
    let schema = cells.array().schema();
    let described = describe_field(field.id, schema, &field.name);
    let number = |content: &dyn Content, at: u64| {
        let mut bytes = [0; 8];
        content.read_at(8 * at, &mut bytes).map(|_| u64::from_le_bytes(bytes))
    };
    let bytes = match described.cell_size() {
        Some(size) => size * cell..size * (cell + 1),
        None => {
            let offsets = cells.offsets(field.id)?;
            number(&*offsets, cell)?..number(&*offsets, cell + 1)?
        }
    };
    let mut value = vec![0; (bytes.end - bytes.start).min(64 << 10) as usize];
    cells.values(field.id)?.read_at(bytes.start, &mut value)?;
    let mut validity = [1];
    if described.nullable {
        cells.validity(field.id)?.content().read_at(cell, &mut validity)?;
    }
    Ok((value, validity == [0]))
}

/// Compares the explanations of some cells of an array with its files. Returns the number of values that are the same, and
/// what differs.
fn compare(object: &Object) -> (usize, Vec<String>) {
    let (mut same, mut wrong) = (0, Vec::new());
    let options = TreeOptions::default();
    let opened = tree::open_array(&object.place, &options)
        .and_then(|array| Ok((shown_cells(&array)?, array_folder(array, Arc::new(options.clone()))?)));
    let Ok((cells, folder)) = opened else { return (0, wrong) };
    let Ok(count) = cells.shape().map(|shape| shape.iter().product::<u64>()) else { return (0, wrong) };
    let origins = tilefs_tree::array::origins::of(&folder).expect("the folder of an array");
    let chosen: HashSet<u64> = (0..CELLS).map(|number| number * count.saturating_sub(1) / (CELLS - 1)).collect();
    for cell in chosen.into_iter().filter(|cell| *cell < count) {
        let explanation = match origins.explain("", AskedPart::Cell(cell)) {
            Ok(explanation) => explanation,
            // Filters that are not supported, and attributes that changed their type.
            Err(Error::Unsupported { .. }) => continue,
            Err(error) => {
                wrong.push(format!("{} cell {cell}: {error}", object.name));
                continue;
            }
        };
        for field in explanation.fields.iter().filter(|field| field.source != FieldSource::Computed) {
            match in_files(&*cells, field, cell) {
                Ok((value, is_null)) if field.value.as_ref() == Some(&value) && field.is_null == is_null => same += 1,
                Err(_) if field.value.is_none() => {}
                shown => wrong
                    .push(format!("{} cell {cell} {}: {:?} in files {shown:?}", object.name, field.name, field.value)),
            }
        }
    }
    (same, wrong)
}

#[test]
fn the_bytes_that_are_named_hold_what_the_files_show() {
    let fixtures = tilefs_fixtures::fixtures();
    let mut objects = load(&corpus().join("manifest.json"), "");
    for set in ["", "bitsort/", "filtered/", "writers/"] {
        objects.extend(load(&fixtures.join(set).join("manifest.json"), set));
    }
    objects.retain(|object| !object.is_group && object.key.is_none());
    let found = parallel::map(&objects, compare);
    let same: usize = found.iter().map(|(same, _)| same).sum();
    let wrong: Vec<String> = found.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} of {same}: {:#?}", wrong.len(), wrong.iter().take(20).collect::<Vec<_>>());
    assert!(same > 10_000, "{same} values of {} arrays", objects.len());
}
