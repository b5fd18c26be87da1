//! `nonempty/`: the whole tree of a dense array again, restricted to the smallest box that holds every written cell.
//!
//! It equals a mount with `--extent nonempty`, so users need not mount again because of an enormous domain. The box is
//! determined, and the tree made, when something in it is first needed.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;

use crate::array::explain::Explanations;
use crate::array::{FieldFolderKind, tree_of};
use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::fields::array_form::ArrayForm;
use crate::fields::{FieldFolder, FieldNames};
use crate::node::ExtendedAttributes;
use crate::node::lazy::FixedFolder;
use crate::node::{Entry, Folder, NODE, Node};
use crate::options::{Extent, OpenOptions};
use tilefs_reader::array::SingleFlight;

/// Its name, beside `slice/`.
pub const NONEMPTY: &str = "nonempty";

/// The folder of the non-empty domain.
pub struct NonEmptyFolder {
    dense: Arc<DenseArray>,
    names: Arc<FieldNames>,
    modified: SystemTime,
    options: Arc<OpenOptions>,
    form: ArrayForm,
    made: SingleFlight<(FixedFolder, Arc<Explanations>)>,
}

impl NonEmptyFolder {
    pub fn new(
        dense: Arc<DenseArray>,
        names: Arc<FieldNames>,
        modified: SystemTime,
        options: Arc<OpenOptions>,
        form: ArrayForm,
    ) -> Self {
        NonEmptyFolder { dense, names, modified, options, form, made: SingleFlight::new() }
    }

    /// Returns the source of its explanatory files.
    ///
    /// # Errors
    /// Fails if a footer cannot be read, or the box is larger than any file.
    pub fn explanations(&self) -> Result<&Explanations> {
        Ok(&self.made()?.1)
    }

    fn made(&self) -> Result<&(FixedFolder, Arc<Explanations>)> {
        self.made.get_or_retry(|| self.make())
    }

    fn make(&self) -> Result<(FixedFolder, Arc<Explanations>)> {
        let (selection, covers) = self.dense.default_selection(Extent::NonEmpty)?;
        let subarray = Arc::new(DenseSubarray::new(self.dense.clone(), selection));
        let whole = FieldFolder {
            subarray,
            names: self.names.clone(),
            modified: self.modified,
            shown: self.options.shown.clone(),
            form: self.form.clone(),
        };
        tree_of(whole, covers, &self.options, FieldFolderKind::Variant(NONEMPTY), None)
    }
}

impl Folder for NonEmptyFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        self.made()?.0.lookup(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.made()?.0.list()
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        self.made.get().map_or(NODE, |(folder, _)| folder.memory())
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        self.made().map(|(folder, _)| folder.extended_attributes()).unwrap_or_default()
    }
}
