//! `h5ad/` of an experiment of TileDB-SOMA: each measurement, with the experiment's observations, as an AnnData file.
//!
//! `h5ad/NAME.h5ad` has the content of `zarr/ms/NAME`. If a measurement cannot be annotated data, opening its file is
//! an error.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::hdf5;
use tilefs_reader::group::OpenedGroup;
use tilefs_vfs::node::lazy::LazyFile;
use tilefs_vfs::node::named::NamedFolder;
use tilefs_vfs::node::{Entry, Node};

use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::{annotated_data, measurement_names};

/// The name of the folder.
pub const H5AD: &str = "h5ad";

/// The ending of its files.
const EXTENSION: &str = ".h5ad";

/// Number of files whose layouts are kept.
const KEPT: usize = 16;

/// Returns the folder for all observations and variables, or for those of a slice. Memory: the layouts of the most
/// recently opened files: 16 bytes per 64 KiB of texts of observations and variables.
pub fn experiment_h5ad(experiment: Arc<OpenedGroup>, cut: Cut, modified: SystemTime) -> NamedFolder {
    let all = experiment.clone();
    let files = NamedFolder::new(modified, move |name| {
        let Some(measurement) = name.strip_suffix(EXTENSION).map(str::to_owned) else { return Ok(Err(None)) };
        if !measurement_names(&experiment)?.contains(&measurement) {
            return Ok(Err(None));
        }
        let (experiment, cut) = (experiment.clone(), cut.clone());
        Ok(Ok(Node::File(Arc::new(LazyFile::new(modified, move || {
            hdf5::annotated_data(&annotated_data(&experiment, &measurement, &cut)??)
        })))))
    });
    let entry = |name| Entry::file(name + EXTENSION);
    files.keeping(KEPT).listing(move || Ok(measurement_names(&all)?.into_iter().map(entry).collect()))
}
