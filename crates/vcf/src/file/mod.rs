//! The records of samples as a file of VCF or BCF, with remarks about what it lacks.

mod records;
mod remarks;

pub use records::{Encoding, VariantText};
