//! The statements of SEMANTICS.md are covered by tests, and the messages in TROUBLESHOOTING.md are those of the
//! program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::repository::{files_below, root, text};

/// Returns the source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    files_below(folder, &["rs"])
}

/// Returns the folders with the sources of the crates below the program.
fn crates() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// Returns the texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Collects the source files that are compiled into a test program: its root and, file by file, the modules that it
/// declares.
fn compiled(file: &Path, found: &mut BTreeSet<PathBuf>) {
    if !found.insert(file.to_owned()) {
        return;
    }
    let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("mod" | "main" | "lib") => file.parent().unwrap().to_owned(),
        // If a program's root is a single file, its modules are beside it.
        _ if file.parent().unwrap().ends_with("tests") => file.parent().unwrap().to_owned(),
        _ => file.with_extension(""),
    };
    let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut path = None;
    for line in source.lines().map(str::trim) {
        if let Some(given) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            path = Some(file.parent().unwrap().join(given));
        }
        let visible = line.strip_prefix("pub").map_or(line, |rest| match rest.split_once(") ") {
            Some((_, rest)) => rest,
            None => rest.trim_start(),
        });
        let declared = visible.strip_prefix("mod ").and_then(|name| name.strip_suffix(';'));
        if let Some(name) = declared {
            let usual = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
            let module = path.take().or_else(|| usual.into_iter().find(|file| file.exists()));
            compiled(&module.unwrap_or_else(|| panic!("{}: where is {name}?", file.display())), found);
        }
    }
}

/// Returns the names of the tests in a source file that run by default: functions with the attribute `#[test]`, but
/// without `#[ignore]` and conditions of compilation.
fn tests(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut attributes: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
            attributes.push(line);
        } else if let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) {
            let is_left_out = |line: &&str| line.starts_with("#[ignore") || line.starts_with("#[cfg");
            if attributes.contains(&"#[test]") && !attributes.iter().any(is_left_out) {
                names.insert(name.to_owned());
            }
            attributes.clear();
        } else if !line.starts_with("//") {
            attributes.clear();
        }
    }
    names
}

#[test]
fn only_tests_that_run_count_as_tests() {
    let found = tests(
        "#[test]\nfn a() {}\nfn b() {}\n#[test]\n#[ignore = \"slow\"]\nfn c() {}\n#[test]\n\n#[cfg(unix)]\nfn d() {}\n\
         // #[test]\nfn e() {}\n    #[test]\n    /// Of a property.\n    fn f(x in 0..1) {}\n#[test]\nstruct G;\nfn h() {}\n",
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "f"]);
}

/// Returns each sentence of SEMANTICS.md with the tests that it names.
fn promises(semantics: &str) -> Vec<(&str, Vec<&str>)> {
    let promises = semantics.split("\n* ").skip(1).map(|promise| {
        let names = promise.rsplit_once('[').unwrap_or_else(|| panic!("no test is named: {promise}")).1;
        let names: Vec<&str> = quoted(names).collect();
        assert!(!names.is_empty(), "no test is named: {promise}");
        (promise, names)
    });
    let promises: Vec<_> = promises.collect();
    assert!(promises.len() > 30, "{}", promises.len());
    promises
}

/// `.ci/run` compares the log of the tests with the promises.
#[test]
fn a_promised_test_that_did_not_pass_is_found_in_the_log() {
    let semantics = text("docs/SEMANTICS.md");
    let names: BTreeSet<&str> = promises(&semantics).into_iter().flat_map(|(_, names)| names).collect();
    let missing = |log: &[String]| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("log"), log.join("\n")).unwrap();
        let mut awk = Command::new("awk");
        awk.arg("-f").arg(root().join("scripts/promised_tests.awk"));
        let output = awk.arg(root().join("docs/SEMANTICS.md")).arg(folder.path().join("log")).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.success(), said.is_empty(), "{said}");
        said
    };
    let whole: Vec<String> = names.iter().map(|name| format!("test module::{name} ... ok")).collect();
    assert_eq!(missing(&whole), "");
    for (line, name) in names.iter().enumerate() {
        for end in ["FAILED", "ignored, slow"] {
            let mut log = whole.clone();
            log[line] = format!("test module::{name} ... {end}");
            assert_eq!(missing(&log), format!("SEMANTICS.md names a test that did not pass: {name}\n"));
        }
    }
}

#[test]
fn each_promise_is_held_by_a_test() {
    let mut roots = vec![root().join("src/lib.rs"), root().join("src/main.rs")];
    roots.extend(crates().into_iter().map(|src| src.join("lib.rs")));
    let of_crates = crates().into_iter().map(|src| src.with_file_name("tests")).filter(|folder| folder.is_dir());
    for entry in [root().join("tests")].into_iter().chain(of_crates).flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        // A test program in one file or in a folder, or a crate that tests use.
        roots.extend(
            [path.clone(), path.join("main.rs"), path.join("lib.rs")]
                .into_iter()
                .filter(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "rs")),
        );
    }
    let mut files = BTreeSet::new();
    roots.iter().for_each(|root| compiled(root, &mut files));
    // Every file must be compiled: tests in a file that no module declares would never run.
    let folders = [root().join("src"), root().join("tests")].into_iter().chain(crates());
    // The crate of the models compiles files of other crates by other paths.
    let models = root().join("tests/interleavings");
    let seen: BTreeSet<PathBuf> = files.iter().map(|file| file.canonicalize().unwrap()).collect();
    for file in folders.flat_map(|folder| sources(&folder)).filter(|file| !file.starts_with(&models)) {
        let is_seen = seen.contains(&file.canonicalize().unwrap());
        assert!(is_seen, "{} is in no program", file.display());
    }
    let tests: BTreeSet<String> = files.iter().flat_map(|path| tests(&fs::read_to_string(path).unwrap())).collect();
    assert!(tests.len() > 500, "{}", tests.len());
    for (promise, names) in promises(&text("docs/SEMANTICS.md")) {
        for name in names {
            assert!(tests.contains(name), "there is no test {name} that runs: {promise}");
        }
    }
}

#[test]
fn each_message_is_one_of_the_program() {
    let program: String = crates()
        .into_iter()
        .chain([root().join("src")])
        .flat_map(|folder| sources(&folder))
        .map(|path| fs::read_to_string(path).unwrap())
        .map(|source| source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned())
        .collect();
    // A backslash continues a text on the next line.
    let program: Vec<&str> =
        program.split("\\\n").enumerate().map(|(n, part)| if n > 0 { part.trim_start() } else { part }).collect();
    let program = program.concat();
    let guide = text("docs/TROUBLESHOOTING.md");
    let messages: Vec<&str> =
        guide.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|line| line.split('`').next()).collect();
    assert!(messages.len() > 15, "{}", messages.len());
    for message in messages {
        for part in message.split("...").map(str::trim).filter(|part| !part.is_empty()) {
            assert!(program.contains(part), "the program does not say {part:?}");
        }
    }
}
