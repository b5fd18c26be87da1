//! Mounts a custom tree, in the foreground or (`--background`) in the background: the library needs only a
//! [`tilefs_vfs::Folder`]. The tests also use this program to exercise the life cycle of a mount.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use support::toy;
use tilefs_vfs::fuse::background::{self, Side};
use tilefs_vfs::fuse::{Access, FuseMount, MountOptions, Signals, serve};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let Some(mountpoint) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("usage: toy [--background] [--allow-other] [--direct-io] MOUNTPOINT");
        return ExitCode::from(2);
    };
    env_logger::init();
    if has("--background") {
        match background::start() {
            Ok(Side::Server) => {}
            Ok(Side::Starter) => return ExitCode::SUCCESS,
            Err((status, error)) => {
                eprintln!("toy: {error}");
                return ExitCode::from(status);
            }
        }
    }
    let mut options = MountOptions::new(std::env::var("TOY_SOURCE").unwrap_or("/toy, for testing".into()));
    options.access = if has("--allow-other") { Access::Everyone } else { Access::Owner };
    options.direct_io = has("--direct-io");
    for (name, option) in [("TOY_THREADS", &mut options.threads), ("TOY_WORKERS", &mut options.read_ahead_workers)] {
        if let Some(value) = std::env::var(name).ok().and_then(|value| value.parse().ok()) {
            *option = value;
        }
    }
    match run(Path::new(mountpoint), &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if background::is_server() {
                background::report_failure(1, &error.to_string());
            } else {
                eprintln!("toy: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(mountpoint: &Path, options: &MountOptions) -> Result<(), Box<dyn Error>> {
    let signals = Signals::hold()?;
    signals.wait();
    let mount = FuseMount::new(toy::root(&Arc::default()), mountpoint, options)?;
    if background::is_server() && background::report_success().is_err() {
        return Ok(());
    }
    Ok(serve(mount, signals)?)
}
