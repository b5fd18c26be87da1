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

/// The fields of a record, with the text of each for each sample.
pub(super) struct FormatColumns<'a> {
    format: &'a [u8],
    /// The texts of the first field for all samples, then those of the next one.
    texts: Vec<&'a [u8]>,
    samples: usize,
}

impl<'a> FormatColumns<'a> {
    /// Divides the columns of `samples` samples, with tabs between them. Values omitted at the end of a sample's column
    /// are missing.
    pub(super) fn new(format: &'a [u8], columns: Option<&'a [u8]>, samples: usize) -> Self {
        let count = if format == MISSING { 0 } else { format.iter().filter(|&&byte| byte == b':').count() + 1 };
        let mut texts = vec![MISSING; count.saturating_mul(samples)];
        let columns = columns.into_iter().flat_map(|columns| columns.split(|&byte| byte == b'\t'));
        for (sample, column) in columns.enumerate().take(if count > 0 { samples } else { 0 }) {
            let places = texts.get_mut(sample..).unwrap_or_default().iter_mut().step_by(samples);
            for (place, text) in places.zip(column.split(|&byte| byte == b':')) {
                *place = text;
            }
        }
        FormatColumns { format, texts, samples }
    }

    /// Returns the name of each field, and its texts.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'a [u8], &[&'a [u8]])> {
        let names = self.format.split(|&byte| byte == b':').filter(|_| self.format != MISSING);
        names.enumerate().map(|(place, name)| {
            let start = place.saturating_mul(self.samples);
            (name, self.texts.get(start..start.saturating_add(self.samples)).unwrap_or_default())
        })
    }
}

/// Makes the vectors of a field for all samples, which have one length.
#[derive(Default)]
pub(super) struct Vectors {
    /// The end of each sample's values before they are padded.
    ends: Vec<usize>,
}

impl Vectors {
    /// Appends integers. `integers` is memory to be used again.
    pub(super) fn append_integers(
        &mut self,
        texts: &[&[u8]],
        integers: &mut Vec<i32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let parse = |text: &[u8], all: &mut Vec<i32>| list(text, integer, all);
        let count = self.fill(texts, INTEGER_END, integers, parse, out.len())?;
        typed::append_integers(count, integers, out);
        Ok(())
    }

    /// Appends floats. `floats` is memory to be used again.
    pub(super) fn append_floats(&mut self, texts: &[&[u8]], floats: &mut Vec<u32>, out: &mut Vec<u8>) -> Result<()> {
        let parse = |text: &[u8], all: &mut Vec<u32>| list(text, float, all);
        let count = self.fill(texts, FLOAT_END, floats, parse, out.len())?;
        typed::append_floats(count, floats, out);
        Ok(())
    }

    /// Appends genotypes: for each allele, twice its number plus 2 (0 if it is missing), plus 1 if it is phased with
    /// the previous one. `integers` is memory to be used again.
    pub(super) fn append_genotypes(
        &mut self,
        texts: &[&[u8]],
        integers: &mut Vec<i32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let count = self.fill(texts, INTEGER_END, integers, genotype, out.len())?;
        typed::append_integers(count, integers, out);
        Ok(())
    }

    /// Replaces `all` by the vectors of all samples, of 4-byte values, and returns their common length; shorter ones are
    /// padded with `end`. `parse` appends the values of a text. `before` is the size of the fields before.
    fn fill<T: Copy>(
        &mut self,
        texts: &[&[u8]],
        end: T,
        all: &mut Vec<T>,
        parse: impl Fn(&[u8], &mut Vec<T>) -> Result<()>,
        before: usize,
    ) -> Result<usize> {
        all.clear();
        self.ends.clear();
        let mut longest = 0;
        for text in texts {
            let start = all.len();
            parse(text, all)?;
            longest = longest.max(all.len() - start);
            self.ends.push(all.len());
        }
        check_size(longest.saturating_mul(4), texts.len(), before)?;
        let length = longest.saturating_mul(texts.len());
        if all.len() < length {
            all.resize(length, end);
            // From the last one on, because each moves to a later place or stays.
            for (sample, &own_end) in self.ends.iter().enumerate().rev() {
                let start = sample.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
                let place = sample * longest;
                all.copy_within(start..own_end, place);
                all[place + (own_end - start)..place + longest].fill(end);
            }
        }
        Ok(longest)
    }
}

/// Appends texts, one for each sample.
pub(super) fn append_texts(texts: &[&[u8]], out: &mut Vec<u8>) -> Result<()> {
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    check_size(longest, texts.len(), out.len())?;
    typed::append_texts(longest, texts.iter().copied(), out);
    Ok(())
}

/// Rejects vectors of `length` bytes for each of `samples` samples that do not fit into a record after `before` bytes.
fn check_size(length: usize, samples: usize, before: usize) -> Result<()> {
    match before.saturating_add(length.saturating_mul(samples)) {
        ..=MAX_RECORD => Ok(()),
        size => Err(Error::unsupported(format!("a record of BCF with {size} bytes; the .vcf has it"))),
    }
}

/// Appends the alleles of a genotype to others.
fn genotype(text: &[u8], alleles: &mut Vec<i32>) -> Result<()> {
    let (mut rest, mut phase) = (text, 0);
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
        let Some((separator, behind)) = behind.split_first() else { return Ok(()) };
        phase = i32::from(*separator == b'|');
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genotypes_are_alleles_with_their_phase() {
        let genotype = |text: &[u8]| {
            let mut alleles = Vec::new();
            super::genotype(text, &mut alleles).map(|()| alleles)
        };
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
        let (mut vectors, mut integers, mut floats, mut out) = (Vectors::default(), vec![7], vec![7], Vec::new());
        vectors.append_integers(&[b"1,2", b".", b"3"], &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x21, 1, 2, 0x80, 0x81, 3, 0x81]);
        out.clear();
        vectors.append_genotypes(&[b"0|1", b"1"], &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x21, 2, 5, 4, 0x81]);
        out.clear();
        append_texts(&[b"ab", b"."], &mut out).unwrap();
        assert_eq!(out, [0x27, b'a', b'b', b'.', 0]);
        out.clear();
        vectors.append_floats(&[b".", b"1.5,2"], &mut floats, &mut out).unwrap();
        assert_eq!(out[..9], [0x25, 1, 0, 0x80, 0x7f, 2, 0, 0x80, 0x7f]);
        out.clear();
        vectors.append_integers(&[b".", b"1", b"4,5,6", b"2,3"], &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x31, 0x80, 0x81, 0x81, 1, 0x81, 0x81, 4, 5, 6, 2, 3, 0x81]);
        assert!(vectors.append_integers(&[b"1", b"x"], &mut integers, &mut out).is_err());
        assert!(vectors.append_integers(&[b"1/2"], &mut integers, &mut out).is_err());
        let long = "x".repeat(MAX_RECORD / 2);
        let error = append_texts(&[long.as_bytes(), b".", b"."], &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("402653"));
    }

    #[test]
    fn fields_have_a_text_for_each_sample() {
        let columns = FormatColumns::new(b"A:B", Some(b"1:2\t3"), 2);
        let found: Vec<_> = columns.each().collect();
        assert_eq!(found, [(&b"A"[..], &[&b"1"[..], b"3"][..]), (b"B", &[b"2", b"."])]);
        for (format, samples) in [(&b"."[..], 1), (b"A", 0)] {
            let columns = FormatColumns::new(format, (samples > 0).then_some(b"."), samples);
            assert_eq!(columns.each().map(|(_, texts)| texts.len()).sum::<usize>(), 0);
        }
    }
}
