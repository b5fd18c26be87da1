//! Clients of buckets in S3, and in stores with its interface.

use std::path::Path;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use tilefs_base::error::{Error, Result};

use super::address;
use super::address::escaped;
use super::connection::{BucketConnection, check_address, no_retries, refused, with_scheme};
use super::credentials::is_sendable;
use super::environment::{configured, variable};
use super::profile::{DEFAULT_REGION, Profile};
use crate::settings::{CloudOptions, Settings};
use crate::traffic::{CountingConnector, Traffic};
use crate::transport::Transport;
use crate::uri::{BucketName, is_name};

/// Server of container credentials; the environment has the path.
const CONTAINER_CREDENTIALS_SERVER: &str = "http://169.254.170.2";

/// Creates a client of a bucket; see [`super::connect`].
pub fn connect(
    bucket: &BucketName,
    options: &CloudOptions,
    region: Option<&str>,
    traffic: &Arc<Traffic>,
) -> Result<BucketConnection> {
    let settings = &options.settings;
    let is_anonymous = options.anonymous || settings.flag("vfs.s3.no_sign_request") == Some(true);
    let builder = AmazonS3Builder::new();
    let builder = configured(builder, "AWS_", |builder, key, value| builder.with_config(key, value));
    let profile = Profile::load()?;
    let builder = sign(builder.with_bucket_name(&bucket.bucket), bucket, settings, &profile, is_anonymous)?;
    let (region, is_configured) = region_of(bucket, region, settings, &builder, &profile)?;
    let endpoint = endpoint_of(settings, &builder, &profile);
    let mut transport = transport_of(options)?;
    if let Some(endpoint) = &endpoint {
        transport = transport.to(endpoint);
    }
    let mut builder = address_bucket(builder, bucket, endpoint.as_deref(), settings)?;
    check_servers(&builder)?;
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
    let region = Some((region, is_configured));
    Ok(BucketConnection { client: Arc::new(client), region, endpoint: endpoint.unwrap_or_default() })
}

/// Adds the credentials. Settings take precedence over the environment, which takes precedence over the profile.
///
/// # Errors
/// [`Error::Key`] for keys that cannot be sent; those of the profile.
fn sign(
    mut builder: AmazonS3Builder,
    bucket: &BucketName,
    settings: &Settings,
    profile: &Profile,
    is_anonymous: bool,
) -> Result<AmazonS3Builder> {
    let has = |key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
    let has_keys = has(AmazonS3ConfigKey::AccessKeyId)
        || (has(AmazonS3ConfigKey::WebIdentityTokenFile) && has(AmazonS3ConfigKey::RoleArn));
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
    } else if !is_anonymous && !has_keys {
        builder = profile.sign(builder)?;
    }
    let sent = [AmazonS3ConfigKey::AccessKeyId, AmazonS3ConfigKey::SecretAccessKey, AmazonS3ConfigKey::Token];
    if sent.iter().filter_map(|key| builder.get_config_value(key)).any(|value| !is_sendable(&value)) {
        return Err(Error::key(format!(
            "the keys for {bucket} have characters that no key has, such as an end of line"
        )));
    }
    Ok(builder)
}

/// Returns the region, and whether the store reported it or it was configured.
///
/// # Errors
/// [`Error::Usage`] for a name that no region has.
fn region_of(
    bucket: &BucketName,
    reported: Option<&str>,
    settings: &Settings,
    builder: &AmazonS3Builder,
    profile: &Profile,
) -> Result<(String, bool)> {
    let configured = reported
        .or(settings.text("vfs.s3.region"))
        .map(str::to_owned)
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Region))
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or_else(|| profile.text("region"));
    let (region, is_configured) = configured.map_or((DEFAULT_REGION.to_owned(), false), |region| (region, true));
    if !is_name(&region) {
        return Err(Error::usage(format!("the region of {bucket} has characters that no region has")));
    }
    Ok((region, is_configured))
}

/// Returns the address of the store; `None` for Amazon's own.
fn endpoint_of(settings: &Settings, builder: &AmazonS3Builder, profile: &Profile) -> Option<String> {
    settings
        .text("vfs.s3.endpoint_override")
        .map(|endpoint| with_scheme(endpoint, settings.text("vfs.s3.scheme").unwrap_or("https")))
        .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
        .or_else(|| variable("AWS_ENDPOINT_URL"))
        .or_else(|| profile.text("endpoint_url"))
        .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint))
}

/// Returns how to send requests: timeouts, certificates and the proxy.
///
/// # Errors
/// If the file of certificates cannot be used.
fn transport_of(options: &CloudOptions) -> Result<Transport> {
    let settings = &options.settings;
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
    Ok(transport.through(proxy(settings)))
}

/// Has requests name the bucket in the host or in the path.
///
/// # Errors
/// As [`address::check`].
fn address_bucket(
    builder: AmazonS3Builder,
    bucket: &BucketName,
    endpoint: Option<&str>,
    settings: &Settings,
) -> Result<AmazonS3Builder> {
    let virtual_addressing = settings.flag("vfs.s3.use_virtual_addressing");
    let Some(endpoint) = endpoint else {
        // S3's wildcard certificates do not cover names with dots.
        let is_virtual = virtual_addressing.unwrap_or(true) && !bucket.bucket.contains('.');
        if is_virtual {
            address::check(&format!("https://{}.s3.amazonaws.com", bucket.bucket), &bucket.to_string())?;
        }
        return Ok(builder.with_virtual_hosted_style_request(is_virtual));
    };
    let is_virtual = virtual_addressing == Some(true);
    let endpoint = match (is_virtual, endpoint.split_once("://")) {
        (true, Some((scheme, host))) => format!("{scheme}://{}.{host}", bucket.bucket),
        _ => endpoint.to_owned(),
    };
    address::check(&endpoint, &format!("the endpoint of {bucket}"))?;
    Ok(builder.with_endpoint(endpoint.trim_end_matches('/')).with_virtual_hosted_style_request(is_virtual))
}

/// Rejects invalid addresses of servers of credentials.
///
/// # Errors
/// As [`address::check`].
fn check_servers(builder: &AmazonS3Builder) -> Result<()> {
    for key in [
        AmazonS3ConfigKey::StsEndpoint,
        AmazonS3ConfigKey::MetadataEndpoint,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ] {
        check_address(builder.get_config_value(&key), key.as_ref())?;
    }
    let key = AmazonS3ConfigKey::ContainerCredentialsRelativeUri;
    let path = builder.get_config_value(&key);
    check_address(path.map(|path| format!("{CONTAINER_CREDENTIALS_SERVER}{path}")), key.as_ref())
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
