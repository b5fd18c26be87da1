//! The sites of the blocks of a gVCF: a line for each position of a block, by the rules of `bcftools convert --gvcf2vcf`.
//!
//! A block is a record with one `END` in INFO that has no alternative allele or whose first one is symbolic, one of them
//! being `<*>`, `<X>` or `<NON_REF>`. The line of a site has the base of the reference genome instead of the first
//! letter of the record's reference allele, and no `END`; all else is that of the block. A block that ends before it
//! begins, or whose `END` is missing, has no line.
//!
//! Lines are in the order of their positions, which bcftools leaves to other tools: where a block overlaps another
//! record, the lines of the block stand before those of a record that begins at the same position.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::{Recorded, Recorder};

use crate::dataset::arrays::VariantDataset;
use crate::dataset::cells::{RecordKey, RecordSpan, SampleCells, SpanCells, WindowRecords};
use crate::fields::{FieldValues, MISSING_INTEGER};
use crate::header::Header;
use crate::layout::{DatasetLayout, PositionWindow};
use crate::line::Line;
use crate::merge::FileRecord;
use crate::record::{END, Record};
use crate::reference::{ReferenceBases, ReferenceGenome};

/// The alternative alleles of blocks: of the specification, of early releases of samtools, and of GATK.
const OF_BLOCKS: [&[u8]; 3] = [b"<*>", b"<X>", b"<NON_REF>"];

/// How the blocks of a file become lines.
pub(super) struct BlockSites {
    reference: Arc<ReferenceGenome>,
    /// Whether the header defines `END` as an integer. Otherwise there are no blocks.
    has_ends: bool,
}

impl Recorded for BlockSites {
    fn record(&self, recorder: &mut Recorder) {
        let Self { reference, has_ends } = self;
        recorder.add::<Self>(has_ends);
        reference.record(recorder);
    }
}

impl BlockSites {
    pub fn new(reference: Arc<ReferenceGenome>, header: &Header) -> Self {
        BlockSites { reference, has_ends: header.defines_integer_end() }
    }

    /// Prepares to make lines.
    pub fn bases(&self) -> ReferenceBases<'_> {
        self.reference.bases()
    }

    /// Returns the positions of the lines of a block, counted from 0; `None` if the record is no block.
    ///
    /// # Errors
    /// Fails for malformed alleles and fields, and for an `END` after the stored end of the record.
    fn of_record(&self, record: &Record<'_>, header: &Header) -> Result<Option<RangeInclusive<u32>>> {
        if !self.has_ends || !is_like_block(&record.allele_list().in_file(record.place("alleles"))?) {
            return Ok(None);
        }
        let mut stored = None;
        let visited = record.for_each_info(|field| {
            if field.name == END && stored.is_none() {
                stored = Some(field.values);
            }
            Ok(())
        });
        visited.in_file(record.place("info"))?;
        let end = match stored {
            Some(FieldValues::Integers([end])) => i32::from_le_bytes(*end),
            Some(_) => return Ok(None),
            None if record.lacks_end(header) => return Ok(Some(record.start..=record.end)),
            None => return Ok(None),
        };
        let none = RangeInclusive::new(1, 0);
        let last = match end {
            MISSING_INTEGER | 0 => return Ok(Some(none)),
            end => u32::try_from(end - 1),
        };
        match last {
            Ok(last) if last > record.end.max(record.start) => {
                let reason = format!("END={end} of a record that ends at {}", u64::from(record.end) + 1);
                Err(Error::damaged(reason).in_file(record.place("info")))
            }
            Ok(last) if last >= record.start => Ok(Some(record.start..=last)),
            _ => Ok(Some(none)),
        }
    }

    /// Calls `visit` with each of some lines of a record: those of its sites, if it is a block.
    ///
    /// # Errors
    /// Fails if the reference genome has no base there, and as for [`Record::line`]; otherwise those of `visit`.
    pub fn for_each_line(
        &self,
        lines: &[FileRecord<'_>],
        header: &Header,
        has_sample: bool,
        bases: &mut ReferenceBases<'_>,
        visit: &mut dyn FnMut(&Line<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(FileRecord { record, .. }) = lines.first() else { return Ok(()) };
        if self.of_record(record, header)?.is_none() {
            return visit(&record.line(header, has_sample)?);
        }
        let alleles = record.allele_list().in_file(record.place("alleles"))?;
        let others = alleles.first().and_then(|reference| reference.get(1..)).unwrap_or_default();
        let mut references = Vec::with_capacity(lines.len() * (1 + others.len()));
        for one in lines {
            references.push(bases.at(record.contig, one.position)?);
            references.extend_from_slice(others);
        }
        let mut line = record.line(header, has_sample)?;
        if let Some(end) = line.info.iter().position(|(name, _)| *name == END) {
            line.info.remove(end);
        }
        for (one, reference) in lines.iter().zip(references.chunks_exact(1 + others.len())) {
            line.start = one.position;
            if let Some(allele) = line.alleles.first_mut() {
                *allele = reference;
            }
            visit(&line)?;
        }
        Ok(())
    }
}

/// Returns whether the alleles are those of a block.
fn is_like_block(alleles: &[&[u8]]) -> bool {
    match alleles {
        [] | [_] => true,
        [_, others @ ..] => {
            let is_first_symbolic = others.first().is_some_and(|first| first.starts_with(b"<"));
            is_first_symbolic && others.iter().any(|allele| OF_BLOCKS.contains(allele))
        }
    }
}

/// The cells that may have the lines of some parts of a file.
pub(super) struct FoundParts {
    /// The parts: the positions of their lines.
    pub parts: Vec<RecordSpan>,
    pub cells: SpanCells,
    /// For each window of records, the number of its part, if each site of a block is a line.
    part_of: Vec<usize>,
}

impl FoundParts {
    /// Finds the cells of parts whose lines are records. Reads no cell.
    ///
    /// # Errors
    /// Fails if the R-trees cannot be read.
    pub fn of_records(cells: &SampleCells, parts: Vec<RecordSpan>) -> Result<Self> {
        Ok(FoundParts { cells: cells.find(parts.clone())?, parts, part_of: Vec::new() })
    }

    /// Finds the cells of parts in which each site of a block is a line. Reads no cell.
    ///
    /// A part has the lines at its `starts`, of records that reach its `least_end`. Blocks that begin before the part
    /// also have lines in it, and are found as those of a region.
    ///
    /// # Errors
    /// As for [`FoundParts::of_records`].
    pub fn of_sites(cells: &SampleCells, layout: &DatasetLayout, parts: Vec<RecordSpan>) -> Result<Self> {
        let (mut windows, mut part_of) = (Vec::new(), Vec::new());
        for (number, part) in parts.iter().enumerate() {
            let first = part.window.least_end.max(*part.window.starts.start());
            let positions = first..=first.max(*part.window.starts.end());
            for window in layout.windows(&positions, part.contig_start) {
                windows.push(RecordSpan { window, ..part.clone() });
                part_of.push(number);
            }
        }
        Ok(FoundParts { cells: cells.find(windows)?, parts, part_of })
    }
}

/// The lines of a record in a part of a file.
struct RecordLinesAt {
    key: RecordKey,
    /// The first and the last position of the record, and those of its lines in the part, all in the dataset.
    extent: [u32; 2],
    lines: RangeInclusive<u32>,
}

impl RecordLinesAt {
    fn count(&self) -> usize {
        let count = u64::from(self.lines.end() - self.lines.start()) + 1;
        usize::try_from(count).unwrap_or(usize::MAX)
    }
}

impl BlockSites {
    /// Reads the records of the lines of some parts; returns `None` if there are more than `most` lines.
    ///
    /// # Errors
    /// Fails if a record cannot be read, or a block is malformed.
    pub fn read(
        &self,
        (dataset, cells): (&VariantDataset, &SampleCells),
        header: &Header,
        found: FoundParts,
        most: usize,
    ) -> Result<Option<WindowRecords>> {
        let FoundParts { parts, cells: visited, part_of } = found;
        let records = cells.read(visited)?;
        let numbered = dataset.numbered()?;
        let (mut lines, mut keys) = (Vec::new(), records.order().iter());
        cells.for_each_position(&records, records.order(), |at_position| {
            for (FileRecord { record, .. }, key) in at_position.iter().zip(&mut keys) {
                let lost = || Error::internal("a record of no part");
                let number = part_of.get(key.span as usize).copied().ok_or_else(lost)?;
                let sites = self.of_record(record, header)?;
                if let Some(numbered) = sites.as_ref().and(numbered.as_ref())
                    && numbered.contigs.length(record.contig).is_none_or(|length| record.end >= length)
                {
                    let reason = format!("a block that ends at {}, after its contig", u64::from(record.end) + 1);
                    return Err(Error::damaged(reason).in_file(record.place("END")));
                }
                lines.extend(lines_in(parts.get(number).ok_or_else(lost)?, number, record, *key, sites));
            }
            Ok(())
        })?;
        let count = lines.iter().map(RecordLinesAt::count).fold(0, usize::saturating_add);
        Ok((count <= most).then(|| records.with_lines(parts, in_order(lines, count))))
    }
}

/// Returns the lines of a record in a part, if there are any. `sites` are those of a block.
fn lines_in(
    part: &RecordSpan,
    number: usize,
    record: &Record<'_>,
    key: RecordKey,
    sites: Option<RangeInclusive<u32>>,
) -> Option<RecordLinesAt> {
    let PositionWindow { starts, least_end, .. } = &part.window;
    let in_dataset = |position: u32| position.saturating_add(part.contig_start);
    let lines = match sites {
        None => key.position.max(*starts.start())..=key.position.min(*starts.end()),
        Some(sites) => {
            let first = in_dataset(*sites.start()).max(*starts.start()).max(*least_end);
            first..=in_dataset(*sites.end()).min(*starts.end())
        }
    };
    let extent = [record.start, record.end].map(in_dataset);
    (!lines.is_empty()).then(|| RecordLinesAt { key: key.at(number as u32, key.position), extent, lines })
}

/// Returns the keys of lines in their order, which does not depend on how a file is divided into parts. `count` is their
/// number. `lines` are in the order of a file in which a block is a line: it holds where records begin at the same
/// position. Blocks that began before are in the order of their extents.
fn in_order(mut lines: Vec<RecordLinesAt>, count: usize) -> Vec<RecordKey> {
    let begins = |one: &RecordLinesAt, position: u32| position == one.extent[0];
    let firsts: Vec<RecordKey> =
        lines.iter().filter(|one| begins(one, *one.lines.start())).map(|one| one.key).collect();
    let mut order = Vec::with_capacity(count);
    lines.sort_by_key(|one| (one.key.span, one.extent, one.key));
    for one in &lines {
        let later = one.lines.clone().filter(|position| !begins(one, *position));
        order.extend(later.map(|position| one.key.at(one.key.span, position)));
    }
    order.extend(firsts);
    // The sort is stable.
    order.sort_by_key(|key| (key.span, key.position));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::MISSING_FLOAT;
    use crate::fields::testing::{FieldExample, stored};

    const HEADER: &[u8] = b"##fileformat=VCFv4.2\n##INFO=<ID=DP,Type=Integer>\n##INFO=<ID=END,Type=Integer>\n";

    /// Returns the lines of a record at each of its sites, or the whole record as a line.
    fn lines(header: &[u8], alleles: &str, info: &[(&str, FieldExample)], end: u32) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ref.fa");
        std::fs::write(&path, ">1\nACGTacgtNn\n").unwrap();
        let header = Header::parse(header)?;
        let sites = BlockSites::new(Arc::new(ReferenceGenome::open(&path)?), &header);
        let (alleles, info) = (format!("{alleles}\0").into_bytes(), stored(info));
        let record = Record {
            contig: b"1",
            start: 2,
            end,
            quality: MISSING_FLOAT,
            alleles: &alleles,
            id: b".\0",
            filters: &[0; 4],
            info: &info,
            format: &[0; 4],
            extracted_info: &[],
            extracted_format: &[],
        };
        let (mut text, mut bases) = (Vec::new(), sites.bases());
        let positions = sites.of_record(&record, &header)?.unwrap_or(2..=2);
        let lines: Vec<FileRecord<'_>> = positions.map(|position| FileRecord { file: 0, record, position }).collect();
        sites.for_each_line(&lines, &header, false, &mut bases, &mut |line| line.append(&mut text))?;
        Ok(String::from_utf8(text).unwrap().replace('\t', " "))
    }

    #[test]
    fn blocks_are_those_of_bcftools() {
        let end = |end: i32| ("END", FieldExample::Integers(vec![end]));
        let sites = |refs: [&str; 3], others: &str| {
            let line = |(at, allele): (usize, &&str)| format!("1 {} . {allele} {others} . . .\n", at + 3);
            refs.iter().enumerate().map(line).collect::<String>()
        };
        for others in ["<NON_REF>", "<*>", "<X>", "<DEL>,<*>", "<X>,A", "<*>,<NON_REF>"] {
            assert_eq!(lines(HEADER, &format!("g,{others}"), &[end(5)], 4).unwrap(), sites(["G", "T", "a"], others));
        }
        assert_eq!(lines(HEADER, "G", &[end(5)], 4).unwrap(), sites(["G", "T", "a"], "."));
        // Only the first letter of the reference allele is replaced.
        assert_eq!(lines(HEADER, "GAA", &[end(5)], 4).unwrap(), sites(["GAA", "TAA", "aAA"], "."));
        assert_eq!(lines(HEADER, "", &[end(5)], 4).unwrap(), sites(["G", "T", "a"], "."));
        for others in ["A,<NON_REF>", "<DEL>", "<NON_REF2>", "*,<*>", "<non_ref>"] {
            let kept = format!("1 3 . G {others} . . END=5\n");
            assert_eq!(lines(HEADER, &format!("G,{others}"), &[end(5)], 4).unwrap(), kept);
        }
        let depth = ("DP", FieldExample::Integers(vec![7]));
        let both = lines(HEADER, "G,<*>", &[depth.clone(), end(4)], 3).unwrap();
        assert_eq!(both, "1 3 . G <*> . . DP=7\n1 4 . T <*> . . DP=7\n");
        // An END that is not stored is known from the end of the record, if that differs from that of its allele.
        assert_eq!(lines(HEADER, "G,<*>", &[], 4).unwrap(), sites(["G", "T", "a"], "<*>"));
        assert_eq!(lines(HEADER, "t,<*>", &[], 2).unwrap(), "1 3 . t <*> . . .\n");
    }

    #[test]
    fn ends_that_are_no_positions_are_those_of_bcftools() {
        let of = |values: FieldExample, last: u32| lines(HEADER, "C,<*>", &[("END", values)], last);
        for end in [i32::MIN, i32::MIN + 9, -1, 0, 1, 2] {
            assert_eq!(of(FieldExample::Integers(vec![end]), 2).unwrap(), "", "{end}");
        }
        assert_eq!(of(FieldExample::Integers(vec![3]), 2).unwrap(), "1 3 . G <*> . . .\n");
        assert_eq!(of(FieldExample::Integers(vec![3, 4]), 2).unwrap(), "1 3 . C <*> . . END=3,4\n");
        assert_eq!(of(FieldExample::Flag, 2).unwrap(), "1 3 . C <*> . . END\n");
        let error = of(FieldExample::Integers(vec![9]), 4).unwrap_err().to_string();
        assert!(error.contains("END=9 of a record that ends at 5") && error.contains("1:3"), "{error}");
        let error = of(FieldExample::Integers(vec![11]), 10).unwrap_err();
        assert!(error.to_string().contains("no base at 1:11 in the reference, which has 10 bases of 1"), "{error}");
        let of_text = b"##fileformat=VCFv4.2\n##INFO=<ID=END,Type=String>\n##INFO=<ID=END,Type=Integer>\n";
        for header in [&of_text[..], b"##fileformat=VCFv4.2\n"] {
            let kept = lines(header, "C,<*>", &[("END", FieldExample::Integers(vec![4]))], 3).unwrap();
            assert_eq!(kept, "1 3 . C <*> . . END=4\n");
        }
    }
}
