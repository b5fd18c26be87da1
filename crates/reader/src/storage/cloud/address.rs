//! Addresses of servers, checked before a request is made of one: what makes requests takes for granted that they are.

use object_store::client::{HttpRequest, HttpRequestBody};

use tilefs_format::error::{Error, Result};

/// A request of what has this address; `None` where it is no address of a server.
pub fn request(address: &str) -> Option<HttpRequest> {
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() = address.parse().ok()?;
    let uri = request.uri();
    let is_of_server = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    // Not all that passes as the one does as the other, and requests are made of both.
    (is_of_server && reqwest::Url::parse(&uri.to_string()).is_ok()).then_some(request)
}

/// Refuses what is no address of a server.
///
/// # Errors
/// [`Error::Usage`], which says where the address came from; it may have a password, and is not told itself.
pub fn check(address: &str, origin: &str) -> Result<()> {
    match request(address) {
        Some(_) => Ok(()),
        None => Err(Error::usage(format!("{origin} makes no address of a server, such as https://HOST:PORT"))),
    }
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
        // A name whose last part is a number is to be an Internet address as a whole.
        for bad in none.into_iter().chain(["http://b.127.0.0.1", "http://h/a b", "http://h/\n"]) {
            assert!(request(bad).is_none(), "{bad}");
            let error = check(bad, "the endpoint").unwrap_err().to_string();
            assert!(error.contains("the endpoint makes no address of a server"), "{error}");
        }
    }
}
