//! Says why a file of variants has no records, or regions of it cannot have any.

use std::collections::HashSet;

use tilefs_base::error::Result;
use tilefs_base::misspelt::wrong_letters;

use crate::dataset::regions::Region;
use crate::dataset::spans::{FileSamples, SelectedRegions};

/// Number of contigs or regions that are named.
const NAMED: usize = 3;

/// Number of contigs of a header that are compared with a misspelt name letter by letter.
const COMPARED: usize = 10_000;

impl FileSamples<'_> {
    /// Returns a remark about a file of some regions, or of everything, given the contigs on which it has records: it
    /// names contigs that do not exist, and the reason if there are no records at all.
    ///
    /// # Errors
    /// Fails if the contigs of the dataset cannot be read.
    pub fn remark(&self, selected: Option<&SelectedRegions>, with_records: &HashSet<&[u8]>) -> Result<Option<String>> {
        let Some(SelectedRegions { regions, unnamed }) = selected else {
            let none = "the dataset has no records of this file's samples";
            return Ok(with_records.is_empty().then(|| none.to_owned()));
        };
        let unknown: Vec<&[u8]> =
            unnamed.iter().map(Vec::as_slice).filter(|contig| !with_records.contains(contig)).collect();
        let mut reasons = Vec::new();
        for contig in unknown.iter().take(NAMED) {
            let shown = String::from_utf8_lossy(contig);
            let near = match self.nearest_contig(contig) {
                Some(near) => format!("; the nearest name is {near}"),
                None => String::new(),
            };
            reasons.push(format!("no header names the contig {shown}, and no record is on it{near}"));
        }
        if unknown.len() > NAMED {
            reasons.push(format!("so it is with {} more contigs", unknown.len() - NAMED));
        }
        if with_records.is_empty() {
            let known: Vec<&Region> =
                regions.iter().filter(|region| !unknown.contains(&region.contig.as_slice())).collect();
            for region in known.iter().take(NAMED) {
                reasons.push(match self.contig_end(&region.contig)? {
                    Some(end) if u64::from(*region.positions.start()) >= end => {
                        format!("{} ends at {end}, before {}", String::from_utf8_lossy(&region.contig), region.shown())
                    }
                    _ => format!("no record overlaps {}", region.shown()),
                });
            }
            if known.len() > NAMED {
                reasons.push(format!("nor one of {} more regions", known.len() - NAMED));
            }
        }
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    /// Returns the last position of a contig, if it is known.
    fn contig_end(&self, contig: &[u8]) -> Result<Option<u64>> {
        Ok(match self.dataset.numbered()? {
            Some(numbered) => numbered.contigs.length(contig).map(u64::from),
            None => self.header.contig_length(contig),
        })
    }

    /// Returns the contig of the header that is probably meant: the same one as another reference calls it, or one with
    /// few other letters.
    fn nearest_contig(&self, wanted: &[u8]) -> Option<String> {
        let common = common_name(wanted);
        let found = self
            .header
            .contigs()
            .find(|name| common_name(name) == common)
            .map(|name| String::from_utf8_lossy(name).into_owned());
        found.or_else(|| {
            let wanted = String::from_utf8_lossy(wanted);
            let names = self.header.contigs().take(COMPARED).map(String::from_utf8_lossy);
            let near = names.filter_map(|name| Some((wrong_letters(&wanted, &name)?, name)));
            near.min_by_key(|(wrong, _)| *wrong).map(|(_, name)| name.into_owned())
        })
    }
}

/// Returns the name that references give to the same contig: `chr1` and `1` are one, and so are `chrM` and `MT`.
fn common_name(contig: &[u8]) -> Vec<u8> {
    let name = contig.to_ascii_lowercase();
    match name.strip_prefix(b"chr").unwrap_or(&name) {
        b"m" => b"mt".to_vec(),
        name => name.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_the_same_contig_differently() {
        for (one, other) in [("chr12", "12"), ("Chr12", "chr12"), ("chrM", "MT"), ("M", "chrMT"), ("x", "chrX")] {
            assert_eq!(common_name(one.as_bytes()), common_name(other.as_bytes()), "{one} {other}");
        }
        for (one, other) in [("chr1", "2"), ("chr", "12"), ("chrM", "M_random")] {
            assert_ne!(common_name(one.as_bytes()), common_name(other.as_bytes()), "{one} {other}");
        }
    }
}
