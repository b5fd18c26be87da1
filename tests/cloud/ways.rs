//! Connections to the store: through a proxy, and with TLS.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::proxy::Proxy;
use super::same::assert_same;
use super::servers::S3;
use super::skip::{Need, skipped};
use super::{cloud_options, fixtures, program, reaching, text};

#[test]
fn the_proxy_of_the_settings_is_asked() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("behind");
    server.put_folder(&fixtures().join("demo"), "behind/demo");
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let mut cloud = cloud_options("http://store.invalid");
    let (host, port) = (proxy.address().ip().to_string(), proxy.address().port().to_string());
    cloud.settings.set_typed("vfs.s3.proxy_host", &host).unwrap();
    cloud.settings.set_typed("vfs.s3.proxy_port", &port).unwrap();
    assert!(assert_same(&fixtures().join("demo"), "s3://behind/demo", &reaching(cloud)) > 5);
    let asked = proxy.take();
    assert!(!asked.is_empty() && asked.iter().all(|one| one.target.starts_with("http://store.invalid/")), "{asked:#?}");
}

/// Creates a certificate authority, and a certificate that it has signed for this machine.
const CERTIFICATES: &str = "
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > extensions
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out certificate.pem -days 2 -extfile extensions
cat certificate.pem ca.pem > chain.pem";

/// The certificate of the store is signed by an authority that only `vfs.s3.ca_file` names.
#[test]
fn certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let made = Command::new("sh").args(["-e", "-c", CERTIFICATES]).current_dir(&folder).output().unwrap();
    if !made.status.success() {
        return skipped(Need::Programs, "openssl makes no certificates");
    }
    let Some(server) = S3::with_tls(&file("chain.pem"), &file("key.pem")) else { return };
    let run = |settings: &[&str]| {
        let mut command = program();
        command.env("AWS_ENDPOINT_URL", format!("https://{}", server.address()));
        command.args(["info", "--anonymous", "s3://none/array"]);
        for setting in settings {
            command.args(["-o", setting]);
        }
        let output = command.output().unwrap();
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let by_authority = format!("vfs.s3.ca_file={}", file("ca.pem").display());
    for settings in [&[by_authority.as_str()][..], &["vfs.s3.verify_ssl=false"]] {
        let said = run(settings);
        assert!(said.contains("there is no bucket none"), "{settings:?}: {said}");
    }
    let said = run(&[]);
    assert!(said.contains("cannot be reached") && said.contains("certificate"), "{said}");
    fs::write(file("empty.pem"), "").unwrap();
    let said = run(&[&format!("vfs.s3.ca_file={}", file("empty.pem").display())]);
    assert!(said.contains("empty.pem: there is none"), "{said}");
}

/// A setting or an environment variable, and its value.
type Set<'a> = (&'a str, &'a str);

/// A wrong value in a URI, a setting or the environment gives an error of one line, and no internal error. The test
/// tries values in each setting from which an address is made.
#[test]
fn what_makes_no_address_is_an_error() {
    let values = ["http://ü/", "http://a b", "http://127.0.0.1:99999", "::", "http://[::1", "xn--a", "1.2.3", "a/b\nc"];
    let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let role = [("AWS_ROLE_ARN", "role"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/dev/null")];
    let account = [("AZURE_STORAGE_ACCOUNT_NAME", "me")];
    let service = [account[0], ("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c"), ("AZURE_CLIENT_SECRET", "s")];
    let machine = [account[0], ("IDENTITY_HEADER", "secret"), ("IDENTITY_ENDPOINT", "http://127.0.0.1:1")];
    let containers = ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"];
    // Fixed settings, the settings that take each of the values, and the URI to open.
    let places: [(&[Set], &[&str], &str); 8] = [
        (&keys, &["AWS_ENDPOINT_URL", "AWS_REGION", "vfs.s3.endpoint_override", "vfs.s3.region"], "s3://b/a"),
        (&[("vfs.s3.use_virtual_addressing", "true")], &["vfs.s3.endpoint_override"], "s3://b/a"),
        (&[("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/dev/null")], &containers, "s3://b/a"),
        (&role, &["AWS_ENDPOINT_URL_STS", "AWS_METADATA_ENDPOINT"], "s3://b/a"),
        (&[], &["vfs.gcs.endpoint", "STORAGE_EMULATOR_HOST", "GOOGLE_BASE_URL"], "gs://b/a"),
        (&account, &["vfs.azure.blob_endpoint", "vfs.azure.storage_account_name"], "azure://b/a"),
        (&service, &["AZURE_AUTHORITY_HOST", "AZURE_TENANT_ID"], "azure://b/a"),
        (&machine, &["IDENTITY_ENDPOINT", "IDENTITY_HEADER"], "azure://b/a"),
    ];
    let mut runs: Vec<(Vec<Set>, String)> = Vec::new();
    for (besides, names, uri) in places {
        for name in names {
            let set = |value| besides.iter().copied().chain([(*name, value)]).collect();
            runs.extend(values.iter().map(|value| (set(value), uri.to_owned())));
        }
    }
    let names = ["ü", "a b", "a%2ecom#", "[::1", "b:99999", "..", "xn--a", "b\\c"];
    for uri in names.iter().flat_map(|name| [format!("s3://{name}/a"), format!("azure://c@{name}/a")]) {
        runs.push((keys.into_iter().chain([("AZURE_STORAGE_KEY", "c2VjcmV0")]).collect(), uri));
    }
    let run = |(set, uri): &(Vec<Set>, String)| {
        let mut command = program();
        command.args(["info", "--io-timeout", "1", uri]);
        for (name, value) in set {
            match name.starts_with("vfs.") {
                true => command.args(["-o", &format!("{name}={value}")]),
                false => command.env(name, value),
            };
        }
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        let is_line = said.lines().count() == 1 && said.starts_with("tilefs: ") && !said.contains("internal error");
        assert!(is_line && matches!(output.status.code(), Some(1..=9)), "{set:?} {uri}: {:?} {said}", output.status);
    };
    let (front, behind) = runs.split_at(runs.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| front.iter().for_each(run));
        behind.iter().for_each(run);
    });
}
