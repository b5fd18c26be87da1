//! The error type of all crates: the kind of an error, and its place in the stored data.
//!
//! A parser knows the offset and the field, its caller the file, and the caller's caller the fragment and the array.
//! Each adds what it knows with the methods of [`Locate`], which never overwrite what an inner layer has set.

use std::error::Error as StdError;
use std::fmt::{self, Display, Write};
use std::io;
use std::ops::Deref;
use std::sync::Arc;

use crate::characters::steers;

/// The result of every fallible function of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// The place of an error in the stored data. Parts that do not apply are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The folder of the array or group.
    pub array: Option<String>,
    /// The fragment's name.
    pub fragment: Option<String>,
    /// The file, by the path that is most useful to a person (see [`Locate::in_file`]).
    pub file: Option<String>,
    /// Byte offset in that file, or in the unfiltered structure that it holds.
    pub offset: Option<u64>,
    /// The filter that cannot be undone.
    pub filter: Option<String>,
    /// The field of the structure or of the filter's metadata, or the attribute or dimension.
    pub field: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let texts = [
            ("array", &self.array),
            ("fragment", &self.fragment),
            ("file", &self.file),
            ("filter", &self.filter),
            ("field", &self.field),
        ];
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

/// Text that may come from stored bytes, displayed on one line. Characters that steer how text is shown are escaped, so
/// that stored data cannot forge log lines or control a terminal.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match steers(character) {
                true => write!(f, "{}", character.escape_debug())?,
                false => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A place, displayed in parentheses after a space; displayed as nothing if no part of the place is known.
struct PlaceSuffix<'a>(&'a Place);

impl fmt::Display for PlaceSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == Place::default() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

/// The underlying error, from another library or the system.
#[derive(Debug, Clone)]
pub struct Source(Arc<dyn StdError + Send + Sync>);

impl Source {
    fn new(error: impl StdError + Send + Sync + 'static) -> Option<Self> {
        Some(Source(Arc::new(error)))
    }
}

/// `Source` is not an error itself, so that [`StdError::source`] returns the error inside it.
impl Deref for Source {
    type Target = dyn StdError + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// An error of tilefs. It is cloneable, so that all readers that wait for the same decode get it.
///
/// `place` is the place of the error, as far as it is known; `reason` says what is wrong; `source` is the underlying
/// error.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are explained above")]
pub enum Error {
    /// Stored bytes contradict the format or each other.
    #[error("damaged data: {}{}", OneLine(.reason), PlaceSuffix(place))]
    Damaged { place: Box<Place>, reason: String, source: Option<Source> },

    /// The format version, filter, type or feature is not implemented.
    #[error("not supported: {}{}", OneLine(.what), PlaceSuffix(place))]
    Unsupported { place: Box<Place>, what: String },

    /// A stored object that a listing or metadata names does not exist.
    #[error("missing: {}{}", OneLine(.reason), PlaceSuffix(place))]
    Missing { place: Box<Place>, reason: String, source: Option<Source> },

    /// The path holds neither an array nor a group.
    #[error("{}: {}", OneLine(.path), OneLine(.reason))]
    NotAnArray { path: String, reason: String },

    /// The tree of an array has no such name.
    #[error("no such file: {}", OneLine(.path))]
    NotFound { path: String },

    /// Stored data could not be listed or read, or a temporary file could not be used.
    #[error("cannot read: {}{}", OneLine(.reason), PlaceSuffix(place))]
    Io {
        place: Box<Place>,
        kind: io::ErrorKind,
        reason: String,
        /// Whether a retry may succeed.
        transient: bool,
        source: Option<Source>,
    },

    /// The encryption key is missing, malformed or wrong, or a key was given and the stored data is not encrypted.
    #[error("{reason}{}", PlaceSuffix(place))]
    Key { place: Box<Place>, reason: String },

    /// An option, time or selection does not parse or does not fit the array.
    #[error("{reason}")]
    Usage { reason: String },

    /// The request was cancelled: its caller is gone, or was told to stop. This says nothing about the stored data.
    #[error("interrupted: nobody waits for the result any more")]
    Cancelled,

    /// A bug in this program: an invariant failed that must hold for all stored data and requests.
    #[error("internal error, please report it: {}{}", OneLine(.reason), PlaceSuffix(place))]
    Internal { place: Box<Place>, reason: String },
}

impl Error {
    /// Returns [`Error::Damaged`] without a place, which [`Locate`] adds.
    pub fn damaged(reason: impl Into<String>) -> Self {
        Error::Damaged { place: Box::default(), reason: reason.into(), source: None }
    }

    /// Returns [`Error::Damaged`] for bytes that another library refuses: the reason is `what`, then that library's
    /// error.
    pub fn refused(what: &str, error: impl StdError + Send + Sync + 'static) -> Self {
        let reason = format!("{what}: {error}");
        Error::Damaged { place: Box::default(), reason, source: Source::new(error) }
    }

    /// Returns [`Error::Unsupported`] without a place, which [`Locate`] adds.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Error::Unsupported { place: Box::default(), what: what.into() }
    }

    /// Returns [`Error::Key`] without a place, which [`Locate`] adds.
    pub fn key(reason: impl Into<String>) -> Self {
        Error::Key { place: Box::default(), reason: reason.into() }
    }

    /// Returns [`Error::Missing`] without a place, which [`Locate`] adds.
    pub fn missing(reason: impl Into<String>) -> Self {
        Error::Missing { place: Box::default(), reason: reason.into(), source: None }
    }

    /// Returns [`Error::Io`] for a failed system call that may succeed on a retry.
    pub fn io(error: io::Error) -> Self {
        Error::Io {
            place: Box::default(),
            kind: error.kind(),
            reason: error.to_string(),
            transient: true,
            source: Source::new(error),
        }
    }

    /// Returns the error of a failed system call on a stored object: [`Error::Missing`] if the object does not exist,
    /// else [`Error::Io`].
    pub fn stored(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                let (reason, source) = (error.to_string(), Source::new(error));
                Error::Missing { place: Box::default(), reason, source }
            }
            _ => Error::io(error),
        }
    }

    /// Marks an [`Error::Io`] as permanent: a retry does not help.
    pub fn permanent(mut self) -> Self {
        if let Error::Io { transient, .. } = &mut self {
            *transient = false;
        }
        self
    }

    /// Returns [`Error::NotAnArray`] for a path that holds neither an array nor a group, or not the one that is wanted.
    pub fn not_an_array(path: impl Display, reason: impl Into<String>) -> Self {
        Error::NotAnArray { path: path.to_string(), reason: reason.into() }
    }

    /// Returns [`Error::Usage`] for a wrong argument, time or selection.
    pub fn usage(reason: impl Into<String>) -> Self {
        Error::Usage { reason: reason.into() }
    }

    /// Returns [`Error::Internal`] for a bug in this program.
    pub fn internal(reason: impl Into<String>) -> Self {
        Error::Internal { place: Box::default(), reason: reason.into() }
    }

    /// Returns whether the work was only cancelled. Another thread that still needs the result then continues the work.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Cancelled)
    }

    /// Returns the place, if this kind of error has one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Error::Damaged { place, .. }
            | Error::Unsupported { place, .. }
            | Error::Missing { place, .. }
            | Error::Io { place, .. }
            | Error::Key { place, .. }
            | Error::Internal { place, .. } => Some(place),
            Error::NotAnArray { .. } | Error::NotFound { .. } | Error::Usage { .. } | Error::Cancelled => None,
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
            Error::NotAnArray { .. } | Error::NotFound { .. } | Error::Usage { .. } | Error::Cancelled => None,
        }
    }

    /// Returns whether a retry may succeed because the error does not follow from the stored bytes. Such errors are
    /// returned to the callers and never cached. Missing objects are included, as they may be restored.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Io { transient, .. } => *transient,
            Error::Missing { .. } | Error::Internal { .. } | Error::Cancelled => true,
            _ => false,
        }
    }

    /// The values of [`Error::kind`]. All kinds but "other" are caused by the stored data, its storage, or a bug.
    pub const KINDS: [&str; 7] = ["damaged", "unsupported", "missing", "not_read", "key", "internal", "other"];

    /// Returns the kind of the error, one of [`Error::KINDS`].
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Damaged { .. } => "damaged",
            Error::Unsupported { .. } => "unsupported",
            Error::Missing { .. } => "missing",
            Error::Io { .. } => "not_read",
            Error::Key { .. } => "key",
            Error::Internal { .. } => "internal",
            Error::NotAnArray { .. } | Error::NotFound { .. } | Error::Usage { .. } | Error::Cancelled => "other",
        }
    }
}

/// An error, or a result, to whose place parts can be added; parts that are already set stay.
pub trait Locate: Sized {
    /// Changes the place of the error with `add`, if there is an error and it has a place.
    fn locate(self, add: impl FnOnce(&mut Place)) -> Self;

    /// Adds the folder of the array or group.
    fn in_array(self, folder: impl Display) -> Self {
        self.locate(|place| {
            place.array.get_or_insert_with(|| folder.to_string());
        })
    }

    /// Adds the name of the fragment.
    fn in_fragment(self, name: &str) -> Self {
        self.locate(|place| {
            place.fragment.get_or_insert_with(|| name.to_owned());
        })
    }

    /// Adds the file, by the path that is most useful to a person.
    fn in_file(self, file: impl Display) -> Self {
        self.locate(|place| {
            place.file.get_or_insert_with(|| file.to_string());
        })
    }

    /// Adds the byte offset of the structure within its file.
    fn at(self, offset: u64) -> Self {
        self.locate(|place| {
            place.offset.get_or_insert(offset);
        })
    }

    /// Adds the field, attribute or dimension.
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
    fn errors_keep_their_sources() {
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        let error = Error::io(full).in_file("spill").clone();
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>()).expect("it has a source");
        assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
        assert!(error.is_transient());
        let error = Error::stored(io::Error::from_raw_os_error(libc::ENOENT));
        assert!(matches!(error, Error::Missing { .. }) && error.source().is_some(), "{error}");
    }

    #[test]
    fn internal_errors_ask_for_a_report() {
        let error = Error::internal("two and two are five").in_file("a0.tdb");
        assert_eq!(error.to_string(), "internal error, please report it: two and two are five (file a0.tdb)");
    }

    #[test]
    fn errors_without_a_place_have_no_parentheses() {
        let io = || Error::io(io::Error::from_raw_os_error(libc::ENOSPC));
        let reasons = [Error::damaged("x"), Error::unsupported("x"), Error::missing("x"), io(), Error::internal("x")];
        for error in reasons {
            assert!(!error.to_string().contains("()"), "{error}");
            assert!(error.in_field("f").to_string().ends_with(" (field f)"));
        }
    }

    #[test]
    fn key_errors_without_a_place_have_no_parentheses() {
        assert_eq!(Error::key("no key").to_string(), "no key");
        assert_eq!(Error::key("no key").in_file("a0.tdb").to_string(), "no key (file a0.tdb)");
    }

    #[test]
    fn outer_layers_do_not_overwrite_inner_ones() {
        let error = Error::damaged("bad").at(7).in_file("a0.tdb").at(9).in_file("other");
        let place = error.place().expect("damaged data has a place");
        assert_eq!(place.offset, Some(7));
        assert_eq!(place.file.as_deref(), Some("a0.tdb"));
        assert_eq!(error.to_string(), "damaged data: bad (file a0.tdb, offset 7)");
    }
}
