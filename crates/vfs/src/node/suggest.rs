//! Suggestions for a path that does not exist.

use std::cmp::Reverse;

use tilefs_base::misspelt::wrong_letters;

use crate::node::{Folder, Node};

/// Returns the existing path that is nearest to a missing one, if any is near: `text/cells.tsv` for `cells.tsv`,
/// `t2m.f64` for `t2m` or `t2m.f32`, `temp.f32` for `tmp.f32`. Considers only names that are known without reading
/// anything.
pub fn suggestion(root: &dyn Folder, wanted: &str) -> Option<String> {
    let names: Vec<&str> = wanted.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    // The last folder of the path that exists, and its depth.
    let (mut found, mut depth): (Option<Node>, usize) = (None, 0);
    for name in &names {
        let next = match &found {
            None => root.lookup(name),
            Some(Node::Folder(folder)) => folder.lookup(name),
            Some(Node::File(_)) => return None,
        };
        match next {
            Ok(Some(node)) => (found, depth) = (Some(node), depth + 1),
            _ => break,
        }
    }
    let (before, rest) = (names.get(..depth)?.join("/"), names.get(depth..)?.join("/"));
    let within = |folder: &dyn Folder| nearest(&rest, &folder.known_paths()).map(str::to_owned);
    match &found {
        Some(Node::Folder(folder)) => match within(&**folder) {
            Some(path) => Some(format!("{before}/{path}")),
            // In a different folder from the one searched.
            None => nearest(names.last()?, &root.known_paths()).map(str::to_owned),
        },
        Some(Node::File(_)) => None,
        None => within(root),
    }
}

/// Returns the path below a folder that is nearest to a missing name in it, if any is near. Considers only names that
/// are known without reading anything, and only if there are few, since programs may ask for many missing names.
pub fn suggestion_in(folder: &dyn Folder, wanted: &str) -> Option<String> {
    let paths = folder.known_paths();
    if paths.len() > MAX_PATHS { None } else { nearest(wanted, &paths).map(str::to_owned) }
}

/// Maximum number of paths that [`suggestion_in`] compares.
const MAX_PATHS: usize = 1000;

/// Returns the path nearest to the wanted one; among equally near ones, the one with the fewest folders, and then the
/// first.
pub fn nearest<'a>(wanted: &str, paths: &'a [String]) -> Option<&'a str> {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = last(wanted);
    let rated = paths.iter().filter_map(|path| Some((distance(&name, &last(path))?, path.matches('/').count(), path)));
    rated.min_by_key(|(distance, folders, _)| (*distance, *folders)).map(|(.., path)| path.as_str())
}

/// Returns the distance of a name from the wanted one; `None` if it is too large.
fn distance(wanted: &str, name: &str) -> Option<(u8, usize, Reverse<usize>)> {
    let stem = |name: &str| name.split_once('.').map_or(name.to_owned(), |(stem, _)| stem.to_owned());
    let extends = |start: &str| name.strip_prefix(start).is_some_and(|rest| rest.starts_with('.'));
    if wanted == name {
        return Some((0, 0, Reverse(0)));
    }
    if extends(wanted) {
        return Some((1, 0, Reverse(0)));
    }
    // The same attribute in another form: the one with the longest common name.
    let without_extension = wanted.rsplit_once('.').map_or(wanted, |(stem, _)| stem);
    if !without_extension.is_empty()
        && wanted.contains('.')
        && (extends(without_extension) || stem(name) == stem(wanted))
    {
        let agreeing = wanted.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        return Some((2, 0, Reverse(agreeing)));
    }
    if let Some(wrong) = wrong_letters(wanted, name) {
        return Some((3, wrong, Reverse(0)));
    }
    // A typing error, possibly with a missing extension.
    wrong_letters(&stem(wanted), &stem(name)).map(|wrong| (4, wrong, Reverse(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_path_is_suggested() {
        let paths = [
            "README.txt",
            "schema.json",
            "t2m.f64",
            "t2m.f64.hdr",
            "t2m.vrt",
            "temp.valid.u8",
            "lat.data.f64",
            "text",
            "text/t2m.txt",
            "text/cells.tsv",
            "text/cells.csv",
            "slice",
            "islice",
            "tiff/t2m.tif",
            "npy/t2m.npy",
            "by-row/text/cells.tsv",
        ];
        let paths: Vec<String> = paths.map(str::to_owned).to_vec();
        for (wanted, expected) in [
            ("t2m", Some("t2m.f64")),
            ("t2m.f32", Some("t2m.f64")),
            ("T2M.F64", Some("t2m.f64")),
            ("t2.f64", Some("t2m.f64")),
            ("tm2", Some("t2m.f64")),
            ("t2m.tif", Some("tiff/t2m.tif")),
            ("npy/t2m.tif", Some("tiff/t2m.tif")),
            ("t2m.tiff", Some("tiff/t2m.tif")),
            ("lat.data", Some("lat.data.f64")),
            ("lat.data.f32", Some("lat.data.f64")),
            ("cells.tsv", Some("text/cells.tsv")),
            ("cells.parquet", Some("text/cells.tsv")),
            ("readme.txt", Some("README.txt")),
            ("slices", Some("slice")),
            ("txt", Some("text")),
            ("humidity", None),
            ("x", None),
        ] {
            assert_eq!(nearest(wanted, &paths), expected, "{wanted}");
        }
    }
}
