//! `slice/` of a TileDB-SOMA experiment: observations and variables selected by `soma_joinid`, as annotated data.
//!
//! `slice/obs=0..999,var=0..99/zarr` has the first 1000 observations and 100 variables of the only measurement, and
//! `slice/obs=0..999/zarr/ms/NAME` or `slice/obs=0..999/h5ad/NAME.h5ad` those of each: data frames, matrices, layers
//! and annotations of rows and columns are restricted alike. Both ends are included.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;
use tilefs_reader::group::OpenedGroup;

use crate::domains::soma::cell_ranger::{CellRangerFolders, TENX};
use crate::domains::soma::cut::Cut;
use crate::domains::soma::experiment::ExperimentZarr;
use crate::domains::soma::h5ad::{ExperimentH5ad, H5AD};
use crate::node::lazy::FixedFolder;
use crate::node::{Entry, Folder, Node};
use crate::views::zarr::ZARR;

/// The name of the folder.
pub const SLICE: &str = "slice";

/// `slice/`: its folders are found by name, and never listed.
pub struct ExperimentSlices {
    experiment: Arc<OpenedGroup>,
    modified: SystemTime,
}

impl ExperimentSlices {
    pub fn new(experiment: Arc<OpenedGroup>, modified: SystemTime) -> Self {
        ExperimentSlices { experiment, modified }
    }
}

impl Folder for ExperimentSlices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Ok(cut) = Cut::parse(name) else { return Ok(None) };
        let mut folder = FixedFolder::new(self.modified);
        folder.add_folder(ZARR, ExperimentZarr::of_slice(&self.experiment, cut.clone(), self.modified));
        folder.add_folder(H5AD, ExperimentH5ad::new(self.experiment.clone(), cut.clone(), self.modified));
        folder.add_folder(TENX, CellRangerFolders::new(self.experiment.clone(), cut, self.modified));
        Ok(Some(Node::Folder(Arc::new(folder))))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        Cut::parse(name).err()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}
