//! Fragments whose folders and commits do not match: complete ones that no commit names, and commits of fragments that a
//! vacuum removed.

use foldhash::HashSet;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::commit::mark_of_fragment;
use tilefs_format::folder::{COMMITS, FRAGMENTS};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_format::name::TimestampedName;
use tilefs_storage::Storage;

use super::ArrayDirectory;
use super::commit_lists::{FragmentEntry, FragmentFolders};
use super::window::now;

/// The number of folders named by no commit that are examined. Interrupted writers can leave many.
const MAX_UNNAMED: usize = 64;

/// The maximum time in milliseconds between writing and committing a fragment.
const MAX_COMMIT_MS: u64 = 10 * 60 * 1000;

impl ArrayDirectory {
    /// Drops committed fragments that a vacuum removed but whose commits it left behind, and adds a warning.
    ///
    /// libtiledb 2.14 does so with fragments that consolidated commits name: it names them in an ignore file. Such a
    /// fragment is only dropped if another one that is there covers its time, as the one that replaced it does.
    pub(super) fn drop_vacuumed(&mut self, folders: &FragmentFolders<'_>, ignored: &HashSet<String>) {
        let mut exists = folders.lookup();
        let mut is_lost = |fragment: &FragmentEntry| ignored.contains(&*fragment.path) && !exists(&fragment.path);
        if !self.fragments.iter().any(&mut is_lost) {
            return;
        }
        let mut exists = folders.lookup();
        let is_here: Vec<bool> = self.fragments.iter().map(|fragment| exists(&fragment.path)).collect();
        let is_gone = |number: usize, fragment: &FragmentEntry| !is_here[number] && ignored.contains(&*fragment.path);
        let here = self.fragments.iter().zip(&is_here).filter(|(_, is_here)| **is_here);
        let covers = TimesCovered::by(here.map(|(fragment, _)| fragment.times));
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for (number, fragment) in std::mem::take(&mut self.fragments).into_iter().enumerate() {
            match is_gone(number, &fragment) && covers.has(&fragment.times) {
                true => dropped.push(fragment),
                false => kept.push(fragment),
            }
        }
        self.fragments = kept;
        if let Some(first) = dropped.first() {
            let reason = format!(
                "{} committed fragments are not there; a vacuum removed them, according to its list of commits to \
                 ignore, and a fragment that covers their times is there",
                dropped.len()
            );
            self.warnings.push(self.warning(&first.path, &reason));
        }
    }

    /// Adds warnings about complete fragments that nothing names, and about names of missing fragments.
    ///
    /// A fragment without metadata was never finished. A vacuum file or an ignore file names fragments that a vacuum
    /// was about to remove. Neither causes a warning.
    pub(super) fn find_unnamed(
        &mut self,
        storage: &dyn Storage,
        folders: &FragmentFolders<'_>,
        ignored: &HashSet<String>,
    ) -> Result<()> {
        let replaced = self.vacuums.iter().flat_map(|vacuum| vacuum.replaced.iter().map(String::as_str));
        let mut exists = folders.lookup();
        let gone: Vec<&str> = replaced.clone().filter(|path| !exists(path)).collect();
        let committed = self.fragments.iter().map(|fragment| &*fragment.path);
        let unnamed = folders.unnamed(committed.chain(ignored.iter().map(String::as_str)).chain(replaced));
        let (mut warnings, mut uncommitted) = (std::mem::take(&mut self.warnings), Vec::new());
        if let Some(first) = gone.first() {
            let reason = format!(
                "{} fragments to be vacuumed are not there: a vacuum that was interrupted, or a damaged vacuum file",
                gone.len()
            );
            warnings.push(self.warning(first, &reason));
        }
        for path in unnamed.iter().take(MAX_UNNAMED) {
            // The commit of a recent fragment may have been written since the folder was listed.
            if !is_recent(path) {
                self.check_no_mark(storage, path)?;
            }
            let files = match self.names(storage, path) {
                // Its writer gave up, or a vacuum removed it.
                Err(Error::Missing { .. }) => continue,
                files => files?,
            };
            if files.iter().any(|file| file.name == FRAGMENT_METADATA) {
                if self.is_without_commits() {
                    let reason = "there is no such folder, and yet a complete fragment: the array is being taken away, \
                                  or its commits are lost";
                    return Err(Error::missing(reason).in_file(self.root.join(COMMITS)));
                }
                if is_recent(path) {
                    uncommitted.push(path.as_str().into());
                    continue;
                }
                warnings.push(self.warning_of_uncommitted(path));
            }
        }
        if unnamed.len() > MAX_UNNAMED {
            let reason = format!("{} fragments that no commit names were not looked into", unnamed.len() - MAX_UNNAMED);
            warnings.push(self.warning(FRAGMENTS, &reason));
        }
        (self.warnings, self.uncommitted) = (warnings, uncommitted);
        Ok(())
    }

    /// Fails if a fragment has a commit that the listing of the commits lacks, as the listing of a stale folder may.
    fn check_no_mark(&self, storage: &dyn Storage, path: &str) -> Result<()> {
        if self.listing.folder().identity.is_none() {
            return Ok(());
        }
        let mark = self.root.join(mark_of_fragment(path));
        match storage.length(&mark) {
            Err(Error::Missing { .. }) => Ok(()),
            Ok(_) => Err(Error::missing("its folder does not list it").in_file(mark)),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the array is in a file system and lacks the folder of commits, which writers create together
    /// with the array. In an object store the folder begins with the first commit.
    fn is_without_commits(&self) -> bool {
        self.listing.folder().identity.is_some() && !self.listing.top().iter().any(|one| one.name == COMMITS)
    }

    /// Returns the warning about a complete fragment that no commit names.
    pub(super) fn warning_of_uncommitted(&self, path: &str) -> String {
        let writer = if is_recent(path) { "its writer is about to commit it" } else { "its writer was interrupted" };
        let reason = format!(
            "a complete fragment is not shown, as no commit names it: {writer}, or its commit is lost. If nobody writes \
             it, an empty file {} shows it, and removing its folder discards it",
            mark_of_fragment(path)
        );
        self.warning(path, &reason)
    }
}

/// The time ranges of some fragments, to find whether one of them contains another range.
struct TimesCovered {
    /// Start times in ascending order, each with the latest end of a range that starts no later.
    ends: Vec<(u64, u64)>,
}

impl TimesCovered {
    fn by(times: impl Iterator<Item = TimestampedName>) -> Self {
        let mut ends: Vec<(u64, u64)> = times.map(|times| (times.t1, times.t2)).collect();
        ends.sort_unstable();
        let mut latest = 0;
        for (_, end) in &mut ends {
            latest = latest.max(*end);
            *end = latest;
        }
        TimesCovered { ends }
    }

    /// Returns whether one of the ranges contains this one.
    fn has(&self, times: &TimestampedName) -> bool {
        let begun = self.ends.partition_point(|(start, _)| *start <= times.t1);
        begun.checked_sub(1).and_then(|last| self.ends.get(last)).is_some_and(|(_, end)| *end >= times.t2)
    }
}

/// Returns whether a fragment is so recent, according to its name, that it may not be committed yet.
fn is_recent(path: &str) -> bool {
    let times = TimestampedName::parse(path).ok().flatten();
    times.is_some_and(|times| times.t2.abs_diff(now()) < MAX_COMMIT_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tilefs_format::name::NameForm;

    use super::*;

    proptest! {
        #[test]
        fn a_time_is_covered_if_one_range_contains_it(
            ranges in prop::collection::vec((0u64..20, 0u64..6), 0..12),
            wanted in (0u64..20, 0u64..6),
        ) {
            let times = |(start, length): (u64, u64)| {
                TimestampedName { t1: start, t2: start + length, version: 22, form: NameForm::Three }
            };
            let wanted = times(wanted);
            let is_contained = ranges.iter().map(|range| times(*range)).any(|own| own.t1 <= wanted.t1 && wanted.t2 <= own.t2);
            prop_assert_eq!(TimesCovered::by(ranges.into_iter().map(times)).has(&wanted), is_contained);
        }
    }
}
