//! The part of a fragment's metadata that stays in memory; the kinds of files of a field; and the end of the metadata file, as
//! read together with the footer.

use std::sync::Arc;

use tilefs_format::fragment::FragmentFacts;
use tilefs_format::schema::ArraySchema;

/// The facts of a fragment that are kept once its footer was read. Everything else is read when a tile is requested.
#[derive(Debug)]
pub struct Outline {
    /// The facts of the footer about the whole fragment.
    pub facts: FragmentFacts,
    /// The schema with which the fragment was written.
    pub schema: Arc<ArraySchema>,
}

/// One of the files of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldFile {
    /// Values of a fixed-size field, or offsets of a variable-size one.
    Data,
    /// Values of a variable-size field.
    Var,
    /// Whether cells are null.
    Validity,
}

/// The end of a fragment's metadata file, which was read along with the footer.
pub struct MetadataEnd {
    /// The offset in the file of the first byte.
    pub start: u64,
    /// The bytes to the end of the file.
    pub bytes: Vec<u8>,
}

impl MetadataEnd {
    /// Returns the bytes from an offset of the file, if they were read.
    pub fn behind(&self, offset: u64) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(offset.checked_sub(self.start)?).ok()?..)
    }
}
