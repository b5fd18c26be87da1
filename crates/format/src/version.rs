//! The format versions that this library reads, and the errors for all others.

use std::ops::RangeInclusive;

use tilefs_base::error::{Error, Result};

/// The oldest format version (TileDB 1.4.0).
pub const OLDEST: u32 = 1;

/// The newest format version whose layout is known.
pub const NEWEST: u32 = 23;

/// The bit that is set in the versions of experimental builds, which have no stable format.
const EXPERIMENTAL: u32 = 1 << 31;

/// A version that experimental builds wrote, without one of their own.
const ANY_EXPERIMENTAL: u32 = u32::MAX;

/// The highest plausible format version, and the highest plausible version of a part of a file.
const MAX_PLAUSIBLE: u32 = 9999;

/// Checks that a format version is 1 to 23.
///
/// # Errors
/// [`Error::Unsupported`] for a later version and for those of experimental builds; [`Error::Damaged`] for a number that
/// is no version. They name the version if it is plausible.
pub fn check_version(version: u32) -> Result<()> {
    if (OLDEST..=NEWEST).contains(&version) {
        Ok(())
    } else if version == ANY_EXPERIMENTAL {
        Err(Error::unsupported("an implausible format version"))
    } else if version & !EXPERIMENTAL > MAX_PLAUSIBLE || version & !EXPERIMENTAL < OLDEST {
        // The number is not shown: a link may have led to a file that the reader of the message may not see.
        Err(Error::damaged("an implausible format version"))
    } else if version & EXPERIMENTAL != 0 {
        Err(Error::unsupported(format!("experimental format version {version}")))
    } else {
        Err(Error::unsupported(format!("format version {version} (known: {OLDEST} to {NEWEST})")))
    }
}

/// Returns the error for a part of a file that has another version than those known.
pub fn other_version(what: &str, version: u32, known: RangeInclusive<u32>) -> Error {
    if version > *known.end() && version <= MAX_PLAUSIBLE {
        Error::unsupported(format!("{what} of version {version}"))
    } else {
        Error::damaged(format!("{what} of an implausible version"))
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
    fn numbers_that_are_no_version_are_damage() {
        let is_damage = |error: Error| matches!(error, Error::Damaged { .. });
        for version in [0, 10_000, EXPERIMENTAL, EXPERIMENTAL + 10_000, u32::MAX - 1, u32::from_le_bytes(*b"root")] {
            assert!(is_damage(check_version(version).unwrap_err()), "{version}");
        }
        for version in [24, 9999, EXPERIMENTAL + 9, u32::MAX] {
            assert!(!is_damage(check_version(version).unwrap_err()), "{version}");
        }
        assert!(is_damage(other_version("a part", 0, 1..=2)) && is_damage(other_version("a part", 10_000, 1..=2)));
        assert!(!is_damage(other_version("a part", 3, 1..=2)));
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
