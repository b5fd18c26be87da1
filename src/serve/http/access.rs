//! Access control: a token and, for a server that only this machine can reach, the host name in the request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST};
use sha2::{Digest, Sha256};

use super::path::decode;

/// The rules of a server.
pub struct AccessRules {
    /// The hash of the token. The time that comparing hashes takes reveals nothing about the token.
    token: Option<[u8; 32]>,
    /// Whether only names of this machine are accepted as the host.
    only_local_names: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The token is missing or wrong.
    Token,
    /// The host is a name that does not stand for this machine.
    Host,
}

impl AccessRules {
    /// Requires a token, if one is given. Without a token, web pages in this machine's browsers can reach even a server
    /// that listens only to this machine, because a page can give its own host name the address 127.0.0.1 (DNS
    /// rebinding). With `only_local_names`, requests for such names are refused.
    pub fn new(token: Option<&str>, only_local_names: bool) -> Self {
        AccessRules { token: token.map(hash), only_local_names }
    }

    /// Checks a request: the header `Authorization` with the token (`Bearer`, or the password of `Basic`, which is all
    /// that many WebDAV clients have), or `token` in its query.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn check(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(), Denied> {
        if let Some(token) = &self.token {
            let given = headers.get(AUTHORIZATION).and_then(|value| credentials(value.to_str().ok()?));
            let given = given.or_else(|| token_of(query));
            return if given.is_some_and(|given| hash(&given) == *token) { Ok(()) } else { Err(Denied::Token) };
        }
        // Browsers always send a host.
        let is_local = headers.get_all(HOST).iter().all(|host| host.to_str().is_ok_and(is_address_or_localhost));
        if self.only_local_names && !is_local { Err(Denied::Host) } else { Ok(()) }
    }

    /// Returns the token in a query, if it is that of the server.
    pub fn token_in(&self, query: Option<&str>) -> Option<String> {
        let own = self.token.as_ref()?;
        token_of(query).filter(|given| hash(given) == *own)
    }
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Returns the token in an `Authorization` header.
fn credentials(header: &str) -> Option<String> {
    let (scheme, rest) = header.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
        return pair.split_once(':').map(|(_, password)| password.to_owned());
    }
    None
}

/// Returns the token in a query.
fn token_of(query: Option<&str>) -> Option<String> {
    decode(query?.split('&').find_map(|pair| pair.strip_prefix("token="))?).ok()
}

fn is_address_or_localhost(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').unwrap_or_default();
            return address.parse::<std::net::Ipv6Addr>().is_ok() && (port.is_empty() || port.starts_with(':'));
        }
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(access: &AccessRules, header: Option<(&'static str, &str)>, query: Option<&str>) -> Result<(), Denied> {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        access.check(&headers, query)
    }

    #[test]
    fn the_token_may_come_in_three_ways() {
        let access = AccessRules::new(Some("s3cret:/+"), false);
        let basic = format!("Basic {}", STANDARD.encode("anybody:s3cret:/+"));
        for good in ["Bearer s3cret:/+", "bearer  s3cret:/+", &basic] {
            assert_eq!(check(&access, Some(("authorization", good)), None), Ok(()), "{good}");
        }
        assert_eq!(check(&access, None, Some("json&token=s3cret:%2F%2B")), Ok(()));
        for bad in ["Bearer", "Bearer s3cret", "Basic !", "Basic czNjcmV0", "Digest s3cret:/+", "s3cret:/+"] {
            assert_eq!(check(&access, Some(("authorization", bad)), None), Err(Denied::Token), "{bad}");
        }
        for query in [None, Some(""), Some("token"), Some("token="), Some("nottoken=s3cret:%2F%2B")] {
            assert_eq!(check(&access, None, query), Err(Denied::Token), "{query:?}");
        }
        // Links repeat the token of the server, and no other text of the client.
        assert_eq!(access.token_in(Some("json&token=s3cret:%2F%2B")).as_deref(), Some("s3cret:/+"));
        assert_eq!(access.token_in(Some("token=other")), None);
        assert_eq!(AccessRules::new(None, true).token_in(Some("token=other")), None);
    }

    #[test]
    fn a_page_that_renames_this_machine_is_refused() {
        let local = AccessRules::new(None, true);
        for host in
            ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "[::ffff:127.0.0.1]:80", "LOCALHOST:1"]
        {
            assert_eq!(check(&local, Some(("host", host)), None), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "",
            "[evil.example]:80",
            "[::1].evil.example",
            "[::1",
        ] {
            assert_eq!(check(&local, Some(("host", host)), None), Err(Denied::Host), "{host}");
        }
        assert_eq!(check(&local, None, None), Ok(()));
        let both = [("localhost", "evil.example"), ("evil.example", "localhost")];
        for (first, second) in both {
            let mut headers = HeaderMap::new();
            headers.append(HOST, first.parse().unwrap());
            headers.append(HOST, second.parse().unwrap());
            assert_eq!(local.check(&headers, None), Err(Denied::Host), "{first}, {second}");
        }
        assert_eq!(check(&AccessRules::new(None, false), Some(("host", "data.example")), None), Ok(()));
        assert_eq!(check(&AccessRules::new(Some("t"), true), Some(("host", "data.example")), Some("token=t")), Ok(()));
    }
}
