//! `slice/` of a TileDB-SOMA experiment: observations and variables selected by `soma_joinid`, as annotated data.
//!
//! `slice/obs=0..999,var=0..99/zarr` has the first 1000 observations and 100 variables of the only measurement, and
//! `slice/obs=0..999/zarr/ms/NAME` or `slice/obs=0..999/h5ad/NAME.h5ad` those of each: data frames, matrices, layers
//! and annotations of rows and columns are restricted alike. Both ends are included.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use tilefs_format::error::Result;
use tilefs_reader::group::Group;

use crate::domains::soma::cell_ranger::{CellRangerFolders, TENX};
use crate::domains::soma::experiment::ExperimentZarr;
use crate::domains::soma::h5ad::{ExperimentH5ad, H5AD};
use crate::node::lazy::FixedFolder;
use crate::node::{Entry, Folder, Node};
use crate::views::zarr::ZARR;

/// The name of the folder.
pub const SLICE: &str = "slice";

/// The selected observations and variables, by `soma_joinid`; `None` selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    pub observations: Option<Range<u64>>,
    pub variables: Option<Range<u64>>,
}

impl Cut {
    /// Parses a name such as `obs=0..999,var=5`. A missing end of a range is the first or the last row.
    fn parse(name: &str) -> std::result::Result<Self, String> {
        let mut cut = Cut::default();
        for part in name.split(',') {
            let (axis, range) =
                part.split_once('=').ok_or_else(|| format!("{part:?} is neither obs=... nor var=..."))?;
            let of_axis = match axis {
                "obs" => &mut cut.observations,
                "var" => &mut cut.variables,
                _ => return Err(format!("{axis:?} is neither obs nor var")),
            };
            if of_axis.is_some() {
                return Err(format!("{axis} comes twice"));
            }
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("{text:?} is not a soma_joinid; write a slice as obs=0..999,var=0..99"))
            };
            let (first, last) = match range.split_once("..") {
                Some((first, last)) => (
                    if first.is_empty() { 0 } else { number(first)? },
                    if last.is_empty() { None } else { Some(number(last)?) },
                ),
                None => (number(range)?, Some(number(range)?)),
            };
            let end = last.map_or(u64::MAX, |last| last.saturating_add(1));
            if first >= end {
                return Err(format!("{range} ends before it begins"));
            }
            *of_axis = Some(first..end);
        }
        Ok(cut)
    }
}

/// `slice/`: its folders are found by name, and never listed.
pub struct ExperimentSlices {
    experiment: Arc<Group>,
    modified: SystemTime,
}

impl ExperimentSlices {
    pub fn new(experiment: Arc<Group>, modified: SystemTime) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_observations_and_variables() {
        let cut = |observations, variables| Ok(Cut { observations, variables });
        assert_eq!(Cut::parse("obs=0..999"), cut(Some(0..1000), None));
        assert_eq!(Cut::parse("obs=5,var=..9"), cut(Some(5..6), Some(0..10)));
        assert_eq!(Cut::parse("var=7.."), cut(None, Some(7..u64::MAX)));
        assert_eq!(Cut::parse("obs=0..18446744073709551615"), cut(Some(0..u64::MAX), None));
        for wrong in
            ["", "0..9", "obs", "obs=", "obs=a..b", "obs=9..0", "cells=1", "obs=1,obs=2", "obs=-1..5", "obs=1..2..3"]
        {
            assert!(Cut::parse(wrong).is_err(), "{wrong}");
        }
    }
}
