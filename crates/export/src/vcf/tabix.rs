//! The index of a VCF file in BGZF by position: `.tbi`, as tabix makes it.
//!
//! A record belongs to the smallest of a hierarchy of bins, of 2^14 to 2^29 positions, that holds it. The index has the
//! parts of the file with the records of each bin, and for every 2^14 positions the place of the first record that
//! overlaps them.
//!
//! Source: the specification of tabix, and that of SAM ("The basic binning index").

use std::collections::{BTreeMap, HashMap};

use tilefs_format::error::{Error, Result};

use super::bgzf::{bgzf, virtual_offset};
use crate::content::Content;

/// Positions beyond this have no bin.
const MAX_POSITION: u64 = 1 << 29;

/// Positions of the smallest bins and of the windows, as a power of two.
const WINDOW_BITS: u32 = 14;

/// Bytes of text read at a time.
const PORTION: u64 = 1 << 20;

/// The most contigs of an index.
const MAX_CONTIGS: usize = 1 << 20;

/// Returns the index of the BGZF file of a VCF text, itself in BGZF.
///
/// Memory: per contig a word for every 2^14 positions, and two words for each run of records of one bin in one block of
/// the file.
///
/// # Errors
/// Fails if the text cannot be read or is not VCF, if a record lies beyond position 2^29, and if the records of a contig
/// are not adjacent and sorted.
pub fn tabix(text: &dyn Content) -> Result<Vec<u8>> {
    let mut index = Index::default();
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
            if let Some(record) = Extent::of_line(&pending)? {
                index.add(record, place, place + length)?;
            }
            place += length;
            pending.clear();
            rest = &rest[end + 1..];
        }
        pending.extend_from_slice(rest);
    }
    Ok(bgzf(&index.bytes()))
}

/// The contig of a record, its first position, counted from 0, and the one after its last.
struct Extent<'a> {
    contig: &'a [u8],
    start: u64,
    end: u64,
}

impl<'a> Extent<'a> {
    /// Reads the line of a record; `None` for one of the header.
    fn of_line(line: &'a [u8]) -> Result<Option<Self>> {
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
        if end > MAX_POSITION {
            return Err(Error::unsupported(format!("a .tbi with the position {end}, beyond 2^29")));
        }
        Ok(Some(Extent { contig, start, end }))
    }
}

/// The entries of all contigs, in the order of the file.
#[derive(Default)]
struct Index {
    contigs: Vec<Contig>,
    known: HashMap<Vec<u8>, usize>,
}

/// The entries of one contig.
#[derive(Default)]
struct Contig {
    name: Vec<u8>,
    /// For each bin, the virtual offsets at which its runs of records begin and end.
    bins: BTreeMap<u32, Vec<(u64, u64)>>,
    /// For each window, the virtual offset of the first record that overlaps it; 0 if none does.
    windows: Vec<u64>,
    last: u64,
}

impl Index {
    /// Adds a record whose line is at these places of the text.
    fn add(&mut self, record: Extent<'_>, from: u64, to: u64) -> Result<()> {
        let number = match self.known.get(record.contig) {
            Some(number) => *number,
            None => {
                if self.contigs.len() == MAX_CONTIGS {
                    return Err(Error::unsupported("an index of so many contigs"));
                }
                self.known.insert(record.contig.to_vec(), self.contigs.len());
                self.contigs.push(Contig { name: record.contig.to_vec(), ..Contig::default() });
                self.contigs.len() - 1
            }
        };
        let is_last = number + 1 == self.contigs.len();
        let Some(contig) = self.contigs.get_mut(number).filter(|contig| is_last && contig.last <= record.start) else {
            return Err(Error::unsupported("an index of records that are not sorted"));
        };
        contig.last = record.start;
        let (from, to) = (virtual_offset(from), virtual_offset(to));
        let runs = contig.bins.entry(bin_of(record.start, record.end)).or_default();
        match runs.last_mut().filter(|last| last.1 >> 16 == from >> 16) {
            // The records between are few.
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
        let mut out = b"TBI\x01".to_vec();
        let number = |out: &mut Vec<u8>, number: usize| out.extend_from_slice(&(number as u32).to_le_bytes());
        number(&mut out, self.contigs.len());
        // The columns of VCF: contig, position, none for the end; lines of the header begin with #.
        for value in [2, 1, 2, 0, u32::from(b'#'), 0] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        number(&mut out, self.contigs.iter().map(|contig| contig.name.len() + 1).sum());
        for contig in &self.contigs {
            out.extend_from_slice(&contig.name);
            out.push(0);
        }
        for contig in &self.contigs {
            number(&mut out, contig.bins.len());
            for (bin, runs) in &contig.bins {
                out.extend_from_slice(&bin.to_le_bytes());
                number(&mut out, runs.len());
                for (from, to) in runs {
                    out.extend_from_slice(&from.to_le_bytes());
                    out.extend_from_slice(&to.to_le_bytes());
                }
            }
            number(&mut out, contig.windows.len());
            let mut before = 0;
            for &window in &contig.windows {
                // A window without records has the place of the records before it.
                before = if window == 0 { before } else { window };
                out.extend_from_slice(&before.to_le_bytes());
            }
        }
        out
    }
}

/// Returns the smallest bin that holds some positions, the last excluded.
fn bin_of(start: u64, end: u64) -> u32 {
    let last = end.saturating_sub(1).max(start);
    let level = (0..5).find(|level| start >> (WINDOW_BITS + 3 * level) == last >> (WINDOW_BITS + 3 * level));
    match level {
        // The bins of a level are numbered behind those of all larger bins.
        Some(level) => ((1 << (3 * (5 - level))) - 1) / 7 + (start >> (WINDOW_BITS + 3 * level)) as u32,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_those_of_the_specification() {
        assert_eq!(bin_of(0, 1), 4681);
        assert_eq!(bin_of(1 << 14, (1 << 14) + 1), 4682);
        assert_eq!(bin_of(0, (1 << 14) + 1), 585);
        assert_eq!(bin_of((1 << 17) - 1, (1 << 17) + 1), 73);
        assert_eq!(bin_of((1 << 20) - 1, (1 << 20) + 1), 9);
        assert_eq!(bin_of((1 << 23) - 1, (1 << 23) + 1), 1);
        assert_eq!(bin_of((1 << 26) - 1, (1 << 26) + 1), 0);
        assert_eq!(bin_of((1 << 29) - 1, 1 << 29), 37448);
    }

    #[test]
    fn records_that_cannot_be_indexed_are_errors() {
        let head = "##fileformat=VCFv4.2\n#CHROM\tPOS\n";
        let text = |lines: &str| format!("{head}{lines}").into_bytes();
        let line = |contig: &str, position: u64| format!("{contig}\t{position}\t.\tA\tC\t.\t.\tEND=1\n");
        assert!(tabix(&text(&(line("1", 5) + &line("1", 5) + &line("2", 1)))).is_ok());
        assert!(tabix(&text("")).is_ok());
        for wrong in [
            line("1", 5) + &line("1", 4),
            line("1", 5) + &line("2", 1) + &line("1", 6),
            line("1", (1 << 29) + 1),
            line("1", 0),
            "1\t2\n".to_owned(),
        ] {
            assert!(tabix(&text(&wrong)).is_err(), "{wrong}");
        }
    }
}
