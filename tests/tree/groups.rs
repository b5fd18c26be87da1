//! Compares metadata, enumerations, labels and groups in the tree with libtiledb's reads, for the fixtures and the
//! corpus (see tests/support/corpora.rs).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use support::corpora::corpus;
use support::paths::{bytes, folder, node, text};
use tilefs_base::error::Error;
use tilefs_format::name::TimestampedName;
use tilefs_tree::{Stored, TreeOptions, group, open, open_stored};
use tilefs_vfs::{EntryKind, Folder, Node};

/// One array or group of a manifest.
struct Object {
    path: PathBuf,
    /// The object's entry in the manifest.
    facts: Value,
    /// Keeps the file with the encryption key, if there is one.
    key: Option<tempfile::NamedTempFile>,
}

impl Object {
    fn name(&self) -> &str {
        self.facts["path"].as_str().unwrap()
    }

    fn is_group(&self) -> bool {
        self.facts["kind"] == "group"
    }

    fn reads(&self) -> &[Value] {
        self.facts["reads"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Opens the root of the tree as of the time of a read.
    fn open(&self, read: &Value) -> tilefs_base::error::Result<Arc<dyn Folder>> {
        let bound = |number: usize| read["timestamps"][number].as_u64();
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions {
                from: bound(0),
                at: Some(bound(1).unwrap_or(u64::MAX)),
                key_file: self.key.as_ref().map(|file| file.path().to_owned()),
                ..Default::default()
            },
            ..TreeOptions::default()
        };
        open(&self.path, &options)
    }
}

/// Returns the objects of all manifests that exist.
fn objects() -> Vec<Object> {
    let (fixtures, corpus) = (tilefs_fixtures::fixtures(), corpus());
    let manifests = [fixtures.join("manifest.json"), corpus.join("manifest.json"), corpus.join("manifest_real.json")];
    let mut objects = Vec::new();
    for manifest in &manifests {
        let all: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
        let all = all["objects"].as_array().unwrap();
        assert!(!all.is_empty(), "{}", manifest.display());
        for facts in all {
            let key = facts["key"].as_str().map(|key| {
                let file = tempfile::NamedTempFile::new().unwrap();
                std::fs::write(file.path(), key).unwrap();
                file
            });
            let path = manifest.parent().unwrap().join(facts["path"].as_str().unwrap());
            objects.push(Object { path, facts: facts.clone(), key });
        }
    }
    objects
}

fn names(folder: &Arc<dyn Folder>) -> Vec<String> {
    folder.list().unwrap().into_iter().map(|entry| entry.name).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Formats a number of a type so that equal texts mean equal numbers: integers in decimal, floats by the bits of their
/// type, with one text for all NaNs.
fn canonical(datatype: &str, number: &str) -> String {
    match datatype {
        "FLOAT32" => {
            number.parse::<f32>().map(|float| if float.is_nan() { "nan".into() } else { format!("{float:e}") })
        }
        "FLOAT64" => {
            number.parse::<f64>().map(|float| if float.is_nan() { "nan".into() } else { format!("{float:e}") })
        }
        _ => return number.parse::<i128>().unwrap().to_string(),
    }
    .unwrap()
}

/// Returns the numbers in the stored bytes.
fn stored_numbers(datatype: &str, stored: &[u8]) -> Vec<String> {
    let size = match datatype {
        "INT8" | "UINT8" | "BOOL" => 1,
        "INT16" | "UINT16" => 2,
        "INT32" | "UINT32" | "FLOAT32" => 4,
        _ => 8,
    };
    let number = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        match datatype {
            "FLOAT32" => f32::from_bits(unsigned as u32).to_string(),
            "FLOAT64" => f64::from_bits(unsigned).to_string(),
            "BOOL" => unsigned.to_string(),
            _ if datatype.starts_with("UINT") => unsigned.to_string(),
            _ => (((unsigned as i64) << (64 - 8 * size)) >> (64 - 8 * size)).to_string(),
        }
    };
    stored.chunks(size).map(|bytes| canonical(datatype, &number(bytes))).collect()
}

/// Compares `meta/` and `meta.json` below `place` with libtiledb's list.
fn check_metadata(root: &Arc<dyn Folder>, place: &str, expected: &[Value]) -> Result<(), String> {
    let all: Value = serde_json::from_slice(&bytes(root, &format!("{place}meta.json"))).unwrap();
    let all = all.as_object().unwrap();
    let keys: Vec<&str> = expected.iter().map(|one| one["key"].as_str().unwrap()).collect();
    if all.keys().collect::<Vec<_>>() != keys {
        return Err(format!("keys {:?}, expected {keys:?}", all.keys().collect::<Vec<_>>()));
    }
    assert_eq!(names(&folder(root, &format!("{place}meta"))).len(), keys.len());
    for one in expected {
        let key = one["key"].as_str().unwrap();
        let found = &all[key];
        let stored = unhex(one["hex"].as_str().unwrap());
        let file = bytes(root, &format!("{place}meta/{}", found["file"].as_str().unwrap()));
        let datatype = one["type"].as_str().unwrap();
        let same = match (&found["text"], &found["hex"], &found["values"]) {
            (Value::String(text), _, _) => file == stored && one.get("text").is_none_or(|wanted| wanted == text),
            (_, Value::String(hex), _) => file == stored && unhex(hex) == stored && one.get("text").is_none(),
            (_, _, Value::Array(values)) => {
                let wanted = stored_numbers(datatype, &stored);
                let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let in_json: Vec<String> = values.iter().map(|value| canonical(datatype, &text(value))).collect();
                let file = String::from_utf8(file.clone()).unwrap();
                let in_file: Vec<String> = file.lines().map(|line| canonical(datatype, line)).collect();
                in_json == wanted && in_file == wanted
            }
            _ => false,
        };
        // libtiledb's C API reports a count of one for an empty value, but returns no value.
        let count = if stored.is_empty() { 0 } else { one["num"].as_u64().unwrap() };
        if !same || found["type"] != one["type"] || found["count"] != count {
            return Err(format!("{key}: {found}, expected {one}, file {}", file.escape_ascii()));
        }
    }
    Ok(())
}

#[test]
fn metadata_is_what_libtiledb_reads() {
    let (mut reads, mut keys, mut problems) = (0, 0, Vec::new());
    for object in objects() {
        for read in object.reads() {
            let Some(expected) = read["metadata"].as_array() else { continue };
            let place = if object.is_group() { ".group/" } else { "" };
            let result = match object.open(read) {
                Ok(root) => check_metadata(&root, place, expected),
                Err(error) => Err(error.to_string()),
            };
            if let Err(problem) = result {
                problems.push(format!("{} {}: {problem}", object.name(), read["name"]));
            }
            reads += 1;
            keys += expected.len();
        }
    }
    eprintln!("{reads} reads of metadata with {keys} keys");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
    assert!(reads > 100 && keys > 100, "the manifest of the fixtures alone has more");
}

/// Compares `enums/` with the enumerations of a schema.
fn check_enumerations(root: &Arc<dyn Folder>, schema: &Value) -> Result<usize, String> {
    let Some(expected) = schema["enumerations"].as_object().filter(|all| !all.is_empty()) else { return Ok(0) };
    if names(&folder(root, "enums")).len() != expected.len() {
        return Err(format!("{:?}, expected {} enumerations", names(&folder(root, "enums")), expected.len()));
    }
    for (name, one) in expected {
        let text = bytes(root, &format!("enums/{}.txt", tilefs_tree::names::escape(name)));
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let datatype = one["type"].as_str().unwrap();
        let values = one["values_hex"].as_array().unwrap();
        let same = lines.iter().zip(values).all(|(line, value)| {
            let (line, value) = (line.strip_suffix(b"\n").unwrap(), unhex(value.as_str().unwrap()));
            // TileDB-MariaDB wrote text with the types of numbers.
            let text_as_numbers = one["cell_val_num"] == "var" && datatype.contains("INT");
            if datatype.starts_with("STRING") || datatype == "CHAR" || text_as_numbers {
                return line
                    == value.iter().map(|&b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }).collect::<Vec<u8>>();
            }
            let line = std::str::from_utf8(line).unwrap();
            line.split(' ').map(|one| canonical(datatype, one)).eq(stored_numbers(datatype, &value))
        });
        if lines.len() != values.len() || !same {
            return Err(format!("{name}: {}, expected {values:?}", text.escape_ascii()));
        }
    }
    Ok(expected.len())
}

#[test]
fn enumerations_are_what_libtiledb_reads() {
    let (mut found, mut problems) = (0, Vec::new());
    for object in objects() {
        for read in object.reads().iter().filter(|read| read.get("newest_error").is_none()) {
            let schema = read.get("schema").unwrap_or(&object.facts["schema"]);
            if schema["enumerations"].as_object().is_none_or(|all| all.is_empty()) {
                continue;
            }
            let root = object.open(read).map_err(|error| error.to_string());
            match root.and_then(|root| check_enumerations(&root, schema)) {
                Ok(count) => found += count,
                Err(problem) => problems.push(format!("{} {}: {problem}", object.name(), read["name"])),
            }
        }
    }
    eprintln!("{found} enumerations");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
    assert!(found > 5, "the manifest of the fixtures alone has more");
}

/// A label is an array, so its values are known from its own entry.
#[test]
fn labels_lie_along_their_dimension() {
    let (mut found, mut slices) = (0, 0);
    for object in objects().iter().filter(|object| object.path.join("__labels").is_dir()) {
        let root = object.open(&object.reads()[0]).unwrap();
        let labels = folder(&root, "labels");
        let mut places: Vec<PathBuf> =
            std::fs::read_dir(object.path.join("__labels")).unwrap().map(|one| one.unwrap().path()).collect();
        places.sort();
        let entries = labels.list().unwrap();
        let folders: Vec<&str> =
            entries.iter().filter(|one| one.kind == EntryKind::Folder).map(|one| one.name.as_str()).collect();
        assert_eq!(folders.len(), places.len(), "{}", object.name());
        for (label, place) in folders.into_iter().zip(&places) {
            let array = open(
                place,
                &TreeOptions {
                    reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
                    ..TreeOptions::default()
                },
            )
            .unwrap();
            let files = names(&array).into_iter().filter(|name| name.starts_with("label."));
            let mut lengths = Vec::new();
            for file in files {
                let alone = bytes(&array, &file);
                assert_eq!(bytes(&root, &format!("labels/{label}/{file}")), alone, "{}", object.name());
                if !file.ends_with(".hdr") {
                    let beside = format!("labels/{label}{}", &file["label".len()..]);
                    assert_eq!(bytes(&root, &beside), alone, "{} {beside}", object.name());
                    lengths.push(alone.len());
                    if let Some(size) = beside.strip_suffix("64").map(|_| 8).filter(|_| !file.contains("offsets")) {
                        let of_each = vec!["1..3"; object.facts["schema"]["dims"].as_array().unwrap().len()].join(",");
                        let sliced = bytes(&root, &format!("islice/{of_each}/{beside}"));
                        assert_eq!(sliced, alone[size..3 * size], "{} {beside}", object.name());
                        slices += 1;
                    }
                }
            }
            assert!(!lengths.is_empty());
            found += 1;
        }
    }
    eprintln!("{found} labels, {slices} slices");
    assert!(found >= 2 && slices >= 1);
}

/// Compares labels with libtiledb's reads through the labelled array, for arrays of the corpus.
#[test]
fn labels_are_what_libtiledb_reads() {
    let corpus = corpus();
    let recorded = tilefs_fixtures::fixtures().join("corpus_reads.json");
    let recorded: Value = serde_json::from_slice(&std::fs::read(recorded).unwrap()).unwrap();
    let mut compared = 0;
    for (array, labels) in recorded["labels"].as_object().unwrap() {
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
            ..TreeOptions::default()
        };
        let root = open(&corpus.join(array), &options).unwrap();
        let files = names(&folder(&root, "labels"));
        for (label, read) in labels.as_object().unwrap() {
            let offsets = format!("{label}.offsets.u64");
            let is_text = files.contains(&offsets);
            let values = ["bytes", "i64", "f64", "i32", "f32"].map(|extension| format!("{label}.{extension}"));
            let values =
                values.iter().find(|file| files.contains(file)).unwrap_or_else(|| panic!("{array}: {files:?}"));
            let values = bytes(&root, &format!("labels/{values}"));
            assert_eq!(values, unhex(read["values"].as_str().unwrap()), "{array} {label}");
            assert_eq!(is_text, read["offsets"].is_array(), "{array} {label}");
            if is_text {
                let expected = read["offsets"].as_array().unwrap().iter().map(|offset| offset.as_u64().unwrap());
                let stored = bytes(&root, &format!("labels/{offsets}"));
                let stored = stored.as_chunks().0.iter().map(|eight| u64::from_le_bytes(*eight));
                assert!(stored.eq(expected.chain([values.len() as u64])), "{array} {label}");
            }
            compared += 1;
        }
    }
    assert!(compared > 0);
}

/// Returns libtiledb's list of the members of a group: the names, and their folders in the group. For groups of
/// libraries before 2.8, which list none, returns the arrays and groups in the folder.
fn expected_members(object: &Object, read: &Value) -> Vec<(String, String)> {
    // Members with an absolute URI are found in the place to which they were moved.
    let members = read.get("at_build_place").unwrap_or(read)["members"].as_array().unwrap();
    let details = std::fs::read_dir(object.path.join("__group"));
    if details.is_ok_and(|mut entries| entries.next().is_some()) {
        let member = |one: &Value| {
            let path = one["relative_path"].as_str().unwrap().to_owned();
            (one["name"].as_str().unwrap_or(path.rsplit('/').next().unwrap()).to_owned(), path)
        };
        return members.iter().map(member).collect();
    }
    assert!(members.is_empty());
    let names = std::fs::read_dir(&object.path).unwrap().map(|one| one.unwrap());
    let is_object = |path: PathBuf| {
        ["__schema", "__array_schema.tdb", "__group", "__tiledb_group.tdb"].iter().any(|name| path.join(name).exists())
    };
    let objects = names.filter(|one| is_object(one.path())).map(|one| one.file_name().into_string().unwrap());
    objects.map(|name| (name.clone(), name)).collect()
}

fn check_members(object: &Object, read: &Value, root: &Arc<dyn Folder>) -> Result<usize, String> {
    let expected = expected_members(object, read);
    let mut wanted: Vec<String> = expected.iter().map(|(name, _)| tilefs_tree::names::escape(name)).collect();
    wanted.extend(["README.txt", ".group"].map(str::to_owned));
    let mut listed = names(root);
    // Domains add these views to groups of their formats.
    listed.retain(|name| wanted.contains(name) || !["h5ad", "vcf", "tiff"].contains(&name.as_str()));
    wanted.sort();
    listed.sort();
    if listed != wanted {
        return Err(format!("members {listed:?}, expected {wanted:?}"));
    }
    let table = String::from_utf8(bytes(root, ".group/members.tsv")).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    for (name, path) in &expected {
        let name = tilefs_tree::names::escape(name);
        let Some(line) = lines.iter().find(|line| line[0] == name) else { return Err(format!("{name}: {table}")) };
        let place = object.path.join(path).canonicalize().unwrap();
        if !line[4].starts_with("ok") || Path::new(line[3]).canonicalize().unwrap() != place {
            return Err(format!("{name} is in {}: {}", line[3], line[4]));
        }
        folder(root, &name).list().map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(expected.len())
}

#[test]
fn groups_have_the_members_that_libtiledb_lists() {
    let (mut found, mut problems) = (0, Vec::new());
    for object in objects().iter().filter(|object| object.is_group()) {
        for read in object.reads() {
            let root = object.open(read).map_err(|error| error.to_string());
            match root.and_then(|root| check_members(object, read, &root)) {
                Ok(count) => found += count,
                Err(problem) => problems.push(format!("{} {}: {problem}", object.name(), read["name"])),
            }
        }
    }
    eprintln!("{found} members");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
    assert!(found >= 5, "the manifest of the fixtures alone has more");
}

/// Returns the earliest start time in the names of an object's files; `None` if no name has a time.
fn began(object: &Object) -> Option<u64> {
    let folders = ["", "__fragments", "__commits", "__schema", "__meta", "__group"];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(object.path.join(folder)).ok()).flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let starts = names.filter_map(|name| TimestampedName::parse(&name).ok()?.map(|times| times.t1));
    starts.min()
}

/// A read in a window is the same through `.history` of the newest state.
#[test]
fn history_is_what_a_window_shows() {
    let mut compared = 0;
    for object in objects().iter().filter(|object| object.facts.get("newest_error").is_none()) {
        let windowed = object.reads().iter().filter(|read| read["timestamps"].is_array());
        for read in windowed.filter(|read| read.get("newest_error").is_none()) {
            let newest = object.open(&object.reads()[0]).unwrap();
            assert!(!names(&newest).contains(&".history".to_owned()));
            let (from, to) = (read["timestamps"][0].as_u64().unwrap(), read["timestamps"][1].as_u64().unwrap());
            let name = if from == 0 { format!("ms-{to}") } else { format!("ms-{from}..ms-{to}") };
            // Before its beginning there is nothing.
            if began(object).is_some_and(|began| to < began) {
                assert!(node(&newest, &format!(".history/{name}")).is_none(), "{} {name}", object.name());
                continue;
            }
            let then = folder(&newest, &format!(".history/{name}"));
            let place = if object.is_group() { ".group/" } else { "" };
            if let Some(expected) = read["metadata"].as_array() {
                check_metadata(&then, place, expected).unwrap();
            }
            if object.is_group() {
                check_members(object, read, &then).unwrap();
            } else {
                check_enumerations(&then, read.get("schema").unwrap_or(&object.facts["schema"])).unwrap();
                let direct = object.open(read).unwrap();
                assert_eq!(names(&then), names(&direct), "{} {name}", object.name());
            }
            compared += 1;
        }
    }
    eprintln!("{compared} windows");
    assert!(compared > 20);
}

#[test]
fn a_filestore_shows_its_file() {
    let fixtures = tilefs_fixtures::fixtures();
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    let root = open(&fixtures.join("arrays/filestore"), &options).unwrap();
    assert_eq!(names(&folder(&root, "contents")), ["lines.txt"]);
    let expected = std::fs::read(fixtures.join("expected/filestore/contents.bin")).unwrap();
    assert_eq!(bytes(&root, "contents/lines.txt"), expected);
    let before = folder(&root, ".history/ms-1600000000000");
    assert!(before.lookup("contents").unwrap().is_none());
    // Before its schema was written there is nothing.
    assert!(node(&root, ".history/ms-1599999999999").is_none());
}

fn fixture(name: &str) -> Arc<dyn Folder> {
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    open(&tilefs_fixtures::fixtures().join(name), &options).unwrap()
}

/// 2^20 x 2^20 cells, of which 8 x 8 in the middle are written: 0 to 63.
#[test]
fn what_was_written_of_an_enormous_domain_is_a_folder() {
    let huge = fixture("huge");
    assert!(!names(&huge).contains(&"nonempty".to_owned()), "a recursive copy would read it");
    let expected: Vec<u8> = (0..64i32).flat_map(i32::to_le_bytes).collect();
    assert_eq!(bytes(&huge, "nonempty/v.i32"), expected);
    assert_eq!(bytes(&huge, "nonempty/slice/last,last/v.i32"), 63i32.to_le_bytes());
    assert_eq!(bytes(&huge, "nonempty/islice/0,1/v.i32"), 1i32.to_le_bytes());
    let schema: Value = serde_json::from_slice(&bytes(&huge, "nonempty/schema.json")).unwrap();
    assert_eq!((&schema["shape"], &schema["covers"]), (&serde_json::json!([8, 8]), &"non-empty domain".into()));
    let readme = text(&huge, "README.txt");
    assert!(readme.contains("All written cells lie within 8 x 8 of these, 524288..524295,524288..524295"), "{readme}");
    let commands = readme.split("What you can do here").nth(1).unwrap();
    let commands: Vec<&str> = commands.lines().filter(|line| line.starts_with("    ")).collect();
    assert!(commands.len() > 5 && commands.iter().all(|line| line.contains("nonempty/")), "{readme}");
    // The README mentions only paths that exist.
    assert!(!text(&huge, "nonempty/README.txt").contains(".history"));
    assert!(node(&huge, "nonempty/.history").is_none());
    // For an array that is completely written, it is the array itself.
    let demo = fixture("demo");
    assert_eq!(bytes(&demo, "nonempty/temp.f32"), bytes(&demo, "temp.f32"));
    assert!(!text(&demo, "README.txt").contains("nonempty/"));
}

#[test]
fn an_array_without_cells_has_no_first_coordinate_in_nonempty() {
    let slices = folder(&fixture("arrays/dense/no_fragment"), "nonempty/slice");
    for selection in ["first", "last", "..last", "first.."] {
        assert!(slices.lookup(selection).unwrap().is_none(), "{selection}");
        let reason = slices.why_absent(selection).unwrap();
        assert!(reason.contains("the array holds nothing"), "{selection}: {reason}");
    }
}

#[test]
fn anonymous_dimensions_are_called_as_in_tiledb_py() {
    let array = fixture("arrays/dense/anonymous_dimension");
    let dims = names(&folder(&array, "dims"));
    assert!(dims.iter().all(|name| name.starts_with("__dim_0.")), "{dims:?}");
    for path in ["README.txt", "schema.txt", "schema.json"] {
        assert!(text(&array, path).contains("__dim_0"), "{path}");
    }
    let xattrs = folder(&array, "").extended_attributes();
    assert!(xattrs.contains(&("user.tiledb.dims".to_owned(), b"__dim_0".to_vec())), "{xattrs:?}");
    let schema: Value = serde_json::from_slice(&bytes(&array, "schema.json")).unwrap();
    let first = schema["dimensions"][0]["domain"][0].as_i64().unwrap();
    assert!(node(&array, &format!("slice/__dim_0={first}/schema.json")).is_some());
}

/// Every text that states a shape also states the number of rows of a sparse array, or of a slice of one.
#[test]
fn sparse_arrays_say_how_many_rows_they_have() {
    let fixtures = tilefs_fixtures::fixtures().join("arrays/sparse");
    let mut slices = 0;
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let options = TreeOptions {
            reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
            ..TreeOptions::default()
        };
        let path = tilefs_fixtures::fixtures().join("arrays/sparse").join(&name);
        let root = match open(&path, &options) {
            Ok(root) => root,
            Err(Error::Key { .. }) => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        for place in ["", "islice/:2/", "by-row/"] {
            let Some(Node::Folder(shown)) = node(&root, place) else { continue };
            let column = names(&folder(&shown, "dims"))[0].clone();
            let schema: Value = serde_json::from_slice(&bytes(&shown, "schema.json")).unwrap();
            let told = schema["rows"].as_u64();
            let most = told.or(schema["rows_at_most"].as_u64()).unwrap_or_else(|| panic!("{name} {place}: {schema}"));
            assert_eq!(schema["shape"][0].as_u64(), told, "{name} {place}");
            // Reading a column requires the number of rows, and texts that are read afterwards contain it.
            let mut counted = told;
            if !column.contains(".bytes") && !column.contains(".offsets") {
                let width: u64 = column.rsplit_once(|c: char| c.is_ascii_alphabetic()).unwrap().1.parse().unwrap();
                let rows = bytes(&shown, &format!("dims/{column}")).len() as u64 * 8 / width;
                assert!(told.map_or(rows <= most, |told| rows == told), "{name} {place}: {rows} rows");
                counted = Some(rows);
            }
            let (known, number) = counted.map_or(("at most ", most), |rows| ("", rows));
            let said = format!("of {known}{number} row{} (", if number == 1 { "" } else { "s" });
            assert!(text(&shown, "README.txt").contains(&said), "{name} {place}: {said}");
            let key = if counted.is_some() { "rows" } else { "rows_at_most" };
            assert!(text(&shown, "schema.txt").contains(&format!(":{key} = {number} ;")), "{name} {place}");
            for xattrs in [shown.extended_attributes(), file_attributes(&shown, &format!("dims/{column}"))] {
                let key = if counted.is_some() { "user.tiledb.shape" } else { "user.tiledb.rows_at_most" };
                let shape = (key.to_owned(), number.to_string().into_bytes());
                assert!(xattrs.contains(&shape), "{name} {place}: {xattrs:?}");
            }
            slices += usize::from(place.starts_with("islice"));
        }
    }
    assert!(slices > 5, "{slices}");
}

fn file_attributes(root: &Arc<dyn Folder>, path: &str) -> Vec<(String, Vec<u8>)> {
    match node(root, path) {
        Some(Node::File(file)) => file.extended_attributes(),
        _ => panic!("no file {path}"),
    }
}

#[test]
fn a_group_is_a_tree_of_lines() {
    let path = tilefs_fixtures::fixtures().join("arrays/groups/experiment");
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    let Ok(Stored::Group(group)) = open_stored(&path, &options) else { panic!("no group") };
    let lines = |depth: Option<usize>| {
        let mut lines = Vec::new();
        let told: Result<(), ()> = group::outline::outline(&group, &options, depth, &mut |line| {
            lines.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
            Ok(())
        });
        assert!(told.is_ok());
        lines
    };
    let all = lines(None);
    assert_eq!(all[0], "experiment group of 2");
    assert!(all[1].starts_with("raw dense 6"), "{all:?}");
    assert_eq!(all[2], "results group of 2");
    assert_eq!(all.len(), 5, "{all:?}");
    // Members on the last level are described by the group's entries about them.
    assert_eq!(lines(Some(0)), all[..1]);
    assert_eq!(lines(Some(1)), ["experiment group of 2", "raw array", "results group"]);
    let second = lines(Some(2));
    assert_eq!(second[..3], all[..3]);
    assert!(second.len() == 5 && second[3..].iter().all(|line| line.ends_with(" array")), "{second:?}");
    assert_eq!(lines(Some(3)), all);
}

#[test]
fn extended_attributes_explain_files_and_folders() {
    let fixtures = tilefs_fixtures::fixtures();
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    let attributes = |root: &Arc<dyn Folder>, path: &str| -> String {
        let all = match node(root, path) {
            Some(Node::File(file)) => file.extended_attributes(),
            Some(Node::Folder(folder)) => folder.extended_attributes(),
            None => panic!("no {path}"),
        };
        let text = |(name, value): (String, Vec<u8>)| {
            format!("{}={}", name.strip_prefix("user.tiledb.").unwrap_or(&name), String::from_utf8(value).unwrap())
        };
        let others = all.into_iter().filter(|(name, _)| name != "user.tiledb.path");
        others.map(text).collect::<Vec<_>>().join(" ")
    };
    let demo = open(&fixtures.join("demo"), &options).unwrap();
    let of_demo = "format_version=22 timestamp=2024-01-02T00:00:00.000Z";
    let temp = "name=temp kind=attribute type=FLOAT32 dtype=<f4 values_per_cell=1 filters=BYTESHUFFLE, ZSTD(level=-1) \
                nullable=0 fill=nan";
    for (path, expected) in [
        (
            "",
            "object=array array_type=dense attributes=temp,cell tile_order=row-major cell_order=row-major \
             shape=100,200 order=C dims=y,x origin=0,0",
        ),
        ("temp.f32", &format!("{temp} shape=100,200 order=C dims=y,x origin=0,0")),
        ("islice/2,3:5/temp.f32", &format!("{temp} shape=1,2 order=C dims=y,x origin=2,3")),
        (
            "dims/y.i64",
            "name=y kind=dimension type=INT64 dtype=<i8 values_per_cell=1 domain=0..99 extent=32 shape=100 order=C \
             dims=y origin=0",
        ),
    ] {
        assert_eq!(attributes(&demo, path), format!("{expected} {of_demo}"), "{path}");
    }
    let group = open(&fixtures.join("arrays/groups/experiment"), &options).unwrap();
    assert_eq!(attributes(&group, ""), "object=group members=2 timestamp=2020-09-13T12:26:43.000Z");
    assert_eq!(attributes(&group, "results"), "");
    folder(&group, "results").list().unwrap();
    assert_eq!(attributes(&group, "results"), "object=group members=2 timestamp=2020-09-13T12:26:42.000Z");
    folder(&group, "raw").list().unwrap();
    assert!(attributes(&group, "raw").starts_with("object=array array_type=dense attributes=v,s "));
    assert!(attributes(&group, "raw/s.offsets.u64").starts_with("name=s kind=offsets type=UINT64 dtype=<u8 shape=6 "));
    assert_eq!(attributes(&group, ".group/meta/title"), "type=STRING_UTF8 count=26");
    let filestore = open(&fixtures.join("arrays/filestore"), &options).unwrap();
    assert_eq!(attributes(&filestore, "contents/lines.txt"), "user.mime_type=text/plain");
    let enumerations = open(&fixtures.join("arrays/dense/enumerations"), &options).unwrap();
    assert!(attributes(&enumerations, "kind.u8").contains(" enumeration=kind "));
}

#[test]
fn a_group_explains_itself() {
    let path = tilefs_fixtures::fixtures().join("arrays/groups/experiment");
    let root = open(
        &path,
        &TreeOptions {
            reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
            ..TreeOptions::default()
        },
    )
    .unwrap();
    let readme = String::from_utf8(bytes(&root, "README.txt")).unwrap();
    for part in ["experiment: a TileDB group", "\n2 members.\n", "    raw/\n", "    results/\n", "12:26:43.000Z"] {
        assert!(readme.contains(part), "{part}: {readme}");
    }
    let json: Value = serde_json::from_slice(&bytes(&root, ".group/group.json")).unwrap();
    assert_eq!(json["members"][1]["name"], "results");
    assert_eq!(json["members"][1]["type"], "group");
    assert_eq!(json["members"][1]["state"], "ok");
    assert_eq!(json["metadata"]["version"]["values"], serde_json::json!([1, 2]));
}
