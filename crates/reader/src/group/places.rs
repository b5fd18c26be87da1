//! Locates the members of a group. Their stored URIs may be outdated, because groups are moved and members removed.

use std::collections::HashMap;

use tilefs_base::error::Result;
use tilefs_format::folder::ObjectKind;
use tilefs_format::group::GroupMember;
use tilefs_storage::{KnownFolder, Links, Listed, Storage, StoreKey};

/// The most parts at the end of a path that are searched for.
const MAX_PARTS: usize = 64;

/// The reason for hiding a member that other users of the mount may not be allowed to read.
const LEADS_OUT: &str = "refused: it is outside of the group's folder, which only --follow-links allows";

/// The location of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberPlace {
    /// The location that the group states. Whether the folder is an array or a group is not checked.
    Stored(StoreKey),
    /// There is nothing at the stated location, but a folder within the group has a path that ends in the same way.
    Moved(StoreKey),
    /// The member was not found or cannot be used, with the reason.
    Missing(String),
}

impl MemberPlace {
    /// Returns the member's path or URI, unless it may not be followed.
    pub fn path(&self) -> Option<&StoreKey> {
        match self {
            MemberPlace::Stored(path) | MemberPlace::Moved(path) => Some(path),
            MemberPlace::Missing(_) => None,
        }
    }

    /// Returns whether the member is refused because it is outside the group's folder.
    pub fn leads_out(&self) -> bool {
        matches!(self, MemberPlace::Missing(reason) if reason == LEADS_OUT)
    }
}

/// A locator of members. It lists each folder around them once: a single listing for ten thousand arrays in their
/// group's folder.
pub struct MemberPlaces<'a> {
    storage: &'a dyn Storage,
    /// The group's folder; paths below it are looked up in this folder, even if another one replaces it.
    group: &'a KnownFolder,
    /// The folders of the group and of the groups around it, outermost first.
    around: &'a [StoreKey],
    links: Links,
    /// The names in each listed folder, and whether they are folders.
    listed: HashMap<StoreKey, HashMap<String, bool>>,
}

impl<'a> MemberPlaces<'a> {
    pub fn new(storage: &'a dyn Storage, group: &'a KnownFolder, around: &'a [StoreKey], links: Links) -> Self {
        MemberPlaces { storage, group, around, links, listed: HashMap::new() }
    }

    /// Locates a member. A relative URI is relative to the group's folder. If nothing is at an absolute URI, looks for
    /// a folder whose path ends as the URI does, in this group and then in the groups around it. Also returns whether
    /// the location was examined: if it could not be, the member is assumed to be at the stated location, and opening
    /// it reports the error.
    ///
    /// A group on a local disk may state that a member is in an object store. Then the store gets no request until the
    /// member is opened, so that listings need no network. If the group has a copy of the member, as after a download,
    /// the copy is used.
    ///
    /// If links must stay within the group, a member outside the outermost group's folder is refused. Otherwise the
    /// writer of the group could make this process read files for other users that only this process may read.
    ///
    /// # Errors
    /// If a folder cannot be examined for a member whose URI is no location in the storage.
    pub fn find(&mut self, member: &GroupMember) -> Result<(MemberPlace, bool)> {
        let mut stored = self.stored_place(member);
        // Paths below the group are allowed anyway; links in them are checked when they are followed.
        let is_below = member.relative && !member.uri.split('/').any(|part| part == "..");
        if let (false, Some(path)) = (is_below, stored.as_mut()) {
            match self.links {
                Links::Anywhere => self.storage.allow(path),
                Links::Within => match self.place_within(path) {
                    // This path contains no link that others could redirect.
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

    /// Returns the canonical path of a location in the folder of the outermost group; `None` if it is elsewhere.
    fn place_within(&self, path: &StoreKey) -> Option<StoreKey> {
        let outermost = self.around.first()?;
        let canonical = self.storage.canonical(path);
        // In a path that does not exist, `..` remains and may lead anywhere.
        let is_plain = !canonical.as_bytes().split(|&byte| byte == b'/').any(|name| name == b"..");
        (is_plain && (canonical == *outermost || canonical.below(outermost).is_some())).then_some(canonical)
    }

    /// Finds the copy of a refused member in the group, as after a download, unless the member exists at the refused
    /// location.
    fn find_copy_of(&mut self, member: &GroupMember, refused: &StoreKey) -> Result<(MemberPlace, bool)> {
        let is_remote = self.storage.is_remote(refused);
        let is_there = !is_remote && self.storage.absence(refused).is_none();
        let copy = if is_there { None } else { Some(self.look(member, None)?) };
        let copy = copy.filter(|place| place.path().is_some());
        // A path that cannot be resolved now may lead into the group another time.
        let was_seen = is_remote || is_there || copy.is_some();
        Ok((copy.unwrap_or_else(|| MemberPlace::Missing(LEADS_OUT.to_owned())), was_seen))
    }

    /// Returns the stated location of a member, if its storage can have such a location.
    fn stored_place(&self, member: &GroupMember) -> Option<StoreKey> {
        match member.relative {
            true => Some(self.group.key.join(&member.uri)),
            false => self.storage.key_of_uri(&member.uri),
        }
    }

    /// Returns whether requests for a location have latency although requests for the group have none.
    fn is_elsewhere(&self, path: &StoreKey) -> bool {
        !self.storage.is_remote(&self.group.key) && self.storage.is_remote(path)
    }

    fn look(&mut self, member: &GroupMember, stored: Option<&StoreKey>) -> Result<MemberPlace> {
        if let Some(path) = stored
            && self.is_folder(path)?
        {
            // Only a group can contain this one. Most members are arrays; links are not resolved for them.
            let is_around = member.kind != Some(ObjectKind::Array) || *path == self.group.key;
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
                    let reason = format!("missing: nothing is there, but both {one} and {two} match");
                    return Ok(MemberPlace::Missing(reason));
                }
            }
        }
        Ok(MemberPlace::Missing(match stored {
            Some(_) => "missing: there is no such folder, nor one of that name in the group".to_owned(),
            None => "missing: not on this machine, and there is no folder of that name in the group".to_owned(),
        }))
    }

    /// Returns the folders below `base` whose paths end with the last names in `parts`, shortest end first, without
    /// folders that contain the group.
    fn ends_below(&mut self, base: &StoreKey, parts: &[&str]) -> Result<Vec<StoreKey>> {
        let mut found = Vec::new();
        if parts.iter().any(|part| matches!(*part, "." | "..")) {
            return Ok(found);
        }
        for length in 1..=parts.len().min(MAX_PARTS) {
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
                // A folder may be accessible although its parent cannot be listed.
                Err(_) => Ok(!self.storage.list(path)?.is_empty()),
            },
            // The root, or a path that ends in "..".
            _ => Ok(!self.storage.list(path)?.is_empty()),
        }
    }

    fn has_folder(&mut self, folder: &StoreKey, name: &str) -> Result<bool> {
        if !self.listed.contains_key(folder) {
            let names = self.list(folder)?.into_iter().map(|one| (one.is_folder(), one.name));
            self.listed.insert(folder.clone(), names.map(|(is_folder, name)| (name, is_folder)).collect());
        }
        let listed = self.listed.get(folder).and_then(|names| names.get(name));
        // The listing of a stale folder may lack it.
        Ok(listed.copied().unwrap_or_else(|| self.can_enter(&folder.join(name))))
    }

    /// Returns whether a local folder can be opened by its name.
    fn can_enter(&self, path: &StoreKey) -> bool {
        self.group.identity.is_some() && self.storage.know(path).is_ok_and(|known| known.identity.is_some())
    }

    /// Returns the names in a folder, or none if it does not exist. Checks that the group's own folder is still the
    /// opened one.
    fn list(&mut self, folder: &StoreKey) -> Result<Vec<Listed>> {
        let within = match *folder == self.group.key {
            true => Some(""),
            false => folder.below(&self.group.key).and_then(|path| str::from_utf8(path).ok()),
        };
        match within.filter(|path| !path.split('/').any(|part| part == "..")) {
            Some(path) => match self.storage.list_in(self.group, path)? {
                Some(names) => Ok(names),
                None => self.check_absence(path).map(|()| Vec::new()),
            },
            None => self.storage.list(folder),
        }
    }

    /// Fails if a folder of the group cannot be opened although the folder around it lists it.
    fn check_absence(&mut self, path: &str) -> Result<()> {
        let mut around = self.group.key.clone();
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if self.group.identity.is_none() || !self.has_folder(&around, name)? {
                return Ok(());
            }
            around = around.join(name);
        }
        Err(self.group.vanished(path))
    }
}

#[cfg(test)]
mod tests {
    use tilefs_storage::LocalStorage;

    use super::*;
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

        /// Returns the location of a member of the last of the groups.
        fn find(&self, groups: &[&str], kind: Option<ObjectKind>, relative: bool, uri: &str) -> MemberPlace {
            let around: Vec<StoreKey> = groups.iter().map(|group| self.path(group).into()).collect();
            let storage = LocalStorage::new();
            let member =
                GroupMember { kind, relative, uri: uri.to_owned(), name: None, deleted: false, key: uri.into() };
            let group = storage.know(around.last().unwrap()).unwrap();
            let mut places = MemberPlaces::new(&storage, &group, &around, Links::Anywhere);
            let (place, was_seen) = places.find(&member).unwrap();
            assert!(was_seen);
            place
        }

        fn array(&self, groups: &[&str], relative: bool, uri: &str) -> MemberPlace {
            self.find(groups, Some(ObjectKind::Array), relative, uri)
        }
    }

    #[test]
    fn members_are_found_at_their_stated_locations() {
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
    fn links_out_of_the_group_are_refused_as_members() {
        let folders = Folders::new(&["g/a", "g/sub/b", "other", "copied", "g/copied", "__x"]);
        std::os::unix::fs::symlink(folders.path("other"), folders.path("g/link")).unwrap();
        let group = StoreKey::from(folders.path("g"));
        let storage = LocalStorage::with_links(Links::Within);
        storage.allow(&group);
        let around = [group.clone()];
        let group = storage.know(&group).unwrap();
        let find = |relative: bool, uri: &str| {
            let kind = Some(ObjectKind::Array);
            let member =
                GroupMember { kind, relative, uri: uri.to_owned(), name: None, deleted: false, key: uri.into() };
            let (place, _) = MemberPlaces::new(&storage, &group, &around, Links::Within).find(&member).unwrap();
            if let MemberPlace::Missing(reason) = &place {
                assert!(place.leads_out() && reason.contains("--follow-links"), "{uri}: {reason}");
            }
            place.path().map(|path| storage.list(path).map_err(|error| error.to_string()))
        };
        assert!(matches!(find(true, "a"), Some(Ok(_))));
        assert!(matches!(find(true, "link"), Some(Err(error)) if error.contains("--follow-links")));
        // No matter by which path it is in the group.
        let text = |path: &str| folders.path(path).to_str().unwrap().to_owned();
        for uri in [text("g/a"), format!("file://{}", text("g/a")), text("other/../g/sub/b")] {
            assert!(matches!(find(false, &uri), Some(Ok(_))), "{uri}");
        }
        assert!(matches!(find(true, "../g/sub/b"), Some(Ok(_))));
        // A member outside the group is refused whether it exists or not, and no matter by which path.
        std::os::unix::fs::symlink(folders.path("g"), folders.path("other/in")).unwrap();
        std::os::unix::fs::symlink(folders.path("other"), folders.path("g/out")).unwrap();
        for uri in ["../other", "../none", "../g/../other", "a/../../other", "sub/../../other"] {
            assert!(find(true, uri).is_none(), "{uri}");
        }
        for path in ["other", "none", "g/../other", "g/link", "g/out/in/../other", "g/none/../../other", "copied"] {
            assert!(find(false, &text(path)).is_none(), "{path}");
            assert!(find(false, &format!("file://{}", text(path))).is_none(), "{path}");
        }
        // For a member that does not exist, the copy in the group is found.
        let copy = |uri: &str| find(false, uri).map(|listed| listed.is_ok());
        assert_eq!(copy(&text("moved/copied")), Some(true));
        assert_eq!(copy("file:///no/where/a"), Some(true));
    }

    #[test]
    fn members_that_cannot_be_examined_keep_their_stated_locations() {
        let folders = Folders::new(&["g"]);
        std::os::unix::fs::symlink(folders.path("g/circle"), folders.path("g/circle")).unwrap();
        let group = StoreKey::from(folders.path("g"));
        let (storage, around) = (LocalStorage::new(), [group.clone()]);
        let uri = "circle/array";
        let (kind, key) = (Some(ObjectKind::Array), uri.into());
        let member = GroupMember { kind, relative: true, uri: uri.into(), name: None, deleted: false, key };
        let known = storage.know(&group).unwrap();
        let found = MemberPlaces::new(&storage, &known, &around, Links::Anywhere).find(&member).unwrap();
        assert_eq!(found, (MemberPlace::Stored(group.join(uri)), false));
    }

    #[test]
    fn members_that_moved_with_the_group_are_found() {
        let folders = Folders::new(&["g/a", "g/sub/b", "g/sub/c", "g/c"]);
        let moved = |path: &str| MemberPlace::Moved(folders.path(path).into());
        assert_eq!(folders.array(&["g"], false, "file:///no/where/g/a"), moved("g/a"));
        assert_eq!(folders.array(&["g"], false, "s3://bucket/x/sub/b"), moved("g/sub/b"));
        // In a group around this one.
        assert_eq!(folders.array(&["g", "g/sub"], false, "file:///no/where/g/a"), moved("g/a"));
        // Two folders match, but only one of them is in the inner group.
        assert!(
            matches!(folders.array(&["g"], false, "file:///no/sub/c"), MemberPlace::Missing(why) if why.contains("both"))
        );
        assert_eq!(folders.array(&["g", "g/sub"], false, "file:///no/sub/c"), moved("g/sub/c"));
    }

    #[test]
    fn members_in_buckets_get_no_request_before_they_are_opened() {
        use tilefs_cloud::{AnyStorage, CloudOptions, Settings};

        let folders = Folders::new(&["g/copied"]);
        let group = StoreKey::from(folders.path("g"));
        let mut settings = Settings::default();
        settings.set_typed("vfs.s3.endpoint_override", "http://127.0.0.1:1").unwrap();
        let storage = AnyStorage::new(LocalStorage::new(), CloudOptions { settings, ..CloudOptions::default() });
        let around = [group.clone()];
        let known = storage.know(&group).unwrap();
        let find = |links: Links, uri: &str| {
            let (kind, key) = (Some(ObjectKind::Array), uri.into());
            let member = GroupMember { kind, relative: false, uri: uri.into(), name: None, deleted: false, key };
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
        use tilefs_storage::MemoryStorage;

        let storage = MemoryStorage::new();
        let group = StoreKey::from("s3://bucket/group");
        for path in ["s3://bucket/group/a", "s3://bucket/group/copied", "s3://bucket/other", "s3://foreign/a"] {
            storage.put(StoreKey::from(path).join("__schema/x"), []);
        }
        let (known, around) = (storage.know(&group).unwrap(), [group.clone()]);
        let find = |relative: bool, uri: &str| {
            let (kind, key) = (Some(ObjectKind::Array), uri.into());
            let member = GroupMember { kind, relative, uri: uri.into(), name: None, deleted: false, key };
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

    /// Objects in memory, by URI.
    struct UriStorage<'a>(&'a tilefs_storage::MemoryStorage);

    impl Storage for UriStorage<'_> {
        fn list(&self, folder: &StoreKey) -> Result<Vec<Listed>> {
            self.0.list(folder)
        }

        fn length(&self, key: &StoreKey) -> Result<u64> {
            self.0.length(key)
        }

        fn read_ranges(&self, key: &StoreKey, ranges: &mut [tilefs_storage::ReadRange<'_>]) -> Result<()> {
            self.0.read_ranges(key, ranges)
        }

        fn read_from(&self, key: &StoreKey, offset: u64, most: usize) -> Result<(Vec<u8>, u64)> {
            self.0.read_from(key, offset, most)
        }

        fn read_end(&self, key: &StoreKey, most: usize) -> Result<(Vec<u8>, u64)> {
            self.0.read_end(key, most)
        }

        fn is_remote(&self, _: &StoreKey) -> bool {
            true
        }

        fn key_of_uri(&self, uri: &str) -> Option<StoreKey> {
            uri.starts_with("s3://").then(|| uri.into())
        }

        fn canonical(&self, key: &StoreKey) -> StoreKey {
            self.0.canonical(key)
        }
    }

    #[test]
    fn missing_members_have_a_reason() {
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
    fn a_group_is_not_its_own_member() {
        let folders = Folders::new(&["g/sub"]);
        std::os::unix::fs::symlink(folders.path("g"), folders.path("g/sub/link")).unwrap();
        let around = ["g", "g/sub"];
        for (kind, relative, uri) in [
            (Some(ObjectKind::Group), true, ".."),
            (Some(ObjectKind::Group), true, "link"),
            (None, true, "../sub"),
            (Some(ObjectKind::Group), true, ""),
            (Some(ObjectKind::Array), true, ""),
            (Some(ObjectKind::Group), false, "file:///no/where/g/sub"),
        ] {
            let place = folders.find(&around, kind, relative, uri);
            assert!(matches!(place, MemberPlace::Missing(_)), "{uri}: {place:?}");
        }
    }
}
