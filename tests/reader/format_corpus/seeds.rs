//! Seeds for the fuzzers of `fuzz/`, from the payloads of the corpus.

use std::collections::BTreeSet;
use std::path::Path;

use tilefs_format::commit::parse_consolidated_commits;
use tilefs_format::folder::{COMMITS, ENUMERATIONS, FRAGMENTS, GROUP_DETAILS, METADATA, SCHEMAS};
use tilefs_format::fragment::{FRAGMENT_METADATA, FragmentFooter, footer_range, schema_name};
use tilefs_format::name::{NameForm, TimestampedName};
use tilefs_format::schema::{ArraySchema, FIRST_SCHEMA};

use super::corpus::{Corpus, is_refused, listing};

/// Maximum length of a seed. Small inputs suffice, because parsers keep little state.
const MOST_BYTES: usize = 3000;

/// Maximum number of seeds of a target: enough to cover all versions.
const MOST_SEEDS: usize = 4000;

/// The seeds of one target, without duplicates.
#[derive(Default)]
struct Seeds(BTreeSet<Vec<u8>>);

impl Seeds {
    fn add(&mut self, seed: Vec<u8>) {
        if seed.len() <= MOST_BYTES && self.0.len() < MOST_SEEDS {
            self.0.insert(seed);
        }
    }

    /// Adds a seed in the form that `schema_and_rest` of the fuzzers splits.
    fn add_with_schema(&mut self, version: u32, schema: &[u8], rest: &[u8]) {
        if let Ok(length) = u16::try_from(schema.len()) {
            self.add([&[version as u8][..], &length.to_le_bytes(), schema, rest].concat());
        }
    }

    fn write(&self, target: &str) {
        let folder = support::repository::root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&folder).unwrap();
        for (number, seed) in self.0.iter().enumerate() {
            std::fs::write(folder.join(format!("seed{number:04}")), seed).unwrap();
        }
        eprintln!("{target}: {} seeds", self.0.len());
    }
}

fn schema_payload(corpus: &Corpus, array: &Path, name: &str) -> Vec<u8> {
    let path = if name == FIRST_SCHEMA { array.join(name) } else { array.join(SCHEMAS).join(name) };
    corpus.payload(&path).unwrap()
}

#[test]
#[ignore = "writes fuzz/corpus, for the fuzzers"]
fn write_fuzz_seeds() {
    let corpus = Corpus::open();
    let [mut schemas, mut metadata, mut groups, mut enumerations, mut conditions, mut commits, mut names, mut headers] =
        [(); 8].map(|()| Seeds::default());
    let mut fragments = FragmentSeeds::default();
    let mut consolidated = Seeds::default();
    for path in corpus.files() {
        if is_refused(&path) {
            continue;
        }
        let folder = path.parent().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        names.add(name.as_bytes().to_vec());
        if name == FRAGMENT_METADATA {
            fragments.add(&corpus, folder);
        } else if name.ends_with(".del") {
            let schemas = folder.parent().unwrap().join(SCHEMAS);
            let last = listing(&schemas).into_iter().rfind(|name| name != ENUMERATIONS).unwrap();
            let schema = corpus.payload(&schemas.join(last)).unwrap();
            conditions.add_with_schema(22, &schema, &corpus.payload(&path).unwrap());
        } else if [".con", ".vac", ".ign"].iter().any(|extension| name.ends_with(extension)) {
            let bytes = std::fs::read(&path).unwrap();
            if name.ends_with(".con") && folder.ends_with(COMMITS) {
                assert!(parse_consolidated_commits(&bytes).is_ok());
            }
            commits.add(bytes);
        } else if name.ends_with(".meta") {
            consolidated.add(corpus.payload(&path).unwrap());
        } else if name == FIRST_SCHEMA || folder.ends_with(SCHEMAS) {
            let bytes = std::fs::read(&path).unwrap();
            headers.add(bytes[..bytes.len().min(80)].to_vec());
            schemas.add(corpus.payload(&path).unwrap());
        } else if folder.ends_with(METADATA) {
            metadata.add(corpus.payload(&path).unwrap());
        } else if folder.ends_with(GROUP_DETAILS) {
            groups.add([vec![2], corpus.payload(&path).unwrap()].concat());
        } else if folder.ends_with(ENUMERATIONS) {
            enumerations.add(corpus.payload(&path).unwrap());
        }
    }
    schemas.write("format_schema");
    metadata.write("format_metadata");
    groups.write("format_group");
    enumerations.write("format_enumeration");
    conditions.write("format_condition");
    commits.write("format_commits");
    consolidated.write("format_consolidated");
    names.write("format_names");
    headers.write("format_generic_tile");
    fragments.footers.write("format_footer");
    fragments.early.write("format_early");
    fragments.rtrees.write("format_rtree");
    fragments.sections.write("format_sections");
}

#[derive(Default)]
struct FragmentSeeds {
    footers: Seeds,
    early: Seeds,
    rtrees: Seeds,
    sections: Seeds,
}

impl FragmentSeeds {
    fn add(&mut self, corpus: &Corpus, folder: &Path) {
        let root = folder.parent().unwrap();
        let array = if root.ends_with(FRAGMENTS) { root.parent().unwrap() } else { root };
        let name = TimestampedName::parse(folder.file_name().unwrap().to_str().unwrap()).unwrap().unwrap();
        let path = folder.join(FRAGMENT_METADATA);
        if name.form == NameForm::One {
            let version = if folder.join("__coords.tdb").exists() { 2 } else { 1 };
            let schema = schema_payload(corpus, array, FIRST_SCHEMA);
            self.early.add_with_schema(version, &schema, &corpus.payload(&path).unwrap());
            return;
        }
        let bytes = std::fs::read(&path).unwrap();
        let first =
            (name.version < 10).then(|| ArraySchema::parse(&schema_payload(corpus, array, FIRST_SCHEMA)).unwrap());
        let last_8 = bytes[bytes.len() - 8..].try_into().unwrap();
        let range = footer_range(name.version, first.as_ref(), bytes.len() as u64, last_8).unwrap();
        let footer = &bytes[range.start as usize..range.end as usize];
        let schema = schema_payload(corpus, array, schema_name(footer).unwrap());
        self.footers.add_with_schema(name.version, &schema, footer);
        let parsed = FragmentFooter::parse(footer, name.version, &ArraySchema::parse(&schema).unwrap()).unwrap();
        let section = |offset: u64| corpus.payload_at_start(&path, &bytes[offset as usize..]).unwrap().0;
        self.rtrees.add_with_schema(name.version, &schema, &section(parsed.facts.rtree_offset().unwrap()));
        self.sections.add(section(parsed.records[0].tile_offsets));
        if let Some(offset) = parsed.facts.processed_conditions_offset() {
            self.sections.add(section(offset));
        }
    }
}
