//! Merges records of several files at one position into lines of one file with the samples of all, like `bcftools merge`
//! (release 1.16), with or without `-m none`.
//!
//! It differs where bcftools fails or loses values:
//!
//! * Values per genotype are mapped for any ploidy, also if they are texts.
//! * A missing value in an INFO field does not hide the values after it.
//! * The ploidy of values per genotype is derived from their number, even if the genotype itself is `.`.
//! * Records with different references at one position become different lines.
//! * Sums are not limited to 32 bits; lists of different lengths are summed element by element.

mod alleles;
mod format;
mod genotypes;
mod groups;
mod info;
mod known;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};

use super::fields::MISSING_FLOAT;
use super::line::{InfoField, Line, LineValue, MISSING, SampleFields};
use super::record::END;
use super::{Header, Record, emptied};
use format::{FormatBuffers, FormatFields};
use genotypes::Alleles;
pub use groups::LineRule;
use groups::{Candidate, GroupedRecord, LineGroup};
use info::MergedInfo;
pub use known::MergedFile;
use known::{ALLELE_COUNT, ALLELE_NUMBER, FieldNumbers, KnownField, KnownFields, LineRecord, Role};

/// Merges records of some files. Memory: the name of each file's sample, and the merged header.
pub struct Merger {
    files: Vec<MergedFile>,
    rule: LineRule,
    /// For each file, a number that it has in common with the files that define the same fields in the same way.
    definitions: Vec<usize>,
    /// The merged header.
    header: Header,
    /// Whether it defines the number of alleles in genotypes, and the count of each alternative allele.
    counts_alleles: [bool; 2],
    columns: usize,
}

/// A record of one of the merged files.
#[derive(Debug, Clone, Copy)]
pub struct FileRecord<'a> {
    /// The number of the file.
    pub file: usize,
    /// The record.
    pub record: Record<'a>,
    /// The position of its line on the contig, counted from 0: its first one or, if each site of a block is a line, that
    /// site.
    pub position: u32,
}

/// Makes lines of records. Memory: a copy of the names of the fields of a record, for each different header; and what
/// the largest line took.
pub struct MergedLines<'m> {
    merger: &'m Merger,
    /// The INFO and the FORMAT fields of a record, for each number of definitions.
    known: Vec<[KnownFields; 2]>,
    names: FieldNumbers,
    filters: Option<LineFilters<'m>>,
    /// The alleles of a record in a line that has these alleles: 0, 1 and so on.
    map: Rc<[usize]>,
    buffers: LineBuffers,
}

/// Empty lists whose memory each line takes and gives back: thousands of bytes, which an allocator would join and split
/// for each line.
#[derive(Default)]
struct LineBuffers {
    fields: Vec<KnownField<'static>>,
    ends: Vec<[usize; 2]>,
    line: Vec<LineRecord<'static, 'static, 'static>>,
    members: Vec<GroupedRecord>,
    format: FormatBuffers,
}

/// The filters of a line whose records have the same ones.
struct LineFilters<'m> {
    /// The header that numbers them.
    header: &'m Header,
    stored: Vec<u8>,
    names: Vec<&'m [u8]>,
}

impl Recorded for Merger {
    fn record(&self, recorder: &mut Recorder) {
        // The others follow from the headers of the files.
        let Self { files, rule, definitions: _, header: _, counts_alleles: _, columns: _ } = self;
        recorder.add::<Self>((files.len(), rule));
        for MergedFile { header, sample } in files {
            recorder.add::<MergedFile>(sample);
            header.record(recorder);
        }
    }
}

impl Merger {
    /// Prepares to merge files; their samples become columns in this order. The merged header has the lines of the
    /// first file, and from each further file those with new definitions.
    ///
    /// # Errors
    /// Fails if a header has no first line, or two samples have the same name.
    pub fn new(files: Vec<MergedFile>, rule: LineRule) -> Result<Self> {
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
        let counts_alleles = [ALLELE_NUMBER, ALLELE_COUNT].map(|name| header.defines_info(name));
        Ok(Merger { files, rule, definitions, header, counts_alleles, columns })
    }

    /// Returns the merged header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the rule by which records become one line.
    pub fn rule(&self) -> LineRule {
        self.rule
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
        MergedLines {
            merger: self,
            known: Vec::new(),
            names: FieldNumbers::new(),
            filters: None,
            map: Rc::default(),
            buffers: LineBuffers::default(),
        }
    }

    /// Returns the lines of the records at one position, ordered by file.
    fn groups<'a>(&self, records: &[FileRecord<'a>]) -> Result<Vec<LineGroup<'a>>> {
        let candidates = records.iter().map(|FileRecord { file, record, .. }| {
            let alleles = record.allele_list().in_file(record.place("alleles"))?;
            let is_symbolic = alleles.iter().any(|allele| allele.starts_with(b"<"));
            let stated_end = if is_symbolic && records.len() > 1 { self.stated_end(*file, record)? } else { None };
            Ok(Candidate { file: *file, alleles, stated_end })
        });
        groups::groups(&candidates.collect::<Result<Vec<_>>>()?, self.rule)
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

    fn info_fields<'l>(
        &self,
        line: &'l [LineRecord<'l, 'l, 'l>],
        fields: &FormatFields<'l>,
        of_line: usize,
    ) -> Result<Vec<InfoField<'l>>> {
        let mut info = MergedInfo::default();
        let has_samples = self.columns > 0;
        for LineRecord { file, record, map, info: own, .. } in line {
            let alleles = Alleles { map, of_line };
            for field in *own {
                info.add(field, has_samples, &alleles).in_file(record.place("info"))?;
            }
            if record.lacks_end(&file.header) && own.iter().all(|field| field.known.role != Role::End) {
                info.add_end(i64::from(record.end) + 1);
            }
        }
        let mut last = Vec::new();
        if let Some(counts) = fields.allele_counts() {
            let [has_number, has_counts] = self.counts_alleles;
            if has_number {
                last.push((ALLELE_NUMBER, LineValue::Integers(vec![counts.iter().sum()])));
            }
            if has_counts && let Some(others) = counts.get(1..).filter(|others| !others.is_empty()) {
                last.push((ALLELE_COUNT, LineValue::Integers(others.to_vec())));
            }
        }
        Ok(info.into_fields(last))
    }
}

impl<'m> MergedLines<'m> {
    /// Calls `visit` with each line for the records that begin at one position, ordered by file.
    ///
    /// # Errors
    /// Fails for values that TileDB-VCF does not write, or that do not fit the alleles of their record. The error has
    /// the place of the record. Otherwise those of `visit`.
    pub fn for_each_line(
        &mut self,
        records: &[FileRecord<'_>],
        mut visit: impl FnMut(&Line<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.only_group(records)? {
            Some(group) => self.visit_line(records, group, &mut visit),
            None => {
                let groups = self.merger.groups(records)?;
                groups.into_iter().try_for_each(|group| self.visit_line(records, group, &mut visit))
            }
        }
    }

    /// Returns the line of all records if they have the same alleles, as most records at a position have.
    fn only_group<'a>(&mut self, records: &[FileRecord<'a>]) -> Result<Option<LineGroup<'a>>> {
        let Some(FileRecord { record, .. }) = records.first() else { return Ok(None) };
        if records.windows(2).any(|two| two[0].file == two[1].file)
            || records.iter().any(|other| other.record.alleles != record.alleles)
        {
            return Ok(None);
        }
        let alleles = record.allele_list().in_file(record.place("alleles"))?;
        let members = std::mem::take(&mut self.buffers.members);
        Ok(groups::one_line(records.len(), &alleles, members, &mut self.map))
    }

    fn visit_line(
        &mut self,
        records: &[FileRecord<'_>],
        group: LineGroup<'_>,
        visit: &mut impl FnMut(&Line<'_>) -> Result<()>,
    ) -> Result<()> {
        let buffers = std::mem::take(&mut self.buffers);
        let (mut fields, mut ends, mut line) = (emptied(buffers.fields), buffers.ends, emptied(buffers.line));
        ends.clear();
        for member in &group.members {
            ends.push(self.add_fields(record_of(records, member)?, &mut fields)?);
        }
        let mut start = 0;
        for (member, &[info_end, end]) in group.members.iter().zip(&ends) {
            let FileRecord { file, record, .. } = record_of(records, member)?;
            line.push(LineRecord {
                file: self.merger.file(*file)?,
                record,
                map: &member.map,
                info: fields.get(start..info_end).unwrap_or_default(),
                format: fields.get(info_end..end).unwrap_or_default(),
            });
            start = end;
        }
        let mut format = buffers.format;
        visit(&self.line(&line, &group, &mut format)?)?;
        let line = emptied(line);
        self.buffers = LineBuffers { fields: emptied(fields), ends, line, members: emptied(group.members), format };
        Ok(())
    }

    fn line<'l>(
        &mut self,
        line: &'l [LineRecord<'l, 'l, 'm>],
        group: &'l LineGroup<'l>,
        format: &'l mut FormatBuffers,
    ) -> Result<Line<'l>> {
        let first = line.first().ok_or_else(|| Error::internal("a line of no record"))?;
        first.record.check_contig()?;
        let (ids, filters) = (ids(line)?, self.filters(line)?);
        let fields = FormatFields::new(&self.merger.files, line, group.alleles.len(), format)?;
        let info = self.merger.info_fields(line, &fields, group.alleles.len())?;
        let samples = (self.merger.columns > 0).then(|| Box::new(fields) as Box<dyn SampleFields + 'l>);
        Ok(Line {
            contig: first.record.contig,
            start: first.record.start,
            ids,
            alleles: group.alleles.iter().map(|allele| &**allele).collect(),
            quality: highest_quality(line),
            filters,
            info,
            samples,
        })
    }

    /// Adds the INFO fields of a record, then the FORMAT fields if the file has a column; returns the end of both.
    fn add_fields<'a>(&mut self, one: &FileRecord<'a>, fields: &mut Vec<KnownField<'a>>) -> Result<[usize; 2]> {
        let FileRecord { file, record, .. } = one;
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
        let (names, header) = (&mut self.names, &file.header);
        let find = |name: &[u8]| (Role::of_info(name), [header.info(name), merged.info(name)]);
        let added = info.add(record.info, record.extracted_info, names, fields, find);
        added.in_file(record.place("info")).map_err(of_sample)?;
        let info_end = fields.len();
        if file.sample.is_some() {
            let find = |name: &[u8]| (Role::of_format(name), [header.format(name), merged.format(name)]);
            let added = format.add(record.format, record.extracted_format, names, fields, find);
            added.in_file(record.place("fmt")).map_err(of_sample)?;
            if let Some(own) = fields.get_mut(info_end..)
                && let Some(genotype) = own.iter().position(|field| field.known.role == Role::Genotype)
            {
                own[..=genotype].rotate_right(1);
            }
        }
        Ok([info_end, fields.len()])
    }

    /// Returns the filters of all records; `PASS` only if there is no other.
    fn filters(&mut self, line: &[LineRecord<'_, '_, 'm>]) -> Result<Vec<&'m [u8]>> {
        let Some(first) = line.first() else { return Ok(Vec::new()) };
        let has = |one: &LineRecord<'_, '_, '_>, header: &Header, stored: &[u8]| {
            std::ptr::eq(&*one.file.header, header) && one.record.filters == stored
        };
        let are_alike = line.iter().all(|one| has(one, &first.file.header, first.record.filters));
        // Most lines have the filters of the line before.
        if let Some(known) = self.filters.as_ref().filter(|known| are_alike && has(first, known.header, &known.stored))
        {
            return Ok(known.names.clone());
        }
        let mut names: Vec<&[u8]> = Vec::new();
        for LineRecord { file, record, .. } in line {
            for filter in record.filter_names(&file.header).in_file(record.place("filter_ids"))? {
                if !names.contains(&filter) {
                    names.push(filter);
                }
            }
        }
        if names.len() > 1 {
            names.retain(|filter| *filter != b"PASS");
        }
        if are_alike {
            let (header, stored) = (&*first.file.header, first.record.filters.to_vec());
            self.filters = Some(LineFilters { header, stored, names: names.clone() });
        }
        Ok(names)
    }
}

/// Returns the record of a member of a line.
fn record_of<'r, 'a>(records: &'r [FileRecord<'a>], member: &GroupedRecord) -> Result<&'r FileRecord<'a>> {
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

/// Returns the distinct identifiers of records.
fn ids<'l>(line: &[LineRecord<'l, 'l, '_>]) -> Result<Vec<&'l [u8]>> {
    let mut ids: Vec<&[u8]> = Vec::new();
    for LineRecord { record, .. } in line {
        let id = record.id_text().in_file(record.place("id"))?;
        if id != MISSING && !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Returns the bits of the highest quality.
fn highest_quality(line: &[LineRecord<'_, '_, '_>]) -> u32 {
    let known = line.iter().map(|one| one.record.quality).filter(|&quality| quality != MISSING_FLOAT);
    let highest =
        known.map(f32::from_bits).reduce(|highest, quality| if highest < quality { quality } else { highest });
    highest.map_or(MISSING_FLOAT, f32::to_bits)
}
