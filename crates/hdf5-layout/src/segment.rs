//! Divides a range of a file into segments: metadata, and values that the caller provides.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Problem, Result};
use crate::global_heap::{Collection, HeapPlan, ID};
use crate::layout::{FileLayout, FileRegion, PlacedDataset, RegionContent};
use crate::object_id::ObjectId;

/// Maximum number of elements in a segment of global heap IDs.
const MAX_IDS: u64 = 1 << 16;

/// Consecutive bytes of a file that come from one source.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the comments of the variants name the fields")]
pub enum Segment<'a> {
    /// Bytes that the layout generates.
    Metadata(Cow<'a, [u8]>),
    /// Bytes of a dataset's elements, in the order of the elements or, for a chunked dataset, chunk by chunk.
    Values { dataset: ObjectId, range: Range<u64> },
    /// Global heap IDs of elements of variable length; encoding them requires the elements' lengths.
    HeapIds(HeapIds<'a>),
    /// A part of a collection of elements of variable length, at most 64 KiB; encoding it requires all its elements.
    HeapCollection(HeapCollection<'a>),
    /// Bytes of one element of variable length that is longer than 64 KiB.
    Element { dataset: ObjectId, element: u64, range: Range<u64> },
}

/// Global heap IDs of elements of a dataset.
#[derive(Debug, Clone)]
pub struct HeapIds<'a> {
    stored: &'a PlacedDataset,
    heap: &'a HeapPlan,
    /// The range of the IDs in bytes, relative to the first ID of the dataset.
    range: Range<u64>,
}

/// Elements of a dataset in the global heap.
#[derive(Debug, Clone)]
pub struct HeapCollection<'a> {
    stored: &'a PlacedDataset,
    collection: Collection,
    /// The range of the segment in bytes, relative to the collection.
    range: Range<u64>,
}

/// An iterator over the segments of a range.
#[derive(Debug, Clone)]
pub struct Segments<'a> {
    layout: &'a FileLayout,
    range: Range<u64>,
}

/// Reads the values of datasets. Elements are numbered in the order in which they are stored; in a chunked dataset,
/// chunk by chunk.
pub trait SegmentValues {
    /// The error type, which can represent the errors of this crate.
    type Error: From<Error>;

    /// Fills `out` with bytes of elements of a fixed length, starting at byte `start` of all elements.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn values(&mut self, dataset: ObjectId, start: u64, out: &mut [u8]) -> std::result::Result<(), Self::Error>;

    /// Returns the lengths in bytes of elements of variable length.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn lengths(&mut self, dataset: ObjectId, elements: Range<u64>) -> std::result::Result<Vec<u64>, Self::Error>;

    /// Returns elements of variable length, at most 64 KiB in total.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn elements(&mut self, dataset: ObjectId, elements: Range<u64>) -> std::result::Result<Vec<Vec<u8>>, Self::Error>;

    /// Fills `out` with bytes of one element of variable length, starting at its byte `start`.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn element(
        &mut self,
        dataset: ObjectId,
        element: u64,
        start: u64,
        out: &mut [u8],
    ) -> std::result::Result<(), Self::Error>;
}

impl FileLayout {
    /// Returns the segments of a range of the file, cut at the end of the file.
    pub fn segments(&self, range: Range<u64>) -> Segments<'_> {
        Segments { layout: self, range: range.start..range.end.min(self.len()) }
    }

    /// Fills `out` with the bytes of the file from `offset` on.
    ///
    /// # Errors
    /// Fails if the range is not within the file, or if values cannot be read or differ from those for which the layout
    /// was built.
    pub fn read<V: SegmentValues>(
        &self,
        offset: u64,
        values: &mut V,
        out: &mut [u8],
    ) -> std::result::Result<(), V::Error> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.len());
        let end = end.ok_or_else(|| Error::new("/", Problem::Changed { what: "the length of the file" }))?;
        let mut out = out;
        for segment in self.segments(offset..end) {
            // The segments of a range have the same total length.
            let (now, behind) = out.split_at_mut((segment.len() as usize).min(out.len()));
            match segment {
                Segment::Metadata(bytes) => copy(&bytes, now),
                Segment::Values { dataset, range } => values.values(dataset, range.start, now)?,
                Segment::HeapIds(ids) => copy(&ids.encode(&values.lengths(ids.dataset(), ids.elements())?)?, now),
                Segment::HeapCollection(part) => {
                    let elements = values.elements(part.dataset(), part.elements())?;
                    copy(&part.encode(elements.iter().map(Vec::as_slice))?, now);
                }
                Segment::Element { dataset, element, range } => values.element(dataset, element, range.start, now)?,
            }
            out = behind;
        }
        Ok(())
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    for (from, to) in from.iter().zip(to) {
        *to = *from;
    }
}

impl Segment<'_> {
    /// Returns the number of bytes; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        match self {
            Segment::Metadata(bytes) => bytes.len() as u64,
            Segment::Values { range, .. } | Segment::Element { range, .. } => range.end - range.start,
            Segment::HeapIds(ids) => ids.range.end - ids.range.start,
            Segment::HeapCollection(part) => part.range.end - part.range.start,
        }
    }
}

impl HeapIds<'_> {
    /// Returns the dataset of the elements.
    pub fn dataset(&self) -> ObjectId {
        self.stored.id
    }

    /// Returns the elements whose lengths [`HeapIds::encode`] requires.
    pub fn elements(&self) -> Range<u64> {
        self.range.start / ID..self.range.end.div_ceil(ID)
    }

    /// Returns the bytes of the segment, given the lengths of its elements in bytes.
    ///
    /// # Errors
    /// Fails if the lengths cannot be those for which the layout was built.
    pub fn encode(&self, lengths: &[u64]) -> Result<Vec<u8>> {
        let changed = || Error::new(self.stored.path.clone(), Problem::Changed { what: "the length of an element" });
        let elements = self.elements();
        if lengths.len() as u64 != elements.end - elements.start {
            return Err(changed());
        }
        let part = u64::from(self.stored.heap_part);
        let mut out = Vec::with_capacity(lengths.len() * ID as usize);
        let mut collection = self.heap.collection_of(elements.start).ok_or_else(changed)?;
        for (element, length) in elements.clone().zip(lengths) {
            if element >= collection.elements.end {
                collection = self.heap.collection_of(element).ok_or_else(changed)?;
            }
            let parts =
                u32::try_from(length / part).ok().filter(|_| length % part == 0 && collection.can_hold(*length));
            collection.id(self.stored.heap_address, element, parts.ok_or_else(changed)?, &mut out);
        }
        let start = (self.range.start % ID) as usize;
        out.truncate(start + (self.range.end - self.range.start) as usize);
        out.drain(..start);
        Ok(out)
    }
}

impl HeapCollection<'_> {
    /// Returns the dataset of the elements.
    pub fn dataset(&self) -> ObjectId {
        self.stored.id
    }

    /// Returns the elements that [`HeapCollection::encode`] requires.
    pub fn elements(&self) -> Range<u64> {
        self.collection.elements.clone()
    }

    /// Returns the bytes of the segment, given all elements of the collection.
    ///
    /// # Errors
    /// Fails if the lengths of the elements differ from those for which the layout was built.
    pub fn encode<'e>(&self, elements: impl IntoIterator<Item = &'e [u8]>) -> Result<Vec<u8>> {
        let whole = self.collection.encode(elements);
        let mut whole = whole.map_err(|problem| Error::new(self.stored.path.clone(), problem))?;
        whole.truncate(self.range.end as usize);
        whole.drain(..self.range.start as usize);
        Ok(whole)
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let Range { start, end } = self.range;
        if start >= end {
            return None;
        }
        let segment = self.layout.segment(start, end);
        self.range.start += segment.len();
        Some(segment)
    }
}

impl FileLayout {
    /// Returns the segment from `start` on, which ends at `end` or earlier.
    fn segment(&self, start: u64, end: u64) -> Segment<'_> {
        let metadata = self.metadata();
        if let Some(rest) =
            usize::try_from(start).ok().and_then(|start| metadata.get(start..)).filter(|rest| !rest.is_empty())
        {
            let length = (end - start).min(rest.len() as u64) as usize;
            return Segment::Metadata(Cow::Borrowed(&rest[..length]));
        }
        match self.region_at(start) {
            Some((region, stored)) if start < region.end => region.segment(stored, start, end.min(region.end)),
            // Zeros before the next region.
            _ => Segment::Metadata(Cow::Owned(vec![0; (end.min(self.next_region(start)) - start) as usize])),
        }
    }
}

impl FileRegion {
    /// Returns the segment of a range of the file that lies within this region.
    fn segment<'a>(&self, stored: &'a PlacedDataset, start: u64, end: u64) -> Segment<'a> {
        let range = start - self.start..end - self.start;
        match (self.content, &stored.index, &stored.heap) {
            (RegionContent::Nodes, Some(index), _) => {
                let bytes = index.node_bytes();
                let (number, within) = (range.start / bytes, range.start % bytes);
                let length = (bytes - within).min(range.end - range.start);
                let mut node = index.node(number, stored.addresses);
                node.truncate((within + length) as usize);
                node.drain(..within as usize);
                Segment::Metadata(Cow::Owned(node))
            }
            (RegionContent::HeapIds, _, Some(heap)) => {
                let end = range.end.min((range.start / ID + MAX_IDS) * ID);
                Segment::HeapIds(HeapIds { stored, heap, range: range.start..end })
            }
            (RegionContent::Heap, _, Some(heap)) => heap_segment(stored, heap, range),
            _ => Segment::Values { dataset: stored.id, range },
        }
    }
}

/// Returns the segment of a range of a dataset's heap.
fn heap_segment<'a>(stored: &'a PlacedDataset, heap: &'a HeapPlan, range: Range<u64>) -> Segment<'a> {
    let Some(collection) = heap.collection_at(range.start) else {
        return Segment::Values { dataset: stored.id, range };
    };
    let within = range.start - collection.bytes.start;
    let end = range.end.min(collection.bytes.end) - collection.bytes.start;
    let Some(long) = collection.long else {
        return Segment::HeapCollection(HeapCollection { stored, collection, range: within..end });
    };
    let (mut before, mut behind) = collection.around(long);
    let element = before.len() as u64..before.len() as u64 + long;
    if within < element.start {
        before.truncate(end.min(element.start) as usize);
        before.drain(..within as usize);
        Segment::Metadata(Cow::Owned(before))
    } else if within < element.end {
        let range = within - element.start..end.min(element.end) - element.start;
        Segment::Element { dataset: stored.id, element: collection.elements.start, range }
    } else {
        behind.truncate((end - element.end) as usize);
        behind.drain(..(within - element.end) as usize);
        Segment::Metadata(Cow::Owned(behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Dataspace, Datatype, Tree};

    /// A dataset of texts of these lengths.
    fn texts(lengths: &[u64]) -> FileLayout {
        let mut heap = HeapPlan::new();
        lengths.iter().for_each(|length| heap.push(*length).unwrap());
        let mut tree = Tree::new();
        let dataset = Dataset::new(Datatype::text(), Dataspace::vector(lengths.len() as u64)).heap(heap);
        tree.dataset(ObjectId::ROOT, "texts", dataset).unwrap();
        FileLayout::build(tree).unwrap()
    }

    #[test]
    fn segments_are_as_long_as_their_range() {
        let layout = texts(&[3, 70_000, 5, 100_000]);
        for (start, end) in [(0, layout.len()), (7, 70_001), (layout.len() - 1, u64::MAX), (9, 9)] {
            let total: u64 = layout.segments(start..end).map(|segment| segment.len()).sum();
            assert_eq!(total, end.min(layout.len()) - start);
        }
    }

    #[test]
    fn refuses_other_lengths_than_those_of_the_layout() {
        let layout = texts(&[3, 4096, 70_000]);
        let mut segments = layout.segments(layout.metadata_bytes()..layout.len());
        let ids = segments.find(|segment| !matches!(segment, Segment::Metadata(_)));
        let Some(Segment::HeapIds(ids)) = ids else { panic!("{ids:?}") };
        assert_eq!(ids.encode(&[3, 4096, 70_000]).unwrap().len(), 48);
        assert!(ids.encode(&[3, 4096]).is_err());
        assert!(ids.encode(&[3, 4096, 70_001]).is_err());
        assert!(ids.encode(&[70_000, 4096, 70_000]).is_err());
    }
}
