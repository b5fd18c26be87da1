//! Rows as a stream of Arrow record batches, through Arrow's C interface.
//!
//! The batches are those of the Arrow files of the tree's `arrow/parts`.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use tilefs_base::error::{Error, Result};
use tilefs_reader::array::{FieldId, ValueBounds};
use tilefs_threads as threads;
use tilefs_threads::PerProcess;
use tilefs_threads::cancellation::Token;
use tilefs_tree::views::arrow::ArrowValues;
use tilefs_tree::views::arrow_parts::{ArrowParts, ChosenParts};

use crate::array_per_process::ArrayPerProcess;
use crate::arrow_file::{ArrowFile, of_arrow};
use crate::call;

/// The rows and columns of an array that are read.
#[derive(Clone)]
pub struct RowQuery {
    pub array: Arc<ArrayPerProcess>,
    /// The selection, as in the name of a folder in `slice/`; `None` for all rows.
    pub selection: Option<String>,
    /// Names of dimensions and attributes; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Whether rows are sorted by coordinates instead of in the array's order.
    pub by_row: bool,
    /// Whether the columns have labels, dates and text, or what is stored.
    pub values: ArrowValues,
    /// Parts of the rows, of which these are parts, and so on: only their rows are read.
    pub within: Vec<ChosenParts>,
    /// The most rows of a part, unless one tile has more.
    pub most: u64,
    /// The parts that are read, by their numbers in ascending order; `None` for all.
    pub parts: Option<Vec<usize>>,
}

impl RowQuery {
    fn parts(&self) -> Result<ArrowParts> {
        let array = self.array.here()?.array.clone();
        let (columns, form) = (self.columns.clone(), (self.by_row, self.values));
        ArrowParts::new(array, self.selection.as_deref(), columns, form, &self.within, self.most)
    }
}

/// The rows of an array. Each stream reads them from the first row on.
#[pyclass(frozen, module = "tilefs._tilefs")]
pub struct Rows(RowQuery);

impl Rows {
    /// Creates the rows of a query, and checks its names and ranges.
    pub fn new(py: Python<'_>, query: RowQuery) -> PyResult<Self> {
        call::run(py, || query.parts().map(drop))?;
        Ok(Rows(query))
    }
}

#[pymethods]
impl Rows {
    /// Returns the number of rows. This may have to read coordinates.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        call::run(py, || self.0.parts()?.rows(self.0.parts.as_deref()))
    }

    /// Returns the most rows that there can be, without reading cells, and whether this number is exact.
    fn known_count(&self, py: Python<'_>) -> PyResult<(u64, bool)> {
        let known = call::run(py, || self.0.parts()?.known_rows(self.0.parts.as_deref()))?;
        Ok((known.most(), known.exact().is_some()))
    }

    /// Returns, for each part of at most `most` rows, the most rows that can come before it.
    fn part_starts(&self, py: Python<'_>, most: u64) -> PyResult<Vec<u64>> {
        call::run(py, || Ok(self.divided(most, None).parts()?.starts().to_vec()))
    }

    /// Returns bounds of a field's values in each part, as the bytes of two values, as far as they are known; `None` if
    /// cells would have to be read.
    fn part_bounds<'py>(
        &self,
        py: Python<'py>,
        most: u64,
        is_dimension: bool,
        field: usize,
    ) -> PyResult<Option<Vec<Option<BoundsAsBytes<'py>>>>> {
        let field = if is_dimension { FieldId::Dimension(field) } else { FieldId::Attribute(field) };
        let found = call::run(py, || self.divided(most, None).parts()?.bounds(field))?;
        let shown = |bounds: ValueBounds| (PyBytes::new(py, &bounds.least), PyBytes::new(py, &bounds.greatest));
        Ok(found.map(|parts| parts.into_iter().map(|bounds| bounds.map(shown)).collect()))
    }

    /// Returns the rows of some of the parts of at most `most` rows each, by their numbers in ascending order.
    fn some_parts(&self, most: u64, parts: Vec<usize>) -> Rows {
        Rows(self.divided(most, Some(parts)))
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
        let stream = call::run(py, || Stream::new(&self.0, StreamPlace::default()))?;
        let shared = SharedStream {
            query: self.0.clone(),
            schema: stream.schema.clone(),
            stream: PerProcess::of(Mutex::new(stream)),
            next: StreamPlace::default(),
            main_thread: call::main_thread(py)?,
            looked: Instant::now(),
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(shared));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns a capsule with the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = call::run(py, || {
            let schema = ArrowFile::open(self.0.parts()?.part(0)?)?.schema();
            FFI_ArrowSchema::try_from(&*schema).map_err(of_arrow)
        })?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

/// A lower and an upper bound, as the bytes of values.
type BoundsAsBytes<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

impl Rows {
    /// Returns the query with parts of at most `most` rows, of which `parts` are read.
    fn divided(&self, most: u64, parts: Option<Vec<usize>>) -> RowQuery {
        let mut query = RowQuery { most: most.max(1), parts, ..self.0.clone() };
        if let Some(chosen) = &self.0.parts {
            query.within.push((self.0.most, chosen.clone()));
        }
        query
    }
}

/// Parts that are read at the same time, so that threads that find no more tiles in one part start with the next. Three
/// parts of overlapping fragments took longer, because they wait for the same merges.
const PARTS_AT_ONCE: usize = 2;

/// The number of parts for storage with high latency, so that requests are in flight while rows are decoded.
const REMOTE_PARTS_AT_ONCE: usize = 4;

/// A place in a stream: a part, counted among those that are read, and a batch of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StreamPlace {
    part: usize,
    batch: usize,
}

/// The stream that another library reads, on any thread. Memory: for each part that is being read two batches, which
/// have at most 32 MiB of cells of fixed size each.
struct Stream {
    schema: SchemaRef,
    parts: Arc<ArrowParts>,
    /// The parts that are read; `None` for all.
    chosen: Option<Vec<usize>>,
    /// The number of parts that are read at the same time.
    at_once: usize,
    /// The next part to start reading, among those that are read.
    next: usize,
    /// How many batches of this part are not wanted.
    skipped: usize,
    /// The batches of the parts that are being read, in order.
    reading: VecDeque<Receiver<Result<RecordBatch>>>,
    /// The place of the next batch.
    place: StreamPlace,
    /// Cancels the reads.
    token: Token,
}

impl Stream {
    /// Starts at a place.
    fn new(query: &RowQuery, place: StreamPlace) -> Result<Self> {
        let parts = query.parts()?;
        let schema = ArrowFile::open(parts.part(0)?)?.schema();
        let is_remote = query.array.here()?.array.is_remote();
        let at_once = if is_remote { REMOTE_PARTS_AT_ONCE } else { PARTS_AT_ONCE };
        let (next, skipped, reading) = (place.part, place.batch, VecDeque::new());
        let (parts, chosen) = (Arc::new(parts), query.parts.clone());
        Ok(Stream { schema, parts, chosen, at_once, next, skipped, reading, place, token: Token::new() })
    }

    /// Returns the number of parts that are read.
    fn count(&self) -> usize {
        self.chosen.as_ref().map_or(self.parts.count(), Vec::len)
    }

    /// Returns the next batch, or an error as soon as `is_interrupted`.
    fn next_batch(&mut self, is_interrupted: &dyn Fn() -> bool) -> Result<Option<RecordBatch>> {
        loop {
            while self.next < self.count() && self.reading.len() < self.at_once {
                let skipped = std::mem::take(&mut self.skipped);
                let number = self.chosen.as_ref().map_or(Some(self.next), |chosen| chosen.get(self.next).copied());
                let number = number.ok_or_else(|| Error::internal("a part past the last one"))?;
                self.reading.push_back(read_part(&self.parts, number, skipped, &self.token)?);
                self.next += 1;
            }
            let Some(first) = self.reading.front() else { return Ok(None) };
            match first.recv_timeout(call::LOOK_FOR_SIGNALS) {
                Ok(Ok(batch)) => {
                    self.place.batch += 1;
                    return Ok(Some(batch));
                }
                Ok(Err(error)) => {
                    self.end();
                    return Err(error);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if is_interrupted() {
                        return Err(self.interrupted());
                    }
                }
                // The part has no more batches.
                Err(RecvTimeoutError::Disconnected) => {
                    self.reading.pop_front();
                    self.place = StreamPlace { part: self.place.part + 1, batch: 0 };
                }
            }
        }
    }

    /// Ends the stream and its reads after a signal.
    fn interrupted(&mut self) -> Error {
        self.token.cancel();
        self.end();
        Error::Cancelled
    }

    /// Ends the stream after an error: later rows would seem to follow the rows before it.
    fn end(&mut self) {
        self.next = self.count();
        self.reading.clear();
        self.place = StreamPlace { part: self.next, batch: 0 };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// Starts to read a part; returns its batches without the first `skipped` ones.
fn read_part(
    parts: &Arc<ArrowParts>,
    number: usize,
    skipped: usize,
    token: &Token,
) -> Result<Receiver<Result<RecordBatch>>> {
    let (sender, batches) = mpsc::sync_channel(1);
    let (parts, token) = (Arc::clone(parts), token.clone());
    let read = move || {
        let read = || {
            for batch in ArrowFile::open(parts.part(number)?)?.batches(skipped) {
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

/// A stream for Arrow's interface. A forked child goes on where its parent was.
struct SharedStream {
    query: RowQuery,
    schema: SchemaRef,
    stream: PerProcess<Mutex<Stream>>,
    /// The place of the next batch. Unlike the stream, a forked child can read it.
    next: StreamPlace,
    /// Where Python handles signals, if the stream was made there.
    main_thread: Option<ThreadId>,
    /// The time of the last look for signals: a reader outside Python may ask for one batch after the other.
    looked: Instant,
}

impl SharedStream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next;
        let stream = self.stream.get_or_make(|_| Stream::new(&self.query, next).map(Mutex::new))?;
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        let is_main_thread = self.main_thread == Some(thread::current().id());
        if is_main_thread && self.looked.elapsed() >= call::LOOK_FOR_SIGNALS {
            self.looked = Instant::now();
            if call::is_interrupted() {
                return Err(stream.interrupted());
            }
        }
        let batch = stream.next_batch(&|| is_main_thread && call::is_interrupted())?;
        self.next = stream.place;
        Ok(batch)
    }
}

impl Iterator for SharedStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = call::guarded(|| self.next_batch());
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for SharedStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
