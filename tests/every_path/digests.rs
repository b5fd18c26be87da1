//! The digests that are committed: one for each part of each object.
//!
//! A part is a folder of an object with everything in it, or what is directly in the folder of the object (`.`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::walk::PathFacts;

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Returns the full text: a line for each path of the objects, which come by name with their facts.
pub fn full_text(objects: &[(String, Vec<PathFacts>)]) -> String {
    let mut text = String::new();
    for (object, facts) in objects {
        for (path, facts) in facts {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{object}\t{path}\t{facts}");
        }
    }
    text
}

/// Returns the digests of a full text: for each object its name, then a line for each of its parts with the number of its
/// paths and the beginning of a SHA-256.
pub fn digests(text: &str) -> String {
    let mut objects: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for line in text.lines() {
        let (object, rest) = line.split_once('\t').unwrap_or((line, ""));
        let path = rest.split('\t').next().unwrap_or_default();
        objects.entry(object).or_default().entry(part(path)).or_default().push(rest);
    }
    let mut out = String::new();
    for (object, parts) in objects {
        out += &format!("{object}\n");
        for (part, lines) in parts {
            out += &format!("  {} {:3} {part}\n", &digest(lines.join("\n").as_bytes())[..8], lines.len());
        }
    }
    out
}

/// Returns the part of an object to which a path belongs.
fn part(path: &str) -> &str {
    path.split_once('/').map_or(".", |(folder, _)| folder)
}

/// Returns the lines of which a path is in one text only or has other facts, with `-` for the old and `+` for the new.
pub fn differences(old: &str, new: &str) -> Vec<String> {
    let lines = |text: &str| -> BTreeMap<(String, String), String> {
        let columns = text.lines().map(|line| {
            let mut columns = line.splitn(3, '\t').map(str::to_owned);
            let mut next = || columns.next().unwrap_or_default();
            ((next(), next()), next())
        });
        columns.collect()
    };
    let (old, new) = (lines(old), lines(new));
    let paths: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for path in paths.into_iter().filter(|path| old.get(*path) != new.get(*path)) {
        for (sign, side) in [("-", &old), ("+", &new)] {
            found.extend(side.get(path).map(|facts| format!("{sign} {}\t{}\t{facts}", path.0, path.1)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_digest_that_changes_with_its_paths() {
        let facts = |size: u32| {
            let paths = ["", "a.f32", "npy", "npy/a.npy", "slice/first/a.f32", "slice/first"];
            let facts =
                paths.map(|path| (path.to_owned(), format!("file {}", if path.contains("npy/") { size } else { 1 })));
            full_text(&[
                ("demo".to_owned(), facts.to_vec()),
                ("other".to_owned(), vec![(String::new(), "error".to_owned())]),
            ])
        };
        let (old, new) = (digests(&facts(1)), digests(&facts(2)));
        let parts: Vec<&str> = old.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(parts, ["demo", ".", "npy", "slice", "other", "."]);
        let changed: Vec<(&str, &str)> = old.lines().zip(new.lines()).filter(|(old, new)| old != new).collect();
        assert!(changed.len() == 1 && changed[0].0.ends_with(" npy"), "{changed:?}");
        assert_eq!(differences(&facts(1), &facts(2)), ["- demo\tnpy/a.npy\tfile 1", "+ demo\tnpy/a.npy\tfile 2"]);
        assert_eq!(differences(&facts(1), &facts(1)), [""; 0]);
    }
}
