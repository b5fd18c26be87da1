//! `tiff/` of a group that is a pyramid of pictures: all levels as one OME-TIFF.

use std::sync::Arc;

use tilefs_export::boxes::Boxes;
use tilefs_export::pyramid::{ATTRIBUTE, Pyramid};
use tilefs_export::tiff::{check_levels, ome_tiff};
use tilefs_export::{Content, FormatResult, Unrepresentable};
use tilefs_format::error::{Error, Result};
use tilefs_reader::group::Group;

use super::dense::{DenseArray, DenseSubarray};
use super::meta;
use super::open::open_folder;
use super::options::OpenOptions;
use super::subarray::{DenseBoxes, FieldId};

/// The folder of the picture.
pub const TIFF: &str = "tiff";

/// Its name: that of the attribute that all levels have.
pub const PICTURE: &str = "intensity.ome.tif";

/// The picture of a pyramid, or why it cannot be one; `None` for other groups. The levels are opened, and no cell is read.
///
/// # Errors
/// When the group's metadata or members cannot be read, or a level cannot be opened.
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

/// Whether a group has a picture of the pyramid that it is.
pub enum State {
    /// It is no pyramid, or it cannot be told.
    NoPyramid,
    There,
    /// Why it is left out, and whether that lasts.
    LeftOut(String, bool),
}

/// Whether a group has a picture. Nothing is said of one whose metadata cannot be read.
pub fn state(group: &Group, options: &OpenOptions) -> State {
    match picture(group, options) {
        Ok(None) => State::NoPyramid,
        Ok(Some(Ok(_))) => State::There,
        Ok(Some(Err(reason))) => State::LeftOut(reason.to_string(), true),
        Err(_) if group.metadata().is_err() => State::NoPyramid,
        Err(error) => State::LeftOut(error.to_string(), false),
    }
}

/// The cells of a level, by the name of the member.
fn cells(group: &Group, name: &str, options: &OpenOptions) -> Result<FormatResult<Arc<dyn Boxes>>> {
    let refused = |what: &str| Ok(Err(Unrepresentable::new(format!("its level {name} {what}"))));
    let members = group.members()?;
    let Some(path) = members.iter().find(|member| member.name == name).and_then(|member| member.place.path()) else {
        return refused("is missing");
    };
    let array = match open_folder(group.context().clone(), path, group.window()) {
        Err(Error::NotAnArray { .. }) => return refused("is no array"),
        array => array?,
    };
    if array.schema().is_sparse() {
        return refused("is sparse");
    }
    let Some(number) = array.schema().attributes.iter().position(|attribute| attribute.name == ATTRIBUTE) else {
        return refused(&format!("has no attribute {ATTRIBUTE}"));
    };
    let id = FieldId::Attribute(number);
    let field = id.describe(array.schema(), ATTRIBUTE);
    let dense = Arc::new(DenseArray::new(array)?);
    let (selection, _) = dense.default_selection(options.extent)?;
    Ok(Ok(Arc::new(DenseBoxes::new(Arc::new(DenseSubarray::new(dense, selection)), id, field)?)))
}
