//! Tables and vectors of a flatbuffer; fields are numbered as in its schema.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// An object that has been written, to which a table or vector can refer.
pub type Offset = WIPOffset<UnionWIPOffset>;

/// The value of a field of a table.
#[derive(Clone, Copy)]
pub enum TableField {
    Bool(bool),
    U8(u8),
    I16(i16),
    I32(i32),
    I64(i64),
    At(Offset),
}

/// Writes a table of these fields, numbered from 0. Fields with their default value are written too, so tables with the
/// same fields have the same length.
pub fn table(builder: &mut FlatBufferBuilder<'_>, fields: &[(u16, TableField)]) -> Offset {
    let start = builder.start_table();
    for (number, value) in fields {
        // In the table's vtable, after the lengths of the vtable and the table.
        let slot = 4 + 2 * number;
        match *value {
            TableField::Bool(value) => builder.push_slot_always(slot, value),
            TableField::U8(value) => builder.push_slot_always(slot, value),
            TableField::I16(value) => builder.push_slot_always(slot, value),
            TableField::I32(value) => builder.push_slot_always(slot, value),
            TableField::I64(value) => builder.push_slot_always(slot, value),
            TableField::At(offset) => builder.push_slot_always(slot, offset),
        }
    }
    builder.end_table(start).as_union_value()
}

/// Writes a text.
pub fn text(builder: &mut FlatBufferBuilder<'_>, text: &str) -> Offset {
    builder.create_string(text).as_union_value()
}

/// Writes a vector of tables.
pub fn tables(builder: &mut FlatBufferBuilder<'_>, tables: &[Offset]) -> Offset {
    builder.create_vector(tables).as_union_value()
}

/// Writes a vector of structs of `WORDS` 64-bit words each.
pub fn structs<const WORDS: usize>(builder: &mut FlatBufferBuilder<'_>, structs: &[[i64; WORDS]]) -> Offset {
    builder.start_vector::<i64>(structs.len() * WORDS);
    for word in structs.iter().flatten().rev() {
        builder.push(*word);
    }
    builder.end_vector::<i64>(structs.len()).as_union_value()
}
