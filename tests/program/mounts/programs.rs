//! Programs that copy, search, list and serve files, on a mount of arrays with values of every kind. Their results are
//! compared with plain reads, and plain reads with libtiledb's values.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::calls;
use super::harness::{
    Daemon, Need, Place, Server, Watchdog, can_mount, errors, eventually, is_root, program_is_there, signal, skipped,
    tilefs,
};
use super::recorded::{attributes, object};

/// Dense and sparse arrays, in one tile and in many, with text, nulls and labels.
const DENSE: [&str; 6] =
    ["demo", "dense/overlap", "dense/dims_3", "dense/consolidated", "dense/types_numbers", "dense/fill"];
const OTHERS: [&str; 6] =
    ["dense/var", "dense/nullable", "dense/enumerations", "sparse/hilbert", "sparse/types", "sparse/soma_matrix"];

/// A file as programs see it.
#[derive(PartialEq)]
struct Seen {
    bytes: Vec<u8>,
    modified: i64,
    mode: u32,
}

/// A mount of a group of these arrays, and its files.
struct Shelf {
    daemon: Daemon,
    files: BTreeMap<PathBuf, Seen>,
}

impl Shelf {
    fn mount(options: &[&str]) -> Shelf {
        let place = Place::new();
        let group = place.beside().join("group");
        fs::create_dir(&group).unwrap();
        fs::write(group.join("__tiledb_group.tdb"), "").unwrap();
        let name = |array: &str| array.replace('/', "_");
        for array in DENSE.iter().chain(&OTHERS) {
            symlink(&object(array).place, group.join(name(array))).unwrap();
        }
        let daemon = Daemon::start(place, &group, &[&["--follow-links"], options].concat());
        let files = files_below(daemon.place());
        assert!(files.len() > 200, "{}", files.len());
        for array in DENSE {
            for (file, values) in attributes(&object(array)) {
                let seen = &files[&Path::new(&name(array)).join(&file)];
                assert!(seen.bytes == values, "{array} {file}");
            }
        }
        Shelf { daemon, files }
    }

    fn path(&self) -> &Path {
        self.daemon.place()
    }

    /// Runs a line of shell beside the mount `mnt`.
    fn run(&self, line: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-ec", line]).current_dir(self.daemon.beside()).env("LC_ALL", "C").stdin(Stdio::null());
        shell.output().unwrap()
    }

    /// Returns the output of such a line.
    fn printed(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks that such a line copies all files to `copy`.
    fn is_copied_by(&self, line: &str) {
        self.printed(line);
        let copies = files_below(&self.daemon.beside().join("copy"));
        assert!(copies.keys().eq(self.files.keys()), "{line}");
        for (path, seen) in &self.files {
            let copy = &copies[path];
            assert!(copy.bytes == seen.bytes, "{line}: {}", path.display());
            assert_eq!((copy.modified, copy.mode), (seen.modified, seen.mode), "{line}: {}", path.display());
        }
        self.printed("chmod -R u+w copy; rm -r copy");
    }

    /// Some files of all sizes, with what is in them.
    fn some_files(&self) -> impl Iterator<Item = (PathBuf, &[u8])> {
        let sized = self.files.iter().filter(|(_, seen)| !seen.bytes.is_empty());
        sized.step_by(7).map(|(path, seen)| (self.path().join(path), seen.bytes.as_slice()))
    }
}

/// Returns all files in a folder and its subfolders, by relative path.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path);
            } else {
                let seen = Seen { bytes: fs::read(&path).unwrap(), modified: metadata.mtime(), mode: metadata.mode() };
                assert_eq!(seen.bytes.len() as u64, metadata.len(), "{}", path.display());
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), seen);
            }
        }
    }
    files
}

#[test]
fn rsync_tar_and_cp_copy_values_times_and_modes() {
    let _watchdog = Watchdog::start("rsync_tar_and_cp_copy_values_times_and_modes");
    if !can_mount() {
        return;
    }
    let shelf = Shelf::mount(&[]);
    shelf.is_copied_by("cp -a --sparse=always mnt copy");
    shelf.is_copied_by("cp -a --sparse=never mnt copy");
    shelf.is_copied_by("tar -cf all.tar -C mnt .; tar -df all.tar -C mnt; mkdir copy; tar -xpf all.tar -C copy");
    if program_is_there("rsync") {
        shelf.is_copied_by("rsync -a mnt/ copy; test -z \"$(rsync -ac --itemize-changes mnt/ copy)\"");
        // With `--no-whole-file`, rsync compares blocks of the files, which differ here.
        shelf.is_copied_by(
            "cp -a mnt copy; chmod -R u+w copy; find copy -name '*.i32' -exec sh -c 'echo x >> \"$0\"' {} \\;; \
             rsync -a --no-whole-file mnt/ copy",
        );
    }
}

#[test]
fn find_du_df_and_grep_see_names_sizes_and_text() {
    let _watchdog = Watchdog::start("find_du_df_and_grep_see_names_sizes_and_text");
    if !can_mount() {
        return;
    }
    let shelf = Shelf::mount(&[]);
    let expected: String =
        shelf.files.iter().map(|(path, seen)| format!("{} {}\n", path.display(), seen.bytes.len())).collect();
    let sorted = |lines: &str| {
        let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let found = shelf.printed("find mnt -type f -printf '%P %s\\n'");
    assert_eq!(sorted(&found), sorted(&expected));
    assert_eq!(
        shelf.printed("find mnt -type f -size +100k -newermt 2020-01-01 ! -newermt 2030-01-01 | grep -c demo"),
        "3\n"
    );
    assert_eq!(shelf.printed("find mnt ! -type f ! -type d; find mnt -perm /222"), "");

    let total: usize = shelf.files.values().map(|seen| seen.bytes.len()).sum();
    let counted: usize = shelf.printed("du -sb --apparent-size mnt | cut -f1").trim().parse().unwrap();
    // du also adds the sizes of folders, which are 0 here.
    assert_eq!(counted, total);
    let blocks: usize = shelf.printed("du -s --block-size=512 mnt | cut -f1").trim().parse().unwrap();
    assert!(blocks * 512 >= total);
    // Without an argument, df omits file systems that it takes for those of the kernel.
    // It fails if any other mount of the machine does not answer, but still prints a line for each that does.
    let lines = String::from_utf8(shelf.run("df -B1 --output=fstype,avail,target,size").stdout).unwrap();
    let line = lines.lines().find(|line| line.contains(shelf.path().to_str().unwrap())).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(fields[..3], ["fuse.tilefs", "0", shelf.path().to_str().unwrap()]);
    let size: u64 = fields[3].parse().unwrap();
    // Everything was read, so all lengths are known, except for those of members that were closed since; in whole blocks.
    assert!(size > 0 && size <= total as u64, "{size} of {total}");

    let title = fs::read_to_string(shelf.path().join("demo/meta/title")).unwrap();
    let with_title = shelf.printed(&format!("grep -rlF '{title}' mnt"));
    let expected = shelf.files.iter().filter(|(_, seen)| contains(&seen.bytes, title.as_bytes()));
    let expected: String = expected.map(|(path, _)| format!("mnt/{}\n", path.display())).collect();
    assert!(expected.contains("mnt/demo/meta/title\n"));
    assert_eq!(sorted(&with_title), sorted(&expected));
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn sendfile_copy_file_range_and_splice_move_the_bytes_that_are_read() {
    let _watchdog = Watchdog::start("sendfile_copy_file_range_and_splice_move_the_bytes_that_are_read");
    if !can_mount() {
        return;
    }
    let shelf = Shelf::mount(&[]);
    for (path, expected) in shelf.some_files() {
        let file = File::open(&path).unwrap();
        let offset = expected.len() / 3;
        let copy = || {
            File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(shelf.daemon.beside().join("copied"))
        };
        let ways: [calls::Move; 3] = [calls::sendfile, calls::copy_file_range, calls::splice];
        for way in ways {
            let to = copy().unwrap();
            let mut moved = offset;
            while moved < expected.len() {
                match way(&file, moved, &to, expected.len() - moved) {
                    Ok(0) => break,
                    Ok(length) => moved += length,
                    // The kernel returns EXDEV between file systems; programs then read and write instead.
                    Err(error) if error.raw_os_error() == Some(libc::EXDEV) && moved == offset => {
                        moved += io::copy(&mut tail(&file, offset), &mut &to).unwrap() as usize;
                    }
                    Err(error) => panic!("{}: {error}", path.display()),
                }
            }
            let mut bytes = vec![0; moved - offset];
            to.read_exact_at(&mut bytes, 0).unwrap();
            assert!(bytes == expected[offset..], "{}", path.display());
        }
    }
}

/// Returns a reader of a file from an offset on.
fn tail(file: &File, offset: usize) -> impl Read {
    use std::io::Seek;
    let mut file = file.try_clone().unwrap();
    file.seek(io::SeekFrom::Start(offset as u64)).unwrap();
    file
}

#[test]
fn mappings_and_direct_reads_give_the_values() {
    let _watchdog = Watchdog::start("mappings_and_direct_reads_give_the_values");
    if !can_mount() {
        return;
    }
    for options in [&[][..], &["--direct-io"]] {
        let shelf = Shelf::mount(options);
        for (path, expected) in shelf.some_files() {
            let file = File::open(&path).unwrap();
            // The kernel does not map files that bypass its page cache as shared.
            if options.is_empty() {
                assert!(calls::read_mapped(&file, 0, expected.len()) == *expected, "{} mapped", path.display());
            }
            let direct = File::options().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
            let length = expected.len().next_multiple_of(4096);
            // The buffer of such reads must be aligned to a page.
            let mut bytes = vec![0; length + 4096];
            let start = bytes.as_ptr().align_offset(4096);
            let mut read = 0;
            while read < expected.len() {
                let end = start + length;
                match direct.read_at(&mut bytes[start + read..end], read as u64).unwrap() {
                    0 => break,
                    more => read += more,
                }
            }
            assert!(bytes[start..start + read] == *expected, "{} read directly", path.display());
        }
    }
}

/// Returns an unused port of this machine.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn samba_serves_a_mount() {
    let _watchdog = Watchdog::start("samba_serves_a_mount");
    if !can_mount() || !program_is_there("/usr/sbin/smbd") || !program_is_there("smbclient") {
        return;
    }
    if !is_root() {
        return skipped(Need::Root, "smbd serves guests only as root");
    }
    let shelf = Shelf::mount(&["--allow-other"]);
    let beside = shelf.daemon.beside();
    let state = beside.join("samba");
    fs::create_dir_all(state.join("private")).unwrap();
    let (configuration, port) = (state.join("smb.conf"), free_port());
    let state = state.display();
    let text = format!(
        "[global]\ninterfaces = lo\nbind interfaces only = yes\nsmb ports = {port}\nmap to guest = bad user\n\
         guest account = root\ndisable netbios = yes\nload printers = no\nprinting = bsd\nprintcap name = /dev/null\n\
         lock directory = {state}\nstate directory = {state}\ncache directory = {state}\npid directory = {state}\n\
         ncalrpc dir = {state}/ncalrpc\nprivate dir = {state}/private\nlog file = {state}/log\n\
         [arrays]\npath = {}\nguest ok = yes\nread only = yes\n",
        shelf.path().display()
    );
    fs::write(&configuration, text).unwrap();
    let server = Command::new("/usr/sbin/smbd")
        .args(["--foreground", "--configfile"])
        .arg(&configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(server);
    let client = |commands: &str| {
        let mut client = Command::new("smbclient");
        client.args(["//127.0.0.1/arrays", "--no-pass", "--port", &port.to_string(), "--command", commands]);
        client.arg("--configfile").arg(&configuration).current_dir(&beside).output().unwrap()
    };
    eventually("smbd answers", || client("ls").status.success());
    fs::create_dir(beside.join("copy")).unwrap();
    let output = client("prompt off; recurse on; lcd copy; mget *");
    assert!(output.status.success(), "{output:?}");
    let copies = files_below(&beside.join("copy"));
    assert!(copies.keys().eq(shelf.files.keys()), "{} of {} files", copies.len(), shelf.files.len());
    for (path, seen) in &shelf.files {
        assert!(copies[path].bytes == seen.bytes, "{}", path.display());
    }
    // A file that is not listed, and one that cannot be written.
    let output = client("get demo/slice/42,17/temp.f32 one");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        fs::read(beside.join("one")).unwrap(),
        fs::read(shelf.path().join("demo/slice/42,17/temp.f32")).unwrap()
    );
    assert!(!client("put one demo/temp.f32").status.success());
    // End smbd with its child processes, so that none keeps the mount busy.
    signal(server.0.id(), "-TERM");
    eventually("smbd ends", || server.0.try_wait().unwrap().is_some());
    eventually("the mount is idle", || tilefs(&["umount".as_ref(), shelf.path().as_ref()]).status.success());
}
