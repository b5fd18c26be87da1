//! What every test of a content checks: that any range of bytes equals that range of the whole, and that reading a range
//! ahead asks of the content's sources what reading its bytes does.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use proptest::test_runner::{Config, TestRunner};
use tilefs_format::error::Result;
use tilefs_reader::read::Output;

use super::{Column, Content};

/// All bytes of a content.
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

/// Calls `check` with ranges of so many bytes.
fn for_random_ranges(length: u64, check: impl Fn(Range<u64>)) {
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    runner
        .run(&(0..=length, 0..=length), |(a, b)| {
            check(a.min(b)..a.max(b));
            Ok(())
        })
        .expect("any range passes");
}

/// The contents that one under test is made of, and what it asks of them.
#[derive(Default)]
pub struct Sources {
    count: usize,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A range of a source, by its number, and whether it was read ahead.
#[derive(Debug, Clone)]
struct Asked {
    source: usize,
    range: Range<u64>,
    is_ahead: bool,
    is_index: bool,
}

/// A source that notes what is asked of it.
struct Watched {
    of: Arc<dyn Content>,
    source: usize,
    is_index: bool,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Sources {
    /// A source whose bytes nobody needs who reads ahead.
    pub fn values(&mut self, of: Arc<dyn Content>) -> Arc<dyn Content> {
        self.watch(of, false)
    }

    /// One that tells what else is needed: it is truly read even by who reads ahead.
    pub fn index(&mut self, of: Arc<dyn Content>) -> Arc<dyn Content> {
        self.watch(of, true)
    }

    /// A column of sources, of which only the offsets are truly read ahead.
    pub fn column(&mut self, column: Column) -> Column {
        let values = self.values(column.values);
        let offsets = column.offsets.map(|offsets| self.index(offsets));
        let validity = column.validity.map(|validity| self.values(validity));
        Column { values, offsets, validity, ..column }
    }

    fn watch(&mut self, of: Arc<dyn Content>, is_index: bool) -> Arc<dyn Content> {
        self.count += 1;
        Arc::new(Watched { of, source: self.count, is_index, asked: self.asked.clone() })
    }
}

impl Content for Watched {
    fn len(&self) -> u64 {
        self.of.len()
    }

    fn read(&self, offset: u64, mut out: Output<'_>) -> Result<()> {
        let (range, is_ahead) = (offset..offset + out.len(), out.wanted().is_none());
        self.asked.lock().unwrap().push(Asked { source: self.source, range, is_ahead, is_index: self.is_index });
        self.of.read(offset, out)
    }
}

/// A source, by its number, and whether it is an index.
type Source = (usize, bool);

/// What a content asks of its sources for a range: for each source the bytes of it.
///
/// `make` makes the content anew, so that nothing is known from reads before.
pub fn asked_for(
    make: &dyn Fn(&mut Sources) -> Arc<dyn Content>,
    range: Range<u64>,
    is_ahead: bool,
) -> Vec<(Source, Range<u64>)> {
    let mut sources = Sources::default();
    let content = make(&mut sources);
    sources.asked.lock().unwrap().clear();
    let length = range.end - range.start;
    match is_ahead {
        true => content.read(range.start, Output::Ahead(length)).expect("a range can be read ahead"),
        false => content.read_at(range.start, &mut vec![0; length as usize]).expect("a range can be read"),
    }
    let mut asked = sources.asked.lock().unwrap().clone();
    let truly = asked.iter().find(|asked| is_ahead && !asked.is_ahead && !asked.is_index);
    assert!(truly.is_none(), "bytes that nobody needs: {truly:?}");
    asked.sort_by_key(|asked| (asked.source, asked.range.start));
    let mut merged: Vec<(Source, Range<u64>)> = Vec::new();
    for Asked { source, range, is_index, .. } in asked.into_iter().filter(|asked| !asked.range.is_empty()) {
        match merged.last_mut() {
            Some((last, known)) if *last == (source, is_index) && range.start <= known.end => {
                known.end = known.end.max(range.end)
            }
            _ => merged.push(((source, is_index), range)),
        }
    }
    merged
}

/// Checks that reading random ranges ahead asks of the sources for the bytes that reading them does, for all of them
/// and no others.
pub fn assert_reads_ahead(make: impl Fn(&mut Sources) -> Arc<dyn Content>) {
    let length = make(&mut Sources::default()).len();
    assert!(!asked_for(&make, 0..length, false).is_empty(), "nothing is watched");
    for_random_ranges(length, |range| {
        assert_eq!(asked_for(&make, range.clone(), true), asked_for(&make, range.clone(), false), "bytes {range:?}");
    });
}

/// Bytes of an index that may be read in vain: the offsets of 512 rows.
const FARTHER: u64 = 512 * 8;

/// As [`assert_reads_ahead`], for a content that knows only every `spacing` bytes or so where it is in its sources:
/// reading ahead asks for all that reading asks for, and for nothing that is farther than that from the range. An index
/// may be read somewhat farther, to find out how much of it is needed.
pub fn assert_reads_ahead_within(spacing: u64, make: impl Fn(&mut Sources) -> Arc<dyn Content>) {
    let length = make(&mut Sources::default()).len();
    let is_within = |some: &[(Source, Range<u64>)], all: &[(Source, Range<u64>)], farther: u64| {
        let holds = |(source, range): &(Source, Range<u64>)| {
            let farther = if source.1 { farther } else { 0 };
            all.iter().any(|(known, all)| {
                known == source && all.start <= range.start && range.end <= all.end.saturating_add(farther)
            })
        };
        some.iter().all(holds)
    };
    for_random_ranges(length, |range| {
        let (read, ahead) = (asked_for(&make, range.clone(), false), asked_for(&make, range.clone(), true));
        assert!(is_within(&read, &ahead, FARTHER), "bytes {range:?}: of {read:?} only {ahead:?} was read ahead");
        let wide = range.start.saturating_sub(spacing)..range.end.saturating_add(spacing).min(length);
        let read = asked_for(&make, wide, false);
        assert!(is_within(&ahead, &read, 0), "bytes {range:?}: {ahead:?} is more than near {read:?}");
    });
}
