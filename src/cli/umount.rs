//! `tilefs umount`: takes mounts away.

use std::path::PathBuf;

use clap::Args;

use super::failure::{Failure, NOT_UNMOUNTED, complain};
use tilefs::fuse::{self, Detach};

/// Unmount; returns when the mount is gone
#[derive(Debug, Args)]
pub struct Umount {
    /// Where it is mounted
    #[arg(value_name = "MNT", required = true)]
    mountpoints: Vec<PathBuf>,

    /// Even if it is in use: its name goes at once, the rest when the last program lets go
    #[arg(short = 'l', long)]
    lazy: bool,
}

impl Umount {
    pub fn run(&self) -> Result<(), Failure> {
        let how = if self.lazy { Detach::Lazily } else { Detach::WhenIdle };
        let mut result = Ok(());
        for mountpoint in &self.mountpoints {
            if let Err(error) = fuse::unmount(mountpoint, how) {
                complain(&error.to_string());
                result = Err(Failure { status: NOT_UNMOUNTED, message: String::new() });
            }
        }
        result
    }
}
