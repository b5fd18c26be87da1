//! Arrays in object stores, in servers that the tests start on this machine: their files are those of a local copy,
//! failed requests are retried, and permanent failures are reported in one sentence.
#![cfg(feature = "cloud")]

mod cached;
mod conforming;
mod corpus;
mod failing;
mod folder_objects;
mod hostile;
mod identities;
mod listing;
mod live;
mod others;
mod proxy;
mod same;
mod servers;
mod ways;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use support::paths::content;
use support::skip;
use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_cloud::{CloudOptions, Settings};
use tilefs_fixtures::fixtures;
use tilefs_storage::ObjectStores;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::Folder;

/// Returns options for anonymous requests to an endpoint.
fn cloud_options(endpoint: &str) -> CloudOptions {
    let mut settings = Settings::default();
    settings.set_typed("vfs.s3.endpoint_override", endpoint).unwrap();
    settings.set_typed("vfs.s3.region", "us-east-1").unwrap();
    CloudOptions { settings, anonymous: true, io_timeout: Duration::from_secs(20), disk_cache: None }
}

/// Returns options that reach object stores in this way.
fn reaching(cloud: CloudOptions) -> TreeOptions {
    let stores: Option<Arc<dyn ObjectStores>> = Some(Arc::new(cloud));
    TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), threads: 2, stores, ..Default::default() },
        ..TreeOptions::default()
    }
}

/// Returns options for anonymous requests to an endpoint.
fn options(endpoint: &str) -> TreeOptions {
    reaching(cloud_options(endpoint))
}

fn open(uri: &str, options: &TreeOptions) -> Result<Arc<dyn Folder>> {
    tree::open(Path::new(uri), options)
}

fn read(root: &dyn Folder, path: &str) -> Result<Vec<u8>> {
    let content = content(root, path)?;
    part(&*content, 0, content.len())
}

fn part(content: &dyn Content, offset: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    content.read_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// Returns the program without this machine's credentials and settings.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
    for (name, _) in std::env::vars() {
        if ["AWS_", "GOOGLE_", "AZURE_", "TILEFS_"].iter().any(|start| name.starts_with(start)) {
            command.env_remove(name);
        }
    }
    // Keep the program from asking Amazon's metadata service for an identity.
    command.env("HOME", "/nonexistent").env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1");
    command
}

/// Runs the program on an array behind an endpoint, with keys from the environment.
fn tilefs(endpoint: &str, arguments: &[&str]) -> Output {
    let mut command = program();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
    command.args(arguments).output().expect("the program starts")
}

/// The secret key, which must not appear in any output.
const SECRET: &str = "hunter2hunter2hunter2";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
