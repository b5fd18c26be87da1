//! The additions to the folder of an image pyramid, of TileDB-BioImaging or TileDB-SOMA: `tiff/`, and the axes in `zarr/` under OME's names.

use std::sync::{Arc, OnceLock};

use serde_json::json;
use tilefs_base::error::Result;
use tilefs_export::pyramid::Pyramid;
use tilefs_export::zarr::is_ngff;
use tilefs_reader::array::OpenedArray;
use tilefs_threads::cancellation;
use tilefs_vfs::node::Node;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::quoting::in_line;

use crate::domains::bioimaging::{Picture, TIFF, level_of, picture, picture_state, pyramid_of};
use crate::domains::{DescribedViews, Domain, GroupDomain, GroupFiles, GroupUses, GroupView, ShownGroup};
use crate::fields::array_form::ArrayForm;
use crate::fields::meta;
use crate::options::TreeOptions;

/// The domain: pyramids of TileDB-BioImaging, and multiscale images of TileDB-SOMA.
pub const DOMAIN: Domain = Domain {
    groups: "Image pyramids of TileDB-BioImaging and TileDB-SOMA",
    group_views: &[OME_ZARR, OME_TIFF],
    of_group: Some(|group| Box::new(PyramidGroup { shown: group, pyramid: OnceLock::new(), tiff: OnceLock::new() })),
    ..Domain::NONE
};

/// `zarr/` of a pyramid.
const OME_ZARR: GroupView = GroupView {
    path: "zarr",
    reader: "OME-Zarr (open the folder): napari, Neuroglancer, zarr",
    lacks: "axes in another order than time, channels and space, and the transformations of a scene",
};

/// The image of a pyramid.
const OME_TIFF: GroupView = GroupView {
    path: "tiff/NAME.ome.tif",
    reader: "OME-TIFF: tifffile, Bio-Formats, QuPath, GDAL",
    lacks: "64-bit integers, levels that differ in more than their size, and width before height",
};

/// A group that may be a pyramid. Memory: the description of the pyramid, and the positions of the tiles of its image.
struct PyramidGroup {
    shown: ShownGroup,
    /// The pyramid that the group is, if it is one, once its metadata were read: they may be long, and each member asks.
    pyramid: OnceLock<Option<Pyramid>>,
    /// `tiff/`, with the levels of the pyramid, once used.
    tiff: OnceLock<Node>,
}

impl PyramidGroup {
    fn pyramid(&self) -> Result<Option<&Pyramid>> {
        if let Some(known) = self.pyramid.get() {
            return Ok(known.as_ref());
        }
        let found = pyramid_of(&self.shown.group)?;
        // What a cancelled thread found may be incomplete.
        cancellation::check()?;
        Ok(self.pyramid.get_or_init(|| found).as_ref())
    }

    fn tiff(&self) -> Result<Option<Node>> {
        if let Some(known) = self.tiff.get() {
            return Ok(Some(known.clone()));
        }
        let Some(pyramid) = self.pyramid()? else { return Ok(None) };
        let Ok(picture) = picture(&self.shown.group, pyramid, &self.shown.options)? else { return Ok(None) };
        let mut folder = FixedFolder::new(self.shown.modified);
        let content = picture.content;
        folder.add_file(picture.name, LazyFile::new(self.shown.modified, move || Ok(content.clone())));
        Ok(Some(self.tiff.get_or_init(|| Node::Folder(Arc::new(folder))).clone()))
    }

    /// Returns whether `zarr/` is OME-Zarr.
    fn is_ngff(&self) -> Result<bool> {
        Ok(is_ngff(&meta::for_formats(&*self.shown.group.metadata()?)))
    }

    fn state(&self) -> Picture {
        match self.pyramid() {
            Ok(Some(pyramid)) => picture_state(&self.shown.group, pyramid, &self.shown.options),
            Ok(None) | Err(_) => Picture::NoPyramid,
        }
    }
}

impl GroupDomain for PyramidGroup {
    fn view(&self, name: &str) -> Result<Option<Node>> {
        if name == TIFF { self.tiff() } else { Ok(None) }
    }

    fn listed(&self) -> (Vec<&'static str>, bool) {
        let tiff = self.tiff();
        let is_listed = matches!(tiff, Ok(Some(_)));
        (is_listed.then_some(TIFF).into_iter().collect(), tiff.is_ok())
    }

    fn member_form(&self, array: &Arc<OpenedArray>) -> Result<Option<ArrayForm>> {
        if array.schema().is_sparse() {
            return Ok(None);
        }
        // Where the metadata or the list of members cannot be read, files of the group report the damage.
        let level = self.pyramid().ok().flatten().and_then(|pyramid| level_of(&self.shown.group, pyramid, array));
        Ok(level.map(|level| ArrayForm {
            samples: Some(level.samples).filter(|&samples| samples > 1),
            axes: Some(level.axes.clone()),
            ..ArrayForm::default()
        }))
    }

    /// The arrays have the axes under the same names as the metadata of the image.
    fn options_in_zarr(&self) -> Result<Option<Arc<TreeOptions>>> {
        let options = || TreeOptions { axes_of_images: true, ..(*self.shown.options).clone() };
        Ok(self.is_ngff()?.then(|| Arc::new(options())))
    }

    fn describe_views(&self, views: &mut DescribedViews) -> Result<()> {
        if self.is_ngff()? {
            views.add(&[OME_ZARR]);
        }
        match self.state() {
            Picture::NoPyramid => {}
            Picture::Present(path) => views.add_at(&path, &OME_TIFF),
            Picture::LeftOut(path, reason, is_final) => views.add_absent(&path, &reason, is_final),
        }
        Ok(())
    }

    fn describe_uses(&self, uses: &mut GroupUses, _may_open: bool) -> Result<()> {
        match self.state() {
            Picture::NoPyramid => {}
            Picture::Present(path) => {
                uses.views += &format!(
                    "All levels of the pyramid as one OME-TIFF, for tifffile, Bio-Formats (ImageJ, QuPath) and GDAL:\n\
                     \x20   gdalinfo {path}\n\
                     The same as OME-Zarr, for napari and Neuroglancer:\n\
                     \x20   ls zarr\n"
                );
            }
            Picture::LeftOut(path, reason, is_final) => {
                uses.lasts &= is_final;
                uses.views += &format!("\nThere is no {path}: {}.\n", in_line(&reason));
            }
        }
        Ok(())
    }

    fn describe_files(&self, files: &mut GroupFiles) {
        match self.state() {
            Picture::NoPyramid => {}
            Picture::Present(path) => files.files.push(json!({"path": path, "format": "OME-TIFF"})),
            Picture::LeftOut(path, reason, is_final) => {
                files.lasts &= is_final;
                files.not_listed.push(json!({"path": path, "reason": reason}));
            }
        }
    }
}
