//! The commands of README.md and of README.txt in a mount do what they say, as they stand.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::manifest::{Expected, load};
use crate::mounted::Mounted;
use crate::tools::{has, python_with};

/// What a line of a shell prints, run in a folder with our program and the Python of the tests first in the path.
/// `None`, and says why, where its program is missing.
fn shell(folder: &Path, line: &str) -> Option<String> {
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tilefs"), bin.path().join("tilefs")).unwrap();
    match line.split(' ').next() {
        Some("tilefs") => {}
        Some("python3") => {
            // A link to an interpreter would lose its packages.
            let script = format!("#!/bin/sh\nexec '{}' \"$@\"\n", python_with("numpy")?);
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
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let tasks = readme.split("## Five tasks").nth(1).unwrap().split("### Single-cell").next().unwrap();
    let blocks = tasks.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let mnt = demo.path("mnt").display().to_string();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut printed = String::new();
    for line in blocks.flat_map(str::lines) {
        let line = line
            .replace("/mnt/demo", &mnt)
            .replace("tests/fixtures", &repository.join("tests/fixtures").display().to_string());
        printed += &shell(&demo.path(""), &line).unwrap_or_default();
    }
    // The value of row 42 and column 17, by od and as text; NumPy's mean of rows 10 to 19; awk's mean of column 4.
    for expected in ["15.97", "19.545", "15.09"] {
        assert!(printed.contains(expected), "{expected} is missing in\n{printed}");
    }
    assert_eq!(fs::metadata(demo.path("rows.f32")).unwrap().len(), 5 * 800);
    assert_eq!(fs::metadata(demo.path("part.npy")).unwrap().len(), 128 + 10 * 5 * 4);
}

#[test]
fn the_commands_of_the_readme_in_a_mount_work_there() {
    for array in ["demo", "arrays/sparse/consolidated", "arrays/dense/nullable", "arrays/dense/odd_names"] {
        let Some(mounted) = Mounted::new(array) else { return };
        let text = fs::read_to_string(mounted.path("mnt/README.txt")).unwrap();
        let (before, copying) = text.split_once("Before copying\n").unwrap();
        // Each is indented, under what it is for.
        let commands = before.split("What one can do here\n").nth(1).unwrap();
        let others: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("    ")).collect();
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

/// On an experiment of the corpus, as libtiledb's wheel and TileDB-SOMA wrote it.
#[test]
fn the_commands_for_single_cell_data_work_on_an_experiment() {
    let Some(corpus) = crate::corpora::corpus() else { return };
    if !crate::skip::can_mount() {
        return;
    }
    let experiment = corpus.join("real/pbmc_soma").display().to_string();
    let (expected, folder) = (Experiment::of(&corpus), tempfile::tempdir().unwrap());
    let mountpoint = folder.path().join("cells");
    fs::create_dir(&mountpoint).unwrap();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let part = readme.split("### Single-cell").nth(1).unwrap().split("\n## ").next().unwrap();
    let block = |language: &str| {
        let block = part.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
        block
            .replace("/mnt/cells", &mountpoint.display().to_string())
            .replace("mount pbmc_soma", &format!("mount {experiment}"))
    };
    let mounted = Unmounted(&mountpoint);
    let printed: Vec<Option<String>> = block("sh").lines().map(|line| shell(folder.path(), line)).collect();
    // The third column of the cells is a label, counted.
    let [.., Some(columns), Some(counts)] = printed.as_slice() else { panic!("{printed:?}") };
    assert!(columns.lines().nth(2).unwrap().ends_with("\tbulk_labels"), "{columns}");
    let mut counted: Vec<(String, usize)> = counts
        .lines()
        .map(|line| line.trim().split_once(' ').unwrap())
        .map(|(count, label)| (label.trim().to_owned(), count.parse().unwrap()))
        .collect();
    counted.sort();
    assert_eq!(counted, expected.labels);

    if let Some(python) = python_with("scipy") {
        let digests = "import hashlib
order = np.lexsort((matrix.col, matrix.row))
for part in matrix.row.astype('<i8'), matrix.col.astype('<i8'), matrix.data:
    print(hashlib.sha256(part[order].tobytes()).hexdigest())";
        let output = Command::new(python).args(["-c", &(block("python") + digests)]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected.matrix);
    }
    drop(mounted);
}

/// What libtiledb read of the experiment.
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
