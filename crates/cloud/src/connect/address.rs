//! Server addresses: validation before a request is made, because the client libraries assume valid ones, and escapes.

use object_store::client::{HttpRequest, HttpRequestBody};
use tilefs_base::error::{Error, Result};
use tilefs_base::percent;

/// Builds a request for an address; `None` if it is not a valid server address.
pub fn request(address: &str) -> Option<HttpRequest> {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = address.parse().ok()?;
    let uri = request.uri();
    let is_of_server = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    // The two URL parsers accept different strings, and requests go through both.
    (is_of_server && reqwest::Url::parse(&uri.to_string()).is_ok()).then_some(request)
}

/// Rejects an invalid server address.
///
/// # Errors
/// [`Error::Usage`], which names the origin of the address but not the address itself, because it may have a password.
pub fn check(address: &str, origin: &str) -> Result<()> {
    match request(address) {
        Some(_) => Ok(()),
        None => Err(Error::usage(format!("{origin} is not a valid server address, such as https://HOST:PORT"))),
    }
}

/// Percent-encodes text for a URL.
pub fn escaped(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => url.push(char::from(byte)),
            false => percent::escape(&[byte], &mut url),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        for good in
            ["http://h", "https://h:443/", "http://127.0.0.1:1", "http://[::1]:9000/a", "https://b-1.s3.x.y/?a=b"]
        {
            assert!(request(good).is_some() && check(good, "it").is_ok(), "{good}");
        }
        let none = [
            "",
            "h",
            "h:1",
            "::",
            "http://",
            "ftp://h",
            "http://h:99999",
            "http://[::1",
            "http://a b",
            "http://bücher",
        ];
        // A host name whose last label is a number must be an IP address.
        for bad in none.into_iter().chain(["http://b.127.0.0.1", "http://h/a b", "http://h/\n"]) {
            assert!(request(bad).is_none(), "{bad}");
            let error = check(bad, "the endpoint").unwrap_err().to_string();
            assert!(error.contains("the endpoint is not a valid server address"), "{error}");
        }
    }
}
