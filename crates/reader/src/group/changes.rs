//! Tells whether something was committed to opened arrays and groups, consolidated or vacuumed.
//!
//! TileDB never changes an object once it is written, so a hash of all names in a folder stands for its content.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_format::folder::{COMMITS, GROUP_DETAILS, LABELS, METADATA, ObjectKind, SCHEMAS};
use tilefs_format::name::TimestampedName;
use tilefs_format::schema::FIRST_SCHEMA;
use tilefs_storage::{ListedKind, StoreKey};

use super::OpenedGroup;
use crate::array::directory::listing::FolderListing;
use crate::array::directory::window::now;
use crate::array::{Context, Fingerprint, TimeWindow, kind_of_entries};

/// The folders of an array whose names determine its contents.
const ARRAY_FOLDERS: [&str; 3] = [SCHEMAS, COMMITS, METADATA];

/// The same for a group.
const GROUP_FOLDERS: [&str; 2] = [GROUP_DETAILS, METADATA];

/// Labels of dimensions are arrays within the array, and have no labels themselves.
const MAX_DEPTH: usize = 2;

/// The folders whose contents have changed since they were opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Unknown, because nothing was recorded.
    Unknown,
    /// Only folders of arrays have changed.
    OfArrays(Vec<StoreKey>),
    /// Folders of groups have changed, too, so members may have changed.
    OfGroups,
}

/// Records the fingerprint of a folder, if its context is watching and has none yet. Call this before the folder is
/// opened: a commit in between is then reported twice, but never missed.
///
/// # Errors
/// If the folder cannot be listed.
pub fn note(context: &Arc<Context>, folder: &StoreKey) -> Result<()> {
    if context.watch.wants(folder) {
        context.watch.add(folder, fingerprint(context, folder)?);
    }
    Ok(())
}

/// Lists all watched folders again and returns which have changed. Does not update their fingerprints.
///
/// # Errors
/// If one of them cannot be listed.
pub fn changes(context: &Arc<Context>) -> Result<Changes> {
    let Some(seen) = context.watch.seen() else { return Ok(Changes::Unknown) };
    let mut changed = Vec::new();
    for (folder, before) in seen {
        let now = fingerprint(context, &folder)?;
        if now != before {
            if [before.kind, now.kind] != [Some(ObjectKind::Array); 2] {
                return Ok(Changes::OfGroups);
            }
            changed.push(folder);
        }
    }
    Ok(Changes::OfArrays(changed))
}

fn fingerprint(context: &Arc<Context>, folder: &StoreKey) -> Result<Fingerprint> {
    let now = now();
    let mut names = NameHasher { hasher: DefaultHasher::new(), now };
    let kind = names.add_object(context, folder, 1)?;
    if kind == Some(ObjectKind::Group) {
        // Which of the members exist.
        let group = OpenedGroup::open(context.clone(), folder, TimeWindow::until(now));
        match group.members() {
            Ok(members) => format!("{members:?}").hash(&mut names.hasher),
            Err(error) => error.to_string().hash(&mut names.hasher),
        }
    }
    Ok(Fingerprint { kind, names: names.hasher.finish() })
}

/// Names that are being hashed.
struct NameHasher {
    hasher: DefaultHasher,
    /// Commits dated in the future become visible at their time.
    now: u64,
}

impl NameHasher {
    fn add_object(&mut self, context: &Arc<Context>, folder: &StoreKey, depth: usize) -> Result<Option<ObjectKind>> {
        let storage = &*context.storage;
        let listing = match FolderListing::read(storage, folder) {
            // The removal of an array or group is a change like any other.
            Err(Error::Missing { .. }) => return Ok(None),
            listing => listing?,
        };
        let kind = kind_of_entries(listing.top());
        if listing.top().iter().any(|one| one.name == FIRST_SCHEMA) {
            // All arrays have a schema with that name, but different ones.
            listing.folder().identity.hash(&mut self.hasher);
        }
        let folders: &[&str] = match kind {
            Some(ObjectKind::Array) => &ARRAY_FOLDERS,
            Some(ObjectKind::Group) => &GROUP_FOLDERS,
            None => &[],
        };
        for (path, entries) in [("", Ok(listing.top().to_vec()))]
            .into_iter()
            .chain(folders.iter().map(|path| (*path, listing.names(storage, path))))
        {
            path.hash(&mut self.hasher);
            for entry in entries? {
                let is_later =
                    TimestampedName::parse(&entry.name).is_ok_and(|name| name.is_some_and(|name| name.t2 > self.now));
                (&entry.name, entry.kind == ListedKind::Folder, is_later).hash(&mut self.hasher);
            }
        }
        if kind == Some(ObjectKind::Array) && depth < MAX_DEPTH {
            for label in listing.names(storage, LABELS)?.into_iter().filter(|one| one.is_folder()) {
                label.name.hash(&mut self.hasher);
                self.add_object(context, &folder.join(LABELS).join(&label.name), depth + 1)?;
            }
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use tilefs_storage::MemoryStorage;

    use super::*;

    /// Returns a fixture in memory that is watched, and its folder.
    fn watched(fixture: &str) -> (Arc<MemoryStorage>, Arc<Context>, StoreKey) {
        let folder = StoreKey::from("/array");
        let path = tilefs_fixtures::fixtures().join(fixture);
        let storage = Arc::new(MemoryStorage::load(&path, &folder).unwrap());
        let context = Arc::new(Context::new(storage.clone(), 1 << 20, 1, None));
        context.watch.begin();
        note(&context, &folder).unwrap();
        (storage, context, folder)
    }

    fn changes(context: &Arc<Context>) -> Changes {
        super::changes(context).unwrap()
    }

    #[test]
    fn changes_are_unknown_before_recording_begins() {
        let (storage, _, folder) = watched("arrays/dense/overlap");
        let context = Arc::new(Context::new(storage, 1 << 20, 1, None));
        note(&context, &folder).unwrap();
        assert_eq!(changes(&context), Changes::Unknown);
    }

    #[test]
    fn commits_metadata_and_labels_are_reported_until_they_are_forgotten() {
        let (storage, context, folder) = watched("arrays/dense/labels");
        let none = Changes::OfArrays(Vec::new());
        assert_eq!(changes(&context), none);
        // Written but not committed.
        let fragment = "__1700000000000_1700000000000_0123456789abcdef0123456789abcdef_22";
        storage.put(folder.join("__fragments").join(fragment).join("a0.tdb"), vec![0]);
        assert_eq!(changes(&context), none);
        let label = storage.keys().into_iter().find_map(|key| {
            let path = str::from_utf8(key.below(&folder)?).ok()?.to_owned();
            Some(path.strip_prefix("__labels/")?.split('/').next()?.to_owned())
        });
        let label = folder.join("__labels").join(label.unwrap());
        for place in [
            folder.join("__commits").join(format!("{fragment}.wrt")),
            folder.join("__meta").join("__1700000000000_1700000000000_0123456789abcdef0123456789abcdef"),
            folder.join("__schema").join("__1700000000000_1700000000000_0123456789abcdef0123456789abcdef"),
            label.join("__commits").join(format!("{fragment}.wrt")),
        ] {
            storage.put(place.clone(), vec![]);
            assert_eq!(changes(&context), Changes::OfArrays(vec![folder.clone()]), "{place}");
            assert_eq!(changes(&context), Changes::OfArrays(vec![folder.clone()]), "looking remembers nothing");
            context.watch.forget(Some(std::slice::from_ref(&folder)));
            note(&context, &folder).unwrap();
            assert_eq!(changes(&context), none);
        }
    }

    #[test]
    fn removing_or_replacing_an_array_may_change_members() {
        let (storage, context, folder) = watched("arrays/dense/overlap");
        let all = storage.keys();
        all.iter().for_each(|key| assert!(storage.remove(key)));
        assert_eq!(changes(&context), Changes::OfGroups);
        storage.put(folder.join("__group").join("__tiledb_group.tdb"), vec![]);
        assert_eq!(changes(&context), Changes::OfGroups);
    }

    #[test]
    fn new_details_of_a_group_may_change_members() {
        let (storage, context, folder) = watched("arrays/groups/experiment");
        assert_eq!((changes(&context), context.watch.groups()), (Changes::OfArrays(Vec::new()), vec![folder.clone()]));
        let details = folder.join("__group").join("__1700000000000_1700000000000_0123456789abcdef0123456789abcdef_2");
        storage.put(details, vec![0]);
        assert_eq!(changes(&context), Changes::OfGroups);
    }
}
