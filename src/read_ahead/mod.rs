//! Reading ahead: who reads a file in a foreseeable way finds the next bytes decoded already.
//!
//! The kernel asks for 128 KiB at a time and two or three requests ahead, which leaves the cores idle while one
//! chunk is decoded. So each open file has a [`Reader`], whose reads tell a [pattern](pattern::Pattern): forward,
//! backward, or in strides. What it expects is queued, in bands of tiles where the file has them, for a few worker
//! threads, which read it without an output; the distance grows while the pattern holds, up to a limit that all
//! running readers share. Reads here and there queue nothing. Of files that are read in a series, one after the other,
//! the next is queued as a whole when one begins to be read.
//!
//! The reader, and the threads that answer it, take about one core; where they have to share it with those that
//! read ahead, all of them are slower. So one worker rests as long as the others keep ahead of the readers.

mod pattern;
mod queue;
mod unread;

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::addr_eq;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tilefs_export::Content;
use tilefs_reader::read::Output;
use tilefs_reader::statistics::{Counter, Statistic, Value};
use tilefs_reader::threads;
use tilefs_reader::threads::cancellation::Token;

use pattern::{PIECE, Pattern, Shape};
use queue::{Job, Queue};
use unread::Unread;

/// The default limit of the windows of all readers together, so that the cache holds what is read ahead until its
/// reader comes.
pub const MAX_WINDOW: u64 = 16 << 20;

/// So many files are read ahead, whole, before they are opened; of more the oldest are given up.
const MOST_UNOPENED: usize = 8;

/// How long to wait for the workers at the end: one that never comes back from the disk is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// The workers that read ahead, and the queue of what they should.
pub struct ReadAhead {
    queue: Arc<Queue>,
    has_workers: bool,
    max_window: u64,
    /// How many readers have a window.
    running: AtomicU64,
    /// Readers of files that are read ahead and not yet opened, oldest first.
    unopened: Mutex<VecDeque<Arc<Reader>>>,
    counts: Arc<Counts>,
}

/// How many bytes were read ahead.
#[derive(Default)]
struct Counts {
    /// Of files that were then read.
    used: Counter,
    /// Of those that were not, as the reader went elsewhere or closed the file.
    wasted: Counter,
}

/// The reads of one open file.
pub struct Reader {
    content: Arc<dyn Content>,
    pattern: Mutex<Pattern>,
    /// Counts what was expected anew.
    generation: AtomicU64,
    /// The bytes that were read so far.
    served: AtomicU64,
    /// Where the last read ended, and began.
    last: Mutex<Range<u64>>,
    unread: Mutex<Unread>,
    /// What is read ahead of it ends when the file is closed.
    token: Token,
}

impl ReadAhead {
    /// Starts the workers: best one a core, of a storage whose requests are waits as many as it takes at once. All
    /// readers together are read about `max_window` bytes ahead, each at least 1 MiB; with a `max_window` of less none
    /// ever is.
    pub fn new(workers: usize, max_window: u64) -> Self {
        let (queue, counts) = (Arc::new(Queue::default()), Arc::<Counts>::default());
        let mut has_workers = false;
        for number in 0..if max_window < PIECE { 0 } else { workers } {
            let (own, counts) = (Arc::clone(&queue), Arc::clone(&counts));
            let rests = number > 0 && number + 1 == workers;
            own.begin();
            let started = threads::start(format!("read-ahead-{number}"), move || {
                work(&own, &counts, rests);
                own.end();
            });
            match started {
                Ok(_) => has_workers = true,
                // Without the thread only speed is lost.
                Err(_) => queue.end(),
            }
        }
        let (running, unopened) = (AtomicU64::new(0), Mutex::default());
        ReadAhead { queue, has_workers, max_window, running, unopened, counts }
    }

    /// A reader of a file that is opened, which goes on with what was read ahead of it.
    pub fn open(&self, content: Arc<dyn Content>) -> Arc<Reader> {
        let mut unopened = lock(&self.unopened);
        let known = unopened.iter().position(|reader| addr_eq(Arc::as_ptr(&reader.content), Arc::as_ptr(&content)));
        let known = known.and_then(|at| unopened.remove(at));
        known.unwrap_or_else(|| Arc::new(Reader::new(content)))
    }

    /// To be told, before the first read, of a reader who will read all of the file from the front.
    pub fn note_all(&self, reader: &Arc<Reader>) {
        if self.has_workers && !reader.content.is_empty() {
            let (ranges, _) = self.expect(reader, Pattern::expect_all);
            self.queue.add(reader, ranges);
        }
    }

    /// What a pattern says by `ask`, which is given how many bytes this reader may be ahead of, and that.
    fn expect<T>(&self, reader: &Reader, ask: impl FnOnce(&mut Pattern, &Shape<'_>, u64) -> T) -> (T, u64) {
        let mut pattern = lock(&reader.pattern);
        let was_running = u64::from(pattern.is_running());
        let others = self.running.load(Ordering::Relaxed).saturating_sub(was_running);
        let most = (self.max_window / (others + 1)).max(PIECE);
        let content = &*reader.content;
        let answer = ask(&mut pattern, &Shape { length: content.len(), band: &|at| content.band(at) }, most);
        self.running.fetch_add(u64::from(pattern.is_running()).wrapping_sub(was_running), Ordering::Relaxed);
        (answer, most)
    }

    /// To be told of each read before it is served.
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
        if expected.is_anew {
            self.forget_all_of(reader);
        }
        if expected.ranges.is_empty() {
            self.queue.look();
        } else {
            self.queue.add(reader, expected.ranges);
        }
    }

    /// Drops what is still queued for a file that was closed, and ends what is being read ahead. A reader of another
    /// file who waits for that goes on with it.
    pub fn close(&self, reader: &Arc<Reader>) {
        reader.token.cancel();
        let mut pattern = lock(&reader.pattern);
        self.running.fetch_sub(u64::from(pattern.is_running()), Ordering::Relaxed);
        pattern.end();
        drop(pattern);
        self.forget_all_of(reader);
    }

    pub fn statistics(&self) -> Vec<Statistic> {
        let bytes = |kind, counter: &Counter| {
            let help = "Bytes that were read ahead, and then read or not";
            Statistic::new("read_ahead_bytes", help, Value::Total(counter.get())).of("use", kind)
        };
        vec![bytes("used", &self.counts.used), bytes("wasted", &self.counts.wasted)]
    }

    /// Reads a file ahead that is likely opened next, if it has at most so many bytes.
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
        let given_up = if unopened.len() > MOST_UNOPENED { unopened.pop_front() } else { None };
        drop(unopened);
        if let Some(reader) = given_up {
            reader.token.cancel();
            self.forget_all_of(&reader);
        }
    }

    /// The reader expects something else now, or nothing any more.
    fn forget_all_of(&self, reader: &Arc<Reader>) {
        reader.generation.fetch_add(1, Ordering::Relaxed);
        self.queue.drop_all_of(reader);
        self.counts.wasted.add(lock(&reader.unread).clear());
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.queue.close(PATIENCE);
    }
}

impl Reader {
    /// A reader that has not read yet.
    fn new(content: Arc<dyn Content>) -> Self {
        Reader {
            content,
            pattern: Mutex::default(),
            generation: AtomicU64::new(0),
            served: AtomicU64::new(0),
            last: Mutex::default(),
            unread: Mutex::default(),
            token: Token::new(),
        }
    }

    /// The bytes that are read.
    pub fn content(&self) -> &dyn Content {
        &*self.content
    }

    /// How many bytes the reader will read before it comes to the first of these ranges: those between the last read
    /// and it. Of strides that is nothing.
    fn bytes_before(&self, ranges: &[Range<u64>]) -> u64 {
        let last = lock(&self.last).clone();
        let is_stride = ranges.len() > 1 && ranges[0].end != ranges[1].start && ranges[1].end != ranges[0].start;
        match ranges.first() {
            Some(first) if !is_stride && first.start >= last.end => first.start - last.end,
            Some(first) if !is_stride && first.end <= last.start => last.start - first.end,
            _ => 0,
        }
    }
}

/// What a worker does; one that `rests` only what is urgent.
fn work(queue: &Queue, counts: &Counts, rests: bool) {
    while let Some(job) = queue.next(rests) {
        if job.is_wanted() {
            let Job { reader, range: Range { start, end }, .. } = job;
            // From now on: who reads this meanwhile waits for what is begun here.
            counts.wasted.add(lock(&reader.unread).add(start..end));
            // What goes wrong, even a panic, is met again and told by the read of these bytes.
            let read = || reader.token.cover(|| reader.content.read(start, Output::Ahead(end - start)));
            let _ = catch_unwind(AssertUnwindSafe(read));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one range")]
mod tests {
    use std::thread;
    use std::time::Instant;

    use tilefs_format::error::Result;
    use tilefs_reader::threads::cancellation;

    use super::*;

    /// Remembers what was read ahead; the first range may be held back.
    struct Watched {
        length: u64,
        ahead: Mutex<Vec<(u64, u64)>>,
        gate: Mutex<()>,
    }

    impl Watched {
        fn new(length: u64) -> Arc<Self> {
            Arc::new(Watched { length, ahead: Mutex::default(), gate: Mutex::default() })
        }

        /// What was read ahead, sorted, once it is this many bytes or a while has passed.
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

        fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
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
    fn all_that_follows_is_read_ahead_once() {
        let length = 50 * PIECE + 12_345;
        let content = Watched::new(length);
        let read_ahead = ReadAhead::new(2, MAX_WINDOW);
        let reader = reader(&content);
        let block = 128 << 10;
        for offset in (0..length).step_by(block) {
            read_ahead.note(&reader, offset, (block as u64).min(length - offset));
            // The reader is slower than the workers, or ranges would rightly be left out.
            while read_ahead.queue.waiting() > 0 {
                thread::yield_now();
            }
        }
        let ranges = content.ahead(length - 2 * block as u64);
        assert_eq!(ranges.first().map(|range| range.0), Some(2 * block as u64));
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{ranges:?}");
        assert_eq!(ranges.last().map(|range| range.0 + range.1), Some(length));
        // The first worker to come may be later than the reader; nothing else is wasted.
        read_ahead.close(&reader);
        let (used, wasted) = (read_ahead.counts.used.get(), read_ahead.counts.wasted.get());
        assert_eq!(used + wasted, length - 2 * block as u64);
        assert!(used > wasted, "{used} {wasted}");
    }

    #[test]
    fn who_reads_all_is_read_ahead_from_the_first_byte() {
        let content = Watched::new(40 * PIECE);
        let read_ahead = ReadAhead::new(2, MAX_WINDOW);
        let reader = reader(&content);
        read_ahead.note_all(&reader);
        let ranges = content.ahead(MAX_WINDOW);
        assert_eq!(ranges, (0..16).map(|number| (number * PIECE, PIECE)).collect::<Vec<_>>());
        read_ahead.note(&reader, 0, PIECE);
        assert!(lock(&reader.pattern).is_running(), "it goes on");
        read_ahead.close(&reader);
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_worker_rests_until_a_range_is_urgent() {
        let queue = Queue::default();
        let reader = reader(&Watched::new(1 << 30));
        queue.add(&reader, (0..8).map(|number| number * PIECE..(number + 1) * PIECE).collect());
        let offset = |job: Option<queue::Job>| job.map(|job| job.range.start);
        assert_eq!(offset(queue.next(true)), Some(0));
        assert_eq!(offset(queue.next(true)), Some(PIECE));
        thread::scope(|scope| {
            let resting = scope.spawn(|| offset(queue.next(true)));
            thread::sleep(Duration::from_millis(20));
            assert!(!resting.is_finished());
            assert_eq!(offset(queue.next(false)), Some(2 * PIECE), "others do not rest");
            reader.served.store(3 * PIECE, Ordering::Relaxed);
            queue.look();
            assert_eq!(resting.join().unwrap(), Some(3 * PIECE));
        });
    }

    #[test]
    fn who_waits_first_is_served_first() {
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
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let readers: Vec<_> = (0..4).map(|_| reader(&content)).collect();
        let gate = lock(&content.gate);
        for block in 0..64 {
            for reader in &readers {
                read_ahead.note(reader, block * PIECE, PIECE);
            }
        }
        let windows = || -> u64 { readers.iter().map(|reader| lock(&reader.pattern).window()).sum() };
        assert!(windows() <= MAX_WINDOW, "{}", windows());
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 4);
        drop(gate);
        readers[1..].iter().for_each(|reader| read_ahead.close(reader));
        for block in 64..256 {
            read_ahead.note(&readers[0], block * PIECE, PIECE);
        }
        assert_eq!(windows(), MAX_WINDOW);
        // A seek ends a run, a close ends it only once.
        read_ahead.note(&readers[0], 0, 1);
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
        readers.iter().for_each(|reader| read_ahead.close(reader));
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_seek_and_a_close_drop_what_is_queued() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
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
    struct Member {
        this: Arc<Watched>,
        next: Arc<dyn Content>,
    }

    impl Content for Member {
        fn len(&self) -> u64 {
            self.this.length
        }

        fn read(&self, offset: u64, out: Output<'_>) -> Result<()> {
            self.this.read(offset, out)
        }

        fn next_file(&self) -> Option<Arc<dyn Content>> {
            Some(self.next.clone())
        }
    }

    #[test]
    fn the_next_of_a_series_is_read_ahead_whole_and_once() {
        let (first, second) = (Watched::new(PIECE), Watched::new(2 * PIECE + 5));
        let next: Arc<dyn Content> = second.clone();
        let read_ahead = ReadAhead::new(2, MAX_WINDOW);
        let reader = read_ahead.open(Arc::new(Member { this: first, next: next.clone() }));
        assert_eq!(read_ahead.queue.waiting(), 0, "nothing is read of what is only opened");
        for offset in [0, PIECE / 2] {
            read_ahead.note(&reader, offset, PIECE / 2);
        }
        let whole = [(0, PIECE), (PIECE, PIECE), (2 * PIECE, 5)];
        assert_eq!(second.ahead(2 * PIECE + 5), whole);
        read_ahead.close(&reader);
        assert_eq!(read_ahead.counts.wasted.get(), 0);
        // Who opens it goes on with that.
        let reader = read_ahead.open(next);
        read_ahead.note(&reader, 0, 2 * PIECE + 5);
        assert_eq!(read_ahead.counts.used.get(), 2 * PIECE + 5);
        read_ahead.close(&reader);
        assert_eq!(second.ahead(0), whole);
    }

    /// Reads ahead until it is cancelled.
    struct Endless(AtomicU64);

    impl Content for Endless {
        fn len(&self) -> u64 {
            1 << 40
        }

        fn read(&self, _: u64, out: Output<'_>) -> Result<()> {
            while let Output::Ahead(_) = out {
                self.0.fetch_add(1, Ordering::Relaxed);
                cancellation::pause(Duration::from_millis(1))?;
            }
            Ok(())
        }
    }

    #[test]
    fn a_file_that_is_closed_is_read_ahead_no_more() {
        let content = Arc::new(Endless(AtomicU64::new(0)));
        let read_ahead = ReadAhead::new(2, MAX_WINDOW);
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
    fn files_that_nobody_opens_are_given_up() {
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let closed: Vec<_> = (0..2 * MOST_UNOPENED).map(|_| Watched::new(PIECE)).collect();
        for next in &closed {
            let member = Member { this: Watched::new(1), next: next.clone() };
            read_ahead.note(&read_ahead.open(Arc::new(member)), 0, 1);
            next.ahead(PIECE);
        }
        assert_eq!(lock(&read_ahead.unopened).len(), MOST_UNOPENED);
        assert_eq!(read_ahead.counts.wasted.get(), MOST_UNOPENED as u64 * PIECE);
        let large = Member { this: Watched::new(1), next: Watched::new(MAX_WINDOW + 1) };
        read_ahead.note(&read_ahead.open(Arc::new(large)), 0, 1);
        assert_eq!(lock(&read_ahead.unopened).len(), MOST_UNOPENED);
    }

    #[test]
    fn with_too_small_a_budget_nothing_is_read_ahead() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(2, PIECE - 1);
        let reader = reader(&content);
        for block in 0..64 {
            read_ahead.note(&reader, block * PIECE, PIECE);
        }
        assert_eq!(content.ahead(0), []);
    }
}
