//! The rows of sparse arrays, read through the library, are those that libtiledb reads: fixtures and corpus (see
//! tests/support/corpora.rs). `TILEFS_CASE=text` checks only arrays with that text in their path.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use serde_json::Value;
use support::columns::{Column, canonical_sparse, compare_rows, compare_values, digest, hex};
use support::corpora::corpus;
use support::disputed::Disputed;
use support::manifest::{Expected, Object, Read, load};
use support::stored::{Copy, generic_tile};
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::filter::Key;
use tilefs_format::fragment::Descent;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::Dimension;
use tilefs_reader::array::sparse::{CoordinateRange, FixedColumn, Portions, RowCount, SparseView, VarColumn};
use tilefs_reader::array::verify::{Progress, verify};
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow};
use tilefs_storage::LocalStorage;
use tilefs_threads as threads;

#[test]
fn rows_within_boxes_are_in_the_order_of_their_view() {
    let path = tilefs_fixtures::fixtures().join("arrays/sparse/overlap");
    let array = tilefs_reader::open(path).unwrap().into_array().unwrap();
    let view = Arc::new(SparseView::new(array).unwrap());
    let sorted = Arc::new(view.by_row_order());
    let coordinates = |view: &Arc<SparseView>| columns_of(view).unwrap()[0].values.clone();
    assert_ne!(coordinates(&view), coordinates(&sorted));
    for view in [view, sorted] {
        let all = view.within_boxes(0, |_| Ok(Descent::Enter)).unwrap();
        assert_eq!(coordinates(&Arc::new(all)), coordinates(&view));
    }
}

#[test]
fn rows_are_those_of_libtiledb() {
    let mut objects = load(&tilefs_fixtures::fixtures().join("manifest.json"), "fixtures/");
    objects.extend(load(&tilefs_fixtures::fixtures().join("bitsort/manifest.json"), "bitsort/"));
    objects.extend(load(&tilefs_fixtures::fixtures().join("filtered/manifest.json"), "filtered/"));
    objects.extend(load(&tilefs_fixtures::fixtures().join("writers/manifest.json"), "writers/"));
    for (manifest, prefix) in [("manifest.json", "corpus/"), ("manifest_real.json", "real/")] {
        let known = objects.len();
        objects.extend(load(&corpus().join(manifest), prefix));
        assert!(objects.len() > known, "{manifest} of the corpus has no objects");
    }
    let case = env::var("TILEFS_CASE").unwrap_or_default();
    objects.retain(|object| {
        let is_sparse = object.schema.as_ref().is_some_and(|schema| !schema.dense);
        is_sparse && !object.is_group && object.newest_error.is_none() && object.name.contains(&case)
    });
    threads::start_team(threads::usual());
    let outcomes: Vec<Outcome> = threads::map(objects.iter(), check).into_iter().flatten().collect();
    let failures: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in failures.iter().take(60) {
        println!("{}: {}", outcome.name, outcome.failure.as_deref().unwrap_or_default());
    }
    let rows: usize = outcomes.iter().map(|outcome| outcome.rows).sum();
    let ordered = outcomes.iter().filter(|outcome| outcome.ordered).count();
    println!("{} arrays, {} reads ({ordered} also in order), {rows} rows", objects.len(), outcomes.len());
    assert!(failures.is_empty(), "{} of {} reads fail", failures.len(), outcomes.len());
    assert!(
        !case.is_empty() || outcomes.iter().any(|outcome| outcome.unmerged),
        "no rows in another order than stored"
    );
}

/// TileDB wrote some arrays with the filter BITSORT in a way that nobody can undo, and reads wrong values from them.
#[test]
fn values_that_bitsort_lost_are_refused() {
    let refused = |error: &Error, why: &str| matches!(error, Error::Unsupported { what, .. } if what.contains(why));
    let damage = |array: &str| -> Vec<Error> {
        let found = verify(&bitsort(array), &Progress::default());
        found.places.into_iter().map(|place| place.error).collect()
    };
    for whole in ["hilbert", "large", "encrypted", "consolidated"] {
        assert_eq!(damage(whole).len(), 0, "{whole}");
    }

    // Two values of the same coordinates, written at different times.
    let errors = damage("lost_times");
    assert!(!errors.is_empty() && errors.iter().all(|error| refused(error, "equal coordinates")), "{errors:?}");
    let view = Arc::new(SparseView::new(bitsort("lost_times")).unwrap());
    let read = |attribute: usize| all_of(&FixedColumn::of_attribute(view.clone(), attribute)?);
    read(0).unwrap();
    assert!(read(1).is_err_and(|error| refused(&error, "equal coordinates")));
    read(2).unwrap();

    let errors = damage("lost_chunks");
    assert!(!errors.is_empty() && errors.iter().all(|error| refused(error, "several chunks")), "{errors:?}");
    let view = SparseView::new(bitsort("lost_chunks")).and_then(|view| columns_of(&Arc::new(view)));
    assert!(view.is_err_and(|error| refused(&error, "several chunks")));
}

/// The fragments of `bands_row` have disjoint rows, whose cells interleave in the order of the array.
#[test]
fn rows_are_counted_without_their_coordinates() {
    let fixture = |name: &str| tilefs_fixtures::fixtures().join("arrays/sparse").join(name);
    let open = |path: &Path| {
        let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 4 << 20, 1, None));
        let folder = Arc::new(ArrayFolder::open(context, &path.into()).unwrap());
        SparseView::new(Arc::new(OpenedArray::open(folder, TimeWindow::ALL).unwrap())).unwrap()
    };
    threads::start_team(threads::usual());
    for (name, told, counted) in [
        ("bands_row", RowCount::Exactly(90), Some(90)),
        ("bands_col", RowCount::Exactly(90), Some(90)),
        // Some boxes overlap, so the cells must be read.
        ("bands_some_meet", RowCount::AtMost(120), None),
        ("overlap", RowCount::AtMost(90), None),
        ("dups", RowCount::Exactly(50), Some(50)),
    ] {
        let copy = tempfile::tempdir().unwrap();
        let copied = std::process::Command::new("cp").arg("-r").arg(fixture(name)).arg(copy.path()).status();
        assert!(copied.is_ok_and(|status| status.success()));
        let path = copy.path().join(name);
        let whole = open(&path);
        assert_eq!(whole.known_row_count().unwrap(), told, "{name}");
        let rows = whole.row_count().unwrap();
        assert_eq!(whole.known_row_count().unwrap(), RowCount::Exactly(rows), "{name}");
        for fragment in fs::read_dir(path.join("__fragments")).unwrap() {
            for file in ["d0.tdb", "d1.tdb"] {
                fs::write(fragment.as_ref().unwrap().path().join(file), b"").unwrap();
            }
        }
        assert_eq!(open(&path).row_count().ok(), counted, "{name}");
        assert!(open(&path).known_row_count().unwrap() == told, "{name}");
    }
}

/// libtiledb 2.14 wrote tiles of text without bytes. It cut off their GZIP streams.
#[test]
fn tiles_of_nothing_are_read() {
    let cells = ["a", "b", "", "", "c", "", "", "", "", "d", ""].map(str::as_bytes);
    for name in ["empty_texts", "empty_coordinates"] {
        let array = opened(&tilefs_fixtures::fixtures().join("filtered/arrays").join(name), None);
        let damage = verify(&array, &Progress::default()).places;
        assert!(damage.is_empty(), "{name}: {damage:?}");
        let columns = columns_of(&Arc::new(SparseView::new(array).unwrap())).unwrap();
        let texts: Vec<&Column> = columns.iter().filter(|column| !column.is_dimension).collect();
        assert_eq!(texts.len(), 16, "{name}");
        for column in texts {
            assert!((0..column.cells()).map(|cell| column.cell(cell)).eq(cells), "{name}: {}", column.name);
        }
        if let Some(column) = columns.iter().find(|column| column.is_dimension && column.offsets.is_some()) {
            let mut sorted = cells;
            sorted.sort_unstable();
            assert!((0..column.cells()).map(|cell| column.cell(cell)).eq(sorted), "{name}");
        }
    }
}

/// A comparison with a field that a fragment lacks deletes its cells. If no schema has the field, the name is damaged,
/// and libtiledb refuses the array, too.
#[test]
fn a_condition_on_a_field_that_no_schema_has_is_damage() {
    let comparison = |operator: u8, field: &str, value: &[u8]| {
        let lengths = ((field.len() as u32).to_le_bytes(), (value.len() as u64).to_le_bytes());
        [&[1, operator][..], &lengths.0, field.as_bytes(), &lengths.1, value].concat()
    };
    let combined = |combination: u8, children: [&[u8]; 2]| {
        [&[0, combination][..], &2u64.to_le_bytes(), &children.concat()].concat()
    };
    let (known, other) = (comparison(0, "extra", &[9, 0]), comparison(0, "extra2", &[9, 0]));
    // The attribute `w` was dropped, `extra` was added later than the first cells.
    let dropped = comparison(5, "w", &[0; 4]);
    for (condition, unknown) in [
        (known.clone(), None),
        (combined(1, [&known, &dropped]), None),
        (comparison(253, "extra", &[]), None),
        (other.clone(), Some("extra2")),
        (combined(0, [&known, &other]), Some("extra2")),
        (combined(1, [&combined(0, [&dropped, &known]), &combined(1, [&other, &known])]), Some("extra2")),
        (comparison(4, "", &[]), Some("")),
        (comparison(253, "__timestamps", &[]), Some("__timestamps")),
        (comparison(254, "Extra", &[]), Some("Extra")),
    ] {
        let mark = "__1600000009000_1600000009000_0123456789abcdef0123456789abcdef_22.del";
        let tile = generic_tile(&condition);
        let inline = [format!("__commits/{mark}\n").as_bytes(), &(tile.len() as u64).to_le_bytes(), &tile].concat();
        for (file, bytes) in [(mark.to_owned(), &tile), (mark.replace(".del", ".con"), &inline)] {
            let copy = Copy::of("sparse/evolution");
            fs::write(copy.path().join("__commits").join(&file), bytes).unwrap();
            let array = opened(&copy.path(), None);
            let is_due = |error: &Error| {
                let place = error.place().unwrap();
                error.to_string().contains("no schema") && place.field.as_deref() == unknown && place.file.is_some()
            };
            let damage = verify(&array, &Progress::default()).places;
            let read = SparseView::new(array).and_then(|view| columns_of(&Arc::new(view)));
            match unknown {
                Some(_) => {
                    assert!(damage.len() == 1 && is_due(&damage[0].error), "{unknown:?} in {file}: {damage:?}");
                    assert!(read.is_err_and(|error| is_due(&error)), "{unknown:?} in {file}");
                }
                None => assert!(damage.is_empty() && read.is_ok(), "{condition:?} in {file}: {damage:?}"),
            }
        }
    }
}

/// Fragments of several times, of which two have cells with the same coordinates, and what was made of them.
#[test]
fn fragments_of_the_same_time_are_read_in_place_of_what_was_made_of_them() {
    let copy = tempfile::tempdir().unwrap();
    let copied = |name: &str| {
        let path = tilefs_fixtures::fixtures().join("writers/arrays").join(name);
        let status = std::process::Command::new("cp").arg("-r").arg(&path).arg(copy.path()).status();
        assert!(status.is_ok_and(|status| status.success()));
        copy.path().join(path.file_name().unwrap())
    };
    // Whether what is read was consolidated.
    let read = |path: &Path, window: TimeWindow| -> Vec<bool> {
        let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 4 << 20, 1, None));
        let folder = Arc::new(ArrayFolder::open(context, &path.into()).unwrap());
        let array = OpenedArray::open(folder, window).unwrap();
        let times = (0..array.fragment_count()).map(|fragment| array.fragment_times(fragment).unwrap());
        times.map(|times| times.t1 != times.t2).collect()
    };
    let marks = |path: &Path, extension: &str| -> Vec<PathBuf> {
        let files = fs::read_dir(path.join("__commits")).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
    };
    let kept = copied("2.11/ties_kept_0");
    let whole = read(&kept, TimeWindow::ALL);
    assert!(whole.len() > 3 && !whole.contains(&true), "{whole:?}");
    let first = read(&kept, TimeWindow { start: 0, end: 2000 });
    assert!(first.len() < whole.len() && first.len() > 1 && !first.contains(&true), "{first:?}");
    // If one of them is gone, what was made of them is read.
    let list = &marks(&kept, "vac")[0];
    let single = |path: &&PathBuf| path.file_stem() != list.file_stem();
    fs::remove_file(marks(&kept, "wrt").iter().find(single).unwrap()).unwrap();
    assert_eq!(read(&kept, TimeWindow::ALL), [true]);
    // All times differ.
    let versions = (0..8).map(|number| copied(&format!("2.11/versions_{number}")));
    let consolidated: Vec<Vec<bool>> =
        versions.filter(|path| !marks(path, "vac").is_empty()).map(|path| read(&path, TimeWindow::ALL)).collect();
    assert!(!consolidated.is_empty() && consolidated.iter().all(|read| *read == [true]), "{consolidated:?}");
}

fn bitsort(name: &str) -> Arc<OpenedArray> {
    let key = (name == "encrypted").then(|| Arc::new(Key::parse(b"abcdefghijklmnopqrstuvwxyz012345").unwrap()));
    opened(&tilefs_fixtures::fixtures().join("bitsort/arrays").join(name), key)
}

fn opened(path: &Path, key: Option<Arc<Key>>) -> Arc<OpenedArray> {
    let context = Context::new(Arc::new(LocalStorage::new()), 4 << 20, 1, key);
    let folder = Arc::new(ArrayFolder::open(Arc::new(context), &path.into()).unwrap());
    Arc::new(OpenedArray::open(folder, TimeWindow::ALL).unwrap())
}

/// The outcome of one read.
struct Outcome {
    name: String,
    rows: usize,
    /// Whether the rows were compared with libtiledb's order.
    ordered: bool,
    /// Whether reading without merging fragments gives another order.
    unmerged: bool,
    failure: Option<String>,
}

fn check(object: &Object) -> Vec<Outcome> {
    // A small cache, so that blocks of rows go to the temporary file and tiles are evicted.
    let key = object.key.as_ref().map(|key| Arc::new(Key::parse(key.as_bytes()).expect("a key")));
    let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 512 << 10, 1, key));
    let folder = match ArrayFolder::open(context, &(&object.place).into()) {
        Ok(folder) => Arc::new(folder),
        Err(error) => {
            return vec![Outcome {
                name: object.name.clone(),
                rows: 0,
                ordered: false,
                unmerged: false,
                failure: Some(error.to_string()),
            }];
        }
    };
    // Read in the usual way, in as many segments as possible, and by searching, as in long chains of fragments.
    let usual = Portions::default();
    let searched = Portions { chained_fragments: 0, chained_tiles: 0, fragments_of_one_place: 1, ..usual };
    let narrowed = (0, u64::MAX);
    let portions = [
        ("as usual", usual),
        ("narrowed", Portions { narrowed, ..usual }),
        ("in segments of 7", Portions { segment_rows: 7, ..usual }),
        ("in segments of 1", Portions { segment_rows: 1, narrowed, ..usual }),
        ("searched, in segments of 5", Portions { segment_rows: 5, narrowed, ..searched }),
        ("searched, in segments of 1", Portions { segment_rows: 1, ..searched }),
    ];
    let reads = object.reads.iter().filter(|read| read.newest_error.is_none());
    reads
        .flat_map(|read| portions.map(|(words, portions)| (read, words, portions)))
        .map(|(read, words, portions)| {
            let name = format!("{} {} {words}", object.name, read.name);
            match view_of(folder.clone(), read, portions).and_then(|view| {
                let unmerged = view.unmerged()?.map(|rows| columns_of(&Arc::new(rows.view))).transpose()?;
                Ok((columns_of(&view)?, columns_of(&Arc::new(view.by_row_order()))?, unmerged))
            }) {
                Ok((columns, by_row, unmerged)) => {
                    let (canonical, order) = canonical_sparse(&columns);
                    let mut failure = match Disputed::of(object, read) {
                        Some(disputed) => disputed.differs(&canonical),
                        None => differs(read, &canonical),
                    };
                    failure = failure.or_else(|| by_row_differs(&columns, &by_row));
                    failure = failure.or_else(|| unmerged_differs(&canonical, unmerged.as_deref()?));
                    let ordered = failure.is_none() && read.row_order.is_some();
                    if ordered && failure.is_none() {
                        failure = order_differs(read, &canonical, &order);
                    }
                    let unmerged = unmerged.is_some_and(|unmerged| unmerged[0].values != columns[0].values);
                    Outcome { name, rows: order.len(), ordered, unmerged, failure }
                }
                Err(error) => {
                    let failure = Some(error.to_string());
                    Outcome { name, rows: 0, ordered: false, unmerged: false, failure }
                }
            }
        })
        .collect()
}

fn differs(read: &Read, columns: &[Column]) -> Option<String> {
    let rows = columns.first().map_or(0, Column::cells);
    if rows != read.cells {
        return Some(format!("{rows} rows instead of {}", read.cells));
    }
    let Some(fields) = &read.fields else {
        let expected = read.sha256.as_ref()?;
        return (digest(columns) != *expected).then(|| "another digest".to_owned());
    };
    let is = |expected: &Expected, got: &[u8]| match expected {
        Expected::File(file) => fs::read(file).expect("an expected file") == got,
        Expected::Sha256(sum) => digest_of(got) == *sum,
    };
    for (field, column) in fields.iter().zip(columns) {
        let parts = [
            ("values", Some(&field.values), Some(column.values.clone())),
            ("offsets", field.offsets.as_ref(), column.offset_bytes()),
            ("validity", field.validity.as_ref(), column.validity.clone()),
        ];
        for (part, expected, got) in parts {
            let same = match (expected, got) {
                (Some(expected), Some(got)) => is(expected, &got),
                (expected, got) => expected.is_some() == got.is_some(),
            };
            if !same {
                return Some(format!("other {part} of {}", field.name));
            }
        }
    }
    (fields.len() != columns.len()).then(|| "other fields".to_owned())
}

fn digest_of(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(bytes))
}

fn order_differs(read: &Read, sorted: &[Column], order: &[u32]) -> Option<String> {
    let expected = fs::read(read.row_order.as_ref()?).expect("an expected file");
    let expected = expected.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")));
    let wrong = order
        .iter()
        .zip(expected)
        .position(|(&got, expected)| got != expected && compare_rows(sorted, got as usize, expected as usize).is_ne());
    wrong.map(|row| format!("row {row} is another than libtiledb's"))
}

/// Compares rows in row order with the same rows stably sorted by their coordinates; returns the difference.
fn by_row_differs(columns: &[Column], by_row: &[Column]) -> Option<String> {
    let mut rows: Vec<usize> = (0..columns[0].cells()).collect();
    let dimensions: Vec<&Column> = columns.iter().filter(|column| column.is_dimension).collect();
    rows.sort_by(|&a, &b| {
        let orders = dimensions.iter().map(|column| compare_values(&column.datatype, column.cell(a), column.cell(b)));
        orders.fold(Ordering::Equal, Ordering::then)
    });
    let differing = columns.iter().zip(by_row).find(|(column, sorted)| {
        rows.len() != sorted.cells()
            || rows.iter().enumerate().any(|(to, &from)| column.cell(from) != sorted.cell(to))
            || column
                .validity
                .as_ref()
                .zip(sorted.validity.as_ref())
                .is_some_and(|(from, to)| !rows.iter().map(|row| from[*row]).eq(to.iter().copied()))
    });
    differing.map(|(column, _)| format!("{} sorted by row is something else", column.name))
}

/// Compares rows that were not merged with the same rows in any order; returns the difference.
fn unmerged_differs(canonical: &[Column], unmerged: &[Column]) -> Option<String> {
    let (unmerged, _) = canonical_sparse(unmerged);
    let same = |(a, b): (&Column, &Column)| a.values == b.values && a.offsets == b.offsets && a.validity == b.validity;
    let differing = canonical.iter().zip(&unmerged).find(|pair| !same(*pair));
    differing.map(|(column, _)| format!("{} without merging is something else", column.name))
}

fn view_of(folder: Arc<ArrayFolder>, read: &Read, portions: Portions) -> Result<Arc<SparseView>> {
    let window = read.window.map_or(TimeWindow::ALL, |(start, end)| TimeWindow { start, end });
    let array = Arc::new(OpenedArray::open(folder, window)?);
    let mut view = Arc::new(SparseView::with_portions(array.clone(), portions)?);
    let schema = array.schema();
    if let Some(subarray) = &read.subarray {
        let ranges = schema.dimensions.iter().zip(subarray).map(|(dimension, (low, high))| {
            let range = Range { low: scalar(dimension, low), high: scalar(dimension, high) };
            Some(vec![CoordinateRange { low: Some(range.low), high: Some(range.high), step: 1 }])
        });
        view = Arc::new(view.select(&ranges.collect::<Vec<_>>())?);
    }
    Ok(view)
}

/// Returns all columns of a view, in the order of the schema, dimensions first.
fn columns_of(view: &Arc<SparseView>) -> Result<Vec<Column>> {
    let schema = view.array().schema();
    let mut columns = Vec::new();
    for (number, dimension) in schema.dimensions.iter().enumerate() {
        let blank = blank(&dimension.name, dimension.datatype, true);
        columns.push(match dimension.is_variable() {
            true => variable(blank, &VarColumn::of_dimension(view.clone(), number)?)?,
            false => fixed(blank, &FixedColumn::of_dimension(view.clone(), number)?)?,
        });
    }
    for (number, attribute) in schema.attributes.iter().enumerate() {
        let blank = blank(&attribute.name, attribute.datatype, false);
        let mut column = match attribute.is_variable() {
            true => variable(blank, &VarColumn::of_attribute(view.clone(), number)?)?,
            false => fixed(blank, &FixedColumn::of_attribute(view.clone(), number)?)?,
        };
        if attribute.nullable {
            column.validity = Some(all_of(&FixedColumn::of_validity(view.clone(), number)?)?);
        }
        columns.push(column);
    }
    Ok(columns)
}

fn scalar(dimension: &Dimension, value: &Value) -> Scalar {
    let real = || value.as_f64().or_else(|| value.as_str()?.parse().ok()).expect("a number");
    match dimension.datatype.kind() {
        // Latin-1.
        Kind::Bytes => Scalar::Text(value.as_str().expect("text").chars().map(|one| one as u8).collect()),
        Kind::Signed => Scalar::Signed(value.as_i64().expect("an integer")),
        Kind::Unsigned => Scalar::Unsigned(value.as_u64().expect("an integer")),
        Kind::Float if dimension.datatype.size() == 4 => Scalar::Float32(real() as f32),
        Kind::Float => Scalar::Float64(real()),
    }
}

fn blank(name: &str, datatype: Datatype, is_dimension: bool) -> Column {
    let (name, datatype) = (name.to_owned(), datatype.name().to_owned());
    Column { name, datatype, cell_size: None, is_dimension, values: Vec::new(), offsets: None, validity: None }
}

/// Reads in pieces of odd lengths.
const PIECES: [usize; 3] = [1001, 1, 20_000];

fn all_of(column: &FixedColumn) -> Result<Vec<u8>> {
    let size = column.cell_size();
    let mut bytes = vec![0; column.row_count()? as usize * size];
    // First from the middle, before any earlier row has been read.
    let middle = bytes.len() / size / 2;
    let mut last = vec![0; bytes.len() - middle * size];
    column.read(middle as u64, &mut last[..])?;
    let mut row = 0;
    let mut pieces = PIECES.iter().cycle();
    while row < bytes.len() / size {
        let end = (row + pieces.next().unwrap()).min(bytes.len() / size);
        column.read(row as u64, Output::Ahead(((end - row) * size) as u64))?;
        column.read(row as u64, &mut bytes[row * size..end * size])?;
        row = end;
    }
    assert!(bytes[middle * size..] == last, "rows depend on which of them were read before");
    Ok(bytes)
}

fn fixed(blank: Column, column: &FixedColumn) -> Result<Column> {
    Ok(Column { cell_size: Some(column.cell_size()), values: all_of(column)?, ..blank })
}

fn variable(blank: Column, column: &VarColumn) -> Result<Column> {
    let rows = column.row_count()? as usize;
    let mut offsets = vec![0; rows + 1];
    let mut row = 0;
    let mut pieces = PIECES.iter().cycle();
    while row <= rows {
        let end = (row + pieces.next().unwrap()).min(rows + 1);
        column.read_offsets(row as u64, Output::Ahead((end - row) as u64))?;
        column.read_offsets(row as u64, &mut offsets[row..end])?;
        row = end;
    }
    let mut values = vec![0; column.byte_count()? as usize];
    let mut byte = 0;
    while byte < values.len() {
        let end = (byte + pieces.next().unwrap()).min(values.len());
        column.read_values(byte as u64, Output::Ahead((end - byte) as u64))?;
        column.read_values(byte as u64, &mut values[byte..end])?;
        byte = end;
    }
    assert_eq!(offsets[rows], column.byte_count()?);
    assert!(column.read_all()? == (offsets.clone(), values.clone()), "{}: all at once", blank.name);
    if rows > 0 {
        let row = rows / 2;
        assert!(offsets[column.row_at(offsets[row])? as usize] == offsets[row]);
    }
    offsets.pop();
    Ok(Column { offsets: Some(offsets), values, ..blank })
}
