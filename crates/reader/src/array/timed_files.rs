//! The files of `__meta` and `__group`, each with its time in its name: which of them are in force in a window.

use std::collections::HashSet;

use tilefs_format::commit::parse_vacuum;
use tilefs_format::error::{Locate, Result};
use tilefs_format::folder::{CommitFile, commit_file, timestamped_file};
use tilefs_format::name::TimestampedName;

use super::window::TimeWindow;
use crate::storage::{KnownFolder, Listed, Storage, StoreKey};

/// A vacuum file larger than this is not plausible: it would name a hundred thousand files.
const MOST_VACUUM: u64 = 8 << 20;

/// One file and the time range in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedFile {
    pub times: TimestampedName,
    pub file: StoreKey,
}

/// The names in a folder of an array or a group. There are none where it is established that there is no such folder;
/// what has its name must be one, as a link to nowhere hides all that is in it.
///
/// # Errors
/// As [`Storage::list_in`].
pub fn names_in(storage: &dyn Storage, root: &KnownFolder, path: &str) -> Result<Vec<Listed>> {
    Ok(storage.list_in(root, path)?.unwrap_or_default())
}

/// The files of a folder, of which these are the names, that lie within a window, without those that a consolidated one
/// within the window has replaced. In the order in which they apply: by start time, ties by name.
///
/// # Errors
/// [`Error::Io`](tilefs_format::error::Error::Io) where a vacuum file cannot be read,
/// [`Error::Damaged`](tilefs_format::error::Error::Damaged) for names and vacuum files that
/// contradict themselves.
pub fn files_in_force(
    storage: &dyn Storage,
    names: &[Listed],
    folder: &StoreKey,
    window: TimeWindow,
) -> Result<Vec<TimedFile>> {
    let mut replaced = HashSet::new();
    for one in names.iter().filter(|one| !one.is_folder()) {
        if let Some((CommitFile::Vacuum, times)) = commit_file(&one.name).in_file(folder)?
            && window.contains(&times)
        {
            let file = folder.join(&one.name);
            let paths = parse_vacuum(&storage.read(&file, MOST_VACUUM)?).in_file(&file)?;
            replaced.extend(paths.into_iter().filter_map(|path| path.rsplit('/').next().map(str::to_owned)));
        }
    }
    let mut files = Vec::new();
    for one in names.iter().filter(|one| !one.is_folder() && !replaced.contains(&one.name)) {
        if let Some(times) = timestamped_file(&one.name).in_file(folder)?
            && window.contains(&times)
        {
            files.push(TimedFile { times, file: folder.join(&one.name) });
        }
    }
    // The listing is in the order of names, and the sort keeps it among equals.
    files.sort_by_key(|file| file.times.t1);
    Ok(files)
}

/// All files of a folder, in force or not, by name.
///
/// # Errors
/// [`Error::Damaged`](tilefs_format::error::Error::Damaged) for impossible times.
pub fn timed_files(names: &[Listed], folder: &StoreKey) -> Result<Vec<TimedFile>> {
    let mut files = Vec::new();
    for one in names.iter().filter(|one| !one.is_folder()) {
        let times = timestamped_file(&one.name).in_file(folder)?;
        files.extend(times.map(|times| TimedFile { times, file: folder.join(&one.name) }));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use tilefs_format::error::Error;

    use super::*;
    use crate::storage::LocalStorage;
    use std::fs;
    use std::path::Path;

    fn name(t1: u64, t2: u64, digit: char) -> String {
        format!("__{t1}_{t2}_{}", digit.to_string().repeat(32))
    }

    /// The names in a folder of the folder around it.
    fn names_below(folder: &StoreKey) -> Result<Vec<Listed>> {
        let storage = LocalStorage::new();
        let root = storage.know(&folder.parent().unwrap())?;
        names_in(&storage, &root, &folder.shown_name())
    }

    fn in_force(folder: &Path, start: u64, end: u64) -> Vec<String> {
        let (storage, folder) = (LocalStorage::new(), StoreKey::from(folder));
        let names = names_below(&folder).unwrap();
        let files = files_in_force(&storage, &names, &folder, TimeWindow { start, end }).unwrap();
        files.iter().map(|one| one.file.shown_name()).collect()
    }

    #[test]
    fn order_is_by_start_time_then_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = [name(10, 10, '0'), name(9, 9, 'b'), name(9, 9, 'a'), name(100, 100, '1')];
        for name in &names {
            fs::write(folder.path().join(name), []).unwrap();
        }
        fs::write(folder.path().join(format!("{}.tmp", name(9, 9, 'c'))), []).unwrap();
        fs::create_dir(folder.path().join(name(9, 9, 'd'))).unwrap();
        assert_eq!(in_force(folder.path(), 0, 100), [&*names[2], &names[1], &names[0], &names[3]]);
        assert_eq!(in_force(folder.path(), 10, 99), [&*names[0]]);
        let key = StoreKey::from(folder.path());
        let all = timed_files(&names_below(&key).unwrap(), &key).unwrap();
        assert_eq!(all.iter().map(|one| one.times.t2).collect::<Vec<_>>(), [100, 10, 9, 9]);
        assert!(in_force(&folder.path().join("none"), 0, 9).is_empty());
    }

    #[test]
    fn what_is_no_folder_does_not_pass_for_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        fs::write(folder.path().join("file"), []).unwrap();
        for name in ["link", "file"] {
            let error = names_below(&folder.path().join(name).into()).unwrap_err();
            // What a link leads to may be there again the next time.
            assert_eq!(matches!(&error, Error::Io { .. }), name == "link", "{error}");
            assert_eq!(matches!(&error, Error::Damaged { .. }), name == "file", "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        fs::create_dir(folder.path().join("nowhere")).unwrap();
        assert!(names_below(&folder.path().join("link").into()).unwrap().is_empty());
    }

    #[test]
    fn a_vacuum_file_counts_with_its_consolidated_file() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second, both) = (name(1, 1, 'a'), name(3, 3, 'b'), name(1, 3, 'c'));
        for name in [&first, &second, &both] {
            fs::write(folder.path().join(name), []).unwrap();
        }
        let lines = format!("/__meta/{first}\nfile:///elsewhere/__meta/{second}\n");
        fs::write(folder.path().join(format!("{both}.vac")), lines).unwrap();
        assert_eq!(in_force(folder.path(), 0, 3), [&*both]);
        assert_eq!(in_force(folder.path(), 0, 2), [&*first]);
        assert_eq!(in_force(folder.path(), 2, 3), [&*second]);
    }
}
