//! A link to a server on this machine that is as slow as one far away, for benchmarks.
//!
//! usage: cargo run --release --example slow_link -- SERVER_PORT MILLISECONDS MEGABYTES_A_SECOND
//!
//! Prints the port that it listens at. What a client sends arrives after so many milliseconds; what the server sends comes
//! back through one link for all connections, which carries so many megabytes a second. Ends with its standard input.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are passed on at once.
const PART: usize = 64 << 10;

/// The link is ahead of its time by no more.
const SLACK: Duration = Duration::from_millis(2);

/// A link that carries so many bytes a second for all who use it.
struct Link {
    bytes_a_second: f64,
    free_at: Mutex<Instant>,
}

impl Link {
    /// Waits until so many bytes have gone through.
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
    let [port, milliseconds, megabytes] = arguments.as_slice() else {
        return Err("usage: slow_link SERVER_PORT MILLISECONDS MEGABYTES_A_SECOND".into());
    };
    let (port, delay) = (port.parse::<u16>()?, Duration::from_millis(milliseconds.parse()?));
    let link = Arc::new(Link { bytes_a_second: megabytes.parse::<f64>()? * 1e6, free_at: Mutex::new(Instant::now()) });
    let listener = TcpListener::bind("127.0.0.1:0")?;
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

/// Passes on what both sides send; ends with the server's side.
fn serve(client: &TcpStream, port: u16, delay: Duration, link: &Link) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        pass(&from_client, &to_server, |_| thread::sleep(delay));
        to_server.shutdown(Shutdown::Write)
    });
    pass(&server, client, |bytes| link.carry(bytes));
    client.shutdown(Shutdown::Both)
}

/// Passes bytes on until there are no more, or nobody takes them.
fn pass(mut from: &TcpStream, mut to: &TcpStream, wait: impl Fn(usize)) {
    let mut part = vec![0; PART];
    while let Ok(length @ 1..) = from.read(&mut part) {
        wait(length);
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
}
