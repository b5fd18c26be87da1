//! Reports of a running mount or server about itself: the files in `.tilefs/`, the most recent errors, their counts, and
//! a log that writes each error once.

mod error_counts;
mod error_log;
mod own_files;
mod recent_errors;

pub use error_counts::ErrorCounts;
pub use error_log::{ErrorLog, reason_of_panic};
pub use own_files::{OwnFolder, RootWithOwn, is_report};

/// The log target of lines that a signal requested. They are informational, and written at every level except `off`.
pub const ASKED_FOR: &str = "tilefs::asked_for";
