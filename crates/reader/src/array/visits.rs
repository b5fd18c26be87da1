//! What a walk through arrays and groups has seen.
//!
//! Groups may name each other, and one group may have the same member under several names: 24 groups of which each names
//! the next one twice have 2^24 paths. Labels lead to the same array in several ways, too. A walk therefore enters each
//! object once. It then takes as long as there are stored members, whatever they name.

use std::collections::HashSet;

use tilefs_storage::StoreKey;

use crate::array::context::Context;

/// The folders that a walk has seen. Memory: a path for each.
#[derive(Debug, Clone, Default)]
pub struct Visits {
    /// By canonical path.
    seen: HashSet<StoreKey>,
}

impl Visits {
    /// Creates a walk that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes an array, a group or another folder; returns whether it is seen for the first time.
    pub fn is_first(&mut self, context: &Context, folder: &StoreKey) -> bool {
        self.seen.insert(context.storage.canonical(folder))
    }
}
