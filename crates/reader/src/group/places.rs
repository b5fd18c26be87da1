//! Where the members of a group are. Their URIs are not to be relied on: groups are moved, and members removed.

use std::collections::{HashMap, HashSet};

use tilefs_format::error::Result;
use tilefs_format::group::{GroupMember, MemberType};

use crate::storage::{KnownFolder, Links, Listed, Storage, StoreKey, is_far};

/// Longer paths of moved members are not looked for.
const MOST_PARTS: usize = 64;

/// Why a member is not shown to others than whoever may read it themselves.
const LEADS_OUT: &str = "refused: it is outside of the group's folder, which only --follow-links allows";

/// Where a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberPlace {
    /// Where the group says. Whether the folder is an array or a group is not looked at.
    Stored(StoreKey),
    /// There is nothing where the group says, but a folder within the group has the end of that path.
    Moved(StoreKey),
    /// Nowhere, or nowhere that can be used, and why.
    Missing(String),
}

impl MemberPlace {
    pub fn path(&self) -> Option<&StoreKey> {
        match self {
            MemberPlace::Stored(path) | MemberPlace::Moved(path) => Some(path),
            MemberPlace::Missing(_) => None,
        }
    }

    /// Whether it is refused because it is not in the folder of the group.
    pub fn leads_out(&self) -> bool {
        matches!(self, MemberPlace::Missing(reason) if reason == LEADS_OUT)
    }
}

/// Looks for members, listing each folder around them once: that is one listing for ten thousand arrays in the
/// folder of their group.
pub struct MemberPlaces<'a> {
    storage: &'a dyn Storage,
    /// The group's folder; what is below is looked for in this one, whatever takes its place.
    group: &'a KnownFolder,
    /// The folders of the group and of those around it, outermost first.
    around: &'a [StoreKey],
    links: Links,
    /// The folders in folders that were listed.
    listed: HashMap<StoreKey, HashSet<String>>,
}

impl<'a> MemberPlaces<'a> {
    pub fn new(storage: &'a dyn Storage, group: &'a KnownFolder, around: &'a [StoreKey], links: Links) -> Self {
        MemberPlaces { storage, group, around, links, listed: HashMap::new() }
    }

    /// Where a member is: a relative URI is one in the group's folder, an absolute one is taken as it is, and where
    /// nothing is there the end of it is looked for in this group, then in those around it. Also whether that was seen:
    /// what could not be looked at is taken to be where the group says, and whoever enters it learns what is wrong.
    ///
    /// A member of a group on a disk that is said to be in an object store is not looked for there before it is entered:
    /// its copy in this group is taken, if there is one, as after a download, and nobody waits for a network who only lists.
    ///
    /// Where links stay within, a member is refused that is outside of the outermost group's folder: whoever wrote the
    /// group could otherwise have this process read for others what only this process may.
    ///
    /// # Errors
    /// Where a folder cannot be looked at, for a member that the group says is where its storage has nothing.
    pub fn find(&mut self, member: &GroupMember) -> Result<(MemberPlace, bool)> {
        let mut stored = self.stored_place(member);
        // What is below the group is allowed already, but for links there that lead elsewhere.
        let is_below = member.relative && !member.uri.split('/').any(|part| part == "..");
        if let (false, Some(path)) = (is_below, stored.as_mut()) {
            match self.links {
                Links::Anywhere => self.storage.allow(path),
                Links::Within => match self.place_within(path) {
                    // By this path no link leads to it that others could turn elsewhere.
                    Some(within) => *path = within,
                    None => return self.find_copy_of(member, path),
                },
            }
        }
        let is_elsewhere = stored.as_ref().is_some_and(|path| self.is_elsewhere(path));
        match (self.look(member, stored.as_ref().filter(|_| !is_elsewhere)), stored) {
            (Ok(MemberPlace::Missing(_)), Some(path)) if is_elsewhere => Ok((MemberPlace::Stored(path), true)),
            (Ok(place), _) => Ok((place, true)),
            (Err(_), Some(path)) => Ok((MemberPlace::Stored(path), false)),
            (Err(error), None) => Err(error),
        }
    }

    /// The one path of a place in the folder of the outermost group; `None` of one that is elsewhere.
    fn place_within(&self, path: &StoreKey) -> Option<StoreKey> {
        let outermost = self.around.first()?;
        let canonical = self.storage.canonical(path);
        // Where there is nothing, `..` stays and may lead anywhere.
        let is_plain = !canonical.as_bytes().split(|&byte| byte == b'/').any(|name| name == b"..");
        (is_plain && (canonical == *outermost || canonical.below(outermost).is_some())).then_some(canonical)
    }

    /// Instead of a member that is refused its copy in the group, as after a download; not where the refused one is there.
    fn find_copy_of(&mut self, member: &GroupMember, refused: &StoreKey) -> Result<(MemberPlace, bool)> {
        let is_there = !is_far(self.storage, refused) && self.storage.absence(refused).is_none();
        let copy = if is_there { None } else { Some(self.look(member, None)?) };
        let copy = copy.filter(|place| place.path().is_some());
        Ok((copy.unwrap_or_else(|| MemberPlace::Missing(LEADS_OUT.to_owned())), true))
    }

    /// Where a group says that a member is, if that is where its storage can have it.
    fn stored_place(&self, member: &GroupMember) -> Option<StoreKey> {
        match member.relative {
            true => Some(self.group.key.join(&member.uri)),
            false => self.storage.key_of_uri(&member.uri),
        }
    }

    /// Whether requests for a place are waits, and those for the group are not.
    fn is_elsewhere(&self, path: &StoreKey) -> bool {
        !is_far(self.storage, &self.group.key) && is_far(self.storage, path)
    }

    fn look(&mut self, member: &GroupMember, stored: Option<&StoreKey>) -> Result<MemberPlace> {
        if let Some(path) = stored
            && self.is_folder(path)?
        {
            // Only a group can hold this one; most members are arrays, and links are not followed for those.
            let is_around = member.member_type != MemberType::Array || *path == self.group.key;
            return Ok(match is_around && self.is_around(path) {
                true => MemberPlace::Missing("refused: it is this group or one that holds it".to_owned()),
                false => MemberPlace::Stored(path.clone()),
            });
        }
        if member.relative {
            return Ok(MemberPlace::Missing("missing: there is no such folder in the group".to_owned()));
        }
        let ends: Vec<&str> = member.uri.split('/').filter(|part| !part.is_empty()).collect();
        for base in self.around.iter().rev() {
            match self.ends_below(base, &ends)?.as_slice() {
                [] => {}
                [one] => return Ok(MemberPlace::Moved(one.clone())),
                [one, two, ..] => {
                    let reason = format!("missing: nothing is there, and {one} and {two} could both be meant");
                    return Ok(MemberPlace::Missing(reason));
                }
            }
        }
        Ok(MemberPlace::Missing(match stored {
            Some(_) => "missing: there is no such folder, nor one of that name in the group".to_owned(),
            None => "missing: not on this machine, and there is no folder of that name in the group".to_owned(),
        }))
    }

    /// The folders below `base` that have the end of a path, shortest first, but not those that hold the group.
    fn ends_below(&mut self, base: &StoreKey, parts: &[&str]) -> Result<Vec<StoreKey>> {
        let mut found = Vec::new();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Ok(found);
        }
        for length in 1..=parts.len().min(MOST_PARTS) {
            let mut path = base.clone();
            let mut is_there = true;
            for part in &parts[parts.len() - length..] {
                is_there = self.has_folder(&path, part)?;
                if !is_there {
                    break;
                }
                path = path.join(part);
            }
            if is_there && !self.is_around(&path) {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn is_around(&self, path: &StoreKey) -> bool {
        self.around.contains(&self.storage.canonical(path))
    }

    fn is_folder(&mut self, path: &StoreKey) -> Result<bool> {
        match (path.parent(), path.name()) {
            (Some(parent), Some(name)) => match self.has_folder(&parent, &String::from_utf8_lossy(name)) {
                Ok(is_there) => Ok(is_there),
                // A folder may be open to those who know its name.
                Err(_) => Ok(!self.storage.list(path)?.is_empty()),
            },
            // The root, or a path that ends in "..".
            _ => Ok(!self.storage.list(path)?.is_empty()),
        }
    }

    fn has_folder(&mut self, folder: &StoreKey, name: &str) -> Result<bool> {
        if !self.listed.contains_key(folder) {
            let folders = self.list(folder)?.into_iter().filter(Listed::is_folder).map(|one| one.name);
            self.listed.insert(folder.clone(), folders.collect());
        }
        Ok(self.listed.get(folder).is_some_and(|names| names.contains(name)))
    }

    /// The names in a folder, of which there are none where it is not there. That of a folder in the group is established.
    fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let within = match *folder == self.group.key {
            true => Some(""),
            false => folder.below(&self.group.key).and_then(|path| str::from_utf8(path).ok()),
        };
        match within.filter(|path| !path.split('/').any(|part| part == "..")) {
            Some(path) => Ok(self.storage.list_in(self.group, path)?.unwrap_or_default()),
            None => self.storage.list(folder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::LocalStorage;
    use std::fs;
    use std::path::PathBuf;

    struct Folders {
        root: tempfile::TempDir,
    }

    impl Folders {
        fn new(folders: &[&str]) -> Self {
            let root = tempfile::tempdir().unwrap();
            folders.iter().for_each(|folder| fs::create_dir_all(root.path().join(folder)).unwrap());
            Folders { root }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(path)
        }

        /// Where a member of the last of the groups is.
        fn find(&self, groups: &[&str], member_type: MemberType, relative: bool, uri: &str) -> MemberPlace {
            let around: Vec<StoreKey> = groups.iter().map(|group| self.path(group).into()).collect();
            let storage = LocalStorage::new();
            let member =
                GroupMember { member_type, relative, uri: uri.to_owned(), name: None, deleted: false, key: uri.into() };
            let group = storage.know(around.last().unwrap()).unwrap();
            let mut places = MemberPlaces::new(&storage, &group, &around, Links::Anywhere);
            let (place, was_seen) = places.find(&member).unwrap();
            assert!(was_seen);
            place
        }

        fn array(&self, groups: &[&str], relative: bool, uri: &str) -> MemberPlace {
            self.find(groups, MemberType::Array, relative, uri)
        }
    }

    #[test]
    fn members_that_are_where_the_group_says() {
        let folders = Folders::new(&["g/a", "g/deep/b", "other"]);
        let stored = |path: &str| MemberPlace::Stored(folders.path(path).into());
        assert_eq!(folders.array(&["g"], true, "a"), stored("g/a"));
        assert_eq!(folders.array(&["g"], true, "deep/b/"), stored("g/deep/b"));
        assert_eq!(folders.array(&["g"], true, "../other"), stored("g/../other"));
        let uri = format!("file://{}", folders.path("other").display());
        assert_eq!(folders.array(&["g"], false, &uri), stored("other"));
        assert_eq!(folders.array(&["g"], false, &uri["file://".len()..]), stored("other"));
    }

    #[test]
    fn links_that_must_stay_within_are_no_members() {
        let folders = Folders::new(&["g/a", "g/sub/b", "other", "copied", "g/copied", "__x"]);
        std::os::unix::fs::symlink(folders.path("other"), folders.path("g/link")).unwrap();
        let group = StoreKey::from(folders.path("g"));
        let storage = LocalStorage::with_links(Links::Within);
        storage.allow(&group);
        let around = [group.clone()];
        let group = storage.know(&group).unwrap();
        let find = |relative: bool, uri: &str| {
            let member_type = MemberType::Array;
            let member =
                GroupMember { member_type, relative, uri: uri.to_owned(), name: None, deleted: false, key: uri.into() };
            let (place, _) = MemberPlaces::new(&storage, &group, &around, Links::Within).find(&member).unwrap();
            if let MemberPlace::Missing(reason) = &place {
                assert!(place.leads_out() && reason.contains("--follow-links"), "{uri}: {reason}");
            }
            place.path().map(|path| storage.list(path).map_err(|error| error.to_string()))
        };
        assert!(matches!(find(true, "a"), Some(Ok(_))));
        assert!(matches!(find(true, "link"), Some(Err(error)) if error.contains("--follow-links")));
        // By whatever way it is in the group.
        let text = |path: &str| folders.path(path).to_str().unwrap().to_owned();
        for uri in [text("g/a"), format!("file://{}", text("g/a")), text("other/../g/sub/b")] {
            assert!(matches!(find(false, &uri), Some(Ok(_))), "{uri}");
        }
        assert!(matches!(find(true, "../g/sub/b"), Some(Ok(_))));
        // What the group names elsewhere is refused, whether it is there or not, and by whatever way.
        std::os::unix::fs::symlink(folders.path("g"), folders.path("other/in")).unwrap();
        std::os::unix::fs::symlink(folders.path("other"), folders.path("g/out")).unwrap();
        for uri in ["../other", "../none", "../g/../other", "a/../../other", "sub/../../other"] {
            assert!(find(true, uri).is_none(), "{uri}");
        }
        for path in ["other", "none", "g/../other", "g/link", "g/out/in/../other", "g/none/../../other", "copied"] {
            assert!(find(false, &text(path)).is_none(), "{path}");
            assert!(find(false, &format!("file://{}", text(path))).is_none(), "{path}");
        }
        // Of one that is not there the copy in the group.
        let copy = |uri: &str| find(false, uri).map(|listed| listed.is_ok());
        assert_eq!(copy(&text("moved/copied")), Some(true));
        assert_eq!(copy("file:///no/where/a"), Some(true));
    }

    #[test]
    fn members_that_cannot_be_looked_at_are_where_the_group_says() {
        let folders = Folders::new(&["g"]);
        std::os::unix::fs::symlink(folders.path("g/circle"), folders.path("g/circle")).unwrap();
        let group = StoreKey::from(folders.path("g"));
        let (storage, around) = (LocalStorage::new(), [group.clone()]);
        let uri = "circle/array";
        let (member_type, key) = (MemberType::Array, uri.into());
        let member = GroupMember { member_type, relative: true, uri: uri.into(), name: None, deleted: false, key };
        let known = storage.know(&group).unwrap();
        let found = MemberPlaces::new(&storage, &known, &around, Links::Anywhere).find(&member).unwrap();
        assert_eq!(found, (MemberPlace::Stored(group.join(uri)), false));
    }

    #[test]
    fn members_that_moved_with_the_group() {
        let folders = Folders::new(&["g/a", "g/sub/b", "g/sub/c", "g/c"]);
        let moved = |path: &str| MemberPlace::Moved(folders.path(path).into());
        assert_eq!(folders.array(&["g"], false, "file:///no/where/g/a"), moved("g/a"));
        assert_eq!(folders.array(&["g"], false, "s3://bucket/x/sub/b"), moved("g/sub/b"));
        // Of a group around this one.
        assert_eq!(folders.array(&["g", "g/sub"], false, "file:///no/where/g/a"), moved("g/a"));
        // Two could be meant; within the inner group only one.
        assert!(
            matches!(folders.array(&["g"], false, "file:///no/sub/c"), MemberPlace::Missing(why) if why.contains("both"))
        );
        assert_eq!(folders.array(&["g", "g/sub"], false, "file:///no/sub/c"), moved("g/sub/c"));
    }

    #[cfg(feature = "cloud")]
    #[test]
    fn members_in_buckets_are_not_looked_for_before_they_are_entered() {
        use crate::storage::any::AnyStorage;
        use crate::storage::{CloudOptions, Settings};

        let folders = Folders::new(&["g/copied"]);
        let group = StoreKey::from(folders.path("g"));
        let mut settings = Settings::default();
        settings.set_typed("vfs.s3.endpoint_override", "http://127.0.0.1:1").unwrap();
        let storage = AnyStorage::new(LocalStorage::new(), CloudOptions { settings, ..CloudOptions::default() });
        let around = [group.clone()];
        let known = storage.know(&group).unwrap();
        let find = |links: Links, uri: &str| {
            let (member_type, key) = (MemberType::Array, uri.into());
            let member = GroupMember { member_type, relative: false, uri: uri.into(), name: None, deleted: false, key };
            MemberPlaces::new(&storage, &known, &around, links).find(&member).unwrap()
        };
        let copied = (MemberPlace::Moved(group.join("copied")), true);
        let deep = "s3://bucket/deep/array";
        assert_eq!(find(Links::Anywhere, deep), (MemberPlace::Stored(deep.into()), true));
        assert_eq!(find(Links::Anywhere, "s3://bucket/copied"), copied);
        assert!(find(Links::Within, deep).0.leads_out());
        assert_eq!(find(Links::Within, "s3://bucket/copied"), copied);
    }

    #[test]
    fn members_in_other_buckets_are_outside() {
        use crate::storage::MemoryStorage;

        let storage = MemoryStorage::new();
        let group = StoreKey::from("s3://bucket/group");
        for path in ["s3://bucket/group/a", "s3://bucket/group/copied", "s3://bucket/other", "s3://foreign/a"] {
            storage.put(StoreKey::from(path).join("__schema/x"), []);
        }
        let (known, around) = (storage.know(&group).unwrap(), [group.clone()]);
        let find = |relative: bool, uri: &str| {
            let (member_type, key) = (MemberType::Array, uri.into());
            let member = GroupMember { member_type, relative, uri: uri.into(), name: None, deleted: false, key };
            MemberPlaces::new(&UriStorage(&storage), &known, &around, Links::Within).find(&member).unwrap().0
        };
        assert_eq!(find(true, "a"), MemberPlace::Stored(group.join("a")));
        assert_eq!(find(false, "s3://bucket/group/a"), MemberPlace::Stored(group.join("a")));
        for (relative, uri) in [
            (true, "../other"),
            (false, "s3://bucket/other"),
            (false, "s3://foreign/b"),
            (false, "s3://bucket/group2/b"),
        ] {
            assert!(find(relative, uri).leads_out(), "{uri}");
        }
        assert_eq!(find(false, "s3://foreign/copied"), MemberPlace::Moved(group.join("copied")));
    }

    /// Objects in memory, by URIs.
    struct UriStorage<'a>(&'a crate::storage::MemoryStorage);

    impl Storage for UriStorage<'_> {
        fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
            self.0.list(folder)
        }

        fn length(&self, key: &StoreKey) -> Result<u64> {
            self.0.length(key)
        }

        fn read_ranges(&self, key: &StoreKey, ranges: &mut [crate::storage::ReadRange<'_>]) -> Result<()> {
            self.0.read_ranges(key, ranges)
        }

        fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
            self.0.read_from(key, offset, most)
        }

        fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
            self.0.read_end(key, most)
        }

        fn requests_at_once(&self, _: &StoreKey) -> usize {
            64
        }

        fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
            uri.starts_with("s3://").then(|| uri.into())
        }

        fn canonical(&self, key: &StoreKey) -> StoreKey {
            self.0.canonical(key)
        }
    }

    #[test]
    fn members_that_are_gone_have_a_reason() {
        let folders = Folders::new(&["g/a"]);
        fs::write(folders.path("g/file"), b"").unwrap();
        for (relative, uri) in [
            (true, "b"),
            (true, "file"),
            (true, ""),
            (false, "file:///no/where/b"),
            (false, "file:///no/../a"),
            (false, "tiledb://space/b"),
            (false, ""),
            (false, "a\0"),
        ] {
            let place = folders.array(&["g"], relative, uri);
            assert!(matches!(place, MemberPlace::Missing(why) if !why.is_empty()), "{uri}");
        }
    }

    #[test]
    fn a_group_is_not_in_itself() {
        let folders = Folders::new(&["g/sub"]);
        std::os::unix::fs::symlink(folders.path("g"), folders.path("g/sub/link")).unwrap();
        let around = ["g", "g/sub"];
        for (member_type, relative, uri) in [
            (MemberType::Group, true, ".."),
            (MemberType::Group, true, "link"),
            (MemberType::Unknown, true, "../sub"),
            (MemberType::Group, true, ""),
            (MemberType::Array, true, ""),
            (MemberType::Group, false, "file:///no/where/g/sub"),
        ] {
            let place = folders.find(&around, member_type, relative, uri);
            assert!(matches!(place, MemberPlace::Missing(_)), "{uri}: {place:?}");
        }
    }
}
