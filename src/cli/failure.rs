//! Failures of commands: one line with the reason and a remedy, and the exit status.

use std::io;

use tilefs_base::error::Error;
use tilefs_vfs::fuse::MountError;

use super::printable;

/// The exit status of failures without a status of their own: reading, writing, a missing name.
pub const FAILED: u8 = 1;

/// The exit status of an invalid command line.
pub const WRONG_USAGE: u8 = 2;

/// The exit status if there is no array or group.
pub const NOT_AN_ARRAY: u8 = 3;

/// The exit status if stored data are damaged or partly missing.
pub const DAMAGED: u8 = 4;

/// The exit status if the stored data are of a kind that this program does not support.
pub const UNSUPPORTED: u8 = 5;

/// The exit status if the encryption key is missing or wrong.
pub const WRONG_KEY: u8 = 6;

/// The exit status if mounting failed.
pub const NOT_MOUNTED: u8 = 7;

/// The exit status if unmounting failed.
pub const NOT_UNMOUNTED: u8 = 8;

/// All statuses, with a short explanation.
pub const STATUSES: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 no array, 4 damaged, 5 not supported, 6 key, 7 not mounted, 8 not
unmounted. See `tilefs man`.";

/// The end of a command that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: u8,
    /// Empty if there is nothing (more) to report.
    pub message: String,
}

impl Failure {
    /// Creates a general failure.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { status: FAILED, message: message.into() }
    }

    /// Creates a failure for an invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { status: WRONG_USAGE, message: message.into() }
    }

    /// Returns the same failure without its message, which has been printed already.
    pub fn without_message(self) -> Self {
        Failure { status: self.status, message: String::new() }
    }

    /// Prefixes the message with the file that it is about.
    pub fn about(self, path: &str) -> Self {
        Failure { message: format!("{path}: {}", self.message), ..self }
    }

    /// Prints the message, if there is one.
    pub fn report(&self) {
        if !self.message.is_empty() {
            complain(&self.message);
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Usage { .. } => WRONG_USAGE,
            Error::NotAnArray { .. } => NOT_AN_ARRAY,
            Error::Damaged { .. } | Error::Missing { .. } => DAMAGED,
            Error::Unsupported { .. } => UNSUPPORTED,
            Error::Key { .. } => WRONG_KEY,
            Error::NotFound { .. } | Error::Io { .. } | Error::Internal { .. } | Error::Cancelled => FAILED,
        };
        let message = match status {
            WRONG_KEY => format!("{error}; --key-file FILE must contain the key of the array"),
            _ => error.to_string(),
        };
        Failure { status, message }
    }
}

impl From<MountError> for Failure {
    fn from(error: MountError) -> Self {
        Failure { status: NOT_MOUNTED, message: error.to_string() }
    }
}

/// For writing to standard output: a reader that closes the pipe is not an error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { status: 0, message: String::new() },
            _ => Failure::failed(format!("cannot write: {error}")),
        }
    }
}

/// Prints a line about an error, and continues.
pub fn complain(message: &str) {
    use io::Write;
    // If standard error is closed, the message cannot be shown.
    let _ = writeln!(io::stderr(), "tilefs: {}", printable::line(&message.replace('\n', " ")));
}

/// Reduces the command line parser's report to one line: without heading, usage and blank lines. It ends with the
/// command that prints the help, which is that of `command`, if there is one.
pub fn one_line(report: &str, command: Option<&str>) -> String {
    let parts: Vec<&str> = report
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        // The hint about passing an option as a value does not help.
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .collect();
    let line = parts.join(" ").replace(" tip: ", "; ");
    let help = command.map_or_else(|| "tilefs --help".to_owned(), |command| format!("tilefs {command} --help"));
    format!("{} (see `{help}`)", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_parser_become_one_line() {
        let report = "error: the following required arguments were not provided:\n  <ARRAY>\n  <MNT>\n\nUsage: tilefs \
                      mount <ARRAY> <MNT>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(report, Some("mount")),
            "the following required arguments were not provided: <ARRAY> <MNT> (see `tilefs mount --help`)"
        );
    }

    #[test]
    fn each_status_is_in_the_help_and_in_the_manual() {
        let manual = include_str!("../../man/tilefs.1").split(".SH EXIT STATUS\n").nth(1).unwrap();
        let section = manual.split(".SH ").next().unwrap();
        let statuses = [FAILED, WRONG_USAGE, NOT_AN_ARRAY, DAMAGED, UNSUPPORTED, WRONG_KEY, NOT_MOUNTED, NOT_UNMOUNTED];
        assert_eq!(statuses.to_vec(), (1..9).collect::<Vec<u8>>());
        for status in 0..=8 {
            assert!(section.contains(&format!(".TP\n.B {status}\n")), "{status}");
            assert!(STATUSES.contains(&format!(" {status} ")), "{status}");
        }
    }

    #[test]
    fn statuses_follow_the_kind_of_error() {
        assert_eq!(Failure::from(Error::usage("no such time")), Failure::usage("no such time"));
        let (path, reason) = (String::from("a"), String::from("b"));
        for (error, status) in [
            (Error::NotAnArray { path: path.clone(), reason }, NOT_AN_ARRAY),
            (Error::damaged("bad"), DAMAGED),
            (Error::missing("gone"), DAMAGED),
            (Error::unsupported("version 99"), UNSUPPORTED),
            (Error::key("wrong"), WRONG_KEY),
            (Error::NotFound { path }, FAILED),
            (Error::internal("odd"), FAILED),
        ] {
            assert_eq!(Failure::from(error.clone()).status, status, "{error}");
        }
        let unmounted = Failure::from(MountError::new("mnt".as_ref(), "not empty"));
        assert_eq!(unmounted, Failure { status: NOT_MOUNTED, message: "mnt: not empty".to_owned() });
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).status, 0);
        assert_eq!(Failure::from(io::Error::from_raw_os_error(libc::ENOSPC)).status, FAILED);
    }
}
