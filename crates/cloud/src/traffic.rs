//! Counts requests to object stores, their outcomes and latencies.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::page;
use super::transport::{Transport, read_up_to, whole};

/// Maximum number of bytes read of an error's text.
const MOST_ERROR_TEXT: usize = 4 << 10;

/// Maximum size of a listing page: a thousand names of up to 1 KiB, each character of which may be escaped.
const MOST_LISTING: usize = 16 << 20;

/// Maximum size of an answer with credentials.
const MOST_CREDENTIALS: usize = 256 << 10;

/// Divisor for the weight of a new measurement in the moving mean of the latencies.
const LATENCY_MEMORY: u64 = 8;

/// Counters since the start. Memory: a few numbers.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    listings: AtomicU64,
    bytes: AtomicU64,
    tried_again: AtomicU64,
    slowest_us: AtomicU64,
    /// Moving mean of the time to first byte; 0 before the first answer.
    latency_us: AtomicU64,
}

impl Traffic {
    /// Returns the mean time to first byte; `None` before the first answer.
    pub fn latency(&self) -> Option<Duration> {
        match self.latency_us.load(Ordering::Relaxed) {
            0 => None,
            microseconds => Some(Duration::from_micros(microseconds)),
        }
    }

    /// Counts received bytes.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a listing.
    pub fn add_listing(&self) {
        self.listings.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a retry.
    pub fn add_retry(&self) {
        self.tried_again.fetch_add(1, Ordering::Relaxed);
    }

    fn add_answer(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        self.slowest_us.fetch_max(took, Ordering::Relaxed);
        let blend =
            |mean: u64| Some(if mean == 0 { took } else { mean - mean / LATENCY_MEMORY + took / LATENCY_MEMORY });
        let _ = self.latency_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, blend);
    }
}

/// One line for people.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let milliseconds = |number: &AtomicU64| count(number) as f64 / 1000.0;
        write!(
            f,
            "{} requests ({} listings), {} bytes, {} tried again; answers began after {:.1} ms on average, {:.1} ms at \
             most",
            count(&self.requests),
            count(&self.listings),
            count(&self.bytes),
            count(&self.tried_again),
            milliseconds(&self.latency_us),
            milliseconds(&self.slowest_us),
        )
    }
}

/// Travels with a request as an extension and receives the outcome of the attempt.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    answer: Arc<Mutex<ServerAnswer>>,
    is_listing: bool,
}

/// Facts about a server's answer.
#[derive(Debug, Clone, Default)]
pub struct ServerAnswer {
    /// HTTP status; `None` without an answer.
    pub status: Option<u16>,
    /// Error code of the store, such as `SlowDown`.
    pub code: Option<String>,
    /// Region of the bucket, if the store reports it.
    pub region: Option<String>,
    /// Whether a request was sent at all; without credentials it is not.
    pub was_sent: bool,
    /// Unusable keys that were removed from a listing.
    pub removed_keys: Vec<String>,
}

impl Attempt {
    /// Marks the attempt as one for a listing page.
    pub fn of_listing(self) -> Self {
        Attempt { is_listing: true, ..self }
    }

    pub fn answer(&self) -> ServerAnswer {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ServerAnswer> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates HTTP clients whose requests are counted.
#[derive(Debug)]
pub struct CountingConnector {
    pub transport: Transport,
    pub traffic: Arc<Traffic>,
}

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = self.transport.client(options)?;
        Ok(HttpClient::new(CountingService { inner, traffic: self.traffic.clone() }))
    }
}

#[derive(Debug)]
struct CountingService {
    inner: HttpClient,
    traffic: Arc<Traffic>,
}

#[async_trait]
impl HttpService for CountingService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Some(attempt) = request.extensions().get::<Attempt>().cloned() else {
            // A request for credentials.
            let (parts, body) = self.inner.execute(request).await?.into_parts();
            return Ok(HttpResponse::from_parts(parts, body_of(whole(body, MOST_CREDENTIALS).await?)));
        };
        attempt.lock().was_sent = true;
        self.traffic.requests.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let response = self.inner.execute(request).await?;
        self.traffic.add_answer(begin.elapsed());
        let status = response.status();
        {
            let mut answer = attempt.lock();
            answer.status = Some(status.as_u16());
            let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
            answer.region = header("x-amz-bucket-region");
            answer.code = header("x-ms-error-code");
        }
        if status.is_success() && !attempt.is_listing {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        if status.is_success() {
            let body = whole(body, MOST_LISTING).await?;
            page::check_page(&body)
                .map_err(|reason| HttpError::new(HttpErrorKind::Decode, io::Error::other(reason)))?;
            let (body, removed_keys) = page::remove_unusable_keys(body);
            attempt.lock().removed_keys = removed_keys;
            return Ok(HttpResponse::from_parts(parts, body_of(body)));
        }
        let (body, _) = read_up_to(body, MOST_ERROR_TEXT).await?;
        let text = String::from_utf8_lossy(&body);
        {
            let mut answer = attempt.lock();
            answer.code = answer.code.take().or_else(|| element(&text, "Code"));
            answer.region = answer.region.take().or_else(|| element(&text, "Region"));
        }
        Ok(HttpResponse::from_parts(parts, body_of(body)))
    }
}

fn body_of(bytes: Vec<u8>) -> HttpResponseBody {
    HttpResponseBody::from(bytes)
}

/// Returns the text of an XML element without children.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once('<')?;
    let is_plain = text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    (is_plain && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_regions_are_parsed_from_errors() {
        let text = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Region>eu-west-1</Region></Error>";
        assert_eq!(element(text, "Code").as_deref(), Some("SlowDown"));
        assert_eq!(element(text, "Region").as_deref(), Some("eu-west-1"));
        assert_eq!(element(text, "Message"), None);
        assert_eq!(element("<Code>\u{1b}[2J</Code>", "Code"), None);
    }

    #[test]
    fn the_mean_follows_the_measurements() {
        let traffic = Traffic::default();
        assert_eq!(traffic.latency(), None);
        traffic.add_answer(Duration::from_millis(20));
        assert_eq!(traffic.latency(), Some(Duration::from_millis(20)));
        (0..100).for_each(|_| traffic.add_answer(Duration::from_millis(80)));
        let mean = traffic.latency().unwrap();
        assert!(mean > Duration::from_millis(75) && mean <= Duration::from_millis(80), "{mean:?}");
        assert!(traffic.to_string().ends_with("80.0 ms at most"), "{traffic}");
    }
}
