//! Lists every path of one array or group, and reads every file.
//!
//! Fixed rules sample files and names of which there are many alike:
//!
//! * A folder is entered in three scopes. The [`Scope::Whole`] object has everything. [`Scope::Part`] (a slice,
//!   `by-row/`, `nonempty/`) has all views, but no parts of its own. [`Scope::Brief`] (a time of `.history/`, a slice of
//!   `by-row/`) has only raw files, texts and descriptions.
//! * If more than [`MOST_NUMBERS`] names of a folder begin with a digit (chunks, parts, times), six of them are looked up.
//!   The order of all of them counts.
//! * Of a file longer than [`MOST_BYTES`], three windows are read: its beginning, its middle and its end.
//! * Of an array or a slice with more than [`MOST_CELLS`] cells, tables and files that are not listed even with all views
//!   take a long pass to make, and are only named. Of its `parts/`, only the first is read.
//! * Slices, regions and times are those of [`probes`].

use std::collections::HashSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{SystemTime, UNIX_EPOCH};

use tilefs_base::content::{Content, Forward};
use tilefs_base::error::Result;
use tilefs_tree::{self as tree, ShownViews, TreeOptions};
use tilefs_vfs::{File, Folder, Node};

use crate::digests::digest;
use crate::neutral::Neutral;
use crate::objects::StoredObject;
use crate::probes::probes;

const MOST_NUMBERS: usize = 16;
const MOST_BYTES: u64 = 1 << 20;
const WINDOW: u64 = 64 << 10;
const PIECE: usize = 128 << 10;
const MOST_CELLS: u64 = 1 << 24;

/// The time as of which everything is shown, 2100-01-01: texts say it, and no fixture is newer.
const AS_OF: u64 = 4_102_444_800_000;

/// How much of a folder is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Whole,
    Part,
    Brief,
}

/// The folders of an object that show it again: in part, in another order, at another time.
const AGAIN: [&str; 5] = ["slice", "islice", "by-row", "nonempty", ".history"];

/// The folders of views that a brief scope leaves out.
const NOT_BRIEF: [&str; 11] =
    ["zarr", "zarr2", "netcdf", "netcdf4", "hdf5", "parquet", "tiff", "fits", "nifti", "F", "npy"];

/// One line of the listing: a path in the object, and the facts about it as a text without line breaks.
pub type PathFacts = (String, String);

/// Returns the facts of every path of an object, in order of the paths.
pub fn every_path(object: &StoredObject, neutral: &Neutral, threads: Option<usize>) -> Vec<PathFacts> {
    let keys = tempfile::tempdir().expect("a temporary folder");
    let mut options = TreeOptions::default();
    options.reading.threads = threads.unwrap_or(options.reading.threads);
    options.reading.at = Some(AS_OF);
    if let Some(key) = &object.key {
        let file = keys.path().join("key");
        fs::write(&file, key).expect("a key is written");
        options.reading.key_file = Some(file);
    }
    let shown = TreeOptions { shown: ShownViews::ALL, ..options.clone() };
    let mut walk = Walk { neutral, found: Vec::new() };
    match (tree::open(&object.place, &shown), tree::open(&object.place, &options)) {
        (Ok(folder), Ok(plain)) => {
            let root = Place { path: String::new(), scope: Scope::Whole, cells: 0, rank: Rank::Listed };
            walk.folder(&*folder, Some(&*plain), &root);
        }
        (Err(error), _) | (_, Err(error)) => walk.add("", format!("error {error}")),
    }
    walk.found.sort();
    walk.found
}

/// How a name is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// `ls` lists it.
    Listed,
    /// `ls` lists it with all views.
    Shown,
    /// It is only found by its name.
    Named,
}

impl Rank {
    fn word(self) -> &'static str {
        match self {
            Rank::Listed => "listed",
            Rank::Shown => "shown",
            Rank::Named => "named",
        }
    }
}

/// A place in the tree of an object.
struct Place {
    path: String,
    scope: Scope,
    /// The number of cells of the array or slice around it, or the bound of it.
    cells: u64,
    rank: Rank,
}

impl Place {
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn is_of_a_table(&self) -> bool {
        let names: Vec<&str> = self.path.rsplit('/').collect();
        names.get(1).is_some_and(|folder| ["arrow", "parquet"].contains(folder))
    }

    fn below(&self, name: &str, rank: Rank, is_object: bool) -> Place {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) };
        let scope = match (self.scope, self.name()) {
            (Scope::Whole, "slice" | "islice") => Scope::Part,
            (Scope::Whole, _) if is_object && ["by-row", "nonempty"].contains(&name) => Scope::Part,
            (Scope::Whole, ".history") | (Scope::Part, "slice") => Scope::Brief,
            (scope, _) => scope,
        };
        Place { path, scope, cells: self.cells, rank }
    }

    /// Returns whether a name in this folder belongs to its scope.
    fn has(&self, name: &str) -> bool {
        let is_of_other_order = ["by-row", "nonempty"].contains(&self.name());
        match self.scope {
            Scope::Whole => true,
            Scope::Part => !AGAIN.contains(&name) || (is_of_other_order && name == "slice"),
            Scope::Brief => !AGAIN.contains(&name) && !NOT_BRIEF.contains(&name),
        }
    }
}

struct Walk<'a> {
    neutral: &'a Neutral,
    found: Vec<PathFacts>,
}

impl Walk<'_> {
    fn add(&mut self, path: &str, facts: String) {
        self.found.push((self.neutral.line(path), self.neutral.line(&facts)));
    }

    /// Lists a folder and everything in it; `plain` is the same folder of a tree without optional views.
    fn folder(&mut self, folder: &dyn Folder, plain: Option<&dyn Folder>, place: &Place) {
        let is_long_series = place.name().starts_with("parts") && place.cells > MOST_CELLS;
        let (listed, error): (Vec<String>, String) = match (!is_long_series).then(|| folder.list()).transpose() {
            Ok(None) => (Vec::new(), String::new()),
            Ok(Some(entries)) => (entries.into_iter().map(|entry| entry.name).collect(), String::new()),
            Err(error) => (Vec::new(), format!(" error {error}")),
        };
        let attributes = folder.extended_attributes();
        let cells = cells(&attributes);
        let order = &digest(listed.join("\n").as_bytes())[..8];
        let facts = format!("folder {} {} names {order}", place.rank.word(), listed.len());
        let facts = format!("{facts} {}{error}", self.described(folder.modified(), &attributes));
        self.add(&place.path, facts);
        let here = Place { path: place.path.clone(), cells: cells.unwrap_or(place.cells), ..*place };
        let is_object = attributes.iter().any(|(name, _)| name == "user.tiledb.object");
        for (name, rank) in names(folder, plain, &listed, &here, is_object) {
            let inner = here.below(&name, rank, is_object);
            if catch_unwind(AssertUnwindSafe(|| self.name(folder, plain, &name, &inner))).is_err() {
                self.add(&inner.path, "panic".to_owned());
            }
        }
    }

    /// Lists what a name in a folder is.
    fn name(&mut self, folder: &dyn Folder, plain: Option<&dyn Folder>, name: &str, place: &Place) {
        match folder.lookup(name) {
            Err(error) => self.add(&place.path, format!("error {error}")),
            Ok(None) => {
                let reason = folder.why_absent(name).unwrap_or_default();
                self.add(&place.path, format!("absent {reason}"));
            }
            Ok(Some(Node::File(file))) => self.file(&*file, place),
            Ok(Some(Node::Folder(folder))) => {
                let plain = match plain.filter(|_| place.scope == Scope::Whole).map(|plain| plain.lookup(name)) {
                    Some(Ok(Some(Node::Folder(plain)))) => Some(plain),
                    _ => None,
                };
                self.folder(&*folder, plain.as_deref(), place);
            }
        }
    }

    fn file(&mut self, file: &dyn File, place: &Place) {
        // Before the content is made, as `tilefs cat` does.
        let forward = match file.forward() {
            Ok(None) => None,
            Ok(Some(forward)) => Some(self.bytes_in_sequence(forward).unwrap_or_else(|error| format!("error {error}"))),
            Err(error) => Some(format!("error {error}")),
        };
        let bytes = if place.cells > MOST_CELLS && (place.rank == Rank::Named || place.is_of_a_table()) {
            "not read, of many cells".to_owned()
        } else {
            self.bytes_of(file).unwrap_or_else(|error| format!("error {error}"))
        };
        let described = self.described(file.modified(), &file.extended_attributes());
        let mut facts = format!("file {} {bytes} {described}", place.rank.word());
        match forward {
            None => {}
            Some(forward) if forward == bytes => facts += " the same in sequence",
            Some(forward) => facts += &format!(" in sequence {forward}"),
        }
        if let Some(remark) = file.remark() {
            facts += &format!(" remark {remark}");
        }
        self.add(&place.path, facts);
    }

    /// Returns the length and the digest of a file, or of windows of a long one.
    fn bytes_of(&self, file: &dyn File) -> Result<String> {
        let (length, content) = (file.len()?, file.open()?);
        if content.len() != length {
            return Ok(format!("error: {length} bytes, and {} when it is open", content.len()));
        }
        if length <= MOST_BYTES {
            return Ok(self.digested(&read(&*content, 0, length)?));
        }
        let starts = [0, (length - WINDOW) / 2, length - WINDOW];
        let windows = starts.into_iter().map(|start| read(&*content, start, WINDOW)).collect::<Result<Vec<_>>>()?;
        Ok(format!("{length} bytes, windows {}", self.digested(&windows.concat())))
    }

    /// Returns the length and the digest of the bytes in sequence, or the digest of the beginning if they are many.
    fn bytes_in_sequence(&self, mut forward: Box<dyn Forward>) -> Result<String> {
        let (mut bytes, mut next) = (Vec::new(), Vec::new());
        while forward.next(&mut next)? {
            bytes.append(&mut next);
            if bytes.len() as u64 > MOST_BYTES {
                bytes.truncate(WINDOW as usize);
                return Ok(format!("beginning with {}", self.digested(&bytes)));
            }
        }
        Ok(self.digested(&bytes))
    }

    fn digested(&self, bytes: &[u8]) -> String {
        let neutral = self.neutral.bytes(bytes);
        format!("{} {}", neutral.len(), digest(&neutral))
    }

    /// Returns the time and the digest of the extended attributes.
    fn described(&self, modified: SystemTime, attributes: &[(String, Vec<u8>)]) -> String {
        let time = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let lines = attributes.iter().flat_map(|(name, value)| [name.as_bytes(), b"=", value, b"\n"].concat());
        let attributes = self.neutral.bytes(&lines.collect::<Vec<u8>>());
        format!("at {time} with {}", &digest(&attributes)[..8])
    }
}

/// Reads bytes in pieces, as the mount does.
fn read(content: &dyn Content, start: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    for (number, piece) in bytes.chunks_mut(PIECE).enumerate() {
        content.read_at(start + (number * PIECE) as u64, piece)?;
    }
    Ok(bytes)
}

/// Returns the names in a folder that are looked up: the listed ones, those that are only found by name, and the probes.
fn names(
    folder: &dyn Folder,
    plain: Option<&dyn Folder>,
    listed: &[String],
    place: &Place,
    is_object: bool,
) -> Vec<(String, Rank)> {
    let in_plain = plain.and_then(|plain| plain.list().ok()).unwrap_or_default();
    let in_plain: HashSet<String> = in_plain.into_iter().map(|entry| entry.name).collect();
    let rank = |name: &String| if in_plain.contains(name) { Rank::Listed } else { Rank::Shown };
    let mut names: Vec<(String, Rank)> = sampled(listed).into_iter().map(|name| (name.clone(), rank(name))).collect();
    let mut known: HashSet<String> = listed.iter().cloned().collect();
    let by_name = folder.known_paths().into_iter().filter_map(|path| path.split('/').next().map(str::to_owned));
    for name in by_name.chain(probes(place.name(), &place.path, place.scope, is_object, listed)) {
        if known.insert(name.clone()) {
            names.push((name, Rank::Named));
        }
    }
    names.retain(|(name, _)| place.has(name));
    names
}

/// Returns all names but those that are sampled: if many begin with a digit, six of these.
fn sampled(names: &[String]) -> Vec<&String> {
    let (numbers, words): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    let count = numbers.len();
    if count <= MOST_NUMBERS {
        return names.iter().collect();
    }
    words.into_iter().chain([0, 1, count / 3, count / 2, count - 2, count - 1].map(|place| numbers[place])).collect()
}

/// Returns the number of cells in the attributes of an array or slice, or the bound of it.
fn cells(attributes: &[(String, Vec<u8>)]) -> Option<u64> {
    let value = |name: &str| attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let shape = value("user.tiledb.shape").or(value("user.tiledb.rows_at_most"))?;
    let lengths = std::str::from_utf8(shape).ok()?.split(',').map(|length| length.parse::<u64>().unwrap_or(u64::MAX));
    Some(lengths.fold(1, u64::saturating_mul))
}
