//! Why a command failed: one line that says what is wrong and what to do, and the exit status.

use std::io;

use tilefs_format::error::Error;

use super::printable;

/// The exit status when something did not work that has no status of its own: reading, writing, a name that is not there.
pub const FAILED: u8 = 1;

/// The exit status when the command line makes no sense.
pub const WRONG_USAGE: u8 = 2;

/// The exit status when there is no array and no group.
pub const NOT_AN_ARRAY: u8 = 3;

/// The exit status when what is stored is damaged, or a part of it is missing.
pub const DAMAGED: u8 = 4;

/// The exit status when what is stored is of a kind that this program does not know.
pub const UNSUPPORTED: u8 = 5;

/// The exit status when the encryption key is missing or wrong.
pub const WRONG_KEY: u8 = 6;

/// The exit status when nothing could be mounted there.
pub const NOT_MOUNTED: u8 = 7;

/// The exit status when a mount could not be taken away.
pub const NOT_UNMOUNTED: u8 = 8;

/// All statuses, and what they mean in a few words.
pub const STATUSES: &str = "\
Exit status: 0 done, 1 failed, 2 wrong usage, 3 no array, 4 damaged, 5 not supported, 6 key, 7 not mounted, 8 not
unmounted. `tilefs man` tells more.";

/// The end of a command that did not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub status: u8,
    /// Empty where there is nothing (more) to say.
    pub message: String,
}

impl Failure {
    /// Something did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { status: FAILED, message: message.into() }
    }

    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { status: WRONG_USAGE, message: message.into() }
    }

    /// The same failure, which was told already.
    pub fn told(self) -> Self {
        Failure { status: self.status, message: String::new() }
    }

    /// The same failure, of this file.
    pub fn about(self, path: &str) -> Self {
        Failure { message: format!("{path}: {}", self.message), ..self }
    }

    /// Prints the line, if there is one.
    pub fn tell(&self) {
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
            Error::Mount { .. } => NOT_MOUNTED,
            Error::NotFound { .. } | Error::Io { .. } | Error::Internal { .. } | Error::Cancelled => FAILED,
        };
        let message = match status {
            WRONG_KEY => format!("{error}; --key-file FILE is to be that of the array"),
            _ => error.to_string(),
        };
        Failure { status, message }
    }
}

/// For writing to standard output, where a reader that has seen enough is a good end.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure { status: 0, message: String::new() },
            _ => Failure::failed(format!("cannot write: {error}")),
        }
    }
}

/// Prints a line about something that went wrong, without ending.
pub fn complain(message: &str) {
    use io::Write;
    // If standard error is closed, there is nobody to tell.
    let _ = writeln!(io::stderr(), "tilefs: {}", printable::line(&message.replace('\n', " ")));
}

/// What the parser of the command line says, in one line: without its heading, the usage and the blank lines.
pub fn one_line(report: &str) -> String {
    let said: Vec<&str> = report
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(str::trim)
        // How to pass on what was meant as an option is no help.
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"))
        .collect();
    let line = said.join(" ").replace(" tip: ", "; ");
    format!("{} (see `tilefs --help`)", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_the_parser_become_one_line() {
        let report = "error: the following required arguments were not provided:\n  <ARRAY>\n  <MNT>\n\nUsage: tilefs \
                      mount <ARRAY> <MNT>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            one_line(report),
            "the following required arguments were not provided: <ARRAY> <MNT> (see `tilefs --help`)"
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
            (Error::NotAnArray { path: path.clone(), reason: reason.clone() }, NOT_AN_ARRAY),
            (Error::damaged("bad"), DAMAGED),
            (Error::missing("gone"), DAMAGED),
            (Error::unsupported("version 99"), UNSUPPORTED),
            (Error::key("wrong"), WRONG_KEY),
            (Error::Mount { mountpoint: path.clone(), reason }, NOT_MOUNTED),
            (Error::NotFound { path }, FAILED),
            (Error::internal("odd"), FAILED),
        ] {
            assert_eq!(Failure::from(error.clone()).status, status, "{error}");
        }
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).status, 0);
        assert_eq!(Failure::from(io::Error::from_raw_os_error(libc::ENOSPC)).status, FAILED);
    }
}
