//! The lists of commits in an array's folder: which fragments and deletes count, which are taken back or replaced, held
//! against the folders that are there. They have no checksum, and a fragment whose name is wrong in them would not be missed.

use std::collections::HashSet;

use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits};
use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::folder::{COMMITS, CommitFile, FRAGMENTS, RootFragment, commit_file, root_fragment};
use tilefs_format::name::{NameForm, TimestampedName};

use crate::storage::{Listed, Storage, StoreKey, together};

/// A consolidated commit or vacuum file may be of so many bytes ...
const MOST_COMMIT_FILE: u64 = 32 << 20;

/// ... and of so many more for each fragment that is there. One that is larger is not plausible.
const MOST_OF_FRAGMENT: u64 = 256;

/// A file of commits, or a vacuum file: its name, what it is, and the times in its name.
pub(super) type Commit<'a> = (&'a str, CommitFile, TimestampedName);

/// The names in the folders where fragments lie.
pub(super) struct FragmentFolders<'a> {
    /// The array's own folder, which has those of format versions before 12.
    pub top: &'a [Listed],
    /// The folder of fragments.
    pub inner: Vec<Listed>,
}

impl FragmentFolders<'_> {
    /// Whether something of a fragment's name is there.
    pub fn has(&self, path: &str) -> bool {
        let (names, name) = match path.strip_prefix(FRAGMENTS).and_then(|path| path.strip_prefix('/')) {
            Some(name) => (self.inner.as_slice(), name),
            None => (self.top, path),
        };
        // Listings are in byte order.
        names.binary_search_by(|one| one.name.as_str().cmp(name)).is_ok()
    }

    /// What a list of commits may be of, in bytes: each names fragments that are there.
    fn most_of_list(&self) -> u64 {
        MOST_COMMIT_FILE + MOST_OF_FRAGMENT * (self.top.len() + self.inner.len()) as u64
    }

    /// The paths of all folders that only a commit makes a fragment.
    pub fn paths(&self) -> impl Iterator<Item = String> + '_ {
        let is_marked = |one: &&Listed| matches!(root_fragment(&one.name), Ok(Some(RootFragment::Marked(_))));
        let outer = self.top.iter().filter(is_marked).filter(|one| one.is_folder()).map(|one| one.name.clone());
        let is_fragment = |one: &&Listed| matches!(TimestampedName::parse(&one.name), Ok(Some(_)));
        let inner = self.inner.iter().filter(is_fragment).filter(|one| one.is_folder());
        outer.chain(inner.map(|one| format!("{FRAGMENTS}/{}", one.name)))
    }
}

/// The files among the names of a folder that say something of commits.
pub(super) fn commits_of(names: &[Listed]) -> Result<Vec<Commit<'_>>> {
    let files = names.iter().filter(|one| !one.is_folder());
    let commits = files.filter_map(|one| {
        let commit = commit_file(&one.name).transpose()?;
        Some(commit.map(|(kind, times)| (one.name.as_str(), kind, times)))
    });
    commits.collect()
}

/// The files of commits that are lists, each as a whole.
pub(super) struct CommitTexts(Vec<(CommitFile, TimestampedName, StoreKey, Vec<u8>)>);

impl CommitTexts {
    /// Reads those of some folders of commits together, of an array that has these fragments.
    ///
    /// # Errors
    /// As [`Storage::read`].
    pub fn read(
        storage: &dyn Storage,
        folders: [(&StoreKey, &[Commit<'_>]); 2],
        fragments: &FragmentFolders<'_>,
    ) -> Result<Self> {
        let most = fragments.most_of_list();
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

    /// The times, keys and bytes of those of a kind.
    pub fn of_kind(&self, wanted: CommitFile) -> impl Iterator<Item = (TimestampedName, &StoreKey, &[u8])> {
        let texts = self.0.iter().filter(move |(kind, ..)| *kind == wanted);
        texts.map(|(_, times, file, text)| (*times, file, text.as_slice()))
    }
}

/// What all files of consolidated commits say together, without what the ignore files take back.
#[derive(Default)]
pub(super) struct Consolidated {
    /// Paths of fragments in the array. They are there.
    pub fragments: HashSet<String>,
    /// Paths of fragments that were taken back.
    pub ignored: HashSet<String>,
    /// Marks of deletes with their bytes.
    pub deletes: Vec<(String, Vec<u8>)>,
}

impl Consolidated {
    /// Takes the lists together, and holds them against the folders that are there.
    ///
    /// # Errors
    /// [`Error::Damaged`] for lists that do not parse, or that name what is no commit or not there.
    pub fn read(texts: &CommitTexts, folders: &FragmentFolders<'_>) -> Result<Self> {
        let mut all = Consolidated::default();
        for (_, file, text) in texts.of_kind(CommitFile::Ignored) {
            // What is taken back besides fragments are deletes, and libtiledb applies its copies of them all the same.
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
                        // Whatever its time: the name may be damaged, and then the time is too.
                        if !folders.has(&path) {
                            let reason = format!("it commits {path:?}, which is not there");
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

/// A delete lies in the folder of commits, and happens at one time.
fn check_delete(mark: &str) -> Result<()> {
    let name = mark.strip_prefix(COMMITS).and_then(|mark| mark.strip_prefix('/')).filter(|name| !name.contains('/'));
    match name.map(TimestampedName::parse) {
        Some(Ok(Some(times))) if times.form == NameForm::Three && times.t1 == times.t2 => Ok(()),
        _ => Err(names_nothing(mark)),
    }
}

fn names_nothing(mark: &str) -> Error {
    Error::damaged(format!("{mark:?} is no commit"))
}
