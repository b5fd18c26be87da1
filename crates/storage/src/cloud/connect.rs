//! Creates the client of a bucket from settings, environment and credentials.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path as ObjectPath;
use object_store::{
    BackoffConfig, GetOptions, GetResult, HeaderMap, HeaderValue, ObjectStore, RetryConfig, StaticCredentialProvider,
};
use serde_json::Value;
use tilefs_format::error::{Error, Result};

use super::super::secret::{read_private, warn_if_open};
use super::address::{self, escaped};
use super::credentials::is_sendable;
use super::environment::{configured, file, variable};
use super::profile::{DEFAULT_REGION, Profile};
use super::traffic::{CountingConnector, Traffic};
use super::transport::Transport;
use crate::settings::{CloudOptions, Settings};
use crate::uri::{BucketName, Provider, is_name};

/// Path in the home folder where the gcloud command line stores application default credentials.
const GCLOUD_CREDENTIALS: &str = ".config/gcloud/application_default_credentials.json";

/// A Google key file has a few kilobytes; anything larger than this is something else.
const MOST_KEY_FILE: usize = 64 << 10;

/// Server of container credentials; the environment has the path.
const CONTAINER_CREDENTIALS_SERVER: &str = "http://169.254.170.2";

/// Azure's default authority host.
const AZURE_AUTHORITY: &str = "https://login.microsoftonline.com";

/// Variable with the secret that proves to Azure's identity service that the request comes from its machine.
const IDENTITY_HEADER_VARIABLE: &str = "IDENTITY_HEADER";

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
pub struct Connection {
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
) -> Result<Connection> {
    // Process-wide; another bucket may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match bucket.provider {
        Provider::S3 => s3(bucket, options, region, traffic),
        Provider::Gcs => gcs(bucket, options, traffic),
        Provider::Azure => azure(bucket, options, traffic),
    }
}

fn s3(bucket: &BucketName, options: &CloudOptions, region: Option<&str>, traffic: &Arc<Traffic>) -> Result<Connection> {
    let settings = &options.settings;
    let is_anonymous = options.anonymous || settings.flag("vfs.s3.no_sign_request") == Some(true);
    let builder = AmazonS3Builder::new();
    let mut builder = configured(builder, "AWS_", |builder, key, value| builder.with_config(key, value));
    builder = builder.with_bucket_name(&bucket.bucket);
    let profile = Profile::load()?;
    // Settings take precedence over the environment, which takes precedence over the profile.
    let has_keys = |builder: &AmazonS3Builder| {
        let has = |key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
        has(AmazonS3ConfigKey::AccessKeyId)
            || (has(AmazonS3ConfigKey::WebIdentityTokenFile) && has(AmazonS3ConfigKey::RoleArn))
    };
    if let (Some(id), Some(secret)) =
        (settings.text("vfs.s3.aws_access_key_id"), settings.text("vfs.s3.aws_secret_access_key"))
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        builder = match settings.text("vfs.s3.aws_session_token") {
            Some(token) => builder.with_token(token),
            // The token in the environment belongs to other keys.
            None if builder.get_config_value(&AmazonS3ConfigKey::Token).is_some() => builder.with_token(""),
            None => builder,
        };
    } else if !is_anonymous && !has_keys(&builder) {
        builder = profile.sign(builder)?;
    }
    let sent = [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey, AmazonS3ConfigKey::Token];
    if sent.iter().filter_map(|key| builder.get_config_value(key)).any(|value| !is_sendable(&value)) {
        return Err(Error::key(format!(
            "the keys for {bucket} have characters that no key has, such as an end of line"
        )));
    }
    let said = region
        .or(settings.text("vfs.s3.region"))
        .map(str::to_owned)
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Region))
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or_else(|| profile.text("region"));
    let (region, is_said) = said.map_or((DEFAULT_REGION.to_owned(), false), |region| (region, true));
    if !is_name(&region) {
        return Err(Error::usage(format!("the region of {bucket} has characters that no region has")));
    }
    let mut transport = Transport::new(
        options.io_timeout,
        [settings.number("vfs.s3.connect_timeout_ms"), settings.number("vfs.s3.request_timeout_ms")],
    );
    let ca_file = settings.text("vfs.s3.ca_file").map(str::to_owned).or_else(|| variable("AWS_CA_BUNDLE"));
    if let Some(file) = ca_file {
        transport = transport.with_certificates(Path::new(&file))?;
    }
    if settings.flag("vfs.s3.verify_ssl") == Some(false) {
        log::warn!("vfs.s3.verify_ssl is false: anybody on the network path can read and change the data");
        transport = transport.with_invalid_certificates();
    }
    transport = transport.through(proxy(settings));
    let endpoint = settings
        .text("vfs.s3.endpoint_override")
        .map(|endpoint| with_scheme(endpoint, settings.text("vfs.s3.scheme").unwrap_or("https")))
        .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
        .or_else(|| variable("AWS_ENDPOINT_URL"))
        .or_else(|| profile.text("endpoint_url"))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    let virtual_addressing = settings.flag("vfs.s3.use_virtual_addressing");
    builder = match &endpoint {
        Some(endpoint) => {
            transport = transport.to(endpoint);
            let is_virtual = virtual_addressing == Some(true);
            let endpoint = match (is_virtual, endpoint.split_once("://")) {
                (true, Some((scheme, host))) => format!("{scheme}://{}.{host}", bucket.bucket),
                _ => endpoint.clone(),
            };
            address::check(&endpoint, &format!("the endpoint of {bucket}"))?;
            builder.with_endpoint(endpoint.trim_end_matches('/')).with_virtual_hosted_style_request(is_virtual)
        }
        None => {
            // S3's wildcard certificates do not cover names with dots.
            let is_virtual = virtual_addressing.unwrap_or(true) && !bucket.bucket.contains('.');
            if is_virtual {
                address::check(&format!("https://{}.s3.amazonaws.com", bucket.bucket), &bucket.to_string())?;
            }
            builder.with_virtual_hosted_style_request(is_virtual)
        }
    };
    for key in [
        AmazonS3ConfigKey::StsEndpoint,
        AmazonS3ConfigKey::MetadataEndpoint,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ] {
        check_address(builder.get_config_value(&key), key.as_ref())?;
    }
    let key = AmazonS3ConfigKey::ContainerCredentialsRelativeUri;
    check_address(
        builder.get_config_value(&key).map(|path| format!("{CONTAINER_CREDENTIALS_SERVER}{path}")),
        key.as_ref(),
    )?;
    if settings.flag("vfs.s3.requester_pays") == Some(true) {
        builder = builder.with_request_payer(true);
    }
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder
        .with_region(&region)
        .with_retry(no_retries())
        .with_client_options(transport.options())
        .with_http_connector(CountingConnector { transport, traffic: traffic.clone() });
    let client = builder.build().map_err(|error| refused(bucket, &error))?;
    Ok(Connection { client: Arc::new(client), region: Some((region, is_said)), endpoint: endpoint.unwrap_or_default() })
}

fn gcs(bucket: &BucketName, options: &CloudOptions, traffic: &Arc<Traffic>) -> Result<Connection> {
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
    Ok(Connection { client: Arc::new(client), region: None, endpoint })
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

/// Rejects an invalid server address, if there is one.
///
/// # Errors
/// As [`address::check`].
fn check_address(address: Option<String>, origin: &str) -> Result<()> {
    address.map_or(Ok(()), |address| address::check(&address, origin))
}

fn azure(bucket: &BucketName, options: &CloudOptions, traffic: &Arc<Traffic>) -> Result<Connection> {
    let settings = &options.settings;
    let builder = MicrosoftAzureBuilder::new();
    let mut builder = configured(builder, "AZURE_", |builder, key, value| builder.with_config(key, value));
    if let Some(endpoint) = variable("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    builder = builder.with_container_name(&bucket.bucket);
    let connection = variable("AZURE_STORAGE_CONNECTION_STRING").unwrap_or_default();
    let of_connection = |name: &str| {
        let parts = connection.split(';').filter_map(|part| part.split_once('='));
        parts.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let account = bucket
        .account
        .clone()
        .or(settings.text("vfs.azure.storage_account_name").map(str::to_owned))
        .or_else(|| builder.get_config_value(&AzureConfigKey::AccountName))
        .or_else(|| variable("AZURE_STORAGE_ACCOUNT"))
        .or_else(|| of_connection("AccountName"));
    let endpoint = settings
        .text("vfs.azure.blob_endpoint")
        .map(|endpoint| with_scheme(endpoint, "https"))
        .or_else(|| variable("AZURE_BLOB_ENDPOINT"))
        .or_else(|| of_connection("BlobEndpoint"));
    let Some(account) = account else {
        return Err(Error::usage(format!(
            "{bucket}: the account is not known; name it with -o vfs.azure.storage_account_name=NAME or in \
             AZURE_STORAGE_ACCOUNT"
        )));
    };
    if !is_name(&account) {
        return Err(Error::usage(format!("the account of {bucket} has characters that no account has")));
    }
    builder = builder.with_account(&account);
    let mut transport = Transport::new(options.io_timeout, [None, None]);
    if let Some(endpoint) = endpoint {
        transport = transport.to(&endpoint);
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let key = settings.text("vfs.azure.storage_account_key").map(str::to_owned);
    if let Some(key) = key.or_else(|| variable("AZURE_STORAGE_KEY")).or_else(|| of_connection("AccountKey")) {
        builder = builder.with_access_key(key);
    }
    let token = settings.text("vfs.azure.storage_account_sas_token").or(settings.text("vfs.azure.storage_sas_token"));
    let token = token.map(str::to_owned).or_else(|| of_connection("SharedAccessSignature"));
    if let Some(token) = token {
        builder = builder.with_config(AzureConfigKey::SasKey, token.trim_start_matches('?'));
    }
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    for key in [AzureConfigKey::Endpoint, AzureConfigKey::MsiEndpoint, AzureConfigKey::AuthorityHost] {
        check_address(builder.get_config_value(&key), key.as_ref())?;
    }
    if let Some(tenant) = builder.get_config_value(&AzureConfigKey::AuthorityId) {
        let authority = builder.get_config_value(&AzureConfigKey::AuthorityHost);
        let authority = authority.as_deref().unwrap_or(AZURE_AUTHORITY);
        address::check(&format!("{authority}/{tenant}"), AzureConfigKey::AuthorityId.as_ref())?;
    }
    if variable(IDENTITY_HEADER_VARIABLE).is_some_and(|value| !is_sendable(&value)) {
        return Err(Error::key(format!("{IDENTITY_HEADER_VARIABLE} has characters that cannot be sent")));
    }
    let builder = builder
        .with_retry(no_retries())
        .with_client_options(transport.options())
        .with_http_connector(CountingConnector { transport, traffic: traffic.clone() });
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint).unwrap_or_default();
    let client = builder.build().map_err(|error| refused(bucket, &error))?;
    Ok(Connection { client: Arc::new(client), region: None, endpoint: format!("{endpoint} {account}") })
}

/// The client must not retry: tilefs retries itself, with a time limit, counters and log lines.
fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

/// Builds the proxy URL from the settings.
fn proxy(settings: &Settings) -> Option<String> {
    let host = settings.text("vfs.s3.proxy_host")?;
    let scheme = settings.text("vfs.s3.proxy_scheme").unwrap_or("http");
    let port = settings.number("vfs.s3.proxy_port").map_or(String::new(), |port| format!(":{port}"));
    let user = settings.text("vfs.s3.proxy_username").map(|user| {
        let password =
            settings.text("vfs.s3.proxy_password").map_or(String::new(), |text| format!(":{}", escaped(text)));
        format!("{}{password}@", escaped(user))
    });
    Some(format!("{scheme}://{}{host}{port}", user.unwrap_or_default()))
}

fn with_scheme(endpoint: &str, scheme: &str) -> String {
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("{scheme}://{endpoint}") }
}

fn refused(bucket: &BucketName, error: &object_store::Error) -> Error {
    Error::key(format!("{bucket} cannot be reached with these settings and credentials: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_credentials_are_escaped_in_its_url() {
        let mut settings = Settings::default();
        assert_eq!(proxy(&settings), None);
        for (name, value) in [("host", "proxy.example"), ("port", "3128"), ("username", "me@home")] {
            settings.set_typed(&format!("vfs.s3.proxy_{name}"), value).unwrap();
        }
        assert_eq!(proxy(&settings).as_deref(), Some("http://me%40home@proxy.example:3128"));
    }
}
