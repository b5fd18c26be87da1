//! Parses every metadata file of a corpus of real arrays, and compares the results with those of libtiledb. The corpus
//! is in the fixtures; `support::corpora` says how to name another.

mod commits;
mod corpus;
mod fragments;
mod metadata;
mod schemas;
mod seeds;
