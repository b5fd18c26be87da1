//! A server on a disk that fails for a while.

#![cfg(feature = "serve")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use super::programs::{Program, Shows, survives_all};

struct Served {
    _program: Program,
    address: String,
}

impl Shows for Served {
    fn start(stored: &Path) -> Self {
        let mut program = Program::start(&["serve", "--listen", "127.0.0.1:0"], stored, &[]);
        let mut line = String::new();
        BufReader::new(program.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().trim_end_matches('/').rsplit_once("http://").expect("an address").1.to_owned();
        Served { _program: program, address }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let mut stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        let path = path.replace('%', "%25").replace(' ', "%20");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        let mut reply = Vec::new();
        stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.read_to_end(&mut reply))
            .map_err(|error| error.to_string())?;
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no head")? + 4;
        let head = String::from_utf8_lossy(&reply[..end]).to_lowercase();
        assert!(!head.starts_with("http/1.1 404"), "{path} is hidden");
        if !head.starts_with("http/1.1 200") {
            return Err(head.lines().next().unwrap_or_default().to_owned());
        }
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        match length.and_then(|length| length.parse::<usize>().ok()) {
            Some(length) if reply.len() - end != length => Err("the reply is cut off".to_owned()),
            Some(_) => Ok(reply.split_off(end)),
            None => Err(format!("no length: {head}")),
        }
    }
}

#[test]
fn a_server_reads_a_disk_that_comes_back() {
    survives_all::<Served>();
}
