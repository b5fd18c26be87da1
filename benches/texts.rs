//! README.txt and schema.json of arrays of many attributes: what one attribute costs should not depend on how many there
//! are.

#[path = "../tests/bombs/stored.rs"]
#[allow(dead_code)]
mod stored;

use divan::Bencher;
use divan::counter::ItemsCount;
use stored::{Stored, UINT8, attribute, schema};
use tilefs::tree::{self, Node, OpenOptions};

fn main() {
    divan::main();
}

const COUNTS: [usize; 3] = [1250, 5000, 20_000];

/// Opens an array of so many attributes and makes one of its texts.
fn made(bencher: Bencher<'_, '_>, count: usize, name: &str) {
    let one = |number: usize| attribute(&format!("attribute_{number}"), UINT8, None);
    let stored = Stored::new(&schema(100, 100, (0..count).map(one)));
    bencher.counter(ItemsCount::new(count)).bench(|| {
        let root = tree::open(&stored.path(), &OpenOptions::default()).unwrap();
        let Some(Node::File(file)) = root.lookup(name).unwrap() else { panic!("no {name}") };
        file.open().unwrap().len()
    });
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn readme(bencher: Bencher<'_, '_>, count: usize) {
    made(bencher, count, "README.txt");
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn schema_json(bencher: Bencher<'_, '_>, count: usize) {
    made(bencher, count, "schema.json");
}

#[divan::bench(args = COUNTS, sample_count = 5)]
fn schema_txt(bencher: Bencher<'_, '_>, count: usize) {
    made(bencher, count, "schema.txt");
}
