//! The effects of failing requests, and the number of requests if none fails.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tilefs_base::error::Error;
use tilefs_cloud::CloudOptions;
use tilefs_tree::{self as tree, TreeOptions};

use super::proxy::{Asked, Fault, Proxy};
use super::servers::{S3, free_address};
use super::skip::python_with;
use super::{SECRET, cloud_options, fixtures, open, options, program, reaching, read, text, tilefs};

/// The demo array in a bucket of its own, behind a proxy.
fn demo(server: &S3, bucket: &str, delay: Duration) -> (Proxy, String) {
    server.make_bucket(bucket);
    server.put_folder(&fixtures().join("demo"), &format!("{bucket}/demo"));
    (Proxy::start(server.address(), delay), format!("s3://{bucket}/demo"))
}

fn busy() -> Fault {
    Fault::Status(503, "SlowDown", Vec::new())
}

/// Returns options with a short timeout, so that tests do not take long.
fn impatient(url: &str, seconds: u64) -> TreeOptions {
    reaching(CloudOptions { io_timeout: Duration::from_secs(seconds), ..cloud_options(url) })
}

fn is_data(asked: &Asked) -> bool {
    asked.target.contains("a0.tdb")
}

/// Reads the same value with libtiledb, to compare the requests.
const LIBTILEDB: &str = r#"
import sys, tiledb
ctx = tiledb.Ctx({
    "vfs.s3.endpoint_override": sys.argv[1].split("//")[1], "vfs.s3.scheme": "http", "vfs.s3.region": "us-east-1",
    "vfs.s3.use_virtual_addressing": "false", "vfs.s3.no_sign_request": "true"})
with tiledb.open(sys.argv[2], ctx=ctx) as a:
    print(a[45, 120]["temp"])
"#;

#[test]
fn the_first_value_takes_few_requests() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "counted", Duration::from_millis(40));
    let output = tilefs(&proxy.url(), &["cat", &uri, "slice/45,120/temp.f32"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout, 16.7f32.to_le_bytes());
    let asked = proxy.take();
    let steps = asked.iter().map(|one| one.step).max().unwrap();
    println!("{} requests in {steps} steps: {asked:#?}", asked.len());
    assert!(asked.len() <= 7 && steps <= 4, "{asked:#?}");
    assert!(asked.iter().all(|one| one.method == "GET" && one.is_signed), "{asked:#?}");
    // Reads are conditional on the listed version of the object.
    assert!(asked.iter().filter(|one| !one.is_listing()).all(|one| one.if_match.is_some()), "{asked:#?}");
    if let Some(python) = python_with("tiledb") {
        let proxy = Proxy::start(server.address(), Duration::ZERO);
        let output = Command::new(python).args(["-c", LIBTILEDB, &proxy.url(), &uri]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let theirs = proxy.take();
        println!("libtiledb: {} requests", theirs.len());
        assert!(2 * asked.len() <= theirs.len(), "{theirs:#?}");
    }
}

#[test]
fn what_passes_is_tried_again() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "transient", Duration::ZERO);
    let here = tree::open(&fixtures().join("demo"), &TreeOptions::default()).unwrap();
    let due = read(&*here, "temp.f32").unwrap();
    let internal = Fault::Status(500, "InternalError", Vec::new());
    for fault in [busy(), internal, Fault::Reset, Fault::Cut, Fault::Stall, Fault::Hang] {
        for what in [Asked::is_listing as fn(&Asked) -> bool, |asked| asked.target.contains("metadata"), is_data] {
            proxy.fail(2, fault.clone(), what);
            let root = open(&uri, &impatient(&proxy.url(), 8)).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            assert!(read(&*root, "temp.f32").unwrap_or_else(|error| panic!("{fault:?}: {error}")) == due, "{fault:?}");
            proxy.recover();
        }
    }
}

#[test]
fn after_its_time_it_is_an_error_that_says_all_and_the_next_read_tries_anew() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "permanent", Duration::ZERO);
    let root = open(&uri, &impatient(&proxy.url(), 2)).unwrap();
    proxy.fail(usize::MAX, busy(), is_data);
    let begin = Instant::now();
    let error = read(&*root, "temp.f32").unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    assert!(
        matches!(error, Error::Io { .. }) && error.is_transient() && tilefs_vfs::fuse::errno(&error) == libc::EIO,
        "{error}"
    );
    let line = error.to_string();
    for part in ["s3://permanent/demo/__fragments/", "a0.tdb", "bytes 0..", "503 SlowDown", "tried ", " times in "] {
        assert!(line.contains(part), "{part}: {line}");
    }
    proxy.recover();
    assert!(read(&*root, "temp.f32").is_ok());
}

#[test]
fn what_will_not_pass_is_told_at_the_command() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "refused", Duration::ZERO);
    let region = |status: u16, code: &'static str| {
        Fault::Status(status, code, vec![("x-amz-bucket-region", "eu-north-1".to_owned())])
    };
    let denied = Fault::Status(403, "AccessDenied", Vec::new());
    for (fault, parts) in [
        (denied.clone(), ["s3://refused may not be read", "403 AccessDenied", "--anonymous"]),
        (
            region(301, "PermanentRedirect"),
            ["s3://refused is in the region eu-north-1", "vfs.s3.region=eu-north-1", ""],
        ),
        (region(400, "AuthorizationHeaderMalformed"), ["is in the region eu-north-1", "vfs.s3.region=", ""]),
    ] {
        proxy.fail(usize::MAX, fault, |_| true);
        for command in [&["info", &uri][..], &["mount", &uri, "/mnt"], &["cat", &uri, "temp.f32"], &["ls", &uri]] {
            let output = tilefs(&proxy.url(), command);
            let said = text(&output.stderr);
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{command:?}: {said}");
            assert!(parts.iter().all(|part| said.contains(part)), "{command:?}: {said}");
            assert!(!said.contains(SECRET), "{said}");
        }
        proxy.recover();
    }
    for (uri, part) in [
        ("s3://no-such-bucket/a", "there is no bucket no-such-bucket (404 NoSuchBucket)"),
        ("s3://refused/nothing", "there is nothing there"),
    ] {
        let output = tilefs(&proxy.url(), &["info", uri]);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
        assert!(said.contains(part), "{said}");
    }
    // A bucket with an array in it is a folder of arrays.
    let output = tilefs(&proxy.url(), &["info", "s3://refused"]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && shown.starts_with("s3://refused ") && shown.contains("folder of 1"), "{shown}");
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains(" dense ")), "{shown}");
    // If nobody listens at the endpoint, the command fails without waiting for the whole timeout: it may be a typing
    // error.
    let begin = Instant::now();
    let output = tilefs(&format!("http://{}", free_address()), &["info", &uri]);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("s3://refused cannot be reached"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
}

#[test]
fn a_region_that_nobody_named_is_found() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "elsewhere-now", Duration::ZERO);
    let redirect = Fault::Status(301, "PermanentRedirect", vec![("x-amz-bucket-region", "eu-north-1".to_owned())]);
    proxy.fail(1, redirect, |_| true);
    let mut command = program();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", SECRET);
    let output = command.env("AWS_ENDPOINT_URL", proxy.url()).args(["info", &uri]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn an_object_that_was_replaced_or_taken_away_is_an_error() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("changing");
    let local = fixtures().join("demo");
    server.put_folder(&local, "changing/demo");
    let fragments = fs::read_dir(local.join("__fragments")).unwrap().flatten();
    let mut objects: Vec<String> =
        fragments.map(|fragment| format!("__fragments/{}/a0.tdb", fragment.file_name().to_str().unwrap())).collect();
    objects.sort();
    let (first, second) = (&objects[0], &objects[1]);
    let opened = || open("s3://changing/demo", &options(&server.url())).unwrap();
    let (replaced, gone) = (opened(), opened());
    let mut bytes = fs::read(local.join(first)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    server.put(&format!("changing/demo/{first}"), &bytes);
    let error = read(&*replaced, "temp.f32").unwrap_err();
    assert!(error.to_string().contains("changed since the mount") && error.to_string().contains(first), "{error}");
    assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
    // With its old content, the object is again the listed one.
    server.put(&format!("changing/demo/{first}"), &fs::read(local.join(first)).unwrap());
    read(&*replaced, "temp.f32").unwrap();
    server.delete(&format!("changing/demo/{second}"));
    let error = read(&*gone, "temp.f32").unwrap_err();
    assert!(error.to_string().contains("changed since the mount") && error.to_string().contains(second), "{error}");
    assert_eq!(tilefs_vfs::fuse::errno(&error), libc::EIO);
}

/// Keys come from a file of settings, a profile, a command or a single sign-on, and are not shown anywhere.
#[test]
fn credentials_are_found_where_other_tools_have_them() {
    use std::os::unix::fs::PermissionsExt;
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "keys", Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    fs::create_dir_all(home.join(".aws/sso/cache")).unwrap();
    let write = |path: &Path, text: &str, mode: u32| {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let process = format!(r#"echo '{{"Version":1,"AccessKeyId":"AKIDPROCESS","SecretAccessKey":"{SECRET}"}}'"#);
    let config = format!(
        "[default]\nendpoint_url = {0}\nregion = eu-west-1\n[profile process]\nendpoint_url = {0}\ncredential_process = \
         {process}\n[profile sso]\nendpoint_url = {0}\nsso_session = home\nsso_account_id = 12\nsso_role_name = \
         reader\n[sso-session home]\nsso_region = eu-north-1\nsso_start_url = https://home.example/start\n[profile \
         role]\nendpoint_url = {0}\nrole_arn = arn:aws:iam::123456789012:role/reader\nexternal_id = \
         us\nsource_profile = default\n[profile circle]\nrole_arn = a\nsource_profile = round\n[profile round]\n\
         role_arn = b\nsource_profile = circle\n",
        proxy.url()
    );
    write(&home.join(".aws/config"), &config, 0o600);
    let keys = format!("[default]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = {SECRET}\n");
    write(&home.join(".aws/credentials"), &keys, 0o600);
    let token = r#"{"startUrl":"https://home.example/start","accessToken":"token","expiresAt":"2999-01-31T12:00:00Z"}"#;
    write(&home.join(".aws/sso/cache/one.json"), token, 0o600);
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = program();
        command.env("HOME", home).envs(variables.iter().copied()).args(["info", &uri]).args(arguments);
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert!(!said.contains(SECRET) && !text(&output.stdout).contains(SECRET), "{said}");
        (output.status.success(), said)
    };
    assert_eq!(run(&[], &[]), (true, String::new()));
    assert!(proxy.take().iter().all(|asked| asked.is_signed));
    assert_eq!(run(&[("AWS_PROFILE", "process")], &[]), (true, String::new()));
    assert!(proxy.take().iter().all(|asked| asked.is_signed));
    // The token service returns temporary keys for a role.
    let service = server.url();
    assert_eq!(run(&[("AWS_PROFILE", "role"), ("AWS_ENDPOINT_URL_STS", &service)], &[]), (true, String::new()));
    assert!(proxy.take().iter().all(|asked| asked.is_signed && asked.has_token));
    let nowhere = format!("http://{}", free_address());
    let (is_done, said) = run(&[("AWS_PROFILE", "role"), ("AWS_ENDPOINT_URL_STS", &nowhere)], &[]);
    assert!(!is_done && said.contains("the token service"), "{said}");
    let (is_done, said) = run(&[("AWS_PROFILE", "circle")], &[]);
    assert!(!is_done && said.contains("leads nowhere"), "{said}");
    let (is_done, said) = run(&[("AWS_PROFILE", "nobody")], &[]);
    assert!(!is_done && said.contains("AWS_PROFILE is nobody"), "{said}");
    // The portal returns the keys of a role for a token.
    let role = format!(
        r#"{{"roleCredentials":{{"accessKeyId":"AKIDSSO","secretAccessKey":"{SECRET}","sessionToken":"t","expiration":99999999999999}}}}"#
    );
    server.make_bucket("federation");
    server.put("federation/credentials", role.as_bytes());
    assert_eq!(run(&[("AWS_PROFILE", "sso"), ("AWS_ENDPOINT_URL_SSO", &server.url())], &[]), (true, String::new()));
    assert!(proxy.take().iter().all(|asked| asked.is_signed));
    fs::remove_file(home.join(".aws/sso/cache/one.json")).unwrap();
    let (is_done, said) = run(&[("AWS_PROFILE", "sso")], &[]);
    assert!(!is_done && said.contains("aws sso login --profile sso"), "{said}");
    // First without any credentials, then anonymously.
    fs::remove_file(home.join(".aws/credentials")).unwrap();
    let (is_done, said) = run(&[], &[]);
    assert!(
        !is_done && said.contains("there are no credentials for s3://keys") && said.contains("--anonymous"),
        "{said}"
    );
    proxy.take();
    assert_eq!(run(&[], &["--anonymous"]), (true, String::new()));
    assert_eq!(run(&[], &["-o", "vfs.s3.no_sign_request=true"]), (true, String::new()));
    assert!(proxy.take().iter().all(|asked| !asked.is_signed));
    // A file of settings that other users can read, with a setting that we do not support.
    let settings = home.join("settings");
    let text_of_settings =
        format!("vfs.s3.aws_access_key_id AKIDFILE\nvfs.s3.aws_secret_access_key {SECRET}\nvfs.s3.sse x\n");
    write(&settings, &text_of_settings, 0o644);
    let (is_done, said) = run(&[], &["--config", settings.to_str().unwrap()]);
    assert!(is_done && said.contains("vfs.s3.sse") && said.contains("chmod 600"), "{said}");
    assert!(proxy.take().iter().all(|asked| asked.is_signed));
    let typed = format!("vfs.s3.aws_secret_access_key={SECRET}");
    let (is_done, said) = run(&[], &["-o", &typed]);
    assert!(!is_done && said.contains("is a secret"), "{said}");
}

/// Temporary keys are renewed before they expire, and when the store says that they have expired.
#[test]
fn credentials_that_end_are_renewed() {
    let Some(server) = S3::get() else { return };
    let (proxy, uri) = demo(server, "ending", Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let (calls, script) = (folder.path().join("calls"), folder.path().join("keys.sh"));
    let run = |expiration: &str| {
        fs::write(&calls, "").unwrap();
        let json = format!(
            r#"{{"Version":1,"AccessKeyId":"AKIDENDS","SecretAccessKey":"{SECRET}","SessionToken":"t","Expiration":"{expiration}"}}"#
        );
        fs::write(&script, format!("echo called >> {}\necho '{json}'\n", calls.display())).unwrap();
        let config = format!(
            "[default]\nendpoint_url = {}\nregion = us-east-1\ncredential_process = sh {}\n",
            proxy.url(),
            script.display()
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut command = program();
        command.env("AWS_CONFIG_FILE", folder.path().join("config")).args(["cat", &uri, "temp.f32"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read_to_string(&calls).unwrap().lines().count()
    };
    assert_eq!(run("2999-01-31T12:00:00Z"), 1, "good for all requests");
    let requests = proxy.take().len();
    assert_eq!(run("2001-01-31T12:00:00Z"), requests, "good for none but the next");
    proxy.take();
    proxy.fail(1, Fault::Status(400, "ExpiredToken", Vec::new()), |asked| asked.is_signed);
    assert_eq!(run("2999-01-31T12:00:00Z"), 2, "the store says that they are over");
}
