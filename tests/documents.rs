//! What SEMANTICS.md and TROUBLESHOOTING.md say is in the tests and in the program.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_promise_is_held_by_a_test() {
    let tests: String = ["src", "tests"]
        .iter()
        .flat_map(|folder| sources(&root().join(folder)))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let has = |name: &str| {
        let head = format!("fn {name}(");
        // Behind its attributes, or a property among others.
        tests.match_indices(&head).any(|(at, _)| {
            let before = &tests[..at];
            before[before.len().saturating_sub(300)..].contains("#[test]")
        })
    };
    let semantics = text("SEMANTICS.md");
    let promises: Vec<&str> = semantics.split("\n* ").skip(1).collect();
    assert!(promises.len() > 30, "{}", promises.len());
    for promise in promises {
        let names = promise.rsplit_once('[').unwrap_or_else(|| panic!("no test is named: {promise}")).1;
        let names: Vec<&str> = quoted(names).collect();
        assert!(!names.is_empty(), "no test is named: {promise}");
        for name in names {
            assert!(has(name), "there is no test {name}: {promise}");
        }
    }
}

#[test]
fn each_message_is_one_of_the_program() {
    let program: String = sources(&root().join("src"))
        .into_iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .map(|source| source.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
        .collect();
    // Texts go on in the next line behind a backslash.
    let program: Vec<&str> =
        program.split("\\\n").enumerate().map(|(n, part)| if n > 0 { part.trim_start() } else { part }).collect();
    let program = program.concat();
    let guide = text("TROUBLESHOOTING.md");
    let messages: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|line| line.split('`').next()).collect();
    assert!(messages.len() > 15, "{}", messages.len());
    for message in messages {
        for part in message.split("...").map(str::trim).filter(|part| !part.is_empty()) {
            assert!(program.contains(part), "the program does not say {part:?}");
        }
    }
}
