//! More clients than the server can answer: those that keep it waiting make room for the others.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::client::{Program, ask, connect, demo, eventually, get, serve_toy};

/// More than a server keeps.
const CROWD: usize = 600;

/// Limits of time play no part.
const PATIENT: [&str; 4] = ["--cache-size", "32M", "--client-timeout", "3600"];

fn make_room_for_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Opens a crowd of connections that send these bytes.
fn crowd(address: SocketAddr, bytes: &[u8]) -> Vec<TcpStream> {
    make_room_for_descriptors();
    let open = || {
        let mut stream = connect(address);
        // The server may close it at once.
        let _ = stream.write_all(bytes);
        stream
    };
    (0..CROWD).map(|_| open()).collect()
}

fn statistic(address: SocketAddr, name: &str) -> u64 {
    get(address, "/.tilefs/stats.json").json()[name].as_u64().unwrap()
}

#[test]
fn requests_whose_bodies_do_not_come_keep_nobody_out() {
    let head = "PROPFIND / HTTP/1.1\r\nHost: localhost\r\nDepth: 0\r\n";
    let whole = "GET /meta.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for begun in [
        format!("{head}Content-Length: 100\r\n\r\n<"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nff\r\n<"),
        format!("{head}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"),
        format!("{whole}{head}Content-Length: 100\r\n\r\n<"),
    ] {
        let server = Program::start(&demo(), &PATIENT);
        let crowd = crowd(server.address, begun.as_bytes());
        for _ in 0..20 {
            // The whole requests of the crowd may still be being answered.
            eventually("others are answered", || get(server.address, "/temp.f32").body.len() == 80_000);
        }
        assert!(statistic(server.address, "connections") <= 512);
        drop(crowd);
    }
}

/// The threads are enough for short requests, however many long ones there are.
#[test]
fn long_requests_keep_no_short_ones_waiting() {
    let (server, address, counters) = serve_toy();
    let crowd = crowd(address, b"GET /endless.bin HTTP/1.1\r\nHost: localhost\r\n\r\n");
    // Reports have threads of their own.
    assert!(statistic(address, "connections") > 100);
    for _ in 0..20 {
        eventually("a short request is answered", || get(address, "/hello.txt").body == b"hello\n");
    }
    eventually("some long ones are refused", || statistic(address, "refused") >= 300);
    eventually("the others go on", || counters.endless.load(Ordering::Relaxed) == 128);
    assert_eq!(get(address, "/hello.txt").body, b"hello\n");
    let refused = ask(address, "GET", "/endless.bin", &[]);
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    drop(crowd);
    eventually("all end", || counters.endless.load(Ordering::Relaxed) == 0);
    server.stop();
}

/// Returns whether a new client gets what it asks for; a server without room closes its connection after a while.
fn is_answered(address: SocketAddr) -> bool {
    let request = b"GET /schema.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    crate::client::send(address, request).is_some_and(|reply| reply.status == 200)
}

#[test]
fn clients_that_take_nothing_keep_nobody_out() {
    let server = Program::start(&tilefs_fixtures::fixtures().join("huge"), &PATIENT);
    let before = server.memory();
    let crowd = crowd(server.address, b"GET /v.i32 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for _ in 0..20 {
        // Within a second of the crowd's coming, nobody has kept the server waiting for long.
        eventually("others are answered", || is_answered(server.address));
        assert_eq!(get(server.address, "/.tilefs/stats.json").status, 200);
    }
    assert!(statistic(server.address, "connections") <= 512);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 300 << 20, "{} MiB", grown >> 20);
    drop(crowd);
}

/// Text of a request that a reply would repeat for each member of a folder, by clients that read nothing.
#[test]
fn text_of_clients_is_not_multiplied_by_members() {
    let namespace = "\"".repeat(15_300);
    let body = format!("<propfind xmlns='DAV:' xmlns:b='{namespace}'><prop>{}</prop></propfind>", "<b:a/>".repeat(64));
    let length = body.len();
    let propfind =
        format!("PROPFIND / HTTP/1.1\r\nHost: localhost\r\nDepth: 1\r\nContent-Length: {length}\r\n\r\n{body}");
    let token = format!("GET /?token={} HTTP/1.1\r\nHost: localhost\r\n\r\n", ":".repeat(15_500));
    let selection = format!("slice/{}0..9,0..9", "0".repeat(15_000));
    let path = format!("PROPFIND /{selection}/ HTTP/1.1\r\nHost: localhost\r\nDepth: 1\r\n\r\n");
    for request in [propfind, token, path] {
        let server = Program::start(&demo(), &PATIENT);
        get(server.address, "/temp.f32");
        let before = server.memory();
        let alone = crate::client::send(server.address, request.as_bytes()).unwrap();
        assert!(alone.status < 300 && alone.body.len() < 2 << 20, "{request:.30}: {}", alone.body.len());
        let crowd = crowd(server.address, request.as_bytes());
        eventually("they are answered", || is_answered(server.address));
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 300 << 20, "{request:.30}: {} MiB", grown >> 20);
        drop(crowd);
    }
}
