//! Dependencies have the licences and the versions that `deny.toml` allows.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use support::repository::{root, text};

/// Returns the packages that are compiled for Linux on x86-64: their names, versions and licences.
fn packages() -> Vec<(String, String, String)> {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = cargo.current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let resolved = list(&metadata["resolve"]["nodes"]);
    let resolved: BTreeSet<String> = resolved.iter().map(|node| text(&node["id"])).collect();
    let packages = list(&metadata["packages"]).into_iter().filter(|package| resolved.contains(&text(&package["id"])));
    packages.map(|one| (text(&one["name"]), text(&one["version"]), text(&one["license"]))).collect()
}

/// Returns the first quoted text of each line between a line that begins like this and the next `]`.
fn listed<'a>(rules: &'a str, start: &str) -> BTreeSet<&'a str> {
    let (_, list) = rules.split_once(&format!("\n{start} = [\n")).expect("the list is there");
    let (list, _) = list.split_once("\n]").expect("the list ends");
    list.lines().filter_map(|line| line.split('"').nth(1)).collect()
}

/// Returns whether an expression of licences, such as `(MIT OR Apache-2.0) AND Unicode-3.0`, permits a use under allowed
/// licences.
fn permits(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let (mut depth, mut parts, mut start) = (0, [Vec::new(), Vec::new()], [0, 0]);
    for (at, character) in expression.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth > 0 => {}
            _ => {
                for (kind, words) in [&[" OR ", "/"][..], &[" AND "]].into_iter().enumerate() {
                    if let Some(word) = words.iter().find(|word| expression[at..].starts_with(**word)) {
                        parts[kind].push(&expression[start[kind]..at]);
                        start[kind] = at + word.len();
                    }
                }
            }
        }
    }
    let [any, all] = [0, 1].map(|kind| [&parts[kind][..], &[&expression[start[kind]..]]].concat());
    match expression.trim() {
        _ if any.len() > 1 => any.iter().any(|part| permits(part, is_allowed)),
        _ if all.len() > 1 => all.iter().all(|part| permits(part, is_allowed)),
        whole if whole.starts_with('(') => permits(&whole[1..whole.len() - 1], is_allowed),
        licence => is_allowed(licence),
    }
}

#[test]
fn dependencies_have_allowed_licences() {
    let rules = text("deny.toml");
    let (allowed, packages) = (listed(&rules, "allow"), packages());
    let wrong = packages.iter().filter(|(_, _, licence)| !permits(licence, &|one| allowed.contains(one)));
    let wrong: Vec<_> = wrong.collect();
    assert!(packages.len() > 100 && wrong.is_empty(), "{wrong:?}");
    let needed = |licence: &str| packages.iter().any(|(_, _, of)| !permits(of, &|one| one != licence));
    let needless: Vec<_> = allowed.iter().filter(|licence| !needed(licence)).collect();
    assert!(needless.is_empty(), "no dependency needs {needless:?} in deny.toml");
}

#[test]
fn dependencies_have_one_version_but_those_listed() {
    let rules = text("deny.toml");
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, version, _) in packages() {
        versions.entry(name).or_default().push(version);
    }
    let repeated = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    let older = repeated.flat_map(|(name, mut versions)| {
        versions.sort_by_key(|version| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>());
        versions.pop();
        versions.into_iter().map(move |version| format!("{name}@{version}"))
    });
    let older: Vec<String> = older.collect();
    let listed = listed(&rules, "skip");
    let covers = |listed: &str, one: &str| one.strip_prefix(listed).is_some_and(|rest| rest.starts_with('.'));
    let new: Vec<_> = older.iter().filter(|one| !listed.iter().any(|listed| covers(listed, one))).collect();
    assert!(new.is_empty(), "beside a newer version: {new:?}");
    let gone: Vec<_> = listed.iter().filter(|listed| !older.iter().any(|one| covers(listed, one))).collect();
    assert!(gone.is_empty(), "no longer there, strike out of deny.toml: {gone:?}");
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = |licence: &str| ["MIT", "ISC", "Zlib"].contains(&licence);
    for (expression, is_permitted) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND ISC", true),
        ("(MIT OR GPL-3.0) AND GPL-2.0", false),
        ("MIT OR GPL-3.0 AND GPL-2.0", true),
        ("GPL-3.0 OR (ISC AND Zlib)", true),
        ("", false),
    ] {
        assert_eq!(permits(expression, &allowed), is_permitted, "{expression}");
    }
}
