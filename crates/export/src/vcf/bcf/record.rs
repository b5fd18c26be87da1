//! Converts a line of VCF to a record of BCF.
//!
//! A record has two lengths: that of the part that all samples share, up to INFO, and that of the samples' values. The
//! record begins with fixed fields: the numbers of the contig and the position (from 0), the length on the contig, the
//! quality, and the numbers of alleles, INFO fields, FORMAT fields and samples.

use std::fmt::Display;

use tilefs_format::error::{Error, Locate, Result};

use super::super::fields::{MISSING_FLOAT, MISSING_INTEGER};
use super::super::record::{END, GENOTYPE};
use super::typed::{LEAST_INTEGER, append_floats, append_integers, append_nothing, append_texts};
use super::{BcfHeader, Kind, format};

/// The text of a missing value, in all columns.
pub(super) const MISSING: &[u8] = b".";

/// The columns of a line. The samples are already split at their tabs.
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
    samples: Vec<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut columns = line.split(|&byte| byte == b'\t');
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
            samples: columns.collect(),
        })
    }

    /// Adds the column and the record to an error.
    fn locate<T>(&self, column: impl Display, result: Result<T>) -> Result<T> {
        let text = String::from_utf8_lossy;
        result.in_file(format_args!("{column} of the record at {}:{}", text(self.contig), text(self.position)))
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

impl BcfHeader {
    /// Appends the records for some lines of the file.
    ///
    /// Memory: a few times the longest line.
    ///
    /// # Errors
    /// Fails for names that the header does not define, for values that do not match the type in the header, and for
    /// values that BCF cannot represent: positions beyond 2^31, integers beyond 32 bits, 2^16 alleles, records of 2^31
    /// bytes. The error names the record.
    pub fn append_records(&self, lines: &[u8], out: &mut Vec<u8>) -> Result<()> {
        lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).try_for_each(|line| self.append(line, out))
    }

    fn append(&self, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let line = Line::of(line).filter(|line| line.samples.len() == self.samples());
        let line = line.ok_or_else(|| Error::internal("a line of VCF with another number of columns"))?;
        let contig = line.locate("CHROM", self.contig(line.contig))?;
        let position = number(line.position).and_then(|position| i32::try_from(position.checked_sub(1)?).ok());
        let too_far = || Error::unsupported("a position beyond 2^31 in BCF; the .vcf has it");
        let position = line.locate("POS", position.ok_or_else(too_far))?;
        let quality = line.locate("QUAL", float(line.quality).ok_or_else(|| wrong("quality", line.quality)))?;

        let mut parts = Parts::default();
        append_text(Some(line.id).filter(|id| *id != MISSING).unwrap_or_default(), &mut parts.shared);
        let others = line.others.split(|&byte| byte == b',').filter(|_| line.others != MISSING);
        for allele in [line.reference].into_iter().chain(others) {
            parts.alleles += 1;
            append_text(allele, &mut parts.shared);
        }
        parts.length = i32::try_from(line.reference.len()).unwrap_or(i32::MAX);
        line.locate("FILTER", self.append_filters(line.filters, &mut parts.shared))?;
        for field in line.info.split(|&byte| byte == b';').filter(|_| line.info != MISSING) {
            parts.info += 1;
            let name = field.split(|&byte| byte == b'=').next().unwrap_or_default();
            let value = field.get(name.len() + 1..);
            let column = format_args!("INFO {}", String::from_utf8_lossy(name));
            line.locate(column, self.append_info(name, value, position, &mut parts))?;
        }
        for field in format::columns(line.format, &line.samples) {
            parts.format += 1;
            let column = format_args!("FORMAT {}", String::from_utf8_lossy(field.name));
            let appended = self.format(field.name).and_then(|(number, kind)| {
                append_number(number, &mut parts.of_samples);
                match (field.name, kind) {
                    (GENOTYPE, _) => field.append_genotypes(&mut parts.of_samples),
                    (_, Kind::Integer) => field.append_integers(&mut parts.of_samples),
                    (_, Kind::Float) => field.append_floats(&mut parts.of_samples),
                    (_, Kind::Text | Kind::Flag) => field.append_texts(&mut parts.of_samples),
                }
            });
            line.locate(column, appended)?;
        }
        let appended = self.append_parts(contig, position, quality, &parts, out);
        line.locate("line", appended)
    }

    fn append_parts(&self, contig: i32, position: i32, quality: u32, parts: &Parts, out: &mut Vec<u8>) -> Result<()> {
        let too_many = |what: &str| Error::unsupported(format!("a record of BCF with so many {what}"));
        let alleles = u16::try_from(parts.alleles).map_err(|_| too_many("alleles"))?;
        let info = u16::try_from(parts.info).map_err(|_| too_many("INFO fields"))?;
        let format = u8::try_from(parts.format).map_err(|_| too_many("FORMAT fields"))?;
        // The fields between the two lengths and the identifier.
        let mut fixed = Vec::with_capacity(24);
        for number in [contig, position, parts.length] {
            fixed.extend_from_slice(&number.to_le_bytes());
        }
        fixed.extend_from_slice(&quality.to_le_bytes());
        fixed.extend_from_slice(&info.to_le_bytes());
        fixed.extend_from_slice(&alleles.to_le_bytes());
        // The header has checked that there are fewer than 2^24 samples.
        fixed.extend_from_slice(&(self.samples() as u32 | u32::from(format) << 24).to_le_bytes());
        for length in [fixed.len() + parts.shared.len(), parts.of_samples.len()] {
            let length = i32::try_from(length).map_err(|_| too_many("bytes"))?;
            out.extend_from_slice(&length.to_le_bytes());
        }
        out.extend_from_slice(&fixed);
        out.extend_from_slice(&parts.shared);
        out.extend_from_slice(&parts.of_samples);
        Ok(())
    }

    fn append_filters(&self, filters: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let names = filters.split(|&byte| byte == b';').filter(|_| filters != MISSING);
        let numbers = names.map(|name| self.filter(name)).collect::<Result<Vec<i32>>>()?;
        match numbers.is_empty() {
            true => append_nothing(out),
            false => append_integers(numbers.len(), &numbers, out),
        }
        Ok(())
    }

    /// Appends an INFO field. An `END` after the position also determines the record's number of positions.
    fn append_info(&self, name: &[u8], value: Option<&[u8]>, position: i32, parts: &mut Parts) -> Result<()> {
        let (number, kind) = self.info(name)?;
        append_number(number, &mut parts.shared);
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            append_nothing(&mut parts.shared);
            return Ok(());
        };
        match kind {
            Kind::Text | Kind::Flag => append_text(value, &mut parts.shared),
            Kind::Integer => {
                let integers = list(value, integer)?;
                append_integers(integers.len(), &integers, &mut parts.shared);
                if let ([end], END) = (integers.as_slice(), name)
                    && *end > position
                {
                    parts.length = end - position;
                }
            }
            Kind::Float => {
                let floats = list(value, float)?;
                append_floats(floats.len(), &floats, &mut parts.shared);
            }
        }
        Ok(())
    }
}

/// Appends the number of a name, as a typed integer.
fn append_number(number: i32, out: &mut Vec<u8>) {
    append_integers(1, &[number], out);
}

fn append_text(text: &[u8], out: &mut Vec<u8>) {
    append_texts(text.len(), [text].into_iter(), out);
}

/// Returns the values of a list.
pub(super) fn list<T>(values: &[u8], parse: impl Fn(&[u8]) -> Option<T>) -> Result<Vec<T>> {
    let one = |text| parse(text).ok_or_else(|| wrong("value", text));
    values.split(|&byte| byte == b',').map(one).collect()
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
        _ => str::from_utf8(text).ok()?.parse::<f32>().ok().map(f32::to_bits),
    }
}

/// Returns a number.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
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
        header.append_records(lines.as_bytes(), &mut file).map(|()| file)
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
            if header(2).append_records(&altered, &mut out).is_ok() {
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
