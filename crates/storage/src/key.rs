//! Keys of stored objects.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The key of an object or folder: names separated by slashes. The storage interprets the first ones. A local path of
/// any bytes is a key, and so is `s3://bucket/array`.
///
/// Keys are compared as text. A key has no trailing slash, no empty name and no `.`. It may have `..`, because only the
/// storage knows where that leads ([`Storage::canonical`](super::Storage::canonical)). Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(Arc<[u8]>);

/// The separator between the scheme and the rest of a URI.
const SCHEME_END: &[u8] = b"://";

impl StoreKey {
    /// Appends `path` to this key.
    pub fn join(&self, path: impl AsRef<[u8]>) -> Self {
        let mut bytes = self.0.to_vec();
        append(&mut bytes, path.as_ref());
        StoreKey(bytes.into())
    }

    /// Returns the key of the parent folder; `None` for a key without a name.
    pub fn parent(&self) -> Option<Self> {
        let start = self.name_start()?;
        let root = self.root_length();
        // Drop the slash, unless it is the root itself.
        Some(StoreKey(self.0[..start.saturating_sub(1).max(root)].into()))
    }

    /// Returns the last name; `None` for the root of a storage and if the last name is `..`.
    pub fn name(&self) -> Option<&[u8]> {
        Some(&self.0[self.name_start()?..])
    }

    /// Returns the last name as text for people; for the root, the whole key.
    pub fn shown_name(&self) -> String {
        String::from_utf8_lossy(self.name().unwrap_or(&self.0)).into_owned()
    }

    /// Returns the whole key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the part of this key below `folder`; `None` if it is not textually below it, or equal.
    pub fn below(&self, folder: &StoreKey) -> Option<&[u8]> {
        let rest = self.0.strip_prefix(folder.as_bytes())?;
        let rest = if matches!(folder.0.last(), None | Some(b'/')) { rest } else { rest.strip_prefix(b"/")? };
        (!rest.is_empty()).then_some(rest)
    }

    /// Returns the key as a local path.
    pub(super) fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    fn name_start(&self) -> Option<usize> {
        let start = self.0.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let is_name = start >= self.root_length() && !matches!(&self.0[start..], b"" | b"..");
        is_name.then_some(start)
    }

    /// Returns the length of the prefix that is not part of any name: `/`, or the scheme and host.
    fn root_length(&self) -> usize {
        match self.0.windows(SCHEME_END.len()).position(|part| part == SCHEME_END) {
            Some(at) => {
                let rest = &self.0[at + SCHEME_END.len()..];
                self.0.len() - rest.len() + rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len())
            }
            None => usize::from(self.0.first() == Some(&b'/')),
        }
    }
}

/// Appends the names of a path.
fn append(bytes: &mut Vec<u8>, path: &[u8]) {
    for name in path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b".")) {
        if !matches!(bytes.last(), None | Some(b'/')) {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
    }
}

/// Converts a path of the local file system.
impl From<&Path> for StoreKey {
    fn from(path: &Path) -> Self {
        let parts: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        StoreKey(parts.as_os_str().as_bytes().into())
    }
}

impl From<PathBuf> for StoreKey {
    fn from(path: PathBuf) -> Self {
        path.as_path().into()
    }
}

impl From<&PathBuf> for StoreKey {
    fn from(path: &PathBuf) -> Self {
        path.as_path().into()
    }
}

/// Converts a URI `scheme://host/path`, or a path.
impl From<&str> for StoreKey {
    fn from(text: &str) -> Self {
        match text.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let mut bytes = format!("{scheme}://{host}").into_bytes();
                if !path.is_empty() {
                    bytes.push(b'/');
                }
                append(&mut bytes, path.as_bytes());
                if bytes.last() == Some(&b'/') && !host.is_empty() {
                    bytes.pop();
                }
                StoreKey(bytes.into())
            }
            None => Path::new(text).into(),
        }
    }
}

/// Shows bytes that are not UTF-8 as replacement characters.
impl fmt::Display for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().display().fmt(f)
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parents() {
        let parts = |text: &str| {
            let key = StoreKey::from(text);
            let name = key.name().map(|name| String::from_utf8(name.to_vec()).unwrap());
            (key.to_string(), key.parent().map(|parent| parent.to_string()), name)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("/a/b"), ("/a/b".into(), some("/a"), some("b")));
        assert_eq!(parts("/a//./b/"), ("/a/b".into(), some("/a"), some("b")));
        assert_eq!(parts("/a"), ("/a".into(), some("/"), some("a")));
        assert_eq!(parts("/"), ("/".into(), None, None));
        assert_eq!(parts("a"), ("a".into(), some(""), some("a")));
        assert_eq!(parts("/a/.."), ("/a/..".into(), None, None));
        assert_eq!(parts("s3://bucket/a/b/"), ("s3://bucket/a/b".into(), some("s3://bucket/a"), some("b")));
        assert_eq!(parts("s3://bucket/a"), ("s3://bucket/a".into(), some("s3://bucket"), some("a")));
        assert_eq!(parts("s3://bucket/"), ("s3://bucket".into(), None, None));
    }

    #[test]
    fn joining_and_taking_apart() {
        for (folder, path, joined) in [
            ("/a", "b/c", "/a/b/c"),
            ("/", "b", "/b"),
            ("", "b", "b"),
            ("s3://bucket", "b", "s3://bucket/b"),
            ("/a", "../b/", "/a/../b"),
            ("/a", "/b", "/a/b"),
            ("/a", ".", "/a"),
        ] {
            let folder = StoreKey::from(folder);
            let key = folder.join(path);
            assert_eq!(key, StoreKey::from(joined));
            if key != folder {
                assert_eq!(folder.join(key.below(&folder).unwrap()), key);
            }
        }
        assert_eq!(StoreKey::from("/ab").below(&"/a".into()), None);
        assert_eq!(StoreKey::from("/a").below(&"/a".into()), None);
    }

    #[test]
    fn paths_need_not_be_text() {
        let path = Path::new(OsStr::from_bytes(b"/data/\xff/a"));
        let key = StoreKey::from(path);
        assert_eq!(key.as_path(), path);
        assert_eq!(key.parent().and_then(|parent| parent.name().map(<[u8]>::to_vec)), Some(vec![0xff]));
    }
}
