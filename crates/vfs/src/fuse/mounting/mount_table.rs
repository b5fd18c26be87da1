//! The mount table, from `/proc/self/mountinfo` (its format is described in proc(5)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The file system type of tilefs mounts.
pub const KIND: &str = "fuse.tilefs";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// Major and minor device number as the kernel prints it: `0:52`.
    pub device: String,
    /// The mount point.
    pub mountpoint: PathBuf,
    /// The file system type: `ext4`, `fuse.tilefs`.
    pub kind: String,
    /// The source given when it was mounted.
    pub source: String,
}

impl Mounted {
    /// Returns whether this is a tilefs mount.
    pub fn is_tilefs(&self) -> bool {
        self.kind == KIND
    }
}

/// Reads the mount table in mount order; empty without `/proc`.
pub fn read() -> Vec<Mounted> {
    fs::read("/proc/self/mountinfo").map_or_else(|_| Vec::new(), |text| parse(&text))
}

/// Returns the topmost mount at exactly this path, which must be absolute and without links. An untriggered automount
/// point counts as free.
pub fn at(mountpoint: &Path) -> Option<Mounted> {
    topmost(&read(), mountpoint).cloned()
}

/// Like [`at`], in a given table.
fn topmost<'a>(table: &'a [Mounted], mountpoint: &Path) -> Option<&'a Mounted> {
    table.iter().rfind(|mounted| mounted.mountpoint == mountpoint && mounted.kind != "autofs")
}

/// Returns whether a file system with this device number is mounted at this path.
pub fn holds(mountpoint: &Path, device: &str) -> bool {
    read().iter().any(|mounted| mounted.mountpoint == mountpoint && mounted.device == device)
}

/// Maximum number of links to follow before they count as circular, as in the kernel.
const MAX_LINKS: usize = 40;

/// Resolves a path to an absolute one without links. Consults the mount table instead of accessing what is mounted
/// there, which may be dead or hang.
///
/// # Errors
/// If a folder on the way is missing or not accessible.
pub fn absolute(mountpoint: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(mountpoint)?;
    let table = read();
    let is_mounted = |path: &Path| topmost(&table, path).is_some();
    for _ in 0..MAX_LINKS {
        if is_mounted(&path) {
            return Ok(path);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return fs::canonicalize(path) };
        path = fs::canonicalize(parent)?.join(name);
        if is_mounted(&path) {
            return Ok(path);
        }
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

fn parse(text: &[u8]) -> Vec<Mounted> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

/// Parses `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root rw`, which has any number of optional fields
/// before the `-`.
fn parse_line(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let separator = fields.iter().skip(6).position(|&field| field == b"-")? + 6;
    let text = |index: usize| Some(String::from_utf8_lossy(&unescape(fields.get(index)?)).into_owned());
    Some(Mounted {
        device: text(2)?,
        mountpoint: PathBuf::from(OsString::from_vec(unescape(fields.get(4)?))),
        kind: text(separator + 1)?,
        source: text(separator + 2)?,
    })
}

/// Decodes the octal escapes of space, tab, line break, backslash and `#`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_unescaped() {
        let table = parse(
            b"22 1 0:20 / /proc rw,nosuid - proc proc rw\n\
              40 22 0:52 / /mnt/my\\040array ro,nosuid shared:5 master:1 - fuse.tilefs /data/a\\134b,c ro,user_id=0\n\
              broken line\n\n",
        );
        assert_eq!(table.len(), 2);
        assert_eq!(
            table[1],
            Mounted {
                device: "0:52".into(),
                mountpoint: "/mnt/my array".into(),
                kind: "fuse.tilefs".into(),
                source: "/data/a\\b,c".into(),
            }
        );
        assert!(table[1].is_tilefs() && !table[0].is_tilefs());
    }

    #[test]
    fn other_backslashes_stay() {
        assert_eq!(unescape(b"a\\040b\\9\\04"), b"a b\\9\\04");
        assert_eq!(unescape(b"\\777"), b"\\777");
    }

    #[test]
    fn the_table_of_this_machine_has_a_root() {
        assert!(at(Path::new("/")).is_some_and(|root| holds(Path::new("/"), &root.device)));
    }
}
