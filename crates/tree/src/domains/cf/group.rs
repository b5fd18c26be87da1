//! What TileDB-CF adds to the folder of a group that is one dataset: `netcdf/`, `netcdf4/`, `hdf5/`, `slice/`, and the
//! dataset in `zarr/`.

use std::sync::Arc;

use tilefs_export::zarr::ZarrVersion;
use tilefs_format::error::Result;
use tilefs_reader::array::SingleFlight;

use crate::domains::cf::GroupDataset;
use crate::domains::cf::files::{HDF5, NETCDF, NETCDF4, file_folder};
use crate::domains::cf::slices::{SLICE, dataset_slices};
use crate::domains::{DescribedViews, Domain, GroupDomain, GroupUses, GroupView, PlainZarr, ShownGroup};
use crate::node::{Folder, Node};
use crate::views::zarr::{ZARR, ZARR_VIEW, group_folder};

/// Maximum number of members of a group that are opened to list its views.
const MAX_OPENED: usize = 64;

/// The domain: groups that are one dataset, as TileDB-CF writes them.
pub const DOMAIN: Domain = Domain {
    groups: "Groups that TileDB-CF wrote",
    group_views: &VIEWS,
    of_group: Some(|group| Box::new(CfGroup { shown: group, dataset: SingleFlight::new() })),
    ..Domain::NONE
};

/// The views of a dataset.
const VIEWS: [GroupView; 5] = [
    GroupView {
        path: "zarr",
        reader: "all variables (open the folder): xarray, zarr",
        lacks: "which dimensions are unlimited, and groups within the group",
    },
    GroupView {
        path: "netcdf/group.nc",
        reader: "all variables as a file: xarray, NCO, CDO, ncdump; cp copies it",
        lacks: "unlimited dimensions other than the first one of all variables along it, and groups within the group",
    },
    GroupView {
        path: "netcdf4/group.nc",
        reader: "the same as netCDF-4, with strings and integers of 64 bits",
        lacks: "text with a NUL inside, and groups within the group",
    },
    GroupView {
        path: "hdf5/group.h5",
        reader: "the same as HDF5: h5py, MATLAB, R",
        lacks: "unlimited dimensions, text with a NUL inside, and groups within the group",
    },
    GroupView {
        path: "slice/time=2001-07,lat=40..50/netcdf/group.nc",
        reader: "a part of all variables, by their coordinates",
        lacks: "what netcdf/group.nc cannot hold",
    },
];

/// A group that may be one dataset. Memory: the arrays of the dataset.
struct CfGroup {
    shown: ShownGroup,
    /// The dataset, once determined.
    dataset: SingleFlight<Option<Arc<GroupDataset>>>,
}

impl CfGroup {
    fn dataset(&self) -> Result<Option<Arc<GroupDataset>>> {
        self.dataset.get_or_pass(|| {
            let (dataset, lasts) = GroupDataset::of(&self.shown.group, self.shown.modified)?;
            Ok((dataset.map(Arc::new), lasts))
        })
    }
}

impl GroupDomain for CfGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if ![NETCDF, NETCDF4, HDF5, SLICE].contains(&name) {
            return Ok(None);
        }
        let (Some(dataset), modified) = (self.dataset()?, self.shown.modified) else { return Ok(None) };
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(dataset_slices(dataset, modified)),
            _ => Arc::new(file_folder(&dataset, name, modified)),
        })))
    }

    fn listed(&self) -> Result<Vec<&'static str>> {
        if self.shown.group.members().is_ok_and(|members| members.len() > MAX_OPENED) {
            return Ok(Vec::new());
        }
        // The folders of damaged members report the errors.
        let is_dataset = matches!(self.dataset(), Ok(Some(_)));
        let all = self.shown.options.shown.are_all().then_some([NETCDF4, HDF5]);
        let zarr = (!ZARR_VIEW.facts.is_shown(&self.shown.options.shown)).then_some(ZARR);
        Ok([NETCDF].into_iter().chain(zarr).chain(all.into_iter().flatten()).filter(|_| is_dataset).collect())
    }

    fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
        match self.dataset() {
            Ok(Some(_)) => views.add(&VIEWS),
            _ if self.dataset.get().is_none() => views.may_change(),
            _ => {}
        }
        Ok(())
    }

    fn zarr(&self, version: ZarrVersion, _plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        let folder = match self.dataset()? {
            Some(dataset) => {
                let folder = group_folder(&Arc::new(dataset.zarr()?), version, self.shown.modified);
                Some(Arc::new(folder) as Arc<dyn Folder>)
            }
            None => None,
        };
        Ok((folder, self.dataset.get().is_some()))
    }

    fn describe_uses(&self, uses: &mut GroupUses, may_open: bool) -> Result<()> {
        if !may_open {
            return Ok(());
        }
        match self.dataset() {
            Ok(Some(_)) => {
                uses.views += &format!(
                    "All of it as the dataset that TileDB-CF wrote, for xarray, ncdump and NCO:\n\
                     \x20   ncdump -h {NETCDF}/group.nc\n\
                     \x20   python3 -c 'import xarray; print(xarray.open_zarr(\"zarr\"))'\n"
                );
            }
            Ok(None) => uses.lasts &= self.dataset.get().is_some(),
            // The next attempt may find one.
            Err(_) => uses.lasts = false,
        }
        Ok(())
    }
}
