//! Environment variables for object stores. An empty variable counts as not set, because scripts unset variables that
//! way.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Returns a variable's text.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns a variable's file path.
pub fn file(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Applies to a client's `builder` all variables that begin with the provider's prefix and whose lower-case names the
/// builder knows.
pub fn configured<Builder, Key: FromStr>(
    builder: Builder,
    prefix: &str,
    with: impl Fn(Builder, Key, String) -> Builder,
) -> Builder {
    known(env::vars_os(), prefix).fold(builder, |builder, (key, value)| with(builder, key, value))
}

fn known<Key: FromStr>(
    variables: impl Iterator<Item = (OsString, OsString)>,
    prefix: &str,
) -> impl Iterator<Item = (Key, String)> {
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty())
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use object_store::aws::AmazonS3ConfigKey;

    use super::*;

    #[test]
    fn empty_and_unrelated_variables_are_not_set() {
        let set = [
            ("AWS_ENDPOINT_URL", &b""[..]),
            ("AWS_REGION", b"eu-west-1"),
            ("AWS_SESSION_TOKEN", b"\xff"),
            ("AWS_PAGER", b"less"),
            ("GOOGLE_BUCKET", b"b"),
        ];
        let set = set.into_iter().map(|(name, value)| (name.into(), OsString::from_vec(value.to_vec())));
        let found: Vec<(AmazonS3ConfigKey, String)> = known(set, "AWS_").collect();
        assert_eq!(found, [(AmazonS3ConfigKey::Region, "eu-west-1".to_owned())]);
    }
}
