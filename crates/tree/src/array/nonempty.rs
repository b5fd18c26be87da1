//! `nonempty/`: the whole tree of a dense array again, restricted to the smallest box that holds every written cell.
//!
//! It equals a mount with `--extent nonempty`, so users need not mount again because of an enormous domain. The box is
//! determined, and the tree made, when something in it is first needed.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::lazy::FixedFolder;
use tilefs_vfs::node::{Entry, ExtendedAttributes, Folder, Node};

use crate::array::explain::{Explanations, NonEmptyPart};
use crate::cells::dense::{CoveredBox, DenseArray, DenseSubarray, Extent};
use crate::fields::{FieldFolder, xattrs};

/// Its name, beside `slice/`.
pub const NONEMPTY: &str = "nonempty";

/// Makes the tree of the box.
type MakeTree = Box<dyn Fn(FieldFolder, CoveredBox) -> Result<(FixedFolder, Arc<Explanations>)> + Send + Sync>;

/// The folder of the non-empty domain.
pub struct NonEmptyFolder {
    dense: Arc<DenseArray>,
    whole: FieldFolder,
    make: MakeTree,
    /// The box, once determined.
    fields: SingleFlight<(FieldFolder, CoveredBox)>,
    made: SingleFlight<(FixedFolder, Arc<Explanations>)>,
}

impl NonEmptyFolder {
    /// Creates the folder beside the files of the whole array. Reads nothing.
    pub fn new(
        dense: Arc<DenseArray>,
        whole: FieldFolder,
        make: impl Fn(FieldFolder, CoveredBox) -> Result<(FixedFolder, Arc<Explanations>)> + Send + Sync + 'static,
    ) -> Self {
        let (fields, made) = (SingleFlight::new(), SingleFlight::new());
        NonEmptyFolder { dense, whole, make: Box::new(make), fields, made }
    }

    fn fields(&self) -> Result<&(FieldFolder, CoveredBox)> {
        self.fields.get_or_retry(|| {
            let (selection, covers) = self.dense.default_selection(Extent::NonEmpty)?;
            let subarray = Arc::new(DenseSubarray::new(self.dense.clone(), selection));
            Ok((FieldFolder { subarray, ..self.whole.clone() }, covers))
        })
    }

    fn made(&self) -> Result<&(FixedFolder, Arc<Explanations>)> {
        self.made.get_or_retry(|| {
            let (fields, covers) = self.fields()?;
            (self.make)(fields.clone(), *covers)
        })
    }
}

impl NonEmptyPart for NonEmptyFolder {
    fn explanations(&self) -> Result<&Explanations> {
        Ok(&self.made()?.1)
    }
}

impl Folder for NonEmptyFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        self.made()?.0.lookup(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.made()?.0.list()
    }

    fn inner(&self) -> Option<&dyn Folder> {
        self.made.get().map(|(folder, _)| folder as &dyn Folder)
    }

    /// Empty: those of the whole array are suggested.
    fn known_paths(&self) -> Vec<String> {
        Vec::new()
    }

    fn modified(&self) -> SystemTime {
        self.whole.modified
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        self.fields().map(|(fields, _)| xattrs::of_folder(fields)).unwrap_or_default()
    }
}
