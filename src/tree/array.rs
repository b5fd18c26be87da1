//! An array as a folder of files.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::dense::{DenseArray, DenseShown};
use super::enums;
use super::fields::{FieldFolder, FieldNames};
use super::formats;
use super::grammar::By;
use super::labels;
use super::made::FixedFolder;
use super::meta;
use super::options::OpenOptions;
use super::slice::SliceFolder;
use crate::array::Array;
use crate::array::dense::Selection;
use crate::error::Result;
use crate::format::schema::ArrayType;

/// The files of a whole array.
///
/// # Errors
/// When its shape cannot be told.
pub fn array_folder(array: Arc<Array>, options: Arc<OpenOptions>) -> Result<FixedFolder> {
    let modified = last_commit(&array);
    let names = Arc::new(FieldNames::of(array.schema()));
    let mut folder = FixedFolder::new(modified);
    if array.schema().array_type == ArrayType::Dense {
        let dense = Arc::new(DenseArray::new(array.clone())?);
        let (selection, _) = dense.default_selection(options.extent)?;
        let shown = Arc::new(DenseShown::new(dense, selection));
        let whole = FieldFolder { shown, names, modified };
        add_files(&mut folder, &whole);
        folder.add_folder("slice", SliceFolder::new(whole.clone(), By::Coordinate, options.slices.clone()));
        folder.add_folder("islice", SliceFolder::new(whole, By::Position, Vec::new()));
    } else {
        add_described(&mut folder, &array, None, modified);
    }
    Ok(folder)
}

/// The time of the newest commit that the array shows.
fn last_commit(array: &Array) -> SystemTime {
    let end = array.window().end;
    let last = array.folder().directory().commit_times().into_iter().rfind(|&time| time <= end);
    UNIX_EPOCH + Duration::from_millis(last.unwrap_or(0))
}

/// The files that a whole array and a slice of one have alike.
pub(super) fn add_files(folder: &mut FixedFolder, fields: &FieldFolder) {
    let is_dense = !fields.shown.array().schema().is_sparse();
    for attribute in fields.attributes() {
        fields.add_raw(folder, attribute);
        formats::add_lines(folder, fields, attribute);
        if is_dense {
            fields.add_envi_header(folder, attribute);
        }
    }
    let mut dims = FixedFolder::new(fields.modified);
    for dimension in fields.dimensions() {
        fields.add_raw(&mut dims, dimension);
        formats::add_lines(&mut dims, fields, dimension);
    }
    folder.add_folder("dims", dims);
    formats::add_folders(folder, fields);
    add_described(folder, fields.shown.array(), fields.shown.selection(), fields.modified);
}

/// What is known of an array besides its cells: metadata, enumerations, labels of what `selection` shows.
fn add_described(folder: &mut FixedFolder, array: &Arc<Array>, selection: Option<&Selection>, modified: SystemTime) {
    let of_metadata = array.clone();
    meta::add_to(folder, modified, move || of_metadata.metadata());
    enums::add_to(folder, array, modified);
    labels::add_to(folder, array, selection, modified);
}
