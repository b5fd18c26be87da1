//! A generated array: its objects, in the order of their keys, and their bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::cells::Cells;
use super::matrix::Matrix;
use super::metadata::{Metadata, Places};
use super::schema::schema;
use super::table::Table;
use super::tiles::{Part, TileFile};
use crate::generic_tile::{VERSION, unfiltered};

/// The times of the schema and of the first fragment, in milliseconds. Each further fragment is one millisecond later.
const CREATED: u64 = 1_500_000_000_000;
const WRITTEN: u64 = 1_600_000_000_000;

/// The default number of fragments over the same rows.
const OVERLAPPING: u64 = 20;

const METADATA_FILE: &str = "__fragment_metadata.tdb";

pub struct Array {
    pub cells: Box<dyn Cells>,
    /// Cells of each fragment.
    pub fragment_cells: u64,
    pub fragments: u64,
    /// Cells of a tile.
    pub capacity: u64,
    /// Whether one file has all commits, and another copies of all footers.
    pub is_consolidated: bool,
    pub places: Places,
    /// The files of each fragment except the metadata, with their names.
    files: Vec<(String, Part)>,
    /// The file of consolidated fragment metadata, made on first use.
    copies: OnceLock<Vec<u8>>,
    /// The file of consolidated commits, made on first use.
    commits: OnceLock<Vec<u8>>,
    /// Sections of metadata that were read, by fragment and number.
    sections: Mutex<Sections>,
}

/// Sections of metadata by fragment and number.
type Sections = HashMap<(u64, usize), Arc<[u8]>>;

/// The most sections that are remembered. Computing the boxes of a fragment's tiles takes milliseconds, which a
/// benchmark would attribute to the reader.
const REMEMBERED: usize = 8192;

/// An object of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    Commit(u64),
    Commits,
    FooterCopies,
    Metadata(u64),
    Tiles(u64, usize),
    Schema,
}

impl Array {
    /// Returns the array of a name such as `appended-1e9` or `overlapping-1e8-f20-o20-t10000-consolidated`: its shape
    /// (`appended`, `overlapping`, `table`), its number of cells, and options in any order: `f` fragments, `o`
    /// fragments over the same rows, `t` cells per tile. The error says what is wrong with the name.
    pub fn named(name: &str) -> Result<Self, String> {
        let mut parts = name.split('-');
        let shape = parts.next().unwrap_or_default();
        let count = number(parts.next().unwrap_or_default())?;
        let is_overlapping = shape == "overlapping";
        let least = if is_overlapping { OVERLAPPING } else { 10 };
        let mut fragments = (count / 10_000_000).max(least);
        let mut overlapping = if is_overlapping { OVERLAPPING } else { 1 };
        let (mut capacity, mut is_consolidated) = (65_536, false);
        for part in parts {
            match part.split_at_checked(1) {
                _ if part == "consolidated" => is_consolidated = true,
                Some(("f", text)) => fragments = number(text)?,
                Some(("o", text)) if is_overlapping => overlapping = number(text)?,
                Some(("t", text)) => capacity = number(text)?,
                _ => return Err(format!("{part:?} is not an option of an array")),
            }
        }
        if [fragments, capacity, overlapping].contains(&0) || count == 0 || !count.is_multiple_of(fragments) {
            return Err(format!("{count} cells cannot be divided among {fragments} fragments"));
        }
        let fragment_cells = count / fragments;
        let cells: Box<dyn Cells> = match shape {
            "appended" | "overlapping" => Box::new(Matrix::new(fragment_cells, overlapping)?),
            "table" => Box::new(Table::new(fragment_cells)),
            _ => return Err(format!("there is no shape {shape:?}: there are appended, overlapping and table")),
        };
        let files = files(&*cells);
        Ok(Array {
            cells,
            fragment_cells,
            fragments,
            capacity,
            is_consolidated,
            places: Places::default(),
            files,
            copies: OnceLock::new(),
            commits: OnceLock::new(),
            sections: Mutex::default(),
        })
    }

    pub fn file(&self, fragment: u64, part: Part) -> TileFile<'_> {
        TileFile { cells: &*self.cells, part, fragment, count: self.fragment_cells, capacity: self.capacity }
    }

    pub fn schema_name(&self) -> String {
        stamped(CREATED, CREATED, 0)
    }

    fn fragment_name(fragment: u64) -> String {
        let time = WRITTEN + fragment;
        format!("{}_{VERSION}", stamped(time, time, fragment))
    }

    /// Returns the name of files made of all fragments.
    fn consolidated_name(&self) -> String {
        format!("{}_{VERSION}", stamped(WRITTEN, WRITTEN + self.fragments - 1, self.fragments))
    }

    /// Returns the number of objects.
    pub fn objects(&self) -> u64 {
        let commits = if self.is_consolidated { 2 } else { self.fragments };
        commits + self.fragments * self.fragment_files() + 1
    }

    fn fragment_files(&self) -> u64 {
        1 + self.files.len() as u64
    }

    /// Returns the object of a number, in the order of keys.
    pub fn object(&self, number: u64) -> Object {
        let commits = if self.is_consolidated { 2 } else { self.fragments };
        match number.checked_sub(commits) {
            None if !self.is_consolidated => Object::Commit(number),
            None if number == 0 => Object::Commits,
            None => Object::FooterCopies,
            Some(number) if number < self.fragments * self.fragment_files() => {
                let fragment = number / self.fragment_files();
                match number % self.fragment_files() {
                    0 => Object::Metadata(fragment),
                    file => Object::Tiles(fragment, file as usize - 1),
                }
            }
            Some(_) => Object::Schema,
        }
    }

    /// Returns an object's key in the array.
    pub fn key(&self, object: Object) -> String {
        match object {
            Object::Commit(fragment) => format!("__commits/{}.wrt", Self::fragment_name(fragment)),
            Object::Commits => format!("__commits/{}.con", self.consolidated_name()),
            Object::FooterCopies => format!("__fragment_meta/{}.meta", self.consolidated_name()),
            Object::Metadata(fragment) => format!("__fragments/{}/{METADATA_FILE}", Self::fragment_name(fragment)),
            Object::Tiles(fragment, file) => {
                format!("__fragments/{}/{}", Self::fragment_name(fragment), self.files[file].0)
            }
            Object::Schema => format!("__schema/{}", self.schema_name()),
        }
    }

    /// Returns the number of the first object whose key is at or after a text.
    pub fn first_from(&self, text: &str) -> u64 {
        self.first_between(text, 0, self.objects())
    }

    /// Like [`Array::first_from`], for a text after the key of the object `number`. Fast if the object is near that
    /// one.
    pub fn first_behind(&self, number: u64, text: &str) -> u64 {
        let (mut low, mut step) = (number, 1);
        while low + step < self.objects() && self.key(self.object(low + step)).as_str() < text {
            low += step;
            step *= 2;
        }
        self.first_between(text, low, self.objects().min(low + step))
    }

    fn first_between(&self, text: &str, mut low: u64, mut high: u64) -> u64 {
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(self.object(middle)).as_str() < text { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Returns the object with a key.
    pub fn find(&self, key: &str) -> Option<Object> {
        let number = Some(self.first_from(key)).filter(|number| *number < self.objects())?;
        Some(self.object(number)).filter(|object| self.key(*object) == key)
    }

    pub fn len(&self, object: Object) -> u64 {
        match object {
            Object::Commit(_) => 0,
            Object::Metadata(fragment) => Metadata::new(self, fragment).byte_count(),
            Object::Tiles(fragment, file) => self.file(fragment, self.files[file].1).byte_count(),
            Object::Commits => self.commits().len() as u64,
            Object::FooterCopies => self.footer_copies().len() as u64,
            Object::Schema => self.whole(object).len() as u64,
        }
    }

    /// Returns the bytes of a range, which must lie in the object.
    pub fn read(&self, object: Object, range: Range<u64>) -> Vec<u8> {
        match object {
            Object::Metadata(fragment) => Metadata::new(self, fragment).read(range),
            Object::Tiles(fragment, file) => self.file(fragment, self.files[file].1).read(range),
            Object::FooterCopies => self.footer_copies()[range.start as usize..range.end as usize].to_vec(),
            Object::Commits => self.commits()[range.start as usize..range.end as usize].to_vec(),
            _ => self.whole(object)[range.start as usize..range.end as usize].to_vec(),
        }
    }

    /// Returns a section of a fragment's metadata, computed by `compute` unless it is remembered.
    pub fn section(&self, fragment: u64, number: usize, compute: impl FnOnce() -> Vec<u8>) -> Arc<[u8]> {
        let remembered = || self.sections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(section) = remembered().get(&(fragment, number)) {
            return section.clone();
        }
        let section: Arc<[u8]> = compute().into();
        let mut sections = remembered();
        if sections.len() == REMEMBERED {
            sections.clear();
        }
        sections.insert((fragment, number), section.clone());
        section
    }

    fn whole(&self, object: Object) -> Vec<u8> {
        match object {
            Object::Commits => self.commits().to_vec(),
            Object::FooterCopies => self.footer_copies().to_vec(),
            Object::Schema => unfiltered(&schema(&*self.cells, self.capacity)),
            Object::Commit(_) | Object::Metadata(_) | Object::Tiles(..) => Vec::new(),
        }
    }

    /// Returns the file of consolidated commits: a line for each.
    fn commits(&self) -> &[u8] {
        self.commits.get_or_init(|| {
            let marks = (0..self.fragments).map(|fragment| self.key(Object::Commit(fragment)) + "\n");
            marks.collect::<String>().into_bytes()
        })
    }

    /// Returns the file of consolidated fragment metadata: a name and an offset for each fragment, then all footers.
    fn footer_copies(&self) -> &[u8] {
        self.copies.get_or_init(|| {
            let names: Vec<String> = (0..self.fragments).map(Self::fragment_name).collect();
            let mut offset = 4 + names.iter().map(|name| 16 + name.len() as u64).sum::<u64>();
            let mut payload = (self.fragments as u32).to_le_bytes().to_vec();
            let length = Metadata::new(self, 0).footer().len() as u64;
            for name in &names {
                payload.extend((name.len() as u64).to_le_bytes());
                payload.extend(name.bytes());
                payload.extend(offset.to_le_bytes());
                offset += length;
            }
            (0..self.fragments).for_each(|fragment| payload.extend(Metadata::new(self, fragment).footer()));
            unfiltered(&payload)
        })
    }
}

/// Returns the files of a fragment, in the order of their names.
fn files(cells: &dyn Cells) -> Vec<(String, Part)> {
    let mut files = Vec::new();
    for (number, field) in cells.attributes().iter().enumerate() {
        let name = format!("a{number}");
        match field.values {
            Some(_) => files.push((format!("{name}.tdb"), Part::Attribute(number))),
            None => {
                files.push((format!("{name}.tdb"), Part::Offsets(number)));
                files.push((format!("{name}_var.tdb"), Part::Values(number)));
            }
        }
    }
    files.extend((0..cells.dimensions().len()).map(|number| (format!("d{number}.tdb"), Part::Dimension(number))));
    files
}

fn stamped(from: u64, to: u64, number: u64) -> String {
    format!("__{from}_{to}_{number:032x}")
}

/// Parses a number such as `1000` or `1e3`.
fn number(text: &str) -> Result<u64, String> {
    let (digits, zeros) = text.split_once('e').unwrap_or((text, "0"));
    let number = digits.parse::<u64>().ok().zip(zeros.parse().ok());
    let number = number.and_then(|(digits, zeros)| digits.checked_mul(10u64.checked_pow(zeros)?));
    number.ok_or_else(|| format!("{text:?} is not a number"))
}
