//! The sources of packages agree with each other: the recipes in `packaging/`, the metadata of `cargo binstall`, the
//! list of files in a package, and the bill of materials.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::repository::{root, text};
use support::skip::{Need, skipped};

/// The recipes that build from the source archive, with the lines that they must contain: `VERSION` and `LICENCE` stand
/// for those of Cargo.toml.
const RECIPES: [(&str, &[&str]); 6] = [
    ("conda/recipe.yaml", &["  version: \"VERSION\"\n", "  license: LICENCE\n"]),
    ("homebrew/tilefs.rb", &["/download/vVERSION/tilefs-VERSION.tar.gz\"\n", "  license \"LICENCE\"\n"]),
    (
        "nix/package.nix",
        &["/download/vVERSION/tilefs-VERSION.tar.gz\"", "  version = \"VERSION\";\n", "lib.licenses.mit;"],
    ),
    (
        "spack/package.py",
        &["/download/vVERSION/tilefs-VERSION.tar.gz\"", "version(\"VERSION\", ", "license(\"LICENCE\")"],
    ),
    ("aur/PKGBUILD", &["\npkgver=VERSION\n", "\nlicense=(LICENCE)\n"]),
    ("aur/.SRCINFO", &["\tpkgver = VERSION\n", "\tlicense = LICENCE\n", "/download/vVERSION/tilefs-VERSION.tar.gz\n"]),
];

fn printed(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the strings of a shell array of PKGBUILD, or the single string of a variable.
fn shell_words(script: &str, name: &str) -> Vec<String> {
    let print = format!("set -eu; . /dev/stdin; printf '%s\\n' \"${{{name}[@]}}\"");
    let mut child = Command::new("bash")
        .args(["-c", &print])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_recipes_have_the_version_the_licence_and_the_address_of_the_program() {
    let repository = env!("CARGO_PKG_REPOSITORY");
    assert!(text("LICENSE").starts_with("MIT License"));
    for (name, said) in RECIPES {
        let recipe = text(&format!("packaging/{name}"));
        for part in said {
            let part = part.replace("VERSION", env!("CARGO_PKG_VERSION")).replace("LICENCE", "MIT");
            assert!(recipe.contains(&part), "packaging/{name} does not say {part:?}");
        }
        assert!(recipe.contains(repository), "packaging/{name} does not name {repository}");
        // scripts/package.sh puts the checksum there; a release that does not exist has none.
        assert_eq!(recipe.matches("@SHA256@").count(), 1, "packaging/{name}");
    }
    let chart = text("packaging/helm/tilefs/Chart.yaml");
    for key in [
        format!("\nversion: {}\n", env!("CARGO_PKG_VERSION")),
        format!("\nappVersion: \"{}\"\n", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(chart.contains(&key), "Chart.yaml does not say {key:?}");
    }
    // Only the text of a release names its files, so that no document promises files that do not exist yet.
    let release = text("packaging/release.md");
    for file in
        ["tilefs_VERSION-1_", "tilefs-VERSION-x86_64", "ghcr.io/tilefs/tilefs:VERSION", "tilefs-chart-VERSION.tgz"]
    {
        assert!(release.contains(file), "packaging/release.md does not name {file}");
    }
    assert!(!release.contains(env!("CARGO_PKG_VERSION")), "scripts/package.sh puts the version there");
    // scripts/package.sh fills exactly these recipes.
    let script = text("scripts/package.sh");
    let filled = script.split("for recipe in ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(filled.split(' ').collect::<Vec<_>>(), RECIPES.map(|(name, _)| name));
}

#[test]
fn the_recipes_need_the_rust_that_the_program_needs() {
    let manifest = text("Cargo.toml");
    let rust = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(text("packaging/spack/package.py").contains(&format!("\"rust@{rust}:\"")), "Spack needs another Rust");
    for feature in ["cloud", "serve"] {
        assert!(text("packaging/spack/package.py").contains(&format!("variant(\"{feature}\"")), "{feature}");
    }
}

#[test]
fn srcinfo_says_what_the_recipe_for_arch_linux_says() {
    let (recipe, info) = (text("packaging/aur/PKGBUILD"), text("packaging/aur/.SRCINFO"));
    let mut fields: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, value) in info.lines().filter_map(|line| line.split_once(" = ")) {
        fields.entry(key.trim()).or_default().push(value.to_owned());
    }
    assert!(fields.len() > 10, "{fields:?}");
    for (key, values) in fields {
        let name = if key == "pkgbase" { "pkgname" } else { key };
        assert_eq!(shell_words(&recipe, name), values, "{key}");
    }
}

/// Returns the files below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(within) = waiting.pop() {
        for entry in fs::read_dir(folder.join(&within)).unwrap() {
            let entry = entry.unwrap();
            let path = within.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path);
            } else {
                found.insert(path.to_str().unwrap().to_owned());
            }
        }
    }
    found
}

/// Returns the places where `[package.metadata.deb]` puts files, as paths below `/usr` of other distributions.
fn files_of_the_deb() -> BTreeSet<String> {
    let manifest = text("Cargo.toml");
    let assets = manifest.split("\nassets = [\n").nth(1).unwrap().split("\n]").next().unwrap();
    let placed = assets.lines().map(|line| {
        let words: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let [from, to, _] = words[..] else { panic!("{line}") };
        let file = from.rsplit('/').next().unwrap();
        let to = if to.ends_with('/') { format!("{to}{file}") } else { to.to_owned() };
        // Debian has a different folder for zsh, and requires a compressed changelog.
        let to = to.strip_prefix("usr/").unwrap().replace("zsh/vendor-completions", "zsh/site-functions");
        to.replace("changelog.gz", "CHANGELOG.md")
    });
    // cargo-deb adds the file with the licence.
    placed.chain(["share/licenses/tilefs/LICENSE".to_owned()]).collect()
}

#[test]
fn all_packages_have_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let program = env!("CARGO_BIN_EXE_tilefs");
    printed(Command::new("scripts/install.sh").args([program, prefix.to_str().unwrap(), "/opt/tilefs"]));
    assert_eq!(files(&prefix), files_of_the_deb());
    assert_eq!(fs::read_link(prefix.join("sbin/mount.fuse.tilefs")).unwrap(), Path::new("../bin/tilefs"));
    assert!(printed(Command::new(prefix.join("bin/tilefs")).arg("--version")).contains("tilefs "));
    let unit = fs::read_to_string(prefix.join("lib/systemd/system/tilefs@.service")).unwrap();
    assert_eq!(unit.replace("/opt/tilefs/bin/", "/usr/bin/"), text("packaging/tilefs@.service"));
    assert_eq!(unit.matches("/opt/tilefs/bin/tilefs ").count(), 2, "{unit}");
    let machine = folder.path().join("machine");
    let mut staged = Command::new("scripts/install.sh");
    printed(staged.args([program, "/opt/tilefs"]).env("DESTDIR", &machine));
    assert_eq!(files(&machine.join("opt/tilefs")), files_of_the_deb());
    let staged = fs::read_to_string(machine.join("opt/tilefs/lib/systemd/system/tilefs@.service")).unwrap();
    assert_eq!(staged, unit);
    for page in fs::read_dir(root().join("man")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = page.file_name().unwrap().to_str().unwrap();
        let section = page.extension().unwrap().to_str().unwrap();
        if section == "txt" {
            // The rendered page is part of the program, for `tilefs man`.
            continue;
        }
        let installed = fs::read(prefix.join(format!("share/man/man{section}")).join(name)).unwrap();
        assert_eq!(installed, fs::read(&page).unwrap(), "{name}");
    }
    let completions = fs::read_to_string(prefix.join("share/bash-completion/completions/tilefs")).unwrap();
    assert!(completions.contains("complete -F _tilefs"), "{completions}");
    // All recipes call the script, so they have these files. Those that conda's test looks for are among them.
    for (name, _) in RECIPES.iter().filter(|(name, _)| !name.ends_with("SRCINFO")) {
        let recipe = text(&format!("packaging/{name}"));
        assert!(recipe.contains("scripts/install.sh"), "packaging/{name} does not use scripts/install.sh");
    }
    let conda = text("packaging/conda/recipe.yaml");
    let checked: Vec<&str> = conda.lines().filter_map(|line| line.trim().strip_prefix("- share/")).collect();
    assert!(checked.len() > 4, "{checked:?}");
    for file in checked {
        assert!(prefix.join("share").join(file).is_file(), "conda looks for share/{file}");
    }
}

/// Runs the line of conda's recipe that installs the program, for both folders that cargo may build in.
#[test]
fn the_recipe_for_conda_finds_the_program() {
    let recipe = text("packaging/conda/recipe.yaml");
    let install = recipe.lines().find_map(|line| line.strip_prefix("    - scripts/install.sh ")).unwrap();
    for target in [None, Some("x86_64-unknown-linux-gnu")] {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("built").join(target.unwrap_or_default()).join("release");
        fs::create_dir_all(&built).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tilefs"), built.join("tilefs")).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("scripts/install.sh {install}")]).env_remove("CARGO_BUILD_TARGET");
        shell.env("CARGO_TARGET_DIR", folder.path().join("built")).env("PREFIX", folder.path().join("prefix"));
        if let Some(target) = target {
            shell.env("CARGO_BUILD_TARGET", target);
        }
        printed(&mut shell);
        assert!(folder.path().join("prefix/bin/tilefs").is_file(), "{target:?}");
    }
}

/// Nix and makepkg strip programs. The other recipes ask cargo to do it: with symbols, the program is five times as
/// large.
#[test]
fn the_recipes_build_programs_without_symbols() {
    for (name, _) in RECIPES.iter().filter(|(name, _)| !["nix", "aur"].contains(&name.split('/').next().unwrap())) {
        assert!(text(&format!("packaging/{name}")).contains("profile.release.strip=true"), "packaging/{name}");
    }
}

/// Returns the values of a table of Cargo.toml whose values are strings.
fn table<'a>(manifest: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let body = manifest.split(&format!("\n[{name}]\n")).nth(1).unwrap_or_else(|| panic!("Cargo.toml has no {name}"));
    let lines = body.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split_once(" = ")).map(|(key, value)| (key, value.trim_matches('"'))).collect()
}

#[test]
fn binstall_finds_the_program_in_the_archive_that_the_script_makes() {
    let manifest = text("Cargo.toml");
    let script = text("scripts/package.sh");
    let musl = script.split("make_musl() {").nth(1).unwrap().split("\n}").next().unwrap();
    let name = musl.split("\n    name=").nth(1).unwrap().lines().next().unwrap();
    // The place where the script puts the program, and the folder that it packs.
    assert!(musl.contains("strip -o \"$made/$name/tilefs\""), "{musl}");
    assert!(musl.contains("-C \"$made\" -cf - \"$name\" |\n        gzip -9n > \"$made/$name.tar.gz\""), "{musl}");
    for machine in ["x86_64", "aarch64"] {
        let name = name.replace("$version", env!("CARGO_PKG_VERSION")).replace("$machine", machine);
        for library in ["gnu", "musl"] {
            let of =
                table(&manifest, &format!("package.metadata.binstall.overrides.{machine}-unknown-linux-{library}"));
            let filled = |key: &str| {
                let filled = of[key].replace("{ repo }", env!("CARGO_PKG_REPOSITORY"));
                let filled = filled.replace("{ version }", env!("CARGO_PKG_VERSION"));
                filled.replace("{ name }", env!("CARGO_PKG_NAME")).replace("{ bin }", "tilefs")
            };
            let release = format!("{}/releases/download/v{}", env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION"));
            assert_eq!(filled("pkg-url"), format!("{release}/{name}.tar.gz"));
            assert_eq!(filled("bin-dir"), format!("{name}/tilefs"));
            assert_eq!(of["pkg-fmt"], "tgz");
        }
    }
    let made = root().join("target/packages");
    for archive in made.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
        let Some(name) = archive.file_name().unwrap().to_str().unwrap().strip_suffix("-linux-musl.tar.gz") else {
            continue;
        };
        let listed = printed(Command::new("tar").arg("-tzf").arg(&archive));
        assert!(listed.lines().any(|line| line == format!("{name}-linux-musl/tilefs")), "{listed}");
    }
}

#[test]
fn the_bill_of_materials_has_what_is_linked_into_the_program() {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let run = || {
        Command::new("python3").args(["scripts/sbom.py", &target, "1700000000"]).current_dir(root()).output().unwrap()
    };
    let output = run();
    let said = String::from_utf8_lossy(&output.stderr);
    // Before 3.11, Python has no parser for Cargo.lock.
    if said.contains("No module named 'tomllib'") {
        return skipped(Need::Python, "python3 is older than 3.11");
    }
    assert!(output.status.success(), "{said}");
    assert_eq!(run().stdout, output.stdout, "two runs make different documents");
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    assert_eq!(bill["metadata"]["component"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(bill["metadata"]["component"]["licenses"][0]["expression"], "MIT");
    // The crates in Cargo.lock, with their checksums; those of this workspace have none.
    let lock = text("Cargo.lock");
    let locked: BTreeMap<String, Option<&str>> = lock
        .split("\n[[package]]\n")
        .skip(1)
        .map(|package| {
            let of = |key: &str| {
                package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
            };
            (format!("pkg:cargo/{}@{}", of("name").unwrap(), of("version").unwrap()), of("checksum"))
        })
        .collect();
    let components = bill["components"].as_array().unwrap();
    let mut known: BTreeSet<&str> = BTreeSet::from([bill["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in components {
        let reference = component["purl"].as_str().unwrap();
        let checksum = locked.get(reference).unwrap_or_else(|| panic!("{reference} is not in Cargo.lock"));
        assert_eq!(component["hashes"][0]["content"].as_str(), *checksum, "{reference}");
        assert!(component["licenses"][0]["expression"].is_string(), "{reference} has no licence");
        assert!(known.insert(reference), "{reference} twice");
    }
    let named: BTreeSet<&str> = components.iter().map(|component| component["name"].as_str().unwrap()).collect();
    for crate_of_the_program in
        ["tilefs-format", "tilefs-reader", "tilefs-export", "fuser", "zstd-sys", "ring", "hyper"]
    {
        assert!(named.contains(crate_of_the_program), "{crate_of_the_program} is missing");
    }
    // Tests, build scripts, macros, other platforms.
    for other in ["proptest", "divan", "tilefs-fixtures", "cc", "syn", "serde_derive", "windows-sys", "pyo3"] {
        assert!(!named.contains(other), "{other} is not in the program");
    }
    let mut described = BTreeSet::new();
    for dependency in bill["dependencies"].as_array().unwrap() {
        described.insert(dependency["ref"].as_str().unwrap());
        for used in dependency["dependsOn"].as_array().unwrap() {
            assert!(known.contains(used.as_str().unwrap()), "{used} is no component");
        }
    }
    assert_eq!(described, known);
}
