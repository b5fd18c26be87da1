//! Mounts for the length of a test, and a watchdog over each test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use support::toy::{self, Counters};
use tempfile::TempDir;
use tilefs_vfs::fuse::{FuseMount, MountOptions};

pub use support::skip::{Need, can_mount, is_root, skipped};

/// No test takes longer, not even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Ends the whole test program if a test hangs: a process that hangs in a mount cannot be ended otherwise.
pub struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

impl Watchdog {
    pub fn start(test: &'static str) -> Watchdog {
        // Build the program first, which may take longer than any test.
        toy_program();
        let (sender, receiver) = mpsc::channel::<()>();
        thread::spawn(move || {
            if receiver.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{test} hangs: unmounting everything of this test program");
                for mountpoint in MOUNTPOINTS.lock().unwrap().iter() {
                    unmount_lazily(mountpoint);
                }
                std::process::exit(101);
            }
        });
        Watchdog(sender)
    }
}

static MOUNTPOINTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// An empty folder to mount on; whatever is mounted there at the end is unmounted.
pub struct Place {
    folder: TempDir,
    path: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(folder.path()).unwrap().join("mnt");
        fs::create_dir(&path).unwrap();
        MOUNTPOINTS.lock().unwrap().push(path.clone());
        Place { folder, path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a folder beside the mount point, which is removed with it.
    pub fn beside(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Repeat, because a test may mount over a mount.
        while is_mounted(&self.path) {
            if !unmount_lazily(&self.path) {
                break;
            }
        }
    }
}

/// The toy tree, mounted by this process.
pub struct Toy {
    // Dropped in this order: unmount before the folder is removed.
    pub mount: Option<FuseMount>,
    pub place: Place,
    pub counters: Arc<Counters>,
}

impl Toy {
    pub fn mount() -> Toy {
        Toy::mount_with(&MountOptions::new("/toy"))
    }

    pub fn mount_with(options: &MountOptions) -> Toy {
        let (place, counters) = (Place::new(), Arc::<Counters>::default());
        let mount = FuseMount::new(toy::root(&counters), place.path(), options).unwrap();
        Toy { mount: Some(mount), place, counters }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

/// A process that serves a mount; killed at the end.
pub struct Server(pub Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the sample array.
pub fn demo() -> PathBuf {
    tilefs_fixtures::fixtures().join("demo")
}

/// Copies the sample array beside a mount point; returns the copy.
pub fn copy_of_demo(place: &Place) -> PathBuf {
    let copy = place.beside().join("demo");
    assert!(Command::new("cp").arg("-r").args([&demo(), &copy]).status().unwrap().success());
    copy
}

/// Runs `tilefs` as the first command of a user.
pub fn tilefs(arguments: &[&OsStr]) -> Output {
    output_of_first(Command::new(env!("CARGO_BIN_EXE_tilefs")).args(arguments))
}

/// Runs a command as the first one of a user: what it notes for later ones stays out of the developer's folder, and
/// changes no other test.
pub fn output_of_first(command: &mut Command) -> Output {
    let cache = tempfile::tempdir().unwrap();
    command.env("XDG_CACHE_HOME", cache.path()).output().unwrap()
}

/// An array mounted by the real program, which serves it in the background and writes a log; killed at the end.
pub struct Daemon {
    place: Place,
    process: u32,
    log: PathBuf,
}

impl Daemon {
    pub fn start(place: Place, array: &Path, options: &[&str]) -> Daemon {
        let log = place.beside().join("log");
        let mut mount = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        mount.args(["mount".as_ref(), array, place.path()]).args(options).arg("--log-file").arg(&log);
        let output = mount.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let processes = processes_with_argument(place.path());
        assert_eq!(processes.len(), 1, "{processes:?}");
        Daemon { place, process: processes[0], log }
    }

    /// Returns the mount point.
    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// Returns a path in the mount.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.place().to_owned() } else { self.place().join(name) }
    }

    pub fn log_file(&self) -> &Path {
        &self.log
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub fn is_alive(&self) -> bool {
        processes_with_argument(self.place()).contains(&self.process)
    }

    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the folder beside the mount point, which is removed with it.
    pub fn beside(&self) -> PathBuf {
        self.place.beside()
    }

    /// Ends the daemon with a signal, as systemd does with `-TERM`; checks that it ends within 5 s.
    pub fn ends_by_signal(self, name: &str) {
        let start = Instant::now();
        signal(self.process, name);
        eventually("the daemon ends", || !self.is_alive());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert!(!is_mounted(self.place()));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.is_alive() {
            // The mount point is unmounted afterwards.
            let _ = Command::new("kill").args(["-KILL", &self.process.to_string()]).status();
        }
    }
}

/// Returns the current memory of a process in bytes, without its program.
pub fn memory_of(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Returns the lines of the mount table for a path.
pub fn mount_lines(mountpoint: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = |line: &&str| line.split(' ').nth(4) == mountpoint.to_str();
    table.lines().filter(here).map(str::to_owned).collect()
}

pub fn is_mounted(mountpoint: &Path) -> bool {
    !mount_lines(mountpoint).is_empty()
}

pub fn unmount_lazily(mountpoint: &Path) -> bool {
    let by = |program: &str, flags: &str| {
        let status = Command::new(program).arg(flags).arg(mountpoint).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    by("umount", "-l") || by("fusermount3", "-uz")
}

/// Unmounts as another program would.
pub fn unmount(mountpoint: &Path) {
    let status = if is_root() {
        Command::new("umount").arg(mountpoint).status()
    } else {
        Command::new("fusermount3").arg("-u").arg(mountpoint).status()
    };
    assert!(status.unwrap().success());
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the program `examples/toy`, built beside this test.
pub fn toy_program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        // Build with the features of the whole workspace, as for its tests: the features of this package alone would
        // require building half of all crates again.
        build.args(["build", "--quiet", "--workspace", "--example", "toy", "--manifest-path"]);
        build.arg(support::repository::root().join("Cargo.toml"));
        if profile.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        }
        // Remove the variables that cargo sets for tests of this package: build scripts of dependencies would take them
        // as changes, and half of all crates would be rebuilt.
        let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
            build.env_remove(name);
        }
        assert!(build.status().unwrap().success());
        profile.join("examples/toy")
    })
}

/// Returns the processes with this argument, without zombies.
pub fn processes_with_argument(argument: &Path) -> Vec<u32> {
    let wanted = argument.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // Zombies have no arguments.
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if arguments.split(|&byte| byte == 0).any(|one| one == wanted.as_bytes()) {
            found.push(id);
        }
    }
    found
}

pub fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// Returns whether a program is installed; reports it if not.
pub fn program_is_there(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    if !is_there {
        skipped(Need::Programs, &format!("{program} is not installed"));
    }
    is_there
}

/// Returns what a program printed to standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns whether the first command that mounted in the background printed nothing, except the warning if there is no
/// system log.
pub fn is_quiet(output: &Output) -> bool {
    let errors = errors(output);
    let has_log = UnixDatagram::unbound().and_then(|socket| socket.connect("/dev/log")).is_ok();
    let is_told = errors.starts_with("tilefs: warning: there is no system log: ") && errors.matches('\n').count() == 1;
    output.stdout.is_empty() && if has_log { errors.is_empty() } else { is_told }
}

/// Returns standard error, which must be one line.
#[track_caller]
pub fn one_line(output: &Output) -> String {
    let text = errors(output);
    assert_eq!(text.matches('\n').count(), 1, "one line expected: {text:?}");
    text.trim_end().to_owned()
}
