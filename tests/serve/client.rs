//! A client that sends exactly what a test says, and servers for the length of a test.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::toy::{self, Counters};
use tilefs::serve::{HttpServer, ServeOptions, WithoutToken};
use tilefs_vfs::read_ahead::Window;

/// No reply takes longer than this, not even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the sample array.
pub fn demo() -> PathBuf {
    tilefs_fixtures::fixtures().join("demo")
}

/// A reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    headers: HashMap<String, String>,
    pub body: Vec<u8>,
    /// Whether the connection ended before the body did.
    pub is_cut: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("the body is text")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Reads one reply to a request of this method.
pub fn read_reply(stream: &mut BufReader<TcpStream>, method: &str) -> Option<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let is_first = headers.insert(name.to_lowercase(), value.trim().to_owned()).is_none();
        assert!(is_first, "the header {name} comes twice");
    }
    let (mut body, mut is_cut) = (Vec::new(), false);
    if method != "HEAD" && ![204, 304].contains(&status) {
        match headers.get("content-length") {
            Some(length) => {
                let length: u64 = length.parse().unwrap();
                let _ = stream.take(length).read_to_end(&mut body);
                is_cut = body.len() as u64 != length;
            }
            None => is_cut = !read_chunks(stream, &mut body),
        }
    }
    Some(Reply { status, headers, body, is_cut })
}

/// Reads a body in chunks; returns whether it is complete.
fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> bool {
    loop {
        let mut line = String::new();
        let Ok(length) = stream.read_line(&mut line).map(|_| u64::from_str_radix(line.trim(), 16)) else {
            return false;
        };
        let Ok(length) = length else { return false };
        let before = body.len() as u64;
        let _ = stream.take(length).read_to_end(body);
        if body.len() as u64 != before + length {
            return false;
        }
        let mut end = String::new();
        let _ = stream.read_line(&mut end);
        if length == 0 {
            return true;
        }
    }
}

/// Sends bytes, and returns the reply if there is one.
pub fn send(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut stream = connect(address);
    // The server may have closed the connection already.
    let _ = stream.write_all(bytes);
    let method = String::from_utf8_lossy(bytes).split(' ').next().unwrap_or_default().to_owned();
    read_reply(&mut BufReader::new(stream), &method)
}

/// Sends a request with these lines of headers.
pub fn ask(address: SocketAddr, method: &str, target: &str, headers: &[&str]) -> Reply {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    send(address, request.as_bytes()).unwrap_or_else(|| panic!("no reply to {method} {target}"))
}

pub fn get(address: SocketAddr, target: &str) -> Reply {
    ask(address, "GET", target, &[])
}

/// Returns options of a local server on any port.
pub fn options() -> ServeOptions {
    ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
        pass: None,
        without_token: WithoutToken::OwnUser,
        cors: None,
        client_timeout: Duration::from_secs(30),
        refresh: None,
        read_ahead_workers: 2,
        read_ahead_window: Window::LOCAL,
        expects_whole_reads: false,
    }
}

/// Serves the toy tree in this process.
pub fn serve_toy() -> (HttpServer, SocketAddr, Arc<Counters>) {
    serve_toy_with(&options())
}

pub fn serve_toy_with(options: &ServeOptions) -> (HttpServer, SocketAddr, Arc<Counters>) {
    let counters = Arc::<Counters>::default();
    let server = HttpServer::start(toy::root(&counters), options).unwrap();
    let address = server.address();
    (server, address, counters)
}

/// The program, serving; killed at the end.
pub struct Program {
    child: Child,
    pub address: SocketAddr,
    /// The URL that it printed.
    pub printed: String,
}

impl Program {
    /// Serves an array with these further options.
    pub fn start(array: &Path, options: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        command.arg("serve").arg(array).args(["--listen", "127.0.0.1:0"]).args(options).env_remove("TILEFS_TOKEN");
        Self::run(&mut command)
    }

    /// Opens an array in a browser. Returns the program, and the URL that it printed.
    pub fn open(array: &Path, browser: &OsStr) -> (Program, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        let program = Self::run(command.arg("open").arg(array).env("BROWSER", browser).env_remove("TILEFS_TOKEN"));
        let url = program.printed.clone();
        (program, url)
    }

    /// Runs a command that serves, until it has printed its address.
    pub fn run(command: &mut Command) -> Program {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.find("http://").unwrap_or_else(|| panic!("no address: {line:?}"));
        let printed = line[place..].trim_end().to_owned();
        let address = printed.split('/').nth(2).unwrap().parse().unwrap();
        Program { child, address, printed }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Returns the current memory of the server in bytes, without its program.
    pub fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Returns the number of threads that make replies.
    pub fn workers(&self) -> usize {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")).unwrap_or_default());
        names.filter(|name| name.trim_end() == "tilefs-serve").count()
    }

    /// Waits until it has ended; returns its exit status.
    pub fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the ids of processes with this argument, in whose environment a variable has this path.
pub fn processes_with_argument(argument: &str, variable: &str, value: &Path) -> Vec<String> {
    let has = |file: PathBuf, wanted: &str| {
        fs::read(file).is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|item| item == wanted.as_bytes()))
    };
    let variable = format!("{variable}={}", value.display());
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
    let ours = processes.filter(|process| {
        has(process.path().join("cmdline"), argument) && has(process.path().join("environ"), &variable)
    });
    ours.map(|process| process.file_name().into_string().unwrap()).collect()
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
