//! Answers S3 requests for generated objects.

use std::sync::Arc;
use std::time::Instant;

use support::generated::array::Array;
use support::http::{Message, unescaped};

/// The most entries in one page of a listing.
const LISTED_AT_ONCE: usize = 1000;

const MODIFIED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

/// Counts of answered requests.
#[derive(Default)]
pub struct Statistics {
    pub requests: usize,
    pub bytes: usize,
    /// The start and the end of each request.
    times: Vec<(Instant, Instant)>,
}

impl Statistics {
    /// Counts a request that ends now and whose answer has `bytes` bytes.
    pub fn count(&mut self, start: Instant, bytes: usize) {
        self.requests += 1;
        self.bytes += bytes;
        self.times.push((start, Instant::now()));
    }

    /// Returns the length of the longest series of requests of which each began after the one before was answered: an
    /// upper bound of the number of dependent round trips.
    pub fn steps(&mut self) -> usize {
        self.times.sort_unstable_by_key(|(_, end)| *end);
        let mut last: Option<Instant> = None;
        let apart = self.times.iter().filter(|(start, end)| {
            let is_apart = last.is_none_or(|last| *start >= last);
            if is_apart {
                last = Some(*end);
            }
            is_apart
        });
        apart.count()
    }
}

/// Returns the answer to a request. The error says why there is no such object.
pub fn answer(array: impl Fn(&str) -> Result<Arc<Array>, String>, request: &Message) -> Result<Message, String> {
    let (path, query) = request.second().split_once('?').unwrap_or((request.second(), ""));
    let path = unescaped(path);
    let (_, key) = path.trim_start_matches('/').split_once('/').unwrap_or((&path, ""));
    let parameter = |name: &str| {
        let parameters = query.split('&').filter_map(|one| one.split_once('='));
        parameters.filter(|(known, _)| *known == name).map(|(_, value)| unescaped(value)).next()
    };
    if parameter("list-type").is_some() {
        let text = |name: &str| parameter(name).unwrap_or_default();
        let most = parameter("max-keys").and_then(|most| most.parse().ok()).unwrap_or(LISTED_AT_ONCE);
        let after = text("continuation-token").max(text("start-after"));
        let prefix = text("prefix");
        // A prefix that names no array lists nothing.
        let found = prefix.split_once('/').and_then(|(name, inner)| Some((name, inner, array(name).ok()?)));
        let listing = match found {
            Some((name, inner, array)) => {
                let after = after.strip_prefix(name).and_then(|after| after.strip_prefix('/')).unwrap_or("");
                listing(&array, name, inner, &text("delimiter"), after, most.min(LISTED_AT_ONCE))
            }
            None => frame(0, None, ""),
        };
        let mut answer = Message::new("HTTP/1.1 200 OK", listing.as_bytes());
        answer.set("Content-Type", "application/xml");
        return Ok(answer);
    }
    let (name, key) = key.split_once('/').ok_or("no array is named")?;
    object(&*array(name)?, key, request)
}

fn object(array: &Array, key: &str, request: &Message) -> Result<Message, String> {
    let object = array.find(key).ok_or("no such key")?;
    let length = array.len(object);
    let (range, is_part) = match request.header("Range").and_then(|range| range.strip_prefix("bytes=")) {
        None => (0..length, false),
        Some(text) => {
            let (first, last) = text.split_once('-').ok_or("no range")?;
            let last: Option<u64> = last.parse().ok();
            match (first.parse::<u64>().ok(), last) {
                (None, Some(last)) => (length.saturating_sub(last)..length, true),
                (Some(first), last) => (first..last.map_or(length, |last| length.min(last.saturating_add(1))), true),
                (None, None) => return Err("no range".to_owned()),
            }
        }
    };
    if range.start > range.end || is_part && range.start == length {
        return Ok(error_response("416 Range Not Satisfiable", "InvalidRange", text_of(length).as_str()));
    }
    let body = if request.method() == "HEAD" { Vec::new() } else { array.read(object, range.clone()) };
    let start = if is_part { "HTTP/1.1 206 Partial Content" } else { "HTTP/1.1 200 OK" };
    let mut answer = Message { start: start.to_owned(), headers: Vec::new(), body };
    answer.set("Content-Length", &(range.end - range.start).to_string());
    if is_part {
        answer.set("Content-Range", &format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1)));
    }
    answer.set("ETag", "\"generated\"");
    answer.set("Last-Modified", MODIFIED);
    Ok(answer)
}

fn text_of(length: u64) -> String {
    format!("the object has {length} bytes")
}

/// Returns a page of the listing of the keys in an array that begin with `prefix`: those after `after`.
fn listing(array: &Array, name: &str, prefix: &str, delimiter: &str, after: &str, most: usize) -> String {
    let mut text = String::new();
    let mut last: Option<String> = None;
    let mut listed = 0;
    let mut number = array.first_from(prefix);
    if after >= prefix {
        // Skip the keys below a common prefix that was already listed.
        let behind = if !delimiter.is_empty() && after.ends_with(delimiter) { '\u{10ffff}' } else { '\0' };
        number = number.max(array.first_from(&format!("{after}{behind}")));
    }
    while number < array.objects() {
        let object = array.object(number);
        let key = array.key(object);
        let Some(rest) = key.strip_prefix(prefix) else { break };
        if listed == most {
            return frame(listed, last.as_deref().map(|last| (name, last)), &text);
        }
        match rest.find('/').filter(|_| delimiter == "/") {
            Some(at) => {
                let folder = key[..prefix.len() + at + 1].to_owned();
                text.push_str(&format!("<CommonPrefixes><Prefix>{name}/{folder}</Prefix></CommonPrefixes>"));
                number = array.first_behind(number, &format!("{folder}\u{10ffff}"));
                last = Some(folder);
            }
            None => {
                text.push_str(&format!(
                    "<Contents><Key>{name}/{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"generated\"</ETag><Size>{}</Size></Contents>",
                    array.len(object)
                ));
                number += 1;
                last = Some(key);
            }
        }
        listed += 1;
    }
    frame(listed, None, &text)
}

/// Returns a listing of `listed` names, with a continuation token if there are more.
fn frame(listed: usize, next: Option<(&str, &str)>, names: &str) -> String {
    let more = next.map_or(String::new(), |(array, last)| {
        format!("<NextContinuationToken>{array}/{last}</NextContinuationToken>")
    });
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>{}</IsTruncated>{names}{more}<KeyCount>{listed}</KeyCount></ListBucketResult>",
        next.is_some()
    )
}

pub fn error_response(status: &str, code: &str, reason: &str) -> Message {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{reason}</Message></Error>");
    let mut answer = Message::new(&format!("HTTP/1.1 {status}"), body.as_bytes());
    answer.set("Content-Type", "application/xml");
    answer
}
