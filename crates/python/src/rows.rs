//! Rows as a stream of Arrow record batches, through Arrow's C interface.
//!
//! The batches are those of the Arrow files of the tree's `arrow/parts`.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tilefs::tree::arrow_parts::ArrowParts;
use tilefs_format::error::{Error, Result};
use tilefs_reader::threads;
use tilefs_reader::threads::cancellation::Token;

use crate::arrow_file::{ArrowFile, of_arrow};
use crate::call;
use crate::fork::Kept;

/// The rows and columns of an array that are read.
pub struct RowQuery {
    pub array: Arc<tilefs_reader::Array>,
    /// As in the name of a folder in `slice/`; `None` for all rows.
    pub selection: Option<String>,
    /// Names of dimensions and attributes; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Whether rows are sorted by coordinates instead of in the array's order.
    pub by_row: bool,
}

impl RowQuery {
    fn parts(&self) -> Result<ArrowParts> {
        ArrowParts::new(self.array.clone(), self.selection.as_deref(), self.columns.clone(), self.by_row)
    }
}

/// The rows of an array. Each stream reads them from the first row on.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Rows(Kept<RowQuery>);

impl Rows {
    /// Creates the rows of a query, and checks its names and ranges.
    pub fn new(py: Python<'_>, query: RowQuery) -> PyResult<Self> {
        let query = Kept::new(query);
        call::run_long(py, || query.parts().map(drop))?;
        Ok(Rows(query))
    }
}

#[pymethods]
impl Rows {
    /// Returns the number of rows. This may have to read coordinates.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        call::run_long(py, || self.0.parts()?.rows())
    }

    /// Returns a capsule with a stream; see Arrow's PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows producers to ignore the requested schema.
        drop(requested_schema);
        let stream = call::run_long(py, || Stream::new(self.0.parts()?, self.0.array.is_far()))?;
        let shared = SharedStream { schema: stream.schema.clone(), stream: Kept::new(Mutex::new(stream)) };
        let stream = FFI_ArrowArrayStream::new(Box::new(shared));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns a capsule with the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = call::run_long(py, || {
            let schema = ArrowFile::open(self.0.parts()?.part(0)?)?.schema();
            FFI_ArrowSchema::try_from(&*schema).map_err(of_arrow)
        })?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// Parts that are read at the same time, so that threads that find no more tiles in one part start with the next. Three
/// parts of overlapping fragments took longer, because they wait for the same merges.
const PARTS_AT_ONCE: usize = 2;

/// The same for storage with high latency, so that there are requests in flight while rows are decoded.
const FAR_PARTS_AT_ONCE: usize = 4;

/// The stream that another library reads, on any thread. Memory: for each part that is being read two batches, which
/// have at most 32 MiB of cells of fixed size each.
struct Stream {
    schema: SchemaRef,
    parts: Arc<ArrowParts>,
    /// The number of parts that are read at the same time.
    at_once: usize,
    /// The next part to start reading.
    next: usize,
    /// The batches of the parts that are being read, in order.
    reading: VecDeque<Receiver<Result<RecordBatch>>>,
    /// Cancels the reads.
    token: Token,
}

impl Stream {
    fn new(parts: ArrowParts, is_far: bool) -> Result<Self> {
        let schema = ArrowFile::open(parts.part(0)?)?.schema();
        let (parts, at_once) = (Arc::new(parts), if is_far { FAR_PARTS_AT_ONCE } else { PARTS_AT_ONCE });
        Ok(Stream { schema, parts, at_once, next: 0, reading: VecDeque::new(), token: Token::new() })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            while self.next < self.parts.count() && self.reading.len() < self.at_once {
                self.reading.push_back(read_part(&self.parts, self.next, &self.token)?);
                self.next += 1;
            }
            let Some(first) = self.reading.front() else { return Ok(None) };
            match first.recv() {
                Ok(Ok(batch)) => return Ok(Some(batch)),
                Ok(Err(error)) => {
                    // Later rows would seem to follow the rows before the error.
                    self.next = self.parts.count();
                    self.reading.clear();
                    return Err(error);
                }
                // The part has no more batches.
                Err(_) => drop(self.reading.pop_front()),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// Starts to read a part; returns its batches.
fn read_part(parts: &Arc<ArrowParts>, number: usize, token: &Token) -> Result<Receiver<Result<RecordBatch>>> {
    let (sender, batches) = mpsc::sync_channel(1);
    let (parts, token) = (Arc::clone(parts), token.clone());
    let read = move || {
        let read = || {
            for batch in ArrowFile::open(parts.part(number)?)?.batches() {
                if sender.send(Ok(batch?)).is_err() {
                    // The reader has closed the stream.
                    break;
                }
            }
            Ok(())
        };
        if let Err(error) = token.cover(|| call::guarded(read)) {
            let _ = sender.send(Err(error));
        }
    };
    threads::start(format!("rows-{number}"), read)
        .map_err(|error| Error::usage(format!("cannot start a thread: {error}")))?;
    Ok(batches)
}

/// A stream for Arrow's interface.
struct SharedStream {
    schema: SchemaRef,
    stream: Kept<Mutex<Stream>>,
}

impl Iterator for SharedStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = call::guarded(|| self.stream.lock().unwrap_or_else(PoisonError::into_inner).next_batch());
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for SharedStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
