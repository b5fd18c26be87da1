//! Measures the cost of reading a file from front to back if the array were in a remote storage.
//!
//! usage: cargo run --release --example remote -- ARRAY FILE MILLISECONDS [MIB]
//!
//! Loads the array into memory, delays each request by MILLISECONDS, reads the file (or its first MIB mebibytes) as
//! `tilefs cat` does, and prints the number of requests.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilefs_storage::{MemoryStorage, SimulatedStorage, StoreKey};
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Node;
use tilefs_vfs::read_ahead::{ReadAhead, Window};

/// The bytes of one read.
const BLOCK: usize = 1 << 20;

/// Prefetching threads. They mostly wait for requests, so there are more than cores.
const WORKERS: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [array, file, milliseconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: remote ARRAY FILE MILLISECONDS [MIB]".into());
    };
    let key = StoreKey::from("memory://remote/array");
    let objects = MemoryStorage::load(Path::new(array), &key)?;
    let storage = Arc::new(SimulatedStorage::new(Arc::new(objects), Duration::from_millis(milliseconds.parse()?)));
    let options = TreeOptions::default();
    let root = tree::root(tree::open_stored_in(storage.clone(), &key, &options)?, &options)?;
    let Some(Node::File(found)) = root.lookup(file)? else { return Err(format!("there is no file {file}").into()) };
    let read_ahead = ReadAhead::new(WORKERS, Window::LOCAL);
    let reader = read_ahead.open(found.open()?);
    let length = match rest {
        [mib, ..] => (mib.parse::<u64>()? << 20).min(reader.content().len()),
        [] => reader.content().len(),
    };
    let opening = storage.take_requests().len();
    let mut block = vec![0; BLOCK];
    let begin = Instant::now();
    for offset in (0..length).step_by(BLOCK) {
        let bytes = &mut block[..(length - offset).min(BLOCK as u64) as usize];
        read_ahead.note(&reader, offset, bytes.len() as u64);
        reader.content().read_at(offset, bytes)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let max_in_flight = storage.most_in_flight();
    let requests = storage.take_requests();
    let steps = requests.iter().map(|request| request.step).max().unwrap_or(0);
    println!("opening: {opening} requests");
    println!(
        "{} MiB in {seconds:.2} s, {:.0} MiB/s: {} requests in {steps} dependent steps, at most {max_in_flight} in flight",
        length >> 20,
        length as f64 / (1 << 20) as f64 / seconds,
        requests.len()
    );
    Ok(())
}
