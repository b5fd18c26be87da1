//! The HTTP client for object stores and credential services.
//!
//! A client talks only to the server it was made for. It follows no redirect, which could lead a signed request or its
//! session token elsewhere, and sends no `Referer`, which would leak the signed address. Bodies that are held in memory
//! whole, such as errors and listings, are read up to a limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::client::{ClientConfigKey, HttpClient, HttpError, HttpErrorKind, HttpResponseBody};
use object_store::{ClientOptions, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Proxy};
use tilefs_base::error::{Error, Result};

/// Default connection timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connection timeout of the machine's metadata service, which answers at once or does not exist.
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Default time without a byte before a request is aborted and retried; at most `io_timeout` / [`STALLS`].
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// A file of certificates has some hundred kilobytes; anything larger than this is something else.
const MOST_CERTIFICATES: u64 = 16 << 20;

/// Number of stalled attempts that fit into the time limit of a request.
const STALLS: u32 = 4;

/// Configuration shared by the clients of one bucket.
#[derive(Debug, Clone)]
pub struct Transport {
    connect_timeout: Duration,
    stall_timeout: Duration,
    allows_http: bool,
    accepts_invalid_certificates: bool,
    certificates: Vec<Certificate>,
    proxy: Option<String>,
    headers: HeaderMap,
}

impl Transport {
    /// Creates a transport for requests with a total limit of `io_timeout`. The connection and stall timeouts may be
    /// given in milliseconds.
    pub fn new(io_timeout: Duration, [connecting, stalled]: [Option<u64>; 2]) -> Self {
        let most = io_timeout / STALLS;
        let time = |said: Option<u64>, usual: Duration| said.map_or(usual.min(most), Duration::from_millis);
        Transport {
            connect_timeout: time(connecting, CONNECT_TIMEOUT),
            stall_timeout: time(stalled, STALL_TIMEOUT),
            allows_http: false,
            accepts_invalid_certificates: false,
            certificates: Vec::new(),
            proxy: None,
            headers: HeaderMap::new(),
        }
    }

    /// Sets the endpoint; plain HTTP is allowed only if its address says so.
    pub fn to(mut self, endpoint: &str) -> Self {
        self.allows_http = endpoint.starts_with("http://");
        self
    }

    /// Sets the proxy.
    pub fn through(mut self, proxy: Option<String>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Accepts any server certificate.
    pub fn with_invalid_certificates(mut self) -> Self {
        self.accepts_invalid_certificates = true;
        self
    }

    /// Adds the certificates of a PEM file to the trusted ones.
    ///
    /// # Errors
    /// [`Error::Usage`] if the file cannot be read or holds no certificate.
    pub fn with_certificates(mut self, file: &Path) -> Result<Self> {
        let failed = |reason: String| Error::usage(format!("the certificates in {}: {reason}", file.display()));
        let mut text = Vec::new();
        let file = File::open(file).map_err(|error| failed(error.to_string()))?;
        file.take(MOST_CERTIFICATES + 1).read_to_end(&mut text).map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > MOST_CERTIFICATES {
            return Err(failed(format!("more than {MOST_CERTIFICATES} bytes")));
        }
        let certificates = Certificate::from_pem_bundle(&text).map_err(|error| failed(error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("there is none in PEM format".to_owned()));
        }
        self.certificates.extend(certificates);
        Ok(self)
    }

    /// Sends these headers with every request.
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// Returns the options that object store clients need to know.
    pub fn options(&self) -> ClientOptions {
        ClientOptions::new().with_allow_http(self.allows_http).with_connect_timeout(self.connect_timeout)
    }

    /// Creates a client. `options` are [`Transport::options`], or what an object store derived from them for the
    /// metadata service of a machine.
    ///
    /// # Errors
    /// If the proxy address or a certificate is unusable.
    pub fn client(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let is_own = |key: ClientConfigKey| options.get_config_value(&key) == self.options().get_config_value(&key);
        let connect_timeout = match is_own(ClientConfigKey::ConnectTimeout) {
            true => self.connect_timeout,
            false => METADATA_CONNECT_TIMEOUT,
        };
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let mut builder = direct_client(Client::builder())
            .default_headers(self.headers.clone())
            .tls_certs_merge(self.certificates.iter().cloned())
            .tls_danger_accept_invalid_certs(self.accepts_invalid_certificates)
            // A large answer may take long as long as data arrives.
            .read_timeout(self.stall_timeout)
            .connect_timeout(connect_timeout)
            .https_only(!allows_http);
        let failed = |error: reqwest::Error| object_store::Error::Generic {
            store: "HTTP client",
            source: Box::new(error.without_url()),
        };
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(Proxy::all(proxy).map_err(failed)?);
        }
        Ok(HttpClient::new(builder.build().map_err(failed)?))
    }
}

/// Configures a client that follows no redirect and sends no referrer.
pub fn direct_client(builder: ClientBuilder) -> ClientBuilder {
    builder.user_agent(concat!("tilefs/", env!("CARGO_PKG_VERSION"))).redirect(Policy::none()).referer(false)
}

/// Reads up to `most` bytes of a body; also returns whether that is all of it. The rest is not read.
///
/// # Errors
/// If the connection breaks first.
pub async fn read_up_to(body: HttpResponseBody, most: usize) -> std::result::Result<(Vec<u8>, bool), HttpError> {
    let (mut bytes, mut parts) = (Vec::new(), body.bytes_stream());
    while let Some(part) = parts.try_next().await? {
        let room = most - bytes.len();
        bytes.extend_from_slice(&part[..part.len().min(room)]);
        if part.len() > room {
            return Ok((bytes, false));
        }
    }
    Ok((bytes, true))
}

/// Reads a whole body.
///
/// # Errors
/// If the connection breaks first, or the body is longer than `most`.
pub async fn whole(body: HttpResponseBody, most: usize) -> std::result::Result<Vec<u8>, HttpError> {
    match read_up_to(body, most).await? {
        (bytes, true) => Ok(bytes),
        (_, false) => {
            let error = std::io::Error::other(format!("the answer is longer than {most} bytes"));
            Err(HttpError::new(HttpErrorKind::Decode, error))
        }
    }
}
