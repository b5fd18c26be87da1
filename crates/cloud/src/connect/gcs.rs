//! Clients of buckets in Google Cloud Storage.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{HeaderMap, HeaderValue, StaticCredentialProvider};
use serde_json::Value;
use tilefs_base::error::{Error, Result};
use tilefs_storage::secret::{read_private, warn_if_open};

use super::connection::{BucketConnection, check_address, no_retries, refused, with_scheme};
use super::environment::{configured, file, variable};
use crate::settings::CloudOptions;
use crate::traffic::{CountingConnector, Traffic};
use crate::transport::Transport;
use crate::uri::BucketName;

/// Path in the home folder where the gcloud command line stores application default credentials.
const GCLOUD_CREDENTIALS: &str = ".config/gcloud/application_default_credentials.json";

/// A Google key file has a few kilobytes; anything larger than this is something else.
const MOST_KEY_FILE: usize = 64 << 10;

/// Creates a client of a bucket; see [`super::connect`].
pub fn connect(bucket: &BucketName, options: &CloudOptions, traffic: &Arc<Traffic>) -> Result<BucketConnection> {
    let settings = &options.settings;
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Some(file) = variable("SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(file);
    }
    builder = configured(builder, "GOOGLE_", |builder, key, value| builder.with_config(key, value));
    builder = builder.with_bucket_name(&bucket.bucket);
    let mut transport = Transport::new(options.io_timeout, [None, settings.number("vfs.gcs.request_timeout_ms")]);
    let emulator = variable("CLOUD_STORAGE_EMULATOR_ENDPOINT").or_else(|| variable("STORAGE_EMULATOR_HOST"));
    let endpoint = settings.text("vfs.gcs.endpoint").map(|endpoint| with_scheme(endpoint, "https"));
    // Emulators need no credentials.
    let is_emulator = endpoint.is_none() && emulator.is_some();
    if let Some(endpoint) = endpoint.or(emulator.map(|host| with_scheme(&host, "http"))) {
        transport = transport.to(&endpoint);
        builder = builder.with_base_url(endpoint.trim_end_matches('/'));
    }
    if let Some(project) = settings.text("vfs.gcs.project_id") {
        let value = HeaderValue::from_str(project)
            .map_err(|_| Error::usage("the setting vfs.gcs.project_id has characters that no project has"))?;
        let mut headers = HeaderMap::new();
        // The project to bill if the bucket is requester-pays.
        headers.insert("x-goog-user-project", value);
        transport = transport.with_headers(headers);
    }
    if let Some(key) = settings.text("vfs.gcs.service_account_key") {
        check_key(key, "vfs.gcs.service_account_key")?;
        builder = builder.with_service_account_key(key);
    }
    if options.anonymous || is_emulator {
        let nobody = GcpCredential { bearer: String::new() };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(nobody))).with_skip_signature(true);
    } else {
        check_key_file(&builder)?;
    }
    check_address(builder.get_config_value(&GoogleConfigKey::BaseUrl), GoogleConfigKey::BaseUrl.as_ref())?;
    let builder = builder
        .with_retry(no_retries())
        .with_client_options(transport.options())
        .with_http_connector(CountingConnector { transport, traffic: traffic.clone() });
    let endpoint = builder.get_config_value(&GoogleConfigKey::BaseUrl).unwrap_or_default();
    let client = builder.build().map_err(|error| refused(bucket, &error))?;
    Ok(BucketConnection { client: Arc::new(client), region: None, endpoint })
}

/// Warns if others may read Google's key file, and validates the address in it.
///
/// # Errors
/// [`Error::Usage`] if it names an invalid server address.
fn check_key_file(builder: &GoogleCloudStorageBuilder) -> Result<()> {
    let named = [GoogleConfigKey::ServiceAccount, GoogleConfigKey::ApplicationCredentials]
        .iter()
        .find_map(|key| builder.get_config_value(key).map(PathBuf::from));
    let Some(file) = named.or_else(|| file("HOME").map(|home| home.join(GCLOUD_CREDENTIALS))) else {
        return Ok(());
    };
    // The client reports an unreadable file itself.
    let Ok((bytes, mode)) = read_private(&file, MOST_KEY_FILE) else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    warn_if_open(&file, mode, ["private_key", "refresh_token"].iter().any(|name| text.contains(name)));
    check_key(&text, &file.display().to_string())
}

/// Validates the server address in a Google key.
///
/// # Errors
/// [`Error::Usage`] if it names an invalid server address.
fn check_key(key: &str, origin: &str) -> Result<()> {
    let key: Value = serde_json::from_str(key).unwrap_or_default();
    let server = key.get("gcs_base_url").and_then(Value::as_str);
    check_address(server.map(str::to_owned), &format!("gcs_base_url in {origin}"))
}
