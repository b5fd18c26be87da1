//! Paths in the tree, from the paths of URLs and back.

use tilefs_base::percent;

/// A path in the tree. No name in it is empty, `.` or `..`, or contains `/` or NUL, so it cannot lead out of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePath {
    names: Vec<String>,
    /// Whether it ends with a slash: only folders have such a path.
    is_folder: bool,
    /// The number of folders in the URL, of which some may have empty names: relative URLs count those, too.
    depth: usize,
}

impl TreePath {
    /// Parses the path of a URL. Empty names and `.` between slashes stand for nothing, as for other servers.
    ///
    /// # Errors
    /// The reason why no tree has such a path, in one line.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let inner = text.strip_prefix('/').ok_or("the path does not begin with a slash")?;
        let (mut names, mut is_folder, mut depth) = (Vec::new(), true, 0);
        let mut segments = inner.split('/').peekable();
        while let Some(segment) = segments.next() {
            let name = decode(segment)?;
            depth += usize::from(segments.peek().is_some() && name != ".");
            is_folder = matches!(name.as_str(), "" | ".");
            match name.as_str() {
                "" | "." => {}
                ".." => return Err("a name that is .."),
                name if name.contains(['/', '\0']) => return Err("a slash or NUL within a name"),
                _ => names.push(name),
            }
        }
        Ok(TreePath { names, is_folder, depth })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns whether it ends with a slash.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Returns the path as the tree has it, without a slash at either end.
    pub fn text(&self) -> String {
        self.names.join("/")
    }

    /// Returns the relative URL of the root, from the URL of this path.
    pub fn to_root(&self) -> String {
        match self.depth {
            0 => "./".to_owned(),
            depth => "../".repeat(depth),
        }
    }

    /// Returns the path of the URL, with a slash at the end if it is that of a folder.
    pub fn url(&self, is_folder: bool) -> String {
        let mut url = String::from("/");
        for (number, name) in self.names.iter().enumerate() {
            encode_name(name, &mut url);
            if is_folder || number + 1 < self.names.len() {
                url.push('/');
            }
        }
        url
    }
}

/// Returns a part of a URL without its escapes.
///
/// # Errors
/// The reason why it is malformed, in one line.
pub fn decode(text: &str) -> Result<String, &'static str> {
    // For selections, a lone `%` is an empty text.
    let bytes = if text == "%" { Err(0) } else { percent::unescape(text) };
    String::from_utf8(bytes.map_err(|_| "a % without two hexadecimal digits after it")?)
        .map_err(|_| "text that is not UTF-8")
}

/// Appends a name as a segment of the path of a URL. Characters of selections stay readable.
pub fn encode_name(name: &str, out: &mut String) {
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' | '=' | ',' | '+' => out.push(character),
            // In the first name of a relative reference, a colon would end a scheme.
            _ => percent::escape(character.encode_utf8(&mut [0; 4]).as_bytes(), out),
        }
    }
}

/// Appends to a text. Writing to a string cannot fail.
macro_rules! append {
    ($out:expr, $($arguments:tt)*) => {
        let _ = write!($out, $($arguments)*);
    };
}
pub(crate) use append;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Result<Vec<String>, &'static str> {
        TreePath::parse(text).map(|path| path.names)
    }

    #[test]
    fn names_are_decoded_one_by_one() {
        assert_eq!(names("/").unwrap(), [""; 0]);
        assert_eq!(names("/a%20b/c").unwrap(), ["a b", "c"]);
        assert_eq!(names("/slice/x=5..9,y=1/temp.f32").unwrap(), ["slice", "x=5..9,y=1", "temp.f32"]);
        assert_eq!(names("/a%252Fb").unwrap(), ["a%2Fb"], "decoded once");
        assert_eq!(names(r"/..\a").unwrap(), [r"..\a"], "a name like any other");
        assert!(TreePath::parse("/dims/").unwrap().is_folder() && !TreePath::parse("/dims").unwrap().is_folder());
        assert!(TreePath::parse("/").unwrap().is_folder());
    }

    #[test]
    fn empty_names_and_dots_stand_for_nothing() {
        for (text, expected) in [
            ("//", "/"),
            ("//a", "/a"),
            ("/a//b", "/a/b"),
            ("/.", "/"),
            ("/./a:b", "/a%3Ab"),
            ("/%2E/a", "/a"),
            ("/a/./b", "/a/b"),
        ] {
            assert_eq!(names(text), names(expected), "{text}");
        }
        for folder in ["/a//", "/a/.", "/a/./", "/a/%2e"] {
            let path = TreePath::parse(folder).unwrap();
            assert!(path.names == ["a"] && path.is_folder(), "{folder}");
        }
    }

    /// Browsers leave out `.` before they resolve a relative URL, and keep empty names.
    #[test]
    fn the_way_to_the_root_is_that_of_browsers() {
        for (text, way) in [
            ("/", "./"),
            ("/a", "./"),
            ("/a/", "../"),
            ("/a/b", "../"),
            ("/a//", "../../"),
            ("//a", "../"),
            ("/a/./b/", "../../"),
            ("/a/.", "../"),
        ] {
            assert_eq!(TreePath::parse(text).unwrap().to_root(), way, "{text}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        for text in [
            "",
            "a",
            "/..",
            "/../etc/passwd",
            "/a/../b",
            "/./..",
            "//../b",
            "/%2e%2e/b",
            "/.%2E/b",
            "/a%2Fb",
            "/%2Fetc/passwd",
            "/a%00b",
            "/%",
            "/a%",
            "/a%2",
            "/a%zz",
            "/%ff",
            "/%C3",
            "*",
            "http://a/b",
        ] {
            assert!(names(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_url_leads_back_to_its_path(text in "(/[^\\x00/%]{1,9}){1,4}/?") {
            if let Ok(path) = TreePath::parse(&text) {
                let url = path.url(path.is_folder());
                prop_assert!(url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>&?#:".contains(&byte)));
                prop_assert_eq!(TreePath::parse(&url), Ok(path));
            }
        }
    }
}
