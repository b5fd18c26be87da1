//! Variant calls as BCF, the binary form of VCF: version 2.2.
//!
//! Records are made of the same lines as the text of the VCF file, so both files always have the same contents. Fields,
//! filters and contigs are numbers, which the file's header assigns to their names.
//!
//! Source: the specification of VCF 4.2 ("BCF specification"), and htslib where it says nothing: a field without a
//! value has type 0, and texts are padded with NUL.

mod format;
mod header;
mod record;
#[cfg(test)]
pub mod testing;
mod typed;
mod value;

pub use header::BcfHeader;
pub use record::BcfRecords;

/// The type of a field's values, by its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BcfValueType {
    Flag,
    Integer,
    Float,
    Text,
}
