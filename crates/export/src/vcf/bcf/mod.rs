//! Variant calls as BCF, the binary form of VCF: version 2.2.
//!
//! Records are made of the lines of the VCF file, so both files always hold the same. Fields, filters and contigs are
//! numbers there, which the header of the file gives to their names.
//!
//! Source: the specification of VCF 4.2 ("BCF specification"), and htslib where it is silent: a field without a value
//! has the type 0, and padding of texts is NUL.

mod format;
mod header;
mod record;
#[cfg(test)]
mod testing;
mod typed;

pub use header::BcfHeader;

/// The type of a field's values, by its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Integer,
    Float,
    Text,
}
