//! The FORMAT fields of a record: for each field, the values of all samples as vectors of one length.

use tilefs_format::error::{Error, Result};

use super::typed;
use super::value::{push_floats, push_genotype, push_integers};
use crate::fields::{FLOAT_END, INTEGER_END, MISSING_FLOAT, MISSING_INTEGER};
use crate::line::{LineValue, MISSING, SampleFields};

/// Maximum size of a record: one sample's long vector makes those of all samples as long.
const MAX_RECORD: usize = 1 << 28;

/// The characters that VCF does not allow in a text of a sample.
const ENDS: &[u8] = b":";

/// Makes the vectors of a field for all samples, which have one length.
#[derive(Default)]
pub(super) struct Vectors {
    /// The end of each sample's values before they are padded.
    ends: Vec<usize>,
    /// Memory for texts.
    text: Vec<u8>,
}

impl Vectors {
    /// Appends integers: the values of a field for `count` samples. `integers` is memory to be used again.
    ///
    /// # Errors
    /// Fails for values that are not integers, and for records that are too long.
    pub(super) fn append_integers(
        &mut self,
        samples: &dyn SampleFields,
        field: usize,
        count: usize,
        integers: &mut Vec<i32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let push = or_missing(push_integers, MISSING_INTEGER);
        let length = self.fill((samples, field, count), INTEGER_END, integers, push, out.len())?;
        typed::append_integers(length, integers, out);
        Ok(())
    }

    /// Like [`Vectors::append_integers`], for floats.
    ///
    /// # Errors
    /// Fails for values that are not numbers, and for records that are too long.
    pub(super) fn append_floats(
        &mut self,
        samples: &dyn SampleFields,
        field: usize,
        count: usize,
        floats: &mut Vec<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let push = or_missing(push_floats, MISSING_FLOAT);
        let length = self.fill((samples, field, count), FLOAT_END, floats, push, out.len())?;
        typed::append_floats(length, floats, out);
        Ok(())
    }

    /// Like [`Vectors::append_integers`], for genotypes.
    ///
    /// # Errors
    /// Fails for what is no genotype, and for records that are too long.
    pub(super) fn append_genotypes(
        &mut self,
        samples: &dyn SampleFields,
        field: usize,
        count: usize,
        integers: &mut Vec<i32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let length = self.fill((samples, field, count), INTEGER_END, integers, push_genotype, out.len())?;
        typed::append_integers(length, integers, out);
        Ok(())
    }

    /// Like [`Vectors::append_integers`], for texts.
    ///
    /// # Errors
    /// Fails for texts that VCF does not allow, and for records that are too long.
    pub(super) fn append_texts(
        &mut self,
        samples: &dyn SampleFields,
        field: usize,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Vectors { ends, text } = self;
        ends.clear();
        text.clear();
        samples.for_each_value(field, &mut |value| {
            if !value.append(ENDS, text)? {
                text.extend_from_slice(MISSING);
            }
            ends.push(text.len());
            Ok(())
        })?;
        let starts = || [0].into_iter().chain(ends.iter().copied());
        let longest = starts().zip(&*ends).map(|(start, end)| end - start).max().unwrap_or(0);
        check_count(ends, count)?;
        check_size(longest, count, out.len())?;
        let texts = starts().zip(&*ends).map(|(start, end)| text.get(start..*end).unwrap_or_default());
        typed::append_texts(longest, texts, out);
        Ok(())
    }

    /// Replaces `all` by the vectors of all samples, of 4-byte values, and returns their common length; shorter ones are
    /// padded with `end`. `push` appends the values of a sample. `before` is the size of the fields before.
    fn fill<T: Copy>(
        &mut self,
        (samples, field, count): (&dyn SampleFields, usize, usize),
        end: T,
        all: &mut Vec<T>,
        push: impl Fn(&LineValue<'_>, &mut Vec<T>, &mut Vec<u8>) -> Result<()>,
        before: usize,
    ) -> Result<usize> {
        let Vectors { ends, text } = self;
        all.clear();
        ends.clear();
        let mut longest = 0;
        samples.for_each_value(field, &mut |value| {
            let start = all.len();
            push(value, all, text)?;
            longest = longest.max(all.len() - start);
            ends.push(all.len());
            Ok(())
        })?;
        check_count(ends, count)?;
        check_size(longest.saturating_mul(4), count, before)?;
        let length = longest.saturating_mul(count);
        if all.len() < length {
            all.resize(length, end);
            // From the last one on, because each moves to a later place or stays.
            for (sample, &own_end) in ends.iter().enumerate().rev() {
                let start = sample.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
                let place = sample * longest;
                all.copy_within(start..own_end, place);
                all[place + (own_end - start)..place + longest].fill(end);
            }
        }
        Ok(longest)
    }
}

/// Appends the values of a sample to those of others.
type Push<T> = fn(&LineValue<'_>, &[u8], &mut Vec<T>, &mut Vec<u8>) -> Result<()>;

/// Changes `push` so that it appends `missing` for a sample without values.
fn or_missing<T>(push: Push<T>, missing: T) -> impl Fn(&LineValue<'_>, &mut Vec<T>, &mut Vec<u8>) -> Result<()>
where
    T: Copy,
{
    move |value, all, text| {
        let before = all.len();
        push(value, ENDS, all, text)?;
        if all.len() == before {
            all.push(missing);
        }
        Ok(())
    }
}

/// Rejects values of another number of samples than the header has.
fn check_count(ends: &[usize], count: usize) -> Result<()> {
    if ends.len() == count { Ok(()) } else { Err(Error::internal("a line of VCF with another number of samples")) }
}

/// Rejects vectors of `length` bytes for each of `samples` samples that do not fit into a record after `before` bytes.
fn check_size(length: usize, samples: usize, before: usize) -> Result<()> {
    match before.saturating_add(length.saturating_mul(samples)) {
        ..=MAX_RECORD => Ok(()),
        size => Err(Error::unsupported(format!("a record of BCF with {size} bytes; the .vcf has it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TextFields;
    use super::*;

    fn samples<'a>(texts: &[&'a [u8]]) -> TextFields<'a> {
        TextFields { names: vec![b"A"], columns: texts.iter().map(|text| vec![*text]).collect() }
    }

    #[test]
    fn vectors_have_the_length_of_the_longest() {
        let (mut vectors, mut integers, mut floats, mut out) = (Vectors::default(), vec![7], vec![7], Vec::new());
        vectors.append_integers(&samples(&[b"1,2", b".", b"3"]), 0, 3, &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x21, 1, 2, 0x80, 0x81, 3, 0x81]);
        out.clear();
        vectors.append_genotypes(&samples(&[b"0|1", b"1"]), 0, 2, &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x21, 2, 5, 4, 0x81]);
        out.clear();
        vectors.append_texts(&samples(&[b"ab", b"."]), 0, 2, &mut out).unwrap();
        assert_eq!(out, [0x27, b'a', b'b', b'.', 0]);
        out.clear();
        vectors.append_floats(&samples(&[b".", b"1.5,2"]), 0, 2, &mut floats, &mut out).unwrap();
        assert_eq!(out[..9], [0x25, 1, 0, 0x80, 0x7f, 2, 0, 0x80, 0x7f]);
        out.clear();
        let of_four = samples(&[b".", b"1", b"4,5,6", b"2,3"]);
        vectors.append_integers(&of_four, 0, 4, &mut integers, &mut out).unwrap();
        assert_eq!(out, [0x31, 0x80, 0x81, 0x81, 1, 0x81, 0x81, 4, 5, 6, 2, 3, 0x81]);
        for wrong in [samples(&[b"1", b"x"]), samples(&[b"1/2", b"1"]), samples(&[b"1"])] {
            assert!(vectors.append_integers(&wrong, 0, 2, &mut integers, &mut out).is_err());
        }
        let long = "x".repeat(MAX_RECORD / 2);
        let error = vectors.append_texts(&samples(&[long.as_bytes(), b".", b"."]), 0, 3, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("402653"));
    }
}
