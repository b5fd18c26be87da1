//! A group as of a window of time: its metadata, and which arrays and groups are its members.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tilefs_format::error::{Error, Locate, Result};
use tilefs_format::folder::{GROUP_DETAILS, METADATA};
use tilefs_format::group::{GroupMember, MemberType, members_in_force, parse_group_details};

use super::context::Context;
use super::generic::read_generic_tile;
use super::member_places::{MemberPlace, MemberPlaces};
use super::metadata::Metadata;
use super::object::ObjectKind;
use super::once::Once;
use super::timed_files::{TimedFile, files_in_force, names_in, timed_files};
use super::window::TimeWindow;
use crate::storage::{KnownFolder, Listed, StoreKey};
use crate::threads::cancellation::{self, Turn};

/// Groups in groups beyond this are taken for an endless loop.
const MOST_DEPTH: usize = 100;

/// All details of a group together may be of so many bytes, or of a part of what the cache may hold: all are held while
/// it is found out which count.
const MOST_DETAILS: u64 = 4 << 20;
/// Members that could not be looked at are looked at again after this time.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A member: what the group says of it, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name it was given, else the last part of its URI. Two members may have the same.
    pub name: String,
    /// As stored; only what is there tells for sure.
    pub member_type: MemberType,
    pub uri: String,
    pub place: MemberPlace,
}

/// A group in a window of time. Memory: the members, once they are asked for.
pub struct Group {
    context: Arc<Context>,
    path: StoreKey,
    window: TimeWindow,
    /// The folders of the groups around this one, outermost first, and of this one: no member may be one of them.
    around: Vec<StoreKey>,
    members: OnceLock<Arc<Vec<Member>>>,
    /// The members as they were when some of them could not be looked at, and when that was.
    unseen: Mutex<Option<(Instant, Arc<Vec<Member>>)>>,
    /// Held by the thread that looks at the members.
    looking: Turn,
    metadata: Once<Arc<Metadata>>,
    /// What was in the folder, once somebody asked; the same for all windows.
    names: Arc<Once<GroupNames>>,
}

/// The names in the folders of a group that say what it is. All are those of one folder: another that takes its place
/// has other details, and other metadata.
struct GroupNames {
    folder: KnownFolder,
    details: Vec<Listed>,
    metadata: Vec<Listed>,
}

impl Group {
    /// A group that is looked at for itself. Reads nothing yet.
    pub fn open(context: Arc<Context>, path: &StoreKey, window: TimeWindow) -> Self {
        let around = vec![context.storage.canonical(path)];
        Self::with_around(context, path.clone(), window, around)
    }

    fn with_around(context: Arc<Context>, path: StoreKey, window: TimeWindow, around: Vec<StoreKey>) -> Self {
        let (members, unseen, metadata, names) = (OnceLock::new(), Mutex::default(), Once::new(), Arc::default());
        Group { context, path, window, around, members, unseen, looking: Turn::new(), metadata, names }
    }

    /// What is in the folder; listed once.
    fn names(&self) -> Result<&GroupNames> {
        self.names.get_or_retry(|| self.list_names())
    }

    fn list_names(&self) -> Result<GroupNames> {
        let storage = &*self.context.storage;
        let folder = storage.know(&self.path).in_array(&self.path)?;
        if folder.identity.is_some() {
            // That it is a group was seen before; an array without members may be there by now.
            let kind = storage.list_in(&folder, "").in_array(&self.path)?.and_then(|all| ObjectKind::of_entries(&all));
            if kind != Some(ObjectKind::Group) {
                return Err(folder.replaced().in_array(&self.path));
            }
        }
        let names = |name: &str| names_in(storage, &folder, name).in_array(&self.path);
        let (details, metadata) = (names(GROUP_DETAILS)?, names(METADATA)?);
        Ok(GroupNames { folder, details, metadata })
    }

    /// Fails where another group has taken the place of this one: its members are not this one's.
    ///
    /// # Errors
    /// [`Error::Missing`] for that, [`Error::Io`] where the folder cannot be looked at.
    pub fn check_in_place(&self) -> Result<()> {
        let (storage, names) = (&*self.context.storage, self.names()?);
        let now = storage.know(&self.path).in_array(&self.path)?;
        // Some file systems number a folder anew each time; no two groups have details of the same names.
        if now != names.folder && names_in(storage, &now, GROUP_DETAILS).in_array(&self.path)? != names.details {
            return Err(names.folder.replaced().in_array(&self.path));
        }
        Ok(())
    }

    /// All files of the group's own details and metadata, in force or not.
    fn own_files(&self) -> Result<Vec<TimedFile>> {
        let names = self.names()?;
        let of = |names: &[Listed], folder: &str| timed_files(names, &self.path.join(folder)).in_array(&self.path);
        Ok([of(&names.details, GROUP_DETAILS)?, of(&names.metadata, METADATA)?].concat())
    }

    /// A group that is a member of this one, in the same window.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a group within itself.
    pub fn open_member(&self, path: &StoreKey) -> Result<Self> {
        let canonical = self.context.storage.canonical(path);
        if self.around.contains(&canonical) || self.around.len() >= MOST_DEPTH {
            return Err(Error::unsupported("a group within itself").in_array(path));
        }
        let around = [self.around.as_slice(), &[canonical]].concat();
        Ok(Self::with_around(self.context.clone(), path.clone(), self.window, around))
    }

    /// The same group through another window.
    pub fn at(&self, window: TimeWindow) -> Self {
        let (context, path, around) = (self.context.clone(), self.path.clone(), self.around.clone());
        Group { names: self.names.clone(), ..Self::with_around(context, path, window, around) }
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn path(&self) -> &StoreKey {
        &self.path
    }

    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// The metadata as of the window; read once.
    ///
    /// # Errors
    /// As [`Metadata::read`].
    pub fn metadata(&self) -> Result<Arc<Metadata>> {
        let read = || {
            let names = &self.names()?.metadata;
            Ok(Arc::new(Metadata::read_listed(&self.context, &self.path, names, self.window)?))
        };
        self.metadata.get_or_retry(read).cloned()
    }

    /// The members as of the end of the window, those with a name of their own first, each by name; read once, but that
    /// those which could not be looked at are looked at again a moment later. No member is opened. Groups of libraries before 2.8 list no members: there they are the arrays and groups in the
    /// folder.
    ///
    /// The start of the window is for what is in the members: an array that was added earlier is still a member.
    ///
    /// # Errors
    /// Any damage in the group's details: never some members without the others.
    pub fn members(&self) -> Result<Arc<Vec<Member>>> {
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
        // What could not be looked at in time is left for somebody else.
        cancellation::check()?;
        let members = Arc::new(members);
        if were_seen {
            *unseen() = None;
            return Ok(self.members.get_or_init(|| members).clone());
        }
        *unseen() = Some((Instant::now(), members.clone()));
        Ok(members)
    }

    /// The times of all commits to the group itself, ascending, each once. Those to its members are theirs.
    ///
    /// # Errors
    /// [`Error::Io`] where a folder cannot be listed, [`Error::Damaged`] for impossible times.
    pub fn commit_times(&self) -> Result<Vec<u64>> {
        let mut times: Vec<u64> = self.own_files()?.iter().map(|one| one.times.t2).collect();
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }

    /// When the first of them was.
    ///
    /// # Errors
    /// As [`Group::commit_times`].
    pub fn began(&self) -> Result<Option<u64>> {
        Ok(self.own_files()?.iter().map(|one| one.times.t1).min())
    }

    /// The members, and whether all of them could be looked at.
    fn read_members(&self) -> Result<(Vec<Member>, bool)> {
        let storage = &*self.context.storage;
        let folder = self.path.join(GROUP_DETAILS);
        let names = self.names()?;
        if timed_files(&names.details, &folder)?.is_empty() {
            return self.child_folders(&names.folder);
        }
        let mut left = MOST_DETAILS.max(self.context.budget() as u64 / 4);
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

    /// The arrays and groups in the group's folder, and whether all folders in it could be looked at. What one that
    /// could not is, whoever enters it learns.
    fn child_folders(&self, folder: &KnownFolder) -> Result<(Vec<Member>, bool)> {
        let storage = &*self.context.storage;
        let (mut members, mut were_seen) = (Vec::new(), true);
        let children = storage.list_in(folder, "")?.unwrap_or_default();
        for one in children.into_iter().filter(|one| one.is_folder() && !one.name.starts_with("__")) {
            cancellation::check()?;
            let path = self.path.join(&one.name);
            let member_type = match ObjectKind::of(storage, &path) {
                Ok(Some(ObjectKind::Array)) => MemberType::Array,
                Ok(Some(ObjectKind::Group)) => MemberType::Group,
                Ok(None) => continue,
                // One that is gone now may be there again in a moment.
                Err(_) => MemberType::Unknown,
            };
            were_seen &= member_type != MemberType::Unknown;
            let place = match self.around.contains(&storage.canonical(&path)) {
                true => MemberPlace::Missing("refused: it holds this group".to_owned()),
                false => MemberPlace::Stored(path),
            };
            members.push(Member { name: one.name.clone(), member_type, uri: one.name, place });
        }
        Ok((members, were_seen))
    }
}

fn found(member: GroupMember, place: MemberPlace) -> Member {
    let name = member.name.unwrap_or_else(|| {
        let last = member.uri.trim_end_matches('/').rsplit('/').next();
        last.unwrap_or(&member.uri).to_owned()
    });
    Member { name, member_type: member.member_type, uri: member.uri, place }
}
