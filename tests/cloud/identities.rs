//! Credentials without configured keys: the identities of machines and containers of each provider, and Google's key
//! files.

use std::fs;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use super::servers::S3;
use super::skip::{Need, skipped};
use super::{fixtures, program, text};
use support::http::Message;

/// A server that issues credentials, and forwards requests signed with them to a store that ignores signatures.
struct Giver {
    address: SocketAddr,
    /// The requests for credentials, in order.
    asked: Arc<Mutex<Vec<Message>>>,
}

impl Giver {
    /// Starts a server. `give` answers requests for credentials; all other requests are for the store, and must have
    /// the header `Authorization` that begins with `signature`.
    fn start(store: SocketAddr, signature: &'static str, give: fn(&Message) -> Option<&'static str>) -> Giver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let giver = Giver { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = giver.asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = asked.clone();
                // Ignore clients that disconnect.
                thread::spawn(move || drop(serve(stream, store, signature, give, &asked)));
            }
        });
        giver
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<Message> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    store: SocketAddr,
    signature: &str,
    give: fn(&Message) -> Option<&'static str>,
    asked: &Mutex<Vec<Message>>,
) -> std::io::Result<()> {
    let mut requests = BufReader::new(stream.try_clone()?);
    while let Some(mut request) = Message::read(&mut requests, true)? {
        let mut answer = if let Some(given) = give(&request) {
            asked.lock().unwrap().push(request);
            let mut answer = Message::new("HTTP/1.1 200 OK", given.as_bytes());
            answer.set("Content-Type", if given.starts_with('{') { "application/json" } else { "text/plain" });
            answer
        } else if request.header("Authorization").is_some_and(|header| header.starts_with(signature)) {
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Authorization"));
            request.send(store)?
        } else {
            Message::new("HTTP/1.1 403 Forbidden", b"<Error><Code>AccessDenied</Code></Error>")
        };
        answer.set("Connection", "keep-alive");
        stream.write_all(&answer.head())?;
        stream.write_all(&answer.body)?;
    }
    Ok(())
}

const OF_AMAZON: &str = r#"{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ASIAGIVEN", "SecretAccessKey": "hunter2",
    "Token": "given", "Expiration": "2100-01-01T00:00:00Z", "LastUpdated": "2024-01-01T00:00:00Z"}"#;

const SIGNED_BY_AMAZON: &str = "AWS4-HMAC-SHA256 Credential=ASIAGIVEN/";

const OF_GOOGLE: &str = r#"{"access_token": "given", "expires_in": 3600, "token_type": "Bearer"}"#;

const OF_AZURE: &str = r#"{"access_token": "given", "expires_on": "4102444800", "resource": "https://storage.azure.com/",
    "token_type": "Bearer"}"#;

/// Returns the address of a store with the sample array in this bucket; skips the test with a message if there is no
/// store.
fn store(bucket: &str) -> Option<SocketAddr> {
    let server = S3::get()?;
    server.make_bucket(bucket);
    server.put_folder(&fixtures().join("demo"), &format!("{bucket}/demo"));
    Some(server.address())
}

/// Reads one value with these environment variables.
fn read(uri: &str, environment: &[(&str, &str)]) -> Output {
    let mut command = program();
    command.envs(environment.iter().copied()).args(["cat", uri, "slice/45,120/temp.f32"]);
    command.output().unwrap()
}

fn assert_is_read(output: &Output) {
    let said = text(&output.stderr);
    assert_eq!(output.stdout, 16.7f32.to_le_bytes(), "{said}");
    assert!(!said.contains("hunter2") && !said.contains("given"), "{said}");
}

#[test]
fn machines_of_amazon_have_a_role() {
    let Some(store) = store("machine") else { return };
    let giver = Giver::start(store, SIGNED_BY_AMAZON, |request| match (request.method(), request.second()) {
        ("PUT", "/latest/api/token") => Some("session"),
        ("GET", "/latest/meta-data/iam/security-credentials/") => Some("reader"),
        ("GET", "/latest/meta-data/iam/security-credentials/reader") => Some(OF_AMAZON),
        _ => None,
    });
    let here = giver.url("");
    assert_is_read(&read("s3://machine/demo", &[("AWS_METADATA_ENDPOINT", &here), ("AWS_ENDPOINT_URL", &here)]));
    let asked = giver.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked[1..].iter().all(|one| one.header("X-aws-ec2-metadata-token") == Some("session")), "{asked:?}");
}

#[test]
fn containers_of_amazon_have_a_role() {
    let Some(store) = store("container") else { return };
    let give = |request: &Message| (request.second() == "/role").then_some(OF_AMAZON);
    let giver = Giver::start(store, SIGNED_BY_AMAZON, give);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "of the pod").unwrap();
    let environment = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", giver.url("/role")),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.display().to_string()),
        ("AWS_ENDPOINT_URL", giver.url("")),
    ];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_is_read(&read("s3://container/demo", &environment));
    let asked = giver.asked();
    assert!(asked.len() == 1 && asked[0].header("Authorization") == Some("of the pod"), "{asked:?}");
}

#[test]
fn machines_of_google_have_an_account() {
    let Some(store) = store("account") else { return };
    let giver = Giver::start(store, "Bearer given", |request| {
        request.second().starts_with("/computeMetadata/v1/instance/service-accounts/default/token").then_some(OF_GOOGLE)
    });
    let host = giver.address.to_string();
    let mut command = program();
    command.env("GCE_METADATA_HOST", &host);
    command.args(["cat", "-o", &format!("vfs.gcs.endpoint={}", giver.url("")), "gs://account/demo"]);
    assert_is_read(&command.arg("slice/45,120/temp.f32").output().unwrap());
    let asked = giver.asked();
    assert!(asked.len() == 1 && asked[0].header("Metadata-Flavor") == Some("Google"), "{asked:?}");
}

/// Requests to Google are signed as a service account, with a token for a key from a file.
#[test]
fn keys_of_google_are_in_a_file_that_is_not_for_others() {
    let Some(store) = store("service") else { return };
    let giver = Giver::start(store, "Bearer eyJ", |_| None);
    let made =
        Command::new("openssl").args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]).output();
    let Ok(made) = made else { return skipped(Need::Programs, "openssl makes no keys") };
    let folder = tempfile::tempdir().unwrap();
    let (file, home) = (folder.path().join("key.json"), folder.path().join("home"));
    let key = text(&made.stdout).replace('\n', "\\n");
    let account = format!(
        r#"{{"type": "service_account", "private_key_id": "1", "private_key": "{key}", "client_email": "a@example.com",
            "client_id": "2", "token_uri": "http://127.0.0.1:1/token"}}"#
    );
    let usual = home.join(".config/gcloud/application_default_credentials.json");
    fs::create_dir_all(usual.parent().unwrap()).unwrap();
    for (place, environment) in [
        (&file, ("GOOGLE_APPLICATION_CREDENTIALS", file.display().to_string())),
        (&usual, ("HOME", home.display().to_string())),
    ] {
        fs::write(place, &account).unwrap();
        for (mode, is_warned) in [(0o600, false), (0o644, true)] {
            fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
            let mut command = program();
            command.env(environment.0, &environment.1);
            command.args(["cat", "-o", &format!("vfs.gcs.endpoint={}", giver.url("")), "gs://service/demo"]);
            let output = command.arg("slice/45,120/temp.f32").output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.stdout, 16.7f32.to_le_bytes(), "{said}");
            assert_eq!(said.contains("others may open it (mode 644)"), is_warned, "{said}");
            assert!(!said.contains("PRIVATE KEY"), "{said}");
        }
        fs::remove_file(place).unwrap();
    }
}

/// The store is not Azure's, so it has no such array, but it gets a request with the right identity.
#[test]
fn machines_of_azure_have_an_identity() {
    let Some(store) = store("identity") else { return };
    let giver =
        Giver::start(store, "Bearer given", |request| request.second().starts_with("/identity?").then_some(OF_AZURE));
    let environment = [
        ("IDENTITY_ENDPOINT", giver.url("/identity")),
        ("IDENTITY_HEADER", "machine".to_owned()),
        ("AZURE_STORAGE_ACCOUNT", "account".to_owned()),
        ("AZURE_BLOB_ENDPOINT", giver.url("/account")),
    ];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let output = read("azure://identity/demo", &environment);
    let said = text(&output.stderr);
    assert!(!output.status.success() && !said.contains("may not be read"), "{said}");
    let asked = giver.asked();
    assert!(asked.len() == 1 && asked[0].header("x-identity-header") == Some("machine"), "{asked:?}");
    assert!(asked[0].second().contains("resource=https%3A%2F%2Fstorage.azure.com"), "{asked:?}");
}
