//! Dense arrays of releases 2.3 to 2.9, which assigned cells to tiles by a rule that fails across zero: cells in the
//! right tiles are read, and other tiles are an error.

mod support;

use support::shown::file;
use tilefs::tree::{self, OpenOptions};
use tilefs_format::error::Result;

/// The fill value of INT32.
const FILL: i32 = i32::MIN;

fn read(array: &str) -> Result<Vec<i32>> {
    let path = tilefs_fixtures::fixtures().join("tiles/2.3").join(array);
    let root = tree::open(
        &path,
        &OpenOptions {
            reading: tilefs_reader::OpenOptions { threads: 1, ..Default::default() },
            ..OpenOptions::default()
        },
    )?;
    let bytes = file(&*root, "v", ".i32")?;
    Ok(bytes.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().expect("four bytes"))).collect())
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
