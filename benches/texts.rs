//! README.txt, schema.json and schema.txt of arrays with many attributes. The cost per attribute should not depend on
//! the number of attributes.

use divan::Bencher;
use divan::counter::ItemsCount;
use support::handmade::{Stored, UINT8, attribute, schema};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Node;

fn main() {
    divan::main();
}

const COUNTS: [usize; 3] = [1250, 5000, 20_000];

/// Opens an array of `count` attributes and makes one of its texts.
fn make_text(bencher: Bencher<'_, '_>, count: usize, name: &str) {
    let one = |number: usize| attribute(&format!("attribute_{number}"), UINT8, None);
    let stored = Stored::new(&schema(100, 100, (0..count).map(one)));
    bencher.counter(ItemsCount::new(count)).bench(|| {
        let root = tree::open(&stored.path(), &TreeOptions::default()).unwrap();
        let Some(Node::File(file)) = root.lookup(name).unwrap() else { panic!("no {name}") };
        file.open().unwrap().len()
    });
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn readme(bencher: Bencher<'_, '_>, count: usize) {
    make_text(bencher, count, "README.txt");
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn schema_json(bencher: Bencher<'_, '_>, count: usize) {
    make_text(bencher, count, "schema.json");
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn schema_txt(bencher: Bencher<'_, '_>, count: usize) {
    make_text(bencher, count, "schema.txt");
}
