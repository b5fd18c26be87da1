//! Merges records of several files at one position into lines of one file with the samples of all, like `bcftools merge
//! -m none` (release 1.16).
//!
//! It differs where bcftools fails or loses values:
//!
//! * Values per genotype are mapped for any ploidy, also if they are texts.
//! * A missing value in an INFO field does not hide the values after it.
//! * The ploidy of values per genotype is derived from their number, even if the genotype itself is `.`.
//! * Sums are not limited to 32 bits; lists of different lengths are summed element by element.

mod alleles;
mod format;
mod genotypes;
mod groups;
mod info;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};

use super::fields::{FieldValue, MISSING_FLOAT, Values, append_float};
use super::header::Definition;
use super::known_names::KnownNames;
use super::record::{END, GENOTYPE};
use super::{Header, Record};
use format::FormatFields;
use groups::{Candidate, Group, Member};
use info::{Alleles, Info};

/// The INFO fields that are counted from the genotypes of all samples.
const ALLELE_NUMBER: &[u8] = b"AN";
const ALLELE_COUNT: &[u8] = b"AC";

/// A file to merge.
#[derive(Debug, Clone)]
pub struct MergedFile {
    /// Its header.
    pub header: Arc<Header>,
    /// The name of its sample, if it has a column.
    pub sample: Option<Vec<u8>>,
}

/// Merges records of some files. Memory: the name of each file's sample, and the merged header.
pub struct Merger {
    files: Vec<MergedFile>,
    /// For each file, a number that it has in common with the files that define the same fields in the same way.
    definitions: Vec<usize>,
    /// The merged header.
    header: Header,
    columns: usize,
}

/// A record of one of the merged files.
#[derive(Debug, Clone, Copy)]
pub struct FileRecord<'a> {
    /// The number of the file.
    pub file: usize,
    /// The record.
    pub record: Record<'a>,
}

/// A field of a record.
#[derive(Debug, Clone)]
struct KnownField<'a> {
    name: &'a [u8],
    values: Values<'a>,
    /// Its definition in the record's header, and that in the merged header.
    own: Definition,
    merged: Definition,
}

/// A record that is part of a line, and its fields.
struct LineRecord<'r, 'a> {
    file: &'r MergedFile,
    record: &'r Record<'a>,
    map: &'r [usize],
    info: &'r [KnownField<'a>],
    format: &'r [KnownField<'a>],
}

/// Makes lines of records. Memory: a copy of the names of the fields of a record, for each different header.
pub struct MergedLines<'m> {
    merger: &'m Merger,
    /// The definitions of INFO and FORMAT fields, for each number of definitions.
    known: Vec<[KnownNames<[Definition; 2]>; 2]>,
}

impl Merger {
    /// Prepares to merge files; their samples become columns in this order. The merged header has the lines of the
    /// first file, and from each further file those with new definitions.
    ///
    /// # Errors
    /// Fails if a header has no first line, or two samples have the same name.
    pub fn new(files: Vec<MergedFile>) -> Result<Self> {
        let mut names = HashSet::new();
        for sample in files.iter().filter_map(|file| file.sample.as_ref()) {
            if !names.insert(sample) {
                let name = String::from_utf8_lossy(sample);
                return Err(Error::usage(format!("the sample {name} is named twice")));
            }
        }
        let columns = names.len();
        let header = Header::merged(files.iter().map(|file| &*file.header))?;
        let definitions = numbers_of_definitions(&files);
        Ok(Merger { files, definitions, header, columns })
    }

    /// Returns the merged header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the merged files.
    pub fn files(&self) -> &[MergedFile] {
        &self.files
    }

    /// Returns the text of the merged header.
    ///
    /// # Errors
    /// Fails if the name of a sample is not valid as a column name.
    pub fn head(&self) -> Result<Vec<u8>> {
        let samples: Vec<&[u8]> = self.files.iter().filter_map(|file| file.sample.as_deref()).collect();
        self.header.text_of(&samples)
    }

    /// Prepares to make lines.
    pub fn lines(&self) -> MergedLines<'_> {
        MergedLines { merger: self, known: Vec::new() }
    }

    /// Returns the lines of the records at one position, ordered by file.
    fn groups(&self, records: &[FileRecord<'_>]) -> Result<Vec<Group>> {
        // Most records at a position have the same alleles.
        if let Some(FileRecord { record, .. }) = records.first()
            && records.windows(2).all(|two| two[0].file != two[1].file)
            && records.iter().all(|other| other.record.alleles == record.alleles)
            && let Some(group) =
                groups::one_line(records.len(), &record.allele_list().in_file(record.place("alleles"))?)
        {
            return Ok(vec![group]);
        }
        let candidates = records.iter().map(|FileRecord { file, record }| {
            let alleles = record.allele_list().in_file(record.place("alleles"))?;
            let is_symbolic = alleles.iter().any(|allele| allele.starts_with(b"<"));
            let stated_end = if is_symbolic && records.len() > 1 { self.stated_end(*file, record)? } else { None };
            Ok(Candidate { file: *file, alleles, stated_end })
        });
        groups::groups(&candidates.collect::<Result<Vec<_>>>()?)
    }

    fn file(&self, number: usize) -> Result<&MergedFile> {
        self.files.get(number).ok_or_else(|| Error::internal("a record of no file"))
    }

    /// Returns the last position that a record states in `END`.
    fn stated_end(&self, file: usize, record: &Record<'_>) -> Result<Option<u64>> {
        let header = &self.file(file)?.header;
        let mut has_end = false;
        let found = record.for_each_info(|field| {
            has_end |= field.name == END;
            Ok(())
        });
        found.in_file(record.place("info"))?;
        Ok((has_end || record.lacks_end(header)).then(|| u64::from(record.end) + 1))
    }

    fn append_line(&self, line: &[LineRecord<'_, '_>], group: &Group, out: &mut Vec<u8>) -> Result<()> {
        let Some(first) = line.first() else { return Ok(()) };
        first.record.append_place(out)?;
        append_ids(line, out)?;
        for (number, allele) in group.alleles.iter().enumerate() {
            out.push(if number < 2 { b'\t' } else { b',' });
            out.extend_from_slice(if allele.is_empty() { b"." } else { allele });
        }
        if group.alleles.len() == 1 {
            out.extend_from_slice(b"\t.");
        }
        out.push(b'\t');
        append_quality(line, out);
        out.push(b'\t');
        append_filters(line, out)?;
        out.push(b'\t');
        let fields = FormatFields::new(line, group.alleles.len())?;
        self.append_info(line, &fields, group.alleles.len(), out)?;
        if self.columns > 0 {
            fields.append(&self.files, out)?;
        }
        out.push(b'\n');
        Ok(())
    }

    fn append_info(
        &self,
        line: &[LineRecord<'_, '_>],
        fields: &FormatFields<'_, '_, '_>,
        of_line: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut info = Info::default();
        let has_samples = self.columns > 0;
        for LineRecord { file, record, map, info: own, .. } in line {
            let alleles = Alleles { map, of_line };
            for field in *own {
                info.add(field, has_samples, &alleles).in_file(record.place("info"))?;
            }
            if record.lacks_end(&file.header) && own.iter().all(|field| field.name != END) {
                info.add_position(END, u64::from(record.end) + 1);
            }
        }
        let counts = fields.allele_counts();
        let total = [counts.iter().flatten().sum::<u64>()];
        let mut last: Vec<(&[u8], &[u64])> = Vec::new();
        if let Some(counts) = &counts {
            if self.header.defines_info(ALLELE_NUMBER) {
                last.push((ALLELE_NUMBER, &total));
            }
            if self.header.defines_info(ALLELE_COUNT)
                && let Some(others) = counts.get(1..).filter(|others| !others.is_empty())
            {
                last.push((ALLELE_COUNT, others));
            }
        }
        info.append(&last, out)
    }
}

impl MergedLines<'_> {
    /// Appends the lines for all records that begin at one position, ordered by file.
    ///
    /// # Errors
    /// Fails for values that TileDB-VCF does not write, or that do not fit the alleles of their record. The error has
    /// the place of the record.
    pub fn append(&mut self, records: &[FileRecord<'_>], out: &mut Vec<u8>) -> Result<()> {
        for group in self.merger.groups(records)? {
            let mut fields = Vec::new();
            let mut ends = Vec::with_capacity(group.members.len());
            for member in &group.members {
                ends.push(self.add_fields(record_of(records, member)?, &mut fields)?);
            }
            let (mut line, mut start) = (Vec::with_capacity(group.members.len()), 0);
            for (member, [info_end, end]) in group.members.iter().zip(ends) {
                let FileRecord { file, record } = record_of(records, member)?;
                line.push(LineRecord {
                    file: self.merger.file(*file)?,
                    record,
                    map: &member.map,
                    info: fields.get(start..info_end).unwrap_or_default(),
                    format: fields.get(info_end..end).unwrap_or_default(),
                });
                start = end;
            }
            self.merger.append_line(&line, &group, out)?;
        }
        Ok(())
    }

    /// Adds the INFO fields of a record, then the FORMAT fields if the file has a column; returns the end of both.
    fn add_fields<'a>(&mut self, one: &FileRecord<'a>, fields: &mut Vec<KnownField<'a>>) -> Result<[usize; 2]> {
        let FileRecord { file, record } = one;
        let number = self.merger.definitions.get(*file).copied().unwrap_or_default();
        let (file, merged) = (self.merger.file(*file)?, &self.merger.header);
        let of_sample = |error: Error| match &file.sample {
            Some(sample) => error.in_field(&format!("of sample {}", String::from_utf8_lossy(sample))),
            None => error,
        };
        if self.known.len() <= number {
            self.known.resize_with(number + 1, Default::default);
        }
        let Some([info, format]) = self.known.get_mut(number) else { return Err(Error::internal("no such header")) };
        let mut place = 0;
        let added = record.for_each_info(|FieldValue { name, values }| {
            let [own, merged] = info.get(place, name, || Ok([file.header.info(name), merged.info(name)]))?;
            place += 1;
            fields.push(KnownField { name, values, own, merged });
            Ok(())
        });
        added.in_file(record.place("info")).map_err(of_sample)?;
        let info_end = fields.len();
        if file.sample.is_some() {
            place = 0;
            let added = record.for_each_format(|FieldValue { name, values }| {
                let [own, merged] = format.get(place, name, || Ok([file.header.format(name), merged.format(name)]))?;
                place += 1;
                fields.push(KnownField { name, values, own, merged });
                Ok(())
            });
            added.in_file(record.place("fmt")).map_err(of_sample)?;
            if let Some(own) = fields.get_mut(info_end..)
                && let Some(genotype) = own.iter().position(|field| field.name == GENOTYPE)
            {
                own[..=genotype].rotate_right(1);
            }
        }
        Ok([info_end, fields.len()])
    }
}

/// Returns the record of a member of a line.
fn record_of<'r, 'a>(records: &'r [FileRecord<'a>], member: &Member) -> Result<&'r FileRecord<'a>> {
    records.get(member.record).ok_or_else(|| Error::internal("a record that is none"))
}

/// Returns a number for each file, which files have in common that define the same fields in the same way.
fn numbers_of_definitions(files: &[MergedFile]) -> Vec<usize> {
    let (mut of_headers, mut of_definitions) = (HashMap::new(), HashMap::new());
    let mut numbers = Vec::with_capacity(files.len());
    for file in files {
        let number = of_headers.entry(Arc::as_ptr(&file.header)).or_insert_with(|| {
            let next = of_definitions.len();
            *of_definitions.entry(file.header.definitions()).or_insert(next)
        });
        numbers.push(*number);
    }
    numbers
}

/// Appends the distinct identifiers of records.
fn append_ids(line: &[LineRecord<'_, '_>], out: &mut Vec<u8>) -> Result<()> {
    let mut ids: Vec<&[u8]> = Vec::new();
    for LineRecord { record, .. } in line {
        let id = record.id_text().in_file(record.place("id"))?;
        if id != b"." && !ids.contains(&id) {
            ids.push(id);
        }
    }
    match ids.is_empty() {
        true => out.push(b'.'),
        false => append_joined(&ids, out),
    }
    Ok(())
}

/// Appends the highest quality.
fn append_quality(line: &[LineRecord<'_, '_>], out: &mut Vec<u8>) {
    let known = line.iter().map(|one| one.record.quality).filter(|&quality| quality != MISSING_FLOAT);
    let highest =
        known.map(f32::from_bits).reduce(|highest, quality| if highest < quality { quality } else { highest });
    append_float(highest.map_or(MISSING_FLOAT, f32::to_bits), out);
}

/// Appends the filters of all records; `PASS` only if there is no other.
fn append_filters(line: &[LineRecord<'_, '_>], out: &mut Vec<u8>) -> Result<()> {
    let mut filters: Vec<&[u8]> = Vec::new();
    let mut last: Option<(&Header, &[u8])> = None;
    for LineRecord { file, record, .. } in line {
        // Most records have the filters of the one before.
        if last.is_some_and(|(header, stored)| std::ptr::eq(header, &*file.header) && stored == record.filters) {
            continue;
        }
        last = Some((&file.header, record.filters));
        for filter in record.filter_names(&file.header).in_file(record.place("filter_ids"))? {
            if !filters.contains(&filter) {
                filters.push(filter);
            }
        }
    }
    if filters.len() > 1 {
        filters.retain(|filter| *filter != b"PASS");
    }
    match filters.is_empty() {
        true => out.push(b'.'),
        false => append_joined(&filters, out),
    }
    Ok(())
}

/// Appends texts with semicolons between them.
fn append_joined(texts: &[&[u8]], out: &mut Vec<u8>) {
    for (place, text) in texts.iter().enumerate() {
        if place > 0 {
            out.push(b';');
        }
        out.extend_from_slice(text);
    }
}
