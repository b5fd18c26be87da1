//! Rate-limited error log: writes each distinct error once and counts its repeats.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::recent_errors::RecentErrors;

/// Time during which repeats of an error are not logged.
const QUIET: Duration = Duration::from_secs(60);

/// Maximum number of distinct errors logged per quiet period. A badly damaged array has millions.
const MAX_DISTINCT: usize = 200;

/// Remembers what was logged.
#[derive(Debug, Default)]
pub struct ErrorLog {
    written: Mutex<WrittenErrors>,
    recent: Arc<RecentErrors>,
}

#[derive(Debug, Default)]
struct WrittenErrors {
    /// Time of the last log line per error text, and the number of repeats since.
    texts: HashMap<String, (Instant, u64)>,
    since: Option<Instant>,
    unwritten: u64,
}

impl ErrorLog {
    /// Logs the error with the current activity, unless the same error was logged recently.
    pub fn report(&self, doing: &str, error: &str) {
        self.report_as(doing, error, error);
    }

    /// Like [`report`](Self::report), with another text for those who read the recent errors.
    pub fn report_as(&self, doing: &str, error: &str, shown: &str) {
        self.recent.add(doing, shown);
        let line = {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            written.line(doing, error, Instant::now())
        };
        if let Some(line) = line {
            log::error!("{line}");
        }
    }

    /// Returns the most recent errors, whether or not they were logged.
    pub fn recent(&self) -> &Arc<RecentErrors> {
        &self.recent
    }
}

/// Returns the message of a panic.
pub fn reason_of_panic(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

impl WrittenErrors {
    /// Returns the line to log now, if any.
    fn line(&mut self, doing: &str, error: &str, now: Instant) -> Option<String> {
        if self.since.is_none_or(|since| now.duration_since(since) >= QUIET) {
            self.texts.retain(|_, (last, repeats)| *repeats > 0 || now.duration_since(*last) < QUIET);
            if self.texts.len() >= MAX_DISTINCT {
                self.texts.clear();
            }
            self.since = Some(now);
            self.unwritten = 0;
        }
        if let Some((last, repeats)) = self.texts.get_mut(error) {
            *repeats += 1;
            if now.duration_since(*last) < QUIET {
                return None;
            }
            let line = format!("{doing}: {error} ({repeats} times since it was last reported)");
            (*last, *repeats) = (now, 0);
            return Some(line);
        }
        if self.texts.len() >= MAX_DISTINCT {
            self.unwritten += 1;
            return (self.unwritten == 1).then(|| {
                format!("{MAX_DISTINCT} different errors within {} s: further ones are not reported", QUIET.as_secs())
            });
        }
        self.texts.insert(error.to_owned(), (now, 0));
        Some(format!("{doing}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_logged_once_and_repeats_counted() {
        let mut written = WrittenErrors::default();
        let start = Instant::now();
        assert_eq!(written.line("read of a", "bad chunk", start).as_deref(), Some("read of a: bad chunk"));
        for _ in 0..9 {
            assert_eq!(written.line("read of a", "bad chunk", start), None);
        }
        assert!(written.line("read of a", "another", start).is_some());
        assert_eq!(
            written.line("read of b", "bad chunk", start + QUIET).as_deref(),
            Some("read of b: bad chunk (10 times since it was last reported)")
        );
        assert_eq!(written.line("read of b", "bad chunk", start + QUIET), None);
    }

    #[test]
    fn panics_have_a_reason() {
        let caught = |panic: fn()| std::panic::catch_unwind(panic).unwrap_err();
        assert_eq!(reason_of_panic(&*caught(|| panic!("plain"))), "plain");
        assert_eq!(reason_of_panic(&*caught(|| panic!("with {}", 1))), "with 1");
        assert_eq!(reason_of_panic(&*caught(|| std::panic::panic_any(1))), "no reason given");
    }

    #[test]
    fn a_flood_of_different_errors_is_cut_and_memory_is_bounded() {
        let mut written = WrittenErrors::default();
        let start = Instant::now();
        for round in 0..5_u32 {
            let now = start + QUIET * round;
            let lines =
                (0..10_000).filter(|n| written.line("read", &format!("bad chunk {round} {n}"), now).is_some()).count();
            assert_eq!(lines, MAX_DISTINCT + 1);
            assert!(written.texts.len() <= MAX_DISTINCT);
        }
    }
}
