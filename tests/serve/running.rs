//! How a server begins, counts and ends.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::client::{Program, ask, connect, demo, get, serve_toy};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilefs")).arg("serve").args(arguments).output().unwrap()
}

#[test]
fn what_cannot_be_served_is_one_line_and_a_status() {
    let array = demo().display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (arguments, status, part) in [
        (&[][..], 2, "ARRAY"),
        (&[&array, "--listen", &address], 1, "another program uses this port; give another with --listen, or --port 0"),
        (&[&array, "--listen", "nonsense"], 2, "ADDRESS:PORT"),
        (&[&array, "--token", ""], 2, "--token"),
        (&[&array, "--cors=nonsense"], 2, "https://"),
        (&["/nonexistent", "--listen", "127.0.0.1:0"], 3, "/nonexistent"),
        (&[&array, "--slice", "a=nothing", "--listen", "127.0.0.1:0"], 2, "slice a"),
    ] {
        let output = run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.lines().count() == 1 && said.contains(part), "{arguments:?}: {said}");
    }
}

/// A signal ends the server, whatever its clients are doing.
#[test]
fn a_signal_ends_a_server_within_five_seconds() {
    for signal in ["TERM", "INT"] {
        let mut server = Program::start(&tilefs_fixtures::fixtures().join("huge"), &[]);
        let _idle = connect(server.address);
        let mut half = connect(server.address);
        half.write_all(b"GET / HTTP").unwrap();
        let mut slow = connect(server.address);
        slow.write_all(b"GET /v.i32 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        slow.read_exact(&mut [0; 100]).unwrap();
        let start = Instant::now();
        server.signal(signal);
        assert_eq!(server.wait(), Some(0));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

#[test]
fn a_server_that_hangs_on_its_storage_stops() {
    let (server, address, counters) = serve_toy();
    let mut stream = connect(address);
    stream.write_all(b"GET /gated.bin HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    crate::client::eventually("it waits", || counters.gate.waiting() > 0);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0);
    counters.gate.open();
}

/// A reply that is being sent is finished.
#[test]
fn a_reply_is_finished_before_the_server_stops() {
    let (server, address, _) = serve_toy();
    let reader = std::thread::spawn(move || get(address, "/slow.bin"));
    std::thread::sleep(Duration::from_millis(300));
    server.stop();
    let reply = reader.join().unwrap();
    // The reply takes 3.4 s of reads, and the server waits for 3 s.
    assert!(reply.status == 200 && !reply.body.is_empty());
    let (server, address, _) = serve_toy();
    let reader = std::thread::spawn(move || ask(address, "GET", "/slow.bin", &["Range: bytes=0-999999"]));
    std::thread::sleep(Duration::from_millis(300));
    server.stop();
    let reply = reader.join().unwrap();
    assert!(reply.status == 206 && reply.body.len() == 1_000_000 && !reply.is_cut, "{}", reply.body.len());
}

#[test]
fn a_server_counts_what_it_does() {
    let server = Program::start(&demo(), &[]);
    let stats = || get(server.address, "/.tilefs/stats.json").json();
    let before = stats();
    get(server.address, "/temp.f32");
    ask(server.address, "HEAD", "/temp.f32", &[]);
    ask(server.address, "PROPFIND", "/", &["Depth: 0"]);
    ask(server.address, "DELETE", "/temp.f32", &[]);
    let after = stats();
    let grown = |name: &str| after["requests"][name].as_u64().unwrap() - before["requests"][name].as_u64().unwrap();
    assert_eq!([grown("get"), grown("head"), grown("propfind"), grown("other")], [2, 1, 1, 1]);
    assert!(after["sent_bytes"].as_u64().unwrap() >= before["sent_bytes"].as_u64().unwrap() + 80_000);
    crate::client::eventually("the others have ended", || stats()["connections"] == 1);
    let text = get(server.address, "/.tilefs/stats.prom");
    assert!(text.text().contains("tilefs_requests_total{kind=\"get\"}"));
    assert_eq!(text.header("content-type"), "text/plain; version=0.0.4");
}

#[test]
fn a_server_without_standard_output_says_in_its_log_where_it_is() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "exec \"$0\" serve \"$1\" --listen 127.0.0.1:0 -v >&-", env!("CARGO_BIN_EXE_tilefs")])
        .arg(demo())
        .stderr(File::create(log.path()).unwrap())
        .spawn()
        .unwrap();
    crate::client::eventually("it says so", || {
        std::fs::read_to_string(log.path()).unwrap().contains("at http://127.0.0.1:")
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn open_serves_on_a_free_port_and_starts_the_browser_that_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (browser, opened) = (folder.path().join("a browser"), folder.path().join("opened"));
    std::fs::write(
        &browser,
        format!("#!/bin/sh\nprintf '%s' \"$1\" > '{0}.new'\nmv '{0}.new' '{0}'\n", opened.display()),
    )
    .unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut first, url) = Program::open(&demo(), browser.as_os_str());
    crate::client::eventually("the browser starts", || opened.exists());
    let shown = std::fs::read_to_string(&opened).unwrap();
    let (place, token) = url.split_once("?token=").unwrap();
    let (same, pass) = shown.split_once("?token=").unwrap();
    assert_eq!((same, token.len(), pass.len()), (place, 32, 32));
    // Everybody sees the arguments of the browser, so its token works once.
    assert_ne!(token, pass);
    assert_eq!(get(first.address, "/schema.json").status, 200);
    // Another one takes another port. Without a browser, the address is printed.
    std::fs::remove_file(&opened).unwrap();
    let (second, other) = Program::open(&demo(), "".as_ref());
    assert_ne!(url, other);
    assert_eq!(get(second.address, "/schema.json").status, 200);
    assert!(first.address.ip().is_loopback() && !opened.exists());
    first.signal("INT");
    assert_eq!(first.wait(), Some(0));
}
