//! The index of a FASTA file: where the bases of each contig are, in the format of `samtools faidx` or made of the file.
//!
//! All lines of a contig but the last have the same length, so arithmetic locates each base.
//!
//! Source: the manual page faidx(5) of htslib.

use std::ops::Range;
use std::sync::OnceLock;

use foldhash::HashMap;
use tilefs_base::content::Forward;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_threads::cancellation;

/// The longest name of a contig.
pub(super) const MAX_NAME: usize = 64 << 10;

/// The contigs of a FASTA file, and whether the file was found to have each of them where the index says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FastaIndex(HashMap<Vec<u8>, (IndexedContig, OnceLock<()>)>);

/// The place of a contig.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IndexedContig {
    /// The number of bases.
    pub length: u64,
    /// The place of the first base.
    offset: u64,
    /// The number of bases of a line, and its number of bytes: the line break has one or two.
    bases: u64,
    width: u64,
}

/// Returns the name of a contig, given its line without the first byte: the name ends at a space.
pub(super) fn first_word(line: &[u8]) -> &[u8] {
    line.split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

impl IndexedContig {
    /// Rejects a contig whose lines cannot be, or that ends after the end of the file.
    fn check(&self, file_length: u64) -> Result<()> {
        if self.length == 0 {
            return Ok(());
        }
        let line_break = self.width.checked_sub(self.bases).filter(|_| self.bases > 0);
        // A file may end without a line break.
        let least = u64::from(self.length > self.bases);
        if !line_break.is_some_and(|bytes| (least..=2).contains(&bytes)) {
            return Err(Error::damaged(format!("lines of {} bytes with {} bases", self.width, self.bases)));
        }
        let last = self.length - 1;
        let within = (last / self.bases).checked_mul(self.width).and_then(|place| place.checked_add(last % self.bases));
        let end = within.and_then(|within| within.checked_add(self.offset)?.checked_add(1));
        match end.is_some_and(|end| end <= file_length) {
            true => Ok(()),
            false => Err(Error::damaged(format!("a contig that ends after the {file_length} bytes of the FASTA file"))),
        }
    }

    /// Returns where the file has some bases of the contig.
    pub fn stored(&self, positions: Range<u64>) -> Range<u64> {
        let place = |position: u64| self.offset + position / self.bases * self.width + position % self.bases;
        place(positions.start)..place(positions.end.saturating_sub(1)) + 1
    }

    /// Returns the bases in some bytes of the file. The first byte is the base at a position.
    ///
    /// # Errors
    /// Fails if bases or line breaks are not where the index has them.
    pub fn without_line_breaks(&self, position: u64, bytes: &[u8]) -> Result<Vec<u8>> {
        let (mut bases, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
        let mut wanted = self.bases - position % self.bases;
        while !rest.is_empty() {
            let (line, behind) = rest.split_at(usize::try_from(wanted).map_or(rest.len(), |line| line.min(rest.len())));
            if let Some(other) = line.iter().find(|byte| !byte.is_ascii_alphabetic() && !b"*-".contains(byte)) {
                return Err(Error::damaged(format!("no base, but {:?}", char::from(*other))));
            }
            bases.extend_from_slice(line);
            let line_break = usize::try_from(self.width - self.bases).map_or(0, |bytes| bytes.min(behind.len()));
            let (line_break, next) = behind.split_at(line_break);
            if !behind.is_empty() && !matches!(line_break, b"\n" | b"\r\n") {
                return Err(Error::damaged("no line break where the index of the FASTA file has one"));
            }
            (rest, wanted) = (next, self.bases);
        }
        Ok(bases)
    }
}

impl FastaIndex {
    /// Returns the place of a contig, if there is one. The first time, and until it succeeds, calls `check` with it.
    ///
    /// # Errors
    /// Those of `check`.
    pub fn contig(
        &self,
        name: &[u8],
        check: impl FnOnce(IndexedContig) -> Result<()>,
    ) -> Result<Option<IndexedContig>> {
        let Some((contig, is_checked)) = self.0.get(name) else { return Ok(None) };
        if is_checked.get().is_none() {
            check(*contig)?;
            is_checked.get_or_init(|| ());
        }
        Ok(Some(*contig))
    }

    /// Parses an index of a FASTA file of a length. If several contigs have a name, the first counts.
    ///
    /// # Errors
    /// Fails for a line that does not have the name of a contig and four numbers, or has impossible ones.
    pub fn parse(text: &[u8], fasta_length: u64) -> Result<Self> {
        let mut found = FastaIndex::default();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let contig = row(line).ok_or_else(|| Error::damaged("not a contig and four numbers"));
            let sound = contig.and_then(|(name, contig)| contig.check(fasta_length).map(|()| (name, contig)));
            let (name, contig) = sound.in_field(&format!("line {}", number + 1))?;
            found.0.entry(name.to_vec()).or_insert((contig, OnceLock::new()));
        }
        Ok(found)
    }

    /// Makes the index of a FASTA file. If several contigs have a name, the first counts. Memory: the index, and a part
    /// of the file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, and for lines of different lengths in a contig.
    pub fn of_fasta(mut file: impl Forward) -> Result<Self> {
        let (mut scan, mut part) = (Scan::default(), Vec::new());
        while file.next(&mut part)? {
            cancellation::check()?;
            part.split_inclusive(|&byte| byte == b'\n').try_for_each(|piece| scan.add(piece))?;
        }
        scan.finish()
    }
}

/// Parses a line of an index.
fn row(line: &[u8]) -> Option<(&[u8], IndexedContig)> {
    let mut columns = line.split(|&byte| byte == b'\t');
    let name = columns.next()?;
    let mut number = || str::from_utf8(columns.next()?).ok()?.parse::<u64>().ok();
    let contig = IndexedContig { length: number()?, offset: number()?, bases: number()?, width: number()? };
    columns.next().is_none().then_some((name, contig))
}

/// The pass over a FASTA file that makes its index.
#[derive(Default)]
struct Scan {
    index: FastaIndex,
    /// The name and the place of the current contig.
    current: Option<(Vec<u8>, IndexedContig)>,
    /// Whether it has had a line that is shorter than the others, after which no base may follow.
    is_complete: bool,
    /// The line that is not complete yet.
    line: PartialLine,
    /// Number of lines, and of bytes, before that line.
    lines: u64,
    place: u64,
}

/// The parts of a line so far.
#[derive(Default)]
struct PartialLine {
    length: u64,
    /// Whether the line is the name of a contig, and the beginning of that name.
    name: Option<Vec<u8>>,
    /// The last byte, and whether a line break ends the line.
    last: u8,
}

impl Scan {
    /// Adds a line or a part of one, with its line break.
    fn add(&mut self, piece: &[u8]) -> Result<()> {
        let (text, has_line_break) = match piece.split_last() {
            Some((b'\n', text)) => (text, true),
            _ => (piece, false),
        };
        if self.line.length == 0 && text.first() == Some(&b'>') {
            self.line.name = Some(Vec::new());
        }
        self.line.length += text.len() as u64;
        self.line.last = text.last().copied().unwrap_or(self.line.last);
        if let Some(name) = &mut self.line.name {
            // A name ends at a space, so the rest of a long line is of no interest.
            let room = (MAX_NAME + 1).saturating_sub(name.len());
            name.extend_from_slice(text.get(..room).unwrap_or(text));
        }
        if has_line_break { self.end_line(1) } else { Ok(()) }
    }

    /// Ends the current line, whose line feed has this many bytes.
    fn end_line(&mut self, line_feed: u64) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        let width = line.length + line_feed;
        self.lines += 1;
        self.place += width;
        match line.name {
            Some(name) => self.begin(&name),
            None => {
                let carriage_return = u64::from(line.length > 0 && line.last == b'\r');
                self.add_bases(line.length - carriage_return, width)
            }
        }
    }

    /// Begins a contig, given its line.
    fn begin(&mut self, line: &[u8]) -> Result<()> {
        self.end_contig();
        let name = first_word(line.get(1..).unwrap_or_default());
        if name.len() >= MAX_NAME {
            return Err(Error::unsupported(format!("a name of {MAX_NAME} bytes")).in_field(&self.line_number()));
        }
        self.current = Some((name.to_vec(), IndexedContig { offset: self.place, ..IndexedContig::default() }));
        self.is_complete = false;
        Ok(())
    }

    /// Adds a line of bases to the contig.
    fn add_bases(&mut self, bases: u64, width: u64) -> Result<()> {
        let line_number = self.line_number();
        let Some((name, contig)) = &mut self.current else {
            return Err(Error::damaged("bases before the name of a contig").in_field(&line_number));
        };
        if bases > 0 && (self.is_complete || contig.length > 0 && bases > contig.bases) {
            let name = String::from_utf8_lossy(name);
            let reason = format!("lines of different lengths in the contig {name}, which has no index then");
            return Err(Error::damaged(reason).in_field(&line_number));
        }
        if contig.length == 0 {
            (contig.bases, contig.width) = (bases, width);
        }
        contig.length += bases;
        self.is_complete = (bases, width) != (contig.bases, contig.width) || bases == 0;
        Ok(())
    }

    fn line_number(&self) -> String {
        format!("line {}", self.lines)
    }

    fn end_contig(&mut self) {
        if let Some((name, contig)) = self.current.take() {
            self.index.0.entry(name).or_insert((contig, OnceLock::new()));
        }
    }

    fn finish(mut self) -> Result<FastaIndex> {
        if self.line.length > 0 {
            self.end_line(0)?;
        }
        self.end_contig();
        Ok(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text in parts of a few bytes.
    struct ShortReads<'b>(&'b [u8], usize);

    impl Forward for ShortReads<'_> {
        fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
            let (now, rest) = self.0.split_at(self.1.min(self.0.len()));
            *out = now.to_vec();
            self.0 = rest;
            Ok(!now.is_empty())
        }
    }

    #[test]
    fn the_index_of_a_file_is_that_of_samtools() {
        for (fasta, index) in [
            ("", ""),
            (">a\nACGT\nACGT\nAC\n", "a\t10\t3\t4\t5\n"),
            (">a b\nACGT", "a\t4\t5\t4\t4\n"),
            (">a\tb\r\nACGT\r\nAC\r\n", "a\t6\t6\t4\t6\n"),
            (">a\nAC\nA\n\n\n>b\nA\n", "a\t3\t3\t2\t3\nb\t1\t13\t1\t2\n"),
            (">\nACGT\n>a\n>b\nAC\nAC", "\t4\t2\t4\t5\na\t0\t10\t0\t0\nb\t4\t13\t2\t3\n"),
            (">a\nA\n>a\nCC\n", "a\t1\t3\t1\t2\na\t2\t8\t2\t3\n"),
        ] {
            let wanted = FastaIndex::parse(index.as_bytes(), fasta.len() as u64).unwrap();
            for at_once in [1, 2, 3, 1000] {
                let found = FastaIndex::of_fasta(ShortReads(fasta.as_bytes(), at_once)).unwrap();
                assert_eq!(found, wanted, "{fasta:?}");
            }
        }
    }

    #[test]
    fn lines_that_no_index_can_have_are_errors_with_their_place() {
        for (fasta, place) in [
            ("ACGT\n", "line 1"),
            (">a\nAC\nACG\n", "line 3"),
            (">a\nACG\nAC\nA\n", "line 4"),
            (">a\nACG\n\nA\n", "line 4"),
            (">a\n\nA\n", "line 3"),
            (">a\nACG\r\nACG\nA\n", "line 4"),
            (&format!(">{}\nA\n", "a".repeat(MAX_NAME)), "line 1"),
        ] {
            for at_once in [1, 1000] {
                let error = FastaIndex::of_fasta(ShortReads(fasta.as_bytes(), at_once)).unwrap_err();
                assert_eq!(error.place().unwrap().field.as_deref(), Some(place), "{error}");
            }
        }
        for index in ["a", "a\t1\t3\t1", "a\t1\t3\t1\t2\t3", "a\t-1\t3\t1\t2", "a\tx\t3\t1\t2", "\0\u{fffd}"] {
            let error = FastaIndex::parse(format!("b\t1\t3\t1\t2\n{index}\n").as_bytes(), 100).unwrap_err();
            assert_eq!(error.place().unwrap().field.as_deref(), Some("line 2"), "{error}");
        }
    }

    #[test]
    fn contigs_that_cannot_be_are_damage() {
        let rows = |row: &str| FastaIndex::parse(format!("a\t{row}\n").as_bytes(), 100);
        for sound in ["10\t3\t10\t10", "10\t3\t4\t5", "10\t3\t4\t6", "97\t3\t97\t98", "0\t900\t0\t0"] {
            assert!(rows(sound).is_ok(), "{sound}");
        }
        for wrong in [
            "10\t3\t0\t1",
            "10\t3\t4\t4",
            "10\t3\t4\t7",
            "10\t3\t4\t3",
            "98\t3\t98\t99",
            "10\t91\t10\t11",
            "18446744073709551615\t3\t1\t3",
            "1\t18446744073709551615\t1\t2",
        ] {
            assert!(matches!(rows(wrong), Err(Error::Damaged { .. })), "{wrong}");
        }
    }
}
