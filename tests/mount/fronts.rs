//! Files whose length takes long to find out: their first bytes are there at once, and whoever asks for the length gets the
//! exact one.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tilefs::error::Result;
use tilefs::export::{Content, Forward};
use tilefs::fuse::{Mount, MountOptions};
use tilefs::tree::Folder;
use tilefs::tree::made::{FixedFolder, MadeFile};

use crate::calls;
use crate::harness::{Place, Watchdog, can_mount};

/// So long that not all of it is front.
const LENGTH: usize = 5_000_001;

fn text() -> Vec<u8> {
    (0..LENGTH).map(|place| (place % 251) as u8).collect()
}

struct FromFront {
    text: Vec<u8>,
    at: usize,
}

impl Forward for FromFront {
    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let end = (self.at + 10_000).min(self.text.len());
        out.clear();
        out.extend_from_slice(&self.text[self.at..end]);
        self.at = end;
        Ok(!out.is_empty())
    }
}

/// A mount of one such file, and how often all of it was made.
struct Long {
    // Dropped in this order.
    _mount: Mount,
    place: Place,
    passes: Arc<AtomicU64>,
}

impl Long {
    fn mount() -> Long {
        let (place, passes) = (Place::new(), Arc::<AtomicU64>::default());
        let counted = passes.clone();
        let make = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(text()) as Arc<dyn Content>)
        };
        let file = MadeFile::new(SystemTime::UNIX_EPOCH, make);
        let file = file.with_forward(|| Ok(FromFront { text: text(), at: 0 })).that_takes_long();
        let mut root = FixedFolder::new(SystemTime::UNIX_EPOCH);
        root.add_file("long", file);
        let mount = Mount::new(Arc::new(root) as Arc<dyn Folder>, place.path(), &MountOptions::new("/long")).unwrap();
        Long { _mount: mount, place, passes }
    }

    fn path(&self) -> std::path::PathBuf {
        self.place.path().join("long")
    }

    fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }
}

#[test]
fn the_front_of_a_long_file_is_there_at_once() {
    let _watchdog = Watchdog::start("the_front_of_a_long_file_is_there_at_once");
    if !can_mount() {
        return;
    }
    let long = Long::mount();
    let output = Command::new("head").args(["-c", "1000"]).arg(long.path()).output().unwrap();
    assert_eq!(output.stdout, text()[..1000]);
    if long.passes() > 0 {
        // A kernel that cannot map what it does not cache.
        return;
    }
    let file = File::open(long.path()).unwrap();
    let mut bytes = [0; 500];
    file.read_exact_at(&mut bytes, 100_000).unwrap();
    assert_eq!((&bytes[..], long.passes()), (&text()[100_000..100_500], 0));
    // Behind the front all of it is made, once.
    file.read_exact_at(&mut bytes, LENGTH as u64 - 500).unwrap();
    assert_eq!((&bytes[..], long.passes()), (&text()[LENGTH - 500..], 1));
    assert_eq!((file.metadata().unwrap().len(), long.passes()), (LENGTH as u64, 1));
}

#[test]
fn every_first_look_at_a_long_file_is_right() {
    let _watchdog = Watchdog::start("every_first_look_at_a_long_file_is_right");
    if !can_mount() {
        return;
    }
    let text = text();
    type Look = fn(&std::path::Path, &[u8]);
    let looks: [(&str, Look); 8] = [
        ("stat", |path, text| assert_eq!(fs::metadata(path).unwrap().len(), text.len() as u64)),
        ("fstat", |path, text| assert_eq!(File::open(path).unwrap().metadata().unwrap().len(), text.len() as u64)),
        ("seek", |path, text| {
            assert_eq!(File::open(path).unwrap().seek(SeekFrom::End(-7)).unwrap(), text.len() as u64 - 7);
        }),
        ("read", |path, text| assert!(fs::read(path).unwrap() == text)),
        ("cat", |path, text| assert!(Command::new("cat").arg(path).output().unwrap().stdout == text)),
        ("tail", |path, text| {
            let output = Command::new("tail").args(["-c", "3000"]).arg(path).output().unwrap();
            assert_eq!(output.stdout, text[text.len() - 3000..]);
        }),
        ("map", |path, text| {
            assert!(calls::read_mapped(&File::open(path).unwrap(), 0, text.len()) == text);
        }),
        // Which asks for no length, and goes through the kernel's cache.
        ("sendfile", |path, text| assert!(calls::sent(&File::open(path).unwrap()) == text)),
    ];
    for (name, look) in looks {
        let long = Long::mount();
        eprintln!("{name}");
        look(&long.path(), &text);
        assert!(long.passes() <= 1, "{name}");
        // And once more, now that it is known.
        look(&long.path(), &text);
    }
}
