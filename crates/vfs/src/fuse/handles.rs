//! Handles of open files and folders: numbers that the kernel passes back with each request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Open files, or open folders.
pub struct Handles<T> {
    open: RwLock<HashMap<u64, Arc<T>>>,
    last: AtomicU64,
}

impl<T> Handles<T> {
    pub fn new() -> Self {
        Handles { open: RwLock::default(), last: AtomicU64::new(0) }
    }

    /// Opens an item and returns its number.
    pub fn open(&self, what: Arc<T>) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.write().unwrap_or_else(PoisonError::into_inner).insert(number, what);
        number
    }

    /// Returns the item of a number; `None` if it was closed or never opened.
    pub fn get(&self, number: u64) -> Option<Arc<T>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Returns how many are open.
    pub fn count(&self) -> usize {
        self.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether `is_wanted` says so of an open item; asks in any order, until one is found.
    pub fn any(&self, is_wanted: impl FnMut(&Arc<T>) -> bool) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).values().any(is_wanted)
    }

    /// Closes a number and returns its item.
    pub fn close(&self, number: u64) -> Option<Arc<T>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_never_used_twice() {
        let handles = Handles::new();
        let first = handles.open(Arc::new("a"));
        assert_eq!(handles.close(first).as_deref(), Some(&"a"));
        let second = handles.open(Arc::new("b"));
        assert_ne!(first, second);
        assert_eq!(handles.count(), 1);
        assert!(handles.get(first).is_none() && handles.close(first).is_none());
        assert_eq!(handles.get(second).as_deref(), Some(&"b"));
    }
}
