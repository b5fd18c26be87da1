//! Keeps recently used nodes, because they are often needed again soon: after a lookup of a slice, it is listed and its
//! files are opened.

use tilefs_base::lru_cache::{Kept, LruCache};

use crate::node::Node;

/// Maximum number of nodes.
pub const MAX_NODES: usize = 256;

/// Approximate maximum of their memory in bytes. One node is always kept, whatever its size.
const MOST_BYTES: usize = 32 << 20;

/// Nodes by inode number, each with its memory at last use.
pub struct KeptNodes(LruCache<u64, Node>);

impl KeptNodes {
    pub fn new() -> Self {
        KeptNodes(LruCache::with_bytes(MAX_NODES, MOST_BYTES))
    }

    /// Keeps a node and evicts the least recently used ones. `folders` are its ancestors, innermost first. They are
    /// evicted after it, because memory shared by several children is accounted to them.
    pub fn keep(&self, number: u64, node: &Node, folders: impl Iterator<Item = u64>) {
        self.0.change(|kept| {
            kept.put(number, node.clone(), node.memory());
            folders.for_each(|folder| kept.resize(&folder, Node::memory));
        });
    }

    /// Drops all nodes.
    pub fn clear(&self) {
        self.0.change(Kept::clear);
    }

    /// Drops a node.
    pub fn forget(&self, number: u64) {
        self.0.change(|kept| kept.remove(&number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::lazy::FixedFolder;
    use std::iter;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Weak};
    use std::time::SystemTime;

    fn folder(bytes: impl Fn() -> usize + Send + Sync + 'static) -> (Node, Weak<FixedFolder>) {
        let mut folder = FixedFolder::new(SystemTime::UNIX_EPOCH);
        folder.holds(bytes);
        let folder = Arc::new(folder);
        let weak = Arc::downgrade(&folder);
        (Node::Folder(folder), weak)
    }

    /// Keeps folders of these sizes in MiB; returns which are still alive.
    fn alive_of(sizes: &[usize]) -> Vec<usize> {
        let recent = KeptNodes::new();
        let keep = |(number, &size): (usize, &usize)| {
            let (node, weak) = folder(move || size << 20);
            recent.keep(number as u64, &node, iter::empty());
            weak
        };
        let folders: Vec<_> = sizes.iter().enumerate().map(keep).collect();
        (0..folders.len()).filter(|&number| folders[number].strong_count() > 0).collect()
    }

    #[test]
    fn kept_nodes_are_bounded_by_number_and_memory() {
        assert_eq!(alive_of(&[0; 1000]), (744..1000).collect::<Vec<_>>());
        assert_eq!(alive_of(&[3; 100]), (90..100).collect::<Vec<_>>());
        assert_eq!(alive_of(&[100, 200]), [1]);
        assert_eq!(alive_of(&[100, 0]), [1]);
        assert_eq!(alive_of(&[20, 1, 1, 15, 10]), [1, 2, 3, 4]);
    }

    #[test]
    fn folders_outlive_and_account_for_their_children() {
        let recent = KeptNodes::new();
        let held = Arc::new(AtomicUsize::new(0));
        let holds = held.clone();
        let (slice, slice_alive) = folder(move || holds.load(Ordering::Relaxed));
        let (file, file_alive) = folder(|| 0);
        recent.keep(1, &slice, iter::empty());
        recent.keep(2, &file, iter::once(1));
        drop((slice, file));
        for number in 3..3 + MAX_NODES as u64 - 1 {
            recent.keep(number, &folder(|| 0).0, iter::empty());
        }
        assert_eq!((slice_alive.strong_count(), file_alive.strong_count()), (1, 0));
        // Its content has grown since it was kept.
        held.store(100 << 20, Ordering::Relaxed);
        let (file, _) = folder(|| 0);
        recent.keep(2, &file, iter::once(1));
        assert_eq!(recent.0.count(), 1);
        recent.keep(9, &folder(|| 0).0, iter::empty());
        assert_eq!(slice_alive.strong_count(), 0);
    }

    #[test]
    fn reused_nodes_stay_until_forgotten() {
        let recent = KeptNodes::new();
        let (node, alive) = folder(|| 0);
        recent.keep(0, &node, iter::empty());
        drop(node);
        for number in 1..10_000 {
            recent.keep(number, &folder(|| 1 << 20).0, iter::empty());
            let Some(node) = alive.upgrade() else { panic!("gone after {number}") };
            recent.keep(0, &Node::Folder(node), iter::empty());
        }
        recent.forget(0);
        recent.forget(0);
        assert_eq!(alive.strong_count(), 0);
    }
}
