//! Why a request has no result, and the status that says so.

use hyper::StatusCode;
use tilefs_base::error::Error;

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// There is no such file, with the reason if there is a specific one.
    #[error("{}", .0.as_deref().unwrap_or("no such file"))]
    Absent(Option<String>),
    /// The data cannot be read, with the reason in one line.
    #[error("{0}")]
    Failed(String),
    /// The client has gone, so the result is not needed.
    #[error("nobody waits for the reply any more")]
    Cancelled,
}

/// The outcome of looking for a node or reading it.
pub enum NodeFailure {
    Absent(Option<String>),
    Error(Error),
}

impl From<Error> for NodeFailure {
    fn from(error: Error) -> Self {
        NodeFailure::Error(error)
    }
}

impl Refusal {
    /// Returns the status of a reply that says this.
    pub fn status(&self) -> StatusCode {
        match self {
            Refusal::Absent(_) => StatusCode::NOT_FOUND,
            Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Refusal::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}
