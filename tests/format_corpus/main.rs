//! Parses every metadata file of a corpus of real arrays, and compares with what libtiledb says of them. The corpus is
//! not part of the project: see `support/corpora.rs` for where it is; where there is none, the tests say so and pass.

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
