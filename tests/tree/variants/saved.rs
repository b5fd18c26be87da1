//! The results that one mount computes for a dataset of TileDB-VCF are saved for the next: the starts of the pieces of
//! a file, and the indexes of files. The next mount does not compute them again, and shows the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use tilefs_base::statistics::Value;
use tilefs_tree::{self as tree, IndexOptions, TreeOptions};
use tilefs_vfs::ServedTree;

/// Files of the dataset `v4`, and whether each is an index.
const FILES: [(&str, bool); 10] = [
    ("vcf/NA%2F1.vcf.gz.tbi", true),
    ("vcf/NA%2F1.vcf.gz.csi", true),
    ("vcf/NA%2F1.bcf.csi", true),
    ("vcf/slice/chr10:1-400/B 2.vcf.gz.tbi", true),
    ("vcf/slice/chr10:1-400/B 2.bcf", false),
    ("vcf/merged/all.vcf", false),
    ("vcf/merged/all.vcf.gz.tbi", true),
    ("vcf/merged/all.vcf.gz.csi", true),
    ("vcf/merged/all.bcf.csi", true),
    ("vcf/samples=B 2,NA%2F1/merged/chr10:1-400.bcf", false),
];

/// The length of a file and the bytes read from it, and the counters of its mount.
type Seen = ((u64, Vec<u8>), BTreeMap<&'static str, u64>);

/// Returns the length of a file in a new mount, and the bytes if it is an index: reading other files reads records.
fn mounted(dataset: &Path, (path, is_index): (&str, bool), folder: &Path) -> Seen {
    let index = IndexOptions { folder: folder.join("index"), most: 64 << 20, is_required: true, least_cells: 0 };
    let reading = tilefs_reader::ReaderOptions { index: Some(index), cache_size: 32 << 20, ..Default::default() };
    let options = TreeOptions { reading, ..TreeOptions::default() };
    let stored = tree::open_stored(dataset, &options).unwrap();
    let tree = tree::MountedTree::new(stored, &options).unwrap();
    let content = support::paths::file(&tree.root(), path).open().unwrap();
    let mut bytes = vec![0; if is_index { content.len() as usize } else { 0 }];
    content.read_at(0, &mut bytes).unwrap();
    let seen = (content.len(), bytes);
    let total = |value| match value {
        Value::Total(count) => Some(count),
        _ => None,
    };
    let statistics = tree.statistics();
    (seen, statistics.iter().filter_map(|one| Some((one.name, total(one.value)?))).collect())
}

#[test]
fn a_second_mount_takes_saved_indexes() {
    let dataset = tilefs_fixtures::fixtures().join("variants/v4");
    for (path, is_index) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let (wanted, first) = mounted(&dataset, (path, is_index), folder.path());
        let (found, second) = mounted(&dataset, (path, is_index), folder.path());
        assert!(wanted.0 > 0 && found == wanted, "{path}");
        // The saved results are the starts of the pieces, for an index also the index itself, and possibly the map of
        // the rows of a part.
        let least = 1 + u64::from(is_index);
        assert!(first["measured_rows"] > 0 && first["index_writes"] >= least, "{path}");
        assert!(second["index_hits"] >= least, "{path}");
        let again = ["index_writes", "measured_rows", "merged_cells"].map(|name| second[name]);
        assert_eq!(again, [0; 3], "{path}");
        // For a saved index, no records are decoded, only the header of the file and the data that identify samples.
        assert!(!is_index || second["decoded_bytes"] < first["decoded_bytes"], "{path}");
    }
}

/// A read after the pass that measures a file decodes nothing: its pieces are in the cache.
#[test]
fn what_was_made_to_measure_a_file_is_there_for_its_first_read() {
    let dataset = tilefs_fixtures::fixtures().join("variants/v4");
    let root = support::vcf::opened(&dataset);
    for path in ["vcf/NA%2F1.vcf", "vcf/merged/all.vcf.gz", "vcf/B 2.bcf"] {
        let stored = tree::open_stored(&dataset, &TreeOptions::default()).unwrap();
        let tree = tree::MountedTree::new(stored, &TreeOptions::default()).unwrap();
        let root_of_mount = tree.root();
        let file = support::paths::file(&root_of_mount, path);
        let content = file.open().unwrap();
        let decoded = || {
            tree.statistics()
                .iter()
                .filter(|one| one.name == "decoded_bytes")
                .map(|one| format!("{:?}", one.value))
                .collect::<String>()
        };
        let hits = || {
            tree.statistics()
                .iter()
                .filter(|one| one.name == "cache_hits")
                .map(|one| format!("{:?}", one.value))
                .collect::<Vec<_>>()
        };
        let (before, hits_before) = (decoded(), hits());
        let mut bytes = vec![0; content.len() as usize];
        content.read_at(0, &mut bytes).unwrap();
        assert_eq!(decoded(), before, "{path}");
        assert_eq!(hits()[0], hits_before[0], "{path}: units were read");
        assert_eq!(bytes, support::vcf::bytes(&root, path));
    }
}
