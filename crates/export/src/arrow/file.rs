//! The whole file: schema and dictionaries, the batches, and the footer that locates them.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::lru_cache::LruCache;
use tilefs_base::output::Output;
use tilefs_threads::single_flight::SingleFlight;

use super::batch::RecordBatches;
use super::message::{self, ALIGNMENT, BatchContents, Block, BufferPlace, FieldNode, MAGIC};
use super::schema::{DataType, Schema};
use super::types::{ArrowColumn, BufferLayout, in_memory, label_column};
use crate::column::{FormatResult, Labels, Unrepresentable};
use crate::content::bits::Bits;
use crate::content::compose::Concat;
use crate::content::offsets::wrong_offsets;
use crate::content::{read_head, read_parts};

/// Number of recently read batches to keep: making one requires reading the validity of all its rows.
const RECENT_BATCHES: usize = 4;

/// An Arrow IPC file; the parts that depend on cells are made when first read.
pub struct IpcFile {
    schema: Schema,
    batches: RecordBatches,
    /// Magic bytes, schema and dictionaries.
    head: Vec<u8>,
    dictionaries: Vec<Block>,
    /// Length in bytes of a batch's message, which is the same for all.
    message_length: u64,
    /// The end of the batches, where the tail begins.
    batches_end: u64,
    length: u64,
    places: SingleFlight<Vec<u64>>,
    tail: SingleFlight<Arc<Vec<u8>>>,
    /// Recently read batches, latest first: a reader uses one, and its prefetching the next.
    recent: LruCache<usize, Arc<dyn Content>>,
}

impl IpcFile {
    /// Makes everything that does not depend on cells.
    pub fn new(batches: RecordBatches, metadata: Vec<(String, String)>) -> FormatResult<Self> {
        let fields = batches.columns.iter().map(|column| column.field.clone()).collect();
        let schema = Schema { fields, metadata };
        let mut head = MAGIC.to_vec();
        head.extend(message::schema(&schema, head.len() as u64));
        let mut dictionaries = Vec::new();
        for labels in batches.columns.iter().filter_map(|column| column.labels.as_ref()) {
            let (contents, body) = dictionary(labels)?;
            let at = head.len();
            let message = message::dictionary(dictionaries.len() as i64, &contents, at as u64);
            dictionaries.push(Block {
                offset: at as u64,
                message_length: message.len() as u32,
                body_length: body.len() as u64,
            });
            head.extend(message);
            head.extend(body);
        }
        let message_length = message::record_batch(&batches.outline(), 0).len() as u64;
        let count = batches.count();
        let outline = vec![Block { offset: 1, message_length: 1, body_length: 1 }; count as usize];
        let tail_length = message::tail(&schema, &dictionaries, &outline).len() as u64;
        let batches_end =
            batches.total().and_then(|total| total.checked_add(count * message_length + head.len() as u64));
        let length = batches_end.and_then(|end| end.checked_add(tail_length)).filter(|&end| end <= i64::MAX as u64);
        let too_long = || Unrepresentable::new("the Arrow file would be longer than 2^63 bytes");
        Ok(IpcFile {
            schema,
            head,
            dictionaries,
            message_length,
            batches_end: batches_end.ok_or_else(too_long)?,
            length: length.ok_or_else(too_long)?,
            batches,
            places: SingleFlight::new(),
            tail: SingleFlight::new(),
            recent: LruCache::new(RECENT_BATCHES),
        })
    }

    /// Returns the start of each batch, and the end of the last.
    fn places(&self) -> Result<&Vec<u64>> {
        self.places.get_or_make(|| {
            let mut places = Vec::new();
            for batch in 0..=self.batches.count() {
                let place = self.head.len() as u64 + batch * self.message_length + self.batches.before(batch)?;
                let least = places.last().copied().unwrap_or(self.head.len() as u64);
                if place < least || batch == 0 && place != least {
                    return Err(wrong_offsets());
                }
                places.push(place);
            }
            Ok(places)
        })
    }

    fn tail(&self) -> Result<&Arc<Vec<u8>>> {
        self.tail.get_or_make(|| {
            let places = self.places()?;
            let block = |place: &[u64]| Block {
                offset: place[0],
                message_length: self.message_length as u32,
                body_length: place[1] - place[0] - self.message_length,
            };
            let blocks: Vec<Block> = places.windows(2).map(block).collect();
            Ok(Arc::new(message::tail(&self.schema, &self.dictionaries, &blocks)))
        })
    }

    /// Returns a batch's message and body.
    fn batch(&self, number: usize) -> Result<Arc<dyn Content>> {
        self.recent.get_or_make(number, || {
            let batch = self.batches.batch(number as u64)?;
            let message = message::record_batch(&batch.contents, 0);
            if message.len() as u64 != self.message_length {
                return Err(Error::unsupported(
                    "an Arrow record batch whose message differs in length from the others",
                ));
            }
            Ok(Arc::new(Concat::new(vec![Arc::new(message), Arc::new(batch.body)])))
        })
    }
}

impl Content for IpcFile {
    fn len(&self) -> u64 {
        self.length
    }

    /// Reading any part of a batch requires its message, so prefetching reads its validity into memory.
    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (offset, rest) = read_head(&self.head, offset, out);
        read_parts(offset, rest, |at| {
            if at >= self.batches_end {
                return Ok((self.batches_end..self.length, self.tail()?.clone()));
            }
            let places = self.places()?;
            let number = places.partition_point(|&place| place <= at).saturating_sub(1);
            let end = places.get(number + 1).copied().unwrap_or(self.batches_end);
            Ok((places.get(number).copied().unwrap_or(at)..end, self.batch(number)?))
        })
    }
}

/// Returns the message and body of the labels of an enumeration.
fn dictionary(labels: &Labels) -> FormatResult<(BatchContents, Vec<u8>)> {
    let count = labels.values.len() as u64;
    let pad = |body: &mut Vec<u8>| body.resize(body.len().next_multiple_of(ALIGNMENT as usize), 0);
    let (mut body, mut buffers) = (Vec::new(), vec![BufferPlace { offset: 0, length: 0 }]);
    let column = label_column(labels);
    if matches!(column.data_type, DataType::LargeUtf8 | DataType::LargeBinary) {
        let texts = labels.utf8_or_stored();
        let mut end = 0u64;
        body.extend(end.to_le_bytes());
        for text in &texts {
            end += text.len() as u64;
            body.extend(end.to_le_bytes());
        }
        buffers.push(BufferPlace { offset: 0, length: body.len() as u64 });
        pad(&mut body);
        buffers.push(BufferPlace { offset: body.len() as u64, length: end });
        texts.iter().for_each(|text| body.extend(text));
    } else {
        if labels.values.iter().any(|label| label.len() != labels.datatype.size()) {
            return Err(Unrepresentable::several_values_of_labels(&labels.name));
        }
        body = match column.made {
            Some(ArrowColumn { layout: BufferLayout::Bits, values, .. }) => in_memory(&Bits::new(values)),
            Some(column) => in_memory(&*column.values),
            None => Ok(labels.values.concat()),
        }
        .map_err(|error| Unrepresentable::new(error.to_string()))?;
        buffers.push(BufferPlace { offset: 0, length: body.len() as u64 });
    }
    pad(&mut body);
    let nodes = vec![FieldNode { length: count, nulls: 0 }];
    Ok((BatchContents { rows: count, nodes, buffers, body_length: body.len() as u64 }, body))
}
