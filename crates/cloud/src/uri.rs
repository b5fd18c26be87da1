//! Parsing of object store URIs into bucket and object key.

use std::fmt;

use tilefs_storage::{Provider, StoreKey};

/// A bucket, or a container of an Azure account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BucketName {
    pub provider: Provider,
    pub bucket: String,
    /// The Azure account if the URI names it, as in `abfs://container@account.dfs.core.windows.net/`.
    pub account: Option<String>,
}

/// The canonical URI without a trailing slash.
impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.bucket)?;
        self.account.iter().try_for_each(|account| write!(f, "@{account}"))
    }
}

/// Returns whether a name can be part of a host name without changing which host it is. Bucket names also come from
/// stored groups and must not redirect requests, and the credentials in them, to another server.
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}

/// Splits a key into its bucket and the path in it, without a slash at either end; `None` if it is in no bucket, or is
/// not text.
pub fn split_uri(key: &StoreKey) -> Option<(BucketName, &str)> {
    let (provider, rest) = Provider::of_uri(str::from_utf8(key.as_bytes()).ok()?)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (bucket, account) = match (provider, host.split_once('@')) {
        (Provider::Azure, Some((container, host))) => (container, Some(host.split('.').next().unwrap_or(host))),
        _ => (host, None),
    };
    // Azure has the built-in containers $web and $root.
    let plain_bucket = if provider == Provider::Azure { bucket.strip_prefix('$').unwrap_or(bucket) } else { bucket };
    if !is_name(plain_bucket) || account.is_some_and(|account| !is_name(account)) {
        return None;
    }
    Some((BucketName { provider, bucket: bucket.to_owned(), account: account.map(str::to_owned) }, path))
}

/// Returns the canonical key: without `..`, which object stores do not know, and with the canonical scheme.
pub fn canonical(key: &StoreKey) -> StoreKey {
    let Some((bucket, path)) = split_uri(key) else { return key.clone() };
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("{bucket}/{}", names.join("/")).as_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_keys() {
        let parts = |text: &str| {
            let key = StoreKey::from(text);
            split_uri(&key).map(|(bucket, path)| (bucket.to_string(), path.to_owned()))
        };
        let some = |bucket: &str, path: &str| Some((bucket.to_owned(), path.to_owned()));
        assert_eq!(parts("s3://b/x/y/"), some("s3://b", "x/y"));
        assert_eq!(parts("s3://b"), some("s3://b", ""));
        assert_eq!(parts("gcs://b/x"), some("gs://b", "x"));
        assert_eq!(parts("az://c/x"), some("azure://c", "x"));
        assert_eq!(parts("abfs://c@me.dfs.core.windows.net/x"), some("azure://c@me", "x"));
        assert_eq!(parts("az://$web/x"), some("azure://$web", "x"));
        for none in ["/a/b", "file:///a", "s3:///a", "http://b/a", "abfs://@me/a", "abfs://c@/a"] {
            assert_eq!(parts(none), None, "{none}");
        }
        for name in ["ü", "a b", "b#", "b?", "b:1", "me@host", "%2e", "..", "-b", "[::1]", "a\\b", "$b", "$$b", "a\n"]
        {
            assert_eq!(parts(&format!("s3://{name}/x")), None, "{name}");
            assert_eq!(parts(&format!("abfs://c@{name}/x")), None, "{name}");
        }
    }

    #[test]
    fn keys_of_the_same_place_have_one_canonical_form() {
        let key = |text: &str| canonical(&text.into()).to_string();
        assert_eq!(key("gcs://b/a/../c"), "gs://b/c");
        assert_eq!(key("s3://b/../../c"), "s3://b/c");
        assert_eq!(key("s3://b/a/.."), "s3://b");
        assert_eq!(key("/a/.."), "/a/..");
    }
}
