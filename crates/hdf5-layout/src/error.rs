//! What HDF5 cannot hold, and what the caller said that cannot be.

use std::fmt;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong, and with which object of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The path of the object in the file, `/` for the root group.
    pub object: String,
    pub problem: Problem,
}

/// What is wrong with an object, an attribute or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A name that is empty, `.`, or holds `/` or NUL.
    Name { name: String },
    /// Two members of a group or two attributes of an object with one name.
    NameTwice { name: String },
    /// An identifier that this tree did not give, or that of another kind of object than wanted.
    NoSuchObject { wanted: &'static str },
    /// A datatype that HDF5 does not have.
    Datatype { reason: &'static str },
    /// More axes than HDF5's 32, or another number of them than the dataspace has.
    Rank { rank: usize, wanted: &'static str },
    /// A chunk shape that HDF5 cannot have.
    Chunk { reason: &'static str },
    /// A value of another length in bytes than its type and dataspace take.
    ValueLength { what: String, bytes: u64, wanted: u64 },
    /// A text with a NUL in it, which readers would cut there.
    NulInText { attribute: String },
    /// Something is longer than its field in the format.
    TooLarge { what: String, limit: u64 },
    /// The caller's values are not those that the layout was computed for.
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
            Problem::Rank { rank, wanted } => write!(out, "there are {rank} axes where HDF5 takes {wanted}"),
            Problem::Chunk { reason } => write!(out, "HDF5 has no such chunks: {reason}"),
            Problem::ValueLength { what, bytes, wanted } => {
                write!(out, "{what} has {bytes} bytes, but its type and shape take {wanted}")
            }
            Problem::NulInText { attribute } => write!(out, "the text of the attribute {attribute:?} holds a NUL"),
            Problem::TooLarge { what, limit } => write!(out, "{what} is larger than HDF5's limit of {limit}"),
            Problem::Changed { what } => write!(out, "{what} changed since the layout was computed"),
        }
    }
}

impl std::error::Error for Error {}
