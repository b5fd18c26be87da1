//! Why a format cannot hold a cell, worded once for all formats.

use tilefs_base::error::Error;

/// Returns the error of a cell that a format of UTF-8 cannot hold: `what` the value is instead.
pub(crate) fn refused_cell(row: u64, what: &str) -> Error {
    Error::unsupported(format!("the value of row {row}, which is {what}; the attribute's raw files have its bytes"))
}

/// What a date or time is that a format counts in a unit or a type that does not reach so far.
pub(crate) const TOO_FAR: &str = "too far away for the dates and times of this format";

/// What text is instead of UTF-8.
pub(crate) const NOT_UTF8: &str = "not UTF-8";
