//! Errors: things that HDF5 cannot hold, and invalid arguments.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A problem, and the object of the file that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The path of the object in the file, `/` for the root group.
    pub object: String,
    /// The problem with it.
    pub problem: Problem,
}

/// A problem with an object, an attribute or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the comments of the variants name the fields")]
pub enum Problem {
    /// A name that is empty, `.`, or contains `/` or NUL.
    Name { name: String },
    /// Two members of a group or two attributes of an object with the same name.
    NameTwice { name: String },
    /// An identifier that is not from this tree, or is of another kind of object.
    NoSuchObject { wanted: &'static str },
    /// A datatype that HDF5 does not support.
    Datatype { reason: &'static str },
    /// More axes than HDF5's 32, or a number that differs from the dataspace's.
    Rank { rank: usize, wanted: &'static str },
    /// A chunk shape that HDF5 does not support.
    Chunk { reason: &'static str },
    /// A value whose length in bytes differs from that of its type and dataspace.
    ValueLength { what: String, bytes: u64, wanted: u64 },
    /// A text that contains a NUL, where readers would truncate it.
    NulInText { attribute: String },
    /// Something is larger than its field in the format.
    TooLarge { what: String, limit: u64 },
    /// The caller's values differ from those for which the layout was computed.
    Changed { what: &'static str },
}

impl Error {
    pub(crate) fn new(object: impl Into<String>, problem: Problem) -> Self {
        Error { object: object.into(), problem }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.object, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Name { name } => write!(out, "HDF5 has no name {name:?}"),
            Problem::NameTwice { name } => write!(out, "the name {name:?} is used twice"),
            Problem::NoSuchObject { wanted } => write!(out, "there is no such {wanted} in the tree"),
            Problem::Datatype { reason } => write!(out, "HDF5 has no such datatype: {reason}"),
            Problem::Rank { rank, wanted } => write!(out, "there are {rank} axes, but HDF5 requires {wanted}"),
            Problem::Chunk { reason } => write!(out, "HDF5 has no such chunks: {reason}"),
            Problem::ValueLength { what, bytes, wanted } => {
                write!(out, "{what} has {bytes} bytes, but its type and shape require {wanted}")
            }
            Problem::NulInText { attribute } => write!(out, "the text of the attribute {attribute:?} contains a NUL"),
            Problem::TooLarge { what, limit } => write!(out, "{what} is larger than HDF5's limit of {limit}"),
            Problem::Changed { what } => write!(out, "{what} changed since the layout was computed"),
        }
    }
}

impl std::error::Error for Error {}
