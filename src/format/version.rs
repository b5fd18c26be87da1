//! Format versions: which ones this library reads, and how it refuses the others.

use crate::error::{Error, Result};

/// The oldest format version (TileDB 1.4.0).
pub const OLDEST: u32 = 1;

/// The newest format version whose layout is known.
pub const NEWEST: u32 = 23;

/// Set in the versions of experimental builds, which define nothing stable.
const EXPERIMENTAL: u32 = 1 << 31;

/// Passes format versions 1 to 23.
///
/// # Errors
/// [`Error::Unsupported`] for any other, with the version.
pub fn check_version(version: u32) -> Result<()> {
    if (OLDEST..=NEWEST).contains(&version) {
        Ok(())
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
    fn only_known_versions_pass() {
        assert!(check_version(0).is_err());
        assert!(check_version(1).is_ok());
        assert!(check_version(23).is_ok());
        assert!(check_version(24).unwrap_err().to_string().contains("format version 24"));
        assert!(check_version(u32::MAX).unwrap_err().to_string().contains("experimental format version 4294967295"));
    }
}
