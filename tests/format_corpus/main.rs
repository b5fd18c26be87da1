//! Parses every metadata file of a corpus of real arrays, and compares with what libtiledb says of them. The corpus
//! is not part of the project: its folder is taken from `TILEFS_CORPUS`, or from `../shared/corpus`; where there is
//! none, the tests say so and pass.

mod commits;
mod corpus;
mod fragments;
mod metadata;
mod schemas;
mod seeds;
