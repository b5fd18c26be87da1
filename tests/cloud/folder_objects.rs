//! Objects that stand for folders, as consoles, Hadoop and sync tools make them: for tilefs they are not there.

use std::io::Write;

use tilefs_base::error::Error;
use tilefs_cloud::AnyStorage;
use tilefs_fixtures::fixtures;
use tilefs_storage::{LocalStorage, Storage, StoreKey};

use super::hostile::{Hostile, send};
use super::servers::S3;
use super::{cloud_options, text, tilefs};

/// The folders of an array.
const FOLDERS: [&str; 8] = [
    "",
    "__schema/",
    "__schema/__enumerations/",
    "__meta/",
    "__fragments/",
    "__commits/",
    "__fragment_meta/",
    "__labels/",
];

#[test]
fn objects_that_stand_for_folders_change_nothing() {
    let Some(server) = S3::get() else { return };
    server.make_bucket("placeholders");
    let endpoint = server.url();
    let run = |command: &str, uri: &str, file: &[&str]| {
        let output = tilefs(&endpoint, &[&[command, uri], file].concat());
        assert!(output.status.success(), "{command} {uri}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout).replace(uri, "URI")
    };
    server.put_folder(&fixtures().join("demo"), "placeholders/plain");
    let plain = "s3://placeholders/plain";
    let [checked, values] = [run("verify", plain, &[]), run("cat", plain, &["text/temp.txt"])];
    for (number, folder) in FOLDERS.iter().enumerate() {
        let uri = format!("s3://placeholders/{number}");
        server.put_folder(&fixtures().join("demo"), &format!("placeholders/{number}"));
        server.put(&format!("placeholders/{number}/{folder}"), b"");
        assert_eq!(run("verify", &uri, &[]), checked, "{folder}");
        assert_eq!(run("cat", &uri, &["text/temp.txt"]), values, "{folder}");
    }
}

/// A folder without a name is not there either, unless it holds an object.
#[test]
fn folders_without_a_name_are_looked_into() {
    for (inside, is_empty) in [("array/__fragments//", true), ("array/__fragments//x", false)] {
        let store = Hostile::start(move |request, _, out: &mut dyn Write| {
            let target = request.second();
            let object = |key: &str| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>\
                     <ETag>&quot;e&quot;</ETag><Size>0</Size></Contents>"
                )
            };
            let listed = match target.contains("delimiter") {
                true => {
                    let prefixes = ["array/__fragments//", "array/__fragments/__1_1_a_22/"];
                    prefixes
                        .map(|prefix| format!("<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>"))
                        .concat()
                }
                false => object(inside),
            };
            let answer = format!("<?xml version=\"1.0\"?><ListBucketResult><Name>b</Name>{listed}</ListBucketResult>");
            send(out, "200 OK", "", &answer)
        });
        let storage = AnyStorage::new(LocalStorage::new(), cloud_options(&store.url()));
        let folder = StoreKey::from("s3://bucket/array/__fragments");
        match storage.list(&folder) {
            Ok(names) => {
                let names: Vec<&str> = names.iter().map(|one| one.name.as_str()).collect();
                assert!(is_empty && names == ["__1_1_a_22"], "{inside}: {names:?}");
            }
            Err(error) => {
                assert!(!is_empty && matches!(&error, Error::Unsupported { .. }), "{inside}: {error}");
            }
        }
        // A listing of everything below shows what is there.
        assert_eq!(storage.list_below(&folder).is_ok(), is_empty, "{inside}");
    }
}
