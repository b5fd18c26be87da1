//! `tiff/` of a group that is an image pyramid: all levels as one OME-TIFF.

pub mod group;

use std::sync::Arc;

use tilefs_export::column::boxes::Boxes;
use tilefs_export::pyramid::{ATTRIBUTE, Pyramid};
use tilefs_export::tiff::{check_levels, ome_tiff};
use tilefs_export::{Content, FormatResult, Unrepresentable};
use tilefs_format::error::{Error, Result};
use tilefs_reader::array::Array;
use tilefs_reader::group::Group;

use crate::cells::dense::{DenseArray, DenseSubarray};
use crate::cells::{DenseBoxes, FieldId, describe_field};
use crate::fields::meta;
use crate::objects::open_folder;
use crate::options::OpenOptions;

/// The folder of the image.
pub const TIFF: &str = "tiff";

/// The image's name, after the attribute that all levels have.
pub const PICTURE: &str = "intensity.ome.tif";

/// Returns the image of a pyramid, or the reason why it cannot be one; `None` for other groups. Opens the levels, but
/// reads no cell.
///
/// # Errors
/// Fails if the group's metadata or members cannot be read, or a level cannot be opened.
pub fn picture(group: &Group, options: &OpenOptions) -> Result<Option<FormatResult<Arc<dyn Content>>>> {
    let Some(pyramid) = Pyramid::of(&meta::for_formats(&*group.metadata()?)) else { return Ok(None) };
    if let Err(reason) = check_levels(&pyramid) {
        return Ok(Some(Err(reason)));
    }
    let mut levels = Vec::new();
    for level in &pyramid.levels {
        match cells(group, &level.name, options)? {
            Ok(cells) => levels.push(cells),
            Err(reason) => return Ok(Some(Err(reason))),
        }
    }
    Ok(Some(ome_tiff(&pyramid, &levels, &group.path().shown_name())))
}

/// Whether a group has an image of its pyramid.
pub enum Picture {
    /// It is not a pyramid, or its metadata cannot be read.
    NoPyramid,
    Present,
    /// The reason why there is no image, and whether that is final.
    LeftOut(String, bool),
}

/// Returns whether a group has an image.
pub fn picture_state(group: &Group, options: &OpenOptions) -> Picture {
    match picture(group, options) {
        Ok(None) => Picture::NoPyramid,
        Ok(Some(Ok(_))) => Picture::Present,
        Ok(Some(Err(reason))) => Picture::LeftOut(reason.to_string(), true),
        Err(_) if group.metadata().is_err() => Picture::NoPyramid,
        Err(error) => Picture::LeftOut(error.to_string(), false),
    }
}

/// Returns the number of samples of a pixel that are adjacent in an array, if it is a level of a pyramid, and there are
/// several.
pub fn adjacent_samples(group: &Group, array: &Array) -> Option<u64> {
    if !array.schema().attributes.iter().any(|attribute| attribute.name == ATTRIBUTE) {
        return None;
    }
    let pyramid = Pyramid::of(&meta::for_formats(&*group.metadata().ok()?))?;
    let members = group.members().ok()?;
    let member = members.iter().find(|member| member.place.path().is_some_and(|path| path == array.path()))?;
    let level = pyramid.levels.iter().find(|level| level.name == member.name)?;
    Some(level.samples).filter(|&samples| samples > 1)
}

/// Returns the cells of a level, which is a member of the group.
fn cells(group: &Group, name: &str, options: &OpenOptions) -> Result<FormatResult<Arc<dyn Boxes>>> {
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
    let Some(number) = array.schema().attributes.iter().position(|attribute| attribute.name == ATTRIBUTE) else {
        return refused(&format!("has no attribute {ATTRIBUTE}"));
    };
    let id = FieldId::Attribute(number);
    let field = describe_field(id, array.schema(), ATTRIBUTE);
    let dense = Arc::new(DenseArray::new(array)?);
    let (selection, _) = dense.default_selection(options.extent)?;
    Ok(Ok(Arc::new(DenseBoxes::new(Arc::new(DenseSubarray::new(dense, selection)), id, field)?)))
}
