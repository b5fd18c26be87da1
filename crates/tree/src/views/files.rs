//! The list of the files of a folder, for the texts that describe it.

use std::collections::HashMap;
use std::sync::Arc;

use tilefs_vfs::node::listing::Listing;

use crate::views::facts::ViewFacts;

/// One file, or several of the same name in as many slices.
#[derive(Debug, Clone)]
pub struct FileFacts {
    /// Relative to the folder of the description.
    pub path: String,
    pub view: &'static ViewFacts,
    /// The user's name of its attribute or dimension; `None` for several or none.
    pub field: Option<Arc<str>>,
    /// `None` if it would have to be counted.
    pub bytes: Option<u64>,
    /// Whether `ls` shows it in its folder.
    pub listing: Listing,
    /// Whether `ls` shows its folder.
    pub listing_of_folder: Listing,
}

impl FileFacts {
    /// Returns whether `ls` shows it.
    pub fn is_listed(&self) -> bool {
        self.listing_of_folder.is_listed() && self.listing.is_listed()
    }

    /// Returns whether opening it may take a pass over very many cells.
    pub fn is_slow(&self) -> bool {
        self.listing.is_slow()
    }
}

/// The files of a folder, indexed by field because there may be many.
#[derive(Debug, Clone, Default)]
pub struct Files {
    all: Vec<FileFacts>,
    by_field: HashMap<Arc<str>, Vec<usize>>,
}

impl Files {
    pub fn new(all: Vec<FileFacts>) -> Self {
        let mut by_field: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut number = 0;
        // The files of a field in one folder follow each other.
        for of_one in all.chunk_by(|one, next| one.field == next.field) {
            let end = number + of_one.len();
            if let Some(field) = of_one.first().and_then(|file| file.field.clone()) {
                by_field.entry(field).or_default().extend(number..end);
            }
            number = end;
        }
        Files { all, by_field }
    }

    /// Returns all files, in the order in which they should be named.
    pub fn iter(&self) -> impl Iterator<Item = &FileFacts> {
        self.all.iter()
    }

    /// Returns the files of a field, in the same order.
    pub fn of_field(&self, field: &str) -> impl Iterator<Item = &FileFacts> {
        self.by_field.get(field).into_iter().flatten().filter_map(|&number| self.all.get(number))
    }
}
