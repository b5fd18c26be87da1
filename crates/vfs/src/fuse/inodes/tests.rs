use super::recent::MAX_NODES;
use super::*;
use crate::node::lazy::LazyFile;
use crate::node::{Changed, Entry};
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

/// A folder of folders of files, like slices; counts live nodes and lookups.
#[derive(Default)]
struct Slices {
    alive: Arc<AtomicUsize>,
    looked_up: AtomicUsize,
}

struct Slice(Arc<AtomicUsize>);

impl Drop for Slice {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Folder for Slices {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        if name == "gone" && self.looked_up.load(Ordering::Relaxed) > 0 {
            return Ok(None);
        }
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        self.alive.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Node::Folder(Arc::new(Slice(self.alive.clone())))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

impl Folder for Slice {
    fn lookup(&self, name: &str) -> Result<Option<Node>> {
        let text = name.to_owned();
        Ok(Some(Node::File(Arc::new(LazyFile::text(self.modified(), move || Ok(text.clone()))))))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn modified(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

fn inodes() -> (Inodes, Arc<Slices>) {
    let slices = Arc::new(Slices::default());
    (Inodes::new(slices.clone()), slices)
}

/// Looks a name up as the server does for the kernel.
fn find(inodes: &Inodes, parent: u64, name: &str) -> Arc<Inode> {
    if let Some(inode) = inodes.look_up(parent, name) {
        return inode;
    }
    let parent = inodes.get(parent).unwrap();
    let Ok(Some(Node::Folder(folder))) = inodes.node(&parent) else { panic!("{} is no folder", parent.path()) };
    let node = folder.lookup(name).unwrap().unwrap();
    inodes.insert(&parent, name, &node, 0, inodes.generation()).unwrap()
}

#[test]
fn numbers_depend_on_nothing_but_the_path() {
    let ((one, _), (other, _)) = (inodes(), inodes());
    let slice = find(&one, ROOT, "slice");
    let deep = find(&one, slice.number, "0..9");
    find(&other, ROOT, "slice");
    assert_eq!(other.number_of(slice.number, "0..9"), deep.number);
    assert_ne!(other.number_of(ROOT, "0..9"), deep.number);
    assert_eq!((deep.path(), deep.parent()), ("slice/0..9".to_owned(), slice.number));
    let root = one.get(ROOT).unwrap();
    assert_eq!((root.path(), root.parent()), (String::new(), ROOT));
    // The hash must never change: backup programs recognise files by these numbers.
    assert_eq!(slice.number, 0x7423_28d3_2d83_3528);
}

#[test]
fn inodes_are_dropped_with_the_kernel_s_last_reference() {
    let (inodes, _) = inodes();
    let number = find(&inodes, ROOT, "a").number;
    let root = inodes.get(ROOT).unwrap();
    let again = inodes.insert(&root, "a", &Node::Folder(Arc::new(Slices::default())), 0, 0);
    assert_eq!(again.unwrap().number, number);
    assert!(inodes.look_up(ROOT, "a").is_some());
    inodes.forget(number, 2);
    assert!(inodes.get(number).is_some());
    inodes.forget(number, 1);
    assert!(inodes.get(number).is_none());
    assert!(inodes.look_up(ROOT, "a").is_none());
    inodes.forget(number, 1);
    inodes.forget(ROOT, 100);
    assert!(inodes.get(ROOT).is_some());
}

#[test]
fn paths_with_the_same_hash_get_different_numbers() {
    let inodes = Inodes::with_hash(Arc::new(Slices::default()), |_, _, attempt| attempt % 5);
    let numbers: Vec<u64> = ["a", "b", "c"].iter().map(|name| find(&inodes, ROOT, name).number).collect();
    assert_eq!(numbers, [2, 3, 4]);
    assert_eq!(inodes.number_of(ROOT, "b"), 3);
    assert_eq!(inodes.look_up(ROOT, "c").map(|inode| inode.path()).as_deref(), Some("c"));
}

#[test]
fn ten_thousand_names_that_the_kernel_remembers_keep_few_nodes() {
    let (inodes, slices) = inodes();
    let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let find_all = || -> Vec<(u64, u64)> {
        let find_file = |name: &String| {
            let slice = find(&inodes, ROOT, name);
            (slice.number, find(&inodes, slice.number, name).number)
        };
        names.iter().map(find_file).collect()
    };
    let numbers = find_all();
    assert!(slices.alive.load(Ordering::Relaxed) <= MAX_NODES);
    assert_eq!(find_all(), numbers);
    // Every file can still be opened by its old number, and processes that have it open see the same file.
    for (name, (slice, file)) in names.iter().zip(numbers) {
        let inode = inodes.get(file).unwrap();
        let Ok(Some(Node::File(opened))) = inodes.node(&inode) else { panic!("{name} is gone") };
        assert_eq!(opened.len().unwrap(), name.len() as u64);
        inodes.recent.forget(file);
        assert!(matches!(inodes.node(&inode), Ok(Some(Node::File(again))) if Arc::ptr_eq(&again, &opened)));
        assert_eq!(inodes.node(&inodes.get(slice).unwrap()).unwrap().unwrap().kind(), EntryKind::Folder);
    }
    assert!(slices.alive.load(Ordering::Relaxed) <= MAX_NODES);
    assert!(slices.looked_up.load(Ordering::Relaxed) <= 2 * names.len());
}

#[test]
fn a_name_missing_from_its_folder_has_no_node() {
    let (inodes, _) = inodes();
    let gone = find(&inodes, ROOT, "gone");
    assert!(inodes.node(&gone).unwrap().is_some());
    inodes.recent.forget(gone.number);
    assert!(inodes.node(&gone).unwrap().is_none());
}

#[test]
fn a_refresh_renumbers_files_and_keeps_folders() {
    let (inodes, _) = inodes();
    let slice = find(&inodes, ROOT, "slice");
    let (file, other) = (find(&inodes, slice.number, "text"), find(&inodes, slice.number, "other"));
    let open = inodes.node(&file).unwrap();
    // Looked up in the old tree, and inserted after the refresh.
    let late = inodes.node(&slice).unwrap().unwrap();
    let generation = inodes.generation();
    let refresh = |changed| inodes.refresh(Refreshed { root: Arc::new(Slices::default()), changed });
    let outdated = refresh(Changed::All);
    assert!(inodes.insert(&inodes.get(ROOT).unwrap(), "late", &late, 0, generation).is_none());
    let mut names: Vec<&str> = outdated.files.iter().map(|(_, name)| &**name).collect();
    names.sort_unstable();
    assert_eq!(names, ["other", "text"]);
    assert_eq!(outdated.folders.len(), 2);
    // Open files keep their content by number; the name leads to a new file.
    assert!(open.is_some() && inodes.get(file.number).is_some());
    assert!(inodes.node(&file).unwrap().is_none());
    assert!(inodes.look_up(ROOT, "slice").is_none(), "it may be gone");
    assert!(inodes.is_stale(&slice));
    assert_eq!(find(&inodes, ROOT, "slice").number, slice.number);
    assert!(!inodes.is_stale(&slice));
    let new = find(&inodes, slice.number, "text");
    assert_ne!(new.number, file.number);
    assert_eq!(inodes.number_of(slice.number, "text"), new.number);
    assert!(inodes.node(&new).unwrap().is_some());
    // Once nobody has the file open, its number is free for the next one.
    inodes.forget(other.number, 1);
    assert_eq!(find(&inodes, slice.number, "other").number, other.number);
    // A refresh of a source from which no inode was made outdates none.
    let outdated = refresh(Changed::Sources(HashSet::from([7])));
    assert!(outdated.files.is_empty() && outdated.folders.is_empty());
    assert!(inodes.node(&new).unwrap().is_some());
    assert_eq!(find(&inodes, slice.number, "text").number, new.number);
}

#[test]
fn numbers_lead_to_names_that_the_kernel_has_forgotten() {
    let (inodes, _) = inodes();
    let slice = find(&inodes, ROOT, "slice");
    let file = find(&inodes, slice.number, "text");
    assert!(inodes.way_to(file.number).is_none() && inodes.way_to(7).is_none());
    assert!(inodes.look_up_number(file.number).is_some_and(|found| Arc::ptr_eq(&found, &file)));
    inodes.forget(file.number, 2);
    let (known, names) = inodes.way_to(file.number).unwrap();
    assert_eq!((known.number, names), (slice.number, vec!["text".into()]));
    inodes.forget(slice.number, 1);
    let (known, names) = inodes.way_to(file.number).unwrap();
    assert_eq!((known.number, names), (ROOT, vec!["slice".into(), "text".into()]));
    assert!(inodes.look_up_number(file.number).is_none());
    assert_eq!(inodes.forgotten(), 2);
    find(&inodes, ROOT, "slice");
    assert_eq!(inodes.forgotten(), 1);
}

#[test]
fn a_file_has_another_handle_generation_once_its_data_have_changed() {
    let (inodes, _) = inodes();
    let generations = |inodes: &Inodes| {
        let slice = find(inodes, ROOT, "slice");
        (slice.handle_generation, find(inodes, slice.number, "text").handle_generation)
    };
    let refresh = |changed| inodes.refresh(Refreshed { root: Arc::new(Slices::default()), changed });
    assert_eq!(generations(&inodes), (0, 0));
    refresh(Changed::Sources(HashSet::from([7])));
    assert_eq!(generations(&inodes), (0, 0));
    let old = find(&inodes, find(&inodes, ROOT, "slice").number, "text");
    refresh(Changed::All);
    assert_eq!(generations(&inodes), (0, 2));
    // An outdated file is not found by its number once it is forgotten.
    inodes.forget(old.number, 100);
    assert!(inodes.way_to(old.number).is_none());
    refresh(Changed::Sources(HashSet::from([0])));
    refresh(Changed::Sources(HashSet::from([7])));
    assert_eq!(generations(&inodes), (0, 3));
}

#[test]
fn the_oldest_names_are_forgotten_first() {
    let (inodes, _) = inodes();
    let folder = find(&inodes, ROOT, "slice");
    let name = |number: usize| format!("{number:0850}");
    let spared = HashSet::from([find(&inodes, folder.number, "of somebody").number]);
    let mut told = 0;
    for number in 0..100_000 {
        find(&inodes, folder.number, &name(number));
        if !inodes.remembers_too_many() {
            assert!(inodes.names_to_forget(&spared).is_empty());
            continue;
        }
        for (parent, forgotten) in inodes.names_to_forget(&spared) {
            assert_eq!((parent, &*forgotten), (folder.number, &*name(told)));
            inodes.forget(inodes.number_of(parent, &forgotten), 1);
            told += 1;
        }
    }
    assert!(told > 80_000 && inodes.lock().bytes <= MOST_BYTES);
    assert!(inodes.look_up(folder.number, &name(99_999)).is_some() && inodes.get(folder.number).is_some());
    assert!(spared.iter().all(|number| inodes.get(*number).is_some()));
    // If all names are in use, each is returned once per round.
    let (in_use, _) = super::tests::inodes();
    for number in 0..20_000 {
        find(&in_use, ROOT, &name(number));
    }
    let count = in_use.names_to_forget(&HashSet::new()).len();
    assert!(count > 0 && count < 20_000 && in_use.lock().order.len() == 20_000);
}

#[test]
fn a_hundred_thousand_slices_that_are_forgotten_leave_nothing_behind() {
    let (inodes, slices) = inodes();
    for number in 0..100_000 {
        let inode = find(&inodes, ROOT, &number.to_string());
        inodes.forget(inode.number, 1);
    }
    assert_eq!(inodes.lock().inodes.len(), 1);
    assert!(inodes.lock().order.len() <= 1002 && inodes.lock().bytes == 0);
    assert_eq!(slices.alive.load(Ordering::Relaxed), 0);
}
