//! Clients that send nonsense, ask for too much, read nothing, or go away.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;

use crate::client::{Program, ask, connect, demo, eventually, get, read_reply, send, serve_toy};
use support::toy;

#[test]
fn no_path_leads_out_of_the_tree() {
    let server = Program::start(&demo(), &[]);
    for target in [
        "/../Cargo.toml",
        "/..",
        "/../",
        "/%2e%2e/",
        "/%2E%2E%2FCargo.toml",
        "/dims/../temp.f32",
        "/dims/..%2ftemp.f32",
        "/..%5C..%5Cetc%5Cpasswd",
        r"/..\..\etc\passwd",
        "//etc/passwd",
        "/%2Fetc%2Fpasswd",
        "/etc/passwd",
        "/temp.f32%00",
        "/temp.f32%00.txt",
        "/%",
        "/%zz",
        "/%ff%fe",
        "/__schema/",
        "/__fragments/",
        "/....//",
        "/%252e%252e/",
        "/slice/../../x",
        "/slice/%2e%2e/temp.f32",
        "/dims/y.i64/..",
        "/temp.f32/",
        "/temp.f32/x",
        "/file:%2F%2F%2Fetc%2Fpasswd",
        "/?../../etc/passwd%00",
        "/;x",
        "/~root",
        "/%c0%ae%c0%ae/",
    ] {
        for method in ["GET", "HEAD", "PROPFIND"] {
            let reply = ask(server.address, method, target, &["Depth: 1"]);
            let is_root = target.starts_with("/?");
            assert!(matches!(reply.status, 400 | 404) || is_root, "{method} {target}: {}", reply.status);
            assert!(!String::from_utf8_lossy(&reply.body).contains("root:"), "{target}");
        }
    }
    // Empty names and dots stand for nothing, as for other servers.
    for target in ["/./temp.f32", "//temp.f32", "/.//%2E/temp.f32"] {
        assert_eq!(get(server.address, target).body.len(), 80_000, "{target}");
    }
    for target in ["//", "/.", "/dims//", "/dims/.", "/./dims/"] {
        assert_eq!(get(server.address, target).status, 200, "{target}");
    }
    // Requests in the form for proxies contain a host, and the same path.
    assert_eq!(get(server.address, "http://localhost/temp.f32").body.len(), 80_000);
    assert!(matches!(get(server.address, "http://localhost/../etc/passwd").status, 400 | 404));
    assert_eq!(get(server.address, "/temp.f32").body.len(), 80_000);
}

#[test]
fn malformed_and_truncated_requests_get_an_answer_or_none_and_end() {
    let server = Program::start(&demo(), &[]);
    let long = |length: usize| "a".repeat(length);
    let many: String = (0..1000).map(|number| format!("X-{number}: 1\r\n")).collect();
    for request in [
        String::new(),
        "\r\n\r\n\r\n".into(),
        "GET".into(),
        "GET /\r\n\r\n".into(),
        "GET / HTTP/9.9\r\n\r\n".into(),
        "GET  / HTTP/1.1\r\n\r\n".into(),
        "\0\0\0\0\0\0\0\0\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nno colon\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".into(),
        "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello".into(),
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".into(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        format!("GET /{} HTTP/1.1\r\n\r\n", long(100_000)),
        format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", long(1_000_000)),
        format!("GET / HTTP/1.1\r\n{many}\r\n"),
        format!("{} / HTTP/1.1\r\n\r\n", long(50_000)),
        "GET /temp.f32 HTTP/1.1\r\nHost: loc".into(),
    ] {
        let mut stream = connect(server.address);
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        if let Some(reply) = read_reply(&mut BufReader::new(stream), "GET") {
            assert!((400..600).contains(&reply.status) || reply.status == 200, "{request:.40}: {}", reply.status);
            // A body of GET means nothing and is not read, but nothing may follow it.
            let is_harmless = request.contains("chunked") && reply.header("connection") == "close";
            assert!(reply.status != 200 || is_harmless, "{request:.40}");
        }
    }
    let deep = get(server.address, &"/a".repeat(2000));
    assert_eq!(deep.status, 404);
    assert_eq!(get(server.address, "/temp.f32").body.len(), 80_000);
}

#[test]
fn overlapping_and_endless_ranges_send_no_more_than_the_file() {
    let server = Program::start(&demo(), &[]);
    let whole = get(server.address, "/temp.f32").body;
    let many = format!("bytes={}", "0-,".repeat(2000));
    for header in [
        "bytes=0-,0-,0-,0-,0-",
        "bytes=0-79999,1-79999",
        &many,
        "bytes=-80000,-80000",
        "bytes=0-18446744073709551615,0-",
        "bytes=18446744073709551616-",
        "bytes=5-1",
        "bytes=--5",
        "bytes=0-0,-",
    ] {
        let reply = ask(server.address, "GET", "/temp.f32", &[&format!("Range: {header}")]);
        assert!(matches!(reply.status, 200 | 206 | 416), "{header:.40}: {}", reply.status);
        assert!(reply.body.len() <= whole.len() + 200, "{header:.40}: {}", reply.body.len());
        assert!(reply.status != 200 || reply.body == whole, "{header:.40}");
    }
}

/// Far more connections than the server keeps: the longest idle ones make room, whether they have sent nothing or half
/// a request, and memory stays bounded.
#[test]
fn ten_thousand_idle_connections_keep_nobody_out() {
    const IDLE: usize = 10_000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(IDLE as u64 + 500);
    let raised = rustix::process::Rlimit { current: Some(wanted), maximum: limit.maximum };
    let can_open = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_ok();
    let idle = if can_open { IDLE.min(wanted as usize - 400) } else { 500 };
    let server = Program::start(&demo(), &["--cache-size", "32M"]);
    get(server.address, "/temp.f32");
    let before = server.memory();
    let mut open: Vec<TcpStream> = Vec::new();
    for number in 0..idle {
        let mut stream = connect(server.address);
        match number % 3 {
            0 => {}
            1 => drop(stream.write_all(b"GET /temp.f32 HTTP/1.1\r\nHost: local")),
            _ => drop(stream.write_all(b"GET /meta.json HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        }
        open.push(stream);
        if number % 1000 == 999 {
            assert_eq!(get(server.address, "/temp.f32").body.len(), 80_000, "beside {number}");
        }
    }
    let stats = get(server.address, "/.tilefs/stats.json").json();
    assert!(stats["connections"].as_u64().unwrap() <= 512, "{stats}");
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 100 << 20, "{} MiB", grown >> 20);
    // The latest connections are still served.
    let last = open.iter().rposition(|_| true).filter(|last| last % 3 == 0).unwrap_or(idle - 1 - (idle - 1) % 3);
    let mut stream = open.swap_remove(last);
    stream.write_all(b"GET /temp.f32 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut BufReader::new(stream), "GET").unwrap().body.len(), 80_000);
}

/// Clients that request a huge file and read none of it: each occupies a few pieces of it, and no thread.
#[test]
fn clients_that_read_nothing_hold_a_few_pieces_each() {
    let server = Program::start(&tilefs_fixtures::fixtures().join("huge"), &["--cache-size", "32M"]);
    assert_eq!(ask(server.address, "HEAD", "/v.i32", &[]).header("content-length"), "4398046511104");
    let before = server.memory();
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(server.address);
        stream.write_all(b"GET /v.i32 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        slow.push(stream);
    }
    for stream in &mut slow {
        stream.read_exact(&mut [0; 1000]).unwrap();
    }
    assert!(!get(server.address, "/schema.txt").body.is_empty());
    let grown = server.memory().saturating_sub(before);
    assert!(grown < (100 << 20) + (32 << 20), "{} MiB", grown >> 20);
}

#[test]
fn a_reply_that_cannot_be_finished_is_cut_off() {
    let (server, address, _) = serve_toy();
    let reply = get(address, "/damaged.bin");
    assert_eq!(reply.status, 200);
    assert!(reply.is_cut && reply.body.len() as u64 <= toy::DAMAGED_FROM, "{}", reply.body.len());
    let mut sound = vec![0; reply.body.len()];
    toy::fill(0, &mut sound);
    assert!(reply.body == sound);
    let refused = ask(address, "GET", "/damaged.bin", &["Range: bytes=2000000-"]);
    assert!(refused.status == 500 && refused.text().contains("the checksum does not match"), "{refused:?}");
    let panicked = get(address, "/panics.bin");
    assert!(panicked.status == 500 && panicked.text().contains("this file always panics"), "{panicked:?}");
    let errors = get(address, "/.tilefs/errors.txt").text();
    assert!(errors.contains("damaged.bin") && errors.contains("panics.bin"), "{errors}");
    assert_eq!(get(address, "/hello.txt").body, b"hello\n");
    server.stop();
}

#[test]
fn reads_that_hang_hold_up_no_others_and_end_with_their_client() {
    let (server, address, counters) = serve_toy();
    let hanging: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = connect(address);
            stream.write_all(b"GET /gated.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    eventually("all wait", || counters.gate.waiting() >= 40);
    assert_eq!(get(address, "/hello.txt").body, b"hello\n");
    drop(hanging);
    let connections = || get(address, "/.tilefs/stats.json").json()["connections"].as_u64().unwrap();
    eventually("the connections end", || connections() == 1);
    counters.gate.open();
    server.stop();
}

/// A long reply ends with its client: no more data are read for it.
#[test]
fn a_client_that_goes_away_stops_its_reply() {
    let (server, address, counters) = serve_toy();
    let mut stream = connect(address);
    stream.write_all(b"GET /decoded.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.read_exact(&mut vec![0; 3 << 20]).unwrap();
    drop(stream);
    let connections = || get(address, "/.tilefs/stats.json").json()["connections"].as_u64().unwrap();
    eventually("the connection ends", || connections() == 1);
    // Ranges that were being prefetched may still end.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let prepared = counters.prepared.load(Ordering::Relaxed);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(counters.prepared.load(Ordering::Relaxed), prepared);
    assert!(prepared < toy::MEMORY / 2, "{prepared}");
    server.stop();
}

#[test]
fn many_requests_on_one_connection_are_answered_in_order() {
    let (server, address, _) = serve_toy();
    let mut stream = connect(address);
    let requests: String = (0..50)
        .map(|number| {
            format!(
                "GET /big.u64 HTTP/1.1\r\nHost: localhost\r\nRange: bytes={}-{}\r\n\r\n",
                8 * number,
                8 * number + 7
            )
        })
        .collect();
    stream.write_all(requests.as_bytes()).unwrap();
    let mut replies = BufReader::new(stream);
    for number in 0u64..50 {
        let reply = read_reply(&mut replies, "GET").unwrap();
        assert_eq!((reply.status, reply.body), (206, (number * number).to_le_bytes().to_vec()));
    }
    assert_eq!(send(address, b"GET /hello.txt HTTP/1.0\r\n\r\n").unwrap().body, b"hello\n");
    server.stop();
}
