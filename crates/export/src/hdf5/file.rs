//! The bytes of a file: those of the layout, and the values at the positions the layout reserves for them.

use std::ops::Range;
use std::sync::Arc;

use hdf5_layout::{FileLayout, HeapCollection, HeapIds, ObjectId, Segment};
use tilefs_base::content::{Content, unknown_band};
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads::cancellation;

use crate::content::offsets::Offsets;
use crate::content::refusal::refused_cell;

/// Maximum number of bytes of the texts of a collection.
const LARGEST_COLLECTION: u64 = 1 << 16;

/// The values of a dataset.
#[derive(Clone)]
pub struct DatasetValues {
    /// The elements; texts end to end.
    pub values: Arc<dyn Content>,
    /// The start of each text and the end of the last, `u64` little-endian.
    pub offsets: Option<Offsets>,
}

/// A file. A read takes memory for the offsets of the texts in its range, and for 64 KiB of texts.
pub struct Hdf5 {
    layout: FileLayout,
    /// Indexed by the layout's objects.
    values: Vec<Option<DatasetValues>>,
}

impl Hdf5 {
    /// Creates the file of a layout; `values` are those of its objects.
    pub fn new(layout: FileLayout, values: Vec<Option<DatasetValues>>) -> Self {
        Hdf5 { layout, values }
    }

    fn values(&self, dataset: ObjectId) -> Result<&DatasetValues> {
        let values = self.values.get(dataset.index()).and_then(Option::as_ref);
        values.ok_or_else(|| Error::internal("a dataset without values"))
    }

    fn texts(&self, dataset: ObjectId) -> Result<(&dyn Content, &Offsets)> {
        let values = self.values(dataset)?;
        let offsets = values.offsets.as_ref().ok_or_else(|| Error::internal("texts without offsets"))?;
        Ok((&*values.values, offsets))
    }

    fn heap_ids(&self, ids: &HeapIds<'_>, mut out: Output<'_>) -> Result<()> {
        let (_, offsets) = self.texts(ids.dataset())?;
        let Range { start, end } = ids.elements();
        let offsets = offsets.of(start..end, &out)?;
        let Some(out) = out.wanted() else { return Ok(()) };
        let lengths = offsets.windows(2).map(|ends| ends[1].checked_sub(ends[0]).ok_or_else(changed));
        let made = ids.encode(&lengths.collect::<Result<Vec<u64>>>()?).map_err(|_| changed())?;
        copy(&made, out)
    }

    fn collection(&self, collection: &HeapCollection<'_>, mut out: Output<'_>) -> Result<()> {
        let (values, offsets) = self.texts(collection.dataset())?;
        let Range { start, end } = collection.elements();
        let (mut texts, ends) = (Vec::new(), offsets.of(start..end, &out)?);
        // Prefetching also needs the positions of the texts.
        let (first, last) = (offsets.at(start)?, offsets.at(end)?);
        // A collection has at most 64 KiB, unless the offsets have changed since it was laid out.
        let length = last.checked_sub(first).filter(|length| *length <= LARGEST_COLLECTION).ok_or_else(changed)?;
        values.read(first, out.aside(length, &mut texts))?;
        let Some(out) = out.wanted() else { return Ok(()) };
        let text = |(row, ends): (u64, &[u64])| -> Result<&[u8]> {
            let (from, to) = (ends[0].wrapping_sub(first) as usize, ends[1].wrapping_sub(first) as usize);
            let text = texts.get(from..to).ok_or_else(changed)?;
            if has_inner_nul(text) { Err(inner_nul(row)) } else { Ok(text) }
        };
        let elements = (start..).zip(ends.windows(2)).map(text).collect::<Result<Vec<&[u8]>>>()?;
        copy(&collection.encode(elements).map_err(|_| changed())?, out)
    }

    fn element(&self, dataset: ObjectId, element: u64, within: Range<u64>, mut out: Output<'_>) -> Result<()> {
        let (values, offsets) = self.texts(dataset)?;
        let start = offsets.at(element)?.checked_add(within.start).ok_or_else(changed)?;
        let end = offsets.at(element + 1)?;
        if start.checked_add(out.len()).is_none_or(|read| read > end || end > values.len()) {
            return Err(changed());
        }
        values.read(start, out.part(0..u64::MAX))?;
        let Some(out) = out.wanted() else { return Ok(()) };
        if !out.contains(&0) {
            return Ok(());
        }
        // Bytes after a NUL must all be NUL.
        let mut is_cut = has_inner_nul(out);
        let mut at = start + out.len() as u64;
        let mut bytes = Vec::new();
        while !is_cut && at < end {
            cancellation::check()?;
            let now = resized(&mut bytes, (end - at).min(LARGEST_COLLECTION));
            values.read_at(at, now)?;
            is_cut = now.iter().any(|byte| *byte != 0);
            at += now.len() as u64;
        }
        if is_cut { Err(inner_nul(element)) } else { Ok(()) }
    }
}

impl Content for Hdf5 {
    fn len(&self) -> u64 {
        self.layout.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let mut rest = out;
        for segment in self.layout.segments(offset..offset + rest.len()) {
            let (mut now, later) = rest.split_at(segment.len());
            match segment {
                Segment::Metadata(bytes) => now.wanted().map_or(Ok(()), |out| copy(&bytes, out))?,
                Segment::Values { dataset, range } => self.values(dataset)?.values.read(range.start, now)?,
                Segment::HeapIds(ids) => self.heap_ids(&ids, now)?,
                Segment::HeapCollection(collection) => self.collection(&collection, now)?,
                Segment::Element { dataset, element, range } => self.element(dataset, element, range, now)?,
            }
            rest = later;
        }
        Ok(())
    }

    fn band(&self, offset: u64) -> Range<u64> {
        let unknown = unknown_band(self.len(), offset);
        let segment = self.layout.segments(offset..offset.saturating_add(1)).next();
        let Some(Segment::Values { dataset, range: Range { start, .. } }) = segment else { return unknown };
        match self.values(dataset) {
            Ok(values) => {
                let band = values.values.band(start);
                // The offset of the values in the file.
                let begin = offset - start;
                begin + band.start..begin + band.end
            }
            Err(_) => unknown,
        }
    }
}

fn changed() -> Error {
    Error::damaged("offsets of values that go backwards, or are others than before")
}

fn inner_nul(row: u64) -> Error {
    refused_cell(row, "a text that continues behind a NUL, where texts of HDF5 end")
}

/// Returns whether readers would truncate a text: a NUL is followed by another byte.
fn has_inner_nul(text: &[u8]) -> bool {
    let behind = text.iter().position(|byte| *byte == 0).and_then(|nul| text.get(nul..));
    behind.is_some_and(|behind| behind.iter().any(|byte| *byte != 0))
}

fn resized(bytes: &mut Vec<u8>, length: u64) -> &mut [u8] {
    bytes.resize(usize::try_from(length).unwrap_or(usize::MAX), 0);
    bytes
}

fn copy(from: &[u8], to: &mut [u8]) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::internal("a segment whose length is not the one it declares"));
    }
    to.copy_from_slice(from);
    Ok(())
}
