//! The metadata of an Arrow file: schema, dictionaries, record batches and footer, as flatbuffers. The field numbers
//! are those of "Message.fbs" and "File.fbs" of the Arrow columnar format.

use flatbuffers::FlatBufferBuilder;

use super::flatbuffer::{Offset, TableField, structs, table};
use super::schema::{self, Schema};

/// Alignment of messages, bodies and buffers.
pub const ALIGNMENT: u64 = 64;

/// The first bytes of the file, padded; without the padding, also the last bytes.
pub const MAGIC: [u8; 8] = *b"ARROW1\0\0";

/// The marker after the last message.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The MetadataVersion that Arrow 1.0 and later write.
const VERSION_5: TableField = TableField::I16(4);

/// The type of a message, by its number.
#[derive(Debug, Clone, Copy)]
enum MessageType {
    Schema = 1,
    DictionaryBatch = 2,
    RecordBatch = 3,
}

/// Lengths and positions of the arrays and buffers of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchContents {
    pub rows: u64,
    pub nodes: Vec<FieldNode>,
    pub buffers: Vec<BufferPlace>,
    pub body_length: u64,
}

/// The number of cells of an array, and how many of them are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldNode {
    pub length: u64,
    pub nulls: u64,
}

/// The position of a buffer in the body, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferPlace {
    pub offset: u64,
    pub length: u64,
}

/// The position of a batch in the file, in bytes: its message, followed by its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    pub offset: u64,
    pub message_length: u32,
    pub body_length: u64,
}

/// Returns the message of the schema, which begins at the offset `at` in the file.
pub fn schema(schema: &Schema, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let header = schema::schema(&mut builder, schema);
    finish(builder, MessageType::Schema, header, 0, at)
}

/// Returns the message of a record batch, without its body.
pub fn record_batch(contents: &BatchContents, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let batch = batch(&mut builder, contents);
    finish(builder, MessageType::RecordBatch, batch, contents.body_length, at)
}

/// Returns the message of a dictionary, without its body. Dictionaries are numbered in the order of the fields.
pub fn dictionary(number: i64, contents: &BatchContents, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let data = batch(&mut builder, contents);
    let dictionary = table(&mut builder, &[(0, TableField::I64(number)), (1, TableField::At(data))]);
    finish(builder, MessageType::DictionaryBatch, dictionary, contents.body_length, at)
}

/// Returns everything after the batches: the end of the stream, the footer, its length, the magic bytes.
pub fn tail(schema: &Schema, dictionaries: &[Block], batches: &[Block]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let mut blocks = |blocks: &[Block]| {
        let words = |block: &Block| [block.offset as i64, block.message_length.into(), block.body_length as i64];
        structs(&mut builder, &blocks.iter().map(words).collect::<Vec<_>>())
    };
    let (dictionaries, batches) = (blocks(dictionaries), blocks(batches));
    let schema = schema::schema(&mut builder, schema);
    let footer = table(
        &mut builder,
        &[(1, TableField::At(schema)), (2, TableField::At(dictionaries)), (3, TableField::At(batches)), (0, VERSION_5)],
    );
    builder.finish(footer, None);
    let footer = builder.finished_data();
    // The builder is limited to 2 GiB.
    let length = (footer.len() as i32).to_le_bytes();
    [&END_OF_STREAM[..], footer, &length, &MAGIC[..6]].concat()
}

fn batch(builder: &mut FlatBufferBuilder<'_>, contents: &BatchContents) -> Offset {
    let buffers = contents.buffers.iter().map(|buffer| [buffer.offset as i64, buffer.length as i64]);
    let nodes = contents.nodes.iter().map(|node| [node.length as i64, node.nulls as i64]);
    let buffers = structs(builder, &buffers.collect::<Vec<_>>());
    let nodes = structs(builder, &nodes.collect::<Vec<_>>());
    table(
        builder,
        &[(0, TableField::I64(contents.rows as i64)), (1, TableField::At(nodes)), (2, TableField::At(buffers))],
    )
}

/// Adds the marker and length to a message, and pads it so that the bytes after it are aligned.
fn finish(mut builder: FlatBufferBuilder<'_>, kind: MessageType, header: Offset, body_length: u64, at: u64) -> Vec<u8> {
    let fields = [
        (3, TableField::I64(body_length as i64)),
        (2, TableField::At(header)),
        (0, VERSION_5),
        (1, TableField::U8(kind as u8)),
    ];
    let message = table(&mut builder, &fields);
    builder.finish(message, None);
    let data = builder.finished_data();
    let end = (at + 8 + data.len() as u64).next_multiple_of(ALIGNMENT);
    let length = (end - at - 8) as usize;
    let mut bytes = vec![0xff; 4];
    bytes.extend((length as i32).to_le_bytes());
    bytes.extend(data);
    bytes.resize(length + 8, 0);
    bytes
}
