//! Commit folders: every consolidated, vacuum and delete file.

use std::path::Path;

use tilefs_format::commit::{fragment_of_mark, parse_consolidated_commits, parse_ignored_commits, parse_vacuum};
use tilefs_format::condition::{Combination, Condition, Operator};
use tilefs_format::folder::{COMMITS, CommitFile, METADATA, RootFragment, commit_file, root_fragment};
use tilefs_format::fragment::FRAGMENT_METADATA;
use tilefs_format::schema::ArraySchema;

use super::corpus::{Corpus, is_refused, listing};
use super::schemas::schema;

/// Returns all schemas of an array.
fn schemas(corpus: &Corpus, array: &Path) -> Vec<ArraySchema> {
    let mut names = listing(&array.join("__schema"));
    names.retain(|name| name != "__enumerations");
    names.iter().map(|name| schema(corpus, array, name)).collect()
}

/// Checks that the fields of a condition exist, and that values have their size. Returns the number of values.
fn check_condition(condition: &Condition, schemas: &[ArraySchema]) -> usize {
    match condition {
        Condition::Expression { combination, children } => {
            assert_ne!(*combination, Combination::Not, "writers push negations into the values");
            children.iter().map(|child| check_condition(child, schemas)).sum()
        }
        Condition::Value(value) => {
            let has_field = |schema: &&ArraySchema| {
                schema.attributes.iter().any(|attribute| attribute.name == value.field)
                    || schema.dimensions.iter().any(|dimension| dimension.name == value.field)
            };
            let schema = schemas.iter().find(has_field).unwrap_or_else(|| panic!("no field {:?}", value.field));
            condition.check(schema).unwrap();
            match value.operator {
                Operator::In | Operator::NotIn => value.members().count(),
                _ => 1,
            }
        }
    }
}

#[test]
fn every_commit_file_parses() {
    let corpus = Corpus::open();
    let (mut marks, mut vacuumed, mut deletes, mut values, mut consolidated) = (0, 0, 0, 0, 0);
    for path in corpus.files() {
        if is_refused(&path) {
            continue;
        }
        let folder = path.parent().unwrap();
        let Some((kind, name)) = commit_file(path.file_name().unwrap().to_str().unwrap()).unwrap() else { continue };
        let array =
            if folder.ends_with(COMMITS) || folder.ends_with(METADATA) { folder.parent().unwrap() } else { folder };
        let bytes = std::fs::read(&path).unwrap();
        match kind {
            CommitFile::Mark => {
                assert!(bytes.is_empty());
                marks += 1;
            }
            CommitFile::Vacuum => vacuumed += parse_vacuum(&bytes).unwrap().len(),
            CommitFile::Ignored => drop(parse_ignored_commits(&bytes).unwrap()),
            CommitFile::Delete => {
                let condition = Condition::parse(&corpus.payload(&path).unwrap()).unwrap();
                values += check_condition(&condition, &schemas(&corpus, array));
                deletes += 1;
            }
            CommitFile::Consolidated => {
                for commit in parse_consolidated_commits(&bytes).unwrap() {
                    consolidated += 1;
                    if let Some(delete) = commit.delete {
                        let (payload, size) = corpus.payload_at_start(&path, delete).unwrap();
                        assert_eq!(size, delete.len());
                        check_condition(&Condition::parse(&payload).unwrap(), &schemas(&corpus, array));
                    } else {
                        let fragment = fragment_of_mark(commit.mark).unwrap();
                        assert!(array.join(fragment).join(FRAGMENT_METADATA).is_file(), "{}", commit.mark);
                    }
                }
            }
            CommitFile::Update => panic!("no released library writes updates: {}", path.display()),
            CommitFile::FragmentMetadataCache => assert!(name.version >= 5),
        }
    }
    eprintln!(
        "{marks} marks, {vacuumed} vacuum lines, {deletes} deletes of {values} values, {consolidated} consolidated commits"
    );
    assert!(marks > 1000 && vacuumed > 100 && deletes > 100 && consolidated > 20);
}

/// A folder in an array's root whose name is that of a fragment has metadata, if it is marked or needs no mark.
#[test]
fn root_folders_hold_what_their_names_say() {
    let corpus = Corpus::open();
    let mut found = 0;
    for object in corpus.objects.iter().filter(|object| object["kind"] == "array" && object.get("schema").is_some()) {
        let array = corpus.path(object);
        let names = listing(&array);
        let fragments = names.iter().filter(|name| {
            let has_metadata = array.join(name).join(FRAGMENT_METADATA).is_file();
            let is_fragment = match root_fragment(name).unwrap() {
                Some(RootFragment::Marked(_)) => names.contains(&format!("{name}.ok")),
                Some(RootFragment::Unmarked(_)) => has_metadata,
                None => false,
            };
            assert!(is_fragment || !has_metadata, "{}/{name}", array.display());
            is_fragment
        });
        let fragments = fragments.count() + listing(&array.join("__fragments")).len();
        assert_eq!(object["fragments"], fragments, "{}", array.display());
        found += fragments;
    }
    eprintln!("{found} fragments found by name");
    assert!(found > 2000);
}
