//! Decodes everything stored in an array, checks it against the rules of the format, and collects all errors. Among
//! them are errors in earlier states, and errors that no read of the array would meet.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::FragmentField;
use tilefs_threads as threads;

use super::folder::footer_copies::compare_copies;
use super::folder::outline::FieldFile;
use super::folder::outline::Outline;
use super::lost_cells;
use super::sparse::{CoordinateCheck, visible_deletes};
use super::tiles::Tiles;
use super::{ArrayFolder, Metadata, OpenedArray, TimeWindow, Visits};
use crate::read::{Batches, Decoding};

/// Offsets of variable-size cells are checked in parts of this many.
const OFFSETS_PER_PART: u64 = 4096;

/// The progress of a check. Threads update it while another thread may display it.
#[derive(Debug, Default)]
pub struct Progress {
    /// The number of checked fragments.
    pub fragments: AtomicU64,
    /// Tiles that were decoded and found correct.
    pub tiles: AtomicU64,
    /// Decoded bytes.
    pub bytes: AtomicU64,
    /// The correct tiles whose filters include a checksum or an authentication tag.
    pub checked_tiles: AtomicU64,
    /// Decoded bytes of the other tiles, and of the offsets or values of a tile of which only the other part has one.
    pub bytes_without_checksum: AtomicU64,
    /// Tiles that were checked, correct or not.
    pub done: AtomicU64,
    /// The number of tiles to check, as far as is known yet.
    pub due: AtomicU64,
}

/// The findings of a check.
#[derive(Debug, Default)]
pub struct Findings {
    /// The distinct errors, sorted by their texts.
    pub places: Vec<Finding>,
    /// Conditions that need not be errors, as lines of text.
    pub warnings: Vec<String>,
}

/// An error, no matter how many tiles it affects.
#[derive(Debug)]
pub struct Finding {
    /// The error, with its place.
    pub error: Error,
    /// The number of tiles that cannot be read because of it.
    pub tiles: u64,
}

impl Finding {
    /// Returns whether stored data is damaged or missing. Otherwise the data could not be checked.
    pub fn is_damage(&self) -> bool {
        matches!(self.error, Error::Damaged { .. } | Error::Missing { .. } | Error::Key { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tiles {
            0 => write!(f, "{}", self.error),
            1 => write!(f, "{}: 1 tile", self.error),
            tiles => write!(f, "{}: {tiles} tiles", self.error),
        }
    }
}

/// Decodes every tile of every fragment of an array on all cores, including replaced fragments, together with their
/// metadata. Checks the rules for coordinates. Reads the array's metadata, schemas, enumerations, labels, delete
/// conditions and copies of footers. Leaves out everything that does not count in the array's time window.
///
/// Memory: the cache, one tile per core, and the findings.
pub fn verify(array: &OpenedArray, progress: &Progress) -> Findings {
    let verifier = Verifier { progress, found: Mutex::default(), warnings: Mutex::default(), visits: Mutex::default() };
    verifier.array(array);
    let Verifier { found, warnings, .. } = verifier;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let places = found.into_values().map(|(error, tiles)| Finding { error, tiles }).collect();
    Findings { places, warnings: warnings.into_inner().unwrap_or_else(PoisonError::into_inner) }
}

struct Verifier<'a> {
    progress: &'a Progress,
    /// The errors by their texts, each with the number of affected tiles.
    found: Mutex<BTreeMap<String, (Error, u64)>>,
    warnings: Mutex<Vec<String>>,
    /// The checked arrays.
    visits: Mutex<Visits>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fragment that is checked.
struct Fragment<'a> {
    array: &'a OpenedArray,
    /// The fragment's number among the visible fragments of the array (`index`), and in the folder (`number`).
    index: usize,
    number: usize,
    outline: Arc<Outline>,
    tiles: u64,
}

/// A field of a fragment, and which files it has.
struct OpenField {
    field: FragmentField,
    name: String,
    is_variable: bool,
    is_nullable: bool,
}

/// A file of a fragment that can be decoded as far as it is complete.
struct CheckedFile {
    tiles: Arc<Tiles>,
    /// The number of tiles, from the start, that are completely in the file.
    whole: u64,
    has_checksums: bool,
    /// Whether the values of variable size that belong to the file have checksums; those of fixed size are in it.
    has_checksums_of_values: bool,
}

/// The bytes to which a tile decodes.
#[derive(Debug, Clone, Copy, Default)]
struct DecodedBytes {
    all: u64,
    /// Those that no checksum covers.
    unproven: u64,
}

impl DecodedBytes {
    fn new(bytes: u64, has_checksum: bool) -> Self {
        DecodedBytes { all: bytes, unproven: if has_checksum { 0 } else { bytes } }
    }

    fn and(self, other: DecodedBytes) -> Self {
        DecodedBytes { all: self.all.saturating_add(other.all), unproven: self.unproven.saturating_add(other.unproven) }
    }
}

impl Verifier<'_> {
    fn add(&self, error: Error, tiles: u64) {
        let text = error.to_string();
        lock(&self.found).entry(text).or_insert((error, 0)).1 += tiles;
    }

    fn array(&self, array: &OpenedArray) {
        if !lock(&self.visits).is_first(array.context(), array.path()) {
            return;
        }
        let array = &array.with_replaced();
        let folder = array.folder();
        lock(&self.warnings).extend(folder.directory().remarks());
        let place = |error: Error| error.in_array(array.path());
        if let Err(error) = visible_deletes(array) {
            self.add(place(error), 0);
        }
        self.metadata(array);
        self.schemas(array);
        let fragments: Vec<Fragment<'_>> = threads::map(0..array.fragment_count(), |index| self.fragment(array, index))
            .into_iter()
            .flatten()
            .collect();
        for error in compare_copies(folder) {
            self.add(place(error), 0);
        }
        for label in &array.schema().labels {
            match array.label(label) {
                Ok(label) => self.array(&label.array),
                Err(error) => self.add(error, 0),
            }
        }
        threads::for_each(fragments.iter(), |fragment| {
            self.fields(fragment);
            self.progress.fragments.fetch_add(1, Ordering::Relaxed);
        });
        self.lost_cells(array, &fragments);
    }

    /// Compares consolidated dense fragments with the fragments of which they were made.
    fn lost_cells(&self, array: &OpenedArray, fragments: &[Fragment<'_>]) {
        let replaced = array.folder().directory().replaced_fragments();
        for one in fragments.iter().filter(|one| one.outline.facts.dense) {
            let Some(originals) = array.folder().parts_of(one.number, &replaced, usize::MAX) else { continue };
            let name = array.fragment_name(one.index);
            self.progress.due.fetch_add(one.tiles, Ordering::Relaxed);
            let compared = AtomicU64::new(0);
            let done = || {
                compared.fetch_add(1, Ordering::Relaxed);
                self.progress.done.fetch_add(1, Ordering::Relaxed);
            };
            let place = |error: Error| error.in_fragment(name).in_array(array.path());
            let outcome = lost_cells::compare(array, one.number, originals, done);
            // Where the comparison ended early, nothing more is to be done.
            let rest = one.tiles.saturating_sub(compared.into_inner());
            self.progress.done.fetch_add(rest, Ordering::Relaxed);
            match outcome {
                Ok(lost) => match lost.are_certain() {
                    Some(false) => {}
                    Some(true) => self.add(place(Error::damaged(lost.reason())), 0),
                    None => lock(&self.warnings).push(place(Error::damaged(lost.reason())).to_string()),
                },
                Err(Error::Cancelled) => return,
                // The damage was probably found where the fragments themselves were checked.
                Err(Error::Damaged { .. }) if !lock(&self.found).is_empty() => {}
                Err(error) => {
                    lock(&self.warnings).push(format!("{name} was not compared with what it replaced: {error}"))
                }
            }
        }
    }

    /// Checks all metadata files, replaced or not.
    fn metadata(&self, array: &OpenedArray) {
        if let Err(error) = array.metadata() {
            self.add(error.in_array(array.path()), 0);
        }
        let context = array.context();
        let files = array.folder().metadata_files().unwrap_or_else(|error| {
            self.add(error.in_array(array.path()), 0);
            Vec::new()
        });
        for one in files.iter().filter(|one| array.window().contains(&one.times)) {
            if let Err(error) = Metadata::verify_file(context, &one.file) {
                self.add(error.in_array(array.path()), 0);
            }
        }
    }

    /// Checks all schemas that were ever in force, and their enumerations.
    fn schemas(&self, array: &OpenedArray) {
        let folder = array.folder();
        for schema in folder.directory().schemas() {
            let time = schema.times.map_or(0, |times| times.t2);
            if time > array.window().end {
                continue;
            }
            let opened = OpenedArray::open_with(folder.clone(), TimeWindow::until(time), &schema.name);
            let then = match opened {
                Ok(then) => then,
                Err(error) => {
                    self.add(error.in_array(array.path()), 0);
                    continue;
                }
            };
            for (name, _) in &then.schema().enumerations {
                if let Err(error) = then.enumeration(name) {
                    self.add(error.in_array(array.path()), 0);
                }
            }
        }
    }

    /// Reads a fragment's metadata; `None` if it is damaged.
    fn fragment<'a>(&self, array: &'a OpenedArray, index: usize) -> Option<Fragment<'a>> {
        let number = array.number(index);
        let place = |error: Error| error.in_fragment(array.fragment_name(index)).in_array(array.path());
        let read = || -> Result<Fragment<'a>> {
            let outline = array.folder().outline(number)?;
            array.folder().tile_count(number, &outline)?;
            // Tiles after the tiles of the box contain no cells.
            let tiles = outline.facts.tile_count(&outline.schema)?;
            if !outline.facts.dense {
                array.folder().mbrs(number)?;
            }
            Ok(Fragment { array, index, number, outline, tiles })
        };
        match read() {
            Ok(fragment) => {
                let files = fragment.fields().iter().map(|field| 1 + u64::from(field.is_nullable)).sum::<u64>();
                self.progress.due.fetch_add(files.saturating_mul(fragment.tiles), Ordering::Relaxed);
                Some(fragment)
            }
            Err(error) => {
                self.add(place(error), 0);
                self.progress.fragments.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn fields(&self, fragment: &Fragment<'_>) {
        let (coordinates, others): (Vec<OpenField>, Vec<OpenField>) = fragment
            .fields()
            .into_iter()
            .partition(|field| matches!(field.field, FragmentField::Dimension(_) | FragmentField::Coordinates));
        threads::for_each(others.iter(), |field| {
            self.values(fragment, field, self.open_data(fragment, field).as_ref());
            if field.is_nullable {
                let validity = self.open(fragment, field, FieldFile::Validity);
                self.count_skipped(fragment, validity.as_ref());
                if let Some(file) = validity {
                    let decoded = self.each_tile(fragment, &field.name, file.whole, |tile, cells| {
                        let bytes = fragment.decode(&file, field.field, FieldFile::Validity, tile, cells)?;
                        Ok(DecodedBytes::new(bytes, file.has_checksums))
                    });
                    self.count_checked(&file, decoded);
                }
            }
        });
        if !coordinates.is_empty() {
            self.coordinates(fragment, &coordinates);
        }
    }

    /// Decodes the values of a field and its offsets.
    fn values(&self, fragment: &Fragment<'_>, field: &OpenField, data: Option<&CheckedFile>) {
        self.count_skipped(fragment, data);
        let Some(data) = data else { return };
        let decoded = self.each_tile(fragment, &field.name, data.whole, |tile, cells| match field.is_variable {
            true => {
                let values = fragment.decode_var(field.field, tile, cells)?;
                let offsets = DecodedBytes::new(cells.saturating_mul(8), data.has_checksums);
                Ok(DecodedBytes::new(values, data.has_checksums_of_values).and(offsets))
            }
            false => {
                let bytes = fragment.decode(data, field.field, FieldFile::Data, tile, cells)?;
                Ok(DecodedBytes::new(bytes, data.has_checksums))
            }
        });
        self.count_checked(data, decoded);
    }

    /// Decodes coordinates and checks their rules. If the coordinates of one dimension cannot be read at all, decodes
    /// the coordinates of the other dimensions one by one.
    fn coordinates(&self, fragment: &Fragment<'_>, fields: &[OpenField]) {
        let opened = fields.iter().map(|field| self.open_data(fragment, field)).collect::<Vec<_>>();
        let check = CoordinateCheck::new(fragment.array, fragment.index);
        let files: Option<Vec<&CheckedFile>> = opened.iter().map(Option::as_ref).collect();
        let (Ok(check), Some(files)) = (&check, files) else {
            if let Err(error) = check {
                self.add(fragment.place(error, "coordinates"), 0);
            }
            return fields.iter().zip(&opened).for_each(|(field, data)| self.values(fragment, field, data.as_ref()));
        };
        let name = if let [one] = fields { one.name.as_str() } else { "coordinates" };
        let whole = files.iter().map(|file| file.whole).min().unwrap_or(0);
        let decoded = self.each_tile(fragment, name, whole, |tile, cells| {
            check.check_tile(tile)?;
            fragment.coordinate_bytes(&files, tile, cells)
        });
        files.iter().for_each(|file| self.count_checked(file, decoded));
        // One file is counted already.
        let others = files.len().saturating_sub(1) as u64;
        self.progress.tiles.fetch_add(others * decoded, Ordering::Relaxed);
        self.progress.done.fetch_add(files.len() as u64 * fragment.tiles - whole, Ordering::Relaxed);
    }

    /// Checks the first `whole` tiles of a field, and returns how many are correct. `check` returns the bytes to which
    /// a tile decodes.
    fn each_tile(
        &self,
        fragment: &Fragment<'_>,
        name: &str,
        whole: u64,
        check: impl Fn(u64, u64) -> Result<DecodedBytes> + Sync,
    ) -> u64 {
        let facts = &fragment.outline.facts;
        let is_right = |tile: u64| {
            let cells = facts.cells_in_tile(&fragment.outline.schema, tile);
            let cells = cells.ok_or_else(|| Error::damaged(format!("tile {tile} has no number of cells")));
            let checked = cells.and_then(|cells| check(tile, cells));
            self.progress.done.fetch_add(1, Ordering::Relaxed);
            match checked {
                Ok(bytes) => {
                    self.progress.tiles.fetch_add(1, Ordering::Relaxed);
                    self.progress.bytes.fetch_add(bytes.all, Ordering::Relaxed);
                    self.progress.bytes_without_checksum.fetch_add(bytes.unproven, Ordering::Relaxed);
                    true
                }
                Err(error) => {
                    self.add(fragment.place(error, name), 1);
                    false
                }
            }
        };
        let right = AtomicU64::new(0);
        threads::for_each(0..whole, |tile| {
            right.fetch_add(u64::from(is_right(tile)), Ordering::Relaxed);
        });
        right.into_inner()
    }

    /// Opens the file of a field's values or offsets, limited to the tiles that the file of variable-size values also
    /// has.
    fn open_data(&self, fragment: &Fragment<'_>, field: &OpenField) -> Option<CheckedFile> {
        let data = self.open(fragment, field, FieldFile::Data)?;
        if !field.is_variable {
            return Some(data);
        }
        let values = self.open(fragment, field, FieldFile::Var)?;
        let whole = data.whole.min(values.whole);
        Some(CheckedFile { whole, has_checksums_of_values: values.has_checksums, ..data })
    }

    /// Opens a file. An error of the whole file is recorded once, with the number of affected tiles.
    fn open(&self, fragment: &Fragment<'_>, field: &OpenField, file: FieldFile) -> Option<CheckedFile> {
        let folder = fragment.array.folder();
        let opened = folder.tiles(fragment.number, field.field, file).and_then(|tiles| {
            let length = folder.context.storage.length(tiles.file.path())?;
            Ok((length, tiles.file.count_within(length)?, tiles))
        });
        let (length, whole, tiles) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.add(fragment.place(error, &field.name), fragment.tiles);
                return None;
            }
        };
        if whole < tiles.file.count() {
            let reason = format!("the file ends at {length} of {} bytes", tiles.file.file_size());
            let error = Error::damaged(reason).in_file(tiles.file.path());
            self.add(fragment.place(error, &field.name), tiles.file.count() - whole);
        }
        let has_checksums = folder.context.key.is_some() || tiles.decoder().has_checksums();
        Some(CheckedFile { tiles, whole, has_checksums, has_checksums_of_values: has_checksums })
    }

    /// Counts the tiles of a file that are not checked individually because they are known to be lost.
    fn count_skipped(&self, fragment: &Fragment<'_>, file: Option<&CheckedFile>) {
        let whole = file.map_or(0, |file| file.whole);
        self.progress.done.fetch_add(fragment.tiles.saturating_sub(whole), Ordering::Relaxed);
    }

    fn count_checked(&self, file: &CheckedFile, tiles: u64) {
        if file.has_checksums && file.has_checksums_of_values {
            self.progress.checked_tiles.fetch_add(tiles, Ordering::Relaxed);
        }
    }
}

impl Fragment<'_> {
    fn place(&self, error: Error, field: &str) -> Error {
        error.in_field(field).in_fragment(self.array.fragment_name(self.index)).in_array(self.array.path())
    }

    /// Returns the fields for which the fragment has files.
    fn fields(&self) -> Vec<OpenField> {
        let Outline { facts, schema } = &*self.outline;
        let fixed = |field: FragmentField, name: &str| OpenField {
            field,
            name: name.to_owned(),
            is_variable: false,
            is_nullable: false,
        };
        let attributes = schema.attributes.iter().enumerate().map(|(number, attribute)| OpenField {
            is_variable: attribute.is_variable(),
            is_nullable: attribute.nullable,
            ..fixed(FragmentField::Attribute(number), &attribute.name)
        });
        let dimensions = schema.dimensions.iter().enumerate().map(|(number, dimension)| OpenField {
            is_variable: dimension.is_variable(),
            ..fixed(FragmentField::Dimension(number), &dimension.name)
        });
        let others = [
            (FragmentField::Coordinates, "coordinates"),
            (FragmentField::Timestamps, "timestamps"),
            (FragmentField::DeleteTimestamps, "delete timestamps"),
            (FragmentField::DeleteConditionIndex, "delete conditions"),
        ];
        let coordinates = dimensions.chain(others.map(|(field, name)| fixed(field, name)));
        let coordinates = coordinates.filter(|one| !facts.dense && facts.slot(one.field).is_some());
        attributes.chain(coordinates).collect()
    }

    /// Decodes the chunks of a tile one by one, and returns the bytes to which they decode.
    fn decode(
        &self,
        opened: &CheckedFile,
        field: FragmentField,
        file: FieldFile,
        tile: u64,
        cells: u64,
    ) -> Result<u64> {
        let (_, _, cell_size) = self.folder().filtering(self.number, &self.outline, field, file)?;
        let size = cells.checked_mul(cell_size as u64);
        let size = size.ok_or_else(|| Error::damaged("a tile of more than 2^64 bytes"))?;
        opened.tiles.check(tile, size)?;
        Ok(size)
    }

    /// Decodes the offsets and the values of a tile, and returns the bytes to which the values decode.
    fn decode_var(&self, field: FragmentField, tile: u64, cells: u64) -> Result<u64> {
        let (_, datatype, _) = self.folder().filtering(self.number, &self.outline, field, FieldFile::Var)?;
        let tiles = self.folder().var_tiles(self.number, field, datatype.size())?;
        let size = tiles.size(tile)?;
        if tiles.is_whole(tile, cells)? {
            tiles.tile(tile, cells)?;
            return Ok(size);
        }
        let mut units = Vec::new();
        let mut reader = tiles.plan_offsets(tile, cells, std::iter::once(0..cells), &mut units)?;
        let mut batches = Batches::new(&self.array.context().fetcher, &units, Decoding::OnThisThread);
        let mut offsets = [0; OFFSETS_PER_PART as usize + 1];
        let mut first = 0;
        while first < cells {
            // Parts overlap by one offset, so that all offsets are compared with their neighbours.
            let count = OFFSETS_PER_PART.min(cells - first);
            reader.read(&mut batches, first, &mut offsets[..count as usize + 1])?;
            first += count;
        }
        tiles.check_values(tile)?;
        Ok(size)
    }

    /// Returns the bytes to which the coordinates of a tile decode. `files` are those of the dimensions in order, or one
    /// of all of them; files of times may follow.
    fn coordinate_bytes(&self, files: &[&CheckedFile], tile: u64, cells: u64) -> Result<DecodedBytes> {
        let mut bytes = DecodedBytes::default();
        for (number, dimension) in self.outline.schema.dimensions.iter().enumerate() {
            let file = files.get(number).or(files.first());
            let [of_file, of_values] =
                file.map_or([false; 2], |file| [file.has_checksums, file.has_checksums_of_values]);
            bytes = bytes.and(match dimension.is_variable() {
                true => {
                    let sizes = self.folder().var_sizes(self.number, FragmentField::Dimension(number))?;
                    let values = DecodedBytes::new(sizes.get(tile)?.unwrap_or(0), of_values);
                    values.and(DecodedBytes::new(cells.saturating_mul(8), of_file))
                }
                false => DecodedBytes::new(cells.saturating_mul(dimension.datatype.size() as u64), of_file),
            });
        }
        Ok(bytes)
    }

    fn folder(&self) -> &ArrayFolder {
        self.array.folder()
    }
}
