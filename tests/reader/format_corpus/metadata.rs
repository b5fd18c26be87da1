//! Array and group metadata, and the members of groups, compared with what libtiledb reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use tilefs_format::commit::parse_vacuum;
use tilefs_format::folder::ObjectKind;
use tilefs_format::folder::{GROUP_DETAILS, METADATA, timestamped_file};
use tilefs_format::group::{GroupMember, members_in_force, parse_group_details};
use tilefs_format::metadata::{MetadataEntry, parse_metadata};
use tilefs_format::name::TimestampedName;

use super::corpus::{Corpus, hex, is_refused, listing};

/// Parses the files of a folder that no later file has replaced, in the order of their start times.
fn in_force<T>(corpus: &Corpus, folder: &Path, parse: fn(&[u8]) -> T) -> Vec<(TimestampedName, T)> {
    let names = listing(folder);
    let mut replaced = BTreeSet::new();
    for name in names.iter().filter(|name| name.ends_with(".vac")) {
        for path in parse_vacuum(&std::fs::read(folder.join(name)).unwrap()).unwrap() {
            replaced.insert(path.rsplit('/').next().unwrap().to_owned());
        }
    }
    let mut files = Vec::new();
    for name in names.iter().filter(|name| !replaced.contains(*name)) {
        if let Some(times) = timestamped_file(name).unwrap() {
            files.push((times, parse(&corpus.payload(&folder.join(name)).unwrap())));
        }
    }
    files.sort_by_key(|(times, _)| times.t1);
    files
}

fn entries(payload: &[u8]) -> Vec<MetadataEntry> {
    parse_metadata(payload).unwrap()
}

fn members(payload: &[u8]) -> Vec<GroupMember> {
    parse_group_details(payload).unwrap()
}

#[test]
fn every_metadata_file_parses() {
    let corpus = Corpus::open();
    let (mut files, mut keys) = (0, 0);
    for path in corpus.files_in(METADATA) {
        if timestamped_file(path.file_name().unwrap().to_str().unwrap()).unwrap().is_some() && !is_refused(&path) {
            keys += entries(&corpus.payload(&path).unwrap()).len();
            files += 1;
        }
    }
    eprintln!("{files} metadata files of {keys} entries");
    assert!(files > 100);
}

#[test]
fn every_group_parses() {
    let corpus = Corpus::open();
    let files = corpus.files_in(GROUP_DETAILS);
    let count: usize = files.iter().map(|path| members(&corpus.payload(path).unwrap()).len()).sum();
    eprintln!("{} group details of {count} members", files.len());
    assert!(files.len() > 50);
}

/// Returns the first read of an object: the newest state of everything.
fn full_read(object: &Value) -> Option<&Value> {
    let read = object["reads"].get(0)?;
    assert_eq!(read["timestamps"], Value::Null);
    Some(read)
}

#[test]
fn metadata_is_what_libtiledb_says() {
    let corpus = Corpus::open();
    let mut compared = 0;
    for object in &corpus.objects {
        let path = corpus.path(object);
        let Some(expected) = full_read(object).and_then(|read| read.get("metadata")) else { continue };
        let mut actual = BTreeMap::new();
        for (_, file) in in_force(&corpus, &path.join(METADATA), entries) {
            for entry in file {
                actual.remove(&entry.key);
                if let Some(value) = entry.value {
                    actual.insert(entry.key, value);
                }
            }
        }
        let actual: Vec<Value> = actual
            .into_iter()
            .map(|(key, value)| {
                json!({
                    "key": String::from_utf8(key).unwrap(),
                    "type": value.datatype.name(),
                    // libtiledb reports one value of no bytes if none is stored.
                    "num": value.count.max(1),
                    "hex": hex(&value.bytes),
                })
            })
            .collect();
        let mut expected = expected.as_array().unwrap().clone();
        expected.sort_by(|a, b| a["key"].as_str().cmp(&b["key"].as_str()));
        for entry in &mut expected {
            entry.as_object_mut().unwrap().retain(|field, _| ["key", "type", "num", "hex"].contains(&field.as_str()));
        }
        assert_eq!(actual, expected, "{}", path.display());
        compared += usize::from(!expected.is_empty());
    }
    eprintln!("metadata of {compared} objects compared");
    assert!(compared > 50);
}

#[test]
fn group_members_are_what_libtiledb_says() {
    let corpus = Corpus::open();
    let mut compared = 0;
    for object in corpus.objects.iter().filter(|object| object["kind"] == "group") {
        let path = corpus.path(object);
        let folder = path.join(GROUP_DETAILS);
        let Some(expected) = full_read(object).and_then(|read| read["members"].as_array()) else { continue };
        if !folder.is_dir() {
            continue;
        }
        let mut actual: Vec<String> = members_in_force(in_force(&corpus, &folder, members))
            .into_values()
            .map(|member| {
                let kind = member.kind.map_or("unknown", ObjectKind::name);
                json!([member.name, kind, member.uri]).to_string()
            })
            .collect();
        let mut expected: Vec<String> = expected
            .iter()
            .map(|member| {
                let uri = member.get("relative_path").unwrap_or(&member["uri"]);
                json!([member["name"], member["type"], uri]).to_string()
            })
            .collect();
        actual.sort();
        expected.sort();
        assert_eq!(actual, expected, "{}", path.display());
        compared += 1;
    }
    eprintln!("members of {compared} groups compared");
    assert!(compared > 30);
}
