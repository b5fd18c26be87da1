//! An array as a folder of files.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::dense::{DenseArray, DenseShown};
use super::made::{FixedFolder, MadeFile};
use super::options::OpenOptions;
use crate::array::Array;
use crate::error::Result;
use crate::export::Content;
use crate::export::extension::of_datatype;
use crate::format::schema::ArrayType;

/// The files of a whole array.
///
/// # Errors
/// When its shape cannot be told.
pub fn array_folder(array: Arc<Array>, options: Arc<OpenOptions>) -> Result<FixedFolder> {
    let modified = last_commit(&array);
    let mut folder = FixedFolder::new(modified);
    if array.schema().array_type == ArrayType::Dense {
        let dense = Arc::new(DenseArray::new(array)?);
        let (selection, covered) = dense.default_selection(options.extent)?;
        let shown = DenseShown { dense, selection: Arc::new(selection), covered };
        add_dense_files(&mut folder, &shown, modified);
    }
    Ok(folder)
}

/// The time of the newest commit that the array shows.
fn last_commit(array: &Array) -> SystemTime {
    let end = array.window().end;
    let last = array.folder().directory().commit_times().into_iter().rfind(|&time| time <= end);
    UNIX_EPOCH + Duration::from_millis(last.unwrap_or(0))
}

fn add_dense_files(folder: &mut FixedFolder, shown: &DenseShown, modified: SystemTime) {
    let schema = shown.dense.array().schema();
    let cells = shown.selection.cells();
    for (number, attribute) in schema.attributes.iter().enumerate() {
        let name = if attribute.name.is_empty() { "data" } else { &attribute.name };
        let extension = of_datatype(attribute.datatype);
        if let Some(size) = attribute.cell_size() {
            let content = shown.clone();
            let file = MadeFile::new(modified, move || content.values(number)).with_length(cells * size as u64);
            folder.add_file(format!("{name}.{extension}"), file);
        }
        if attribute.nullable {
            let content = shown.clone();
            let file = MadeFile::new(modified, move || content.validity(number)).with_length(cells);
            folder.add_file(format!("{name}.valid.u8"), file);
        }
    }
    let mut dims = FixedFolder::new(modified);
    for (axis, dimension) in schema.dimensions.iter().enumerate() {
        let content = shown.coordinates(axis);
        let length = content.len();
        let file = MadeFile::new(modified, move || Ok(content.clone())).with_length(length);
        dims.add_file(format!("{}.{}", dimension.name, of_datatype(dimension.datatype)), file);
    }
    folder.add_folder("dims", dims);
}
