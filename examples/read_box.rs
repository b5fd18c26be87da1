//! Reads a box of a dense array and prints its mean: `cargo run --example read_box -- ARRAY ATTRIBUTE ROWS COLUMNS`,
//! with ranges of coordinates such as `10..19`, both ends included.

use std::env;
use std::error::Error;
use std::ops::RangeInclusive;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [array, attribute, ranges @ ..] = arguments.as_slice() else {
        return Err("usage: read_box ARRAY ATTRIBUTE LOW..HIGH ...".into());
    };
    let array = tilefs_api::open(array)?.into_array()?;
    let ranges = ranges.iter().map(|range| parse(range)).collect::<Result<Vec<_>, _>>()?;
    let values: Vec<f32> = array.dense()?.read(attribute, &ranges)?;
    let sum: f64 = values.iter().copied().map(f64::from).sum();
    println!("{} values, mean {}", values.len(), sum / values.len() as f64);
    Ok(())
}

fn parse(range: &str) -> Result<RangeInclusive<i64>, Box<dyn Error>> {
    let (low, high) = range.split_once("..").ok_or_else(|| format!("{range} is no range"))?;
    Ok(low.parse()?..=high.parse()?)
}
