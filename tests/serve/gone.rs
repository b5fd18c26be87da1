//! Clients that go away, and clients that only stop sending.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tilefs::serve::ServeOptions;

use crate::client::{connect, eventually, options, read_reply, serve_toy, serve_toy_with};
use support::toy;

/// More than a test takes, so that no limit of time ends what a client has left.
const NEVER: Duration = Duration::from_secs(3600);

/// How a client goes away.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The kernel says no more than that nothing follows.
    Close,
    Reset,
}

fn go(stream: TcpStream, end: End) {
    if let End::Reset = end {
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    }
    drop(stream);
}

fn asking(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn the_work_for_a_client_that_is_gone_ends_whatever_it_has_sent_behind_its_request() {
    let (server, address, counters) = serve_toy_with(&ServeOptions { client_timeout: NEVER, ..options() });
    let endless = "GET /endless.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let body = "GET /endless.bin HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf";
    for (request, behind) in [
        (endless, ""),
        (endless, "X"),
        (endless, "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (endless, "GET /hello.txt HTTP/1.1\r\nHost: loc"),
        (body, ""),
        ("GET /endless.bin HTTP/1.0\r\n\r\n", "X"),
        ("GET /endless.bin HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-9,20-29\r\n\r\n", "X"),
    ] {
        for end in [End::Close, End::Reset] {
            let streams = [(); 3].map(|()| asking(address, &format!("{request}{behind}")));
            let running = || counters.endless.load(Ordering::Relaxed);
            eventually("all are being answered", || running() == 3);
            streams.into_iter().for_each(|stream| go(stream, end));
            eventually(&format!("the work ends after {request:?}, {behind:?}, {end:?}"), || running() == 0);
        }
    }
    server.stop();
}

/// The reply has begun, so nothing can be sent to find out whether the client takes it.
#[test]
fn the_work_for_a_client_that_is_gone_ends_in_the_middle_of_a_reply() {
    let client_timeout = Duration::from_secs(1);
    for (client_timeout, end) in [(NEVER, End::Reset), (client_timeout, End::Close)] {
        let (server, address, counters) = serve_toy_with(&ServeOptions { client_timeout, ..options() });
        for behind in ["", "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
            let mut stream = asking(address, &format!("GET /stuck.bin HTTP/1.1\r\nHost: localhost\r\n\r\n{behind}"));
            let running = || counters.endless.load(Ordering::Relaxed);
            eventually("a piece is being made", || running() == 1);
            // The client reads all bytes that came, so that closing sends no reset.
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let mut replied = Vec::new();
            assert!(stream.read_to_end(&mut replied).is_err() && replied.len() > 900 << 10, "{}", replied.len());
            go(stream, end);
            eventually(&format!("the work ends, {end:?}"), || running() == 0);
        }
        server.stop();
    }
}

/// As `nc -N` does.
#[test]
fn a_client_that_stops_sending_gets_its_replies() {
    let (server, address, counters) = serve_toy();
    for version in ["1.0", "1.1"] {
        let stream = asking(address, &format!("GET /hello.txt HTTP/{version}\r\nHost: localhost\r\n\r\n"));
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_reply(&mut BufReader::new(stream), "GET").unwrap().body, b"hello\n", "{version}");
    }
    let request = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let stream = asking(address, &request.repeat(3));
    stream.shutdown(Shutdown::Write).unwrap();
    let mut replies = BufReader::new(stream);
    for _ in 0..3 {
        assert_eq!(read_reply(&mut replies, "GET").unwrap().body, b"hello\n");
    }
    assert!(read_reply(&mut replies, "GET").is_none());
    // It stops in the middle of a reply.
    let stream = asking(address, "GET /slow.bin HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-999999\r\n\r\n");
    stream.peek(&mut [0]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let reply = read_reply(&mut BufReader::new(stream), "GET").unwrap();
    assert!(reply.body.len() == 1_000_000 && !reply.is_cut);
    // The reply takes long, and requests follow.
    let mut waiting = Vec::new();
    for version in ["1.0", "1.1"] {
        let first = format!("GET /gated.bin HTTP/{version}\r\nHost: localhost\r\n\r\n");
        let stream = asking(address, &format!("{first}{request}"));
        stream.shutdown(Shutdown::Write).unwrap();
        waiting.push((version, stream));
    }
    eventually("both wait", || counters.gate.waiting() == 2);
    sleep(Duration::from_millis(1500));
    counters.gate.open();
    let mut sound = vec![0; 4 << 20];
    toy::fill(0, &mut sound);
    for (version, stream) in waiting {
        let mut replies = BufReader::new(stream);
        let reply = read_reply(&mut replies, "GET").unwrap();
        assert!(reply.status == 200 && reply.body == sound, "{version}: {}", reply.body.len());
        // HTTP/1.0 ends the connection after a reply.
        let next = read_reply(&mut replies, "GET").map(|reply| reply.body);
        assert_eq!(next.as_deref(), (version == "1.1").then_some(&b"hello\n"[..]));
    }
    server.stop();
}
