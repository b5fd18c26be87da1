//! The index by position of a VCF or BCF file in BGZF: `.tbi` or `.csi`, as tabix and bcftools make them.
//!
//! A record belongs to the smallest bin that contains it. Bins form a hierarchy: the smallest have 2^14 positions, each
//! level above eight times as many. For each bin, the index lists the parts of the file with its records. A `.tbi` has
//! five levels above the smallest bins (2^29 positions), and the place of the first record that overlaps each window of
//! 2^14 positions. A `.csi` has six levels, and such a place for each bin. The index of a BCF file identifies contigs
//! by their number in the file's header, others by name.
//!
//! As in samtools and bcftools, a pseudo-bin follows the bins of each contig with records. No record can be in this
//! bin. It has the part of the file with the contig's records, and the number of the contig's records.
//!
//! Source: the specifications of tabix and CSI, and that of SAM ("The basic binning index", with the "metadata
//! pseudo-bin").

use std::collections::{BTreeMap, HashMap};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};

use super::BcfHeader;
use super::bgzf::{bgzf, virtual_offset};

/// Positions of the smallest bins and of the windows, as a power of two.
const WINDOW_BITS: u32 = 14;

/// Bytes of a file read at a time.
const PORTION: u64 = 1 << 20;

/// The most contigs of an index.
const MAX_CONTIGS: usize = 1 << 20;

/// A format of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexFormat {
    /// `.tbi`, for positions up to 2^29.
    Tbi,
    /// `.csi`, for all positions.
    Csi,
}

impl IndexFormat {
    /// Returns the number of levels above the smallest bins.
    fn depth(self) -> u32 {
        match self {
            IndexFormat::Tbi => 5,
            IndexFormat::Csi => 6,
        }
    }

    /// Returns the number of the pseudo-bin with the extent and the number of a contig's records: the last bin's number
    /// plus 2.
    fn bin_of_counts(self) -> u32 {
        first_bin(self.depth() + 1) + 1
    }

    /// Returns the first position that has no bin.
    fn max_position(self) -> u64 {
        1 << (WINDOW_BITS + 3 * self.depth())
    }
}

/// Returns the index of the BGZF file of a VCF text. The index is also in BGZF.
///
/// Memory per contig: a word for every 2^14 positions, and two words for each run of records of one bin in one block of
/// the file.
///
/// # Errors
/// Fails if the text cannot be read or is not VCF, if a record lies beyond the last position of the format, or if the
/// records of a contig are not adjacent and sorted.
pub fn tabix(text: &dyn Content, format: IndexFormat) -> Result<Vec<u8>> {
    Ok(bgzf(&index_of_text(text, format)?.bytes()))
}

fn index_of_text(text: &dyn Content, format: IndexFormat) -> Result<PositionIndex> {
    let (mut index, mut names) = (PositionIndex::new(format), Vec::new());
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let (mut at, mut pending, mut portion) = (0, Vec::new(), Vec::new());
    // The place of the first pending byte.
    let mut place = 0;
    while at < text.len() {
        portion.resize(PORTION.min(text.len() - at) as usize, 0);
        text.read_at(at, &mut portion)?;
        at += portion.len() as u64;
        let mut rest = portion.as_slice();
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            pending.extend_from_slice(&rest[..end]);
            let length = pending.len() as u64 + 1;
            if let Some((contig, record)) = RecordExtent::of_line(&pending)? {
                let number = match known.get(contig) {
                    Some(number) => *number,
                    None => {
                        known.insert(contig.to_vec(), known.len());
                        names.extend_from_slice(contig);
                        names.push(0);
                        known.len() - 1
                    }
                };
                index.add(number, record, place, place + length)?;
            }
            place += length;
            pending.clear();
            rest = &rest[end + 1..];
        }
        pending.extend_from_slice(rest);
    }
    index.names = Some(names);
    Ok(index)
}

/// Returns the `.csi` of the BGZF file of BCF with this header. The `.csi` is also in BGZF.
///
/// Memory: as for [`tabix`], and a record.
///
/// # Errors
/// As for [`tabix`].
pub fn csi_of_bcf(file: &dyn Content, header: &BcfHeader) -> Result<Vec<u8>> {
    Ok(bgzf(&index_of_bcf(file, header)?.bytes()))
}

fn index_of_bcf(file: &dyn Content, header: &BcfHeader) -> Result<PositionIndex> {
    let wrong = || Error::internal("a file of BCF that ends within its header or a record");
    // The place of the first pending byte.
    let mut place = header.bytes().len() as u64;
    if place > file.len() {
        return Err(wrong());
    }
    let mut index = PositionIndex::new(IndexFormat::Csi);
    // Readers look up contigs without records, too.
    index.contigs.resize_with(header.contig_count().min(MAX_CONTIGS), ContigEntries::default);
    let (mut at, mut pending, mut portion) = (place, Vec::new(), Vec::new());
    while at < file.len() {
        portion.resize(PORTION.min(file.len() - at) as usize, 0);
        file.read_at(at, &mut portion)?;
        at += portion.len() as u64;
        pending.extend_from_slice(&portion);
        let mut done = 0;
        while let Some(rest) = pending.get(done..) {
            let mut numbers = Numbers(rest);
            let Some((shared, of_samples)) = numbers.next().zip(numbers.next()) else { break };
            let length = 8 + u64::from(shared) + u64::from(of_samples);
            if (rest.len() as u64) < length {
                break;
            }
            let (contig, start) = numbers.next().zip(numbers.next()).ok_or_else(wrong)?;
            let end = u64::from(start) + u64::from(numbers.next().ok_or_else(wrong)?).max(1);
            index.add(contig as usize, RecordExtent { start: start.into(), end }, place, place + length)?;
            place += length;
            done += length as usize;
        }
        pending.drain(..done);
    }
    if pending.is_empty() { Ok(index) } else { Err(wrong()) }
}

/// Numbers of 32 bits, little-endian.
struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }
}

/// The first position of a record, counted from 0, and the position after its last.
#[derive(Debug, Clone, Copy)]
struct RecordExtent {
    start: u64,
    end: u64,
}

impl RecordExtent {
    /// Parses the line of a record, and also returns its contig; `None` for a header line.
    fn of_line(line: &[u8]) -> Result<Option<(&[u8], Self)>> {
        if line.first() == Some(&b'#') {
            return Ok(None);
        }
        let fields: Vec<&[u8]> = line.splitn(9, |&byte| byte == b'\t').collect();
        let [contig, position, _, reference, _, _, _, info, ..] = fields.as_slice() else {
            return Err(Error::internal("a line of VCF with too few columns"));
        };
        let number = |text: &[u8]| str::from_utf8(text).ok()?.parse::<u64>().ok();
        let position = number(position).filter(|&position| position > 0);
        let start = position.ok_or_else(|| Error::internal("a line of VCF without a position"))? - 1;
        let stated = info.split(|&byte| byte == b';').find_map(|field| number(field.strip_prefix(b"END=")?));
        // Like htslib, ignore an END before the start.
        let end = stated.filter(|&end| end > start).unwrap_or(start + (reference.len() as u64).max(1));
        Ok(Some((contig, RecordExtent { start, end })))
    }
}

/// The entries of all contigs, by number.
struct PositionIndex {
    format: IndexFormat,
    contigs: Vec<ContigEntries>,
    /// The contig of the last record.
    current: Option<usize>,
    /// The name of each contig, with a NUL; `None` for BCF.
    names: Option<Vec<u8>>,
}

/// The entries of one contig.
#[derive(Default)]
struct ContigEntries {
    /// For each bin, the virtual offsets at which its runs of records begin and end.
    bins: BTreeMap<u32, Vec<(u64, u64)>>,
    /// For each window, the virtual offset of the first record that overlaps it; 0 if none does.
    windows: Vec<u64>,
    last: u64,
    records: u64,
    /// The virtual offsets at which the first record begins, and the last one ends.
    extent: (u64, u64),
}

impl PositionIndex {
    fn new(format: IndexFormat) -> Self {
        PositionIndex { format, contigs: Vec::new(), current: None, names: None }
    }

    /// Adds a record of the contig `number`. `from` and `to` are the record's place in the uncompressed file.
    fn add(&mut self, number: usize, record: RecordExtent, from: u64, to: u64) -> Result<()> {
        if number >= self.contigs.len() {
            if number >= MAX_CONTIGS {
                return Err(Error::unsupported("an index of so many contigs"));
            }
            self.contigs.resize_with(number + 1, ContigEntries::default);
        }
        let is_current = self.current == Some(number);
        let is_next = |contig: &&mut ContigEntries| match is_current {
            true => contig.last <= record.start,
            false => contig.bins.is_empty(),
        };
        let Some(contig) = self.contigs.get_mut(number).filter(is_next) else {
            return Err(Error::unsupported("an index of records that are not sorted"));
        };
        self.current = Some(number);
        if record.end > self.format.max_position() {
            let reason = format!("an index with the position {}; a .tbi has positions up to 2^29", record.end);
            return Err(Error::unsupported(reason));
        }
        contig.last = record.start;
        let (from, to) = (virtual_offset(from), virtual_offset(to));
        contig.extent = (if contig.records == 0 { from } else { contig.extent.0 }, to);
        contig.records += 1;
        let runs = contig.bins.entry(bin_of(record.start, record.end, self.format.depth())).or_default();
        match runs.last_mut().filter(|last| last.1 >> 16 == from >> 16) {
            // Few records lie between the two runs, so join them.
            Some(last) => last.1 = to,
            None => runs.push((from, to)),
        }
        let windows = (record.start >> WINDOW_BITS) as usize..=((record.end - 1) >> WINDOW_BITS) as usize;
        if contig.windows.len() <= *windows.end() {
            contig.windows.resize(*windows.end() + 1, 0);
        }
        let windows = contig.windows.get_mut(windows).unwrap_or_default();
        windows.iter_mut().filter(|window| **window == 0).for_each(|window| *window = from);
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        let number = |out: &mut Vec<u8>, number: usize| out.extend_from_slice(&(number as u32).to_le_bytes());
        // VCF's columns: contig, position, none for the end; header lines begin with #. BCF has none.
        let mut names: Vec<u8> = Vec::new();
        if let Some(of_contigs) = &self.names {
            names.extend([2u32, 1, 2, 0, u32::from(b'#'), 0].into_iter().flat_map(u32::to_le_bytes));
            number(&mut names, of_contigs.len());
            names.extend_from_slice(of_contigs);
        }
        let mut out = Vec::new();
        match self.format {
            IndexFormat::Tbi => {
                out.extend_from_slice(b"TBI\x01");
                number(&mut out, self.contigs.len());
                out.extend_from_slice(&names);
            }
            IndexFormat::Csi => {
                out.extend_from_slice(b"CSI\x01");
                number(&mut out, WINDOW_BITS as usize);
                number(&mut out, self.format.depth() as usize);
                number(&mut out, names.len());
                out.extend_from_slice(&names);
                number(&mut out, self.contigs.len());
            }
        }
        for contig in &self.contigs {
            let windows = contig.filled_windows();
            number(&mut out, contig.bins.len() + usize::from(contig.records > 0));
            let mut bin = |bin: u32, first: u64, runs: &[(u64, u64)]| {
                out.extend_from_slice(&bin.to_le_bytes());
                if self.format == IndexFormat::Csi {
                    out.extend_from_slice(&first.to_le_bytes());
                }
                number(&mut out, runs.len());
                out.extend(runs.iter().flat_map(|(from, to)| [*from, *to]).flat_map(u64::to_le_bytes));
            };
            for (place, runs) in &contig.bins {
                bin(*place, windows.get(first_window(*place, self.format.depth())).copied().unwrap_or(0), runs);
            }
            if contig.records > 0 {
                // The 0 counts alignments without a position; all records of VCF have a position.
                bin(self.format.bin_of_counts(), 0, &[contig.extent, (contig.records, 0)]);
            }
            if self.format == IndexFormat::Tbi {
                number(&mut out, windows.len());
                windows.iter().for_each(|window| out.extend_from_slice(&window.to_le_bytes()));
            }
        }
        // The number of records without a contig.
        out.extend_from_slice(&[0; 8]);
        out
    }
}

impl ContigEntries {
    /// Returns the windows; a window without records gets the virtual offset of the window before it.
    fn filled_windows(&self) -> Vec<u64> {
        let mut before = 0;
        let fill = |&window: &u64| {
            before = if window == 0 { before } else { window };
            before
        };
        self.windows.iter().map(fill).collect()
    }
}

/// Returns the smallest bin that contains some positions; the end is exclusive.
fn bin_of(start: u64, end: u64, depth: u32) -> u32 {
    let last = end.saturating_sub(1).max(start);
    let level = (0..depth).find(|level| start >> (WINDOW_BITS + 3 * level) == last >> (WINDOW_BITS + 3 * level));
    match level {
        Some(level) => first_bin(depth - level) + (start >> (WINDOW_BITS + 3 * level)) as u32,
        None => 0,
    }
}

/// Returns the number of the first bin `below` levels below the largest bin. Larger bins have lower numbers.
fn first_bin(below: u32) -> u32 {
    ((1 << (3 * below)) - 1) / 7
}

/// Returns the number of the window at the start of a bin.
fn first_window(bin: u32, depth: u32) -> usize {
    let below = (0..=depth).rev().find(|&below| first_bin(below) <= bin).unwrap_or(0);
    ((bin - first_bin(below)) as usize) << (3 * (depth - below))
}

#[cfg(test)]
mod tests {
    use super::super::bcf::testing::append_lines;
    use super::*;

    #[test]
    fn bins_are_those_of_the_specification() {
        assert_eq!(bin_of(0, 1, 5), 4681);
        assert_eq!(bin_of(1 << 14, (1 << 14) + 1, 5), 4682);
        assert_eq!(bin_of(0, (1 << 14) + 1, 5), 585);
        assert_eq!(bin_of((1 << 17) - 1, (1 << 17) + 1, 5), 73);
        assert_eq!(bin_of((1 << 20) - 1, (1 << 20) + 1, 5), 9);
        assert_eq!(bin_of((1 << 23) - 1, (1 << 23) + 1, 5), 1);
        assert_eq!(bin_of((1 << 26) - 1, (1 << 26) + 1, 5), 0);
        assert_eq!(bin_of((1 << 29) - 1, 1 << 29, 5), 37448);
        assert_eq!(bin_of(0, 1, 6), 37449);
        for (start, end) in [(0, 1), (1 << 20, (1 << 20) + 5), (1 << 30, 3 << 29), (5 << 26, 6 << 26), (0, 1 << 32)] {
            let window = first_window(bin_of(start, end, 6), 6) as u64;
            assert!(window << WINDOW_BITS <= start && (start == 0 || window > 0), "{start}");
        }
    }

    #[test]
    fn the_last_bin_of_a_contig_counts_its_records() {
        let line = |contig: &str, position: u64| format!("{contig}\t{position}\t.\tA\tC\t.\t.\t.\n");
        let (first, second) = (line("1", 5) + &line("1", 16_384), line("2", 9));
        let text = [first.as_bytes(), second.as_bytes()].concat();
        let ends = [0, first.len() as u64, text.len() as u64].map(virtual_offset);
        for (format, bin, behind) in [(IndexFormat::Tbi, 37_450u32, 0), (IndexFormat::Csi, 299_594, 8)] {
            let bytes = index_of_text(&text, format).unwrap().bytes();
            for (from, to, records) in [(ends[0], ends[1], 2u64), (ends[1], ends[2], 1)] {
                let values: Vec<u8> = [from, to, records, 0].into_iter().flat_map(u64::to_le_bytes).collect();
                let wanted = [&bin.to_le_bytes()[..], &vec![0; behind], &2u32.to_le_bytes(), &values].concat();
                let count = bytes.windows(wanted.len()).filter(|window| *window == wanted.as_slice()).count();
                assert_eq!(count, 1, "{format:?}: {records} records from {from} to {to}");
            }
            assert!(bytes.ends_with(&[0; 8]));
            // A contig without records has no bins.
            let none = index_of_bcf(&bcf(""), &header()).unwrap().bytes();
            assert_eq!(none.len(), 20 + 4 * 4 + 8);
        }
    }

    #[test]
    fn records_that_cannot_be_indexed_are_errors() {
        let head = "##fileformat=VCFv4.2\n#CHROM\tPOS\n";
        let text = |lines: &str| format!("{head}{lines}").into_bytes();
        let line = |contig: &str, position: u64| format!("{contig}\t{position}\t.\tA\tC\t.\t.\tEND=1\n");
        assert!(tabix(&text(&(line("1", 5) + &line("1", 5) + &line("2", 1))), IndexFormat::Tbi).is_ok());
        assert!(tabix(&text(""), IndexFormat::Csi).is_ok());
        assert!(tabix(&text(&line("1", (1 << 29) + 1)), IndexFormat::Csi).is_ok());
        for wrong in [
            line("1", 5) + &line("1", 4),
            line("1", 5) + &line("2", 1) + &line("1", 6),
            line("1", (1 << 29) + 1),
            line("1", 0),
            "1\t2\n".to_owned(),
        ] {
            assert!(tabix(&text(&wrong), IndexFormat::Tbi).is_err(), "{wrong}");
        }
    }

    fn header() -> BcfHeader {
        let head = "##fileformat=VCFv4.2\n##INFO=<ID=END,Number=1,Type=Integer>\n##contig=<ID=3>\n##contig=<ID=1>\n\
            ##contig=<ID=2>\n##contig=<ID=4>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n";
        BcfHeader::new(head.as_bytes(), &[]).unwrap()
    }

    fn bcf(lines: &str) -> Vec<u8> {
        let header = header();
        let mut file = header.bytes().to_vec();
        append_lines(&header, lines.as_bytes(), &mut file).unwrap();
        file
    }

    #[test]
    fn bcf_has_the_bins_of_the_same_text() {
        let line = |contig: &str, position: u64, end: u64| format!("{contig}\t{position}\t.\tAC\tC\t.\t.\tEND={end}\n");
        let lines = line("1", 5, 1) + &line("1", 16_384, 1 << 24) + &line("1", 1 << 30, 1 << 30) + &line("2", 9, 9);
        let bins = |index: PositionIndex| {
            let bins = |contig: &ContigEntries| contig.bins.keys().copied().collect::<Vec<_>>();
            index.contigs.iter().map(bins).collect::<Vec<_>>()
        };
        let of_text = bins(index_of_text(&lines.clone().into_bytes(), IndexFormat::Csi).unwrap());
        let of_bcf = bins(index_of_bcf(&bcf(&lines), &header()).unwrap());
        assert_eq!(of_text.concat().len(), 4);
        // The header has a contig before those of the records, and one after them.
        assert_eq!(of_bcf, [vec![vec![]], of_text, vec![vec![]]].concat());
        assert!(csi_of_bcf(&bcf(""), &header()).is_ok());
        for wrong in [line("1", 5, 5) + &line("1", 4, 4), line("1", 5, 5) + &line("2", 1, 1) + &line("1", 6, 6)] {
            assert!(csi_of_bcf(&bcf(&wrong), &header()).is_err(), "{wrong}");
        }
        let whole = bcf(&lines);
        for end in [0, 8, whole.len() - 200, whole.len() - 1] {
            assert!(csi_of_bcf(&whole[..end].to_vec(), &header()).is_err(), "{end}");
        }
    }
}
