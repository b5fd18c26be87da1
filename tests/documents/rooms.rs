//! Checks crates and rooms against ARCHITECTURE.md: a crate uses those that its row names, and within its crate, each room
//! uses only those that its row names. All of them are below it.

use std::collections::BTreeSet;
use std::fs;

use support::repository::{files_below, root, text};

use crate::sources::{Crate, Edge, Module, with_crates};

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

    /// Returns the room of a module: that with the name of its first folder or file, or else that with the name of the
    /// crate.
    fn room_of<'a>(&self, krate: &'a str, module: &'a Module) -> &'a str {
        let first = module.names.first().map_or("lib", String::as_str);
        if self.find(krate, first).is_none() && self.find(krate, krate).is_some() { krate } else { first }
    }

    /// Returns the uses of other rooms in a crate, each with the names of both rooms.
    fn uses<'a>(&'a self, of: &'a Crate) -> impl Iterator<Item = (Edge<'a>, &'a str, &'a str)> {
        let rooms = of.edges().map(|edge| {
            let (from, to) = (self.room_of(&of.name, edge.from), self.room_of(&of.name, edge.to));
            (edge, from, to)
        });
        rooms.filter(|(_, from, to)| from != to)
    }
}

fn plan() -> Plan {
    Plan::parse(&text("docs/ARCHITECTURE.md"))
}

#[test]
fn rooms_use_only_what_they_may() {
    let wrong = with_crates(|crates| forbidden_uses(&plan(), crates));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the uses of rooms that their rows do not name, and rooms that have no row.
fn forbidden_uses(plan: &Plan, crates: &[Crate]) -> Vec<String> {
    let modules: usize = crates.iter().map(|one| one.modules.len()).sum();
    assert!(plan.0.len() > 10 && modules > 250, "{} rooms, {modules} modules", plan.0.len());
    let mut wrong = Vec::new();
    for of in crates {
        let rooms: BTreeSet<&str> = of
            .modules
            .iter()
            .filter(|module| !module.names.is_empty())
            .map(|module| plan.room_of(&of.name, module))
            .collect();
        let unknown = rooms.into_iter().filter(|room| plan.find(&of.name, room).is_none());
        wrong.extend(unknown.map(|room| format!("{}: {room} is no room of ARCHITECTURE.md", of.name)));
        // The root of a crate declares its rooms, and may re-export their items.
        for (edge, from, to) in plan.uses(of).filter(|(edge, ..)| !edge.from.names.is_empty()) {
            if plan.find(&of.name, from).is_some_and(|room| !room.uses.contains(to)) {
                wrong.push(format!("{}:{}: {from} may not use {to}", edge.from, edge.line));
            }
        }
    }
    wrong
}

#[test]
fn what_a_room_may_use_is_below_it_and_there() {
    let plan = plan();
    for (number, room) in plan.0.iter().enumerate() {
        for used in &room.uses {
            let is_below = plan.0[number + 1..].iter().any(|below| below.krate == room.krate && below.name == *used);
            assert!(is_below, "{} uses {used}, which is not below it in its crate", room.name);
        }
    }
    let used: BTreeSet<[String; 3]> = with_crates(|crates| {
        let plan = self::plan();
        let used =
            crates.iter().flat_map(|of| plan.uses(of).map(|(_, from, to)| [&*of.name, from, to].map(str::to_owned)));
        used.collect()
    });
    for room in &plan.0 {
        for allowed in &room.uses {
            let is_used = used.contains(&[&room.krate, &room.name, allowed].map(String::clone));
            assert!(is_used, "{} no longer uses {allowed}: strike it out", room.name);
        }
    }
}

/// Returns the crates of the architecture, with those that they use.
fn planned_crates(architecture: &str) -> Vec<(String, BTreeSet<String>)> {
    let table = architecture.lines().skip_while(|line| !line.starts_with("| crate | what it is |")).skip(2);
    let rows = table.map_while(|line| line.strip_prefix("| ")?.strip_suffix('|')).map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, _, used] = cells[..] else { panic!("{row}: not three cells") };
        (name.to_owned(), used.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
    });
    rows.collect()
}

/// Returns the crates of this workspace that a manifest names as dependencies, without those of tests only.
fn used_crates(manifest: &str) -> BTreeSet<String> {
    let dependencies = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = dependencies.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split(['.', ' ']).next());
    let own = names.filter_map(|name| name.strip_prefix("tilefs-").or((name == "hdf5-layout").then_some(name)));
    own.map(str::to_owned).collect()
}

#[test]
fn crates_use_those_that_their_rows_name() {
    let planned = planned_crates(&text("docs/ARCHITECTURE.md"));
    let folders = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut crates: BTreeSet<String> = folders.map(|name| name.into_string().unwrap()).collect();
    crates.insert("tilefs".to_owned());
    assert_eq!(planned.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), crates);
    for (number, (name, used)) in planned.iter().enumerate() {
        let manifest = if name == "tilefs" { "Cargo.toml".to_owned() } else { format!("crates/{name}/Cargo.toml") };
        assert_eq!(*used, used_crates(&text(&manifest)), "{manifest} and the row of {name} in ARCHITECTURE.md");
        let is_below = |used: &String| planned[number + 1..].iter().any(|(below, _)| below == used);
        let above: Vec<_> = used.iter().filter(|used| !is_below(used)).collect();
        assert!(above.is_empty(), "{name} uses {above:?}, which are not below it");
    }
}

/// Returns the places of all source files of the program and the crates, each with its text.
pub fn sources() -> Vec<(String, String)> {
    let files = ["crates", "src"].into_iter().flat_map(|folder| files_below(&root().join(folder), &["rs"]));
    let places = files.map(|file| (file.strip_prefix(root()).unwrap_or(&file).display().to_string(), file.clone()));
    places
        .filter(|(place, _)| format!("/{place}").contains("/src/"))
        .map(|(place, file)| (place, fs::read_to_string(file).unwrap()))
        .collect()
}

/// Returns the lines of a text without comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or_default())
}

/// The texts may name a file by the end of its path, if no other path ends so.
#[test]
fn the_files_that_the_architecture_names_are_there() {
    let (architecture, contributing, sources) = (text("docs/ARCHITECTURE.md"), text("CONTRIBUTING.md"), sources());
    let quoted = [&architecture, &contributing].into_iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let is_source = |name: &&str| [".rs", ".py", ".pyi", ".sh"].iter().any(|ending| name.ends_with(ending));
    let named: BTreeSet<&str> = quoted.filter(is_source).collect();
    let ends = |path: &str, name: &str| path == name || path.ends_with(&format!("/{name}"));
    // `format/name.rs` is `crates/format/src/name.rs`.
    let is_of = |path: &str, name: &str| ends(path, name) || ends(&path.replacen("/src/", "/", 1), name);
    let matches = |name: &str| sources.iter().filter(|(path, _)| is_of(path, name)).count();
    let is_room = |name: &str| architecture.contains(&format!("\n| `{name}` | "));
    let wrong = named.iter().filter(|name| matches(name) != 1 && !is_room(name) && !root().join(name).is_file());
    let wrong: Vec<String> = wrong.map(|name| format!("{name}: {} files", matches(name))).collect();
    assert!(named.len() > 20 && wrong.is_empty(), "{} named, not one file each: {wrong:#?}", named.len());
}

#[test]
fn threads_start_in_one_place() {
    let sources = sources();
    // Files of this name are modules of tests; in other files, a module of tests stands at the end.
    let program = sources.iter().filter(|(path, _)| !path.ends_with("/tests.rs"));
    let starts = |text: &str| {
        let program = text.split("mod tests {").next().unwrap_or_default();
        let ways = ["thread::Builder", "thread::scope", "thread::spawn", "spawn_scoped"];
        code(program).any(|line| ways.iter().any(|way| line.contains(way)))
    };
    let found: Vec<&str> = program.filter(|(_, text)| starts(text)).map(|(path, _)| path.as_str()).collect();
    assert_eq!(found, ["crates/threads/src/lib.rs"]);
}

#[test]
fn no_file_outside_domains_names_one() {
    let sources = sources();
    let folder = "crates/tree/src/domains/";
    let within = sources.iter().filter_map(|(path, _)| Some(path.strip_prefix(folder)?.split_once('/')?.0));
    let domains: BTreeSet<&str> = within.collect();
    assert!(domains.len() > 4 && domains.contains("soma"), "{domains:?}");
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let names_one = |source: &str| {
        code(source).any(|line| {
            let behind =
                line.split("domains::").skip(1).map(|path| path.split([';', '(', ')']).next().unwrap_or_default());
            let mut words = behind.flat_map(|path| path.split(|character| !is_word(character)));
            line.contains("tilefs_vcf") || words.any(|word| domains.contains(word))
        })
    };
    let is_generic = |path: &str| {
        let of_tree = path.starts_with("crates/tree/src/") && !path.starts_with(folder);
        of_tree || ["src/serve/", "src/cli/"].iter().any(|room| path.starts_with(room))
    };
    let named = sources.iter().filter(|(path, source)| is_generic(path) && names_one(source));
    let named: Vec<&str> = named.map(|(path, _)| path.as_str()).collect();
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn unsafe_code_is_only_where_the_architecture_names_it() {
    let text = text("docs/ARCHITECTURE.md");
    let named: BTreeSet<&str> = text
        .split("\n\n")
        .filter_map(|paragraph| paragraph.strip_prefix("`unsafe` is in "))
        .flat_map(|list| list.split('`').filter(|name| name.ends_with(".rs")))
        .collect();
    let sources = sources();
    let ways = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait", "unsafe(", "unsafe_code"];
    let is_unsafe = |line: &str| ways.iter().any(|way| line.contains(way));
    let found = sources.iter().filter(|(_, text)| code(text).any(is_unsafe));
    let found: BTreeSet<&str> = found.map(|(path, _)| path.split_once("src/").map_or("", |(_, inner)| inner)).collect();
    assert_eq!(found, named);
}

/// Returns the uses of one module by another in a crate of these files, as `line: from uses to`.
fn uses(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join("src").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let parsed = Crate::parse(&folder.path().join("src/lib.rs"));
    let edges = parsed.edges();
    edges
        .map(|edge| format!("{}: {} uses {}", edge.line, edge.from.names.join("::"), edge.to.names.join("::")))
        .collect()
}

/// Returns the uses that a text has as the module `cache::a` of a small crate.
fn uses_in(text: &str) -> Vec<String> {
    let root = "pub mod cache; pub mod error; pub mod tree; pub struct Root;";
    let tree = "pub use leaf::Leaf; use crate::error::Kind; pub mod leaf { pub struct Leaf; }";
    uses(&[
        ("lib.rs", root),
        ("cache/mod.rs", "mod a; struct Cache;"),
        ("cache/a.rs", text),
        ("error.rs", "pub enum Kind {}"),
        ("tree.rs", tree),
    ])
    .into_iter()
    .filter(|line| line.contains("cache"))
    .collect()
}

#[test]
fn a_use_is_found_wherever_it_is() {
    for (text, found) in [
        ("//! Docs.\n\nuse crate::tree::Node;", "3: cache::a uses tree"),
        ("use crate::{\n  error,\n};", "2: cache::a uses error"),
        ("fn f() {\n g(&[crate::tree::A]); }", "2: cache::a uses tree"),
        ("fn f() {\n vec![crate::tree::A]; }", "2: cache::a uses tree"),
        ("use super::super::tree::Node;", "1: cache::a uses tree"),
        ("use super::Cache;", "1: cache::a uses cache"),
        ("use crate::tree::Leaf;", "1: cache::a uses tree::leaf"),
        ("use crate::tree::leaf::*;", "1: cache::a uses tree::leaf"),
        ("fn f() -> crate::Root {}", "1: cache::a uses "),
        ("macro_rules! a { () => { $crate::tree::b() } }", "1: cache::a uses tree"),
        ("mod tests {\n  use super::super::super::tree;\n}", "2: cache::a::tests uses tree"),
        ("impl crate::tree::Named for Here {}", "1: cache::a uses tree"),
    ] {
        assert_eq!(uses_in(text), [found], "{text}");
    }
    assert_eq!(uses_in("use super::super::{error, tree::{Leaf, Open}};").len(), 3);
    assert_eq!(uses_in("use crate::tree;\nfn f() { tree::open() }").len(), 2);
}

#[test]
fn what_is_only_said_is_no_use() {
    for text in [
        "// crate::tree\n/// [`crate::tree`]\nconst A: &str = \"crate::tree\";",
        "/* /* a */ crate::tree */ const A: (&str, char) = (r#\"\" crate::tree\"#, '\"'); // crate::tree \"",
        "use std::error::Error;\npub(crate) fn f() {}",
        "mod b {}\nuse self::b as c;\nfn tree() { tree() }",
    ] {
        let found: Vec<String> = uses_in(text).into_iter().filter(|line| !line.ends_with("a::b")).collect();
        assert_eq!(found, Vec::<String>::new(), "{text}");
    }
}
