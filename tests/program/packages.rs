//! Packages of the program can be installed, and their tools accept the manifests.

use std::path::PathBuf;
use std::process::Command;

use support::repository::root;
use support::skip::{Need, skipped};

/// Checks existing packages. scripts/package.sh builds them, which takes release builds.
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

/// Returns the Python of the tests. If it lacks a module, returns `None` and reports that.
fn python_with(modules: &str) -> Option<PathBuf> {
    let interpreter = std::env::var_os("TILEFS_PYTHON").map_or_else(|| root().join(".venv/bin/python"), PathBuf::from);
    let has = Command::new(&interpreter).args(["-c", &format!("import {modules}")]).output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(interpreter);
    }
    skipped(Need::Python, &format!("{} has no {modules}", interpreter.display()));
    None
}

/// Runs a command, which must succeed; returns its output.
fn printed(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{command:?}\n{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn the_manifests_for_kubernetes_are_yaml_without_faults() {
    let Some(python) = python_with("yamllint") else { return };
    let config = "{extends: default, rules: {document-start: disable, line-length: {max: 120}}}";
    let manifests = ["kubernetes.yaml", "conda/recipe.yaml", "helm/tilefs/Chart.yaml", "helm/tilefs/values.yaml"];
    let manifests = manifests.map(|name| root().join("packaging").join(name));
    printed(Command::new(python).args(["-m", "yamllint", "--strict", "-d", config]).args(manifests));
}

/// Checks the manifests with Helm's own library and the schemas of Kubernetes.
#[test]
fn the_chart_renders_manifests_that_kubernetes_takes() {
    let Some(python) = python_with("helm_python, kubernetes_validate") else { return };
    let arguments = printed(Command::new(python).args(["packaging/check_manifests.py", "packaging"]));
    assert!(arguments.lines().count() > 3, "{arguments}");
    // The arguments of the containers are those of the program.
    for line in arguments.lines() {
        let (command, _) = line.split_once(' ').unwrap();
        let help = printed(Command::new(env!("CARGO_BIN_EXE_tilefs")).args([command, "--help"]));
        for option in line.split(' ').filter(|word| word.starts_with("--")) {
            let name = option.split('=').next().unwrap();
            assert!(
                help.contains(&format!("{name} "))
                    || help.contains(&format!("{name}["))
                    || help.contains(&format!("{name}\n")),
                "{name}: {help}"
            );
        }
    }
}
