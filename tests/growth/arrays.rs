//! Texts and listings of arrays with many attributes, metadata and enumerations.

use std::path::Path;
use std::sync::Arc;

use support::handmade::{Attribute, CHAR, NAME, Stored, UINT8, attribute, plane, schema, str32, str64, write_tile};
use support::paths::{bytes, names};
use tilefs_tree::{TreeOptions, open};
use tilefs_vfs::{File, Folder, Node};

use super::steps::grow_with_the_input;

/// A metadata key and its text.
pub type Entry = (String, String);

/// Returns an array with this schema and these metadata.
fn stored(schema: &[u8], metadata: &[Entry]) -> Stored {
    let stored = Stored::new(schema);
    write_metadata(&stored.path(), metadata);
    stored
}

/// Writes metadata into the folder of an array or a group.
pub fn write_metadata(folder: &Path, metadata: &[Entry]) {
    let entry = |(key, text): &Entry| [str32(key), vec![0, CHAR], str32(text)].concat();
    let payload: Vec<u8> = metadata.iter().flat_map(entry).collect();
    if !payload.is_empty() {
        write_tile(&folder.join("__meta").join(NAME), &payload, payload.len() as u64);
    }
}

/// Does what `ls -l`, `tilefs info` and the texts of the folder do.
fn look_at(path: &Path, listed: &[&str]) {
    let root: Arc<dyn Folder> = open(path, &TreeOptions::default()).unwrap();
    for text in ["README.txt", "schema.json", "schema.txt", ".tilefs/views.txt", "meta.json"] {
        bytes(&root, text);
    }
    for folder in [&[""], listed].concat() {
        for name in names(&root, folder) {
            let node = support::paths::node(&root, &format!("{folder}/{name}")).unwrap();
            if let Node::File(file) = node {
                size(&*file);
            }
        }
    }
}

fn size(file: &dyn File) {
    file.len().unwrap();
}

/// Returns so many attributes of bytes whose names begin with `prefix`.
fn attributes(prefix: &str, count: usize) -> std::vec::IntoIter<Attribute> {
    (1..=count).map(|number| attribute(&format!("{prefix}{number}"), UINT8, None)).collect::<Vec<_>>().into_iter()
}

#[test]
fn attributes_with_metadata() {
    let notes = |prefix: &str, count: usize| -> Vec<Entry> {
        (1..=count).map(|number| (format!("{prefix}{number}.units"), "m".to_owned())).collect()
    };
    type NamedForm = (&'static str, fn(usize) -> usize);
    let forms: [NamedForm; 3] = [("named", |n| n), ("unnamed", |_| 1), ("none", |_| 0)];
    for (name, notes_of) in forms {
        let make =
            |count| stored(&schema(100, 100, attributes("a", count)), &notes("__tiledb_attr.a", notes_of(count)));
        grow_with_the_input(name, 40, make, |stored| look_at(&stored.path(), &[]));
    }
    let unit = |count| stored(&schema(100, 100, attributes("a", count)), &[("_UNIT".to_owned(), "m".repeat(1000))]);
    grow_with_the_input("a unit", 40, unit, |stored| look_at(&stored.path(), &[]));
    let keys = |count| stored(&schema(100, 100, attributes("a", 1)), &notes("k", count));
    grow_with_the_input("keys", 100, keys, |stored| look_at(&stored.path(), &[]));
}

#[test]
fn rasters_of_many_attributes() {
    let last = "<PAMDataset><PAMRasterBand band='65536'><NoDataValue>1</NoDataValue></PAMRasterBand></PAMDataset>";
    let forms: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("one raster", &|_| "<PAMRasterBand band='65536'/>".to_owned()),
        ("a raster each", &|count| {
            (1..=count).map(|number| format!("<Subdataset name='a_{number}'>{last}</Subdataset>")).collect()
        }),
        ("a raster for all", &|_| format!("<Subdataset name='a'>{last}</Subdataset>")),
        ("items", &|count| {
            let items: String = (0..count).map(|number| format!("<MDI key='k{number}'>v</MDI>")).collect();
            format!("<Metadata>{items}</Metadata>")
        }),
    ];
    for (name, make) in forms {
        let array = |count: usize| {
            let gdal = ("_gdal".to_owned(), format!("<PAMDataset>{}</PAMDataset>", make(count)));
            stored(&plane(10, 10, attributes("a_", count)), &[gdal])
        };
        grow_with_the_input(name, 40, array, |stored| look_at(&stored.path(), &[]));
        grow_with_the_input(name, 40, array, |stored| {
            let root = open(&stored.path(), &TreeOptions::default()).unwrap();
            bytes(&root, "zarr/zarr.json");
        });
    }
}

#[test]
fn enumerations_of_many_attributes() {
    let array = |count: usize| {
        let of_codes = |number| Attribute {
            enumeration: format!("e{number}").leak(),
            ..attribute(&format!("a{number}"), UINT8, None)
        };
        stored(&schema(100, 100, (0..count).map(of_codes).collect::<Vec<_>>().into_iter()), &[])
    };
    // The enumerations are missing, which each attribute finds.
    grow_with_the_input("enumerations", 40, array, |stored| look_at(&stored.path(), &[]));
}

/// An enumeration that the cache cannot hold is not decoded again for each part of its text.
#[test]
fn labels_beyond_the_cache() {
    let label = |number: usize| format!("label {number:010}").into_bytes();
    let text = |count: usize| -> Content {
        let of_codes = Attribute { enumeration: "e", ..attribute("a", UINT8, None) };
        let stored = stored(&schema(100, 100, [of_codes].into_iter()), &[]);
        let values: Vec<Vec<u8>> = (0..count).map(label).collect();
        let starts: Vec<u8> = (0..count as u64).flat_map(|number| (16 * number).to_le_bytes()).collect();
        let about =
            [vec![0; 4], str32("e"), str32(NAME), vec![CHAR], u32::MAX.to_le_bytes().to_vec(), vec![0]].concat();
        let payload = [about, str64(&values.concat()), str64(&starts)].concat();
        write_tile(&stored.path().join("__schema/__enumerations").join(NAME), &payload, payload.len() as u64);
        let mut options = TreeOptions::default();
        options.reading.cache_size = 1 << 20;
        let root: Arc<dyn Folder> = open(&stored.path(), &options).unwrap();
        let Node::File(file) = support::paths::node(&root, "enums/e.txt").unwrap() else { panic!("it is a file") };
        (stored, file.open().unwrap())
    };
    type Content = (Stored, Arc<dyn tilefs_base::content::Content>);
    grow_with_the_input("labels", 20_000, text, |(_stored, text)| {
        let mut bytes = vec![0; text.len() as usize];
        for (number, piece) in bytes.chunks_mut(8192).enumerate() {
            text.read_at(8192 * number as u64, piece).unwrap();
        }
        let count = bytes.len() / 17;
        for number in [0, count / 2, count - 1] {
            assert_eq!(bytes[17 * number..][..16], label(number));
        }
    });
}

/// What is malformed or beyond a limit is not used, and the texts of the array say so.
#[test]
fn what_is_not_used_is_in_the_texts() {
    let unused = "GDAL's description of the rasters (_gdal) is not used: ";
    let system = "the coordinate system (_CRS) is neither PROJJSON nor well-known text";
    let deep = format!("<PAMDataset>{}{}</PAMDataset>", "<a>".repeat(300), "</a>".repeat(300));
    let forms = [
        ("_gdal", "<PAMDataset><Metadata>", Some(format!("{unused}malformed XML at byte 22"))),
        ("_gdal", deep.as_str(), Some(format!("{unused}XML with more than 256 elements within each other"))),
        ("_gdal", "<VRTDataset/>", Some(format!("{unused}the root element is VRTDataset"))),
        ("_gdal", "<PAMDataset/>", None),
        ("_CRS", "EPSG:4326", Some(system.to_owned())),
        ("_CRS", "{\"type\":", Some(system.to_owned())),
        ("_CRS", "GEOGCS[\"a\"]", None),
    ];
    for (key, text, remark) in forms {
        let stored = stored(&plane(10, 10, attributes("a", 1)), &[(key.to_owned(), text.to_owned())]);
        let root = open(&stored.path(), &TreeOptions::default()).unwrap();
        for file in ["README.txt", "schema.txt", "schema.json"] {
            let shown = String::from_utf8(bytes(&root, file)).unwrap();
            let has = |remark: &String| shown.contains(remark.as_str()) || shown.contains(&remark.replace('\'', "\\'"));
            assert!(remark.as_ref().is_none_or(has), "{file} with {text}: {shown}");
            assert!(
                remark.is_some() || !shown.contains("is not used") && !shown.contains("is neither"),
                "{file}: {shown}"
            );
        }
    }
}
