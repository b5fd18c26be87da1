//! The lists of commits in an array's folder: which fragments and deletes are committed, ignored or replaced. They are
//! compared with the existing folders, because they have no checksum, and a fragment with a damaged name in a list
//! would be missing without an error.

use foldhash::HashSet;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits};
use tilefs_format::folder::{COMMITS, CommitFile, FRAGMENTS, RootFragment, commit_file, root_fragment};
use tilefs_format::name::{NameForm, TimestampedName};
use tilefs_storage::{Listed, Storage, StoreKey, together};

use super::ascending::Ascending;

/// A consolidated commit file or vacuum file may have this many bytes.
const MAX_COMMIT_FILE_BYTES: u64 = 32 << 20;

/// In addition, it may have this many bytes for each existing fragment; a larger file is implausible.
const MAX_BYTES_PER_FRAGMENT: u64 = 256;

/// A fragment by its folder; nothing of it has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentEntry {
    /// The path of its folder in the array.
    pub path: Box<str>,
    /// The times and the version in the name.
    pub times: TimestampedName,
}

impl FragmentEntry {
    /// Returns the last component of the folder's path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A commit file or vacuum file: its name, its kind, and the times in its name.
pub(crate) type Commit<'a> = (&'a str, CommitFile, TimestampedName);

/// The names in the folders that contain fragments.
pub(crate) struct FragmentFolders<'a> {
    /// The array's own folder, which has fragments of format versions before 12.
    pub top: &'a [Listed],
    /// The folder of fragments.
    pub inner: Vec<Listed>,
}

impl FragmentFolders<'_> {
    /// Returns a function that returns whether there is an entry with a fragment's path. It is fastest for paths in
    /// byte order.
    pub fn lookup(&self) -> impl FnMut(&str) -> bool {
        // Listings are in byte order.
        let [mut top, mut inner] = [self.top, &self.inner].map(|names| Ascending::new(names, |one| one.name.as_str()));
        move |path| match inner_name(path) {
            Some(name) => inner.find(name).is_some(),
            None => top.find(path).is_some(),
        }
    }

    /// Returns the maximum size of a list of commits in bytes, from the number of existing fragments.
    fn max_list_bytes(&self) -> u64 {
        MAX_COMMIT_FILE_BYTES + MAX_BYTES_PER_FRAGMENT * (self.top.len() + self.inner.len()) as u64
    }

    /// Returns the paths of the folders that only become fragments by a commit, except for the named ones.
    pub fn unnamed<'a>(&self, named: impl Iterator<Item = &'a str>) -> Vec<String> {
        let (mut inner_named, mut top_named) = (Vec::new(), Vec::new());
        for path in named {
            match inner_name(path) {
                Some(name) => inner_named.push(name),
                None => top_named.push(path),
            }
        }
        let is_marked = |name: &str| matches!(root_fragment(name), Ok(Some(RootFragment::Marked(_))));
        let is_fragment = |name: &str| matches!(TimestampedName::parse(name), Ok(Some(_)));
        let top = folders_without(self.top, top_named).into_iter().filter(|name| is_marked(name)).map(str::to_owned);
        let inner = folders_without(&self.inner, inner_named).into_iter().filter(|name| is_fragment(name));
        top.chain(inner.map(|name| format!("{FRAGMENTS}/{name}"))).collect()
    }
}

/// Returns the name of a fragment from its path, if it is in the folder of fragments.
fn inner_name(path: &str) -> Option<&str> {
    path.strip_prefix(FRAGMENTS)?.strip_prefix('/')
}

/// Returns the names of listed folders that are not named.
fn folders_without<'a>(listed: &'a [Listed], mut named: Vec<&str>) -> Vec<&'a str> {
    named.sort_unstable();
    let mut named = Ascending::new(&named, |name| name);
    let folders = listed.iter().filter(|one| one.is_folder()).map(|one| one.name.as_str());
    folders.filter(|name| named.find(name).is_none()).collect()
}

/// Returns the files about commits among the names of a folder.
pub(crate) fn commits_of(names: &[Listed]) -> Result<Vec<Commit<'_>>> {
    let files = names.iter().filter(|one| !one.is_folder());
    let commits = files.filter_map(|one| {
        let commit = commit_file(&one.name).transpose()?;
        Some(commit.map(|(kind, times)| (one.name.as_str(), kind, times)))
    });
    commits.collect()
}

/// The contents of commit files that are lists.
pub(crate) struct CommitTexts(Vec<(CommitFile, TimestampedName, StoreKey, Vec<u8>)>);

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
pub(crate) struct Consolidated {
    /// Fragments, which all exist, by path in byte order.
    pub fragments: Vec<FragmentEntry>,
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
        let mut exists = folders.lookup();
        for (_, file, bytes) in texts.of_kind(CommitFile::Consolidated) {
            for commit in parse_consolidated_commits(bytes).in_file(file)? {
                if let Some(delete) = commit.delete {
                    check_delete(commit.mark).in_file(file)?;
                    all.deletes.push((commit.mark.to_owned(), delete.to_owned()));
                    continue;
                }
                let fragment =
                    fragment_of_mark(commit.mark).and_then(|path| Some((TimestampedName::parse(&path).ok()??, path)));
                let (times, path) = fragment.ok_or_else(|| names_nothing(commit.mark)).in_file(file)?;
                if all.ignored.contains(&path) {
                    continue;
                }
                // Independent of its time, because a damaged name may also have a damaged time.
                if !exists(&path) {
                    let reason = format!("it commits {path:?}, which does not exist");
                    return Err(Error::damaged(reason).in_file(file));
                }
                all.fragments.push(FragmentEntry { path: path.into(), times });
            }
        }
        all.fragments.sort_by(|a, b| a.path.cmp(&b.path));
        all.fragments.dedup_by(|a, b| a.path == b.path);
        all.fragments.shrink_to_fit();
        Ok(all)
    }

    /// Returns whether a fragment is among them, given by its path.
    pub fn has(&self, path: &str) -> bool {
        self.fragments.binary_search_by(|fragment| (*fragment.path).cmp(path)).is_ok()
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
