//! `labels/`: the dimension labels of an array, one value for each position along the labelled dimension.
//!
//! `labels/NAME.EXT` and its companion files are like those of an attribute, and as long as `dims/DIM.EXT` of the same
//! folder; in a slice they are restricted to the slice. `labels/NAME/` is the whole array that stores the label.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_export::Content;
use tilefs_export::column::extension::of_datatype;
use tilefs_format::error::{Error, Result};
use tilefs_format::schema::DimensionLabel;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::Selection;

use crate::cells::FieldId;
use crate::cells::dense::DenseSubarray;
use crate::fields::array_form::ArrayForm;
use crate::fields::{FieldFolder, FieldNames};
use crate::node::lazy::{FixedFolder, LazyFile, LazyFolder};
use crate::node::names::FileNames;
use crate::node::shown::ShownViews;
use crate::node::{Folder, Node};
use crate::options::TreeOptions;
use crate::views::builder::FilesOfField;
use crate::views::lines::LINES;
use crate::views::raw::{OFFSETS, RAW, VALIDITY};

/// Returns the folder of a whole array.
type WholeFolder = fn(Arc<OpenedArray>, Arc<TreeOptions>) -> Result<FixedFolder>;

/// Adds `labels/` to the folder of an array, or of a slice of one, whose schema has labels. `selection` is the part of
/// a dense array that the folder shows; without one the labels are whole. The labels' arrays are opened when `labels/`
/// is entered; `whole` returns the folder of one.
pub fn add_to(
    folder: &mut FixedFolder,
    array: &Arc<OpenedArray>,
    selection: Option<&Selection>,
    modified: SystemTime,
    whole: WholeFolder,
) {
    if array.schema().labels.is_empty() {
        return;
    }
    let (array, selection) = (array.clone(), selection.cloned());
    let make = move || files(&array, selection.as_ref(), modified, whole);
    folder.add_folder("labels", LazyFolder::transient(modified, make));
}

/// Returns the files of all labels. A damaged label is reported by its own files. Also returns whether none is damaged:
/// a damaged one may be restored.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time.
fn files(
    array: &Arc<OpenedArray>,
    selection: Option<&Selection>,
    modified: SystemTime,
    whole: WholeFolder,
) -> Result<(FixedFolder, bool)> {
    let mut folder = FixedFolder::new(modified);
    let (mut names, mut lasts) = (FileNames::new(&[]), true);
    for label in &array.schema().labels {
        let values = format!(".{}", of_datatype(label.datatype));
        let stem = names.give(&label.name, &[&values, ".offsets.u64", ".valid.u8", ".txt", ""]);
        if let Err(error) = add_values(&mut folder, array, label, &stem, selection, modified) {
            if error.is_transient() {
                return Err(error);
            }
            lasts = false;
            let file = format!("{stem}{values}");
            let again = values_of(array, label, &stem, selection, modified, file.clone());
            folder.add_file(file, LazyFile::new(modified, again));
        }
        let (array, label) = (array.clone(), label.clone());
        let open = move || whole(array.label(&label)?.array, Arc::new(TreeOptions::default()));
        folder.add_folder(stem, LazyFolder::new(modified, open));
    }
    Ok((folder, lasts))
}

/// Returns a function that looks for the values of a label again, as a damaged label may be restored while its file is
/// in use.
fn values_of(
    array: &Arc<OpenedArray>,
    label: &DimensionLabel,
    stem: &str,
    selection: Option<&Selection>,
    modified: SystemTime,
    file: String,
) -> impl Fn() -> Result<Arc<dyn Content>> + Send + Sync + 'static {
    let (array, label, stem, selection) = (array.clone(), label.clone(), stem.to_owned(), selection.cloned());
    move || {
        let mut folder = FixedFolder::new(modified);
        add_values(&mut folder, &array, &label, &stem, selection.as_ref(), modified)?;
        match folder.lookup(&file)? {
            Some(Node::File(values)) => values.open(),
            _ => Err(Error::NotFound { path: file.clone() }),
        }
    }
}

fn add_values(
    folder: &mut FixedFolder,
    array: &OpenedArray,
    label: &DimensionLabel,
    stem: &str,
    selection: Option<&Selection>,
    modified: SystemTime,
) -> Result<()> {
    let axis = selection.and_then(|selection| selection.axes().get(label.dimension as usize));
    let (opened, subarray) = DenseSubarray::of_label(array, label, axis)?;
    // The label's attribute has a generated name.
    let mut names = FieldNames::of(opened.array.schema());
    if let Some(name) = names.attributes.get_mut(opened.attribute) {
        *name = stem.to_owned();
    }
    let subarray = Arc::new(subarray);
    let fields =
        FieldFolder { subarray, names: Arc::new(names), modified, shown: ShownViews::NONE, form: ArrayForm::default() };
    let views = [&RAW, &OFFSETS, &VALIDITY, &LINES].into_iter().filter_map(|view| view.declare_of_field());
    FilesOfField::make(&fields, FieldId::Attribute(opened.attribute), &views.collect::<Vec<_>>(), folder);
    Ok(())
}
