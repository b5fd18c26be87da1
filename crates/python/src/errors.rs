//! Python's exceptions for errors: classes of `tilefs._errors`, with the message of the error.

use pyo3::prelude::*;
use tilefs_base::error::Error;

/// Returns the exception of an error.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error {
        Error::Usage { .. } => "UsageError",
        Error::NotAnArray { .. } | Error::NotFound { .. } => "NotFoundError",
        Error::Damaged { .. } | Error::Missing { .. } => "DamagedError",
        Error::Unsupported { .. } => "UnsupportedError",
        Error::Key { .. } => "EncryptionError",
        Error::Io { .. } | Error::Cancelled | Error::Internal { .. } => "Error",
    };
    named(py, class, &error.to_string())
}

/// Returns the exception for a name that a tree does not have.
pub fn absent(py: Python<'_>, reason: &str) -> PyErr {
    named(py, "NotFoundError", reason)
}

fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py.import("tilefs._errors").and_then(|errors| errors.getattr(class)?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}
