//! The command `tilefs` on the sample array: its forms, its output, its exit statuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::harness::{
    Daemon, Place, Server, Watchdog, can_mount, errors, eventually, is_mounted, is_quiet, mount_lines, one_line,
    output_of_first, processes_with_argument, program_is_there, signal,
};
use support::skip::{Need, skipped};

fn demo() -> PathBuf {
    tilefs_fixtures::fixtures().join("demo")
}

fn tilefs() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tilefs"))
}

fn run(arguments: &[&Path]) -> Output {
    output_of_first(tilefs().args(arguments))
}

#[test]
fn every_form_mounts_and_umount_ends_it() {
    let _watchdog = Watchdog::start("every_form_mounts_and_umount_ends_it");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let (array, mountpoint) = (demo(), place.path());
    let expected = run(&["cat".as_ref(), &array, "temp.f32".as_ref()]).stdout;
    assert!(!expected.is_empty());
    let forms: [&[&Path]; 4] = [
        &["mount".as_ref(), &array, mountpoint],
        &[&array, mountpoint],
        &[&array, "--mount".as_ref(), mountpoint],
        &[&array, mountpoint, "-o".as_ref(), "ro,noatime,cache_size=64M,at=2030-01-01".as_ref()],
    ];
    for form in forms {
        let output = run(form);
        assert!(output.status.success() && is_quiet(&output), "{output:?}");
        assert!(fs::read(mountpoint.join("temp.f32")).unwrap() == expected, "{form:?}");
        assert!(mount_lines(mountpoint)[0].contains(" - fuse.tilefs "));
        let output = run(&["umount".as_ref(), mountpoint]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(!is_mounted(mountpoint), "{form:?}");
        eventually("the server exits", || processes_with_argument(mountpoint).is_empty());
    }
}

/// Without a system log, a mount in the background warns about that, unless its messages go to a file.
#[test]
fn a_mount_without_a_log_says_where_errors_are() {
    let _watchdog = Watchdog::start("a_mount_without_a_log_says_where_errors_are");
    if !can_mount() {
        return;
    }
    for to_file in [false, true] {
        let place = Place::new();
        let (array, mountpoint, log) = (demo(), place.path(), place.beside().join("log"));
        let mut command = tilefs();
        command.args(["mount".as_ref(), array.as_path(), mountpoint]);
        if to_file {
            command.arg("--log-file").arg(&log);
        }
        let output = output_of_first(&mut command);
        assert!(output.status.success(), "{output:?}");
        match to_file {
            true => assert_eq!(errors(&output), ""),
            false => assert!(is_quiet(&output), "{output:?}"),
        }
        let told = mountpoint.join(".tilefs/errors.txt");
        assert_eq!(fs::read_to_string(&told).unwrap(), "no errors so far\n");
        assert!(!mountpoint.join("slice/z=1").exists() && !mountpoint.join("nothing").exists());
        assert!(!mountpoint.join("slice/z=1").exists() && !mountpoint.join("slice/500..600").exists());
        let text = fs::read_to_string(&told).unwrap();
        assert!(text.contains("slice/z=1: ") && text.contains("slice/500..600: "), "{text}");
        assert!(!text.contains(" nothing: ") && text.lines().count() == 2, "{text}");
        for missing in ["tmp.f32", "temp", ".tmp.f32"] {
            assert!(!mountpoint.join(missing).exists());
        }
        let text = fs::read_to_string(&told).unwrap();
        assert!(text.contains("/tmp.f32: ") && text.contains("the nearest name is temp.f32"), "{text}");
        assert!(text.contains("/temp: "), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        let views = fs::read_to_string(mountpoint.join(".tilefs/views.txt")).unwrap();
        let is_there = |line: &str| mountpoint.join(line.split("  ").next().unwrap()).exists();
        let paths = views.lines().filter(|line| !line.contains("SELECTION") && !line.contains("TIME"));
        assert!(paths.clone().count() > 10 && paths.clone().all(is_there), "{views}");
        assert!(run(&["umount".as_ref(), mountpoint]).status.success());
    }
}

/// The user has read it.
#[test]
fn the_warning_about_a_missing_log_comes_once() {
    let _watchdog = Watchdog::start("the_warning_about_a_missing_log_comes_once");
    if !can_mount() {
        return;
    }
    if std::os::unix::net::UnixDatagram::unbound().and_then(|socket| socket.connect("/dev/log")).is_ok() {
        return skipped(Need::BareSystem, "there is a system log");
    }
    let cache = tempfile::tempdir().unwrap();
    let told = [(); 3].map(|()| {
        let place = Place::new();
        let (array, mountpoint) = (demo(), place.path());
        let mut command = tilefs();
        command.args(["mount".as_ref(), array.as_path(), mountpoint]).env("XDG_CACHE_HOME", cache.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(run(&["umount".as_ref(), mountpoint]).status.success());
        errors(&output).matches("there is no system log").count()
    });
    assert_eq!(told, [1, 0, 0]);
}

#[test]
fn what_was_probably_meant_is_named() {
    let place = Place::new();
    let array = demo();
    let said = |arguments: &[&Path]| errors(&run(arguments));
    for (path, meant) in [
        ("temp", "temp.f32"),
        ("temp.f64", "temp.f32"),
        ("temp.tif", "tiff/temp.tif"),
        ("slice/0,0/tmp.f32", "slice/0,0/temp.f32"),
    ] {
        for command in ["cat", "ls"] {
            let line = format!("tilefs: {path}: no such file; did you mean {meant}?\n");
            assert_eq!(said(&[command.as_ref(), &array, path.as_ref()]), line);
        }
    }
    for command in ["info", "ls"] {
        let hint = said(&[command.as_ref(), &array.join("slice/0..9")]);
        assert!(
            hint.contains(&format!("{} is an array: give that, and slice/0..9 after it", array.display())),
            "{hint}"
        );
        let hint = said(&[command.as_ref(), &array.with_file_name("demoo")]);
        assert!(hint.contains(&format!("did you mean {}?", array.display())), "{hint}");
    }
    let hint = said(&["mount".as_ref(), place.path(), &array]);
    let (array, mountpoint) = (array.display(), place.path().display());
    assert_eq!(hint, format!("tilefs: the array comes first: tilefs mount {array} {mountpoint}\n"));
}

#[test]
fn views_are_listed_where_that_is_asked_for() {
    let _watchdog = Watchdog::start("views_are_listed_where_that_is_asked_for");
    let names = |arguments: &[&str]| -> Vec<String> {
        let output = tilefs().arg("ls").args(arguments).arg("-R").arg(demo()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let unlisted = ["temp.vrt", "temp.tif", "zarr", "temp.nhdr", "F"];
    let listed = |names: &[String]| unlisted.map(|name| names.iter().any(|one| one == name));
    assert_eq!(listed(&names(&[])), [false; 5]);
    assert_eq!(listed(&names(&["--show", "vrt,tiff"])), [true, true, false, false, false]);
    assert_eq!(listed(&names(&["--show", "all"])), [true; 5]);
    if !can_mount() {
        return;
    }
    let daemon = Daemon::start(Place::new(), &demo(), &["-o", "show=tiff,show=zarr"]);
    let found = run_shell(daemon.place(), "echo *.vrt tiff/*.tif z*");
    assert_eq!(found, "*.vrt tiff/cell.tif tiff/temp.tif zarr\n");
    daemon.ends_by_signal("-TERM");
}

/// Runs a shell command in a folder; returns its output.
fn run_shell(folder: &Path, line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_read_the_same_bytes() {
    let _watchdog = Watchdog::start("programs_read_the_same_bytes");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    assert!(run(&[&demo(), place.path()]).status.success());
    let script = r#"
        set -e
        "$TILEFS" cat "$ARRAY" temp.f32 > direct
        cmp direct mnt/temp.f32
        test "$(md5sum < direct)" = "$(md5sum < mnt/temp.f32)"
        cp -a mnt copy
        cmp direct copy/temp.f32
        test "$(stat -c %s mnt/temp.f32)" = "$(stat -c %s direct)"
        test "$(stat -c %Y mnt/temp.f32)" = "$(stat -c %Y copy/temp.f32)"
        for skip in 0 1 7 100 4999; do
            dd if=direct bs=13 skip=$skip count=9 2>/dev/null > one
            dd if=mnt/temp.f32 bs=13 skip=$skip count=9 2>/dev/null > other
            cmp one other
        done
        tail -c 77 direct > one; tail -c 77 mnt/temp.f32 > other; cmp one other
        head -c 77 direct > one; head -c 77 mnt/temp.f32 > other; cmp one other
        ls -lR mnt > listing; grep -q temp.f32 listing
        find mnt -type f -size +0 | grep -q dims
        df mnt > /dev/null
        chmod -R u+w copy
    "#;
    let output = Command::new("sh")
        .args(["-c", script])
        .env("TILEFS", env!("CARGO_BIN_EXE_tilefs"))
        .env("ARRAY", demo())
        .current_dir(place.beside())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn files_larger_than_any_disk_have_their_size_and_can_be_read_anywhere() {
    use std::os::unix::fs::FileExt;
    let _watchdog = Watchdog::start("files_larger_than_any_disk_have_their_size_and_can_be_read_anywhere");
    if !can_mount() {
        return;
    }
    // 2^20 x 2^20 cells of 4 bytes; 8 x 8 of them in the middle are 0 to 63, all others -1.
    let place = Place::new();
    let huge = tilefs_fixtures::fixtures().join("huge");
    assert!(run(&["mount".as_ref(), &huge, place.path()]).status.success());
    let file = fs::File::open(place.path().join("v.i32")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 4 << 40);
    let cell = |y: u64, x: u64| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 4 * (y << 20 | x)).unwrap();
        i32::from_le_bytes(bytes)
    };
    let (middle, last) = (1 << 19, (1 << 20) - 1);
    assert_eq!([cell(middle, middle), cell(middle + 7, middle + 7), cell(middle + 8, middle)], [0, 63, -1]);
    assert_eq!([cell(0, 0), cell(last, last)], [-1, -1]);
    assert_eq!(file.read_at(&mut [0; 4], 4 << 40).unwrap(), 0);
    drop(file);
    assert!(run(&["umount".as_ref(), place.path()]).status.success());
}

#[test]
fn ctrl_c_ends_the_foreground() {
    let _watchdog = Watchdog::start("ctrl_c_ends_the_foreground");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = Server(tilefs().arg("-f").arg(demo()).arg(place.path()).stderr(Stdio::null()).spawn().unwrap());
    eventually("the mount answers", || place.path().join("temp.f32").exists());
    signal(server.0.id(), "-INT");
    assert!(server.0.wait().unwrap().success());
    assert!(!is_mounted(place.path()));
}

#[test]
fn what_cannot_be_mounted_is_one_line_and_nothing_is_left() {
    let _watchdog = Watchdog::start("what_cannot_be_mounted_is_one_line_and_nothing_is_left");
    let place = Place::new();
    let (array, mountpoint, beside) = (demo(), place.path(), place.beside());
    fs::write(beside.join("file"), "").unwrap();
    fs::create_dir_all(beside.join("full/inside")).unwrap();
    let at = |name: &str| beside.join(name);
    let cases: [(&Path, &Path, u8, &str); 8] = [
        (&at("nothing"), mountpoint, 3, "nothing"),
        (&at("file"), mountpoint, 3, "not a TileDB array"),
        (&at("full"), mountpoint, 3, "not a TileDB array"),
        (&array, &at("missing"), 7, "`mkdir -p "),
        (&array, &at("file"), 7, "not a folder"),
        (&array, &at("full"), 7, "not empty"),
        (&array, &array.join("__schema"), 7, "this is inside"),
        (&array, Path::new("--nonsense"), 2, "--nonsense"),
    ];
    for (array, mountpoint, status, part) in cases {
        for foreground in [false, true] {
            let mut command = tilefs();
            command.args(["mount".as_ref(), array, mountpoint]).args(foreground.then_some("-f"));
            let output = command.output().unwrap();
            let line = one_line(&output);
            assert_eq!(output.status.code(), Some(status.into()), "{line}");
            assert!(line.starts_with("tilefs: ") && line.contains(part), "{part}: {line}");
            assert!(!is_mounted(mountpoint) && processes_with_argument(mountpoint).is_empty());
        }
    }
}

#[test]
fn umount_within_a_mount_is_none_of_its_users() {
    let _watchdog = Watchdog::start("umount_within_a_mount_is_none_of_its_users");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    assert!(run(&["mount".as_ref(), &demo(), place.path()]).status.success());
    let umount = || tilefs().args(["umount", "."]).current_dir(place.path()).output().unwrap();
    let mut user = Command::new("sleep").arg("60").current_dir(place.path()).spawn().unwrap();
    let named = format!("sleep (process {})", user.id());
    // The child has its own name once it runs its program.
    eventually("the user runs", || errors(&umount()).contains(&named));
    let busy = umount();
    user.kill().unwrap();
    user.wait().unwrap();
    assert_eq!(busy.status.code(), Some(8), "{busy:?}");
    assert!(errors(&busy).contains(&format!("in use by {named};")), "{busy:?}");
    // Without it nobody uses the mount.
    let output = umount();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(!is_mounted(place.path()));
}

#[test]
fn umount_leaves_alone_what_is_not_ours() {
    let _watchdog = Watchdog::start("umount_leaves_alone_what_is_not_ours");
    let place = Place::new();
    let output = run(&["umount".as_ref(), place.path(), "/proc".as_ref()]);
    assert_eq!(output.status.code(), Some(8));
    assert!(errors(&output).contains("nothing is mounted here") && errors(&output).contains("not tilefs"));
    assert!(is_mounted(Path::new("/proc")));
}

#[test]
fn cat_and_ls_need_no_mount() {
    let listed = tilefs().arg("ls").arg(demo()).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(names.lines().any(|name| name == "temp.f32") && names.lines().any(|name| name == "dims"));

    let long = tilefs().args(["ls", "-l"]).arg(demo()).arg("temp.f32").output().unwrap();
    let bytes = run(&["cat".as_ref(), &demo(), "temp.f32".as_ref()]).stdout;
    let line = String::from_utf8(long.stdout).unwrap();
    assert!(line.starts_with("-r--r--r-- ") && line.contains(&format!(" {} ", bytes.len())), "{line}");

    let all = tilefs().args(["ls", "-R"]).arg(demo()).output().unwrap();
    assert!(String::from_utf8(all.stdout).unwrap().contains("\ndims:\n"));

    let twice = run(&["cat".as_ref(), &demo(), "temp.f32".as_ref(), "./temp.f32".as_ref()]).stdout;
    assert!(twice == [bytes.as_slice(), &bytes].concat());

    let partly = run(&["cat".as_ref(), &demo(), "nothing".as_ref(), "temp.f32".as_ref(), "dims".as_ref()]);
    assert_eq!((partly.status.code(), partly.stdout.len()), (Some(1), bytes.len()));
    assert_eq!(errors(&partly), "tilefs: nothing: no such file\ntilefs: dims: this is a folder; see `tilefs ls`\n");
}

/// Checks each kind of failure with the commands in which it can occur.
#[test]
fn exit_statuses_tell_failures_apart() {
    let place = Place::new();
    let fixtures = demo().join("..");
    let status = |arguments: &[&str]| {
        let output = tilefs().args(arguments).current_dir(&fixtures).output().unwrap();
        assert!(!one_line(&output).is_empty(), "{arguments:?}");
        output.status.code()
    };
    let damaged = place.beside().join("damaged");
    let unsupported = place.beside().join("unsupported");
    for copy in [&damaged, &unsupported] {
        assert!(Command::new("cp").arg("-r").args([&demo(), copy]).status().unwrap().success());
    }
    let schema_of = |array: &Path| {
        let mut schemas = fs::read_dir(array.join("__schema")).unwrap().map(|entry| entry.unwrap().path());
        schemas.find(|path| path.is_file()).unwrap()
    };
    let bytes = fs::read(schema_of(&damaged)).unwrap();
    fs::write(schema_of(&damaged), &bytes[..bytes.len() / 2]).unwrap();
    // A generic tile begins with its format version.
    fs::write(schema_of(&unsupported), [&9999u32.to_le_bytes()[..], &bytes[4..]].concat()).unwrap();
    let (damaged, unsupported) = (damaged.display().to_string(), unsupported.display().to_string());
    for command in ["info", "ls"] {
        assert_eq!(status(&[command, "demo/__schema/nothing"]), Some(3), "{command}");
        assert_eq!(status(&[command, &damaged]), Some(4), "{command}");
        assert_eq!(status(&[command, &unsupported]), Some(5), "{command}");
        assert_eq!(status(&[command, "arrays/dense/encrypted"]), Some(6), "{command}");
        assert_eq!(status(&[command, "demo", "--at", "never"]), Some(2), "{command}");
    }
    assert_eq!(status(&["cat", "demo", "nothing"]), Some(1));
    assert_eq!(status(&["cat", &damaged, "temp.f32"]), Some(4));
    assert_eq!(status(&["mount", &damaged, &place.path().display().to_string()]), Some(4));
    assert_eq!(status(&["umount", &place.path().display().to_string()]), Some(8));
    assert_eq!(status(&["mount", "demo", "/proc/nothing"]), Some(7));
    assert!(!is_mounted(place.path()));
}

#[test]
fn what_is_not_there_is_explained() {
    let slice = run(&["cat".as_ref(), &demo(), "slice/9,9,9/temp.f32".as_ref()]);
    assert_eq!(slice.status.code(), Some(1));
    let line = one_line(&slice);
    assert!(line.contains("slice/9,9,9/temp.f32: selection 9,9,9: the array has only 2 dimensions"), "{line}");
    let slice = run(&["cat".as_ref(), &demo(), "slice/500/temp.f32".as_ref()]);
    assert!(one_line(&slice).contains("(valid: 0..99)"), "{slice:?}");
    let history = run(&["ls".as_ref(), &demo(), ".history/1999".as_ref()]);
    assert!(one_line(&history).contains("the first commit is 20240101T000000.000Z"), "{history:?}");
    let encrypted = demo().join("../arrays/dense/encrypted");
    let line = one_line(&run(&["info".as_ref(), &encrypted]));
    assert!(line.contains("dense/encrypted") && line.contains("--key-file"), "{line}");
    let cloud = run(&["info".as_ref(), "tiledb://space/array".as_ref()]);
    assert!(one_line(&cloud).contains("tiledb:// is not supported"), "{cloud:?}");
    let uri = format!("file://{}", demo().display());
    assert!(run(&["cat".as_ref(), uri.as_ref(), "temp.f32".as_ref()]).stdout.len() == 80_000);
}

#[test]
fn slices_with_names_are_checked_in_the_arrays_of_a_group() {
    let _watchdog = Watchdog::start("slices_with_names_are_checked_in_the_arrays_of_a_group");
    let (place, group) = (Place::new(), tempfile::tempdir().unwrap());
    fs::write(group.path().join("__tiledb_group.tdb"), b"").unwrap();
    // Add an array that cannot be opened, and that comes first.
    fs::create_dir_all(group.path().join("broken/__schema")).unwrap();
    std::os::unix::fs::symlink(demo(), group.path().join("demo")).unwrap();
    let output =
        tilefs().arg("mount").arg("--follow-links").arg(group.path()).arg(place.path()).arg("--slice=a=9,9,9").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(one_line(&output).contains("in demo; no other array has it"), "{output:?}");
    let listed = |selection: &str, path: &str| {
        let listed = tilefs().arg("ls").arg(group.path()).arg(path).arg(format!("--slice=a={selection}")).output();
        String::from_utf8(listed.unwrap().stdout).unwrap()
    };
    assert_eq!(listed("9,9", "demo/slice"), "a\n");
    // If no array can be opened, the slice may be valid.
    fs::remove_file(group.path().join("demo")).unwrap();
    assert!(listed("9,9,9", "").contains("broken"));
}

#[test]
fn slices_with_names_are_checked_before_anything_is_mounted() {
    let _watchdog = Watchdog::start("slices_with_names_are_checked_before_anything_is_mounted");
    let place = Place::new();
    let output = tilefs().arg("mount").arg(demo()).arg(place.path()).args(["--slice", "a=9,9,9"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(one_line(&output).contains("slice a: selection 9,9,9: the array has only 2 dimensions"), "{output:?}");
    assert!(!is_mounted(place.path()));
    let listed = tilefs().arg("ls").arg(demo()).args(["slice", "--slice", "a=9,9"]).output().unwrap();
    assert_eq!(listed.stdout, b"a\n");
}

#[test]
fn programs_read_names_and_people_shapes() {
    let group = demo().join("../arrays/groups/experiment");
    let piped = tilefs().args(["ls", "-R"]).arg(&group).output().unwrap();
    let piped = String::from_utf8(piped.stdout).unwrap();
    assert!(piped.lines().any(|line| line == "raw") && !piped.contains("dense"), "{piped}");
    if !program_is_there("script") {
        return;
    }
    let command = format!("'{}' ls -R '{}'", env!("CARGO_BIN_EXE_tilefs"), group.display());
    let typed = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    let typed = String::from_utf8(typed.stdout).unwrap();
    assert!(typed.lines().any(|line| line.starts_with("raw  dense 6")), "{typed}");
}

#[test]
fn the_manual_is_in_the_program() {
    let page = |arguments: &[&str]| {
        let output = tilefs().arg("man").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(page(&[]).contains("\nOPTIONS OF MOUNT\n"));
    assert!(page(&["paths"]).contains("nonempty/"));
    let source = page(&["--roff", "paths"]);
    assert!(source.contains(".TH TILEFS\\-PATHS 7"));
    assert_eq!(tilefs().args(["man", "nothing"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script =
        r#"{ "$TILEFS" cat "$ARRAY" temp.f32 temp.f32 temp.f32 temp.f32; echo $? > status; } | head -c 5 > head"#;
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", script])
        .env("TILEFS", env!("CARGO_BIN_EXE_tilefs"))
        .env("ARRAY", demo())
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(fs::read(folder.path().join("status")).unwrap(), b"0\n");

    let full = tilefs().arg("cat").arg(demo()).arg("temp.f32").stdout(fs::File::create("/dev/full").unwrap()).output();
    let full = full.unwrap();
    assert_eq!(full.status.code(), Some(1));
    assert!(one_line(&full).contains("cannot write"), "{full:?}");
}

#[test]
fn completions_are_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let output = tilefs().args(["completions", shell]).output().unwrap();
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("cache-size"), "{shell}");
    }
    assert_eq!(tilefs().args(["completions", "dos"]).output().unwrap().status.code(), Some(2));
}
