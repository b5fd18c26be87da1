//! FORMAT and the columns of samples of a merged record, as `bcftools merge` makes them.
//!
//! `GT` comes first, then the fields in the order of the records. A sample without a record has missing alleles, as
//! many as the highest ploidy of the line, and missing values. Only texts with a value per allele or genotype have
//! individual missing values.

use std::ops::Range;

use tilefs_format::error::{Error, Locate, Result};

use super::super::fields::{INTEGER_END, MISSING_INTEGER, Values};
use super::super::header::ValueCount;
use super::genotypes::{is_complete, place};
use super::info::Alleles;
use super::{Known, LineRecord, MergedFile, Role};

/// About how many bytes a missing field takes, for memory.
const BYTES_OF_A_MISSING_FIELD: usize = 6;

/// The FORMAT fields of one line.
pub(super) struct FormatFields<'l, 'r, 'a, 'm> {
    line: &'l [LineRecord<'r, 'a, 'm>],
    fields: Vec<FormatField<'a>>,
    /// The number of the field for each value of the records of the line.
    numbers: Vec<usize>,
    /// The alleles of all genotypes, and each record's range among them.
    genotypes: Vec<Allele>,
    places: Vec<Option<Range<usize>>>,
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

/// An allele of a genotype: its number, `None` if missing, and whether it is phased with the previous one.
type Allele = (Option<usize>, bool);

impl<'l, 'r, 'a, 'm> FormatFields<'l, 'r, 'a, 'm> {
    /// Collects the fields of the records of a line.
    ///
    /// # Errors
    /// Fails for malformed genotypes.
    pub(super) fn new(line: &'l [LineRecord<'r, 'a, 'm>], alleles: usize) -> Result<Self> {
        let mut fields: Vec<FormatField<'a>> = Vec::with_capacity(line.first().map_or(0, |one| one.format.len()));
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
                        let is_text = matches!(field.values, Values::Text(_));
                        let Known { number, role, own, .. } = field.known;
                        fields.push(FormatField { name: field.name, number, role, count: own.count, is_text });
                    }
                    // The first definition whose number of values depends on alleles takes precedence.
                    Some(known) if known.count == ValueCount::Other => known.count = field.known.own.count,
                    Some(_) => {}
                }
                numbers.push(number);
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
        Ok(FormatFields { line, fields, numbers, genotypes, places, alleles, ploidy })
    }

    /// Returns the genotype of a record of the line, if it has one.
    fn genotype(&self, record: usize) -> Option<&[Allele]> {
        self.places.get(record)?.clone().and_then(|place| self.genotypes.get(place))
    }

    /// Returns how often each allele occurs in the genotypes; `None` if no record has a genotype.
    pub(super) fn allele_counts(&self) -> Option<Vec<u64>> {
        if self.fields.iter().all(|field| field.role != Role::Genotype) {
            return None;
        }
        let mut counts = vec![0u64; self.alleles];
        for (record, one) in self.line.iter().enumerate() {
            for allele in self.genotype(record).unwrap_or_default().iter().filter_map(|(allele, _)| *allele) {
                if let Some(count) = one.map.get(allele).and_then(|&number| counts.get_mut(number)) {
                    *count += 1;
                }
            }
        }
        Some(counts)
    }

    /// Appends FORMAT and the column of each file with a sample.
    ///
    /// # Errors
    /// Fails for values that do not fit the alleles of their record, and for texts that VCF does not allow.
    pub(super) fn append(&self, files: &[MergedFile], out: &mut Vec<u8>) -> Result<()> {
        let columns = || files.iter().filter(|file| file.sample.is_some());
        out.push(b'\t');
        if self.fields.is_empty() {
            out.push(b'.');
            columns().for_each(|_| out.extend_from_slice(b"\t."));
            return Ok(());
        }
        // GT first, the others in their order.
        let genotype = self.fields.iter().position(|field| field.role == Role::Genotype);
        let others = (0..self.fields.len()).filter(|&number| Some(number) != genotype);
        let mut order: Vec<usize> = Vec::with_capacity(self.fields.len());
        order.extend(genotype.into_iter().chain(others));
        for (place, field) in order.iter().filter_map(|&number| self.fields.get(number)).enumerate() {
            if place > 0 {
                out.push(b':');
            }
            out.extend_from_slice(field.name);
        }
        let mut missing = Vec::with_capacity(BYTES_OF_A_MISSING_FIELD * order.len());
        for (place, &number) in order.iter().enumerate() {
            missing.push(if place > 0 { b':' } else { b'\t' });
            self.append_missing(number, &mut missing);
        }
        let mut start = 0;
        let with_numbers = self.line.iter().enumerate().map(|(record, one)| {
            let numbers = self.numbers.get(start..start + one.format.len()).unwrap_or_default();
            start += one.format.len();
            (record, one, numbers)
        });
        let mut records = with_numbers.filter(|(_, one, _)| one.file.sample.is_some()).peekable();
        let mut values: Vec<Option<Values<'a>>> = Vec::with_capacity(self.fields.len());
        for file in columns() {
            let Some((record, one, numbers)) = records.next_if(|(_, one, _)| std::ptr::eq(one.file, file)) else {
                out.extend_from_slice(&missing);
                continue;
            };
            values.clear();
            values.resize(self.fields.len(), None);
            let is_unchanged =
                one.map.len() == self.alleles && one.map.iter().enumerate().all(|(own, &number)| own == number);
            for (field, &number) in one.format.iter().zip(numbers) {
                if let Some(place) = values.get_mut(number).filter(|place| place.is_none()) {
                    *place = Some(field.values);
                }
            }
            for (place, &number) in order.iter().enumerate() {
                out.push(if place > 0 { b':' } else { b'\t' });
                match values.get(number).copied().flatten() {
                    Some(values) => self
                        .append_values(record, number, values, is_unchanged, out)
                        .map_err(|error| error.in_field(&field_of(one, &self.fields, number)))
                        .in_file(one.record.place("fmt"))?,
                    None => self.append_missing(number, out),
                }
            }
        }
        Ok(())
    }

    fn append_missing(&self, number: usize, out: &mut Vec<u8>) {
        let Some(field) = self.fields.get(number) else { return };
        let count = match (field.role, field.is_text, field.count) {
            (Role::Genotype, ..) => {
                out.push(b'.');
                (1..self.ploidy).for_each(|_| out.extend_from_slice(b"/."));
                return;
            }
            (_, true, ValueCount::PerAllele) => self.alleles,
            (_, true, ValueCount::PerAlternative) => self.alleles.saturating_sub(1),
            _ => 1,
        };
        out.push(b'.');
        (1..count).for_each(|_| out.extend_from_slice(b",."));
    }

    /// Appends the values of a field of a record. `is_unchanged`: the record has the alleles of the line.
    fn append_values(
        &self,
        record: usize,
        number: usize,
        values: Values<'a>,
        is_unchanged: bool,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some((field, one)) = self.fields.get(number).zip(self.line.get(record)) else { return Ok(()) };
        let genotype = self.genotype(record).unwrap_or_default();
        if field.role == Role::Genotype {
            append_genotype(genotype, one.map, out);
            return Ok(());
        }
        if field.count == ValueCount::Other || is_unchanged {
            if !values.append(b":", out)? {
                out.push(b'.');
            }
            return Ok(());
        }
        if !is_complete(values, field.count, one.map.len()) {
            let reason = format!("a number of values that does not fit {} alleles", one.map.len());
            return Err(Error::damaged(reason));
        }
        if values.numbers().is_some_and(|numbers| matches!(numbers.as_slice(), [] | [None])) {
            out.push(b'.');
            return Ok(());
        }
        let ploidy = Some(genotype.len()).filter(|ploidy| *ploidy > 0);
        let placed = place(values, field.count, &Alleles { map: one.map, of_line: self.alleles }, ploidy)?;
        if !placed.append(b":", out)? {
            out.push(b'.');
        }
        Ok(())
    }
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
    let Values::Integers(alleles) = field.values else { return wrong("a genotype that is not numbers".to_owned()) };
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

/// Appends a genotype with the line's numbers of its alleles. Missing alleles are not phased.
fn append_genotype(genotype: &[Allele], map: &[usize], out: &mut Vec<u8>) {
    if genotype.is_empty() {
        out.push(b'.');
    }
    for (place, (allele, is_phased)) in genotype.iter().enumerate() {
        if place > 0 {
            out.push(if *is_phased && allele.is_some() { b'|' } else { b'/' });
        }
        match allele.and_then(|allele| map.get(allele)) {
            Some(&number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
            None => out.push(b'.'),
        }
    }
}
