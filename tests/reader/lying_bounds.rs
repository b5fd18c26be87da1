//! Wrong boxes and counts in metadata: reading the cells is an error, and never gives other rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use support::stored::{Copy, copy_folder};
use tilefs_base::error::{Error, Result};
use tilefs_reader::array::sparse::{FixedColumn, RowCount, SparseView};
use tilefs_reader::array::{ArrayFolder, Context, OpenedArray, TimeWindow};
use tilefs_storage::LocalStorage;

/// Three fragments of 30 cells, in tiles of 8: rows 0 to 6, 7 to 9 and 10 to 15, in space tiles of 8 rows.
const BANDS: &str = "sparse/bands_row";

/// The numbers in a footer that the tests alter: the non-empty domain along two dimensions of 32-bit integers, the
/// number of tiles, and the number of cells in the last one.
struct Footer {
    file: PathBuf,
    bytes: Vec<u8>,
    domain: usize,
}

impl Footer {
    fn of(fragment: &Path) -> Self {
        let file = fragment.join("__fragment_metadata.tdb");
        let bytes = fs::read(&file).unwrap();
        let end = bytes.len() - 8;
        let start = end - u64::from_le_bytes(bytes[end..].try_into().unwrap()) as usize;
        // A version, the name of the schema, and two flags precede the domain.
        let name = u64::from_le_bytes(bytes[start + 4..start + 12].try_into().unwrap()) as usize;
        Footer { file, bytes, domain: start + 12 + name + 2 }
    }

    fn set_rows(mut self, low: i32, high: i32) {
        let rows = [low, high].map(i32::to_le_bytes).concat();
        self.bytes[self.domain..self.domain + 8].copy_from_slice(&rows);
        fs::write(self.file, self.bytes).unwrap();
    }

    /// Adds to the number of tiles, and to the number of cells in the last one.
    fn add(mut self, tiles: i64, cells: i64) {
        for (at, difference) in [(self.domain + 16, tiles), (self.domain + 24, cells)] {
            let number = i64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap()) + difference;
            self.bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        fs::write(self.file, self.bytes).unwrap();
    }
}

/// Returns the folders of all fragments, oldest first.
fn fragments(array: &Copy) -> Vec<PathBuf> {
    let entries = fs::read_dir(array.path().join("__fragments")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn view(array: &Copy) -> Arc<SparseView> {
    let context = Arc::new(Context::new(Arc::new(LocalStorage::new()), 4 << 20, 1, None));
    let folder = Arc::new(ArrayFolder::open(context, &array.path().into()).unwrap());
    Arc::new(SparseView::new(Arc::new(OpenedArray::open(folder, TimeWindow::ALL).unwrap())).unwrap())
}

/// Reads the coordinates of all rows along both dimensions, and the values of the attribute.
fn read(view: &Arc<SparseView>) -> Result<Vec<Vec<u8>>> {
    let columns = [0, 1].map(|dimension| FixedColumn::of_dimension(view.clone(), dimension));
    let columns = columns.into_iter().chain([FixedColumn::of_attribute(view.clone(), 0)]);
    let read = columns.map(|column| {
        let column = column?;
        let mut bytes = vec![0; column.row_count()? as usize * column.cell_size()];
        column.read(0, &mut bytes[..])?;
        Ok(bytes)
    });
    read.collect()
}

#[track_caller]
fn is_damage_of<T>(result: Result<T>, fragment: &Path, reason: &str) {
    let name = fragment.file_name().unwrap().to_str().unwrap();
    match result {
        Err(error @ Error::Damaged { .. }) => {
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(reason), "{text}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("rows of what lies"),
    }
}

#[test]
fn counts_that_do_not_hold_are_damage() {
    let whole = read(&view(&Copy::of(BANDS))).unwrap();
    assert_eq!(whole[2].len(), 4 * 90);
    let mut counted = 0;
    for (tiles, cells, told) in [(0, -1, 89), (0, 1, 91), (0, -5, 85), (1, -2, 96), (-1, 0, 82)] {
        for number in 0..3 {
            let array = Copy::of(BANDS);
            let fragment = &fragments(&array)[number];
            Footer::of(fragment).add(tiles, cells);
            let view = view(&array);
            if let Ok(count) = view.known_row_count() {
                assert_eq!(count, RowCount::Exactly(told), "{tiles} {cells}");
                counted += 1;
            }
            match tiles {
                0 => is_damage_of(read(&view), fragment, ""),
                // There are more or fewer tiles than boxes in the R-tree.
                _ => is_damage_of(read(&view), fragment, "boxes for"),
            }
        }
    }
    assert!(counted >= 9, "{counted} counts are told before a cell is read");
    // The total is the same as before.
    let array = Copy::of(BANDS);
    let all = fragments(&array);
    Footer::of(&all[0]).add(0, 2);
    Footer::of(&all[2]).add(0, -2);
    assert_eq!(view(&array).known_row_count().unwrap(), RowCount::Exactly(90));
    assert!(read(&view(&array)).is_err_and(|error| matches!(error, Error::Damaged { .. })));
}

/// Two fragments have the same cells, but the second one claims to have them elsewhere.
#[test]
fn a_cell_of_two_fragments_whose_boxes_lie_apart_is_damage() {
    for (low, high, reason) in [
        // In the order of the array, one fragment comes after the other, so the boxes of tiles are not examined.
        (8, 15, "a coordinate outside the fragment's non-empty domain"),
        // The fragments interleave: both have cells in the first rows of space tiles.
        (7, 7, "leaves the non-empty domain"),
    ] {
        let array = Copy::of(BANDS);
        let all = fragments(&array);
        for other in &all[1..] {
            let commit = array.path().join("__commits").join(other.file_name().unwrap()).with_extension("wrt");
            fs::remove_file(commit).unwrap();
            fs::remove_dir_all(other).unwrap();
        }
        let name = "__1600000009000_1600000009000_0123456789abcdef0123456789abcdef_22";
        let twin = array.path().join("__fragments").join(name);
        copy_folder(&all[0], &twin);
        fs::write(array.path().join("__commits").join(name).with_extension("wrt"), []).unwrap();
        let rows = read(&view(&array)).unwrap();
        assert_eq!(rows[0].len(), 4 * 30, "the newer fragment has all cells");
        Footer::of(&twin).set_rows(low, high);
        assert_eq!(view(&array).known_row_count().unwrap(), RowCount::Exactly(60), "the boxes lie apart");
        is_damage_of(read(&view(&array)), &twin, reason);
    }
}

/// The same with fragments of releases before the current layout of arrays, with one dimension of 32-bit integers.
#[test]
fn a_cell_of_two_old_fragments_whose_boxes_lie_apart_is_damage() {
    for (fixture, folder, ends, twin, commit, lie) in [
        ("1.6/twice_0", "", (1, 29), "__1895303400559_1895303400559_0123456789abcdef0123456789abcdef", None, (30, 40)),
        (
            "2.9/versions_0",
            "__fragments",
            (2, 18),
            "__9000_9000_0123456789abcdef0123456789abcdef_13",
            Some("__commits/__9000_9000_0123456789abcdef0123456789abcdef_13.wrt"),
            (0, 0),
        ),
    ] {
        let array = Copy::of(&format!("../writers/arrays/{fixture}"));
        let parent = array.path().join(folder);
        let mut all: Vec<PathBuf> = fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.retain(|path| path.join("__fragment_metadata.tdb").is_file());
        all.sort();
        for other in &all[1..] {
            fs::remove_dir_all(other).unwrap();
            let commit = array.path().join("__commits").join(other.file_name().unwrap());
            let _ = fs::remove_file(commit.with_extension("wrt"));
            let _ = fs::remove_file(commit.with_extension("vac"));
        }
        let own = coordinates(&array).unwrap();
        assert_eq!((own.iter().min(), own.iter().max()), (Some(&ends.0), Some(&ends.1)), "{fixture}");
        let twin = parent.join(twin);
        copy_folder(&all[0], &twin);
        if let Some(commit) = commit {
            fs::write(array.path().join(commit), []).unwrap();
        }
        let rows = coordinates(&array).unwrap();
        assert_eq!(rows, own, "{fixture}: the newer fragment has all cells");
        // The domain is in the footer, after everything else that contains such bounds.
        let file = twin.join("__fragment_metadata.tdb");
        let mut bytes = fs::read(&file).unwrap();
        let pair = |(low, high): (i32, i32)| [low.to_le_bytes(), high.to_le_bytes()].concat();
        let at = bytes.windows(8).rposition(|window| window == pair(ends)).expect("a domain");
        bytes[at..at + 8].copy_from_slice(&pair(lie));
        fs::write(file, bytes).unwrap();
        is_damage_of(coordinates(&array), &twin, "a coordinate outside the fragment's non-empty domain");
    }
}

/// Reads the coordinates of all rows of an array with one dimension of 32-bit integers.
fn coordinates(array: &Copy) -> Result<Vec<i32>> {
    let column = FixedColumn::of_dimension(view(array), 0)?;
    let mut bytes = vec![0; column.row_count()? as usize * column.cell_size()];
    column.read(0, &mut bytes[..])?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect())
}

/// Coordinates are within the array, and even within the fragment, but outside the box of their tile.
#[test]
fn coordinates_outside_the_box_of_their_tile_are_damage() {
    let array = Copy::of("sparse/overlap");
    let all = fragments(&array);
    let rows = read(&view(&array)).unwrap();
    // Put the oldest fragment's coordinates in the place of a newer one's, whose tiles have other boxes, and the
    // reverse.
    let file = |fragment: &Path| fragment.join("d0.tdb");
    for (from, to) in [(0, 3), (3, 0)] {
        let before = fs::read(file(&all[to])).unwrap();
        fs::copy(file(&all[from]), file(&all[to])).unwrap();
        let found = read(&view(&array));
        assert!(found.as_ref().is_err_and(|error| matches!(error, Error::Damaged { .. })), "{from} {to}: {found:?}");
        fs::write(file(&all[to]), before).unwrap();
    }
    assert_eq!(read(&view(&array)).unwrap(), rows);
}
