//! The page in a browser: the values that it shows are those that TileDB reads, and names and texts in an array do
//! nothing. `web/tests/browser.mjs` has the checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{Program, demo};
use support::skip::{Need, python_with, skipped};

const TOKEN: &str = "s3cret";

/// Returns the interpreter and the browser that the checks need; otherwise says what is missing.
fn tools(web: &Path) -> Option<(String, PathBuf)> {
    let python = python_with("tiledb, numpy")?;
    let browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    let Some(browser) = browsers.into_iter().find(|path| path.exists()) else {
        skipped(Need::Browser, "chromium is missing");
        return None;
    };
    let needed = ["node_modules/playwright-core", "node_modules/axe-core", "dist/page.js.gz"];
    if let Some(missing) = needed.iter().find(|path| !web.join(path).exists()) {
        skipped(Need::Browser, &format!("web/{missing} is missing: scripts/build_page.sh makes it"));
        return None;
    }
    Some((python, browser))
}

#[test]
fn the_page_shows_what_tiledb_reads() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let Some((python, browser)) = tools(&web) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (hostile, corpus) = (folder.path().join("hostile"), tilefs_fixtures::corpus());
    let made = Command::new(python).arg(web.join("tests/arrays.py")).arg(&hostile).arg(demo()).arg(corpus).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let expected: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let servers = [
        ("demo", Program::start(&demo(), &[])),
        ("real", Program::start(&corpus.join("real"), &[])),
        // The array of 100,000 attributes needs room for the names of its files.
        ("hostile", Program::start(&hostile, &["--cache-size", "2G"])),
        ("variants", Program::start(&tilefs_fixtures::fixtures().join("variants/v4"), &[])),
        ("token", Program::start(&demo(), &["--token", TOKEN])),
    ];
    let urls = servers.iter().map(|(name, server)| ((*name).to_owned(), server.url().into()));
    let urls: serde_json::Map<String, serde_json::Value> = urls.collect();
    let configuration = serde_json::json!({"urls": urls, "token": TOKEN, "expected": expected, "executable": browser});
    let file = folder.path().join("configuration.json");
    fs::write(&file, configuration.to_string()).unwrap();
    let checked = Command::new("node").arg(web.join("tests/browser.mjs")).arg(file).output().unwrap();
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{told}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(told.lines().filter(|line| line.starts_with("ok: ")).count() >= 24, "{told}");
}
