//! The coordinates of the cells of an array of variant calls, in each version of the layout.
//!
//! | version | dimensions | a record lies at | its anchors lie |
//! | --- | --- | --- | --- |
//! | 4 | `contig`, `start_pos`, `sample` | its first position | after it, an anchor gap apart |
//! | 3 | `sample`, `start_pos` | its first position | after it, an anchor gap apart |
//! | 2 | `sample`, `end_pos` | its last position | from its first position on, an anchor gap apart |
//!
//! Positions count from 0. In versions 2 and 3 a position also counts the lengths of all contigs before its own, and a
//! sample is a number.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tilefs_base::error::{Error, Result};
use tilefs_threads::cancellation;

/// Number of names in a list after which cancellation is checked.
const PAIRS_OF_A_CHECK: usize = 1 << 12;

/// The layout of a dataset, and its anchor gap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DatasetLayout {
    version: u32,
    anchor_gap: u32,
}

/// The positions of one cell, all counted from the same origin: its coordinate, and the first and the last position of
/// its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPositions {
    /// The coordinate along the dimension of positions.
    pub coordinate: u32,
    /// The first position of the record.
    pub start: u32,
    /// The last position of the record.
    pub end: u32,
}

/// A query for records by their first and last position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionWindow {
    /// The record's first position lies in this range.
    pub starts: RangeInclusive<u32>,
    /// The record's last position is at least this one.
    pub least_end: u32,
    /// Set if the search finds the records by their anchors, because they begin before the coordinates of the region:
    /// the first of these coordinates.
    pub anchored_at: Option<u32>,
}

impl DatasetLayout {
    /// Returns the windows of the records that overlap some positions, in order. Each such record is in exactly one
    /// window. Leaves out records that begin before `first`.
    pub fn windows(&self, positions: &RangeInclusive<u32>, first: u32) -> Vec<PositionWindow> {
        let (least_end, last) = (*positions.start(), *positions.end());
        // Records that begin earlier have a cell at or after `low`.
        let low = if self.is_by_end() { least_end } else { least_end.saturating_sub(self.anchor_gap) };
        let mut windows = Vec::new();
        if first < low {
            windows.push(PositionWindow { starts: first..=low - 1, least_end, anchored_at: Some(low) });
        }
        if low.max(first) <= last {
            windows.push(PositionWindow { starts: low.max(first)..=last, least_end, anchored_at: None });
        }
        windows
    }

    /// Returns the coordinates of the cells that find the records of a window.
    pub fn coordinates(&self, window: &PositionWindow) -> RangeInclusive<u32> {
        let starts = &window.starts;
        match window.anchored_at {
            Some(low) => low..=low.saturating_add(self.anchor_gap),
            // The first cell of a record is at most an anchor gap after its first position.
            None if self.is_by_end() => *starts.start()..=starts.end().saturating_add(self.anchor_gap),
            None => starts.clone(),
        }
    }

    /// Returns the lowest first position of a record that a cell at this coordinate can find, in a window without
    /// `anchored_at`.
    pub fn first_start(&self, coordinate: u32) -> u32 {
        if self.is_by_end() { coordinate.saturating_sub(self.anchor_gap) } else { coordinate }
    }

    /// Returns whether this cell finds its record in a window. Exactly one cell finds each record of a window.
    ///
    /// # Errors
    /// Fails if the record cannot have a cell at this coordinate.
    pub fn is_in_window(&self, window: &PositionWindow, cell: CellPositions) -> Result<bool> {
        let before = self.cell_before(cell)?;
        let is_its_cell = match window.anchored_at {
            Some(low) => before.is_none_or(|before| before < low),
            None => before.is_none(),
        };
        let reaches = cell.end.max(cell.start) >= window.least_end;
        Ok(is_its_cell && reaches && window.starts.contains(&cell.start))
    }

    /// Creates the layout of a version.
    ///
    /// # Errors
    /// Fails for versions other than 2, 3 and 4, and for an anchor gap of 0.
    pub fn new(version: u32, anchor_gap: u32) -> Result<Self> {
        if !(2..=4).contains(&version) {
            return Err(Error::unsupported(format!("version {version} of the layout of TileDB-VCF")));
        }
        if anchor_gap == 0 {
            return Err(Error::damaged("an anchor gap of 0"));
        }
        Ok(DatasetLayout { version, anchor_gap })
    }

    /// Returns the version of the dataset's layout.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the distance in positions between the anchors of a record.
    pub fn anchor_gap(&self) -> u32 {
        self.anchor_gap
    }

    /// Returns whether the coordinate of a record's own cell is its last position, not its first.
    fn is_by_end(&self) -> bool {
        self.version == 2
    }

    /// Returns the coordinate of the previous cell of the same record; `None` if this is the first.
    ///
    /// # Errors
    /// Fails if the record cannot have a cell at this coordinate.
    fn cell_before(&self, cell: CellPositions) -> Result<Option<u32>> {
        let CellPositions { coordinate, start, end } = cell;
        let misplaced = || {
            let reason = format!("a cell at {coordinate} for a record from {start} to {end}");
            Error::damaged(reason)
        };
        let distance = coordinate.checked_sub(start).ok_or_else(misplaced)?;
        let is_anchor_place = distance.is_multiple_of(self.anchor_gap);
        match self.is_by_end() {
            // The last cell is at the record's end, at most an anchor gap after the last anchor.
            true if coordinate == end => {
                let anchors = (end - start).saturating_sub(1) / self.anchor_gap;
                Ok((anchors > 0).then(|| start + anchors * self.anchor_gap))
            }
            true if is_anchor_place && distance > 0 && coordinate < end => {
                Ok((distance > self.anchor_gap).then(|| coordinate - self.anchor_gap))
            }
            // The end of a record may be before its start: TileDB-VCF stores any END.
            false if is_anchor_place && (distance == 0 || coordinate < end) => {
                Ok((distance > 0).then(|| coordinate - self.anchor_gap))
            }
            _ => Err(misplaced()),
        }
    }
}

/// The contigs of a dataset of version 2 or 3, by their positions. Memory: their names, and 20 bytes for each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Contigs {
    /// The contigs, sorted by their first positions.
    contigs: Vec<Contig>,
    /// All names.
    names: Vec<u8>,
    /// The numbers of the contigs, sorted by name.
    by_name: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Contig {
    start: u32,
    length: u32,
    /// The range of its name among all names.
    name: [u32; 2],
}

/// Consecutive positions of a dataset of version 2 or 3: a contig, or a gap between contigs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContigStretch<'c> {
    /// The contig; `None` for a gap.
    pub contig: Option<&'c [u8]>,
    /// Its positions in the dataset.
    pub positions: RangeInclusive<u32>,
}

impl Contigs {
    /// Parses the metadata `contig_offsets` and `contig_lengths`.
    ///
    /// # Errors
    /// Fails if they are not lists of names and numbers, or if contigs overlap.
    pub fn parse(offsets: &[u8], lengths: &[u8]) -> Result<Self> {
        let lengths = decoded(lengths, "contig_lengths")?;
        let mut lengths = pairs(&lengths, "contig_lengths").collect::<Result<Vec<_>>>()?;
        lengths.sort_by_key(|(name, _)| *name);
        let offsets = decoded(offsets, "contig_offsets")?;
        let mut all = pairs(&offsets, "contig_offsets")
            .map(|pair| {
                let (name, start) = pair?;
                let place = lengths.binary_search_by_key(&name, |(name, _)| *name);
                let length = place.ok().and_then(|place| lengths.get(place)).map(|(_, length)| *length);
                let missing = || Error::damaged("a contig in contig_offsets and not contig_lengths");
                Ok((start, length.ok_or_else(missing)?, name))
            })
            .collect::<Result<Vec<_>>>()?;
        all.sort_by_key(|(start, length, _)| (*start, *length));
        let overlaps = |two: &[(u32, u32, &[u8])]| u64::from(two[0].0) + u64::from(two[0].1) > u64::from(two[1].0);
        if all.windows(2).any(overlaps) {
            return Err(Error::damaged("contigs that overlap, in contig_offsets"));
        }
        let too_many = |_| Error::unsupported("names of contigs of 2^32 bytes");
        let (mut contigs, mut names) = (Vec::with_capacity(all.len()), Vec::new());
        for (start, length, name) in all {
            let begin = u32::try_from(names.len()).map_err(too_many)?;
            names.extend_from_slice(name);
            contigs.push(Contig { start, length, name: [begin, u32::try_from(names.len()).map_err(too_many)?] });
        }
        let mut found = Contigs { contigs, names, by_name: Vec::new() };
        // No more than bytes of names, of which there are less than 2^32.
        let mut by_name: Vec<u32> = (0..found.contigs.len() as u32).collect();
        by_name.sort_by_key(|&number| found.contigs.get(number as usize).map(|contig| found.name(contig)));
        found.by_name = by_name;
        Ok(found)
    }

    fn name(&self, contig: &Contig) -> &[u8] {
        let [start, end] = contig.name;
        self.names.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the contig of a name.
    fn contig(&self, name: &[u8]) -> Option<&Contig> {
        let contig = |number: &u32| self.contigs.get(*number as usize);
        let before = |number: &u32| contig(number).is_some_and(|contig| self.name(contig) < name);
        let found = self.by_name.get(self.by_name.partition_point(before)).and_then(contig)?;
        (self.name(found) == name).then_some(found)
    }

    /// Returns the names of the contigs in the order of their positions.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.contigs.iter().map(|contig| self.name(contig))
    }

    /// Returns the length of a contig, if it exists.
    pub fn length(&self, name: &[u8]) -> Option<u32> {
        self.contig(name).map(|contig| contig.length)
    }

    /// Returns the contig at a position of the dataset: its name, and the position at which it begins.
    pub fn contig_at(&self, position: u32) -> Option<(&[u8], u32)> {
        let ContigStretch { contig, positions } = self.stretch_at(position);
        Some((contig?, *positions.start()))
    }

    /// Returns the contig or the gap that contains a position of the dataset.
    pub fn stretch_at(&self, position: u32) -> ContigStretch<'_> {
        let count = self.contigs.partition_point(|contig| contig.start <= position);
        let before = count.checked_sub(1).and_then(|last| self.contigs.get(last));
        // The end of the contigs so far, as none overlap: contigs without positions come first.
        let end = before.map_or(0, |contig| u64::from(contig.start) + u64::from(contig.length));
        match before {
            Some(contig) if u64::from(position) < end => {
                ContigStretch { contig: Some(self.name(contig)), positions: contig.start..=(end - 1) as u32 }
            }
            _ => {
                let next = self.contigs.get(count).map(|contig| contig.start - 1);
                ContigStretch { contig: None, positions: end as u32..=next.unwrap_or(u32::MAX) }
            }
        }
    }

    /// Converts positions on a contig to positions of the dataset, clipped to the contig; `None` if none are left, or
    /// the contig does not exist.
    pub fn positions_of(&self, name: &[u8], positions: &RangeInclusive<u32>) -> Option<RangeInclusive<u32>> {
        let contig = self.contig(name)?;
        let last = contig.length.checked_sub(1)?.min(*positions.end());
        let place = |position: u32| contig.start.checked_add(position);
        (*positions.start() <= last).then(|| Some(place(*positions.start())?..=place(last)?)).flatten()
    }
}

/// Parses the metadata `sample_ids` of versions 2 and 3: the name of each sample, and its coordinate.
///
/// # Errors
/// Fails if it is not a list of names and numbers.
pub fn sample_numbers(stored: &[u8]) -> Result<Vec<(Vec<u8>, u32)>> {
    let text = decoded(stored, "sample_ids")?;
    pairs(&text, "sample_ids").map(|pair| pair.map(|(name, number)| (name.to_vec(), number))).collect()
}

fn not_a_list(what: &str) -> Error {
    Error::damaged(format!("{what} is not a list of names and numbers in Base64"))
}

/// Decodes the text of a list of names and numbers: Base64 of pairs separated by commas.
fn decoded(stored: &[u8], what: &str) -> Result<Vec<u8>> {
    STANDARD.decode(stored).map_err(|_| not_a_list(what))
}

/// Parses pairs separated by commas, with a tab between name and number.
fn pairs<'t>(text: &'t [u8], what: &str) -> impl Iterator<Item = Result<(&'t [u8], u32)>> {
    let all = text.split(|&byte| byte == b',').filter(|_| !text.is_empty());
    all.enumerate().map(move |(place, pair)| {
        if place.is_multiple_of(PAIRS_OF_A_CHECK) {
            cancellation::check()?;
        }
        let tab = pair.iter().position(|&byte| byte == b'\t').ok_or_else(|| not_a_list(what))?;
        let number = str::from_utf8(&pair[tab + 1..]).ok().and_then(|number| number.parse().ok());
        Ok((&pair[..tab], number.ok_or_else(|| not_a_list(what))?))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        STANDARD.encode(text).into_bytes()
    }

    #[test]
    fn positions_belong_to_contigs() {
        let contigs = Contigs::parse(&encoded("b\t100,a\t0,c\t100"), &encoded("a\t100,b\t50,c\t0")).unwrap();
        assert_eq!(contigs.names().collect::<Vec<_>>(), [b"a", b"c", b"b"]);
        let stretches = |contigs: &Contigs| {
            let (mut found, mut next) = (Vec::new(), Some(0));
            while let Some(position) = next {
                let ContigStretch { contig, positions } = contigs.stretch_at(position);
                assert_eq!(contigs.contig_at(position), contig.map(|name| (name, position)));
                assert_eq!(*positions.start(), position);
                assert_eq!(contigs.stretch_at(*positions.end()).positions, positions);
                found.push((contig.map_or("", |name| str::from_utf8(name).unwrap()).to_owned(), *positions.end()));
                next = positions.end().checked_add(1);
            }
            found
        };
        let of = |all: &[(&str, u32)]| all.iter().map(|(name, end)| ((*name).to_owned(), *end)).collect::<Vec<_>>();
        assert_eq!(stretches(&contigs), of(&[("a", 99), ("b", 149), ("", u32::MAX)]));
        let apart = Contigs::parse(&encoded("b\t100,a\t5"), &encoded("a\t10,b\t50")).unwrap();
        assert_eq!(stretches(&apart), of(&[("", 4), ("a", 14), ("", 99), ("b", 149), ("", u32::MAX)]));
        let to_the_end = Contigs::parse(&encoded("a\t1"), &encoded("a\t4294967295")).unwrap();
        assert_eq!(stretches(&to_the_end), of(&[("", 0), ("a", u32::MAX)]));
        let none = Contigs::parse(b"", b"").unwrap();
        assert_eq!(stretches(&none), of(&[("", u32::MAX)]));
        assert_eq!(contigs.positions_of(b"b", &(0..=u32::MAX)), Some(100..=149));
        assert_eq!(contigs.positions_of(b"b", &(49..=60)), Some(149..=149));
        assert_eq!(contigs.positions_of(b"b", &(50..=60)), None);
        for none in [b"c", b"d"] {
            assert_eq!(contigs.positions_of(none, &(0..=5)), None);
        }
        for (offsets, lengths) in [("a\t0,b\t9", "a\t10,b\t1"), ("a\t0", "b\t1"), ("a", "a\t1"), ("a\t-1", "a\t1")] {
            assert!(Contigs::parse(&encoded(offsets), &encoded(lengths)).is_err(), "{offsets} {lengths}");
        }
        assert!(Contigs::parse(b"?", b"").is_err());
        assert!(sample_numbers(&encoded("s,\t0")).is_err());
        assert_eq!(sample_numbers(&encoded("x\t0,y z\t7")).unwrap(), [(b"x".to_vec(), 0), (b"y z".to_vec(), 7)]);
        assert!(sample_numbers(b"").unwrap().is_empty());
    }

    /// The coordinates of a record's cells, as TileDB-VCF writes them.
    fn cells(layout: &DatasetLayout, start: u32, end: u32) -> Vec<u32> {
        if layout.is_by_end() {
            let anchors = if end > start { (end - start - 1) / layout.anchor_gap } else { 0 };
            return (1..=anchors).map(|number| start + number * layout.anchor_gap).chain([end]).collect();
        }
        let mut coordinates = vec![start];
        let mut at = start;
        while end > at && end - at > layout.anchor_gap {
            at += layout.anchor_gap;
            coordinates.push(at);
        }
        coordinates
    }

    proptest! {
        #[test]
        fn each_cell_has_the_one_before(version in 2u32..=4, gap in 1u32..50, start in 0u32..1000, length in 1u32..300) {
            let layout = DatasetLayout::new(version, gap).unwrap();
            let end = start + length - 1;
            let cells = cells(&layout, start, end);
            let before = [None].into_iter().chain(cells.iter().copied().map(Some));
            for (&coordinate, before) in cells.iter().zip(before) {
                prop_assert_eq!(layout.cell_before(CellPositions { coordinate, start, end }).unwrap(), before);
            }
            for coordinate in (0..start + 400).filter(|at| !cells.contains(at)) {
                // TileDB-VCF leaves out an anchor that is at most a gap before the end; writing it would do no harm.
                let is_last = !layout.is_by_end() && coordinate > start && (coordinate - start) % gap == 0 && coordinate < end;
                let found = layout.cell_before(CellPositions { coordinate, start, end });
                prop_assert!(is_last || found.is_err(), "{}", coordinate);
            }
        }
    }

    proptest! {
        /// Each record that overlaps a region is found once, however its windows are divided for reading.
        #[test]
        fn records_of_a_region_are_found_once(
            version in 2u32..=4, gap in 1u32..60, low in 0u32..400, length in 0u32..200, first in 0u32..100, step in 1u32..90,
            records in proptest::collection::vec((0u32..500, prop_oneof![Just(1u32), 1..20u32, 1..300u32]), 0..30),
        ) {
            let layout = DatasetLayout::new(version, gap).unwrap();
            let positions = low..=low + length;
            let mut found = Vec::new();
            for window in layout.windows(&positions, first) {
                let starts = window.starts.clone();
                for start in starts.clone().step_by(step as usize) {
                    let part = PositionWindow { starts: start..=(start + step - 1).min(*starts.end()), ..window.clone() };
                    let coordinates = layout.coordinates(&part);
                    for (number, &(start, length)) in records.iter().enumerate() {
                        let end = start + length - 1;
                        for coordinate in cells(&layout, start, end).into_iter().filter(|at| coordinates.contains(at)) {
                            if layout.is_in_window(&part, CellPositions { coordinate, start, end }).unwrap() {
                                found.push((start, number));
                            }
                        }
                    }
                }
            }
            let overlaps = |start: u32, length: u32| start <= *positions.end() && start + length > low && start >= first;
            let wanted = records.iter().enumerate().filter(|(_, (start, length))| overlaps(*start, *length));
            let mut wanted: Vec<(u32, usize)> = wanted.map(|(number, (start, _))| (*start, number)).collect();
            wanted.sort();
            found.sort();
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn cells_where_their_record_has_none_are_damage() {
        for version in 2..=4 {
            let layout = DatasetLayout::new(version, 50).unwrap();
            let window = PositionWindow { starts: 0..=1000, least_end: 0, anchored_at: None };
            let error =
                layout.is_in_window(&window, CellPositions { coordinate: 151, start: 100, end: 900 }).unwrap_err();
            assert!(error.to_string().contains("151"), "{error}");
        }
    }

    #[test]
    fn only_known_versions_are_read() {
        for version in [0, 1, 5] {
            assert!(DatasetLayout::new(version, 1000).is_err());
        }
        assert!(DatasetLayout::new(4, 0).is_err());
    }
}
