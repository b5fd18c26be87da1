//! The metadata of an Arrow file: schema, dictionaries, record batches and footer, as flatbuffers.

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::DictionaryTracker;
use arrow_ipc::{
    Block, Buffer, DictionaryBatchBuilder, FieldNode, FooterBuilder, MessageBuilder, MessageHeader, MetadataVersion,
    RecordBatchBuilder,
};
use arrow_schema::Schema;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

/// Messages, bodies and buffers begin at multiples of this.
pub const ALIGNMENT: u64 = 64;

/// The first bytes of the file, padded; without the padding the last ones too.
pub const MAGIC: [u8; 8] = *b"ARROW1\0\0";

/// What ends the messages.
pub const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Counts and places of the arrays and buffers of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    pub rows: u64,
    pub nodes: Vec<FieldNode>,
    pub buffers: Vec<Buffer>,
    pub body_length: u64,
}

/// The message of the schema, for the offset `at` in the file.
pub fn schema(schema: &Schema, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let mut tracker = DictionaryTracker::new(true);
    let header =
        IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker).schema_to_fb_offset(&mut builder, schema);
    finish(builder, MessageHeader::Schema, header.as_union_value(), 0, at)
}

/// The message of a record batch, without its body.
pub fn record_batch(contents: &Contents, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let batch = batch(&mut builder, contents);
    finish(builder, MessageHeader::RecordBatch, batch.as_union_value(), contents.body_length, at)
}

/// The message of a dictionary, without its body. Dictionaries are numbered in the order of the fields.
pub fn dictionary(number: i64, contents: &Contents, at: u64) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let data = batch(&mut builder, contents);
    let mut dictionary = DictionaryBatchBuilder::new(&mut builder);
    dictionary.add_id(number);
    dictionary.add_data(data);
    let dictionary = dictionary.finish();
    finish(builder, MessageHeader::DictionaryBatch, dictionary.as_union_value(), contents.body_length, at)
}

/// All that follows the batches: the end of the stream, the footer, its length, the magic bytes.
pub fn tail(schema: &Schema, dictionaries: &[Block], batches: &[Block]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let dictionaries = builder.create_vector(dictionaries);
    let batches = builder.create_vector(batches);
    let mut tracker = DictionaryTracker::new(true);
    let schema =
        IpcSchemaEncoder::new().with_dictionary_tracker(&mut tracker).schema_to_fb_offset(&mut builder, schema);
    let mut footer = FooterBuilder::new(&mut builder);
    footer.add_version(MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(dictionaries);
    footer.add_recordBatches(batches);
    let footer = footer.finish();
    builder.finish(footer, None);
    let footer = builder.finished_data();
    // The builder holds less than 2 GiB, or would have refused.
    let length = (footer.len() as i32).to_le_bytes();
    [&END_OF_STREAM[..], footer, &length, &MAGIC[..6]].concat()
}

fn batch<'a>(builder: &mut FlatBufferBuilder<'a>, contents: &Contents) -> WIPOffset<arrow_ipc::RecordBatch<'a>> {
    let buffers = builder.create_vector(&contents.buffers);
    let nodes = builder.create_vector(&contents.nodes);
    let mut batch = RecordBatchBuilder::new(builder);
    batch.add_length(contents.rows as i64);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    batch.finish()
}

/// The message with its marker and length, padded so that what follows is aligned.
fn finish(
    mut builder: FlatBufferBuilder<'_>,
    kind: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body_length: u64,
    at: u64,
) -> Vec<u8> {
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(kind);
    message.add_bodyLength(body_length as i64);
    message.add_header(header);
    let message = message.finish();
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
