//! URIs of object stores: which store, which bucket, which key in it.

use std::fmt;

use super::StoreKey;

/// A kind of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    S3,
    Gcs,
    Azure,
}

impl Provider {
    /// The store that a URI of TileDB's is of, and what stands behind the scheme.
    fn of_uri(uri: &str) -> Option<(Self, &str)> {
        let (scheme, rest) = uri.split_once("://")?;
        Some((Provider::of_scheme(scheme)?, rest))
    }

    /// The store that a scheme of TileDB's URIs stands for.
    fn of_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "s3" => Some(Provider::S3),
            "gs" | "gcs" => Some(Provider::Gcs),
            "azure" | "az" | "abfs" | "abfss" => Some(Provider::Azure),
            _ => None,
        }
    }

    /// The one scheme that keys of this store are compared with.
    fn scheme(self) -> &'static str {
        match self {
            Provider::S3 => "s3",
            Provider::Gcs => "gs",
            Provider::Azure => "azure",
        }
    }
}

/// A bucket, or a container of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BucketName {
    pub provider: Provider,
    pub bucket: String,
    /// The account of Azure that the URI itself names, as in `abfs://container@account.dfs.core.windows.net/`.
    pub account: Option<String>,
}

/// As it is typed, without a slash at the end.
impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.bucket)?;
        self.account.iter().try_for_each(|account| write!(f, "@{account}"))
    }
}

/// Whether this is a URI of an object store.
pub fn is_object_uri(text: &str) -> bool {
    Provider::of_uri(text).is_some()
}

/// Whether a name can stand in the address of a server and leave it what it is. Names of buckets come from stored groups
/// too, and must not send what is asked, and with it who asks, to somebody else.
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}

/// The bucket that a key is in, and its names there, without a slash at either end; `None` where it is in no bucket, or
/// is not text.
pub fn take_apart(key: &StoreKey) -> Option<(BucketName, &str)> {
    let (provider, rest) = Provider::of_uri(str::from_utf8(key.as_bytes()).ok()?)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (bucket, account) = match (provider, host.split_once('@')) {
        (Provider::Azure, Some((container, host))) => (container, Some(host.split('.').next().unwrap_or(host))),
        _ => (host, None),
    };
    // As $web and $root, which Azure itself made.
    let plain_bucket = if provider == Provider::Azure { bucket.strip_prefix('$').unwrap_or(bucket) } else { bucket };
    if !is_name(plain_bucket) || account.is_some_and(|account| !is_name(account)) {
        return None;
    }
    Some((BucketName { provider, bucket: bucket.to_owned(), account: account.map(str::to_owned) }, path))
}

/// The same place without `..`, which no object store knows, and with the usual one of several schemes.
pub fn canonical(key: &StoreKey) -> StoreKey {
    let Some((bucket, path)) = take_apart(key) else { return key.clone() };
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
            take_apart(&key).map(|(bucket, path)| (bucket.to_string(), path.to_owned()))
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
        assert!(is_object_uri("gs://b/a") && !is_object_uri("tiledb://a") && !is_object_uri("/s3/b"));
    }

    #[test]
    fn the_same_place_has_one_key() {
        let key = |text: &str| canonical(&text.into()).to_string();
        assert_eq!(key("gcs://b/a/../c"), "gs://b/c");
        assert_eq!(key("s3://b/../../c"), "s3://b/c");
        assert_eq!(key("s3://b/a/.."), "s3://b");
        assert_eq!(key("/a/.."), "/a/..");
    }
}
