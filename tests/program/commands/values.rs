//! `--at`, `--from`, `--slice`, `--order row`, `--extent nonempty` and `--key-file`: the bytes that `tilefs cat` prints
//! and the sizes that `tilefs ls -l` lists are those of libtiledb's reads.

use std::fs;

use tilefs_tree::select::time;

use super::{fixture, printed, tilefs};
use support::check::fields_differ;
use support::columns::{Column, canonical_dense, canonical_sparse, digest, size_of};
use support::manifest::{Expected, Object, Read, Schema};
use support::shown::{extension, offsets_within, selection};

/// Returns the columns of a read as the program prints them, in the order of the schema (sparse: dimensions first).
/// `folder` is the prefix of the names.
fn columns(options: &[String], object: &Object, schema: &Schema, folder: &str) -> Vec<Column> {
    let cat = |name: String| {
        let place = object.place.display().to_string();
        let command = ["cat".to_owned(), place, format!("{folder}{name}")];
        printed(&[&command[..], options].concat())
    };
    let column = |name: &str, datatype: &str, cells: Option<usize>, nullable: bool, folder: &str| {
        let values = cat(format!("{folder}{name}.{}", extension(datatype)));
        let offsets = cells.is_none().then(|| cat(format!("{folder}{name}.offsets.u64")));
        Column {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            cell_size: cells.map(|cells| cells * size_of(datatype)),
            is_dimension: !folder.is_empty(),
            offsets: offsets.map(|offsets| offsets_within(&offsets, values.len(), name).expect("offsets")),
            validity: nullable.then(|| cat(format!("{folder}{name}.valid.u8"))),
            values,
        }
    };
    let dims = schema.dims.iter().filter(|_| !schema.dense).map(|dim| {
        let cells = (dim.datatype != "STRING_ASCII").then_some(1);
        column(&dim.name, &dim.datatype, cells, false, "dims/")
    });
    let attrs = schema.attrs.iter().map(|attr| column(&attr.name, &attr.datatype, attr.cells, attr.nullable, ""));
    dims.chain(attrs).collect()
}

fn canonical(schema: &Schema, columns: &[Column]) -> Vec<Column> {
    if schema.dense { canonical_dense(columns) } else { canonical_sparse(columns).0 }
}

fn schema_of<'a>(object: &'a Object, read: &'a Read) -> &'a Schema {
    read.schema.as_ref().or(object.schema.as_ref()).expect("an array has a schema")
}

#[test]
fn at_and_from_show_what_was_written_then() {
    for name in ["arrays/dense/overlap", "arrays/dense/evolution", "arrays/sparse/overlap", "arrays/sparse/dups"] {
        let object = fixture(name);
        let mut windows = 0;
        for read in &object.reads {
            let Some((from, at)) = read.window else { continue };
            let mut options = vec![format!("--at={}", time::extended(at))];
            if from > 0 {
                options.push(format!("--from={}", time::extended(from)));
            }
            let schema = schema_of(&object, read);
            let columns = columns(&options, &object, schema, "");
            let differing = fields_differ(read, &canonical(schema, &columns));
            assert!(differing.is_empty(), "{name} {options:?}: {differing:?}");

            // The names and sizes are also those of that time.
            let list = ["ls".to_owned(), "-l".to_owned(), object.place.display().to_string()];
            let listing = String::from_utf8(printed(&[&list[..], &options].concat())).expect("text");
            for column in columns.iter().filter(|column| !column.is_dimension) {
                let line = listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
                let file = format!("{}.{}", column.name, extension(&column.datatype));
                let size = line.filter(|words| words.last() == Some(&&*file)).map(|words| words[1].to_owned()).next();
                assert_eq!(size, Some(column.values.len().to_string()), "{name} {options:?} {file}\n{listing}");
            }
            windows += 1;
        }
        assert!(windows >= 3, "{name}");
    }
}

#[test]
fn a_time_in_another_form_is_the_same_time() {
    let object = fixture("demo");
    let read = object.reads.iter().find(|read| read.window.is_some()).expect("the demo was read at a time");
    let schema = schema_of(&object, read);
    for at in ["2024-01-01", "2024-01-01T00:00:00Z", "20240101T120000Z"] {
        let columns = columns(&[format!("--at={at}")], &object, schema, "");
        assert_eq!(fields_differ(read, &canonical_dense(&columns)), [], "{at}");
    }
    // The rows of the next day are not in the state of that day, but in the newest state.
    let full = &object.reads[0];
    let newest = canonical_dense(&columns(&[], &object, schema, ""));
    assert_eq!(fields_differ(full, &newest), []);
    assert!(!fields_differ(read, &newest).is_empty());
    for wrong in ["--at=yesterday", "--from=2024-02-30"] {
        let output = tilefs(&["cat", object.place.to_str().expect("text"), "temp.f32", wrong]);
        assert!(!output.status.success() && output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong}");
    }
}

#[test]
fn a_named_slice_is_that_box() {
    let mut slices = 0;
    for name in ["demo", "arrays/dense/overlap", "arrays/sparse/overlap", "arrays/dense/dim_datetime_day"] {
        let object = fixture(name);
        for read in object.reads.iter().filter(|read| read.sha256.is_some()) {
            let schema = schema_of(&object, read);
            let place = selection(schema, read.subarray.as_deref().expect("a slice has a box"));
            let options = [format!("--slice=corner={place}")];
            let columns = columns(&options, &object, schema, "slice/corner/");
            assert_eq!(Some(digest(&canonical(schema, &columns))), read.sha256, "{name} {place}");
            let list = ["ls".to_owned(), object.place.display().to_string(), "slice".to_owned(), options[0].clone()];
            assert!(String::from_utf8_lossy(&printed(&list)).lines().any(|line| line.contains("corner")), "{name}");
            slices += 1;
        }
    }
    assert!(slices >= 6, "{slices} slices");
}

/// In row order, the rows are those of libtiledb in the order of the manifest, without sorting them here.
#[test]
fn rows_come_by_their_coordinates_in_row_order() {
    for name in
        ["arrays/sparse/overlap", "arrays/sparse/overlap_col", "arrays/sparse/hilbert", "arrays/sparse/dim_text"]
    {
        let object = fixture(name);
        assert!(object.reads.iter().any(|read| read.fields.is_some()), "{name}");
        for read in object.reads.iter().filter(|read| read.fields.is_some()) {
            let mut options = vec!["--order=row".to_owned()];
            if let Some((from, at)) = read.window {
                options.push(format!("--at={}", time::extended(at)));
                options.push(format!("--from={}", time::extended(from)));
            }
            let columns = canonical_dense(&columns(&options, &object, schema_of(&object, read), ""));
            assert_eq!(fields_differ(read, &columns), [], "{name} {options:?}");
        }
    }
    // The option matters: the array's own order is different.
    let hilbert = fixture("arrays/sparse/hilbert");
    let own = canonical_dense(&columns(&[], &hilbert, schema_of(&hilbert, &hilbert.reads[0]), ""));
    assert!(!fields_differ(&hilbert.reads[0], &own).is_empty());
}

#[test]
fn the_nonempty_extent_is_what_was_written() {
    // libtiledb read only the written part of this array, not its whole domain.
    let filestore = fixture("arrays/filestore");
    let place = filestore.place.display().to_string();
    let contents = printed(&["cat", "--extent=nonempty", &place, "contents.bytes"]);
    let field = &filestore.reads[0].fields.as_ref().expect("fields")[0];
    let Expected::File(file) = &field.values else { panic!("the bytes are recorded") };
    assert!(contents == fs::read(file).expect("an expected file"));
    assert_eq!(contents.len(), filestore.reads[0].cells);

    // 8 x 8 cells from 0 to 63 in the middle of 2^20 x 2^20: see the README of the fixtures.
    let huge = super::fixtures().join("huge").display().to_string();
    let cells = printed(&["cat", "--extent=nonempty", &huge, "v.i32"]);
    assert_eq!(cells, (0..64_i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
    let rows = printed(&["cat", "--extent=nonempty", &huge, "dims/y.i64"]);
    assert_eq!(rows, (0..8_i64).flat_map(|row| ((1 << 19) + row).to_le_bytes()).collect::<Vec<u8>>());
}

#[test]
fn encrypted_arrays_are_read_with_their_key_and_with_no_other() {
    let key_file = tempfile::NamedTempFile::new().expect("a temporary file");
    for name in ["arrays/dense/encrypted", "arrays/sparse/encrypted"] {
        let object = fixture(name);
        let key = object.key.as_deref().expect("an encrypted array has a key");
        fs::write(key_file.path(), key).expect("a temporary file is written");
        let option = format!("--key-file={}", key_file.path().display());
        let read = &object.reads[0];
        let schema = schema_of(&object, read);
        let right = columns(std::slice::from_ref(&option), &object, schema, "");
        assert_eq!(fields_differ(read, &canonical(schema, &right)), [], "{name}");

        fs::write(key_file.path(), key.chars().rev().collect::<String>()).expect("a temporary file is written");
        for options in [vec![option.as_str()], vec![]] {
            let command = ["ls", object.place.to_str().expect("text")];
            let output = tilefs(&[&command[..], &options].concat());
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && output.stdout.is_empty(), "{name} {options:?}");
            assert!(complaint.contains("key") && !complaint.contains(key), "{name} {options:?}: {complaint}");
        }
    }
}
