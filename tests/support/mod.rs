//! The proof: compares what the tree shows with what libtiledb reads, as manifests list it.
//!
//! * [`corpora`]: where the larger collections of arrays are
//! * [`metadata_file`]: the generic tiles of a fragment metadata file
//! * [`manifest`]: the objects, their schemas and the expected reads
//! * [`columns`]: cells as bytes, with the nulls masked and sparse rows sorted as the manifests have them
//! * [`shown`]: the same columns out of the virtual tree
//! * [`disputed`]: reads in which libtiledb gives cells that were overwritten
//! * [`check`]: one object against its manifest entry
//! * [`parallel`]: on all cores
//! * [`report`]: failures and counts, printed
//! * [`stored`]: copies of stored arrays to be altered, and what is in their generic tiles
//! * [`promise`]: whether all was looked at that a manifest has
//! * [`skip`]: what cannot be done here, said aloud
//! * [`vcf`]: files of `vcf/` of a dataset

#![allow(dead_code)] // each test program uses a part

pub mod check;
pub mod columns;
pub mod corpora;
pub mod disputed;
pub mod manifest;
pub mod metadata_file;
pub mod parallel;
pub mod promise;
pub mod report;
pub mod shown;
pub mod skip;
pub mod stored;
pub mod vcf;
