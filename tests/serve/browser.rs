//! The page in a browser: the values that it shows are those that TileDB reads, names and texts in an array do nothing,
//! and it looks as it did when a person found that right. `web/tests/browser.mjs` and `looks.mjs` have the checks.
//!
//! `TILEFS_ACCEPT=yes` rewrites the pictures in `web/tests/looks/`, after a change of the page that a person has looked
//! at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::client::{Program, demo};
use support::skip::{Need, python_with, skipped};
use support::stored::copy_folder;

/// Held by the test whose browser runs: beside another one, a page takes longer than the checks wait for it.
static BROWSER: Mutex<()> = Mutex::new(());

const TOKEN: &str = "s3cret";

/// The only fonts of the pages that are compared with pictures.
const FONTS: &str = "/usr/share/fonts/truetype/dejavu";

/// Returns the interpreter and the browser that the checks need; otherwise says what is missing.
fn tools(web: &Path) -> Option<(String, PathBuf)> {
    let python = python_with("tiledb, numpy")?;
    let browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
    let Some(browser) = browsers.into_iter().find(|path| path.exists()) else {
        skipped(Need::Browser, "chromium is missing");
        return None;
    };
    let needed = ["node_modules/playwright-core", "node_modules/axe-core"];
    if let Some(missing) = needed.iter().find(|path| !web.join(path).exists()) {
        skipped(Need::Browser, &format!("web/{missing} is missing: scripts/install_test_tools.sh installs it"));
        return None;
    }
    Some((python, browser))
}

/// Makes the arrays of the tests in a folder, and returns what TileDB reads from these and from real ones.
fn make_arrays(python: &str, web: &Path, folder: &Path) -> serde_json::Value {
    let mut make = Command::new(python);
    let made = make.arg(web.join("tests/arrays.py")).arg(folder).arg(demo()).arg(tilefs_fixtures::corpus()).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    serde_json::from_slice(&made.stdout).unwrap()
}

#[test]
fn the_page_shows_what_tiledb_reads() {
    let _only = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let Some((python, browser)) = tools(&web) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (hostile, corpus) = (folder.path().join("hostile"), tilefs_fixtures::corpus());
    let expected = make_arrays(&python, &web, &hostile);
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
    assert!(told.lines().filter(|line| line.starts_with("ok: ")).count() >= 36, "{told}");
}

#[test]
fn arrow_files_of_pyarrow_are_read_by_the_page() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let Some(python) = python_with("pyarrow, numpy") else { return };
    if !web.join("node_modules/vite").exists() || Command::new("node").arg("--version").output().is_err() {
        return skipped(
            Need::Browser,
            "web/node_modules/vite or node is missing: scripts/install_test_tools.sh installs it",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let written = Command::new(python).arg(web.join("tests/arrow.py")).arg(folder.path()).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let expected = folder.path().join("expected.json");
    fs::write(&expected, &written.stdout).unwrap();
    let read = Command::new("node").arg(web.join("tests/arrow.mjs")).arg(folder.path()).arg(expected).output().unwrap();
    let told = String::from_utf8_lossy(&read.stdout);
    assert!(read.status.success(), "{told}{}", String::from_utf8_lossy(&read.stderr));
    assert!(told.lines().filter(|line| line.starts_with("ok: ")).count() >= 7, "{told}");
}

/// Writes a configuration of fontconfig with one family of fonts, so that lines break at the same words everywhere.
fn write_fonts(file: &Path, cache: &Path) {
    let family = "<string>DejaVu Sans</string>";
    let last = format!("<match><edit name=\"family\" mode=\"append_last\" binding=\"same\">{family}</edit></match>");
    let folders = format!("<dir>{FONTS}</dir><cachedir>{}</cachedir>", cache.display());
    fs::write(file, format!("<?xml version=\"1.0\"?><fontconfig>{folders}{last}</fontconfig>")).unwrap();
}

/// Colour schemes, narrow and wide windows: a pane that is missing, text that is cut off or a panel that overflows
/// differs from the picture.
#[test]
fn pages_look_as_they_did() {
    let _only = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let Some((python, browser)) = tools(&web) else { return };
    if !Path::new(FONTS).exists() {
        return skipped(Need::Browser, &format!("{FONTS} is missing (package fonts-dejavu-core)"));
    }
    let folder = tempfile::tempdir().unwrap();
    let (hostile, served) = (folder.path().join("hostile"), folder.path().join("data"));
    make_arrays(&python, &web, &hostile);
    let real = tilefs_fixtures::corpus().join("real");
    for (stored, name) in [
        (real.join("dem_jacksboro"), "terrain"),
        (real.join("photo_china_rgb"), "photograph"),
        (real.join("star98"), "schools"),
        (real.join("stocks"), "stocks"),
        (real.join("pbmc_soma"), "experiment"),
        (tilefs_fixtures::fixtures().join("variants/v4"), "variants"),
        (hostile.join("points"), "points"),
        (hostile.join("cf"), "climate"),
    ] {
        copy_folder(&stored, &served.join(name));
    }
    let server = Program::start(&served, &[]);
    let (fonts, made) = (folder.path().join("fonts.conf"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("looks"));
    write_fonts(&fonts, &folder.path().join("fonts"));
    let configuration = serde_json::json!({
        "port": server.address.port(),
        "executable": browser,
        "kept": web.join("tests/looks"),
        "made": made,
        "accept": std::env::var_os("TILEFS_ACCEPT").is_some_and(|accept| accept == "yes"),
    });
    let file = folder.path().join("configuration.json");
    fs::write(&file, configuration.to_string()).unwrap();
    let mut look = Command::new("node");
    let looked = look.arg(web.join("tests/looks.mjs")).arg(file).env("FONTCONFIG_FILE", fonts).output().unwrap();
    let told = String::from_utf8_lossy(&looked.stdout);
    let how = "TILEFS_ACCEPT=yes cargo test --test serve pages_look_as_they_did";
    assert!(
        looked.status.success(),
        "{told}{}\nIf the change is meant and looks right: {how}",
        String::from_utf8_lossy(&looked.stderr)
    );
    assert!(told.lines().filter(|line| line.starts_with("ok: ")).count() >= 60, "{told}");
}
