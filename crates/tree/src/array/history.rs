//! `.history/`: earlier states of an array or a group. Its names are times and windows of time:
//!
//! * `20240131T101500.000Z`: everything up to and including that time, in every form that [`time::span`] reads, as in
//!   `--at`. As in `slice/`, a name means all of the time that it spans: `2024` shows the state at the end of that year
//! * `T1..T2`: everything written from T1 to T2, both included; either may be omitted
//!
//! The listing has the times of the commits. There is no folder for times before the array began. `.history` itself is
//! not listed, so `find` does not descend into it.

use std::sync::Arc;
use std::time::SystemTime;

use tilefs_base::error::Result;
use tilefs_base::lru_cache::LruCache;
use tilefs_reader::array::TimeWindow;
use tilefs_select::time;
use tilefs_threads::cancellation;
use tilefs_vfs::node::{Entry, Folder, Node};

/// Its name in the folders of arrays and groups.
pub const HISTORY: &str = ".history";

/// Number of recently used trees that are kept.
const KEPT: usize = 8;

/// Opens the tree that shows a window of time.
type OpenTree = Box<dyn Fn(TimeWindow) -> Result<Arc<dyn Folder>> + Send + Sync>;

/// The folder of all times. Nothing is opened before it is looked up.
pub struct History {
    /// The window of the surrounding tree, which supplies missing starts and ends.
    window: TimeWindow,
    commit_times: Box<dyn Fn() -> Result<Vec<u64>> + Send + Sync>,
    began: Box<dyn Fn() -> Result<Option<u64>> + Send + Sync>,
    open: OpenTree,
    modified: SystemTime,
    kept: LruCache<TimeWindow, Arc<dyn Folder>>,
}

impl History {
    /// Creates the folder. `commit_times` returns the times to list, ascending; `began` returns the time when the
    /// object began, which after a consolidation may be before the first of these; and `open` opens the tree of a
    /// window.
    pub fn new(
        window: TimeWindow,
        modified: SystemTime,
        commit_times: impl Fn() -> Result<Vec<u64>> + Send + Sync + 'static,
        began: impl Fn() -> Result<Option<u64>> + Send + Sync + 'static,
        open: impl Fn(TimeWindow) -> Result<Arc<dyn Folder>> + Send + Sync + 'static,
    ) -> Self {
        let kept = LruCache::new(KEPT);
        let (commit_times, began, open) = (Box::new(commit_times), Box::new(began), Box::new(open));
        History { window, commit_times, began, open, modified, kept }
    }

    /// Returns the window that a name means.
    ///
    /// # Errors
    /// The reason why it is none, as part of a sentence.
    fn window_of(&self, name: &str) -> std::result::Result<TimeWindow, String> {
        let (start, end) = time::window(name)?;
        let (start, end) = (start.unwrap_or(self.window.start), end.unwrap_or(self.window.end));
        match start <= end {
            true => Ok(TimeWindow { start, end }),
            false => Err("the window ends before it begins".to_owned()),
        }
    }

    /// Returns whether anything had been written by this time. An object without recorded times has always existed.
    fn existed(&self, time: u64) -> Result<bool> {
        Ok((self.began)()?.is_none_or(|began| began <= time))
    }
}

impl Folder for History {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let Ok(window) = self.window_of(name) else { return Ok(None) };
        if let Some(folder) = self.kept.get(&window) {
            return Ok(Some(Node::Folder(folder)));
        }
        if !self.existed(window.end)? {
            return Ok(None);
        }
        let folder = (self.open)(window)?;
        cancellation::check()?;
        self.kept.put(window, folder.clone());
        Ok(Some(Node::Folder(folder)))
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        Some(match self.window_of(name) {
            Err(reason) => format!(
                "{name} is not a time: {reason}; write 2024, 2024-01-31T10:15Z, 1704067200000 or two of these with .. \
                 between"
            ),
            Ok(_) => {
                let began = (self.began)().ok()??;
                format!("nothing was there yet; the first commit is {}", time::basic(began))
            }
        })
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let times = (self.commit_times)()?;
        let within = times.into_iter().filter(|time| (self.window.start..=self.window.end).contains(time));
        Ok(within.map(|time| Entry::folder(time::basic(time))).collect())
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, UNIX_EPOCH};
    use tilefs_vfs::node::lazy::FixedFolder;

    /// Trees whose modification time is the end of their window, minus its start.
    fn history(opened: Arc<AtomicUsize>) -> History {
        let open = move |window: TimeWindow| -> Result<Arc<dyn Folder>> {
            opened.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(FixedFolder::new(UNIX_EPOCH + Duration::from_millis(window.end - window.start))))
        };
        let window = TimeWindow { start: 0, end: 1_700_000_000_000 };
        let times = vec![1_500_000_000_000, 1_600_000_000_000, 1_800_000_000_000];
        // The first commit was consolidated: the array began before it.
        History::new(window, UNIX_EPOCH, move || Ok(times.clone()), || Ok(Some(1_480_000_000_000)), open)
    }

    #[test]
    fn lists_commits_and_opens_requested_times() {
        let opened = Arc::new(AtomicUsize::new(0));
        let history = history(opened.clone());
        let names: Vec<String> = history.list().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["20170714T024000.000Z", "20200913T122640.000Z"]);
        assert_eq!(opened.load(Ordering::SeqCst), 0);
        for name in &names {
            assert!(matches!(history.lookup(name), Ok(Some(Node::Folder(_)))));
            assert!(matches!(history.lookup(name), Ok(Some(Node::Folder(_)))));
        }
        assert_eq!(opened.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn names_are_times_and_windows() {
        let history = history(Arc::default());
        let window = |name: &str| history.window_of(name).ok().map(|window| (window.start, window.end));
        assert_eq!(window("1600000000000"), Some((0, 1_600_000_000_000)));
        assert_eq!(window("ms-1600000000000"), Some((0, 1_600_000_000_000)));
        assert_eq!(window("2020-09-13T12:26:40Z"), Some((0, 1_600_000_000_999)));
        assert_eq!(window("20200913T122640.000Z"), Some((0, 1_600_000_000_000)));
        assert_eq!(window("ms-1..ms-2"), Some((1, 2)));
        assert_eq!(window("2018..2019"), Some((1_514_764_800_000, 1_577_836_799_999)));
        assert_eq!(window("20200913T122640.000Z..20200913T122640.001Z"), Some((1_600_000_000_000, 1_600_000_000_001)));
        assert_eq!(window("ms-5.."), Some((5, 1_700_000_000_000)));
        assert_eq!(window("..ms-5"), Some((0, 5)));
        for name in [
            "",
            "now",
            "ms-2..ms-1",
            "..",
            "ms-1...ms-2",
            "ms-1..ms-2..ms-3",
            "1969",
            ".hidden",
            "%",
            "ms-1800000000000..",
        ] {
            assert_eq!(window(name), None, "{name}");
        }
    }

    #[test]
    fn nothing_exists_before_the_first_write() {
        let opened = Arc::new(AtomicUsize::new(0));
        let history = history(opened.clone());
        for name in ["2015", "ms-1479999999999", "2014..2015", "20161124T150639.999Z"] {
            assert!(history.lookup(name).unwrap().is_none(), "{name}");
        }
        assert_eq!(opened.load(Ordering::SeqCst), 0);
        for name in ["2016", "ms-1480000000000", "2015..2016", "2030"] {
            assert!(history.lookup(name).unwrap().is_some(), "{name}");
        }
    }
}
