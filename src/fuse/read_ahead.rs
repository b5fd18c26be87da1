//! Reading ahead: who reads a file from front to back finds the next bytes decoded already.
//!
//! The kernel asks for 128 KiB at a time and two or three requests ahead, which leaves the cores idle while one
//! chunk is decoded. So each open file has a [`Stream`] that watches its reads. Once they run forward, pieces ahead
//! of the reader are queued for a few worker threads, which read them [ahead](Output::Ahead); the distance grows while the
//! run lasts, up to a limit that all running streams share. Reads here and there queue nothing.
//!
//! The reader, and the threads that answer it, take about one core; where they have to share it with those that
//! prepare, all of them are slower. So one worker rests as long as the others keep ahead of the readers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::export::Content;
use crate::read::Output;

/// What one worker prepares at a time.
const PIECE: u64 = 1 << 20;

/// How far ahead of a fresh run pieces are prepared; doubled until it reaches the limit.
const FIRST_WINDOW: u64 = PIECE;

/// The default limit of the windows of all streams together, so that the cache holds what is read ahead until its
/// reader comes.
pub const MAX_WINDOW: u64 = 16 << 20;

/// How many pieces may wait, of all streams together.
const MAX_QUEUED: usize = 1024;

/// Requests of one reader overtake each other on their way through several threads: a read that starts this much
/// before or after the expected place still belongs to the run, as long as the holes are filled later. Linux keeps
/// up to 1 MiB under way per reader.
const TOLERANCE: u64 = 2 << 20;

/// A piece this close to where its reader is will be late.
const URGENT: u64 = 2 << 20;

/// How often the worker that rests looks whether something has become urgent.
const LOOK: Duration = Duration::from_millis(1);

/// How long to wait for the workers at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many bytes a run must have before anything is queued, so that looking at a header queues nothing.
const START_AFTER: u64 = 256 << 10;

/// The workers that prepare, and the queue of what they should.
pub struct ReadAhead {
    queue: Arc<Queue>,
    workers: Vec<JoinHandle<()>>,
    max_window: u64,
    /// How many streams have a window.
    running: AtomicU64,
}

/// The reads of one open file.
pub struct Stream {
    content: Arc<dyn Content>,
    run: Mutex<Run>,
    /// Counts the runs; pieces of an earlier run than this are not wanted any more.
    run_number: AtomicU64,
    /// Where the reader is; pieces before it come too late.
    position: AtomicU64,
}

/// A series of reads that follow each other.
#[derive(Debug, Default)]
struct Run {
    /// The reads of this run, and their bytes.
    reads: u64,
    bytes: u64,
    /// Where the first byte of the run is.
    start: u64,
    /// Where the next read is expected.
    next: u64,
    /// Everything before this is prepared or queued.
    ahead: u64,
    /// How far ahead to go; 0 before the first time.
    window: u64,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    closed: bool,
}

struct Piece {
    stream: Arc<Stream>,
    run_number: u64,
    offset: u64,
    length: u64,
}

impl ReadAhead {
    /// Starts the workers, best one a core. All streams together are prepared about `max_window` bytes ahead, each at least one
    /// piece (1 MiB); with a `max_window` of less nothing ever is.
    pub fn new(workers: usize, max_window: u64) -> Self {
        let queue = Arc::new(Queue::default());
        let workers = (0..if max_window < PIECE { 0 } else { workers })
            .filter_map(|number| {
                let queue = Arc::clone(&queue);
                let name = format!("read-ahead-{number}");
                let rests = number > 0 && number + 1 == workers;
                // Without the thread only speed is lost.
                thread::Builder::new().name(name).spawn(move || queue.work(rests)).ok()
            })
            .collect();
        ReadAhead { queue, workers, max_window, running: AtomicU64::new(0) }
    }

    /// To be told of each read before it is served.
    pub fn note(&self, stream: &Arc<Stream>, offset: u64, length: u64) {
        if self.workers.is_empty() || length == 0 {
            return;
        }
        let end = offset.saturating_add(length);
        let mut run = lock(&stream.run);
        if !run.extend(offset, end) {
            if run.reads > 0 {
                self.end(&mut run);
                stream.run_number.fetch_add(1, Ordering::Relaxed);
            }
            *run = Run { reads: 1, bytes: length, start: offset, next: end, ahead: end, window: 0 };
        }
        stream.position.store(run.next, Ordering::Relaxed);
        let was_running = u64::from(run.window > 0);
        let others = self.running.load(Ordering::Relaxed).saturating_sub(was_running);
        let (from, to) = run.wanted(stream.content.len(), (self.max_window / (others + 1)).max(PIECE));
        self.running.fetch_add(u64::from(run.window > 0) - was_running, Ordering::Relaxed);
        if from < to {
            run.ahead = self.queue.add(stream, from, to);
        }
    }

    /// Ends a run: its window is free for other streams.
    fn end(&self, run: &mut Run) {
        if run.window > 0 {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        run.window = 0;
    }

    /// Drops what is still queued for a file that was closed.
    pub fn close(&self, stream: &Arc<Stream>) {
        self.end(&mut lock(&stream.run));
        stream.run_number.fetch_add(1, Ordering::Relaxed);
        lock(&self.queue.waiting).pieces.retain(|piece| !Arc::ptr_eq(&piece.stream, stream));
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        {
            let mut waiting = lock(&self.queue.waiting);
            waiting.closed = true;
            waiting.pieces.clear();
        }
        self.queue.changed.notify_all();
        // One that never comes back from the disk is left behind.
        let deadline = Instant::now() + PATIENCE;
        while self.workers.iter().any(|worker| !worker.is_finished()) && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
    }
}

impl Stream {
    /// A stream without reads yet.
    pub fn new(content: Arc<dyn Content>) -> Self {
        Stream { content, run: Mutex::default(), run_number: AtomicU64::new(0), position: AtomicU64::new(0) }
    }

    /// The bytes that are read.
    pub fn content(&self) -> &dyn Content {
        &*self.content
    }
}

impl Run {
    /// Takes a read into the run, if it belongs there. Strided reads do not: the holes they leave stay open.
    fn extend(&mut self, offset: u64, end: u64) -> bool {
        let near = offset.saturating_add(TOLERANCE) >= self.next && offset <= self.next.saturating_add(TOLERANCE);
        let (start, next) = (self.start.min(offset), self.next.max(end));
        let bytes = self.bytes.saturating_add(end - offset);
        if self.reads == 0 || !near || (next - start).saturating_sub(bytes) > TOLERANCE {
            return false;
        }
        *self = Run { reads: self.reads + 1, bytes, start, next, ahead: self.ahead.max(next), window: self.window };
        true
    }

    /// The range to queue now: empty until half of the window was consumed, so that pieces come in bunches and
    /// whole. Grows the window.
    fn wanted(&mut self, file_length: u64, max_window: u64) -> (u64, u64) {
        if self.reads < 2 || self.bytes < START_AFTER {
            return (0, 0);
        }
        let window = if self.window == 0 { FIRST_WINDOW } else { (self.window * 2).min(max_window) };
        let left = self.ahead - self.next;
        let goal = self.next.saturating_add(window);
        // Whole pieces, so that two workers seldom meet in one chunk.
        let goal = if goal >= file_length { file_length } else { goal - goal % PIECE };
        if left > self.window / 2 || goal <= self.ahead {
            return (0, 0);
        }
        self.window = window;
        (self.ahead, goal)
    }
}

impl Queue {
    /// Queues a range in pieces; gives how far it got before the queue was full.
    fn add(&self, stream: &Arc<Stream>, from: u64, to: u64) -> u64 {
        let mut offset = from;
        let mut waiting = lock(&self.waiting);
        while offset < to && waiting.pieces.len() < MAX_QUEUED {
            let end = (offset - offset % PIECE).saturating_add(PIECE).min(to);
            waiting.pieces.push_back(Piece {
                stream: Arc::clone(stream),
                run_number: stream.run_number.load(Ordering::Relaxed),
                offset,
                length: end - offset,
            });
            offset = end;
        }
        drop(waiting);
        self.changed.notify_all();
        offset
    }

    /// What a worker does; one that `rests` only what is urgent.
    fn work(&self, rests: bool) {
        while let Some(piece) = self.next(rests) {
            let stream = &piece.stream;
            let too_late = stream.position.load(Ordering::Relaxed) >= piece.offset + piece.length;
            let unwanted = stream.run_number.load(Ordering::Relaxed) != piece.run_number;
            if !too_late && !unwanted {
                // An error or a panic is met again, and reported, by the read of these bytes.
                let ahead = || stream.content.read(piece.offset, Output::Ahead(piece.length));
                let _ = catch_unwind(AssertUnwindSafe(ahead));
            }
        }
    }

    fn next(&self, only_urgent: bool) -> Option<Piece> {
        let mut waiting = lock(&self.waiting);
        loop {
            if waiting.closed {
                return None;
            }
            match waiting.pieces.front() {
                None => waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(piece) if only_urgent && !piece.is_urgent() => {
                    let waited = self.changed.wait_timeout(waiting, LOOK);
                    waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Some(_) => return waiting.pieces.pop_front(),
            }
        }
    }
}

impl Piece {
    fn is_urgent(&self) -> bool {
        self.offset < self.stream.position.load(Ordering::Relaxed).saturating_add(URGENT)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    /// Remembers what was prepared; the first piece may be held back.
    struct Watched {
        length: u64,
        prepared: Mutex<Vec<(u64, u64)>>,
        gate: Mutex<()>,
    }

    impl Watched {
        fn new(length: u64) -> Arc<Self> {
            Arc::new(Watched { length, prepared: Mutex::default(), gate: Mutex::default() })
        }

        /// What was prepared, sorted, once it is this many bytes or a while has passed.
        fn prepared(&self, bytes: u64) -> Vec<(u64, u64)> {
            let start = Instant::now();
            loop {
                let mut pieces = lock(&self.prepared).clone();
                if pieces.iter().map(|piece| piece.1).sum::<u64>() >= bytes || start.elapsed().as_millis() > 2000 {
                    pieces.sort_unstable();
                    return pieces;
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
                lock(&self.prepared).push((offset, length));
                assert!(offset != 7 * PIECE, "a worker survives a panic");
            }
            Ok(())
        }
    }

    fn stream(content: &Arc<Watched>) -> Arc<Stream> {
        let content: Arc<dyn Content> = Arc::clone(content) as _;
        Arc::new(Stream::new(content))
    }

    #[test]
    fn a_run_is_prepared_once_to_the_end_and_never_beyond() {
        let length = 50 * PIECE + 12_345;
        let content = Watched::new(length);
        let read_ahead = ReadAhead::new(2, MAX_WINDOW);
        let stream = stream(&content);
        let block = 128 << 10;
        for offset in (0..length).step_by(block) {
            read_ahead.note(&stream, offset, (block as u64).min(length - offset));
            // The reader is slower than the workers, or pieces would rightly be left out.
            while !lock(&read_ahead.queue.waiting).pieces.is_empty() {
                thread::yield_now();
            }
            let run = lock(&stream.run);
            assert!(run.ahead <= (run.next + MAX_WINDOW).min(length));
        }
        let pieces = content.prepared(length - 2 * block as u64);
        assert_eq!(pieces.first().map(|piece| piece.0), Some(2 * block as u64));
        assert!(pieces.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0), "{pieces:?}");
        assert_eq!(pieces.last().map(|piece| piece.0 + piece.1), Some(length));
    }

    #[test]
    fn random_reads_prepare_nothing() {
        let content = Watched::new(1 << 40);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let stream = stream(&content);
        for step in 0..1000_u64 {
            read_ahead.note(&stream, step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40), 4096);
        }
        assert_eq!(lock(&stream.run).window, 0);
        assert_eq!(lock(&content.prepared).len(), 0);
    }

    #[test]
    fn strided_reads_prepare_nothing() {
        let content = Watched::new(1 << 40);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let stream = stream(&content);
        for step in 0..1000 {
            read_ahead.note(&stream, step * PIECE, 4096);
        }
        assert_eq!(lock(&stream.run).window, 0);
        assert_eq!(lock(&content.prepared).len(), 0);
    }

    #[test]
    fn requests_that_overtake_each_other_stay_one_run() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let stream = stream(&content);
        let block = 128 << 10;
        for pair in 0..200_u64 {
            read_ahead.note(&stream, (2 * pair + 1) * block, block);
            read_ahead.note(&stream, 2 * pair * block, block);
        }
        assert_eq!(stream.run_number.load(Ordering::Relaxed), 0);
        assert_eq!(lock(&stream.run).window, MAX_WINDOW);
    }

    #[test]
    fn one_worker_rests_until_a_piece_is_urgent() {
        let queue = Queue::default();
        let stream = stream(&Watched::new(1 << 30));
        queue.add(&stream, 0, 8 * PIECE);
        let offset = |piece: Option<Piece>| piece.map(|piece| piece.offset);
        assert_eq!(offset(queue.next(true)), Some(0));
        assert_eq!(offset(queue.next(true)), Some(PIECE));
        thread::scope(|scope| {
            let resting = scope.spawn(|| offset(queue.next(true)));
            thread::sleep(20 * LOOK);
            assert!(!resting.is_finished());
            assert_eq!(offset(queue.next(false)), Some(2 * PIECE), "others do not rest");
            stream.position.store(3 * PIECE, Ordering::Relaxed);
            assert_eq!(resting.join().unwrap(), Some(3 * PIECE));
        });
    }

    #[test]
    fn streams_share_the_window() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let streams: Vec<_> = (0..4).map(|_| stream(&content)).collect();
        let windows = || -> u64 { streams.iter().map(|stream| lock(&stream.run).window).sum() };
        for block in 0..64 {
            for stream in &streams {
                read_ahead.note(stream, block * PIECE, PIECE);
            }
        }
        assert!(windows() <= MAX_WINDOW, "{}", windows());
        streams[1..].iter().for_each(|stream| read_ahead.close(stream));
        for block in 64..256 {
            read_ahead.note(&streams[0], block * PIECE, PIECE);
        }
        assert_eq!(windows(), MAX_WINDOW);
        // A seek ends a run, a close ends it only once.
        read_ahead.note(&streams[0], 0, 1);
        streams.iter().for_each(|stream| read_ahead.close(stream));
        assert_eq!(read_ahead.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_seek_and_a_close_drop_what_is_queued() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(1, MAX_WINDOW);
        let stream = stream(&content);
        let closed = lock(&content.gate);
        for block in 0..64 {
            read_ahead.note(&stream, block * PIECE, PIECE);
        }
        assert!(lock(&read_ahead.queue.waiting).pieces.len() > 8);
        read_ahead.note(&stream, 500 * PIECE, PIECE);
        read_ahead.note(&stream, 501 * PIECE, PIECE);
        drop(closed);
        let pieces = content.prepared(2 * PIECE);
        assert!(pieces.len() <= 2, "only the piece under way and the new run: {pieces:?}");
        assert!(pieces.contains(&(502 * PIECE, PIECE)));

        let _closed = lock(&content.gate);
        for block in 600..664 {
            read_ahead.note(&stream, block * PIECE, PIECE);
        }
        read_ahead.close(&stream);
        assert!(lock(&read_ahead.queue.waiting).pieces.is_empty());
    }

    #[test]
    fn with_too_small_a_budget_nothing_is_prepared() {
        let content = Watched::new(1 << 30);
        let read_ahead = ReadAhead::new(2, PIECE - 1);
        let stream = stream(&content);
        for block in 0..64 {
            read_ahead.note(&stream, block * PIECE, PIECE);
        }
        assert_eq!(content.prepared(0), []);
    }
}
