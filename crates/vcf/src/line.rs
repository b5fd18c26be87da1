//! A line of a file before it is written: as text, or as a record of BCF.

use std::fmt::{self, Display};

use tilefs_base::error::{Locate, Result};

use crate::check_text;
use crate::fields::{FieldValues, append_float};

/// The text of a missing value, in all columns.
pub(crate) const MISSING: &[u8] = b".";

/// A line of a file.
pub struct Line<'l> {
    pub(crate) contig: &'l [u8],
    /// The first position, counted from 0.
    pub(crate) start: u32,
    pub(crate) ids: Vec<&'l [u8]>,
    /// The alleles, the reference first. A record without alleles has an empty one.
    pub(crate) alleles: Vec<&'l [u8]>,
    /// The bits of the quality.
    pub(crate) quality: u32,
    pub(crate) filters: Vec<&'l [u8]>,
    pub(crate) info: Vec<InfoField<'l>>,
    /// `None` in files without samples.
    pub(crate) samples: Option<Box<dyn SampleFields + 'l>>,
}

/// The name and the value of an INFO field.
pub(crate) type InfoField<'l> = (&'l [u8], LineValue<'l>);

/// The FORMAT fields of a line.
pub(crate) trait SampleFields {
    /// Returns the names of the fields, in their order.
    fn names(&self) -> Vec<&[u8]>;

    /// Calls `visit` with the value of a field for each sample.
    ///
    /// # Errors
    /// Fails for values that do not fit the alleles of their record; otherwise those of `visit`.
    fn for_each_value(&self, field: usize, visit: &mut dyn FnMut(&LineValue<'_>) -> Result<()>) -> Result<()>;

    /// Appends FORMAT and the column of each sample.
    ///
    /// # Errors
    /// As for [`SampleFields::for_each_value`]; fails for a text that VCF does not allow.
    fn append(&self, out: &mut Vec<u8>) -> Result<()>;
}

/// The value of a field.
#[derive(Debug)]
pub(crate) enum LineValue<'l> {
    Stored(FieldValues<'l>),
    /// The stored value of the field `GT`.
    Genotype(FieldValues<'l>),
    /// A genotype in a merged line.
    MergedGenotype {
        alleles: &'l [Allele],
        /// For each allele of the record, its number in the line.
        map: &'l [usize],
    },
    /// Values that have the places of their alleles in a merged line.
    Placed(Placed<'l>),
    Integers(Vec<i64>),
    Floats(Vec<f32>),
    /// This many missing values.
    Missing(usize),
    /// A genotype of this many missing alleles.
    MissingGenotype(usize),
}

/// An allele of a genotype: its number in the record, `None` if missing, and whether it is phased with the previous one.
pub(crate) type Allele = (Option<usize>, bool);

/// The values of a field, arranged for a merged line.
#[derive(Debug, PartialEq)]
pub(crate) enum Placed<'a> {
    /// Little-endian numbers of 32 bits; `None` for missing ones.
    Numbers { numbers: Vec<Option<[u8; 4]>>, is_float: bool },
    /// Texts; `.` for missing ones.
    Texts(Vec<&'a [u8]>),
}

impl<'l> Line<'l> {
    /// Appends the line as text.
    ///
    /// # Errors
    /// Fails for values that do not fit the alleles of their record, and for texts that VCF does not allow.
    pub fn append(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.contig);
        out.push(b'\t');
        out.extend_from_slice(itoa::Buffer::new().format(u64::from(self.start) + 1).as_bytes());
        out.push(b'\t');
        append_list(&self.ids, b';', out);
        out.push(b'\t');
        let (reference, others) = self.alleles.split_at(self.alleles.len().min(1));
        append_list(reference, b',', out);
        out.push(b'\t');
        append_list(others, b',', out);
        out.push(b'\t');
        append_float(self.quality, out);
        out.push(b'\t');
        append_list(&self.filters, b';', out);
        out.push(b'\t');
        self.append_info(out).in_file(self.place("info"))?;
        if let Some(samples) = &self.samples {
            out.push(b'\t');
            samples.append(out).in_file(self.place("fmt"))?;
        }
        out.push(b'\n');
        Ok(())
    }

    fn append_info(&self, out: &mut Vec<u8>) -> Result<()> {
        for (number, (name, value)) in self.info.iter().enumerate() {
            if number > 0 {
                out.push(b';');
            }
            out.extend_from_slice(name);
            out.push(b'=');
            if !value.append(b";", out)? {
                out.pop();
            }
        }
        if self.info.is_empty() {
            out.extend_from_slice(MISSING);
        }
        Ok(())
    }

    /// Returns the place of a column of the line, for errors.
    pub(crate) fn place<C: Display>(&self, column: C) -> RecordPlace<'l, C> {
        RecordPlace { column, contig: self.contig, start: self.start }
    }
}

/// Displays the place of a column of a record, or of an attribute.
#[derive(Clone, Copy)]
pub(crate) struct RecordPlace<'a, C> {
    pub column: C,
    pub contig: &'a [u8],
    pub start: u32,
}

impl<C: Display> Display for RecordPlace<'_, C> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contig = String::from_utf8_lossy(self.contig);
        write!(out, "{} of the record at {contig}:{}", self.column, u64::from(self.start) + 1)
    }
}

impl LineValue<'_> {
    /// Appends the value in VCF's notation; returns whether there is any.
    ///
    /// # Errors
    /// Fails for a text with a character that VCF does not allow there: one of `ends`, a tab or a line break.
    pub(crate) fn append(&self, ends: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let before = out.len();
        match self {
            LineValue::Stored(values) => return values.append(ends, out),
            LineValue::Genotype(values) => return values.append_genotype(out),
            LineValue::MergedGenotype { alleles, map } => append_genotype(alleles, map, out),
            LineValue::Placed(placed) => placed.append(ends, out)?,
            LineValue::Integers(numbers) => separate(numbers, b',', out, |number, out| {
                out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
            }),
            LineValue::Floats(numbers) => {
                separate(numbers, b',', out, |number, out| append_float(number.to_bits(), out));
            }
            LineValue::Missing(count) => append_missing(*count, b',', out),
            LineValue::MissingGenotype(ploidy) => append_missing(*ploidy, b'/', out),
        }
        Ok(out.len() > before)
    }
}

impl Placed<'_> {
    /// Appends the values, separated by commas.
    ///
    /// # Errors
    /// As for [`LineValue::append`].
    fn append(&self, ends: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Placed::Numbers { numbers, is_float } => separate(numbers, b',', out, |number, out| match number {
                None => out.extend_from_slice(MISSING),
                Some(bytes) if *is_float => append_float(u32::from_le_bytes(*bytes), out),
                Some(bytes) => {
                    out.extend_from_slice(itoa::Buffer::new().format(i32::from_le_bytes(*bytes)).as_bytes());
                }
            }),
            Placed::Texts(texts) => {
                for text in texts {
                    check_text(text, ends, "a text in a field")?;
                }
                separate(texts, b',', out, |text, out| out.extend_from_slice(text));
            }
        }
        Ok(())
    }
}

/// Appends a genotype with the line's numbers of its alleles. Missing alleles are not phased.
fn append_genotype(genotype: &[Allele], map: &[usize], out: &mut Vec<u8>) {
    if genotype.is_empty() {
        out.extend_from_slice(MISSING);
    }
    for (place, (allele, is_phased)) in genotype.iter().enumerate() {
        if place > 0 {
            out.push(if *is_phased && allele.is_some() { b'|' } else { b'/' });
        }
        match allele.and_then(|allele| map.get(allele)) {
            Some(&number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            None => out.extend_from_slice(MISSING),
        }
    }
}

fn append_missing(count: usize, separator: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(MISSING);
    for _ in 1..count {
        out.push(separator);
        out.extend_from_slice(MISSING);
    }
}

/// Appends the texts of a column; `.` if there are none, and for an empty one.
fn append_list(texts: &[&[u8]], separator: u8, out: &mut Vec<u8>) {
    if texts.is_empty() {
        out.extend_from_slice(MISSING);
    }
    separate(texts, separator, out, |text, out| out.extend_from_slice(if text.is_empty() { MISSING } else { text }));
}

/// Appends values with a separator between them.
pub(crate) fn separate<T>(values: &[T], separator: u8, out: &mut Vec<u8>, append: impl Fn(&T, &mut Vec<u8>)) {
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            out.push(separator);
        }
        append(value, out);
    }
}
