//! Lists of commits: consolidated commits (`.con`), ignored commits (`.ign`) and vacuum files (`.vac`). They are plain
//! text, except for the deletes embedded in `.con` files.
//!
//! A mark is the path of a commit file in the array, such as `__commits/NAME.wrt` or `NAME.ok`.
//!
//! Errors give the offset in the file and quote none of its text: a symbolic link may have led to a file that the
//! reader of the message is not allowed to see.

use tilefs_base::error::{Error, Locate, Result};

use super::folder::{COMMITS, FRAGMENTS, METADATA};

/// The longest line that is accepted, in bytes.
const MAX_LINE: usize = 1 << 16;

/// The most lines that are accepted in an `.ign` or `.vac` file.
const MAX_LINES: usize = 1 << 20;

/// One entry of a file of consolidated commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsolidatedCommit<'a> {
    /// The path of the commit file that the entry stands for, relative to the array.
    pub mark: &'a str,
    /// For a delete, the bytes of its `.del` file: a generic tile.
    pub delete: Option<&'a [u8]>,
}

/// Reads a `.con` file and returns an iterator over its entries, in stored order. Entries are not collected, as there
/// may be a million.
///
/// # Errors
/// [`Error::Damaged`] for an entry that ends early or a mark that is not a path in the array; [`Error::Unsupported`]
/// for marks of anything but fragments and deletes. One wrong entry fails the whole file.
pub fn parse_consolidated_commits(bytes: &[u8]) -> Result<impl Iterator<Item = ConsolidatedCommit<'_>>> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as u64;
        take_commit(&mut rest).at(at)?;
    }
    let mut rest = bytes;
    // All entries parsed above, so none fails here.
    Ok(std::iter::from_fn(move || (!rest.is_empty()).then(|| take_commit(&mut rest).ok())?))
}

/// Splits off the first entry.
fn take_commit<'a>(rest: &mut &'a [u8]) -> Result<ConsolidatedCommit<'a>> {
    let (mark, behind) = line(rest)?;
    check_mark(mark)?;
    *rest = behind;
    let delete = match extension(mark) {
        "wrt" | "ok" => None,
        "del" => {
            let (delete, behind) = split_sized(rest).ok_or_else(|| Error::damaged("delete that ends early"))?;
            *rest = behind;
            Some(delete)
        }
        _ => return Err(Error::unsupported("a consolidated commit that is neither a fragment nor a delete")),
    };
    Ok(ConsolidatedCommit { mark, delete })
}

/// Reads an `.ign` file: the marks to ignore in all files of consolidated commits.
///
/// # Errors
/// [`Error::Damaged`] for a mark that is not a path in the array, [`Error::Unsupported`] for more than 2^20 lines.
pub fn parse_ignored_commits(bytes: &[u8]) -> Result<Vec<&str>> {
    let lines = lines(bytes)?;
    lines.iter().try_for_each(|(at, mark)| check_mark(mark).at(*at))?;
    Ok(lines.into_iter().map(|(_, mark)| mark).collect())
}

/// Reads a `.vac` file: the fragments or metadata files that the file of the same name has replaced, as paths in the
/// array: `__fragments/NAME`, `__meta/NAME`, or `NAME`.
///
/// Writers store relative paths with a leading slash, or URIs of the array's location at that time. Everything before
/// those parts is dropped, so that arrays can be moved.
///
/// # Errors
/// [`Error::Damaged`] for a line without a name, [`Error::Unsupported`] for more than 2^20 lines.
pub fn parse_vacuum(bytes: &[u8]) -> Result<Vec<String>> {
    lines(bytes)?.into_iter().map(|(at, line)| path_in_array(line).at(at)).collect()
}

fn path_in_array(line: &str) -> Result<String> {
    let mut parts: Vec<&str> = line.trim_end_matches('/').split('/').collect();
    // The last such folder counts: earlier ones belong to the location of the array.
    let folder = [FRAGMENTS, METADATA].iter().find_map(|folder| parts.iter().rposition(|part| part == folder));
    let path = parts.split_off(folder.unwrap_or(parts.len().saturating_sub(1)));
    if path.iter().any(|part| matches!(*part, "" | "." | "..") || part.contains(['\0', ':'])) {
        return Err(Error::damaged("a line that is not a path in the array"));
    }
    Ok(path.join("/"))
}

/// Returns the folder of the fragment that a mark commits; `None` if the mark does not name a fragment.
pub fn fragment_of_mark(mark: &str) -> Option<String> {
    let (path, name) = match mark.strip_suffix(".wrt") {
        Some(mark) => {
            let name = mark.strip_prefix(COMMITS)?.strip_prefix('/')?;
            ([FRAGMENTS, "/", name].concat(), name)
        }
        None => mark.strip_suffix(".ok").map(|path| (path.to_owned(), path))?,
    };
    // A name without its extension may be empty or lead out of the folder.
    let is_name = !matches!(name.rsplit('/').next(), None | Some("" | "." | ".."));
    is_name.then_some(path)
}

/// Returns the mark that commits a fragment, given by the path of its folder.
pub fn mark_of_fragment(path: &str) -> String {
    match path.strip_prefix(FRAGMENTS).and_then(|name| name.strip_prefix('/')) {
        Some(name) => [COMMITS, "/", name, ".wrt"].concat(),
        None => [path, ".ok"].concat(),
    }
}

fn extension(mark: &str) -> &str {
    mark.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Checks that a mark is a relative path that cannot leave the array.
fn check_mark(mark: &str) -> Result<()> {
    let leads_out = |byte| matches!(byte, b':' | b'\\' | b'\0');
    let stays = !mark.bytes().any(leads_out) && mark.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if stays { Ok(()) } else { Err(Error::damaged("a mark that is not a path in the array")) }
}

/// Returns the non-empty lines of a text, each with its offset.
fn lines(bytes: &[u8]) -> Result<Vec<(u64, &str)>> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as u64;
        let (text, behind) = line(rest).at(at)?;
        rest = behind;
        if lines.len() == MAX_LINES {
            return Err(Error::unsupported(format!("more than {MAX_LINES} lines")));
        }
        if !text.is_empty() {
            lines.push((at, text));
        }
    }
    Ok(lines)
}

/// Splits off the first line. Only the last line may lack a line break.
fn line(bytes: &[u8]) -> Result<(&str, &[u8])> {
    let ahead = bytes.get(..MAX_LINE).unwrap_or(bytes);
    let (line, behind) = match memchr::memchr(b'\n', ahead) {
        Some(end) => (ahead.get(..end), end.checked_add(1).and_then(|start| bytes.get(start..))),
        None if ahead.len() == bytes.len() => (Some(bytes), Some(&[][..])),
        None => (None, None),
    };
    let (Some(line), Some(behind)) = (line, behind) else {
        return Err(Error::damaged(format!("line of more than {MAX_LINE} bytes")));
    };
    match std::str::from_utf8(line) {
        Ok(line) => Ok((line, behind)),
        Err(_) => Err(Error::damaged("line that is not UTF-8")),
    }
}

/// Splits off a `u64` length and that many bytes.
fn split_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn consolidated_commits_come_back(entries in prop::collection::vec(("[a-z0-9_]{1,9}", 0..3, prop::collection::vec(any::<u8>(), 0..20)), 0..6)) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (name, kind, delete) in &entries {
                let mark = match kind {
                    0 => format!("__commits/{name}.wrt"),
                    1 => format!("{name}.ok"),
                    _ => format!("__commits/{name}.del"),
                };
                bytes.extend(format!("{mark}\n").bytes());
                if *kind == 2 {
                    bytes.extend((delete.len() as u64).to_le_bytes());
                    bytes.extend(delete);
                }
                expected.push((mark, (*kind == 2).then(|| delete.clone())));
            }
            let parsed: Vec<_> = parse_consolidated_commits(&bytes).unwrap()
                .map(|commit| (commit.mark.to_owned(), commit.delete.map(<[u8]>::to_vec))).collect();
            prop_assert_eq!(parsed, expected);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (parse_consolidated_commits(&bytes).map(Iterator::count), parse_ignored_commits(&bytes), parse_vacuum(&bytes));
        }

        #[test]
        fn vacuum_lines_lose_the_location_of_the_array(before in "(/|file:///|s3://)[a-z_/]{0,9}(/__fragments|/__meta)?/x", name in "[a-z0-9_]{1,12}") {
            let vacuum = |path: &str| parse_vacuum(path.as_bytes()).unwrap();
            prop_assert_eq!(vacuum(&format!("{before}/__fragments/{name}\n")), [format!("__fragments/{name}")]);
            prop_assert_eq!(vacuum(&format!("/__fragments/{name}\n/__meta/{name}\n/{name}")),
                [format!("__fragments/{name}"), format!("__meta/{name}"), name]);
        }
    }

    #[test]
    fn vacuum_lines_of_every_writer() {
        let text = "file:///old/place/__1_1_ab_5\nfile:///old/__meta/__2_2_cd/\n\nhdfs://h/__fragments/arrays/x/__fragments/__3_3_ef_16\n";
        assert_eq!(
            parse_vacuum(text.as_bytes()).unwrap(),
            ["__1_1_ab_5", "__meta/__2_2_cd", "__fragments/__3_3_ef_16"]
        );
        for line in ["/..", "/__fragments/../x", "/", "file:///a/__fragments//x"] {
            assert!(parse_vacuum(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn marks_stay_in_the_array() {
        for mark in ["../x.wrt", "/x.wrt", "a//x.ok", "file:///x.ok", "a/./x.ok", "\n", "x.wrt/..", "a\0.ok"] {
            assert!(parse_consolidated_commits(format!("{mark}\n").as_bytes()).is_err(), "{mark:?}");
        }
        assert!(matches!(parse_consolidated_commits(b"__commits/x.upd\n"), Err(Error::Unsupported { .. })));
        assert!(parse_consolidated_commits(b"__commits/x.del\n\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
        assert!(parse_ignored_commits(b"__commits/a.wrt\nb.ok").unwrap() == ["__commits/a.wrt", "b.ok"]);
        assert!(parse_ignored_commits(&[b'a'; MAX_LINE + 1]).is_err());
        assert!(parse_ignored_commits(&b"a\n".repeat(MAX_LINES)).is_ok());
        assert!(parse_vacuum(&b"a\n".repeat(MAX_LINES + 1)).is_err());
    }

    #[test]
    fn fragments_of_marks() {
        assert_eq!(fragment_of_mark("__commits/__1_2_ab_22.wrt").as_deref(), Some("__fragments/__1_2_ab_22"));
        assert_eq!(fragment_of_mark("__1_2_ab_9.ok").as_deref(), Some("__1_2_ab_9"));
        for mark in ["__commits/__1_2_ab_22.wrt", "__1_2_ab_9.ok"] {
            assert_eq!(fragment_of_mark(mark).map(|path| mark_of_fragment(&path)).as_deref(), Some(mark));
        }
        assert_eq!(fragment_of_mark("__commits/__1_2_ab_22.del"), None);
        assert_eq!(fragment_of_mark("elsewhere/__1_2_ab_22.wrt"), None);
        // Without the extension, none of these is a name.
        for mark in [".ok", "F/.ok", "F/...ok", "F/..ok", "__commits/.wrt", "__commits/...wrt", "__commits/F/.wrt"] {
            assert_eq!(fragment_of_mark(mark), None, "{mark}");
        }
    }
}
