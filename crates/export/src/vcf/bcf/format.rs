//! The FORMAT fields of a record: for each field, the values of all samples as vectors of one length.

use tilefs_format::error::{Error, Result};

use super::super::fields::INTEGER_END;
use super::record::{MISSING, float, integer, list, number, wrong};
use super::typed;

/// The bits of the float that ends a vector early.
const FLOAT_END: u32 = 0x7f80_0002;

/// Maximum size of a record: one sample's long vector makes those of all samples as long.
const MAX_RECORD: usize = 1 << 28;

/// The highest allele that fits into 32 bits together with the phase.
const MAX_ALLELE: i64 = (i32::MAX as i64 >> 1) - 1;

/// A field of a record, with its text for each sample.
pub(super) struct FormatColumn<'a> {
    pub name: &'a [u8],
    texts: Vec<&'a [u8]>,
}

/// Returns the fields of a record. Values omitted at the end of a sample's column are missing.
pub(super) fn columns<'a>(format: &'a [u8], samples: &[&'a [u8]]) -> Vec<FormatColumn<'a>> {
    if format == MISSING {
        return Vec::new();
    }
    let column = |name| FormatColumn { name, texts: Vec::with_capacity(samples.len()) };
    let mut columns: Vec<FormatColumn<'_>> = format.split(|&byte| byte == b':').map(column).collect();
    for sample in samples {
        let mut texts = sample.split(|&byte| byte == b':');
        columns.iter_mut().for_each(|column| column.texts.push(texts.next().unwrap_or(MISSING)));
    }
    columns
}

impl FormatColumn<'_> {
    /// Appends integers.
    pub(super) fn append_integers(&self, out: &mut Vec<u8>) -> Result<()> {
        let (count, integers) = self.vectors(INTEGER_END, |text| list(text, integer), out.len())?;
        typed::append_integers(count, &integers, out);
        Ok(())
    }

    /// Appends floats.
    pub(super) fn append_floats(&self, out: &mut Vec<u8>) -> Result<()> {
        let (count, floats) = self.vectors(FLOAT_END, |text| list(text, float), out.len())?;
        typed::append_floats(count, &floats, out);
        Ok(())
    }

    /// Appends genotypes: for each allele, twice its number plus 2 (0 if it is missing), plus 1 if it is phased with
    /// the previous one.
    pub(super) fn append_genotypes(&self, out: &mut Vec<u8>) -> Result<()> {
        let (count, alleles) = self.vectors(INTEGER_END, genotype, out.len())?;
        typed::append_integers(count, &alleles, out);
        Ok(())
    }

    /// Appends texts.
    pub(super) fn append_texts(&self, out: &mut Vec<u8>) -> Result<()> {
        let longest = self.texts.iter().map(|text| text.len()).max().unwrap_or(0);
        self.check_size(longest, out.len())?;
        typed::append_texts(longest, self.texts.iter().copied(), out);
        Ok(())
    }

    /// Rejects vectors of `length` bytes per sample that do not fit into a record after `before` bytes.
    fn check_size(&self, length: usize, before: usize) -> Result<()> {
        let size = length.saturating_mul(self.texts.len());
        match before.saturating_add(size) {
            ..=MAX_RECORD => Ok(()),
            size => Err(Error::unsupported(format!("a record of BCF with {size} bytes; the .vcf has it"))),
        }
    }

    /// Returns the vectors of all samples, of 4-byte values, and their common length; shorter ones are padded with
    /// `end`. `before` is the size of the fields before.
    fn vectors<T: Copy>(
        &self,
        end: T,
        parse: impl Fn(&[u8]) -> Result<Vec<T>>,
        before: usize,
    ) -> Result<(usize, Vec<T>)> {
        let values = |text: &&[u8]| text.iter().filter(|byte| b",/|".contains(byte)).count() + 1;
        let longest = self.texts.iter().map(values).max().unwrap_or(0);
        self.check_size(longest.saturating_mul(4), before)?;
        let mut all = Vec::with_capacity(longest.saturating_mul(self.texts.len()));
        for text in &self.texts {
            let next = all.len() + longest;
            all.extend(parse(text)?);
            all.resize(next, end);
        }
        Ok((longest, all))
    }
}

/// Returns the alleles of a genotype.
fn genotype(text: &[u8]) -> Result<Vec<i32>> {
    let (mut alleles, mut rest, mut phase) = (Vec::new(), text, 0);
    loop {
        let end = rest.iter().position(|byte| b"/|".contains(byte)).unwrap_or(rest.len());
        let (allele, behind) = rest.split_at(end);
        alleles.push(match allele {
            MISSING => phase,
            _ => {
                let number = number(allele).filter(|number| (0..=MAX_ALLELE).contains(number));
                let number = number.ok_or_else(|| wrong("genotype", text))?;
                // At most 2^31 - 1.
                (number as i32 + 1) << 1 | phase
            }
        });
        let Some((separator, behind)) = behind.split_first() else { return Ok(alleles) };
        phase = i32::from(*separator == b'|');
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genotypes_are_alleles_with_their_phase() {
        assert_eq!(genotype(b"0/1").unwrap(), [2, 4]);
        assert_eq!(genotype(b"1|.|0/3").unwrap(), [4, 1, 3, 8]);
        assert_eq!(genotype(b".").unwrap(), [0]);
        assert_eq!(genotype(b"1073741822").unwrap(), [i32::MAX - 1]);
        for wrong in ["", "0/", "a", "-1", "1073741823", "0,1"] {
            assert!(genotype(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn vectors_have_the_length_of_the_longest() {
        let of =
            |texts: &[&'static str]| FormatColumn { name: b"X", texts: texts.iter().map(|t| t.as_bytes()).collect() };
        let mut out = Vec::new();
        of(&["1,2", ".", "3"]).append_integers(&mut out).unwrap();
        assert_eq!(out, [0x21, 1, 2, 0x80, 0x81, 3, 0x81]);
        out.clear();
        of(&["0|1", "1"]).append_genotypes(&mut out).unwrap();
        assert_eq!(out, [0x21, 2, 5, 4, 0x81]);
        out.clear();
        of(&["ab", "."]).append_texts(&mut out).unwrap();
        assert_eq!(out, [0x27, b'a', b'b', b'.', 0]);
        out.clear();
        of(&[".", "1.5,2"]).append_floats(&mut out).unwrap();
        assert_eq!(out[..9], [0x25, 1, 0, 0x80, 0x7f, 2, 0, 0x80, 0x7f]);
        assert!(of(&["1", "x"]).append_integers(&mut out).is_err());
        assert!(of(&["1/2"]).append_integers(&mut out).is_err());
        let long = "x".repeat(MAX_RECORD / 2);
        let padded = FormatColumn { name: b"X", texts: vec![long.as_bytes(), b".", b"."] };
        assert!(padded.append_texts(&mut out).unwrap_err().to_string().contains("402653"));
        let columns = columns(b"A:B", &[b"1:2", b"3"]);
        assert_eq!(columns[1].texts, [&b"2"[..], b"."]);
    }
}
