//! Prefetches for sequential and strided readers.
//!
//! The kernel requests 128 KiB at a time with two or three requests in flight, so most cores idle while one chunk is
//! decoded. Each open file therefore has a [`Reader`], whose reads feed a pattern: forward,
//! backward or strided. The ranges it predicts are queued, in whole bands of tiles if the file has them, for a few
//! worker threads, which read them without an output so that they land in the cache. The prefetch distance grows while
//! the pattern holds, up to a limit shared by all active readers. Random reads prefetch nothing. In a series of files,
//! such as chunks, reading one queues the whole next file.
//!
//! The reader and the threads that serve it use about one core; if prefetching competes for this core, everything
//! becomes slower. So one worker is a spare: it only helps when the others fall behind the readers.

mod pattern;
mod queue;
mod reader;
mod unread;

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::addr_eq;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tilefs_base::content::Content;
use tilefs_base::output::Output;
use tilefs_base::statistics::{Counter, Statistic, Value};
use tilefs_threads as threads;

use pattern::{PIECE, Pattern, Shape};
use queue::{PrefetchJob, Queue};
pub use reader::Reader;
use reader::lock;

/// The limits of the prefetched bytes of all readers together, so that the cache holds these bytes until they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Bytes of files. Each reader gets at least 1 MiB; a window of less than 1 MiB disables prefetching.
    pub bytes: u64,
    /// Bytes that are decoded for these bytes of files: see [`Content::decoded_per_byte`].
    pub decoded: u64,
}

impl Window {
    /// The window for storage without latency.
    pub const LOCAL: Window = Window { bytes: 16 << 20, decoded: 80 << 20 };

    /// Returns the bytes of a file that are prefetched for one of `readers` readers.
    fn share(self, readers: u64, decoded_per_byte: u64) -> u64 {
        let decoded = self.decoded / readers.max(1) / decoded_per_byte.max(1);
        decoded.min(self.bytes / readers.max(1)).max(PIECE)
    }
}

/// Maximum number of files that are prefetched whole before they are opened; beyond that the oldest are dropped.
const MAX_UNOPENED: usize = 8;

/// Time to wait for the workers at shutdown; one blocked on storage is abandoned.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The prefetch workers and their queue.
pub struct ReadAhead {
    queue: Arc<Queue>,
    has_workers: bool,
    window: Window,
    /// Number of readers with an active pattern.
    running: AtomicU64,
    /// Readers of prefetched files that are not open yet, oldest first.
    unopened: Mutex<VecDeque<Arc<Reader>>>,
    counts: Arc<PrefetchCounts>,
}

/// Counts of prefetched bytes.
#[derive(Default)]
struct PrefetchCounts {
    /// Bytes that were read later.
    used: Counter,
    /// Bytes that were never read, because the reader moved elsewhere or closed the file.
    wasted: Counter,
}

impl ReadAhead {
    /// Starts the workers. Use one per core, or the preferred number of concurrent requests of storage with high
    /// latency.
    pub fn new(workers: usize, window: Window) -> Self {
        let (queue, counts) = (Arc::new(Queue::default()), Arc::<PrefetchCounts>::default());
        let mut has_workers = false;
        for number in 0..if window.bytes < PIECE { 0 } else { workers } {
            let (own, counts) = (Arc::clone(&queue), Arc::clone(&counts));
            let is_spare = number > 0 && number + 1 == workers;
            own.begin();
            let started = threads::start(format!("read-ahead-{number}"), move || {
                work(&own, &counts, is_spare);
                own.end();
            });
            match started {
                Ok(_) => has_workers = true,
                // Without the thread only speed is lost.
                Err(_) => queue.end(),
            }
        }
        let (running, unopened) = (AtomicU64::new(0), Mutex::default());
        ReadAhead { queue, has_workers, window, running, unopened, counts }
    }

    /// Returns a reader for a file that is being opened; it adopts what was already prefetched for the file.
    pub fn open(&self, content: Arc<dyn Content>) -> Arc<Reader> {
        let mut unopened = lock(&self.unopened);
        let known = unopened.iter().position(|reader| addr_eq(Arc::as_ptr(&reader.content), Arc::as_ptr(&content)));
        let known = known.and_then(|at| unopened.remove(at));
        known.unwrap_or_else(|| Arc::new(Reader::new(content)))
    }

    /// Records that the whole file will be read from the front. Must be called before the first read.
    pub fn note_all(&self, reader: &Arc<Reader>) {
        if self.has_workers && !reader.content.is_empty() {
            let (ranges, _) = self.expect(reader, Pattern::expect_all);
            self.queue.add(reader, ranges);
        }
    }

    /// Consults the pattern with `ask`, which gets this reader's share of the window. Returns the answer and the share.
    fn expect<T>(&self, reader: &Reader, ask: impl FnOnce(&mut Pattern, &Shape<'_>, u64) -> T) -> (T, u64) {
        let mut pattern = lock(&reader.pattern);
        let was_running = u64::from(pattern.is_running());
        let others = self.running.load(Ordering::Relaxed).saturating_sub(was_running);
        let content = &*reader.content;
        let most = self.window.share(others + 1, content.decoded_per_byte());
        let (length, band) = (content.len(), |at| content.band(at));
        let answer =
            ask(&mut pattern, &Shape { length, band: &band, end_of_part: &|at| content.end_of_part(at) }, most);
        self.running.fetch_add(u64::from(pattern.is_running()).wrapping_sub(was_running), Ordering::Relaxed);
        (answer, most)
    }

    /// Records a read; must be called before it is served.
    pub fn note(&self, reader: &Arc<Reader>, offset: u64, length: u64) {
        if !self.has_workers || length == 0 {
            return;
        }
        let (expected, most) = self.expect(reader, |pattern, file, most| pattern.note(offset, length, file, most));
        if reader.served.fetch_add(length, Ordering::Relaxed) == 0
            && let Some(next) = reader.content.next_file()
        {
            self.read_whole(next, most);
        }
        let read = offset..offset.saturating_add(length);
        *lock(&reader.last) = read.clone();
        self.counts.used.add(lock(&reader.unread).take(&read));
        if expected.supersedes {
            self.drop_expectations(reader);
        }
        if expected.ranges.is_empty() {
            self.queue.reader_advanced();
        } else {
            self.queue.add(reader, expected.ranges);
        }
    }

    /// Drops queued ranges of a closed file and cancels its prefetching. If a reader of another file waits for the same
    /// unit, it retries the load itself.
    pub fn close(&self, reader: &Arc<Reader>) {
        reader.token.cancel();
        let mut pattern = lock(&reader.pattern);
        self.running.fetch_sub(u64::from(pattern.is_running()), Ordering::Relaxed);
        pattern.end();
        drop(pattern);
        self.drop_expectations(reader);
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        let bytes = |kind, counter: &Counter| {
            let help = "Bytes that were prefetched, and then read or not";
            Statistic::new("read_ahead_bytes", help, Value::Total(counter.get())).of("use", kind)
        };
        vec![bytes("used", &self.counts.used), bytes("wasted", &self.counts.wasted)]
    }

    /// Prefetches a whole file that will likely be opened next, if it has at most `most` bytes.
    fn read_whole(&self, content: Arc<dyn Content>, most: u64) {
        let length = content.len();
        if length > most {
            return;
        }
        let reader = Arc::new(Reader::new(content));
        let mut ranges = Vec::new();
        let mut at = 0;
        while at < length {
            let end = reader.content.band(at).end.clamp(at + 1, length);
            ranges.push(at..end);
            at = end;
        }
        self.queue.add(&reader, ranges);
        let mut unopened = lock(&self.unopened);
        unopened.push_back(reader);
        let given_up = if unopened.len() > MAX_UNOPENED { unopened.pop_front() } else { None };
        drop(unopened);
        if let Some(reader) = given_up {
            reader.token.cancel();
            self.drop_expectations(&reader);
        }
    }

    /// Drops a reader's expectations, because they changed or the file was closed.
    fn drop_expectations(&self, reader: &Arc<Reader>) {
        reader.generation.fetch_add(1, Ordering::Relaxed);
        self.queue.remove_reader(reader);
        self.counts.wasted.add(lock(&reader.unread).clear());
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.queue.close(SHUTDOWN_TIMEOUT);
    }
}

/// Runs a worker until the queue closes; the spare worker (`is_spare`) takes only urgent jobs.
fn work(queue: &Queue, counts: &PrefetchCounts, is_spare: bool) {
    while let Some(job) = queue.next(is_spare) {
        if job.is_wanted() {
            let PrefetchJob { reader, range: Range { start, end }, .. } = job;
            // Count the range now, because a concurrent read already benefits from it.
            counts.wasted.add(lock(&reader.unread).add(start..end));
            // The reader meets any error, even a panic, again and reports it.
            let read = || reader.token.cover(|| reader.content.read(start, Output::Ahead(end - start)));
            let _ = catch_unwind(AssertUnwindSafe(read));
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one range")]
mod tests {
    use std::thread;
    use std::time::Instant;

    use tilefs_base::error::Result;
    use tilefs_threads::cancellation;

    use super::*;

    /// Records what was prefetched; can block the first range.
    struct Watched {
        length: u64,
        ahead: Mutex<Vec<(u64, u64)>>,
        gate: Mutex<()>,
    }

    impl Watched {
        fn new(length: u64) -> Arc<Self> {
            Arc::new(Watched { length, ahead: Mutex::default(), gate: Mutex::default() })
        }

        /// Returns the prefetched ranges, sorted, once they have this many bytes or a while has passed.
        fn ahead(&self, bytes: u64) -> Vec<(u64, u64)> {
            let start = Instant::now();
            loop {
                let mut ranges = lock(&self.ahead).clone();
                if ranges.iter().map(|range| range.1).sum::<u64>() >= bytes || start.elapsed().as_millis() > 2000 {
                    ranges.sort_unstable();
                    return ranges;
                }
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    impl Content for Watched {
        fn len(&self) -> u64 {
            self.length
        }

        fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
            if let Output::Ahead(length) = out {
                let _open = lock(&self.gate);
                lock(&self.ahead).push((offset, length));
                assert!(offset != 7 * PIECE, "a worker survives a panic");
            }
            Ok(())
        }
    }

    fn reader(content: &Arc<Watched>) -> Arc<Reader> {
        let content: Arc<dyn Content> = Arc::clone(content) as _;
        Arc::new(Reader::new(content))
    }

    #[test]
    fn a_sequential_read_prefetches_each_byte_once() {
        let length = 50 * PIECE + 12_345;
        let content = Watched::new(length);
        let read_ahead = ReadAhead::new(2, Window::LOCAL);
        let reader = reader(&content);
        let block = 128 << 10;
        for offset in (0..length).step_by(block) {
            read_ahead.note(&reader, offset, (block as u64).min(length - offset));
            // The reader is slower than the workers; otherwise ranges would rightly be skipped.
            while read_ahead.queue.waiting() > 0 {
                thread::yield_now();
            }
        }
        let ranges = content.ahead(length - 2 * block as u64);
        assert_eq!(ranges.first().map(|range| range.0), Some(2 * block as u64));
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{ranges:?}");
        assert_eq!(ranges.last().map(|range| range.0 + range.1), Some(length));
        // The first worker may be later than the reader; nothing else is wasted.
        read_ahead.close(&reader);
        let (used, wasted) = (read_ahead.counts.used.get(), read_ahead.counts.wasted.get());
        assert_eq!(used + wasted, length - 2 * block as u64);
        assert!(used > wasted, "{used} {wasted}");
    }

    #[test]
    fn a_full_read_is_prefetched_from_the_first_byte() {
        let content = Watched::new(40 * PIECE);
        let read_ahead = ReadAhead::new(2, Window::LOCAL);
        let reader = reader(&content);
        read_ahead.note_all(&reader);
        let ranges = content.ahead(Window::LOCAL.bytes);
        assert_eq!(ranges, (0..16).map(|number| (number * PIECE, PIECE)).collect::<Vec<_>>());
        read_ahead.note(&reader, 0, PIECE);
        assert!(lock(&reader.pattern).is_running(), "it goes on");
        read_ahead.close(&reader);
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_spare_worker_waits_for_urgent_ranges() {
        let queue = Queue::default();
        let reader = reader(&Watched::new(1 << 30));
        queue.add(&reader, (0..8).map(|number| number * PIECE..(number + 1) * PIECE).collect());
        let offset = |job: Option<queue::PrefetchJob>| job.map(|job| job.range.start);
        assert_eq!(offset(queue.next(true)), Some(0));
        assert_eq!(offset(queue.next(true)), Some(PIECE));
        thread::scope(|scope| {
            let spare = scope.spawn(|| offset(queue.next(true)));
            thread::sleep(Duration::from_millis(20));
            assert!(!spare.is_finished());
            assert_eq!(offset(queue.next(false)), Some(2 * PIECE), "others do not rest");
            reader.served.store(3 * PIECE, Ordering::Relaxed);
            queue.reader_advanced();
            assert_eq!(spare.join().unwrap(), Some(3 * PIECE));
        });
    }

    #[test]
    fn the_most_urgent_range_comes_first() {
        let queue = Queue::default();
        let (far, near) = (reader(&Watched::new(1 << 30)), reader(&Watched::new(1 << 30)));
        *lock(&far.last) = 0..PIECE;
        queue.add(&far, vec![9 * PIECE..10 * PIECE, 10 * PIECE..11 * PIECE]);
        queue.add(&near, vec![2 * PIECE..3 * PIECE]);
        let starts: Vec<_> = (0..3).map(|_| queue.next(false).map(|job| job.range.start / PIECE)).collect();
        assert_eq!(starts, [Some(2), Some(9), Some(10)]);
    }

    #[test]
    fn readers_share_the_window() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, Window::LOCAL);
        let readers: Vec<_> = (0..4).map(|_| reader(&content)).collect();
        let gate = lock(&content.gate);
        for block in 0..64 {
            for reader in &readers {
                read_ahead.note(reader, block * PIECE, PIECE);
            }
        }
        let windows = || -> u64 { readers.iter().map(|reader| lock(&reader.pattern).window()).sum() };
        assert!(windows() <= Window::LOCAL.bytes, "{}", windows());
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 4);
        drop(gate);
        readers[1..].iter().for_each(|reader| read_ahead.close(reader));
        for block in 64..256 {
            read_ahead.note(&readers[0], block * PIECE, PIECE);
        }
        assert_eq!(windows(), Window::LOCAL.bytes);
        // A seek ends a pattern; a close ends it only once.
        read_ahead.note(&readers[0], 0, 1);
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
        readers.iter().for_each(|reader| read_ahead.close(reader));
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_seek_or_close_drops_queued_ranges() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, Window::LOCAL);
        let reader = reader(&content);
        let closed = lock(&content.gate);
        for block in 0..64 {
            read_ahead.note(&reader, block * PIECE, PIECE);
        }
        assert!(read_ahead.queue.waiting() > 8);
        read_ahead.note(&reader, 500 * PIECE, PIECE);
        read_ahead.note(&reader, 501 * PIECE, PIECE);
        drop(closed);
        let ranges = content.ahead(2 * PIECE);
        assert!(ranges.len() <= 2, "only the range under way and the new run: {ranges:?}");
        assert!(ranges.contains(&(502 * PIECE, PIECE)));

        let _closed = lock(&content.gate);
        for block in 600..664 {
            read_ahead.note(&reader, block * PIECE, PIECE);
        }
        read_ahead.close(&reader);
        assert_eq!(read_ahead.queue.waiting(), 0);
    }

    /// A file of a series.
    struct SeriesFile {
        this: Arc<Watched>,
        next: Arc<dyn Content>,
    }

    impl Content for SeriesFile {
        fn len(&self) -> u64 {
            self.this.length
        }

        fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
            self.this.read(offset, out)
        }

        fn next_file(&self) -> Option<Arc<dyn Content>> {
            Some(self.next.clone())
        }
    }

    #[test]
    fn the_next_file_of_a_series_is_prefetched_once() {
        let (first, second) = (Watched::new(PIECE), Watched::new(2 * PIECE + 5));
        let next: Arc<dyn Content> = second.clone();
        let read_ahead = ReadAhead::new(2, Window::LOCAL);
        let reader = read_ahead.open(Arc::new(SeriesFile { this: first, next: next.clone() }));
        assert_eq!(read_ahead.queue.waiting(), 0, "nothing is read of what is only opened");
        for offset in [0, PIECE / 2] {
            read_ahead.note(&reader, offset, PIECE / 2);
        }
        let whole = [(0, PIECE), (PIECE, PIECE), (2 * PIECE, 5)];
        assert_eq!(second.ahead(2 * PIECE + 5), whole);
        read_ahead.close(&reader);
        assert_eq!(read_ahead.counts.wasted.get(), 0);
        // Opening the file adopts its prefetch state.
        let reader = read_ahead.open(next);
        read_ahead.note(&reader, 0, 2 * PIECE + 5);
        assert_eq!(read_ahead.counts.used.get(), 2 * PIECE + 5);
        read_ahead.close(&reader);
        assert_eq!(second.ahead(0), whole);
    }

    /// Reads until it is cancelled.
    struct Endless(AtomicU64);

    impl Content for Endless {
        fn len(&self) -> u64 {
            1 << 40
        }

        fn fill(&self, _: u64, out: Output<'_>) -> Result<()> {
            while let Output::Ahead(_) = out {
                self.0.fetch_add(1, Ordering::Relaxed);
                cancellation::pause(Duration::from_millis(1))?;
            }
            Ok(())
        }
    }

    #[test]
    fn closing_a_file_stops_its_prefetching() {
        let content = Arc::new(Endless(AtomicU64::new(0)));
        let read_ahead = ReadAhead::new(2, Window::LOCAL);
        let reader = read_ahead.open(content.clone());
        read_ahead.note_all(&reader);
        let grows = || {
            let before = content.0.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(100));
            content.0.load(Ordering::Relaxed) > before
        };
        assert!(grows());
        read_ahead.close(&reader);
        let start = Instant::now();
        while grows() {
            assert!(start.elapsed() < Duration::from_secs(10), "the workers are free again");
        }
    }

    #[test]
    fn unopened_files_are_dropped() {
        let read_ahead = ReadAhead::new(1, Window::LOCAL);
        let closed: Vec<_> = (0..2 * MAX_UNOPENED).map(|_| Watched::new(PIECE)).collect();
        for next in &closed {
            let member = SeriesFile { this: Watched::new(1), next: next.clone() };
            read_ahead.note(&read_ahead.open(Arc::new(member)), 0, 1);
            next.ahead(PIECE);
        }
        assert_eq!(lock(&read_ahead.unopened).len(), MAX_UNOPENED);
        assert_eq!(read_ahead.counts.wasted.get(), MAX_UNOPENED as u64 * PIECE);
        let large = SeriesFile { this: Watched::new(1), next: Watched::new(Window::LOCAL.bytes + 1) };
        read_ahead.note(&read_ahead.open(Arc::new(large)), 0, 1);
        assert_eq!(lock(&read_ahead.unopened).len(), MAX_UNOPENED);
    }

    #[test]
    fn the_window_counts_what_is_decoded() {
        let window = Window { bytes: 128 << 20, decoded: 128 << 20 };
        assert_eq!(window.share(1, 1), 128 << 20);
        assert_eq!(window.share(1, 4), 32 << 20);
        assert_eq!(window.share(2, 4), 16 << 20);
        assert_eq!(window.share(1, u64::MAX), PIECE);
        assert_eq!(Window::LOCAL.share(1, 5), Window::LOCAL.bytes);
        assert_eq!(Window::LOCAL.share(0, 0), Window::LOCAL.bytes);
    }

    #[test]
    fn a_small_window_disables_prefetching() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(2, Window { bytes: PIECE - 1, ..Window::LOCAL });
        let reader = reader(&content);
        for block in 0..64 {
            read_ahead.note(&reader, block * PIECE, PIECE);
        }
        assert_eq!(content.ahead(0), []);
    }
}
