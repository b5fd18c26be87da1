//! An array as a folder of files.

pub mod explain;
pub mod explanation;
pub mod history;
pub mod nonempty;
pub mod origins;
pub mod slice;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::schema::ArrayType;
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;
use tilefs_select::{self as select, Addressing, DimensionBounds};
use tilefs_vfs::node::Node;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::listing::Listing;

pub use crate::array::explain::FieldFolderKind;
use crate::array::explain::{Explanations, NonEmptyPart};
use crate::array::history::{HISTORY, History};
use crate::array::nonempty::{NONEMPTY, NonEmptyFolder};
use crate::array::slice::slices;
use crate::cells::Subarray;
use crate::cells::dense::{CoveredBox, DenseArray, DenseSubarray};
use crate::cells::label_search::{labelled, selectable};
use crate::cells::sparse::SparseSubarray;
use crate::domains;
use crate::fields::array_form::ArrayForm;
use crate::fields::enums;
use crate::fields::meta;
use crate::fields::xattrs;
use crate::fields::{FieldFolder, FieldNames};
use crate::names::FileNames;
use crate::objects::open_folder;
use crate::objects::walk::{Visited, walk_group};
use crate::options::TreeOptions;
use crate::views;
use crate::views::builder::FolderBuilder;
use crate::views::described::LABELS;
use crate::views::labels;
use crate::views::names::field_names;
use crate::wording::size::{dense_text, rows_text, sparse_text};

/// The folder beside `slice/` that shows a sparse array with its rows sorted by coordinates.
const BY_ROW: &str = "by-row";

/// Returns the files of a whole array.
///
/// # Errors
/// Fails if its shape cannot be determined; [`Error::Unsupported`] if it has more attributes and dimensions than the
/// cache allows.
pub fn array_folder(array: Arc<OpenedArray>, options: Arc<TreeOptions>) -> Result<FixedFolder> {
    let form = domains::array_form(array.schema());
    folder_of(array, options, form)
}

/// Like [`array_folder`], for an array in another form.
///
/// # Errors
/// As for [`array_folder`].
pub fn folder_of(array: Arc<OpenedArray>, options: Arc<TreeOptions>, form: ArrayForm) -> Result<FixedFolder> {
    check_fields(&array)?;
    let modified = modified(&array);
    let names = match options.axes_of_images {
        true => field_names(array.schema()).with_axes(form.axes.as_deref()),
        false => field_names(array.schema()),
    };
    let names = Arc::new(names);
    let mut folder = match array.schema().array_type {
        ArrayType::Dense => dense_folder(array.clone(), names, modified, &options, form)?,
        ArrayType::Sparse => sparse_folder(&array, &names, modified, &options, &form)?,
    };
    folder.add_unlisted(HISTORY, Node::Folder(Arc::new(history_of(&array, &options, modified))));
    Ok(folder)
}

/// Returns the history of an array. All its times share the parsed fragments and schemas.
fn history_of(array: &Arc<OpenedArray>, options: &Arc<TreeOptions>, modified: SystemTime) -> History {
    let (folder, of_times, of_began) = (array.folder().clone(), array.folder().clone(), array.folder().clone());
    let options = options.clone();
    History::new(
        array.window(),
        modified,
        move || of_times.commit_times(),
        move || of_began.began(),
        move |window| {
            let array = OpenedArray::open(folder.clone(), window)?;
            Ok(Arc::new(array_folder(Arc::new(array), options.clone())?))
        },
    )
}

/// Approximate memory that the files of one attribute or dimension take while their folder is shown, including the
/// texts that name them.
const BYTES_OF_A_FIELD: usize = 12 << 10;

/// Memory that they may take however small the cache is.
const ALWAYS_SHOWN: usize = 32 << 20;

fn check_fields(array: &OpenedArray) -> Result<()> {
    let fields = array.schema().attributes.len().saturating_add(array.schema().dimensions.len());
    let most = array.context().budget().bytes().max(ALWAYS_SHOWN) / BYTES_OF_A_FIELD;
    if fields <= most {
        return Ok(());
    }
    let what = format!("{fields} attributes and dimensions where --cache-size has room for the files of {most}");
    Err(Error::unsupported(what).in_array(array.path()))
}

/// Returns the cells that a folder of `slice/` or `islice/` shows of an array, as lines for people. `Err` holds the
/// reason why there is no such folder, with the position of the error in its name.
///
/// # Errors
/// As for [`array_folder`].
pub fn meaning(
    array: &Arc<OpenedArray>,
    options: &TreeOptions,
    selection: &str,
    by: Addressing,
) -> Result<std::result::Result<String, String>> {
    let bounds = bounds(array, options)?;
    Ok(match array.schema().array_type {
        ArrayType::Dense => select::meaning(selection, by, &bounds),
        ArrayType::Sparse => select::meaning_of_rows(selection, by, &bounds, array),
    })
}

/// Checks that `slice/` has a folder for each named slice.
///
/// # Errors
/// [`Error::Usage`] for a slice that selects nothing; otherwise as for [`array_folder`].
pub fn check_slices(array: &Arc<OpenedArray>, options: &TreeOptions) -> Result<()> {
    if options.slices.is_empty() {
        return Ok(());
    }
    let bounds = bounds(array, options)?;
    options.slices.iter().try_for_each(|slice| check_slice(array, &bounds, slice))
}

/// Checks that each named slice selects something in at least one array below a group: the arrays of a group differ, so
/// a slice need not fit all of them. Opens arrays until one fits, and skips those that cannot be opened.
///
/// # Errors
/// [`Error::Usage`] for a slice that selects nothing in any array.
pub fn check_slices_below(group: &OpenedGroup, options: &TreeOptions) -> Result<()> {
    let mut wrong: Vec<(&(String, String), Option<String>)> =
        options.slices.iter().map(|slice| (slice, None)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    // Fails once every slice fits an array.
    let _ = walk_group(group, None, |place, visited| {
        let Visited::Array(found) = visited else { return Ok(()) };
        let opened = open_folder(found.context.clone(), found.folder, found.window);
        let Ok((array, bounds)) = opened.and_then(|array| Ok((array.clone(), bounds(&array, options)?))) else {
            return Ok(());
        };
        wrong.retain_mut(|(slice, reason)| match check_slice(&array, &bounds, slice) {
            Ok(()) => false,
            Err(error) => {
                reason.get_or_insert_with(|| format!("{error} (in {}; no other array has it)", place.path));
                true
            }
        });
        if wrong.is_empty() { Err(()) } else { Ok(()) }
    });
    match wrong.into_iter().find_map(|(_, reason)| reason) {
        Some(reason) => Err(Error::usage(reason)),
        None => Ok(()),
    }
}

/// Checks that a named slice selects anything.
fn check_slice(array: &OpenedArray, bounds: &[DimensionBounds], (name, selection): &(String, String)) -> Result<()> {
    let checked = match array.schema().array_type {
        ArrayType::Dense => select::dense(selection, Addressing::Coordinate, bounds).map(drop),
        ArrayType::Sparse => select::rows(selection, Addressing::Coordinate, bounds, array).map(drop),
    };
    checked.map_err(|error| Error::usage(format!("slice {name}: {}", error.into_error(selection))))
}

/// Returns the dimensions as selections of the whole array see them.
fn bounds(array: &Arc<OpenedArray>, options: &TreeOptions) -> Result<Vec<DimensionBounds>> {
    Ok(match array.schema().array_type {
        ArrayType::Sparse => selectable(array),
        ArrayType::Dense => {
            let dense = labelled(array.clone())?;
            let (shown, _) = dense.default_selection(options.extent)?;
            dense.selectable(&shown)
        }
    })
}

/// Returns the kind of an array and its size: `dense 100 x 200` according to the options, `sparse 2638 rows`, for a
/// matrix `sparse 2638 x 1838, 45480 rows`. Reads no cell.
///
/// # Errors
/// As for [`array_folder`]; any damage in footers.
pub fn size_text(array: &Arc<OpenedArray>, options: &TreeOptions) -> Result<String> {
    match array.schema().array_type {
        ArrayType::Dense => {
            let shape = DenseArray::new(array.clone())?.default_selection(options.extent)?.0.shape();
            Ok(dense_text(shape.iter()))
        }
        ArrayType::Sparse => {
            let rows = SparseSubarray::new(array.clone(), false).row_count()?;
            Ok(match domains::matrix_lengths(array)? {
                Some([height, width]) => format!("sparse {height} x {width}, {}", rows_text(rows)),
                None => sparse_text(rows),
            })
        }
    }
}

fn dense_folder(
    array: Arc<OpenedArray>,
    names: Arc<FieldNames>,
    modified: SystemTime,
    options: &Arc<TreeOptions>,
    form: ArrayForm,
) -> Result<FixedFolder> {
    let dense = Arc::new(labelled(array)?);
    let (selection, covers) = dense.default_selection(options.extent)?;
    let subarray = Arc::new(DenseSubarray::new(dense.clone(), selection));
    let shown = domains::shown_of_array(dense.array(), &options.shown);
    let whole = FieldFolder { subarray, names, modified, shown, form, told: Arc::default() };
    let of_box = options.clone();
    let nonempty = Arc::new(NonEmptyFolder::new(dense, whole.clone(), move |fields, covers| {
        tree_of(fields, covers, &of_box, FieldFolderKind::Variant(NONEMPTY), None)
    }));
    let (mut folder, _) = tree_of(whole, covers, options, FieldFolderKind::Whole, Some(nonempty.clone()))?;
    folder.add_unlisted(NONEMPTY, Node::Folder(nonempty));
    Ok(folder)
}

fn sparse_folder(
    array: &Arc<OpenedArray>,
    names: &Arc<FieldNames>,
    modified: SystemTime,
    options: &TreeOptions,
    form: &ArrayForm,
) -> Result<FixedFolder> {
    let folder_of = |by_row: bool, kind: FieldFolderKind| -> Result<FixedFolder> {
        let subarray = Arc::new(SparseSubarray::new(array.clone(), by_row));
        let (names, form) = (names.clone(), form.clone());
        let (shown, told) = (options.shown.clone(), Arc::default());
        let fields = FieldFolder { subarray, names, modified, shown, form, told };
        Ok(tree_of(fields, CoveredBox::Domain, options, kind, None)?.0)
    };
    let mut folder = folder_of(options.row_order, FieldFolderKind::Whole)?;
    folder.add_unlisted(BY_ROW, Node::Folder(Arc::new(folder_of(true, FieldFolderKind::Variant(BY_ROW))?)));
    Ok(folder)
}

/// Builds the files of everything that is shown of an array, and its slices.
fn tree_of(
    fields: FieldFolder,
    covers: CoveredBox,
    options: &TreeOptions,
    kind: FieldFolderKind,
    nonempty: Option<Arc<dyn NonEmptyPart>>,
) -> Result<(FixedFolder, Arc<Explanations>)> {
    let (mut folder, explanations) = fields_folder(&fields, covers, kind, nonempty)?;
    folder.add_folder("slice", slices(fields.clone(), Addressing::Coordinate, options.slices.clone(), slice_files));
    folder.add_folder("islice", slices(fields, Addressing::Position, Vec::new(), slice_files));
    Ok((folder, explanations))
}

/// Builds the folder of the files of a slice.
fn slice_files(fields: &FieldFolder, kind: FieldFolderKind) -> Result<FixedFolder> {
    Ok(fields_folder(fields, CoveredBox::Selection, kind, None)?.0)
}

fn modified(array: &OpenedArray) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(array.last_commit().unwrap_or(0))
}

/// Builds the folder of the files of an array or a part of it, and the source of its explanatory files. `nonempty` is
/// its `nonempty/` folder, if it has one.
fn fields_folder(
    fields: &FieldFolder,
    covers: CoveredBox,
    kind: FieldFolderKind,
    nonempty: Option<Arc<dyn NonEmptyPart>>,
) -> Result<(FixedFolder, Arc<Explanations>)> {
    let mut builder = FolderBuilder::new(fields.modified).showing(fields.shown.clone());
    let is_slice = matches!(kind, FieldFolderKind::Slice(_));
    let explanations = Explanations::add_files(&mut builder, fields, covers, kind, nonempty);
    if !is_slice && fields.subarray.selection().is_some() {
        domains::add_to_array(&mut builder, fields.subarray.array(), fields.modified)?;
    }
    views::add_to(&mut builder, fields, is_slice);
    add_described(&mut builder, fields);
    explanations.set_files(builder.file_list());
    let described = fields.clone();
    builder.folder.describe_by(move || xattrs::of_folder(&described));
    builder.folder.shows(explanations.clone());
    Ok((builder.folder, explanations))
}

/// Adds the files that describe an array: metadata, enumerations, labels of the part shown.
fn add_described(builder: &mut FolderBuilder, fields: &FieldFolder) {
    let (array, modified) = (fields.subarray.array(), fields.modified);
    let of_metadata = array.clone();
    meta::add_to(&mut builder.folder, modified, move || of_metadata.metadata());
    add_labels(builder, array, modified);
    labels::add_to(&mut builder.folder, fields, array_folder);
}

/// Adds `enums/` to the folder of an array whose schema has enumerations. Each is read when its file is.
fn add_labels(builder: &mut FolderBuilder, array: &Arc<OpenedArray>, modified: SystemTime) {
    let mut names: Vec<&str> = array.schema().enumerations.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        return;
    }
    // The stored order has no meaning.
    names.sort_unstable();
    let mut files = FileNames::new(&[]);
    builder.add_folder("enums", Listing::Always, |enums| {
        for name in names {
            let (array, name) = (array.clone(), name.to_owned());
            let file = files.give(&name, &[".txt"]);
            let content = LazyFile::new(modified, move || Ok(Arc::new(enums::lines(&array, &name)?)));
            enums.add(format!("{file}.txt"), &LABELS.facts, content);
        }
    });
}
