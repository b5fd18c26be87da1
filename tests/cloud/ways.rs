//! The way to the store: through a proxy, and by TLS.

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::proxy::Proxy;
use super::same::assert_same;
use super::servers::S3;
use super::skip::skipped;
use super::{fixtures, options, program, text};

#[test]
fn the_proxy_of_the_settings_is_asked() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("behind");
    server.put_folder(&fixtures().join("demo"), "behind/demo");
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let mut reached = options("http://store.invalid");
    let (host, port) = (proxy.address().ip().to_string(), proxy.address().port().to_string());
    reached.cloud.settings.set_typed("vfs.s3.proxy_host", &host).unwrap();
    reached.cloud.settings.set_typed("vfs.s3.proxy_port", &port).unwrap();
    assert!(assert_same(&fixtures().join("demo"), "s3://behind/demo", &reached) > 5);
    let asked = proxy.take();
    assert!(!asked.is_empty() && asked.iter().all(|one| one.target.starts_with("http://store.invalid/")), "{asked:#?}");
}

/// An authority, and a certificate by it for this machine.
const CERTIFICATES: &str = "
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > extensions
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out certificate.pem -days 2 -extfile extensions
cat certificate.pem ca.pem > chain.pem";

/// The store's certificate is of an authority that `vfs.s3.ca_file` names, and no other.
#[test]
fn certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let made = Command::new("sh").args(["-e", "-c", CERTIFICATES]).current_dir(&folder).output().unwrap();
    if !made.status.success() {
        return skipped("openssl makes no certificates");
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
