//! A served array that changes meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::client::{Program, ask, demo, eventually, get};

const SECOND: &str = "__1704153600000_1704153600000_5e7797b031dec90991246dae973e1b27_22";

/// The sample array before its second commit.
fn before_second(folder: &Path) -> std::path::PathBuf {
    let array = folder.join("array");
    support::stored::copy_folder(&demo(), &array);
    fs::remove_file(array.join("__commits").join(format!("{SECOND}.wrt"))).unwrap();
    fs::remove_dir_all(array.join("__fragments").join(SECOND)).unwrap();
    array
}

fn commit_second(array: &Path) {
    support::stored::copy_folder(&demo().join("__fragments").join(SECOND), &array.join("__fragments").join(SECOND));
    fs::copy(
        demo().join("__commits").join(format!("{SECOND}.wrt")),
        array.join("__commits").join(format!("{SECOND}.wrt")),
    )
    .unwrap();
}

#[test]
fn a_commit_changes_the_etags_of_the_files_that_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let array = before_second(folder.path());
    let server = Program::start(&array, &["--refresh=1"]);
    let before = get(server.address, "/temp.f32");
    let etag = before.header("etag").to_owned();
    let unchanged =
        |etag: &str| ask(server.address, "GET", "/temp.f32", &[&format!("If-None-Match: {etag}")]).status == 304;
    assert!(unchanged(&etag));
    commit_second(&array);
    eventually("the commit shows", || !unchanged(&etag));
    let after = get(server.address, "/temp.f32");
    assert!(after.header("etag") != etag && after.body != before.body);
    let whole = Program::start(&demo(), &[]);
    assert!(after.body == get(whole.address, "/temp.f32").body);
    assert_eq!(after.header("last-modified"), "Tue, 02 Jan 2024 00:00:00 GMT");
    // A client that continues a download finds that the file has changed.
    let rest = ask(server.address, "GET", "/temp.f32", &["Range: bytes=8-", &format!("If-Range: {etag}")]);
    assert!(rest.status == 200 && rest.body == after.body);
    assert_eq!(ask(server.address, "GET", "/temp.f32", &[&format!("If-Match: {etag}")]).status, 412);
    assert!(get(server.address, "/.tilefs/stats.json").json()["refreshes"].as_u64().unwrap() >= 1);
}

#[test]
fn without_refresh_a_server_shows_what_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let array = before_second(folder.path());
    let server = Program::start(&array, &[]);
    let before = get(server.address, "/temp.f32");
    commit_second(&array);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let after = get(server.address, "/temp.f32");
    assert!(after.body == before.body && after.header("etag") == before.header("etag"));
}

/// In a group, the files of an array without commits keep their ETags.
#[test]
fn a_commit_to_one_member_leaves_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("group/__group")).unwrap();
    let Some(python) = support::skip::python_with("tiledb, numpy") else { return };
    let script = "
import sys, numpy, tiledb
group = sys.argv[1]
tiledb.Group.create(group)
for name in 'ab':
    tiledb.from_numpy(f'{group}/{name}', numpy.arange(100, dtype='i4'))
with tiledb.Group(group, 'w') as opened:
    for name in 'ab':
        opened.add(name, name=name, relative=True)
";
    let group = folder.path().join("g");
    let run = |script: &str| {
        let output = Command::new(&python).args(["-c", script]).arg(&group).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(script);
    let server = Program::start(&group, &["--refresh=1"]);
    let names: Vec<String> = get(server.address, "/a/?json")
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect();
    let values = names.iter().find(|name| name.ends_with(".i32")).unwrap();
    let etag =
        |member: &str| ask(server.address, "HEAD", &format!("/{member}/{values}"), &[]).header("etag").to_owned();
    let before = [etag("a"), etag("b")];
    run("import sys, tiledb\nwith tiledb.open(sys.argv[1] + '/b', 'w') as array: array[3:5] = 7");
    eventually("the commit shows", || etag("b") != before[1]);
    assert_eq!(etag("a"), before[0]);
    let bytes = get(server.address, &format!("/b/{values}")).body;
    assert_eq!(&bytes[12..20], [7, 0, 0, 0, 7, 0, 0, 0]);
}
