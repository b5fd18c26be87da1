//! A recursive copy of a group holds the views that the group lists, and the raw files of its arrays, with each value of
//! an array once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use support::paths::{bytes, file, files, names, text};
use support::stored::{copy_folder, generic_tile};
use tilefs_tree::{ShownViews, TreeOptions, open};
use tilefs_vfs::Folder;

/// The time as of which everything is shown, 2100-01-01: texts say it.
const AS_OF: u64 = 4_102_444_800_000;

fn opened(place: &Path, shown: ShownViews) -> Arc<dyn Folder> {
    let mut options = TreeOptions { shown, ..TreeOptions::default() };
    options.reading.at = Some(AS_OF);
    open(place, &options).unwrap()
}

/// The bytes of a recursive copy.
#[derive(Debug, Default)]
struct Copied {
    /// Of the views of the group, by their folders.
    views: HashMap<String, u64>,
    /// Of the raw values and coordinates of arrays.
    raw: u64,
    /// Of other forms of the same values, by their paths.
    again: HashMap<String, u64>,
    /// Of everything else, such as texts.
    rest: u64,
}

impl Copied {
    fn of(root: &Arc<dyn Folder>, views: &[&str]) -> Self {
        let paths = files(&**root);
        let schemas = paths.iter().filter_map(|path| Some(path.strip_suffix("schema.json")?.to_owned()));
        let formats: HashMap<String, String> = schemas.flat_map(|array| listed_formats(root, &array)).collect();
        let mut copied = Copied::default();
        for path in &paths {
            let length = file(root, path).len().unwrap();
            let first = path.split('/').next().unwrap();
            match formats.get(path).map(String::as_str) {
                None if views.contains(&first) => *copied.views.entry(first.to_owned()).or_default() += length,
                Some("raw" | "coordinates" | "offsets" | "validity") => copied.raw += length,
                Some("labels" | "explanation" | "ENVI header") | None => copied.rest += length,
                Some(_) => drop(copied.again.insert(path.clone(), length)),
            }
        }
        copied
    }

    /// Returns the bytes of values in all forms.
    fn values(&self) -> u64 {
        self.views.values().chain(self.again.values()).sum::<u64>() + self.raw
    }
}

/// Returns the formats of the listed files of an array, by their paths in the group.
fn listed_formats(root: &Arc<dyn Folder>, array: &str) -> Vec<(String, String)> {
    let schema: Value = serde_json::from_slice(&bytes(root, &format!("{array}schema.json"))).unwrap();
    let listed = schema["files"].as_array().unwrap().iter().filter(|file| file.get("listed").is_none());
    let named = |file: &Value| {
        (format!("{array}{}", file["path"].as_str().unwrap()), file["format"].as_str().unwrap().to_owned())
    };
    listed.map(named).collect()
}

/// Returns the paths of arrays; that of the root is empty.
fn arrays_of(root: &Arc<dyn Folder>) -> Vec<String> {
    let schemas = files(&**root).into_iter().filter_map(|path| Some(path.strip_suffix("schema.json")?.to_owned()));
    schemas.map(|array| array.trim_end_matches('/').to_owned()).collect()
}

/// A group in TileDB-CF's form: variables with an attribute of their own, along the dimensions of the array.
fn cf_group(folder: &Path) -> PathBuf {
    let group = folder.join("climate");
    copy_folder(&tilefs_fixtures::fixtures().join("demo"), &group.join("demo"));
    fs::write(group.join("__tiledb_group.tdb"), b"").unwrap();
    let (key, value) = ("__tiledb_attr.temp.units", "degC");
    let number = |count: usize| (count as u32).to_le_bytes();
    // Not deleted, and text in UTF-8.
    let metadata = [&number(key.len())[..], key.as_bytes(), &[0, 12], &number(value.len()), value.as_bytes()].concat();
    let name = "__1704067200001_1704067200001_00000000000000000000000000000001";
    fs::write(group.join("demo/__meta").join(name), generic_tile(&metadata)).unwrap();
    group
}

/// The groups, each with the views that it lists and the least and the greatest size of its copy, in percent of the
/// raw values; the manual says them.
fn groups(folder: &Path) -> [(PathBuf, &'static [&'static str], [u64; 2]); 5] {
    let (own, corpus) = (tilefs_fixtures::fixtures(), tilefs_fixtures::corpus());
    [
        (corpus.join("real/pbmc_soma"), &["h5ad"], [130, 200]),
        (corpus.join("real/pbmc_soma_dense"), &["h5ad"], [130, 200]),
        (corpus.join("real/bioimg"), &["tiff"], [190, 210]),
        (own.join("variants/v4"), &["vcf"], [190, 210]),
        (cf_group(folder), &["netcdf", "zarr"], [300, 350]),
    ]
}

#[test]
fn a_recursive_copy_of_a_group_has_the_values_of_its_arrays_once() {
    let folder = tempfile::tempdir().unwrap();
    for (place, views, percent) in groups(folder.path()) {
        let name = place.display();
        let copied = Copied::of(&opened(&place, ShownViews::NONE), views);
        assert!(copied.again.is_empty(), "{name}: {copied:?}");
        assert!(copied.raw > 0 && views.iter().all(|view| copied.views[*view] > 0), "{name}: {copied:?}");
        // With these words, arrays list what they list on their own, and copies are several times as large.
        let shown = ShownViews::NONE.with("npy").with("text").with("netcdf");
        let whole = Copied::of(&opened(&place, shown), views);
        let found = 100 * copied.values() / copied.raw;
        assert!((percent[0]..=percent[1]).contains(&found), "{name}: {found} % of {copied:?}");
        assert!(whole.values() > 2 * copied.values(), "{name}: {} and {}", whole.values(), copied.values());
    }
}

/// The files of arrays in a group that holds their values are listed with the words that name their views.
#[test]
fn words_list_the_other_files_of_arrays_in_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let group = cf_group(folder.path());
    let listed = |shown: ShownViews, path: &str| names(&opened(&group, shown), path);
    let own = ["README.txt", "schema.json", "schema.txt", "fragments.tsv"];
    let raw = ["temp.f32", "temp.f32.hdr"];
    let plain = listed(ShownViews::NONE, "demo");
    assert!(own.iter().chain(&raw).all(|name| plain.iter().any(|one| one == name)), "{plain:?}");
    for (word, path) in [("npy", "npy/temp.npy"), ("text", "text/temp.txt"), ("netcdf", "netcdf/array.nc")] {
        let (view, name) = path.split_once('/').unwrap();
        assert!(!plain.iter().any(|one| one == view), "{plain:?}");
        let root = opened(&group, ShownViews::NONE);
        assert!(!bytes(&root, &format!("demo/{path}")).is_empty(), "{path} opens by name");
        assert!(text(&root, "demo/.tilefs/views.txt").contains(path));
        let shown = || ShownViews::NONE.with(word);
        assert_eq!(listed(shown(), "demo").len(), plain.len() + 1, "{word}");
        assert!(listed(shown(), &format!("demo/{view}")).iter().any(|one| one == name));
    }
    // The array on its own, and in a group of no domain.
    let alone = names(&opened(&group.join("demo"), ShownViews::NONE), "");
    let around = tempfile::tempdir().unwrap();
    copy_folder(&group.join("demo"), &around.path().join("demo"));
    copy_folder(&tilefs_fixtures::fixtures().join("arrays/sparse/nullable"), &around.path().join("sparse"));
    fs::write(around.path().join("__tiledb_group.tdb"), b"").unwrap();
    let of_none = opened(around.path(), ShownViews::NONE);
    assert_eq!(names(&of_none, "demo"), alone);
    assert!(["npy", "text", "netcdf"].iter().all(|view| alone.iter().any(|one| one == view)), "{alone:?}");
    assert!(!text(&of_none, "README.txt").contains("Before copying"));
}

/// An array in a group lists the same files whether the array or the group was looked at first, and its texts say so.
#[test]
fn what_an_array_lists_does_not_depend_on_what_was_opened_before() {
    let folder = tempfile::tempdir().unwrap();
    for (place, views, _) in groups(folder.path()) {
        let root = opened(&place, ShownViews::NONE);
        let mut arrays = arrays_of(&root);
        arrays.retain(|path| !views.contains(&path.split('/').next().unwrap()));
        assert!(!arrays.is_empty());
        for array in arrays {
            let seen = |root: &Arc<dyn Folder>| {
                (
                    names(root, &array),
                    text(root, &format!("{array}/schema.json")),
                    text(root, &format!("{array}/README.txt")),
                )
            };
            let (found, schema, about) = seen(&opened(&place, ShownViews::NONE));
            assert!(seen(&root) == (found.clone(), schema, about.clone()), "{}: {array}", place.display());
            assert!(["npy", "text", "netcdf"].iter().all(|view| !found.iter().any(|one| one == view)), "{found:?}");
            assert!(!about.contains("times:"), "{array}: {about}");
        }
        let about = text(&root, "README.txt");
        assert!(
            about.contains("Before copying") && about.contains(&format!("cp -r {} DESTINATION", views[0])),
            "{about}"
        );
    }
}

/// A raster of GDAL lists its image, and the raw values once; an array that GDAL did not describe lists no image.
#[test]
fn a_raster_of_gdal_lists_its_image_and_its_values_once() {
    let root = opened(&tilefs_fixtures::fixtures().join("rasters/picture"), ShownViews::NONE);
    let array = arrays_of(&root).into_iter().next().unwrap();
    let [image, plain] = ["tiff", "npy"].map(|view| names(&root, &array).iter().any(|name| name == view));
    assert!(image && !plain, "{:?}", names(&root, &array));
    let path = |name: &str| format!("{array}{}{name}", if array.is_empty() { "" } else { "/" });
    let listed: Vec<(String, String)> = listed_formats(&root, &path(""));
    let of_values = ["NumPy", "text", "table", "netCDF"];
    assert!(!listed.iter().any(|(_, format)| of_values.contains(&format.as_str())), "{listed:?}");
    let [raw, images] = ["raw", "BigTIFF"].map(|format| {
        let files = listed.iter().filter(|(_, own)| own == format);
        files.map(|(path, _)| file(&root, path).len().unwrap()).sum::<u64>()
    });
    assert!(raw > 0 && (100..=150).contains(&(100 * images / raw)), "{raw} {images}");
    assert!(text(&root, &path("README.txt")).contains("tiff/"));
    let of_none = opened(&tilefs_fixtures::fixtures().join("demo"), ShownViews::NONE);
    assert!(!names(&of_none, "").iter().any(|name| name == "tiff"));
}
