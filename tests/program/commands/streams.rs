//! Standard streams that are closed, full or of the wrong kind: output that cannot be printed is an error.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use super::fixtures;

/// Returns every command that prints something, as arguments after the name of the program.
fn printing() -> Vec<Vec<String>> {
    let (array, sparse) = (fixtures().join("demo"), fixtures().join("arrays/sparse/overlap"));
    let group = fixtures().join("arrays/groups/experiment").display().to_string();
    let (array, sparse) = (array.display().to_string(), sparse.display().to_string());
    let lines: [&[&str]; 18] = [
        &["cat", &array, "temp.f32"],
        &["cat", &sparse, "text/cells.csv"],
        &["cat", "--at", "2030-01-01", &array, "README.txt", "schema.txt"],
        &["ls", &array],
        &["ls", "-l", &array],
        &["ls", &array, "temp.f32"],
        &["info", "--at", "2030-01-01", &array],
        &["info", "--at", "2030-01-01", "--json", &array],
        &["info", "--slice", "y=3", &array],
        &["verify", &array],
        &["verify", &group],
        &["completions", "bash"],
        &["man"],
        &["man", "--roff"],
        &["--help"],
        &["-V"],
        &["cat", "--help"],
        &["help", "mount"],
    ];
    lines.into_iter().map(|line| line.iter().map(|&word| word.to_owned()).collect()).collect()
}

/// Runs the program from a shell that redirects its streams like this.
fn redirected(arguments: &[String], streams: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec \"$@\" {streams}")).arg("sh").arg(env!("CARGO_BIN_EXE_tilefs")).args(arguments);
    shell.stdin(Stdio::null()).output().expect("a shell starts")
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    for arguments in printing() {
        // For `verify`, status 1 means that something is damaged.
        let failed = if arguments[0] == "verify" { 2 } else { 1 };
        let whole = redirected(&arguments, "");
        assert!(whole.status.success() && !whole.stdout.is_empty(), "{arguments:?}: {whole:?}");
        for (streams, reason) in [
            (">&-", "standard output is closed"),
            ("<&- >&-", "standard output is closed"),
            ("1</dev/null", "standard output is open for reading only"),
            (">/dev/full", "No space left"),
        ] {
            let output = redirected(&arguments, streams);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(failed), "{arguments:?} {streams}: {said}");
            // There is one line for each file if only writing reveals the problem.
            let lines = if reason == "No space left" { 2 } else { 1 };
            assert!((1..=lines).contains(&said.lines().count()), "{arguments:?} {streams}: {said}");
            assert!(said.lines().all(|line| line.starts_with("tilefs: ")), "{arguments:?} {streams}: {said}");
            assert!(said.contains("cannot write: ") && said.contains(reason), "{arguments:?} {streams}: {said}");
        }
        // Without standard error, only the exit status can report the failure.
        let output = redirected(&arguments, ">&- 2>&-");
        assert_eq!(output.status.code(), Some(failed), "{arguments:?}");
        for streams in ["<&-", "2>&-", "<&- 2>&-"] {
            let output = redirected(&arguments, streams);
            assert!(output.status.success(), "{arguments:?} {streams}: {output:?}");
            assert!(output.stdout == whole.stdout, "{arguments:?} {streams}");
        }
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for arguments in printing() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).args(&arguments).stdout(writer).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_null_device_that_is_open_for_reading_too_is_no_closed_stream() {
    for arguments in printing() {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tilefs")).args(&arguments).stdout(null).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}
