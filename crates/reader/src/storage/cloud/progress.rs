//! How far a listing of many answers has come. A listing that brings nothing new, or does not end, is given up.

use std::time::{Duration, Instant};

/// The most answers: a folder that takes more has over ten million objects, or a store that never ends.
const MOST_PAGES: usize = 20_000;

/// The most answers in a row without a new name. Stores send empty ones while they pass over deleted objects.
const MOST_PAGES_WITHOUT_NAMES: usize = 200;

/// The most bytes of names, which are kept in memory.
const MOST_NAMES: usize = 1 << 30;

/// A listing may take so many times as long as one request.
const REQUESTS_OF_LISTING: u32 = 20;

/// Counts the answers of one listing.
pub struct Progress {
    deadline: Instant,
    pages: usize,
    without_names: usize,
    bytes: usize,
}

impl Progress {
    /// Of a listing that begins now, each request of which may take `io_timeout`.
    pub fn new(io_timeout: Duration) -> Self {
        let deadline = Instant::now() + io_timeout * REQUESTS_OF_LISTING;
        Progress { deadline, pages: 0, without_names: 0, bytes: 0 }
    }

    /// Counts an answer that another one follows, with its number of new names and the bytes of all its names.
    ///
    /// # Errors
    /// A sentence that says why the listing is given up.
    pub fn add(&mut self, new: usize, bytes: usize) -> Result<(), String> {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.without_names = if new == 0 { self.without_names + 1 } else { 0 };
        if self.without_names > MOST_PAGES_WITHOUT_NAMES {
            return Err(format!(
                "{} answers of the listing brought no new name, and there is no end",
                self.without_names
            ));
        }
        if self.pages >= MOST_PAGES || self.bytes > MOST_NAMES {
            return Err(format!("the listing has no end after {} answers and {} bytes", self.pages, self.bytes));
        }
        if Instant::now() >= self.deadline {
            return Err(format!("the listing took too long: {} answers, and there is no end", self.pages));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many answers a listing brings before it is given up, and why.
    fn given_up(io_timeout: Duration, answer: impl Fn(usize) -> (usize, usize)) -> (usize, String) {
        let mut progress = Progress::new(io_timeout);
        let answers = (1..=2 * MOST_PAGES).map(answer);
        answers
            .zip(1..)
            .find_map(|((new, bytes), count)| Some((count, progress.add(new, bytes).err()?)))
            .unwrap_or_else(|| panic!("it is never given up"))
    }

    #[test]
    fn listings_without_end_are_given_up() {
        let minute = Duration::from_secs(60);
        let (count, why) = given_up(minute, |_| (1000, 100_000));
        assert!(count == 10_738 && why.contains("no end after"), "{count}: {why}");
        assert_eq!(given_up(minute, |_| (1, 10)).0, MOST_PAGES);
        let (count, why) = given_up(minute, |_| (0, 0));
        assert!(count == MOST_PAGES_WITHOUT_NAMES + 1 && why.contains("no new name"), "{count}: {why}");
        // A few empty answers between others are none.
        assert_eq!(given_up(minute, |number| (number % 100, 10)).0, MOST_PAGES);
        assert!(given_up(Duration::ZERO, |_| (1, 1)).1.contains("took too long"));
    }
}
