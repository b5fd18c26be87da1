//! A reader of an open file, as prefetching sees it.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilefs_base::content::Content;
use tilefs_threads::cancellation::Token;

use super::pattern::Pattern;
use super::unread::Unread;

/// Prefetch state of one open file.
pub struct Reader {
    pub(super) content: Arc<dyn Content>,
    pub(super) pattern: Mutex<Pattern>,
    /// Incremented whenever earlier expectations become obsolete.
    pub(super) generation: AtomicU64,
    /// Number of bytes read so far.
    pub(super) served: AtomicU64,
    /// Range of the last read.
    pub(super) last: Mutex<Range<u64>>,
    pub(super) unread: Mutex<Unread>,
    /// Cancelled when the file is closed, which stops its prefetching.
    pub(super) token: Token,
}

impl Reader {
    /// Creates a reader that has not read yet.
    pub(super) fn new(content: Arc<dyn Content>) -> Self {
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

    /// Returns the file's content.
    pub fn content(&self) -> &dyn Content {
        &*self.content
    }

    /// Returns how many bytes the reader will read before it reaches the first range: the gap between the last read and
    /// that range. Returns 0 for strides.
    pub(super) fn bytes_before(&self, ranges: &[Range<u64>]) -> u64 {
        let last = lock(&self.last).clone();
        let is_stride = ranges.len() > 1 && ranges[0].end != ranges[1].start && ranges[1].end != ranges[0].start;
        match ranges.first() {
            Some(first) if !is_stride && first.start >= last.end => first.start - last.end,
            Some(first) if !is_stride && first.end <= last.start => last.start - first.end,
            _ => 0,
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
