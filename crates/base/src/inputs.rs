//! What a saved result depends on, recorded from whatever the result is made of.
//!
//! The key of an entry is the digest of the whole computation: constants (names, types, the values of metadata, labels
//! of an enumeration, options) by value, and stored cells by the identity of their array. So a key or an object of which
//! a result is not made, or that is absent, needs no mention: the computation is another one if it makes a difference.
//! An input that changes leads to another entry, and nothing has to be invalidated.
//!
//! [`Inputs`] can only be made of something [`Recorded`], and the store takes nothing else. What cannot be recorded makes
//! the whole unknown, and an unknown result is not saved: forgetting costs time, and gives no wrong bytes.

use std::any::type_name;
use std::fmt::{Debug, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::entry_key::{EntryKey, KeyWriter};

/// Increment this with each change of the contents or meaning of entries, including how cells become rows and rows
/// become text: then entries of other versions are not found.
pub const ENCODING: u32 = 4;

/// Something of which results are made that may be saved.
pub trait Recorded {
    /// Records everything on which results depend that are made of this.
    ///
    /// The first statement of an implementation takes all fields apart, without `..`: a new field does not compile then
    /// until it is recorded, or named as one that makes no difference (`name: _`). `tests/documents` checks that.
    fn record(&self, recorder: &mut Recorder);
}

impl<T: Recorded + ?Sized> Recorded for Arc<T> {
    fn record(&self, recorder: &mut Recorder) {
        (**self).record(recorder);
    }
}

/// Records what a result depends on.
pub struct Recorder {
    key: KeyWriter,
    /// Whether all that was met could be recorded.
    is_complete: bool,
}

/// Everything on which a saved result depends, as the key of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs(EntryKey);

impl Inputs {
    /// Returns the inputs of a result that is made of `source`; `what` tells it from other results of the same. `None` if
    /// some of them cannot be recorded: then the result cannot be saved.
    pub fn of(what: impl Display, source: &(impl Recorded + ?Sized)) -> Option<Self> {
        let mut key = KeyWriter::new();
        key.part(format_args!("{} {ENCODING} {what}", env!("CARGO_PKG_VERSION")));
        let mut recorder = Recorder { key, is_complete: true };
        source.record(&mut recorder);
        recorder.is_complete.then(|| Inputs(recorder.key.finish()))
    }

    /// Returns the inputs of one of several results that depend on the same.
    pub fn part(&self, what: impl Display) -> Self {
        Inputs(self.0.of(what))
    }

    /// Returns the key of the entry.
    pub fn key(&self) -> &EntryKey {
        &self.0
    }
}

impl Recorder {
    /// Records a value of the type `T` that consists of these constants. What else it is made of is recorded after it.
    pub fn add<T: ?Sized>(&mut self, constants: impl Hash) {
        self.key.part(type_name::<T>());
        constants.hash(&mut ConstantHasher(&mut self.key));
    }

    /// As [`Recorder::add`], for constants that have no hash: `Debug` must show all of their value.
    pub fn add_shown<T: ?Sized>(&mut self, constants: impl Debug) {
        self.key.part(type_name::<T>());
        self.key.part(format_args!("{constants:?}"));
    }

    /// Records all that an array shows, given its identity; `None` if that is not known.
    pub fn add_array(&mut self, identity: Option<EntryKey>) {
        match identity {
            Some(identity) => self.key.part(format_args!("{identity:?}")),
            None => self.add_unknown(),
        }
    }

    /// Records what was recorded before; `None` if that is not known.
    pub fn add_inputs(&mut self, inputs: Option<&Inputs>) {
        self.add_array(inputs.map(|inputs| inputs.0));
    }

    /// Notes that something cannot be recorded.
    pub fn add_unknown(&mut self) {
        self.is_complete = false;
    }
}

/// Passes the bytes that are hashed on to a key. Each piece is delimited.
struct ConstantHasher<'k>(&'k mut KeyWriter);

impl Hasher for ConstantHasher<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.bytes(bytes);
    }

    /// The digest is that of the key.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A computation in memory, for its inputs only.
    #[derive(Debug, Clone, PartialEq)]
    enum Made {
        Constant(Vec<u8>),
        Text(String),
        Joined(Vec<Made>),
    }

    impl Recorded for Made {
        fn record(&self, recorder: &mut Recorder) {
            match self {
                Made::Constant(bytes) => recorder.add::<Vec<u8>>(bytes),
                Made::Text(text) => recorder.add_shown::<str>(text),
                Made::Joined(parts) => {
                    recorder.add::<Self>(parts.len());
                    parts.iter().for_each(|part| part.record(recorder));
                }
            }
        }
    }

    fn made() -> impl Strategy<Value = Made> {
        let bytes = prop::collection::vec(0u8..2, 0..3);
        let leaf = prop_oneof![bytes.prop_map(Made::Constant), "[ab]{0,2}".prop_map(Made::Text)];
        leaf.prop_recursive(3, 12, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Made::Joined))
    }

    proptest! {
        #[test]
        fn inputs_are_equal_where_computations_are(one in made(), other in made(), what in "[ab]") {
            let inputs = |made: &Made| Inputs::of(&what, made);
            prop_assert_eq!(inputs(&one) == inputs(&other), one == other);
            prop_assert_eq!(inputs(&one), inputs(&one.clone()));
            prop_assert_ne!(Inputs::of("c", &one), inputs(&one));
            let parts = ["1", "2"].map(|part| inputs(&one).unwrap().part(part));
            prop_assert!(parts[0] != parts[1] && parts[0] != inputs(&one).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_recorded_has_no_inputs() {
        struct Unknown;
        impl Recorded for Unknown {
            fn record(&self, recorder: &mut Recorder) {
                let Self = self;
                recorder.add_unknown();
                recorder.add::<Self>(1);
            }
        }
        assert_eq!(Inputs::of("a", &Unknown), None);
        assert_eq!(Inputs::of("a", &Arc::new(Unknown)), None);
    }
}
