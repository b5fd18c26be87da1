//! What can go wrong, and where: the one error type of the library.
//!
//! A parser knows the offset and the field, its caller the file, the caller's caller the fragment and
//! the array. Each adds what it knows with the methods of [`Locate`], which never overwrite what an
//! inner layer already said.

use std::error::Error as StdError;
use std::fmt::{self, Display, Write};
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The result of everything in this library that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Where in the stored data an error was found. Parts that do not apply are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The array's or group's folder.
    pub array: Option<String>,
    /// The fragment's name.
    pub fragment: Option<String>,
    /// The file, relative to the fragment or the array.
    pub file: Option<String>,
    /// Byte offset in that file, or in the unfiltered structure it holds.
    pub offset: Option<u64>,
    /// The field of the structure, or the attribute or dimension.
    pub field: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let texts =
            [("array", &self.array), ("fragment", &self.fragment), ("file", &self.file), ("field", &self.field)];
        for (label, text) in texts {
            if let Some(text) = text {
                write!(f, "{separator}{label} {}", OneLine(text))?;
                separator = ", ";
            }
        }
        if let Some(offset) = self.offset {
            write!(f, "{separator}offset {offset}")?;
        }
        Ok(())
    }
}

/// Text that may come from stored bytes, in one line: control characters are escaped, so that nothing on disk can
/// forge a line of a log or steer a terminal.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character.is_control() {
                true => write!(f, "{}", character.escape_debug())?,
                false => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A place in parentheses behind a reason, if anything of it is known.
struct InPlace<'a>(&'a Place);

impl fmt::Display for InPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Place::default() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

/// What made something fail, as another library or the system tells it.
#[derive(Debug, Clone)]
pub struct Source(Arc<dyn StdError + Send + Sync>);

impl Source {
    fn new(error: impl StdError + Send + Sync + 'static) -> Option<Self> {
        Some(Source(Arc::new(error)))
    }
}

/// It is no error itself, so that [`StdError::source`] gives what is in it.
impl Deref for Source {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Everything that can fail in tilefs, by its kind. Cloneable, so that all readers waiting for one decode get it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Stored bytes contradict the format or each other.
    #[error("damaged data: {}{}", OneLine(.reason), InPlace(place))]
    Damaged { place: Box<Place>, reason: String, source: Option<Source> },

    /// A format version, filter, type or feature that is not implemented.
    #[error("not supported: {}{}", OneLine(.what), InPlace(place))]
    Unsupported { place: Box<Place>, what: String },

    /// A stored object that a listing or metadata name is not there.
    #[error("missing: {}{}", OneLine(.reason), InPlace(place))]
    Missing { place: Box<Place>, reason: String, source: Option<Source> },

    /// The path holds neither an array nor a group.
    #[error("{}: {}", OneLine(.path), OneLine(.reason))]
    NotAnArray { path: String, reason: String },

    /// No such name in the tree of an array.
    #[error("no such file: {}", OneLine(.path))]
    NotFound { path: String },

    /// What is stored could not be listed or read, or a temporary file could not be used.
    #[error("cannot read: {}{}", OneLine(.reason), InPlace(place))]
    Io {
        place: Box<Place>,
        kind: io::ErrorKind,
        reason: String,
        /// Whether the same may go well the next time.
        passing: bool,
        source: Option<Source>,
    },

    /// The encryption key is missing, malformed or wrong, or what is stored is not encrypted though there is a key.
    #[error("{reason}{}", InPlace(place))]
    Key { place: Box<Place>, reason: String },

    /// An option, time or selection that does not parse or does not fit the array.
    #[error("{reason}")]
    Usage { reason: String },

    /// The file system could not be mounted or unmounted.
    #[error("{mountpoint}: {reason}")]
    Mount { mountpoint: String, reason: String },

    /// The request was given up before it was done: whoever asked is gone, or was told to stop. Says nothing of what is
    /// stored.
    #[error("interrupted: nobody waits for the result any more")]
    Cancelled,

    /// Something that cannot be, whatever is stored and asked for: a fault of this program.
    #[error("internal error, please report it: {}{}", OneLine(.reason), InPlace(place))]
    Internal { place: Box<Place>, reason: String },
}

impl Error {
    /// Stored bytes are wrong; the place is added by [`Locate`].
    pub fn damaged(reason: impl Into<String>) -> Self {
        Error::Damaged { place: Box::default(), reason: reason.into(), source: None }
    }

    /// Stored bytes that another library refuses, with what it says behind `what`.
    pub fn refused(what: &str, error: impl StdError + Send + Sync + 'static) -> Self {
        let reason = format!("{what}: {error}");
        Error::Damaged { place: Box::default(), reason, source: Source::new(error) }
    }

    /// Something this program does not implement; the place is added by [`Locate`].
    pub fn unsupported(what: impl Into<String>) -> Self {
        Error::Unsupported { place: Box::default(), what: what.into() }
    }

    /// The key does not fit what is stored; the place is added by [`Locate`].
    pub fn key(reason: impl Into<String>) -> Self {
        Error::Key { place: Box::default(), reason: reason.into() }
    }

    /// Something stored is not there; the place is added by [`Locate`].
    pub fn missing(reason: impl Into<String>) -> Self {
        Error::Missing { place: Box::default(), reason: reason.into(), source: None }
    }

    /// A failed system call, which may go well the next time.
    pub fn io(error: io::Error) -> Self {
        Error::Io {
            place: Box::default(),
            kind: error.kind(),
            reason: error.to_string(),
            passing: true,
            source: Source::new(error),
        }
    }

    /// A failed system call on something stored: [`Error::Missing`] where it says that there is no such thing.
    pub fn stored(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                let (reason, source) = (error.to_string(), Source::new(error));
                Error::Missing { place: Box::default(), reason, source }
            }
            _ => Error::io(error),
        }
    }

    /// The same input/output error, where trying again does not help.
    pub fn lasting(mut self) -> Self {
        if let Error::Io { passing, .. } = &mut self {
            *passing = false;
        }
        self
    }

    /// A wrong argument, time or selection.
    pub fn usage(reason: impl Into<String>) -> Self {
        Error::Usage { reason: reason.into() }
    }

    /// A fault of this program.
    pub fn internal(reason: impl Into<String>) -> Self {
        Error::Internal { place: Box::default(), reason: reason.into() }
    }

    /// Whether it only says that the work was given up. Somebody else may still want the result, and then goes on.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled)
    }

    /// The place, where this kind of error has one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Error::Damaged { place, .. }
            | Error::Unsupported { place, .. }
            | Error::Missing { place, .. }
            | Error::Io { place, .. }
            | Error::Key { place, .. }
            | Error::Internal { place, .. } => Some(place),
            Error::NotAnArray { .. }
            | Error::NotFound { .. }
            | Error::Usage { .. }
            | Error::Mount { .. }
            | Error::Cancelled => None,
        }
    }

    fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Error::Damaged { place, .. }
            | Error::Unsupported { place, .. }
            | Error::Missing { place, .. }
            | Error::Io { place, .. }
            | Error::Key { place, .. }
            | Error::Internal { place, .. } => Some(place),
            Error::NotAnArray { .. }
            | Error::NotFound { .. }
            | Error::Usage { .. }
            | Error::Mount { .. }
            | Error::Cancelled => None,
        }
    }

    /// Whether the same may go well the next time: the stored bytes that were read say nothing of it. Such errors are
    /// given to those who ask, and never kept. What is missing may be put back.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Io { passing, .. } => *passing,
            Error::Missing { .. } | Error::Internal { .. } | Error::Cancelled => true,
            _ => false,
        }
    }

    /// The kinds of errors that what is stored and where it is stored can cause, and [`Error::kind`] of all others.
    pub const KINDS: [&str; 7] = ["damaged", "unsupported", "missing", "not_read", "key", "internal", "other"];

    /// Of which of [`Error::KINDS`] it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Damaged { .. } => "damaged",
            Error::Unsupported { .. } => "unsupported",
            Error::Missing { .. } => "missing",
            Error::Io { .. } => "not_read",
            Error::Key { .. } => "key",
            Error::Internal { .. } => "internal",
            Error::NotAnArray { .. }
            | Error::NotFound { .. }
            | Error::Usage { .. }
            | Error::Mount { .. }
            | Error::Cancelled => "other",
        }
    }

    /// The errno a file system call that needs this answers with.
    pub fn errno(&self) -> i32 {
        match self {
            Error::NotFound { .. } | Error::Usage { .. } => libc::ENOENT,
            Error::Io { kind: io::ErrorKind::PermissionDenied, .. } => libc::EACCES,
            _ => libc::EIO,
        }
    }
}

/// Adds what an outer layer knows of an error's place; what is already said stays.
pub trait Locate: Sized {
    /// Applies `add` to the place of the error, if there is an error and it has a place.
    fn locate(self, add: impl FnOnce(&mut Place)) -> Self;

    /// The folder of the array or group.
    fn in_array(self, folder: impl Display) -> Self {
        self.locate(|place| {
            place.array.get_or_insert_with(|| folder.to_string());
        })
    }

    /// The name of the fragment.
    fn in_fragment(self, name: &str) -> Self {
        self.locate(|place| {
            place.fragment.get_or_insert_with(|| name.to_owned());
        })
    }

    /// The file, by the path that says most to a person.
    fn in_file(self, file: impl Display) -> Self {
        self.locate(|place| {
            place.file.get_or_insert_with(|| file.to_string());
        })
    }

    /// The byte offset of the structure within its file.
    fn at(self, offset: u64) -> Self {
        self.locate(|place| {
            place.offset.get_or_insert(offset);
        })
    }

    /// The field, attribute or dimension.
    fn in_field(self, field: &str) -> Self {
        self.locate(|place| {
            place.field.get_or_insert_with(|| field.to_owned());
        })
    }
}

impl Locate for Error {
    fn locate(mut self, add: impl FnOnce(&mut Place)) -> Self {
        if let Some(place) = self.place_mut() {
            add(place);
        }
        self
    }
}

impl<T> Locate for Result<T> {
    fn locate(self, add: impl FnOnce(&mut Place)) -> Self {
        self.map_err(|error| error.locate(add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_cannot_break_the_line() {
        let error = Error::damaged("the schema a\nb").in_field("new\x1b[2Jline").in_file("größe");
        assert_eq!(error.to_string(), "damaged data: the schema a\\nb (file größe, field new\\u{1b}[2Jline)");
    }

    #[test]
    fn errors_keep_what_made_them() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        let error = Error::io(full).in_file("spill").clone();
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).expect("it has a source");
        assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
        assert!(error.is_passing());
        let error = Error::stored(io::Error::from_raw_os_error(libc::ENOENT));
        assert!(matches!(error, Error::Missing { .. }) && error.source().is_some(), "{error}");
    }

    #[test]
    fn what_cannot_be_is_no_missing_file() {
        let error = Error::internal("two and two are five").in_file("a0.tdb");
        assert_eq!(error.errno(), libc::EIO);
        assert_eq!(error.to_string(), "internal error, please report it: two and two are five (file a0.tdb)");
        assert_eq!(Error::missing("gone").errno(), libc::EIO);
    }

    #[test]
    fn what_has_no_place_needs_no_parentheses() {
        let io = || Error::io(io::Error::from_raw_os_error(libc::ENOSPC));
        let reasons = [Error::damaged("x"), Error::unsupported("x"), Error::missing("x"), io(), Error::internal("x")];
        for error in reasons {
            assert!(!error.to_string().contains("()"), "{error}");
            assert!(error.in_field("f").to_string().ends_with(" (field f)"));
        }
    }

    #[test]
    fn keys_without_a_place_need_no_parentheses() {
        assert_eq!(Error::key("no key").to_string(), "no key");
        assert_eq!(Error::key("no key").in_file("a0.tdb").to_string(), "no key (file a0.tdb)");
    }

    #[test]
    fn inner_layers_are_not_overwritten() {
        let error = Error::damaged("bad").at(7).in_file("a0.tdb").at(9).in_file("other");
        let place = error.place().expect("damaged data has a place");
        assert_eq!(place.offset, Some(7));
        assert_eq!(place.file.as_deref(), Some("a0.tdb"));
        assert_eq!(error.to_string(), "damaged data: bad (file a0.tdb, offset 7)");
    }
}
