//! What several tests of tilefs need.
//!
//! To run and to skip tests:
//!
//! * [`skip`]: skips tests whose requirements are missing, with a message
//! * [`own_process`]: runs a test in a process of its own
//! * [`parallel`]: work on all cores
//! * [`repository`]: the files of this repository
//! * [`bounded_allocator`], [`counting_allocator`]: limit and count the memory of a test program
//!
//! To compare what the tree shows with what libtiledb reads, as listed in manifests:
//!
//! * [`corpora`]: the locations of the larger collections of arrays
//! * [`manifest`]: the objects, their schemas and the expected reads
//! * [`columns`]: cells as bytes in the form of the manifests, with nulls masked and sparse rows sorted
//! * [`shown`]: the same columns from the virtual tree
//! * [`paths`]: nodes of a tree by their paths
//! * [`disputed`]: reads in which libtiledb returns overwritten cells
//! * [`check`]: compares one object with its entry in the manifest
//! * [`report`]: failures and counts, printed
//! * [`promise`]: whether everything in a manifest was checked
//! * [`fields`]: the raw files of the fields of an array, without the tree around them
//! * [`vcf`]: files of `vcf/` of a dataset
//!
//! To make and to alter what is read:
//!
//! * [`stored`]: copies of stored arrays to alter, and the payloads of their generic tiles
//! * [`generic_tile`]: makes these tiles
//! * [`metadata_file`]: the generic tiles of a fragment metadata file
//! * [`chunks`]: chunks as filters store them
//! * [`handmade`]: arrays made byte by byte, which can claim anything
//! * [`generated`]: arrays of any size whose bytes are computed
//! * [`toy`]: a tree without an array
//! * [`faulty`]: a file system that fails when it is told to
//! * [`http`]: the part of HTTP that servers of tests need

pub mod bounded_allocator;
pub mod counting_allocator;
pub mod generated;
pub mod generic_tile;
pub mod http;
pub mod own_process;
pub mod parallel;
pub mod repository;
pub mod skip;

#[cfg(feature = "arrays")]
pub mod check;
#[cfg(feature = "arrays")]
pub mod chunks;
#[cfg(feature = "arrays")]
pub mod columns;
#[cfg(feature = "arrays")]
pub mod corpora;
#[cfg(feature = "arrays")]
pub mod disputed;
#[cfg(feature = "arrays")]
pub mod faulty;
#[cfg(feature = "arrays")]
pub mod fields;
#[cfg(feature = "arrays")]
pub mod handmade;
#[cfg(feature = "arrays")]
pub mod manifest;
#[cfg(feature = "arrays")]
pub mod metadata_file;
#[cfg(feature = "arrays")]
pub mod paths;
#[cfg(feature = "arrays")]
pub mod promise;
#[cfg(feature = "arrays")]
pub mod report;
#[cfg(feature = "arrays")]
pub mod shown;
#[cfg(feature = "arrays")]
pub mod stored;
#[cfg(feature = "arrays")]
pub mod toy;
#[cfg(feature = "arrays")]
pub mod vcf;
