//! Converts a line of VCF to a record of BCF.
//!
//! A record has two lengths: that of the part that all samples share, up to INFO, and that of the samples' values. The
//! record begins with fixed fields: the numbers of the contig and the position (from 0), the length on the contig, the
//! quality, and the numbers of alleles, INFO fields, FORMAT fields and samples.

use std::fmt::{self, Display};

use tilefs_format::error::{Error, Locate, Result};

use super::super::fields::{MISSING_FLOAT, MISSING_INTEGER};
use super::super::known_names::KnownNames;
use super::super::record::{END, GENOTYPE};
use super::format::{FormatColumns, Vectors};
use super::typed::{LEAST_INTEGER, append_floats, append_integers, append_nothing, append_texts};
use super::{BcfHeader, Kind, format};

/// Bytes of the fields between the two lengths of a record and its identifier.
const FIXED: usize = 24;

/// Any number of this many decimal digits has 64 bits at most, and a float of 32 bits represents it exactly.
const SURE_DIGITS: usize = 18;
const DIGITS_OF_A_FLOAT: usize = 7;

/// The text of a missing value, in all columns.
pub(super) const MISSING: &[u8] = b".";

/// The columns of a line.
struct Line<'a> {
    contig: &'a [u8],
    position: &'a [u8],
    id: &'a [u8],
    reference: &'a [u8],
    others: &'a [u8],
    quality: &'a [u8],
    filters: &'a [u8],
    info: &'a [u8],
    format: &'a [u8],
    /// The columns of the samples, with tabs between them.
    samples: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut columns = line.splitn(10, |&byte| byte == b'\t');
        Some(Line {
            contig: columns.next()?,
            position: columns.next()?,
            id: columns.next()?,
            reference: columns.next()?,
            others: columns.next()?,
            quality: columns.next()?,
            filters: columns.next()?,
            info: columns.next()?,
            format: columns.next().unwrap_or(MISSING),
            samples: columns.next(),
        })
    }

    fn sample_count(&self) -> usize {
        self.samples.map_or(0, |samples| samples.iter().filter(|&&byte| byte == b'\t').count() + 1)
    }

    /// Adds the column and the record to an error.
    fn locate<T>(&self, column: impl Display, result: Result<T>) -> Result<T> {
        result.in_file(RecordOf { column, line: self })
    }
}

/// Displays a column of the record that a line is.
struct RecordOf<'l, 'a, C> {
    column: C,
    line: &'l Line<'a>,
}

impl<C: Display> Display for RecordOf<'_, '_, C> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [contig, position] = [self.line.contig, self.line.position].map(String::from_utf8_lossy);
        write!(out, "{} of the record at {contig}:{position}", self.column)
    }
}

/// Displays a column with fields, and the name of one of them.
struct FieldOf<'a>(&'static str, &'a [u8]);

impl Display for FieldOf<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.0, String::from_utf8_lossy(self.1))
    }
}

/// The parts of a record whose sizes are only known after writing them.
#[derive(Default)]
struct Parts {
    shared: Vec<u8>,
    of_samples: Vec<u8>,
    /// The number of positions.
    length: i32,
    alleles: usize,
    info: usize,
    format: usize,
}

/// Converts lines of a VCF file to records of its BCF file.
///
/// Memory: a few times the longest line.
pub struct BcfRecords<'h> {
    header: &'h BcfHeader,
    parts: Parts,
    contig: KnownNames<i32>,
    filters: KnownNames<i32>,
    info: KnownNames<(i32, Kind)>,
    format: KnownNames<(i32, Kind)>,
    integers: Vec<i32>,
    floats: Vec<u32>,
    vectors: Vectors,
}

impl<'h> BcfRecords<'h> {
    /// Prepares to convert lines of a file with this header.
    pub fn new(header: &'h BcfHeader) -> Self {
        BcfRecords {
            header,
            parts: Parts::default(),
            contig: KnownNames::default(),
            filters: KnownNames::default(),
            info: KnownNames::default(),
            format: KnownNames::default(),
            integers: Vec::new(),
            floats: Vec::new(),
            vectors: Vectors::default(),
        }
    }

    /// Appends the records for some lines of the file.
    ///
    /// # Errors
    /// Fails for names that the header does not define, for values that do not match the type in the header, and for
    /// values that BCF cannot represent: positions beyond 2^31, integers beyond 32 bits, 2^16 alleles, records of 2^31
    /// bytes. The error names the record.
    pub fn append(&mut self, lines: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let mut lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.try_for_each(|line| self.append_line(line, out))
    }

    fn append_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let header = self.header;
        let line = Line::of(line).filter(|line| line.sample_count() == header.samples());
        let line = line.ok_or_else(|| Error::internal("a line of VCF with another number of columns"))?;
        let contig = self.contig.get(0, line.contig, || header.contig(line.contig));
        let contig = line.locate("CHROM", contig)?;
        let position = number(line.position).and_then(|position| i32::try_from(position.checked_sub(1)?).ok());
        let too_far = || Error::unsupported("a position beyond 2^31 in BCF; the .vcf has it");
        let position = line.locate("POS", position.ok_or_else(too_far))?;
        let quality = line.locate("QUAL", float(line.quality).ok_or_else(|| wrong("quality", line.quality)))?;

        let parts = &mut self.parts;
        (parts.alleles, parts.info, parts.format) = (0, 0, 0);
        parts.shared.clear();
        parts.of_samples.clear();
        append_text(Some(line.id).filter(|id| *id != MISSING).unwrap_or_default(), &mut parts.shared);
        let others = line.others.split(|&byte| byte == b',').filter(|_| line.others != MISSING);
        for allele in [line.reference].into_iter().chain(others) {
            parts.alleles += 1;
            append_text(allele, &mut parts.shared);
        }
        parts.length = i32::try_from(line.reference.len()).unwrap_or(i32::MAX);
        line.locate("FILTER", self.append_filters(line.filters))?;
        for field in line.info.split(|&byte| byte == b';').filter(|_| line.info != MISSING) {
            let name = field.split(|&byte| byte == b'=').next().unwrap_or_default();
            let value = field.get(name.len() + 1..);
            line.locate(FieldOf("INFO", name), self.append_info(name, value, position))?;
        }
        let columns = FormatColumns::new(line.format, line.samples, header.samples());
        for (place, (name, texts)) in columns.each().enumerate() {
            self.parts.format += 1;
            line.locate(FieldOf("FORMAT", name), self.append_format(place, name, texts))?;
        }
        let appended = append_parts(contig, position, quality, header.samples(), &self.parts, out);
        line.locate("line", appended)
    }

    fn append_filters(&mut self, filters: &[u8]) -> Result<()> {
        let (header, known) = (self.header, &mut self.filters);
        self.integers.clear();
        for (place, name) in filters.split(|&byte| byte == b';').filter(|_| filters != MISSING).enumerate() {
            self.integers.push(known.get(place, name, || header.filter(name))?);
        }
        match self.integers.is_empty() {
            true => append_nothing(&mut self.parts.shared),
            false => append_integers(self.integers.len(), &self.integers, &mut self.parts.shared),
        }
        Ok(())
    }

    /// Appends an INFO field. An `END` after the position also determines the record's number of positions.
    fn append_info(&mut self, name: &[u8], value: Option<&[u8]>, position: i32) -> Result<()> {
        let (header, parts) = (self.header, &mut self.parts);
        let (number, kind) = self.info.get(parts.info, name, || header.info(name))?;
        parts.info += 1;
        append_number(number, &mut parts.shared);
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            append_nothing(&mut parts.shared);
            return Ok(());
        };
        match kind {
            Kind::Text | Kind::Flag => append_text(value, &mut parts.shared),
            Kind::Integer => {
                self.integers.clear();
                list(value, integer, &mut self.integers)?;
                append_integers(self.integers.len(), &self.integers, &mut parts.shared);
                if let ([end], END) = (self.integers.as_slice(), name)
                    && *end > position
                {
                    parts.length = end - position;
                }
            }
            Kind::Float => {
                self.floats.clear();
                list(value, float, &mut self.floats)?;
                append_floats(self.floats.len(), &self.floats, &mut parts.shared);
            }
        }
        Ok(())
    }

    /// Appends a FORMAT field, given its text for each sample.
    fn append_format(&mut self, place: usize, name: &[u8], texts: &[&[u8]]) -> Result<()> {
        let (header, out) = (self.header, &mut self.parts.of_samples);
        let (number, kind) = self.format.get(place, name, || header.format(name))?;
        append_number(number, out);
        match (name, kind) {
            (GENOTYPE, _) => self.vectors.append_genotypes(texts, &mut self.integers, out),
            (_, Kind::Integer) => self.vectors.append_integers(texts, &mut self.integers, out),
            (_, Kind::Float) => self.vectors.append_floats(texts, &mut self.floats, out),
            (_, Kind::Text | Kind::Flag) => format::append_texts(texts, out),
        }
    }
}

/// Appends a record of which all parts are written.
fn append_parts(
    contig: i32,
    position: i32,
    quality: u32,
    samples: usize,
    parts: &Parts,
    out: &mut Vec<u8>,
) -> Result<()> {
    let too_many = |what: &str| Error::unsupported(format!("a record of BCF with so many {what}"));
    let alleles = u16::try_from(parts.alleles).map_err(|_| too_many("alleles"))?;
    let info = u16::try_from(parts.info).map_err(|_| too_many("INFO fields"))?;
    let format = u8::try_from(parts.format).map_err(|_| too_many("FORMAT fields"))?;
    for length in [FIXED + parts.shared.len(), parts.of_samples.len()] {
        let length = i32::try_from(length).map_err(|_| too_many("bytes"))?;
        out.extend_from_slice(&length.to_le_bytes());
    }
    for number in [contig, position, parts.length] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&quality.to_le_bytes());
    out.extend_from_slice(&info.to_le_bytes());
    out.extend_from_slice(&alleles.to_le_bytes());
    // The header has checked that there are fewer than 2^24 samples.
    out.extend_from_slice(&(samples as u32 | u32::from(format) << 24).to_le_bytes());
    out.extend_from_slice(&parts.shared);
    out.extend_from_slice(&parts.of_samples);
    Ok(())
}

/// Appends the number of a name, as a typed integer.
fn append_number(number: i32, out: &mut Vec<u8>) {
    append_integers(1, &[number], out);
}

fn append_text(text: &[u8], out: &mut Vec<u8>) {
    append_texts(text.len(), [text].into_iter(), out);
}

/// Appends the values of a list to others.
pub(super) fn list<T>(values: &[u8], parse: impl Fn(&[u8]) -> Option<T>, all: &mut Vec<T>) -> Result<()> {
    for text in values.split(|&byte| byte == b',') {
        all.push(parse(text).ok_or_else(|| wrong("value", text))?);
    }
    Ok(())
}

/// Returns an integer, or the number that stands for a missing value.
pub(super) fn integer(text: &[u8]) -> Option<i32> {
    match text {
        MISSING => Some(MISSING_INTEGER),
        _ => number(text).and_then(|number| i32::try_from(number).ok()).filter(|&number| number >= LEAST_INTEGER),
    }
}

/// Returns the bits of a float, or the bits that stand for a missing value.
pub(super) fn float(text: &[u8]) -> Option<u32> {
    match text {
        MISSING => Some(MISSING_FLOAT),
        // Floats represent these exactly.
        _ if text.len() <= DIGITS_OF_A_FLOAT && text.iter().all(u8::is_ascii_digit) => {
            number(text).map(|number| (number as f32).to_bits())
        }
        _ => str::from_utf8(text).ok()?.parse::<f32>().ok().map(f32::to_bits),
    }
}

/// Returns a number.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    match text.len() {
        // Most numbers are short and have no sign.
        1..=SURE_DIGITS if text.iter().all(u8::is_ascii_digit) => {
            Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
        }
        _ => str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Returns the error for a value that BCF cannot represent in a field of its type.
pub(super) fn wrong(what: &str, text: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(text.get(..40).unwrap_or(text));
    Error::unsupported(format!("the {what} {shown} in BCF, for a field of its type; the .vcf has it"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_lines, header, lines};
    use super::*;

    fn file(samples: usize, lines: &str) -> Result<Vec<u8>> {
        let header = header(samples);
        let mut file = header.bytes().to_vec();
        BcfRecords::new(&header).append(lines.as_bytes(), &mut file).map(|()| file)
    }

    proptest! {
        #[test]
        fn records_have_what_their_lines_have(
            (samples, text) in (0usize..4).prop_flat_map(|samples| (Just(samples), any_lines(samples))),
        ) {
            prop_assert_eq!(lines(&file(samples, &text).unwrap()), text);
        }

        #[test]
        fn any_line_is_a_record_or_an_error(
            text in any_lines(2), at: prop::sample::Index, other in prop::sample::select(b"\t\n:;,=./|0-9eA\0\xff".to_vec()),
        ) {
            let mut altered = text.into_bytes();
            if !altered.is_empty() {
                let at = at.index(altered.len());
                altered[at] = other;
            }
            let mut out = Vec::new();
            if BcfRecords::new(&header(2)).append(&altered, &mut out).is_ok() {
                let mut rest = out.as_slice();
                while let [a, b, c, d, e, f, g, h, behind @ ..] = rest {
                    let length = u32::from_le_bytes([*a, *b, *c, *d]) + u32::from_le_bytes([*e, *f, *g, *h]);
                    rest = &behind[length as usize..];
                }
                prop_assert!(rest.is_empty());
            }
        }
    }

    #[test]
    fn a_record_has_the_bytes_of_the_specification() {
        let line = "chr2\t101\trs1\tA\tC,<X>\t30.5\tq10;PASS\tB;I=5,300;END=200\tGT:I:S\t0|1:.:ab\t1:7,-1:.\n";
        let file = file(2, line).unwrap();
        let record = &file[header(2).bytes().len()..];
        let (shared, of_samples) = record[8..].split_at(24 + 12 + 3 + 3 + 7 + 5);
        assert_eq!(record[..8], [shared.len() as u8, 0, 0, 0, of_samples.len() as u8, 0, 0, 0]);
        assert_eq!(shared[..24], [1, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0xf4, 0x41, 3, 0, 3, 0, 2, 0, 0, 3]);
        let info = [&[0x11, 7, 0x00, 0x11, 3, 0x22, 5, 0, 44, 1][..], &[0x11, 6, 0x12, 200, 0]].concat();
        assert_eq!(shared[24..], [&b"\x37rs1\x17A\x17C\x37<X>"[..], &[0x21, 1, 0], &info].concat());
        let values = [&[0x11, 8, 0x21, 2, 5, 4, 0x81][..], &[0x11, 3, 0x21, 0x80, 0x81, 7, 0xff]].concat();
        assert_eq!(of_samples, [&values[..], &[0x11, 5, 0x27], b"ab.\0"].concat());
    }

    #[test]
    fn what_bcf_cannot_hold_is_an_error_that_names_the_record() {
        let line = |position: &str, others: &str, info: &str, format: &str, sample: &str| {
            format!("1\t{position}\t.\tA\t{others}\t.\t.\t{info}\t{format}\t{sample}\n")
        };
        assert!(file(1, &line("5", ".", "I=1", "I", "2")).is_ok());
        let alleles = vec!["C"; 65_535].join(",");
        let fields = vec!["B"; 65_536].join(";");
        for (wrong, column) in [
            (line("2147483649", ".", ".", ".", "."), "POS"),
            (line("5", &alleles, ".", ".", "."), "line"),
            (line("5", ".", &fields, ".", "."), "line"),
            (line("5", ".", "X=1", ".", "."), "INFO X"),
            (line("5", ".", "I=1,x", ".", "."), "INFO I"),
            (line("5", ".", "I=2147483648", ".", "."), "INFO I"),
            (line("5", ".", "I=-2147483641", ".", "."), "INFO I"),
            (line("5", ".", "F=1;F=a", ".", "."), "INFO F"),
            (line("5", ".", ".", "B", "1"), "FORMAT B"),
            (line("5", ".", ".", "S:I", "a:1.5"), "FORMAT I"),
            (line("5", ".", ".", "GT", "0/x"), "FORMAT GT"),
            ("1\t5\t.\tA\t.\t.\tnone\t.\t.\t.\n".to_owned(), "FILTER"),
            ("1\t5\t.\tA\t.\tx\t.\t.\t.\t.\n".to_owned(), "QUAL"),
            ("7\t5\t.\tA\t.\t.\t.\t.\t.\t.\n".to_owned(), "CHROM"),
        ] {
            let error = file(1, &wrong).unwrap_err();
            let place = error.place().unwrap().file.clone().unwrap_or_default();
            assert!(place.starts_with(&format!("{column} of the record at ")), "{wrong:.80} {error}");
        }
        assert!(file(1, "1\t5\t.\tA\n").is_err() && file(2, &line("5", ".", ".", ".", ".")).is_err());
    }
}
