//! Reads the Arrow files of the tree: each batch into a block of memory of its own, of which the batch's columns are
//! slices.
//!
//! `arrow_ipc` has a reader of files, too, but it fills each block with zeros first, during which the kernel supplies
//! one page after the other. Of 400 MB of cells, that took a third of the time to read them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, convert, root_as_footer};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;
use memmap2::MmapMut;
use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::memory;
use tilefs_threads::{self as threads, address_space};

use crate::checked_text;

/// The length of the end of a file: the length of its footer, and the format's name.
const END: usize = 10;

/// The pages of this much memory are mapped at a time, so that the threads that map share the work evenly, and others
/// that change the address space wait only shortly.
const MAPPED_AT_ONCE: usize = 64 << 10;

/// An Arrow file. Memory: its footer and dictionaries.
pub struct ArrowFile {
    content: Arc<dyn Content>,
    schema: SchemaRef,
    /// Decodes columns of text as bytes.
    decoder: FileDecoder,
    batches: Vec<Block>,
}

impl ArrowFile {
    /// Opens a file: reads its footer and its dictionaries.
    ///
    /// # Errors
    /// Any damage in the data that these are made of; tables that Arrow cannot hold.
    pub fn open(content: Arc<dyn Content>) -> Result<Self> {
        let mut end = [0; END];
        let end_at = before(content.len(), END)?;
        content.read_at(end_at, &mut end)?;
        let length = read_footer_length(end).map_err(of_arrow)?;
        let mut footer = memory::zeros(length as u64, 1, "the footer of an Arrow file")?;
        content.read_at(before(end_at, length)?, &mut footer)?;
        let footer = root_as_footer(&footer).map_err(|error| of_arrow(ArrowError::ParseError(error.to_string())))?;
        let schema = footer.schema().ok_or_else(|| Error::internal("an Arrow file without a schema"))?;
        let schema = Arc::new(convert::try_fb_to_schema(schema).map_err(of_arrow)?);
        let mut decoder = FileDecoder::new(checked_text::as_bytes(&schema), footer.version());
        for block in footer.dictionaries().into_iter().flatten() {
            decoder.read_dictionary(block, &read_block(&*content, block)?.into()).map_err(of_arrow)?;
        }
        let batches = footer.recordBatches().into_iter().flatten().copied().collect();
        Ok(ArrowFile { content, schema, decoder, batches })
    }

    /// Returns the schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Reads one batch after the other, without the first `skipped` ones.
    ///
    /// # Errors
    /// Any damage in the cells; cells that Arrow cannot hold.
    pub fn batches(&self, skipped: usize) -> impl Iterator<Item = Result<RecordBatch>> {
        self.batches.iter().skip(skipped).map(|block| {
            let batch = self.decoder.read_record_batch(block, &read_block(&*self.content, block)?.into());
            let batch = batch.map_err(of_arrow)?;
            let batch = batch.ok_or_else(|| Error::internal("an Arrow file with an empty block"))?;
            checked_text::with_text(batch, &self.schema).map_err(of_arrow)
        })
    }
}

/// Returns the error that the Arrow reader wraps if it is one of ours, otherwise an error about the file.
pub fn of_arrow(error: ArrowError) -> Error {
    Error::refused("a table that Arrow cannot hold", error)
}

/// Reads a block into new memory of its own, which is aligned to pages.
fn read_block(content: &dyn Content, block: &Block) -> Result<Bytes> {
    let length = i64::from(block.metaDataLength()).checked_add(block.bodyLength());
    let (Some(length), Ok(offset)) =
        (length.and_then(|length| usize::try_from(length).ok()), block.offset().try_into())
    else {
        return Err(Error::internal("an Arrow file with a block of no possible size"));
    };
    let no_memory = |error| Error::unsupported(format!("{length} bytes for a batch of rows: {error}"));
    let mut bytes = MmapMut::map_anon(length).map_err(no_memory)?;
    threads::for_each(bytes.chunks_mut(MAPPED_AT_ONCE), |part| {
        address_space::map_pages(part);
    });
    content.read_at(offset, &mut bytes)?;
    Ok(Bytes::from_owner(bytes))
}

/// Returns the position `length` bytes before `end`.
fn before(end: u64, length: usize) -> Result<u64> {
    end.checked_sub(length as u64).ok_or_else(|| Error::internal("an Arrow file that is too short"))
}
