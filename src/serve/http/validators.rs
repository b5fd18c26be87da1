//! ETags and conditional requests (RFC 9110, sections 8.8 and 13).
//!
//! Dates are not used as validators: writers of TileDB choose the times of their commits, so two states of an array may
//! have the same date. `If-Modified-Since` is ignored, and a date in `If-Range` never matches. ETags are exact.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::HeaderMap;
use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE};
use sha2::{Digest, Sha256};
use tilefs_base::hex::hex;

/// The first second of the year 10000, which HTTP's date format cannot represent.
const END_OF_DATES: Duration = Duration::from_secs(253_402_300_800);

/// Bytes of a hash in an ETag.
const LENGTH: usize = 12;

/// Returns the ETag of a file, with its quotes. `version` stands for the state of the array or group that the file is
/// from, and differs between runs of the server: texts name the time at which the array was opened.
pub fn etag(version: &[u8], path: &str, length: u64, modified: SystemTime) -> String {
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [version, path.as_bytes(), &length.to_le_bytes(), &since.as_nanos().to_le_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    format!("\"{}\"", hex(&hash.finalize()[..LENGTH]))
}

/// Returns a date in HTTP's format, if it can be represented.
pub fn date(time: SystemTime) -> Option<String> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    (since < END_OF_DATES).then(|| httpdate::fmt_http_date(UNIX_EPOCH + since))
}

/// The result of a request's preconditions.
#[derive(Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Proceed.
    Holds,
    /// Status 304: the client has the file already.
    NotModified,
    /// Status 412: the file is not the one that the client expects.
    Failed,
}

/// Checks `If-Match` and `If-None-Match` for a file with this ETag; `None` for a file without one.
pub fn precondition(headers: &HeaderMap, etag: Option<&str>) -> Precondition {
    let matches = |name: HeaderName| {
        let mut lists = headers.get_all(name).iter().peekable();
        lists.peek()?;
        Some(lists.any(|list| list.to_str().is_ok_and(|list| has(list, etag))))
    };
    match (matches(IF_MATCH), matches(IF_NONE_MATCH)) {
        (Some(false), _) => Precondition::Failed,
        (_, Some(true)) => Precondition::NotModified,
        _ => Precondition::Holds,
    }
}

/// Returns whether a `Range` header applies: there is no `If-Range`, or it has this ETag.
pub fn range_counts(headers: &HeaderMap, etag: Option<&str>) -> bool {
    headers.get(IF_RANGE).is_none_or(|wanted| etag.is_some_and(|etag| wanted.as_bytes() == etag.as_bytes()))
}

/// Returns whether a list of ETags contains this one, or is `*`. A proxy may have marked it as weak. Our ETags contain
/// no commas.
fn has(list: &str, etag: Option<&str>) -> bool {
    let own = |item: &str| etag.is_some_and(|etag| item.strip_prefix("W/").unwrap_or(item) == etag);
    list.trim() == "*" || list.split(',').map(str::trim).any(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn every_part_of_an_etag_counts() {
        let time = UNIX_EPOCH + Duration::from_millis(1);
        let tags = [
            etag(b"ab", "c", 1, time),
            etag(b"a", "bc", 1, time),
            etag(b"ab", "c", 2, time),
            etag(b"ab", "c", 1, time + Duration::from_millis(1)),
        ];
        let different: std::collections::HashSet<_> = tags.iter().collect();
        assert_eq!(different.len(), tags.len());
        assert_eq!(tags[0], etag(b"ab", "c", 1, time));
        assert!(tags[0].len() == 2 * LENGTH + 2 && tags[0].starts_with('"') && tags[0].ends_with('"'));
    }

    #[test]
    fn preconditions_compare_etags() {
        let own = Some("\"a\"");
        for (pairs, expected) in [
            (vec![], Precondition::Holds),
            (vec![("if-none-match", "\"a\"")], Precondition::NotModified),
            (vec![("if-none-match", "\"b\", W/\"a\"")], Precondition::NotModified),
            (vec![("if-none-match", "*")], Precondition::NotModified),
            (vec![("if-none-match", "\"b\"")], Precondition::Holds),
            (vec![("if-none-match", "\"b\""), ("if-none-match", "\"a\"")], Precondition::NotModified),
            (vec![("if-match", "\"a\"")], Precondition::Holds),
            (vec![("if-match", "*")], Precondition::Holds),
            (vec![("if-match", "\"b\"")], Precondition::Failed),
            (vec![("if-match", "\"b\""), ("if-none-match", "\"a\"")], Precondition::Failed),
            (vec![("if-modified-since", "Fri, 31 Dec 9999 23:59:59 GMT")], Precondition::Holds),
        ] {
            assert_eq!(precondition(&headers(&pairs), own), expected, "{pairs:?}");
        }
        assert_eq!(precondition(&headers(&[("if-none-match", "\"a\"")]), None), Precondition::Holds);
        assert!(range_counts(&headers(&[]), own) && range_counts(&headers(&[("if-range", "\"a\"")]), own));
        for value in ["\"b\"", "W/\"a\"", "Tue, 02 Jan 2024 00:00:00 GMT"] {
            assert!(!range_counts(&headers(&[("if-range", value)]), own), "{value}");
        }
    }

    #[test]
    fn dates_that_http_cannot_write_are_left_out() {
        assert_eq!(date(UNIX_EPOCH).as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
        let last = UNIX_EPOCH + END_OF_DATES - Duration::from_nanos(1);
        assert_eq!(date(last).as_deref(), Some("Fri, 31 Dec 9999 23:59:59 GMT"));
        assert_eq!(date(UNIX_EPOCH + END_OF_DATES), None);
        assert_eq!(date(UNIX_EPOCH - Duration::from_secs(1)), None);
    }
}
