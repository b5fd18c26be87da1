//! The format versions that this library reads, and the errors for all others.

use crate::error::{Error, Result};

/// The oldest format version (TileDB 1.4.0).
pub const OLDEST: u32 = 1;

/// The newest format version whose layout is known.
pub const NEWEST: u32 = 23;

/// The bit that is set in the versions of experimental builds, which have no stable format.
const EXPERIMENTAL: u32 = 1 << 31;

/// The highest plausible format version.
const MAX_PLAUSIBLE: u32 = 9999;

/// Checks that a format version is 1 to 23.
///
/// # Errors
/// [`Error::Unsupported`] for any other version. It names the version if it is plausible.
pub fn check_version(version: u32) -> Result<()> {
    if (OLDEST..=NEWEST).contains(&version) {
        Ok(())
    } else if version & !EXPERIMENTAL > MAX_PLAUSIBLE {
        // The number is not shown: a link may have led to a file that the reader of the message may not see.
        Err(Error::unsupported("an implausible format version"))
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
    fn implausible_versions_are_not_quoted() {
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
