//! FORMAT and the columns of samples of a merged record, as `bcftools merge` makes them.
//!
//! `GT` comes first, then the fields in the order of the records. A sample without a record has missing alleles, as
//! many as the highest ploidy of the line, and missing values. Only texts with a value per allele or genotype have
//! individual missing values.

use std::ops::Range;

use tilefs_format::error::{Error, Locate, Result};

use super::super::fields::{FieldValues, INTEGER_END, MISSING_INTEGER};
use super::super::header::ValueCount;
use super::super::line::{Allele, LineValue, MISSING, SampleFields, separate};
use super::genotypes::{Alleles, is_complete, place};
use super::known::{FieldDefinitions, LineRecord, MergedFile, Role};

/// About how many bytes a missing field takes, for memory.
const BYTES_OF_A_MISSING_FIELD: usize = 6;

/// The FORMAT fields of one line.
pub(super) struct FormatFields<'l> {
    files: &'l [MergedFile],
    line: &'l [LineRecord<'l, 'l, 'l>],
    /// The fields, `GT` first.
    fields: Vec<FormatField<'l>>,
    /// The values of the records: those of all fields of the first record, then those of the next one.
    values: Vec<Option<FieldValues<'l>>>,
    /// The alleles of all genotypes, and each record's range among them.
    genotypes: Vec<Allele>,
    places: Vec<Option<Range<usize>>>,
    /// For each record, whether it has the alleles of the line.
    are_unchanged: Vec<bool>,
    /// The number of alleles of the line.
    alleles: usize,
    /// The highest ploidy of a genotype, at least 1.
    ploidy: usize,
}

struct FormatField<'a> {
    name: &'a [u8],
    number: usize,
    role: Role,
    count: ValueCount,
    is_text: bool,
}

impl<'l> FormatFields<'l> {
    /// Collects the fields of the records of a line.
    ///
    /// # Errors
    /// Fails for malformed genotypes.
    pub(super) fn new(files: &'l [MergedFile], line: &'l [LineRecord<'l, 'l, 'l>], alleles: usize) -> Result<Self> {
        let (fields, numbers) = fields_of(line);
        let mut values = vec![None; line.len().saturating_mul(fields.len())];
        let mut numbers = numbers.into_iter();
        for (own, one) in values.chunks_mut(fields.len().max(1)).zip(line) {
            for (field, number) in one.format.iter().zip(&mut numbers) {
                if let Some(place) = own.get_mut(number).filter(|place| place.is_none()) {
                    *place = Some(field.values);
                }
            }
        }
        let (mut genotypes, mut places) = (Vec::with_capacity(2 * line.len()), Vec::with_capacity(line.len()));
        let mut ploidy = 1;
        for one in line {
            let before = genotypes.len();
            let has_genotype = read_genotype(one, &mut genotypes)?;
            ploidy = ploidy.max(genotypes.len() - before);
            places.push(has_genotype.then_some(before..genotypes.len()));
        }
        let is_unchanged = |one: &LineRecord<'_, '_, '_>| {
            one.map.len() == alleles && one.map.iter().enumerate().all(|(own, &number)| own == number)
        };
        let are_unchanged = line.iter().map(is_unchanged).collect();
        Ok(FormatFields { files, line, fields, values, genotypes, places, are_unchanged, alleles, ploidy })
    }

    /// Returns the genotype of a record of the line, if it has one.
    fn genotype(&self, record: usize) -> Option<&[Allele]> {
        self.places.get(record)?.clone().and_then(|place| self.genotypes.get(place))
    }

    /// Returns how often each allele occurs in the genotypes; `None` if no record has a genotype.
    pub(super) fn allele_counts(&self) -> Option<Vec<i64>> {
        if self.fields.iter().all(|field| field.role != Role::Genotype) {
            return None;
        }
        let mut counts = vec![0i64; self.alleles];
        for (record, one) in self.line.iter().enumerate() {
            for allele in self.genotype(record).unwrap_or_default().iter().filter_map(|(allele, _)| *allele) {
                if let Some(count) = one.map.get(allele).and_then(|&number| counts.get_mut(number)) {
                    *count += 1;
                }
            }
        }
        Some(counts)
    }

    /// Returns for each file with a sample the number of its record in the line, if it has one.
    fn columns(&self) -> impl Iterator<Item = Option<usize>> {
        let mut records = self.line.iter().enumerate().filter(|(_, one)| one.file.sample.is_some()).peekable();
        let files = self.files.iter().filter(|file| file.sample.is_some());
        files.map(move |file| records.next_if(|(_, one)| std::ptr::eq(one.file, file)).map(|(record, _)| record))
    }

    /// Returns the value of a field of a record, or of a sample without a record.
    ///
    /// # Errors
    /// Fails for values that do not fit the alleles of their record.
    fn value(&self, record: Option<usize>, number: usize) -> Result<LineValue<'_>> {
        let lost = || Error::internal("no such field of a line");
        let field = self.fields.get(number).ok_or_else(lost)?;
        let stored = |record: usize| self.values.get(record * self.fields.len() + number).copied().flatten();
        let Some((record, values)) = record.and_then(|record| Some((record, stored(record)?))) else {
            return Ok(self.missing(field));
        };
        let (one, genotype) = (self.line.get(record).ok_or_else(lost)?, self.genotype(record).unwrap_or_default());
        if field.role == Role::Genotype {
            return Ok(LineValue::MergedGenotype { alleles: genotype, map: one.map });
        }
        if field.count == ValueCount::Other || self.are_unchanged.get(record) == Some(&true) {
            return Ok(LineValue::Stored(values));
        }
        let placed = || {
            if !is_complete(values, field.count, one.map.len()) {
                let reason = format!("a number of values that does not fit {} alleles", one.map.len());
                return Err(Error::damaged(reason));
            }
            if values.numbers().is_some_and(|numbers| matches!(numbers.as_slice(), [] | [None])) {
                return Ok(LineValue::Missing(1));
            }
            let ploidy = Some(genotype.len()).filter(|ploidy| *ploidy > 0);
            let alleles = Alleles { map: one.map, of_line: self.alleles };
            place(values, field.count, &alleles, ploidy).map(LineValue::Placed)
        };
        placed().map_err(|error| self.locate(error, record, number))
    }

    /// Returns the value of a field for samples without one.
    fn missing(&self, field: &FormatField<'_>) -> LineValue<'static> {
        match (field.role, field.is_text, field.count) {
            (Role::Genotype, ..) => LineValue::MissingGenotype(self.ploidy),
            (_, true, ValueCount::PerAllele) => LineValue::Missing(self.alleles),
            (_, true, ValueCount::PerAlternative) => LineValue::Missing(self.alleles.saturating_sub(1)),
            _ => LineValue::Missing(1),
        }
    }

    /// Adds the field and the sample of a record to an error, and its place.
    fn locate(&self, error: Error, record: usize, number: usize) -> Error {
        match self.line.get(record) {
            Some(one) => error.in_field(&field_of(one, &self.fields, number)).in_file(one.record.place("fmt")),
            None => error,
        }
    }
}

impl SampleFields for FormatFields<'_> {
    fn names(&self) -> Vec<&[u8]> {
        self.fields.iter().map(|field| field.name).collect()
    }

    fn for_each_value(&self, field: usize, visit: &mut dyn FnMut(&LineValue<'_>) -> Result<()>) -> Result<()> {
        self.columns().try_for_each(|record| visit(&self.value(record, field)?))
    }

    fn append(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.fields.is_empty() {
            out.extend_from_slice(MISSING);
            self.columns().for_each(|_| out.extend_from_slice(b"\t."));
            return Ok(());
        }
        separate(&self.fields, b':', out, |field, out| out.extend_from_slice(field.name));
        let mut missing = Vec::with_capacity(BYTES_OF_A_MISSING_FIELD * self.fields.len());
        for (number, field) in self.fields.iter().enumerate() {
            missing.push(if number > 0 { b':' } else { b'\t' });
            self.missing(field).append(b"", &mut missing)?;
        }
        for record in self.columns() {
            let Some(own) = record else {
                out.extend_from_slice(&missing);
                continue;
            };
            for number in 0..self.fields.len() {
                out.push(if number > 0 { b':' } else { b'\t' });
                let appended = self.value(record, number)?.append(b":", out);
                if !appended.map_err(|error| self.locate(error, own, number))? {
                    out.extend_from_slice(MISSING);
                }
            }
        }
        Ok(())
    }
}

/// Returns the fields of the records of a line, `GT` first, and the number of the field for each value of the records.
fn fields_of<'l>(line: &[LineRecord<'l, 'l, 'l>]) -> (Vec<FormatField<'l>>, Vec<usize>) {
    let mut fields: Vec<FormatField<'l>> = Vec::with_capacity(line.first().map_or(0, |one| one.format.len()));
    let mut numbers = Vec::with_capacity(line.iter().map(|one| one.format.len()).sum());
    for one in line {
        for (place, field) in one.format.iter().enumerate() {
            // Most records have the same fields in the same places.
            let is_same = |known: &FormatField<'_>| known.number == field.known.number;
            let number = match fields.get(place) {
                Some(known) if is_same(known) => place,
                _ => fields.iter().position(is_same).unwrap_or(fields.len()),
            };
            match fields.get_mut(number) {
                None => {
                    let is_text = matches!(field.values, FieldValues::Text(_));
                    let FieldDefinitions { number, role, own, .. } = field.known;
                    fields.push(FormatField { name: field.name, number, role, count: own.count, is_text });
                }
                // The first definition whose number of values depends on alleles takes precedence.
                Some(known) if known.count == ValueCount::Other => known.count = field.known.own.count,
                Some(_) => {}
            }
            numbers.push(number);
        }
    }
    if let Some(genotype) = fields.iter().position(|field| field.role == Role::Genotype) {
        fields[..=genotype].rotate_right(1);
        for number in numbers.iter_mut().filter(|number| **number <= genotype) {
            *number = if *number == genotype { 0 } else { *number + 1 };
        }
    }
    (fields, numbers)
}

fn field_of(one: &LineRecord<'_, '_, '_>, fields: &[FormatField<'_>], number: usize) -> String {
    let name = fields.get(number).map(|field| String::from_utf8_lossy(field.name)).unwrap_or_default();
    match &one.file.sample {
        Some(sample) => format!("{name} of sample {}", String::from_utf8_lossy(sample)),
        None => name.into_owned(),
    }
}

/// Appends the genotype of a record to those of others; returns whether the record has one.
fn read_genotype(one: &LineRecord<'_, '_, '_>, genotypes: &mut Vec<Allele>) -> Result<bool> {
    // If a record has a genotype, it comes first.
    let Some(field) = one.format.first().filter(|field| field.known.role == Role::Genotype) else { return Ok(false) };
    let wrong = |reason: String| Err(Error::damaged(reason).in_field("GT").in_file(one.record.place("fmt")));
    let FieldValues::Integers(alleles) = field.values else {
        return wrong("a genotype that is not numbers".to_owned());
    };
    for allele in alleles.iter().map(|allele| i32::from_le_bytes(*allele)).take_while(|&allele| allele != INTEGER_END) {
        let number = match allele {
            MISSING_INTEGER | 0 | 1 => None,
            _ => match usize::try_from((allele >> 1) - 1) {
                Ok(number) if number < one.map.len() => Some(number),
                _ => return wrong(format!("the allele {allele} of a record with {} alleles", one.map.len())),
            },
        };
        genotypes.push((number, allele & 1 == 1));
    }
    Ok(true)
}
