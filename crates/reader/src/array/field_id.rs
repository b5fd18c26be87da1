//! The identity of a field: an attribute or a dimension, by its number.

use tilefs_format::datatype::Datatype;
use tilefs_format::schema::ArraySchema;

/// An attribute or a dimension, by its number in the array's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldId {
    /// An attribute.
    Attribute(usize),
    /// A dimension.
    Dimension(usize),
}

impl FieldId {
    /// Returns the type of the field's values.
    pub fn datatype(self, schema: &ArraySchema) -> Datatype {
        match self {
            FieldId::Attribute(number) => schema.attributes[number].datatype,
            FieldId::Dimension(number) => schema.dimensions[number].datatype,
        }
    }
}
