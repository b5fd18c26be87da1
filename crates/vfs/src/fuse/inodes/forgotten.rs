//! The names of inodes that the kernel has forgotten, by number. A file handle, as an NFS server gives to its clients,
//! holds nothing but a number, and outlives what the kernel remembers.

use tilefs_base::lru_cache::{Kept, LruCache};

/// Maximum number of names.
const MOST: usize = 1 << 18;

/// Approximate limit for their memory. The names that were forgotten longest ago make room for others, and handles that
/// mean them are stale.
const MOST_BYTES: usize = 16 << 20;

/// Approximate bytes of a name without its text.
const NAME: usize = 120;

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenName {
    /// The number of the folder, which the kernel may have forgotten, too.
    pub folder: u64,
    pub name: Box<str>,
}

/// The names by number.
pub struct ForgottenNames(LruCache<u64, ForgottenName>);

impl ForgottenNames {
    pub fn new() -> Self {
        ForgottenNames(LruCache::with_bytes(MOST, MOST_BYTES))
    }

    pub fn put(&self, number: u64, name: ForgottenName) {
        let bytes = NAME + name.name.len();
        self.0.change(|kept| kept.put(number, name, bytes));
    }

    pub fn get(&self, number: u64) -> Option<ForgottenName> {
        self.0.get(&number)
    }

    /// Removes a name that the kernel knows again.
    pub fn remove(&self, number: u64) {
        self.0.change(|kept| Kept::remove(kept, &number));
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> ForgottenName {
        ForgottenName { folder: 1, name: format!("{number:01000}").into() }
    }

    #[test]
    fn the_memory_of_forgotten_names_is_bounded() {
        let names = ForgottenNames::new();
        (0..100_000).for_each(|number| names.put(number, name(number)));
        assert!(names.count() > 10_000 && names.count() * 1000 < MOST_BYTES, "{}", names.count());
        assert_eq!(names.get(99_999), Some(name(99_999)));
        assert_eq!(names.get(0), None);
        let count = names.count();
        names.remove(99_999);
        assert_eq!((names.get(99_999), names.count()), (None, count - 1));
    }
}
