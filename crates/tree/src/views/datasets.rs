//! All fields of an array in one file: `netcdf/`, `netcdf4/` and `hdf5/`.

use tilefs_export::column::Unrepresentable;
use tilefs_export::hdf5::{Form, hdf5};
use tilefs_export::netcdf::netcdf;
use tilefs_vfs::node::quoting::path_word;

use crate::fields::FieldFolder;
use crate::fields::columns::{Texts, columns_of_all};
use crate::views::builder::FolderBuilder;
use crate::views::commands::{Command, FileFinder};
use crate::views::facts::{ReadmeTask, Shown, ViewFacts};
use crate::views::view::{Add, CommandTask, View};

/// netCDF classic.
pub static NETCDF: View = View {
    facts: ViewFacts {
        name: "netCDF",
        folder: "netcdf",
        files: &["array.nc"],
        media_type: "application/x-netcdf",
        reader: "all of it as netCDF: ncdump, xarray, NCO, CDO, Panoply, R (ncdf4)",
        lacks: "axes of length 0, and text of any length other than padded or end to end",
        job: Some(ReadmeTask::new(9, "Everything in one file: xarray, NCO, ncview")),
        holds_values: true,
        shown: Shown::Alone("netcdf"),
        ..ViewFacts::PLAIN
    },
    add: Add::OfArray(add_netcdf),
    commands: &[(CommandTask::Dataset, ncdump)],
    ..View::PLAIN
};

/// The same as netCDF-4.
pub static NETCDF4: View = View {
    facts: ViewFacts {
        name: "netCDF-4",
        folder: "netcdf4",
        files: &["array.nc"],
        media_type: "application/x-netcdf",
        reader: "the same as netCDF-4, with text and 64-bit integers: ncdump, xarray, R (ncdf4), Panoply",
        lacks: "text with a NUL inside, and numbers of varying count other than end to end",
        job: Some(ReadmeTask::new(10, "The same with text: xarray, Panoply, R, Julia")),
        holds_values: true,
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    add: Add::OfArray(|builder, fields| add_hdf5(builder, fields, &NETCDF4.facts, Form::NetCdf4)),
    ..View::PLAIN
};

/// The same as HDF5.
pub static HDF5: View = View {
    facts: ViewFacts {
        name: "HDF5",
        folder: "hdf5",
        files: &["array.h5"],
        media_type: "application/x-hdf5",
        reader: "the same as HDF5: MATLAB, IDL, R (rhdf5, hdf5r), Julia, h5py",
        lacks: "text with a NUL inside, and numbers of varying count other than end to end",
        job: Some(ReadmeTask::new(11, "The same for HDF5: MATLAB, IDL, R, Julia, h5py")),
        holds_values: true,
        shown: Shown::WithAll,
        ..ViewFacts::PLAIN
    },
    add: Add::OfArray(|builder, fields| add_hdf5(builder, fields, &HDF5.facts, Form::Plain)),
    ..View::PLAIN
};

fn add_netcdf(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let is_sparse = fields.schema().is_sparse();
    if !is_sparse && fields.subarray.known_shape().is_some_and(|shape| shape.contains(&0)) {
        return builder.leave_out("array.nc", Unrepresentable::empty_axis());
    }
    let file = fields.file(|fields| Ok(netcdf(&columns_of_all(fields, Texts::Measured)?)?.file.content));
    let listing = NETCDF.facts.listing(&fields.shown).and(fields.listing_of_all());
    builder.add_with("array.nc", &NETCDF.facts, file, listing);
}

fn add_hdf5(builder: &mut FolderBuilder, fields: &FieldFolder, view: &'static ViewFacts, form: Form) {
    let file = fields.file(move |fields| hdf5(&columns_of_all(fields, Texts::Unmeasured)?, form));
    builder.add_with(view.files.concat(), view, file, fields.listing_of_all());
}

fn ncdump(finder: &FileFinder<'_>) -> Option<Command> {
    let file = finder.any(&NETCDF.facts)?;
    Some(Command::new(
        "All of it as netCDF, for ncdump, ncview, xarray, NCO",
        format!("ncdump -h {}", path_word(&finder.path(file))),
    ))
}
