//! What TileDB-CF adds to the folder of a group that is one dataset: `netcdf/`, `netcdf4/`, `hdf5/`, `slice/`, and the
//! dataset in `zarr/`.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_export::zarr::ZarrVersion;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::lazy::LazyFolder;
use tilefs_vfs::node::{Folder, Node};

use crate::domains::cf::files::{HDF5, MakeDataset, NETCDF, NETCDF4, file_folder};
use crate::domains::cf::members::DatasetMembers;
use crate::domains::cf::slices::{SLICE, dataset_slices};
use crate::domains::{DescribedViews, Domain, GroupDomain, GroupUses, GroupView, PlainZarr, ShownGroup};
use crate::views::zarr::{ZARR, ZARR_VIEW, group_folder};

/// Maximum number of members of a group that are opened to list its views.
const MAX_OPENED: usize = 64;

/// The domain: groups that are one dataset, as TileDB-CF writes them.
pub const DOMAIN: Domain = Domain {
    groups: "Groups that TileDB-CF wrote",
    group_views: &VIEWS,
    of_group: Some(|group| Box::new(CfGroup { shown: group, members: SingleFlight::new() })),
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
    /// The members of the dataset, once determined.
    members: SingleFlight<Option<Arc<DatasetMembers>>>,
}

impl CfGroup {
    fn members(&self) -> Result<Option<Arc<DatasetMembers>>> {
        self.members.get_or_pass(|| {
            let (members, lasts) = DatasetMembers::of(&self.shown.group, self.shown.modified)?;
            Ok((members.map(Arc::new), lasts))
        })
    }
}

impl GroupDomain for CfGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if ![NETCDF, NETCDF4, HDF5, SLICE].contains(&name) {
            return Ok(None);
        }
        let (Some(members), modified) = (self.members()?, self.shown.modified) else { return Ok(None) };
        let dataset: MakeDataset = Arc::new(move || members.dataset());
        Ok(Some(Node::Folder(match name {
            SLICE => Arc::new(dataset_slices(dataset, modified)),
            _ => Arc::new(file_folder(dataset, name, modified)),
        })))
    }

    fn listed(&self) -> (Vec<&'static str>, bool) {
        if self.shown.group.members().is_ok_and(|members| members.len() > MAX_OPENED) {
            return (Vec::new(), true);
        }
        // Whether points lie on a grid is known only once all of their coordinates were read, which no listing does.
        if !matches!(self.members(), Ok(Some(members)) if !members.have_points()) {
            return (Vec::new(), self.members.get().is_some());
        }
        let all = self.shown.options.shown.are_all().then_some([NETCDF4, HDF5]);
        let zarr = (!ZARR_VIEW.facts.is_shown(&self.shown.options.shown)).then_some(ZARR);
        ([NETCDF].into_iter().chain(zarr).chain(all.into_iter().flatten()).collect(), true)
    }

    fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
        match self.members() {
            Ok(Some(_)) => views.add(&VIEWS),
            _ if self.members.get().is_none() => views.may_change(),
            _ => {}
        }
        Ok(())
    }

    fn zarr(&self, version: ZarrVersion, plain: &PlainZarr) -> Result<(Option<Arc<dyn Folder>>, bool)> {
        let folder = self.members()?.map(|members| {
            let (plain, modified) = (plain.clone(), self.shown.modified);
            let folder = move || -> Result<Arc<dyn Folder>> {
                match members.dataset() {
                    Ok(dataset) => Ok(Arc::new(group_folder(&Arc::new(dataset.zarr()?), version, modified))),
                    Err(Error::Unsupported { what, .. }) => Ok(plain(Some(what))),
                    Err(error) => Err(error),
                }
            };
            Arc::new(LazyFolder::of_any(modified, folder)) as Arc<dyn Folder>
        });
        Ok((folder, self.members.get().is_some()))
    }

    fn describe_uses(&self, uses: &mut GroupUses, may_open: bool) -> Result<()> {
        if !may_open {
            return Ok(());
        }
        match self.members() {
            Ok(Some(_)) => {
                uses.views += &format!(
                    "All of it as the dataset that TileDB-CF wrote, for xarray, ncdump and NCO:\n\
                     \x20   ncdump -h {NETCDF}/group.nc\n\
                     \x20   python3 -c 'import xarray; print(xarray.open_zarr(\"zarr\"))'\n"
                );
            }
            Ok(None) => uses.lasts &= self.members.get().is_some(),
            // The next attempt may find one.
            Err(_) => uses.lasts = false,
        }
        Ok(())
    }
}
