//! What is made of the program: packages that install, and manifests that their tools take.

#[path = "support/skip.rs"]
#[allow(dead_code)]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

use skip::{Need, skipped};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Those that are there; scripts/package.sh makes them, which takes release builds.
#[test]
fn packages_install_and_mount() {
    let made = root().join("target/packages");
    let is_made = |end: &str| {
        let mut files = made.read_dir().into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().ends_with(end))
    };
    let mut kinds = Vec::new();
    for (kind, end) in [("deb", ".deb"), ("musl", "-musl.tar.gz"), ("wheel", ".whl")] {
        if is_made(end) {
            kinds.push(kind);
        } else {
            skipped(Need::Packages, &format!("there is no package; make it with scripts/package.sh {kind}"));
        }
    }
    if kinds.is_empty() {
        return;
    }
    let output = Command::new(root().join("scripts/test_packages.sh")).args(kinds).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for line in said.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")) {
        skipped(Need::Packages, line);
    }
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_manifest_for_kubernetes_is_yaml_without_faults() {
    let interpreter = std::env::var_os("TILEFS_PYTHON").map_or_else(|| root().join(".venv/bin/python"), PathBuf::from);
    let lint = |arguments: &[&str]| Command::new(&interpreter).args(["-m", "yamllint"]).args(arguments).output();
    if !lint(&["--version"]).is_ok_and(|output| output.status.success()) {
        return skipped(Need::Python, &format!("{} has no yamllint", interpreter.display()));
    }
    let manifest = root().join("packaging/kubernetes.yaml");
    let output = lint(&["--strict", &manifest.display().to_string()]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
