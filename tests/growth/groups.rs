//! Walks through groups that have two names for the next one: 24 of them have 2^24 paths.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use support::corpora::corpus;
use support::handmade::{NAME, UINT8, attribute, plane, str64, write_tile};
use support::paths::{bytes, names, node, text};
use support::stored::copy_folder;
use tempfile::TempDir;
use tilefs_tree::group::outline::outline;
use tilefs_tree::{Stored, TreeOptions, open, open_stored};

use super::arrays::write_metadata;
use super::steps::grow_with_the_input;

/// Adds members to a group, each with its name and its folder; creates the group if there is none.
fn add_members(group: &Path, members: &[(&str, &str)]) {
    fs::create_dir_all(group.join("__group")).unwrap();
    fs::write(group.join("__tiledb_group.tdb"), []).unwrap();
    let mut payload = 2u32.to_le_bytes().to_vec();
    payload.extend((members.len() as u64).to_le_bytes());
    for (name, folder) in members {
        payload.extend(2u32.to_le_bytes());
        payload.extend([1, 1]);
        payload.extend(str64(folder.as_bytes()));
        payload.push(1);
        payload.extend(str64(name.as_bytes()));
        payload.push(0);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let name = format!("__{now}_{now}_0123456789abcdef0123456789abcdef_2");
    write_tile(&group.join("__group").join(name), &payload, payload.len() as u64);
}

/// Creates so many groups, one in the other, of which each has two names for the next.
fn doubled(folder: &Path, count: usize) {
    let mut group = folder.to_owned();
    for number in 1..=count {
        let next: &[_] = if number < count { &[("a", "n"), ("b", "n")] } else { &[] };
        add_members(&group, next);
        group.push("n");
    }
}

fn in_folder(make: impl Fn(&Path)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(&folder.path().join("group"));
    folder
}

#[test]
fn groups_that_name_each_other_are_entered_once() {
    let options = TreeOptions::default();
    let groups = |count| in_folder(|folder| doubled(folder, count));
    grow_with_the_input("an outline", 6, groups, |folder| {
        let stored = open_stored(&folder.path().join("group"), &options).unwrap();
        let Stored::Group(group) = stored else { panic!("it is a group") };
        outline(&group, &options, None, &mut |_| Ok::<_, ()>(())).unwrap();
    });
    let folder = groups(24);
    let mut tilefs = Command::new(env!("CARGO_BIN_EXE_tilefs"));
    let listed = tilefs.args(["ls", "-R"]).arg(folder.path().join("group")).output().unwrap();
    let (lines, errors) = (String::from_utf8(listed.stdout).unwrap(), String::from_utf8(listed.stderr).unwrap());
    assert!(listed.status.success(), "{errors}");
    let is_group = |line: &&str| line.ends_with("/a:") || line.ends_with("/b:") || ["a:", "b:"].contains(line);
    assert_eq!(lines.lines().filter(is_group).count(), 23, "{lines}");
    assert_eq!(errors.lines().filter(|line| line.contains("not listed again")).count(), 23, "{errors}");
}

#[test]
fn collections_of_uns_are_shown_once() {
    let experiments = |count| {
        in_folder(|folder| {
            copy_folder(&corpus().join("real/pbmc_soma"), folder);
            add_members(&folder.join("ms/RNA"), &[("uns", "uns_of_test")]);
            doubled(&folder.join("ms/RNA/uns_of_test"), count);
        })
    };
    let description = |folder: &TempDir| {
        let root = open(&folder.path().join("group"), &TreeOptions::default()).unwrap();
        String::from_utf8(bytes(&root, "zarr/zarr.json")).unwrap()
    };
    grow_with_the_input("uns", 6, experiments, |folder| drop(description(&folder)));
    let text = description(&experiments(24));
    let deepest = vec!["a"; 23].join("/");
    assert!(text.contains(&format!("\"uns/{deepest}\"")), "{text}");
    assert_eq!(text.matches("the same collection is shown under another name").count(), 23);
}

/// Each level of a pyramid is an array whose form the description of all levels tells.
#[test]
fn levels_of_a_pyramid() {
    let pyramid = |count: usize| {
        let folder = in_folder(|group| {
            let names: Vec<String> = (0..count).map(|number| format!("l{number}")).collect();
            add_members(group, &names.iter().map(|name| (name.as_str(), name.as_str())).collect::<Vec<_>>());
            let level =
                |(number, name)| serde_json::json!({"level": number, "name": name, "axes": "YX", "shape": [4, 4]});
            let levels: Vec<_> = names.iter().enumerate().map(level).collect();
            let levels = serde_json::Value::from(levels).to_string();
            write_metadata(group, &[("dataset_type".into(), "BIOIMG".into()), ("levels".into(), levels)]);
            let schema = plane(4, 4, [attribute("intensity", UINT8, None)].into_iter());
            for name in names {
                write_tile(&group.join(name).join("__schema").join(NAME), &schema, schema.len() as u64);
            }
        });
        let root = open(&folder.path().join("group"), &TreeOptions::default()).unwrap();
        (folder, root)
    };
    grow_with_the_input("levels", 40, pyramid, |(_folder, root)| {
        let count = names(&root, "").iter().filter(|name| name.starts_with('l')).count();
        for number in 0..count {
            assert!(node(&root, &format!("l{number}/intensity.u8")).is_some());
        }
    });
    let (_folder, root) = pyramid(2);
    assert!(text(&root, "README.txt").contains("tiff/intensity.ome.tif"));
}
