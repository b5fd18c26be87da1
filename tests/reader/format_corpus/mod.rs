//! Parses every metadata file of a corpus of real arrays, and compares the results with those of libtiledb. The corpus
//! is not part of the project: `support/corpora.rs` says where it is; without it, the tests report that and pass.

mod commits;
#[path = "../support/corpora.rs"]
#[allow(dead_code)]
mod corpora;
mod corpus;
mod fragments;
mod metadata;
mod schemas;
mod seeds;
#[path = "../support/skip.rs"]
#[allow(dead_code)]
mod skip;
