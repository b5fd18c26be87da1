//! Inode numbers: which node of the tree the kernel means by a number, for as long as it remembers the number.
//!
//! A number is a hash of the path, so that it is the same in every mount of an array and hard links or copies are
//! not suspected by programs that compare numbers. The kernel counts its references; when it forgets the last one
//! the node goes, so that a million slices looked up one after the other do not stay in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tree::{Folder, Node};

/// The number of the root, fixed by the protocol.
pub const ROOT: u64 = 1;

/// A node that the kernel knows by its number.
pub struct Inode {
    pub number: u64,
    /// The number of the folder it was found in; the root is its own parent.
    pub parent: u64,
    /// Its name there; empty for the root.
    pub name: String,
    pub node: Node,
    /// The exact length of a file in bytes; 0 for a folder.
    pub size: u64,
}

/// All the inodes that the kernel remembers, and the root.
pub struct Inodes {
    table: Mutex<HashMap<u64, Remembered>>,
    hash: Hash,
}

struct Remembered {
    inode: Arc<Inode>,
    /// How many lookups the kernel has not forgotten yet.
    lookups: u64,
}

/// The number of a name in a folder; the attempt counts up when a number is taken by another path.
type Hash = fn(parent: u64, name: &str, attempt: u64) -> u64;

impl Inodes {
    /// The table of a fresh mount, which has only a root.
    pub fn new(root: Arc<dyn Folder>) -> Self {
        Self::with_hash(root, hash)
    }

    fn with_hash(root: Arc<dyn Folder>, hash: Hash) -> Self {
        let inode = Inode { number: ROOT, parent: ROOT, name: String::new(), node: Node::Folder(root), size: 0 };
        let table = HashMap::from([(ROOT, Remembered { inode: Arc::new(inode), lookups: 1 })]);
        Inodes { table: Mutex::new(table), hash }
    }

    /// What the kernel means by a number.
    pub fn get(&self, number: u64) -> Option<Arc<Inode>> {
        self.lock().get(&number).map(|remembered| Arc::clone(&remembered.inode))
    }

    /// The inode of a name that is remembered already; counts as one lookup.
    pub fn look_up(&self, parent: u64, name: &str) -> Option<Arc<Inode>> {
        let mut table = self.lock();
        let number = self.number(&table, parent, name);
        let remembered = table.get_mut(&number)?;
        remembered.lookups += 1;
        Some(Arc::clone(&remembered.inode))
    }

    /// Remembers a node; counts as one lookup. Where another thread was faster, its inode is given.
    pub fn insert(&self, parent: u64, name: &str, node: Node, size: u64) -> Arc<Inode> {
        let mut table = self.lock();
        let number = self.number(&table, parent, name);
        let remembered = table.entry(number).or_insert_with(|| Remembered {
            inode: Arc::new(Inode { number, parent, name: name.to_owned(), node, size }),
            lookups: 0,
        });
        remembered.lookups += 1;
        Arc::clone(&remembered.inode)
    }

    /// Takes back lookups; with the last one the inode goes. The root stays.
    pub fn forget(&self, number: u64, lookups: u64) {
        if number == ROOT {
            return;
        }
        let mut table = self.lock();
        if let Some(remembered) = table.get_mut(&number) {
            remembered.lookups = remembered.lookups.saturating_sub(lookups);
            if remembered.lookups == 0 {
                // Dropped after the lock: a node may own much.
                let gone = table.remove(&number);
                drop(table);
                drop(gone);
            }
        }
    }

    /// The number that a name has or would get, for listings.
    pub fn number_of(&self, parent: u64, name: &str) -> u64 {
        self.number(&self.lock(), parent, name)
    }

    /// The path from the root, for messages.
    pub fn path(&self, inode: &Inode) -> String {
        let table = self.lock();
        let mut names = vec![inode.name.as_str()];
        let mut folder = table.get(&inode.parent);
        while let Some(remembered) = folder {
            if remembered.inode.number == ROOT {
                break;
            }
            names.push(&remembered.inode.name);
            folder = table.get(&remembered.inode.parent);
        }
        names.reverse();
        names.join("/")
    }

    /// The first number, of those this path would try, that is its own or free.
    fn number(&self, table: &HashMap<u64, Remembered>, parent: u64, name: &str) -> u64 {
        (0..)
            .map(|attempt| (self.hash)(parent, name, attempt))
            .filter(|&number| number > ROOT)
            .find(|number| {
                table.get(number).is_none_or(|taken| taken.inode.parent == parent && taken.inode.name == name)
            })
            .unwrap_or(ROOT)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Remembered>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// FNV-1a with the finaliser of MurmurHash3, whose bits are all good. 63 bits: some programs keep inode numbers in
/// a signed integer.
fn hash(parent: u64, name: &str, attempt: u64) -> u64 {
    let bytes = parent.to_le_bytes().into_iter().chain(attempt.to_le_bytes()).chain(name.bytes());
    let mut hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    (hash ^ (hash >> 33)) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::tree::Entry;
    use std::time::SystemTime;

    struct Empty;

    impl Folder for Empty {
        fn lookup(&self, _name: &str) -> Result<Option<Node>> {
            Ok(None)
        }

        fn list(&self) -> Result<Vec<Entry>> {
            Ok(Vec::new())
        }

        fn modified(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    fn folder() -> Node {
        Node::Folder(Arc::new(Empty))
    }

    #[test]
    fn numbers_depend_on_nothing_but_the_path() {
        let (one, other) = (Inodes::new(Arc::new(Empty)), Inodes::new(Arc::new(Empty)));
        let slice = one.insert(ROOT, "slice", folder(), 0);
        let deep = one.insert(slice.number, "0..9", folder(), 0);
        other.insert(ROOT, "slice", folder(), 0);
        assert_eq!(other.number_of(slice.number, "0..9"), deep.number);
        assert_ne!(other.number_of(ROOT, "0..9"), deep.number);
        assert_eq!(one.path(&deep), "slice/0..9");
        // The hash must never change: backup programs recognise files by these numbers.
        assert_eq!(slice.number, 0x7423_28d3_2d83_3528);
    }

    #[test]
    fn nodes_go_with_the_last_reference_of_the_kernel() {
        let inodes = Inodes::new(Arc::new(Empty));
        let number = inodes.insert(ROOT, "a", folder(), 0).number;
        assert_eq!(inodes.insert(ROOT, "a", folder(), 0).number, number);
        assert!(inodes.look_up(ROOT, "a").is_some());
        inodes.forget(number, 2);
        assert!(inodes.get(number).is_some());
        inodes.forget(number, 1);
        assert!(inodes.get(number).is_none());
        assert!(inodes.look_up(ROOT, "a").is_none());
        inodes.forget(number, 1);
        inodes.forget(ROOT, 100);
        assert!(inodes.get(ROOT).is_some());
    }

    #[test]
    fn paths_with_the_same_hash_get_different_numbers() {
        let inodes = Inodes::with_hash(Arc::new(Empty), |_, _, attempt| attempt % 5);
        let numbers: Vec<u64> =
            ["a", "b", "c"].iter().map(|name| inodes.insert(ROOT, name, folder(), 0).number).collect();
        assert_eq!(numbers, [2, 3, 4]);
        assert_eq!(inodes.number_of(ROOT, "b"), 3);
        assert_eq!(inodes.look_up(ROOT, "c").map(|inode| inode.name.clone()).as_deref(), Some("c"));
    }

    #[test]
    fn a_hundred_thousand_slices_leave_nothing_behind() {
        let inodes = Inodes::new(Arc::new(Empty));
        for number in 0..100_000 {
            let inode = inodes.insert(ROOT, &number.to_string(), folder(), 0);
            inodes.forget(inode.number, 1);
        }
        assert_eq!(inodes.lock().len(), 1);
    }
}
