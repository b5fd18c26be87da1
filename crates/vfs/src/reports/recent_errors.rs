//! The most recent errors of a mount, for `.tilefs/errors.txt`: readers only get an errno, and a background mount may
//! have no log. Reasons why names are not there and selections are empty have a list of their own.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tilefs_base::characters::steers;
use tilefs_base::timestamp::iso;

/// Number of different texts that each list keeps.
const KEPT: usize = 100;

/// Maximum length of a text in bytes.
const LONGEST: usize = 2000;

/// The most recent different errors, and beside them what is no error. Memory: at most two lists of [`KEPT`] texts of
/// [`LONGEST`] bytes.
#[derive(Debug, Default)]
pub struct RecentErrors {
    errors: Mutex<RecentTexts>,
    /// Programs look for many names that are not there, which must not displace an error.
    remarks: Mutex<RecentTexts>,
}

#[derive(Debug, Default)]
struct RecentTexts {
    /// The most recent is the last.
    texts: VecDeque<RecentText>,
    /// Number of different texts that there is no room for any more.
    displaced: u64,
}

#[derive(Debug)]
struct RecentText {
    text: String,
    times: u64,
    last: SystemTime,
}

impl RecentErrors {
    /// Records an error and the operation that failed. If it is recorded already, counts it once more.
    pub fn add(&self, doing: &str, error: &str) {
        locked(&self.errors).add(doing, error);
    }

    /// Records in the same way something that is no error: why a name is not there, or a selection selects nothing.
    pub fn remark(&self, about: &str, remark: &str) {
        locked(&self.remarks).add(about, remark);
    }

    /// Returns lines, the most recent first: time, text, and the number of times if it is more than one. Errors come
    /// first; an empty line separates them from remarks.
    pub fn text(&self) -> String {
        let (errors, remarks) = (locked(&self.errors).lines(), locked(&self.remarks).lines());
        match (errors.is_empty(), remarks.is_empty()) {
            (true, true) => "no errors so far\n".to_owned(),
            (false, false) => format!("{errors}\n{remarks}"),
            _ => errors + &remarks,
        }
    }
}

fn locked(texts: &Mutex<RecentTexts>) -> MutexGuard<'_, RecentTexts> {
    texts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecentTexts {
    fn add(&mut self, about: &str, told: &str) {
        // The text may contain names from any user's request, and must not control the terminal that shows it.
        let mut text = format!("{about}: {told}").replace(steers, " ");
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            text.push_str(" ...");
        }
        let known = self.texts.iter().position(|known| known.text == text).and_then(|place| self.texts.remove(place));
        let times = known.map_or(0, |known| known.times).saturating_add(1);
        self.texts.push_back(RecentText { text, times, last: SystemTime::now() });
        if self.texts.len() > KEPT {
            self.texts.pop_front();
            self.displaced = self.displaced.saturating_add(1);
        }
    }

    fn lines(&self) -> String {
        let line = |recent: &RecentText| {
            let since = recent.last.duration_since(UNIX_EPOCH).unwrap_or_default();
            let times = if recent.times > 1 { format!(" ({} times)", recent.times) } else { String::new() };
            format!("{} {}{times}\n", iso(since.as_millis() as u64).unwrap_or_default(), recent.text)
        };
        let mut lines: String = self.texts.iter().rev().map(line).collect();
        if self.displaced > 0 {
            lines += &format!("and {} before these\n", self.displaced);
        }
        lines
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
        assert_eq!(text.lines().count(), KEPT + 1);
        assert!(text.ends_with(&format!("\nand {} before these\n", 9 * KEPT + 1)), "{text}");
        assert!(text.len() <= KEPT * (LONGEST + 60) && text.contains(&format!("error {}", 10 * KEPT - 1)));
    }

    /// However many names are looked up that are not there.
    #[test]
    fn remarks_displace_no_error() {
        let errors = RecentErrors::default();
        errors.add("read of a", "bad chunk");
        for number in 0..10 * KEPT {
            errors.remark(&format!("name {number}"), "there is no such file");
        }
        errors.add("read of a", "bad chunk");
        let text = errors.text();
        let (own, others) = text.split_once("\n\n").unwrap();
        assert!(own.ends_with(" read of a: bad chunk (2 times)"), "{text}");
        assert_eq!(others.lines().count(), KEPT + 1);
        let only = RecentErrors::default();
        only.remark("name", "there is no such file");
        assert_eq!(only.text().lines().count(), 1);
    }
}
