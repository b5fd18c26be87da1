//! A group as of a time window: its metadata, and its member arrays and groups.

pub mod changes;
mod places;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::folder::{GROUP_DETAILS, METADATA, ObjectKind};
use tilefs_format::group::{GroupMember, members_in_force, parse_group_details};
use tilefs_storage::{KnownFolder, Listed, StoreKey};
use tilefs_threads::cancellation::{self, Turn};
use tilefs_threads::single_flight::SingleFlight;

use crate::array::directory::timed_files::{TimedFile, files_in_force, names_in, timed_files};
use crate::array::directory::window::now;
use crate::array::metadata_tiles::generic_tile::read_generic_tile;
use crate::array::{Context, Metadata, TimeWindow, kind_of_entries, object_kind};

use places::MemberPlaces;

pub use places::MemberPlace;

/// A deeper nesting of groups is taken for an endless loop.
const MAX_DEPTH: usize = 100;

/// The details of a group may have this many bytes together, or a part of the cache budget: all are in memory while
/// their effect is determined.
const ALWAYS_ALLOWED_DETAILS_BYTES: u64 = 4 << 20;
/// Members that could not be examined are examined again after this time.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A member: what the group states about it, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedMember {
    /// The name that the group gives to it, else the last part of its URI. Two members may have the same name.
    pub name: String,
    /// The type that the group states; only the folder itself shows the true type.
    pub kind: Option<ObjectKind>,
    /// The URI as it is stored.
    pub uri: String,
    /// The location of the member.
    pub place: MemberPlace,
}

/// A group in a time window. Memory: its members, once they are requested.
pub struct OpenedGroup {
    context: Arc<Context>,
    path: StoreKey,
    window: TimeWindow,
    /// The folders of the groups around this one, outermost first, and of this group. None of them may be a member.
    around: Vec<StoreKey>,
    members: OnceLock<Arc<Vec<PlacedMember>>>,
    /// The members from a time when some could not be examined, and that time.
    unseen: Mutex<Option<(Instant, Arc<Vec<PlacedMember>>)>>,
    /// Held by the thread that examines the members.
    looking: Turn,
    metadata: SingleFlight<Arc<Metadata>>,
    /// The names in the folder, once requested. Groups at all windows of time share them.
    names: Arc<SingleFlight<GroupNames>>,
}

/// The names in the folders of a group that describe it. All belong to one folder: a group that replaces it has other
/// details and other metadata.
struct GroupNames {
    folder: KnownFolder,
    /// The time when they were listed, in milliseconds since 1970.
    listed: u64,
    details: Vec<Listed>,
    metadata: Vec<Listed>,
}

impl OpenedGroup {
    /// Opens a group that is not a member of another one. Reads nothing yet.
    pub fn open(context: Arc<Context>, path: &StoreKey, window: TimeWindow) -> Self {
        let around = vec![context.storage.canonical(path)];
        Self::with_around(context, path.clone(), window, around)
    }

    fn with_around(context: Arc<Context>, path: StoreKey, window: TimeWindow, around: Vec<StoreKey>) -> Self {
        let (members, unseen, metadata, names) =
            (OnceLock::new(), Mutex::default(), SingleFlight::new(), Arc::default());
        OpenedGroup { context, path, window, around, members, unseen, looking: Turn::new(), metadata, names }
    }

    /// Returns the names in the folder, which is listed once.
    fn names(&self) -> Result<&GroupNames> {
        self.names.get_or_retry(|| self.list_names())
    }

    fn list_names(&self) -> Result<GroupNames> {
        let storage = &*self.context.storage;
        let folder = storage.know(&self.path).in_array(&self.path)?;
        let mut listed = Vec::new();
        if folder.identity.is_some() {
            listed = storage.list_in(&folder, "").in_array(&self.path)?.unwrap_or_default();
            // The folder was a group before; an array without members may have replaced it.
            if kind_of_entries(&listed) != Some(ObjectKind::Group) {
                return Err(folder.replaced().in_array(&self.path));
            }
        }
        let names = |name: &str| match storage.list_in(&folder, name).in_array(&self.path)? {
            None if listed.iter().any(|one| one.name == name) => Err(folder.vanished(name).in_array(&self.path)),
            names => Ok(names.unwrap_or_default()),
        };
        let (details, metadata) = (names(GROUP_DETAILS)?, names(METADATA)?);
        Ok(GroupNames { folder, listed: now(), details, metadata })
    }

    /// Fails if another group has replaced this one, because members of that one are not members of this one.
    ///
    /// # Errors
    /// [`Error::Missing`] if it was replaced, [`Error::Io`] if the folder cannot be examined.
    pub fn check_in_place(&self) -> Result<()> {
        let (storage, names) = (&*self.context.storage, self.names()?);
        let now = storage.know(&self.path).in_array(&self.path)?;
        // Some file systems give a folder a new number each time; no two groups have details with the same names.
        if now != names.folder && names_in(storage, &now, GROUP_DETAILS).in_array(&self.path)? != names.details {
            return Err(names.folder.replaced().in_array(&self.path));
        }
        Ok(())
    }

    /// Returns all files of the group's own details and metadata, in force or not.
    fn own_files(&self) -> Result<Vec<TimedFile>> {
        let names = self.names()?;
        let of = |names: &[Listed], folder: &str| timed_files(names, &self.path.join(folder)).in_array(&self.path);
        Ok([of(&names.details, GROUP_DETAILS)?, of(&names.metadata, METADATA)?].concat())
    }

    /// Opens a member of this group that is a group, in the same window.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a group within itself.
    pub fn open_member(&self, path: &StoreKey) -> Result<Self> {
        let canonical = self.context.storage.canonical(path);
        if self.around.contains(&canonical) || self.around.len() >= MAX_DEPTH {
            return Err(Error::unsupported("a group within itself").in_array(path));
        }
        let around = [self.around.as_slice(), &[canonical]].concat();
        Ok(Self::with_around(self.context.clone(), path.clone(), self.window, around))
    }

    /// Returns the same group in another window.
    pub fn at(&self, window: TimeWindow) -> Self {
        let (context, path, around) = (self.context.clone(), self.path.clone(), self.around.clone());
        OpenedGroup { names: self.names.clone(), ..Self::with_around(context, path, window, around) }
    }

    /// Returns the same group in the same window, with the storage, caches and key of another context. Reads nothing,
    /// and uses only what has no locks, so that a forked child can call it with a context of its own.
    pub fn in_context(&self, context: Arc<Context>) -> Self {
        Self::with_around(context, self.path.clone(), self.window, self.around.clone())
    }

    /// Returns the storage, caches and key that all arrays of a mount share.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Returns the group's path or URI.
    pub fn path(&self) -> &StoreKey {
        &self.path
    }

    /// Returns the time window.
    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// Returns the metadata as of the window, which is read once.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file; [`Error::Key`] if it is encrypted and the key is missing or wrong.
    pub fn metadata(&self) -> Result<Arc<Metadata>> {
        let read = || {
            let names = &self.names()?.metadata;
            Ok(Arc::new(Metadata::read_listed(&self.context, &self.path, names, self.window)?))
        };
        self.metadata.get_or_retry(read).cloned()
    }

    /// Returns the members as of the end of the window: first the members with a name of their own, then all others,
    /// each sorted by name. They are read once, but members that could not be examined are examined again a moment
    /// later. No member is opened. Groups of libraries before 2.8 have no list of members: all arrays and groups in
    /// their folder are members.
    ///
    /// The start of the window only applies to the contents of members: an array that was added earlier is still a
    /// member.
    ///
    /// # Errors
    /// Any damage in the group's details. Never returns only some of the members.
    pub fn members(&self) -> Result<Arc<Vec<PlacedMember>>> {
        if let Some(members) = self.members.get() {
            return Ok(members.clone());
        }
        let _looking = self.looking.take()?;
        let unseen = || self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(members) = self.members.get() {
            return Ok(members.clone());
        }
        if let Some((_, members)) = unseen().as_ref().filter(|(time, _)| time.elapsed() < LOOK_AGAIN_AFTER) {
            return Ok(members.clone());
        }
        let (members, were_seen) = self.read_members().in_array(&self.path)?;
        self.check_in_place()?;
        // A cancelled search may be incomplete, so it is not kept.
        cancellation::check()?;
        let before = unseen().take().map(|(_, before)| before);
        let members = before.filter(|before| **before == members).unwrap_or_else(|| Arc::new(members));
        if were_seen {
            return Ok(self.members.get_or_init(|| members).clone());
        }
        *unseen() = Some((Instant::now(), members.clone()));
        Ok(members)
    }

    /// Returns the times of all commits to the group itself, in ascending order, each once, without commits to its
    /// members.
    ///
    /// # Errors
    /// [`Error::Io`] if a folder cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn commit_times(&self) -> Result<Vec<u64>> {
        let mut times: Vec<u64> = self.own_files()?.iter().map(|one| one.times.t2).collect();
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// Returns the times of the commits that the group does not show, and that lay in the future when it was listed.
    ///
    /// # Errors
    /// As [`OpenedGroup::commit_times`].
    pub fn future_commits(&self) -> Result<Vec<u64>> {
        let (mut times, end) = (self.commit_times()?, self.window.end.max(self.names()?.listed));
        times.retain(|&time| time > end);
        Ok(times)
    }

    /// Returns the time of the first of these commits.
    ///
    /// # Errors
    /// As [`OpenedGroup::commit_times`].
    pub fn began(&self) -> Result<Option<u64>> {
        Ok(self.own_files()?.iter().map(|one| one.times.t1).min())
    }

    /// Returns the members, and whether all of them could be examined.
    fn read_members(&self) -> Result<(Vec<PlacedMember>, bool)> {
        let storage = &*self.context.storage;
        let folder = self.path.join(GROUP_DETAILS);
        let names = self.names()?;
        if timed_files(&names.details, &folder)?.is_empty() {
            return self.child_folders(&names.folder);
        }
        let mut left = ALWAYS_ALLOWED_DETAILS_BYTES.max(self.context.budget().group_details() as u64);
        let mut stated = Vec::new();
        for one in files_in_force(storage, &names.details, &folder, TimeWindow::until(self.window.end))? {
            let payload = read_generic_tile(&self.context, &one.file, 0)?;
            left = left.checked_sub(payload.len() as u64).ok_or_else(|| {
                Error::unsupported("the group's details are larger together than --cache-size allows")
                    .in_file(&one.file)
            })?;
            stated.push((one.times, parse_group_details(&payload).in_file(&one.file)?));
        }
        let mut places = MemberPlaces::new(storage, &names.folder, &self.around, self.context.links);
        let (named, unnamed): (Vec<GroupMember>, Vec<GroupMember>) =
            members_in_force(stated).into_values().partition(|member| member.name.is_some());
        let (mut members, mut were_seen) = (Vec::with_capacity(named.len() + unnamed.len()), true);
        for member in named.into_iter().chain(unnamed) {
            cancellation::check()?;
            let (place, was_seen) = places.find(&member)?;
            were_seen &= was_seen;
            members.push(found(member, place));
        }
        Ok((members, were_seen))
    }

    /// Returns the arrays and groups in the group's folder, and whether all folders in it could be examined. The type
    /// of a folder that could not be examined is unknown until it is opened.
    fn child_folders(&self, folder: &KnownFolder) -> Result<(Vec<PlacedMember>, bool)> {
        let storage = &*self.context.storage;
        let (mut members, mut were_seen) = (Vec::new(), true);
        let children = storage.list_in(folder, "")?.unwrap_or_default();
        for one in children.into_iter().filter(|one| one.is_folder() && !one.name.starts_with("__")) {
            cancellation::check()?;
            let path = self.path.join(&one.name);
            let kind = match object_kind(storage, &path) {
                Ok(None) => continue,
                Ok(kind) => kind,
                // A folder that is gone may reappear in a moment.
                Err(_) => None,
            };
            were_seen &= kind.is_some();
            let place = match self.around.contains(&storage.canonical(&path)) {
                true => MemberPlace::Missing("refused: it holds this group".to_owned()),
                false => MemberPlace::Stored(path),
            };
            members.push(PlacedMember { name: one.name.clone(), kind, uri: one.name, place });
        }
        Ok((members, were_seen))
    }
}

fn found(member: GroupMember, place: MemberPlace) -> PlacedMember {
    let name = member.name.unwrap_or_else(|| {
        let last = member.uri.trim_end_matches('/').rsplit('/').next();
        last.unwrap_or(&member.uri).to_owned()
    });
    PlacedMember { name, kind: member.kind, uri: member.uri, place }
}
