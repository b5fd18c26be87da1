//! Azure, and Google Cloud Storage.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tilefs_cloud::{CloudOptions, Settings};

use super::proxy::Proxy;
use super::same::assert_same;
use super::servers::{Azure, S3};
use super::skip::python_with;
use super::{cloud_options, fixtures, open, program, reaching, read, text};

/// Copies folders to a store with `tiledb`, writes an array there, and reads it back.
const COPY: &str = r#"
import os, sys, json, numpy as np, tiledb
config, bucket, out, *folders = sys.argv[1:]
config = json.loads(config)
ctx = tiledb.Ctx(config)
vfs = tiledb.VFS(ctx=ctx)
vfs.create_bucket(bucket)
for folder in folders:
    name = os.path.basename(folder)
    for path, _, files in os.walk(folder):
        for file in files:
            target = f"{bucket}/{name}/{os.path.relpath(os.path.join(path, file), folder)}"
            data = open(os.path.join(path, file), "rb").read()
            if data:
                with vfs.open(target, "wb") as f:
                    f.write(data)
            else:
                vfs.touch(target)
uri = f"{bucket}/written"
dom = tiledb.Domain(tiledb.Dim("x", domain=(0, 9999), tile=1000, dtype=np.int32, ctx=ctx), ctx=ctx)
tiledb.Array.create(uri, tiledb.ArraySchema(dom, attrs=[tiledb.Attr("v", dtype=np.float64, ctx=ctx)], ctx=ctx), ctx=ctx)
with tiledb.open(uri, "w", ctx=ctx) as a:
    a[:] = np.arange(10000.0)
with tiledb.open(uri, ctx=ctx) as a:
    a[:]["v"].astype("<f8").tofile(out)
"#;

const FIXTURES: [&str; 3] = ["demo", "arrays/dense/enumerations", "arrays/sparse/overlap"];

#[test]
fn azure_is_as_a_local_copy() {
    let Some(server) = Azure::get() else { return };
    let Some(python) = python_with("tiledb") else { return };
    let config = format!(
        r#"{{"vfs.azure.storage_account_name":"{}","vfs.azure.storage_account_key":"{}","vfs.azure.blob_endpoint":"{}"}}"#,
        Azure::ACCOUNT,
        Azure::KEY,
        server.url()
    );
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("values");
    let mut command = Command::new(python);
    command.args(["-c", COPY, &config, "azure://testing"]).arg(&out);
    let written = command.args(FIXTURES.map(|name| fixtures().join(name))).output().unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    // In a file, as for secrets.
    let file = folder.path().join("config");
    fs::write(&file, config.replace("\":\"", " ").replace("\",\"", "\n").replace(['{', '}', '"'], "")).unwrap();
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let mut settings = Settings::read(&file).unwrap();
    settings.set_typed("vfs.azure.blob_endpoint", &format!("{}/{}", proxy.url(), Azure::ACCOUNT)).unwrap();
    let reached = reaching(CloudOptions { settings, anonymous: false, ..cloud_options("http://127.0.0.1:1") });
    for name in FIXTURES {
        let uri = format!("azure://testing/{}", name.rsplit('/').next().unwrap());
        assert_same(&fixtures().join(name), &uri, &reached);
    }
    let asked = proxy.take();
    assert!(!asked.is_empty() && asked.iter().all(|one| one.method == "GET" && one.is_signed), "{asked:#?}");
    for scheme in ["azure", "az", "abfs"] {
        let root = open(&format!("{scheme}://testing/written"), &reached).unwrap();
        assert!(read(&*root, "v.f64").unwrap() == fs::read(&out).unwrap(), "{scheme}");
    }
    // Through the environment, and without a key.
    let run = |key: &str| {
        let mut command = program();
        command.env("AZURE_STORAGE_ACCOUNT", Azure::ACCOUNT).env("AZURE_STORAGE_KEY", key);
        command.env("AZURE_BLOB_ENDPOINT", server.url());
        command.args(["cat", "azure://testing/written", "v.f64"]).output().unwrap()
    };
    assert!(run(Azure::KEY).stdout == fs::read(&out).unwrap());
    let refused = run("d3Jvbmc=");
    let said = text(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("azure://testing may not be read"), "{said}");
    let nowhere = program().args(["info", "azure://testing/written"]).output().unwrap();
    let said = text(&nowhere.stderr);
    assert!(nowhere.status.code() == Some(2) && said.contains("AZURE_STORAGE_ACCOUNT"), "{said}");
}

/// The program uses the S3-compatible interface of Google's store, so an S3 server can stand in for it.
#[test]
fn google_cloud_storage_is_as_a_local_copy() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("google");
    let proxy = Proxy::start(server.address(), Duration::ZERO);
    let mut settings = Settings::default();
    settings.set_typed("vfs.gcs.endpoint", &proxy.url()).unwrap();
    settings.set_typed("vfs.gcs.project_id", "mine").unwrap();
    let reached = reaching(CloudOptions { settings, ..cloud_options("http://127.0.0.1:1") });
    for name in FIXTURES {
        server.put_folder(&fixtures().join(name), &format!("google/{name}"));
        for scheme in ["gs", "gcs"] {
            assert_same(&fixtures().join(name), &format!("{scheme}://google/{name}"), &reached);
        }
    }
    let asked = proxy.take();
    assert!(!asked.is_empty() && asked.iter().all(|one| one.method == "GET"), "{asked:#?}");
    let mut command = program();
    command.env("STORAGE_EMULATOR_HOST", server.address().to_string());
    let output = command.args(["cat", "gs://google/demo", "slice/45,120/temp.f32"]).output().unwrap();
    assert_eq!(output.stdout, 16.7f32.to_le_bytes(), "{}", text(&output.stderr));
}
