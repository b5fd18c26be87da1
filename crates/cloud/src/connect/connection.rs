//! A client of a bucket, and what the clients of all providers need to be made.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path as ObjectPath;
use object_store::{BackoffConfig, GetOptions, GetResult, ObjectStore, RetryConfig};
use tilefs_base::error::{Error, Result};

use super::address;
use crate::uri::BucketName;

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

/// Rejects an invalid server address, if there is one.
///
/// # Errors
/// As [`address::check`].
pub(super) fn check_address(address: Option<String>, origin: &str) -> Result<()> {
    address.map_or(Ok(()), |address| address::check(&address, origin))
}

/// The client must not retry: tilefs retries itself, with a time limit, counters and log lines.
pub(super) fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

pub(super) fn with_scheme(endpoint: &str, scheme: &str) -> String {
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("{scheme}://{endpoint}") }
}

pub(super) fn refused(bucket: &BucketName, error: &object_store::Error) -> Error {
    Error::key(format!("{bucket} cannot be reached with these settings and credentials: {error}"))
}
