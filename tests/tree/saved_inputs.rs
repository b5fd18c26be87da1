//! What a mount has saved for later ones depends on more than cells: on labels, metadata, enumerations, members, names of
//! samples, headers, references, options and the time. `changed_inputs.py` changes one of them after the other; after
//! each change, every file of every view is compared with that of a mount without saved results.
//!
//! The walk takes what folders list with all views, so a new view is in it by itself. What is saved is counted: a second
//! mount after each change goes through nothing again.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use support::skip::python_with;
use tilefs_base::error::Error;
use tilefs_base::statistics::Value;
use tilefs_tree::{
    self as tree, DomainOptions, Extent, IndexOptions, MountedTree, ShownViews, TreeOptions, VariantReference,
};
use tilefs_vfs::{Folder, Node, ServedTree};

/// Names that no folder lists: other orders, selections, and regions of variants.
const UNLISTED: [&str; 4] = ["by-row", "nonempty", "slice/5..60", "slice/first.."];
const OF_EXPERIMENTS: [&str; 3] =
    ["10x/RNA/plain", "slice/obs=0..29,var=5..39/h5ad/RNA.h5ad", "slice/obs=0..29,var=5..39/10x/RNA/plain"];
const OF_VARIANTS: [&str; 10] = [
    "vcf/one.bcf",
    "vcf/one.bcf.csi",
    "vcf/two.vcf.gz.tbi",
    "vcf/sites/one.vcf",
    "vcf/sites/two.bcf",
    "vcf/merged/all.vcf",
    "vcf/merged/all.bcf",
    "vcf/multiallelic/all.vcf",
    "vcf/merged/chr1:10-90.vcf",
    "vcf/slice/chr1:1-50/two.vcf",
];

/// Folders that show an object again at each of its times; one time is chosen below.
const TIMES: &str = ".history";

/// Texts that say what is known of the rows so far, and folders of reports.
const EXPLAINING: [&str; 7] =
    ["README.txt", "schema.txt", "schema.json", "group.json", "members.tsv", "fragments.tsv", ".tilefs"];

/// The most bytes of a file that are read, from its beginning and its end.
const MOST: usize = 1 << 20;

/// By path, the bytes of a file or its error.
type Files = BTreeMap<String, Result<Vec<u8>, String>>;

/// The script that changes datasets.
struct Changes {
    script: Child,
    wishes: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Changes {
    fn start(python: &str, folder: &Path, datasets: &[&str]) -> Self {
        let script = support::repository::root().join("tests/tree/changed_inputs.py");
        let modules = support::repository::root().join("tests/fixtures/generators");
        let mut command = Command::new(python);
        command.arg(script).arg(folder).args(datasets).env("PYTHONPATH", modules);
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (wishes, answers) = (script.stdin.take().unwrap(), BufReader::new(script.stdout.take().unwrap()));
        Changes { script, wishes, answers }
    }

    /// Returns the next line of the script; `None` at its end.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| line.trim_end().to_owned())
    }

    /// Makes the next change; returns its name, or that of the next dataset.
    fn make(&mut self) -> Option<String> {
        // Fails at the end of the script.
        let _ = self.wishes.write_all(b"next\n");
        self.next()
    }
}

/// The options of a mount with an index folder, or without.
fn options(dataset: &Path, index: Option<&Path>) -> TreeOptions {
    let reference = dataset.with_extension("fa");
    let mut of_domains = DomainOptions::default();
    if reference.exists() {
        of_domains = of_domains.with(VariantReference::open(&reference).unwrap());
    }
    let index = index.map(|folder| IndexOptions {
        folder: folder.to_owned(),
        most: 256 << 20,
        is_required: true,
        least_cells: 0,
    });
    let reading = tilefs_reader::ReaderOptions { index, threads: 2, cache_size: 32 << 20, ..Default::default() };
    // The domain of the headers of samples that have numbers has 2^32 cells.
    let extent = if reference.exists() { Extent::NonEmpty } else { Extent::Domain };
    TreeOptions { reading, shown: ShownViews::ALL, of_domains, extent, ..TreeOptions::default() }
}

/// Reads every file below a folder.
fn read_all(folder: &dyn Folder, path: &str, files: &mut Files) {
    let is_explaining = |name: &str| EXPLAINING.contains(&name) || name == TIMES;
    for entry in folder.list().unwrap_or_default().into_iter().filter(|entry| !is_explaining(&entry.name)) {
        let path = format!("{path}{}", entry.name);
        match folder.lookup(&entry.name) {
            Ok(Some(node)) => read_node(&node, path, files),
            Ok(None) => drop(files.insert(path, Err("listed, but not there".to_owned()))),
            Err(error) => drop(files.insert(path, Err(error.to_string()))),
        }
    }
}

fn read_node(node: &Node, path: String, files: &mut Files) {
    match node {
        Node::Folder(folder) => read_all(&**folder, &format!("{path}/"), files),
        Node::File(file) => {
            let read = || {
                let content = file.open()?;
                let mut bytes = content.len().to_le_bytes().to_vec();
                let length = content.len() as usize;
                let most = length.min(MOST);
                for start in [0, length - most] {
                    let mut part = vec![0; most];
                    // In pieces that begin anywhere, as those of a reader of pages.
                    for (number, piece) in part.chunks_mut(5000).enumerate().rev() {
                        content.read_at((start + 5000 * number) as u64, piece)?;
                    }
                    bytes.extend(part);
                }
                Ok(bytes)
            };
            files.insert(path, read().map_err(|error: Error| error.to_string()));
        }
    }
}

/// Returns every file of a mounted tree.
fn files_of(root: &Arc<dyn Folder>) -> Files {
    let mut files = Files::new();
    read_all(&**root, "", &mut files);
    for path in UNLISTED.into_iter().chain(OF_EXPERIMENTS).chain(OF_VARIANTS) {
        let found = path.split('/').try_fold(Node::Folder(root.clone()), |node, name| match node {
            Node::Folder(folder) => folder.lookup(name).ok().flatten(),
            Node::File(_) => None,
        });
        if let Some(node) = found {
            read_node(&node, path.to_owned(), &mut files);
        }
    }
    files
}

/// Returns every file of a new mount, and how many results were found, made and written.
fn mounted(dataset: &Path, options: &TreeOptions) -> (Files, [u64; 3]) {
    let tree = MountedTree::new(tree::open_stored(dataset, options).unwrap(), options).unwrap();
    let files = files_of(&tree.root());
    let statistics = tree.statistics();
    let count = |name: &str| match statistics.iter().find(|one| one.name == name).map(|one| one.value) {
        Some(Value::Total(count)) => count,
        _ => panic!("no {name}"),
    };
    (files, ["index_hits", "measured_rows", "index_writes"].map(count))
}

fn assert_same(found: &Files, wanted: &Files, about: &str) {
    let paths: Vec<&String> = found.keys().filter(|path| found.get(*path) != wanted.get(*path)).collect();
    let shown = |files: &Files, path: &str| match files.get(path) {
        Some(Ok(bytes)) => format!("{} bytes", bytes.len()),
        other => format!("{other:?}"),
    };
    let first: Vec<String> = paths
        .iter()
        .take(5)
        .map(|path| format!("{path}: {} where {} are right", shown(found, path), shown(wanted, path)))
        .collect();
    assert!(paths.is_empty(), "{about}: {} files differ: {}", paths.len(), first.join("; "));
    assert!(found.keys().eq(wanted.keys()), "{about}: other files");
}

/// Compares what mounts with saved results show with what mounts without show: now, at the times before, and with other
/// options. Returns the right files.
fn check(dataset: &Path, index: &Path, times: &[u64], about: &str) -> Files {
    let with = |saved: bool, change: &dyn Fn(&mut TreeOptions)| {
        let mut options = options(dataset, saved.then_some(index));
        change(&mut options);
        options
    };
    let (wanted, _) = mounted(dataset, &with(false, &|_| {}));
    let (found, _) = mounted(dataset, &with(true, &|_| {}));
    assert_same(&found, &wanted, about);
    // The first mount reads variants from what it kept as it measured them; the next ones find them by queries of their
    // own, and measure the values of each query.
    let has_variants = dataset.with_extension("fa").exists();
    let mounts = if has_variants { 2 } else { 1 };
    let mut counts = [0; 3];
    for _ in 0..mounts {
        let (again, found) = mounted(dataset, &with(true, &|_| {}));
        assert_same(&again, &wanted, &format!("{about}, mounted again"));
        counts = found;
    }
    let [hits, measured, written] = counts;
    assert!(hits > 0, "{about}: nothing was saved");
    assert!(written == 0 && (measured == 0 || has_variants), "{about}: cells were gone through again");
    for time in times {
        let at = |options: &mut TreeOptions| options.reading.at = Some(*time);
        let about = format!("{about}, as of {time}");
        assert_same(&mounted(dataset, &with(true, &at)).0, &mounted(dataset, &with(false, &at)).0, &about);
    }
    wanted
}

/// Compares what other options show, after what was saved with the usual ones.
fn check_options(dataset: &Path, index: &Path) {
    type Change = (&'static str, fn(&mut TreeOptions));
    let changes: [Change; 4] = [
        ("rows by coordinates", |options| options.row_order = true),
        ("written cells", |options| options.extent = Extent::NonEmpty),
        ("names of axes", |options| options.axes_of_images = true),
        ("no reference", |options| options.of_domains = DomainOptions::default()),
    ];
    for (name, change) in changes {
        let [mut saved, mut unsaved] = [options(dataset, Some(index)), options(dataset, None)];
        change(&mut saved);
        change(&mut unsaved);
        let about = format!("{}, {name}", dataset.display());
        assert_same(&mounted(dataset, &saved).0, &mounted(dataset, &unsaved).0, &about);
    }
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A mount that is refreshed after each change.
fn watched(dataset: &Path, index: &Path) -> MountedTree {
    let options = TreeOptions { is_watched: true, ..options(dataset, Some(index)) };
    MountedTree::new(tree::open_stored(dataset, &options).unwrap(), &options).unwrap()
}

#[test]
fn what_is_saved_of_arrays_depends_on_every_input_that_changes() {
    depends_on_every_input_that_changes(&["dense", "sparse", "labels", "labels_of_rows", "geometries", "raster"]);
}

#[test]
fn what_is_saved_of_experiments_depends_on_every_input_that_changes() {
    depends_on_every_input_that_changes(&["experiment"]);
}

#[test]
fn what_is_saved_of_variants_depends_on_every_input_that_changes() {
    depends_on_every_input_that_changes(&["variants2", "variants3", "variants4"]);
}

/// Makes datasets and changes them one after the other.
fn depends_on_every_input_that_changes(names: &[&str]) {
    let Some(python) = python_with("tiledb,numpy") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut changes = Changes::start(&python, folder.path(), names);
    let mut line = changes.next();
    let mut datasets = 0;
    while let Some(name) = line.take().and_then(|line| line.strip_prefix("dataset ").map(str::to_owned)) {
        let dataset: PathBuf = folder.path().join(&name);
        let index = folder.path().join(format!("{name}.index"));
        let (mut before, mut times) = (check(&dataset, &index, &[], &name), Vec::new());
        for (kind, unlisted) in [("experiment", &OF_EXPERIMENTS[..]), ("variants", &OF_VARIANTS[..])] {
            let is_there = |path: &str| before.iter().any(|(known, read)| known.starts_with(path) && read.is_ok());
            let absent: Vec<_> = unlisted.iter().filter(|path| name.starts_with(kind) && !is_there(path)).collect();
            assert!(absent.is_empty(), "{name}: {absent:?}");
        }
        check_options(&dataset, &index);
        let kept = watched(&dataset, &index);
        files_of(&kept.root());
        datasets += 1;
        times.push(now());
        line = changes.make();
        while let Some(change) = line.take_if(|line| !line.starts_with("dataset ")) {
            let about = format!("{name}, {change}");
            let wanted = check(&dataset, &index, times.last().map(std::slice::from_ref).unwrap_or_default(), &about);
            assert!(wanted != before || change == "consolidation", "{about}: nothing has changed");
            kept.refresh().unwrap();
            // A reference stays as it was when it was opened.
            let has_changed = |path: &str| !change.contains("reference") || !path.starts_with("vcf/sites");
            let of_change = |files: &Files| -> Files {
                let files = files.iter().filter(|(path, _)| has_changed(path));
                files.map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
            };
            let refreshed = files_of(&kept.root());
            assert_same(&of_change(&refreshed), &of_change(&wanted), &format!("{about}, after a refresh"));
            before = wanted;
            times.push(now());
            line = changes.make();
        }
        for time in &times {
            let at = |index: Option<&Path>| {
                let mut options = options(&dataset, index);
                options.reading.at = Some(*time);
                mounted(&dataset, &options).0
            };
            assert_same(&at(Some(&index)), &at(None), &format!("{name} as of {time}"));
        }
    }
    assert!(changes.script.wait().unwrap().success());
    assert_eq!(datasets, names.len());
}
