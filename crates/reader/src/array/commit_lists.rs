//! The lists of commits in an array's folder: which fragments and deletes are committed, ignored or replaced. They are
//! compared with the existing folders, because they have no checksum, and a fragment with a damaged name in a list
//! would be missing without an error.

use foldhash::HashSet;
use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::folder::{COMMITS, CommitFile, FRAGMENTS, RootFragment, commit_file, root_fragment};
use tilefs_format::name::{NameForm, TimestampedName};

use crate::storage::{Listed, Storage, StoreKey, together};

/// A consolidated commit file or vacuum file may have this many bytes.
const MAX_COMMIT_FILE_BYTES: u64 = 32 << 20;

/// In addition, it may have this many bytes for each existing fragment; a larger file is implausible.
const MAX_BYTES_PER_FRAGMENT: u64 = 256;

/// A commit file or vacuum file: its name, its kind, and the times in its name.
pub(super) type Commit<'a> = (&'a str, CommitFile, TimestampedName);

/// The names in the folders that contain fragments.
pub(super) struct FragmentFolders<'a> {
    /// The array's own folder, which has fragments of format versions before 12.
    pub top: &'a [Listed],
    /// The folder of fragments.
    pub inner: Vec<Listed>,
}

impl FragmentFolders<'_> {
    /// Returns whether there is an entry with a fragment's name.
    pub fn has(&self, path: &str) -> bool {
        let (names, name) = match path.strip_prefix(FRAGMENTS).and_then(|path| path.strip_prefix('/')) {
            Some(name) => (self.inner.as_slice(), name),
            None => (self.top, path),
        };
        // Listings are in byte order.
        names.binary_search_by(|one| one.name.as_str().cmp(name)).is_ok()
    }

    /// Returns the maximum size of a list of commits in bytes, from the number of existing fragments.
    fn max_list_bytes(&self) -> u64 {
        MAX_COMMIT_FILE_BYTES + MAX_BYTES_PER_FRAGMENT * (self.top.len() + self.inner.len()) as u64
    }

    /// Returns the paths of all folders that only become fragments by a commit.
    pub fn paths(&self) -> impl Iterator<Item = String> + '_ {
        let is_marked = |one: &&Listed| matches!(root_fragment(&one.name), Ok(Some(RootFragment::Marked(_))));
        let outer = self.top.iter().filter(is_marked).filter(|one| one.is_folder()).map(|one| one.name.clone());
        let is_fragment = |one: &&Listed| matches!(TimestampedName::parse(&one.name), Ok(Some(_)));
        let inner = self.inner.iter().filter(is_fragment).filter(|one| one.is_folder());
        outer.chain(inner.map(|one| format!("{FRAGMENTS}/{}", one.name)))
    }
}

/// Returns the files about commits among the names of a folder.
pub(super) fn commits_of(names: &[Listed]) -> Result<Vec<Commit<'_>>> {
    let files = names.iter().filter(|one| !one.is_folder());
    let commits = files.filter_map(|one| {
        let commit = commit_file(&one.name).transpose()?;
        Some(commit.map(|(kind, times)| (one.name.as_str(), kind, times)))
    });
    commits.collect()
}

/// The contents of commit files that are lists.
pub(super) struct CommitTexts(Vec<(CommitFile, TimestampedName, StoreKey, Vec<u8>)>);

impl CommitTexts {
    /// Reads the lists of several folders of commits concurrently, for an array with these fragments.
    ///
    /// # Errors
    /// As [`Storage::read`].
    pub fn read(
        storage: &dyn Storage,
        folders: [(&StoreKey, &[Commit<'_>]); 2],
        fragments: &FragmentFolders<'_>,
    ) -> Result<Self> {
        let most = fragments.max_list_bytes();
        let is_list = |kind| matches!(kind, CommitFile::Vacuum | CommitFile::Ignored | CommitFile::Consolidated);
        let files = folders.into_iter().flat_map(|(folder, commits)| {
            let lists = commits.iter().filter(|(_, kind, _)| is_list(*kind));
            lists.map(move |&(name, kind, times)| (kind, times, folder.join(name)))
        });
        let read = |(kind, times, file): (CommitFile, TimestampedName, StoreKey)| {
            storage.read(&file, most).map(|text| (kind, times, file, text))
        };
        together(storage, folders[0].0, files.collect(), read).into_iter().collect::<Result<_>>().map(CommitTexts)
    }

    /// Returns the times, keys and bytes of the lists of a kind.
    pub fn of_kind(&self, wanted: CommitFile) -> impl Iterator<Item = (TimestampedName, &StoreKey, &[u8])> {
        let texts = self.0.iter().filter(move |(kind, ..)| *kind == wanted);
        texts.map(|(_, times, file, text)| (*times, file, text.as_slice()))
    }
}

/// The contents of all consolidated commit files together, without entries of ignore files.
#[derive(Default)]
pub(super) struct Consolidated {
    /// Paths of fragments in the array, which all exist.
    pub fragments: HashSet<String>,
    /// Paths of ignored fragments.
    pub ignored: HashSet<String>,
    /// Markers of deletes with their bytes.
    pub deletes: Vec<(String, Vec<u8>)>,
}

impl Consolidated {
    /// Combines the lists and compares them with the existing folders.
    ///
    /// # Errors
    /// [`Error::Damaged`] for lists that do not parse, or that name something that is no commit or does not exist.
    pub fn read(texts: &CommitTexts, folders: &FragmentFolders<'_>) -> Result<Self> {
        let mut all = Consolidated::default();
        for (_, file, text) in texts.of_kind(CommitFile::Ignored) {
            // Ignore files also name deletes, but libtiledb applies the copies of these deletes anyway.
            all.ignored.extend(parse_ignored_commits(text).in_file(file)?.into_iter().filter_map(fragment_of_mark));
        }
        for (_, file, bytes) in texts.of_kind(CommitFile::Consolidated) {
            for commit in parse_consolidated_commits(bytes).in_file(file)? {
                match commit.delete {
                    Some(delete) => {
                        check_delete(commit.mark).in_file(file)?;
                        all.deletes.push((commit.mark.to_owned(), delete.to_owned()));
                    }
                    None => {
                        let path = fragment_of_mark(commit.mark);
                        let path = path.filter(|path| matches!(TimestampedName::parse(path), Ok(Some(_))));
                        let path = path.ok_or_else(|| names_nothing(commit.mark)).in_file(file)?;
                        if all.ignored.contains(&path) {
                            continue;
                        }
                        // Independent of its time, because a damaged name may also have a damaged time.
                        if !folders.has(&path) {
                            let reason = format!("it commits {path:?}, which does not exist");
                            return Err(Error::damaged(reason).in_file(file));
                        }
                        all.fragments.insert(path);
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Checks that a delete is in the folder of commits and has a single time.
fn check_delete(mark: &str) -> Result<()> {
    let name = mark.strip_prefix(COMMITS).and_then(|mark| mark.strip_prefix('/')).filter(|name| !name.contains('/'));
    match name.map(TimestampedName::parse) {
        Some(Ok(Some(times))) if times.form == NameForm::Three && times.t1 == times.t2 => Ok(()),
        _ => Err(names_nothing(mark)),
    }
}

fn names_nothing(mark: &str) -> Error {
    Error::damaged(format!("{mark:?} is not a commit"))
}
