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

use std::collections::HashSet;
use std::sync::Arc;

use tilefs_format::error::{Error, Locate, Result};

use super::fields::{FieldValue, MISSING_FLOAT, append_float};
use super::header::Definition;
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

/// The parsed fields of a record that is part of a line.
struct LineRecord<'r, 'a> {
    file: &'r MergedFile,
    record: &'r Record<'a>,
    map: &'r [usize],
    info: Vec<FieldValue<'a>>,
    format: Vec<FieldValue<'a>>,
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
        Ok(Merger { files, header, columns })
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

    /// Appends the lines for all records that begin at one position, ordered by file.
    ///
    /// # Errors
    /// Fails for values that TileDB-VCF does not write, or that do not fit the alleles of their record. The error has
    /// the place of the record.
    pub fn append(&self, records: &[FileRecord<'_>], out: &mut Vec<u8>) -> Result<()> {
        let candidates = records.iter().map(|FileRecord { file, record }| {
            let alleles = record.allele_list().in_file(record.place("alleles"))?;
            let is_symbolic = alleles.iter().any(|allele| allele.starts_with(b"<"));
            let stated_end = if is_symbolic && records.len() > 1 { self.stated_end(*file, record)? } else { None };
            Ok(Candidate { file: *file, alleles, stated_end })
        });
        let candidates = candidates.collect::<Result<Vec<_>>>()?;
        for group in groups::groups(&candidates)? {
            self.append_line(records, &group, out)?;
        }
        Ok(())
    }

    fn file(&self, number: usize) -> Result<&MergedFile> {
        self.files.get(number).ok_or_else(|| Error::internal("a record of no file"))
    }

    /// Returns the last position that a record states in `END`.
    fn stated_end(&self, file: usize, record: &Record<'_>) -> Result<Option<u64>> {
        let header = &self.file(file)?.header;
        let has_end = record.info_fields().in_file(record.place("info"))?.iter().any(|field| field.name == END);
        Ok((has_end || record.lacks_end(header)).then(|| u64::from(record.end) + 1))
    }

    fn append_line(&self, records: &[FileRecord<'_>], group: &Group, out: &mut Vec<u8>) -> Result<()> {
        let member = |member: &Member| -> Result<LineRecord<'_, '_>> {
            let FileRecord { file, record } =
                records.get(member.record).ok_or_else(|| Error::internal("a record that is none"))?;
            let file = self.file(*file)?;
            let of_sample = |error: Error| match &file.sample {
                Some(sample) => error.in_field(&format!("of sample {}", String::from_utf8_lossy(sample))),
                None => error,
            };
            let info = record.info_fields().in_file(record.place("info")).map_err(of_sample)?;
            let format = match file.sample {
                Some(_) => record.format_fields().in_file(record.place("fmt")).map_err(of_sample)?,
                None => Vec::new(),
            };
            Ok(LineRecord { file, record, map: &[], info, format })
        };
        let mut line = Vec::with_capacity(group.members.len());
        for one in &group.members {
            line.push(LineRecord { map: &one.map, ..member(one)? });
        }
        let Some(first) = line.first() else { return Ok(()) };
        first.record.append_place(out)?;
        append_ids(&line, out)?;
        for (number, allele) in group.alleles.iter().enumerate() {
            out.push(if number < 2 { b'\t' } else { b',' });
            out.extend_from_slice(if allele.is_empty() { b"." } else { allele });
        }
        if group.alleles.len() == 1 {
            out.extend_from_slice(b"\t.");
        }
        out.push(b'\t');
        append_quality(&line, out);
        out.push(b'\t');
        append_filters(&line, out)?;
        out.push(b'\t');
        let fields = FormatFields::new(&line, group.alleles.len())?;
        self.append_info(&line, &fields, group.alleles.len(), out)?;
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
        let mut last: Vec<(&[u8], Vec<u8>)> = Vec::new();
        for LineRecord { file, record, map, info: own, .. } in line {
            let alleles = Alleles { map, of_line };
            for field in own {
                let Definition { is_numeric, .. } = self.header.info(field.name);
                let definition = file.header.info(field.name);
                info.add(field.clone(), definition, is_numeric, has_samples, &alleles).in_file(record.place("info"))?;
            }
            if record.lacks_end(&file.header) && own.iter().all(|field| field.name != END) {
                info.add_position(END, u64::from(record.end) + 1);
            }
        }
        if let Some(counts) = fields.allele_counts() {
            let total: u64 = counts.iter().sum();
            if self.header.defines_info(ALLELE_NUMBER) {
                last.push((ALLELE_NUMBER, total.to_string().into_bytes()));
            }
            if self.header.defines_info(ALLELE_COUNT) && counts.len() > 1 {
                let counts: Vec<String> = counts.iter().skip(1).map(u64::to_string).collect();
                last.push((ALLELE_COUNT, counts.join(",").into_bytes()));
            }
        }
        info.append(&last, out)
    }
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
        false => out.extend_from_slice(&ids.join(&b';')),
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
    for LineRecord { file, record, .. } in line {
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
        false => out.extend_from_slice(&filters.join(&b';')),
    }
    Ok(())
}
