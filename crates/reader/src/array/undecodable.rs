//! Finds files of an array that cannot be decoded because a filter is unknown or not supported for their type, so that
//! this can be reported before somebody reads them.

use tilefs_base::error::{Error, Locate};
use tilefs_format::datatype::Datatype;
use tilefs_format::filter::{Decoder, TileContext};
use tilefs_format::pipeline::Pipeline;
use tilefs_format::schema::{ArraySchema, ArrayType, Attribute, Dimension};

/// Returns an error with the field for each file of a schema's fields that cannot be decoded. Fragments with another
/// schema may have others.
pub fn undecodable_fields(schema: &ArraySchema) -> Vec<Error> {
    let mut found = Vec::new();
    let mut check = |field: &str, pipeline: &Pipeline, datatype: Datatype, cell_size: usize| {
        // Encryption is not part of these lists.
        let context =
            TileContext { datatype, cell_size, format_version: schema.version, writer_version: None, key: None };
        if let Err(error @ Error::Unsupported { .. }) = Decoder::new(pipeline, &context) {
            found.push(error.in_field(field));
        }
    };
    for attribute in &schema.attributes {
        let cell_size = attribute.cell_size().unwrap_or(attribute.datatype.size());
        check(&attribute.name, &attribute.filters, attribute.datatype, cell_size);
    }
    if schema.array_type == ArrayType::Sparse {
        for dimension in &schema.dimensions {
            let pipeline = schema.coordinate_filters(dimension);
            check(&dimension.name, pipeline, dimension.datatype, dimension.datatype.size());
        }
    }
    if schema.attributes.iter().any(Attribute::is_variable) || schema.dimensions.iter().any(Dimension::is_variable) {
        check("offsets", &schema.offsets_filters, Datatype::UInt64, size_of::<u64>());
    }
    if schema.attributes.iter().any(|attribute| attribute.nullable) {
        check("validity", &schema.validity_filters, Datatype::UInt8, 1);
    }
    found
}
