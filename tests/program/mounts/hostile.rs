//! Arrays, groups and limits that could make a daemon wait forever: it must answer, and end when told to.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::generic_tile::unfiltered;

use super::harness::{
    Daemon, Need, Place, Server, Watchdog, can_mount, copy_of_demo, demo, errors, eventually, is_mounted, is_root,
    memory_of, one_line, processes_with_argument, signal, skipped, tilefs, toy_program,
};

/// Runs a program that must end within a few seconds; it is killed if it does not.
fn ends(program: &str, arguments: &[&std::ffi::OsStr]) -> Output {
    let mut limited = Command::new("timeout");
    limited.args(["-k", "1", "20", program]).args(arguments);
    let output = limited.output().unwrap();
    assert!(!matches!(output.status.code(), None | Some(124 | 137)), "{program} {arguments:?} hangs");
    output
}

fn cat(file: &Path) -> Output {
    ends("cat", &[file.as_os_str()])
}

/// Returns the newest fragment of an array.
fn fragment_of(array: &Path) -> PathBuf {
    fs::read_dir(array.join("__fragments")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

/// Writes the metadata of a group with these members, given by their URIs; those with a `:` are absolute.
fn make_group(path: &Path, uris: &[&str]) {
    let mut payload = 2u32.to_le_bytes().to_vec();
    payload.extend((uris.len() as u64).to_le_bytes());
    for uri in uris {
        payload.extend(2u32.to_le_bytes());
        payload.extend([1, u8::from(!uri.contains(':'))]);
        payload.extend((uri.len() as u64).to_le_bytes());
        payload.extend(uri.as_bytes());
        payload.extend([0, 0]);
    }
    fs::create_dir_all(path.join("__group")).unwrap();
    fs::write(path.join("__group").join(format!("__5_5_{}_2", "0".repeat(32))), unfiltered(&payload)).unwrap();
}

#[test]
fn what_is_no_file_is_an_error_at_once() {
    let _watchdog = Watchdog::start("what_is_no_file_is_an_error_at_once");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let array = copy_of_demo(&place);
    let data = fragment_of(&array).join("a0.tdb");
    let daemon = Daemon::start(place, &array, &["--threads", "2"]);
    for kind in ["fifo", "device", "folder"] {
        fs::remove_file(&data).or_else(|_| fs::remove_dir(&data)).unwrap();
        match kind {
            "fifo" => assert!(Command::new("mkfifo").arg(&data).status().unwrap().success()),
            "device" => assert!(
                !is_root() || Command::new("mknod").arg(&data).args(["c", "5", "0"]).status().unwrap().success()
            ),
            _ => fs::create_dir(&data).unwrap(),
        }
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| assert!(errors(&cat(&daemon.path("temp.f32"))).contains("Input/output error")));
            }
        });
        if kind == "fifo" {
            assert!(daemon.log().contains("a FIFO where a file is expected") && daemon.log().contains("a0.tdb"));
        }
    }
    assert!(cat(&daemon.path("cell.i32")).status.success(), "the rest is still there");
    daemon.ends_by_signal("-TERM");
}

#[test]
fn sigterm_ends_a_daemon_whose_threads_hang() {
    let _watchdog = Watchdog::start("sigterm_ends_a_daemon_whose_threads_hang");
    if !can_mount() {
        return;
    }
    // A disk that does not answer: a file of another mount whose process is stopped.
    let disk = Place::new();
    let server = Server(Command::new(toy_program()).arg(disk.path()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the disk is there", || disk.path().join("hello.txt").exists());
    let place = Place::new();
    let array = copy_of_demo(&place);
    let data = fragment_of(&array).join("a0.tdb");
    fs::remove_file(&data).unwrap();
    symlink(disk.path().join("big.u64"), &data).unwrap();
    let daemon = Daemon::start(place, &array, &["--follow-links"]);
    signal(server.0.id(), "-STOP");
    let file = daemon.path("temp.f32");
    let readers: Vec<Server> = (0..40)
        .map(|_| Server(Command::new("cat").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()))
        .collect();
    thread::sleep(Duration::from_millis(300));
    assert!(readers.len() == 40 && daemon.is_alive());
    daemon.ends_by_signal("-TERM");
    signal(server.0.id(), "-CONT");
}

#[test]
fn a_group_that_leads_back_into_its_mount_is_an_error_there() {
    let _watchdog = Watchdog::start("a_group_that_leads_back_into_its_mount_is_an_error_there");
    if !can_mount() {
        return;
    }
    for options in [&["--threads", "1"][..], &["--follow-links"]] {
        let place = Place::new();
        let group = place.beside().join("group");
        let absolute = format!("file://{}", place.path().display());
        let deeper = format!("file://{}/array", place.path().display());
        make_group(&group, &["sound", "link", "inner/link", &absolute, &deeper, "../mnt"]);
        fs::create_dir(group.join("inner")).unwrap();
        assert!(Command::new("cp").arg("-r").arg(demo()).arg(group.join("sound")).status().unwrap().success());
        symlink(place.path(), group.join("link")).unwrap();
        symlink("../../mnt/sound", group.join("inner/link")).unwrap();
        let daemon = Daemon::start(place, &group, options);
        thread::scope(|scope| {
            for reader in 0..48 {
                let daemon = &daemon;
                scope.spawn(move || {
                    let path = ["", "link", "mnt", ".group/members.tsv", "link/sound"][reader % 5];
                    ends("ls", &["-lR".as_ref(), daemon.path(path).as_os_str()]);
                });
            }
        });
        let listed = ends("ls", &[daemon.place().as_os_str()]);
        assert!(String::from_utf8_lossy(&listed.stdout).contains("sound"), "{listed:?}");
        for name in ["link", "mnt"] {
            let output = ends("ls", &[daemon.path(name).as_os_str()]);
            assert!(!output.status.success(), "{name}: {output:?}");
        }
        let log = daemon.log();
        let reason = if options.contains(&"--follow-links") { "leads back into the mount" } else { "--follow-links" };
        assert!(log.contains(reason), "{log}");
        let whole = Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("cat").arg(demo()).arg("temp.f32").output().unwrap();
        assert!(cat(&daemon.path("sound/temp.f32")).stdout == whole.stdout && !whole.stdout.is_empty());
        daemon.ends_by_signal("-TERM");
    }
}

#[test]
fn a_stopped_daemon_can_be_taken_away() {
    let _watchdog = Watchdog::start("a_stopped_daemon_can_be_taken_away");
    if !can_mount() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_tilefs");
    let place = Place::new();
    let (mountpoint, beside) = (place.path().to_owned(), place.beside());
    symlink(&mountpoint, beside.join("link")).unwrap();
    symlink(&beside, beside.join("around")).unwrap();
    let names = [mountpoint.clone(), beside.join("link"), beside.join("around/mnt"), mountpoint.join(".")];
    let daemon = Daemon::start(place, &demo(), &[]);
    for name in names {
        if !is_mounted(&mountpoint) {
            assert!(tilefs(&[demo().as_ref(), mountpoint.as_ref()]).status.success());
        }
        let process = processes_with_argument(&mountpoint)[0];
        signal(process, "-STOP");
        let again = ends(program, &["mount".as_ref(), demo().as_ref(), mountpoint.as_ref()]);
        assert!(one_line(&again).contains("does not answer") && one_line(&again).contains("--lazy"), "{again:?}");
        let output = ends(program, &["umount".as_ref(), "--lazy".as_ref(), name.as_ref()]);
        assert!(output.status.success() && !is_mounted(&mountpoint), "{}: {output:?}", name.display());
        signal(process, "-CONT");
        eventually("the daemon ends", || processes_with_argument(&mountpoint).is_empty());
    }
    drop(daemon);
}

/// Makes a folder with many copies of the sample array, the form of groups before they had members.
fn many_arrays(beside: &Path, count: usize) -> PathBuf {
    let group = beside.join("group");
    fs::create_dir(&group).unwrap();
    fs::write(group.join("__tiledb_group.tdb"), "").unwrap();
    for number in 0..count {
        assert!(
            Command::new("cp").arg("-r").arg(demo()).arg(group.join(format!("a{number}"))).status().unwrap().success()
        );
    }
    group
}

#[test]
fn few_descriptors_are_enough() {
    let _watchdog = Watchdog::start("few_descriptors_are_enough");
    if !can_mount() {
        return;
    }
    const ARRAYS: usize = 100;
    let place = Place::new();
    let group = many_arrays(&place.beside(), ARRAYS);
    let expected = tilefs(&["cat".as_ref(), demo().as_ref(), "temp.f32".as_ref()]).stdout;
    for limit in ["64", "24"] {
        let script = "ulimit -n $0; exec \"$@\"";
        let mut limited = Command::new("sh");
        limited.args(["-c", script, limit, env!("CARGO_BIN_EXE_tilefs"), "mount"]).arg(&group).arg(place.path());
        let output = limited.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), ARRAYS + 2);
        thread::scope(|scope| {
            for reader in 0..16 {
                let (mountpoint, expected) = (place.path(), &expected);
                scope.spawn(move || {
                    for number in (reader..2 * ARRAYS).step_by(8) {
                        let file = mountpoint.join(format!("a{}/temp.f32", number % ARRAYS));
                        assert!(fs::read(&file).unwrap() == *expected, "{}", file.display());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), ARRAYS + 2);
        assert!(tilefs(&["umount".as_ref(), place.path().as_ref()]).status.success());
        eventually("the server exits", || processes_with_argument(place.path()).is_empty());
    }
}

#[test]
fn a_limit_of_processes_means_fewer_threads() {
    let _watchdog = Watchdog::start("a_limit_of_processes_means_fewer_threads");
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() || !Path::new("/usr/bin/prlimit").exists() {
        return skipped(Need::Root, "only root can become another user, with setpriv and prlimit");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, array) = (folder.path().join("tilefs"), folder.path().join("demo"));
    fs::copy(env!("CARGO_BIN_EXE_tilefs"), &program).unwrap();
    assert!(Command::new("cp").arg("-r").args([&demo(), &array]).status().unwrap().success());
    let expected = tilefs(&["cat".as_ref(), demo().as_ref(), "temp.f32".as_ref()]).stdout;
    for limit in [1, 2, 3, 5] {
        let run = |command: &str, rest: &[&str]| {
            let mut limited = Command::new("setpriv");
            // Use a user without other processes, because the limit counts all processes of a user.
            limited.args(["--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", &format!("--nproc={limit}")]);
            let output = limited.arg(&program).arg(command).arg(&array).args(rest).output().unwrap();
            assert!(output.status.success(), "{limit} {command}: {output:?}");
            assert!(!errors(&output).contains("internal error"), "{output:?}");
            output.stdout
        };
        assert!(run("cat", &["temp.f32", "--threads", "4"]) == expected);
        run("ls", &["-lR"]);
        run("info", &[]);
        run("verify", &[]);
    }
}

/// The address space for serving with a cache of 16 MiB, in addition to the program's own.
const NEEDED_MIB: u64 = 128;

#[test]
fn a_limit_of_address_space_is_an_error_or_fewer_threads() {
    let _watchdog = Watchdog::start("a_limit_of_address_space_is_an_error_or_fewer_threads");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_tilefs");
    let names = ["temp.f32", "cell.i32", "text/temp.txt", "npy/cell.npy"];
    let expected = names.map(|name| tilefs(&["cat".as_ref(), demo().as_ref(), name.as_ref()]).stdout);
    let limits = [36_000, 40_000, 80_000, 120_000, 160_000, 200_000, 260_000, 320_000, 400_000, 500_000, 600_000];
    let (mut mounted, mut own) = (Vec::new(), Vec::new());
    for kilobytes in limits.into_iter().chain([600_000; 5]) {
        let script = format!("ulimit -v {kilobytes}; exec \"$@\"");
        let mut arguments = vec!["-c".as_ref(), script.as_ref(), "sh".as_ref(), program.as_ref()];
        let array = demo();
        arguments.extend(["--cache-size=16M".as_ref(), array.as_os_str(), place.path().as_os_str()]);
        let output = ends("sh", &arguments);
        if output.status.success() {
            mounted.push(kilobytes);
            thread::scope(|scope| {
                for reader in 0..16 {
                    let (place, names, expected) = (&place, &names, &expected);
                    scope.spawn(move || {
                        for number in (reader..reader + names.len()).map(|number| number % names.len()) {
                            let read = fs::read(place.path().join(names[number]));
                            assert!(read.unwrap() == expected[number], "{kilobytes} {}", names[number]);
                        }
                    });
                }
            });
            // The kernel may still be reading ahead.
            eventually("it is unmounted", || {
                ends(program, &["umount".as_ref(), place.path().as_ref()]).status.success()
            });
        } else {
            let line = one_line(&output);
            assert!(!line.contains("internal error") && !line.contains("memory allocation"), "{kilobytes} {line}");
            // With less, the program itself does not fit.
            assert!(kilobytes < 80_000 || line.contains("address space"), "{kilobytes} {line}");
            if let Some((_, text)) = line.split_once("16 of it for the cache, and ") {
                let left: u64 = text.split_once(" are left").unwrap().0.parse().unwrap();
                assert!(left < NEEDED_MIB, "{kilobytes} {line}");
                own.push(kilobytes / 1024 - left);
            }
        }
        eventually("the server exits", || processes_with_argument(place.path()).is_empty());
        assert!(!is_mounted(place.path()), "{kilobytes}");
    }
    // The program's own share is the same under each limit, and it requires no more than `NEEDED_MIB` in addition.
    let (least, most) = (own.iter().min().unwrap(), own.iter().max().unwrap());
    assert!(most - least <= 2 && *most < 48, "{own:?}");
    let enough = (NEEDED_MIB + most + 1) * 1024;
    assert!(enough <= 600_000, "no limit is enough");
    assert!(limits.iter().filter(|limit| **limit >= enough).all(|limit| mounted.contains(limit)), "{mounted:?}");
}

#[test]
fn what_could_not_be_read_once_is_read_again() {
    let _watchdog = Watchdog::start("what_could_not_be_read_once_is_read_again");
    if !can_mount() {
        return;
    }
    let fixtures = tilefs_fixtures::fixtures().join("arrays");
    for (name, file) in [("demo", "temp.f32"), ("sparse/overlap", "README.txt"), ("sparse/overlap", "dims")] {
        let place = Place::new();
        let array = match name {
            "demo" => copy_of_demo(&place),
            name => {
                let array = place.beside().join("array");
                assert!(Command::new("cp").arg("-r").arg(fixtures.join(name)).arg(&array).status().unwrap().success());
                array
            }
        };
        let daemon = Daemon::start(place, &array, &[]);
        // Read everything that the array shows without its fragments, before anything else was read.
        let gone = array.join("__fragments.gone");
        fs::rename(array.join("__fragments"), &gone).unwrap();
        let all = |path: &Path| {
            let script = "find \"$0\" -type f -exec cat {} + > /dev/null";
            ends("sh", &["-c".as_ref(), script.as_ref(), path.as_os_str()])
        };
        let is_read = |output: &Output| output.status.success() && output.stderr.is_empty();
        let first = all(&daemon.path(file));
        assert!(is_read(&first) == (file == "README.txt"), "{name}/{file}: {first:?}");
        fs::rename(&gone, array.join("__fragments")).unwrap();
        let again = all(&daemon.path(file));
        assert!(is_read(&again), "{name}/{file}: {again:?}");
        assert!(is_read(&all(daemon.place())), "{name}");
    }
}

#[test]
fn links_out_of_an_array_are_refused_for_others() {
    let _watchdog = Watchdog::start("links_out_of_an_array_are_refused_for_others");
    if !can_mount() || !is_root() {
        return skipped(Need::Root, "links are refused for root only");
    }
    const SECRET: &str = "root:very:secret:";
    for options in [&[][..], &["--follow-links"], &["--allow-other"]] {
        let place = Place::new();
        let array = copy_of_demo(&place);
        let (secret, outside) = (place.beside().join("shadow"), place.beside().join("a0.tdb"));
        fs::write(&secret, format!("{SECRET}\n")).unwrap();
        fs::create_dir_all(array.join("__meta")).unwrap();
        symlink(&secret, array.join("__meta").join(format!("__1_2_{}.vac", "a".repeat(32)))).unwrap();
        symlink(&secret, array.join("__meta").join(format!("__1_1_{}", "b".repeat(32)))).unwrap();
        let data = fragment_of(&array).join("a0.tdb");
        fs::rename(&data, &outside).unwrap();
        symlink(&outside, &data).unwrap();
        // A link that stays within the array.
        let inner = fragment_of(&array).join("a1.tdb");
        fs::rename(&inner, array.join("elsewhere")).unwrap();
        symlink("../../elsewhere", &inner).unwrap();
        let daemon = Daemon::start(place, &array, options);
        let follows = options.contains(&"--follow-links");
        assert_eq!(cat(&daemon.path("temp.f32")).status.success(), follows, "{options:?}");
        assert!(cat(&daemon.path("cell.i32")).status.success(), "{options:?} {}", daemon.log());
        let texts = ["README.txt", "schema.json", "schema.txt", "meta.json"].map(|name| cat(&daemon.path(name)));
        assert!(!texts[3].status.success());
        let log = daemon.log();
        assert!(log.contains("--follow-links") != follows, "{log}");
        for text in texts.iter().map(|text| String::from_utf8_lossy(&text.stdout)).chain([log.into()]) {
            assert!(!text.contains("secret"), "{text}");
        }
        let mode = fs::metadata(daemon.log_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

/// An ordinary user wrote this group: if root mounted it, everybody could read what only root may read.
#[test]
fn members_out_of_a_group_are_refused_for_others() {
    let _watchdog = Watchdog::start("members_out_of_a_group_are_refused_for_others");
    if !can_mount() || !is_root() {
        return skipped(Need::Root, "members are refused for root");
    }
    for options in [&[][..], &["--allow-other"], &["--follow-links"]] {
        let place = Place::new();
        let [group, private] = ["group", "private"].map(|name| place.beside().join(name));
        for array in [group.join("sound"), private.clone(), place.beside().join("near")] {
            fs::create_dir_all(array.parent().unwrap()).unwrap();
            assert!(Command::new("cp").arg("-r").arg(demo()).arg(array).status().unwrap().success());
        }
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
        make_group(&group, &["sound", &format!("file://{}", private.display()), "../near"]);
        let daemon = Daemon::start(place, &group, options);
        let follows = options.contains(&"--follow-links");
        assert!(cat(&daemon.path("sound/temp.f32")).status.success(), "{options:?} {}", daemon.log());
        for name in ["private", "near"] {
            assert_eq!(cat(&daemon.path(&format!("{name}/temp.f32"))).status.success(), follows, "{options:?} {name}");
        }
        let listed = String::from_utf8(ends("ls", &[daemon.place().as_os_str()]).stdout).unwrap();
        assert_eq!(listed.contains("private"), follows, "{listed}");
        let table = String::from_utf8(cat(&daemon.path(".group/members.tsv")).stdout).unwrap();
        let refused = table.lines().filter(|line| line.contains("--follow-links")).count();
        assert_eq!(
            (refused, daemon.log().contains("is outside of the group's folder")),
            if follows { (0, false) } else { (2, true) },
            "{table}"
        );
        daemon.ends_by_signal("-TERM");
    }
}

#[test]
fn nothing_stored_steers_a_terminal() {
    let hostile = tempfile::tempdir().unwrap();
    let name = "a\x1b[2J\u{9b}31m\x07";
    let array = hostile.path().join(name);
    assert!(Command::new("cp").arg("-r").arg(demo()).arg(&array).status().unwrap().success());
    let fixtures = tilefs_fixtures::fixtures().join("arrays");
    let arrays = [array, fixtures.join("dense/odd_names"), fixtures.join("sparse/odd_names")];
    for array in &arrays {
        let missing = array.join(name);
        for arguments in [
            &["info".as_ref(), array.as_path()][..],
            &["info".as_ref(), "--json".as_ref(), array],
            &["ls".as_ref(), "-laR".as_ref(), array],
            &["ls".as_ref(), array, name.as_ref()],
            &["cat".as_ref(), array, name.as_ref()],
            &["verify".as_ref(), array],
            &["info".as_ref(), missing.as_path()],
            &["umount".as_ref(), missing.as_path()],
        ] {
            let output = tilefs(&arguments.iter().map(|path| path.as_os_str()).collect::<Vec<_>>());
            let said = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(said).unwrap();
            let steers = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
            assert!(!text.is_empty() && !text.contains(steers), "{arguments:?}: {text:?}");
        }
    }
}

#[test]
fn names_of_slices_are_bounded_in_memory() {
    let _watchdog = Watchdog::start("names_of_slices_are_bounded_in_memory");
    if !can_mount() {
        return;
    }
    const NAMES: u64 = 80_000;
    let place = Place::new();
    let server = Server(Command::new(toy_program()).arg(place.path()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the mount answers", || place.path().join("hello.txt").exists());
    for number in 0..NAMES {
        assert!(fs::metadata(place.path().join(format!("slice/{number:0850}"))).unwrap().is_dir());
    }
    // The names alone take 68 MB. The kernel may remember names of 12 MiB, and file handles mean others of 16 MiB; the
    // rest is for gaps between allocations.
    eventually("the kernel has forgotten enough", || memory_of(server.0.id()) < 48 << 20);
    let first = place.path().join(format!("slice/{:0850}/value.txt", 0));
    assert!(fs::metadata(first).unwrap().len() > 0);
}

#[test]
fn a_signal_ends_what_has_not_been_mounted_yet() {
    let _watchdog = Watchdog::start("a_signal_ends_what_has_not_been_mounted_yet");
    if !can_mount() {
        return;
    }
    let disk = Place::new();
    let server = Server(Command::new(toy_program()).arg(disk.path()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the disk is there", || disk.path().join("hello.txt").exists());
    let place = Place::new();
    let array = copy_of_demo(&place);
    fs::remove_dir_all(array.join("__schema")).unwrap();
    symlink(disk.path(), array.join("__schema")).unwrap();
    signal(server.0.id(), "-STOP");
    let mut opening = Command::new(env!("CARGO_BIN_EXE_tilefs"));
    opening.args(["-f", "--follow-links"]).arg(&array).arg(place.path()).stderr(Stdio::null());
    let mut opening = Server(opening.spawn().unwrap());
    thread::sleep(Duration::from_millis(500));
    assert!(opening.0.try_wait().unwrap().is_none());
    let start = Instant::now();
    signal(opening.0.id(), "-TERM");
    eventually("it ends", || opening.0.try_wait().unwrap().is_some());
    assert!(start.elapsed() < Duration::from_secs(5) && !is_mounted(place.path()));
    signal(server.0.id(), "-CONT");
}
