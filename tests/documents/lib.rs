//! Checks the sources and documents of this repository as texts; nothing of tilefs is compiled for that.
//!
//! * [`sources`]: the source code, parsed
//! * [`rooms`]: which rooms of a crate use which
//! * [`order`]: circles, sizes and names
//! * [`dependencies`]: licences and versions of other crates
//! * [`records`]: what saved results depend on is recorded without an omission
//! * [`interface`]: what the documentation for Rust programs shows can be named
//! * [`statements`]: the statements of documents are covered by tests
//! * [`paths`]: what comments and documents name exists
//! * [`requirements`]: how tests are skipped
#![cfg(test)]

mod dependencies;
mod interface;
mod order;
mod paths;
mod records;
mod requirements;
mod rooms;
mod sources;
mod statements;
