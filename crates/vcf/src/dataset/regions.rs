//! Regions of contigs in the notation of htslib, and lists of them in BED.
//!
//! Names of contigs may have colons: `HLA-A*01:01:01:01` is a contig, or positions on `HLA-A*01:01:01`. As in htslib,
//! the contigs that exist decide: a text is a contig if one has this name, otherwise a contig and positions behind the
//! last colon. `{HLA-A*01:01:01}:01` says where the name ends.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tilefs_base::error::Result as Done;
use tilefs_base::percent;

/// A region of a contig: positions from the first to the last, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub contig: Vec<u8>,
    pub positions: RangeInclusive<u32>,
}

impl Region {
    /// Returns the region as paths write it, for people.
    pub fn shown(&self) -> String {
        let contig = String::from_utf8_lossy(&self.contig);
        match (self.positions.start(), self.positions.end()) {
            _ if self.positions == ALL => contig.into_owned(),
            (start, &u32::MAX) => format!("{contig}:{}-", u64::from(*start) + 1),
            (start, end) if start == end => format!("{contig}:{}", u64::from(*start) + 1),
            (start, end) => format!("{contig}:{}-{}", u64::from(*start) + 1, u64::from(*end) + 1),
        }
    }
}

/// All positions of a contig.
pub const ALL: RangeInclusive<u32> = 0..=u32::MAX;

const EXAMPLE: &str = "write a region as 1:12000-13000";

/// A region as a path writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRegion {
    /// The whole text as the name of a contig, if it can be read in another way, too.
    whole: Option<Vec<u8>>,
    /// The contig and the positions on it, or the reason why the text does not have these.
    parts: Result<Region, String>,
}

impl WrittenRegion {
    /// Parses `1`, `1:12000`, `1:12,000-` or `1:12000-13000`, with positions from 1, both ends included, which may have
    /// commas between thousands. The contig may be in braces, and have percent escapes.
    ///
    /// # Errors
    /// Returns the reason why it is neither a contig nor a region.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unescaped =
            |name: &str| percent::unescape(name).map_err(|at| format!("the escape at byte {at} of {name:?} is broken"));
        let is_positions = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
        let whole = unescaped(text)?;
        let (name, written) = match text.strip_prefix('{') {
            Some(rest) => match rest.split_once('}') {
                Some((name, "")) => (name, None),
                Some((name, behind)) if behind.starts_with(':') => (name, behind.strip_prefix(':')),
                _ => {
                    let parts = Err(format!("{text:?} has no }} or }}: behind the contig; {EXAMPLE}"));
                    return Ok(WrittenRegion { whole: Some(whole), parts });
                }
            },
            None => match text.rsplit_once(':').filter(|(_, written)| is_positions(written)) {
                Some((name, written)) => (name, Some(written)),
                None => (text, None),
            },
        };
        if text.is_empty() || text.starts_with("{}") {
            return Err(format!("a region without a contig; {EXAMPLE}"));
        }
        let contig = unescaped(name)?;
        let region = |positions| Region { contig, positions };
        let parts = match (name.is_empty(), written) {
            (true, _) => Err(format!("a region without a contig; {EXAMPLE}")),
            (false, None) => Ok(region(ALL)),
            (false, Some(written)) => positions(text, written).map(region),
        };
        Ok(WrittenRegion { whole: (name != text).then_some(whole), parts })
    }

    /// Returns the names of the contigs that it may mean.
    pub fn contigs(&self) -> impl Iterator<Item = &[u8]> {
        let parts = self.parts.as_ref().ok().map(|region| region.contig.as_slice());
        self.whole.as_deref().into_iter().chain(parts)
    }

    /// Returns the only contig that it can mean, and the reason why it is no other region; `None` if it may mean
    /// another.
    pub fn must_be(&self) -> Option<(&[u8], &str)> {
        self.whole.as_deref().zip(self.parts.as_ref().err().map(String::as_str))
    }

    /// Returns the region that it means, given whether a header names a contig, and whether a record is on it. If
    /// neither reading has a contig, it is the one with positions.
    ///
    /// # Errors
    /// Those of `has_records`.
    pub fn resolve(
        &self,
        is_named: impl Fn(&[u8]) -> bool,
        has_records: impl FnOnce(&[u8]) -> Done<bool>,
    ) -> Done<Region> {
        let as_contig = |name: &[u8]| Region { contig: name.to_vec(), positions: ALL };
        Ok(match (&self.whole, &self.parts) {
            (None, Ok(region)) => region.clone(),
            (Some(whole), Ok(region)) => match is_named(whole) || !is_named(&region.contig) && has_records(whole)? {
                true => as_contig(whole),
                false => region.clone(),
            },
            (whole, Err(_)) => as_contig(whole.as_deref().unwrap_or_default()),
        })
    }
}

impl From<Region> for WrittenRegion {
    fn from(region: Region) -> Self {
        WrittenRegion { whole: None, parts: Ok(region) }
    }
}

/// Parses the positions in a region.
fn positions(region: &str, written: &str) -> Result<RangeInclusive<u32>, String> {
    let position = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) || is_in_thousands(text);
        let number = is_number.then(|| text.replace(',', "").parse::<u32>().ok()).flatten();
        let position = number.and_then(|number| number.checked_sub(1));
        position.ok_or_else(|| format!("{text:?} is not a position; {EXAMPLE}"))
    };
    let positions = match written.split_once('-') {
        None => position(written)?..=position(written)?,
        Some((low, "")) => position(low)?..=u32::MAX,
        Some((low, high)) => position(low)?..=position(high)?,
    };
    if positions.is_empty() { Err(format!("{region} ends before it begins")) } else { Ok(positions) }
}

/// Returns whether a text is a number with a comma before each three digits.
fn is_in_thousands(text: &str) -> bool {
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = text.split(',');
    groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && first.bytes().all(|byte| byte.is_ascii_digit()))
        && groups.all(is_group)
}

/// Returns whether a comma and this text continue the positions at the end of a region: `1:1`, then `000-20`.
fn continues(region: &str, text: &str) -> bool {
    let Some((_, positions)) = region.rsplit_once(':') else { return false };
    let last = positions.rsplit_once('-').map_or(positions, |(_, last)| last);
    let (group, rest) = text.split_once('-').unwrap_or((text, ""));
    is_in_thousands(last) && is_in_thousands(&format!("0,{group}")) && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses regions separated by commas; a comma in the name of a contig is escaped, or in braces. A comma between
/// thousands of a position separates nothing, unless `is_contig` says that what follows is a contig: `1:5,100`.
///
/// # Errors
/// The outer result has the errors of `is_contig`, the inner one those of [`WrittenRegion::parse`].
pub fn parse_list(text: &str, is_contig: impl Fn(&[u8]) -> Done<bool>) -> Done<Result<Vec<WrittenRegion>, String>> {
    let mut is_in_braces = false;
    let separates = |character: char| {
        is_in_braces = character == '{' || is_in_braces && character != '}';
        character == ',' && !is_in_braces
    };
    let mut regions: Vec<String> = Vec::new();
    for part in text.split(separates) {
        match regions.last_mut().filter(|region| continues(region, part)) {
            Some(region) if !is_contig(part.as_bytes())? => {
                region.push(',');
                region.push_str(part);
            }
            _ => regions.push(part.to_owned()),
        }
    }
    Ok(regions.iter().map(|region| WrittenRegion::parse(region)).collect())
}

/// Groups regions by contig, in the order of first mention. Those of a contig are sorted, and overlapping ones are
/// joined.
pub fn disjoint(regions: Vec<Region>) -> Vec<Region> {
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut by_contig: Vec<Vec<RangeInclusive<u32>>> = Vec::new();
    for Region { contig, positions } in regions {
        let place = *places.entry(contig).or_insert(by_contig.len());
        match by_contig.get_mut(place) {
            Some(all) => all.push(positions),
            None => by_contig.push(vec![positions]),
        }
    }
    let mut contigs: Vec<(usize, Vec<u8>)> = places.into_iter().map(|(contig, place)| (place, contig)).collect();
    contigs.sort_unstable();
    let mut all = Vec::new();
    for ((_, contig), mut ranges) in contigs.into_iter().zip(by_contig) {
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
    use proptest::prelude::*;

    use super::*;

    fn region(contig: &str, positions: RangeInclusive<u32>) -> Region {
        Region { contig: contig.as_bytes().to_vec(), positions }
    }

    /// Returns what a text means where these contigs are named.
    fn read(text: &str, named: &[&str]) -> Region {
        let is_named = |name: &[u8]| named.iter().any(|one| one.as_bytes() == name);
        WrittenRegion::parse(text).unwrap().resolve(is_named, |_| Ok(false)).unwrap()
    }

    #[test]
    fn regions_are_those_of_htslib() {
        for (text, wanted) in [
            ("1:12000-13000", region("1", 11_999..=12_999)),
            ("chrX", region("chrX", ALL)),
            ("chrX:7", region("chrX", 6..=6)),
            ("chrX:7-", region("chrX", 6..=u32::MAX)),
            ("1:1,000-20,000", region("1", 999..=19_999)),
            ("1:1,234,567", region("1", 1_234_566..=1_234_566)),
            ("1:1000-20,000", region("1", 999..=19_999)),
            ("1:1,000-", region("1", 999..=u32::MAX)),
            ("HLA*01:a:5-6", region("HLA*01:a", 4..=5)),
            ("HLA*01:a", region("HLA*01:a", ALL)),
            ("a%2Fb%3A1", region("a/b:1", ALL)),
            ("{chrX}", region("chrX", ALL)),
            ("{chr:1}:7-8", region("chr:1", 6..=7)),
            ("{a,b%7D}:7", region("a,b}", 6..=6)),
        ] {
            assert_eq!(read(text, &[]), wanted, "{text}");
            assert!(text.contains(['%', '{']) || wanted.shown() == text.replace(',', ""), "{text}");
            assert_eq!(WrittenRegion::parse(text).unwrap().must_be(), None, "{text}");
        }
        for wrong in ["", "{}", "{}:1", "%zz", "a%"] {
            assert!(WrittenRegion::parse(wrong).is_err(), "{wrong}");
        }
        for doubtful in [
            ":5",
            "1:0",
            "1:5-4",
            "1:5-x",
            "1:5-6-7",
            "1:5-+6",
            "1:99999999999",
            "1:1,00",
            "1:1000,000",
            "{1",
            "{1}5",
            "{1}:",
        ] {
            let written = WrittenRegion::parse(doubtful).unwrap();
            assert_eq!(written.must_be().unwrap().0, doubtful.as_bytes());
            assert_eq!(read(doubtful, &[doubtful]), region(doubtful, ALL));
        }
    }

    #[test]
    fn contigs_decide_where_a_name_ends() {
        let (star, all) = ("HLA-A*01:01:01:01", &["chr1", "chr1:100", "HLA-A*01:01:01:01", "HLA-C*06:46N", "{x}"][..]);
        for (text, wanted) in [
            (star, region(star, ALL)),
            ("HLA-A*01:01:01:01:150-200", region(star, 149..=199)),
            ("{HLA-A*01:01:01}:01", region("HLA-A*01:01:01", 0..=0)),
            ("HLA-C*06:46N", region("HLA-C*06:46N", ALL)),
            ("HLA-C*06:46N:5-", region("HLA-C*06:46N", 4..=u32::MAX)),
            ("chr1:100", region("chr1:100", ALL)),
            ("{chr1}:100", region("chr1", 99..=99)),
            ("chr1:101", region("chr1", 100..=100)),
            ("chr2:101", region("chr2", 100..=100)),
            ("{x}", region("{x}", ALL)),
            ("%7Bx%7D", region("{x}", ALL)),
        ] {
            assert_eq!(read(text, all), wanted, "{text}");
        }
        // A contig that no header names, but that records are on.
        let with_records = |text: &str, named: &[&str]| {
            let is_named = |name: &[u8]| named.iter().any(|one| one.as_bytes() == name);
            WrittenRegion::parse(text).unwrap().resolve(is_named, |name| Ok(name == b"a:1")).unwrap()
        };
        assert_eq!(with_records("a:1", &[]), region("a:1", ALL));
        assert_eq!(with_records("a:1", &["a"]), region("a", 0..=0));
        assert_eq!(with_records("a:2", &[]), region("a", 1..=1));
    }

    #[test]
    fn commas_between_thousands_separate_nothing_unless_a_contig_follows() {
        let read = |text: &str, contigs: &[&str]| -> Vec<Region> {
            let is_contig = |name: &[u8]| contigs.iter().any(|contig| contig.as_bytes() == name);
            let written = parse_list(text, |name| Ok(is_contig(name))).unwrap().unwrap();
            written.iter().map(|one| one.resolve(is_contig, |_| Ok(false)).unwrap()).collect()
        };
        let (one, two) = (region("1", 999..=19_999), region("2", 4..=5_999));
        assert_eq!(read("1:1,000-20,000", &["1"]), std::slice::from_ref(&one));
        assert_eq!(read("1:1,000-20,000,2:5-6,000", &["1", "2"]), [one.clone(), two.clone()]);
        assert_eq!(read("2:5-6,000,1:1,000-20000,000x", &["1"]), [two, one.clone(), region("000x", ALL)]);
        assert_eq!(read("{1}:1,000-20,000", &["1"]), std::slice::from_ref(&one));
        assert_eq!(read("1:5,100", &["1"]), [region("1", 5_099..=5_099)]);
        assert_eq!(read("1:5,100", &["1", "100"]), [region("1", 4..=4), region("100", ALL)]);
        assert_eq!(read("1:5,{100}", &["1"]), [region("1", 4..=4), region("100", ALL)]);
        for apart in ["1,000", "1:1000,000", "1:1,00", "1:1,0000", "1:,100", "1:1-,100"] {
            assert_eq!(read(apart, &["1", "1:", "1:1-"]).len(), 2, "{apart}");
        }
    }

    proptest! {
        #[test]
        fn positions_with_thousands_are_those_without(
            regions in prop::collection::vec((0u8..3, 1u32..3_000_000, 0u32..2_000_000), 1..5),
        ) {
            let grouped = |number: u32| {
                let digits = number.to_string();
                let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
                groups.join(",")
            };
            let list = |shown: &dyn Fn(u32) -> String| {
                let one = |(contig, first, more): &(u8, u32, u32)| format!("c{contig}:{}-{}", shown(*first), shown(first + more));
                regions.iter().map(one).collect::<Vec<_>>().join(",")
            };
            let read = |text: String| {
                let written = parse_list(&text, |_| Ok(false)).unwrap().unwrap();
                let resolved = written.iter().map(|one| one.resolve(|_| false, |_| Ok(false)).unwrap());
                resolved.collect::<Vec<_>>()
            };
            prop_assert_eq!(read(list(&grouped)), read(list(&|number| number.to_string())));
        }
    }

    #[test]
    fn regions_that_overlap_are_united() {
        let parse_list = |text: &str| parse_list(text, |_| Ok(true)).unwrap();
        let written = parse_list("b:5-9,a:1-3,b:1-2,b:9-12,b:6,a:4-5,{c,d},{c,d}:5").unwrap();
        let regions = written.iter().map(|one| one.resolve(|_| false, |_| Ok(false)).unwrap()).collect();
        let wanted = [("b", 0..=1), ("b", 4..=11), ("a", 0..=2), ("a", 3..=4), ("c,d", ALL)];
        assert_eq!(disjoint(regions), wanted.map(|(contig, positions)| region(contig, positions)));
        assert!(parse_list("1:5,").is_err() && parse_list(",").is_err());
        assert_eq!(parse_list("{a,b").unwrap().len(), 1);
    }

    #[test]
    fn many_regions_are_grouped_in_one_pass() {
        let regions = (0..200_000u32).map(|number| region(&format!("c{}", number / 2), number..=number)).collect();
        let found = disjoint(regions);
        assert_eq!(found.len(), 200_000);
        assert_eq!(found[3], region("c1", 3..=3));
    }
}
