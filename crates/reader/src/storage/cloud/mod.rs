//! Storage in S3, Google Cloud Storage and Azure. Requests run on a small runtime of their own (`runtime`), are
//! counted (`traffic`) and retried if that may help (`failure`). `connect` and `profile` find the credentials.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{Extensions, GetOptions, GetRange, GetResult};
use tokio::time::{sleep, timeout, timeout_at};

mod address;
mod connect;
mod credentials;
mod disk_cache;
mod environment;
mod failure;
mod listing;
mod page;
mod pins;
mod process;
mod profile;
mod progress;
mod runtime;
mod scatter;
mod traffic;
mod transport;
mod waiters;
mod window;

use tilefs_format::error::{Error, Locate, Result};

use super::ranges::{Coalescing, ReadRange, coalesce, split};
use super::settings::CloudOptions;
use super::uri::{self, BucketName, Provider};
use super::{Listed, ListedObject, Storage, StoreKey, past_end};
use crate::threads::LogInterval;
use connect::{Client, Connection, connect};
use disk_cache::{BLOCK, DiskCache, ObjectVersion, block_length};
use failure::{Failure, Kind};
use listing::{Listing, Page, Span};
use pins::{Pin, Pins};
use runtime::IoThread;
use scatter::Scatter;
use traffic::{Attempt, Traffic};
use waiters::{Silent, Waiters};
use window::{Outcome, Window};

/// Maximum number of concurrent requests to a bucket, unless set.
const REQUESTS: u64 = 64;

/// Maximum size of one request: larger ranges are split into concurrent requests.
const MOST_BYTES: u64 = 2 << 20;

/// The smallest and largest gap that is read rather than skipped by a separate request.
const GAPS: (u64, u64) = (64 << 10, 1 << 20);

/// Assumed throughput of a connection in bytes per millisecond, to compute the largest gap that costs less than a round
/// trip.
const BYTES_PER_MS: u64 = 32 << 10;

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

/// Maximum number of objects per listing request; stores return no more in one answer.
const LISTED_AT_ONCE: usize = 1000;

/// Maximum number of concurrent requests of one listing.
const ANSWERS_AT_ONCE: usize = 32;

/// Object stores, with objects named by URI. An object that was listed or read is pinned: if it is replaced, reading it
/// is an error.
///
/// Memory: some hundred bytes per listed object, and the buffers of the connections, of which there are no more than
/// concurrent requests.
pub struct ObjectStorage {
    io: IoThread,
    options: CloudOptions,
    traffic: Arc<Traffic>,
    buckets: Mutex<HashMap<BucketName, Arc<Bucket>>>,
    pins: Pins,
    /// Maximum number of concurrent requests per bucket.
    most_requests: usize,
    disk_cache: Option<DiskCache>,
}

/// State of one bucket. Each bucket has its own request window, so that a slow one does not delay others.
struct Bucket {
    name: BucketName,
    window: Window,
    connection: RwLock<Option<Arc<Connection>>>,
    has_answered: AtomicBool,
    waiters: Waiters,
}

/// The location of an object or folder.
struct Place {
    key: StoreKey,
    bucket: Arc<Bucket>,
    /// The path in the bucket, without a slash at either end.
    path: String,
}

/// The reason why an attempt failed.
enum AttemptError {
    /// An error of the store or the connection.
    Store(object_store::Error),
    /// The answer is not what was requested.
    Failure(Failure),
    /// An error that a retry cannot change.
    Error(Error),
}

impl From<object_store::Error> for AttemptError {
    fn from(error: object_store::Error) -> Self {
        AttemptError::Store(error)
    }
}

impl ObjectStorage {
    /// Creates the storage without making a request.
    ///
    /// # Errors
    /// [`Error::Io`] if its thread cannot start, [`Error::Usage`] if the disk cache cannot be opened.
    pub fn new(options: CloudOptions) -> Result<Self> {
        let settings = &options.settings;
        let configured = ["vfs.s3.max_parallel_ops", "vfs.gcs.max_parallel_ops", "vfs.azure.max_parallel_ops"];
        let configured = configured.iter().filter_map(|name| settings.number(name)).max();
        let most = configured.unwrap_or(REQUESTS).clamp(1, 1024) as usize;
        let disk_cache = match &options.disk_cache {
            Some((folder, most)) => Some(DiskCache::open(folder, *most)?),
            None => None,
        };
        Ok(ObjectStorage {
            io: IoThread::start()?,
            traffic: Arc::default(),
            buckets: Mutex::default(),
            pins: Pins::default(),
            most_requests: most,
            disk_cache,
            options,
        })
    }

    /// Locates a key.
    fn place(&self, key: &StoreKey) -> Result<Place> {
        let canonical = uri::canonical(key);
        let (name, path) =
            uri::split_uri(&canonical).ok_or_else(|| Error::missing("not a valid bucket name").in_file(key))?;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(name).or_insert_with_key(|name| {
            let window = Window::new(self.most_requests);
            Arc::new(Bucket {
                name: name.clone(),
                window,
                connection: RwLock::default(),
                has_answered: AtomicBool::new(false),
                waiters: Waiters::default(),
            })
        });
        Ok(Place { key: key.clone(), bucket: bucket.clone(), path: path.to_owned() })
    }

    /// Returns the client of a bucket, connecting on first use.
    fn connection(&self, bucket: &Bucket) -> Result<Arc<Connection>> {
        if let Some(connection) = &*bucket.connection.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(connection.clone());
        }
        self.reconnect(bucket, None)
    }

    /// Creates a new client with current credentials, and for the region that the bucket is reported to be in.
    fn reconnect(&self, bucket: &Bucket, region: Option<&str>) -> Result<Arc<Connection>> {
        let connection = Arc::new(connect(&bucket.name, &self.options, region, &self.traffic)?);
        *bucket.connection.write().unwrap_or_else(PoisonError::into_inner) = Some(connection.clone());
        Ok(connection)
    }

    /// Runs an operation on a bucket, up to its time limit. Fails early if the bucket is silent and too many threads
    /// already wait for it.
    fn wait<T>(&self, place: &Place, operation: impl Future<Output = Result<T>>) -> Result<T> {
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
    async fn request<T>(
        &self,
        place: &Place,
        what: &dyn Display,
        mut attempt: impl AsyncFnMut(&dyn Client, Attempt) -> std::result::Result<T, AttemptError>,
    ) -> Result<T> {
        let begin = Instant::now();
        let mut deadline = None;
        let (mut attempts, mut wait) = (0, RETRY_DELAYS.0);
        let (mut was_renewed, mut has_moved) = (false, false);
        let bucket = &*place.bucket;
        let error =
            |failure: &Failure, attempts| failure.error(&bucket.name, &place.key, what, attempts, begin.elapsed());
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
            let (failure, heavy) = match outcome {
                Ok(Ok(result)) => {
                    in_flight.end(Outcome::Answered);
                    return Ok(result);
                }
                Ok(Err(AttemptError::Error(error))) => return Err(error.in_file(&place.key)),
                Ok(Err(AttemptError::Failure(failure))) => (failure, false),
                Ok(Err(AttemptError::Store(error))) => {
                    let is_busy = answer.status.is_some_and(|status| BUSY.contains(&status));
                    (Failure::of(&error, answer), is_busy)
                }
                Err(_) if !answer.was_sent => (Failure::transient("no credentials came in time"), false),
                Err(_) => (Failure::transient("no answer in time"), true),
            };
            in_flight.end(if heavy { Outcome::Throttled } else { Outcome::Other });
            let has_answered = bucket.has_answered.load(Ordering::Relaxed);
            let most_attempts = match &failure.kind {
                Kind::Transient => u32::MAX,
                Kind::Unreachable => {
                    if has_answered {
                        u32::MAX
                    } else {
                        ATTEMPTS_TO_REACH
                    }
                }
                Kind::NoCredentials => {
                    if has_answered {
                        u32::MAX
                    } else {
                        ATTEMPTS_TO_SIGN
                    }
                }
                Kind::Expired if !was_renewed => {
                    was_renewed = true;
                    self.reconnect(bucket, None).in_file(&place.key)?;
                    u32::MAX
                }
                Kind::OtherRegion(Some(region)) if !has_moved && connection.may_move_to(region) => {
                    has_moved = true;
                    self.reconnect(bucket, Some(region)).in_file(&place.key)?;
                    log::info!("{} is in the region {region}", bucket.name);
                    continue;
                }
                _ => return Err(error(&failure, attempts)),
            };
            let pause = wait.mul_f64(0.5 + 0.5 * chance());
            if attempts >= most_attempts || Instant::now() + pause >= deadline {
                return Err(error(&failure, attempts));
            }
            log::info!("{}, {what}: {}; once more in {} ms", place.key, failure.summary(), pause.as_millis());
            self.traffic.add_retry();
            sleep(pause).await;
            wait = (wait * 2).min(RETRY_DELAYS.1);
        }
    }

    /// Requests one page of the listing of `place`, either recursive or with folder names.
    async fn list_page(&self, place: &Place, into_folders: bool, span: &Span) -> Result<Page> {
        let prefix = if place.path.is_empty() { String::new() } else { format!("{}/", place.path) };
        let page = self.request(place, &"listing", async |client, answer| {
            self.traffic.add_listing();
            let answer = answer.of_listing();
            let mut extensions = Extensions::new();
            extensions.insert(answer.clone());
            let options = PaginatedListOptions {
                delimiter: (!into_folders).then(|| "/".into()),
                max_keys: Some(LISTED_AT_ONCE),
                // The start of the page: a continuation token, or the name before it.
                offset: Some(format!("{prefix}{}", span.after)).filter(|_| span.begins_behind_a_name()),
                page_token: span.token.clone(),
                extensions,
            };
            let prefix = Some(prefix.as_str()).filter(|prefix| !prefix.is_empty());
            let page = client.list_paginated(prefix, options).await?;
            match answer.answer().removed_keys.iter().find(|key| page::is_of_tiledb(&place.path, key)) {
                Some(key) => Err(AttemptError::Failure(Failure::unnameable(key))),
                None => Ok(page),
            }
        });
        let page = page.await?;
        let mut objects = Vec::with_capacity(page.result.objects.len());
        for object in page.result.objects {
            // Some tools create an object with the folder's own name as a placeholder for an empty folder.
            let Some(path) = object.location.as_ref().strip_prefix(&prefix).filter(|path| !path.is_empty()) else {
                continue;
            };
            // A folder may have a million objects that are no part of an array. What is read of them is pinned then.
            if page::is_of_tiledb(&place.path, object.location.as_ref()) {
                self.pins.put(&place.key.join(path), Pin::new(object.size, object.e_tag.as_deref()));
            }
            objects.push(ListedObject { path: path.to_owned(), length: object.size });
        }
        let folders = page.result.common_prefixes.iter().filter_map(|path| path.as_ref().strip_prefix(&prefix));
        Ok(Page { objects, folders: folders.map(|folder| [folder, "/"].concat()).collect(), next: page.page_token })
    }

    /// Starts reading part of an object. Checks that it is still the pinned object, and pins it on first use.
    async fn get(
        &self,
        place: &Place,
        client: &dyn Client,
        answer: Attempt,
        range: GetRange,
    ) -> std::result::Result<GetResult, AttemptError> {
        let pin = self.pins.get(&place.key);
        let path = Path::parse(&place.path).map_err(|error| {
            AttemptError::Error(Error::unsupported(format!("not a valid name in an object store: {error}")))
        })?;
        let mut extensions = Extensions::new();
        extensions.insert(answer);
        let if_match = pin.as_ref().and_then(Pin::condition);
        let options = GetOptions { range: Some(range), if_match, extensions, ..GetOptions::default() };
        let result = client.get_opts(&path, options).await?;
        let now = Pin::new(result.meta.size, result.meta.e_tag.as_deref());
        match pin {
            None => self.pins.put(&place.key, now),
            Some(pin) if pin.is(&now) => {}
            Some(_) => return Err(AttemptError::Failure(Failure::changed())),
        }
        Ok(result)
    }

    /// Fills a run of ranges. If an answer ends too early, the retry continues where it ended.
    async fn read_run(&self, place: &Place, run: &mut [ReadRange<'_>]) -> Result<()> {
        let (start, end) = (run.first().map_or(0, |range| range.offset), run.last().map_or(0, ReadRange::end));
        let what = format!("bytes {start}..{end}");
        let mut into = Scatter::new(run);
        let read = async |client: &dyn Client, answer: Attempt| {
            let result = self.get(place, client, answer, GetRange::Bounded(into.at()..end)).await?;
            let length = result.meta.size;
            if length < end {
                let past = ReadRange { offset: start, into: &mut [] };
                return Err(AttemptError::Error(past_end(length, &past)));
            }
            let mut body = result.into_stream();
            while let Some(bytes) = body.try_next().await? {
                self.traffic.add_bytes(bytes.len() as u64);
                into.put(&bytes);
                // An answer may be longer than requested.
                if into.at() >= end {
                    break;
                }
            }
            match into.at() {
                at if at >= end => Ok(()),
                at => Err(AttemptError::Failure(Failure::transient(format!("the answer ended at {at}")))),
            }
        };
        self.request(place, &what, read).await.map_err(|error| self.gone(place, error))
    }

    /// Fills ranges from the store.
    fn read_from_store(&self, place: &Place, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let mut parts = split(ranges, MOST_BYTES);
        let runs = coalesce(&mut parts, self.coalescing());
        let reads = runs.into_iter().map(|run| self.read_run(place, run));
        self.wait(place, async { join_all(reads).await.into_iter().collect() })
    }

    /// Fills ranges from the disk cache, and fetches missing blocks from the store.
    fn read_cached(&self, cache: &DiskCache, place: &Place, pin: &Pin, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let Some(tag) = pin.tag() else { return self.read_from_store(place, ranges) };
        let connection = self.connection(&place.bucket).in_file(&place.key)?;
        let owner = ObjectVersion::new(&connection.endpoint, &uri::canonical(&place.key).to_string(), tag, pin.length);
        ranges.sort_unstable_by_key(|range| range.offset);
        let mut blocks: Vec<u64> = Vec::new();
        for range in ranges.iter().filter(|range| !range.into.is_empty()) {
            let first = (range.offset / BLOCK).max(blocks.last().map_or(0, |last| last + 1));
            blocks.extend(first..range.end().div_ceil(BLOCK));
        }
        let missing = cache.read(&owner, pin.length, &blocks, |block, bytes| copy_block(block * BLOCK, bytes, ranges));
        if missing.is_empty() {
            return Ok(());
        }
        let mut fetched: Vec<(u64, Vec<u8>)> =
            missing.iter().map(|&block| (block, vec![0; block_length(block, pin.length)])).collect();
        let mut wanted: Vec<ReadRange<'_>> =
            fetched.iter_mut().map(|(block, into)| ReadRange { offset: *block * BLOCK, into }).collect();
        self.read_from_store(place, &mut wanted)?;
        for (block, bytes) in &fetched {
            copy_block(block * BLOCK, bytes, ranges);
            cache.write(&owner, *block, bytes);
        }
        Ok(())
    }

    /// Reads part of an object of unknown length; returns its bytes and the object's length.
    async fn read_unknown(&self, place: &Place, range: GetRange) -> Result<(Vec<u8>, u64)> {
        let what = format!("{range}");
        let read = async |client: &dyn Client, answer: Attempt| {
            let result = self.get(place, client, answer, range.clone()).await?;
            let (length, due) = (result.meta.size, result.range.end - result.range.start);
            let mut bytes = Vec::new();
            let mut body = result.into_stream();
            while let Some(part) = body.try_next().await? {
                self.traffic.add_bytes(part.len() as u64);
                bytes.extend_from_slice(&part);
                if bytes.len() as u64 > due {
                    break;
                }
            }
            match bytes.len() as u64 {
                got if got == due => Ok((bytes, length)),
                got => Err(AttemptError::Failure(Failure::transient(format!("the answer has {got} bytes of {due}")))),
            }
        };
        self.request(place, &what, read).await.map_err(|error| self.gone(place, error))
    }

    /// Reports a pinned object that is now missing as removed.
    fn gone(&self, place: &Place, error: Error) -> Error {
        match &error {
            Error::Missing { .. } if self.pins.get(&place.key).is_some() => {
                Error::missing("changed since the mount: the object is gone").in_file(&place.key)
            }
            _ => error,
        }
    }

    /// Returns the coalescing limits: read over a gap if that takes less time than another round trip.
    fn coalescing(&self) -> Coalescing {
        let latency = self.traffic.latency().unwrap_or_default().as_millis() as u64;
        let wide_gap = latency.saturating_mul(BYTES_PER_MS).clamp(GAPS.0, GAPS.1);
        Coalescing { gap: GAPS.0, wide_gap, most: MOST_BYTES, most_ranges: usize::MAX }
    }

    /// Returns the length of a pinned object.
    fn known_length(&self, key: &StoreKey) -> Option<u64> {
        self.pins.get(key).map(|pin| pin.length)
    }
}

impl Connection {
    /// Returns whether connecting to another region may help: none was configured, and `region` is a valid name.
    fn may_move_to(&self, region: &str) -> bool {
        self.region.as_ref().is_some_and(|(current, was_said)| !was_said && current != region) && uri::is_name(region)
    }
}

impl Storage for ObjectStorage {
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let place = self.place(folder)?;
        let most = match place.bucket.name.provider {
            // Azure cannot start a listing after a given name.
            Provider::Azure => 1,
            _ => self.most_requests.min(ANSWERS_AT_ONCE),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let (mut listing, lines) = (Listing::new(self.options.io_timeout, most, now), LogInterval::new());
        while !listing.spans().is_empty() {
            let answers = listing.spans().iter().map(|span| self.list_page(&place, false, span));
            let pages = self.wait(&place, async { join_all(answers).await.into_iter().collect::<Result<_>>() })?;
            listing
                .take(pages)
                .map_err(|reason| Error::io(io::Error::new(io::ErrorKind::InvalidData, reason)).in_file(folder))?;
            if lines.is_due() {
                log::info!("{folder}: {} names are listed", listing.count());
            }
        }
        Ok(listing.finish())
    }

    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        let place = self.place(folder)?;
        let mut page = self.wait(&place, self.list_page(&place, true, &Span::default()))?;
        page.objects.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(page.next.is_none().then_some(page.objects))
    }

    /// Makes a request only if the object is not pinned.
    fn length(&self, key: &StoreKey) -> Result<u64> {
        if let Some(length) = self.known_length(key) {
            return Ok(length);
        }
        let place = self.place(key)?;
        let ask = async |client: &dyn Client, answer: Attempt| {
            let path = Path::parse(&place.path).map_err(object_store::Error::from)?;
            let mut extensions = Extensions::new();
            extensions.insert(answer);
            Ok(client.get_opts(&path, GetOptions { head: true, extensions, ..GetOptions::default() }).await?.meta)
        };
        let meta = self.wait(&place, self.request(&place, &"its length", ask))?;
        self.pins.put(key, Pin::new(meta.size, meta.e_tag.as_deref()));
        Ok(meta.size)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let place = self.place(key)?;
        if let Some(length) = self.known_length(key)
            && let Some(past) = ranges.iter().find(|range| range.end() > length)
        {
            return Err(past_end(length, past).in_file(key));
        }
        match (&self.disk_cache, self.pins.get(key)) {
            (Some(cache), Some(pin)) => self.read_cached(cache, &place, &pin, ranges),
            _ => self.read_from_store(&place, ranges),
        }
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let place = self.place(key)?;
        if self.known_length(key).is_none() && most > 0 {
            let range = GetRange::Bounded(offset..offset.saturating_add(most as u64));
            match self.wait(&place, self.read_unknown(&place, range)) {
                // The range reaches past the end; only the length tells how far.
                Err(Error::Damaged { .. }) => {}
                read => return read,
            }
        }
        let length = self.length(key)?;
        let available = length.checked_sub(offset);
        let available = available.ok_or_else(|| past_end(length, &ReadRange { offset, into: &mut [] }).in_file(key))?;
        let mut bytes = vec![0; usize::try_from(available).map_or(most, |available| available.min(most))];
        self.read_ranges(key, &mut [ReadRange { offset, into: &mut bytes }])?;
        Ok((bytes, length))
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        let place = self.place(key)?;
        // Azure has no suffix ranges.
        if self.known_length(key).is_none() && place.bucket.name.provider != Provider::Azure && most > 0 {
            match self.wait(&place, self.read_unknown(&place, GetRange::Suffix(most as u64))) {
                Err(Error::Damaged { .. }) => {}
                read => return read,
            }
        }
        let length = self.length(key)?;
        self.read_from(key, length.saturating_sub(most as u64), most)
    }

    fn requests_at_once(&self, _: &StoreKey) -> usize {
        self.most_requests
    }

    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        uri::is_object_uri(uri).then(|| uri.into())
    }

    fn identity(&self, key: &StoreKey) -> Result<String> {
        let place = self.place(key)?;
        let connection = self.connection(&place.bucket).in_file(&place.key)?;
        Ok(format!("{}\n{}", connection.endpoint, uri::canonical(&place.key)))
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        uri::canonical(key)
    }
}

/// Logs the traffic summary.
impl Drop for ObjectStorage {
    fn drop(&mut self) {
        log::info!("{}", self.traffic);
    }
}

/// Copies the parts of `bytes`, which start at `offset`, that lie in `ranges`, which are sorted by offset.
fn copy_block(offset: u64, bytes: &[u8], ranges: &mut [ReadRange<'_>]) {
    let end = offset + bytes.len() as u64;
    for range in ranges.iter_mut().take_while(|range| range.offset < end) {
        let (from, to) = (range.offset.max(offset), range.end().min(end));
        if from < to {
            let into = &mut range.into[(from - range.offset) as usize..(to - range.offset) as usize];
            into.copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
        }
    }
}

/// Returns a random number from 0 to 1 as jitter, so that requests that failed together are not retried together.
fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}
