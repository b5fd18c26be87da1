//! The views of an array: each is a form in which its cells can be read, and each has one file here, which says all
//! about it. [`VIEWS`] is the list from which everything that names views is made: folders, `--show`, README.txt,
//! `.tilefs/views.txt`, schema.json, the manual, media types and the page of a server.

pub mod arrow;
pub mod arrow_parts;
pub mod builder;
pub mod chunk_series;
pub mod column_major;
pub mod commands;
pub mod datasets;
pub mod described;
pub mod facts;
pub mod files;
pub mod geojson;
pub mod grid;
pub mod headers;
pub mod images;
pub mod json_lines;
pub mod labels;
pub mod lines;
pub mod matrix_market;
pub mod names;
pub mod npy;
pub mod parquet;
pub mod parts;
pub mod raw;
pub mod tables;
pub mod text_tables;
pub mod tiff;
pub mod view;
pub mod zarr;

pub use view::View;

use tilefs_vfs::node::listing::Listing;

use crate::fields::FieldFolder;
use crate::views::builder::{DeclareFiles, FolderBuilder, WhichFields};
use crate::views::facts::{BYTES, Shown};
use crate::views::parts::PartsFolder;
use crate::views::view::{Add, Parts};

/// All views. A folder has its files in this order, and the folders of an array are in the order of their first views.
pub static VIEWS: &[&View] = &[
    &raw::RAW,
    &raw::COORDINATES,
    &raw::OFFSETS,
    &raw::VALIDITY,
    &lines::LINES,
    &headers::ENVI,
    &headers::VRT,
    &headers::SIDECAR,
    &npy::NPY,
    &grid::GRID,
    &text_tables::TSV,
    &text_tables::CSV,
    &text_tables::LINES_OF_ROWS,
    &json_lines::JSON_LINES,
    &geojson::GEOJSON,
    &matrix_market::MATRIX_MARKET,
    &datasets::NETCDF,
    &datasets::NETCDF4,
    &datasets::HDF5,
    &arrow::ARROW,
    &parquet::PARQUET,
    &parquet::PARQUET_MICROSECONDS,
    &parquet::PARQUET_METADATA,
    &zarr::ZARR_VIEW,
    &zarr::ZARR2_VIEW,
    &tiff::TIFF,
    &tiff::RASTER_METADATA,
    &images::FITS,
    &images::NIFTI,
    &column_major::COLUMN_MAJOR,
    &described::ORIGINAL,
    &described::LABELS,
    &described::EXPLANATION,
];

/// Returns the words of `--show`, each once.
pub fn words() -> impl Iterator<Item = &'static str> {
    let word = |view: &View| match view.facts.shown {
        Shown::Alone(word) | Shown::With(word) => Some(word),
        Shown::Always | Shown::WithAll | Shown::Never => None,
    };
    let words: Vec<&str> = VIEWS.iter().filter_map(|view| word(view)).collect();
    let is_first = |(place, word): &(usize, &'static str)| words.iter().position(|other| other == word) == Some(*place);
    let first: Vec<&str> = words.iter().copied().enumerate().filter(is_first).map(|(_, word)| word).collect();
    first.into_iter()
}

/// Returns the media type of a file of this name.
pub fn media_type(name: &str) -> &'static str {
    let ends = |file: &&str| file.rsplit_once('.').is_some_and(|(_, ending)| name.ends_with(&format!(".{ending}")));
    let view = VIEWS.iter().find(|view| view.facts.media_type != BYTES && view.facts.files.iter().any(ends));
    view.map_or(BYTES, |view| view.facts.media_type)
}

/// Returns the command on the page of a server for the views of which a folder has these paths, each with what it does.
/// `url` returns the address of a path.
pub fn web_commands(paths: &[String], url: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    let mut found: Vec<_> = VIEWS
        .iter()
        .filter_map(|view| {
            let web = view.facts.web.as_ref()?;
            let (folder, ending) =
                (format!("{}/", view.facts.folder), view.facts.files.first()?.trim_start_matches("NAME"));
            let path = paths.iter().find(|path| path.starts_with(&folder) && path.ends_with(ending))?;
            Some((web.place, web.about, (web.write)(&url(path))))
        })
        .collect();
    found.sort_by_key(|(place, ..)| *place);
    found.into_iter().map(|(_, about, command)| (about, command)).collect()
}

/// Returns the folders of views, each once.
fn folders() -> Vec<&'static str> {
    let mut folders = Vec::new();
    for folder in VIEWS.iter().map(|view| view.facts.folder).filter(|folder| !folder.is_empty()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn in_folder(folder: &str) -> impl Iterator<Item = &'static View> {
    VIEWS.iter().copied().filter(move |view| view.facts.folder == folder)
}

/// Returns what declares the files of views for attributes and dimensions.
fn of_fields(views: impl Iterator<Item = &'static View>) -> Vec<DeclareFiles> {
    views.filter_map(View::declare_of_field).collect()
}

/// Returns the paths of the folders of parts, each with what it contains.
pub fn folders_of_parts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in folders() {
        for PartsInFolder { folder: name, parts, .. } in by_folder(in_folder(folder)) {
            let endings: Vec<String> = parts.iter().map(|part| format!(".{}", part.ending)).collect();
            let about = parts.first().map_or("", |part| part.about).replace("ENDINGS", &endings.join(", "));
            found.push((format!("{folder}/{name}/"), about));
        }
    }
    found
}

/// The parts of tables in one folder.
struct PartsInFolder {
    folder: &'static str,
    /// The view of the parts that are listed, which are the first ones.
    of: &'static View,
    parts: Vec<&'static Parts>,
}

/// Returns the parts of tables by the names of their folders.
fn by_folder(views: impl Iterator<Item = &'static View>) -> Vec<PartsInFolder> {
    let mut found: Vec<PartsInFolder> = Vec::new();
    for (view, part) in views.flat_map(|view| view.parts.iter().map(move |part| (view, part))) {
        match found.iter_mut().find(|known| known.folder == part.folder) {
            Some(known) => known.parts.push(part),
            None => found.push(PartsInFolder { folder: part.folder, of: view, parts: vec![part] }),
        }
    }
    found
}

/// Adds the files of all attributes and dimensions, and the folders of views. `is_slice` tells whether the array is one.
pub fn add_to(builder: &mut FolderBuilder, fields: &FieldFolder, is_slice: bool) {
    builder.add_fields(fields, WhichFields::Attributes, of_fields(in_folder("")));
    builder.add_folder("dims", Listing::Always, |dims| {
        dims.add_fields(fields, WhichFields::Dimensions, of_fields(in_folder("")));
    });
    for folder in folders() {
        add_folder(builder, fields, folder, is_slice);
    }
}

/// Adds a folder of views, or records why an array does not have it.
fn add_folder(builder: &mut FolderBuilder, fields: &FieldFolder, folder: &'static str, is_slice: bool) {
    let (mut fitting, mut absent): (Vec<&View>, Vec<(&View, String)>) = (Vec::new(), Vec::new());
    for view in in_folder(folder) {
        match (view.fits)(fields) {
            Ok(()) => fitting.push(view),
            Err(reason) => absent.push((view, reason)),
        }
    }
    if let (true, Some((_, reason))) = (fitting.is_empty(), absent.first()) {
        return builder.folder.explain_absence(folder, reason);
    }
    for view in &fitting {
        if let Add::Whole(add) = view.add {
            return add(builder, fields, is_slice);
        }
    }
    let listings = fitting.iter().map(|view| view.facts.listing(&fields.shown));
    builder.add_folder(folder, listings.fold(Listing::Never, Listing::or), |inner| {
        inner.add_fields(fields, WhichFields::All, of_fields(fitting.iter().copied()));
        for view in &fitting {
            if let Add::OfArray(add) = view.add {
                add(inner, fields);
            }
        }
        for PartsInFolder { folder, of, parts } in by_folder(fitting.iter().copied()) {
            let Some(first) = parts.first() else { continue };
            let forms = parts.iter().map(|part| (part.ending, part.make)).collect();
            let parts = PartsFolder::new(fields.clone(), (first.sizing)(fields), forms);
            // A folder that is found by name lists its parts all the same.
            let listing = match of.facts.shown {
                Shown::Alone(_) => of.facts.listing(&fields.shown),
                _ => Listing::Always,
            };
            inner.add_parts(folder, parts, listing);
        }
        for (view, reason) in &absent {
            view.facts.files.iter().for_each(|name| inner.folder.explain_absence(name, reason));
        }
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_view_has_a_name_and_a_place_of_its_own() {
        let names: HashSet<&str> = VIEWS.iter().map(|view| view.facts.name).collect();
        assert_eq!(names.len(), VIEWS.len());
        let places: Vec<u8> = VIEWS.iter().filter_map(|view| Some(view.facts.job?.place)).collect();
        assert_eq!(places.iter().collect::<HashSet<_>>().len(), places.len());
        assert!(VIEWS.iter().all(|view| !view.facts.lacks.is_empty()), "each view says what it cannot hold");
        assert!(words().all(|word| words().filter(|other| *other == word).count() == 1));
    }

    #[test]
    fn the_ending_of_a_name_tells_the_media_type() {
        assert_eq!(media_type("t2m.tif"), "image/tiff");
        assert_eq!(media_type("000000000000000.parquet"), "application/vnd.apache.parquet");
        assert_eq!(media_type("t2m.f32.hdr"), facts::TEXT);
        assert_eq!((media_type("t2m.vrt"), media_type("a.tif.aux.xml"), media_type("tif")), (BYTES, BYTES, BYTES));
    }
}
