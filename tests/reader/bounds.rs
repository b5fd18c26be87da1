//! The cost of reads: chunks decoded for a small read, and memory held while a large file is read.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use support::fields::{contents, fields, subarray};
use tilefs_base::error::Error;
use tilefs_base::output::Output;
use tilefs_reader::array::dense::{AxisSelection, DenseColumn, DenseView, Selection};
use tilefs_reader::array::{ArrayFolder, Context, FieldFile, OpenedArray, TimeWindow};
use tilefs_storage::LocalStorage;

/// Returns an array with one tile of 64 MiB in 1,024 chunks: 4096 rows of 4096 float32 cells, each with the number of
/// its row.
fn big_tile() -> PathBuf {
    tilefs_fixtures::fixtures().join("arrays/dense/big_tile")
}

const ROW: usize = 4096 * 4;

#[test]
fn four_kib_of_a_tile_of_64_mib_decode_two_chunks_at_most() {
    let context = Context::new(Arc::new(LocalStorage::new()), 1 << 30, 1, None);
    let context = Arc::new(context);
    let folder = Arc::new(ArrayFolder::open(context.clone(), &big_tile().into()).unwrap());
    let array = Arc::new(OpenedArray::open(folder, TimeWindow::ALL).unwrap());
    let view = Arc::new(DenseView::new(array).unwrap());
    let axes = vec![AxisSelection::contiguous(0, 4096), AxisSelection::contiguous(0, 4096)];
    let selection = Arc::new(Selection::new(axes).unwrap());
    let column = DenseColumn::new(view, selection, 0, FieldFile::Data, vec![0; 4]).unwrap();
    let mut cells = vec![0; 4096];
    column.read(0, &mut cells).unwrap();
    // The metadata and the locations of the chunks are cached by now, so only chunks are decoded from here on.
    for first in [5_000_000u64, 16_000_000, 7_777_777, 16_777_216 - 1024] {
        let before = context.fetcher.cache().statistics();
        column.read(first, &mut cells).unwrap();
        let after = context.fetcher.cache().statistics();
        let made = after.misses - before.misses;
        assert!((1..=2).contains(&made), "{made} chunks for 4 KiB at cell {first}");
        assert!(after.used - before.used <= 2 * (64 << 10) + 1024, "more than two chunks are kept");
        let row = f32::from_le_bytes([cells[0], cells[1], cells[2], cells[3]]);
        assert_eq!(row, (first / 4096) as f32);
    }
}

/// Opens an array of the fixtures with its own cache, which is large enough to evict nothing; `None` for an encrypted
/// array.
fn array(folder: &Path) -> Option<Arc<OpenedArray>> {
    let context = Context::new(Arc::new(LocalStorage::new()), 4 << 30, 1, None);
    let opened = ArrayFolder::open(Arc::new(context), &folder.into());
    match opened.and_then(|opened| OpenedArray::open(Arc::new(opened), TimeWindow::ALL)) {
        Ok(array) => Some(Arc::new(array)),
        Err(Error::Key { .. }) => None,
        Err(error) => panic!("{} does not open: {error}", folder.display()),
    }
}

#[test]
fn what_was_prepared_is_not_decoded_again() {
    let arrays = tilefs_fixtures::fixtures().join("arrays");
    let (mut prepared, mut made, mut with_key) = (0, 0, Vec::new());
    for folder in ["dense", "sparse"].into_iter().flat_map(|kind| fs::read_dir(arrays.join(kind)).unwrap()) {
        let folder = folder.unwrap().path();
        let Some(first) = array(&folder) else {
            with_key.push(folder.file_name().unwrap().to_owned());
            continue;
        };
        let first = subarray(first).unwrap();
        for field in fields(&*first) {
            for number in 0..contents(&*first, field).unwrap().len() {
                // Opens the array anew, so that no tile of the other files is cached.
                let subarray = subarray(array(&folder).unwrap()).unwrap();
                let content = &contents(&*subarray, field).unwrap()[number];
                let length = content.len();
                let misses = || subarray.array().context().fetcher.cache().statistics().misses;
                let unprepared = misses();
                content.read(0, Output::Ahead(length)).unwrap();
                let before = misses();
                made += before - unprepared;
                let mut bytes = vec![0; length as usize];
                content.read_at(0, &mut bytes).unwrap();
                assert_eq!(misses() - before, 0, "{}: {field:?}, file {number}", folder.display());
                prepared += 1;
            }
        }
    }
    assert_eq!(with_key, ["encrypted", "encrypted"], "one dense, one sparse");
    assert!(prepared > 100 && made > 500, "{prepared} files, {made} values of the cache");
}

/// Returns the peak of a process's resident memory in bytes, without the pages of the program's own file: how many of
/// these the kernel maps depends on how the program was built.
fn most_resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?) << 10)
}

/// Returns the peak memory for reading an attribute of 64 MiB sequentially with this budget.
fn resident_while_reading(budget: &str) -> u64 {
    let mut cat = Command::new(env!("CARGO_BIN_EXE_tilefs"))
        .args(["cat", "--cache-size", budget])
        .arg(big_tile())
        .arg("row.f32")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = cat.stdout.take().unwrap();
    let mut row = vec![0; ROW];
    let mut resident = 0;
    for number in 0..4096u32 {
        output.read_exact(&mut row).unwrap();
        assert!(row.chunks_exact(4).all(|cell| cell == (number as f32).to_le_bytes()), "row {number}");
        if number % 64 == 0 {
            resident = most_resident(cat.id()).unwrap_or(0).max(resident);
        }
    }
    assert_eq!(output.read(&mut row).unwrap(), 0);
    assert!(cat.wait().unwrap().success());
    assert!(resident > 0, "the process was never seen");
    resident
}

#[test]
fn memory_stays_near_the_budget_while_ten_times_as_much_is_read() {
    // The program's own memory, and its buffers.
    const BESIDE: u64 = 8 << 20;
    for budget in [6, 12, 24] {
        let resident = resident_while_reading(&format!("{budget}M"));
        assert!(resident <= (budget << 20) + BESIDE, "{} MiB resident with {budget}", resident >> 20);
    }
    // This would be the peak if the budget had no effect.
    let large = resident_while_reading("240M");
    assert!(large >= (6 << 20) + 4 * BESIDE, "{} MiB resident with forty times the budget", large >> 20);
}
