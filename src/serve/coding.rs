//! Content codings (RFC 9110, section 8.4): texts and numbers are sent compressed to clients that accept it.
//!
//! A compressed file is another representation of the file, with an ETag of its own. Ranges are those of the file as it
//! is: a request for a range gets no coding, and neither does HEAD, whose sender asks for the length of the file.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use hyper::header::{ACCEPT_ENCODING, RANGE};
use hyper::{HeaderMap, Method};

use super::connection::body::Pieces;
use super::http::refusal::Refusal;

/// A shorter file is sent as it is.
const SHORT: u64 = 1 << 10;

/// Longer files of numbers are sent as they are: a program that reads so many is faster without the compression, and a
/// page that draws a picture reads fewer.
const MANY_NUMBERS: u64 = 8 << 20;

/// The endings of files of plain numbers.
const NUMBERS: [&str; 10] = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"];

/// The end of the ETag of a compressed text, before its last quote.
const MARK: &str = "-gzip\"";

/// The form in which a reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// The bytes as they are.
    Identity,
    Gzip,
}

impl Coding {
    /// Returns the form of a reply that [`may_be_compressed`], or may not.
    pub fn of(method: &Method, headers: &HeaderMap, may_be_compressed: bool) -> Self {
        let is_whole = method == Method::GET && !headers.contains_key(RANGE);
        if is_whole && may_be_compressed && accepts_gzip(headers) { Coding::Gzip } else { Coding::Identity }
    }

    /// Returns the ETag of this form of a file.
    pub fn etag(self, etag: String) -> String {
        match (self, etag.strip_suffix('"')) {
            (Coding::Gzip, Some(start)) => format!("{start}{MARK}"),
            _ => etag,
        }
    }

    /// Returns the bytes in this form, and their number if it is known.
    pub fn encode(self, pieces: Box<dyn Pieces>, length: Option<u64>) -> (Box<dyn Pieces>, Option<u64>) {
        match self {
            Coding::Identity => (pieces, length),
            Coding::Gzip => {
                let encoder = GzEncoder::new(Vec::new(), Compression::fast());
                (Box::new(GzipPieces { pieces, encoder: Some(encoder) }), None)
            }
        }
    }
}

/// Returns whether the form of a reply depends on what its client accepts, by the name and the media type of the file:
/// it is a text that is not short, or some numbers. `length` is `None` if it is not known.
pub fn may_be_compressed(name: &str, kind: &str, length: Option<u64>) -> bool {
    if length.is_some_and(|length| length < SHORT) {
        return false;
    }
    if name.rsplit_once('.').is_some_and(|(_, ending)| NUMBERS.contains(&ending)) {
        return length.is_some_and(|length| length <= MANY_NUMBERS);
    }
    let kind = kind.split(';').next().unwrap_or_default();
    kind.starts_with("text/") || matches!(kind, "application/json" | "application/x-ndjson" | "application/xml")
}

/// Returns whether a client accepts gzip: by its name or as any coding, with a weight that is not 0.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut any = false;
    for list in headers.get_all(ACCEPT_ENCODING) {
        for item in list.to_str().unwrap_or_default().split(',') {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            let is_wanted = weight.is_none_or(|weight| weight.trim().parse().is_ok_and(|weight: f32| weight > 0.0));
            match name.as_str() {
                "gzip" | "x-gzip" => return is_wanted,
                "*" => any = is_wanted,
                _ => {}
            }
        }
    }
    any
}

/// Compressed pieces. Each is complete, so that a reader of a stream sees rows as soon as they are made. Memory: the
/// state of the encoder (about 300 kB), and a piece.
struct GzipPieces {
    pieces: Box<dyn Pieces>,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Pieces for GzipPieces {
    fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        let Some(encoder) = &mut self.encoder else { return Ok(None) };
        let failed = |error: std::io::Error| Refusal::Failed(format!("the reply cannot be compressed: {error}"));
        match self.pieces.next()? {
            Some(piece) => {
                encoder.write_all(&piece).and_then(|()| encoder.flush()).map_err(failed)?;
                Ok(Some(std::mem::take(encoder.get_mut()).into()))
            }
            None => {
                let rest = self.encoder.take().map(GzEncoder::finish).transpose().map_err(failed)?;
                Ok(rest.map(Bytes::from))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(accepted: &'static str) -> HeaderMap {
        [(ACCEPT_ENCODING, HeaderValue::from_static(accepted))].into_iter().collect()
    }

    #[test]
    fn clients_choose_the_coding() {
        for (accepted, expected) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5, br", true),
            ("GZIP", true),
            ("*", true),
            ("br, *;q=0.1", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000, *", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("*;q=0", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&headers(accepted)), expected, "{accepted}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn only_long_texts_and_some_numbers_that_are_asked_for_as_a_whole_are_compressed() {
        let of = |method: &Method, headers: &HeaderMap, kind: &str, length| {
            Coding::of(method, headers, may_be_compressed("cells", kind, length))
        };
        let gzip = headers("gzip");
        assert_eq!(of(&Method::GET, &gzip, "text/csv; charset=utf-8", Some(SHORT)), Coding::Gzip);
        assert_eq!(of(&Method::GET, &gzip, "application/json", None), Coding::Gzip);
        assert_eq!(of(&Method::GET, &gzip, "text/plain", Some(SHORT - 1)), Coding::Identity);
        assert_eq!(of(&Method::HEAD, &gzip, "text/plain", Some(SHORT)), Coding::Identity);
        assert_eq!(of(&Method::GET, &gzip, "image/tiff", Some(SHORT)), Coding::Identity);
        let numbers = |name: &str, length| {
            Coding::of(&Method::GET, &gzip, may_be_compressed(name, "application/octet-stream", Some(length)))
        };
        assert_eq!(numbers("temp.f32", SHORT), Coding::Gzip);
        assert_eq!(numbers("temp.valid.u8", MANY_NUMBERS), Coding::Gzip);
        assert_eq!(numbers("temp.f32", SHORT - 1), Coding::Identity);
        assert_eq!(numbers("temp.f32", MANY_NUMBERS + 1), Coding::Identity);
        assert_eq!(numbers("f32", SHORT), Coding::Identity);
        assert_eq!(numbers("0.0", SHORT), Coding::Identity);
        let mut range = gzip.clone();
        range.insert(RANGE, HeaderValue::from_static("bytes=0-"));
        assert_eq!(of(&Method::GET, &range, "text/plain", Some(SHORT)), Coding::Identity);
        assert_eq!(Coding::Gzip.etag("\"ab\"".to_owned()), "\"ab-gzip\"");
        assert_eq!(Coding::Identity.etag("\"ab\"".to_owned()), "\"ab\"");
    }

    /// Yields these pieces.
    struct Given(Vec<&'static str>);

    impl Pieces for Given {
        fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
            Ok((!self.0.is_empty()).then(|| Bytes::from(self.0.remove(0))))
        }
    }

    #[test]
    fn each_compressed_piece_can_be_read_at_once() {
        let (mut pieces, length) = Coding::Gzip.encode(Box::new(Given(vec!["first\n", "second\n"])), Some(13));
        assert_eq!(length, None);
        let mut all = pieces.next().unwrap().unwrap().to_vec();
        let mut line = [0; 6];
        GzDecoder::new(&all[..]).read_exact(&mut line).unwrap();
        assert_eq!(&line, b"first\n");
        while let Some(piece) = pieces.next().unwrap() {
            all.extend_from_slice(&piece);
        }
        let mut text = String::new();
        GzDecoder::new(&all[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\nsecond\n");
    }
}
