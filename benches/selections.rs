//! The time to parse a selection, by its number of ranges: `cargo bench --bench selections`.
//!
//! The time per range must not grow with the number of ranges: ten times the ranges take ten times the time.

use divan::Bencher;
use divan::counter::ItemsCount;
use tilefs_format::datatype::Datatype;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_tree::select::calendar::Calendar;
use tilefs_tree::select::{Addressing, DimensionBounds, dense, sparse};

fn main() {
    divan::main();
}

const RANGES: [usize; 3] = [1_000, 10_000, 100_000];

/// Returns a selection of overlapping ranges, unsorted.
fn text(ranges: usize) -> String {
    (0..ranges).map(|n| format!("{}..{}", n * 7 % 99_991, n + 99_991)).collect::<Vec<_>>().join("+")
}

fn bounds() -> [DimensionBounds; 1] {
    let range = Some(Range { low: Scalar::Unsigned(0), high: Scalar::Unsigned(1 << 40) });
    let (domain, limit, shown) = (range.clone(), range.clone(), range);
    [DimensionBounds {
        name: "x".to_owned(),
        datatype: Datatype::UInt64,
        domain,
        limit,
        shown,
        labels: Vec::new(),
        calendar: Calendar::default(),
    }]
}

#[divan::bench(args = RANGES)]
fn of_a_dense_array(bencher: Bencher, ranges: usize) {
    let (text, bounds) = (text(ranges), bounds());
    bencher.counter(ItemsCount::new(ranges)).bench_local(|| dense(&text, Addressing::Coordinate, &bounds));
}

#[divan::bench(args = RANGES)]
fn of_a_sparse_array(bencher: Bencher, ranges: usize) {
    let (text, bounds) = (text(ranges), bounds());
    bencher.counter(ItemsCount::new(ranges)).bench_local(|| sparse(&text, Addressing::Coordinate, &bounds));
}
