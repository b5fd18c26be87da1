//! The commands of README.md, and of README.txt in a mount, work as printed; the tree in the manual is the served one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use tilefs_tree::views::names::reserved;
use tilefs_tree::{self as tree, TreeOptions};
use tilefs_vfs::{EntryKind, Folder, Node};

use crate::mounted::Mounted;
use crate::tools::has;
use support::manifest::{Expected, load};
use support::skip::python_with;

/// Runs a shell command in a folder, with our program and the Python of the tests first in the path; returns its
/// output. If its program is missing, returns `None` and reports that.
fn shell(folder: &Path, line: &str) -> Option<String> {
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tilefs"), bin.path().join("tilefs")).unwrap();
    match line.split(' ').next() {
        Some("tilefs") => {}
        Some("python3") => {
            let needs = line.split("import ").nth(1).unwrap().split([' ', ';']).next().unwrap();
            // A link to an interpreter would lose its packages.
            let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python_with(needs)?);
            fs::write(bin.path().join("python3"), script).unwrap();
            fs::set_permissions(bin.path().join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        program => has(program?).then_some(())?,
    }
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-eu", "-o", "pipefail", "-c", line]).current_dir(folder).env("PATH", path);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_commands_of_the_readme_work_on_the_sample_array() {
    let Some(demo) = Mounted::new("demo") else { return };
    let readme = fs::read_to_string(support::repository::root().join("README.md")).unwrap();
    let tasks = readme.split("## Five tasks").nth(1).unwrap().split("## What do you have?").next().unwrap();
    let blocks = tasks.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let mnt = demo.path("mnt").display().to_string();
    let fixtures = tilefs_fixtures::fixtures().display().to_string();
    let mut printed = String::new();
    for line in blocks.flat_map(str::lines) {
        let line = line.replace("/mnt/demo", &mnt).replace("tests/fixtures", &fixtures);
        printed += &shell(&demo.path(""), &line).unwrap_or_default();
    }
    // The value of row 42 and column 17, by od and as text; NumPy's mean of rows 10 to 19; awk's mean of column 4.
    for expected in ["15.97", "19.545", "15.09"] {
        assert!(printed.contains(expected), "{expected} is missing in\n{printed}");
    }
    assert_eq!(fs::metadata(demo.path("rows.f32")).unwrap().len(), 5 * 800);
    assert_eq!(fs::metadata(demo.path("part.npy")).unwrap().len(), 128 + 10 * 5 * 4);
}

/// Returns the commands of a README.txt: each is indented, below its purpose.
fn commands_of(text: &str) -> Vec<&str> {
    let (before, _) = text.split_once("Before copying\n").unwrap_or((text, ""));
    let commands = before.split("What you can do here\n").nth(1).unwrap();
    commands.lines().filter_map(|line| line.strip_prefix("    ")).collect()
}

/// Returns the mean of the numbers in the raw file `stem` (with the ending of its type), without nulls and NaN; `None`
/// if there are none.
fn mean_of_raw(mnt: &Path, stem: &str) -> Option<f64> {
    type Decode = fn(&[u8]) -> f64;
    let types: [(&str, usize, Decode); 10] = [
        ("i8", 1, |bytes| i8::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("u8", 1, |bytes| u8::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("i16", 2, |bytes| i16::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("u16", 2, |bytes| u16::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("i32", 4, |bytes| i32::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("u32", 4, |bytes| u32::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("i64", 8, |bytes| i64::from_le_bytes(bytes.try_into().unwrap()) as f64),
        ("u64", 8, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()) as f64),
        ("f32", 4, |bytes| f32::from_le_bytes(bytes.try_into().unwrap()).into()),
        ("f64", 8, |bytes| f64::from_le_bytes(bytes.try_into().unwrap())),
    ];
    let (bytes, size, decode) = types
        .iter()
        .find_map(|&(ending, size, decode)| Some((fs::read(mnt.join(format!("{stem}.{ending}"))).ok()?, size, decode)))
        .unwrap_or_else(|| panic!("no raw file of {stem}"));
    let cells = bytes.chunks_exact(size).map(decode);
    let valid = fs::read(mnt.join(format!("{stem}.valid.u8"))).unwrap_or_else(|_| vec![1; cells.len()]);
    assert_eq!(cells.len() % valid.len(), 0);
    let each = cells.len() / valid.len();
    let values: Vec<f64> = cells
        .enumerate()
        .filter(|(i, value)| valid[i / each] == 1 && !value.is_nan())
        .map(|(_, value)| value)
        .collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[test]
fn the_commands_of_the_readme_in_a_mount_work_there() {
    for array in ["demo", "arrays/sparse/consolidated", "arrays/dense/nullable", "arrays/dense/odd_names"] {
        let Some(mounted) = Mounted::new(array) else { return };
        let text = fs::read_to_string(mounted.path("mnt/README.txt")).unwrap();
        let (_, copying) = text.split_once("Before copying\n").unwrap();
        let others = commands_of(&text);
        let copying: Vec<&str> = copying.lines().map(str::trim).filter(|line| line.starts_with("cp -r ./")).collect();
        assert!(others.len() > 5, "{text}");
        for line in others {
            assert!(!shell(&mounted.path("mnt"), line).is_some_and(|printed| printed.is_empty()), "{array}: {line}");
        }
        let destination = mounted.path("copy");
        fs::create_dir(&destination).unwrap();
        assert_eq!(copying.len(), 1, "{text}");
        shell(&mounted.path("mnt"), &copying[0].replace("DESTINATION", &destination.display().to_string()));
        for name in ["schema.json", "dims"] {
            assert!(destination.join(name).exists(), "{array}: {name}");
        }
        assert!(!destination.join("npy").exists());
    }
}

/// Checks only commands without an interpreter: starting one would take seconds for each array.
#[test]
fn the_commands_of_every_readme_print_what_the_array_holds() {
    let manifest = tilefs_fixtures::fixtures().join("manifest.json");
    let names: Vec<String> = load(&manifest, "").into_iter().map(|object| object.name).collect();
    // Years at the ends of their type are errors in netCDF, because it counts days.
    let is_error = |array: &str, line: &str| array == "arrays/dense/types_times" && line.starts_with("ncdump ");
    let of_arrays = |name: &&String| ["arrays/dense/", "arrays/sparse/"].iter().any(|kind| name.starts_with(kind));
    let (mut commands, mut means) = (0, 0);
    for array in names.iter().filter(of_arrays).filter(|name| !name.ends_with("encrypted")) {
        let Some(mounted) = Mounted::new(array) else { return };
        let mnt = mounted.path("mnt");
        let text = fs::read_to_string(mnt.join("README.txt")).unwrap();
        for line in
            commands_of(&text).iter().filter(|line| !["python3 ", "Rscript "].iter().any(|one| line.starts_with(one)))
        {
            if is_error(array, line) {
                continue;
            }
            let Some(printed) = shell(&mnt, line) else { continue };
            commands += 1;
            let Some((_, path)) = line.strip_prefix("awk ").and_then(|rest| rest.rsplit_once(' ')) else {
                assert!(!printed.is_empty(), "{array}: {line}");
                continue;
            };
            let stem = path.trim_matches('\'').strip_prefix("text/").and_then(|name| name.strip_suffix(".txt"));
            let expected = mean_of_raw(&mnt, stem.unwrap_or_else(|| panic!("{array}: {line}")));
            match (printed.trim().parse::<f64>(), expected) {
                (Ok(mean), Some(expected)) => {
                    means += 1;
                    // If there are infinities among the values, the mean is infinite or not a number.
                    let is_near = (mean - expected).abs() <= 1e-5 * expected.abs().max(1.0);
                    let is_same = mean == expected || mean.is_nan() && expected.is_nan();
                    assert!(is_near || is_same, "{array}: {line}\n{mean}, not {expected}");
                }
                (Err(_), None) => assert_eq!(printed, "", "{array}: {line}"),
                (_, expected) => panic!("{array}: {line}\n{printed}, not {expected:?}"),
            }
        }
    }
    assert!(commands > 500 && means > 50, "{commands} commands, {means} means");
}

/// The placeholders in the paths of the manual.
const PLACEHOLDERS: [&str; 6] = ["ROW", "NAME", "KEY", "FILE", "SELECTION", "TIME"];

/// Returns the paths that the manual documents for the folder of an array, one for each possible extension.
fn documented_paths() -> Vec<Vec<String>> {
    let manual = include_str!("../../man/tilefs-paths.7").replace("\\-", "-");
    let section = manual.split(".SH THE FOLDER OF AN ARRAY\n").nth(1).unwrap().split(".PP\n").next().unwrap();
    let tags = section.split(".TP\n").skip(1).map(|entry| entry.lines().next().unwrap());
    let types = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "bool", "bytes"];
    let mut paths = Vec::new();
    for path in tags.flat_map(|tag| tag.split([' ', ',', '"']).skip(1)).filter(|word| word.contains(['.', '/'])) {
        paths.push(match path.contains("EXT") {
            true => types.map(|extension| path.replace("EXT", extension)).to_vec(),
            false => vec![path.to_owned()],
        });
    }
    paths
}

/// Returns whether a path matches a documented one: a placeholder matches any text within one name, and a folder
/// without a placeholder matches everything in it.
fn is_of(documented: &str, path: &str) -> bool {
    if documented.ends_with('/') && path.starts_with(documented) {
        return true;
    }
    let (wanted, found): (Vec<&str>, Vec<&str>) = (documented.split('/').collect(), path.split('/').collect());
    let name_fits = |(wanted, found): (&&str, &&str)| {
        let placeholder = PLACEHOLDERS.iter().find_map(|placeholder| wanted.split_once(placeholder));
        placeholder.map_or(wanted == found, |(before, after)| {
            found.len() > before.len() + after.len() && found.starts_with(before) && found.ends_with(after)
        })
    };
    wanted.len() == found.len() && wanted.iter().zip(&found).all(name_fits)
}

fn folder(of: &Arc<dyn Folder>, name: &str) -> Option<Arc<dyn Folder>> {
    match of.lookup(name).unwrap() {
        Some(Node::Folder(folder)) => Some(folder),
        _ => None,
    }
}

/// Returns the paths of the listed files in an array's folder, and of those that are only found by name.
fn served_paths(root: &Arc<dyn Folder>) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let listed = root.list().unwrap().into_iter().map(|entry| entry.name);
    for name in listed.chain(reserved().in_array.iter().map(|&name| name.to_owned())) {
        let Some(folder) = folder(root, &name) else {
            paths.extend(root.lookup(&name).unwrap().map(|_| name));
            continue;
        };
        paths.insert(format!("{name}/"));
        for entry in folder.list().unwrap() {
            let end = if entry.kind == EntryKind::Folder { "/" } else { "" };
            paths.insert(format!("{name}/{}{end}", entry.name));
        }
    }
    for format in ["text", "arrow", "parquet"] {
        let parts = folder(root, format).and_then(|format| folder(&format, "parts"));
        let parts = parts.map(|parts| parts.list().unwrap()).unwrap_or_default();
        paths.extend(parts.into_iter().map(|part| format!("{format}/parts/{}", part.name)));
    }
    for selecting in ["slice", "islice"] {
        let all = folder(root, selecting).and_then(|slices| folder(&slices, ".."));
        paths.extend(all.map(|_| format!("{selecting}/../")));
    }
    let Some(Node::File(file)) = root.lookup("schema.json").unwrap() else { panic!("no schema.json") };
    let content = file.open().unwrap();
    let mut text = vec![0; content.len() as usize];
    content.read_at(0, &mut text).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    paths.extend(schema["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()));
    paths
}

#[test]
fn the_tree_of_the_manual_is_the_tree_that_is_served() {
    let fixtures = tilefs_fixtures::fixtures();
    let within = |name: &str| fs::read_dir(fixtures.join(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut arrays: Vec<PathBuf> = within("arrays/dense").chain(within("arrays/sparse")).collect();
    arrays.extend([fixtures.join("demo"), fixtures.join("arrays/filestore")]);
    // One with geometries.
    arrays.push(support::corpora::corpus().join("arrays/v22/dense_types_multi_var/p2"));
    let options = TreeOptions {
        reading: tilefs_reader::ReaderOptions { at: Some(u64::MAX), ..Default::default() },
        ..TreeOptions::default()
    };
    let mut served = BTreeSet::new();
    for root in arrays.iter().filter_map(|array| tree::open(array, &options).ok()) {
        served.extend(served_paths(&root));
    }
    let documented = documented_paths();
    // A folder needs no line of its own if its contents have some.
    let is_named = |path: &str| {
        let fits = |one: &String| is_of(one, path) || path.ends_with('/') && one.starts_with(path);
        documented.iter().flatten().any(fits)
    };
    let not_documented: Vec<&String> = served.iter().filter(|path| !is_named(path)).collect();
    assert!(not_documented.is_empty(), "served, and not in the manual: {not_documented:?}");
    let is_served = |paths: &[String]| paths.iter().any(|one| served.iter().any(|path| is_of(one, path)));
    let not_served: Vec<&Vec<String>> = documented.iter().filter(|paths| !is_served(paths)).collect();
    assert!(not_served.is_empty(), "in the manual, and not served: {not_served:?}");

    let readme = include_str!("../../README.md");
    let tree = readme.split("## The tree").nth(1).unwrap().split("```").nth(1).unwrap();
    for path in
        documented.iter().flatten().filter_map(|path| path.split_once('/')).map(|(folder, _)| format!("{folder}/"))
    {
        let shown = tree.lines().any(|line| line.split_whitespace().any(|word| word.starts_with(&path)));
        assert!(shown, "the README's tree has no {path}");
    }
}

#[test]
fn the_manual_pages_are_well_formed() {
    if !has("mandoc") {
        return;
    }
    for page in ["man/tilefs.1", "man/tilefs-paths.7"] {
        let said = Command::new("mandoc").args(["-T", "lint", page]).current_dir(support::repository::root()).output();
        assert_eq!(String::from_utf8_lossy(&said.unwrap().stdout), "", "{page}");
    }
}

#[test]
fn the_manuals_as_text_are_those_of_the_pages() {
    if !has("mandoc") {
        return;
    }
    let (project, folder) = (support::repository::root(), tempfile::tempdir().unwrap());
    let rendered = Command::new(project.join("scripts/render_manuals.sh")).arg(folder.path()).status().unwrap();
    assert!(rendered.success());
    for name in ["tilefs.txt", "tilefs-paths.txt"] {
        let text = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
        assert!(text(&project.join("man")) == text(folder.path()), "run scripts/render_manuals.sh: man/{name} is old");
    }
}

/// Runs the commands on an experiment of the corpus, which TileDB-SOMA wrote with libtiledb's wheel.
#[test]
fn the_commands_for_single_cell_data_work_on_an_experiment() {
    if !support::skip::can_mount() {
        return;
    }
    let corpus = support::corpora::corpus();
    let experiment = corpus.join("real/pbmc_soma").display().to_string();
    let (expected, folder) = (Experiment::of(&corpus), tempfile::tempdir().unwrap());
    let mountpoint = folder.path().join("cells");
    fs::create_dir(&mountpoint).unwrap();
    let page = fs::read_to_string(support::repository::root().join("docs/single-cell.md")).unwrap();
    let block = |language: &str, number: usize| {
        let block = page.split(&format!("```{language}\n")).nth(number).unwrap().split("```").next().unwrap();
        block.replace("/mnt/cells", &mountpoint.display().to_string()).replace(" pbmc_soma", &format!(" {experiment}"))
    };
    let mounted = Unmounted(&mountpoint);
    let commands = block("sh", 1) + &block("sh", 3);
    let printed: Vec<Option<String>> = commands.lines().map(|line| shell(folder.path(), line)).collect();
    // The third column of the cells is a label; the last command counts its values.
    let [.., Some(columns), Some(counts)] = printed.as_slice() else { panic!("{printed:?}") };
    assert!(columns.lines().nth(2).unwrap().ends_with("\tbulk_labels"), "{columns}");
    let mut counted: Vec<(String, usize)> = counts
        .lines()
        .map(|line| line.trim().split_once(' ').unwrap())
        .map(|(count, label)| (label.trim().to_owned(), count.parse().unwrap()))
        .collect();
    counted.sort();
    assert_eq!(counted, expected.labels);

    let digests = "import hashlib, numpy as np
order = np.lexsort((matrix.col, matrix.row))
for part in matrix.row.astype('<i8'), matrix.col.astype('<i8'), matrix.data:
    print(hashlib.sha256(part[order].tobytes()).hexdigest())";
    for (number, needs, matrix) in [(4, "scipy", ""), (1, "anndata", "matrix = cells.X.tocoo()\n")] {
        let Some(python) = python_with(needs) else { continue };
        let program = block("python", number) + matrix + digests;
        let output = Command::new(python).args(["-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        // The page itself prints a line before the digests.
        assert_eq!(printed.lines().skip(1).collect::<Vec<_>>(), expected.matrix, "{needs}");
    }
    drop(mounted);
}

/// The values that libtiledb read from the experiment.
struct Experiment {
    /// How often each label of `obs` occurs, by label.
    labels: Vec<(String, usize)>,
    /// The digests of the rows, columns and values of `X/data`, in row-major order.
    matrix: Vec<String>,
}

impl Experiment {
    fn of(corpus: &Path) -> Experiment {
        let objects = load(&corpus.join("manifest_real.json"), "");
        let object = |name: &str| objects.iter().find(|object| object.name == name).unwrap();
        let field = |name: &str, field: &str| {
            let fields = object(name).reads[0].fields.as_ref().unwrap();
            &fields.iter().find(|one| one.name == field).unwrap().values
        };
        let schema = object("real/pbmc_soma/obs").schema.as_ref().unwrap();
        let (_, _, names) = schema.enumerations.iter().find(|(name, ..)| name.starts_with("bulk_labels")).unwrap();
        let Expected::File(codes) = field("real/pbmc_soma/obs", "bulk_labels") else { panic!("the codes are known") };
        let codes = fs::read(codes).unwrap();
        let count =
            |code: usize| codes.as_chunks().0.iter().filter(|four| i32::from_le_bytes(**four) == code as i32).count();
        let label = |(code, name): (usize, &Vec<u8>)| (String::from_utf8(name.clone()).unwrap(), count(code));
        let mut labels: Vec<_> = names.iter().enumerate().map(label).filter(|(_, count)| *count > 0).collect();
        labels.sort();
        let matrix =
            ["soma_dim_0", "soma_dim_1", "soma_data"].map(|name| match field("real/pbmc_soma/ms/RNA/X/data", name) {
                Expected::Sha256(digest) => digest.clone(),
                Expected::File(file) => panic!("{} is not a digest", file.display()),
            });
        Experiment { labels, matrix: matrix.into() }
    }
}

/// A mount point that is unmounted when dropped.
struct Unmounted<'a>(&'a Path);

impl Drop for Unmounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
