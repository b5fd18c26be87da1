//! Models of the code whose threads wait for each other: the program's own source files, compiled with the primitives
//! of [shuttle](https://docs.rs/shuttle), which decides at each step which thread runs next.
//!
//! Those files import their locks and condition variables from `tilefs_threads::sync`. In the program that is the standard
//! library; here it is [`sync`], which can also lose wake-ups. The modules below stand where the files expect them, so
//! that none of them has to know that it is modelled. `tests/` holds the models, and [`proof`] runs them.
//!
//! The models assume sequential consistency: shuttle explores the order of steps, not the weaker orders of memory that
//! `Ordering::Relaxed` allows. Miri, which explores some of those, runs the unit tests of the same files.

#![allow(clippy::new_without_default, reason = "what is public here is not in the program")]

// The program's files refer to these crates by name, and an execution must not depend on random hashes.
extern crate self as foldhash;
extern crate self as tilefs_threads;

use std::cell::Cell;

pub mod fast {
    pub use foldhash_of_crates_io::fast::FixedState as RandomState;
}

pub mod quality {
    pub use foldhash_of_crates_io::quality::FixedState as RandomState;
}

pub mod proof;
pub mod sync;

#[path = "../../../crates/reader/src/cache/mod.rs"]
pub mod cache;

/// The keys of the models.
impl cache::CacheKey for u8 {
    fn neighbourhood(&self) -> Self {
        *self
    }
}

pub mod address_space {
    /// Maps nothing: only speed would be lost.
    pub fn map_pages(_: &mut [u8]) -> bool {
        false
    }
}

#[path = "../../../crates/threads/src/cancellation.rs"]
pub mod cancellation;
#[path = "../../../crates/threads/src/lent_work.rs"]
mod lent_work;
#[path = "../../../crates/threads/src/single_flight.rs"]
pub mod single_flight;
#[path = "../../../crates/threads/src/team.rs"]
pub mod team;

std::thread_local! {
    static ARE_ENDLESS: Cell<bool> = const { Cell::new(false) };
}

mod start {
    use std::io;

    use super::ARE_ENDLESS;

    /// Starts a thread of the model.
    ///
    /// # Errors
    /// None here.
    pub fn start<T: Send + 'static>(
        name: impl Into<String>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<()> {
        if ARE_ENDLESS.get() {
            drop(shuttle::future::spawn(async move { drop(work()) }));
        } else {
            shuttle::thread::Builder::new().name(name.into()).spawn(work)?;
        }
        Ok(())
    }
}

pub use start::start;

/// Lets threads that `start` starts wait forever: a model ends without them. It waits for all others.
pub fn endless<T>(start: impl FnOnce() -> T) -> T {
    ARE_ENDLESS.set(true);
    let started = start();
    ARE_ENDLESS.set(false);
    started
}

#[path = "../../../crates/reader/src/read"]
pub mod read {
    pub mod permits;
}

#[path = "../../../crates/vfs/src/fuse"]
pub mod fuse {
    pub mod reply_buffers;
    pub mod requests;
    pub mod session_end;
}

pub mod reports {
    use std::any::Any;

    pub fn reason_of_panic(_: &(dyn Any + Send)) -> &'static str {
        "a panic"
    }
}

#[path = "../../../crates/vfs/src/read_ahead"]
pub mod read_ahead {
    pub mod queue;

    pub use reader::Reader;

    mod reader {
        use std::ops::Range;

        use crate::sync::atomic::AtomicU64;

        /// The part of a reader that the queue uses.
        #[derive(Default)]
        pub struct Reader {
            pub served: AtomicU64,
            pub generation: AtomicU64,
        }

        impl Reader {
            pub(super) fn bytes_before(&self, _: &[Range<u64>]) -> u64 {
                0
            }
        }
    }
}
