//! How requests travel: the HTTP client of all object stores, and of those who give credentials for them.
//!
//! A client stays with the server that it was given. It follows no redirect, which could lead a signed request or its
//! session token elsewhere, and sends no `Referer`, which would tell the address of a request with all that it is signed
//! with. Texts that are kept in memory whole, such as errors and listings, are read up to a limit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::client::{ClientConfigKey, HttpClient, HttpError, HttpErrorKind, HttpResponseBody};
use object_store::{ClientOptions, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Proxy};

use tilefs_format::error::{Error, Result};

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for a connection to the service that gives a machine its credentials, which is there at once or not.
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long nothing may arrive before a request is given up and made again; never more than a part of the whole time.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// So many stalled attempts fit into the time that a request may take.
const STALLS: u32 = 4;

/// What the clients of one bucket have in common.
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
    /// For requests that may take `io_timeout` in all. Settings may say the times for connecting and without a byte, in
    /// milliseconds.
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

    /// The same, for an endpoint: without TLS where its address says so.
    pub fn to(mut self, endpoint: &str) -> Self {
        self.allows_http = endpoint.starts_with("http://");
        self
    }

    /// The same, through a proxy.
    pub fn through(mut self, proxy: Option<String>) -> Self {
        self.proxy = proxy;
        self
    }

    /// The same, whoever the server says that it is.
    pub fn with_invalid_certificates(mut self) -> Self {
        self.accepts_invalid_certificates = true;
        self
    }

    /// The same, which trusts the certificates of a file, too.
    ///
    /// # Errors
    /// [`Error::Usage`] where the file cannot be read or holds no certificate.
    pub fn with_certificates(mut self, file: &Path) -> Result<Self> {
        let failed = |reason: String| Error::usage(format!("the certificates in {}: {reason}", file.display()));
        let text = fs::read(file).map_err(|error| failed(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&text).map_err(|error| failed(error.to_string()))?;
        if certificates.is_empty() {
            return Err(failed("there is none, in the form of PEM".to_owned()));
        }
        self.certificates.extend(certificates);
        Ok(self)
    }

    /// The same, with these headers in every request.
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers = headers;
        self
    }

    /// What object stores are told of this.
    pub fn options(&self) -> ClientOptions {
        ClientOptions::new().with_allow_http(self.allows_http).with_connect_timeout(self.connect_timeout)
    }

    /// A client. `options` are [`Transport::options`], or what an object store made of them for the service that gives a
    /// machine its credentials.
    ///
    /// # Errors
    /// Where the proxy's address or a certificate cannot be used.
    pub fn client(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let is_own = |key: ClientConfigKey| options.get_config_value(&key) == self.options().get_config_value(&key);
        let connect_timeout = match is_own(ClientConfigKey::ConnectTimeout) {
            true => self.connect_timeout,
            false => METADATA_CONNECT_TIMEOUT,
        };
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let mut builder = faithful(Client::builder())
            .default_headers(self.headers.clone())
            .tls_certs_merge(self.certificates.iter().cloned())
            .tls_danger_accept_invalid_certs(self.accepts_invalid_certificates)
            // A large answer may take long, as long as it goes on.
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

/// A client that stays with the server that it was given and says nothing of where it was before.
pub fn faithful(builder: ClientBuilder) -> ClientBuilder {
    builder.user_agent(concat!("tilefs/", env!("CARGO_PKG_VERSION"))).redirect(Policy::none()).referer(false)
}

/// The first bytes of a body, `most` at most, and whether that is all of it. The rest is not read.
///
/// # Errors
/// Where the connection breaks before.
pub async fn first_bytes(body: HttpResponseBody, most: usize) -> std::result::Result<(Vec<u8>, bool), HttpError> {
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

/// All bytes of a body.
///
/// # Errors
/// Where the connection breaks before, and where there are more than `most`.
pub async fn whole(body: HttpResponseBody, most: usize) -> std::result::Result<Vec<u8>, HttpError> {
    match first_bytes(body, most).await? {
        (bytes, true) => Ok(bytes),
        (_, false) => {
            let error = std::io::Error::other(format!("the answer is longer than {most} bytes"));
            Err(HttpError::new(HttpErrorKind::Decode, error))
        }
    }
}
