//! Clients that send or take bytes too slowly are cut off after `--client-timeout`; others are not.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, socket};
use tilefs::serve::ServeOptions;

use crate::client::{Program, connect, demo, eventually, get, options, read_reply, serve_toy_with};
use support::toy;

/// The limit of the servers of these tests.
const TIMEOUT: Duration = Duration::from_secs(1);

/// No connection ends later, not even on a loaded machine.
const LATE: Duration = Duration::from_secs(25);

const REQUEST: &[u8] = b"GET /temp.f32 HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Sends `bytes` one by one, a tenth of the limit apart and the last one again and again, until the server has closed
/// the connection. Returns what it sent, and when it closed.
fn drip(mut stream: TcpStream, bytes: &[u8]) -> (Vec<u8>, Duration) {
    let start = Instant::now();
    stream.set_read_timeout(Some(TIMEOUT / 10)).unwrap();
    let mut replied = Vec::new();
    let mut waiting = bytes.iter();
    loop {
        if let Some(byte) = waiting.next().or(bytes.last()) {
            // The end of the connection is found by reading.
            let _ = stream.write_all(&[*byte]);
        }
        let mut part = [0; 1000];
        match stream.read(&mut part) {
            Ok(0) => return (replied, start.elapsed()),
            Ok(count) => replied.extend_from_slice(&part[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return (replied, start.elapsed()),
        }
        assert!(start.elapsed() < LATE, "it stays open, after {}", String::from_utf8_lossy(bytes));
    }
}

/// The client sends nothing, half a head, an endless head, no body after its headers, or nothing after a reply.
#[test]
fn a_client_that_sends_no_whole_request_is_cut_off() {
    let server = Program::start(&demo(), &["--client-timeout", "1"]);
    let check = |what: &str, stream: TcpStream, bytes: &[u8]| {
        let (replied, closed) = drip(stream, bytes);
        assert!(closed >= TIMEOUT * 9 / 10 && closed < LATE, "{what}: closed after {closed:?}");
        String::from_utf8_lossy(&replied).lines().next().unwrap_or_default().to_owned()
    };
    std::thread::scope(|scope| {
        for (what, at_once, then) in [
            ("nothing", &b""[..], &b""[..]),
            ("half a head", b"GET /temp.f32 HTTP/1.1\r\nHost: local", b""),
            ("a head that never ends", b"", b"GET / HTTP/1.1\r\nX: aaaaaaaa"),
            ("empty lines", b"", b"\r\n\r\n\r\n\n"),
        ] {
            let mut stream = connect(server.address);
            scope.spawn(move || {
                stream.write_all(at_once).unwrap();
                assert_eq!(check(what, stream, then), "", "{what}");
            });
        }
        for (what, head) in [
            ("no body", "PROPFIND / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"),
            (
                "chunks of a body",
                "PROPFIND / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n<",
            ),
        ] {
            let mut stream = connect(server.address);
            scope.spawn(move || {
                stream.write_all(head.as_bytes()).unwrap();
                let then = if what == "no body" { "" } else { "!" };
                assert_eq!(check(what, stream, then.as_bytes()), "HTTP/1.1 408 Request Timeout", "{what}");
            });
        }
        let mut stream = connect(server.address);
        scope.spawn(move || {
            stream.write_all(REQUEST).unwrap();
            let mut replies = BufReader::new(stream.try_clone().unwrap());
            assert_eq!(read_reply(&mut replies, "GET").unwrap().body.len(), 80_000);
            assert_eq!(check("nothing after a reply", stream, b""), "");
        });
        // Other clients do not notice.
        for _ in 0..20 {
            assert_eq!(get(server.address, "/temp.f32").body.len(), 80_000);
            sleep(TIMEOUT / 10);
        }
    });
}

/// A wave of clients that ask for a huge file and read only its first bytes: in a second, none is connected, no thread
/// works for them, and their memory serves the next wave.
#[test]
fn a_client_that_takes_nothing_is_cut_off_and_frees_what_it_held() {
    const CLIENTS: usize = 100;
    const WAVES: usize = 8;
    /// The memory that the server holds for a client: the piece of the reply that is sent, and the next one, each 512
    /// KiB.
    const HELD: usize = 1 << 20;
    let options = ["--client-timeout", "1", "--cache-size", "32M"];
    let server = Program::start(&tilefs_fixtures::fixtures().join("huge"), &options);
    let connections = || get(server.address, "/.tilefs/stats.json").json()["connections"].as_u64().unwrap() as usize;
    let (before, mut most, mut after) = (server.memory(), 0, Vec::new());
    for _ in 0..WAVES {
        let start = Instant::now();
        let mut stuck: Vec<TcpStream> = (0..CLIENTS)
            .map(|_| {
                let mut stream = connect(server.address);
                stream.write_all(b"GET /v.i32 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
                stream
            })
            .collect();
        for stream in &mut stuck {
            stream.read_exact(&mut [0; 1000]).unwrap();
        }
        most = most.max(connections());
        eventually("all are cut off", || {
            // Meanwhile, others are served.
            assert!(!get(server.address, "/schema.txt").body.is_empty());
            sleep(TIMEOUT / 20);
            connections() == 1
        });
        assert!(start.elapsed() >= TIMEOUT * 9 / 10 && start.elapsed() < LATE, "{:?}", start.elapsed());
        // A client can still read the bytes that the kernel has buffered; then the reply ends before its length.
        let mut stream = stuck.pop().unwrap();
        let left = std::io::copy(&mut stream, &mut std::io::sink()).unwrap_or(0);
        assert!(left < 100 << 20, "{left}");
        after.push(server.memory());
    }
    eventually("the threads end", || server.workers() == 0);
    assert!(most > CLIENTS / 2, "at most {most} were connected at once, so little was shown");
    // The allocator keeps what some waves freed, for the next ones. If it were lost, they would take eight times the
    // memory of one.
    assert!(after.iter().all(|memory| *memory < before + 2 * CLIENTS * HELD), "{before}, {after:?}");
}

/// A client that reads 200 KB per second, within each timeout less than a third of what the kernel buffers for it, gets
/// all bytes.
#[test]
fn a_slow_client_that_goes_on_is_not_cut_off() {
    const LENGTH: usize = 32_000_000;
    let client_timeout = 2 * TIMEOUT;
    let (server, address, _) = serve_toy_with(&ServeOptions { client_timeout, ..options() });
    let mut stream = connect_with_small_buffer(address);
    let range = format!("Range: bytes=0-{}", LENGTH - 1);
    stream.write_all(format!("GET /big.u64 HTTP/1.1\r\nHost: localhost\r\n{range}\r\n\r\n").as_bytes()).unwrap();
    let mut replied = vec![0; 500];
    stream.read_exact(&mut replied).unwrap();
    let start = Instant::now();
    while start.elapsed() < 4 * client_timeout {
        sleep(TIMEOUT / 5);
        let mut part = [0; 40_000];
        stream.read_exact(&mut part).unwrap();
        replied.extend_from_slice(&part);
    }
    let body = replied.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let mut left = vec![0; body + LENGTH - replied.len()];
    stream.read_exact(&mut left).unwrap();
    replied.extend_from_slice(&left);
    // The next request takes most of the limit.
    for part in [&b"GET /hello.txt HTTP/1.1\r\n"[..], b"Host: local", b"host\r\n\r\n"] {
        sleep(client_timeout / 5);
        stream.write_all(part).unwrap();
    }
    assert_eq!(read_reply(&mut BufReader::new(stream), "GET").unwrap().body, b"hello\n");
    let mut sound = vec![0; LENGTH];
    toy::fill(0, &mut sound);
    assert!(replied[body..] == sound);
    server.stop();
}

/// Connects a client whose kernel buffers only a few bytes.
fn connect_with_small_buffer(address: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_socket_recv_buffer_size(&socket, 128 << 10).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LATE)).unwrap();
    stream
}
