//! A wrapper that makes any storage as slow and unreliable as a remote one and records its requests. For tests, and for
//! measuring what reads would cost.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::cancellation;

use super::ranges::{Coalescing, ReadRange, coalesce, split};
use super::{Listed, ListedObject, Storage, StoreKey, together};

/// Preferred number of concurrent requests.
const CONCURRENT_REQUESTS: usize = 64;

/// Coalescing limits like those of an object store.
const COALESCING: Coalescing = Coalescing { gap: 64 << 10, wide_gap: 64 << 10, most: 1 << 20, most_ranges: usize::MAX };

/// Forwards requests to another storage, each after a delay, unless it should fail. A request is one listing, one
/// length, or one run of coalesced ranges; the runs of one call are concurrent. Memory: a record of each request.
pub struct SimulatedStorage {
    inner: Arc<dyn Storage>,
    delay: Duration,
    state: Mutex<SimulationState>,
}

#[derive(Default)]
struct SimulationState {
    requests: Vec<StorageRequest>,
    faults: Vec<PlannedFault>,
    in_flight: usize,
    most_in_flight: usize,
    /// Length of the longest chain of dependent requests answered so far.
    answered: usize,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageOperation {
    /// The names in a folder.
    List,
    /// The keys below a folder.
    ListBelow,
    /// The length of a file.
    Length,
    /// A range of a file.
    From {
        /// The offset of the range.
        offset: u64,
        /// The maximum number of bytes.
        most: u64,
    },
    /// The end of a file.
    End {
        /// The maximum number of bytes.
        most: u64,
    },
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageRequest {
    /// The key of the request.
    pub key: StoreKey,
    /// The requested operation.
    pub operation: StorageOperation,
    /// Length of the longest chain of requests that ends with this one, where each was made after the answer to the one
    /// before.
    pub step: usize,
}

/// The way a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A timeout; a retry may succeed.
    Transient,
    /// A refusal; a retry fails too.
    Permanent,
    /// There is no such object.
    Missing,
    /// The connection ends in the midst of the bytes.
    CutShort,
}

struct PlannedFault {
    concerns: Box<dyn Fn(&StorageRequest) -> bool + Send>,
    failing: FaultKind,
    /// Number of matching requests that still succeed.
    spared: usize,
    /// Number of matching requests that fail after that.
    left: usize,
}

impl SimulatedStorage {
    /// Wraps `inner`; each request takes `delay`.
    pub fn new(inner: Arc<dyn Storage>, delay: Duration) -> Self {
        SimulatedStorage { inner, delay, state: Mutex::default() }
    }

    /// Makes all requests that `concerns` selects fail from now on.
    pub fn fail(&self, failing: FaultKind, concerns: impl Fn(&StorageRequest) -> bool + Send + 'static) {
        self.fail_some(failing, 0, usize::MAX, concerns);
    }

    /// Lets the next `spared` requests that `concerns` selects succeed, and the `count` after them fail.
    pub fn fail_some(
        &self,
        failing: FaultKind,
        spared: usize,
        count: usize,
        concerns: impl Fn(&StorageRequest) -> bool + Send + 'static,
    ) {
        self.lock().faults.push(PlannedFault { concerns: Box::new(concerns), failing, spared, left: count });
    }

    /// Lets all requests succeed from now on.
    pub fn recover(&self) {
        self.lock().faults.clear();
    }

    /// Returns the requests since the last call, in the order in which they were made.
    pub fn take_requests(&self) -> Vec<StorageRequest> {
        let mut state = self.lock();
        (state.answered, state.most_in_flight) = (0, state.in_flight);
        std::mem::take(&mut state.requests)
    }

    /// Returns the maximum number of concurrent requests since the last [`SimulatedStorage::take_requests`].
    pub fn most_in_flight(&self) -> usize {
        self.lock().most_in_flight
    }

    fn lock(&self) -> MutexGuard<'_, SimulationState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request<T>(&self, key: &StoreKey, operation: StorageOperation, answer: impl FnOnce() -> Result<T>) -> Result<T> {
        let (step, failing) = self.lock().begin(key, operation);
        let answer = cancellation::pause(self.delay).and_then(|()| match failing {
            None => answer(),
            Some(failing) => Err(failing.error().in_file(key)),
        });
        let mut state = self.lock();
        state.in_flight -= 1;
        state.answered = state.answered.max(step);
        answer
    }
}

impl SimulationState {
    fn begin(&mut self, key: &StoreKey, operation: StorageOperation) -> (usize, Option<FaultKind>) {
        let step = self.answered + 1;
        let request = StorageRequest { key: key.clone(), operation, step };
        let failing = self.faults.iter_mut().find_map(|fault| fault.strikes(&request));
        self.requests.push(request);
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        (step, failing)
    }
}

impl PlannedFault {
    fn strikes(&mut self, request: &StorageRequest) -> Option<FaultKind> {
        if self.left == 0 || !(self.concerns)(request) {
            return None;
        }
        if self.spared > 0 {
            self.spared -= 1;
            return None;
        }
        self.left -= 1;
        Some(self.failing)
    }
}

impl FaultKind {
    fn error(self) -> Error {
        match self {
            FaultKind::Transient => Error::io(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
            FaultKind::Permanent => Error::io(io::Error::new(io::ErrorKind::PermissionDenied, "refused")).permanent(),
            FaultKind::Missing => Error::missing("there is no such object"),
            FaultKind::CutShort => Error::io(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut")),
        }
    }
}

impl Storage for SimulatedStorage {
    fn allow(&self, folder: &StoreKey) {
        self.inner.allow(folder);
    }

    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        self.request(folder, StorageOperation::List, || self.inner.list(folder))
    }

    fn list_below(&self, folder: &StoreKey) -> Result<Option<Vec<ListedObject>>> {
        self.request(folder, StorageOperation::ListBelow, || self.inner.list_below(folder))
    }

    fn length(&self, key: &StoreKey) -> Result<u64> {
        self.request(key, StorageOperation::Length, || self.inner.length(key))
    }

    fn read_ranges(&self, key: &StoreKey, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        let mut parts = split(ranges, COALESCING.most);
        let read = |run: &mut [ReadRange<'_>]| {
            let (first, last) = (run.first().map_or(0, |range| range.offset), run.last().map_or(0, ReadRange::end));
            let operation = StorageOperation::From { offset: first, most: last - first };
            self.request(key, operation, || self.inner.read_ranges(key, run))
        };
        together(self, key, coalesce(&mut parts, COALESCING), read).into_iter().collect()
    }

    fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
        let operation = StorageOperation::From { offset, most: most as u64 };
        self.request(key, operation, || self.inner.read_from(key, offset, most))
    }

    fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
        self.request(key, StorageOperation::End { most: most as u64 }, || self.inner.read_end(key, most))
    }

    fn is_remote(&self, _: &StoreKey) -> bool {
        true
    }

    fn requests_at_once(&self, _: &StoreKey) -> usize {
        CONCURRENT_REQUESTS
    }

    fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
        self.inner.key_of_uri(uri)
    }

    fn identity(&self, key: &StoreKey) -> Result<String> {
        self.inner.identity(key)
    }

    fn canonical(&self, key: &StoreKey) -> StoreKey {
        self.inner.canonical(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStorage;

    fn storage(delay_ms: u64) -> (SimulatedStorage, StoreKey) {
        let (inner, key) = (MemoryStorage::new(), StoreKey::from("s3://bucket/object"));
        inner.put(key.clone(), (0..3 << 20).map(|byte| (byte % 251) as u8).collect::<Vec<u8>>());
        (SimulatedStorage::new(Arc::new(inner), Duration::from_millis(delay_ms)), key)
    }

    #[test]
    fn ranges_of_one_call_are_concurrent() {
        let (storage, key) = storage(30);
        let mut room = [vec![0; 10], vec![0; 20], vec![0; 2 << 20]];
        let offsets = [5, 100, 1 << 20];
        let mut ranges: Vec<ReadRange<'_>> =
            room.iter_mut().zip(offsets).map(|(into, offset)| ReadRange { offset, into }).collect();
        storage.read_ranges(&key, &mut ranges).unwrap();
        assert_eq!(storage.most_in_flight(), 3);
        storage.length(&key).unwrap();
        let requests = storage.take_requests();
        assert_eq!(requests.iter().map(|one| one.step).collect::<Vec<_>>(), [1, 1, 1, 2]);
        assert!(
            requests.iter().any(|one| one.operation == StorageOperation::From { offset: 5, most: 115 }),
            "{requests:?}"
        );
        assert!(storage.take_requests().is_empty());
    }

    #[test]
    fn requests_fail_as_configured() {
        let (storage, key) = storage(0);
        let length = || storage.length(&key);
        storage.fail_some(FaultKind::Transient, 1, 1, |request| request.operation == StorageOperation::Length);
        assert!(length().is_ok());
        assert!(length().is_err_and(|error| error.is_transient() && error.to_string().contains("s3://bucket/object")));
        assert!(length().is_ok());
        for (failing, is_transient) in
            [(FaultKind::Permanent, false), (FaultKind::Missing, true), (FaultKind::CutShort, true)]
        {
            storage.fail(failing, |_| true);
            assert!(length().is_err_and(|error| error.is_transient() == is_transient), "{failing:?}");
            assert!(storage.list(&key).is_err() && storage.read_end(&key, 1).is_err());
            storage.recover();
        }
        assert!(length().is_ok());
    }
}
