//! The disk cache, and the data that are fetched in spite of it.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tilefs_cloud::CloudOptions;
use tilefs_tree::{self as tree, TreeOptions};

use super::proxy::Proxy;
use super::servers::S3;
use super::skip::{Need, python_with, skipped};
use support::paths::files;

use super::{cloud_options, fixtures, open, options, program, reaching, read, text};

/// Damages the bytes of a file in the cache.
type Spoil = fn(&[u8]) -> Vec<u8>;

#[test]
fn what_was_read_once_is_not_fetched_again() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("kept");
    server.put_folder(&fixtures().join("demo"), "kept/demo");
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let disk_cache = Some((folder.path().join("cache"), 1 << 30));
    let reached = reaching(CloudOptions { disk_cache, ..cloud_options(&proxy.url()) });
    let read_all = || {
        let root = open("s3://kept/demo", &reached).unwrap();
        let paths = files(&*root);
        paths.iter().map(|path| (path.clone(), read(&*root, path).unwrap())).collect::<Vec<_>>()
    };
    let first = read_all();
    let asked = proxy.take();
    assert!(asked.iter().any(|one| !one.is_listing()));
    assert!(read_all() == first);
    let again = proxy.take();
    assert!(!again.is_empty() && again.iter().all(|one| one.is_listing()), "{again:#?}");
    // Truncated, empty or overwritten files in the cache make reads slower, never wrong.
    let spoil: [Spoil; 3] = [
        |bytes| bytes[..bytes.len() / 2].to_vec(),
        |_| Vec::new(),
        |bytes| bytes.iter().enumerate().map(|(at, byte)| if at % 1000 == 999 { !byte } else { *byte }).collect(),
    ];
    for spoil in spoil {
        let files: Vec<_> = fs::read_dir(folder.path().join("cache")).unwrap().map(Result::unwrap).collect();
        assert!(!files.is_empty());
        for file in files {
            fs::write(file.path(), spoil(&fs::read(file.path()).unwrap())).unwrap();
        }
        assert!(read_all() == first);
        assert!(proxy.take().iter().any(|one| !one.is_listing()));
    }
    // A new object with the same name is not taken from the cache.
    let schema = fs::read_dir(fixtures().join("demo/__schema")).unwrap().flatten().next().unwrap();
    let name = schema.file_name().into_string().unwrap();
    server.put(&format!("kept/demo/__schema/{name}"), b"no schema");
    assert!(open("s3://kept/demo", &reached).is_err());
}

/// Several processes share one folder, and some are killed while they write: the cached data are right all the same.
#[test]
fn processes_share_a_cache_and_may_die() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("several");
    server.put_folder(&fixtures().join("demo"), "several/demo");
    let proxy = Proxy::start(server.address(), Duration::from_millis(5));
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache").display().to_string();
    let due = read(&*open(fixtures().join("demo").to_str().unwrap(), &TreeOptions::default()).unwrap(), "temp.f32");
    let due = due.unwrap();
    let start = || {
        let mut command = program();
        command.env("AWS_ENDPOINT_URL", proxy.url());
        command.args(["cat", "--anonymous", "--disk-cache", &cache, "s3://several/demo", "temp.f32"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for round in 0..8 {
        let mut killed: Vec<_> = (0..3).map(|_| start()).collect();
        let whole: Vec<_> = (0..2).map(|_| start()).collect();
        thread::sleep(Duration::from_millis(10 * round));
        for one in &mut killed {
            one.kill().unwrap();
            one.wait().unwrap();
        }
        for one in whole {
            let output = one.wait_with_output().unwrap();
            assert!(output.status.success() && output.stdout == due, "{}", text(&output.stderr));
        }
        // Every second round starts with an empty cache.
        if round % 2 == 1 {
            fs::remove_dir_all(&cache).unwrap();
        }
    }
}

#[test]
fn a_full_disk_is_a_warning() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("full");
    server.put_folder(&fixtures().join("arrays/dense/big_tile"), "full/array");
    let folder = tempfile::tempdir().unwrap();
    let small = ["-t", "tmpfs", "-o", "size=16k", "tmpfs"];
    if !Command::new("mount").args(small).arg(folder.path()).status().is_ok_and(|status| status.success()) {
        return skipped(Need::Mounts, "no small disk can be mounted");
    }
    let run = |cached: bool| {
        let mut command = program();
        command.env("AWS_ENDPOINT_URL", server.url()).args(["cat", "--anonymous"]);
        if cached {
            command.arg("--disk-cache").arg(folder.path().join("cache"));
        }
        command.args(["s3://full/array", "row.f32"]).output().unwrap()
    };
    fs::write(folder.path().join("ballast"), vec![0; 12 << 10]).unwrap();
    let (without, with) = (run(false), run(true));
    assert!(Command::new("umount").arg(folder.path()).status().unwrap().success());
    let said = text(&with.stderr);
    assert!(with.status.success() && with.stdout == without.stdout, "{said}");
    assert!(said.contains("disk cache"), "{said}");
}

/// One tile of 64 MiB in chunks.
const LARGE_TILE: &str = r#"
import sys, numpy as np, tiledb
n = 16 << 20
dom = tiledb.Domain(tiledb.Dim("x", domain=(0, n - 1), tile=n, dtype=np.int32))
attr = tiledb.Attr("v", dtype=np.int32, filters=tiledb.FilterList([tiledb.LZ4Filter()]))
tiledb.Array.create(sys.argv[1], tiledb.ArraySchema(dom, attrs=[attr]))
with tiledb.open(sys.argv[1], "w") as a:
    a[:] = np.random.default_rng(1).integers(0, 1 << 24, n, dtype=np.int32)
with tiledb.open(sys.argv[1]) as a:
    print(a[5_000_000]["v"], a[12_345_678]["v"])
"#;

#[test]
fn a_small_read_in_a_large_tile_fetches_little() {
    let Some(server) = S3::get() else { return };
    let Some(python) = python_with("tiledb") else { return };
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("array");
    let written = Command::new(python).args(["-c", LARGE_TILE]).arg(&local).output().unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    let due: Vec<i32> = text(&written.stdout).split_whitespace().map(|word| word.parse().unwrap()).collect();
    server.make_bucket("large");
    server.put_folder(&local, "large/array");
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let root = open("s3://large/array", &options(&proxy.url())).unwrap();
    let value = |x: u32| i32::from_le_bytes(read(&*root, &format!("slice/{x}/v.i32")).unwrap().try_into().unwrap());
    assert_eq!(value(5_000_000), due[0]);
    let first: usize = proxy.take().iter().map(|one| one.bytes).sum();
    assert_eq!(value(12_345_678), due[1]);
    let second = proxy.take();
    let bytes: usize = second.iter().map(|one| one.bytes).sum();
    println!("{first} bytes for the first value, {bytes} for the second by {} requests", second.len());
    assert!(bytes <= 1 << 20, "{second:#?}");
}

#[test]
fn many_readers_make_one_request_for_each_range() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("shared");
    let local = fixtures().join("arrays/dense/big_tile");
    server.put_folder(&local, "shared/array");
    let proxy = Proxy::start(server.address(), Duration::from_millis(10));
    let root = open("s3://shared/array", &options(&proxy.url())).unwrap();
    let here = tree::open(&local, &TreeOptions::default()).unwrap();
    let paths = files(&*here);
    let path = paths.iter().find(|path| path.ends_with(".i32") || path.ends_with(".f64")).unwrap_or(&paths[0]);
    let due = read(&*here, path).unwrap();
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| assert!(read(&*root, path).unwrap() == due));
        }
    });
    let most = proxy.most_in_flight();
    let asked = proxy.take();
    let mut ranges: Vec<(String, Option<String>)> = asked.into_iter().map(|one| (one.target, one.range)).collect();
    let count = ranges.len();
    ranges.sort();
    ranges.dedup();
    assert_eq!(ranges.len(), count, "{ranges:#?}");
    assert!(count > 2 && most <= 64, "{count} requests, {most} at once");
}
