//! The proof: compares what the tree shows with what libtiledb reads, as manifests list it.
//!
//! * [`manifest`]: the objects, their schemas and the expected reads
//! * [`columns`]: cells as bytes, with the nulls masked and sparse rows sorted as the manifests have them
//! * [`shown`]: the same columns out of the virtual tree
//! * [`disputed`]: reads in which libtiledb gives cells that were overwritten
//! * [`check`]: one object against its manifest entry
//! * [`parallel`]: on all cores
//! * [`report`]: failures and counts, printed

#![allow(dead_code)] // each test program uses a part

pub mod check;
pub mod columns;
pub mod disputed;
pub mod manifest;
pub mod parallel;
pub mod report;
pub mod shown;
