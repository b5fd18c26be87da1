//! The files of `__meta` and `__group`, which have times in their names, and which of them are in force in a window.

use std::collections::HashSet;

use tilefs_base::error::{Locate, Result};
use tilefs_format::commit::parse_vacuum;
use tilefs_format::folder::{CommitFile, commit_file, timestamped_file};
use tilefs_format::name::TimestampedName;
use tilefs_storage::{KnownFolder, Listed, Storage, StoreKey};

use super::window::TimeWindow;

/// A larger vacuum file is implausible: it would name a hundred thousand files.
const MAX_VACUUM_BYTES: u64 = 8 << 20;

/// A file and the time range in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedFile {
    /// The times in the name.
    pub times: TimestampedName,
    /// The file.
    pub file: StoreKey,
}

/// Returns the names in a subfolder of an array or a group, or none if it is certain that there is no such folder: if
/// the folder around it does not list it either. An entry with its name must be a folder, because a broken link would
/// hide all its files.
///
/// # Errors
/// As [`Storage::list_in`].
pub(crate) fn names_in(storage: &dyn Storage, root: &KnownFolder, path: &str) -> Result<Vec<Listed>> {
    if let Some(names) = storage.list_in(root, path)? {
        return Ok(names);
    }
    let around = match root.identity {
        Some(_) => storage.list_in(root, "")?.unwrap_or_default(),
        None => Vec::new(),
    };
    if around.iter().any(|one| one.name == path) { Err(root.vanished(path)) } else { Ok(Vec::new()) }
}

/// Returns the files of a folder (given by its names) that lie within a window, without the files that a consolidated
/// file within the window replaces. They are in the order in which they apply: by start time, then by name.
///
/// # Errors
/// [`Error::Io`](tilefs_base::error::Error::Io) if a vacuum file cannot be read,
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for contradictory names or vacuum files.
pub(crate) fn files_in_force(
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
            let paths = parse_vacuum(&storage.read(&file, MAX_VACUUM_BYTES)?).in_file(&file)?;
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
    // The listing is sorted by name, and the sort is stable.
    files.sort_by_key(|file| file.times.t1);
    Ok(files)
}

/// Returns all files of a folder, in force or not, by name.
///
/// # Errors
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for impossible times.
pub(crate) fn timed_files(names: &[Listed], folder: &StoreKey) -> Result<Vec<TimedFile>> {
    let mut files = Vec::new();
    for one in names.iter().filter(|one| !one.is_folder()) {
        let times = timestamped_file(&one.name).in_file(folder)?;
        files.extend(times.map(|times| TimedFile { times, file: folder.join(&one.name) }));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use tilefs_base::error::Error;
    use tilefs_storage::LocalStorage;

    use super::*;
    use std::fs;
    use std::path::Path;

    fn name(t1: u64, t2: u64, digit: char) -> String {
        format!("__{t1}_{t2}_{}", digit.to_string().repeat(32))
    }

    /// Returns the names in a folder, given by its path in the folder around it.
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
    fn entries_that_are_not_folders_are_not_taken_for_empty_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        fs::write(folder.path().join("file"), []).unwrap();
        for name in ["link", "file"] {
            let error = names_below(&folder.path().join(name).into()).unwrap_err();
            // The target of a broken link may exist again the next time.
            assert_eq!(matches!(&error, Error::Io { .. }), name == "link", "{error}");
            assert_eq!(matches!(&error, Error::Damaged { .. }), name == "file", "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        fs::create_dir(folder.path().join("nowhere")).unwrap();
        assert!(names_below(&folder.path().join("link").into()).unwrap().is_empty());
    }

    #[test]
    fn a_vacuum_file_is_in_force_with_its_consolidated_file() {
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
