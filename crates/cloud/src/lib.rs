//! Object stores, read as a [`Storage`](tilefs_storage::Storage): S3, Google Cloud Storage and Azure.
//!
//! A program passes [`CloudOptions`] as the [`ObjectStores`](tilefs_storage::ObjectStores) of a reader.
//!
//! * [`ObjectStorage`]: object stores alone. Requests (`buckets`) run on a small runtime of their own (`runtime`), are
//!   counted (`traffic`) and retried if that may help (`failure`); `connect` makes the clients and finds credentials
//! * [`AnyStorage`]: the local file system and object stores, chosen by the key
//! * [`Settings`]: how object stores are reached, in the words of TileDB

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod any;
mod buckets;
mod connect;
mod disk_cache;
mod failure;
mod listing;
mod object_storage;
mod page;
mod pins;
mod progress;
mod runtime;
mod scatter;
mod settings;
mod traffic;
mod transport;
mod uri;
mod waiters;
mod window;

pub use any::AnyStorage;
pub use object_storage::ObjectStorage;
pub use settings::{CloudOptions, Settings};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct CloudReadme;
