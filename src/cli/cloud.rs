//! The options for arrays in object stores.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tilefs_cloud::{CloudOptions, Settings};

use super::failure::Failure;
use super::size;

/// Options for arrays in object stores.
#[derive(Debug, Args)]
#[command(next_help_heading = "Arrays in object stores")]
pub struct CloudArguments {
    /// A file of settings as written by tiledb.Config().save: vfs.s3.region, vfs.s3.endpoint_override ...
    #[arg(long, value_name = "FILE", env = "TILEFS_CONFIG")]
    config: Option<PathBuf>,

    /// One such setting, such as vfs.s3.region=eu-west-1; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,

    /// Do not sign requests: for public buckets
    #[arg(long)]
    anonymous: bool,

    /// How long to retry a request before it fails; 60 if not given
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    io_timeout: Option<u64>,

    /// Keep data read from object stores in this folder, for later mounts
    #[arg(long, value_name = "DIR")]
    disk_cache: Option<PathBuf>,

    /// Maximum size of that folder; 10G if not given
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    disk_cache_size: Option<u64>,
}

impl CloudArguments {
    /// Returns the options for object stores. Settings on the command line take precedence over those of the file.
    pub fn options(&self) -> Result<CloudOptions, Failure> {
        let mut settings = match &self.config {
            Some(file) => Settings::read(file)?,
            None => Settings::default(),
        };
        self.set.iter().try_for_each(|(name, value)| settings.set_typed(name, value))?;
        let usual = CloudOptions::default();
        let most = self.disk_cache_size.unwrap_or(CloudOptions::DISK_CACHE_SIZE);
        Ok(CloudOptions {
            settings,
            anonymous: self.anonymous,
            io_timeout: self.io_timeout.map_or(usual.io_timeout, Duration::from_secs),
            disk_cache: self.disk_cache.clone().map(|folder| (folder, most)),
        })
    }
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE, for instance vfs.s3.region=eu-west-1".into()),
    }
}
