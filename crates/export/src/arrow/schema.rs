//! The schema of a table in Arrow: fields and their types, as flatbuffers. The numbers are those of "Schema.fbs" of the
//! Arrow columnar format.

use flatbuffers::FlatBufferBuilder;
use tilefs_format::datatype::Datatype;

use super::flatbuffer::{Offset, TableField, table, tables, text};

/// A column of a table, or the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrowField {
    pub name: String,
    pub data_type: DataType,
    pub is_nullable: bool,
    /// For [`DataType::Dictionary`]: whether the order of the values is meaningful.
    pub is_ordered: bool,
    /// The TileDB datatype of the cells, stored as metadata; `None` for items of lists.
    pub datatype: Option<Datatype>,
}

/// The columns of a table, and its metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    pub fields: Vec<ArrowField>,
    /// By key.
    pub metadata: Vec<(String, String)>,
}

/// The types of columns. Lengths are signed 32-bit numbers in the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Date32,
    Timestamp(ArrowTimeUnit),
    Duration(ArrowTimeUnit),
    FixedSizeBinary(i32),
    LargeBinary,
    LargeUtf8,
    FixedSizeList(Box<ArrowField>, i32),
    LargeList(Box<ArrowField>),
    /// The members.
    Struct(Vec<ArrowField>),
    /// The types of the indices and of the values.
    Dictionary(Box<DataType>, Box<DataType>),
}

/// The units of times, by their numbers in Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrowTimeUnit {
    Second = 0,
    Millisecond = 1,
    Microsecond = 2,
    Nanosecond = 3,
}

impl ArrowField {
    /// Creates the items of a list, none of which is null.
    pub fn of_items(name: &str, data_type: DataType) -> Box<Self> {
        let name = name.to_owned();
        Box::new(ArrowField { name, data_type, is_nullable: false, is_ordered: false, datatype: None })
    }
}

impl ArrowField {
    /// Creates a struct of members, never null.
    pub fn of_members(name: &str, members: Vec<ArrowField>) -> Self {
        *ArrowField::of_items(name, DataType::Struct(members))
    }

    /// Creates the items of a list, any of which can be null.
    pub fn of_nullable_items(name: &str, data_type: DataType) -> Box<Self> {
        Box::new(ArrowField { is_nullable: true, ..*ArrowField::of_items(name, data_type) })
    }
}

/// Writes a schema. Dictionaries are numbered in the order of the fields.
pub fn schema(builder: &mut FlatBufferBuilder<'_>, schema: &Schema) -> Offset {
    let mut dictionaries = 0..;
    let fields: Vec<Offset> = schema.fields.iter().map(|column| field(builder, column, &mut dictionaries)).collect();
    let fields = tables(builder, &fields);
    let pairs: Vec<Offset> = schema.metadata.iter().map(|(key, value)| pair(builder, key, value)).collect();
    let pairs = tables(builder, &pairs);
    table(builder, &[(0, TableField::I16(LITTLE_ENDIAN)), (1, TableField::At(fields)), (2, TableField::At(pairs))])
}

fn pair(builder: &mut FlatBufferBuilder<'_>, key: &str, value: &str) -> Offset {
    let (key, value) = (text(builder, key), text(builder, value));
    table(builder, &[(0, TableField::At(key)), (1, TableField::At(value))])
}

const LITTLE_ENDIAN: i16 = 0;

fn field(
    builder: &mut FlatBufferBuilder<'_>,
    field: &ArrowField,
    dictionaries: &mut impl Iterator<Item = i64>,
) -> Offset {
    let children: Vec<Offset> = match &field.data_type {
        DataType::FixedSizeList(items, _) | DataType::LargeList(items) => {
            vec![self::field(builder, items, dictionaries)]
        }
        DataType::Struct(members) => members.iter().map(|member| self::field(builder, member, dictionaries)).collect(),
        _ => Vec::new(),
    };
    let children = tables(builder, &children);
    let name = text(builder, &field.name);
    let (number, parameters) = field.data_type.in_format();
    let data_type = table(builder, &parameters);
    let mut fields = vec![
        (0, TableField::At(name)),
        (3, TableField::At(data_type)),
        (5, TableField::At(children)),
        (1, TableField::Bool(field.is_nullable)),
        (2, TableField::U8(number)),
    ];
    if let DataType::Dictionary(indices, _) = &field.data_type {
        let id = dictionaries.next().unwrap_or_default();
        let indices = table(builder, &indices.in_format().1);
        let encoding =
            [(0, TableField::I64(id)), (1, TableField::At(indices)), (2, TableField::Bool(field.is_ordered))];
        fields.push((4, TableField::At(table(builder, &encoding))));
    }
    if let Some(datatype) = field.datatype {
        let pair = pair(builder, "tiledb.datatype", datatype.name());
        fields.push((6, TableField::At(tables(builder, &[pair]))));
    }
    table(builder, &fields)
}

impl DataType {
    /// Returns the number of the type (for a dictionary, that of its values) and the fields of its table.
    fn in_format(&self) -> (u8, Vec<(u16, TableField)>) {
        let integer = |bits, is_signed| (2, vec![(0, TableField::I32(bits)), (1, TableField::Bool(is_signed))]);
        let precision = |precision| (3, vec![(0, TableField::I16(precision))]);
        let of_length = |number, length: &i32| (number, vec![(0, TableField::I32(*length))]);
        let in_unit = |number, unit: &ArrowTimeUnit| (number, vec![(0, TableField::I16(*unit as i16))]);
        match self {
            DataType::Boolean => (6, Vec::new()),
            DataType::Int8 => integer(8, true),
            DataType::Int16 => integer(16, true),
            DataType::Int32 => integer(32, true),
            DataType::Int64 => integer(64, true),
            DataType::UInt8 => integer(8, false),
            DataType::UInt16 => integer(16, false),
            DataType::UInt32 => integer(32, false),
            DataType::UInt64 => integer(64, false),
            DataType::Float32 => precision(1),
            DataType::Float64 => precision(2),
            // In days.
            DataType::Date32 => (8, vec![(0, TableField::I16(0))]),
            DataType::Timestamp(unit) => in_unit(10, unit),
            DataType::Duration(unit) => in_unit(18, unit),
            DataType::FixedSizeBinary(length) => of_length(15, length),
            DataType::LargeBinary => (19, Vec::new()),
            DataType::LargeUtf8 => (20, Vec::new()),
            DataType::FixedSizeList(_, length) => of_length(16, length),
            DataType::LargeList(_) => (21, Vec::new()),
            DataType::Struct(_) => (13, Vec::new()),
            DataType::Dictionary(_, values) => values.in_format(),
        }
    }
}
