//! Clients of containers in Azure.

use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use tilefs_base::error::{Error, Result};

use super::address;
use super::connection::{BucketConnection, check_address, no_retries, refused, with_scheme};
use super::credentials::is_sendable;
use super::environment::{configured, variable};
use crate::settings::{CloudOptions, Settings};
use crate::traffic::{CountingConnector, Traffic};
use crate::transport::Transport;
use crate::uri::{BucketName, is_name};

/// Azure's default authority host.
const AZURE_AUTHORITY: &str = "https://login.microsoftonline.com";

/// Variable with the secret that proves to Azure's identity service that the request comes from its machine.
const IDENTITY_HEADER_VARIABLE: &str = "IDENTITY_HEADER";

/// Variable with an account, its endpoint and its keys, separated by semicolons.
const CONNECTION_STRING_VARIABLE: &str = "AZURE_STORAGE_CONNECTION_STRING";

/// Creates a client of a container; see [`super::connect`].
pub fn connect(bucket: &BucketName, options: &CloudOptions, traffic: &Arc<Traffic>) -> Result<BucketConnection> {
    let settings = &options.settings;
    let builder = MicrosoftAzureBuilder::new();
    let mut builder = configured(builder, "AZURE_", |builder, key, value| builder.with_config(key, value));
    if let Some(endpoint) = variable("IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    builder = builder.with_container_name(&bucket.bucket);
    let account = account_of(bucket, settings, &builder)?;
    builder = builder.with_account(&account);
    let mut transport = Transport::new(options.io_timeout, [None, None]);
    let endpoint = settings
        .text("vfs.azure.blob_endpoint")
        .map(|endpoint| with_scheme(endpoint, "https"))
        .or_else(|| variable("AZURE_BLOB_ENDPOINT"))
        .or_else(|| in_connection_string("BlobEndpoint"));
    if let Some(endpoint) = endpoint {
        transport = transport.to(&endpoint);
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    builder = sign(builder, settings);
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    }
    check_servers(&builder)?;
    let builder = builder
        .with_retry(no_retries())
        .with_client_options(transport.options())
        .with_http_connector(CountingConnector { transport, traffic: traffic.clone() });
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint).unwrap_or_default();
    let client = builder.build().map_err(|error| refused(bucket, &error))?;
    Ok(BucketConnection { client: Arc::new(client), region: None, endpoint: format!("{endpoint} {account}") })
}

/// Returns a part of the connection string in the environment.
fn in_connection_string(name: &str) -> Option<String> {
    let connection = variable(CONNECTION_STRING_VARIABLE).unwrap_or_default();
    let mut parts = connection.split(';').filter_map(|part| part.split_once('='));
    parts.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

/// Returns the account that owns a container.
///
/// # Errors
/// [`Error::Usage`] if none is named, or for a name that no account has.
fn account_of(bucket: &BucketName, settings: &Settings, builder: &MicrosoftAzureBuilder) -> Result<String> {
    let account = bucket
        .account
        .clone()
        .or(settings.text("vfs.azure.storage_account_name").map(str::to_owned))
        .or_else(|| builder.get_config_value(&AzureConfigKey::AccountName))
        .or_else(|| variable("AZURE_STORAGE_ACCOUNT"))
        .or_else(|| in_connection_string("AccountName"));
    let Some(account) = account else {
        return Err(Error::usage(format!(
            "{bucket}: the account is not known; name it with -o vfs.azure.storage_account_name=NAME or in \
             AZURE_STORAGE_ACCOUNT"
        )));
    };
    if !is_name(&account) {
        return Err(Error::usage(format!("the account of {bucket} has characters that no account has")));
    }
    Ok(account)
}

/// Adds the key and the token from settings and environment.
fn sign(mut builder: MicrosoftAzureBuilder, settings: &Settings) -> MicrosoftAzureBuilder {
    let key = settings.text("vfs.azure.storage_account_key").map(str::to_owned);
    if let Some(key) = key.or_else(|| variable("AZURE_STORAGE_KEY")).or_else(|| in_connection_string("AccountKey")) {
        builder = builder.with_access_key(key);
    }
    let token = settings.text("vfs.azure.storage_account_sas_token").or(settings.text("vfs.azure.storage_sas_token"));
    let token = token.map(str::to_owned).or_else(|| in_connection_string("SharedAccessSignature"));
    if let Some(token) = token {
        builder = builder.with_config(AzureConfigKey::SasKey, token.trim_start_matches('?'));
    }
    builder
}

/// Rejects invalid addresses of servers, and a header for one of them that cannot be sent.
///
/// # Errors
/// As [`address::check`]; [`Error::Key`] for the header.
fn check_servers(builder: &MicrosoftAzureBuilder) -> Result<()> {
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
    Ok(())
}
