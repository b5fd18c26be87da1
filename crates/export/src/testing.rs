//! Checks for the tests of every content: any range of bytes equals that range of the whole, and prefetching a range
//! requests from the content's sources what reading its bytes does.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::ops::Range;
use std::sync::{Arc, Mutex};

use proptest::test_runner::{Config, TestRunner};
use tilefs_base::error::Result;
use tilefs_base::output::Output;

use crate::Column;
#[cfg(test)]
use crate::column::computed::{CellKind, Cells};
use tilefs_base::content::Content;

/// Reads all bytes of a content.
pub fn read_all(content: &dyn Content) -> Vec<u8> {
    let mut bytes = vec![0xaa; usize::try_from(content.len()).expect("tests read small files")];
    content.read_at(0, &mut bytes).expect("the whole can be read");
    bytes
}

/// Checks random ranges, the empty ones at both ends, and each single byte of a small file.
pub fn assert_random_access(content: &dyn Content) {
    let whole = read_all(content);
    let check = |start: usize, end: usize| {
        let mut part = vec![0x55; end - start];
        content.read_at(start as u64, &mut part).expect("a part can be read");
        assert!(part == whole[start..end], "bytes {start}..{end} differ from the whole");
    };
    check(0, 0);
    check(whole.len(), whole.len());
    for at in 0..whole.len().min(300) {
        check(at, at + 1);
    }
    for_random_ranges(content.len(), |range| check(range.start as usize, range.end as usize));
    assert!(content.read_at(content.len(), &mut [0]).is_err(), "reading past the end must fail");
    assert!(content.read(content.len(), Output::Ahead(1)).is_err(), "reading ahead past the end must fail");
}

/// The elements of the list of a row: some lists are null, some empty, and some elements are null.
#[cfg(test)]
pub fn elements_of_row(row: usize) -> Option<Vec<Option<usize>>> {
    let elements = (0..row % 4).map(|element| (!(row + element).is_multiple_of(3)).then_some(row * 10 + element));
    (row % 5 != 3).then(|| elements.collect())
}

/// Lists of 32-bit numbers, or of texts of up to four digits and a letter.
#[cfg(test)]
pub fn lists_of_nullable(name: &str, rows: usize, are_texts: bool) -> Column {
    let kind = if are_texts { CellKind::Texts } else { CellKind::Numbers(4) };
    let mut cells = Cells::new(kind);
    for row in 0..rows {
        match elements_of_row(row) {
            None => cells.push_null(),
            Some(elements) if are_texts => {
                cells.push_list(elements.into_iter().map(|element| element.map(|number| format!("ß{number}"))));
            }
            Some(elements) => {
                cells
                    .push_list(elements.into_iter().map(|element| element.map(|number| (number as i32).to_le_bytes())));
            }
        }
    }
    cells.into_column(name)
}

/// Calls `check` with random ranges of a file of this length.
fn for_random_ranges(length: u64, check: impl Fn(Range<u64>)) {
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner
        .run(&(0..=length, 0..=length), |(a, b)| {
            check(a.min(b)..a.max(b));
            Ok(())
        })
        .expect("any range passes");
}

/// The sources of a content under test, and the ranges it requests from them.
#[derive(Default)]
pub struct Sources {
    count: usize,
    requests: Arc<Mutex<Vec<Requested>>>,
}

/// A range of a source, by its number, and whether it was prefetched.
#[derive(Debug, Clone)]
struct Requested {
    source: usize,
    range: Range<u64>,
    is_ahead: bool,
    is_index: bool,
}

/// A source that records requests.
struct RecordedSource {
    of: Arc<dyn Content>,
    source: usize,
    is_index: bool,
    requests: Arc<Mutex<Vec<Requested>>>,
}

impl Sources {
    /// Adds a source whose bytes prefetching does not need.
    pub fn values(&mut self, of: Arc<dyn Content>) -> Arc<dyn Content> {
        self.record(of, false)
    }

    /// Adds a source that locates other bytes: even prefetching reads it into memory.
    pub fn index(&mut self, of: Arc<dyn Content>) -> Arc<dyn Content> {
        self.record(of, true)
    }

    /// Adds a column of sources; prefetching reads only its offsets into memory.
    pub fn column(&mut self, column: Column) -> Column {
        let values = self.values(column.values);
        let offsets = column.offsets.map(|offsets| self.index(offsets.content()).into());
        let validity = column.validity.map(|validity| self.values(validity.content()).into());
        Column { values, offsets, validity, ..column }
    }

    fn record(&mut self, of: Arc<dyn Content>, is_index: bool) -> Arc<dyn Content> {
        self.count += 1;
        Arc::new(RecordedSource { of, source: self.count, is_index, requests: self.requests.clone() })
    }
}

impl Content for RecordedSource {
    fn len(&self) -> u64 {
        self.of.len()
    }

    fn fill(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        let (range, is_ahead) = (offset..offset + out.len(), out.wanted().is_none());
        self.requests.lock().unwrap().push(Requested { source: self.source, range, is_ahead, is_index: self.is_index });
        self.of.read(offset, out)
    }
}

/// The number of a source, and whether it is an index.
type SourceId = (usize, bool);

/// Returns the bytes that a content requests from each of its sources for a range.
///
/// `make` makes a new content, so that earlier reads have no effect.
pub fn requested_ranges(
    make: &dyn Fn(&mut Sources) -> Arc<dyn Content>,
    range: Range<u64>,
    is_ahead: bool,
) -> Vec<(SourceId, Range<u64>)> {
    let mut sources = Sources::default();
    let content = make(&mut sources);
    sources.requests.lock().unwrap().clear();
    let length = range.end - range.start;
    match is_ahead {
        true => content.read(range.start, Output::Ahead(length)).expect("a range can be read ahead"),
        false => content.read_at(range.start, &mut vec![0; length as usize]).expect("a range can be read"),
    }
    let mut requests = sources.requests.lock().unwrap().clone();
    let truly = requests.iter().find(|request| is_ahead && !request.is_ahead && !request.is_index);
    assert!(truly.is_none(), "values that prefetching must not read: {truly:?}");
    requests.sort_by_key(|request| (request.source, request.range.start));
    let mut merged: Vec<(SourceId, Range<u64>)> = Vec::new();
    for Requested { source, range, is_index, .. } in requests.into_iter().filter(|request| !request.range.is_empty()) {
        match merged.last_mut() {
            Some((last, known)) if *last == (source, is_index) && range.start <= known.end => {
                known.end = known.end.max(range.end)
            }
            _ => merged.push(((source, is_index), range)),
        }
    }
    merged
}

/// Checks that prefetching random ranges requests exactly the bytes that reading them does.
pub fn assert_reads_ahead(make: impl Fn(&mut Sources) -> Arc<dyn Content>) {
    let length = make(&mut Sources::default()).len();
    assert!(!requested_ranges(&make, 0..length, false).is_empty(), "no source is recorded");
    for_random_ranges(length, |range| {
        assert_eq!(
            requested_ranges(&make, range.clone(), true),
            requested_ranges(&make, range.clone(), false),
            "bytes {range:?}"
        );
    });
}

/// Number of bytes of an index that may be read in vain: the offsets of 512 rows.
const FARTHER: u64 = 512 * 8;

/// Like [`assert_reads_ahead`], for a content that can locate its sources only about every `spacing` bytes: prefetching
/// requests everything that reading does, and nothing farther than `spacing` from the range. It may read an index
/// somewhat farther, to find out how much of it is needed.
pub fn assert_reads_ahead_within(spacing: u64, make: impl Fn(&mut Sources) -> Arc<dyn Content>) {
    let length = make(&mut Sources::default()).len();
    let is_within = |some: &[(SourceId, Range<u64>)], all: &[(SourceId, Range<u64>)], farther: u64| {
        let holds = |(source, range): &(SourceId, Range<u64>)| {
            let farther = if source.1 { farther } else { 0 };
            all.iter().any(|(known, all)| {
                known == source && all.start <= range.start && range.end <= all.end.saturating_add(farther)
            })
        };
        some.iter().all(holds)
    };
    for_random_ranges(length, |range| {
        let (read, ahead) =
            (requested_ranges(&make, range.clone(), false), requested_ranges(&make, range.clone(), true));
        assert!(is_within(&read, &ahead, FARTHER), "bytes {range:?}: of {read:?} only {ahead:?} was read ahead");
        let wide = range.start.saturating_sub(spacing)..range.end.saturating_add(spacing).min(length);
        let read = requested_ranges(&make, wide, false);
        assert!(is_within(&ahead, &read, 0), "bytes {range:?}: {ahead:?} is more than near {read:?}");
    });
}
