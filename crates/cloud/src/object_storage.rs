//! The storage of objects in S3, Google Cloud Storage and Azure.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;
use object_store::{Extensions, GetOptions, GetRange, GetResult};
use tilefs_base::error::{Error, Locate, Result};
use tilefs_storage::{
    Coalescing, Listed, ListedObject, Provider, ReadRange, Storage, StoreKey, coalesce, is_object_uri, past_end, split,
};
use tilefs_threads::LogInterval;

use crate::buckets::{AttemptError, Buckets, ObjectPlace};
use crate::connect::Client;
use crate::disk_cache::{BLOCK, DiskCache, ObjectVersion, block_length};
use crate::failure::RequestFailure;
use crate::listing::{ListedPage, NameSpan, PagedListing};
use crate::page;
use crate::pins::{Pin, Pins};
use crate::scatter::Scatter;
use crate::settings::CloudOptions;
use crate::traffic::Attempt;
use crate::uri;

/// Maximum size of one request: larger ranges are split into concurrent requests.
const MOST_BYTES: u64 = 2 << 20;

/// The smallest and largest gap that is read rather than skipped by a separate request.
const GAPS: (u64, u64) = (64 << 10, 1 << 20);

/// Assumed throughput of a connection in bytes per millisecond, to compute the largest gap that costs less than a round
/// trip.
const BYTES_PER_MS: u64 = 32 << 10;

/// Maximum number of objects per listing request; stores return no more in one answer.
const LISTED_AT_ONCE: usize = 1000;

/// Maximum number of concurrent requests of one listing.
const ANSWERS_AT_ONCE: usize = 32;

/// Object stores, with objects named by URI. An object that was listed or read is pinned: if it is replaced, reading it
/// is an error.
///
/// Memory: some hundred bytes per listed object, and the memory of the buckets.
pub struct ObjectStorage {
    buckets: Buckets,
    pins: Pins,
    disk_cache: Option<DiskCache>,
}

impl ObjectStorage {
    /// Creates the storage without making a request.
    ///
    /// # Errors
    /// [`Error::Io`] if its thread cannot start, [`Error::Usage`] if the disk cache cannot be opened.
    pub fn new(options: CloudOptions) -> Result<Self> {
        let disk_cache = match &options.disk_cache {
            Some((folder, most)) => Some(DiskCache::open(folder, *most)?),
            None => None,
        };
        Ok(ObjectStorage { buckets: Buckets::new(options)?, pins: Pins::default(), disk_cache })
    }

    /// Requests one page of the listing of `place`, either recursive or with folder names.
    async fn list_page(&self, place: &ObjectPlace, into_folders: bool, span: &NameSpan) -> Result<ListedPage> {
        let prefix = if place.path.is_empty() { String::new() } else { format!("{}/", place.path) };
        let page = self.buckets.request(place, &"listing", async |client, answer| {
            let answer = answer.of_listing();
            let options = PaginatedListOptions {
                delimiter: (!into_folders).then(|| "/".into()),
                // The start of the page: a continuation token, or the name before it.
                offset: Some(format!("{prefix}{}", span.after)).filter(|_| span.begins_behind_a_name()),
                page_token: span.token.clone(),
                ..PaginatedListOptions::default()
            };
            let page = self.request_page(client, &prefix, options, &answer).await?;
            for key in answer.answer().removed_keys.iter().filter(|key| page::is_of_tiledb(&place.path, key)) {
                if into_folders || !page::is_unnamed_folder(key) || self.holds_objects(client, key, &answer).await? {
                    return Err(AttemptError::Failure(RequestFailure::unnameable(key)));
                }
            }
            Ok(page)
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
        Ok(ListedPage {
            objects,
            folders: folders.map(|folder| [folder, "/"].concat()).collect(),
            next: page.page_token,
        })
    }

    /// Requests one page of a listing, counts it, and notes in `answer` what the store says.
    async fn request_page(
        &self,
        client: &dyn Client,
        prefix: &str,
        options: PaginatedListOptions,
        answer: &Attempt,
    ) -> std::result::Result<PaginatedListResult, AttemptError> {
        self.buckets.traffic().add_listing();
        let mut extensions = Extensions::new();
        extensions.insert(answer.clone());
        let options = PaginatedListOptions { max_keys: Some(LISTED_AT_ONCE), extensions, ..options };
        Ok(client.list_page(Some(prefix).filter(|prefix| !prefix.is_empty()), options).await?)
    }

    /// Returns whether a folder without a name holds objects other than those that stand for folders.
    async fn holds_objects(
        &self,
        client: &dyn Client,
        folder: &str,
        answer: &Attempt,
    ) -> std::result::Result<bool, AttemptError> {
        let page = self.request_page(client, folder, PaginatedListOptions::default(), answer).await?;
        // No object below it has a key that the client library accepts.
        Ok(!page.result.objects.is_empty() || page.page_token.is_some() || !answer.answer().removed_keys.is_empty())
    }

    /// Starts reading part of an object. Checks that it is still the pinned object, and pins it on first use.
    async fn get(
        &self,
        place: &ObjectPlace,
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
        let result = client.get(&path, options).await?;
        let now = Pin::new(result.meta.size, result.meta.e_tag.as_deref());
        match pin {
            None => self.pins.put(&place.key, now),
            Some(pin) if pin.is(&now) => {}
            Some(_) => return Err(AttemptError::Failure(RequestFailure::changed())),
        }
        Ok(result)
    }

    /// Fills ranges that lie close together with one request from the start of the first range to the end of the last.
    /// If the answer ends early, the next request begins where that answer ended.
    async fn read_run(&self, place: &ObjectPlace, run: &mut [ReadRange<'_>]) -> Result<()> {
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
                self.buckets.traffic().add_bytes(bytes.len() as u64);
                into.put(&bytes);
                // An answer may be longer than requested.
                if into.at() >= end {
                    break;
                }
            }
            match into.at() {
                at if at >= end => Ok(()),
                at => Err(AttemptError::Failure(RequestFailure::transient(format!("the answer ended at {at}")))),
            }
        };
        self.buckets.request(place, &what, read).await.map_err(|error| self.gone(place, error))
    }

    /// Fills ranges from the store.
    fn read_from_store(&self, place: &ObjectPlace, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let mut parts = split(ranges, MOST_BYTES);
        let runs = coalesce(&mut parts, self.coalescing());
        let reads = runs.into_iter().map(|run| self.read_run(place, run));
        self.buckets.wait(place, async { join_all(reads).await.into_iter().collect() })
    }

    /// Fills ranges from the disk cache, and fetches missing blocks from the store.
    fn read_cached(
        &self,
        cache: &DiskCache,
        place: &ObjectPlace,
        pin: &Pin,
        ranges: &mut [ReadRange<'_>],
    ) -> Result<()> {
        let Some(tag) = pin.tag() else { return self.read_from_store(place, ranges) };
        let connection = self.buckets.connection(&place.bucket).in_file(&place.key)?;
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
    async fn read_unknown(&self, place: &ObjectPlace, range: GetRange) -> Result<(Vec<u8>, u64)> {
        let what = format!("{range}");
        let read = async |client: &dyn Client, answer: Attempt| {
            let result = self.get(place, client, answer, range.clone()).await?;
            let (length, due) = (result.meta.size, result.range.end - result.range.start);
            let mut bytes = Vec::new();
            let mut body = result.into_stream();
            while let Some(part) = body.try_next().await? {
                self.buckets.traffic().add_bytes(part.len() as u64);
                bytes.extend_from_slice(&part);
                if bytes.len() as u64 > due {
                    break;
                }
            }
            match bytes.len() as u64 {
                got if got == due => Ok((bytes, length)),
                got => Err(AttemptError::Failure(RequestFailure::transient(format!(
                    "the answer has {got} bytes of {due}"
                )))),
            }
        };
        self.buckets.request(place, &what, read).await.map_err(|error| self.gone(place, error))
    }

    /// Reports a pinned object that is now missing as removed.
    fn gone(&self, place: &ObjectPlace, error: Error) -> Error {
        match &error {
            Error::Missing { .. } if self.pins.get(&place.key).is_some() => {
                Error::missing("changed since the mount: the object is gone").in_file(&place.key)
            }
            _ => error,
        }
    }

    /// Returns the coalescing limits: read over a gap if that takes less time than another round trip.
    fn coalescing(&self) -> Coalescing {
        let latency = self.buckets.traffic().latency().unwrap_or_default().as_millis() as u64;
        let wide_gap = latency.saturating_mul(BYTES_PER_MS).clamp(GAPS.0, GAPS.1);
        Coalescing { gap: GAPS.0, wide_gap, most: MOST_BYTES, most_ranges: usize::MAX }
    }

    /// Returns the length of a pinned object.
    fn known_length(&self, key: &StoreKey) -> Option<u64> {
        self.pins.get(key).map(|pin| pin.length)
    }
}

impl Storage for ObjectStorage {
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let place = self.buckets.place(folder)?;
        let most = match place.bucket.name.provider {
            // Azure cannot start a listing after a given name.
            Provider::Azure => 1,
            _ => self.buckets.most_requests().min(ANSWERS_AT_ONCE),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let (mut listing, lines) = (PagedListing::new(self.buckets.io_timeout(), most, now), LogInterval::new());
        while !listing.spans().is_empty() {
            let answers = listing.spans().iter().map(|span| self.list_page(&place, false, span));
            let pages =
                self.buckets.wait(&place, async { join_all(answers).await.into_iter().collect::<Result<_>>() })?;
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
        let place = self.buckets.place(folder)?;
        let mut page = self.buckets.wait(&place, self.list_page(&place, true, &NameSpan::default()))?;
        page.objects.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(page.next.is_none().then_some(page.objects))
    }

    /// Makes a request only if the object is not pinned.
    fn length(&self, key: &StoreKey) -> Result<u64> {
        if let Some(length) = self.known_length(key) {
            return Ok(length);
        }
        let place = self.buckets.place(key)?;
        let ask = async |client: &dyn Client, answer: Attempt| {
            let path = Path::parse(&place.path).map_err(object_store::Error::from)?;
            let mut extensions = Extensions::new();
            extensions.insert(answer);
            Ok(client.get(&path, GetOptions { head: true, extensions, ..GetOptions::default() }).await?.meta)
        };
        let meta = self.buckets.wait(&place, self.buckets.request(&place, &"its length", ask))?;
        self.pins.put(key, Pin::new(meta.size, meta.e_tag.as_deref()));
        Ok(meta.size)
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let place = self.buckets.place(key)?;
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
        let place = self.buckets.place(key)?;
        if self.known_length(key).is_none() && most > 0 {
            let range = GetRange::Bounded(offset..offset.saturating_add(most as u64));
            match self.buckets.wait(&place, self.read_unknown(&place, range)) {
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
        let place = self.buckets.place(key)?;
        // Azure has no suffix ranges.
        if self.known_length(key).is_none() && place.bucket.name.provider != Provider::Azure && most > 0 {
            match self.buckets.wait(&place, self.read_unknown(&place, GetRange::Suffix(most as u64))) {
                Err(Error::Damaged { .. }) => {}
                read => return read,
            }
        }
        let length = self.length(key)?;
        self.read_from(key, length.saturating_sub(most as u64), most)
    }

    fn is_remote(&self, _: &StoreKey) -> bool {
        true
    }

    fn requests_at_once(&self, _: &StoreKey) -> usize {
        self.buckets.most_requests()
    }

    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        is_object_uri(uri).then(|| uri.into())
    }

    fn identity(&self, key: &StoreKey) -> Result<String> {
        let place = self.buckets.place(key)?;
        let connection = self.buckets.connection(&place.bucket).in_file(&place.key)?;
        Ok(format!("{}\n{}", connection.endpoint, uri::canonical(&place.key)))
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        uri::canonical(key)
    }
}

/// Logs the traffic summary.
impl Drop for ObjectStorage {
    fn drop(&mut self) {
        log::info!("{}", self.buckets.traffic());
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
