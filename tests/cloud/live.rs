//! Arrays in object stores that change while they are mounted.

use std::fs;
use std::path::Path;

use tilefs_tree::{self as tree, MountedTree, TreeOptions};
use tilefs_vfs::ServedTree;

use super::servers::S3;
use super::{fixtures, options, read};

/// An array shows its state before the last commit; a refresh shows the commits made since, and open files do not
/// change.
#[test]
fn a_refresh_shows_what_was_committed_to_a_bucket() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("live");
    for (name, file) in [("arrays/dense/overlap", "a.i32"), ("arrays/sparse/overlap", "v.i32")] {
        let (folder, place) = (fixtures().join(name), format!("live/{name}"));
        server.put_folder(&folder, &place);
        let mut commits: Vec<_> =
            fs::read_dir(folder.join("__commits")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        commits.sort();
        let last = format!("{place}/__commits/{}", commits.pop().unwrap().to_str().unwrap());
        server.delete(&last);
        let reached = TreeOptions { is_watched: true, ..options(&server.url()) };
        let stored = tree::open_stored(Path::new(&format!("s3://{place}")), &reached).unwrap();
        let tree = MountedTree::new(stored, &reached).unwrap();
        let before = tree.root();
        let first = read(&*before, file).unwrap();
        assert!(tree.refresh().unwrap().is_none(), "{name}");

        server.put(&last, b"");
        let refreshed = tree.refresh().unwrap().expect("something was committed");
        let local = tree::open(&folder, &reached).unwrap();
        let now = read(&*local, file).unwrap();
        assert!(now != first && read(&*refreshed.root, file).unwrap() == now, "{name}");
        assert!(read(&*before, file).unwrap() == first, "{name}");
        assert!(tree.refresh().unwrap().is_none(), "{name}");
    }
}
