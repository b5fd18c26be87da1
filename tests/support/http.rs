//! The part of HTTP that tests need: requests and responses with a length.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

/// A request or a response: its first line, headers and body.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub start: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Message {
    pub fn new(start: &str, body: &[u8]) -> Self {
        let length = ("Content-Length".to_owned(), body.len().to_string());
        Message { start: start.to_owned(), headers: vec![length], body: body.to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Returns the second word of the first line: the status of a response, or the target of a request.
    pub fn second(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    pub fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    /// Reads the next message; `None` if the other side has closed the connection.
    pub fn read(from: &mut impl BufRead, has_body: bool) -> io::Result<Option<Self>> {
        let mut message = Message::default();
        let mut line = String::new();
        loop {
            line.clear();
            if from.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" if message.start.is_empty() => {}
                "" => break,
                text if message.start.is_empty() => message.start = text.to_owned(),
                text => {
                    let (name, value) = text.split_once(':').unwrap_or((text, ""));
                    message.headers.push((name.to_owned(), value.trim().to_owned()));
                }
            }
        }
        if has_body {
            match message.header("Content-Length").and_then(|length| length.parse().ok()) {
                Some(length) => {
                    message.body = vec![0; length];
                    from.read_exact(&mut message.body)?;
                }
                None if message.start.starts_with("HTTP") => drop(from.read_to_end(&mut message.body)?),
                None => {}
            }
        }
        Ok(Some(message))
    }

    pub fn head(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}\r\n", self.start).into_bytes()
    }

    /// Sends a request to a server on a new connection, and returns the response.
    pub fn send(mut self, server: SocketAddr) -> io::Result<Self> {
        let is_head = self.method() == "HEAD";
        self.set("Connection", "close");
        if self.header("Host").is_none() {
            self.set("Host", &server.to_string());
        }
        let mut stream = TcpStream::connect(server)?;
        stream.write_all(&self.head())?;
        stream.write_all(&self.body)?;
        let answer = Message::read(&mut BufReader::new(stream), !is_head)?;
        answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

/// Decodes the percent encoding of a URL, in which `+` is a space.
pub fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2).and_then(|code| std::str::from_utf8(code).ok())).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(if first == b'+' { b' ' } else { first });
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
