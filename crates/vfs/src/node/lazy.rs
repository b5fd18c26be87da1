//! Nodes whose content is made when first needed, and folders with fixed names.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use tilefs_base::content::{Content, Forward};
use tilefs_base::error::Result;
use tilefs_threads::single_flight::SingleFlight;

use crate::node::listing::Listing;
use crate::node::{Entry, ExtendedAttributes, File, Folder, NODE, Node, Subject, why_absent};

/// A function that makes a content, and says whether the content may be kept.
type Make = Box<dyn Fn() -> Result<(Arc<dyn Content>, bool)> + Send + Sync>;

type MakeForward = Box<dyn Fn() -> Result<Box<dyn Forward>> + Send + Sync>;

/// A remark about a file, set once its content or its bytes in sequence are made.
pub type Remark = Arc<OnceLock<String>>;

/// A function that makes extended attributes when they are requested.
type Describe = Box<dyn Fn() -> ExtendedAttributes + Send + Sync>;

/// A file whose content is made on first use and kept as long as the node. An error is not kept, so transient faults of
/// the storage recover.
pub struct LazyFile {
    make: Make,
    content: SingleFlight<Arc<dyn Content>>,
    /// Whether the content may differ the next time it is made.
    is_transient: bool,
    make_forward: Option<MakeForward>,
    /// The length, if known without the content.
    length: Option<u64>,
    modified: SystemTime,
    describe: Option<Describe>,
    remark: Option<Remark>,
}

impl LazyFile {
    pub fn new(modified: SystemTime, make: impl Fn() -> Result<Arc<dyn Content>> + Send + Sync + 'static) -> Self {
        Self::of(modified, Box::new(move || Ok((make()?, true))), false)
    }

    /// Makes the file readable in sequence before its content is made.
    pub fn with_forward<F: Forward + 'static>(mut self, make: impl Fn() -> Result<F> + Send + Sync + 'static) -> Self {
        self.make_forward = Some(Box::new(move || Ok(Box::new(make()?))));
        self
    }

    fn of(modified: SystemTime, make: Make, is_transient: bool) -> Self {
        LazyFile {
            make,
            content: SingleFlight::new(),
            is_transient,
            make_forward: None,
            length: None,
            modified,
            describe: None,
            remark: None,
        }
    }

    /// Sets where the remark about the file will be stored.
    pub fn with_remark(mut self, remark: Remark) -> Self {
        self.remark = Some(remark);
        self
    }

    /// Sets the length, if it is given, so that it is known before the content is made.
    pub fn with_length(mut self, length: Option<u64>) -> Self {
        self.length = length.or(self.length);
        self
    }

    /// Creates a file of a generated text.
    pub fn text(modified: SystemTime, make: impl Fn() -> Result<String> + Send + Sync + 'static) -> Self {
        Self::new(modified, move || Ok(Arc::new(make()?.into_bytes())))
    }

    /// Creates a file of a generated text that may mention data which could not be read: `make` also returns whether
    /// the text is final. A text that is not final is made again for each reader, since the data may be readable the
    /// next time.
    pub fn transient_text(
        modified: SystemTime,
        make: impl Fn() -> Result<(String, bool)> + Send + Sync + 'static,
    ) -> Self {
        let make = move || {
            let (text, lasts) = make()?;
            let content: Arc<dyn Content> = Arc::new(text.into_bytes());
            Ok((content, lasts))
        };
        Self::of(modified, Box::new(make), true)
    }

    /// Sets the extended attributes.
    pub fn described_by(mut self, describe: impl Fn() -> ExtendedAttributes + Send + Sync + 'static) -> Self {
        self.describe = Some(Box::new(describe));
        self
    }
}

impl File for LazyFile {
    fn len(&self) -> Result<u64> {
        match self.length {
            Some(length) => Ok(length),
            None => self.open().map(|content| content.len()),
        }
    }

    fn known_len(&self) -> Option<u64> {
        self.length.or_else(|| self.content.get().map(|content| content.len()))
    }

    fn open(&self) -> Result<Arc<dyn Content>> {
        self.content.get_or_pass(&self.make)
    }

    fn may_change(&self) -> bool {
        self.is_transient
    }

    fn remark(&self) -> Option<String> {
        self.remark.as_ref()?.get().cloned()
    }

    fn forward(&self) -> Result<Option<Box<dyn Forward>>> {
        match &self.make_forward {
            Some(make) if self.content.get().is_none() => make().map(Some),
            _ => Ok(None),
        }
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        self.describe.as_ref().map(|describe| describe()).unwrap_or_default()
    }
}

/// A folder of nodes that are known when it is made, and of those of other folders. Names may be omitted from the listing
/// and can still be looked up.
pub struct FixedFolder {
    modified: SystemTime,
    nodes: HashMap<String, Node>,
    listing: Vec<ListingPart>,
    /// Names that a reader may look for but that do not exist, with the reasons.
    absent: HashMap<String, String>,
    /// Folders that do not exist because they would be empty, by name. They know why they lack their files.
    empty: HashMap<String, FixedFolder>,
    /// Folders that have no nodes, and know why.
    without_nodes: Vec<Arc<dyn Folder>>,
    describe: Option<Describe>,
    memory: usize,
    holds: Option<Box<dyn Fn() -> usize + Send + Sync>>,
    subject: Option<Subject>,
}

/// A part of the listing of a folder.
enum ListingPart {
    One(Entry, Listing),
    /// All entries that another folder lists.
    All(Arc<dyn Folder>),
}

impl FixedFolder {
    pub fn new(modified: SystemTime) -> Self {
        FixedFolder {
            modified,
            nodes: HashMap::new(),
            listing: Vec::new(),
            absent: HashMap::new(),
            empty: HashMap::new(),
            without_nodes: Vec::new(),
            describe: None,
            memory: NODE,
            holds: None,
            subject: None,
        }
    }

    /// Adds a listed node. If the name exists already, its first node is kept.
    pub fn add(&mut self, name: impl Into<String>, node: Node) {
        self.add_with(name, node, Listing::Always);
    }

    /// Adds an unlisted node.
    pub fn add_unlisted(&mut self, name: impl Into<String>, node: Node) {
        self.add_with(name, node, Listing::Never);
    }

    /// Adds a node with the given listing. If the name exists already, its first node is kept.
    pub fn add_with(&mut self, name: impl Into<String>, node: Node, listing: Listing) {
        let name = name.into();
        if self.nodes.contains_key(&name) {
            return;
        }
        self.memory += node.memory();
        if !matches!(listing, Listing::Never) {
            self.listing.push(ListingPart::One(Entry { name: name.clone(), kind: node.kind() }, listing));
        }
        self.nodes.insert(name, node);
    }

    pub fn add_file(&mut self, name: impl Into<String>, file: LazyFile) {
        self.add(name, Node::File(Arc::new(file)));
    }

    pub fn add_folder(&mut self, name: impl Into<String>, folder: impl Folder + 'static) {
        self.add(name, Node::Folder(Arc::new(folder)));
    }

    /// Adds all nodes of another folder, which has none of the names that this one has.
    pub fn add_all(&mut self, folder: Arc<dyn Folder>) {
        self.listing.push(ListingPart::All(folder));
    }

    /// Records why there is no node of this name.
    pub fn explain_absence(&mut self, name: &str, reason: &str) {
        self.memory += name.len() + reason.len();
        self.absent.insert(name.to_owned(), reason.to_owned());
    }

    /// Records why there is no folder of this name: `folder` would be empty.
    pub fn explain_empty(&mut self, name: &str, reason: &str, folder: FixedFolder) {
        self.explain_absence(name, reason);
        self.memory += folder.memory();
        self.empty.insert(name.to_owned(), folder);
    }

    /// Adds a folder that has no nodes, and knows why.
    pub fn explain_by(&mut self, folder: Arc<dyn Folder>) {
        self.without_nodes.push(folder);
    }

    /// Sets the extended attributes.
    pub fn describe_by(&mut self, describe: impl Fn() -> ExtendedAttributes + Send + Sync + 'static) {
        self.describe = Some(Box::new(describe));
    }

    /// Sets a function that returns the approximate memory in bytes that the files currently hold.
    pub fn holds(&mut self, bytes: impl Fn() -> usize + Send + Sync + 'static) {
        self.holds = Some(Box::new(bytes));
    }

    /// Sets what the folder shows.
    pub fn shows(&mut self, subject: Subject) {
        self.subject = Some(subject);
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.others().next().is_none()
    }

    /// Returns the folders whose nodes it has, too.
    fn others(&self) -> impl Iterator<Item = &Arc<dyn Folder>> {
        self.listing.iter().filter_map(|listed| match listed {
            ListingPart::All(folder) => Some(folder),
            ListingPart::One(..) => None,
        })
    }
}

impl Folder for FixedFolder {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        match self.nodes.get(name) {
            Some(node) => Ok(Some(node.clone())),
            None => self
                .others()
                .map(|folder| folder.lookup(name))
                .find(|found| !matches!(found, Ok(None)))
                .unwrap_or(Ok(None)),
        }
    }

    fn why_absent(&self, name: &str) -> Option<String> {
        let mut others = self.others().chain(&self.without_nodes);
        self.absent.get(name).cloned().or_else(|| others.find_map(|folder| folder.why_absent(name)))
    }

    fn why_absent_below(&self, name: &str, below: &[&str]) -> Option<String> {
        match self.empty.get(name) {
            Some(folder) => why_absent(folder, below),
            None => self.why_absent(name),
        }
    }

    fn known_paths(&self) -> Vec<String> {
        let (mut paths, mut is_listed) = (Vec::new(), HashSet::new());
        let mut add = |name: &str| {
            if name.starts_with('.') {
                return;
            }
            paths.push(name.to_owned());
            if let Some(Node::Folder(folder)) = self.nodes.get(name) {
                paths.extend(folder.known_paths().into_iter().map(|path| format!("{name}/{path}")));
            }
        };
        for listed in &self.listing {
            match listed {
                ListingPart::One(entry, _) => {
                    is_listed.insert(&entry.name);
                    add(&entry.name);
                }
                ListingPart::All(folder) => folder.known_paths().iter().for_each(|name| add(name)),
            }
        }
        let mut others: Vec<&String> = self.nodes.keys().filter(|name| !is_listed.contains(name)).collect();
        others.sort();
        others.into_iter().for_each(|name| add(name));
        paths
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for listed in &self.listing {
            match listed {
                ListingPart::One(entry, listing) if listing.is_listed() => entries.push(entry.clone()),
                ListingPart::One(..) => {}
                ListingPart::All(folder) => entries.append(&mut folder.list()?),
            }
        }
        Ok(entries)
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }

    fn memory(&self) -> usize {
        let others: usize = self.others().map(|folder| folder.memory()).sum();
        self.memory + others + self.holds.as_ref().map_or(0, |holds| holds())
    }

    fn known_bytes(&self) -> u64 {
        let known = |listed: &ListingPart| match listed {
            ListingPart::One(entry, listing) if listing.is_listed() => {
                self.nodes.get(&entry.name).map_or(0, Node::known_bytes)
            }
            ListingPart::One(..) => 0,
            ListingPart::All(folder) => folder.known_bytes(),
        };
        self.listing.iter().map(known).fold(0, u64::saturating_add)
    }

    fn extended_attributes(&self) -> ExtendedAttributes {
        self.describe.as_ref().map(|describe| describe()).unwrap_or_default()
    }

    fn subject(&self) -> Option<Subject> {
        self.subject.clone()
    }
}

type MakeFolder = Box<dyn Fn() -> Result<(Arc<dyn Folder>, bool)> + Send + Sync>;

/// A folder that is made on first use.
pub struct LazyFolder {
    make: MakeFolder,
    made: SingleFlight<Arc<dyn Folder>>,
    modified: SystemTime,
}

impl LazyFolder {
    pub fn new<D: Folder + 'static>(
        modified: SystemTime,
        make: impl Fn() -> Result<D> + Send + Sync + 'static,
    ) -> Self {
        Self::of_any(modified, move || Ok(Arc::new(make()?)))
    }

    /// Creates a folder of any type.
    pub fn of_any(modified: SystemTime, make: impl Fn() -> Result<Arc<dyn Folder>> + Send + Sync + 'static) -> Self {
        LazyFolder { make: Box::new(move || Ok((make()?, true))), made: SingleFlight::new(), modified }
    }

    /// Creates a folder that may show errors instead of data: `make` also returns whether it is final. A folder that is
    /// not final is made again for each reader.
    pub fn transient<D: Folder + 'static>(
        modified: SystemTime,
        make: impl Fn() -> Result<(D, bool)> + Send + Sync + 'static,
    ) -> Self {
        let make = move || {
            let (folder, lasts) = make()?;
            let folder: Arc<dyn Folder> = Arc::new(folder);
            Ok((folder, lasts))
        };
        LazyFolder { make: Box::new(make), made: SingleFlight::new(), modified }
    }

    fn made(&self) -> Result<Arc<dyn Folder>> {
        self.made.get_or_pass(&self.make)
    }
}

/// `ls -l` requests the attributes of a folder, and should not make it.
impl Folder for LazyFolder {
    fn inner(&self) -> Option<&dyn Folder> {
        self.made.get().map(|made| &**made)
    }

    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        self.made()?.lookup(name)
    }

    fn list(&self) -> Result<Vec<Entry>> {
        self.made()?.list()
    }

    fn modified(&self) -> SystemTime {
        self.modified
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tilefs_base::error::Error;

    use super::*;

    #[test]
    fn contents_are_made_once_and_errors_are_not_kept() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let file = LazyFile::text(SystemTime::UNIX_EPOCH, || match CALLS.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::damaged("the first time")),
            _ => Ok("hello".to_owned()),
        });
        assert!(file.len().is_err());
        assert_eq!(file.len().unwrap(), 5);
        assert_eq!(file.open().unwrap().len(), 5);
        assert_eq!(CALLS.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn the_bytes_of_a_folder_are_those_of_listed_files_of_known_length() {
        let text = |length: usize| LazyFile::text(SystemTime::UNIX_EPOCH, move || Ok("x".repeat(length)));
        let folder = || FixedFolder::new(SystemTime::UNIX_EPOCH);
        let later = Arc::new(text(5));
        let (mut root, mut inner) = (folder(), folder());
        inner.add_file("file", text(0).with_length(Some(1 << 40)));
        root.add_folder("inner", inner);
        root.add_file("known", text(0).with_length(Some(100)));
        root.add("later", Node::File(later.clone()));
        root.add_unlisted("unlisted", Node::File(Arc::new(text(0).with_length(Some(1000)))));
        assert_eq!(root.known_bytes(), (1 << 40) + 100);
        assert_eq!(later.len().unwrap(), 5);
        assert_eq!(root.known_bytes(), (1 << 40) + 105);
        root.add_file("huge", text(0).with_length(Some(u64::MAX)));
        assert_eq!(root.known_bytes(), u64::MAX);
    }

    #[test]
    fn texts_that_are_not_final_are_made_again() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let file = LazyFile::transient_text(SystemTime::UNIX_EPOCH, || {
            let call = CALLS.fetch_add(1, Ordering::SeqCst);
            Ok(("x".repeat(call), call == 2))
        });
        assert_eq!([file.len().unwrap(), file.len().unwrap(), file.len().unwrap(), file.len().unwrap()], [0, 1, 2, 2]);
    }

    #[test]
    fn unlisted_names_are_found() {
        let mut folder = FixedFolder::new(SystemTime::UNIX_EPOCH);
        folder.add_file("a", LazyFile::text(SystemTime::UNIX_EPOCH, || Ok(String::new())));
        folder.add_unlisted("b", Node::Folder(Arc::new(FixedFolder::new(SystemTime::UNIX_EPOCH))));
        assert_eq!(folder.list().unwrap().len(), 1);
        assert!(folder.lookup("b").unwrap().is_some());
        assert!(folder.lookup("c").unwrap().is_none());
    }
}
