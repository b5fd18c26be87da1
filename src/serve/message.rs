//! A request as the server understands it, and the answer to it.

use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use hyper::{HeaderMap, Method, StatusCode};

use super::connection::body::Pieces;
use super::http::proxy::Root;
use super::http::refusal::Refusal;

/// A request whose sender may read.
pub struct Question {
    /// GET, HEAD or PROPFIND.
    pub method: Method,
    /// The path of the URL, with its escapes.
    pub path: String,
    /// The query without the token.
    pub query: Option<String>,
    /// Where the client finds the tree.
    pub root: Root,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The word of a query that asks for a file that need not exist: if there is none, the status is 204, no error. Browsers
/// list each reply with an error in their console.
pub const OPTIONAL: &str = "optional";

impl Question {
    /// Returns the words of the query.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.query.iter().flat_map(|query| query.split('&'))
    }
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
    /// Creates an answer without a body.
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

    /// Creates an answer of a text.
    pub fn text(status: StatusCode, kind: &'static str, text: String) -> Self {
        let answer = Answer { first: text.into(), ..Answer::empty(status) };
        Answer { length: Some(answer.first.len() as u64), ..answer }.with(CONTENT_TYPE, kind)
    }

    /// Creates an answer whose body is made in pieces; makes the first one.
    ///
    /// # Errors
    /// If the first piece cannot be made.
    pub fn in_pieces(status: StatusCode, length: Option<u64>, mut pieces: Box<dyn Pieces>) -> Result<Self, Refusal> {
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

    /// Returns the same answer for HEAD: without its body.
    pub fn without_body(mut self) -> Self {
        if let Some(length) = self.length {
            self = self.with(CONTENT_LENGTH, length.to_string());
        }
        Answer { first: Bytes::new(), length: Some(0), rest: None, ..self }
    }
}
