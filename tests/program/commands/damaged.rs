//! Mounts real arrays with a damaged file: programs whose reads need it get an error and fail, the log names the place,
//! and everything else is unchanged. The arrays are those of the corpus, and fixtures.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{fixtures, printed, tilefs};
use support::corpora::{corpus, peers};
use support::skip::can_mount;

/// An array with a damaged file, mounted with a log; unmounted when dropped.
struct Mounted {
    folder: TempDir,
}

impl Mounted {
    /// Mounts a copy of the array at `place`, after applying `damage` to the copy.
    fn damaged(place: &Path, damage: impl FnOnce(&Path)) -> Mounted {
        let mounted = Mounted { folder: tempfile::tempdir().expect("a temporary folder") };
        support::stored::copy_folder(place, &mounted.array());
        damage(&mounted.array());
        fs::create_dir(mounted.mountpoint()).expect("a folder is made");
        let log = format!("--log-file={}", mounted.log_file().display());
        let output =
            tilefs(&["mount".as_ref(), mounted.array().as_os_str(), mounted.mountpoint().as_os_str(), log.as_ref()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        mounted
    }

    fn array(&self) -> PathBuf {
        self.folder.path().join("array")
    }

    fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).expect("the log is read")
    }

    /// Runs a program on a file of the mount; returns its output, whether it succeeded, and its error output.
    fn run(&self, program: &str, file: &str) -> (Vec<u8>, bool, String) {
        let output = Command::new(program).arg(self.mountpoint().join(file)).output().expect("the program starts");
        assert_eq!(output.status.signal(), None, "{program} was killed");
        (output.stdout, output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !tilefs(&["umount".as_ref(), self.mountpoint().as_os_str()]).status.success() {
            let _ = Command::new("umount").arg("-l").arg(self.mountpoint()).status();
        }
    }
}

/// Returns the only fragment, and the largest of its files with this ending.
fn largest_file(array: &Path, ending: &str) -> (String, PathBuf) {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("a folder is listed").path()).collect::<Vec<_>>()
    };
    let files = names(&array.join("__fragments")).into_iter().flat_map(|fragment| names(&fragment));
    let fitting = files.filter(|path| path.to_string_lossy().ends_with(ending));
    let largest = fitting.max_by_key(|path| fs::metadata(path).map_or(0, |file| file.len())).expect("a file of cells");
    let fragment = largest.parent().and_then(Path::file_name).expect("a fragment").to_string_lossy().into_owned();
    (fragment, largest.strip_prefix(array).expect("within the array").to_owned())
}

/// Returns the arrays: the place, the file of the tree whose stored file is damaged, the ending of the latter, and a
/// file that does not need it, if there is one.
fn arrays() -> Vec<(PathBuf, &'static str, &'static str, Option<&'static str>)> {
    let real = corpus().join("real");
    vec![
        (fixtures().join("demo"), "cell.i32", "a1.tdb", Some("temp.f32")),
        (fixtures().join("arrays/sparse/overlap"), "v.i32", "a0.tdb", Some("dims/y.i32")),
        (real.join("dem_jacksboro"), "elevation.i16", "a0.tdb", None),
        (real.join("pbmc_soma/ms/RNA/X/data"), "soma_data.f32", "a0.tdb", Some("dims/soma_dim_0.i64")),
    ]
}

#[test]
fn a_cut_file_is_an_error_where_it_is_needed_and_nowhere_else() {
    if !can_mount() {
        return;
    }
    for (place, shown, stored, other) in arrays() {
        let whole = printed(&["cat".as_ref(), place.as_os_str(), shown.as_ref()]);
        let (fragment, file) = largest_file(&place, stored);
        let mounted = Mounted::damaged(&place, |array| {
            let bytes = fs::read(array.join(&file)).expect("a file is read");
            fs::write(array.join(&file), &bytes[..bytes.len() / 2]).expect("a file is written");
        });
        let title = format!("{} without half of {}", place.display(), file.display());

        let (bytes, succeeded, complaint) = mounted.run("cat", shown);
        assert!(!succeeded && complaint.contains("Input/output error"), "{title}: {complaint}");
        assert!(bytes.len() < whole.len() && whole.starts_with(&bytes), "{title}: {} bytes", bytes.len());
        let mut read = Vec::new();
        let error = fs::File::open(mounted.mountpoint().join(shown)).and_then(|mut file| file.read_to_end(&mut read));
        assert_eq!(error.expect_err("an error").raw_os_error(), Some(libc::EIO), "{title}");
        assert!(whole.starts_with(&read), "{title}");
        // The file has the same length as if it were intact.
        let length = fs::metadata(mounted.mountpoint().join(shown)).expect("a size").len();
        assert_eq!(length, whole.len() as u64, "{title}");

        // The log has a line that names the place, and the program without a mount reports the same.
        let named = [mounted.array().display().to_string(), fragment, stored.to_owned(), "offset ".to_owned()];
        let log = mounted.log();
        let says_all = |line: &str| named.iter().all(|part| line.contains(part));
        assert!(log.lines().any(says_all), "{title}: {log}");
        let output = tilefs(&["cat".as_ref(), mounted.array().as_os_str(), shown.as_ref()]);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 0) && whole.starts_with(&output.stdout), "{title}");
        assert!(complaint.lines().count() == 1 && says_all(&complaint), "{title}: {complaint}");

        if let Some(other) = other {
            let (bytes, succeeded, complaint) = mounted.run("cat", other);
            assert!(succeeded, "{title}: {other}: {complaint}");
            assert!(bytes == printed(&["cat".as_ref(), place.as_os_str(), other.as_ref()]), "{title}: {other}");
        }
        assert!(mounted.run("ls", "").1, "{title}");
    }
}

/// Some arrays of other projects are damaged, because files were lost in the projects' histories.
#[test]
fn arrays_that_lost_a_file_on_their_way_are_errors() {
    let Some(peers) = peers() else { return };
    if !can_mount() {
        return;
    }
    for (array, field, lost) in [
        ("cellxgene/pbmc3k.cxg", "X", "__attr.tdb"),
        ("tiledb-bioimaging/CMU-1-Small-Region.ome.tiff.tdb", "l_0.tdb", "a0.tdb"),
    ] {
        let mounted = Mounted::damaged(&peers.join(array), |_| {});
        let member = mounted.mountpoint().join(field);
        let values = fs::read_dir(&member).expect("the member is listed").flatten().map(|entry| entry.path());
        let is_raw = |path: &PathBuf| {
            path.extension().is_some_and(|extension| ["f32", "u8"].contains(&&*extension.to_string_lossy()))
        };
        let file = values.into_iter().find(is_raw).expect("a file of values");
        let error = fs::read(&file).expect_err("an error");
        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{}", file.display());
        let log = mounted.log();
        let is_place = |line: &str| line.contains(field) && line.contains(lost) && line.contains("fragment ");
        assert!(log.lines().any(is_place), "{array}: {log}");
    }
}

#[test]
fn damaged_metadata_of_a_fragment_is_an_error_of_all_that_needs_it() {
    if !can_mount() {
        return;
    }
    let demo = fixtures().join("demo");
    let (fragment, file) = largest_file(&demo, "__fragment_metadata.tdb");
    let mounted = Mounted::damaged(&demo, |array| {
        fs::write(array.join(&file), [0; 100]).expect("a file is written");
    });
    for shown in ["cell.i32", "temp.f32"] {
        let (_, succeeded, complaint) = mounted.run("cat", shown);
        assert!(!succeeded && complaint.contains("Input/output error"), "{shown}: {complaint}");
    }
    let log = mounted.log();
    assert!(log.lines().any(|line| line.contains(&fragment) && line.contains("__fragment_metadata.tdb")), "{log}");
}
