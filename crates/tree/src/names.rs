//! The file names of things that users named: attributes, dimensions, metadata keys, enumerations, members of groups.
//! One rule for all of them:
//!
//! 1. A name is its own file name. `%`, `/`, `\`, a leading `.`, and characters that steer how text is shown are
//!    percent-escaped; the empty name is `%`. Zarr's and GDAL's libraries take `\` for a path separator. The anonymous
//!    attribute is called `data`, an anonymous dimension `__dim_` and its number.
//! 2. If that collides with a reserved name, or with a file of another name, its first character is escaped too, or as
//!    many characters as necessary: an attribute `schema` of text is `%73chema.txt`.
//! 3. A result longer than [`LONGEST`] bytes is cut, and the rest replaced by `%~` and 16 hexadecimal digits of a hash
//!    of the name. A name that occurs repeatedly (members of a group) is followed by `%~2`, `%~3`, ...
//!
//! [`unescape`] reverses 1 and 2. The names of 3 cannot be reversed, and are recognised by their `%~`; schema.json has
//! both names of everything.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use tilefs_base::characters::steers;
use tilefs_base::hex::hex;
use tilefs_base::percent;

/// The longest file name without its extension, in bytes: 255, which file systems allow, minus 31 for extensions.
pub const LONGEST: usize = 224;

/// The anonymous attribute's name.
const ANONYMOUS: &str = "data";

/// The start of the part of a file name that is not an escape.
const MARK: &str = "%~";

/// Names that fields of an array may not have.
#[derive(Debug)]
pub struct ReservedNames {
    /// Reserved names in the folder of the array.
    pub in_array: Vec<&'static str>,
    /// The endings of the files of an attribute, in which `.EXT` stands for that of its type.
    pub endings: Vec<&'static str>,
}

/// Reserved names in the folder of an array, besides the folders of views.
pub const OF_ARRAYS: &[&str] = &[
    "README.txt",
    "schema.json",
    "schema.txt",
    "raster.json",
    "fragments.tsv",
    "meta.json",
    "meta",
    "dims",
    "enums",
    "labels",
    "slice",
    "islice",
    "nonempty",
    "by-row",
    "contents",
    ".history",
];

/// Reserved names in the folder of a group, and in its `zarr/`, where members have the same names.
pub const OF_GROUPS: &[&str] = &["README.txt", ".group", ".history", "zarr", "zarr2", "zarr.json", "netcdf", "tiff"];

/// Reserved names in a plain folder of arrays and groups.
pub const OF_DIRECTORIES: &[&str] = &["README.txt"];

/// Returns the file name of a single name: steps 1 and 3 of the rule.
pub fn escape(name: &str) -> String {
    shortened(escaped(name, 0), name.as_bytes())
}

/// As [`escape`], for a name that may not be UTF-8: then each of its bytes is escaped.
pub fn escape_bytes(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(name) => escape(name),
        Err(_) => {
            let mut escaped = String::new();
            percent::escape(name, &mut escaped);
            shortened(escaped, name)
        }
    }
}

/// Returns whether a file name was cut, so that only a table of names tells from which name it was made.
pub fn is_shortened(file: &str) -> bool {
    file.contains(MARK)
}

/// Returns the name from which a file name without its extension was made; `None` if that name cannot be determined
/// (`%~`, broken escapes).
pub fn unescape(file: &str) -> Option<String> {
    String::from_utf8(percent::unescape(file).ok()?).ok()
}

/// The file names of one folder, assigned so that no two files have the same name.
///
/// The result depends on the order of calls: use the order of the schema.
#[derive(Debug, Clone)]
pub struct FileNames {
    reserved: Vec<String>,
    /// The names without extensions, each with the number of its extensions in `extensions`.
    stems: HashMap<String, usize>,
    /// Lists of extensions. Many names have the same.
    extensions: Vec<Vec<String>>,
    /// Whether any of the stems has a dot, so that it may be another stem with an extension.
    have_dots: bool,
    /// How often each name was given.
    given: HashMap<String, u32>,
}

impl FileNames {
    /// Creates the names of a folder in which these are reserved: [`OF_ARRAYS`], [`OF_GROUPS`].
    pub fn new(reserved: &[&str]) -> Self {
        let reserved = reserved.iter().map(|&name| name.to_owned()).collect();
        let (stems, extensions, given) = (HashMap::new(), Vec::new(), HashMap::new());
        FileNames { reserved, stems, extensions, have_dots: false, given }
    }

    /// Returns the file name, without extension, of a user's name; it is unused with each of the extensions (which
    /// start with their dot; `""` for none), and reserved from now on. No two calls return the same file name.
    pub fn give(&mut self, name: &str, extensions: &[&str]) -> String {
        let given = self.given.entry(name.to_owned()).or_insert(0);
        *given += 1;
        let copy = *given;
        let first =
            (0..=name.chars().count()).map(|count| escaped(name, count)).take_while(|stem| stem.len() <= LONGEST);
        let short = || shortened(escaped(name, 0), name.as_bytes());
        let stem = match copy {
            1 => first.chain([short()]).find(|stem| self.is_free(stem, extensions)),
            _ => None,
        };
        // Only file names of the same user's name can end in its digits and this number.
        let stem = stem.unwrap_or_else(|| format!("{}{MARK}{copy}", short()));
        self.take(&stem, extensions);
        stem
    }

    /// Like [`FileNames::give`], for an attribute: the anonymous attribute is called `data` if that name is unused.
    pub fn give_attribute(&mut self, name: &str, extensions: &[&str]) -> String {
        if name.is_empty() && self.is_free(ANONYMOUS, extensions) {
            self.take(ANONYMOUS, extensions);
            return ANONYMOUS.to_owned();
        }
        self.give(name, extensions)
    }

    fn is_free(&self, stem: &str, extensions: &[&str]) -> bool {
        let is_reserved = |name: &String| name.strip_prefix(stem).is_some_and(|rest| extensions.contains(&rest));
        // The same stem with another extension would be the same file in a folder of one format (`npy/`).
        if self.stems.contains_key(stem) || self.reserved.iter().any(is_reserved) {
            return false;
        }
        // Extensions begin with a dot, so only a stem with a dot is another stem with a part of an extension.
        let may_meet = self.have_dots || stem.contains('.');
        !may_meet || extensions.iter().all(|extension| !self.is_taken(&format!("{stem}{extension}")))
    }

    /// Returns whether a file is a stem with one of its extensions.
    fn is_taken(&self, file: &str) -> bool {
        let ends = file.match_indices('.').map(|(end, _)| end).chain([file.len()]);
        ends.map(|end| file.split_at(end)).any(|(stem, extension)| {
            let own = self.stems.get(stem).and_then(|&number| self.extensions.get(number));
            own.is_some_and(|own| own.iter().any(|own| own == extension))
        })
    }

    fn take(&mut self, stem: &str, extensions: &[&str]) {
        let known = self.extensions.iter().rposition(|known| known == extensions);
        let number = known.unwrap_or_else(|| {
            self.extensions.push(extensions.iter().map(|&extension| extension.to_owned()).collect());
            self.extensions.len() - 1
        });
        self.have_dots |= stem.contains('.');
        self.stems.insert(stem.to_owned(), number);
    }
}

/// Escapes the required characters of a name, and its first `count` characters.
fn escaped(name: &str, count: usize) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    let mut out = String::with_capacity(name.len());
    for (number, character) in name.chars().enumerate() {
        let hidden = number == 0 && character == '.';
        if number < count || hidden || matches!(character, '%' | '/' | '\\') || steers(character) {
            percent::escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
        } else {
            out.push(character);
        }
    }
    out
}

/// Shortens an escaped name if it is too long.
fn shortened(escaped: String, name: &[u8]) -> String {
    if escaped.len() <= LONGEST {
        return escaped;
    }
    let digits = hex(&Sha256::digest(name)[..8]);
    // Also leaves space for the number of a repetition: `%~` and ten digits.
    let mut end = LONGEST - 2 * MARK.len() - digits.len() - 10;
    while !escaped.is_char_boundary(end) {
        end -= 1;
    }
    // Do not cut an escape.
    if let Some(start) = escaped[..end].rfind('%').filter(|start| end - start < 3) {
        end = start;
    }
    format!("{}{MARK}{digits}", &escaped[..end])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_stay() {
        for name in
            ["temp", "air temperature", "größe", "a.b", "a'b\"c", "-x", "soma_dim_0", "..a".trim_start_matches('.')]
        {
            assert_eq!(escape(name), name);
        }
    }

    #[test]
    fn invalid_file_names_are_escaped() {
        for (name, file) in [
            ("", "%"),
            (".", "%2E"),
            ("..", "%2E."),
            (".hidden", "%2Ehidden"),
            ("a/b", "a%2Fb"),
            ("\\a\\", "%5Ca%5C"),
            ("100%", "100%25"),
            ("a\nb\0\u{7f}\u{85}", "a%0Ab%00%7F%C2%85"),
            ("%~", "%25~"),
            ("a\u{202e}fdp", "a%E2%80%AEfdp"),
            ("\u{feff}a\u{2066}", "%EF%BB%BFa%E2%81%A6"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        ] {
            assert_eq!(escape(name), file);
            assert_eq!(unescape(file).as_deref(), Some(name));
        }
    }

    #[test]
    fn colliding_names_are_distinguished() {
        let mut names = FileNames::new(OF_ARRAYS);
        assert_eq!(names.give("schema", &[".bytes", ".offsets.u64", ".txt"]), "%73chema");
        assert_eq!(names.give("temp", &[".f32", ".f32.hdr", ".valid.u8"]), "temp");
        assert_eq!(names.give("temp.valid", &[".u8"]), "%74emp.valid");
        assert_eq!(names.give("temp.f32", &[".u8"]), "temp.f32");
        assert_eq!(names.give("meta", &[".f32"]), "meta");
        let mut names = FileNames::new(OF_GROUPS);
        assert_eq!(names.give("README.txt", &[""]), "%52EADME.txt");
        assert_eq!(names.give("zarr.json", &[""]), "%7Aarr.json");
        assert_eq!(names.give("X", &[""]), "X");
        assert_eq!(names.give("X", &[""]), "X%~2");
        assert_eq!(names.give("X", &[""]), "X%~3");
    }

    #[test]
    fn the_anonymous_attribute_is_data() {
        let mut names = FileNames::new(OF_ARRAYS);
        assert_eq!(names.give_attribute("", &[".f32"]), "data");
        // Another type, but `npy/data.npy` would be the same file.
        assert_eq!(names.give_attribute("data", &[".i32"]), "%64ata");
        let mut names = FileNames::new(OF_ARRAYS);
        assert_eq!(names.give_attribute("data", &[".i32"]), "data");
        assert_eq!(names.give_attribute("", &[".f32"]), "%");
    }

    #[test]
    fn long_names_are_cut_between_escapes() {
        let name = "/".repeat(300);
        let file = escape(&name);
        assert!(file.len() <= LONGEST);
        assert_eq!(unescape(&file), None);
        assert_ne!(file, escape(&"/".repeat(301)));
        let (kept, digits) = file.split_once("%~").unwrap();
        assert_eq!(kept, "%2F".repeat(kept.len() / 3));
        assert_eq!(digits.len(), 16);
        assert_eq!(escape(&"x".repeat(224)), "x".repeat(224));
        let mut names = FileNames::new(&[]);
        assert_eq!(names.give(&name, &[""]), file);
        assert_eq!(names.give(&name, &[""]), format!("{file}%~2"));
        assert!(escape(&"ä".repeat(200)).starts_with("ää"));
        assert_eq!(escape_bytes("ä/".as_bytes()), "ä%2F");
        assert_eq!(escape_bytes(b"a\xff"), "%61%FF");
        let latin = escape_bytes(&[0xe4; 100]);
        assert!(latin.len() <= LONGEST && latin.starts_with("%E4%E4") && latin.contains("%E4%~"), "{latin}");
        assert_ne!(latin, escape_bytes(&[0xe4; 101]));
    }

    /// Names that are likely to collide.
    fn names() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a.%/\\\\~d]{0,4}",
            "(a|data|README|schema|%61)(\\.txt|\\.u8|\\.valid|\\.valid\\.u8|\\.offsets)?",
            "\\PC{0,20}",
            any::<String>(),
            "(%|a|ä|/){200,400}",
        ]
    }

    proptest! {
        #[test]
        fn file_names_are_file_names_and_can_be_undone(name in names()) {
            let file = escape(&name);
            prop_assert!(!file.is_empty() && file.len() <= LONGEST && !file.starts_with('.'));
            prop_assert!(!file.contains(['/', '\\']) && !file.chars().any(steers));
            if file.contains(MARK) {
                prop_assert_eq!(unescape(&file), None);
            } else {
                prop_assert_eq!(unescape(&file), Some(name));
            }
        }

        #[test]
        fn no_two_files_are_called_the_same(
            names in prop::collection::vec((names(), 0usize..4), 0..40),
        ) {
            let kinds: [&[&str]; 4] = [&[".u8"], &[".txt", ".bytes", ".offsets.u64"], &[".u64", ".valid.u8"], &[""]];
            let mut given = FileNames::new(OF_ARRAYS);
            let mut files: HashSet<String> = OF_ARRAYS.iter().map(|&name| name.to_owned()).collect();
            let mut stems = HashSet::new();
            let mut known = HashSet::new();
            for (name, kind) in names {
                let stem = given.give_attribute(&name, kinds[kind]);
                prop_assert!(stem.len() <= LONGEST && stems.insert(stem.clone()), "{}", stem);
                for extension in kinds[kind] {
                    prop_assert!(files.insert(format!("{stem}{extension}")), "{}{}", stem, extension);
                }
                if known.insert(name.clone()) && !stem.contains(MARK) && !name.is_empty() {
                    prop_assert_eq!(unescape(&stem), Some(name));
                }
            }
        }
    }
}
