//! Creates the client of a bucket from settings, environment and credentials.

mod address;
mod azure;
mod credentials;
mod environment;
mod gcs;
mod process;
mod profile;
mod s3;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, GetOptions, GetResult, ObjectStore, RetryConfig};
use tilefs_format::error::{Error, Result};

use super::traffic::Traffic;
use crate::settings::CloudOptions;
use crate::uri::{BucketName, Provider};

/// The operations of a bucket's client that reading needs.
///
/// A trait of its own, because an [`ObjectStore`] trait object would keep the code of all its operations in the
/// program: uploads, copies and checksums, with tables for dozens of them.
pub trait Client: Send + Sync {
    /// Requests an object, part of it, or its length.
    fn get<'a>(&'a self, path: &'a ObjectPath, options: GetOptions) -> BoxFuture<'a, object_store::Result<GetResult>>;

    /// Requests one page of a listing.
    fn list_page<'a>(
        &'a self,
        prefix: Option<&'a str>,
        options: PaginatedListOptions,
    ) -> BoxFuture<'a, object_store::Result<PaginatedListResult>>;
}

impl<T: ObjectStore + PaginatedListStore> Client for T {
    fn get<'a>(&'a self, path: &'a ObjectPath, options: GetOptions) -> BoxFuture<'a, object_store::Result<GetResult>> {
        self.get_opts(path, options)
    }

    fn list_page<'a>(
        &'a self,
        prefix: Option<&'a str>,
        options: PaginatedListOptions,
    ) -> BoxFuture<'a, object_store::Result<PaginatedListResult>> {
        self.list_paginated(prefix, options)
    }
}

/// A client of a bucket.
pub struct BucketConnection {
    pub client: Arc<dyn Client>,
    /// The client's region, and whether it was configured. S3 only.
    pub region: Option<(String, bool)>,
    /// The endpoint and account, unless they are the provider's default and in the URI; otherwise empty.
    pub endpoint: String,
}

/// Creates a client of a bucket without making a request. `region` is the region that the store reported.
///
/// # Errors
/// [`Error::Usage`] for contradictory settings or invalid addresses, [`Error::Io`] and [`Error::Key`] for unusable
/// credentials.
pub fn connect(
    bucket: &BucketName,
    options: &CloudOptions,
    region: Option<&str>,
    traffic: &Arc<Traffic>,
) -> Result<BucketConnection> {
    // Process-wide; another bucket may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match bucket.provider {
        Provider::S3 => s3::connect(bucket, options, region, traffic),
        Provider::Gcs => gcs::connect(bucket, options, traffic),
        Provider::Azure => azure::connect(bucket, options, traffic),
    }
}

/// Rejects an invalid server address, if there is one.
///
/// # Errors
/// As [`address::check`].
fn check_address(address: Option<String>, origin: &str) -> Result<()> {
    address.map_or(Ok(()), |address| address::check(&address, origin))
}

/// The client must not retry: tilefs retries itself, with a time limit, counters and log lines.
fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

fn with_scheme(endpoint: &str, scheme: &str) -> String {
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("{scheme}://{endpoint}") }
}

fn refused(bucket: &BucketName, error: &object_store::Error) -> Error {
    Error::key(format!("{bucket} cannot be reached with these settings and credentials: {error}"))
}
