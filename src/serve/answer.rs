//! The answer to a request: what is found at its path, in the form that it asks for. Runs on a worker.

use std::collections::VecDeque;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, HeaderValue, LAST_MODIFIED, LOCATION, RANGE, VARY,
};
use hyper::{HeaderMap, Method, StatusCode};

use super::application;
use super::body::Pieces;
use super::content_type;
use super::dav::{Depth, FINITE, PropertyPieces};
use super::files::{FilePieces, Part};
use super::listing::{Form, ListingPieces, Members};
use super::page;
use super::path::TreePath;
use super::properties::Asked;
use super::ranges::{self, Wanted};
use super::site::{Refusal, Site, Snapshot};
use super::validators::{self, Precondition};
use tilefs_tree::node::recent::{Found, is_fixed};
use tilefs_tree::{File, Node};

/// Only files of more bytes are prefetched as a whole.
const LARGE: u64 = 1 << 20;

/// A request whose sender may read.
pub struct Question {
    /// GET, HEAD or PROPFIND.
    pub method: Method,
    /// The path of the URL, with its escapes.
    pub path: String,
    pub query: Option<String>,
    /// The token of the server, if the query has it.
    pub token: Option<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A status, headers and a body.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The beginning of the body.
    pub first: Bytes,
    /// The length of the body, if it is known.
    pub length: Option<u64>,
    /// The rest of the body.
    pub rest: Option<Box<dyn Pieces>>,
}

impl Answer {
    pub fn empty(status: StatusCode) -> Self {
        Answer { status, headers: HeaderMap::new(), first: Bytes::new(), length: Some(0), rest: None }
    }

    /// Creates an answer of one line.
    pub fn line(status: StatusCode, line: &str) -> Self {
        Answer::text(status, "text/plain; charset=utf-8", format!("{line}\n"))
    }

    /// Creates an answer of bytes of the program.
    pub fn whole(bytes: &'static [u8]) -> Self {
        let length = Some(bytes.len() as u64);
        Answer { first: Bytes::from_static(bytes), length, ..Answer::empty(StatusCode::OK) }
    }

    fn text(status: StatusCode, kind: &'static str, text: String) -> Self {
        let answer = Answer { first: text.into(), ..Answer::empty(status) };
        Answer { length: Some(answer.first.len() as u64), ..answer }.with(CONTENT_TYPE, kind)
    }

    /// Creates an answer whose body is made in pieces; makes the first one.
    fn in_pieces(status: StatusCode, length: Option<u64>, mut pieces: Box<dyn Pieces>) -> Result<Self, Refusal> {
        // An error in the first piece still has a status.
        let first = pieces.next()?.unwrap_or_default();
        let rest = (length != Some(first.len() as u64)).then_some(pieces);
        Ok(Answer { first, length, rest, ..Answer::empty(status) })
    }

    /// Sets a header. A value that HTTP cannot send is left out.
    pub fn with(mut self, name: HeaderName, value: impl AsRef<str>) -> Self {
        if let Ok(value) = value.as_ref().parse() {
            self.headers.insert(name, value);
        }
        self
    }

    /// Adds a header to those of the same name.
    pub fn also(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.append(name, HeaderValue::from_static(value));
        self
    }

    /// Returns the same answer for HEAD: without its body.
    fn without_body(mut self) -> Self {
        if let Some(length) = self.length {
            self = self.with(CONTENT_LENGTH, length.to_string());
        }
        Answer { first: Bytes::new(), length: Some(0), rest: None, ..self }
    }
}

impl Refusal {
    fn answer(&self) -> Answer {
        let status = match self {
            Refusal::Absent(_) => StatusCode::NOT_FOUND,
            Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        };
        Answer::line(status, &self.to_string())
    }
}

/// Answers a request.
pub fn answer(site: &Arc<Site>, asked: &Question) -> Answer {
    let answer = match TreePath::parse(&asked.path) {
        Ok(path) => application::answer(path.names(), asked).unwrap_or_else(|| {
            let snapshot = site.snapshot();
            let found = site.attempt(|| format!("look-up of {}", path.text()), || snapshot.find(path.names()));
            let answered = found.and_then(|found| Request { site, snapshot, path: &path, asked }.answer(found));
            answered.unwrap_or_else(|refusal| match refusal {
                Refusal::Absent(_) if wants_html(asked) => {
                    let page = page::absence(&path, &refusal.to_string(), asked);
                    let answer = Answer::text(StatusCode::NOT_FOUND, "text/html; charset=utf-8", page);
                    answer.with(CONTENT_SECURITY_POLICY, page::policy())
                }
                _ => refusal.answer(),
            })
        }),
        Err(reason) => Answer::line(StatusCode::BAD_REQUEST, reason),
    };
    if asked.method == Method::HEAD { answer.without_body() } else { answer }
}

/// Returns whether a browser asks for something to show.
fn wants_html(asked: &Question) -> bool {
    let accepted = asked.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    asked.method != "PROPFIND" && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// A request for a path that a tree may have.
struct Request<'a> {
    site: &'a Arc<Site>,
    snapshot: Arc<Snapshot>,
    path: &'a TreePath,
    asked: &'a Question,
}

impl Request<'_> {
    fn answer(&self, found: Found) -> Result<Answer, Refusal> {
        match found.node.clone() {
            Node::File(_) if self.path.is_folder() => Err(Refusal::Absent(Some("this is a file".to_owned()))),
            _ if self.asked.method.as_str() == "PROPFIND" => self.properties(found),
            Node::File(file) => self.file(&found, &file),
            Node::Folder(_) if !self.path.is_folder() => {
                let query = self.asked.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
                let location = self.path.url(true) + &query;
                Ok(Answer::line(StatusCode::MOVED_PERMANENTLY, &location).with(LOCATION, location))
            }
            Node::Folder(_) => match page::chosen(self.path, self.asked) {
                Some(location) => Ok(Answer::line(StatusCode::SEE_OTHER, &location).with(LOCATION, location)),
                None => self.listing(&found),
            },
        }
    }

    fn file(&self, found: &Found, file: &Arc<dyn File>) -> Result<Answer, Refusal> {
        let path = self.path.text();
        let is_head = self.asked.method == Method::HEAD;
        let is_fixed = is_fixed(&**file);
        let (open, length) = self.site.attempt(
            || format!("open of {path}"),
            || {
                if is_head && is_fixed {
                    return Ok((None, file.len()?));
                }
                let open = self.snapshot.open(&path, file, &self.site.read_ahead)?;
                let length = open.length();
                Ok((Some(open), length))
            },
        )?;
        if let Some(remark) = file.remark() {
            self.site.note(&path, &remark);
        }
        let etag = self.snapshot.etag(&path, found, length);
        let headers = &self.asked.headers;
        let kind = content_type::of_file(self.path.names().last().map_or("", String::as_str));
        let described = |answer: Answer| {
            let answer = match &etag {
                Some(etag) => answer.with(ETAG, etag).with(ACCEPT_RANGES, "bytes").with(CACHE_CONTROL, "no-cache"),
                None => answer.with(ACCEPT_RANGES, "none").with(CACHE_CONTROL, "no-store"),
            };
            match validators::date(file.modified()) {
                Some(date) => answer.with(LAST_MODIFIED, date),
                None => answer,
            }
        };
        match validators::precondition(headers, etag.as_deref()) {
            Precondition::Holds => {}
            Precondition::NotModified => return Ok(described(Answer::empty(StatusCode::NOT_MODIFIED))),
            Precondition::Failed => {
                return Ok(Answer::line(StatusCode::PRECONDITION_FAILED, "the file is another one now"));
            }
        }
        // A file that changes without commits may have other bytes at the next request.
        let may_be_part = !is_head && is_fixed && validators::range_counts(headers, etag.as_deref());
        let range = headers.get(RANGE).filter(|_| may_be_part).and_then(|range| range.to_str().ok());
        let wanted = ranges::wanted(range, length);
        let (status, kind, content_range, parts) = match wanted {
            Wanted::Whole if length == 0 => (StatusCode::OK, kind.to_owned(), None, VecDeque::new()),
            Wanted::Whole => (StatusCode::OK, kind.to_owned(), None, [Part::Range(0..length)].into()),
            Wanted::Nothing => {
                let answer = Answer::line(StatusCode::RANGE_NOT_SATISFIABLE, "no range lies within the file");
                return Ok(described(answer).with(CONTENT_RANGE, format!("bytes */{length}")));
            }
            Wanted::Parts(wanted) => match &wanted[..] {
                [one] => {
                    let range = content_range(one.start, one.end, length);
                    (StatusCode::PARTIAL_CONTENT, kind.to_owned(), Some(range), [Part::Range(one.clone())].into())
                }
                _ => {
                    let boundary = boundary(etag.as_deref());
                    let parts = multipart(wanted, kind, length, &boundary);
                    let kind = format!("multipart/byteranges; boundary={boundary}");
                    (StatusCode::PARTIAL_CONTENT, kind, None, parts)
                }
            },
        };
        let total = parts.iter().map(Part::length).fold(0, u64::saturating_add);
        let answer = match open {
            Some(open) if total > 0 => {
                let pieces = FilePieces::new(self.site, path, open, parts);
                if self.site.expects_whole_reads && status == StatusCode::OK && length > LARGE {
                    pieces.expect_all();
                }
                Answer::in_pieces(status, Some(total), Box::new(pieces))?
            }
            _ => Answer { length: Some(total), ..Answer::empty(status) },
        };
        let answer = described(answer).with(CONTENT_TYPE, kind);
        Ok(match content_range {
            Some(range) => answer.with(CONTENT_RANGE, range),
            None => answer,
        })
    }

    fn listing(&self, found: &Found) -> Result<Answer, Refusal> {
        let kind = if self.wants_json() { "application/json" } else { "text/html; charset=utf-8" };
        let described = |answer: Answer| {
            let answer = answer.with(CONTENT_TYPE, kind).with(CACHE_CONTROL, "no-cache").with(VARY, "Accept");
            if self.wants_json() { answer } else { answer.with(CONTENT_SECURITY_POLICY, page::policy()) }
        };
        if self.asked.method == Method::HEAD {
            return Ok(described(Answer { length: None, ..Answer::empty(StatusCode::OK) }));
        }
        let pieces = self.site.attempt(
            || format!("list of {}", self.path.text()),
            || {
                let members = Members::of(self.site, found, self.path.text(), false)?;
                if self.wants_json() {
                    return Ok(ListingPieces::new(members, Form::Json, "[".to_owned(), "\n]\n".to_owned()));
                }
                let page = page::Page::new(self.site, self.path, &found.node, self.asked)?;
                Ok(ListingPieces::new(members, Form::Html { query: page.query() }, page.before(), page.after()))
            },
        )?;
        Answer::in_pieces(StatusCode::OK, None, Box::new(pieces)).map(described)
    }

    fn wants_json(&self) -> bool {
        let is_asked = self
            .asked
            .query
            .as_deref()
            .is_some_and(|query| query.split('&').any(|pair| pair == "json" || pair.starts_with("json=")));
        let accepted = self.asked.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        is_asked || (accepted.contains("application/json") && !wants_html(self.asked))
    }

    fn properties(&self, found: Found) -> Result<Answer, Refusal> {
        let depth = match Depth::of(&self.asked.headers) {
            Ok(Depth::Endless) => {
                let kind = "application/xml; charset=utf-8";
                return Ok(Answer::text(StatusCode::FORBIDDEN, kind, FINITE.to_owned()));
            }
            Ok(depth) => depth,
            Err(reason) => return Ok(Answer::line(StatusCode::BAD_REQUEST, reason)),
        };
        let properties = match Asked::parse(&self.asked.body) {
            Ok(properties) => properties,
            Err(reason) => return Ok(Answer::line(StatusCode::BAD_REQUEST, &reason)),
        };
        let pieces = self.site.attempt(
            || format!("properties of {}", self.path.text()),
            || PropertyPieces::new(self.site, &self.snapshot, self.path, found, properties, depth),
        )?;
        let answer = Answer::in_pieces(StatusCode::MULTI_STATUS, None, Box::new(pieces))?;
        Ok(answer.with(CONTENT_TYPE, "application/xml; charset=utf-8"))
    }
}

/// Formats the value of `Content-Range`.
fn content_range(start: u64, end: u64, length: u64) -> String {
    format!("bytes {start}-{}/{length}", end.saturating_sub(1))
}

/// Returns a line that no file contains, except by chance: an ETag depends on random bytes of this run.
fn boundary(etag: Option<&str>) -> String {
    format!("tilefs-{}", etag.unwrap_or_default().trim_matches('"'))
}

/// Returns the parts of a `multipart/byteranges` body.
fn multipart(ranges: Vec<std::ops::Range<u64>>, kind: &str, length: u64, boundary: &str) -> VecDeque<Part> {
    let mut parts = VecDeque::new();
    for range in ranges {
        let place = content_range(range.start, range.end, length);
        let head = format!("\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {place}\r\n\r\n");
        parts.extend([Part::Bytes(head.into()), Part::Range(range)]);
    }
    parts.push_back(Part::Bytes(format!("\r\n--{boundary}--\r\n").into()));
    parts
}
