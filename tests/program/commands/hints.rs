//! The program says why something does not show: commits of the future, views of another kind of array, lists without
//! end; and `--at` means what the same name in `.history/` means.

use std::fs;
use std::path::Path;

use super::{fixture, printed, tilefs};
use support::handmade::{CHAR, Stored, attribute, plane};
use support::stored::{Copy, stored};

/// A time in the future: 9999-12-31T23:59:59.999Z.
const FUTURE: u64 = 253_402_300_799_999;

/// Gives everything in a folder whose name begins with a time a new one. `change` returns the start and end times of a
/// name, given its start time.
fn change_times(folder: &Path, change: &impl Fn(u64) -> Option<u64>) {
    for entry in fs::read_dir(folder).expect("a folder is listed") {
        let path = entry.expect("a folder is listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("text");
        let fields: Vec<&str> = name.splitn(5, '_').collect();
        if let ["", "", start, _, rest] = fields[..]
            && let Ok(start) = start.parse()
            && let Some(time) = change(start)
        {
            fs::rename(&path, path.with_file_name(format!("__{time}_{time}_{rest}"))).expect("a name is changed");
        }
    }
}

/// Returns the start times in the names of a folder, sorted.
fn times(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).expect("a folder is listed");
    let names = entries.map(|entry| entry.expect("a folder is listed").file_name().into_string().expect("text"));
    let mut times: Vec<u64> = names.filter_map(|name| name.split('_').nth(2)?.parse().ok()).collect();
    times.sort_unstable();
    times
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(printed(arguments)).expect("text")
}

#[test]
fn commits_of_the_future_are_told() {
    for name in ["dense/overlap", "sparse/overlap"] {
        let (array, whole) = (Copy::of(name), stored(name));
        let place = array.path();
        let last = *times(&place.join("__fragments")).last().expect("fragments");
        for folder in ["__fragments", "__commits"] {
            change_times(&place.join(folder), &|start| (start == last).then_some(FUTURE));
        }
        let (place, whole) = (place.display().to_string(), whole.display().to_string());
        let told = "what was committed with the time 9999-12-31T23:59:59.999Z is not shown";
        let calls: [&[&str]; 3] = [&["info", &place], &["info", "--json", &place], &["cat", &place, "README.txt"]];
        assert!(calls.iter().all(|call| text(call).contains(told)), "{name}: {}", text(calls[0]));
        let object = fixture(&format!("arrays/{name}"));
        let attribute = &object.schema.as_ref().expect("a schema").attrs[0];
        let file = format!("{}.{}", attribute.name, support::shown::extension(&attribute.datatype));
        let all = printed(&["cat", &whole, &file]);
        assert_ne!(printed(&["cat", &place, &file]), all, "{name}");
        let time = "99991231T235959.999Z";
        assert!(text(calls[0]).contains(&format!("--at {time} and .history/{time} show it")));
        assert_eq!(printed(&["cat", "--at", time, &place, &file]), all, "{name}");
        assert_eq!(printed(&["cat", &place, &format!(".history/{time}/{file}")]), all, "{name}");
        // There is no hint if no commit is hidden, or if the user chose the time.
        assert!(!text(&["info", "--at", time, &place]).contains("committed with"), "{name}");
        assert!(!text(&["info", &whole]).contains("committed with"), "{name}");
        let first = times(&stored(name).join("__fragments"))[0];
        assert!(!text(&["info", "--at", &format!("ms-{first}"), &whole]).contains("committed with"), "{name}");
    }
}

#[test]
fn members_of_the_future_are_told() {
    let group = Copy::of("groups/experiment");
    let place = group.path();
    assert!(!times(&place.join("__group")).is_empty());
    let before = text(&["info", &place.display().to_string()]);
    change_times(&place.join("__group"), &|_| Some(FUTURE));
    let place = place.display().to_string();
    let outline = text(&["info", &place]);
    assert!(before.lines().count() > 1 && !before.contains("future"), "{before}");
    assert!(outline.lines().next().is_some_and(|line| line.contains("with a time in the future")), "{outline}");
    for file in ["README.txt", ".group/group.json"] {
        assert!(text(&["cat", &place, file]).contains("the time 9999-12-31T23:59:59.999Z is not shown"), "{file}");
    }
}

#[test]
fn at_takes_the_names_of_history_and_means_the_same() {
    let demo = fixture("demo").place.display().to_string();
    let newest = printed(&["cat", &demo, "temp.f32"]);
    let mut states = Vec::new();
    for time in [
        "2024",
        "2024-01",
        "2024-01-01",
        "20240101",
        "2024-01-01T00:00",
        "2024-01-01 23:59:60",
        "20240102T000000.000Z",
        "1704067200000",
        "ms-1704067200000",
        "1704153600000ms",
        "2024-01-02..",
        "..2024-01-01",
        "2024-01-02..2024",
        "1704067200000..1704153599999",
    ] {
        let at = printed(&["cat", "--at", time, &demo, "temp.f32"]);
        assert_eq!(at, printed(&["cat", &demo, &format!(".history/{time}/temp.f32")]), "{time}");
        states.push((time, at));
    }
    let state = |time: &str| &states.iter().find(|(one, _)| *one == time).expect("a time").1;
    assert_eq!(*state("2024"), newest);
    assert_eq!(state("20240101"), state("1704067200000"));
    assert_ne!(*state("20240101"), newest);
    assert_eq!(state("2024-01-02.."), state("2024-01-02..2024"));
    assert_ne!(*state("2024-01-02.."), newest);
    let from = printed(&["cat", "--from", "2024-01-02", &demo, "temp.f32"]);
    assert_eq!(from, *state("2024-01-02.."));
    for time in ["1000", "now", "20241301", "2025..2024", ".."] {
        let at = tilefs(&["cat", "--at", time, &demo, "temp.f32"]);
        assert_eq!(at.status.code(), Some(2), "{time}");
        let history = tilefs(&["cat", &demo, &format!(".history/{time}/temp.f32")]);
        assert_eq!(history.status.code(), Some(1), "{time}");
        let reason = String::from_utf8_lossy(&history.stderr).into_owned();
        let reason = reason.split(" is not a time: ").nth(1).and_then(|reason| reason.split("; write").next());
        let reason = reason.unwrap_or_else(|| panic!("{time}: {history:?}"));
        assert!(String::from_utf8_lossy(&at.stderr).contains(reason), "{time}: {reason} {at:?}");
    }
}

#[test]
fn views_of_other_arrays_say_why_they_are_not_there() {
    let (dense, sparse) = (fixture("demo").place, fixture("arrays/sparse/overlap").place);
    let (dense, sparse) = (dense.display().to_string(), sparse.display().to_string());
    let tables = "a dense array of 2 dimensions is no table";
    for (command, array, path, reason) in [
        ("ls", &dense, "parquet", tables),
        ("ls", &dense, "arrow/", tables),
        ("cat", &dense, "parquet/cells.parquet", tables),
        ("cat", &dense, "text/cells.tsv", tables),
        ("ls", &sparse, "tiff", "only dense arrays have it"),
        ("ls", &sparse, "F", "only dense arrays have it"),
    ] {
        let output = tilefs(&[command, array, path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(reason), "{path}: {said}");
    }
    let nested = tilefs(&["ls", &dense, "parqet"]);
    assert!(String::from_utf8_lossy(&nested.stderr).contains("no such file"), "{nested:?}");
}

/// A folder without files explains the names that its files would have, and no others.
#[test]
fn absent_files_of_absent_folders_are_explained() {
    let stored = Stored::new(&plane(4, 4, [attribute("letter", CHAR, None)].into_iter()));
    let array = stored.path().display().to_string();
    for (path, is_explained) in
        [("tiff", true), ("tiff/letter.tif", true), ("tiff/letter.txt", false), ("tiff/other.tif", false)]
    {
        let output = tilefs(&["cat", &array, path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{path}: {said}");
        assert_eq!(said.contains("the values are text or bytes"), is_explained, "{path}: {said}");
        assert_eq!(said.contains("no such file"), !is_explained, "{path}: {said}");
    }
}

#[test]
fn files_without_end_are_refused() {
    let demo = fixture("demo").place.display().to_string();
    for (option, status) in [("--samples-file", 2), ("--regions-file", 2), ("--key-file", 6), ("--config", 2)] {
        let output = tilefs(&["ls", &demo, option, "/dev/zero"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{option}: {said}");
        assert!(said.contains("/dev/zero") && said.contains("more than"), "{option}: {said}");
    }
    let output = tilefs(&["ls", &demo, "--reference", "/dev/zero"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("/dev/zero: not a regular file"), "{said}");
    let output = tilefs(&["ls", "s3://bucket/array", "--anonymous", "--set", "vfs.s3.ca_file=/dev/zero"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("/dev/zero: more than"), "{said}");
}

/// What a command says names what to type.
#[test]
fn wrong_words_say_what_to_type() {
    let demo = fixture("demo").place.display().to_string();
    for (arguments, status, part) in [
        (vec!["cat", &format!("{demo}/slice/0,0/temp.f32")], 2, format!("`tilefs cat {demo} slice/0,0/temp.f32`")),
        (vec!["cat", &demo, "slice/5-9,1/temp.f32"], 1, "write 5..9".to_owned()),
        (vec!["cat", &demo, "slice/5 .. 9,1/temp.f32"], 1, "write 5..9".to_owned()),
        (vec!["cat", &demo, "slice/y=1,2/temp.f32"], 1, "write y=1+2".to_owned()),
        (vec!["cat", &demo, "slice/1,2,x=3/temp.f32"], 1, "2 selects along x already; to add 3, write 2+3".to_owned()),
        (vec!["cat", &demo, "slice/y=1,y=3..5/temp.f32"], 1, "to add 3..5, write y=1+3..5".to_owned()),
        (vec!["cat", &demo, "slice/>=10,1/temp.f32"], 1, "write 10..".to_owned()),
        (vec!["cat", &demo, "slice/y>=10/temp.f32"], 1, "write y=10..".to_owned()),
        (vec!["stats", &demo], 2, "`cat MNT/.tilefs/stats.json`".to_owned()),
        (vec!["cat", "~/nothing", "temp.f32"], 3, "without quotes; type ".to_owned()),
        (vec!["mount", &demo, "~/nothing"], 7, "without quotes; type ".to_owned()),
    ] {
        let output = tilefs(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(&part) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
    let dataset = tilefs_fixtures::fixtures().join("variants/v4").display().to_string();
    for path in ["vcf/B 3.vcf", "vcf/samples=B 3/B 2.vcf"] {
        let said = tilefs(&["cat", &dataset, path]);
        let said = String::from_utf8_lossy(&said.stderr);
        assert!(said.contains("no sample B 3; the nearest name is B 2;"), "{path}: {said}");
    }
    // What is written there is right.
    assert_eq!(printed(&["cat", &demo, "slice/y=1+2,x=1/temp.f32"]).len(), 8);
    assert_eq!(printed(&["cat", &demo, "slice/1,2+3/temp.f32"]).len(), 8);
}

#[test]
fn a_time_before_the_first_commit_is_told_as_in_history() {
    let (demo, group) = (fixture("demo").place, stored("groups/experiment"));
    for place in [demo, group] {
        let place = place.display().to_string();
        let history = tilefs(&["ls", &place, ".history/2001"]);
        let history = String::from_utf8_lossy(&history.stderr).into_owned();
        let reason = history.trim_end().split(": ").last().expect("a reason").to_owned();
        assert!(reason.starts_with("nothing was there yet; the first commit is "), "{history}");
        for command in ["info", "ls"] {
            let output = tilefs(&[command, &place, "--at", "2001"]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && said.trim_end().ends_with(&reason), "{command}: {said}");
        }
    }
}

/// A level in the variable replaces that of the option, which other filters of the variable do not.
#[test]
fn the_variable_of_the_log_takes_a_level() {
    let array = stored("dense/overlap").display().to_string();
    let slice = "slice/nothing of this kind";
    let logged = |variable: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilefs"));
        let output = command.args(["cat", &array, slice]).env("TILEFS_LOG", variable).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text").contains("slice nothing of this kind:")
    };
    assert!(logged("debug") && logged("tilefs_tree=debug"));
    assert!(!logged("") && !logged("tilefs_vfs::fuse=debug"));
}
