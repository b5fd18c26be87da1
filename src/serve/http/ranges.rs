//! The `Range` header (RFC 9110, section 14).

use std::ops::Range;

/// Maximum number of parts of a reply. A request for more gets the whole file.
const MAX_PARTS: usize = 32;

/// The part of a file that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wanted {
    Whole,
    /// At least one, each within the file and not empty. Together they have at most as many bytes as the file.
    Parts(Vec<Range<u64>>),
    /// No part lies within the file.
    Nothing,
}

/// Returns the part of a file of `length` bytes that a request with this `Range` header asks for. Ignores a header that
/// is malformed or has another unit, and one with too many or overlapping ranges, which would multiply the bytes of the
/// file.
pub fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(list) = header.and_then(bytes_list) else { return Wanted::Whole };
    let mut parts = Vec::new();
    for text in list.split(',') {
        match RequestedRange::parse(text.trim_matches([' ', '\t'])) {
            // Empty elements of a list are ignored.
            None if text.trim().is_empty() => {}
            None => return Wanted::Whole,
            Some(part) => parts.push(part),
        }
        if parts.len() > MAX_PARTS {
            return Wanted::Whole;
        }
    }
    if parts.is_empty() {
        return Wanted::Whole;
    }
    let within: Vec<Range<u64>> = parts.into_iter().filter_map(|part| part.within(length)).collect();
    let total = within.iter().fold(0u64, |sum, part| sum.saturating_add(part.end - part.start));
    match within.len() {
        0 => Wanted::Nothing,
        _ if total > length => Wanted::Whole,
        _ => Wanted::Parts(within),
    }
}

/// Returns the list after `bytes=`.
fn bytes_list(header: &str) -> Option<&str> {
    let (unit, list) = header.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(list)
}

/// One range as requested.
enum RequestedRange {
    From {
        first: u64,
        last: u64,
    },
    /// This many bytes at the end.
    Last(u64),
}

impl RequestedRange {
    /// Parses `0-99`, `100-` or `-20`.
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        match (first.is_empty(), last.is_empty()) {
            (true, true) => None,
            (true, false) => Some(RequestedRange::Last(number(last)?)),
            (false, true) => Some(RequestedRange::From { first: number(first)?, last: u64::MAX }),
            (false, false) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(RequestedRange::From { first, last })
            }
        }
    }

    /// Returns its bytes within a file, if there are any.
    fn within(self, length: u64) -> Option<Range<u64>> {
        let (start, end) = match self {
            RequestedRange::From { first, last } => (first, last.saturating_add(1).min(length)),
            RequestedRange::Last(count) => (length.saturating_sub(count), length),
        };
        (start < end).then_some(start..end)
    }
}

/// Parses digits. Numbers beyond 64 bits become the greatest one, because both are past the end of every file.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(header: &str, length: u64) -> Vec<(u64, u64)> {
        match wanted(Some(header), length) {
            Wanted::Parts(parts) => parts.into_iter().map(|part| (part.start, part.end)).collect(),
            other => panic!("{header}: {other:?}"),
        }
    }

    #[test]
    fn every_form_is_cut_to_the_file() {
        assert_eq!(parts("bytes=0-0", 10), [(0, 1)]);
        assert_eq!(parts("bytes=5-", 10), [(5, 10)]);
        assert_eq!(parts("bytes=-3", 10), [(7, 10)]);
        assert_eq!(parts("bytes=-300", 10), [(0, 10)]);
        assert_eq!(parts("bytes=2-99999999999999999999999999", 10), [(2, 10)]);
        assert_eq!(parts("Bytes = 0-1 , 4-5,, 20-30", 10), [(0, 2), (4, 6)]);
    }

    #[test]
    fn malformed_ones_do_not_count() {
        for header in [
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=a-b",
            "bytes=5-4",
            "bytes=-",
            "bytes=1",
            "bytes=1-2-3",
            "bytes=+1-2",
            "rows=0-1",
            "bytes=0-1;2-3",
            "bytes=0x1-2",
            "bytes=0-1,a",
        ] {
            assert_eq!(wanted(Some(header), 10), Wanted::Whole, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
    }

    #[test]
    fn ranges_behind_the_end_are_none() {
        for (header, length) in [
            ("bytes=10-", 10),
            ("bytes=10-12,20-", 10),
            ("bytes=-0", 10),
            ("bytes=0-0", 0),
            ("bytes=-5", 0),
            ("bytes=18446744073709551615-18446744073709551615", 10),
            ("bytes=99999999999999999999999-", 10),
        ] {
            assert_eq!(wanted(Some(header), length), Wanted::Nothing, "{header}");
        }
    }

    #[test]
    fn many_and_overlapping_ranges_multiply_nothing() {
        assert_eq!(wanted(Some("bytes=0-,0-"), 10), Wanted::Whole);
        assert_eq!(wanted(Some(&format!("bytes={}", "0-0,".repeat(MAX_PARTS + 1))), 1000), Wanted::Whole);
        assert_eq!(parts(&format!("bytes={}", "0-0,".repeat(MAX_PARTS)), 1000).len(), MAX_PARTS);
    }

    proptest! {
        /// A second implementation: the set of positions.
        #[test]
        fn one_range_has_the_positions_that_it_names(first in 0u64..20, count in 0u64..20, length in 0u64..20) {
            let last = first + count;
            let expected: Vec<u64> = (0..length).filter(|at| (first..=last).contains(at)).collect();
            let found: Vec<u64> = match wanted(Some(&format!("bytes={first}-{last}")), length) {
                Wanted::Parts(parts) => parts.into_iter().flatten().collect(),
                other => { prop_assert_eq!(other, Wanted::Nothing); Vec::new() }
            };
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn no_header_asks_for_more_than_the_file(header in "bytes=[0-9,-]{0,40}", length in 0u64..1000) {
            if let Wanted::Parts(parts) = wanted(Some(&header), length) {
                prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
                prop_assert!(parts.iter().map(|part| part.end - part.start).sum::<u64>() <= length);
            }
        }
    }
}
