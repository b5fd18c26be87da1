//! How mounts begin and end: nothing is left behind, whoever ends them, and foreign mounts are not touched.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tilefs_vfs::fuse::{self, Detach, FuseMount, MountOptions};

use super::harness::{
    Need, Place, Server, Toy, Watchdog, can_mount, demo, eventually, is_mounted, is_root, mount_lines,
    processes_with_argument, signal, skipped, toy_program, unmount,
};
use support::toy;

/// Serves the toy in the foreground, in another process; returns when the mount answers.
fn serve(place: &Place) -> Server {
    let program = Command::new(toy_program()).arg(place.path()).stderr(Stdio::piped()).env("RUST_LOG", "warn").spawn();
    let server = Server(program.unwrap());
    eventually("the mount answers", || place.path().join("hello.txt").exists());
    server
}

fn exit_status(server: &mut Server) -> (Option<i32>, String) {
    eventually("the server exits", || server.0.try_wait().unwrap().is_some());
    let mut errors = String::new();
    server.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (server.0.wait().unwrap().code(), errors)
}

#[test]
fn in_the_background_the_command_returns_when_the_mount_answers() {
    let _watchdog = Watchdog::start("in_the_background_the_command_returns_when_the_mount_answers");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    // Its output is a pipe, as in a script: it must not be held open.
    let output = Command::new(toy_program()).arg("--background").arg(place.path()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(fs::read(place.path().join("hello.txt")).unwrap(), b"hello\n");

    let servers = processes_with_argument(place.path());
    assert_eq!(servers.len(), 1);
    let process = Path::new("/proc").join(servers[0].to_string());
    assert_eq!(fs::read_link(process.join("cwd")).unwrap(), Path::new("/"));
    for stream in 0..3 {
        assert_eq!(fs::read_link(process.join(format!("fd/{stream}"))).unwrap(), Path::new("/dev/null"));
    }
    let status = fs::read_to_string(process.join("stat")).unwrap();
    let session = status.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap();
    assert_eq!(session, servers[0].to_string(), "a session of its own");

    fuse::unmount(place.path(), Detach::WhenIdle).unwrap();
    assert!(!is_mounted(place.path()));
    eventually("the server exits", || processes_with_argument(place.path()).is_empty());
}

#[test]
fn signals_unmount() {
    let _watchdog = Watchdog::start("signals_unmount");
    if !can_mount() {
        return;
    }
    for name in ["-TERM", "-INT"] {
        let place = Place::new();
        let mut server = serve(&place);
        signal(server.0.id(), name);
        assert_eq!(exit_status(&mut server), (Some(0), String::new()), "{name}");
        assert!(!is_mounted(place.path()), "{name}");
    }
}

/// This way, a mount does not outlive the program that started it, however that ends.
#[test]
fn the_end_of_standard_input_unmounts() {
    let _watchdog = Watchdog::start("the_end_of_standard_input_unmounts");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let start = |input: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        command.args(["mount", "--foreground", "--until-eof"]).arg(demo()).arg(place.path());
        Server(command.stdin(input).stderr(Stdio::piped()).spawn().unwrap())
    };
    let mut server = start(Stdio::piped());
    eventually("the mount answers", || place.path().join("temp.f32").exists());
    drop(server.0.stdin.take());
    assert_eq!(exit_status(&mut server), (Some(0), String::new()));
    assert!(!is_mounted(place.path()));
    // Standard input may end before there is a mount.
    let mut server = start(Stdio::null());
    let (status, errors) = exit_status(&mut server);
    assert!(matches!(status, Some(0 | 143)) && errors.is_empty(), "{status:?} {errors}");
    assert!(!is_mounted(place.path()));
}

#[test]
fn a_mount_in_use_loses_its_name_and_serves_its_users_to_the_end() {
    let _watchdog = Watchdog::start("a_mount_in_use_loses_its_name_and_serves_its_users_to_the_end");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    let file = File::open(place.path().join("big.u64")).unwrap();
    let busy = fuse::unmount(place.path(), Detach::WhenIdle).unwrap_err().to_string();
    assert!(busy.contains(&format!("(process {})", std::process::id())), "{busy}");
    assert!(is_mounted(place.path()));

    signal(server.0.id(), "-TERM");
    eventually("the name is gone", || !is_mounted(place.path()));
    let mut bytes = [0; 16];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 80).unwrap();
    assert_eq!(bytes[..8], 100_u64.to_le_bytes());
    assert!(server.0.try_wait().unwrap().is_none());
    drop(file);
    let (status, errors) = exit_status(&mut server);
    assert_eq!(status, Some(0));
    assert!(errors.contains("in use by"), "{errors}");
}

#[test]
fn who_is_in_the_way_for_a_moment_is_waited_for() {
    let _watchdog = Watchdog::start("who_is_in_the_way_for_a_moment_is_waited_for");
    if !can_mount() || !is_root() {
        skipped(Need::Root, "only root can mount something within");
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    // A mount within it keeps it busy, and there is no process to name.
    let within = place.path().join("many");
    assert!(Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&within).output().unwrap().status.success());
    let going = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        assert!(Command::new("umount").arg(&within).output().unwrap().status.success());
    });
    fuse::unmount(place.path(), Detach::WhenIdle).unwrap();
    going.join().unwrap();
    assert_eq!(exit_status(&mut server), (Some(0), String::new()));
}

#[test]
fn a_second_signal_ends_a_mount_in_use() {
    let _watchdog = Watchdog::start("a_second_signal_ends_a_mount_in_use");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    let mut file = File::open(place.path().join("big.u64")).unwrap();
    signal(server.0.id(), "-TERM");
    eventually("the name is gone", || !is_mounted(place.path()));
    signal(server.0.id(), "-TERM");
    assert_eq!(exit_status(&mut server).0, Some(0));
    assert!(file.read(&mut [0; 4096]).is_err());
}

#[test]
fn somebody_else_may_unmount() {
    let _watchdog = Watchdog::start("somebody_else_may_unmount");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    unmount(place.path());
    assert_eq!(exit_status(&mut server), (Some(0), String::new()));
}

#[test]
fn an_aborted_connection_leaves_no_dead_name() {
    let _watchdog = Watchdog::start("an_aborted_connection_leaves_no_dead_name");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    let device = mount_lines(place.path())[0].split(' ').nth(2).unwrap().to_owned();
    let abort = format!("/sys/fs/fuse/connections/{}/abort", device.split(':').nth(1).unwrap());
    if fs::write(&abort, "1").is_err() {
        skipped(Need::FuseControl, &format!("{abort} cannot be written"));
        return;
    }
    exit_status(&mut server);
    assert!(!is_mounted(place.path()));
}

#[test]
fn a_dead_mount_can_be_cleaned_up() {
    let _watchdog = Watchdog::start("a_dead_mount_can_be_cleaned_up");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    drop(serve(&place));
    assert!(is_mounted(place.path()));
    fuse::unmount(place.path(), Detach::WhenIdle).unwrap();
    assert!(!is_mounted(place.path()));
}

#[test]
fn a_mount_takes_the_place_of_dead_ones() {
    let _watchdog = Watchdog::start("a_mount_takes_the_place_of_dead_ones");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    drop(serve(&place));
    let toy = FuseMount::new(toy::root(&Arc::default()), place.path(), &MountOptions::new("/toy")).unwrap();
    assert_eq!(mount_lines(place.path()).len(), 1);
    assert_eq!(fs::read(place.path().join("hello.txt")).unwrap(), b"hello\n");
    drop(toy);
    assert!(!is_mounted(place.path()));
}

#[test]
fn a_mount_point_takes_one_mount() {
    let _watchdog = Watchdog::start("a_mount_point_takes_one_mount");
    if !can_mount() {
        return;
    }
    let toy = Toy::mount();
    let again = FuseMount::new(toy::root(&Arc::default()), toy.place.path(), &MountOptions::new("/toy"));
    let reason = again.err().unwrap().to_string();
    assert!(reason.contains("/toy is mounted here already; unmount it with `tilefs umount"), "{reason}");
    assert_eq!(mount_lines(toy.place.path()).len(), 1);
}

#[test]
fn a_mount_that_ended_takes_no_later_mount_with_it() {
    let _watchdog = Watchdog::start("a_mount_that_ended_takes_no_later_mount_with_it");
    if !can_mount() {
        return;
    }
    let device = |place: &Place| mount_lines(place.path())[0].split(' ').nth(2).unwrap().to_owned();
    // The kernel gives the second mount the device number of the first one, unless another test takes it meanwhile.
    for _ in 0..50 {
        let toy = Toy::mount();
        let first = device(&toy.place);
        unmount(toy.place.path());
        let second = FuseMount::new(toy::root(&Arc::default()), toy.place.path(), &MountOptions::new("/toy")).unwrap();
        toy.mount.as_ref().unwrap().wait().unwrap();
        let Toy { mount, place, .. } = toy;
        drop(mount);
        assert_eq!(fs::read(place.path().join("hello.txt")).unwrap(), b"hello\n");
        let same = device(&place) == first;
        drop(second);
        assert!(!is_mounted(place.path()));
        if same {
            return;
        }
    }
    panic!("the kernel never used a device number again");
}

#[test]
fn a_dropped_mount_is_gone_even_if_in_use() {
    let _watchdog = Watchdog::start("a_dropped_mount_is_gone_even_if_in_use");
    if !can_mount() {
        return;
    }
    let mut toy = Toy::mount();
    let waiting = Arc::new(toy.mount.take().unwrap());
    let file = File::open(toy.path("hello.txt")).unwrap();
    let waiter = Arc::clone(&waiting);
    let ended = thread::spawn(move || waiter.wait());
    assert_eq!(file.metadata().unwrap().size(), 6);
    fuse::unmount(toy.place.path(), Detach::Lazily).unwrap();
    assert!(!is_mounted(toy.place.path()) && !ended.is_finished());
    drop(file);
    ended.join().unwrap().unwrap();

    let mut toy = Toy::mount();
    let _file = File::open(toy.path("hello.txt")).unwrap();
    toy.mount.take();
    assert!(!is_mounted(toy.place.path()));
}

#[test]
fn errors_are_logged_once_with_their_place() {
    let _watchdog = Watchdog::start("errors_are_logged_once_with_their_place");
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let mut server = serve(&place);
    for _ in 0..5 {
        assert!(fs::read(place.path().join("damaged.bin")).is_err());
        assert!(fs::metadata(place.path().join("slice/wrong")).is_err());
    }
    signal(server.0.id(), "-TERM");
    let (_, errors) = exit_status(&mut server);
    // A process that another test is just starting holds our files for a moment, which causes a warning. A request that
    // the kernel withdrew is an error in fuser, which the program does not log.
    let lines: Vec<&str> = errors.lines().filter(|line| line.contains("ERROR tilefs")).collect();
    assert_eq!(lines.len(), 1, "{errors}");
    let place = "damaged data: the checksum does not match (fragment __1, file a0.tdb, offset 77)";
    assert!(lines[0].contains("read of damaged.bin at ") && lines[0].contains(place), "{errors}");
}

#[test]
fn root_may_be_the_only_other_user() {
    let _watchdog = Watchdog::start("root_may_be_the_only_other_user");
    if !can_mount() || !is_root() {
        skipped(Need::Root, "only root can become another user");
        return;
    }
    let read_as_nobody = |place: &Place| {
        let mut cat = Command::new("setpriv");
        cat.args(["--reuid=65534", "--regid=65534", "--clear-groups", "cat"]).arg(place.path().join("hello.txt"));
        let folder = place.beside();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        cat.output().unwrap().status.success()
    };
    for (access, allowed) in
        [(fuse::Access::Owner, false), (fuse::Access::OwnerAndRoot, false), (fuse::Access::Everyone, true)]
    {
        let mut options = MountOptions::new("/toy");
        options.access = access;
        let toy = Toy::mount_with(&options);
        assert_eq!(read_as_nobody(&toy.place), allowed, "{access:?}");
    }
}
