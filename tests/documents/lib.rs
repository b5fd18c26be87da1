//! Checks the sources and documents of this repository as texts; nothing of tilefs is compiled for that.
//!
//! * [`rooms`]: the order of the source code
//! * [`statements`]: the statements of documents are covered by tests
//! * [`requirements`]: how tests are skipped
#![cfg(test)]

mod requirements;
mod rooms;
mod statements;
