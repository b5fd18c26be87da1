//! The rooms of `src` as ARCHITECTURE.md has them: each uses only those that its row names, all of which stand below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the uppermost to the lowest, and which of the others each may use.
struct Plan(Vec<(String, BTreeSet<String>)>);

impl Plan {
    /// Reads the rows `| [room] | what it does | what it may use |` of a text.
    fn parse(text: &str) -> Self {
        let rows = text.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            let room = cells.next()?.trim_end_matches(['`', '/']).trim_end_matches(".rs");
            let uses = cells.nth(1)?.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            Some((room.to_owned(), uses.collect()))
        });
        Plan(rows.collect())
    }

    fn may_use(&self, room: &str) -> Option<&BTreeSet<String>> {
        self.0.iter().find(|(known, _)| known == room).map(|(_, uses)| uses)
    }

    /// What is wrong with the uses of other rooms in a source file, each with its place.
    fn violations(&self, path: &str, source: &str) -> Vec<String> {
        let module = module_of(path);
        let room = module.first().map_or("cli", String::as_str);
        let Some(allowed) = self.may_use(room) else {
            return vec![format!("{path}: {room} is no room of ARCHITECTURE.md")];
        };
        uses(source, module.clone())
            .into_iter()
            .filter(|(_, used)| used != room && !allowed.contains(used))
            .map(|(line, used)| format!("{path}:{line}: {room} may not use {used}"))
            .collect()
    }
}

/// The module that a file below `src` is, from the root of the crate on.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs");
    path.split('/').filter(|name| !["mod", "lib", "main"].contains(name)).map(str::to_owned).collect()
}

/// A word, `::` or another mark of a source text, and its line.
type Token<'a> = (usize, &'a str);

/// The words and marks of a source text, without comments and without what stands between quotes.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let (mut found, mut line, mut rest) = (Vec::new(), 1, source);
    while let Some(first) = rest.chars().next() {
        let raw = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r').filter(|raw| {
            let quoted = raw.trim_start_matches('#');
            quoted.starts_with('"')
        });
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            end_of_comment(rest)
        } else if let Some(raw) = raw {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            let end = format!("\"{}", "#".repeat(hashes));
            let start = rest.len() - raw.len() + hashes + 1;
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else if first == '"' {
            end_of_quotes(rest, '"')
        } else if first == '\'' {
            // What is no character is the name of a lifetime.
            let mut behind = rest.chars().skip(1);
            let is_character = behind.next() == Some('\\') || behind.next() == Some('\'');
            if is_character { end_of_quotes(rest, '\'') } else { 1 }
        } else if is_word(first) {
            let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            found.push((line, &rest[..length]));
            length
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                found.push((line, &rest[..length]));
            }
            length
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// Where a comment ends that may hold others.
fn end_of_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let (change, step) = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (1, 2),
            [b'*', b'/', ..] => (-1, 2),
            _ => (0, 1),
        };
        (depth, at) = (depth + change, at + step);
        if depth == 0 {
            break;
        }
    }
    at
}

/// Where the text between quotes ends that begins with one.
fn end_of_quotes(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The names at the root of the crate that a source text uses, each with its line: by paths from `crate`, from `tilefs`,
/// and from `super` as far as the root.
fn uses(source: &str, mut module: Vec<String>) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let (mut found, mut at) = (Vec::new(), 0);
    // Of each brace that is open whether it is that of a module.
    let mut braces = Vec::new();
    while let Some(rest @ [(_, token), ..]) = tokens.get(at..) {
        at += match (*token, rest) {
            ("mod", [_, (_, name), (_, "{"), ..]) => {
                module.push((*name).to_owned());
                braces.push(true);
                3
            }
            ("crate" | "tilefs", [_, (_, "::"), behind @ ..]) => 2 + resolve(behind, &[], &mut found),
            ("super", [_, (_, "::"), ..]) => resolve(rest, &module, &mut found),
            ("{", _) => {
                braces.push(false);
                1
            }
            ("}", _) => {
                if braces.pop() == Some(true) {
                    module.pop();
                }
                1
            }
            _ => 1,
        };
    }
    found
}

/// Follows a path, or several in braces, from a module until it names something; gives how many tokens that took.
fn resolve(tokens: &[Token<'_>], module: &[String], found: &mut Vec<(usize, String)>) -> usize {
    match tokens {
        [(_, "super"), (_, "::"), behind @ ..] => {
            2 + resolve(behind, module.split_last().map_or(module, |(_, above)| above), found)
        }
        [(_, "{"), ..] => {
            let (mut at, mut depth, mut is_start) = (1, 1, true);
            while depth > 0 && at < tokens.len() {
                if is_start && !matches!(tokens[at].1, "}" | ",") {
                    at += resolve(&tokens[at..], module, found);
                    is_start = false;
                    continue;
                }
                match tokens[at].1 {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," if depth == 1 => is_start = true,
                    _ => {}
                }
                at += 1;
            }
            at
        }
        [(line, name), ..] => {
            if module.is_empty() {
                found.push((*line, (*name).to_owned()));
            }
            1
        }
        [] => 0,
    }
}

/// All source files below `src`, by their paths there.
fn sources() -> BTreeMap<String, String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![src.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    files
}

fn architecture() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap()
}

#[test]
fn rooms_use_only_what_they_may() {
    let plan = Plan::parse(&architecture());
    let sources = sources();
    assert!(plan.0.len() > 10 && sources.len() > 250, "{} rooms, {} files", plan.0.len(), sources.len());
    // The root declares the rooms and uses none.
    let files = sources.iter().filter(|(path, _)| *path != "lib.rs");
    let wrong: Vec<String> = files.flat_map(|(path, source)| plan.violations(path, source)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_room_may_use_is_below_it_and_there() {
    let plan = Plan::parse(&architecture());
    let rooms: Vec<&str> = plan.0.iter().map(|(room, _)| room.as_str()).collect();
    for (number, (room, uses)) in plan.0.iter().enumerate() {
        for used in uses {
            assert!(rooms[number + 1..].contains(&used.as_str()), "{room} uses {used}, which is not below it");
        }
    }
    let used: BTreeSet<(String, String)> = sources()
        .iter()
        .flat_map(|(path, source)| {
            let module = module_of(path);
            let room = module.first().cloned().unwrap_or_else(|| "cli".to_owned());
            uses(source, module).into_iter().map(move |(_, used)| (room.clone(), used))
        })
        .collect();
    for (room, uses) in &plan.0 {
        for allowed in uses {
            assert!(used.contains(&(room.clone(), allowed.clone())), "{room} no longer uses {allowed}: strike it out");
        }
    }
}

/// A file is named by the end of its path, as the text goes on from the one before.
#[test]
fn the_files_that_the_architecture_names_are_there() {
    let (text, sources) = (architecture(), sources());
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")).collect();
    let is_there = |name: &str| {
        sources.keys().any(|path| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
            || Path::new(env!("CARGO_MANIFEST_DIR")).join(name).is_file()
    };
    let gone: Vec<&str> = named.iter().copied().filter(|name| !is_there(name)).collect();
    assert!(named.len() > 20 && gone.is_empty(), "{} named, not there: {gone:?}", named.len());
}

#[test]
fn threads_start_in_one_place() {
    let starts = |source: &str| {
        // Tests stand at the end of a file.
        let program = source.split("#[cfg(test)]").next().unwrap_or_default();
        let tokens: Vec<&str> = tokens(program).into_iter().map(|(_, word)| word).collect();
        let by_library = tokens
            .windows(3)
            .any(|three| three[..2] == ["thread", "::"] && ["Builder", "scope", "spawn"].contains(&three[2]));
        by_library || tokens.contains(&"spawn_scoped")
    };
    let sources = sources();
    let found: Vec<&str> = sources.iter().filter(|(_, source)| starts(source)).map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, ["threads/mod.rs"]);
}

#[test]
fn unsafe_code_is_only_where_the_architecture_names_it() {
    let text = architecture();
    let named: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("`unsafe` is in "))
        .flat_map(|list| list.split('`').filter(|name| name.ends_with(".rs")))
        .collect();
    let sources = sources();
    let is_unsafe = |source: &str| tokens(source).iter().any(|(_, word)| ["unsafe", "unsafe_code"].contains(word));
    let found: BTreeSet<&str> =
        sources.iter().filter(|(_, source)| is_unsafe(source)).map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, named);
}

/// A plan of three rooms, the violations in a file of one of them.
fn violations(path: &str, source: &str) -> Vec<String> {
    Plan::parse("| `tree/` | names | cache, error |\n| `cache/` | bytes | error |\n| `error.rs` | kinds | |\n")
        .violations(path, source)
}

#[test]
fn an_arrow_upwards_is_found_wherever_it_is() {
    let found = |path: &str, source: &str| match &violations(path, source)[..] {
        [one] => one.clone(),
        all => panic!("{source}: {all:?}"),
    };
    assert_eq!(found("cache/mod.rs", "//! Docs.\n\nuse crate::tree::Node;"), "cache/mod.rs:3: cache may not use tree");
    assert_eq!(found("error.rs", "use crate::{\n  cache,\n};"), "error.rs:2: error may not use cache");
    assert_eq!(found("cache/mod.rs", "fn f() {\n g(&[crate::tree::A]); }"), "cache/mod.rs:2: cache may not use tree");
    assert_eq!(found("cache/a.rs", "use super::super::tree::Node;"), "cache/a.rs:1: cache may not use tree");
    assert_eq!(
        found("cache/a.rs", "use super::super::{error, tree::{Node, Open}};"),
        "cache/a.rs:1: cache may not use tree"
    );
    assert_eq!(
        found("cache/mod.rs", "mod tests {\n  use super::*;\n  use super::super::tree;\n}"),
        "cache/mod.rs:3: cache may not use tree"
    );
    assert_eq!(
        found("error.rs", "macro_rules! a { () => { $crate::tree::b() } }"),
        "error.rs:1: error may not use tree"
    );
    assert_eq!(found("cache/mod.rs", "use crate::*;"), "cache/mod.rs:1: cache may not use *");
    assert_eq!(found("cache/mod.rs", "fn f() -> crate::Root {}"), "cache/mod.rs:1: cache may not use Root");
    assert_eq!(found("attic/mod.rs", ""), "attic/mod.rs: attic is no room of ARCHITECTURE.md");
}

#[test]
fn what_lies_below_and_what_is_only_said_is_no_violation() {
    let none: [String; 0] = [];
    assert_eq!(violations("tree/a/b.rs", "use crate::{cache::Cache, error};\nuse super::super::c::D;"), none);
    assert_eq!(
        violations("cache/mod.rs", "// crate::tree\n/// [`crate::tree`]\nconst A: &str = \"crate::tree\";"),
        none
    );
    let quoted = "/* /* a */ crate::tree */ const A: (&str, char) = (r#\"\" crate::tree\"#, '\"'); // crate::tree \"";
    assert_eq!(violations("cache/mod.rs", quoted), none);
    assert_eq!(violations("cache/mod.rs", "mod tests { use super::tree; }\npub(crate) fn f() {}"), none);
    assert_eq!(violations("cache/a.rs", "use super::tree::Leaf;\nuse crate::cache::b;"), none);
}
