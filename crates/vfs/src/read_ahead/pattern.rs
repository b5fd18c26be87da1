//! Detects the access pattern of an open file: forward, backward or strided.

use std::ops::Range;

/// Approximate size of prefetched ranges in a file without bands.
pub const PIECE: u64 = 1 << 20;

/// Initial prefetch distance; it doubles up to the limit.
const FIRST_WINDOW: u64 = PIECE;

/// Requests of one reader overtake each other on their way through several threads. So a read that starts this much
/// before or after the expected offset still belongs to the sequence, as long as the holes are filled later. Linux
/// keeps up to 1 MiB in flight per reader.
const TOLERANCE: u64 = 2 << 20;

/// Bytes that Linux reads ahead of a reader at most, by default. So a part of a file is wanted only if more of it is
/// read, unless the reader began with it.
const KERNEL_AHEAD: u64 = 1 << 20;

/// Bytes of a sequence before prefetching starts, so that reading a header prefetches nothing.
const START_AFTER: u64 = 256 << 10;

/// Number of reads at equal distances that make a strided pattern.
const STRIDES: u64 = 4;

/// Maximum number of strides to prefetch.
const MOST_STRIDES: u64 = 32;

/// Access pattern of one open file.
#[derive(Debug, Default)]
pub struct Pattern {
    forward: Sequence,
    /// Backward reads, in offsets counted from the end of the file.
    backward: Sequence,
    strides: Strides,
    kind: Option<PatternKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternKind {
    Forward,
    Backward,
    Strided,
}

/// The effect of a read on prefetching.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Ranges to prefetch, next first.
    pub ranges: Vec<Range<u64>>,
    /// Whether earlier expectations are obsolete.
    pub supersedes: bool,
}

/// Properties of a file that affect prefetching.
pub struct Shape<'a> {
    pub length: u64,
    /// Returns the band of a byte: the surrounding part of the file that is decoded from the same tiles.
    pub band: &'a dyn Fn(u64) -> Range<u64>,
    /// Returns the end of the part of the file around a byte; a reader may want one part only.
    pub end_of_part: &'a dyn Fn(u64) -> u64,
}

impl Pattern {
    /// Records a read before it is served. Returns the ranges to prefetch, up to `most` bytes ahead.
    pub fn note(&mut self, offset: u64, length: u64, file: &Shape<'_>, most: u64) -> Expected {
        let end = offset.saturating_add(length).min(file.length);
        let start = offset.min(end);
        let mirrored = file.length - end..file.length - start;
        let is_forward = self.forward.take(start..end);
        let is_backward = self.backward.take(mirrored);
        let is_strided = self.strides.take(start, end - start);
        let goes_on = match self.kind {
            Some(PatternKind::Forward) => is_forward,
            Some(PatternKind::Backward) => is_backward,
            Some(PatternKind::Strided) => is_strided,
            None => true,
        };
        if !goes_on {
            self.kind = None;
        }
        let mut ranges = Vec::new();
        if matches!(self.kind, None | Some(PatternKind::Forward)) {
            let part = (file.end_of_part)(end.saturating_sub(1)).min(file.length);
            ranges = self.forward.wanted(part, most, |at| (file.band)(at).end);
            self.kind = self.kind.or((!ranges.is_empty()).then_some(PatternKind::Forward));
        }
        if matches!(self.kind, None | Some(PatternKind::Backward)) {
            let band_end = |at: u64| file.length - (file.band)(file.length - 1 - at).start;
            let mirrored = self.backward.wanted(file.length, most, band_end);
            ranges = mirrored.into_iter().map(|range| file.length - range.end..file.length - range.start).collect();
            self.kind = self.kind.or((!ranges.is_empty()).then_some(PatternKind::Backward));
        }
        if matches!(self.kind, None | Some(PatternKind::Strided)) {
            ranges = self.strides.wanted(file.length, most);
            self.kind = self.kind.or((!ranges.is_empty()).then_some(PatternKind::Strided));
        }
        Expected { ranges, supersedes: !goes_on }
    }

    /// Assumes that the whole file is read from the front. Returns the first ranges to prefetch, up to `most` bytes.
    pub fn expect_all(&mut self, file: &Shape<'_>, most: u64) -> Vec<Range<u64>> {
        self.kind = Some(PatternKind::Forward);
        self.forward = Sequence { reads: 2, bytes: START_AFTER, window: most, advances: true, ..Sequence::default() };
        self.forward.wanted((file.end_of_part)(0).min(file.length), most, |at| (file.band)(at).end)
    }

    /// Returns whether a pattern was detected.
    pub fn is_running(&self) -> bool {
        self.kind.is_some()
    }

    /// Returns the prefetch distance.
    #[cfg(test)]
    pub fn window(&self) -> u64 {
        self.forward.window.max(self.backward.window)
    }

    /// Resets the pattern.
    pub fn end(&mut self) {
        *self = Pattern::default();
    }
}

/// A series of consecutive reads.
#[derive(Debug, Default)]
struct Sequence {
    /// Number of reads in this sequence, and their total bytes.
    reads: u64,
    bytes: u64,
    /// Start of the sequence.
    start: u64,
    /// Expected offset of the next read.
    next: u64,
    /// Everything before this offset was read or queued for prefetching.
    ahead: u64,
    /// The end of the part of the file that was last read; 0 before any.
    part_end: u64,
    /// The offset from which that part is wanted.
    wanted_from: u64,
    /// Current prefetch distance; 0 before the first prefetch.
    window: u64,
    /// Whether the last read advanced `next`.
    advances: bool,
}

impl Sequence {
    /// Adds a read to the sequence, or starts a new sequence with it. Returns whether the read belongs to the old
    /// sequence; strided reads do not, because they leave holes.
    fn take(&mut self, read: Range<u64>) -> bool {
        let (length, near) = (read.end - read.start, self.is_near(&read));
        let (start, next) = (self.start.min(read.start), self.next.max(read.end));
        let bytes = self.bytes.saturating_add(length);
        let belongs = self.reads > 0 && near && (next - start).saturating_sub(bytes) <= TOLERANCE;
        *self = if belongs {
            let advances = read.end > self.next;
            let ahead = self.ahead.max(next);
            Sequence { reads: self.reads + 1, bytes, start, next, ahead, advances, ..*self }
        } else {
            let Range { start, end: next } = read;
            Sequence { reads: 1, bytes: length, start, next, ahead: next, advances: true, ..Sequence::default() }
        };
        belongs
    }

    fn is_near(&self, read: &Range<u64>) -> bool {
        read.start.saturating_add(TOLERANCE) >= self.next && read.start <= self.next.saturating_add(TOLERANCE)
    }

    /// Returns the ranges to prefetch, none beyond `last`, the end of the part that is read, and grows the window.
    /// Returns nothing until half of the window was consumed, so that ranges come in batches of whole bands. `band_end`
    /// returns the end of a byte's band.
    fn wanted(&mut self, last: u64, most: u64, band_end: impl Fn(u64) -> u64) -> Vec<Range<u64>> {
        if last > self.part_end {
            self.wanted_from = if self.part_end > 0 { self.part_end.saturating_add(KERNEL_AHEAD) } else { 0 };
            self.part_end = last;
        }
        if self.reads < 2 || self.bytes < START_AFTER || !self.advances || self.next < self.wanted_from {
            return Vec::new();
        }
        let window = if self.window == 0 { FIRST_WINDOW } else { (self.window * 2).min(most) };
        let goal = self.next.saturating_add(window).min(last);
        if self.ahead - self.next > self.window / 2 || goal <= self.ahead {
            return Vec::new();
        }
        let mut ranges = Vec::new();
        let mut at = self.ahead;
        while at < goal {
            // Whole bands, so that two workers seldom share a chunk, unless a band exceeds the window.
            let band = band_end(at).max(at + 1);
            let piece = (at - at % PIECE).saturating_add(PIECE);
            let end = if band - at > window.max(PIECE) { piece } else { band }.min(last);
            if end > goal {
                break;
            }
            ranges.push(at..end);
            at = end;
        }
        self.window = window;
        self.ahead = at;
        ranges
    }
}

/// Reads at equal distances.
#[derive(Debug, Default)]
struct Strides {
    offset: u64,
    length: u64,
    step: i128,
    /// Number of reads with this step.
    reads: u64,
    /// Number of strides after the last read that are already queued.
    ahead: u64,
}

impl Strides {
    /// Records a read; returns whether it was expected.
    fn take(&mut self, offset: u64, length: u64) -> bool {
        let step = i128::from(offset) - i128::from(self.offset);
        let goes_on = step == self.step && length == self.length && step.unsigned_abs() > u128::from(length);
        let (reads, ahead) = if goes_on { (self.reads + 1, self.ahead.saturating_sub(1)) } else { (0, 0) };
        *self = Strides { offset, length, step, reads, ahead };
        goes_on
    }

    fn wanted(&mut self, file_length: u64, most: u64) -> Vec<Range<u64>> {
        let count = (most / self.length.max(1)).clamp(1, MOST_STRIDES);
        if self.reads + 2 < STRIDES || self.ahead > count / 2 {
            return Vec::new();
        }
        let place = |stride: u64| u64::try_from(i128::from(self.offset) + self.step * i128::from(stride)).ok();
        let ranges = (self.ahead + 1..=count)
            .map_while(place)
            .take_while(|start| *start < file_length)
            .map(|start| start..start.saturating_add(self.length).min(file_length))
            .collect();
        self.ahead = count;
        ranges
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one range")]
mod tests {
    use super::*;

    const WINDOW: u64 = 16 << 20;
    const BLOCK: u64 = 128 << 10;

    /// Bands of a MiB, as in a file without tiles.
    fn pieces(at: u64) -> Range<u64> {
        at - at % PIECE..at - at % PIECE + PIECE
    }

    fn file(length: u64) -> Shape<'static> {
        Shape { length, band: &pieces, end_of_part: &|_| u64::MAX }
    }

    #[test]
    fn forward_to_the_end_and_never_beyond() {
        let length = 50 * PIECE + 12_345;
        let (mut pattern, mut all) = (Pattern::default(), Vec::new());
        for offset in (0..length).step_by(BLOCK as usize) {
            let expected = pattern.note(offset, BLOCK.min(length - offset), &file(length), WINDOW);
            assert!(!expected.supersedes);
            assert!(expected.ranges.iter().all(|range| range.end <= (offset + BLOCK + WINDOW).min(length)));
            all.extend(expected.ranges);
        }
        assert_eq!(all.first().map(|range| range.start), Some(2 * BLOCK));
        assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start), "{all:?}");
        assert_eq!(all.last().map(|range| range.end), Some(length));
    }

    #[test]
    fn backward_to_the_start() {
        let length = 50 * PIECE + 12_345;
        let (mut pattern, mut all) = (Pattern::default(), Vec::new());
        let mut end = length;
        while end > 0 {
            let start = end.saturating_sub(BLOCK);
            all.extend(pattern.note(start, end - start, &file(length), WINDOW).ranges);
            end = start;
        }
        assert_eq!(all.first().map(|range| range.end), Some(length - 2 * BLOCK));
        assert!(all.windows(2).all(|pair| pair[1].end == pair[0].start), "{all:?}");
        assert_eq!(all.last().map(|range| range.start), Some(0));
    }

    #[test]
    fn strides_either_way() {
        for step in [5 * PIECE as i64, -5 * PIECE as i64] {
            let length = 1 << 40;
            let (mut pattern, mut all) = (Pattern::default(), Vec::new());
            let place = |number: i64| ((1i64 << 39) + number * step) as u64;
            for number in 0..100 {
                all.extend(pattern.note(place(number), 4096, &file(length), WINDOW).ranges);
            }
            let expected: Vec<_> = (4..).map(place).map(|start| start..start + 4096).take(all.len()).collect();
            assert!(all.len() > 96, "{all:?}");
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn here_and_there_is_no_pattern() {
        let mut pattern = Pattern::default();
        for step in 0..1000_u64 {
            let offset = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40);
            assert_eq!(pattern.note(offset, 4096, &file(1 << 40), WINDOW).ranges, []);
        }
        assert!(!pattern.is_running());
    }

    #[test]
    fn reordered_requests_stay_one_sequence() {
        let (mut pattern, file) = (Pattern::default(), file(1 << 30));
        for pair in 0..200_u64 {
            assert!(!pattern.note((2 * pair + 1) * BLOCK, BLOCK, &file, WINDOW).supersedes);
            assert!(!pattern.note(2 * pair * BLOCK, BLOCK, &file, WINDOW).supersedes);
        }
        assert_eq!(pattern.forward.window, WINDOW);
        assert!(pattern.is_running());
    }

    #[test]
    fn a_seek_starts_a_new_sequence() {
        let (mut pattern, file) = (Pattern::default(), file(1 << 30));
        for block in 0..64 {
            pattern.note(block * PIECE, PIECE, &file, WINDOW);
        }
        assert!(pattern.note(500 * PIECE, PIECE, &file, WINDOW).supersedes);
        assert_eq!(pattern.note(501 * PIECE, PIECE, &file, WINDOW).ranges, [502 * PIECE..503 * PIECE]);
    }

    #[test]
    fn bands_are_read_whole() {
        let band = |at: u64| at - at % (3 * PIECE)..at - at % (3 * PIECE) + 3 * PIECE;
        let file = Shape { length: 300 * PIECE, band: &band, end_of_part: &|_| u64::MAX };
        let (mut pattern, mut all) = (Pattern::default(), Vec::new());
        for block in 0..300 {
            all.extend(pattern.note(block * PIECE, PIECE, &file, WINDOW).ranges);
        }
        assert!(all.iter().skip(3).all(|range| *range == band(range.start)), "{all:?}");
    }

    #[test]
    fn nothing_is_expected_of_another_part_until_it_is_read() {
        let part = 40 * PIECE + 54_321;
        let file = Shape { length: 3 * part, band: &pieces, end_of_part: &|at| (at / part + 1) * part };
        let (mut pattern, mut all) = (Pattern::default(), Vec::new());
        for offset in (0..2 * part).step_by(BLOCK as usize) {
            let expected = pattern.note(offset, BLOCK, &file, WINDOW);
            assert!(!expected.supersedes);
            let end = (file.end_of_part)(offset + BLOCK - 1);
            assert!(expected.ranges.iter().all(|range| range.end <= end), "{:?} at {offset}", expected.ranges);
            all.extend(expected.ranges);
        }
        // After the start of each part, everything was expected.
        let bytes: u64 = all.iter().map(|range| range.end - range.start).sum();
        assert!(bytes + 2 * BLOCK + 2 * PIECE + KERNEL_AHEAD >= 2 * part, "{bytes} of {}", 2 * part);
        let in_second = all.iter().filter(|range| range.start >= part).map(|range| range.start).min();
        assert!(in_second.is_some_and(|first| first >= part + KERNEL_AHEAD), "what Linux reads ahead is not wanted");
        let whole = Pattern::default().expect_all(&file, 1 << 40);
        assert_eq!(whole.last().map(|range| range.end), Some(part));
    }
}
