//! A group as a folder: one folder for each member, and `.group/` for information about the group itself.
//!
//! Members are opened when something in them is needed. Missing members are not listed; `.group/members.tsv` gives the
//! reasons.

mod listed_views;
pub mod outline;
pub mod texts;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tilefs_base::error::{Error, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_export::zarr::ZarrVersion;
use tilefs_reader::OpenedObject;
use tilefs_reader::array::TimeWindow;
use tilefs_reader::group::OpenedGroup;
use tilefs_reader::group::changes::note;
use tilefs_storage::StoreKey;
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;
use tilefs_vfs::node::ExtendedAttributes;
use tilefs_vfs::node::lazy::{FixedFolder, LazyFile};
use tilefs_vfs::node::{Entry, Folder, Node};

use crate::array::explain::{OWN, VIEWS};
use crate::array::history::{HISTORY, History};
use crate::array::{array_folder, folder_of};
use crate::domains::{self, GroupDomain, PlainZarr, ShownGroup};
use crate::fields::meta;
use crate::fields::xattrs;
use crate::group::listed_views::{ListedViews, listed_views};
use crate::group::texts::{NEITHER, group_json, members_tsv, readme, views};
use crate::objects::members::NamedMembers;
use crate::objects::open_member;
use crate::objects::opened_later::{Later, OpenedLater, source_of};
use crate::options::TreeOptions;
use crate::views::zarr::{ZARR, ZARR_VIEW, ZARR2, ZarrOfMembers};

/// The folder of information about a group.
const ABOUT: &str = ".group";
const README: &str = "README.txt";

/// Number of recently used members that are kept open.
const KEPT: usize = 64;

/// The folder of a group. Memory: the members' names, and the trees of recently used members; what domains hold.
pub struct GroupFolder {
    group: Arc<OpenedGroup>,
    options: Arc<TreeOptions>,
    /// Milliseconds since 1970.
    last_commit: Option<u64>,
    modified: SystemTime,
    /// The names of the members when last examined.
    members: Mutex<Option<Arc<NamedMembers>>>,
    kept: LruCache<String, Arc<Later<MemberFolder>>>,
    /// `zarr2/` and `zarr/`, once used.
    zarr: [SingleFlight<Arc<dyn Folder>>; 2],
    /// The additions of domains.
    domains: Arc<[Box<dyn GroupDomain>]>,
    listed: Arc<ListedViews>,
    /// The options of members.
    below: Arc<TreeOptions>,
}

impl GroupFolder {
    /// Creates the folder. Lists the group's own commits; examines no member.
    ///
    /// # Errors
    /// As for [`OpenedGroup::commit_times`].
    pub fn new(group: OpenedGroup, options: Arc<TreeOptions>) -> Result<Self> {
        let end = group.window().end;
        let last_commit = group.commit_times()?.into_iter().rfind(|&time| time <= end);
        let modified = UNIX_EPOCH + Duration::from_millis(last_commit.unwrap_or(0));
        Ok(Self::of(Arc::new(group), options, last_commit, modified))
    }

    fn of(group: Arc<OpenedGroup>, options: Arc<TreeOptions>, last_commit: Option<u64>, modified: SystemTime) -> Self {
        let kept = LruCache::new(KEPT);
        let (members, zarr) = (Mutex::default(), [SingleFlight::new(), SingleFlight::new()]);
        let (of_members, shown_with) = (group.clone(), options.clone());
        let folder = move || -> Arc<dyn Folder> {
            Arc::new(GroupFolder::of(of_members.clone(), shown_with.clone(), last_commit, modified))
        };
        let shown = ShownGroup { group: group.clone(), options: options.clone(), modified, members: Arc::new(folder) };
        let domains = domains::of_group(&shown);
        let listed = Arc::new(ListedViews::new(options.shown.clone(), group.clone(), domains.clone()));
        let below = options_below(&options, &listed);
        GroupFolder { group, options, last_commit, modified, members, kept, zarr, domains, listed, below }
    }

    /// Returns the same group as of another window, after the arrays in `changed` have changed. All other open members
    /// stay open.
    ///
    /// # Errors
    /// As for [`GroupFolder::new`].
    pub fn refreshed(&self, changed: &HashSet<StoreKey>, window: TimeWindow) -> Result<Self> {
        let mut folder = GroupFolder::new(self.group.at(window), self.options.clone())?;
        // Members that stay open ask the same as before what the group lists.
        self.listed.replace(folder.group.clone(), folder.domains.clone());
        (folder.listed, folder.below) = (self.listed.clone(), self.below.clone());
        // Copied, because members of the group are looked up while groups among them are listed.
        for (name, member) in self.kept.all() {
            if let Some(member) = member.0.refreshed(&folder, changed, window)? {
                folder.kept.put(name, Arc::new(Later(member)));
            }
        }
        Ok(folder)
    }

    /// Returns the open arrays, also of groups below, that have a form which others in their group determine: a change of
    /// any array may change what they show.
    pub fn depending_on_others(&self) -> Vec<StoreKey> {
        let of_member = |member: Arc<Later<MemberFolder>>| match member.0.opened.get() {
            Some(OpenedFolder::Group(folder)) => folder.depending_on_others(),
            Some(OpenedFolder::OfGroup(_)) => vec![member.0.path.clone()],
            Some(OpenedFolder::Other(_)) | None => Vec::new(),
        };
        self.kept.all().into_iter().flat_map(|(_, member)| of_member(member)).collect()
    }

    fn members(&self) -> Result<Arc<NamedMembers>> {
        let members = self.group.members()?;
        let mut known = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| Arc::ptr_eq(&known.members, &members)) {
            return Ok(known.clone());
        }
        let outside = members.iter().filter(|member| member.place.leads_out());
        outside.for_each(|member| {
            log::warn!(
                "{}: the member {:?} is outside of the group's folder and not shown; --follow-links shows it",
                self.group.path(),
                member.uri
            );
        });
        let named = Arc::new(NamedMembers::new(members));
        *known = Some(named.clone());
        Ok(named)
    }

    fn member(&self, name: &str) -> Result<Option<Node>> {
        let members = self.members()?;
        let Some(path) = members.path(name) else { return Ok(None) };
        // A changed path makes a new folder.
        if let Some(folder) = self.kept.get(name).filter(|folder| folder.0.path == *path) {
            return Ok(Some(Node::Folder(folder)));
        }
        let folder = Arc::new(Later(MemberFolder {
            path: path.clone(),
            group: self.group.clone(),
            domains: self.domains.clone(),
            options: self.below.clone(),
            group_modified: self.modified,
            opened: OnceLock::new(),
        }));
        self.kept.put(name.to_owned(), folder.clone());
        Ok(Some(Node::Folder(folder)))
    }

    /// Returns `.group/`.
    fn about(&self) -> FixedFolder {
        let mut folder = FixedFolder::new(self.modified);
        let group = self.group.clone();
        folder.add_file("members.tsv", LazyFile::transient_text(self.modified, move || members_tsv(&group)));
        let (group, domains) = (self.group.clone(), self.domains.clone());
        folder.add_file("group.json", LazyFile::transient_text(self.modified, move || group_json(&group, &domains)));
        let group = self.group.clone();
        meta::add_to(&mut folder, self.modified, move || group.metadata());
        folder
    }

    /// Returns `zarr/` or `zarr2/`.
    fn zarr(&self, version: ZarrVersion) -> Result<Option<Node>> {
        let made = &self.zarr[version as usize];
        made.get_or_pass(|| self.make_zarr(version)).map(|folder| Some(Node::Folder(folder)))
    }

    /// Makes `zarr/` or `zarr2/`; also returns whether it is final.
    fn make_zarr(&self, version: ZarrVersion) -> Result<(Arc<dyn Folder>, bool)> {
        let (group, mut options) = (self.group.clone(), self.options.clone());
        for domain in &*self.domains {
            options = domain.options_in_zarr()?.unwrap_or(options);
        }
        let (last_commit, modified) = (self.last_commit, self.modified);
        let plain: PlainZarr = Arc::new(move |reason| {
            let members = GroupFolder::of(group.clone(), options.clone(), last_commit, modified);
            let group = group.clone();
            let zarr = ZarrOfMembers::new(Arc::new(members), move || group.metadata(), version);
            Arc::new(zarr.not_annotated(reason))
        });
        let mut lasts = true;
        for domain in &*self.domains {
            let (own, is_final) = domain.zarr(version, &plain)?;
            lasts &= is_final;
            if let Some(own) = own {
                return Ok((own, lasts));
            }
        }
        Ok((plain(None), lasts))
    }

    fn history(&self) -> History {
        let (group, options) = (self.group.clone(), self.options.clone());
        let of_times = self.group.clone();
        let of_began = self.group.clone();
        let (commit_times, began) = (move || of_times.commit_times(), move || of_began.began());
        History::new(self.group.window(), self.modified, commit_times, began, move |window| {
            Ok(Arc::new(GroupFolder::new(group.at(window), options.clone())?))
        })
    }
}

impl Folder for GroupFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match name {
            ABOUT => Ok(Some(Node::Folder(Arc::new(self.about())))),
            README => {
                let (group, domains) = (self.group.clone(), self.domains.clone());
                let text = move || readme(&group, &domains);
                Ok(Some(Node::File(Arc::new(LazyFile::transient_text(self.modified, text)))))
            }
            ZARR => self.zarr(ZarrVersion::Third),
            ZARR2 => self.zarr(ZarrVersion::Second),
            OWN => {
                let domains = self.domains.clone();
                let mut own = FixedFolder::new(self.modified);
                own.add_file(VIEWS, LazyFile::transient_text(self.modified, move || views(&domains)));
                Ok(Some(Node::Folder(Arc::new(own))))
            }
            HISTORY => Ok(Some(Node::Folder(Arc::new(self.history())))),
            _ => {
                if let Some(member) = self.member(name)? {
                    return Ok(Some(member));
                }
                for domain in &*self.domains {
                    if let Some(view) = domain.view(name)? {
                        return Ok(Some(view));
                    }
                }
                Ok(None)
            }
        }
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let members = self.members()?;
        let names = members.names.iter().flatten().map(String::as_str);
        let zarr = ZARR_VIEW.facts.is_shown(&self.options.shown).then_some(ZARR);
        let (views, _) = listed_views(&self.domains, &members);
        let folders = [ABOUT].into_iter().chain(zarr).chain(views).chain(names);
        Ok([Entry::file(README)].into_iter().chain(folders.map(Entry::folder)).collect())
    }

    fn known_paths(&self) -> Vec<String> {
        let members = self.members().map(|members| members.names.iter().flatten().cloned().collect::<Vec<_>>());
        let mut paths = members.unwrap_or_default();
        paths.extend([README, ABOUT, ".group/members.tsv", ".group/group.json", ZARR].map(str::to_owned));
        paths
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Returns the known bytes of the open members.
    fn known_bytes(&self) -> u64 {
        self.kept.all().into_iter().fold(0, |bytes, (_, member)| bytes.saturating_add(member.known_bytes()))
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        xattrs::of_group(&self.group, self.last_commit)
    }

    fn place(&self) -> Option<Arc<[u8]>> {
        Some(self.group.context().storage.canonical(self.group.path()).as_bytes().into())
    }

    fn source(&self) -> Option<u64> {
        Some(source_of(self.group.path()))
    }
}

/// Returns the options of what is below a group.
fn options_below(options: &TreeOptions, listed: &Arc<ListedViews>) -> Arc<TreeOptions> {
    Arc::new(TreeOptions { shown: options.shown.clone().below(listed.clone()), ..options.clone() })
}

/// A member of a group. It is opened when something in it is needed, so `ls` of a group opens none, except those by which
/// a domain recognises what it lists.
struct MemberFolder {
    path: StoreKey,
    group: Arc<OpenedGroup>,
    /// The additions of domains to the group, which know the forms of its arrays.
    domains: Arc<[Box<dyn GroupDomain>]>,
    options: Arc<TreeOptions>,
    group_modified: SystemTime,
    /// Several readers may open a member at once. If its store does not answer, each reader fails early at the store's
    /// limit of waiting requests, instead of waiting here for the first reader.
    opened: OnceLock<OpenedFolder>,
}

/// The folder of an opened object. That of a group can be refreshed in part.
#[derive(Clone)]
pub(crate) enum OpenedFolder {
    Group(Arc<GroupFolder>),
    /// An array in a form that others in its group determine.
    OfGroup(Arc<dyn Folder>),
    Other(Arc<dyn Folder>),
}

impl OpenedFolder {
    fn as_folder(&self) -> &dyn Folder {
        match self {
            OpenedFolder::Group(folder) => &**folder,
            OpenedFolder::OfGroup(folder) | OpenedFolder::Other(folder) => &**folder,
        }
    }

    pub fn folder(&self) -> Arc<dyn Folder> {
        match self {
            OpenedFolder::Group(folder) => folder.clone(),
            OpenedFolder::OfGroup(folder) | OpenedFolder::Other(folder) => folder.clone(),
        }
    }
}

impl MemberFolder {
    /// Like [`GroupFolder::refreshed`], but returns `None` if the member must be opened again when needed.
    fn refreshed(&self, group: &GroupFolder, changed: &HashSet<StoreKey>, window: TimeWindow) -> Result<Option<Self>> {
        let opened = match self.opened.get() {
            Some(OpenedFolder::Group(folder)) => OpenedFolder::Group(Arc::new(folder.refreshed(changed, window)?)),
            Some(kept) if !changed.contains(&self.path) => kept.clone(),
            _ => return Ok(None),
        };
        Ok(Some(MemberFolder {
            path: self.path.clone(),
            group: group.group.clone(),
            domains: group.domains.clone(),
            options: self.options.clone(),
            group_modified: self.group_modified,
            opened: opened.into(),
        }))
    }

    /// Makes the folder of the object that is there now.
    fn make(&self) -> Result<OpenedFolder> {
        let options = self.options.clone();
        match open_member(&self.group, &self.path)? {
            Some(OpenedObject::Array(array)) => {
                let mut forms = self.domains.iter().map(|domain| domain.member_form(&array));
                Ok(match forms.find_map(Result::transpose).transpose()? {
                    Some(form) => OpenedFolder::OfGroup(Arc::new(folder_of(array, options, form)?)),
                    None => OpenedFolder::Other(Arc::new(array_folder(array, options)?)),
                })
            }
            Some(OpenedObject::Group(inner)) => {
                note(self.group.context(), &self.path)?;
                Ok(OpenedFolder::Group(Arc::new(GroupFolder::new(*inner, options)?)))
            }
            None => Err(Error::not_an_array(&self.path, NEITHER)),
        }
    }
}

impl OpenedLater for MemberFolder {
    fn path(&self) -> &StoreKey {
        &self.path
    }

    fn opened(&self) -> Option<&dyn Folder> {
        self.opened.get().map(OpenedFolder::as_folder)
    }

    fn open(&self) -> Result<&dyn Folder> {
        if let Some(opened) = self.opened() {
            return Ok(opened);
        }
        let opened = self.make()?;
        self.group.check_in_place()?;
        cancellation::check()?;
        Ok(self.opened.get_or_init(|| opened).as_folder())
    }

    fn modified_before(&self) -> SystemTime {
        self.group_modified
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::{Context, TimeWindow};
    use tilefs_storage::LocalStorage;

    use super::*;
    use std::fs;
    use std::path::Path;

    /// A generic tile without filters.
    fn generic_tile(payload: &[u8]) -> Vec<u8> {
        let size = payload.len() as u64;
        let mut tile = 22u32.to_le_bytes().to_vec();
        tile.extend((8 + 12 + size).to_le_bytes());
        tile.extend(size.to_le_bytes());
        tile.push(4);
        tile.extend(1u64.to_le_bytes());
        tile.push(0);
        tile.extend([8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        tile.extend(1u64.to_le_bytes());
        tile.extend([size as u32, size as u32, 0].map(u32::to_le_bytes).concat());
        tile.extend(payload);
        tile
    }

    /// Makes a folder a group with these members: type (1 group, 2 array), relative URI, name.
    fn make_group(path: &Path, time: u64, members: &[(u8, &str, &str)]) {
        let mut payload = 2u32.to_le_bytes().to_vec();
        payload.extend((members.len() as u64).to_le_bytes());
        for (kind, uri, name) in members {
            payload.extend(2u32.to_le_bytes());
            payload.extend([*kind, u8::from(!uri.contains(':'))]);
            payload.extend((uri.len() as u64).to_le_bytes());
            payload.extend(uri.as_bytes());
            payload.push(u8::from(!name.is_empty()));
            if !name.is_empty() {
                payload.extend((name.len() as u64).to_le_bytes());
                payload.extend(name.as_bytes());
            }
            payload.push(0);
        }
        fs::create_dir_all(path.join("__group")).unwrap();
        let file = path.join("__group").join(format!("__{time}_{time}_{}_2", "0".repeat(32)));
        fs::write(file, generic_tile(&payload)).unwrap();
    }

    fn group_at(path: &Path, end: u64) -> GroupFolder {
        let storage = Arc::new(LocalStorage::new());
        let context = Arc::new(Context::new(storage, 1 << 20, 1, None));
        GroupFolder::new(
            OpenedGroup::open(context, &path.into(), TimeWindow::until(end)),
            Arc::new(TreeOptions::default()),
        )
        .unwrap()
    }

    fn names(folder: &dyn Folder) -> Vec<String> {
        folder.list().unwrap().into_iter().map(|entry| entry.name).collect()
    }

    fn folder(of: &dyn Folder, path: &str) -> Arc<dyn Folder> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match of.lookup(first).unwrap() {
            Some(Node::Folder(found)) if rest.is_empty() => found,
            Some(Node::Folder(found)) => folder(&*found, rest),
            _ => panic!("no folder {first}"),
        }
    }

    fn table(group: &GroupFolder) -> Vec<(String, String, String)> {
        let (text, _) = members_tsv(&group.group).unwrap();
        let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        text.lines().skip(1).map(cells).map(|line| (line[0].clone(), line[1].clone(), line[4].clone())).collect()
    }

    #[test]
    fn names_are_file_names_and_unique() {
        let root = tempfile::tempdir().unwrap();
        let members = [(1, "a", "x/y"), (1, "b", ""), (1, "deep/b", ""), (1, "c", ".group"), (1, "c", "c")];
        members.iter().for_each(|(_, uri, _)| make_group(&root.path().join(uri), 5, &[]));
        make_group(root.path(), 5, &members);
        let group = group_at(root.path(), 9);
        assert_eq!(names(&group), ["README.txt", ".group", "%2Egroup", "c", "x%2Fy", "b", "b%~2"]);
        for name in names(&group).iter().skip(1) {
            folder(&group, name).list().unwrap();
        }
        assert_eq!(group.modified(), UNIX_EPOCH + Duration::from_millis(5));
    }

    #[test]
    fn broken_member_affects_only_itself() {
        let root = tempfile::tempdir().unwrap();
        make_group(&root.path().join("good"), 5, &[]);
        fs::create_dir(root.path().join("nothing")).unwrap();
        fs::create_dir_all(root.path().join("broken/__schema")).unwrap();
        let members = [
            (1, "good", "good"),
            (2, "gone", "gone"),
            (2, "nothing", "nothing"),
            (2, "broken", "broken"),
            (1, "..", "up"),
            (1, "", "self"),
            (2, "s3://bucket/elsewhere", "cloud"),
        ];
        make_group(root.path(), 5, &members);
        let group = group_at(root.path(), 9);
        assert_eq!(names(&group), ["README.txt", ".group", "broken", "good", "nothing", "up"]);
        assert!(folder(&group, "good").list().is_ok());
        assert!(folder(&group, "nothing").list().is_err());
        assert!(folder(&group, "broken").list().is_err());
        assert!(group.lookup("gone").unwrap().is_none());
        let states = table(&group);
        let state =
            |name: &str| states.iter().find(|line| line.0 == name).map(|line| (line.1.as_str(), line.2.as_str()));
        assert_eq!(state("good"), Some(("group", "ok")));
        assert_eq!(state("broken"), Some(("array", "ok")));
        assert_eq!(state("nothing"), Some(("array", NEITHER)));
        for (name, reason) in [("gone", "no such folder"), ("self", "refused"), ("cloud", "not on this machine")] {
            assert!(state(name).is_some_and(|(_, state)| state.contains(reason)), "{name}: {:?}", state(name));
        }
    }

    #[test]
    fn a_loop_of_groups_ends() {
        let root = tempfile::tempdir().unwrap();
        make_group(root.path(), 5, &[(1, "a", "a")]);
        make_group(&root.path().join("a"), 5, &[(1, "..", "up"), (2, "link", "link"), (1, "b", "b")]);
        make_group(&root.path().join("a/b"), 5, &[(1, "../../a", "a")]);
        std::os::unix::fs::symlink(root.path(), root.path().join("a/link")).unwrap();
        let group = group_at(root.path(), 9);
        // The link is declared as an array; entering it shows what it is.
        assert_eq!(names(&*folder(&group, "a")), ["README.txt", ".group", "b", "link"]);
        assert!(folder(&group, "a/link").list().is_err());
        assert_eq!(names(&*folder(&group, "a/b")), ["README.txt", ".group"]);
    }

    #[test]
    fn history_applies_to_nested_groups() {
        let root = tempfile::tempdir().unwrap();
        make_group(root.path(), 5, &[(1, "a", "a")]);
        make_group(&root.path().join("a"), 5, &[]);
        make_group(&root.path().join("a/b"), 5, &[]);
        make_group(&root.path().join("a"), 7, &[(1, "b", "b")]);
        assert_eq!(names(&*folder(&group_at(root.path(), 6), "a")), ["README.txt", ".group"]);
        let group = group_at(root.path(), 9);
        assert_eq!(names(&*folder(&group, "a")), ["README.txt", ".group", "b"]);
        assert_eq!(names(&*folder(&group, ".history/ms-6/a")), ["README.txt", ".group"]);
        // The start of a window applies to the contents of the members.
        assert_eq!(names(&*folder(&group, ".history/ms-6..ms-9/a")), ["README.txt", ".group", "b"]);
        assert_eq!(names(&*folder(&group, "a/.history/ms-7")), ["README.txt", ".group", "b"]);
        assert_eq!(names(&*folder(&group, ".history")), ["19700101T000000.005Z"]);
        assert_eq!(names(&group_at(root.path(), 4)).len(), 2);
    }

    #[test]
    fn folders_of_old_groups_are_their_members() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("__tiledb_group.tdb"), b"").unwrap();
        fs::create_dir_all(root.path().join("notes")).unwrap();
        fs::create_dir_all(root.path().join("array/__schema")).unwrap();
        fs::create_dir_all(root.path().join("inner/__group")).unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("inner/loop")).unwrap();
        let group = group_at(root.path(), 9);
        assert_eq!(names(&group), ["README.txt", ".group", "array", "inner"]);
        assert_eq!(names(&*folder(&group, "inner")), ["README.txt", ".group"]);
    }

    #[test]
    fn a_thousand_members_are_listed_without_opening_one() {
        let root = tempfile::tempdir().unwrap();
        let uris: Vec<String> = (0..1000).map(|number| format!("m{number:05}")).collect();
        // These members are not even readable as arrays.
        uris.iter().for_each(|uri| fs::create_dir(root.path().join(uri)).unwrap());
        let members: Vec<(u8, &str, &str)> = uris.iter().map(|uri| (2, uri.as_str(), uri.as_str())).collect();
        make_group(root.path(), 5, &members);
        let group = group_at(root.path(), 9);
        assert_eq!(names(&group).len(), 1002);
        assert!(names(&group).iter().all(|name| group.lookup(name).unwrap().is_some()));
        assert!(folder(&group, "m00007").list().is_err());
    }
}
