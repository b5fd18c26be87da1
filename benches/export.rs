//! The throughput of the export formats, with values that are already in memory: `cargo bench --bench export`.
//!
//! Each benchmark reads a whole file in requests of 128 KiB, as a mount does.

use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use tilefs_base::content::Content;
use tilefs_export::netcdf::netcdf;
use tilefs_export::npy::{Order, npy};
use tilefs_export::text::{Measured, Style, grid, lines, table};
use tilefs_export::{Column, Columns, Field};
use tilefs_format::datatype::Datatype;

fn main() {
    // A file takes about a tenth of a second, so a few samples are enough.
    divan::Divan::from_args().sample_count(12).run_benches();
}

/// Cells along each axis of the grid.
const SIDE: u64 = 2048;
const REQUEST: usize = 128 << 10;

/// Reads a content from front to back.
fn read(bencher: Bencher, content: impl Content) {
    let mut buf = vec![0; REQUEST];
    let length = content.len();
    bencher.counter(BytesCount::new(length)).bench_local(|| {
        let mut offset = 0;
        while offset < length {
            let part = &mut buf[..(length - offset).min(REQUEST as u64) as usize];
            content.read_at(offset, part).expect("memory can be read");
            offset += part.len() as u64;
        }
        divan::black_box(buf[0])
    });
}

/// Returns a column of values that look like measurements.
fn column(datatype: Datatype) -> Column {
    let cells = SIDE * SIDE;
    let values: Vec<u8> = match datatype {
        Datatype::Float32 => (0..cells).flat_map(|i| ((i as f32 * 0.37).sin() * 40.0).to_le_bytes()).collect(),
        Datatype::Float64 => (0..cells).flat_map(|i| ((i as f64 * 0.37).sin() * 40.0).to_le_bytes()).collect(),
        Datatype::DateTimeMs => (0..cells).flat_map(|i| (1_700_000_000_000 + i as i64 * 997).to_le_bytes()).collect(),
        _ => (0..cells).flat_map(|i| (i * 7919 % 100_000).to_le_bytes()[..datatype.size()].to_vec()).collect(),
    };
    Column::fixed(Field::new("temp", datatype), vec![SIDE, SIDE], Arc::new(values))
}

fn flat(column: Column) -> Column {
    Column { shape: vec![column.cells()], ..column }
}

fn texts() -> Column {
    let cells = SIDE * SIDE;
    let mut values = Vec::new();
    let mut offsets = 0u64.to_le_bytes().to_vec();
    for cell in 0..cells {
        values.extend(format!("CELL-{}", cell * 7919 % 1_000_000).bytes());
        offsets.extend((values.len() as u64).to_le_bytes());
    }
    let field = Field::new("name", Datatype::StringUtf8).with_values_per_cell(None);
    Column::variable(field, vec![cells], Arc::new(values), Arc::new(offsets))
}

#[divan::bench]
fn raw(bencher: Bencher) {
    read(bencher, column(Datatype::Float32).values);
}

#[divan::bench]
fn npy_f32(bencher: Bencher) {
    read(bencher, npy(&column(Datatype::Float32), Order::RowMajor).expect("floats fit"));
}

#[divan::bench(args = [Datatype::UInt16, Datatype::Float32, Datatype::Float64])]
fn netcdf_of(bencher: Bencher, datatype: Datatype) {
    let axis =
        |name: &str| Column::fixed(Field::new(name, Datatype::Int16), vec![SIDE], Arc::new(vec![0; 2 * SIDE as usize]));
    let dimensions = vec![axis("y"), axis("x")];
    let attributes = vec![column(datatype)];
    let columns = Columns {
        sparse: false,
        dimensions,
        attributes,
        metadata: Vec::new(),
        auxiliary: Vec::new(),
        georeference: None,
    };
    read(bencher, netcdf(&columns).expect("numbers fit").file.content);
}

#[divan::bench(args = [Datatype::UInt8, Datatype::Int32, Datatype::UInt64, Datatype::Float32, Datatype::Float64, Datatype::DateTimeMs])]
fn grid_of(bencher: Bencher, datatype: Datatype) {
    read(bencher, grid(&column(datatype)).expect("numbers fit"));
}

#[divan::bench]
fn lines_of_texts(bencher: Bencher) {
    read(bencher, lines(&texts()).expect("texts fit"));
}

#[divan::bench]
fn table_of_numbers_and_texts(bencher: Bencher) {
    let columns =
        [flat(column(Datatype::Int32)), texts(), flat(column(Datatype::Float32)), flat(column(Datatype::DateTimeMs))];
    let table = table(&columns, Style::Tsv).expect("all fit").table;
    read(bencher, Measured::new(table).expect("the cells can be read"));
}
