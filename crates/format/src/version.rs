//! Format versions: which ones this library reads, and how it refuses the others.

use crate::error::{Error, Result};

/// The oldest format version (TileDB 1.4.0).
pub const OLDEST: u32 = 1;

/// The newest format version whose layout is known.
pub const NEWEST: u32 = 23;

/// Set in the versions of experimental builds, which define nothing stable.
const EXPERIMENTAL: u32 = 1 << 31;

/// No format version is higher for a long time to come.
const LIKELY: u32 = 9999;

/// Passes format versions 1 to 23.
///
/// # Errors
/// [`Error::Unsupported`] for any other, with the version if it may be one.
pub fn check_version(version: u32) -> Result<()> {
    if (OLDEST..=NEWEST).contains(&version) {
        Ok(())
    } else if version & !EXPERIMENTAL > LIKELY {
        // It may be another file than it should be, which not all may see: nothing of it is told.
        Err(Error::unsupported("a format version that there will hardly be"))
    } else if version & EXPERIMENTAL != 0 {
        Err(Error::unsupported(format!("experimental format version {version}")))
    } else {
        Err(Error::unsupported(format!("format version {version} (known: {OLDEST} to {NEWEST})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_version() {
        let error = check_version(u32::from_le_bytes(*b"root")).unwrap_err().to_string();
        assert!(!error.contains(|character: char| character.is_ascii_digit()), "{error}");
    }

    #[test]
    fn only_known_versions_pass() {
        assert!(check_version(0).is_err());
        assert!(check_version(1).is_ok());
        assert!(check_version(23).is_ok());
        assert!(check_version(24).unwrap_err().to_string().contains("format version 24"));
        assert!(
            check_version(EXPERIMENTAL + 9).unwrap_err().to_string().contains("experimental format version 2147483657")
        );
    }
}
