//! The records of samples as a file of VCF or BCF, with remarks about what it lacks.

mod content;
mod records;
mod remarks;
mod sites;
mod windows;

pub use records::{Encoding, VariantText};
