//! Requests to the buckets of object stores: each has a time limit, and is retried as long as that may help.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_storage::StoreKey;
use tokio::time::{sleep, timeout, timeout_at};

use super::connect::{BucketConnection, Client, connect};
use super::failure::{FailureKind, RequestFailure};
use super::runtime::IoThread;
use super::traffic::{Attempt, Traffic};
use super::waiters::{Silent, Waiters};
use super::window::{RequestOutcome, RequestWindow};
use crate::settings::CloudOptions;
use crate::uri::{self, BucketName};

/// Maximum number of concurrent requests to a bucket, unless set.
const REQUESTS: u64 = 64;

/// First and longest delay before a retry. Delays double each time and have random jitter.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// HTTP statuses of an overloaded store.
const BUSY: [u16; 2] = [429, 503];

/// Attempts to reach a bucket that has never answered: more likely a mistake than a transient failure.
const ATTEMPTS_TO_REACH: u32 = 4;

/// Attempts to find credentials for a bucket that has never answered.
const ATTEMPTS_TO_SIGN: u32 = 2;

/// Time limit for all requests of one operation, such as reading many ranges, as a multiple of `io_timeout`.
const OPERATION_TIME_FACTOR: u32 = 20;

/// The buckets, their connections, and the thread that requests run on.
///
/// Memory: the buffers of the connections, of which there are no more than concurrent requests.
pub struct Buckets {
    io: IoThread,
    options: CloudOptions,
    traffic: Arc<Traffic>,
    known: Mutex<HashMap<BucketName, Arc<Bucket>>>,
    /// Maximum number of concurrent requests per bucket.
    most_requests: usize,
}

/// State of one bucket. Each bucket has its own request window, so that a slow one does not delay others.
pub struct Bucket {
    pub name: BucketName,
    window: RequestWindow,
    connection: RwLock<Option<Arc<BucketConnection>>>,
    has_answered: AtomicBool,
    waiters: Waiters,
}

/// The location of an object or folder.
pub struct ObjectPlace {
    pub key: StoreKey,
    pub bucket: Arc<Bucket>,
    /// The path in the bucket, without a slash at either end.
    pub path: String,
}

/// The reason why an attempt failed.
pub enum AttemptError {
    /// An error of the store or the connection.
    Store(object_store::Error),
    /// The answer is not what was requested.
    Failure(RequestFailure),
    /// An error that a retry cannot change.
    Error(Error),
}

impl From<object_store::Error> for AttemptError {
    fn from(error: object_store::Error) -> Self {
        AttemptError::Store(error)
    }
}

impl Buckets {
    /// Makes no request.
    ///
    /// # Errors
    /// [`Error::Io`] if the thread cannot start.
    pub fn new(options: CloudOptions) -> Result<Self> {
        let settings = &options.settings;
        let configured = ["vfs.s3.max_parallel_ops", "vfs.gcs.max_parallel_ops", "vfs.azure.max_parallel_ops"];
        let configured = configured.iter().filter_map(|name| settings.number(name)).max();
        let most_requests = configured.unwrap_or(REQUESTS).clamp(1, 1024) as usize;
        Ok(Buckets { io: IoThread::start()?, traffic: Arc::default(), known: Mutex::default(), most_requests, options })
    }

    /// The time limit of a request with its retries.
    pub fn io_timeout(&self) -> Duration {
        self.options.io_timeout
    }

    /// Counts requests and bytes.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The maximum number of concurrent requests per bucket.
    pub fn most_requests(&self) -> usize {
        self.most_requests
    }

    /// Locates a key.
    pub fn place(&self, key: &StoreKey) -> Result<ObjectPlace> {
        let canonical = uri::canonical(key);
        let (name, path) =
            uri::split_uri(&canonical).ok_or_else(|| Error::missing("not a valid bucket name").in_file(key))?;
        let mut buckets = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(name).or_insert_with_key(|name| {
            let window = RequestWindow::new(self.most_requests);
            Arc::new(Bucket {
                name: name.clone(),
                window,
                connection: RwLock::default(),
                has_answered: AtomicBool::new(false),
                waiters: Waiters::default(),
            })
        });
        Ok(ObjectPlace { key: key.clone(), bucket: bucket.clone(), path: path.to_owned() })
    }

    /// Returns the client of a bucket, connecting on first use.
    pub fn connection(&self, bucket: &Bucket) -> Result<Arc<BucketConnection>> {
        if let Some(connection) = &*bucket.connection.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(connection.clone());
        }
        self.reconnect(bucket, None)
    }

    /// Creates a new client with current credentials, and for the region that the bucket is reported to be in.
    fn reconnect(&self, bucket: &Bucket, region: Option<&str>) -> Result<Arc<BucketConnection>> {
        let connection = Arc::new(connect(&bucket.name, &self.options, region, &self.traffic)?);
        *bucket.connection.write().unwrap_or_else(PoisonError::into_inner) = Some(connection.clone());
        Ok(connection)
    }

    /// Runs an operation on a bucket, up to its time limit. Fails early if the bucket is silent and too many threads
    /// already wait for it.
    pub fn wait<T>(&self, place: &ObjectPlace, operation: impl Future<Output = Result<T>>) -> Result<T> {
        let limit = self.options.io_timeout * OPERATION_TIME_FACTOR;
        let late = |why: String| Error::io(io::Error::new(io::ErrorKind::TimedOut, why)).in_file(&place.key);
        self.io.wait(async {
            match timeout(limit, place.bucket.waiters.unless_silent(operation)).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(Silent)) => {
                    Err(late(format!("{} does not answer, and many requests wait for it", place.bucket.name)))
                }
                Err(_) => Err(late(format!("it took longer than {} s in total", limit.as_secs()))),
            }
        })
    }

    /// Makes a request and retries it within its time limit as long as that may help.
    pub async fn request<T>(
        &self,
        place: &ObjectPlace,
        what: &dyn Display,
        mut attempt: impl AsyncFnMut(&dyn Client, Attempt) -> std::result::Result<T, AttemptError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let mut deadline = None;
        let (mut attempts, mut wait) = (0, RETRY_DELAYS.0);
        let mut reconnections = Reconnections::default();
        let bucket = &*place.bucket;
        loop {
            attempts += 1;
            let connection = self.connection(bucket).in_file(&place.key)?;
            let answer = Attempt::default();
            let in_flight = bucket.window.enter().await;
            // Start the clock only now: time spent waiting for other requests does not count.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.options.io_timeout);
            let outcome = timeout_at(deadline.into(), attempt(&*connection.client, answer.clone())).await;
            let answer = answer.answer();
            if answer.status.is_some() {
                bucket.has_answered.store(true, Ordering::Relaxed);
                bucket.waiters.note_answer();
            }
            let (failure, is_busy) = match outcome {
                Ok(Ok(result)) => {
                    in_flight.end(RequestOutcome::Answered);
                    return Ok(result);
                }
                Ok(Err(AttemptError::Error(error))) => return Err(error.in_file(&place.key)),
                Ok(Err(AttemptError::Failure(failure))) => (failure, false),
                Ok(Err(AttemptError::Store(error))) => {
                    let is_busy = answer.status.is_some_and(|status| BUSY.contains(&status));
                    (RequestFailure::of(&error, answer), is_busy)
                }
                Err(_) if !answer.was_sent => (RequestFailure::transient("no credentials came in time"), false),
                Err(_) => (RequestFailure::transient("no answer in time"), true),
            };
            in_flight.end(if is_busy { RequestOutcome::Throttled } else { RequestOutcome::Other });
            let retry = self.retry(bucket, &connection, &failure, &mut reconnections).in_file(&place.key)?;
            let pause = wait.mul_f64(0.5 + 0.5 * chance());
            match retry {
                Retry::AtOnce => continue,
                Retry::UpTo(most) if attempts < most && Instant::now() + pause < deadline => {}
                _ => return Err(failure.error(&bucket.name, &place.key, what, attempts, begin.elapsed())),
            }
            log::info!("{}, {what}: {}; once more in {} ms", place.key, failure.summary(), pause.as_millis());
            self.traffic.add_retry();
            sleep(pause).await;
            wait = (wait * 2).min(RETRY_DELAYS.1);
        }
    }

    /// Returns whether another attempt may help after a failure, and reconnects first if that may.
    fn retry(
        &self,
        bucket: &Bucket,
        connection: &BucketConnection,
        failure: &RequestFailure,
        reconnections: &mut Reconnections,
    ) -> Result<Retry> {
        let has_answered = bucket.has_answered.load(Ordering::Relaxed);
        Ok(match &failure.kind {
            FailureKind::Unreachable if !has_answered => Retry::UpTo(ATTEMPTS_TO_REACH),
            FailureKind::NoCredentials if !has_answered => Retry::UpTo(ATTEMPTS_TO_SIGN),
            FailureKind::Transient | FailureKind::Unreachable | FailureKind::NoCredentials => Retry::UpTo(u32::MAX),
            FailureKind::Expired if !reconnections.was_renewed => {
                reconnections.was_renewed = true;
                self.reconnect(bucket, None)?;
                Retry::UpTo(u32::MAX)
            }
            FailureKind::OtherRegion(Some(region)) if !reconnections.has_moved && connection.may_move_to(region) => {
                reconnections.has_moved = true;
                self.reconnect(bucket, Some(region))?;
                log::info!("{} is in the region {region}", bucket.name);
                Retry::AtOnce
            }
            _ => Retry::Never,
        })
    }
}

/// How often a request is made again after a failure.
enum Retry {
    /// At once, on another connection.
    AtOnce,
    /// After a pause, up to this number of attempts.
    UpTo(u32),
    /// Not again.
    Never,
}

/// The new connections that a request has led to, each at most once.
#[derive(Default)]
struct Reconnections {
    /// With current credentials.
    was_renewed: bool,
    /// To another region.
    has_moved: bool,
}

impl BucketConnection {
    /// Returns whether connecting to another region may help: none was configured, and `region` is a valid name.
    fn may_move_to(&self, region: &str) -> bool {
        self.region.as_ref().is_some_and(|(current, was_said)| !was_said && current != region) && uri::is_name(region)
    }
}

/// Returns a random number from 0 to 1 as jitter, so that requests that failed together are not retried together.
fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
