//! AWS profiles in `~/.aws/config` and `~/.aws/credentials`, and the credentials that they refer to.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use serde_json::Value;
use tilefs_base::error::{Error, Result};
use tilefs_storage::secret::{read_private, warn_if_open};
use tokio::sync::Mutex;

use super::address::escaped;
use super::credentials::{self, AssumedRole, Credentials};
use super::environment::{file, variable};
use super::process;

/// Default region of S3 buckets.
pub const DEFAULT_REGION: &str = "us-east-1";

/// A profile file has a few kilobytes; anything larger than this is something else.
const MOST_FILE: usize = 4 << 20;

/// Maximum length of a chain of `source_profile`; a longer chain is circular.
const MOST_SOURCES: usize = 8;

type Section = BTreeMap<String, String>;

/// A profile, with the single sign-on session that it names.
#[derive(Clone, Default)]
pub struct Profile {
    name: String,
    settings: Section,
    sso_session: Section,
    /// The profile that `source_profile` names, whose credentials assume the role.
    source: Option<Box<Profile>>,
    /// `~/.aws`.
    folder: PathBuf,
}

/// Shows names only.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).field("settings", &self.settings.keys()).finish()
    }
}

impl Profile {
    /// Loads the profile of `AWS_PROFILE`, or `default`; an empty profile if there are no files.
    ///
    /// # Errors
    /// [`Error::Usage`] if neither file has the profile that `AWS_PROFILE` names.
    pub fn load() -> Result<Self> {
        let folder = file("HOME").map(|home| home.join(".aws")).unwrap_or_default();
        let config = file("AWS_CONFIG_FILE").unwrap_or_else(|| folder.join("config"));
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE").unwrap_or_else(|| folder.join("credentials"));
        let chosen = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        let name = chosen.as_deref().unwrap_or("default");
        match Profile::of_texts(name, &text_of(&config), &text_of(&credentials), &folder) {
            Some(profile) => Ok(profile),
            None if chosen.is_none() => Ok(Profile::default()),
            None => Err(Error::usage(format!(
                "AWS_PROFILE is {name}, and there is no such profile in {} and {}",
                config.display(),
                credentials.display()
            ))),
        }
    }

    /// Finds a profile in the texts of the two files.
    fn of_texts(name: &str, config: &str, credentials: &str, folder: &Path) -> Option<Self> {
        Profile::of_sections(name, &sections(config), &sections(credentials), folder, MOST_SOURCES)
    }

    fn of_sections(
        name: &str,
        config: &BTreeMap<String, Section>,
        credentials: &BTreeMap<String, Section>,
        folder: &Path,
        most_sources: usize,
    ) -> Option<Self> {
        let in_config = match name {
            // The name with the prefix takes precedence.
            "default" => config.get("profile default").or_else(|| config.get("default")),
            name => config.get(&format!("profile {name}")),
        };
        let in_credentials = credentials.get(name);
        if in_config.is_none() && in_credentials.is_none() {
            return None;
        }
        let mut settings = in_config.cloned().unwrap_or_default();
        settings.extend(in_credentials.cloned().unwrap_or_default());
        let session = settings.get("sso_session").and_then(|session| config.get(&format!("sso-session {session}")));
        let source = match (settings.get("source_profile"), most_sources.checked_sub(1)) {
            // A profile that names itself assumes the role with its own keys.
            (Some(source), _) if source == name => {
                let own = settings.iter().filter(|(setting, _)| !["source_profile", "role_arn"].contains(&&***setting));
                let settings = own.map(|(setting, value)| (setting.clone(), value.clone())).collect();
                Some(Profile { name: name.to_owned(), settings, ..Profile::default() })
            }
            (Some(source), Some(rest)) => Profile::of_sections(source, config, credentials, folder, rest),
            _ => None,
        };
        let (name, folder) = (name.to_owned(), folder.to_owned());
        let sso_session = session.cloned().unwrap_or_default();
        Some(Profile { name, settings, sso_session, source: source.map(Box::new), folder })
    }

    /// Returns a setting.
    pub fn text(&self, name: &str) -> Option<String> {
        self.settings.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// Configures a client to sign with this profile. If the profile has no credentials, the client uses its own
    /// defaults (roles of containers and machines).
    ///
    /// # Errors
    /// [`Error::Key`] if the profile is incomplete or needs an unsupported mechanism.
    pub fn sign(&self, builder: AmazonS3Builder) -> Result<AmazonS3Builder> {
        let failed = |what: &str| Error::key(format!("the AWS profile {} {what}", self.name));
        let (file, role) = (self.text("web_identity_token_file"), self.text("role_arn"));
        if let (Some(file), Some(role)) = (file, &role) {
            return Ok(builder
                .with_config(AmazonS3ConfigKey::WebIdentityTokenFile, file)
                .with_config(AmazonS3ConfigKey::RoleArn, role));
        }
        if role.is_some() && self.source.is_none() {
            return Err(failed(&self.no_source()));
        }
        if role.is_some() && self.text("mfa_serial").is_some() {
            return Err(failed(
                "takes a role with a code that somebody types (mfa_serial); give it credential_process = aws \
                 configure export-credentials --profile NAME",
            ));
        }
        if role.is_none() && self.text("aws_access_key_id").is_some() && self.text("aws_secret_access_key").is_none() {
            return Err(failed("has a key id and no aws_secret_access_key"));
        }
        let gives = ["role_arn", "aws_access_key_id", "credential_process", "sso_account_id"];
        if gives.iter().any(|name| self.text(name).is_some()) {
            let renewed = ProfileCredentials { profile: self.clone(), kept: Mutex::default() };
            return Ok(builder.with_credentials(Arc::new(renewed)));
        }
        Ok(builder)
    }

    /// Explains why the role has no source credentials.
    fn no_source(&self) -> String {
        match self.text("source_profile") {
            Some(source) => format!("takes its role by source_profile = {source}, which leads nowhere"),
            None => "takes a role by credential_source, which tilefs does not; give it credential_process = aws \
                     configure export-credentials --profile NAME"
                .to_owned(),
        }
    }

    /// Fetches the credentials of this profile, from its keys, role, command or single sign-on.
    fn fetch(&self) -> Pin<Box<dyn Future<Output = std::result::Result<Credentials, String>> + Send + '_>> {
        Box::pin(async {
            if let Some(name) = self.text("role_arn") {
                let source = self.source.as_ref();
                let source = source.ok_or_else(|| format!("the AWS profile {} {}", self.name, self.no_source()))?;
                let taker = source.fetch().await?;
                let (external_id, session) = (self.text("external_id"), self.text("role_session_name"));
                let region = self.text("region").or_else(|| source.text("region"));
                let role = AssumedRole {
                    name: &name,
                    external_id: external_id.as_deref(),
                    session: session.as_deref(),
                    region: region.as_deref().unwrap_or(DEFAULT_REGION),
                };
                return role.assume(&taker).await;
            }
            if let (Some(id), Some(secret)) = (self.text("aws_access_key_id"), self.text("aws_secret_access_key")) {
                return Credentials::new(id, secret, self.text("aws_session_token"), None)
                    .ok_or(format!("the keys of the AWS profile {} have characters that no key has", self.name));
            }
            if let Some(command) = self.text("credential_process") {
                return process_credentials(&command).await;
            }
            self.sign_on().await
        })
    }

    /// Exchanges a single sign-on token for the credentials of a role.
    async fn sign_on(&self) -> std::result::Result<Credentials, String> {
        let of_session = |name: &str| self.sso_session.get(name).cloned().or_else(|| self.text(name));
        let need = |name: &str| of_session(name).ok_or(format!("the AWS profile {} has no {name}", self.name));
        let (account, role) = (need("sso_account_id")?, need("sso_role_name")?);
        let (region, start) = (need("sso_region")?, need("sso_start_url")?);
        let token = cached_token(&self.folder.join("sso/cache"), &start).ok_or(format!(
            "the single sign-on session of the AWS profile {} has expired or does not exist; run `aws sso \
             login --profile {}`",
            self.name, self.name
        ))?;
        sso_credentials(&region, &account, &role, &token).await
    }
}

/// Credentials that are fetched on first use, and again before they expire.
struct ProfileCredentials {
    profile: Profile,
    kept: Mutex<Option<Credentials>>,
}

impl fmt::Debug for ProfileCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.profile.fmt(f)
    }
}

#[async_trait]
impl CredentialProvider for ProfileCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        // Concurrent callers wait for the same fetch.
        let mut kept = self.kept.lock().await;
        if let Some(good) = kept.as_ref().filter(|kept| kept.are_good()) {
            return Ok(good.credential.clone());
        }
        let fetched = self
            .profile
            .fetch()
            .await
            .map_err(|reason| object_store::Error::Generic { store: "AWS credentials", source: reason.into() })?;
        Ok(kept.insert(fetched).credential.clone())
    }
}

/// Runs a profile's command, which prints credentials as JSON.
async fn process_credentials(command: &str) -> std::result::Result<Credentials, String> {
    let output = process::run(command).await.map_err(|reason| format!("credential_process: {reason}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().last().unwrap_or_default();
        return Err(format!("credential_process failed ({}): {line}", output.status));
    }
    let value: Value = serde_json::from_slice(&output.stdout).map_err(|_| "credential_process did not print JSON")?;
    let end = value.get("Expiration").and_then(Value::as_str);
    let end = end.and_then(|end| Some(DateTime::parse_from_rfc3339(end).ok()?.to_utc()));
    Credentials::of_json(&value, ["AccessKeyId", "SecretAccessKey", "SessionToken"], end)
        .ok_or("credential_process printed no AccessKeyId and SecretAccessKey".to_owned())
}

/// Returns the single sign-on token cached by the AWS command line, if it has not expired.
fn cached_token(folder: &Path, start_url: &str) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter_map(|file| token_of(&fs::read_to_string(file).ok()?, start_url, Utc::now())).next()
}

fn token_of(text: &str, start_url: &str, now: DateTime<Utc>) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let field = |name: &str| value.get(name)?.as_str();
    let end = DateTime::parse_from_rfc3339(field("expiresAt")?).ok()?.to_utc();
    (field("startUrl")? == start_url && end > now).then(|| field("accessToken").map(str::to_owned))?
}

/// Requests the credentials of a role from the single sign-on portal.
async fn sso_credentials(
    region: &str,
    account: &str,
    role: &str,
    token: &str,
) -> std::result::Result<Credentials, String> {
    let portal =
        variable("AWS_ENDPOINT_URL_SSO").unwrap_or_else(|| format!("https://portal.sso.{region}.amazonaws.com"));
    let url = format!(
        "{}/federation/credentials?account_id={}&role_name={}",
        portal.trim_end_matches('/'),
        escaped(account),
        escaped(role)
    );
    let failed = |error: reqwest::Error| format!("the portal of the single sign-on: {}", error.without_url());
    let client = credentials::client().map_err(failed)?;
    let response = client.get(url).header("x-amz-sso_bearer_token", token).send().await.map_err(failed)?;
    let status = response.status();
    let body = credentials::body(response).await.map_err(failed)?;
    if !status.is_success() {
        return Err(format!(
            "the portal of the single sign-on refuses the role {role} of the account {account} ({}); run `aws sso \
             login`",
            status.as_u16()
        ));
    }
    let value: Value = serde_json::from_slice(&body).map_err(|_| "the portal of the single sign-on sent no JSON")?;
    let role = value.get("roleCredentials").unwrap_or(&Value::Null);
    let end = role.get("expiration").and_then(Value::as_i64).and_then(DateTime::from_timestamp_millis);
    Credentials::of_json(role, ["accessKeyId", "secretAccessKey", "sessionToken"], end)
        .ok_or("the portal of the single sign-on sent no credentials".to_owned())
}

/// Reads a profile file; empty if it is missing. Warns if others may read keys in it.
fn text_of(path: &Path) -> String {
    let Ok((bytes, mode)) = read_private(path, MOST_FILE) else { return String::new() };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    warn_if_open(path, mode, text.contains("aws_secret_access_key"));
    text
}

/// Parses `[name]` sections of `name = value` lines. Indented lines are nested settings, which are not used here.
fn sections(text: &str) -> BTreeMap<String, Section> {
    let mut sections: BTreeMap<String, Section> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            current = Some(name.trim_matches('"').replace('"', ""));
            sections.entry(current.clone().unwrap_or_default()).or_default();
        } else if let (Some(section), Some((name, value)), false) = (&current, line.split_once('='), is_indented) {
            // A comment may follow a value.
            let value = value.split(" #").next().unwrap_or(value).trim();
            let section = sections.entry(section.clone()).or_default();
            section.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# all\n[default]\nregion = eu-west-1\n\n[profile work]\nregion=us-west-2 # far\ns3 =\n  \
                          addressing_style = path\nsso_session = home\nsso_account_id = 12\nsso_role_name = reader\n\
                          [sso-session home]\nsso_region = eu-north-1\nsso_start_url = https://home.example/start\n";

    #[test]
    fn profiles_are_in_both_files() {
        let credentials = "[default]\naws_access_key_id = AKID\naws_secret_access_key = hunter2\n";
        let load = |name: &str| Profile::of_texts(name, CONFIG, credentials, Path::new("/none"));
        let usual = load("default").unwrap();
        assert_eq!(usual.text("region").as_deref(), Some("eu-west-1"));
        assert_eq!(usual.text("aws_secret_access_key").as_deref(), Some("hunter2"));
        assert!(!format!("{usual:?}").contains("hunter2"));
        let work = load("work").unwrap();
        assert_eq!(work.text("region").as_deref(), Some("us-west-2"));
        assert_eq!(work.text("addressing_style"), None);
        assert_eq!(work.sso_session.get("sso_region").map(String::as_str), Some("eu-north-1"));
        let io = crate::runtime::IoThread::start().unwrap();
        assert!(
            io.wait(async { Ok(work.fetch().await) })
                .unwrap()
                .is_err_and(|reason| reason.contains("aws sso login --profile work"))
        );
        assert!(load("none").is_none());
    }

    #[test]
    fn an_incomplete_profile_is_an_error() {
        let sign = |text: &str| {
            let profile = Profile::of_texts("default", text, "", Path::new("/none")).unwrap();
            profile.sign(AmazonS3Builder::new()).err().map(|error| error.to_string())
        };
        assert_eq!(sign("[default]\nregion = a\n"), None);
        assert!(sign("[default]\naws_access_key_id = a\n").unwrap().contains("no aws_secret_access_key"));
        assert!(sign("[default]\nrole_arn = a\n").unwrap().contains("credential_process"));
        assert!(sign("[default]\nrole_arn = a\nsource_profile = b\n").unwrap().contains("which leads nowhere"));
        let keys = "aws_access_key_id = a\naws_secret_access_key = b\n";
        assert_eq!(sign(&format!("[default]\nrole_arn = a\nsource_profile = b\n[profile b]\n{keys}")), None);
        assert_eq!(sign(&format!("[default]\nrole_arn = a\nsource_profile = default\n{keys}")), None);
        let circle =
            "[default]\nrole_arn = a\nsource_profile = b\n[profile b]\nrole_arn = b\nsource_profile = default\n";
        assert_eq!(sign(circle), None, "it ends, and is told when credentials are wanted");
    }

    #[test]
    fn commands_give_credentials() {
        let json = r#"{"Version":1,"AccessKeyId":"AKID","SecretAccessKey":"hunter2","SessionToken":"t","Expiration":"2024-01-31T12:00:00Z"}"#;
        let io = crate::runtime::IoThread::start().unwrap();
        let process_credentials = |command: &str| io.wait(async { Ok(process_credentials(command).await) }).unwrap();
        let got = process_credentials(&format!("echo '{json}'")).unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!((got.credential.key_id.as_str(), got.credential.token.as_deref()), ("AKID", Some("t")));
        assert_eq!(got.expires.unwrap().timestamp(), 1_706_702_400);
        let error = process_credentials("echo no access >&2; false").err().unwrap();
        assert!(error.contains("no access"), "{error}");
        assert!(process_credentials("echo {}").is_err() && process_credentials("echo").is_err());
    }

    #[test]
    fn sso_tokens_are_valid_until_they_expire() {
        let text = r#"{"startUrl":"https://home","accessToken":"token","expiresAt":"2024-01-31T12:00:00Z"}"#;
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        assert_eq!(token_of(text, "https://home", at(1_706_702_399)).as_deref(), Some("token"));
        assert_eq!(token_of(text, "https://home", at(1_706_702_400)), None);
        assert_eq!(token_of(text, "https://other", at(0)), None);
        assert_eq!(token_of("{}", "https://home", at(0)), None);
    }
}
