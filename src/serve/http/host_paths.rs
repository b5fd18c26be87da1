//! Removes paths of this machine from texts for clients, who should not learn where its files are.
//!
//! The path of what is served is known, and so are those in the place of an error. Other paths are recognised by their
//! form: a slash at the beginning of a word, and another one within it.

use tilefs_base::error::Error;

/// The paths to remove.
#[derive(Debug, Default)]
pub struct HostPaths {
    /// The folder of what is served; `None` if it is not a folder of this machine.
    served: Option<String>,
}

impl HostPaths {
    /// Removes the path of the served folder wherever it appears, and other absolute paths.
    pub fn new(served: Option<&str>) -> Self {
        HostPaths { served: served.and_then(absolute) }
    }

    /// Returns an error as text for clients.
    pub fn hide_in_error(&self, error: &Error) -> String {
        // The file is that of an array, or one that the user has named.
        let known = match error {
            Error::NotAnArray { path, .. } => [Some(path), None],
            _ => error.place().map_or([None, None], |place| [place.array.as_ref(), place.file.as_ref()]),
        };
        self.without(&error.to_string(), &known.map(|path| absolute(path?)))
    }

    /// Returns a text with only the last name of each absolute path.
    pub fn hide(&self, text: &str) -> String {
        self.without(text, &[])
    }

    fn without(&self, text: &str, known: &[Option<String>]) -> String {
        let known = || self.served.iter().chain(known.iter().flatten());
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(slash) = rest.find('/') {
            let (before, path) = rest.split_at(slash);
            shown.push_str(before);
            let end = match begins_path(&shown) {
                true => known().find_map(|known| end_of_known(path, known)).or_else(|| end_of_unknown(path)),
                false => None,
            };
            let (path, after) = path.split_at(end.unwrap_or(1));
            shown.push_str(if end.is_some() { last_name(path) } else { path });
            rest = after;
        }
        shown + rest
    }
}

/// Returns an absolute path without slashes at its end; `None` for a URI or the root of the file system.
fn absolute(path: &str) -> Option<String> {
    let path = path.trim_end_matches('/');
    (path.starts_with('/')).then(|| path.to_owned())
}

/// Returns whether a slash after this text may begin an absolute path: it is not within a word or a URI.
fn begins_path(before: &str) -> bool {
    let is_within = |last: char| last.is_alphanumeric() || "._-~%+@*/)]}\\".contains(last);
    before.ends_with("://") || !before.ends_with(is_within)
}

/// Returns the length of a known path at the beginning of a text. The names below it may follow.
fn end_of_known(text: &str, known: &str) -> Option<usize> {
    let after = text.strip_prefix(known)?;
    let is_longer_name = after.starts_with(|next: char| next.is_alphanumeric() || "_-~%+@".contains(next));
    (!is_longer_name).then_some(known.len())
}

/// Returns the length of what looks like an absolute path at the beginning of a text: two names or more.
fn end_of_unknown(text: &str) -> Option<usize> {
    let ends = |character: char| character.is_whitespace() || "\"'`,;()[]<>|".contains(character);
    let end = text.find(ends).unwrap_or(text.len());
    let path = text.get(..end)?.trim_end_matches([':', '.', '/']);
    let names = path.split('/').filter(|name| !name.is_empty()).count();
    (names >= 2 && !path.starts_with("//")).then_some(path.len())
}

fn last_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tilefs_base::error::Locate;

    use super::*;

    #[test]
    fn only_the_last_name_of_a_path_is_shown() {
        let paths = HostPaths::new(Some("/srv/my data/group/"));
        for (text, shown) in [
            ("array /srv/my data/group/a, file b.tdb", "array group/a, file b.tdb"),
            ("(array /srv/my data/group)", "(array group)"),
            ("/srv/my data/group: no", "group: no"),
            ("link to \"/etc/passwd\" is not followed", "link to \"passwd\" is not followed"),
            ("cannot open /var/tmp/tilefs/spill.7: full", "cannot open spill.7: full"),
            ("--index=/var/cache/tilefs.", "--index=tilefs."),
            ("file:///srv/other/array", "file://array"),
            ("s3://bucket/srv/my data/group", "s3://bucket/srv/my data/group"),
            ("http://127.0.0.1:80/a/b and a/b/c, 1/2, m/s, a // comment / b", ""),
            ("the path is /", ""),
            ("/m2/s", "s"),
            ("unit /s", ""),
            ("größe: /mnt/ä/ö", "größe: ö"),
        ] {
            assert_eq!(paths.hide(text), if shown.is_empty() { text } else { shown });
        }
        assert_eq!(HostPaths::new(None).hide("array /a/b/c"), "array c");
        assert_eq!(HostPaths::new(Some("/")).hide("array /a"), "array /a");
        assert_eq!(HostPaths::new(Some("/demo")).hide("array /demo, /demonstration"), "array demo, /demonstration");
    }

    #[test]
    fn the_place_of_an_error_is_hidden_whatever_its_name() {
        let paths = HostPaths::new(Some("/srv/group"));
        let error = Error::damaged("bad chunk").in_file("a0.tdb").in_array("/mnt/other disk, old/a (1)");
        assert_eq!(paths.hide_in_error(&error), "damaged data: bad chunk (array a (1), file a0.tdb)");
        let error = Error::missing("no contig 7").in_file("/mnt/other disk/ref.fa").in_array("/srv/group/a");
        assert_eq!(paths.hide_in_error(&error), "missing: no contig 7 (array group/a, file ref.fa)");
        let error = Error::NotAnArray { path: "/mnt/other disk/x".to_owned(), reason: "neither".to_owned() };
        assert_eq!(paths.hide_in_error(&error), "x: neither");
    }
}
