//! The most recent errors of a mount, for `.tilefs/errors.txt`: readers only get an errno, and a background mount may
//! have no log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tilefs_tree::select::time::extended;

/// Number of different errors that are kept.
const KEPT: usize = 100;

/// Maximum length of an error's text in bytes.
const LONGEST: usize = 2000;

/// The most recent different errors. Memory: at most [`KEPT`] texts of [`LONGEST`] bytes.
#[derive(Debug, Default)]
pub struct RecentErrors {
    /// The most recent is the last.
    errors: Mutex<VecDeque<RecentError>>,
}

#[derive(Debug)]
struct RecentError {
    text: String,
    times: u64,
    last: SystemTime,
}

impl RecentErrors {
    /// Records an error and the operation that failed. If it is recorded already, counts it once more.
    pub fn add(&self, doing: &str, error: &str) {
        // The text may contain names from any user's request, and must not control the terminal that shows it.
        let mut text = format!("{doing}: {error}").replace(char::is_control, " ");
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push_str(" ...");
        }
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let known = errors.iter().position(|known| known.text == text).and_then(|place| errors.remove(place));
        let times = known.map_or(0, |known| known.times).saturating_add(1);
        errors.push_back(RecentError { text, times, last: SystemTime::now() });
        if errors.len() > KEPT {
            errors.pop_front();
        }
    }

    /// Returns the errors as lines, the most recent first: time, text, and the number of times if it is more than one.
    pub fn text(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.is_empty() {
            return "no errors so far\n".to_owned();
        }
        let line = |error: &RecentError| {
            let since = error.last.duration_since(UNIX_EPOCH).unwrap_or_default();
            let times = if error.times > 1 { format!(" ({} times)", error.times) } else { String::new() };
            format!("{} {}{times}\n", extended(since.as_millis() as u64), error.text)
        };
        errors.iter().rev().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_repeats_are_counted() {
        let errors = RecentErrors::default();
        assert_eq!(errors.text(), "no errors so far\n");
        errors.add("read of a", "bad\nchunk");
        errors.add("read of b", "other\u{1b}");
        errors.add("read of a", "bad\nchunk");
        let text = errors.text();
        let lines: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(lines, ["read of a: bad chunk (2 times)", "read of b: other "]);
    }

    #[test]
    fn memory_is_bounded() {
        let errors = RecentErrors::default();
        for number in 0..10 * KEPT {
            errors.add(&"é".repeat(LONGEST), "long");
            errors.add("read", &format!("error {number}"));
        }
        let text = errors.text();
        assert_eq!(text.lines().count(), KEPT);
        assert!(text.len() <= KEPT * (LONGEST + 60) && text.contains(&format!("error {}", 10 * KEPT - 1)));
    }
}
