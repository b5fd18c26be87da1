//! `slice/` of a TileDB-SOMA experiment: observations and variables selected by `soma_joinid`, as annotated data.
//!
//! `slice/obs=0..999,var=0..99/zarr` has the first 1000 observations and 100 variables of the only measurement, and
//! `slice/obs=0..999/zarr/ms/NAME` or `slice/obs=0..999/h5ad/NAME.h5ad` those of each: data frames, matrices, layers
//! and annotations of rows and columns are restricted alike. Both ends are included.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_reader::group::OpenedGroup;
use tilefs_vfs::node::Node;
use tilefs_vfs::node::lazy::FixedFolder;
use tilefs_vfs::node::named::NamedFolder;

use crate::domains::soma::cell_ranger::{TENX, cell_ranger_folders};
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::ExperimentZarr;
use crate::domains::soma::h5ad::{H5AD, experiment_h5ad};
use crate::views::zarr::ZARR;

/// The name of the folder.
pub const SLICE: &str = "slice";

/// Returns `slice/`: its folders are found by name, and never listed.
pub fn experiment_slices(experiment: Arc<OpenedGroup>, modified: SystemTime) -> NamedFolder {
    NamedFolder::new(modified, move |name| {
        let cut = match Cut::parse(name) {
            Ok(cut) => cut,
            Err(reason) => return Ok(Err(Some(reason))),
        };
        let mut folder = FixedFolder::new(modified);
        folder.add_folder(ZARR, ExperimentZarr::of_slice(&experiment, cut.clone(), modified));
        folder.add_folder(H5AD, experiment_h5ad(experiment.clone(), cut.clone(), modified));
        folder.add_folder(TENX, cell_ranger_folders(experiment.clone(), cut, modified));
        Ok(Ok(Node::Folder(Arc::new(folder))))
    })
}
