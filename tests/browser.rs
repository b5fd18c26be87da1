//! The page of `tilefs serve` in a browser: the values that it shows are those that TileDB reads, and names and texts in
//! an array do nothing. `web/tests/browser.mjs` has the checks.

#![cfg(feature = "serve")]

#[path = "support/skip.rs"]
#[allow(dead_code)]
mod skip;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use skip::{Need, python_with, skipped};

const TOKEN: &str = "s3cret";

/// The program, serving; killed at the end.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(array: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilefs"));
        command.arg("serve").arg(array).args(["--port", "0"]).args(options).env_remove("TILEFS_TOKEN");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().rsplit(' ').next().unwrap_or_default().to_owned();
        Server { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what the checks need, if it is here; otherwise says what is missing.
fn tools(web: &Path) -> Option<(String, PathBuf)> {
    let python = python_with("tiledb, numpy")?;
    let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].map(PathBuf::from).into_iter().find(|path| path.exists());
    let missing = if chromium.is_none() {
        "chromium is missing"
    } else if !web.join("node_modules/playwright-core").exists() {
        "web/node_modules is missing: scripts/build_page.sh makes it"
    } else if !web.join("dist/page.js.gz").exists() {
        "web/dist is missing: scripts/build_page.sh makes it"
    } else {
        return Some((python, chromium?));
    };
    skipped(Need::Browser, missing);
    None
}

#[test]
fn the_page_shows_what_tiledb_reads() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let Some((python, chromium)) = tools(&web) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (hostile, corpus) = (folder.path().join("hostile"), tilefs_fixtures::corpus());
    let demo = tilefs_fixtures::fixtures().join("demo");
    let made = Command::new(python).arg(web.join("tests/arrays.py")).args([&hostile, &demo, &corpus.to_path_buf()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let expected: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let servers = [
        ("demo", Server::start(&demo, &[])),
        ("real", Server::start(&corpus.join("real"), &[])),
        ("hostile", Server::start(&hostile, &[])),
        ("token", Server::start(&demo, &["--token", TOKEN])),
    ];
    let urls: serde_json::Map<_, _> = servers.iter().map(|(name, server)| ((*name).to_owned(), server.url.clone().into())).collect();
    let configuration = serde_json::json!({"urls": urls, "token": TOKEN, "expected": expected, "executable": chromium});
    let file = folder.path().join("configuration.json");
    fs::write(&file, configuration.to_string()).unwrap();
    let checked = Command::new("node").arg(web.join("tests/browser.mjs")).arg(file).output().unwrap();
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{told}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(told.lines().filter(|line| line.starts_with("ok: ")).count() >= 15, "{told}");
}
