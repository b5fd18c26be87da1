//! The destination of the log: standard error, a file, or the system's log once there is no terminal.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter};
use tilefs_tree::select::time::extended;
use tilefs_vfs::reports::ASKED_FOR;

use super::{log_file, printable};

/// The socket of the system's log (syslog or journald).
const SYSTEM_LOG: &str = "/dev/log";

/// The facility of daemons in the priority of a message to the system's log.
const DAEMON: u8 = 3 << 3;

enum Destination {
    StandardError,
    File(File),
    System(UnixDatagram),
    Nowhere,
}

static DESTINATION: Mutex<Destination> = Mutex::new(Destination::StandardError);

/// The variable that sets the level, or, in the format of the crate env_logger, levels of modules.
const VARIABLE: &str = "TILEFS_LOG";

/// Starts the log, on standard error. The variable TILEFS_LOG replaces `level`, or adds levels of modules.
pub fn start(level: LevelFilter) {
    // The filters of modules below would take precedence over a level of its own.
    let level = env::var(VARIABLE).ok().and_then(|level| level.parse().ok()).unwrap_or(level);
    let library = if level >= LevelFilter::Debug { level } else { LevelFilter::Off };
    let mut builder = env_logger::Builder::new();
    builder
        .filter_module("tilefs", level)
        .filter_module(ASKED_FOR, if level == LevelFilter::Off { level } else { level.max(LevelFilter::Info) })
        // Lower levels report interrupted requests.
        .filter_module("fuser", library)
        .parse_env(VARIABLE)
        .target(env_logger::Target::Pipe(Box::new(Log)))
        .format(|line, record| {
            let text = record.args().to_string().replace('\n', " ");
            let text = printable::line(&text);
            match &*DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) {
                Destination::StandardError => writeln!(line, "tilefs: {}{text}", prefix(record.level())),
                Destination::File(_) => writeln!(line, "{} {:5} {text}", now(), record.level()),
                Destination::System(_) => {
                    let priority = DAEMON | severity(record.level());
                    write!(line, "<{priority}>tilefs[{}]: {text}", std::process::id())
                }
                Destination::Nowhere => Ok(()),
            }
        });
    // Already started only by tests.
    let _ = builder.try_init();
}

fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    extended(since.as_millis() as u64)
}

/// Appends the log to this file from now on. A new file is readable only by its owner, because the log reveals where
/// data are stored.
///
/// # Errors
/// As for [`log_file::open_to_append`].
pub fn to_file(path: &Path) -> io::Result<()> {
    go_to(Destination::File(log_file::open_to_append(path)?));
    Ok(())
}

/// Returns whether the log would be lost without standard error: it does not go to a file, and there is no system log.
pub fn will_be_lost() -> bool {
    let destination = DESTINATION.lock().unwrap_or_else(PoisonError::into_inner);
    matches!(*destination, Destination::StandardError) && system_log().is_err()
}

fn system_log() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SYSTEM_LOG)?;
    Ok(socket)
}

/// Switches the log to the system's log when standard error is about to close, unless it goes to a file.
pub fn leave_standard_error() {
    let socket = system_log();
    let mut destination = DESTINATION.lock().unwrap_or_else(PoisonError::into_inner);
    if let Destination::StandardError = *destination {
        *destination = socket.map_or(Destination::Nowhere, Destination::System);
    }
}

fn go_to(destination: Destination) {
    *DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) = destination;
}

/// Writes to the current destination.
struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) {
            Destination::StandardError => io::stderr().write_all(line)?,
            Destination::File(file) => file.write_all(line)?,
            Destination::System(socket) => {
                socket.send(line)?;
            }
            Destination::Nowhere => {}
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn prefix(level: Level) -> &'static str {
    match level {
        Level::Error => "",
        Level::Warn => "warning: ",
        Level::Info => "",
        Level::Debug | Level::Trace => "debug: ",
    }
}

fn severity(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}
