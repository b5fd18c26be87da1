//! Compares what the tree shows with what libtiledb reads, as listed in manifests.
//!
//! * [`corpora`]: the locations of the larger collections of arrays
//! * [`metadata_file`]: the generic tiles of a fragment metadata file
//! * [`manifest`]: the objects, their schemas and the expected reads
//! * [`columns`]: cells as bytes in the form of the manifests, with nulls masked and sparse rows sorted
//! * [`shown`]: the same columns from the virtual tree
//! * [`disputed`]: reads in which libtiledb returns overwritten cells
//! * [`check`]: compares one object with its entry in the manifest
//! * [`parallel`]: work on all cores
//! * [`report`]: failures and counts, printed
//! * [`stored`]: copies of stored arrays to alter, and the payloads of their generic tiles
//! * [`promise`]: whether everything in a manifest was checked
//! * [`skip`]: skips tests whose requirements are missing, with a message
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
