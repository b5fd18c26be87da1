//! FORMAT and the columns of samples of a merged record, as `bcftools merge` makes them.
//!
//! `GT` comes first, then the fields in the order of the records. A sample without a record has missing alleles, as
//! many as the highest ploidy of the line, and missing values. Only texts with a value per allele or genotype have
//! individual missing values.

use std::ops::Range;

use tilefs_base::error::{Error, Locate, Result};

use super::super::fields::{FieldValues, INTEGER_END, MISSING_INTEGER};
use super::super::header::ValueCount;
use super::super::line::{Allele, LineValue, MISSING, SampleFields, separate};
use super::genotypes::{Alleles, is_complete, place};
use super::known::{FieldDefinitions, LineRecord, MergedFile, Role};

/// The FORMAT fields of one line.
pub(super) struct FormatFields<'l> {
    files: &'l [MergedFile],
    line: &'l [LineRecord<'l, 'l, 'l>],
    /// The fields, `GT` first.
    fields: Vec<FormatField<'l>>,
    /// The values and genotypes of the line's records.
    found: &'l FormatBuffers,
    /// The number of alleles of the line.
    alleles: usize,
    /// The highest ploidy of a genotype, at least 1.
    ploidy: usize,
}

/// The values and genotypes of the records of one line. The lists are reused for the next line.
#[derive(Default)]
pub(super) struct FormatBuffers {
    /// The number of the field of each value of the records.
    numbers: Vec<usize>,
    /// For each record and each field of the line, the place of its value among those of the record.
    values: Vec<Option<usize>>,
    /// The alleles of all genotypes, and each record's range among them.
    genotypes: Vec<Allele>,
    places: Vec<Option<Range<usize>>>,
    /// For each record, whether it has the alleles of the line.
    are_unchanged: Vec<bool>,
    texts: FormatTexts,
}

struct FormatField<'a> {
    name: &'a [u8],
    kind: FormatKind,
}

/// The properties of a field on which two texts depend: FORMAT, and the columns of samples without a record.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FormatKind {
    number: usize,
    role: Role,
    count: ValueCount,
    is_text: bool,
}

/// The texts of lines with the same fields. Most lines have those of the line before.
#[derive(Default)]
struct FormatTexts {
    kinds: Vec<FormatKind>,
    alleles: usize,
    ploidy: usize,
    /// FORMAT itself.
    names: Vec<u8>,
    /// The column of a sample without a record, with the tab before it.
    missing: Vec<u8>,
}

impl FormatTexts {
    /// Makes the texts of a line.
    ///
    /// # Errors
    /// None: missing values are always allowed.
    fn update(&mut self, fields: &[FormatField<'_>], alleles: usize, ploidy: usize) -> Result<()> {
        let are_alike = self.kinds.iter().eq(fields.iter().map(|field| &field.kind));
        if are_alike && (self.alleles, self.ploidy) == (alleles, ploidy) {
            return Ok(());
        }
        (self.alleles, self.ploidy) = (alleles, ploidy);
        self.kinds.clear();
        self.names.clear();
        self.missing.clear();
        separate(fields, b':', &mut self.names, |field, names| names.extend_from_slice(field.name));
        for field in fields {
            self.missing.push(if self.kinds.is_empty() { b'\t' } else { b':' });
            field.kind.missing(alleles, ploidy).append(b"", &mut self.missing)?;
            self.kinds.push(field.kind);
        }
        Ok(())
    }
}

impl FormatKind {
    /// Returns the value for samples without one, in a line with so many alleles and genotypes of so many.
    fn missing(self, alleles: usize, ploidy: usize) -> LineValue<'static> {
        match (self.role, self.is_text, self.count) {
            (Role::Genotype, ..) => LineValue::MissingGenotype(ploidy),
            (_, true, ValueCount::PerAllele) => LineValue::Missing(alleles),
            (_, true, ValueCount::PerAlternative) => LineValue::Missing(alleles.saturating_sub(1)),
            _ => LineValue::Missing(1),
        }
    }
}

impl<'l> FormatFields<'l> {
    /// Collects the fields of the records of a line.
    ///
    /// # Errors
    /// Fails for malformed genotypes.
    pub(super) fn new(
        files: &'l [MergedFile],
        line: &'l [LineRecord<'l, 'l, 'l>],
        alleles: usize,
        buffers: &'l mut FormatBuffers,
    ) -> Result<Self> {
        let fields = fields_of(line, &mut buffers.numbers);
        let FormatBuffers { numbers, values, genotypes, places, are_unchanged, texts } = &mut *buffers;
        values.clear();
        values.resize(line.len().saturating_mul(fields.len()), None);
        let mut numbers = numbers.iter();
        for (own, one) in values.chunks_mut(fields.len().max(1)).zip(line) {
            for (stored, number) in (0..one.format.len()).zip(&mut numbers) {
                if let Some(place) = own.get_mut(*number).filter(|place| place.is_none()) {
                    *place = Some(stored);
                }
            }
        }
        genotypes.clear();
        places.clear();
        let mut ploidy = 1;
        for one in line {
            let before = genotypes.len();
            let has_genotype = read_genotype(one, genotypes)?;
            ploidy = ploidy.max(genotypes.len() - before);
            places.push(has_genotype.then_some(before..genotypes.len()));
        }
        let is_unchanged = |one: &LineRecord<'_, '_, '_>| {
            one.map.len() == alleles && one.map.iter().enumerate().all(|(own, &number)| own == number)
        };
        are_unchanged.clear();
        are_unchanged.extend(line.iter().map(is_unchanged));
        texts.update(&fields, alleles, ploidy)?;
        Ok(FormatFields { files, line, fields, found: buffers, alleles, ploidy })
    }

    /// Returns the genotype of a record of the line, if it has one.
    fn genotype(&self, record: usize) -> Option<&[Allele]> {
        self.found.places.get(record)?.clone().and_then(|place| self.found.genotypes.get(place))
    }

    /// Returns how often each allele occurs in the genotypes; `None` if no record has a genotype.
    pub(super) fn allele_counts(&self) -> Option<Vec<i64>> {
        if self.fields.iter().all(|field| field.kind.role != Role::Genotype) {
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

    /// Returns the stored values of a field of a record if the line has them as they are, as most lines do.
    fn unchanged(&self, record: usize, number: usize) -> Option<FieldValues<'l>> {
        let field = self.fields.get(number)?;
        let are_alike = field.kind.count == ValueCount::Other || *self.found.are_unchanged.get(record)?;
        self.stored(record, number).filter(|_| are_alike && field.kind.role != Role::Genotype)
    }

    /// Returns the stored values of a field of a record.
    fn stored(&self, record: usize, number: usize) -> Option<FieldValues<'l>> {
        let place = (*self.found.values.get(record * self.fields.len() + number)?)?;
        Some(self.line.get(record)?.format.get(place)?.values)
    }

    /// Returns the value of a field of a record, or of a sample without a record.
    ///
    /// # Errors
    /// Fails for values that do not fit the alleles of their record.
    fn value(&self, record: Option<usize>, number: usize) -> Result<LineValue<'_>> {
        let lost = || Error::internal("no such field of a line");
        let field = self.fields.get(number).ok_or_else(lost)?;
        let stored = record.and_then(|record| Some((record, self.stored(record, number)?)));
        let Some((record, values)) = stored else { return Ok(field.kind.missing(self.alleles, self.ploidy)) };
        let (one, genotype) = (self.line.get(record).ok_or_else(lost)?, self.genotype(record).unwrap_or_default());
        if field.kind.role == Role::Genotype {
            return Ok(LineValue::MergedGenotype { alleles: genotype, map: one.map });
        }
        if let Some(values) = self.unchanged(record, number) {
            return Ok(LineValue::Stored(values));
        }
        let placed = || {
            if !is_complete(values, field.kind.count, one.map.len()) {
                let reason = format!("a number of values that does not fit {} alleles", one.map.len());
                return Err(Error::damaged(reason));
            }
            if values.numbers().is_some_and(|numbers| matches!(numbers.as_slice(), [] | [None])) {
                return Ok(LineValue::Missing(1));
            }
            let ploidy = Some(genotype.len()).filter(|ploidy| *ploidy > 0);
            let alleles = Alleles { map: one.map, of_line: self.alleles };
            place(values, field.kind.count, &alleles, ploidy).map(LineValue::Placed)
        };
        placed().map_err(|error| self.locate(error, record, number))
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
        out.extend_from_slice(&self.found.texts.names);
        for record in self.columns() {
            let Some(own) = record else {
                out.extend_from_slice(&self.found.texts.missing);
                continue;
            };
            for number in 0..self.fields.len() {
                out.push(if number > 0 { b':' } else { b'\t' });
                let appended = match self.unchanged(own, number) {
                    Some(values) => values.append(b":", out),
                    None => self.value(record, number)?.append(b":", out),
                };
                if !appended.map_err(|error| self.locate(error, own, number))? {
                    out.extend_from_slice(MISSING);
                }
            }
        }
        Ok(())
    }
}

/// Returns the fields of the records of a line, `GT` first, and sets the number of the field for each value of the
/// records.
fn fields_of<'l>(line: &[LineRecord<'l, 'l, 'l>], numbers: &mut Vec<usize>) -> Vec<FormatField<'l>> {
    let mut fields: Vec<FormatField<'l>> = Vec::with_capacity(line.first().map_or(0, |one| one.format.len()));
    numbers.clear();
    for one in line {
        for (place, field) in one.format.iter().enumerate() {
            // Most records have the same fields in the same places.
            let is_same = |known: &FormatField<'_>| known.kind.number == field.known.number;
            let number = match fields.get(place) {
                Some(known) if is_same(known) => place,
                _ => fields.iter().position(is_same).unwrap_or(fields.len()),
            };
            match fields.get_mut(number) {
                None => {
                    let is_text = matches!(field.values, FieldValues::Text(_));
                    let FieldDefinitions { number, role, own, .. } = field.known;
                    let kind = FormatKind { number, role, count: own.count, is_text };
                    fields.push(FormatField { name: field.name, kind });
                }
                // The first definition whose number of values depends on alleles takes precedence.
                Some(FormatField { kind: FormatKind { count, .. }, .. }) if *count == ValueCount::Other => {
                    *count = field.known.own.count;
                }
                Some(_) => {}
            }
            numbers.push(number);
        }
    }
    if let Some(genotype) = fields.iter().position(|field| field.kind.role == Role::Genotype) {
        fields[..=genotype].rotate_right(1);
        for number in numbers.iter_mut().filter(|number| **number <= genotype) {
            *number = if *number == genotype { 0 } else { *number + 1 };
        }
    }
    fields
}

fn field_of(one: &LineRecord<'_, '_, '_>, fields: &[FormatField<'_>], number: usize) -> String {
    let name = fields.get(number).map(|field| String::from_utf8_lossy(field.name)).unwrap_or_default();
    match &one.file.sample {
        Some(sample) => format!("{name} of sample {}", String::from_utf8_lossy(sample)),
        None => name.into_owned(),
    }
}

/// Appends the genotype of a record to the genotypes of the records before it; returns whether the record has a
/// genotype.
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
