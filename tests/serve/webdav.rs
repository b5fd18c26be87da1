//! Read-only WebDAV: properties of files and folders.

use std::collections::BTreeMap;

use crate::client::{Program, Reply, ask, demo, get, send, serve_toy};
use support::toy;

/// Returns the members in a reply by the path of their URL: whether each is a folder, and its length.
fn resources(reply: &Reply) -> BTreeMap<String, (bool, Option<u64>)> {
    assert_eq!((reply.status, reply.header("content-type")), (207, "application/xml; charset=utf-8"));
    let text = reply.text();
    let of = |response: &str, name: &str| {
        let (start, end) = (format!("<D:{name}>"), format!("</D:{name}>"));
        Some(response.split_once(&start)?.1.split_once(&end)?.0.to_owned())
    };
    text.split("<D:response>")
        .skip(1)
        .map(|response| {
            let is_folder = of(response, "resourcetype").is_some_and(|kind| kind == "<D:collection/>");
            let length = of(response, "getcontentlength").map(|length| length.parse().unwrap());
            (of(response, "href").unwrap(), (is_folder, length))
        })
        .collect()
}

#[test]
fn properties_of_a_folder_are_those_of_its_members() {
    let server = Program::start(&demo(), &[]);
    let reply = ask(server.address, "PROPFIND", "/", &["Depth: 1"]);
    let found = resources(&reply);
    assert_eq!((found["/"], found["/dims/"]), ((true, None), (true, None)));
    assert_eq!(found["/temp.f32"], (false, Some(80_000)));
    // Each member is at its URL, with the same ETag.
    for (href, (is_folder, length)) in &found {
        let head = ask(server.address, "HEAD", href, &[]);
        assert_eq!(head.status, 200, "{href}");
        if !is_folder {
            assert_eq!(head.header("content-length"), length.unwrap().to_string(), "{href}");
            assert!(reply.text().contains(&head.header("etag").replace('"', "&quot;")), "{href}");
        }
    }
    let json = get(server.address, "/?json").json();
    assert_eq!(found.len(), json.as_array().unwrap().len() + 1);

    let one = resources(&ask(server.address, "PROPFIND", "/", &["Depth: 0"]));
    assert_eq!(one.into_keys().collect::<Vec<_>>(), ["/"]);
    let file = resources(&ask(server.address, "PROPFIND", "/slice/0,0/temp.f32", &["Depth: 1"]));
    assert_eq!(file.into_iter().collect::<Vec<_>>(), [("/slice/0,0/temp.f32".to_owned(), (false, Some(4)))]);
    assert_eq!(ask(server.address, "PROPFIND", "/none", &["Depth: 0"]).status, 404);
}

#[test]
fn an_endless_depth_is_refused() {
    let server = Program::start(&demo(), &[]);
    for headers in [&["Depth: infinity"][..], &[]] {
        let reply = ask(server.address, "PROPFIND", "/", headers);
        assert!(reply.status == 403 && reply.text().contains("propfind-finite-depth"), "{reply:?}");
    }
    assert_eq!(ask(server.address, "PROPFIND", "/", &["Depth: 2"]).status, 400);
    // There is nothing below a file.
    for headers in [&["Depth: infinity"][..], &[]] {
        let found = resources(&ask(server.address, "PROPFIND", "/temp.f32", headers));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("/temp.f32".to_owned(), (false, Some(80_000)))]);
    }
}

/// Behind a proxy, each URL in a reply leads back to its member, whether or not the proxy says what it has removed.
#[test]
fn urls_of_members_are_right_behind_a_proxy() {
    let server = Program::start(&demo(), &[]);
    let hrefs = |target: &str, headers: &[&str]| -> Vec<String> {
        resources(&ask(server.address, "PROPFIND", target, headers)).into_keys().collect()
    };
    let with_prefix = hrefs("/dims/", &["Depth: 1", "X-Forwarded-Prefix: /deep/data/"]);
    assert_eq!(with_prefix, ["/deep/data/dims/", "/deep/data/dims/x.i64", "/deep/data/dims/y.i64"]);
    let relative = ["./", "./x.i64", "./y.i64"];
    for sign in ["X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy", "Forwarded: for=_a"] {
        assert_eq!(hrefs("/dims/", &["Depth: 1", sign]), relative, "{sign}");
    }
    // Relative to the URL of the request, which may lack its slash.
    assert_eq!(hrefs("/dims", &["Depth: 1", "Via: 1.1 proxy"]), ["./dims/", "./dims/x.i64", "./dims/y.i64"]);
    assert_eq!(hrefs("/dims/y.i64", &["Depth: 0", "Via: 1.1 proxy"]), ["./y.i64"]);
    assert_eq!(hrefs("/dims/y.i64", &["Depth: 0", "X-Forwarded-Prefix: //evil.example"]), ["/dims/y.i64"]);
}

#[test]
fn a_request_gets_the_properties_that_it_names() {
    let server = Program::start(&demo(), &[]);
    let propfind = |body: &str| {
        let request = format!(
            "PROPFIND /temp.f32 HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        send(server.address, request.as_bytes()).unwrap()
    };
    let named = propfind("<a:propfind xmlns:a=\"DAV:\"><a:prop><a:getcontentlength/><a:owner/></a:prop></a:propfind>");
    let text = named.text();
    assert!(text.contains("<D:getcontentlength>80000</D:getcontentlength>") && !text.contains("getetag"), "{text}");
    assert!(text.contains("<D:owner/>") && text.contains("404 Not Found"), "{text}");
    for body in ["<", "<propfind/>", &"x".repeat(10_000)] {
        assert_eq!(propfind(body).status, 400, "{body:.20}");
    }
    assert_eq!(propfind(&" ".repeat(20_000)).status, 413);
    let cut = "PROPFIND / HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\nContent-Length: 100\r\n\r\n<";
    let stream = crate::client::connect(server.address);
    std::io::Write::write_all(&mut &stream, cut.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let reply = crate::client::read_reply(&mut std::io::BufReader::new(stream), "PROPFIND");
    assert!(reply.is_none_or(|reply| reply.status == 413));
}

/// The requests with which Windows Explorer (Microsoft-WebDAV-MiniRedir) and the Finder of macOS (webdavfs) mount a
/// server and open a file, in their order. Both refuse a server whose answer to one of them they cannot use.
#[test]
fn explorer_and_finder_get_the_answers_that_they_need() {
    let server = Program::start(&demo(), &[]);
    let (windows, mac) =
        ("User-Agent: Microsoft-WebDAV-MiniRedir/10.0.19045", "User-Agent: WebDAVFS/3.0.0 Darwin/21.6.0");
    for agent in [windows, mac] {
        let options = ask(server.address, "OPTIONS", "/", &[agent, "translate: f"]);
        assert!((200..300).contains(&options.status), "{options:?}");
        // Class 1: without locks, so both mount read-only.
        assert_eq!((options.header("dav"), options.header("ms-author-via")), ("1", "DAV"));
        assert!(options.header("allow").contains("PROPFIND") && !options.header("allow").contains("PUT"));
    }
    // Explorer sends no body, and needs the type, the length and the time of each member.
    for (target, depth) in [("/", "0"), ("/", "1"), ("/dims", "0"), ("/dims", "1"), ("/temp.f32", "0")] {
        let depth = format!("Depth: {depth}");
        let reply = ask(server.address, "PROPFIND", target, &[windows, &depth, "translate: f", "Content-Length: 0"]);
        let found = resources(&reply);
        assert!(found.values().all(|(is_folder, length)| *is_folder == length.is_none()), "{found:?}");
        let times: Vec<String> = reply.text().split("<D:getlastmodified>").skip(1).map(str::to_owned).collect();
        // A listing does not open folders to find out their times.
        assert!(times.len() >= found.values().filter(|(is_folder, _)| !is_folder).count());
        assert!(times.iter().all(|time| time.split('<').next().is_some_and(|time| time.ends_with(" GMT"))));
    }
    // Finder names the properties, some of which no read-only server has.
    let finder = |target: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "PROPFIND {target} HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\n{mac}\r\nContent-Type: text/xml\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        send(server.address, request.as_bytes()).unwrap()
    };
    let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:propfind xmlns:D=\"DAV:\">\n<D:prop>\n";
    let facts = format!(
        "{head}<D:getlastmodified/>\n<D:getcontentlength/>\n<D:creationdate/>\n<D:resourcetype/>\n</D:prop>\n</D:propfind>\n"
    );
    let quota = format!(
        "{head}<D:quota-available-bytes/>\n<D:quota-used-bytes/>\n<D:quota/>\n<D:quotaused/>\n</D:prop>\n</D:propfind>\n"
    );
    assert_eq!(resources(&finder("/", &facts))["/"], (true, None));
    assert_eq!(resources(&finder("/temp.f32", &facts))["/temp.f32"], (false, Some(80_000)));
    assert!(finder("/", &quota).text().contains("404 Not Found"));
    // Both look for files of their own, which must be missing and not forbidden.
    for name in ["/desktop.ini", "/folder.jpg", "/._.", "/.DS_Store", "/._temp.f32", "/.hidden", "/Thumbs.db"] {
        assert_eq!(ask(server.address, "PROPFIND", name, &["Depth: 0", "Content-Length: 0"]).status, 404, "{name}");
    }
    // Writing is refused in a way that they show as a read-only volume.
    for method in ["LOCK", "PUT", "MKCOL", "PROPPATCH", "DELETE"] {
        assert_eq!(ask(server.address, method, "/new", &[windows, "Content-Length: 0"]).status, 405, "{method}");
    }
    // Reading is by ranges, each on condition that the file is still the same.
    let whole = get(server.address, "/temp.f32");
    let same = format!("If-Match: {}", whole.header("etag"));
    let part = ask(server.address, "GET", "/temp.f32", &[mac, &same, "Range: bytes=4096-8191"]);
    assert_eq!((part.status, &part.body[..]), (206, &whole.body[4096..8192]));
}

#[test]
fn a_hundred_thousand_members_have_their_properties_in_bounded_memory() {
    let (server, address, _) = serve_toy();
    let found = resources(&ask(address, "PROPFIND", "/many/", &["Depth: 1"]));
    assert_eq!(found.len() as u64, toy::MANY + 1);
    assert!(found.iter().filter(|(href, _)| *href != "/many/").all(|(_, facts)| *facts == (false, Some(6))));
    server.stop();
}

#[test]
fn a_member_that_cannot_be_read_has_a_status_of_its_own() {
    let (server, address, _) = serve_toy();
    let reply = ask(address, "PROPFIND", "/", &["Depth: 1"]);
    let found = resources(&reply);
    assert_eq!((found["/lengthless.bin"], found["/hello.txt"]), ((false, None), (false, Some(6))));
    assert!(reply.text().contains("/lengthless.bin</D:href><D:status>HTTP/1.1 500 Internal Server Error</D:status>"));
    assert_eq!(ask(address, "PROPFIND", "/lengthless.bin", &["Depth: 0"]).status, 500);
    server.stop();
}
