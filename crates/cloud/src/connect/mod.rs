//! Creates the client of a bucket from settings, environment and credentials.

mod address;
mod azure;
mod connection;
mod credentials;
mod environment;
mod gcs;
mod process;
mod profile;
mod s3;

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_storage::Provider;

use super::traffic::Traffic;
use crate::settings::CloudOptions;
use crate::uri::BucketName;
pub use connection::{BucketConnection, Client};

/// Creates a client of a bucket without making a request. `region` is the region that the store reported.
///
/// # Errors
/// [`Usage`](tilefs_base::error::Error::Usage) for contradictory settings or invalid addresses, [`Io`](tilefs_base::error::Error::Io) and [`Key`](tilefs_base::error::Error::Key) for unusable
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
