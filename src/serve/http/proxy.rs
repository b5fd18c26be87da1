//! Proxies in front of the server: below which path they show it.

use hyper::header::{FORWARDED, HOST, HeaderMap, VIA};
use hyper::{Uri, Version};

use super::path::{TreePath, encode_name};

/// The header in which a proxy says which beginning of the path it has removed.
const PREFIX: &str = "x-forwarded-prefix";

/// Headers that only proxies add.
const OF_PROXIES: [&str; 6] =
    ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-server", "x-real-ip"];

/// Maximum length of a whole prefix in bytes: each URL of a reply repeats it.
const LONGEST: usize = 1 << 10;

/// Where the client of a request finds the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// Below this path, which has no slash at its end; empty without a proxy.
    Below(String),
    /// A proxy may have removed the beginning of the path, and does not say so. Only URLs that are relative to that of
    /// the request are right in any case. RFC 4918 (8.3) wants absolute paths in replies, and some clients take no others.
    Unknown,
}

impl Root {
    /// Returns where a client finds the tree; the server listens on this port.
    pub fn of(headers: &HeaderMap, version: Version, port: u16) -> Self {
        // Each of several proxies has removed a part.
        let parts: Option<Vec<&str>> = headers.get_all(PREFIX).iter().map(|part| part.to_str().ok()).collect();
        let parts = parts.filter(|parts| !parts.is_empty());
        let prefix = parts.and_then(|parts| parts.iter().flat_map(|part| part.split(',')).map(prefix).collect());
        match prefix.filter(|prefix: &String| prefix.len() <= LONGEST) {
            Some(prefix) => Root::Below(prefix),
            None if is_forwarded(headers, version, port) => Root::Unknown,
            None => Root::Below(String::new()),
        }
    }

    /// Returns the URL of what a request for a path is answered with, with a slash at the end if that is a folder.
    pub fn url_of(&self, path: &TreePath, is_folder: bool) -> String {
        let mut relative = "./".to_owned();
        match self {
            Root::Below(prefix) => return prefix.clone() + &path.url(is_folder),
            Root::Unknown if path.is_folder() => {}
            Root::Unknown => {
                encode_name(path.names().last().map_or("", String::as_str), &mut relative);
                relative.extend(is_folder.then_some('/'));
            }
        }
        relative
    }

    /// Returns the path of the root without the slash at its end, as far as it is known.
    pub fn path(&self) -> &str {
        match self {
            Root::Below(path) => path,
            Root::Unknown => "",
        }
    }
}

/// Returns a part of a prefix: `/` and segments of a path, without a slash at the end. `None` if it is something else,
/// such as the beginning of another URL.
fn prefix(part: &str) -> Option<&str> {
    let part = part.trim().trim_end_matches('/');
    let is_path = part.is_empty() || part.starts_with('/') && !part.contains("//");
    let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+=:@".contains(&byte));
    (is_path && is_plain).then_some(part)
}

/// Returns whether a request looks as if a proxy has passed it on: by headers of proxies, an old version, which nginx
/// speaks, or another port than ours in the client's address.
fn is_forwarded(headers: &HeaderMap, version: Version, port: u16) -> bool {
    let has_header = OF_PROXIES.iter().any(|name| headers.contains_key(*name));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Uri>().ok());
    let is_elsewhere = host.is_some_and(|host| match host.port_u16() {
        Some(given) => given != port,
        None => port != 80 && host.host() != Some("localhost"),
    });
    has_header
        || headers.contains_key(FORWARDED)
        || headers.contains_key(VIA)
        || version < Version::HTTP_11
        || is_elsewhere
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(headers: &[(&'static str, &str)], version: Version) -> Root {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Root::of(&map, version, 8080)
    }

    #[test]
    fn a_prefix_is_a_path_or_is_ignored() {
        for (given, path) in [
            (&["/data"][..], "/data"),
            (&["/data/"], "/data"),
            (&["/a/b%20c"], "/a/b%20c"),
            (&["/"], ""),
            (&["/outer, /inner/"], "/outer/inner"),
            (&["/outer", "/inner"], "/outer/inner"),
        ] {
            let headers: Vec<_> = given.iter().map(|value| (PREFIX, *value)).collect();
            assert_eq!(root(&headers, Version::HTTP_10), Root::Below(path.to_owned()), "{given:?}");
        }
        let long = format!("/{}", "a".repeat(LONGEST));
        for wrong in ["data", "//evil.example", "/a//b", "http://evil.example/", "/a?b", "/a\"b", "/a;b", "/a b", &long]
        {
            assert_eq!(root(&[(PREFIX, wrong)], Version::HTTP_11), Root::Below(String::new()), "{wrong}");
        }
        let half = format!("/{}", "a".repeat(LONGEST / 2));
        assert_eq!(root(&[(PREFIX, &half), (PREFIX, &half)], Version::HTTP_11), Root::Below(String::new()));
    }

    #[test]
    fn urls_are_paths_or_relative_to_the_request() {
        let below = |prefix: &str| Root::Below(prefix.to_owned());
        for (text, is_folder, root, expected) in [
            ("/", true, below(""), "/"),
            ("/a%20b/c", true, below(""), "/a%20b/c/"),
            ("/a/c", false, below("/data"), "/data/a/c"),
            ("/", true, below("/data"), "/data/"),
            ("/", true, Root::Unknown, "./"),
            ("/a/c/", true, Root::Unknown, "./"),
            ("/a/c", true, Root::Unknown, "./c/"),
            ("/a/x:y", false, Root::Unknown, "./x%3Ay"),
        ] {
            assert_eq!(root.url_of(&TreePath::parse(text).unwrap(), is_folder), expected, "{text} {root:?}");
        }
    }

    #[test]
    fn signs_of_a_proxy_leave_the_root_unknown() {
        for host in ["127.0.0.1:8080", "localhost", "[::1]:8080", "data.example:8080"] {
            assert_eq!(root(&[("host", host)], Version::HTTP_11), Root::Below(String::new()), "{host}");
        }
        for host in ["127.0.0.1:80", "localhost:9", "data.example"] {
            assert_eq!(root(&[("host", host)], Version::HTTP_11), Root::Unknown, "{host}");
        }
        for header in OF_PROXIES.iter().chain(&["via", "forwarded"]) {
            assert_eq!(root(&[(header, "x")], Version::HTTP_11), Root::Unknown, "{header}");
        }
        assert_eq!(root(&[], Version::HTTP_10), Root::Unknown);
        assert_eq!(root(&[], Version::HTTP_11), Root::Below(String::new()));
    }
}
