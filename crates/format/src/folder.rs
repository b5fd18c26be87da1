//! The names of the folders and files of arrays and groups, and their meaning. The callers list the folders.

use tilefs_base::error::Result;

use super::name::{NameForm, TimestampedName};

/// Schemas, from format version 10.
pub const SCHEMAS: &str = "__schema";
/// Enumerations, in [`SCHEMAS`].
pub const ENUMERATIONS: &str = "__enumerations";
/// Fragments, from version 12.
pub const FRAGMENTS: &str = "__fragments";
/// Commit markers, deletes and vacuum files, from version 12.
pub const COMMITS: &str = "__commits";
/// Consolidated fragment metadata, from version 12: a cache that readers may ignore.
pub const FRAGMENT_METADATA_CACHE: &str = "__fragment_meta";
/// Metadata of arrays and groups.
pub const METADATA: &str = "__meta";
/// The arrays of dimension labels.
pub const LABELS: &str = "__labels";
/// Group details.
pub const GROUP_DETAILS: &str = "__group";
/// The empty file that marks a group.
pub const GROUP_MARKER: &str = "__tiledb_group.tdb";
/// The schema of a key-value store, a feature that TileDB had until 1.6.
pub const KEY_VALUE_SCHEMA: &str = "__kv_schema.tdb";

/// The kind of a stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// An array.
    Array,
    /// A group.
    Group,
}

impl ObjectKind {
    /// Returns the word for it: `array` or `group`.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Array => "array",
            ObjectKind::Group => "group",
        }
    }
}

/// An entry of an array's root folder that, by its name, may be a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootFragment {
    /// Version 5 or later: a fragment if `NAME.ok` is in the root or among the consolidated commits.
    Marked(TimestampedName),
    /// Before version 5: a fragment if it has a metadata file or, as in later versions, a commit marker.
    Unmarked(TimestampedName),
}

/// Parses the name of an entry of the root folder; `None` if it cannot be a fragment.
///
/// # Errors
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for a name whose time range ends before it starts.
pub fn root_fragment(name: &str) -> Result<Option<RootFragment>> {
    if name.contains('.') {
        return Ok(None);
    }
    let name = TimestampedName::parse(name)?;
    Ok(name.map(|name| if name.version >= 5 { RootFragment::Marked(name) } else { RootFragment::Unmarked(name) }))
}

/// The kind of a file in `__commits`, or in the root before version 12: a timestamped name with an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFile {
    /// `.wrt` (`.ok` in the root): commits the fragment of the same name.
    Mark,
    /// `.vac`: the list of what the fragment or metadata file of the same name has replaced.
    Vacuum,
    /// `.con`: consolidated commits.
    Consolidated,
    /// `.ign`: the entries to ignore in consolidated commits.
    Ignored,
    /// `.del`: a delete condition.
    Delete,
    /// `.upd`: an update condition, an experiment that no release finished.
    Update,
    /// `.meta`: consolidated fragment metadata.
    FragmentMetadataCache,
}

/// Returns the kind of a commit file and the time range in its name; `None` for other files. Lists of commits have no
/// time of their own: writers name them after the first and the last commit in the list.
///
/// # Errors
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for a name whose time range ends before it starts.
pub fn commit_file(file: &str) -> Result<Option<(CommitFile, TimestampedName)>> {
    let Some((_, extension)) = file.rsplit_once('.') else { return Ok(None) };
    let kind = match extension {
        "wrt" | "ok" => CommitFile::Mark,
        "vac" => CommitFile::Vacuum,
        "con" => CommitFile::Consolidated,
        "ign" => CommitFile::Ignored,
        "del" => CommitFile::Delete,
        "upd" => CommitFile::Update,
        "meta" => CommitFile::FragmentMetadataCache,
        _ => return Ok(None),
    };
    let name = match kind {
        CommitFile::Consolidated | CommitFile::Ignored => TimestampedName::parse_of_list(file),
        _ => TimestampedName::parse(file)?,
    };
    Ok(name.map(|name| (kind, name)))
}

/// Returns the time range in the name of a file in `__schema`, `__meta` or `__group`; `None` for everything else there:
/// vacuum files, folders, unfinished writes (`.tmp`).
///
/// # Errors
/// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for a name whose time range ends before it starts.
pub fn timestamped_file(file: &str) -> Result<Option<TimestampedName>> {
    if file.contains('.') {
        return Ok(None);
    }
    Ok(TimestampedName::parse(file)?.filter(|name| name.form != NameForm::One))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn root_entries() {
        let kind = |name: String| root_fragment(&name).unwrap();
        assert!(matches!(kind(format!("__1_2_{UUID}_9")), Some(RootFragment::Marked(name)) if name.version == 9));
        assert!(matches!(kind(format!("__1_2_{UUID}")), Some(RootFragment::Unmarked(_))));
        assert!(matches!(kind(format!("__{UUID}_2")), Some(RootFragment::Unmarked(_))));
        for name in ["__schema", "__commits", "__meta", "__fragments", "__fragment_meta", "__labels", "notes", "a_b"] {
            assert_eq!(kind(name.to_owned()), None, "{name}");
        }
        assert_eq!(kind(format!("__1_2_{UUID}_9.ok")), None);
        assert_eq!(kind(format!("__1_2_{UUID}_9.")), None);
        assert!(root_fragment(&format!("__2_1_{UUID}_9")).is_err());
    }

    #[test]
    fn commit_files() {
        let kind = |extension: &str| {
            commit_file(&format!("__1_2_{UUID}_22.{extension}")).unwrap().map(|(kind, name)| (kind, name.t2))
        };
        assert_eq!(kind("wrt"), Some((CommitFile::Mark, 2)));
        assert_eq!(kind("del"), Some((CommitFile::Delete, 2)));
        assert_eq!(kind("meta"), Some((CommitFile::FragmentMetadataCache, 2)));
        assert_eq!(kind("tmp"), None);
        assert_eq!(commit_file("notes.vac").unwrap(), None);
        let backwards = |extension: &str| commit_file(&format!("__9_2_{UUID}_13.{extension}"));
        assert!(matches!(backwards("con"), Ok(Some((CommitFile::Consolidated, name))) if name.t1 == 2 && name.t2 == 9));
        assert!(matches!(backwards("ign"), Ok(Some((CommitFile::Ignored, _)))));
        assert!(backwards("wrt").is_err() && backwards("vac").is_err());
        assert_eq!(commit_file("__lock.tdb").unwrap(), None);
    }

    #[test]
    fn timestamped_files() {
        let time = |name: String| timestamped_file(&name).unwrap().map(|name| (name.t1, name.t2));
        assert_eq!(time(format!("__1_2_{UUID}")), Some((1, 2)));
        assert_eq!(time(format!("__1_2_{UUID}_2")), Some((1, 2)));
        assert_eq!(time(format!("__1_2_{UUID}.vac")), None);
        assert_eq!(time(format!("__1_2_{UUID}.tmp")), None);
        assert_eq!(time(ENUMERATIONS.to_owned()), None);
    }
}
