//! Temporary credentials, and role credentials from the AWS token service.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use serde_json::Value;
use tilefs_base::xml::XmlReader;
use tilefs_threads::cancellation;

use super::address;
use super::address::escaped;
use super::environment::variable;
use crate::transport;
use crate::uri::is_name;

/// Credentials that expire sooner than this are renewed.
const MIN_LIFETIME: TimeDelta = TimeDelta::minutes(5);

/// Time limit of requests for credentials.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of an answer: credentials take a few kilobytes.
const MAX_ANSWER: usize = 256 << 10;

/// Default session name, which appears in audit logs.
const SESSION: &str = "tilefs";

/// AWS credentials and their expiry, if any.
#[derive(Clone)]
pub struct Credentials {
    pub credential: Arc<AwsCredential>,
    pub expires: Option<DateTime<Utc>>,
}

/// Hides the secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Creates credentials from an id, a secret and, for temporary ones, a token. `None` if one of them is not valid in
    /// a header.
    pub fn new(id: String, secret: String, token: Option<String>, expires: Option<DateTime<Utc>>) -> Option<Self> {
        let can_be_sent = [&id, &secret].into_iter().chain(&token).all(|text| is_sendable(text));
        can_be_sent.then(|| {
            let credential = AwsCredential { key_id: id, secret_key: secret, token };
            Credentials { credential: Arc::new(credential), expires }
        })
    }

    /// Reads credentials from a JSON object, with the given field names for id, secret and token.
    pub fn of_json(value: &Value, names: [&str; 3], expires: Option<DateTime<Utc>>) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let [id, secret, token] = names;
        Credentials::new(text(id)?, text(secret)?, text(token), expires)
    }

    /// Returns whether they are valid long enough for the next requests.
    pub fn are_good(&self) -> bool {
        self.expires.is_none_or(|end| end - Utc::now() > MIN_LIFETIME)
    }
}

/// Returns whether a text is valid in a request header.
pub fn is_sendable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// Creates an HTTP client for credential services.
pub fn client() -> reqwest::Result<reqwest::Client> {
    transport::direct_client(reqwest::Client::builder()).timeout(TIMEOUT).build()
}

/// Reads the body of an answer with credentials, truncated to [`MAX_ANSWER`] bytes.
///
/// # Errors
/// If the connection breaks or times out.
pub async fn body(mut answer: reqwest::Response) -> reqwest::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await? {
        bytes.extend_from_slice(&part[..part.len().min(MAX_ANSWER - bytes.len())]);
        if bytes.len() == MAX_ANSWER {
            break;
        }
    }
    Ok(bytes)
}

/// A role to assume.
pub struct AssumedRole<'a> {
    pub name: &'a str,
    pub external_id: Option<&'a str>,
    pub session: Option<&'a str>,
    pub region: &'a str,
}

impl AssumedRole<'_> {
    /// Requests credentials of the role from the token service (STS, `AssumeRole`), signed with `taker`'s credentials.
    pub async fn assume(&self, taker: &Credentials) -> Result<Credentials, String> {
        let service = variable("AWS_ENDPOINT_URL_STS");
        let service = service.unwrap_or_else(|| format!("https://sts.{}.amazonaws.com", self.region));
        let mut url = format!(
            "{}/?Action=AssumeRole&Version=2011-06-15&RoleArn={}&RoleSessionName={}",
            service.trim_end_matches('/'),
            escaped(self.name),
            escaped(self.session.unwrap_or(SESSION))
        );
        if let Some(id) = self.external_id {
            url.push_str(&format!("&ExternalId={}", escaped(id)));
        }
        let no_address = || format!("{service} is not a valid address of a token service");
        let mut request = address::request(&url).filter(|_| is_name(self.region)).ok_or_else(no_address)?;
        AwsAuthorizer::new(&taker.credential, "sts", self.region)
            .try_authorize(&mut request, None)
            .map_err(|error| format!("the request for the role cannot be signed: {error}"))?;
        let failed = |error: reqwest::Error| format!("the token service: {}", error.without_url());
        let asked = client().map_err(failed)?.get(url).headers(request.headers().clone()).send();
        let answer = asked.await.map_err(failed)?;
        let status = answer.status();
        let text = String::from_utf8_lossy(&body(answer).await.map_err(failed)?).into_owned();
        if !status.is_success() {
            let code = field(&text, "Code").map_or(String::new(), |code| format!(" {code}"));
            return Err(format!("the token service does not give the role {} ({}{code})", self.name, status.as_u16()));
        }
        parse_role_credentials(&text).ok_or("the token service sent no credentials".to_owned())
    }
}

/// Parses the credentials in an answer of the token service.
fn parse_role_credentials(text: &str) -> Option<Credentials> {
    let end = DateTime::parse_from_rfc3339(&field(text, "Expiration")?).ok()?.to_utc();
    let token = field(text, "SessionToken");
    Credentials::new(field(text, "AccessKeyId")?, field(text, "SecretAccessKey")?, token, Some(end))
}

/// Returns the text of the first element of that name.
fn field(text: &str, name: &str) -> Option<String> {
    let mut reader = XmlReader::new(text, cancellation::check).ok()?;
    let found = reader.find(name).ok()??;
    reader.text(&found).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_role_are_parsed_with_their_expiry() {
        let text = "<AssumeRoleResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><AssumeRoleResult>\
                    <Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey>\
                    <SessionToken>t</SessionToken><Expiration>2024-01-31T12:00:00Z</Expiration></Credentials>\
                    </AssumeRoleResult></AssumeRoleResponse>";
        let got = parse_role_credentials(text).unwrap();
        assert_eq!((got.credential.key_id.as_str(), got.credential.token.as_deref()), ("ASIA", Some("t")));
        assert!(got.expires.unwrap().timestamp() == 1_706_702_400 && !got.are_good());
        assert!(!format!("{got:?}").contains("hunter2"));
        assert!(parse_role_credentials("<a/>").is_none() && parse_role_credentials("no XML").is_none());
    }

    #[test]
    fn credentials_must_be_valid_in_a_header() {
        let new = |token: &str| Credentials::new("id".to_owned(), "secret".to_owned(), Some(token.to_owned()), None);
        assert!(new("token").unwrap().are_good());
        assert!(new("to\nken").is_none() && new("tökén").is_none());
    }
}
