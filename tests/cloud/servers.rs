//! Object stores on this machine, which the tests start and end.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use support::http::Message;
use support::skip::{Need, python_with, skipped};

/// How long a server may take to start on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs moto until standard input ends, which happens when the test program ends for any reason.
const MOTO: &str = "
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
from moto.server import main
main(['-H', '127.0.0.1', '-p', *sys.argv[1:]])
";

/// An S3 server.
pub struct S3 {
    address: SocketAddr,
    _process: Child,
}

impl S3 {
    /// Returns the server that all tests of this program share; skips the test with a message if it cannot be started.
    pub fn get() -> Option<&'static S3> {
        static SERVER: OnceLock<Option<S3>> = OnceLock::new();
        let server = SERVER.get_or_init(|| S3::start(&[])).as_ref();
        if server.is_none() {
            skipped(Need::Servers, "there is no server of S3 (the Python packages moto, flask and flask-cors)");
        }
        server
    }

    /// Starts another server that uses TLS, with a certificate and its key.
    pub fn with_tls(certificate: &Path, key: &Path) -> Option<S3> {
        S3::start(&["-s", "-c", &certificate.display().to_string(), "-k", &key.display().to_string()])
    }

    fn start(arguments: &[&str]) -> Option<S3> {
        let python = python_with("moto.server, flask_cors")?;
        let address = free_address();
        let mut command = Command::new(python);
        command.args(["-c", MOTO, &address.port().to_string()]).args(arguments).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        // Drain the log of requests.
        let mut said = process.stderr.take()?;
        thread::spawn(move || drop(said.read_to_end(&mut Vec::new())));
        wait_for(address);
        Some(S3 { address, _process: process })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn make_bucket(&self, bucket: &str) {
        self.put(bucket, b"");
    }

    /// Puts an object at `bucket/key`.
    pub fn put(&self, place: &str, bytes: &[u8]) {
        let mut request = Message::new(&format!("PUT /{place} HTTP/1.1"), bytes);
        // Allow unsigned reads.
        request.set("x-amz-acl", "public-read");
        let answer = request.send(self.address).unwrap();
        assert_eq!(answer.second(), "200", "{place}: {answer:?}");
    }

    pub fn delete(&self, place: &str) {
        let answer = Message::new(&format!("DELETE /{place} HTTP/1.1"), b"").send(self.address).unwrap();
        assert!(answer.second().starts_with('2'), "{place}: {answer:?}");
    }

    /// Puts the files of a folder below `bucket/key`.
    pub fn put_folder(&self, folder: &Path, place: &str) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let place = format!("{place}/{}", escaped(entry.file_name().to_str().unwrap()));
            match entry.path().is_dir() {
                true => self.put_folder(&entry.path(), &place),
                false => self.put(&place, &fs::read(entry.path()).unwrap()),
            }
        }
    }
}

/// A server of Azure blob storage.
pub struct Azure {
    address: SocketAddr,
    _process: Child,
}

/// Runs Azurite until standard input ends.
const AZURITE: &str = r#"exec 3<&0; "$0" --silent --skipApiVersionCheck --inMemoryPersistence --blobHost 127.0.0.1 --blobPort "$1" <&- & cat <&3 >/dev/null; kill $!"#;

impl Azure {
    /// The well-known account of emulators, and its key.
    pub const ACCOUNT: &str = "devstoreaccount1";
    pub const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    /// Starts a server; skips the test with a message if that is impossible.
    pub fn get() -> Option<Azure> {
        let ours = support::repository::root().join(".venv/node_modules/.bin/azurite-blob");
        let program = std::env::var("TILEFS_AZURITE").unwrap_or_else(|_| match ours.exists() {
            true => ours.display().to_string(),
            false => "azurite-blob".to_owned(),
        });
        if !Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
            skipped(Need::Servers, &format!("{program} cannot be run (the npm package azurite)"));
            return None;
        }
        let address = free_address();
        let mut command = Command::new("sh");
        command.args(["-c", AZURITE, &program, &address.port().to_string()]).stdin(Stdio::piped());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        wait_for(address);
        Some(Azure { address, _process: process })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/{}", self.address, Azure::ACCOUNT)
    }
}

/// Returns a name with the escapes of URLs.
pub fn escaped(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

/// Returns an address at which nobody listens at this moment.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until a server listens at an address.
pub fn wait_for(address: SocketAddr) {
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begin.elapsed() < PATIENCE, "nobody listens at {address}");
        thread::sleep(Duration::from_millis(50));
    }
}
