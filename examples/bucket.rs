//! A minimal S3 server for benchmarks, with only the requests that readers need: the folders in FOLDER are buckets, the
//! files in them objects. It adds hardly any latency, unlike simulators of all of S3: it reads a range of a file and
//! sends it.
//!
//! usage: cargo run --release --example bucket -- FOLDER
//!
//! Prints the port that it listens on. It ignores credentials and accepts no writes. It exits at the end of its
//! standard input.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use support::http::{Message, unescaped};

/// The most entries in one page of a listing.
const LISTED_AT_ONCE: usize = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder] = arguments.as_slice() else { return Err("usage: bucket FOLDER".into()) };
    let root = Arc::new(fs::canonicalize(folder)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    for client in listener.incoming() {
        let (client, root) = (client?, root.clone());
        thread::spawn(move || serve(&client, &root));
    }
    Ok(())
}

/// Answers the requests of one connection.
fn serve(mut client: &TcpStream, root: &Path) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut requests = BufReader::new(client.try_clone()?);
    while let Some(request) = Message::read(&mut requests, true)? {
        let answer = answer(root, &request).unwrap_or_else(|| error_response("404 Not Found", "NoSuchKey"));
        client.write_all(&answer.head())?;
        if request.method() != "HEAD" {
            client.write_all(&answer.body)?;
        }
    }
    Ok(())
}

/// Returns the answer to a request; `None` if there is no such bucket or object.
fn answer(root: &Path, request: &Message) -> Option<Message> {
    let (path, query) = request.second().split_once('?').unwrap_or((request.second(), ""));
    let path = unescaped(path.trim_start_matches('/'));
    if path.split('/').any(|name| name == "..") {
        return None;
    }
    let parameter = |name: &str| {
        let parameters = query.split('&').filter_map(|one| one.split_once('='));
        parameters.filter(|(known, _)| *known == name).map(|(_, value)| unescaped(value)).next()
    };
    if parameter("list-type").is_some() {
        let most = parameter("max-keys").and_then(|most| most.parse().ok()).unwrap_or(LISTED_AT_ONCE);
        let text = |name: &str| parameter(name).unwrap_or_default();
        return listing(&root.join(&path), &text("prefix"), &text("delimiter"), &text("continuation-token"), most);
    }
    object(&root.join(&path), request)
}

fn object(path: &Path, request: &Message) -> Option<Message> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
    let length = metadata.len();
    let range = request.header("Range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let (first, end) = match range {
        None => (0, length),
        Some(("", last)) => (length.saturating_sub(last.parse().ok()?), length),
        Some((first, "")) => (first.parse().ok()?, length),
        Some((first, last)) => (first.parse().ok()?, last.parse::<u64>().ok()?.saturating_add(1).min(length)),
    };
    if first > end || range.is_some() && first == length {
        return Some(error_response("416 Range Not Satisfiable", "InvalidRange"));
    }
    let mut body = vec![0; if request.method() == "HEAD" { 0 } else { usize::try_from(end - first).ok()? }];
    file.read_exact_at(&mut body, first).ok()?;
    let mut answer =
        Message::new(if range.is_some() { "HTTP/1.1 206 Partial Content" } else { "HTTP/1.1 200 OK" }, &body);
    answer.set("Content-Length", &(end - first).to_string());
    answer.set("Content-Range", &format!("bytes {first}-{}/{length}", end.saturating_sub(1)));
    answer.set("ETag", &etag(&metadata));
    answer.set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    Some(answer)
}

fn etag(metadata: &fs::Metadata) -> String {
    format!("\"{:x}-{:x}\"", metadata.ino(), metadata.mtime_nsec())
}

/// Returns a page of the listing of the keys that begin with `prefix`: those after `after`.
fn listing(bucket: &Path, prefix: &str, delimiter: &str, after: &str, most: usize) -> Option<Message> {
    let mut keys = Vec::new();
    // Visit only the folder that may have such keys.
    let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
    collect(&bucket.join(folder), bucket, &mut keys);
    let mut entries: Vec<(String, Option<PathBuf>)> = Vec::new();
    for (key, path) in keys {
        let Some(rest) = key.strip_prefix(prefix) else { continue };
        match rest.find('/').filter(|_| delimiter == "/") {
            Some(at) => entries.push((key[..prefix.len() + at + 1].to_owned(), None)),
            None => entries.push((key, Some(path))),
        }
    }
    entries.sort();
    entries.dedup();
    entries.retain(|(key, _)| key.as_str() > after);
    let is_cut = entries.len() > most;
    entries.truncate(most);
    let mut text = format!("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>{is_cut}</IsTruncated>");
    for (key, path) in &entries {
        match path.as_ref().and_then(|path| path.metadata().ok()) {
            Some(metadata) => text.push_str(&format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                etag(&metadata),
                metadata.len()
            )),
            None => text.push_str(&format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>")),
        }
    }
    if let Some((last, _)) = entries.last().filter(|_| is_cut) {
        text.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
    }
    text.push_str(&format!("<KeyCount>{}</KeyCount></ListBucketResult>", entries.len()));
    let mut answer = Message::new("HTTP/1.1 200 OK", text.as_bytes());
    answer.set("Content-Type", "application/xml");
    Some(answer)
}

/// Collects all files below a folder, with their keys.
fn collect(folder: &Path, bucket: &Path, keys: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, bucket, keys);
        } else if let Ok(key) = path.strip_prefix(bucket) {
            keys.push((key.display().to_string(), path.clone()));
        }
    }
}

fn error_response(status: &str, code: &str) -> Message {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let mut answer = Message::new(&format!("HTTP/1.1 {status}"), body.as_bytes());
    answer.set("Content-Type", "application/xml");
    answer
}
