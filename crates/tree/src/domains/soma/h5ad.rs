//! `h5ad/` of an experiment of TileDB-SOMA: each measurement, with the experiment's observations, as an AnnData file.
//!
//! `h5ad/NAME.h5ad` has the content of `zarr/ms/NAME`. If a measurement cannot be annotated data, opening its file is
//! an error.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::hdf5;
use tilefs_format::error::Result;
use tilefs_reader::group::OpenedGroup;
use tilefs_reader::lru_cache::LruCache;

use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{annotated_data, measurement_names};
use crate::node::lazy::LazyFile;
use crate::node::{Entry, Folder, NODE, Node};

/// The name of the folder.
pub const H5AD: &str = "h5ad";

/// The ending of its files.
const EXTENSION: &str = ".h5ad";

/// Number of files whose layouts are kept.
const KEPT: usize = 16;

/// The folder. Memory: the layouts of the most recently opened files: 16 bytes per 64 KiB of texts of observations and
/// variables.
pub struct ExperimentH5ad {
    experiment: Arc<OpenedGroup>,
    cut: Cut,
    modified: SystemTime,
    kept: LruCache<String, Arc<LazyFile>>,
}

impl ExperimentH5ad {
    /// Creates the folder for all observations and variables, or for those of a slice.
    pub fn new(experiment: Arc<OpenedGroup>, cut: Cut, modified: SystemTime) -> Self {
        ExperimentH5ad { experiment, cut, modified, kept: LruCache::new(KEPT) }
    }
}

impl Folder for ExperimentH5ad {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Some(measurement) = name.strip_suffix(EXTENSION) else { return Ok(None) };
        if !measurement_names(&self.experiment)?.iter().any(|known| known == measurement) {
            return Ok(None);
        }
        let file = self.kept.get_or_make(name.to_owned(), || {
            let (experiment, cut, measurement) = (self.experiment.clone(), self.cut.clone(), measurement.to_owned());
            Ok(Arc::new(LazyFile::new(self.modified, move || {
                hdf5::annotated_data(&annotated_data(&experiment, &measurement, &cut)??)
            })))
        })?;
        Ok(Some(Node::File(file)))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let names = measurement_names(&self.experiment)?;
        Ok(names.into_iter().map(|name| Entry::file(name + EXTENSION)).collect())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        NODE * (1 + self.kept.count())
    }
}
