//! The contents of an array's folder: its fragments, schemas and commit files, in every layout that releases have used,
//! and which of them are in force in a time window.
//!
//! Reads only names and the small text files of the commits folder (`commit_lists.rs`).

pub mod ascending;
pub mod commit_lists;
pub mod listing;
pub mod object;
pub mod timed_files;
mod unnamed;
pub mod window;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foldhash::HashSet;
use tilefs_base::error::{Error, Locate, Place, Result};
use tilefs_format::commit::{fragment_of_mark, parse_vacuum};
use tilefs_format::folder::{
    COMMITS, CommitFile, FRAGMENT_METADATA_CACHE, FRAGMENTS, METADATA, RootFragment, SCHEMAS, root_fragment,
    timestamped_file,
};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_format::name::{NameForm, TimestampedName};
use tilefs_format::schema::FIRST_SCHEMA;
use tilefs_storage::{Listed, Storage, StoreKey};

pub use commit_lists::FragmentEntry;
use commit_lists::{Commit, CommitTexts, Consolidated, FragmentFolders, commits_of};
use listing::FolderListing;
use window::TimeWindow;

/// Since this format version, a sparse fragment is visible if its time range overlaps the window. The time range of an
/// older fragment, and of a dense fragment, must lie completely within the window.
const PARTIAL_OVERLAP_SINCE: u32 = 15;

/// Pauses before the array is listed again, if something vanished between two listings. They cover the time of the two
/// renames by which somebody replaces an array.
const RETRY_PAUSES_MS: [u64; 4] = [0, 1, 4, 16];

/// A schema by its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaEntry {
    /// The file's name, by which fragments refer to it.
    pub name: String,
    /// The file of the schema.
    pub file: StoreKey,
    /// `None` for `__array_schema.tdb`, which is older than any other schema.
    pub times: Option<TimestampedName>,
}

/// A delete or update commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionEntry {
    /// `__commits/NAME.del`, by which fragments list it as processed.
    pub marker: String,
    /// The times in the name of the commit.
    pub times: TimestampedName,
    /// The location of the condition.
    pub stored: ConditionBytes,
}

/// The location of a delete's generic tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionBytes {
    /// In a file of its own.
    File(StoreKey),
    /// A copy within a consolidated commits file.
    Inline(Vec<u8>),
}

/// A vacuum file: when it is in force, it hides the fragments that another fragment replaces.
#[derive(Debug)]
struct Vacuum {
    times: TimestampedName,
    /// The path of the fragment that replaces the hidden fragments.
    replacement: String,
    /// The folders of the hidden fragments, relative to the array.
    replaced: Vec<String>,
}

/// The names in an array's folder. Memory: about 150 bytes per fragment.
#[derive(Debug)]
pub struct ArrayDirectory {
    /// The array's folder.
    pub root: StoreKey,
    /// The names below the folder, as far as one request returned them.
    listing: Arc<FolderListing>,
    /// All committed fragments, in the order that decides between equal times: first the fragments in the array's own
    /// folder, then the fragments that the commits folder names.
    fragments: Vec<FragmentEntry>,
    vacuums: Vec<Vacuum>,
    /// Oldest first.
    schemas: Vec<SchemaEntry>,
    conditions: Vec<ConditionEntry>,
    /// The names in the folder of metadata, if they were listed together with the names of the other folders. Files
    /// dated in the future are not in force before their time, and files of another array are never used.
    metadata: Option<Vec<Listed>>,
    /// Whether there may be files of consolidated fragment metadata.
    has_consolidated_metadata: bool,
    warnings: Vec<String>,
    /// Complete but uncommitted fragments that are so recent that their writers may be about to commit them.
    uncommitted: Vec<Box<str>>,
}

impl ArrayDirectory {
    /// Lists an array's folder.
    ///
    /// # Errors
    /// [`Error::NotAnArray`] if there is no schema, [`Error::Io`] if a listing or a commit file cannot be read,
    /// [`Error::Damaged`] for commit files that do not parse or that name missing fragments.
    pub fn read(storage: &dyn Storage, root: &StoreKey) -> Result<Self> {
        Self::read_listed(storage, FolderListing::read(storage, root)?)
    }

    /// As [`ArrayDirectory::read`], for an array whose folder has just been listed.
    ///
    /// # Errors
    /// As for [`ArrayDirectory::read`].
    pub(crate) fn read_listed(storage: &dyn Storage, listing: FolderListing) -> Result<Self> {
        let root = listing.root().clone();
        let mut read = Self::of_listing(storage, listing);
        let mut was_damaged = false;
        for wait in RETRY_PAUSES_MS {
            match &read {
                // A vacuum may have removed fragments between two listings; it writes its vacuum file first.
                Err(Error::Damaged { .. }) if !std::mem::replace(&mut was_damaged, true) => {}
                Err(Error::Missing { .. }) => thread::sleep(Duration::from_millis(wait)),
                _ => break,
            }
            read = FolderListing::read(storage, &root).and_then(|listing| Self::of_listing(storage, listing));
        }
        read
    }

    fn of_listing(storage: &dyn Storage, listing: FolderListing) -> Result<Self> {
        let listing = Arc::new(listing);
        let top = listing.top();
        let mut directory = ArrayDirectory {
            root: listing.root().clone(),
            listing: listing.clone(),
            fragments: Vec::new(),
            vacuums: Vec::new(),
            schemas: Vec::new(),
            conditions: Vec::new(),
            metadata: None,
            has_consolidated_metadata: top.iter().any(|one| one.name == FRAGMENT_METADATA_CACHE),
            warnings: Vec::new(),
            uncommitted: Vec::new(),
        };
        // Fragments are listed before commits, so that a fragment written meanwhile does not appear without its commit.
        let mut listed = directory.listing.names_of(storage, &[SCHEMAS, FRAGMENTS]);
        let fragments = listed.pop().unwrap_or(Ok(Vec::new()));
        directory.find_schemas(listed.pop().unwrap_or(Ok(Vec::new())), top)?;
        if directory.schemas.is_empty() {
            return Err(Error::not_an_array(&directory.root, "not a TileDB array: it has no schema"));
        }
        let folders = FragmentFolders { top, inner: fragments? };
        let (commits, commits_folder) = (directory.names(storage, COMMITS)?, directory.root.join(COMMITS));
        let commits = commits_of(&commits)?;
        let mut root_commits = commits_of(top)?;
        root_commits.retain(|(_, kind, _)| *kind == CommitFile::Vacuum);
        let texts =
            CommitTexts::read(storage, [(&directory.root, &root_commits), (&commits_folder, &commits)], &folders)?;
        let consolidated = Consolidated::read(&texts, &folders)?;
        directory.find_root_fragments(storage, top, &consolidated)?;
        let ignored = directory.find_committed(&commits, consolidated)?;
        directory.drop_vacuumed(&folders, &ignored);
        directory.fragments.shrink_to_fit();
        directory.find_vacuums(&texts)?;
        directory.find_unnamed(storage, &folders, &ignored)?;
        if directory.listing.folder().identity.is_some() {
            directory.metadata = Some(directory.names(storage, METADATA)?);
        }
        Ok(directory)
    }

    /// Returns the listing of the array's folder.
    pub fn listing(&self) -> &FolderListing {
        &self.listing
    }

    /// Returns the names in the folder of metadata.
    ///
    /// # Errors
    /// As [`FolderListing::names`].
    pub(crate) fn metadata_names(&self, storage: &dyn Storage) -> Result<Vec<Listed>> {
        match &self.metadata {
            Some(names) => Ok(names.clone()),
            None => self.names(storage, METADATA),
        }
    }

    /// Returns the names in a folder of the array, given by its path in the array, in byte order.
    ///
    /// # Errors
    /// As [`FolderListing::names`].
    pub fn names(&self, storage: &dyn Storage, path: &str) -> Result<Vec<Listed>> {
        self.listing.names(storage, path)
    }

    /// Returns warnings about entries that nothing explains, and about missing entries, as lines of text. The visible
    /// fragments follow the rules, but a lost commit or a damaged name would look the same.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the paths of complete fragments that are not committed but recent, so that their writers are probably at
    /// work.
    pub fn uncommitted(&self) -> &[Box<str>] {
        &self.uncommitted
    }

    /// Returns the warnings, and a line for each fragment whose writer is probably at work: its commit may be lost.
    pub fn remarks(&self) -> Vec<String> {
        let recent = self.uncommitted.iter().map(|path| self.warning_of_uncommitted(path));
        self.warnings.iter().cloned().chain(recent).collect()
    }

    /// Returns the fragments visible in `window`, as numbers in [`ArrayDirectory::fragments`], oldest first: by start time;
    /// fragments with equal times are in the order of that list.
    pub(crate) fn visible_fragments(&self, window: TimeWindow, is_sparse: bool) -> Vec<usize> {
        let replaced: HashSet<&str> = self
            .vacuums
            .iter()
            .filter(|vacuum| counts(&vacuum.times, window, is_sparse))
            .flat_map(|vacuum| vacuum.replaced.iter().map(String::as_str))
            .collect();
        let mut visible = self.committed_fragments(window, is_sparse);
        visible.retain(|&number| !replaced.contains(&*self.fragments[number].path));
        visible
    }

    /// As [`ArrayDirectory::visible_fragments`], including fragments that another fragment replaces.
    pub(crate) fn committed_fragments(&self, window: TimeWindow, is_sparse: bool) -> Vec<usize> {
        let is_counted = |number: &usize| counts(&self.fragments[*number].times, window, is_sparse);
        let mut counted: Vec<usize> = (0..self.fragments.len()).filter(is_counted).collect();
        counted.sort_by_key(|&number| self.fragments[number].times.t1);
        counted
    }

    /// Returns whether a fragment of a sparse array is in force in `window`, by its number.
    pub(crate) fn is_in_force(&self, fragment: usize, window: TimeWindow) -> bool {
        self.fragments.get(fragment).is_some_and(|entry| counts(&entry.times, window, true))
    }

    /// Returns the fragments that each consolidated fragment replaces, if all of them are still committed.
    pub(crate) fn replaced_fragments(&self) -> HashMap<usize, Vec<usize>> {
        let paths = self.vacuums.iter().flat_map(|vacuum| vacuum.replaced.iter().chain([&vacuum.replacement]));
        let named: HashSet<&str> = paths.map(String::as_str).collect();
        let numbered = self.fragments.iter().enumerate().map(|(number, entry)| (&*entry.path, number));
        let numbers: HashMap<&str, usize> = numbered.filter(|(path, _)| named.contains(*path)).collect();
        let number = |path: &String| numbers.get(path.as_str()).copied();
        let replaced_by = |vacuum: &Vacuum| {
            let replaced: Vec<usize> = vacuum.replaced.iter().map(number).collect::<Option<_>>()?;
            Some((number(&vacuum.replacement)?, replaced))
        };
        self.vacuums.iter().filter_map(replaced_by).collect()
    }

    /// Returns all committed fragments of all times, vacuumed or not.
    pub fn fragments(&self) -> &[FragmentEntry] {
        &self.fragments
    }

    /// Returns the folder of a fragment.
    pub fn folder_of(&self, fragment: &FragmentEntry) -> StoreKey {
        self.root.join(&*fragment.path)
    }

    /// Returns the files of consolidated fragment metadata, in byte order of their names.
    ///
    /// # Errors
    /// [`Error::Io`] if their folder cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn consolidated_metadata(&self, storage: &dyn Storage) -> Result<Vec<StoreKey>> {
        if !self.has_consolidated_metadata {
            return Ok(Vec::new());
        }
        let folder = self.root.join(FRAGMENT_METADATA_CACHE);
        let files = self.names(storage, FRAGMENT_METADATA_CACHE)?;
        let caches = commits_of(&files)?.into_iter().filter(|(_, kind, _)| *kind == CommitFile::FragmentMetadataCache);
        Ok(caches.map(|(name, _, _)| folder.join(name)).collect())
    }

    /// Returns all schemas, oldest first.
    pub fn schemas(&self) -> &[SchemaEntry] {
        &self.schemas
    }

    /// Returns the schema in force at the end of `window`: the newest one up to that time, else the oldest.
    pub(crate) fn schema_at(&self, window: TimeWindow) -> Option<&SchemaEntry> {
        let in_force = |schema: &&SchemaEntry| schema.times.is_none_or(|times| times.t2 <= window.end);
        self.schemas.iter().rfind(in_force).or(self.schemas.first())
    }

    /// Returns the schema that fragments call `name`.
    pub(crate) fn schema_named(&self, name: &str) -> Option<&SchemaEntry> {
        self.schemas.iter().find(|schema| schema.name == name)
    }

    /// Returns the delete and update commits in force in `window`, oldest first.
    pub(crate) fn visible_conditions(&self, window: TimeWindow) -> Vec<&ConditionEntry> {
        let mut visible: Vec<&ConditionEntry> =
            self.conditions.iter().filter(|condition| window.contains(&condition.times)).collect();
        visible.sort_by_key(|condition| condition.times.t1);
        visible
    }

    /// Returns the end times of all commits of data and schemas, in ascending order, each once.
    pub fn commit_times(&self) -> Vec<u64> {
        let fragments = self.fragments.iter().map(|fragment| fragment.times.t2);
        let schemas = self.schemas.iter().filter_map(|schema| schema.times).map(|times| times.t2);
        let conditions = self.conditions.iter().map(|condition| condition.times.t2);
        let mut times: Vec<u64> = fragments.chain(schemas).chain(conditions).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Returns the earliest start time of the data. After a consolidation it is before the first commit time, because
    /// one fragment contains writes of several times.
    pub fn began(&self) -> Option<u64> {
        let fragments = self.fragments.iter().map(|fragment| fragment.times.t1);
        let schemas = self.schemas.iter().filter_map(|schema| schema.times).map(|times| times.t1);
        let conditions = self.conditions.iter().map(|condition| condition.times.t1);
        fragments.chain(schemas).chain(conditions).min()
    }

    /// Finds the schemas: [`FIRST_SCHEMA`], then the schema folder's in byte order of names, like libtiledb.
    fn find_schemas(&mut self, names: Result<Vec<Listed>>, top: &[Listed]) -> Result<()> {
        if top.iter().any(|one| one.name == FIRST_SCHEMA && !one.is_folder()) {
            let file = self.root.join(FIRST_SCHEMA);
            self.schemas.push(SchemaEntry { name: FIRST_SCHEMA.into(), file, times: None });
        }
        if top.iter().any(|one| one.name == SCHEMAS) {
            let folder = self.root.join(SCHEMAS);
            for one in names?.into_iter().filter(|one| !one.is_folder()) {
                if let Some(times) = timestamped_file(&one.name)? {
                    self.schemas.push(SchemaEntry { file: folder.join(&one.name), name: one.name, times: Some(times) });
                }
            }
        }
        Ok(())
    }

    /// Finds fragments of format versions 1 to 11, which are in the array's folder itself.
    fn find_root_fragments(&mut self, storage: &dyn Storage, top: &[Listed], commits: &Consolidated) -> Result<()> {
        let marks: HashSet<&str> =
            top.iter().map(|one| one.name.as_str()).filter(|name| name.ends_with(".ok")).collect();
        marks.iter().try_for_each(|mark| self.check_no_folder(storage, mark))?;
        for one in top {
            let Some(candidate) = root_fragment(&one.name)? else { continue };
            if !one.is_folder() {
                let reason = "a fragment that is not a folder, or a broken link";
                return Err(Error::damaged(reason).in_file(self.root.join(&one.name)));
            }
            let mark = format!("{}.ok", one.name);
            let is_marked = marks.contains(mark.as_str()) || commits.has(&one.name);
            let (times, is_fragment) = match candidate {
                RootFragment::Marked(times) => (times, is_marked),
                // Before version 5 there is no marker: writing the metadata, which comes last, is the commit.
                RootFragment::Unmarked(times) => {
                    let has_metadata = || -> Result<bool> {
                        Ok(self.names(storage, &one.name)?.iter().any(|file| file.name == FRAGMENT_METADATA))
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

    /// Finds fragments of format version 12 and later, and delete and update commits. Consolidated commits come first,
    /// which decides between fragments of the same time. Returns the fragments to ignore.
    fn find_committed(&mut self, commits: &[Commit<'_>], mut consolidated: Consolidated) -> Result<HashSet<String>> {
        let mut single = Vec::new();
        let mut conditions: BTreeMap<String, ConditionBytes> = BTreeMap::new();
        for (mark, bytes) in std::mem::take(&mut consolidated.deletes) {
            let stored = ConditionBytes::Inline(bytes);
            match conditions.entry(mark) {
                Entry::Vacant(new) => drop(new.insert(stored)),
                Entry::Occupied(same) if *same.get() == stored => {}
                Entry::Occupied(other) => {
                    let reason = "two files of consolidated commits have different copies of it";
                    return Err(Error::damaged(reason).in_file(self.root.join(other.key())));
                }
            }
        }
        for &(name, kind, _) in commits {
            let mark = || format!("{COMMITS}/{name}");
            match kind {
                CommitFile::Mark => {
                    let path = fragment_of_mark(&mark()).filter(|path| !consolidated.has(path));
                    if let Some(path) = path
                        && let Some(times) = TimestampedName::parse(&path)?
                    {
                        single.push(FragmentEntry { path: path.into(), times });
                    }
                }
                CommitFile::Delete | CommitFile::Update => {
                    let file = self.root.join(mark());
                    conditions.entry(mark()).or_insert(ConditionBytes::File(file));
                }
                _ => {}
            }
        }
        consolidated.fragments.retain(|fragment| fragment.path.contains('/'));
        self.fragments.append(&mut consolidated.fragments);
        self.fragments.extend(single);
        for (marker, stored) in conditions {
            if let Some(times) = TimestampedName::parse(&marker)? {
                self.conditions.push(ConditionEntry { marker, times, stored });
            }
        }
        Ok(consolidated.ignored)
    }

    fn find_vacuums(&mut self, texts: &CommitTexts) -> Result<()> {
        for (times, file, text) in texts.of_kind(CommitFile::Vacuum) {
            let name = file.shown_name();
            let name = name.strip_suffix(".vac").unwrap_or_default();
            // Before format version 12, the replacement is beside its vacuum file in the array's own folder.
            let is_beside = file.parent().is_some_and(|folder| folder == self.root);
            let replacement = if is_beside { name.to_owned() } else { format!("{FRAGMENTS}/{name}") };
            self.vacuums.push(Vacuum { times, replacement, replaced: parse_vacuum(text).in_file(file)? });
        }
        Ok(())
    }

    /// Fails if a fragment with a mark is there although the listing lacks its folder.
    fn check_no_folder(&self, storage: &dyn Storage, mark: &str) -> Result<()> {
        let name = mark.strip_suffix(".ok").unwrap_or(mark);
        let is_local = self.listing.folder().identity.is_some();
        if !is_local || self.listing.top().binary_search_by(|one| one.name.as_str().cmp(name)).is_ok() {
            return Ok(());
        }
        let folder = self.root.join(name);
        match storage.know(&folder) {
            Err(Error::Missing { .. }) => Ok(()),
            Ok(_) => Err(Error::missing("its folder does not list it").in_file(folder)),
            Err(error) => Err(error),
        }
    }

    fn warning(&self, file: &str, reason: &str) -> String {
        let (array, file) = (Some(self.root.to_string()), Some(file.to_owned()));
        format!("{reason} ({})", Place { array, file, ..Place::default() })
    }
}

/// Returns whether a fragment or vacuum file of these times is in force in a window.
fn counts(times: &TimestampedName, window: TimeWindow, is_sparse: bool) -> bool {
    let touching = is_sparse && times.form == NameForm::Three && times.version >= PARTIAL_OVERLAP_SINCE;
    if touching { window.touches(times) } else { window.contains(times) }
}
