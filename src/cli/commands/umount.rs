//! `tilefs umount`: unmounts.

use std::env;
use std::path::{self, PathBuf};

use clap::Args;
use tilefs_vfs::fuse::{self, Detach};

use crate::cli::failure::{Failure, NOT_UNMOUNTED, complain};

/// Unmount; returns when the mount is gone
#[derive(Debug, Args)]
pub struct Umount {
    /// The mount point
    #[arg(value_name = "MNT", required = true)]
    mountpoints: Vec<PathBuf>,

    /// Unmount even if it is in use: it disappears at once, and is released when the last program closes it
    #[arg(short = 'l', long)]
    lazy: bool,
}

impl Umount {
    pub fn run(&self) -> Result<(), Failure> {
        let how = if self.lazy { Detach::Lazily } else { Detach::WhenIdle };
        let mut result = Ok(());
        let absolute = |mountpoint: &PathBuf| path::absolute(mountpoint).unwrap_or_else(|_| mountpoint.clone());
        let mountpoints: Vec<PathBuf> = self.mountpoints.iter().map(absolute).collect();
        // A command that was started in the mount must not be one of its users.
        let _ = env::set_current_dir("/");
        for mountpoint in &mountpoints {
            if let Err(error) = fuse::unmount(mountpoint, how) {
                complain(&error.to_string());
                result = Err(Failure { status: NOT_UNMOUNTED, message: String::new() });
            }
        }
        result
    }
}
