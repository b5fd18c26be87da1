//! Recently used values: the least recently used ones are evicted if there are too many, or if they take too much
//! memory.

use std::borrow::Borrow;
use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, PoisonError};

use crate::error::Result;

/// Recently used values by key. Some of the latest are never evicted, however much memory they take.
pub struct LruCache<K: Hash + Eq, V> {
    kept: Mutex<Kept<K, V>>,
    /// Maximum number of values, and maximum size of all together in bytes.
    most: usize,
    most_bytes: usize,
    /// Number of values that are kept in any case.
    least: usize,
}

/// The cached values.
pub struct Kept<K: Hash + Eq, V> {
    /// Each value with its size in bytes.
    values: lru::LruCache<K, (V, usize)>,
    bytes: usize,
    /// Evicted values, which are dropped after the lock is released: dropping one may be expensive, or wait for other
    /// locks.
    gone: Vec<V>,
}

impl<K: Hash + Eq, V: Clone> LruCache<K, V> {
    /// Creates a cache of at most this many values.
    pub fn new(most: usize) -> Self {
        Self::with_bytes(most, usize::MAX)
    }

    /// Creates a cache of at most this many values, with at most this many bytes together.
    pub fn with_bytes(most: usize, most_bytes: usize) -> Self {
        let kept = Kept { values: lru::LruCache::unbounded(), bytes: 0, gone: Vec::new() };
        LruCache { kept: Mutex::new(kept), most: most.max(1), most_bytes, least: 1 }
    }

    /// Keeps this many values, however much memory they take; the default is one.
    pub fn at_least(self, least: usize) -> Self {
        LruCache { most: self.most.max(least), least: least.max(1), ..self }
    }

    /// Returns the value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.change(|kept| kept.values.get(key).map(|(value, _)| value.clone()))
    }

    /// Returns the value of a key; makes it on a miss. No lock is held meanwhile, so two threads may make the same
    /// value: both get the first.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make(&self, key: K, make: impl FnOnce() -> Result<V>) -> Result<V> {
        if let Some(known) = self.get(&key) {
            return Ok(known);
        }
        let made = make()?;
        Ok(self.change(|kept| match kept.values.get(&key) {
            Some((first, _)) => first.clone(),
            None => {
                kept.put(key, made.clone(), 0);
                made
            }
        }))
    }

    /// Adds a value of negligible size.
    pub fn put(&self, key: K, value: V) {
        self.change(|kept| kept.put(key, value, 0));
    }

    /// Changes the contents. Afterwards, evicts the least recently used values.
    pub fn change<T>(&self, change: impl FnOnce(&mut Kept<K, V>) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut kept);
        while kept.values.len() > self.most || (kept.bytes > self.most_bytes && kept.values.len() > self.least) {
            let Some((_, (value, bytes))) = kept.values.pop_lru() else { break };
            kept.bytes = kept.bytes.saturating_sub(bytes);
            kept.gone.push(value);
        }
        let gone = mem::take(&mut kept.gone);
        drop(kept);
        drop(gone);
        changed
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.change(|kept| kept.values.len())
    }

    /// Returns all values and their keys, the least recently used one first.
    pub fn all(&self) -> Vec<(K, V)>
    where
        K: Clone,
    {
        self.change(|kept| kept.values.iter().rev().map(|(key, (value, _))| (key.clone(), value.clone())).collect())
    }
}

impl<K: Hash + Eq, V: Clone> Kept<K, V> {
    /// Adds a value of this many bytes.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((value, bytes)) = self.values.put(key, (value, bytes)) {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.gone.push(value);
        }
    }

    /// Marks a value as used, and updates its size.
    pub fn resize(&mut self, key: &K, bytes_of: impl FnOnce(&V) -> usize) {
        if let Some((value, bytes)) = self.values.get_mut(key) {
            let now = bytes_of(value);
            self.bytes = self.bytes.saturating_sub(mem::replace(bytes, now)).saturating_add(now);
        }
    }

    /// Removes a value.
    pub fn remove(&mut self, key: &K) {
        if let Some((value, bytes)) = self.values.pop(key) {
            self.bytes = self.bytes.saturating_sub(bytes);
            self.gone.push(value);
        }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        while let Some((_, (value, _))) = self.values.pop_lru() {
            self.gone.push(value);
        }
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;

    /// The same with a list, the least recently used value first.
    fn listed(list: &mut Vec<(u8, usize)>, key: u8, bytes: Option<usize>, [most, most_bytes, least]: [usize; 3]) {
        let known = list.iter().position(|(other, _)| *other == key).map(|number| list.remove(number));
        list.extend(bytes.map(|bytes| (key, bytes)).or(known));
        let bytes = |list: &[(u8, usize)]| list.iter().map(|(_, bytes)| bytes).sum::<usize>();
        while list.len() > most || (list.len() > least && bytes(list) > most_bytes) {
            list.remove(0);
        }
    }

    proptest! {
        #[test]
        fn the_latest_values_are_kept(
            steps in prop::collection::vec((0u8..6, 0usize..40, 0u8..5), 0..60),
            most in 1usize..6, most_bytes in 0usize..90, least in 1usize..4
        ) {
            let (recent, mut list) = (LruCache::with_bytes(most, most_bytes).at_least(least), Vec::new());
            let limits = [most.max(least), most_bytes, least];
            for (key, bytes, step) in steps {
                match step {
                    0 | 1 => {
                        recent.change(|kept| kept.put(key, bytes, bytes));
                        listed(&mut list, key, Some(bytes), limits);
                    }
                    2 => {
                        prop_assert_eq!(recent.get(&key), list.iter().find(|(other, _)| *other == key).map(|one| one.1));
                        listed(&mut list, key, None, limits);
                    }
                    3 => {
                        recent.change(|kept| kept.remove(&key));
                        list.retain(|(other, _)| *other != key);
                    }
                    _ => {
                        recent.change(Kept::clear);
                        list.clear();
                    }
                }
                prop_assert_eq!(recent.all(), list.clone());
                prop_assert_eq!(recent.count(), list.len());
                prop_assert_eq!(recent.change(|kept| kept.bytes), list.iter().map(|(_, bytes)| bytes).sum::<usize>());
            }
        }
    }

    #[test]
    fn values_that_grow_push_others_out() {
        let recent = LruCache::with_bytes(9, 10);
        recent.change(|kept| kept.put("a", 1, 5));
        recent.change(|kept| kept.put("b", 2, 5));
        recent.change(|kept| kept.resize(&"a", |value| 5 + value));
        assert_eq!(recent.all(), [("a", 1)]);
    }

    #[test]
    fn values_are_made_once_and_errors_are_not_kept() {
        let recent = LruCache::new(2);
        assert!(recent.get_or_make(1, || Err(Error::damaged("no"))).is_err());
        assert_eq!(recent.get_or_make(1, || Ok('a')).unwrap(), 'a');
        assert_eq!(recent.get_or_make(1, || Err(Error::damaged("made before"))).unwrap(), 'a');
    }
}
