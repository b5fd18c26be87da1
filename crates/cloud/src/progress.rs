//! ListingProgress of a paged listing. A listing that returns nothing new, or never ends, is aborted.

use std::time::{Duration, Instant};

/// Maximum number of pages: a folder with more has over ten million objects, or the store never ends.
const MOST_PAGES: usize = 20_000;

/// Maximum number of consecutive pages without a new name. Stores send empty pages while they skip deleted objects.
const MOST_PAGES_WITHOUT_NAMES: usize = 200;

/// Maximum number of bytes of names, which are kept in memory.
const MOST_NAMES: usize = 1 << 30;

/// Time limit of a listing, as a multiple of that of a request.
const LISTING_TIME_FACTOR: u32 = 20;

/// Counts the pages of one listing.
pub struct ListingProgress {
    deadline: Instant,
    pages: usize,
    without_names: usize,
    bytes: usize,
}

impl ListingProgress {
    /// Starts a listing whose requests may each take `io_timeout`.
    pub fn new(io_timeout: Duration) -> Self {
        let deadline = Instant::now() + io_timeout * LISTING_TIME_FACTOR;
        ListingProgress { deadline, pages: 0, without_names: 0, bytes: 0 }
    }

    /// Counts a page that is not the last, with its number of new names and the bytes of all its names.
    ///
    /// # Errors
    /// A message that says why the listing is aborted.
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

    /// Returns after how many pages a listing is aborted, and why.
    fn given_up(io_timeout: Duration, answer: impl Fn(usize) -> (usize, usize)) -> (usize, String) {
        let mut progress = ListingProgress::new(io_timeout);
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
        // A few empty pages between others are allowed.
        assert_eq!(given_up(minute, |number| (number % 100, 10)).0, MOST_PAGES);
        assert!(given_up(Duration::ZERO, |_| (1, 1)).1.contains("took too long"));
    }
}
