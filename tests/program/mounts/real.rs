//! Real arrays mounted by the real program: keys, many readers, a concurrent writer, and the destination of messages.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::calls;
use super::harness::{
    Daemon, Need, Place, Server, Watchdog, can_mount, copy_of_demo, demo, errors, eventually, is_mounted, is_quiet,
    is_root, mount_lines, one_line, output_of_first, processes_with_argument, signal, skipped, tilefs,
};
use super::recorded::{expected, first_attribute, object};
use support::manifest::{Expected, Object};
use support::skip::python_with;

#[test]
fn sigterm_and_sigint_end_the_daemon_and_the_mount() {
    let _watchdog = Watchdog::start("sigterm_and_sigint_end_the_daemon_and_the_mount");
    if !can_mount() {
        return;
    }
    for name in ["-TERM", "-INT"] {
        let daemon = Daemon::start(Place::new(), &demo(), &[]);
        assert!(!fs::read(daemon.path("temp.f32")).unwrap().is_empty());
        daemon.ends_by_signal(name);
    }
}

#[test]
fn readers_of_a_killed_daemon_get_errors_and_the_next_mount_takes_its_place() {
    let _watchdog = Watchdog::start("readers_of_a_killed_daemon_get_errors_and_the_next_mount_takes_its_place");
    if !can_mount() {
        return;
    }
    const READERS: usize = 64;
    let object = object("demo");
    let (file, values) = first_attribute(&object);
    // Bypass the kernel's cache, which would outlive the daemon for readers that have the file open.
    let daemon = Daemon::start(Place::new(), &object.place, &["--cache-size", "1M", "--direct-io"]);
    let (path, mountpoint, process) = (daemon.path(&file), daemon.place().to_owned(), daemon.process());
    let script = r#"while cmp -s -- "$0" "$1"; do echo; done"#;
    let plain = daemon.beside().join("values");
    fs::write(&plain, &values).unwrap();
    let mut readers: Vec<Server> = (0..READERS)
        .map(|_| {
            let mut reader = Command::new("sh");
            reader.args(["-c".as_ref(), OsStr::new(script), plain.as_ref(), path.as_ref()]);
            Server(reader.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
        })
        .collect();
    for reader in &mut readers {
        let mut once = [0];
        reader.0.stdout.as_mut().unwrap().read_exact(&mut once).expect("each has compared once");
        // Drain the output, because a reader that cannot write does not continue reading.
        let mut output = reader.0.stdout.take().unwrap();
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    }
    signal(process, "-KILL");
    for reader in &mut readers {
        eventually("every reader ends", || reader.0.try_wait().unwrap().is_some());
    }
    eventually("the daemon is gone", || !daemon.is_alive());
    assert!(is_mounted(&mountpoint) && fs::read(&path).is_err());

    let output = tilefs(&["mount".as_ref(), object.place.as_os_str(), mountpoint.as_ref()]);
    assert!(output.status.success() && is_quiet(&output), "{output:?}");
    assert_eq!(mount_lines(&mountpoint).len(), 1);
    assert!(fs::read(&path).unwrap() == values);
    assert!(tilefs(&["umount".as_ref(), mountpoint.as_ref()]).status.success());
}

#[test]
fn a_key_opens_an_encrypted_array_and_a_wrong_one_does_not() {
    let _watchdog = Watchdog::start("a_key_opens_an_encrypted_array_and_a_wrong_one_does_not");
    if !can_mount() {
        return;
    }
    let encrypted = object("dense/encrypted");
    let key = encrypted.key.clone().unwrap();
    let place = Place::new();
    let (good, wrong, open) = (place.beside().join("key"), place.beside().join("wrong"), place.beside().join("open"));
    let write = |path: &Path, text: &str, mode: u32| {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write(&good, &key, 0o600);
    write(&open, &key, 0o644);
    write(&wrong, &key.chars().rev().collect::<String>(), 0o600);
    let mountpoint = place.path();
    let mount = |key_file: Option<&Path>| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        command.args(["mount".as_ref(), encrypted.place.as_path(), mountpoint]);
        command.args(key_file.map(|file| format!("--key-file={}", file.display()))).output().unwrap()
    };
    for key_file in [None, Some(wrong.as_path()), Some(Path::new("/nonexistent")), Some(Path::new("/proc/cpuinfo"))] {
        let output = mount(key_file);
        assert_eq!(output.status.code(), Some(6), "{output:?}");
        let line = one_line(&output);
        assert!(!line.contains(&key) && !is_mounted(mountpoint), "{line}");
    }
    assert!(one_line(&mount(Some(&wrong))).contains("key"));
    // The warning must contain the file's name, but not its content.
    let (file, values) = first_attribute_of_encrypted(&encrypted, &good);
    for key_file in [&good, &open] {
        let output = mount(Some(key_file));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(errors(&output).contains("chmod 600"), key_file == &open, "{output:?}");
        assert!(fs::read(mountpoint.join(&file)).unwrap() == values);
        assert!(tilefs(&["umount".as_ref(), mountpoint.as_ref()]).status.success());
    }
    // From a pipe, as bash creates it for a command; the process that reads it is not the one that bash starts.
    let script = r#"exec "$0" mount "$1" "$2" --key-file <(cat "$3")"#;
    let mut piped = Command::new("bash");
    piped.args(["-c".as_ref(), OsStr::new(script), env!("CARGO_BIN_EXE_tilefs").as_ref()]);
    let output = output_of_first(piped.args([encrypted.place.as_path(), mountpoint, &good]));
    assert!(output.status.success() && is_quiet(&output), "{output:?}");
    assert!(fs::read(mountpoint.join(&file)).unwrap() == values);
    assert!(tilefs(&["umount".as_ref(), mountpoint.as_ref()]).status.success());
}

#[test]
fn a_process_that_holds_a_key_leaves_no_memory_behind() {
    let _watchdog = Watchdog::start("a_process_that_holds_a_key_leaves_no_memory_behind");
    if !is_root() || !Path::new("/usr/bin/setpriv").exists() {
        return skipped(Need::Root, "only root can become another user, with setpriv");
    }
    let encrypted = object("dense/encrypted");
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, array, key) = (folder.path().join("tilefs"), folder.path().join("array"), folder.path().join("key"));
    fs::copy(env!("CARGO_BIN_EXE_tilefs"), &program).unwrap();
    assert!(Command::new("cp").arg("-r").args([&encrypted.place, &array]).status().unwrap().success());
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&key).status().unwrap().success());
    let mut reading = Command::new("setpriv");
    reading.args(["--reuid=54322", "--regid=54322", "--clear-groups"]).arg(&program).arg("ls").arg(&array);
    let reading = reading.arg("--key-file").arg(&key).stdout(Stdio::piped()).spawn().unwrap();
    // The `/proc` files of a process without core dumps belong to root, whoever runs it.
    let owner = || fs::metadata(format!("/proc/{}/fd", reading.id())).map_or(0, |process| process.uid());
    eventually("it waits for the key", || {
        let link = fs::read_link(format!("/proc/{}/exe", reading.id()));
        link.is_ok_and(|link| link == program) && owner() == 0
    });
    fs::write(&key, encrypted.key.clone().unwrap()).unwrap();
    let output = reading.wait_with_output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
}

fn first_attribute_of_encrypted(object: &Object, key: &Path) -> (String, Vec<u8>) {
    let name = &object.schema.as_ref().unwrap().attrs[0].name;
    let option = format!("--key-file={}", key.display());
    let listed = tilefs(&["ls".as_ref(), object.place.as_os_str(), option.as_ref()]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let start = format!("{name}.");
    let file = listed.lines().find(|file| file.starts_with(&start) && !file.ends_with(".hdr")).unwrap();
    (file.to_owned(), expected(object, name))
}

#[test]
fn sixty_four_readers_get_the_values_of_libtiledb() {
    let _watchdog = Watchdog::start("sixty_four_readers_get_the_values_of_libtiledb");
    if !can_mount() {
        return;
    }
    for name in ["dense/overlap", "dense/dims_3", "demo"] {
        let object = object(name);
        let (file, values) = first_attribute(&object);
        let daemon = Daemon::start(Place::new(), &object.place, &["--cache-size", "1M"]);
        thread::scope(|scope| {
            for reader in 0..64_u64 {
                let (path, values) = (daemon.path(&file), &values);
                scope.spawn(move || {
                    let file = fs::File::open(path).unwrap();
                    assert_eq!(file.metadata().unwrap().len(), values.len() as u64);
                    let mut state = reader + 1;
                    for _ in 0..50 {
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                        let start = (state >> 20) as usize % values.len();
                        let end = (start + (state >> 50) as usize).min(values.len());
                        let mut bytes = vec![0; end - start];
                        file.read_exact_at(&mut bytes, start as u64).unwrap();
                        assert!(bytes == values[start..end], "{name} {start}..{end}");
                    }
                });
            }
        });
        daemon.ends_by_signal("-TERM");
    }
}

#[test]
fn a_writer_that_consolidates_and_vacuums_disturbs_no_reader() {
    let _watchdog = Watchdog::start("a_writer_that_consolidates_and_vacuums_disturbs_no_reader");
    let Some(python) = python_with("tiledb, numpy").filter(|_| can_mount()) else { return };
    let place = Place::new();
    let array = place.beside().join("array");
    let run = |script: &str| {
        let output = Command::new(&python).args(["-c", script]).arg(&array).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    };
    run(r#"
import sys, numpy, tiledb
domain = tiledb.Domain(tiledb.Dim("y", domain=(0, 511), tile=64, dtype="int32"), tiledb.Dim("x", domain=(0, 511), tile=64, dtype="int32"))
tiledb.Array.create(sys.argv[1], tiledb.ArraySchema(domain, [tiledb.Attr("v", dtype="int32", filters=[tiledb.ZstdFilter()])]))
for time in range(1, 5):
    with tiledb.open(sys.argv[1], "w", timestamp=time) as array:
        array[:] = numpy.full((512, 512), time, "int32")
"#);
    let daemon = Daemon::start(place, &array, &["--cache-size", "1M"]);
    let (is_over, right, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..4_u64 {
            let (path, is_over, right, refused) = (daemon.path("v.i32"), &is_over, &right, &refused);
            scope.spawn(move || {
                let mut offset = reader * 131_072;
                while !is_over.load(Ordering::Relaxed) {
                    // Open the file each time, so that the kernel does not use cached pages.
                    let file = fs::File::open(&path);
                    let mut cells = [0; 16_384];
                    match file.and_then(|file| file.read_exact_at(&mut cells, offset)) {
                        Ok(()) => {
                            assert!(cells.chunks_exact(4).all(|cell| cell == 4_i32.to_le_bytes()), "at {offset}");
                            right.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    offset = (offset + 147_456) % (1 << 20);
                    // Leave time for the writer.
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        run(r#"
import sys, numpy, tiledb
for time in range(10, 13):
    with tiledb.open(sys.argv[1], "w", timestamp=time) as array:
        array[:] = numpy.full((512, 512), time, "int32")
    for mode in ["fragments", "fragment_meta", "commits"]:
        config = tiledb.Config({"sm.consolidation.mode": mode, "sm.vacuum.mode": mode})
        tiledb.consolidate(sys.argv[1], config=config)
        tiledb.vacuum(sys.argv[1], config=config)
"#);
        thread::sleep(Duration::from_millis(100));
        is_over.store(true, Ordering::Relaxed);
    });
    let (right, refused) = (right.into_inner(), refused.into_inner());
    assert!(right > 0, "{refused} were refused");
    // The next mount shows the current state.
    let mountpoint = daemon.place().to_owned();
    assert!(tilefs(&["umount".as_ref(), mountpoint.as_ref()]).status.success());
    assert!(tilefs(&[array.as_ref(), mountpoint.as_ref()]).status.success());
    let cells = fs::read(mountpoint.join("v.i32")).unwrap();
    assert!(cells.len() == 1 << 20 && cells.chunks_exact(4).all(|cell| cell == 12_i32.to_le_bytes()));
    assert!(tilefs(&["umount".as_ref(), mountpoint.as_ref()]).status.success());
}

/// Damages the data of the sample array's first attribute.
fn damage(array: &Path) {
    let fragment = fs::read_dir(array.join("__fragments")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let data = fragment.join("a0.tdb");
    let length = fs::metadata(&data).unwrap().len();
    fs::write(&data, vec![0xff; length as usize]).unwrap();
}

#[test]
fn damage_is_told_in_the_log_file_with_its_place() {
    let _watchdog = Watchdog::start("damage_is_told_in_the_log_file_with_its_place");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let array = copy_of_demo(&place);
    damage(&array);
    fs::write(place.beside().join("log"), "what was there\n").unwrap();
    let daemon = Daemon::start(place, &array, &[]);
    let output = Command::new("cat").arg(daemon.path("temp.f32")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("Input/output error"), "{output:?}");
    let log = daemon.log();
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() >= 2 && lines[0] == "what was there", "{log}");
    for part in [" ERROR ", "read of temp.f32", "array ", "fragment __", "a0.tdb"] {
        assert!(lines[1].contains(part), "{part}: {log}");
    }
    let time = lines[1].split(' ').next().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
}

#[test]
fn damage_is_told_to_the_log_of_the_system() {
    let _watchdog = Watchdog::start("damage_is_told_to_the_log_of_the_system");
    if !can_mount() || !is_root() {
        return skipped(Need::Root, "only root can be the log of the system");
    }
    let socket = Path::new("/dev/log");
    if fs::symlink_metadata(socket).is_ok() {
        return skipped(Need::BareSystem, "this system has a log of its own");
    }
    let system = std::os::unix::net::UnixDatagram::bind(socket).unwrap();
    struct Remove<'a>(&'a Path);
    impl Drop for Remove<'_> {
        fn drop(&mut self) {
            let _ = fs::remove_file(self.0);
        }
    }
    let _remove = Remove(socket);
    system.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let place = Place::new();
    let array = copy_of_demo(&place);
    damage(&array);
    assert!(tilefs(&[array.as_ref(), place.path().as_ref()]).status.success());
    assert!(fs::read(place.path().join("temp.f32")).is_err());
    let mut message = [0; 2048];
    let process = processes_with_argument(place.path())[0];
    loop {
        let length = system.recv(&mut message).expect("there is a message");
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        // Other tests may write there too.
        if text.contains("read of temp.f32") {
            assert!(text.starts_with(&format!("<27>tilefs[{process}]: ")) && text.contains("a0.tdb"), "{text}");
            break;
        }
    }
    assert!(tilefs(&["umount".as_ref(), place.path().as_ref()]).status.success());
}

#[test]
fn verify_draws_a_bar_on_a_terminal_and_nowhere_else() {
    let _watchdog = Watchdog::start("verify_draws_a_bar_on_a_terminal_and_nowhere_else");
    let run = |terminal: Stdio| {
        Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("verify").arg(demo()).stderr(terminal).output().unwrap()
    };
    let (master, terminal) = calls::open_terminal();
    let drawn = thread::spawn(move || calls::read_terminal(&master));
    let output = run(terminal.into());
    assert!(output.status.success(), "{output:?}");
    let drawn = drawn.join().unwrap();
    assert!(drawn.starts_with("\r[") && drawn.contains(" %  ") && drawn.ends_with("\r\u{1b}[K"), "{drawn:?}");
    let output = run(Stdio::piped());
    assert!(output.stderr.is_empty() && String::from_utf8_lossy(&output.stdout).contains("0 damaged places"));
}

#[test]
fn info_is_json_where_that_is_asked_for() {
    let root = tilefs_fixtures::fixtures();
    let json = |array: &str| -> serde_json::Value {
        let output =
            tilefs(&["info".as_ref(), "--json".as_ref(), "--at=2030-01-01".as_ref(), root.join(array).as_os_str()]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let shown = json("demo");
    let shown_again =
        tilefs(&["cat".as_ref(), demo().as_ref(), "schema.json".as_ref(), "--at=2030-01-01".as_ref()]).stdout;
    assert_eq!(shown, serde_json::from_slice::<serde_json::Value>(&shown_again).unwrap());
    assert!(shown.to_string().contains("temp"));
    assert_eq!(json("arrays/groups/experiment")["object"], "group");
    json("arrays/dense/odd_names");
}

#[test]
fn times_slices_orders_and_extents_are_those_that_were_asked_for() {
    let consolidated = object("dense/overlap");
    let array: PathBuf = consolidated.place.clone();
    let (file, whole) = first_attribute(&consolidated);
    let cat = |array: &Path, file: &str, options: &[&str]| -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        let output = command.arg("cat").arg(array).arg(file).args(options).output().unwrap();
        assert!(output.status.success(), "{options:?}: {output:?}");
        output.stdout
    };
    assert!(cat(&array, &file, &[]) == whole && cat(&array, &file, &["--at", "2100-01-01"]) == whole);
    let mut windows = 0;
    for read in &consolidated.reads {
        let (Some((from, at)), Some(fields)) = (read.window, &read.fields) else { continue };
        let Some(field) = fields.iter().find(|field| !field.is_dimension) else { continue };
        let Expected::File(values) = &field.values else { continue };
        windows += 1;
        let (from, at) = (from.to_string(), at.to_string());
        let shown = cat(&array, &file, &["--from", &from, "--at", &at]);
        assert!(shown == fs::read(values).unwrap(), "{from}..{at}");
    }
    assert!(windows >= 3, "{windows} windows");
    let demo = demo();
    let part = cat(&demo, "slice/0..9,0..9/temp.f32", &[]);
    assert!(!part.is_empty() && cat(&demo, "slice/corner/temp.f32", &["--slice", "corner=0..9,0..9"]) == part);
    let sparse = object("sparse/order_tile_col_cell_col");
    let (file, sorted) = first_attribute(&sparse);
    assert!(cat(&sparse.place, &file, &["--order", "row"]) == sorted);
    assert!(cat(&sparse.place, &format!("by-row/{file}"), &[]) == sorted);
    let partial = object("dense/partial");
    let (file, whole) = first_attribute(&partial);
    assert!(cat(&partial.place, &file, &["--extent", "domain"]) == whole);
    let box_of_cells = cat(&partial.place, &file, &["--extent", "nonempty"]);
    assert!(!box_of_cells.is_empty() && box_of_cells.len() <= whole.len());
}
