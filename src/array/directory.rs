//! What is in an array's folder: which fragments, schemas and commit files there are, in every layout
//! that releases have used, and which of them count in a window of time.
//!
//! Only names, and the few small text files of the commits folder, are read here.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::window::TimeWindow;
use crate::error::{Error, Locate, Result};
use crate::format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits, parse_vacuum};
use crate::format::folder::{
    COMMITS, CommitFile, FRAGMENT_METADATA_CACHE, RootFragment, SCHEMAS, commit_file, root_fragment, timestamped_file,
};
use crate::format::fragment::FRAGMENT_METADATA;
use crate::format::name::{NameForm, TimestampedName};
use crate::format::schema::FIRST_SCHEMA;
use crate::storage::{Listed, Storage};

/// A consolidated commit or vacuum file larger than this, of half a million fragments, is not plausible.
const MOST_COMMIT_FILE: u64 = 32 << 20;

/// Format version since which a sparse fragment counts when its time range touches the window; older
/// ones, and those of dense arrays, must lie within it.
const PARTIAL_OVERLAP_SINCE: u32 = 15;

/// A fragment by its folder. Nothing of it has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentEntry {
    /// The folder, as a path in the array.
    pub path: Box<str>,
    pub times: TimestampedName,
}

impl FragmentEntry {
    /// The last component of the folder.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// A schema by its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaEntry {
    /// How fragments refer to it: the file's name.
    pub name: String,
    pub file: PathBuf,
    /// `None` for `__array_schema.tdb`, which is older than any other.
    pub times: Option<TimestampedName>,
}

/// A delete or update commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionEntry {
    /// `__commits/NAME.del`, which is also how fragments list it as processed.
    pub marker: String,
    pub times: TimestampedName,
    pub stored: ConditionBytes,
}

/// Where a delete's generic tile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionBytes {
    File(PathBuf),
    /// A copy inside a consolidated commits file.
    Inline(Vec<u8>),
}

/// Fragments that another one replaces, once that one counts.
#[derive(Debug)]
struct Vacuum {
    times: TimestampedName,
    /// Names of folders, relative to the array.
    replaced: Vec<String>,
}

/// A file of commits, or a vacuum file: its name, what it is, and the times in its name.
type Commit<'a> = (&'a str, CommitFile, TimestampedName);

/// The names in an array's folder. Memory: about 150 bytes a fragment.
#[derive(Debug)]
pub struct Directory {
    pub root: PathBuf,
    /// In the order that breaks ties of time: those in the root, then those of the commits folder.
    fragments: Vec<FragmentEntry>,
    vacuums: Vec<Vacuum>,
    /// Oldest first.
    schemas: Vec<SchemaEntry>,
    conditions: Vec<ConditionEntry>,
    /// Files of consolidated fragment metadata may be there.
    has_consolidated_metadata: bool,
}

impl Directory {
    /// Lists an array's folder.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] when there is no schema, [`Error::Io`] where a listing or a commit file
    /// cannot be read, [`Error::Damaged`] for commit files that do not parse.
    pub fn read(storage: &dyn Storage, root: &Path) -> Result<Self> {
        let top = storage.list(root)?;
        let mut directory = Directory {
            root: root.to_owned(),
            fragments: Vec::new(),
            vacuums: Vec::new(),
            schemas: Vec::new(),
            conditions: Vec::new(),
            has_consolidated_metadata: top.iter().any(|one| one.name == FRAGMENT_METADATA_CACHE),
        };
        directory.find_schemas(storage, &top)?;
        if directory.schemas.is_empty() {
            return Err(Error::NotAnArray {
                path: root.display().to_string(),
                reason: "not a TileDB array: it has no schema".into(),
            });
        }
        let commits_folder = root.join(COMMITS);
        let commits = match top.iter().any(|one| one.name == COMMITS) {
            true => storage.list(&commits_folder)?,
            false => Vec::new(),
        };
        let commits = commits_of(&commits)?;
        let consolidated = Consolidated::read(storage, &commits_folder, &commits)?;
        directory.find_root_fragments(storage, &top, &consolidated)?;
        directory.find_committed(&commits, consolidated)?;
        directory.fragments.shrink_to_fit();
        directory.find_vacuums(storage, root, &commits_of(&top)?)?;
        directory.find_vacuums(storage, &commits_folder, &commits)?;
        Ok(directory)
    }

    /// The fragments that count in `window`, as numbers in [`Directory::fragments`], oldest first: by
    /// start time, ties in the order of that list.
    pub fn visible_fragments(&self, window: TimeWindow, is_sparse: bool) -> Vec<usize> {
        let counts = |times: &TimestampedName| {
            let touching = is_sparse && times.form == NameForm::Three && times.version >= PARTIAL_OVERLAP_SINCE;
            if touching { window.touches(times) } else { window.contains(times) }
        };
        let replaced: HashSet<&str> = self
            .vacuums
            .iter()
            .filter(|vacuum| counts(&vacuum.times))
            .flat_map(|vacuum| vacuum.replaced.iter().map(String::as_str))
            .collect();
        let mut visible: Vec<usize> = (0..self.fragments.len())
            .filter(|&number| {
                let fragment = &self.fragments[number];
                counts(&fragment.times) && !replaced.contains(&*fragment.path)
            })
            .collect();
        visible.sort_by_key(|&number| self.fragments[number].times.t1);
        visible
    }

    /// All fragments that were committed, vacuumed or not, at any time.
    pub fn fragments(&self) -> &[FragmentEntry] {
        &self.fragments
    }

    /// The folder of a fragment.
    pub fn folder_of(&self, fragment: &FragmentEntry) -> PathBuf {
        self.root.join(&*fragment.path)
    }

    /// The files of consolidated fragment metadata, in byte order of names.
    ///
    /// # Errors
    /// [`Error::Io`] where their folder cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn consolidated_metadata(&self, storage: &dyn Storage) -> Result<Vec<PathBuf>> {
        if !self.has_consolidated_metadata {
            return Ok(Vec::new());
        }
        let folder = self.root.join(FRAGMENT_METADATA_CACHE);
        let files = storage.list(&folder)?;
        let caches = commits_of(&files)?.into_iter().filter(|(_, kind, _)| *kind == CommitFile::FragmentMetadataCache);
        Ok(caches.map(|(name, _, _)| folder.join(name)).collect())
    }

    /// All schemas, oldest first.
    pub fn schemas(&self) -> &[SchemaEntry] {
        &self.schemas
    }

    /// The schema in force at the end of `window`: the newest that is not younger, else the oldest.
    pub fn schema_at(&self, window: TimeWindow) -> Option<&SchemaEntry> {
        let in_force = |schema: &&SchemaEntry| schema.times.is_none_or(|times| times.t2 <= window.end);
        self.schemas.iter().rfind(in_force).or(self.schemas.first())
    }

    /// The schema that fragments call `name`.
    pub fn schema_named(&self, name: &str) -> Option<&SchemaEntry> {
        self.schemas.iter().find(|schema| schema.name == name)
    }

    /// The delete and update commits that count in `window`, oldest first.
    pub fn visible_conditions(&self, window: TimeWindow) -> Vec<&ConditionEntry> {
        let mut visible: Vec<&ConditionEntry> =
            self.conditions.iter().filter(|condition| window.contains(&condition.times)).collect();
        visible.sort_by_key(|condition| condition.times.t1);
        visible
    }

    /// The ends of all commits to data and schema, ascending, each once.
    pub fn commit_times(&self) -> Vec<u64> {
        let fragments = self.fragments.iter().map(|fragment| fragment.times.t2);
        let schemas = self.schemas.iter().filter_map(|schema| schema.times).map(|times| times.t2);
        let conditions = self.conditions.iter().map(|condition| condition.times.t2);
        let mut times: Vec<u64> = fragments.chain(schemas).chain(conditions).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// [`FIRST_SCHEMA`], then those of the schema folder in byte order of names, as libtiledb has them.
    fn find_schemas(&mut self, storage: &dyn Storage, top: &[Listed]) -> Result<()> {
        if top.iter().any(|one| one.name == FIRST_SCHEMA && !one.is_folder) {
            let file = self.root.join(FIRST_SCHEMA);
            self.schemas.push(SchemaEntry { name: FIRST_SCHEMA.into(), file, times: None });
        }
        if top.iter().any(|one| one.name == SCHEMAS && one.is_folder) {
            let folder = self.root.join(SCHEMAS);
            for one in storage.list(&folder)?.into_iter().filter(|one| !one.is_folder) {
                if let Some(times) = timestamped_file(&one.name)? {
                    self.schemas.push(SchemaEntry { file: folder.join(&one.name), name: one.name, times: Some(times) });
                }
            }
        }
        Ok(())
    }

    /// Fragments of format versions 1 to 11, which lie in the array's folder itself.
    fn find_root_fragments(&mut self, storage: &dyn Storage, top: &[Listed], commits: &Consolidated) -> Result<()> {
        let marks: HashSet<&str> =
            top.iter().map(|one| one.name.as_str()).filter(|name| name.ends_with(".ok")).collect();
        for one in top.iter().filter(|one| one.is_folder) {
            let Some(candidate) = root_fragment(&one.name)? else { continue };
            let mark = format!("{}.ok", one.name);
            let is_marked = marks.contains(mark.as_str()) || commits.fragments.contains(&one.name);
            let (times, is_fragment) = match candidate {
                RootFragment::Marked(times) => (times, is_marked),
                // Before version 5 there was no mark: the metadata, written last, is the commit.
                RootFragment::Unmarked(times) => {
                    let has_metadata = || -> Result<bool> {
                        Ok(storage.list(&self.root.join(&one.name))?.iter().any(|file| file.name == FRAGMENT_METADATA))
                    };
                    (times, is_marked || has_metadata()?)
                }
            };
            if is_fragment {
                self.fragments.push(FragmentEntry { path: one.name.as_str().into(), times });
            }
        }
        Ok(())
    }

    /// Fragments of format version 12 and later, and delete and update commits. Consolidated ones come
    /// first, which decides between fragments of the same time.
    fn find_committed(&mut self, commits: &[Commit<'_>], consolidated: Consolidated) -> Result<()> {
        let mut inline: Vec<&String> = consolidated.fragments.iter().filter(|name| name.contains('/')).collect();
        inline.sort_unstable();
        for path in inline {
            self.add_committed(Some(path))?;
        }
        let mut conditions: BTreeMap<String, ConditionBytes> =
            consolidated.deletes.into_iter().map(|(mark, bytes)| (mark, ConditionBytes::Inline(bytes))).collect();
        for &(name, kind, _) in commits {
            let mark = || format!("{COMMITS}/{name}");
            match kind {
                CommitFile::Mark => {
                    let path = fragment_of_mark(&mark()).filter(|path| !consolidated.fragments.contains(path));
                    self.add_committed(path.as_deref())?;
                }
                CommitFile::Delete | CommitFile::Update => {
                    let file = self.root.join(mark());
                    conditions.entry(mark()).or_insert(ConditionBytes::File(file));
                }
                _ => {}
            }
        }
        for (marker, stored) in conditions {
            if let Some(times) = TimestampedName::parse(&marker)? {
                self.conditions.push(ConditionEntry { marker, times, stored });
            }
        }
        Ok(())
    }

    fn add_committed(&mut self, path: Option<&str>) -> Result<()> {
        if let Some(path) = path
            && let Some(times) = TimestampedName::parse(path)?
        {
            self.fragments.push(FragmentEntry { path: path.into(), times });
        }
        Ok(())
    }

    fn find_vacuums(&mut self, storage: &dyn Storage, folder: &Path, commits: &[Commit<'_>]) -> Result<()> {
        for &(name, _, times) in commits.iter().filter(|(_, kind, _)| *kind == CommitFile::Vacuum) {
            let file = folder.join(name);
            let replaced = parse_vacuum(&storage.read(&file, MOST_COMMIT_FILE)?).in_file(&file)?;
            self.vacuums.push(Vacuum { times, replaced });
        }
        Ok(())
    }
}

/// The files among the names of a folder that say something of commits.
fn commits_of(names: &[Listed]) -> Result<Vec<Commit<'_>>> {
    let files = names.iter().filter(|one| !one.is_folder);
    let commits = files.filter_map(|one| {
        let commit = commit_file(&one.name).transpose()?;
        Some(commit.map(|(kind, times)| (one.name.as_str(), kind, times)))
    });
    commits.collect()
}

/// What all files of consolidated commits say together, without what the ignore files take back.
#[derive(Default)]
struct Consolidated {
    /// Paths of fragments in the array.
    fragments: HashSet<String>,
    /// Marks of deletes with their bytes.
    deletes: Vec<(String, Vec<u8>)>,
}

impl Consolidated {
    fn read(storage: &dyn Storage, folder: &Path, commits: &[Commit<'_>]) -> Result<Self> {
        let of_kind = |wanted: CommitFile| -> Result<Vec<(PathBuf, Vec<u8>)>> {
            let files = commits.iter().filter(|(_, kind, _)| *kind == wanted).map(|(name, _, _)| folder.join(name));
            files.map(|file| storage.read(&file, MOST_COMMIT_FILE).map(|bytes| (file, bytes))).collect()
        };
        let mut ignored = HashSet::new();
        for (file, text) in of_kind(CommitFile::Ignored)? {
            ignored.extend(parse_ignored_commits(&text).in_file(&file)?.into_iter().map(str::to_owned));
        }
        let mut all = Consolidated::default();
        for (file, bytes) in of_kind(CommitFile::Consolidated)? {
            for commit in parse_consolidated_commits(&bytes).in_file(&file)? {
                if let Some(delete) = commit.delete {
                    // An ignore file does not take back a delete: libtiledb applies its copy all the same.
                    all.deletes.push((commit.mark.to_owned(), delete.to_owned()));
                } else if !ignored.contains(commit.mark) {
                    all.fragments.extend(fragment_of_mark(commit.mark));
                }
            }
        }
        Ok(all)
    }
}
