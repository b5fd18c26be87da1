//! The commands of README.md and of README.txt in a mount do what they say, as they stand.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::mounted::Mounted;
use crate::tools::{has, python_with};

/// What a line of a shell prints, run in a folder with our program and the Python of the tests first in the path.
/// `None`, and says why, where its program is missing.
fn shell(folder: &Path, line: &str) -> Option<String> {
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tilefs"), bin.path().join("tilefs")).unwrap();
    match line.split(' ').next() {
        Some("tilefs") => {}
        Some("python3") => {
            // A link to an interpreter would lose its packages.
            let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python_with("numpy")?);
            fs::write(bin.path().join("python3"), script).unwrap();
            fs::set_permissions(bin.path().join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        program => has(program?).then_some(())?,
    }
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-eu", "-o", "pipefail", "-c", line]).current_dir(folder).env("PATH", path);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_commands_of_the_readme_work_on_the_sample_array() {
    let Some(demo) = Mounted::new("demo") else { return };
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let tasks = readme.split("## Five tasks").nth(1).unwrap().split("### Single-cell").next().unwrap();
    let blocks = tasks.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let mnt = demo.path("mnt").display().to_string();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut printed = String::new();
    for line in blocks.flat_map(str::lines) {
        let line = line
            .replace("/mnt/demo", &mnt)
            .replace("tests/fixtures", &repository.join("tests/fixtures").display().to_string());
        printed += &shell(&demo.path(""), &line).unwrap_or_default();
    }
    // The value of row 42 and column 17, by od and as text; NumPy's mean of rows 10 to 19; awk's mean of column 4.
    for expected in ["15.97", "19.545", "15.09"] {
        assert!(printed.contains(expected), "{expected} is missing in\n{printed}");
    }
    assert_eq!(fs::metadata(demo.path("rows.f32")).unwrap().len(), 5 * 800);
    assert_eq!(fs::metadata(demo.path("part.npy")).unwrap().len(), 128 + 10 * 5 * 4);
}

#[test]
fn the_commands_of_the_readme_in_a_mount_work_there() {
    for array in ["demo", "arrays/sparse/consolidated", "arrays/dense/nullable", "arrays/dense/odd_names"] {
        let Some(mounted) = Mounted::new(array) else { return };
        let text = fs::read_to_string(mounted.path("mnt/README.txt")).unwrap();
        let (before, copying) = text.split_once("Before copying\n").unwrap();
        // Each is indented, under what it is for.
        let commands = before.split("What one can do here\n").nth(1).unwrap();
        let others: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        let copying: Vec<&str> = copying.lines().map(str::trim).filter(|line| line.starts_with("cp -r ./")).collect();
        assert!(others.len() > 5, "{text}");
        for line in others {
            assert!(!shell(&mounted.path("mnt"), line).is_some_and(|printed| printed.is_empty()), "{array}: {line}");
        }
        let destination = mounted.path("copy");
        fs::create_dir(&destination).unwrap();
        assert_eq!(copying.len(), 1, "{text}");
        shell(&mounted.path("mnt"), &copying[0].replace("DESTINATION", &destination.display().to_string()));
        for name in ["schema.json", "dims"] {
            assert!(destination.join(name).exists(), "{array}: {name}");
        }
        assert!(!destination.join("npy").exists());
    }
}
