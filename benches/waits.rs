//! The latency of reading a small file from a mount while other readers wait for slow files: `cargo bench --bench
//! waits`.
//!
//! It must be about the same with and without slow readers: fast requests do not wait for slow ones.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use divan::Bencher;
use support::toy;
use tilefs_vfs::fuse::{FuseMount, MountOptions};

fn main() {
    divan::main();
}

/// Reads a file in a folder that is looked up anew each time, beside `slow_readers` readers of `slow.bin`.
#[divan::bench(args = [0, 1, 2], sample_count = 50, sample_size = 4)]
fn beside_slow_readers(bencher: Bencher, slow_readers: u64) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let _mount = FuseMount::new(toy::root(&Arc::default()), place.path(), &MountOptions::new("/toy")).expect("a mount");
    let (done, number) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..slow_readers {
            let (path, done) = (place.path().join("slow.bin"), &done);
            scope.spawn(move || {
                let file = File::open(path).expect("a file of the mount opens");
                let mut step = reader;
                while !done.load(Ordering::Relaxed) {
                    file.read_exact_at(&mut [0; 4096], step % 16 * (256 << 10)).expect("a slow file is read");
                    step += slow_readers;
                }
            });
        }
        bencher.bench_local(|| {
            let number = number.fetch_add(1, Ordering::Relaxed);
            fs::read(place.path().join(format!("slice/{number}/value.txt"))).expect("a small file is read")
        });
        done.store(true, Ordering::Relaxed);
    });
}
