//! The page for browsers: files that `scripts/build_page.sh` makes of `web/`, and that are kept here compressed, so
//! that every build has them. They have nothing of the data, and their place does not depend on the tree.

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use sha2::{Digest, Sha256};
use tilefs_base::hex::hex;

use crate::serve::message::{Answer, OPTIONAL, Question};

/// The folder of the files, where no tree has anything.
const FOLDER: [&str; 2] = [".tilefs", "page"];

/// Lets a page load what this server has, and nothing else. Names and texts in it run nothing.
pub const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; object-src 'none'";

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    /// Compressed by gzip.
    bytes: &'static [u8],
}

const ASSETS: [Asset; 3] = [
    Asset { name: "page.js", kind: "text/javascript; charset=utf-8", bytes: include_bytes!("built/page.js.gz") },
    Asset { name: "page.css", kind: "text/css; charset=utf-8", bytes: include_bytes!("built/page.css.gz") },
    Asset { name: "icon.svg", kind: "image/svg+xml", bytes: include_bytes!("built/icon.svg.gz") },
];

/// Answers a request for a file of the page; `None` if the path is another one.
pub fn answer(names: &[String], asked: &Question) -> Option<Answer> {
    let [first, second, name] = names else { return None };
    let asset = ASSETS.iter().find(|asset| asset.name == name)?;
    if [first, second] != FOLDER {
        return None;
    }
    let etag = format!("\"{}\"", hex(&Sha256::digest(asset.bytes)[..8]));
    let is_known = asked.headers.get(IF_NONE_MATCH).is_some_and(|given| given.as_bytes() == etag.as_bytes());
    let answer = match is_known {
        true => Answer::empty(StatusCode::NOT_MODIFIED),
        false => Answer::whole(asset.bytes).with(CONTENT_TYPE, asset.kind).with(CONTENT_ENCODING, "gzip"),
    };
    Some(answer.with(ETAG, etag).with(CACHE_CONTROL, "no-cache"))
}

/// Returns the elements that load the page into a document, with the path from the document to the root. `first` is the file beside the document that the page reads first: it is requested together with the page.
pub fn elements(root: &str, first: Option<&str>) -> String {
    let [script, ..] = urls(root);
    // By the URL that the page asks for.
    let preload =
        |file| format!("<link rel=\"preload\" href=\"{file}?{OPTIONAL}\" as=\"fetch\" crossorigin=\"anonymous\">");
    let first = first.map(preload);
    format!("{}<script type=\"module\" async src=\"{script}\"></script>{}", style(root), first.unwrap_or_default())
}

/// Returns the elements that give a document the look of the page.
pub fn style(root: &str) -> String {
    let [_, style, icon] = urls(root);
    format!("<link rel=\"stylesheet\" href=\"{style}\"><link rel=\"icon\" href=\"{icon}\">")
}

/// Returns the URLs of the script, of the style sheet, and of the icon.
fn urls(root: &str) -> [String; 3] {
    ASSETS.map(|asset| format!("{root}{}/{}", FOLDER.join("/"), asset.name))
}
