//! Access control: the token, the user who started the server and, for web pages of others, the host name in the request.

use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HOST};
use sha2::{Digest, Sha256};
use tilefs_base::hex::hex;

use super::path::decode;

/// Who may read without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutToken {
    Nobody,
    /// The user who runs the server, on this machine.
    OwnUser,
    Everybody,
}

/// The rules of a server.
pub struct AccessRules {
    /// The hash of the token. The time that comparing hashes takes reveals nothing about the token.
    token: Option<[u8; 32]>,
    /// The hash of a token that opens the server once.
    pass: Mutex<Option<[u8; 32]>>,
    without_token: WithoutToken,
    /// Whether only names of this machine are accepted as the host, of clients without a token.
    only_local_names: bool,
    /// The name of the cookie that stands for the token. Browsers send the cookies of one port of a host to all of them.
    cookie: String,
}

/// What let a request in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Whether its address had a token, which is better not there.
    pub by_address: bool,
    /// Whether its client needs a cookie to be let in without that token.
    pub needs_cookie: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The token is missing or wrong.
    Token,
    /// The client is not known to be the user who runs the server, and there is no token.
    User,
    /// The host is a name that does not stand for this machine.
    Host,
}

impl AccessRules {
    /// Creates the rules of a server on a port, which lets in clients with the token and, once, one with the pass.
    ///
    /// Web pages in this machine's browsers can reach even a server that listens only to this machine, because a page can
    /// give its own host name the address 127.0.0.1 (DNS rebinding). With `only_local_names`, requests for such names
    /// need the token.
    pub fn new(
        token: Option<&str>,
        pass: Option<&str>,
        without_token: WithoutToken,
        only_local_names: bool,
        port: u16,
    ) -> Self {
        AccessRules {
            token: token.map(hash),
            pass: Mutex::new(pass.map(hash)),
            without_token,
            only_local_names,
            cookie: format!("tilefs-{port}"),
        }
    }

    /// Checks a request: the header `Authorization` with the token (`Bearer`, or the password of `Basic`, which is all
    /// that many WebDAV clients have), `token` in its query, the cookie, or that it needs none of these. `is_own` tells
    /// whether its client is the user who runs the server.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn check(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        is_own: impl FnOnce() -> bool,
    ) -> Result<Granted, Denied> {
        let by_address = token_of(query).is_some_and(|given| self.is_token(&given) || self.redeem(&given));
        let has_token = || {
            let given = headers.get(AUTHORIZATION).and_then(|value| credentials(value.to_str().ok()?));
            given.is_some_and(|given| self.is_token(&given)) || self.has_cookie(headers)
        };
        if !by_address && has_token() {
            return Ok(Granted { by_address, needs_cookie: false });
        }
        let without = self.without_token(headers, is_own);
        if by_address { Ok(Granted { by_address, needs_cookie: without.is_err() }) } else { without }
    }

    /// Returns the value of `Set-Cookie` for pages below a path.
    pub fn cookie(&self, path: &str) -> Option<String> {
        Some(format!("{}={}; Path={path}; HttpOnly; SameSite=Lax", self.cookie, self.session()?))
    }

    fn without_token(&self, headers: &HeaderMap, is_own: impl FnOnce() -> bool) -> Result<Granted, Denied> {
        match self.without_token {
            WithoutToken::Everybody => {}
            WithoutToken::OwnUser if is_own() => {}
            _ => return Err(if self.token.is_some() { Denied::Token } else { Denied::User }),
        }
        // Browsers always send a host.
        let is_local = headers.get_all(HOST).iter().all(|host| host.to_str().is_ok_and(is_address_or_localhost));
        if self.only_local_names && !is_local {
            return Err(Denied::Host);
        }
        Ok(Granted { by_address: false, needs_cookie: false })
    }

    fn is_token(&self, given: &str) -> bool {
        self.token.is_some_and(|token| hash(given) == token)
    }

    /// Returns whether this is the pass, which then is void.
    fn redeem(&self, given: &str) -> bool {
        let mut pass = self.pass.lock().unwrap_or_else(PoisonError::into_inner);
        pass.take_if(|pass| hash(given) == *pass).is_some()
    }

    /// Returns the value of the cookie, which does not reveal the token.
    fn session(&self) -> Option<String> {
        self.token.map(|token| hex(&Sha256::digest(token)))
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut given = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        });
        self.session().is_some_and(|session| given.any(|given| hash(given) == hash(&session)))
    }
}

/// Returns a query without the token; `None` if nothing is left.
pub fn without_token(query: &str) -> Option<String> {
    let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with(TOKEN)).collect();
    (!rest.is_empty()).then(|| rest.join("&"))
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

/// The beginning of the token in a query.
const TOKEN: &str = "token=";

/// Returns the token in a query.
fn token_of(query: Option<&str>) -> Option<String> {
    decode(query?.split('&').find_map(|pair| pair.strip_prefix(TOKEN))?).ok()
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

    /// Rules of a server with a token, or for its own user alone.
    fn rules(token: Option<&str>, only_local_names: bool) -> AccessRules {
        let without = if token.is_some() { WithoutToken::Nobody } else { WithoutToken::OwnUser };
        AccessRules::new(token, None, without, only_local_names, 8080)
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    /// Returns why the rules refuse a request of their own user.
    fn refused(access: &AccessRules, lines: &[(&'static str, &str)], query: Option<&str>) -> Option<Denied> {
        access.check(&headers(lines), query, || true).err()
    }

    #[test]
    fn the_token_may_come_in_three_ways() {
        let access = rules(Some("s3cret:/+"), false);
        let basic = format!("Basic {}", STANDARD.encode("anybody:s3cret:/+"));
        for good in ["Bearer s3cret:/+", "bearer  s3cret:/+", &basic] {
            assert_eq!(refused(&access, &[("authorization", good)], None), None, "{good}");
        }
        assert_eq!(refused(&access, &[], Some("json&token=s3cret:%2F%2B")), None);
        for bad in ["Bearer", "Bearer s3cret", "Basic !", "Basic czNjcmV0", "Digest s3cret:/+", "s3cret:/+"] {
            assert_eq!(refused(&access, &[("authorization", bad)], None), Some(Denied::Token), "{bad}");
        }
        for query in [None, Some(""), Some("token"), Some("token="), Some("nottoken=s3cret:%2F%2B")] {
            assert_eq!(refused(&access, &[], query), Some(Denied::Token), "{query:?}");
        }
    }

    #[test]
    fn the_cookie_stands_for_the_token_that_was_in_the_address() {
        let access = rules(Some("s3cret"), false);
        let granted = access.check(&headers(&[]), Some("token=s3cret"), || false);
        assert_eq!(granted, Ok(Granted { by_address: true, needs_cookie: true }));
        let cookie = access.cookie("/data/").unwrap();
        assert!(cookie.ends_with("; Path=/data/; HttpOnly; SameSite=Lax") && !cookie.contains("s3cret"), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        for good in [pair.to_owned(), format!("a=b; {pair}; c")] {
            assert_eq!(refused(&access, &[("cookie", &good)], None), None, "{good}");
        }
        let of_other_port = pair.replace("8080", "8081");
        for bad in ["tilefs-8080=", "tilefs-8080", "tilefs-8080=s3cret", &of_other_port, &pair[..pair.len() - 1]] {
            assert_eq!(refused(&access, &[("cookie", bad)], None), Some(Denied::Token), "{bad}");
        }
        assert_eq!(rules(Some("other"), false).check(&headers(&[("cookie", pair)]), None, || true), Err(Denied::Token));
        assert_eq!(rules(None, false).cookie("/"), None);
        for (query, rest) in [
            ("token=a", None),
            ("json&token=a", Some("json")),
            ("a=b&token=&c", Some("a=b&c")),
            ("notoken=", Some("notoken=")),
        ] {
            assert_eq!(without_token(query).as_deref(), rest, "{query}");
        }
    }

    #[test]
    fn a_pass_opens_once() {
        let access = AccessRules::new(Some("long"), Some("pass"), WithoutToken::OwnUser, true, 1);
        let check = |query| access.check(&headers(&[]), Some(query), || false);
        let granted = Ok(Granted { by_address: true, needs_cookie: true });
        assert_eq!(check("token=pas"), Err(Denied::Token));
        assert_eq!(
            [check("token=pass"), check("token=pass"), check("token=long")],
            [granted, Err(Denied::Token), granted]
        );
        assert_eq!(check("token=long"), granted);
    }

    #[test]
    fn others_than_the_own_user_need_the_token() {
        let check = |token, without, is_own| {
            AccessRules::new(token, None, without, true, 1).check(&headers(&[]), None, || is_own).err()
        };
        for (token, without, is_own, denied) in [
            (None, WithoutToken::OwnUser, true, None),
            (None, WithoutToken::OwnUser, false, Some(Denied::User)),
            (Some("t"), WithoutToken::OwnUser, true, None),
            (Some("t"), WithoutToken::OwnUser, false, Some(Denied::Token)),
            (Some("t"), WithoutToken::Nobody, true, Some(Denied::Token)),
            (None, WithoutToken::Nobody, true, Some(Denied::User)),
            (None, WithoutToken::Everybody, false, None),
        ] {
            assert_eq!(check(token, without, is_own), denied, "{token:?} {without:?} {is_own}");
        }
        // The address of the own user keeps its token no longer than that of others, but needs no cookie.
        let own = AccessRules::new(Some("t"), None, WithoutToken::OwnUser, true, 1);
        let granted = own.check(&headers(&[]), Some("token=t"), || true);
        assert_eq!(granted, Ok(Granted { by_address: true, needs_cookie: false }));
    }

    #[test]
    fn a_page_that_renames_this_machine_is_refused() {
        let local = rules(None, true);
        for host in
            ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "[::ffff:127.0.0.1]:80", "LOCALHOST:1"]
        {
            assert_eq!(refused(&local, &[("host", host)], None), None, "{host}");
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
            assert_eq!(refused(&local, &[("host", host)], None), Some(Denied::Host), "{host}");
        }
        assert_eq!(refused(&local, &[], None), None);
        for (first, second) in [("localhost", "evil.example"), ("evil.example", "localhost")] {
            assert_eq!(refused(&local, &[("host", first), ("host", second)], None), Some(Denied::Host));
        }
        let named = [("host", "data.example")];
        assert_eq!(refused(&rules(None, false), &named, None), None);
        assert_eq!(refused(&rules(Some("t"), true), &named, Some("token=t")), None);
    }
}
