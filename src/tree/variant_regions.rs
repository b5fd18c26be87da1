//! Regions of contigs in the notation of bcftools, and lists of them in BED.

use std::ops::RangeInclusive;

use tilefs_reader::percent;

/// A region of a contig: positions from the first to the last, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub contig: Vec<u8>,
    pub positions: RangeInclusive<u32>,
}

/// All positions of a contig.
pub const ALL: RangeInclusive<u32> = 0..=u32::MAX;

impl Region {
    /// Parses a region in the notation of bcftools: `1`, `1:12000`, `1:12000-` or `1:12000-13000`, with positions from
    /// 1, both ends included. The contig may contain percent escapes and colons.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_positions = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let (contig, positions) = match text.rsplit_once(':').filter(|(_, positions)| is_positions(positions)) {
            Some((contig, positions)) => (contig, Some(positions)),
            None => (text, None),
        };
        if contig.is_empty() {
            return Err("a region without a contig; write a region as 1:12000-13000".to_owned());
        }
        let position = |text: &str| {
            let position = text.parse::<u32>().ok().and_then(|position| position.checked_sub(1));
            position.ok_or_else(|| format!("{text:?} is not a position; write a region as 1:12000-13000"))
        };
        let positions = match positions.map(|positions| (positions, positions.split_once('-'))) {
            None => ALL,
            Some((only, None)) => position(only)?..=position(only)?,
            Some((_, Some((low, "")))) => position(low)?..=u32::MAX,
            Some((_, Some((low, high)))) => position(low)?..=position(high)?,
        };
        if positions.is_empty() {
            return Err(format!("{text} ends before it begins"));
        }
        let contig =
            percent::unescape(contig).map_err(|at| format!("the escape at byte {at} of {text:?} is broken"))?;
        Ok(Region { contig, positions })
    }
}

/// Parses regions separated by commas; a comma in the name of a contig is escaped.
pub fn parse_list(text: &str) -> Result<Vec<Region>, String> {
    text.split(',').map(Region::parse).collect::<Result<_, _>>().map(disjoint)
}

/// Groups regions by contig, in the order of first mention. Those of a contig are sorted, and overlapping ones are
/// joined.
pub fn disjoint(regions: Vec<Region>) -> Vec<Region> {
    let mut by_contig: Vec<(Vec<u8>, Vec<RangeInclusive<u32>>)> = Vec::new();
    for Region { contig, positions } in regions {
        match by_contig.iter_mut().find(|(known, _)| *known == contig) {
            Some((_, all)) => all.push(positions),
            None => by_contig.push((contig, vec![positions])),
        }
    }
    let mut all = Vec::new();
    for (contig, mut ranges) in by_contig {
        ranges.sort_by_key(|range| *range.start());
        let mut united: Vec<RangeInclusive<u32>> = Vec::new();
        for range in ranges {
            match united.last_mut().filter(|last| range.start() <= last.end()) {
                Some(last) => *last = *last.start()..=*last.end().max(range.end()),
                None => united.push(range),
            }
        }
        all.extend(united.into_iter().map(|positions| Region { contig: contig.clone(), positions }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_those_of_bcftools() {
        let region = |contig: &str, positions| Ok(Region { contig: contig.as_bytes().to_vec(), positions });
        assert_eq!(Region::parse("1:12000-13000"), region("1", 11_999..=12_999));
        assert_eq!(Region::parse("chrX"), region("chrX", 0..=u32::MAX));
        assert_eq!(Region::parse("chrX:7"), region("chrX", 6..=6));
        assert_eq!(Region::parse("chrX:7-"), region("chrX", 6..=u32::MAX));
        assert_eq!(Region::parse("HLA*01:a:5-6"), region("HLA*01:a", 4..=5));
        assert_eq!(Region::parse("a%2Fb%3A1"), region("a/b:1", 0..=u32::MAX));
        for wrong in ["", ":5", "1:0", "1:5-4", "1:5-x", "1:5-6-7", "1:99999999999", "%zz"] {
            assert!(Region::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn regions_that_overlap_are_united() {
        let regions = parse_list("b:5-9,a:1-3,b:1-2,b:9-12,b:6,a:4-5").unwrap();
        let shown = regions.into_iter().map(|region| {
            let contig = String::from_utf8(region.contig).unwrap();
            (contig, *region.positions.start(), *region.positions.end())
        });
        assert!(parse_list("1:5,2:0").is_err() && parse_list("1:5,").is_err());
        let wanted = [("b", 0, 1), ("b", 4, 11), ("a", 0, 2), ("a", 3, 4)];
        assert!(shown.eq(wanted.map(|(contig, low, high)| (contig.to_owned(), low, high))));
    }
}
