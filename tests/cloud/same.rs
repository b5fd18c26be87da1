//! The files of an array in an object store are those of a local copy.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_tree::{self as tree, TreeOptions};

use super::proxy::Proxy;
use super::servers::S3;
use super::skip::{can_mount, python_with};
use support::paths::{content, files};

use super::{SECRET, fixtures, open, options, part, program, read, text, tilefs};

/// Only parts of longer files are compared, because files of unwritten cells can have any length.
const LARGE: u64 = 4 << 20;
const PART: u64 = 256 << 10;

/// Compares each file of a local array with that of the same array in a store; returns the number of files.
#[track_caller]
pub fn assert_same(local: &Path, uri: &str, options: &TreeOptions) -> usize {
    let here = tree::open(local, options).unwrap();
    let there = open(uri, options).unwrap_or_else(|error| panic!("{uri}: {error}"));
    let (paths, others) = (files(&*here), files(&*there));
    assert_eq!(paths, others, "{uri}");
    let same = |path: &str, due: Result<Vec<u8>>, got: Result<Vec<u8>>| match (due, got) {
        // Some texts contain the location of the array.
        (Ok(due), Ok(got)) => {
            assert!(due == got || text(&due).replace(&local.display().to_string(), uri) == text(&got), "{uri} {path}");
        }
        (Err(_), Err(_)) => {}
        (due, got) => panic!("{uri} {path}: {:?} {:?}", due.map(drop), got.map(drop)),
    };
    for path in &paths {
        match (content(&*here, path), content(&*there, path)) {
            (Ok(due), Ok(got)) if due.len() > LARGE => {
                assert_eq!(due.len(), got.len(), "{uri} {path}");
                for start in [0, due.len() / 2, due.len() - PART] {
                    same(path, part(&*due, start, PART), part(&*got, start, PART));
                }
            }
            (due, got) => {
                let whole = |content: Arc<dyn Content>| part(&*content, 0, content.len());
                same(path, due.and_then(whole), got.and_then(whole));
            }
        }
    }
    paths.len()
}

#[test]
fn arrays_and_groups_are_as_local_copies() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("same");
    let names = [
        "demo",
        "arrays/dense/consolidated",
        "arrays/dense/enumerations",
        "arrays/dense/labels",
        "arrays/dense/metadata",
        "arrays/dense/no_fragment",
        "arrays/dense/odd_names",
        "arrays/dense/var",
        "arrays/filestore",
        "arrays/sparse/deletes",
        "arrays/sparse/overlap",
        "arrays/sparse/types",
    ];
    let mut compared = 0;
    for name in names {
        let local = fixtures().join(name);
        server.put_folder(&local, &format!("same/fixtures/{name}"));
        compared += assert_same(&local, &format!("s3://same/fixtures/{name}"), &options(&server.url()));
        println!("{name}: {compared} files by now");
    }
    assert!(compared > 200, "{compared}");
    // All groups of the fixtures, whose members are named by relative paths.
    let groups = fixtures().join("arrays/groups");
    let mut of_groups = 0;
    for entry in fs::read_dir(&groups).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        server.put_folder(&entry.path(), &format!("same/groups/{name}"));
        of_groups += assert_same(&entry.path(), &format!("s3://same/groups/{name}"), &options(&server.url()));
    }
    assert!(of_groups > 50, "{of_groups}");
}

#[test]
fn the_commands_print_what_they_print_of_a_local_copy() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("commands");
    let local = fixtures().join("demo");
    server.put_folder(&local, "commands/a/demo");
    let (local, uri) = (local.to_str().unwrap(), "s3://commands/a/demo");
    for arguments in [
        &["info", "ARRAY", "--at=2026-01-01"][..],
        &["info", "ARRAY", "--at=2026-01-01", "--json"],
        &["ls", "-R", "ARRAY"],
        &["ls", "-l", "ARRAY", "slice/0..9,0..9/npy"],
        &["cat", "ARRAY", "temp.f32", "slice/45,120/temp.f32"],
        &["cat", "--at=2026-01-01", "ARRAY", "README.txt"],
        &["verify", "ARRAY"],
    ] {
        let with = |place: &str| -> Vec<String> {
            arguments.iter().map(|&one| if one == "ARRAY" { place.to_owned() } else { one.to_owned() }).collect()
        };
        let due = program().args(with(local)).output().unwrap();
        let with_uri = with(uri);
        let got = tilefs(&server.url(), &with_uri.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(got.status.success(), "{arguments:?}: {}", text(&got.stderr));
        assert_eq!(text(&got.stdout), text(&due.stdout).replace(local, uri), "{arguments:?}");
        assert_eq!(text(&got.stderr), "", "{arguments:?}");
    }
}

/// A prefix of a bucket is a tree of folders, like a local folder of arrays and groups.
#[test]
fn a_prefix_of_a_bucket_is_a_tree_of_folders() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("shelves");
    let folder = tempfile::tempdir().unwrap();
    let shelf = folder.path().join("all");
    for (name, place) in [("demo", "deep/er/demo"), ("arrays/groups/experiment", "group")] {
        let (from, to) = (fixtures().join(name), shelf.join(place));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        assert!(Command::new("cp").arg("-r").arg(&from).arg(&to).status().unwrap().success());
        server.put_folder(&from, &format!("shelves/all/{place}"));
    }
    server.put("shelves/all/notes.md", b"of no interest");
    server.put("shelves/all/deep/notes/of.md", b"of no interest");
    fs::create_dir_all(shelf.join("deep/notes")).unwrap();
    assert!(assert_same(&shelf, "s3://shelves/all", &options(&server.url())) > 50);
    for arguments in [&["ls"][..], &["info"], &["info", "--json"], &["verify"]] {
        let due = program().args(arguments).arg(&shelf).output().unwrap();
        let got = tilefs(&server.url(), &[arguments, &["s3://shelves/all"]].concat());
        assert!(got.status.success(), "{arguments:?}: {}", text(&got.stderr));
        let got = text(&got.stdout).replace("s3://shelves/all", shelf.to_str().unwrap());
        assert_eq!(got, text(&due.stdout), "{arguments:?}");
    }
}

#[test]
fn a_mount_shows_what_a_local_copy_shows() {
    let Some(server) = S3::get() else { return };
    if !can_mount() {
        return;
    }
    server.make_bucket("mounted");
    let local = fixtures().join("demo");
    server.put_folder(&local, "mounted/demo");
    let folder = tempfile::tempdir().unwrap();
    let (mountpoint, log) = (folder.path().join("mnt"), folder.path().join("log"));
    fs::create_dir(&mountpoint).unwrap();
    let place = mountpoint.to_str().unwrap();
    let log_file = format!("--log-file={}", log.display());
    let output = tilefs(&server.url(), &["mount", "s3://mounted/demo", place, "--log-level=debug", &log_file]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let here = tree::open(&local, &TreeOptions::default()).unwrap();
    let due = read(&*here, "temp.f32").unwrap();
    let got = fs::read(mountpoint.join("temp.f32"));
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments: Vec<String> =
        processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).map(|line| text(&line)).collect();
    let unmounted = program().args(["umount", place]).output().unwrap();
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
    assert!(got.unwrap() == due);
    assert!(table.lines().any(|line| line.starts_with("s3://mounted/demo ") && line.contains(place)), "{table}");
    // The key does not appear anywhere.
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("s3://mounted/demo") && !log.contains(SECRET) && !table.contains(SECRET), "{log}");
    assert!(arguments.iter().any(|line| line.contains("s3://mounted/demo")), "{arguments:?}");
    assert!(!arguments.iter().any(|line| line.contains(SECRET)), "{arguments:?}");
}

/// Writes a group with libtiledb, with members of all kinds of URIs, and saves what libtiledb reads from it.
const WRITE_AND_READ: &str = r#"
import sys, numpy as np, tiledb
endpoint, out = sys.argv[1:]
config = tiledb.Config({
    "vfs.s3.endpoint_override": endpoint.split("//")[1], "vfs.s3.scheme": "http", "vfs.s3.region": "us-east-1",
    "vfs.s3.use_virtual_addressing": "false", "vfs.s3.aws_access_key_id": "AKIDEXAMPLE",
    "vfs.s3.aws_secret_access_key": "hunter2hunter2hunter2"})
ctx = tiledb.Ctx(config)
vfs = tiledb.VFS(ctx=ctx)
for bucket in ["written", "elsewhere"]:
    vfs.create_bucket(f"s3://{bucket}")
def dense(uri, factor):
    dom = tiledb.Domain(tiledb.Dim("y", domain=(0, 99), tile=30, dtype=np.int32, ctx=ctx),
                        tiledb.Dim("x", domain=(0, 79), tile=40, dtype=np.int32, ctx=ctx), ctx=ctx)
    attr = tiledb.Attr("v", dtype=np.float64, filters=tiledb.FilterList([tiledb.ZstdFilter()], ctx=ctx), ctx=ctx)
    tiledb.Array.create(uri, tiledb.ArraySchema(dom, attrs=[attr], ctx=ctx), ctx=ctx)
    with tiledb.open(uri, "w", ctx=ctx) as a:
        a[:] = np.arange(8000.0).reshape(100, 80) * factor
    with tiledb.open(uri, "w", ctx=ctx) as a:
        a[20:40, 10:50] = -np.ones((20, 40))
tiledb.group_create("s3://written/group", ctx=ctx)
tiledb.group_create("s3://written/group/inner", ctx=ctx)
dense("s3://written/group/relative", 1.0)
dense("s3://elsewhere/deep/absolute", 2.0)
dense("s3://written/group/inner/nested", 3.0)
with tiledb.Group("s3://written/group", "w", ctx=ctx) as g:
    g.add("relative", name="relative", relative=True)
    g.add("s3://elsewhere/deep/absolute", name="absolute", relative=False)
    g.add("inner", name="inner", relative=True)
    g.meta["note"] = "hello"
with tiledb.Group("s3://written/group/inner", "w", ctx=ctx) as g:
    g.add("s3://written/group/inner/nested", name="nested", relative=False)
for name, uri in [("relative", "s3://written/group/relative"), ("absolute", "s3://elsewhere/deep/absolute"),
                  ("inner/nested", "s3://written/group/inner/nested")]:
    with tiledb.open(uri, ctx=ctx) as a:
        a[:]["v"].astype("<f8").tofile(f"{out}/{name.replace('/', '-')}")
tiledb.group_create(f"{out}/here", ctx=ctx)
dense(f"{out}/here/near", 4.0)
with tiledb.Group(f"{out}/here", "w", ctx=ctx) as g:
    g.add("near", name="near", relative=True)
    g.add("s3://elsewhere/deep/absolute", name="array", relative=False)
    g.add("s3://written/group", name="group", relative=False)
config.save(f"{out}/config")
"#;

#[test]
fn what_libtiledb_writes_to_a_bucket_is_read_from_there() {
    let Some(server) = S3::get() else { return };
    let Some(python) = python_with("tiledb") else { return };
    let out = tempfile::tempdir().unwrap();
    let written = Command::new(python).args(["-c", WRITE_AND_READ, &server.url()]).arg(out.path()).output().unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let root = open("s3://written/group", &options(&proxy.url())).unwrap();
    // A local group also has members there.
    let here = open(out.path().join("here").to_str().unwrap(), &options(&proxy.url())).unwrap();
    for (name, there) in [("array", "absolute"), ("group/inner/nested", "inner/nested")] {
        let due = fs::read(out.path().join(there.replace('/', "-"))).unwrap();
        assert!(read(&*here, &format!("{name}/v.f64")).unwrap() == due, "{name}");
    }
    assert_eq!(read(&*here, "near/v.f64").unwrap()[8..16], 4f64.to_le_bytes());
    for name in ["relative", "absolute", "inner/nested"] {
        let due = fs::read(out.path().join(name.replace('/', "-"))).unwrap();
        assert_eq!(due.len(), 64000);
        assert!(read(&*root, &format!("{name}/v.f64")).unwrap() == due, "{name}");
    }
    assert_eq!(read(&*root, ".group/meta/note").map(|note| text(&note)).unwrap_or_default(), "hello");
    assert!(proxy.take().iter().all(|asked| asked.method == "GET" && !asked.is_signed));
    // libtiledb saved this file of settings, without the secrets.
    let config = out.path().join("config").display().to_string();
    let mut command = program();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET);
    let output = command.args(["cat", "--config", &config, "s3://written/group", "absolute/v.f64"]).output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert!(output.stdout == fs::read(out.path().join("absolute")).unwrap());
}
