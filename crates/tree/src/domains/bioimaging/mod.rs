//! `tiff/` of a group that is an image pyramid of TileDB-BioImaging or TileDB-SOMA: all levels as one OME-TIFF.

pub mod group;

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_export::column::boxes::Boxes;
use tilefs_export::pyramid::{Pyramid, PyramidLevel};
use tilefs_export::tiff::{check_levels, ome_tiff};
use tilefs_export::{FormatResult, Unrepresentable};
use tilefs_reader::array::OpenedArray;
use tilefs_reader::group::OpenedGroup;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::{DenseBoxes, FieldId, describe_field};
use crate::fields::meta;
use crate::objects::open_folder;
use crate::options::TreeOptions;

/// The folder of the image.
pub const TIFF: &str = "tiff";

/// The image of a pyramid.
#[derive(Clone)]
pub struct PyramidImage {
    /// Its name, after the attribute that all levels have.
    pub name: String,
    pub content: Arc<dyn Content>,
}

/// Returns the image of a pyramid, or the reason why it cannot be one. Opens the levels, but reads no cell.
///
/// # Errors
/// Fails if the group's members cannot be read, or a level cannot be opened.
pub fn picture(group: &OpenedGroup, pyramid: &Pyramid, options: &TreeOptions) -> Result<FormatResult<PyramidImage>> {
    if let Err(reason) = check_levels(pyramid) {
        return Ok(Err(reason));
    }
    let mut levels = Vec::new();
    for level in &pyramid.levels {
        match cells(group, &level.name, pyramid.attribute, options)? {
            Ok(cells) => levels.push(cells),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    let content = ome_tiff(pyramid, &levels, &group.path().shown_name());
    let name = picture_name(pyramid);
    Ok(content.map(|content| PyramidImage { name, content }))
}

fn picture_name(pyramid: &Pyramid) -> String {
    format!("{}.ome.tif", pyramid.attribute)
}

/// Whether a group has an image of its pyramid.
pub enum Picture {
    /// It is not a pyramid, or its metadata cannot be read.
    NoPyramid,
    /// The path of the image.
    Present(String),
    /// The path that it would have, the reason why there is none, and whether that is final.
    LeftOut(String, String, bool),
}

/// Returns whether a group that is a pyramid has an image.
pub fn picture_state(group: &OpenedGroup, pyramid: &Pyramid, options: &TreeOptions) -> Picture {
    let path = format!("{TIFF}/{}", picture_name(pyramid));
    match picture(group, pyramid, options) {
        Ok(Ok(_)) => Picture::Present(path),
        Ok(Err(reason)) => Picture::LeftOut(path, reason.to_string(), true),
        Err(error) => Picture::LeftOut(path, error.to_string(), false),
    }
}

/// Returns the pyramid that a group is; `None` if it is no pyramid.
///
/// # Errors
/// Fails if the group's metadata cannot be read.
pub fn pyramid_of(group: &OpenedGroup) -> Result<Option<Pyramid>> {
    Ok(Pyramid::of(&meta::for_formats(&*group.metadata()?)))
}

/// Returns the level of a pyramid that a dense array is, if it is one.
pub fn level_of<'p>(group: &OpenedGroup, pyramid: &'p Pyramid, array: &OpenedArray) -> Option<&'p PyramidLevel> {
    if !array.schema().attributes.iter().any(|attribute| attribute.name == pyramid.attribute) {
        return None;
    }
    let members = group.members().ok()?;
    let member = members.iter().find(|member| member.place.path().is_some_and(|path| path == array.path()))?;
    pyramid.levels.iter().find(|level| level.name == member.name)
}

/// Returns the cells of a level, which is a member of the group.
fn cells(
    group: &OpenedGroup,
    name: &str,
    attribute: &str,
    options: &TreeOptions,
) -> Result<FormatResult<Arc<dyn Boxes>>> {
    let refused = |what: &str| Ok(Err(Unrepresentable::new(format!("its level {name} {what}"))));
    let members = group.members()?;
    let Some(path) = members.iter().find(|member| member.name == name).and_then(|member| member.place.path()) else {
        return refused("is missing");
    };
    let array = match open_folder(group.context().clone(), path, group.window()) {
        Err(Error::NotAnArray { .. }) => return refused("is not an array"),
        array => array?,
    };
    if array.schema().is_sparse() {
        return refused("is sparse");
    }
    let Some(number) = array.schema().attributes.iter().position(|known| known.name == attribute) else {
        return refused(&format!("has no attribute {attribute}"));
    };
    let id = FieldId::Attribute(number);
    let field = describe_field(id, array.schema(), attribute);
    let dense = Arc::new(DenseArray::new(array)?);
    let (selection, _) = dense.default_selection(options.extent)?;
    Ok(Ok(Arc::new(DenseBoxes::new(Arc::new(DenseSubarray::new(dense, selection)), id, field)?)))
}
