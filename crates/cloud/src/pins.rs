//! Pins each key to the first object seen under it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{PoisonError, RwLock};

use tilefs_storage::StoreKey;

use crate::uri;

/// Identity of an object when first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub length: u64,
    /// The ETag without quotes, which changes with each replacement; `None` if the store has none.
    tag: Option<Box<str>>,
}

impl Pin {
    pub fn new(length: u64, tag: Option<&str>) -> Self {
        // Some stores list ETags without quotes.
        let tag = tag.map(|tag| tag.trim_matches('"').into());
        Pin { length, tag }
    }

    /// Returns the value of `If-Match`, so that the store rejects a request for a replaced object.
    pub fn condition(&self) -> Option<String> {
        self.tag.as_ref().map(|tag| format!("\"{tag}\""))
    }

    /// Returns the ETag.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns whether two observations may be of the same object.
    pub fn is(&self, other: &Pin) -> bool {
        self.length == other.length && (self.tag == other.tag || self.tag.is_none() || other.tag.is_none())
    }
}

/// The first object seen under each key. Memory: some hundred bytes per object. Keys are stored as 64-bit hashes, so
/// two keys collide once in 2^64 pairs.
#[derive(Debug, Default)]
pub struct Pins {
    hasher: RandomState,
    pins: RwLock<HashMap<u64, Pin>>,
}

impl Pins {
    /// Pins an object unless its key is already pinned.
    pub fn put(&self, key: &StoreKey, pin: Pin) {
        let hash = self.hash(key);
        self.pins.write().unwrap_or_else(PoisonError::into_inner).entry(hash).or_insert(pin);
    }

    /// Returns the pinned object.
    pub fn get(&self, key: &StoreKey) -> Option<Pin> {
        self.pins.read().unwrap_or_else(PoisonError::into_inner).get(&self.hash(key)).cloned()
    }

    fn hash(&self, key: &StoreKey) -> u64 {
        self.hasher.hash_one(uri::canonical(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_object_stays() {
        let (pins, key) = (Pins::default(), StoreKey::from("gs://bucket/a"));
        assert_eq!(pins.get(&key), None);
        pins.put(&key, Pin::new(3, Some("\"one\"")));
        pins.put(&key, Pin::new(4, Some("two")));
        let pin = pins.get(&"gcs://bucket/b/../a".into()).unwrap();
        assert_eq!((pin.length, pin.condition().as_deref(), pin.tag()), (3, Some("\"one\""), Some("one")));
        assert!(pin.is(&Pin::new(3, Some("one"))) && pin.is(&Pin::new(3, None)));
        assert!(!pin.is(&Pin::new(3, Some("two"))) && !pin.is(&Pin::new(4, None)));
    }
}
