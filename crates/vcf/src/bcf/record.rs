//! Converts a line to a record of BCF.
//!
//! A record begins with two lengths: of the part that all samples share, up to INFO, and of the samples' values. Fixed
//! fields follow: the contig's number, the position (from 0), the length on the contig, the quality, and the counts of
//! alleles, INFO fields, FORMAT fields and samples.

use std::fmt::{self, Display};

use tilefs_base::error::{Error, Locate, Result};

use super::format::{FieldOfSamples, Vectors};
use super::typed::{append_floats, append_integers, append_nothing, append_texts};
use super::value::{canonical_float, push_floats, push_integers};
use super::{BcfHeader, BcfValueType};
use crate::known_names::KnownNames;
use crate::line::{Line, LineValue, MISSING, SampleFields};
use crate::record::{END, GENOTYPE};

/// Bytes of the fields between the two lengths of a record and its identifier.
const FIXED: usize = 24;

/// A column with fields and the name of one field, for display.
struct FieldOf<'a>(&'static str, &'a [u8]);

impl Display for FieldOf<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.0, String::from_utf8_lossy(self.1))
    }
}

/// The parts of a record whose sizes are only known after writing them.
#[derive(Default)]
struct RecordParts {
    shared: Vec<u8>,
    of_samples: Vec<u8>,
    /// The number of positions.
    length: i32,
    alleles: usize,
    info: usize,
    format: usize,
}

/// A converter of the lines of a file to records of BCF.
///
/// Memory: a few times the longest line.
pub struct BcfRecords<'h> {
    header: &'h BcfHeader,
    parts: RecordParts,
    contig: KnownNames<i32>,
    filters: KnownNames<i32>,
    info: KnownNames<(i32, BcfValueType)>,
    format: KnownNames<(i32, BcfValueType)>,
    integers: Vec<i32>,
    floats: Vec<u32>,
    text: Vec<u8>,
    vectors: Vectors,
}

impl<'h> BcfRecords<'h> {
    /// Prepares to convert lines of a file with this header.
    pub fn new(header: &'h BcfHeader) -> Self {
        BcfRecords {
            header,
            parts: RecordParts::default(),
            contig: KnownNames::default(),
            filters: KnownNames::default(),
            info: KnownNames::default(),
            format: KnownNames::default(),
            integers: Vec::new(),
            floats: Vec::new(),
            text: Vec::new(),
            vectors: Vectors::default(),
        }
    }

    /// Appends the record of a line.
    ///
    /// # Errors
    /// Fails for names that the header does not define, for values that do not match the type in the header, and for
    /// values that BCF cannot represent: positions beyond 2^31, integers beyond 32 bits, 2^16 alleles, records of 2^31
    /// bytes. The error names the record.
    pub fn append(&mut self, line: &Line<'_>, out: &mut Vec<u8>) -> Result<()> {
        let header = self.header;
        let contig = self.contig.get(0, line.contig, || header.contig(line.contig)).in_file(line.place("CHROM"))?;
        let too_far = |_| Error::unsupported("a position beyond 2^31 in BCF; the .vcf has it");
        let position = i32::try_from(line.start).map_err(too_far).in_file(line.place("POS"))?;
        let parts = &mut self.parts;
        (parts.info, parts.format) = (0, 0);
        parts.shared.clear();
        parts.of_samples.clear();
        append_text(&line.ids.join(&b';'), &mut parts.shared);
        parts.append_alleles(&line.alleles);
        self.append_filters(&line.filters).in_file(line.place("FILTER"))?;
        for (name, value) in &line.info {
            self.append_info(name, value, position).in_file(line.place(FieldOf("INFO", name)))?;
        }
        if let Some(samples) = &line.samples {
            for (place, name) in samples.names().into_iter().enumerate() {
                self.parts.format += 1;
                let appended = self.append_format(place, name, &**samples);
                appended.in_file(line.place(FieldOf("FORMAT", name)))?;
            }
        }
        let quality = canonical_float(line.quality);
        append_parts(contig, position, quality, header.samples(), &self.parts, out).in_file(line.place("line"))
    }

    fn append_filters(&mut self, filters: &[&[u8]]) -> Result<()> {
        let (header, known) = (self.header, &mut self.filters);
        self.integers.clear();
        for (place, name) in filters.iter().filter(|_| filters != [MISSING]).enumerate() {
            self.integers.push(known.get(place, name, || header.filter(name))?);
        }
        match self.integers.is_empty() {
            true => append_nothing(&mut self.parts.shared),
            false => append_integers(self.integers.len(), &self.integers, &mut self.parts.shared),
        }
        Ok(())
    }

    /// Appends an INFO field. An `END` after the position also determines the record's number of positions.
    fn append_info(&mut self, name: &[u8], value: &LineValue<'_>, position: i32) -> Result<()> {
        let (header, parts) = (self.header, &mut self.parts);
        let (number, kind) = self.info.get(parts.info, name, || header.info(name))?;
        parts.info += 1;
        append_number(number, &mut parts.shared);
        let ends = b";";
        match kind {
            BcfValueType::Text | BcfValueType::Flag => {
                self.text.clear();
                match value.append(ends, &mut self.text)? {
                    true => append_text(&self.text, &mut parts.shared),
                    false => append_nothing(&mut parts.shared),
                }
            }
            BcfValueType::Integer => {
                self.integers.clear();
                push_integers(value, ends, &mut self.integers, &mut self.text)?;
                match self.integers.as_slice() {
                    [] => append_nothing(&mut parts.shared),
                    integers => append_integers(integers.len(), integers, &mut parts.shared),
                }
                if let ([end], END) = (self.integers.as_slice(), name)
                    && *end > position
                {
                    parts.length = end - position;
                }
            }
            BcfValueType::Float => {
                self.floats.clear();
                push_floats(value, ends, &mut self.floats, &mut self.text)?;
                match self.floats.as_slice() {
                    [] => append_nothing(&mut parts.shared),
                    floats => append_floats(floats.len(), floats, &mut parts.shared),
                }
            }
        }
        Ok(())
    }

    /// Appends a FORMAT field.
    fn append_format(&mut self, field: usize, name: &[u8], samples: &dyn SampleFields) -> Result<()> {
        let (header, out) = (self.header, &mut self.parts.of_samples);
        let (number, kind) = self.format.get(field, name, || header.format(name))?;
        append_number(number, out);
        let field = FieldOfSamples { samples, number: field, count: header.samples() };
        match (name, kind) {
            (GENOTYPE, _) => self.vectors.append_genotypes(&field, out),
            (_, BcfValueType::Integer) => self.vectors.append_integers(&field, out),
            (_, BcfValueType::Float) => self.vectors.append_floats(&field, out),
            (_, BcfValueType::Text | BcfValueType::Flag) => self.vectors.append_texts(&field, out),
        }
    }
}

impl RecordParts {
    /// Appends the alleles. The reference allele determines the number of positions, unless an `END` does.
    fn append_alleles(&mut self, alleles: &[&[u8]]) {
        let shown = |allele: &&'_ [u8]| if allele.is_empty() { MISSING.len() } else { allele.len() };
        // VCF has a dot if there is no other allele.
        let alleles = match alleles {
            [reference, MISSING] => std::slice::from_ref(reference),
            _ => alleles,
        };
        for allele in alleles {
            append_text(if allele.is_empty() { MISSING } else { allele }, &mut self.shared);
        }
        self.alleles = alleles.len();
        self.length = alleles.first().and_then(|reference| i32::try_from(shown(reference)).ok()).unwrap_or(i32::MAX);
    }
}

/// Appends a record, all parts of which have been written.
fn append_parts(
    contig: i32,
    position: i32,
    quality: u32,
    samples: usize,
    parts: &RecordParts,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_lines, append_lines, header, lines};
    use super::*;
    use crate::fields::testing::{FieldExample, stored};
    use crate::{Header, Record};

    /// Returns stored values of any type, also of another one than their field has.
    fn any_stored() -> impl Strategy<Value = FieldExample> {
        let integer = prop_oneof![(-3i32..300), any::<i32>(), (i32::MIN..i32::MIN + 9)];
        let float = prop_oneof![(0u32..90).prop_map(|value| (value as f32 / 2.0).to_bits()), any::<u32>()];
        prop_oneof![
            Just(FieldExample::Flag),
            proptest::collection::vec(integer, 0..4).prop_map(FieldExample::Integers),
            proptest::collection::vec(float, 0..4).prop_map(FieldExample::Floats),
            "[0-9.,/|a]{0,6}".prop_map(|text| FieldExample::Text(text.into_bytes())),
        ]
    }

    fn file(samples: usize, lines: &str) -> Result<Vec<u8>> {
        let header = header(samples);
        let mut file = header.bytes().to_vec();
        append_lines(&header, lines.as_bytes(), &mut file).map(|()| file)
    }

    proptest! {
        #[test]
        fn records_have_what_their_lines_have(
            (samples, text) in (0usize..4).prop_flat_map(|samples| (Just(samples), any_lines(samples))),
        ) {
            prop_assert_eq!(lines(&file(samples, &text).unwrap()), text);
        }

        /// Stored values become the record that their text in VCF describes.
        #[test]
        fn stored_values_are_those_of_their_text(
            info in proptest::collection::vec(("[IFSB]|END", any_stored()), 0..5),
            format in proptest::collection::vec((prop_oneof!["[IFS]", Just("GT".to_owned())], any_stored()), 0..5),
            quality: u32, start: u32, end: u32,
        ) {
            let [info, format] = [&info, &format].map(|fields| {
                stored(&fields.iter().map(|(name, values)| (name.as_str(), values.clone())).collect::<Vec<_>>())
            });
            let record = Record {
                contig: b"chr2", start, end, quality, alleles: b"AC,<X>\0", id: b"rs1\0", filters: &[0; 4],
                info: &info, format: &format, extracted_info: &[], extracted_format: &[],
            };
            let definitions = Header::parse(b"##fileformat=VCFv4.2\n##INFO=<ID=END>\n").unwrap();
            let header = header(1);
            let (mut text, mut of_text, mut of_record) = (Vec::new(), Vec::new(), Vec::new());
            let line = record.line(&definitions, true).and_then(|line| line.append(&mut text).map(|()| line));
            let Ok(line) = line else { return Ok(()) };
            let wanted = append_lines(&header, &text, &mut of_text);
            match BcfRecords::new(&header).append(&line, &mut of_record) {
                Ok(()) => prop_assert!(wanted.is_ok() && of_record == of_text),
                Err(error) => prop_assert!(wanted.is_err(), "{error} {}", String::from_utf8_lossy(&text)),
            }
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
            if append_lines(&header(2), &altered, &mut out).is_ok() {
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
            ("7\t5\t.\tA\t.\t.\t.\t.\t.\t.\n".to_owned(), "CHROM"),
        ] {
            let error = file(1, &wrong).unwrap_err();
            let place = error.place().unwrap().file.clone().unwrap_or_default();
            assert!(place.starts_with(&format!("{column} of the record at ")), "{wrong:.80} {error}");
        }
        assert!(file(2, &line("5", ".", ".", "I", "1")).is_err());
    }
}
