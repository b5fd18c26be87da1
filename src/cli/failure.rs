//! Why a command failed: one line that says what is wrong and what to do, and the exit status.

use std::io;

use super::printable;
use tilefs::error::Error;

/// The exit status when something did not work.
pub const FAILED: u8 = 1;

/// The exit status when the command line makes no sense.
pub const WRONG_USAGE: u8 = 2;

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

    /// Something did not work, and was told already.
    pub fn told() -> Self {
        Failure::failed("")
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
        match error {
            Error::Usage { reason } => Failure::usage(reason),
            error @ Error::Key { .. } => {
                Failure::failed(format!("{error}; --key-file FILE is to be that of the array"))
            }
            error => Failure::failed(error.to_string()),
        }
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
    fn statuses_follow_the_kind_of_error() {
        assert_eq!(Failure::from(Error::usage("no such time")), Failure::usage("no such time"));
        assert_eq!(Failure::from(Error::damaged("bad")).status, FAILED);
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).status, 0);
        assert_eq!(Failure::from(io::Error::from_raw_os_error(libc::ENOSPC)).status, FAILED);
    }
}
