//! The paths and the commands of cargo that comments and documents name exist.
//!
//! A path begins with a folder of the repository, as in `docs/tables.md`. Paths of sources may be short, as in
//! docs/ARCHITECTURE.md: `tree/open.rs` is `crates/tree/src/open.rs`; or begin in a folder around the file that names them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::repository::root;

/// Folders that hold what programs made, or data.
const NO_SOURCES: [&str; 5] = ["target", "node_modules", "__pycache__", "fixtures", "dist"];

/// Paths that programs make: they need not exist.
const MADE: [&str; 2] = ["fuzz/corpus", "fuzz/artifacts"];

/// Folders of the repository of which only whole files are meant: their names are also those of folders elsewhere, such as
/// of an installed package.
const OFTEN_ELSEWHERE: [&str; 3] = ["man", "python", "src"];

/// The ending of a file that is text.
const ENDINGS: [&str; 11] = ["rs", "md", "py", "sh", "toml", "yml", "awk", "ts", "tsx", "js", "json"];

/// Returns the text files of the repository, by their paths.
fn texts() -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_hidden = name.starts_with('.') && ![".github", ".ci"].contains(&name);
            if path.is_dir() && !is_hidden && !NO_SOURCES.contains(&name) {
                folders.push(path);
            } else if ENDINGS.iter().any(|ending| path.extension().is_some_and(|own| own == *ending)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the comments of a source file, or a whole document. Words that a line break parts are together.
fn prose(path: &Path, text: &str) -> String {
    let (mut prose, mut is_docstring) = (String::new(), false);
    for line in text.lines() {
        let line = match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => line,
            Some("rs" | "ts" | "tsx" | "js") => match line.trim_start().strip_prefix("//") {
                Some(comment) => comment.trim_start_matches(['/', '!']),
                None => continue,
            },
            Some("py") if is_docstring || line.contains("\"\"\"") => {
                is_docstring ^= line.matches("\"\"\"").count() % 2 == 1;
                line
            }
            _ => match line.trim_start().strip_prefix('#') {
                Some(comment) => comment,
                None => continue,
            },
        };
        prose.push(' ');
        prose.push_str(line.trim());
    }
    prose
}

/// Returns the words of a text that may be paths. A word that is a pattern, or has a part for the reader to fill in, is
/// none.
fn words(prose: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.-@/".contains(c);
    let is_pattern = |c: char| "*{}<>$[]:~%".contains(c);
    let separated = prose.split(move |c| !is_part(c) && !is_pattern(c));
    let words = separated.map(|word| word.trim_end_matches(['.', '-', ':']).trim_end_matches('/'));
    let is_filled_in = |part: &str| part.len() > 2 && part.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    words.filter(move |word| !word.contains(is_pattern) && !word.split(['/', '.']).any(is_filled_in))
}

/// What exists in the repository.
struct Existing {
    /// Its folders.
    top: BTreeSet<String>,
    /// The folders of the sources of crates, each with the name of the crate.
    crates: Vec<(String, PathBuf)>,
}

impl Existing {
    fn new() -> Self {
        let folders = |path: PathBuf| {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
            let folders = entries.filter(|entry| entry.path().is_dir());
            folders.map(|entry| entry.file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        let top = folders(root().to_owned()).into_iter().filter(|name| name != "target" && name != ".git").collect();
        let mut crates = vec![("tilefs".to_owned(), root().join("src"))];
        crates.extend(folders(root().join("crates")).into_iter().map(|name| {
            let sources = root().join("crates").join(&name).join("src");
            (name, sources)
        }));
        Existing { top, crates }
    }

    /// Returns whether a word in a file is a path that should exist.
    fn is_path(&self, word: &str) -> bool {
        let Some((first, rest)) = word.split_once('/') else { return false };
        let is_file = rest.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
        let is_source = rest.ends_with(".rs")
            && self.crates.iter().any(|(name, sources)| name == first || sources.join(first).is_dir());
        is_source || self.top.contains(first) && (is_file || !OFTEN_ELSEWHERE.contains(&first))
    }

    /// Returns whether a path that a file names exists.
    fn has(&self, path: &str, file: &Path) -> bool {
        let short = self.crates.iter().any(|(name, sources)| {
            let of_crate = path.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('/'));
            sources.join(path).exists() || of_crate.is_some_and(|rest| sources.join(rest).exists())
        });
        short
            || MADE.iter().any(|made| path.starts_with(made))
            || file.ancestors().any(|folder| folder.join(path).exists())
    }
}

/// Returns the test programs and benchmarks that commands of cargo name, which do not exist.
fn absent_targets(prose: &str) -> Vec<String> {
    let words: Vec<&str> =
        prose.split(|c: char| c.is_whitespace() || "`,;()".contains(c)).filter(|word| !word.is_empty()).collect();
    let named = words.windows(2).filter(|pair| matches!(pair[0], "--test" | "--bench"));
    let is_name = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let exists = |option: &str, name: &str| {
        let folder = if option == "--test" { "tests" } else { "benches" };
        let of_crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
        let mut crates = of_crates.chain([root().to_owned(), root().join("tests/interleavings")]);
        crates.any(|of| {
            let folder = of.join(folder);
            folder.join(format!("{name}.rs")).exists() || folder.join(name).join("main.rs").exists()
        })
    };
    let absent = named.filter(|pair| is_name(pair[1]) && !exists(pair[0], pair[1]));
    absent.map(|pair| pair.join(" ")).collect()
}

#[test]
fn named_paths_and_programs_exist() {
    let existing = Existing::new();
    let (mut wrong, mut named) = (Vec::new(), 0);
    for file in texts() {
        let shown = file.strip_prefix(root()).unwrap().display().to_string();
        // What earlier releases had is no longer there.
        if shown == "CHANGELOG.md" {
            continue;
        }
        let prose = prose(&file, &fs::read_to_string(&file).unwrap());
        let paths: BTreeSet<&str> = words(&prose).filter(|word| existing.is_path(word)).collect();
        named += paths.len();
        wrong
            .extend(paths.into_iter().filter(|path| !existing.has(path, &file)).map(|path| format!("{shown}: {path}")));
        wrong.extend(absent_targets(&prose).into_iter().map(|target| format!("{shown}: {target}")));
    }
    assert!(named > 200, "{named} paths were found");
    assert!(wrong.is_empty(), "these are named and do not exist:\n{}", wrong.join("\n"));
}

#[test]
fn a_path_that_is_gone_is_found() {
    let existing = Existing::new();
    let of = |name: &str, text: &str| {
        let prose = prose(Path::new(name), text);
        let gone = |word: &&str| existing.is_path(word) && !existing.has(word, &root().join(name));
        let mut found: Vec<String> = words(&prose).filter(gone).map(str::to_owned).collect();
        found.extend(absent_targets(&prose));
        found
    };
    assert_eq!(of("a.rs", "//! As in tests/gone.\nlet a = \"tests/gone\"; // ok"), ["tests/gone"]);
    assert_eq!(
        of("a.md", "`docs/gone.md`, docs/tables.md, (tree/gone.rs), tree/open.rs, scripts/*.sh, a/b"),
        ["docs/gone.md", "tree/gone.rs"]
    );
    assert_eq!(
        of("a.py", "\"\"\"See scripts/gone.py\nor docs/gone.\"\"\"\nx = 'docs/none'  # x\n# tests/none"),
        ["scripts/gone.py", "docs/gone", "tests/none"]
    );
    assert_eq!(of("a.md", "`cargo test --test\n   gone`, `cargo test --test tree x`, `--bench NAME`"), ["--test gone"]);
}
