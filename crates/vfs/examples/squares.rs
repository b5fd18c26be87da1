//! Mounts a folder in which each number is a file with its square: `squares FOLDER`, until Ctrl-C or `umount FOLDER`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_vfs::fuse::{FuseMount, MountOptions, Signals, serve};
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::{Entry, Folder, Node};

/// A folder that has a file for each number, and lists the first ten.
struct Squares {
    since: SystemTime,
}

impl Folder for Squares {
    fn lookup(&self, name: &str) -> tilefs_base::error::Result<Option<Node>> {
        let number: Option<u64> = name.parse().ok();
        let Some(square) = number.and_then(|number| number.checked_mul(number)) else { return Ok(None) };
        // The text is made when the file is first read.
        let file = LazyFile::text(self.since, move || Ok(format!("{square}\n")));
        Ok(Some(Node::File(Arc::new(file))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        Some(format!("{name} has no square of 64 bits"))
    }

    fn list(&self) -> tilefs_base::error::Result<Vec<Entry>> {
        Ok((0..10).map(|number| Entry::file(number.to_string())).collect())
    }

    fn modified(&self) -> SystemTime {
        self.since
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: squares FOLDER")?;
    // Before any thread starts, so that all leave signals to the one that waits for them.
    let signals = Signals::hold()?;
    signals.wait();
    let root: Arc<dyn Folder> = Arc::new(Squares { since: SystemTime::now() });
    let mount = FuseMount::new(root, Path::new(&folder), &MountOptions::new("squares"))?;
    Ok(serve(mount, signals)?)
}
