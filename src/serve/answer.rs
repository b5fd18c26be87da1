//! The answer to a request: what is found at its path, in the form that it asks for. Runs on a worker.

use std::collections::VecDeque;
use std::sync::Arc;

use hyper::header::{
    ACCEPT, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, LAST_MODIFIED, LOCATION, RANGE, VARY,
};
use hyper::{HeaderMap, Method, StatusCode};
use tilefs_vfs::node::recent::{Found, is_fixed};
use tilefs_vfs::{File, Node};

use super::coding::{Coding, may_be_compressed};
use super::connection::body::Pieces;
use super::files::{FilePieces, ReplyPart};
use super::folder::application;
use super::folder::dav::{Depth, FINITE, PropertyPieces};
use super::folder::listing::{ListingForm, ListingPieces, Members};
use super::folder::page;
use super::folder::properties::Asked;
use super::http::content_type;
use super::http::path::{TreePath, encode_name};
use super::http::ranges::{self, Wanted};
use super::http::refusal::Refusal;
use super::http::validators::{self, Precondition};
use super::message::{Answer, OPTIONAL, Question};
use super::served_file::ServedFile;
use super::site::{Site, Snapshot};

/// Only files of more bytes are prefetched as a whole.
const LARGE: u64 = 1 << 20;

/// The header with the reason why a file that need not exist does not exist, with the escapes of a URL.
const REASON: HeaderName = HeaderName::from_static("tilefs-reason");

/// Answers a request.
pub fn answer(site: &Arc<Site>, asked: &Question) -> Answer {
    let answer = match TreePath::parse(&asked.path) {
        Ok(path) => application::answer(path.names(), asked).unwrap_or_else(|| {
            let snapshot = site.snapshot();
            let found = site.attempt(|| format!("look-up of {}", path.text()), || snapshot.find(path.names()));
            let answered = found.and_then(|found| Request { site, snapshot, path: &path, asked }.answer(found));
            answered.unwrap_or_else(|refusal| {
                if matches!(refusal, Refusal::Absent(_)) && asked.words().any(|word| word == OPTIONAL) {
                    let mut reason = String::new();
                    encode_name(&refusal.to_string(), &mut reason);
                    let answer = Answer::empty(StatusCode::NO_CONTENT).with(CACHE_CONTROL, "no-cache");
                    return answer.with(REASON, reason);
                }
                if !wants_html(&asked.method, &asked.headers) {
                    return Answer::line(refusal.status(), &refusal.to_string());
                }
                let page = page::refusal(&path, &refusal);
                let answer = Answer::text(refusal.status(), "text/html; charset=utf-8", page);
                answer.with(CONTENT_SECURITY_POLICY, application::POLICY)
            })
        }),
        Err(reason) => Answer::line(StatusCode::BAD_REQUEST, reason),
    };
    if asked.method == Method::HEAD { answer.without_body() } else { answer }
}

/// Returns whether a browser asks for something to show.
pub fn wants_html(method: &Method, headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    method.as_str() != "PROPFIND" && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// The form in which a file is sent.
struct Representation<'a> {
    kind: &'a str,
    length: u64,
    coding: Coding,
    /// The ETag of the file in this coding.
    etag: Option<&'a str>,
}

/// Creates an answer whose body is made in pieces, in a coding.
fn in_coding(
    coding: Coding,
    status: StatusCode,
    length: Option<u64>,
    pieces: Box<dyn Pieces>,
) -> Result<Answer, Refusal> {
    let (pieces, length) = coding.encode(pieces, length);
    let answer = Answer::in_pieces(status, length, pieces)?;
    Ok(if coding == Coding::Gzip { answer.with(CONTENT_ENCODING, "gzip") } else { answer })
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
                let mut location = self.asked.root.url_of(self.path, true);
                location.extend(self.asked.query.iter().flat_map(|query| ["?", query]));
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
        let headers = &self.asked.headers;
        let name = self.path.names().last().map_or("", String::as_str);
        let kind = content_type::of_file(name);
        let may_be_compressed = may_be_compressed(name, kind, Some(length));
        let coding = Coding::of(&self.asked.method, headers, may_be_compressed);
        let etag = self.snapshot.etag(&path, found, length).map(|etag| coding.etag(etag));
        let may_be_part = !is_head && is_fixed;
        let answer = match validators::precondition(headers, etag.as_deref()) {
            Precondition::Holds => {
                self.bytes(open, Representation { kind, length, coding, etag: etag.as_deref() }, may_be_part)?
            }
            Precondition::NotModified => Answer::empty(StatusCode::NOT_MODIFIED),
            Precondition::Failed => {
                return Ok(Answer::line(StatusCode::PRECONDITION_FAILED, "the file is another one now"));
            }
        };
        let answer = match &etag {
            Some(etag) => answer.with(ETAG, etag).with(ACCEPT_RANGES, "bytes").with(CACHE_CONTROL, "no-cache"),
            None => answer.with(ACCEPT_RANGES, "none").with(CACHE_CONTROL, "no-store"),
        };
        let answer = if may_be_compressed { answer.with(VARY, "Accept-Encoding") } else { answer };
        Ok(match validators::date(file.modified()) {
            Some(date) => answer.with(LAST_MODIFIED, date),
            None => answer,
        })
    }

    /// Answers with a file that was opened, or with the ranges of it that are asked for; for HEAD without its bytes.
    fn bytes(
        &self,
        open: Option<Arc<ServedFile>>,
        file: Representation<'_>,
        may_be_part: bool,
    ) -> Result<Answer, Refusal> {
        let Representation { kind, length, coding, etag } = file;
        let headers = &self.asked.headers;
        // A file that changes without commits may have other bytes at the next request.
        let may_be_part = may_be_part && validators::range_counts(headers, etag);
        let range = headers.get(RANGE).filter(|_| may_be_part).and_then(|range| range.to_str().ok());
        let (status, kind, content_range, parts) = match ranges::wanted(range, length) {
            Wanted::Whole if length == 0 => (StatusCode::OK, kind.to_owned(), None, VecDeque::new()),
            Wanted::Whole => (StatusCode::OK, kind.to_owned(), None, [ReplyPart::Range(0..length)].into()),
            Wanted::Nothing => {
                let answer = Answer::line(StatusCode::RANGE_NOT_SATISFIABLE, "no range lies within the file");
                return Ok(answer.with(CONTENT_RANGE, format!("bytes */{length}")));
            }
            Wanted::Parts(wanted) => match &wanted[..] {
                [one] => {
                    let range = content_range(one.start, one.end, length);
                    (StatusCode::PARTIAL_CONTENT, kind.to_owned(), Some(range), [ReplyPart::Range(one.clone())].into())
                }
                _ => {
                    let boundary = boundary(etag);
                    let parts = multipart(wanted, kind, length, &boundary);
                    let kind = format!("multipart/byteranges; boundary={boundary}");
                    (StatusCode::PARTIAL_CONTENT, kind, None, parts)
                }
            },
        };
        let total = parts.iter().map(ReplyPart::length).fold(0, u64::saturating_add);
        let answer = match open {
            Some(open) if total > 0 => {
                let pieces = FilePieces::new(self.site, self.path.text(), open, parts);
                if self.site.expects_whole_reads && status == StatusCode::OK && length > LARGE {
                    pieces.expect_all();
                }
                in_coding(coding, status, Some(total), Box::new(pieces))?
            }
            _ => Answer { length: Some(total), ..Answer::empty(status) },
        };
        let answer = answer.with(CONTENT_TYPE, kind);
        Ok(match content_range {
            Some(range) => answer.with(CONTENT_RANGE, range),
            None => answer,
        })
    }

    fn listing(&self, found: &Found) -> Result<Answer, Refusal> {
        let kind = if self.wants_json() { "application/json" } else { "text/html; charset=utf-8" };
        let described = |answer: Answer| {
            let answer =
                answer.with(CONTENT_TYPE, kind).with(CACHE_CONTROL, "no-cache").with(VARY, "Accept, Accept-Encoding");
            if self.wants_json() { answer } else { answer.with(CONTENT_SECURITY_POLICY, application::POLICY) }
        };
        if self.asked.method == Method::HEAD {
            return Ok(described(Answer { length: None, ..Answer::empty(StatusCode::OK) }));
        }
        let pieces = self.site.attempt(
            || format!("list of {}", self.path.text()),
            || {
                // Before the answer begins, so that its status says whether the folder can be listed.
                let members = Members::of(self.site, found, self.path.text(), false)?;
                if self.wants_json() {
                    let members = members.spread(self.most_members());
                    return Ok(ListingPieces::new(members, ListingForm::Json, "[".to_owned(), |_| "\n]\n".to_owned()));
                }
                let page = page::Page::new(self.site, self.path, &found.node, self.asked)?;
                let before = page.before();
                Ok(ListingPieces::new(members, ListingForm::Html, before, move |few| page.after(few)))
            },
        )?;
        let coding = Coding::of(&self.asked.method, &self.asked.headers, may_be_compressed("", kind, None));
        in_coding(coding, StatusCode::OK, None, Box::new(pieces)).map(described)
    }

    /// Returns the maximum number of members that a listing shall have.
    fn most_members(&self) -> usize {
        self.asked.words().find_map(|pair| pair.strip_prefix("most=")?.parse().ok()).unwrap_or(usize::MAX)
    }

    fn wants_json(&self) -> bool {
        let is_asked = self.asked.words().any(|pair| pair == "json" || pair.starts_with("json="));
        let accepted = self.asked.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        is_asked || (accepted.contains("application/json") && !wants_html(&self.asked.method, &self.asked.headers))
    }

    fn properties(&self, found: Found) -> Result<Answer, Refusal> {
        let depth = match Depth::of(&self.asked.headers) {
            // There is nothing below a file.
            Ok(Depth::Endless) if matches!(found.node, Node::Folder(_)) => {
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
            || PropertyPieces::new(self.site, &self.snapshot, (self.path, &self.asked.root), found, properties, depth),
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
fn multipart(ranges: Vec<std::ops::Range<u64>>, kind: &str, length: u64, boundary: &str) -> VecDeque<ReplyPart> {
    let mut parts = VecDeque::new();
    for range in ranges {
        let place = content_range(range.start, range.end, length);
        let head = format!("\r\n--{boundary}\r\nContent-Type: {kind}\r\nContent-Range: {place}\r\n\r\n");
        parts.extend([ReplyPart::Bytes(head.into()), ReplyPart::Range(range)]);
    }
    parts.push_back(ReplyPart::Bytes(format!("\r\n--{boundary}--\r\n").into()));
    parts
}
