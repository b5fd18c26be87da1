//! The files of a dataset, or of a part of it: all variables in each format.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_export::hdf5::Form;
use tilefs_export::zarr::ZarrVersion;
use tilefs_vfs::node::Node;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};

use crate::domains::cf::GroupDataset;
use crate::views::zarr::{ZARR, group_folder};

/// The folders of the files with all variables.
pub const NETCDF: &str = "netcdf";
pub const NETCDF4: &str = "netcdf4";
pub const HDF5: &str = "hdf5";

/// Makes the dataset of files, when one of them is needed.
pub type MakeDataset = Arc<dyn Fn() -> Result<Arc<GroupDataset>> + Send + Sync>;

/// Returns the folder `name` with the file of all variables in one format.
pub fn file_folder(dataset: MakeDataset, name: &str, modified: SystemTime) -> FixedFolder {
    let mut folder = FixedFolder::new(modified);
    match name {
        NETCDF => folder.add_file("group.nc", LazyFile::new(modified, move || dataset()?.netcdf())),
        NETCDF4 => folder.add_file("group.nc", LazyFile::new(modified, move || dataset()?.hdf5(Form::NetCdf4))),
        _ => folder.add_file("group.h5", LazyFile::new(modified, move || dataset()?.hdf5(Form::Plain))),
    }
    folder
}

/// Returns the folder of a part of a dataset, with all of its forms.
///
/// # Errors
/// Fails if the metadata of an array cannot be read.
pub fn files(dataset: &Arc<GroupDataset>, modified: SystemTime) -> Result<FixedFolder> {
    let mut folder = FixedFolder::new(modified);
    for name in [NETCDF, NETCDF4, HDF5] {
        let dataset = dataset.clone();
        let files = file_folder(Arc::new(move || Ok(dataset.clone())), name, modified);
        folder.add(name, Node::Folder(Arc::new(files)));
    }
    let zarr = group_folder(&Arc::new(dataset.zarr()?), ZarrVersion::Third, modified);
    folder.add(ZARR, Node::Folder(Arc::new(zarr)));
    Ok(folder)
}
