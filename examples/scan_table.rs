//! Counts how often each value of a text column occurs in a sparse array: `cargo run --example scan_table -- ARRAY
//! COLUMN`.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [array, column] = arguments.as_slice() else { return Err("usage: scan_table ARRAY COLUMN".into()) };
    let array = tilefs_api::open(array)?.into_array()?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for batch in array.rows()?.columns(&[column])?.batches()? {
        let batch = batch?;
        let values = batch.column(column)?;
        for row in 0..values.len() {
            *counts.entry(values.text(row).unwrap_or("(null)").to_owned()).or_default() += 1;
        }
    }
    for (value, count) in counts {
        println!("{count}\t{value}");
    }
    Ok(())
}
