//! `tilefs mount`: an array or a group as a folder.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tilefs_storage::make_room_for_files;
use tilefs_threads as threads;
use tilefs_tree::{self as tree, Links};
use tilefs_vfs::fuse::background::{self, Side};
use tilefs_vfs::fuse::{self, Access, MountOptions, Ownership, Signals};
use tilefs_vfs::node::quoting::shell_word;

use crate::cli::failure::{Failure, NOT_AN_ARRAY, NOT_MOUNTED};
use crate::cli::options::{TreeArguments, cache_folder, parse_interval};
use crate::cli::{array, hints, log, service};

const EXAMPLES: &str = "\
`tilefs ARRAY MNT` and `tilefs ARRAY --mount MNT` are short for `tilefs mount ARRAY MNT`.

Examples:
  tilefs mount rasters/dem.tdb /mnt/dem
  tilefs mount dem.tdb /mnt/dem --at 2024-01-31T12:00:00Z
  tilefs mount dem.tdb /mnt/dem --slice 'alps=y=4000..5999,x=1000..2999'
  tilefs mount dem.tdb /mnt/dem -o allow_other,cache_size=4G
  tilefs umount /mnt/dem";

/// Mount an array or a group on an empty folder; returns when it is ready
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Mount {
    /// The folder of the array or group
    array: PathBuf,

    /// An empty folder to mount on; or /dev/fd/N, if descriptor N is an inherited /dev/fuse that is mounted already
    #[arg(value_name = "MNT", required_unless_present = "mount")]
    mountpoint: Option<PathBuf>,

    /// The same as MNT
    #[arg(long, value_name = "MNT", conflicts_with = "mountpoint")]
    mount: Option<PathBuf>,

    /// Stay in the foreground, until ctrl-C or unmounting
    #[arg(short = 'f', long)]
    foreground: bool,

    /// Unmount when standard input ends: when the program that holds the other end of a pipe has closed it or died
    #[arg(long, requires = "foreground")]
    until_eof: bool,

    /// Let every user read the mount
    #[arg(long, conflicts_with = "allow_root")]
    allow_other: bool,

    /// Let root read the mount too
    #[arg(long)]
    allow_root: bool,

    /// Follow symbolic links and members of groups that lead out of the array or group; refused by default for root and
    /// with --allow-other
    #[arg(long)]
    follow_links: bool,

    /// Bypass the kernel's page cache: faster for single large reads, slower otherwise
    #[arg(long)]
    direct_io: bool,

    /// Look for changes of the array at this interval, 10 seconds if not given, and show them in files opened
    /// afterwards
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "10",
          value_parser = parse_interval)]
    refresh: Option<u32>,

    /// The owner of the files; you if not given
    #[arg(long, value_name = "NUMBER")]
    uid: Option<u32>,

    /// The group of the files; yours if not given
    #[arg(long, value_name = "NUMBER")]
    gid: Option<u32>,

    /// Permissions to remove from files and folders, in octal: 077 restricts them to their owner
    #[arg(long, value_name = "OCTAL", value_parser = parse_umask, default_value = "0")]
    umask: u16,

    /// A SELinux label, as passed by mount(8)
    #[arg(long, value_name = "OPTION", hide = true)]
    selinux_label: Vec<OsString>,

    /// Options as for mount(8): ro, allow_other, cache_size=1G, at=…
    // Expanded before parsing; declared here for the help text.
    #[arg(short = 'o', value_name = "OPTIONS")]
    _options: Option<String>,

    #[command(flatten)]
    tree: TreeArguments,

    /// Write messages to the end of this file instead of the terminal or the system's log
    #[arg(long, value_name = "FILE", help_heading = "Messages")]
    log_file: Option<PathBuf>,
}

impl Mount {
    pub fn run(&self) -> Result<(), Failure> {
        self.tree.start_log();
        if let Some(hint) = hints::for_home(self.mountpoint()) {
            let message = format!("{}: {hint}", self.mountpoint().display());
            return Err(Failure { status: NOT_MOUNTED, message });
        }
        if self.is_foreground() {
            return self.serve();
        }
        match background::start().map_err(|(status, message)| Failure { status, message })? {
            Side::Starter => Ok(()),
            Side::Server => self.serve(),
        }
    }

    pub fn is_foreground(&self) -> bool {
        self.foreground || self.tree.opening.logging.is_debug()
    }

    /// Returns the mount point, as typed.
    pub fn mountpoint(&self) -> &Path {
        // The parser guarantees one of the two.
        self.mountpoint.as_deref().or(self.mount.as_deref()).unwrap_or(Path::new(""))
    }

    /// Returns the source in the mount table: the absolute path, or the URI as typed.
    fn source(&self) -> Result<PathBuf, Failure> {
        if array::is_remote(&self.array) {
            return Ok(self.array.clone());
        }
        Ok(fs::canonicalize(tilefs_reader::local_path(&self.array)?).unwrap_or_else(|_| self.array.clone()))
    }

    /// Returns the failure for exchanged arguments.
    fn swapped(&self) -> Failure {
        let [array, mountpoint] = [self.mountpoint(), &self.array].map(|path| shell_word(&path.display().to_string()));
        Failure::usage(format!("the array comes first: tilefs mount {array} {mountpoint}"))
    }

    /// Returns the options of the mount itself.
    fn mounting(&self, options: &tree::TreeOptions) -> Result<MountOptions, Failure> {
        let mut mounting = MountOptions::new(self.source()?);
        mounting.access = match (self.allow_other, self.allow_root) {
            (true, _) => Access::Everyone,
            (false, true) => Access::OwnerAndRoot,
            (false, false) => Access::Owner,
        };
        mounting.ownership = Ownership {
            user: self.uid.unwrap_or(mounting.ownership.user),
            group: self.gid.unwrap_or(mounting.ownership.group),
            umask: self.umask,
        };
        mounting.selinux_labels = self.selinux_label.clone();
        mounting.direct_io = self.direct_io;
        mounting.only_others = true;
        mounting.refresh = self.refresh.map(|seconds| Duration::from_secs(seconds.into()));
        mounting.cache_size = options.reading.cache_size;
        mounting.read_ahead_workers = array::read_ahead_workers(&self.array, options);
        mounting.read_ahead_window = array::read_ahead_window(&self.array, options);
        Ok(mounting)
    }

    fn serve(&self) -> Result<(), Failure> {
        if let Some(path) = &self.log_file {
            log::to_file(path).map_err(|error| {
                let hint = hints::for_home(path).map_or_else(String::new, |hint| format!("; {hint}"));
                Failure::failed(format!("cannot write the log to {}: {error}{hint}", path.display()))
            })?;
        }
        // Before any thread starts: a shared file table grows slowly, and a new process has a small one; and all
        // threads must block the signals.
        make_room_for_files();
        let signals = Signals::hold()?;
        if self.until_eof {
            signals.end_with(io::stdin())?;
        }
        let mut options = self.tree.options()?;
        // Other users would otherwise see data that only this user may read.
        let may_be_shared = fuse::descriptor(self.mountpoint()).is_some();
        let is_shared = self.allow_other || may_be_shared || rustix::process::geteuid().is_root();
        options.reading.links = if is_shared && !self.follow_links { Links::Within } else { Links::Anywhere };
        options.is_watched = self.refresh.is_some();
        threads::start_team(options.reading.threads);
        let tree = array::open_tree(&self.array, &options).map_err(|failure| {
            let is_swapped = failure.status == NOT_AN_ARRAY && tree::is_object(self.mountpoint(), &options);
            if is_swapped { self.swapped() } else { failure }
        })?;
        let mounting = self.mounting(&options)?;
        signals.wait();
        let mount = fuse::FuseMount::new(tree, self.mountpoint(), &mounting)?;
        ::log::info!("{} is mounted at {}", mounting.source.display(), mount.mountpoint().display());
        if background::is_server() {
            if log::will_be_lost() && is_first_warning() {
                ::log::warn!(
                    "there is no system log: only {}/.tilefs/errors.txt records errors; --log-file FILE keeps \
                     them",
                    mount.mountpoint().display()
                );
            }
            if background::report_success().is_err() {
                // The parent is gone, for example after ctrl-C. Dropping the mount unmounts.
                return Ok(());
            }
            log::leave_standard_error();
        }
        service::ready();
        let result = fuse::serve(mount, signals);
        ::log::info!("{} is unmounted", mounting.source.display());
        Ok(result?)
    }
}

/// Returns whether this user has not been warned of a missing system log before, and notes that this happens now.
fn is_first_warning() -> bool {
    let Some(folder) = cache_folder() else { return true };
    let noted = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .and_then(|()| fs::File::options().write(true).create_new(true).open(folder.join("no-system-log")));
    noted.err().is_none_or(|error| error.kind() != io::ErrorKind::AlreadyExists)
}

fn parse_umask(text: &str) -> Result<u16, String> {
    let mask = u16::from_str_radix(text, 8).ok().filter(|mask| *mask <= 0o777);
    mask.ok_or_else(|| "not three octal digits, such as 022".to_owned())
}

#[cfg(test)]
impl Mount {
    /// Returns the array or group, as typed.
    pub fn array(&self) -> &Path {
        &self.array
    }
}
