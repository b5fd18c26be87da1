//! `h5ad/` of an experiment of TileDB-SOMA: each measurement, with the experiment's observations, as an AnnData file.
//!
//! `h5ad/NAME.h5ad` has what `zarr/ms/NAME` has. A measurement that cannot be annotated data is an error when its file is
//! opened.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use lru::LruCache;
use tilefs_export::hdf5;
use tilefs_format::error::{Error, Result};
use tilefs_reader::group::Group;

use super::experiment::{annotated_data, measurement_names};
use super::experiment_slices::Cut;
use super::lazy::LazyFile;
use super::node::{Entry, EntryKind, Folder, Node};

/// The name of the folder.
pub const H5AD: &str = "h5ad";

/// What its files end with.
const EXTENSION: &str = ".h5ad";

/// The layouts of this many files are kept.
const KEPT: usize = 16;

/// The folder. Memory: the layouts of the files that were opened last, which grow with the texts of observations and
/// variables (16 bytes per 64 KiB of them).
pub struct ExperimentH5ad {
    experiment: Arc<Group>,
    cut: Cut,
    modified: SystemTime,
    kept: Mutex<LruCache<String, Arc<LazyFile>>>,
}

impl ExperimentH5ad {
    /// Of all observations and variables, or those of a slice.
    pub fn new(experiment: Arc<Group>, cut: Cut, modified: SystemTime) -> Self {
        let kept = Mutex::new(LruCache::new(NonZeroUsize::new(KEPT).unwrap_or(NonZeroUsize::MIN)));
        ExperimentH5ad { experiment, cut, modified, kept }
    }
}

impl Folder for ExperimentH5ad {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some(measurement) = name.strip_suffix(EXTENSION) else { return Ok(None) };
        if !measurement_names(&self.experiment)?.iter().any(|known| known == measurement) {
            return Ok(None);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let file = kept.get_or_insert(name.to_owned(), || {
            let (experiment, cut, measurement) = (self.experiment.clone(), self.cut.clone(), measurement.to_owned());
            Arc::new(LazyFile::new(self.modified, move || {
                let group = annotated_data(&experiment, &measurement, &cut)?;
                hdf5::annotated_data(&group.map_err(|reason| Error::unsupported(reason.to_string()))?)
            }))
        });
        Ok(Some(Node::File(file.clone())))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let names = measurement_names(&self.experiment)?;
        Ok(names.into_iter().map(|name| Entry { name: name + EXTENSION, kind: EntryKind::File }).collect())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
