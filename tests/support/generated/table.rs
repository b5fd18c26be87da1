//! The rows of a table: numbers as `id`, a count, a word of four letters, and a name of 4 to 11 letters.
//!
//! Fragments are appended. Row `r` has the id `3 * r`.

use std::ops::Range;

use super::cells::{Axis, Bounds, Cells, Datatype, Field};

const STEP: u64 = 3;
const COUNTS: u64 = 1009;
const KINDS: [&[u8; 4]; 5] = [b"bold", b"calm", b"dark", b"even", b"fair"];
/// The number of distinct lengths of names, from 4 letters on.
const LENGTHS: u64 = 8;
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz_.-+=~";

const AXES: [Axis; 1] = [Axis { domain: (0, (1 << 42) - 1), extent: 1 << 16 }];
const DIMENSIONS: [Field; 1] = [Field { name: "id", datatype: Datatype::Int64, values: Some(1), period: 0 }];
const ATTRIBUTES: [Field; 3] = [
    Field { name: "count", datatype: Datatype::Int32, values: Some(1), period: COUNTS },
    Field { name: "kind", datatype: Datatype::Char, values: Some(4), period: KINDS.len() as u64 },
    Field { name: "name", datatype: Datatype::Utf8, values: None, period: 0 },
];

pub struct Table {
    /// The rows of each fragment.
    rows: u64,
}

impl Table {
    pub fn new(rows: u64) -> Self {
        Table { rows }
    }

    fn rows(&self, fragment: u64, cells: Range<u64>) -> Range<u64> {
        let first = fragment * self.rows;
        first + cells.start..first + cells.end
    }
}

/// Returns the bytes of the names of all rows before `row`.
fn bytes_before(row: u64) -> u64 {
    let (whole, rest) = (row / LENGTHS, row % LENGTHS);
    4 * row + whole * (LENGTHS * (LENGTHS - 1) / 2) + rest * rest.saturating_sub(1) / 2
}

/// Returns the letters of a row's name, and further letters after its end.
fn letters(row: u64) -> [u8; 12] {
    let mut bits = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    std::array::from_fn(|place| LETTERS[(bits >> (5 * place) & 31) as usize])
}

impl Cells for Table {
    fn axes(&self) -> &[Axis] {
        &AXES
    }

    fn dimensions(&self) -> &[Field] {
        &DIMENSIONS
    }

    fn attributes(&self) -> &[Field] {
        &ATTRIBUTES
    }

    fn bounds(&self, fragment: u64, cells: Range<u64>) -> Bounds {
        let rows = self.rows(fragment, cells);
        vec![((STEP * rows.start) as i64, (STEP * (rows.end - 1)) as i64)]
    }

    fn sum_of_coordinates(&self, _: usize, fragment: u64, cells: Range<u64>) -> i64 {
        let rows = self.rows(fragment, cells);
        let twice = u128::from(STEP) * u128::from(rows.start + rows.end - 1) * u128::from(rows.end - rows.start);
        i64::try_from(twice / 2).unwrap_or(i64::MAX)
    }

    fn write_dimension(&self, _: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>) {
        self.rows(fragment, cells).for_each(|row| to.extend((STEP * row).to_le_bytes()));
    }

    fn write_attribute(&self, attribute: usize, fragment: u64, cells: Range<u64>, to: &mut Vec<u8>) {
        for row in self.rows(fragment, cells) {
            match attribute {
                0 => to.extend(((7 * row % COUNTS) as u32).to_le_bytes()),
                1 => to.extend(KINDS[(row % KINDS.len() as u64) as usize]),
                _ => to.extend(&letters(row)[..4 + (row % LENGTHS) as usize]),
            }
        }
    }

    fn bytes_before(&self, _: usize, fragment: u64, cell: u64) -> u64 {
        let first = fragment * self.rows;
        bytes_before(first + cell) - bytes_before(first)
    }
}
