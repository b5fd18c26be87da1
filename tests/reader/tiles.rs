//! Dense arrays whose writers had errors in how they numbered or counted tiles. Releases 2.3 to 2.9 assigned cells to
//! tiles by a rule that fails across zero: cells in the right tiles are read, and other tiles are an error. Release 2.2
//! counted tiles of nullable attributes twice.

use std::path::Path;
use std::sync::Arc;

use support::shown::{file, offsets_within};
use tilefs_base::error::Result;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Folder;

/// The fill value of INT32.
const FILL: i32 = i32::MIN;

fn open(path: &Path) -> Result<Arc<dyn Folder>> {
    let reading = tilefs_reader::ReaderOptions { threads: 1, ..Default::default() };
    tree::open(path, &TreeOptions { reading, ..TreeOptions::default() })
}

fn read(array: &str) -> Result<Vec<i32>> {
    let root = open(&tilefs_fixtures::fixtures().join("tiles/2.3").join(array))?;
    Ok(numbers(&file(&*root, "v", ".i32")?))
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|four| i32::from_le_bytes(*four)).collect()
}

/// Returns the expected values: every written cell has its coordinate, all others the fill value.
fn written(domain: std::ops::RangeInclusive<i32>, cells: std::ops::RangeInclusive<i32>) -> Vec<i32> {
    domain.map(|x| if cells.contains(&x) { x } else { FILL }).collect()
}

#[test]
fn cells_that_old_releases_put_into_wrong_tiles_are_refused() {
    let elsewhere = read("elsewhere").map_err(|error| error.to_string());
    assert!(elsewhere.as_ref().is_err_and(|error| error.contains("left cells out")), "{elsewhere:?}");
    // An empty tile comes after the one with cells.
    assert_eq!(read("more_tiles").unwrap(), written(-64..=63, 0..=31));
    assert_eq!(read("whole").unwrap(), written(-64..=63, 0..=0));
    assert_eq!(read("unaffected").unwrap(), written(-38..=88, 7..=87));
}

/// Checks an attribute of `make_global_order_fixtures.py`: each cell is null if its number is a multiple of 3;
/// `values` are the others, by their numbers.
fn check_numbered(root: &dyn Folder, name: &str, values: &[String], expected: impl Fn(usize) -> String) {
    let validity: Vec<u8> = (0..values.len()).map(|number| u8::from(number % 3 > 0)).collect();
    assert!(!values.is_empty());
    assert_eq!(file(root, name, ".valid.u8").unwrap(), validity);
    for (number, value) in values.iter().enumerate().filter(|(number, _)| number % 3 > 0) {
        assert_eq!(*value, expected(number), "cell {number}");
    }
}

#[test]
fn tiles_that_a_release_counted_twice_are_read() {
    let (mut checked, folder) = (0, tilefs_fixtures::fixtures().join("tiles/2.2"));
    for version in ["7", "8"] {
        for array in std::fs::read_dir(folder.join(version)).unwrap() {
            let root = open(&array.unwrap().path()).unwrap();
            if let Ok(bytes) = file(&*root, "n", ".i32") {
                let values: Vec<String> = numbers(&bytes).iter().map(i32::to_string).collect();
                check_numbered(&*root, "n", &values, |number| number.to_string());
                checked += 1;
            }
            if let Ok(bytes) = file(&*root, "text", ".bytes") {
                let mut starts =
                    offsets_within(&file(&*root, "text", ".offsets.u64").unwrap(), bytes.len(), "text").unwrap();
                starts.push(bytes.len() as u64);
                let text = |ends: &[u64]| String::from_utf8_lossy(&bytes[ends[0] as usize..ends[1] as usize]).into();
                let values: Vec<String> = starts.windows(2).map(text).collect();
                let digits = |number: usize| if number.is_multiple_of(4) { String::new() } else { number.to_string() };
                check_numbered(&*root, "text", &values, digits);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 15);
}
