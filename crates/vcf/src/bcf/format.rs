//! The FORMAT fields of a record: for each field, the values of all samples as vectors of one length.

use tilefs_base::error::{Error, Result};

use super::typed;
use super::value::{push_floats, push_genotype, push_integers};
use crate::fields::{FLOAT_END, INTEGER_END, MISSING_FLOAT, MISSING_INTEGER};
use crate::line::{LineValue, MISSING, SampleFields};

/// Maximum size of a record: one sample's long vector makes those of all samples as long.
const MAX_RECORD: usize = 1 << 28;

/// The characters that VCF does not allow in a text of a sample.
const ENDS: &[u8] = b":";

/// A FORMAT field of a record, for all samples.
pub(super) struct FieldOfSamples<'a> {
    pub samples: &'a dyn SampleFields,
    /// The number of the field in the record.
    pub number: usize,
    /// The number of samples.
    pub count: usize,
}

/// Makes the vectors of a field for all samples, which have one length. The memory is used again for other fields.
#[derive(Default)]
pub(super) struct Vectors {
    memory: SampleValues,
    integers: Vec<i32>,
    floats: Vec<u32>,
}

/// Memory for the values of all samples.
#[derive(Default)]
struct SampleValues {
    /// The end of each sample's values before they are padded.
    ends: Vec<usize>,
    /// Memory for texts.
    text: Vec<u8>,
}

impl Vectors {
    /// Appends integers.
    ///
    /// # Errors
    /// Fails for values that are not integers, and for records that are too long.
    pub(super) fn append_integers(&mut self, field: &FieldOfSamples<'_>, out: &mut Vec<u8>) -> Result<()> {
        let push = or_missing(push_integers, MISSING_INTEGER);
        let length = self.memory.fill(field, INTEGER_END, &mut self.integers, push, out.len())?;
        typed::append_integers(length, &self.integers, out);
        Ok(())
    }

    /// Appends floats.
    ///
    /// # Errors
    /// Fails for values that are not numbers, and for records that are too long.
    pub(super) fn append_floats(&mut self, field: &FieldOfSamples<'_>, out: &mut Vec<u8>) -> Result<()> {
        let push = or_missing(push_floats, MISSING_FLOAT);
        let length = self.memory.fill(field, FLOAT_END, &mut self.floats, push, out.len())?;
        typed::append_floats(length, &self.floats, out);
        Ok(())
    }

    /// Appends genotypes.
    ///
    /// # Errors
    /// Fails for what is no genotype, and for records that are too long.
    pub(super) fn append_genotypes(&mut self, field: &FieldOfSamples<'_>, out: &mut Vec<u8>) -> Result<()> {
        let length = self.memory.fill(field, INTEGER_END, &mut self.integers, push_genotype, out.len())?;
        typed::append_integers(length, &self.integers, out);
        Ok(())
    }

    /// Appends texts.
    ///
    /// # Errors
    /// Fails for texts that VCF does not allow, and for records that are too long.
    pub(super) fn append_texts(&mut self, field: &FieldOfSamples<'_>, out: &mut Vec<u8>) -> Result<()> {
        let SampleValues { ends, text } = &mut self.memory;
        ends.clear();
        text.clear();
        field.samples.for_each_value(field.number, &mut |value| {
            if !value.append(ENDS, text)? {
                text.extend_from_slice(MISSING);
            }
            ends.push(text.len());
            Ok(())
        })?;
        let starts = || [0].into_iter().chain(ends.iter().copied());
        let longest = starts().zip(&*ends).map(|(start, end)| end - start).max().unwrap_or(0);
        check_count(ends, field.count)?;
        check_size(longest, field.count, out.len())?;
        let texts = starts().zip(&*ends).map(|(start, end)| text.get(start..*end).unwrap_or_default());
        typed::append_texts(longest, texts, out);
        Ok(())
    }
}

impl SampleValues {
    /// Replaces `all` by the vectors of all samples, of 4-byte values, and returns their common length; shorter ones are
    /// padded with `end`. `push` appends the values of a sample. `before` is the size of the fields before.
    fn fill<T: Copy>(
        &mut self,
        field: &FieldOfSamples<'_>,
        end: T,
        all: &mut Vec<T>,
        push: impl Fn(&LineValue<'_>, &mut Vec<T>, &mut Vec<u8>) -> Result<()>,
        before: usize,
    ) -> Result<usize> {
        let SampleValues { ends, text } = self;
        all.clear();
        ends.clear();
        let mut longest = 0;
        field.samples.for_each_value(field.number, &mut |value| {
            let start = all.len();
            push(value, all, text)?;
            longest = longest.max(all.len() - start);
            ends.push(all.len());
            Ok(())
        })?;
        check_count(ends, field.count)?;
        check_size(longest.saturating_mul(4), field.count, before)?;
        let length = longest.saturating_mul(field.count);
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

/// Appends the values of a sample to the values of the samples before it.
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

    fn field<'a>(samples: &'a TextFields<'_>, count: usize) -> FieldOfSamples<'a> {
        FieldOfSamples { samples, number: 0, count }
    }

    #[test]
    fn vectors_have_the_length_of_the_longest() {
        let mut vectors = Vectors { integers: vec![7], floats: vec![7], ..Vectors::default() };
        let mut out = Vec::new();
        vectors.append_integers(&field(&samples(&[b"1,2", b".", b"3"]), 3), &mut out).unwrap();
        assert_eq!(out, [0x21, 1, 2, 0x80, 0x81, 3, 0x81]);
        out.clear();
        vectors.append_genotypes(&field(&samples(&[b"0|1", b"1"]), 2), &mut out).unwrap();
        assert_eq!(out, [0x21, 2, 5, 4, 0x81]);
        out.clear();
        vectors.append_texts(&field(&samples(&[b"ab", b"."]), 2), &mut out).unwrap();
        assert_eq!(out, [0x27, b'a', b'b', b'.', 0]);
        out.clear();
        vectors.append_floats(&field(&samples(&[b".", b"1.5,2"]), 2), &mut out).unwrap();
        assert_eq!(out[..9], [0x25, 1, 0, 0x80, 0x7f, 2, 0, 0x80, 0x7f]);
        out.clear();
        let of_four = samples(&[b".", b"1", b"4,5,6", b"2,3"]);
        vectors.append_integers(&field(&of_four, 4), &mut out).unwrap();
        assert_eq!(out, [0x31, 0x80, 0x81, 0x81, 1, 0x81, 0x81, 4, 5, 6, 2, 3, 0x81]);
        for wrong in [samples(&[b"1", b"x"]), samples(&[b"1/2", b"1"]), samples(&[b"1"])] {
            assert!(vectors.append_integers(&field(&wrong, 2), &mut out).is_err());
        }
        let long = "x".repeat(MAX_RECORD / 2);
        let error =
            vectors.append_texts(&field(&samples(&[long.as_bytes(), b".", b"."]), 3), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("402653"));
    }
}
