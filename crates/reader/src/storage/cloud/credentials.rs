//! Credentials that end, and those that the token service of AWS gives for a role.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use serde_json::Value;

use super::address;
use super::connect::escaped;
use super::environment::variable;
use super::transport;
use crate::storage::uri::is_name;

/// Credentials that expire so soon are fetched anew.
const LEAST_LIFE: TimeDelta = TimeDelta::minutes(5);

/// How long those who give credentials may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How much of an answer is read: credentials take some kilobytes.
const MOST_ANSWER: usize = 256 << 10;

/// What a session is called, in the records of who did what.
const SESSION: &str = "tilefs";

/// Credentials of AWS, and when they end, if they do.
#[derive(Clone)]
pub struct Credentials {
    pub credential: Arc<AwsCredential>,
    pub expires: Option<DateTime<Utc>>,
}

/// Without the secrets.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Those of an id and a secret, with the token that temporary ones have. None where one of them cannot be sent.
    pub fn new(id: String, secret: String, token: Option<String>, expires: Option<DateTime<Utc>>) -> Option<Self> {
        let can_be_sent = [&id, &secret].into_iter().chain(&token).all(|text| is_sendable(text));
        can_be_sent.then(|| {
            let credential = AwsCredential { key_id: id, secret_key: secret, token };
            Credentials { credential: Arc::new(credential), expires }
        })
    }

    /// Those in a JSON object, whose fields for id, secret and token have these names.
    pub fn of_json(value: &Value, names: [&str; 3], expires: Option<DateTime<Utc>>) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let [id, secret, token] = names;
        Credentials::new(text(id)?, text(secret)?, text(token), expires)
    }

    /// Whether they will do for the next requests.
    pub fn are_good(&self) -> bool {
        self.expires.is_none_or(|end| end - Utc::now() > LEAST_LIFE)
    }
}

/// Whether a text can stand in the header of a request.
pub fn is_sendable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// A client for those who give credentials.
pub fn client() -> reqwest::Result<reqwest::Client> {
    transport::faithful(reqwest::Client::builder()).timeout(TIMEOUT).build()
}

/// The text of an answer with credentials; of one that is too long for that, only the beginning.
///
/// # Errors
/// Where the connection breaks, or takes too long.
pub async fn body(mut answer: reqwest::Response) -> reqwest::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await? {
        bytes.extend_from_slice(&part[..part.len().min(MOST_ANSWER - bytes.len())]);
        if bytes.len() == MOST_ANSWER {
            break;
        }
    }
    Ok(bytes)
}

/// A role to take.
pub struct Role<'a> {
    pub name: &'a str,
    pub external_id: Option<&'a str>,
    pub session: Option<&'a str>,
    pub region: &'a str,
}

impl Role<'_> {
    /// Asks the token service (STS, `AssumeRole`) for credentials of the role, as somebody who may take it.
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
        let no_address = || format!("{service} is no address of a token service");
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
        of_answer(&text).ok_or("the token service sent no credentials".to_owned())
    }
}

/// The credentials in an answer of the token service.
fn of_answer(text: &str) -> Option<Credentials> {
    let end = DateTime::parse_from_rfc3339(&field(text, "Expiration")?).ok()?.to_utc();
    let token = field(text, "SessionToken");
    Credentials::new(field(text, "AccessKeyId")?, field(text, "SecretAccessKey")?, token, Some(end))
}

/// The text of the first element of that name.
fn field(text: &str, name: &str) -> Option<String> {
    let document = roxmltree::Document::parse(text).ok()?;
    let found = document.descendants().find(|node| node.tag_name().name() == name)?;
    found.text().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_token_service_have_credentials_and_their_end() {
        let text = "<AssumeRoleResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'><AssumeRoleResult>\
                    <Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey>\
                    <SessionToken>t</SessionToken><Expiration>2024-01-31T12:00:00Z</Expiration></Credentials>\
                    </AssumeRoleResult></AssumeRoleResponse>";
        let got = of_answer(text).unwrap();
        assert_eq!((got.credential.key_id.as_str(), got.credential.token.as_deref()), ("ASIA", Some("t")));
        assert!(got.expires.unwrap().timestamp() == 1_706_702_400 && !got.are_good());
        assert!(!format!("{got:?}").contains("hunter2"));
        assert!(of_answer("<a/>").is_none() && of_answer("no XML").is_none());
    }

    #[test]
    fn what_no_header_can_hold_is_no_credential() {
        let new = |token: &str| Credentials::new("id".to_owned(), "secret".to_owned(), Some(token.to_owned()), None);
        assert!(new("token").unwrap().are_good());
        assert!(new("to\nken").is_none() && new("tökén").is_none());
    }
}
