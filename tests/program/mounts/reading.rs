//! Tests bytes read through the kernel: they are right at every offset, at every size, and in every way of reading.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::Ordering;
use std::thread;

use tilefs_vfs::fuse::MountOptions;

use super::calls;
use super::harness::{Toy, Watchdog, can_mount, eventually};
use support::toy::{BIG, DAMAGED_FROM, fill};

fn expected(offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(offset, &mut bytes);
    bytes
}

fn read(file: &File, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Offsets all over `big.u64`, the same in every run.
fn places() -> impl Iterator<Item = (u64, usize)> {
    (0_u64..300).map(|step| {
        let random = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let length = 1 + (random >> 40) as usize % 300_000;
        ((random >> 8) % (BIG - length as u64), length)
    })
}

#[test]
fn every_offset_gives_the_bytes_that_are_there() {
    let _watchdog = Watchdog::start("every_offset_gives_the_bytes_that_are_there");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let file = File::open(toy.path("big.u64")).unwrap();
    for (offset, length) in places().chain([(0, 1), (0, 3 << 20), (BIG - 1, 1), (BIG - 3_000_001, 3_000_001)]) {
        assert!(read(&file, offset, length).unwrap() == expected(offset, length), "{length} bytes at {offset}");
    }
    let mut bytes = [7; 100];
    assert_eq!(file.read_at(&mut bytes, BIG - 10).unwrap(), 10);
    assert_eq!(file.read_at(&mut bytes, BIG).unwrap(), 0);
    assert_eq!(file.read_at(&mut bytes, BIG + 4096).unwrap(), 0);
    assert_eq!(fs::read(toy.path("hello.txt")).unwrap(), b"hello\n");
    assert_eq!(fs::read(toy.path("empty.bin")).unwrap(), b"");
    assert_eq!(fs::read(toy.path("slice/12/value.txt")).unwrap(), b"hello\n");
}

#[test]
fn mapped_files_and_direct_reads_are_the_same() {
    let _watchdog = Watchdog::start("mapped_files_and_direct_reads_are_the_same");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let path = toy.path("big.u64");
    let file = File::open(&path).unwrap();
    let direct = fs::File::options().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    for (offset, length) in places().take(100) {
        assert!(calls::read_mapped(&file, offset as usize, length) == expected(offset, length), "mapped at {offset}");
        let offset = offset & !4095;
        // Memory for such reads must begin at a page.
        let mut bytes = vec![0; (64 << 10) + 4096];
        let start = bytes.as_ptr().align_offset(4096);
        direct.read_exact_at(&mut bytes[start..start + (64 << 10)], offset).unwrap();
        assert!(bytes[start..start + (64 << 10)] == expected(offset, 64 << 10), "direct at {offset}");
    }

    let mut options = MountOptions::new("/toy");
    options.direct_io = true;
    let uncached = Toy::mount_with(&options);
    let file = File::open(uncached.path("big.u64")).unwrap();
    for (offset, length) in places().take(100) {
        assert!(read(&file, offset, length).unwrap() == expected(offset, length), "uncached at {offset}");
    }
}

#[test]
fn damage_is_an_error_where_it_is_and_nowhere_else() {
    let _watchdog = Watchdog::start("damage_is_an_error_where_it_is_and_nowhere_else");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let file = File::open(toy.path("damaged.bin")).unwrap();
    let eio = |result: std::io::Result<Vec<u8>>| assert_eq!(result.unwrap_err().raw_os_error(), Some(libc::EIO));
    eio(read(&file, DAMAGED_FROM, 100));
    eio(read(&file, 3 << 20, 1));
    assert!(read(&file, 0, DAMAGED_FROM as usize - 4096).unwrap() == expected(0, DAMAGED_FROM as usize - 4096));
    // A retry is a new attempt, not a kept page of zeros.
    eio(read(&file, DAMAGED_FROM, 100));

    eio(fs::read(toy.path("panics.bin")));
    assert_eq!(fs::metadata(toy.path("lengthless.bin")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(fs::metadata(toy.path("unsupported")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(fs::read(toy.path("hello.txt")).unwrap(), b"hello\n");
}

#[test]
fn who_needs_no_work_does_not_wait_for_who_does() {
    let _watchdog = Watchdog::start("who_needs_no_work_does_not_wait_for_who_does");
    if !can_mount() {
        return;
    }
    let mut options = MountOptions::new("/toy");
    // With direct I/O, the kernel requests only what is read, and nothing ahead.
    options.direct_io = true;
    let toy = Toy::mount_with(&options);
    let gate = &toy.counters.gate;
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let path = toy.path("gated.bin");
                scope.spawn(move || read(&File::open(path).unwrap(), reader << 20, 4096).unwrap())
            })
            .collect();
        eventually("both are at work", || gate.waiting() == 2);
        for number in 0..40 {
            assert_eq!(fs::read(toy.path(&format!("slice/{number}/value.txt"))).unwrap(), b"hello\n");
        }
        assert_eq!(gate.waiting(), 2);
        gate.open();
        for (reader, bytes) in (0..).zip(readers) {
            assert!(bytes.join().unwrap() == expected(reader << 20, 4096));
        }
    });
}

#[test]
fn only_sequential_readers_are_read_ahead() {
    let _watchdog = Watchdog::start("only_sequential_readers_are_read_ahead");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let prepared = || toy.counters.prepared.load(Ordering::Relaxed);
    let file = File::open(toy.path("big.u64")).unwrap();
    for (offset, _) in places() {
        read(&file, offset, 4096).unwrap();
    }
    assert_eq!(prepared(), 0);

    let mut file = File::open(toy.path("decoded.bin")).unwrap();
    let mut bytes = vec![0; 64 << 20];
    file.read_exact(&mut bytes).unwrap();
    assert!(bytes == expected(0, bytes.len()));
    // The reader may sometimes overtake the workers.
    assert!(prepared() > 32 << 20, "{} bytes prepared", prepared());
    assert!(prepared() <= (64 + 16) << 20, "{} bytes prepared", prepared());
}
