//! What TileDB-CF adds to the folder of a group that is one dataset: `netcdf/`, and the dataset in `zarr/`.

use std::sync::Arc;

use tilefs_export::zarr::ZarrVersion;
use tilefs_format::error::Result;
use tilefs_reader::array::SingleFlight;

use crate::domains::cf::{FILE, GroupDataset, NETCDF};
use crate::domains::{Domain, GroupDomain, GroupUses, PlainZarr, ShownGroup};
use crate::node::lazy::{FixedFolder, LazyFile};
use crate::node::{Folder, Node};
use crate::views::zarr::group_folder;

/// The domain: groups that are one dataset, as TileDB-CF writes them.
pub const DOMAIN: Domain =
    Domain { of_group: Some(|group| Box::new(CfGroup { shown: group, dataset: SingleFlight::new() })), ..Domain::NONE };

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
        if name != NETCDF {
            return Ok(None);
        }
        let Some(dataset) = self.dataset()? else { return Ok(None) };
        let mut folder = FixedFolder::new(self.shown.modified);
        folder.add_file(FILE, LazyFile::new(self.shown.modified, move || dataset.netcdf()));
        Ok(Some(Node::Folder(Arc::new(folder))))
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
                     \x20   ncdump -h {NETCDF}/{FILE}\n\
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
