//! Arrays and groups of the corpus, through an S3 server: some of each kind, or all of them with
//! `TILEFS_WHOLE_CORPUS=1`, which takes a few minutes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::NamedTempFile;
use tilefs_tree::{self as tree, TreeOptions};

use super::same::assert_same;
use super::servers::S3;
use super::{open, options};
use support::corpora::corpus;
use support::manifest::{Object, load};
use support::parallel;

/// Without `TILEFS_WHOLE_CORPUS`, one in this many cases is read.
const SOME: usize = 13;

/// Returns the options with the key of the object, if it has one.
fn with_key(object: &Object, options: TreeOptions) -> (TreeOptions, Option<NamedTempFile>) {
    let file = object.key.as_ref().map(|key| {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(key.as_bytes()).unwrap();
        file
    });
    let key_file = file.as_ref().map(|file| file.path().to_owned());
    (TreeOptions { reading: tilefs_reader::ReaderOptions { key_file, ..options.reading }, ..options }, file)
}

/// Returns whether a name below a folder has control characters, which the object store client rejects.
fn has_control_characters(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().any(u8::is_ascii_control)
            || entry.path().is_dir() && has_control_characters(&entry.path())
    })
}

#[test]
fn the_corpus_is_as_a_local_copy() {
    let Some(server) = S3::get() else { return };
    let corpus = corpus();
    let mut objects = load(&corpus.join("manifest.json"), "");
    objects.extend(load(&corpus.join("manifest_real.json"), ""));
    // Members of groups are beside them, so everything in a folder two levels below the corpus is one case. Each case
    // has its own bucket, because the server scans a whole bucket for each listing.
    let case_of = |object: &Object| {
        let path = object.place.strip_prefix(&corpus).expect("it is in the corpus");
        path.iter().take(if path.starts_with("real") { 2 } else { 3 }).collect::<PathBuf>()
    };
    let all: BTreeSet<PathBuf> = objects.iter().map(case_of).collect();
    let every = if std::env::var_os("TILEFS_WHOLE_CORPUS").is_some() { 1 } else { SOME };
    let cases: Vec<PathBuf> = all.into_iter().step_by(every).collect();
    objects.retain(|object| cases.binary_search(&case_of(object)).is_ok());
    let bucket_of = |case: &Path| format!("case{}", cases.binary_search(&case.to_owned()).expect("it is a case"));
    // The texts of an array contain its name.
    let place_of = |case: &Path| format!("{}/{}", bucket_of(case), case.file_name().unwrap_or_default().display());
    parallel::map(&cases, |case| {
        server.make_bucket(&bucket_of(case));
        server.put_folder(&corpus.join(case), &place_of(case));
    });
    let (same, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    parallel::map(&objects, |object| {
        let (options, _key) = with_key(object, options(&server.url()));
        let case = case_of(object);
        let inner = object.place.strip_prefix(corpus.join(&case)).expect("it is in its case").display().to_string();
        let uri = format!("s3://{}/{inner}", place_of(&case)).trim_end_matches('/').to_owned();
        if has_control_characters(&object.place) {
            let error = open(&uri, &options).map(drop).expect_err(&uri);
            assert!(error.to_string().contains("a name with characters that cannot be asked for"), "{error}");
            refused.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match tree::open(&object.place, &options) {
            Ok(_) => same.fetch_add(assert_same(&object.place, &uri, &options), Ordering::Relaxed),
            Err(due) => {
                let got = open(&uri, &options).map(drop).expect_err(&object.name);
                assert_eq!(std::mem::discriminant(&due), std::mem::discriminant(&got), "{uri}: {due}, {got}");
                refused.fetch_add(1, Ordering::Relaxed)
            }
        };
    });
    let (same, refused) = (same.into_inner(), refused.into_inner());
    println!("{} objects, {same} files as in local copies, {refused} refused as these are", objects.len());
    assert!(objects.len() * every > 1000 && same > 20 * objects.len() && refused * 10 < objects.len());
}
