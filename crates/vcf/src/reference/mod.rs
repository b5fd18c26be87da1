//! The bases of a reference genome: a local file in FASTA, plain or in BGZF, in which an index locates each contig.
//!
//! The index is the file `FASTA.fai` that `samtools faidx` makes; if there is none, it is made of one pass over the
//! FASTA, in memory.

mod index;
mod stored;

use std::ffi::OsString;
use std::fmt::{self, Debug};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};
use tilefs_threads::cancellation;
use tilefs_threads::single_flight::SingleFlight;

use index::{FastaIndex, IndexedContig, MAX_NAME, first_word};
use stored::{StoredText, opened};

/// Number of bases that are read together.
const WINDOW: u64 = 1 << 16;

/// Number of bytes before a contig that are read first, to find its name.
const LINE: u64 = 1 << 10;

/// Maximum size of an index. The one of a genome with millions of contigs has some hundred MiB.
const MAX_INDEX: u64 = 256 << 20;

/// A reference genome. Memory: the place of each contig, once a base was read.
pub struct ReferenceGenome {
    path: PathBuf,
    text: StoredText,
    index: SingleFlight<FastaIndex>,
}

impl Debug for ReferenceGenome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "reference genome {}", self.path.display())
    }
}

impl Recorded for ReferenceGenome {
    fn record(&self, recorder: &mut Recorder) {
        let Self { path, text, index: _ } = self;
        let index = match self.index_path().metadata() {
            Ok(index) => Ok(Some(FileState::of(&index))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(error)),
        };
        match (text.metadata().map(|text| FileState::of(&text)), index) {
            (Ok(text), Ok(index)) => recorder.add::<Self>((path, text, index)),
            _ => recorder.add_unknown(),
        }
    }
}

/// What tells a file from what it was before it was written or replaced.
#[derive(Hash)]
struct FileState {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn of(file: &fs::Metadata) -> Self {
        FileState {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl ReferenceGenome {
    /// Opens a file in FASTA. Its index is read or made with the first base.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, is compressed in another way, or does not begin as FASTA.
    pub fn open(path: &Path) -> Result<Self> {
        let refused = |reason: String| Error::usage(format!("cannot read {}: {reason}", path.display()));
        let (text, first) = StoredText::open(path).map_err(|error| refused(reason_of(&error)))?;
        if first != Some(b'>') {
            return Err(refused("not a FASTA file, which begins with >".to_owned()));
        }
        let path = std::path::absolute(path).map_err(|error| refused(error.to_string()))?;
        Ok(ReferenceGenome { path, text, index: SingleFlight::new() })
    }

    /// Prepares to read bases.
    pub fn bases(&self) -> ReferenceBases<'_> {
        ReferenceBases { genome: self, contig: Vec::new(), start: 0, bases: Vec::new() }
    }

    /// Returns the place of a contig, if there is one.
    fn contig(&self, name: &[u8]) -> Result<Option<IndexedContig>> {
        let index = self.index.get_or_retry(|| self.read_index())?;
        index.contig(name, |contig| self.check(name, contig)).in_file(self.path.display())
    }

    /// Rejects a contig that does not follow the line `>NAME`, or does not end with a line: the index would be that of
    /// another file, or of what this one was before.
    fn check(&self, name: &[u8], contig: IndexedContig) -> Result<()> {
        if contig.length == 0 {
            return Ok(());
        }
        let stored = contig.stored(0..contig.length);
        let mut behind = [b'\n'];
        if stored.end != self.text.length()? {
            self.text.read_at(stored.end, &mut behind)?;
        }
        let named = self.line_before(stored.start)?;
        let found = named.strip_prefix(b">").map(first_word);
        match found == Some(name) && b"\r\n".contains(&behind[0]) {
            true => Ok(()),
            false => {
                let reason = format!("an index that does not fit the file, at {}", String::from_utf8_lossy(name));
                Err(Error::damaged(reason).at(stored.start))
            }
        }
    }

    /// Returns the beginning of the line that ends before a byte of the file, as far as it may have the name of a contig;
    /// nothing if no line ends there.
    fn line_before(&self, end: u64) -> Result<Vec<u8>> {
        let Some(mut start) = end.checked_sub(1) else { return Ok(Vec::new()) };
        let mut last = [0];
        self.text.read_at(start, &mut last)?;
        let (mut line, mut at_once, mut is_whole) = (Vec::new(), LINE, last != *b"\n");
        while start > 0 && !is_whole {
            cancellation::check()?;
            let mut part = vec![0; start.min(at_once) as usize];
            start -= part.len() as u64;
            self.text.read_at(start, &mut part)?;
            let line_break = part.iter().rposition(|byte| *byte == b'\n');
            is_whole = line_break.is_some();
            let mut part = part.split_off(line_break.map_or(0, |place| place + 1));
            part.extend(line);
            part.truncate(1 + MAX_NAME);
            (line, at_once) = (part, WINDOW);
        }
        Ok(line)
    }

    fn index_path(&self) -> PathBuf {
        let mut path = OsString::from(&self.path);
        path.push(".fai");
        PathBuf::from(path)
    }

    fn read_index(&self) -> Result<FastaIndex> {
        let path = self.index_path();
        let length = self.text.length().in_file(self.path.display())?;
        match opened(&path) {
            Ok(file) => parsed(file, length).in_file(path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                FastaIndex::of_fasta(self.text.in_sequence()?).in_file(self.path.display())
            }
            Err(error) => Err(Error::io(error)).in_file(path.display()),
        }
    }

    /// Returns the bases of a contig from a position on: at most [`WINDOW`], up to a multiple of it.
    fn window(&self, name: &[u8], position: u64) -> Result<Vec<u8>> {
        let lacks = |why: &str| {
            let shown = String::from_utf8_lossy(name);
            let reason = format!("no base at {shown}:{} in the reference, {why} {shown}", position + 1);
            Error::missing(reason).in_file(self.path.display())
        };
        let contig = self.contig(name)?.ok_or_else(|| lacks("which has no contig"))?;
        if position >= contig.length {
            return Err(lacks(&format!("which has {} bases of", contig.length)));
        }
        let end = (position / WINDOW + 1).saturating_mul(WINDOW).min(contig.length);
        let stored = contig.stored(position..end);
        let read = || {
            let mut bytes = vec![0; usize::try_from(stored.end - stored.start).unwrap_or(usize::MAX)];
            self.text.read_at(stored.start, &mut bytes)?;
            contig.without_line_breaks(position, &bytes)
        };
        read().map_err(|error| {
            let error = error.in_file(self.path.display()).at(stored.start);
            error.in_field(&format!("bases of {} from {}", String::from_utf8_lossy(name), position + 1))
        })
    }
}

fn parsed(index: File, fasta_length: u64) -> Result<FastaIndex> {
    let mut text = Vec::new();
    index.take(MAX_INDEX + 1).read_to_end(&mut text).map_err(Error::io)?;
    match text.len() as u64 > MAX_INDEX {
        true => Err(Error::unsupported(format!("an index of more than {MAX_INDEX} bytes"))),
        false => FastaIndex::parse(&text, fasta_length),
    }
}

/// Returns the reason of an error, for a message that names the file itself.
fn reason_of(error: &Error) -> String {
    match error {
        Error::Io { reason, .. } | Error::Damaged { reason, .. } | Error::Unsupported { what: reason, .. } => {
            reason.clone()
        }
        other => other.to_string(),
    }
}

/// Reads bases one by one. Memory: a window of bases.
pub struct ReferenceBases<'g> {
    genome: &'g ReferenceGenome,
    contig: Vec<u8>,
    /// The position of the first of the bases.
    start: u64,
    bases: Vec<u8>,
}

impl ReferenceBases<'_> {
    /// Returns the base at a position of a contig, counted from 0, as the FASTA has it: in upper or lower case, and any
    /// of the codes of IUPAC.
    ///
    /// # Errors
    /// Fails if the FASTA or its index cannot be read or is malformed, and if it has no such contig or position. The
    /// error names the file, the contig and the position.
    pub fn at(&mut self, contig: &[u8], position: u32) -> Result<u8> {
        let position = u64::from(position);
        let place = position.checked_sub(self.start).filter(|_| self.contig == contig);
        let known = place.and_then(|place| self.bases.get(usize::try_from(place).ok()?));
        if let Some(base) = known {
            return Ok(*base);
        }
        self.bases = self.genome.window(contig, position)?;
        self.start = position;
        self.contig = contig.to_vec();
        self.bases.first().copied().ok_or_else(|| Error::internal("a window without bases"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::stored::testing::compressed;
    use super::*;

    /// Writes a FASTA file, and an index if one is given.
    fn genome(fasta: &[u8], index: Option<&str>) -> (tempfile::TempDir, Result<ReferenceGenome>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ref.fa");
        std::fs::write(&path, fasta).unwrap();
        if let Some(index) = index {
            std::fs::write(folder.path().join("ref.fa.fai"), index).unwrap();
        }
        let opened = ReferenceGenome::open(&path);
        (folder, opened)
    }

    /// Returns the bases of a contig up to the first error.
    fn bases(genome: &ReferenceGenome, contig: &str) -> (String, Error) {
        let (mut found, mut reader) = (String::new(), genome.bases());
        for position in 0.. {
            match reader.at(contig.as_bytes(), position) {
                Ok(base) => found.push(char::from(base)),
                Err(error) => return (found, error),
            }
        }
        unreachable!("a contig without end")
    }

    #[test]
    fn bases_are_those_of_the_file() {
        let fasta = b">1 the first\nACGTN\nacgtn\nRY\n>2\tx\r\nAC\r\nGT\r\nA\r\n>3\n\n>4\nA*-";
        let index = "1\t12\t13\t5\t6\n2\t5\t34\t2\t4\n3\t0\t48\t0\t1\n4\t3\t52\t3\t4\n";
        for (index, is_compressed) in [(None, false), (Some(index), false), (None, true), (Some(index), true)] {
            let stored = if is_compressed { compressed(fasta, 11) } else { fasta.to_vec() };
            let (folder, genome) = genome(&stored, index);
            let genome = genome.unwrap();
            for (contig, wanted) in [("1", "ACGTNacgtnRY"), ("2", "ACGTA"), ("4", "A*-"), ("3", "")] {
                let (found, error) = bases(&genome, contig);
                assert_eq!(found, wanted, "{index:?}");
                let end = format!(
                    "no base at {contig}:{0} in the reference, which has {1} bases of {contig}",
                    wanted.len() + 1,
                    wanted.len()
                );
                assert!(error.to_string().contains(&end), "{error}");
                assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
            }
            let error = bases(&genome, "chr1").1.to_string();
            let wanted = "no base at chr1:1 in the reference, which has no contig chr1";
            assert!(error.contains(wanted) && error.contains("ref.fa"), "{error}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        for (bytes, reason) in [
            (&b""[..], "begins with >"),
            (b"@a\nACGT\n+\n!!!!\n", "begins with >"),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", "bgzip"),
        ] {
            let error = genome(bytes, None).1.unwrap_err();
            assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains(reason), "{error}");
        }
        for path in ["/dev/zero", "/nonexistent/ref.fa", "/"] {
            let error = ReferenceGenome::open(Path::new(path)).unwrap_err();
            assert!(matches!(error, Error::Usage { .. }) && error.to_string().contains(path), "{error}");
        }
    }

    #[test]
    fn an_index_that_does_not_fit_is_an_error_with_its_place() {
        let fasta = b">1\nACGT\nACGT\n>2\nAC,T\n";
        for (index, reason) in [
            ("1\t8\t2\t4\t5\n", "does not fit the file, at 1"),
            ("1\t8\t3\t8\t9\n", "does not fit the file, at 1"),
            ("2\t4\t16\t4\t5\n1\t9\t3\t4\t5\n", "does not fit the file, at 1"),
            ("1\t7\t3\t3\t4\n", "field bases of 1 from 1"),
            ("1\t7\t3\t3\t4\n", "no line break"),
            ("1\t9\t3\t9\t10\n", "no base, but '\\n'"),
            ("1\t1\t0\t1\t2\n", "does not fit the file, at 1"),
            ("1\t4\t16\t4\t5\n", "does not fit the file, at 1"),
            ("1\t4\t8\t4\t5\n", "does not fit the file, at 1"),
        ] {
            let (_folder, genome) = genome(fasta, Some(index));
            let (_, error) = bases(&genome.unwrap(), "1");
            assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains(reason), "{index} {error}");
            assert!(error.to_string().contains("ref.fa") && error.to_string().contains("offset"), "{error}");
        }
        let (_folder, genome) = genome(fasta, None);
        assert_eq!(bases(&genome.unwrap(), "2").0, "");
    }

    proptest! {
        /// Windows have what the lines of the file have, with an index and without, at any positions in any order.
        #[test]
        fn windows_are_the_lines_of_the_file(
            contigs in prop::collection::vec(("[a-c]{1,3}", "[A-Za-z*-]{0,9}", 1usize..30, 0usize..20_000), 1..4),
            is_windows: bool, is_compressed: bool, at in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
        ) {
            let line_break = if is_windows { "\r\n" } else { "\n" };
            let (mut fasta, mut index, mut wanted) = (String::new(), String::new(), Vec::new());
            for (number, (name, unit, width, repeated)) in contigs.iter().enumerate() {
                let (name, sequence) = (format!("{name}{number}"), unit.repeat(*repeated));
                fasta += &format!(">{name} described{line_break}");
                let place = fasta.len();
                for line in sequence.as_bytes().chunks(*width) {
                    fasta += &format!("{}{line_break}", str::from_utf8(line).unwrap());
                }
                let bases = sequence.len().min(*width);
                index += &format!("{name}\t{}\t{place}\t{bases}\t{}\n", sequence.len(), bases + line_break.len());
                wanted.push((name, sequence.into_bytes()));
            }
            for index in [None, Some(index.as_str())] {
                let stored =
                    if is_compressed { compressed(fasta.as_bytes(), 0xff00) } else { fasta.clone().into_bytes() };
                let (_folder, genome) = genome(&stored, index);
                let genome = genome.unwrap();
                let mut reader = genome.bases();
                for (contig, position) in &at {
                    let (name, sequence) = contig.get(&wanted);
                    let position = position.index(sequence.len() + 2);
                    let found = reader.at(name.as_bytes(), position as u32);
                    prop_assert_eq!(found.ok(), sequence.get(position).copied());
                }
            }
        }

        /// An index of the same contigs in another order, or of contigs with other names, gives no base of another contig.
        #[test]
        fn an_index_of_other_contigs_gives_no_other_bases(
            names in prop::sample::subsequence(vec!["a", "ab", "b", "b2", "chr1", "chr2"], 2..6),
            order in prop::collection::vec(any::<prop::sample::Index>(), 6), described in "( [a-z>]{0,30}|)",
            long in prop::sample::select(vec![0usize, 3000, 200_000]), is_compressed: bool,
        ) {
            let described = format!("{described}{}", if described.is_empty() { String::new() } else { "x".repeat(long) });
            // Contigs of the same length: all offsets stay the same if names of the same length change places.
            let fasta: String =
                names.iter().zip("ACGTN".chars()).map(|(name, base)| format!(">{name}{described}\n{base}{base}\n")).collect();
            let mut indexed = names.clone();
            order.iter().enumerate().for_each(|(one, other)| { let count = indexed.len(); indexed.swap(one % count, other.index(count)); });
            let (mut index, mut place) = (String::new(), 0);
            for (name, indexed) in names.iter().zip(&indexed) {
                place += 1 + name.len() + described.len() + 1;
                index += &format!("{indexed}\t2\t{place}\t2\t3\n");
                place += 3;
            }
            let stored = if is_compressed { compressed(fasta.as_bytes(), 0xff00) } else { fasta.into_bytes() };
            let (_folder, genome) = genome(&stored, Some(&index));
            let genome = genome.unwrap();
            for ((name, indexed), base) in names.iter().zip(&indexed).zip("ACGTN".bytes()) {
                let found = genome.bases().at(name.as_bytes(), 1).ok();
                prop_assert_eq!(found, (name == indexed).then_some(base), "{}", name);
            }
        }

        /// Any index leads to bases of the file or to an error.
        #[test]
        fn any_index_gives_bases_or_an_error(
            rows in prop::collection::vec(("[12]", prop::array::uniform4(prop_oneof![0u64..20, any::<u64>()])), 0..3),
            noise in prop::collection::vec(any::<u8>(), 0..40), at in prop_oneof![0u32..20, any::<u32>()],
        ) {
            let row = |(name, [a, b, c, d]): (String, [u64; 4])| format!("{name}\t{a}\t{b}\t{c}\t{d}\n");
            let rows: String = rows.into_iter().map(row).collect();
            for index in [rows, String::from_utf8_lossy(&noise).into_owned()] {
                let (_folder, genome) = genome(b">1\nACGT\nAC\n>2\nNN\n", Some(&index));
                if let Ok(base) = genome.unwrap().bases().at(b"1", at) {
                    prop_assert!(b"ACGTN".contains(&base));
                }
            }
        }
    }
}
