//! Checks the rooms of the source against ARCHITECTURE.md: within its crate, each room uses only those that its row
//! names, all of which are below it. Between crates, the compiler enforces this.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use support::repository::{root, text};

/// The room of the files of a crate that are in none of its other rooms.
const ROOT_ROOMS: [(&str, &str); 9] = [
    ("tilefs", "cli"),
    ("format", "format"),
    ("tree", "tree"),
    ("export", "export"),
    ("vcf", "vcf"),
    ("hdf5-layout", "hdf5-layout"),
    ("python", "python"),
    ("storage", "storage"),
    ("threads", "threads"),
];

/// A row of the table of rooms.
struct Room {
    krate: String,
    name: String,
    /// The rooms of the same crate that it may use.
    uses: BTreeSet<String>,
}

struct Plan(Vec<Room>);

impl Plan {
    /// Reads the rows `| [room] | [crate] | what it does | what it may use |` of a text.
    fn parse(text: &str) -> Self {
        let rows = text.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            let name = cells.next()?.trim_end_matches(['`', '/']).trim_end_matches(".rs").to_owned();
            let krate = cells.next()?.to_owned();
            let uses = cells.nth(1)?.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            Some(Room { krate, name, uses: uses.collect() })
        });
        Plan(rows.collect())
    }

    fn find(&self, krate: &str, name: &str) -> Option<&Room> {
        self.0.iter().find(|room| room.krate == krate && room.name == name)
    }

    /// Returns the room of a name at the root of a crate.
    fn room_of<'a>(&self, krate: &str, name: &'a str) -> &'a str {
        if self.find(krate, name).is_some() {
            return name;
        }
        ROOT_ROOMS.iter().find(|(root, _)| *root == krate).map_or(name, |(_, room)| room)
    }

    /// Returns the place of a source file, its room, and the rooms of its own crate that it uses, each with the line.
    fn uses<'a>(&self, path: &'a str, source: &str) -> (Place<'a>, String, Vec<(usize, String)>) {
        let place = Place::of(path);
        let first = place.module.first().map_or("", String::as_str);
        let room = self.room_of(place.krate, first).to_owned();
        let used = uses(source, place.module.clone());
        let used = used.into_iter().map(|(line, name)| (line, self.room_of(place.krate, &name).to_owned()));
        let used = used.filter(|(_, used)| *used != room).collect();
        (place, room, used)
    }

    /// Returns the uses in a source file that are forbidden for its room, each with its place.
    fn violations(&self, path: &str, source: &str) -> Vec<String> {
        let (place, room, used) = self.uses(path, source);
        let Some(of_plan) = self.find(place.krate, &room) else {
            return vec![format!("{path}: {room} is no room of ARCHITECTURE.md")];
        };
        let wrong = used.into_iter().filter(|(_, used)| !of_plan.uses.contains(used));
        wrong.map(|(line, used)| format!("{path}:{line}: {room} may not use {used}")).collect()
    }
}

/// The place of a source file: its crate, and its module from the root of the crate on.
struct Place<'a> {
    krate: &'a str,
    module: Vec<String>,
}

impl<'a> Place<'a> {
    /// Returns the place of `crates/CRATE/src/...`, or of `src/...` for the program.
    fn of(path: &'a str) -> Self {
        let of_crate = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        let (krate, inner) = of_crate.unwrap_or_else(|| ("tilefs", path.trim_start_matches("src/")));
        let names = inner.trim_end_matches(".rs").split('/');
        let module = names.filter(|name| !["mod", "lib", "main"].contains(name)).map(str::to_owned).collect();
        Place { krate, module }
    }
}

/// A word, `::` or another symbol of a source text, with its line.
type Token<'a> = (usize, &'a str);

/// Returns the words and symbols of a source text, without comments and quoted texts.
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
            // A quote that does not begin a character begins the name of a lifetime.
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

/// Returns the end of a comment, which may contain others.
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

/// Returns the end of a quoted text.
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

/// Returns the names at the root of the crate that a source text uses, each with its line: through paths from `crate`,
/// from `tilefs`, and from `super` up to the root.
fn uses(source: &str, mut module: Vec<String>) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let (mut found, mut at) = (Vec::new(), 0);
    // For each open brace, whether it is that of a module.
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

/// Follows a path, or several in braces, from a module until it names something; returns the number of its tokens.
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

/// Returns all source files of the program and the crates, by their paths in the project.
fn sources() -> BTreeMap<String, String> {
    let root = root();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut folders: Vec<PathBuf> = crates.filter(|src| src.is_dir()).chain([root.join("src")]).collect();
    let mut files = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    files
}

/// Returns a path as in ARCHITECTURE.md: within its crate.
fn within_crate(path: &str) -> &str {
    path.split_once("src/").map_or(path, |(_, inner)| inner)
}

fn architecture() -> String {
    text("docs/ARCHITECTURE.md")
}

#[test]
fn rooms_use_only_what_they_may() {
    let plan = Plan::parse(&architecture());
    let sources = sources();
    assert!(plan.0.len() > 10 && sources.len() > 250, "{} rooms, {} files", plan.0.len(), sources.len());
    // The root of a crate declares its rooms, and may re-export their items.
    let files = sources.iter().filter(|(path, _)| !path.ends_with("src/lib.rs"));
    let wrong: Vec<String> = files.flat_map(|(path, source)| plan.violations(path, source)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_room_may_use_is_below_it_and_there() {
    let plan = Plan::parse(&architecture());
    for (number, room) in plan.0.iter().enumerate() {
        for used in &room.uses {
            let is_below = plan.0[number + 1..].iter().any(|below| below.krate == room.krate && below.name == *used);
            assert!(is_below, "{} uses {used}, which is not below it in its crate", room.name);
        }
    }
    let used: BTreeSet<(String, String, String)> = sources()
        .iter()
        .flat_map(|(path, source)| {
            let (place, room, used) = plan.uses(path, source);
            let krate = place.krate.to_owned();
            used.into_iter().map(move |(_, used)| (krate.clone(), room.clone(), used)).collect::<Vec<_>>()
        })
        .collect();
    for room in &plan.0 {
        for allowed in &room.uses {
            let is_used = used.contains(&(room.krate.clone(), room.name.clone(), allowed.clone()));
            assert!(is_used, "{} no longer uses {allowed}: strike it out", room.name);
        }
    }
}

/// The text may name a file by the end of its path.
#[test]
fn the_files_that_the_architecture_names_are_there() {
    let (text, sources) = (architecture(), sources());
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")).collect();
    // `format/name.rs` is `crates/format/src/name.rs`.
    let is_there = |name: &str| {
        let mut paths = sources.keys().flat_map(|path| [path.clone(), path.replacen("/src/", "/", 1)]);
        paths.any(|path| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
            || root().join(name).is_file()
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
    // Files of this name are modules of tests.
    let program = sources.iter().filter(|(path, _)| !path.ends_with("/tests.rs"));
    let found: Vec<&str> = program.filter(|(_, source)| starts(source)).map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, ["crates/threads/src/lib.rs"]);
}

/// The files outside `domains/` that use a domain by its name: tables and Zarr groups of arrays have the forms of two
/// domains, and the options contain the lists of one.
const FILES_THAT_NAME_A_DOMAIN: [&str; 4] = [
    "crates/tree/src/options.rs",
    "crates/tree/src/texts/description.rs",
    "crates/tree/src/views/tables.rs",
    "crates/tree/src/views/zarr.rs",
];

#[test]
fn only_listed_files_outside_domains_name_one() {
    let sources = sources();
    let folder = "crates/tree/src/domains/";
    let within = sources.keys().filter_map(|path| Some(path.strip_prefix(folder)?.split_once('/')?.0));
    let domains: BTreeSet<&str> = within.collect();
    assert!(domains.len() > 4 && domains.contains("soma"), "{domains:?}");
    let names_one = |source: &str| {
        let words: Vec<&str> = tokens(source).into_iter().map(|(_, word)| word).collect();
        let paths = words.windows(2).enumerate().filter(|(_, two)| *two == ["domains", "::"]);
        let mut behind = paths.map(|(at, _)| words[at + 2..].iter().take_while(|word| !";()".contains(**word)));
        words.contains(&"tilefs_vcf") || behind.any(|mut words| words.any(|word| domains.contains(word)))
    };
    let is_generic = |path: &str| {
        let of_tree = path.starts_with("crates/tree/src/") && !path.starts_with(folder);
        of_tree || ["src/reports/", "src/serve/", "src/cli/"].iter().any(|room| path.starts_with(room))
    };
    let found = sources.iter().filter(|(path, source)| is_generic(path) && names_one(source));
    let found: Vec<&str> = found.map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, FILES_THAT_NAME_A_DOMAIN);
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
        sources.iter().filter(|(_, source)| is_unsafe(source)).map(|(path, _)| within_crate(path)).collect();
    assert_eq!(found, named);
}

/// Returns the violations in a file, under a plan of three rooms.
fn violations(path: &str, source: &str) -> Vec<String> {
    let plan =
        "| `tree/` | a | names | cache, error |\n| `cache/` | a | bytes | error |\n| `error.rs` | a | kinds | |\n";
    let path = format!("crates/a/src/{path}");
    let found = Plan::parse(plan).violations(&path, source);
    found.iter().map(|one| within_crate(one).to_owned()).collect()
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
