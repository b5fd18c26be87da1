//! `labels/`: the dimension labels of an array, one value for each position along the labelled dimension.
//!
//! `labels/NAME.EXT` and its companion files are like those of an attribute, and as long as `dims/DIM.EXT` of the same
//! folder; in a slice they are restricted to the slice. `labels/NAME/` is the whole array that stores the label.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::column::extension::of_datatype;
use tilefs_format::schema::DimensionLabel;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::array::dense::Selection;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile, LazyFolder};
use tilefs_vfs::node::{Folder, Node};

use crate::cells::FieldId;
use crate::cells::dense::DenseSubarray;
use crate::fields::FieldFolder;
use crate::fields::array_form::ArrayForm;
use crate::names::FileNames;
use crate::options::TreeOptions;
use crate::shown::ShownViews;
use crate::views::builder::FilesOfField;
use crate::views::lines::LINES;
use crate::views::names::field_names;
use crate::views::raw::{OFFSETS, RAW, VALIDITY};

/// Returns the folder of a whole array.
type WholeFolder = fn(Arc<OpenedArray>, Arc<TreeOptions>) -> Result<FixedFolder>;

/// Adds `labels/` to the folder of an array, or of a slice of one, whose schema has labels. Without a selection of a dense
/// array the labels are whole. The labels' arrays are opened when `labels/` is entered; `whole` returns the folder of one.
pub fn add_to(folder: &mut FixedFolder, fields: &FieldFolder, whole: WholeFolder) {
    if fields.schema().labels.is_empty() {
        return;
    }
    let labelled = Labelled {
        array: fields.subarray.array().clone(),
        selection: fields.subarray.selection().cloned(),
        modified: fields.modified,
        shown: fields.shown.without_words(),
    };
    let make = move || files(&labelled, whole);
    folder.add_folder("labels", LazyFolder::transient(fields.modified, make));
}

/// An array with labels, or a slice of one.
#[derive(Clone)]
struct Labelled {
    array: Arc<OpenedArray>,
    /// The part of a dense array that the folder shows.
    selection: Option<Selection>,
    modified: SystemTime,
    shown: ShownViews,
}

/// Returns the files of all labels. A damaged label is reported by its own files. Also returns whether none is damaged:
/// a damaged one may be restored.
///
/// # Errors
/// Fails if something could not be read that may be readable the next time.
fn files(labelled: &Labelled, whole: WholeFolder) -> Result<(FixedFolder, bool)> {
    let modified = labelled.modified;
    let mut folder = FixedFolder::new(modified);
    let (mut names, mut lasts) = (FileNames::new(&[]), true);
    for label in &labelled.array.schema().labels {
        let values = format!(".{}", of_datatype(label.datatype));
        let stem = names.give(&label.name, &[&values, ".offsets.u64", ".valid.u8", ".txt", ""]);
        if let Err(error) = labelled.add_values(&mut folder, label, &stem) {
            if error.is_transient() {
                return Err(error);
            }
            lasts = false;
            let file = format!("{stem}{values}");
            let again = values_of(labelled, label, &stem, file.clone());
            folder.add_file(file, LazyFile::new(modified, again));
        }
        let (array, label) = (labelled.array.clone(), label.clone());
        let options = Arc::new(TreeOptions { shown: labelled.shown.clone(), ..TreeOptions::default() });
        let open = move || whole(array.label(&label)?.array, options.clone());
        folder.add_folder(stem, LazyFolder::new(modified, open));
    }
    Ok((folder, lasts))
}

/// Returns a function that looks for the values of a label again, as a damaged label may be restored while its file is
/// in use.
fn values_of(
    labelled: &Labelled,
    label: &DimensionLabel,
    stem: &str,
    file: String,
) -> impl Fn() -> Result<Arc<dyn Content>> + Send + Sync + 'static {
    let (labelled, label, stem) = (labelled.clone(), label.clone(), stem.to_owned());
    move || {
        let mut folder = FixedFolder::new(labelled.modified);
        labelled.add_values(&mut folder, &label, &stem)?;
        match folder.lookup(&file)? {
            Some(Node::File(values)) => values.open(),
            _ => Err(Error::NotFound { path: file.clone() }),
        }
    }
}

impl Labelled {
    fn add_values(&self, folder: &mut FixedFolder, label: &DimensionLabel, stem: &str) -> Result<()> {
        let axis = self.selection.as_ref().and_then(|selection| selection.axes().get(label.dimension as usize));
        let (opened, subarray) = DenseSubarray::of_label(&self.array, label, axis)?;
        // The label's attribute has a generated name.
        let mut names = field_names(opened.array.schema());
        if let Some(name) = names.attributes.get_mut(opened.attribute) {
            *name = stem.to_owned();
        }
        let (subarray, names) = (Arc::new(subarray), Arc::new(names));
        let (modified, shown, told) = (self.modified, self.shown.clone(), Arc::default());
        let fields = FieldFolder { subarray, names, modified, shown, form: ArrayForm::default(), told };
        let views = [&RAW, &OFFSETS, &VALIDITY, &LINES].into_iter().filter_map(|view| view.declare_of_field());
        FilesOfField::make(&fields, FieldId::Attribute(opened.attribute), &views.collect::<Vec<_>>(), folder);
        Ok(())
    }
}
