//! A proxy that simulates a slow link to a server on this machine, for benchmarks.
//!
//! usage: cargo run --release --example slow_link -- SERVER_PORT MILLISECONDS MEGABYTES_A_SECOND [ADDRESS]
//!
//! Prints the port that it listens on, at ADDRESS (127.0.0.1 if not given). Data from clients arrives after MILLISECONDS. Data from the server shares one
//! link for all connections, with a bandwidth of MEGABYTES_A_SECOND. The proxy exits at the end of its standard input.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes that are forwarded at once.
const PART: usize = 64 << 10;

/// The longest wait that is skipped: shorter sleeps are imprecise.
const SLACK: Duration = Duration::from_millis(2);

/// A link with a bandwidth that all its users share.
struct Link {
    bytes_a_second: f64,
    free_at: Mutex<Instant>,
}

impl Link {
    /// Waits until the link has carried `bytes` more bytes.
    fn carry(&self, bytes: usize) {
        let until = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = (*free_at).max(Instant::now());
            *free_at = begin + Duration::from_secs_f64(bytes as f64 / self.bytes_a_second);
            *free_at
        };
        let wait = until.saturating_duration_since(Instant::now());
        if wait > SLACK {
            thread::sleep(wait);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, milliseconds, megabytes, address @ ..] = arguments.as_slice() else {
        return Err("usage: slow_link SERVER_PORT MILLISECONDS MEGABYTES_A_SECOND [ADDRESS]".into());
    };
    let address = address.first().map_or("127.0.0.1", String::as_str);
    let (port, delay) = (port.parse::<u16>()?, Duration::from_millis(milliseconds.parse()?));
    let link = Arc::new(Link { bytes_a_second: megabytes.parse::<f64>()? * 1e6, free_at: Mutex::new(Instant::now()) });
    let listener = TcpListener::bind((address, 0))?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    for client in listener.incoming() {
        let (client, link) = (client?, link.clone());
        thread::spawn(move || serve(&client, port, delay, &link));
    }
    Ok(())
}

/// Forwards data in both directions until the server closes the connection.
fn serve(client: &TcpStream, port: u16, delay: Duration, link: &Link) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        forward(&from_client, &to_server, |_| thread::sleep(delay));
        to_server.shutdown(Shutdown::Write)
    });
    forward(&server, client, |bytes| link.carry(bytes));
    client.shutdown(Shutdown::Both)
}

/// Forwards bytes until the sender or the receiver closes the connection.
fn forward(mut from: &TcpStream, mut to: &TcpStream, wait: impl Fn(usize)) {
    let mut part = vec![0; PART];
    while let Ok(length @ 1..) = from.read(&mut part) {
        wait(length);
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
}
