//! The nodes that were asked for last, kept because they are often asked for again: a slice that is found is then
//! listed, and its files are opened.

use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::tree::Node;

/// How many nodes are kept at most.
pub const MOST_NODES: usize = 256;

/// Bytes of memory that these take at most, about. One is always kept, whatever it takes.
const MOST_BYTES: usize = 32 << 20;

/// Nodes by the numbers of their inodes.
pub struct RecentNodes {
    kept: Mutex<NodesByUse>,
}

struct NodesByUse {
    /// Each with what it took when it was last asked for.
    nodes: LruCache<u64, (Node, usize)>,
    bytes: usize,
}

impl RecentNodes {
    pub fn new() -> Self {
        RecentNodes { kept: Mutex::new(NodesByUse { nodes: LruCache::unbounded(), bytes: 0 }) }
    }

    /// Keeps a node, and lets those go that were not asked for the longest time. `folders` are those it is in, from
    /// the inside out: they go after it, since what it has in common with others of theirs is counted there.
    pub fn keep(&self, number: u64, node: &Node, folders: impl Iterator<Item = u64>) {
        // Dropped after the lock: a node may own much.
        let mut gone = Vec::new();
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        let bytes = node.memory();
        kept.bytes += bytes;
        if let Some(before) = kept.nodes.put(number, (node.clone(), bytes)) {
            kept.bytes -= before.1;
            gone.push(before);
        }
        for folder in folders {
            if let Some((folder, bytes)) = kept.nodes.get_mut(&folder) {
                kept.bytes -= *bytes;
                *bytes = folder.memory();
                kept.bytes += *bytes;
            }
        }
        while kept.nodes.len() > MOST_NODES || (kept.bytes > MOST_BYTES && kept.nodes.len() > 1) {
            let Some((_, last)) = kept.nodes.pop_lru() else { break };
            kept.bytes -= last.1;
            gone.push(last);
        }
        drop(guard);
    }

    /// Lets all go.
    pub fn clear(&self) {
        let gone = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *kept, NodesByUse { nodes: LruCache::unbounded(), bytes: 0 })
        };
        drop(gone);
    }

    /// Lets a node go.
    pub fn forget(&self, number: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = kept.nodes.pop(&number);
        if let Some((_, bytes)) = &gone {
            kept.bytes -= bytes;
        }
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::lazy::FixedFolder;
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

    /// Keeps folders of so many MiB each; which of them are still there.
    fn alive_of(sizes: &[usize]) -> Vec<usize> {
        let recent = RecentNodes::new();
        let keep = |(number, &size): (usize, &usize)| {
            let (node, weak) = folder(move || size << 20);
            recent.keep(number as u64, &node, iter::empty());
            weak
        };
        let folders: Vec<_> = sizes.iter().enumerate().map(keep).collect();
        (0..folders.len()).filter(|&number| folders[number].strong_count() > 0).collect()
    }

    #[test]
    fn few_nodes_are_kept_and_fewer_where_they_take_much() {
        assert_eq!(alive_of(&[0; 1000]), (744..1000).collect::<Vec<_>>());
        assert_eq!(alive_of(&[3; 100]), (90..100).collect::<Vec<_>>());
        assert_eq!(alive_of(&[100, 200]), [1]);
        assert_eq!(alive_of(&[100, 0]), [1]);
        assert_eq!(alive_of(&[20, 1, 1, 15, 10]), [1, 2, 3, 4]);
    }

    #[test]
    fn folders_stay_longer_than_what_is_in_them_and_are_weighed_with_it() {
        let recent = RecentNodes::new();
        let held = Arc::new(AtomicUsize::new(0));
        let holds = held.clone();
        let (slice, slice_alive) = folder(move || holds.load(Ordering::Relaxed));
        let (file, file_alive) = folder(|| 0);
        recent.keep(1, &slice, iter::empty());
        recent.keep(2, &file, iter::once(1));
        drop((slice, file));
        for number in 3..3 + MOST_NODES as u64 - 1 {
            recent.keep(number, &folder(|| 0).0, iter::empty());
        }
        assert_eq!((slice_alive.strong_count(), file_alive.strong_count()), (1, 0));
        // What it holds has grown since it was kept.
        held.store(100 << 20, Ordering::Relaxed);
        let (file, _) = folder(|| 0);
        recent.keep(2, &file, iter::once(1));
        assert_eq!(recent.kept.lock().unwrap().nodes.len(), 1);
        recent.keep(9, &folder(|| 0).0, iter::empty());
        assert_eq!(slice_alive.strong_count(), 0);
        let kept = recent.kept.lock().unwrap();
        assert_eq!(kept.bytes, kept.nodes.iter().map(|(_, (_, bytes))| bytes).sum::<usize>());
    }

    #[test]
    fn what_is_asked_for_again_stays_until_it_is_forgotten() {
        let recent = RecentNodes::new();
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
