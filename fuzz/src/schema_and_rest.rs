//! Inputs for parsers that need a schema: a format version (`u8`), the length of the schema (`u16`), the schema, and
//! the bytes to parse.

use tilefs_format::schema::ArraySchema;

pub fn split(data: &[u8]) -> Option<(u32, ArraySchema, &[u8])> {
    let (&[version, low, high], rest) = data.split_first_chunk::<3>()?;
    let (schema, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
    Some((u32::from(version), ArraySchema::parse(schema).ok()?, rest))
}
