//! Programs without any knowledge of TileDB read from a server.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use crate::client::{Program, demo, get};
use support::skip::{Need, is_root, python_with, skipped};

pub fn has(program: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file());
    if !found {
        skipped(Need::Programs, &format!("{program} is missing"));
    }
    found
}

#[track_caller]
pub fn output(command: &mut Command) -> Vec<u8> {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    assert!(status.success(), "{command:?}: {} {}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    stdout
}

fn temp(server: &Program) -> Vec<u8> {
    get(server.address, "/temp.f32").body
}

#[test]
fn curl_goes_on_with_a_download() {
    if !has("curl") {
        return;
    }
    let server = Program::start(&demo(), &[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("temp.f32");
    std::fs::write(&file, &temp(&server)[..1000]).unwrap();
    output(Command::new("curl").args(["-sfC", "-", "-o"]).arg(&file).arg(server.url() + "temp.f32"));
    assert!(std::fs::read(&file).unwrap() == temp(&server));
}

#[test]
fn rclone_lists_and_copies_over_webdav_and_http() {
    if !has("rclone") {
        return;
    }
    let server = Program::start(&demo(), &[]);
    let folder = tempfile::tempdir().unwrap();
    let rclone = |arguments: &[&str]| {
        output(Command::new("rclone").args(["--config", "", "--retries", "1"]).args(arguments).current_dir(&folder))
    };
    let (webdav, http) = (format!(":webdav,url='{}':", server.url()), format!(":http,url='{}':", server.url()));
    for remote in [&webdav, &http] {
        let listed = String::from_utf8(rclone(&["ls", remote])).unwrap();
        let sizes: Vec<&str> = listed.lines().filter(|line| line.ends_with(" temp.f32")).collect();
        assert_eq!(sizes.iter().map(|line| line.trim()).collect::<Vec<_>>(), ["80000 temp.f32"], "{remote}");
        assert!(listed.contains("dims/y.i64") && listed.contains("npy/temp.npy"), "{listed}");
        assert!(rclone(&["cat", &format!("{remote}temp.f32")]) == temp(&server));
        // A part of the array by coordinates, which no listing has.
        let part = rclone(&["cat", &format!("{remote}slice/0..1,0..1/temp.f32")]);
        assert_eq!(part.len(), 16, "{remote}");
    }
    rclone(&["copy", &format!("{webdav}dims"), "dims"]);
    assert_eq!(std::fs::read(folder.path().join("dims/y.i64")).unwrap().len(), 800);
}

#[test]
fn davfs2_mounts_a_server() {
    if !has("mount.davfs") || !is_root() {
        return;
    }
    // davfs2 has a user of its own.
    let server = Program::start(&demo(), &["--allow-other"]);
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().join("mnt");
    std::fs::create_dir(&mountpoint).unwrap();
    let configuration = folder.path().join("davfs2.conf");
    std::fs::write(&configuration, "ask_auth 0\nuse_locks 0\n").unwrap();
    let mut mount = Command::new("mount.davfs");
    mount.arg(server.url()).arg(&mountpoint).arg("-o").arg(format!("ro,conf={}", configuration.display()));
    let mounted = mount.stdin(std::process::Stdio::null()).output().unwrap();
    if !mounted.status.success() {
        return skipped(Need::Mounts, &format!("davfs2: {}", String::from_utf8_lossy(&mounted.stderr).trim()));
    }
    let read = std::fs::read(mountpoint.join("temp.f32"));
    // davfs2 1.6 cannot list folders on recent kernels, whatever the server.
    let inner = std::fs::read(mountpoint.join("dims/y.i64"));
    assert!(Command::new("umount").arg(&mountpoint).output().unwrap().status.success());
    assert!(read.unwrap() == temp(&server) && inner.unwrap().len() == 800);
}

/// GNOME Files shows servers through GVfs, whose command is gio.
#[test]
fn gnome_mounts_a_server() {
    if !has("gio") || !has("dbus-run-session") {
        return;
    }
    let server = Program::start(&demo(), &[]);
    let url = server.url().replace("http:", "dav:");
    let script = format!(
        "gio mount {url} && gio list -l {url} && gio info {url}temp.f32 && gio cat {url}temp.f32 > whole && \
         gio list {url}slice/0..1,0..1/ && gio mount -u {url}"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut session = Command::new("dbus-run-session");
    let done =
        session.args(["--", "sh", "-c", &script]).current_dir(&folder).env("HOME", folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    let failed = String::from_utf8_lossy(&done.stderr);
    if failed.contains("doesn\u{2019}t implement mount") || failed.contains("not supported") && told.is_empty() {
        return skipped(Need::Programs, "GVfs has no WebDAV here");
    }
    assert!(done.status.success(), "{told} {failed}");
    assert!(told.contains("temp.f32\t80000\t(regular)") && told.contains("dims\t0\t(directory)"), "{told}");
    assert!(told.contains("standard::size: 80000"), "{told}");
    assert!(std::fs::read(folder.path().join("whole")).unwrap() == temp(&server));
}

#[test]
fn gdal_reads_a_raster_over_http() {
    if !has("gdalinfo") {
        return;
    }
    let server = Program::start(&demo(), &[]);
    let url = format!("/vsicurl/{}tiff/temp.tif", server.url());
    let told = String::from_utf8(output(Command::new("gdalinfo").args(["-checksum", &url]))).unwrap();
    let local = demo();
    let file = tempfile::Builder::new().suffix(".tif").tempfile().unwrap();
    let bytes = output(Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("cat").arg(local).arg("tiff/temp.tif"));
    file.as_file().write_all(&bytes).unwrap();
    let expected = String::from_utf8(output(Command::new("gdalinfo").arg("-checksum").arg(file.path()))).unwrap();
    let sum = |text: &str| text.lines().find(|line| line.contains("Checksum=")).map(str::to_owned);
    assert!(told.contains("Size is 200, 100") && sum(&told).is_some() && sum(&told) == sum(&expected), "{told}");
}

/// xarray through fsspec, NumPy, and the parallel reads of a Zarr store.
#[test]
fn xarray_and_fsspec_read_a_server() {
    let Some(python) = python_with("xarray, zarr, fsspec, aiohttp, numpy") else { return };
    let server = Program::start(&demo(), &[]);
    let script = "
import io, sys, urllib.request, fsspec, numpy, xarray
url = sys.argv[1]
raw = numpy.frombuffer(urllib.request.urlopen(url + 'temp.f32').read(), '<f4').reshape(100, 200)
opened = xarray.open_zarr(url + 'zarr', consolidated=False)
assert numpy.array_equal(opened['temp'].values, raw, equal_nan=True), opened
files = fsspec.filesystem('http')
names = [entry['name'] for entry in files.ls(url + 'npy')]
assert url + 'npy/temp.npy' in names, names
assert files.info(url + 'temp.f32')['size'] == 80000
assert files.cat_file(url + 'temp.f32', 400, 408) == raw.tobytes()[400:408]
with files.open(url + 'npy/temp.npy') as file:
    assert numpy.array_equal(numpy.load(io.BytesIO(file.read())), raw, equal_nan=True)
";
    output(Command::new(python).args(["-c", script]).arg(server.url()));
}

/// The first task of a job step starts a server, and the others find it.
#[test]
fn tasks_of_a_job_share_a_server() {
    if !has("curl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prolog = support::repository::root().join("examples/slurm_prolog.sh");
    let program = Path::new(env!("CARGO_BIN_EXE_tilefs")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap());
    let task = || {
        let mut command = Command::new("sh");
        command.arg(&prolog).env("PATH", &path).env("TMPDIR", folder.path()).env("TILEFS_ARRAY", demo());
        command.env("SLURM_JOB_ID", "7").env("SLURM_STEP_ID", "3").stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let tasks: Vec<_> = (0..3).map(|_| task()).collect();
    let printed: Vec<String> =
        tasks.into_iter().map(|task| String::from_utf8(task.wait_with_output().unwrap().stdout).unwrap()).collect();
    let get = |credentials: &str| {
        let script = format!("{}curl -s -H \"Authorization: Bearer {credentials}\" $TILEFS_URL/temp.f32", printed[0]);
        Command::new("sh").args(["-c", &script]).output().unwrap().stdout
    };
    let (bytes, refused) = (get("$TILEFS_TOKEN"), get("wrong"));
    let servers = crate::client::processes_with_argument(&demo().display().to_string(), "TMPDIR", folder.path());
    for server in &servers {
        assert!(Command::new("kill").arg(server).status().unwrap().success());
    }
    assert!(printed.iter().all(|text| *text == printed[0]), "{printed:?}");
    assert!(bytes.len() == 80_000 && refused.len() < 100, "{printed:?}");
    assert_eq!(servers.len(), 1);
}

/// fsspec takes everything that looks like a URL in a page for a member.
#[test]
fn fsspec_lists_the_members_of_a_folder_and_nothing_else() {
    let Some(python) = python_with("fsspec, aiohttp") else { return };
    let experiment = tilefs_fixtures::corpus().join("real/pbmc_soma");
    for (array, target) in [(demo(), ""), (demo(), "dims/"), (experiment.clone(), ""), (experiment, "obs/")] {
        let server = Program::start(&array, &[]);
        let script = "
import sys, fsspec, urllib.request, json
url = sys.argv[1]
members = json.load(urllib.request.urlopen(url + '?json'))
expected = sorted(url + entry['name'] + '/' * (entry['type'] == 'directory') for entry in members)
listed = sorted(fsspec.filesystem('http', use_listings_cache=False).ls(url, detail=False))
assert listed == expected, (listed, expected)
";
        output(Command::new(&python).args(["-c", script]).arg(server.url() + target));
    }
}

/// The commands on a page work as printed.
#[test]
fn the_commands_on_the_page_work() {
    let server = Program::start(&demo(), &[]);
    let page = get(server.address, "/").text();
    let text = page.split("<h2>Commands</h2>\n<pre>").nth(1).unwrap().split("</pre>").next().unwrap();
    let text = text.replace("&#39;", "'").replace("&quot;", "\"").replace("&gt;", ">").replace("&lt;", "<");
    let text = text.replace("&#58;", ":").replace("&amp;", "&").replace("localhost/", &format!("{}/", server.address));
    let commands: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let program = command.split(' ').next().unwrap();
        let python = if program == "python3" { python_with("xarray, zarr, fsspec, aiohttp, numpy") } else { None };
        if program == "mount" || program == "python3" && python.is_none() || program != "python3" && !has(program) {
            continue;
        }
        let command = python.map_or_else(|| command.to_owned(), |python| command.replacen("python3", &python, 1));
        let printed = output(Command::new("sh").args(["-ec", &command]).current_dir(folder.path()));
        assert!(!printed.is_empty() || std::fs::read_dir(folder.path()).unwrap().count() > 0, "{command}");
    }
    assert!(Path::new(&folder.path().join("README.txt")).exists());
}
