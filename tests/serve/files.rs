//! Files over HTTP are the bytes of the tree, whole and in ranges.

use std::sync::Arc;

use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, Folder, Node};

use crate::client::{Program, Reply, ask, demo, get, serve_toy};
use support::toy;

/// A time after the last commit of the sample array: texts name the time that is shown.
const AT: &str = "2024-06-01";

fn root() -> Arc<dyn Folder> {
    let mut options = TreeOptions::default();
    options.reading.at = tree::select::time::window(AT).unwrap().1;
    tree::open(&demo(), &options).unwrap()
}

/// Returns the bytes of a file of the tree.
fn bytes(node: &Node) -> Vec<u8> {
    let Node::File(file) = node else { panic!("this is a folder") };
    let content = file.open().unwrap();
    let mut bytes = vec![0; content.len() as usize];
    content.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Finds all listed files below a folder, by path.
fn files(folder: &dyn Folder, path: &str, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in folder.list().unwrap() {
        let node = folder.lookup(&entry.name).unwrap().unwrap();
        match &node {
            Node::Folder(inner) => files(&**inner, &format!("{path}{}/", entry.name), found),
            Node::File(_) => found.push((format!("{path}{}", entry.name), bytes(&node))),
        }
        assert_eq!(matches!(node, Node::Folder(_)), entry.kind == EntryKind::Folder);
    }
}

#[test]
fn every_file_over_http_has_the_bytes_of_the_tree() {
    let server = Program::start(&demo(), &["--at", AT]);
    let root = root();
    let mut all = Vec::new();
    files(&*root, "", &mut all);
    for name in ["zarr", "zarr2", "tiff", ".history"] {
        let Some(Node::Folder(folder)) = root.lookup(name).unwrap() else { panic!("{name}") };
        files(&*folder, &format!("{name}/"), &mut all);
    }
    assert!(all.len() > 60, "{}", all.len());
    for (path, bytes) in &all {
        let url = format!("/{}", path.replace('%', "%25").replace(':', "%3A"));
        let (whole, head) = (get(server.address, &url), ask(server.address, "HEAD", &url, &[]));
        assert!(whole.status == 200 && whole.body == *bytes, "{path}: {} {}", whole.status, whole.body.len());
        assert_eq!(whole.header("content-length"), bytes.len().to_string(), "{path}");
        for name in ["content-length", "etag", "last-modified", "content-type", "accept-ranges"] {
            assert_eq!(whole.header(name), head.header(name), "{name} of {path}");
            // A text that may mention data which could not be read can be different the next time.
            let is_transient = name == "etag" && whole.header("cache-control") == "no-store";
            assert!(!whole.header(name).is_empty() || is_transient, "{name} of {path}");
        }
        let has_etag = !whole.header("etag").is_empty();
        assert_eq!(
            has_etag,
            !["README.txt", "schema.txt", "schema.json"].iter().any(|name| path.ends_with(name)),
            "{path}"
        );
        if !path.starts_with(".history") {
            assert_eq!(whole.header("last-modified"), "Tue, 02 Jan 2024 00:00:00 GMT", "{path}");
        }
    }
}

#[test]
fn slices_are_files_over_http() {
    let server = Program::start(&demo(), &["--slice", "corner=0..1,0..1"]);
    let value = |path: &str| f32::from_le_bytes(get(server.address, path).body.try_into().unwrap());
    let whole = get(server.address, "/temp.f32").body;
    let expected = f32::from_le_bytes(whole[4 * (42 * 200 + 17)..][..4].try_into().unwrap());
    for path in
        ["/slice/42,17/temp.f32", "/slice/y=42,x=17/temp.f32", "/slice/42%2C17/temp.f32", "/islice/42,17/temp.f32"]
    {
        assert_eq!(value(path), expected, "{path}");
    }
    assert_eq!(get(server.address, "/slice/corner/temp.f32").body.len(), 16);
    let wrong = get(server.address, "/slice/y=500/temp.f32");
    assert!(wrong.status == 404 && wrong.text().contains("500"), "{wrong:?}");
    assert!(get(server.address, "/.tilefs/errors.txt").text().contains("500"));
    let near = get(server.address, "/tmp.f32");
    assert!(near.status == 404 && near.text().contains("did you mean temp.f32?"), "{}", near.text());
}

/// Returns the bytes of a computed file of the toy tree.
fn computed(from: u64, to: u64) -> Vec<u8> {
    let mut bytes = vec![0; (to - from) as usize];
    toy::fill(from, &mut bytes);
    bytes
}

fn range(reply: &Reply, from: u64, to: u64, length: u64) {
    assert_eq!(reply.status, 206);
    assert_eq!(reply.header("content-range"), format!("bytes {from}-{}/{length}", to - 1));
    assert_eq!(reply.header("content-length"), (to - from).to_string());
    assert!(reply.body == computed(from, to), "{from}..{to}");
}

#[test]
fn ranges_over_http_are_the_bytes_that_they_name() {
    let (server, address, _) = serve_toy();
    let ask = |header: &str| ask(address, "GET", "/big.u64", &[&format!("Range: {header}")]);
    let length = toy::BIG;
    for (header, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=7-1000006".to_owned(), 7, 1_000_007),
        (format!("bytes={}-", length - 9), length - 9, length),
        ("bytes=-70000".to_owned(), length - 70_000, length),
        (format!("bytes={}-99999999999999999999999", length - 1), length - 1, length),
        ("bytes=53687091200-53687091209".to_owned(), 53_687_091_200, 53_687_091_210),
    ] {
        range(&ask(&header), from, to, length);
    }
    let behind = ask("bytes=107374182400-");
    assert_eq!((behind.status, behind.header("content-range")), (416, "bytes */107374182400"));
    server.stop();
}

#[test]
fn several_ranges_are_parts_with_their_places() {
    let (server, address, _) = serve_toy();
    let reply = ask(address, "GET", "/slow.bin", &["Range: bytes=0-9,100000-299999,-5"]);
    assert_eq!(reply.status, 206);
    let boundary = reply.header("content-type").split_once("multipart/byteranges; boundary=").unwrap().1.to_owned();
    let (mut expected, length) = (Vec::new(), 4u64 << 20);
    for (from, to) in [(0, 10), (100_000, 300_000), (length - 5, length)] {
        expected.extend(format!("\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n").bytes());
        expected.extend(format!("Content-Range: bytes {from}-{}/{length}\r\n\r\n", to - 1).bytes());
        expected.extend(computed(from, to));
    }
    expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
    assert!(reply.body == expected && !reply.is_cut);
    server.stop();
}

#[test]
fn etags_and_ranges_of_the_same_file_belong_together() {
    let server = Program::start(&demo(), &[]);
    let ask = |headers: &[&str]| ask(server.address, "GET", "/temp.f32", headers);
    let whole = ask(&[]);
    let etag = whole.header("etag").to_owned();
    let same = ask(&[&format!("If-None-Match: {etag}")]);
    assert!(same.status == 304 && same.body.is_empty() && same.header("etag") == etag, "{same:?}");
    assert_eq!(ask(&["If-None-Match: \"other\""]).status, 200);
    // A writer chooses the times of commits, so a date proves nothing.
    let date = whole.header("last-modified").to_owned();
    assert_eq!(ask(&[&format!("If-Modified-Since: {date}")]).status, 200);
    let part = ask(&["Range: bytes=4-7", &format!("If-Range: {etag}")]);
    assert!(part.status == 206 && part.body == whole.body[4..8]);
    for other in ["\"other\"".to_owned(), date, format!("W/{etag}")] {
        let reply = ask(&["Range: bytes=4-7", &format!("If-Range: {other}")]);
        assert!(reply.status == 200 && reply.body == whole.body, "{other}");
    }
    assert_eq!(ask(&["If-Match: \"other\""]).status, 412);
    assert_eq!(ask(&[&format!("If-Match: {etag}")]).status, 200);
    // Another file has a different ETag, and so has the same file of another server.
    let other = get(server.address, "/cell.i32");
    assert!(other.header("etag") != etag && other.header("etag").len() == etag.len());
    let again = Program::start(&demo(), &[]);
    assert_ne!(get(again.address, "/temp.f32").header("etag"), etag);
}

#[test]
fn a_file_that_changes_without_a_commit_has_no_etag_and_no_parts() {
    let server = Program::start(&demo(), &[]);
    let reply = ask(server.address, "GET", "/.tilefs/stats.json", &["Range: bytes=0-0", "If-None-Match: *"]);
    // `*` matches any file.
    assert_eq!(reply.status, 304);
    let reply = ask(server.address, "GET", "/.tilefs/stats.json", &["Range: bytes=0-0"]);
    assert_eq!((reply.status, reply.header("etag"), reply.header("cache-control")), (200, "", "no-store"));
    reply.json();
}

#[test]
fn an_empty_file_and_a_long_one_have_their_length() {
    let (server, address, _) = serve_toy();
    let empty = get(address, "/empty.bin");
    assert_eq!((empty.status, empty.header("content-length"), empty.body.len()), (200, "0", 0));
    assert_eq!(ask(address, "GET", "/empty.bin", &["Range: bytes=0-"]).status, 416);
    let big = ask(address, "HEAD", "/big.u64", &[]);
    assert_eq!((big.status, big.header("content-length")), (200, "107374182400"));
    server.stop();
}

#[test]
fn texts_and_numbers_are_compressed_for_clients_that_accept_it() {
    use std::io::Read;
    let server = Program::start(&demo(), &[]);
    let ask = |path: &str, headers: &[&str]| ask(server.address, "GET", path, headers);
    let unpacked = |reply: &Reply| {
        assert_eq!((reply.status, reply.header("content-encoding")), (200, "gzip"));
        assert!(reply.header("vary").contains("Accept-Encoding"), "{}", reply.header("vary"));
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes).unwrap();
        bytes
    };
    let gzip = "Accept-Encoding: gzip, deflate, br, zstd";
    for path in ["/text/temp.txt", "/README.txt", "/schema.json", "/temp.f32"] {
        let (whole, compressed) = (ask(path, &[]), ask(path, &[gzip]));
        assert_eq!((whole.header("vary"), whole.header("content-encoding")), ("Accept-Encoding", ""), "{path}");
        assert_eq!(unpacked(&compressed), whole.body, "{path}");
        assert!(compressed.body.len() < whole.body.len(), "{path}: {}", compressed.body.len());
    }
    let short = ask("/zarr/temp/zarr.json", &[gzip]);
    assert!(short.body.len() < 1024 && short.header("content-encoding").is_empty() && short.header("vary").is_empty());
    // The compressed text is another representation: its ETag differs, and ranges are those of the text as it is.
    let (whole, compressed) = (ask("/text/temp.txt", &[]), ask("/text/temp.txt", &[gzip]));
    let [plain, packed] = [&whole, &compressed].map(|reply| reply.header("etag").to_owned());
    assert!(plain != packed && packed.ends_with("-gzip\""), "{plain} {packed}");
    let known = ask("/text/temp.txt", &[gzip, &format!("If-None-Match: {packed}")]);
    assert_eq!((known.status, known.header("etag")), (304, packed.as_str()));
    assert_eq!(ask("/text/temp.txt", &[&format!("If-None-Match: {packed}")]).status, 200);
    assert_eq!(ask("/text/temp.txt", &[gzip, &format!("If-None-Match: {plain}")]).status, 200);
    let part = ask("/text/temp.txt", &[gzip, "Range: bytes=10-99", &format!("If-Range: {plain}")]);
    assert_eq!((part.status, part.header("content-encoding"), part.header("etag")), (206, "", plain.as_str()));
    assert_eq!(part.body, whole.body[10..100]);
    let part = ask("/text/temp.txt", &[gzip, "Range: bytes=10-99", &format!("If-Range: {packed}")]);
    assert!(part.status == 200 && part.header("content-encoding").is_empty() && part.body == whole.body);
    assert_eq!(ask("/text/temp.txt", &[gzip, "Range: bytes=10-", &format!("If-Match: {packed}")]).status, 412);
    // Formats of their own are neither texts nor numbers, and listings are texts.
    assert_eq!(ask("/npy/temp.npy", &[gzip]).header("content-encoding"), "");
    let listed = ask("/?json", &[]);
    assert_eq!(unpacked(&ask("/?json", &[gzip])), listed.body);
}

#[test]
fn what_need_not_exist_is_no_error_if_it_is_asked_for_so() {
    let server = Program::start(&demo(), &[]);
    let ask = |method: &str, path: &str| ask(server.address, method, path, &[]);
    for method in ["GET", "HEAD"] {
        let (absent, there) = (ask(method, "/.group/group.json?optional"), ask(method, "/schema.json?optional"));
        assert_eq!((absent.status, there.status), (204, 200), "{method}");
        assert_eq!(there.body, ask(method, "/schema.json").body);
        assert!(!absent.header("tilefs-reason").is_empty());
        assert_eq!(ask(method, "/.group/group.json").status, 404);
    }
    // The reason is that of the error, with the escapes of a URL.
    let (reason, error) = (ask("GET", "/slice/y=a/x?optional"), ask("GET", "/slice/y=a/x"));
    let decoded = tilefs_base::percent::unescape(reason.header("tilefs-reason")).unwrap();
    assert_eq!(String::from_utf8(decoded).unwrap(), String::from_utf8(error.body).unwrap().trim_end());
}
