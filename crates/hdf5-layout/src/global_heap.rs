//! The global heap (specification, III.E): elements of variable length, in collections.
//!
//! Each element is an object of a collection, even an empty one. A collection contains as many as fit into 64 KiB; a
//! larger element has a collection of its own. So the number of an object in its collection follows from the number of
//! the element.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::Problem;

/// Maximum size in bytes of a collection with more than one object: readers fetch whole collections.
const COLLECTION: u64 = 1 << 16;

/// Minimum size of a collection in bytes.
const SMALLEST: u64 = 4096;

/// Size in bytes of the header of a collection, and of the header of each object.
pub(crate) const HEADER: u64 = 16;

/// Size in bytes of a global heap ID including the length in front of it.
pub(crate) const ID: u64 = 16;

/// The ID of a missing element.
pub(crate) const NIL: [u8; ID as usize] = [0; ID as usize];

/// The positions of a dataset's elements in the global heap.
///
/// Memory: 16 bytes per collection, and 16 more per element longer than 64 KiB. Any two neighbouring collections
/// together exceed 64 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapPlan {
    /// The first element and the start of each collection.
    collections: Vec<(u64, u64)>,
    /// The length of the only element of each collection whose element is longer than 64 KiB.
    long: BTreeMap<usize, u64>,
    elements: u64,
    /// Size in bytes of the used part of the last collection.
    filled: u64,
}

/// The position of an object: its collection, relative to the start of the heap, and its number in the collection.
struct HeapPlace {
    collection: u64,
    index: u32,
}

impl HeapPlan {
    /// Creates a heap without elements.
    pub fn new() -> Self {
        HeapPlan::default()
    }

    /// Adds an element of `bytes` bytes.
    ///
    /// # Errors
    /// Fails if it has 4 GiB or more.
    pub fn push(&mut self, bytes: u64) -> Result<(), Problem> {
        if bytes > u64::from(u32::MAX) {
            let what = "an element of variable length, in bytes,".to_owned();
            return Err(Problem::TooLarge { what, limit: u64::from(u32::MAX) });
        }
        if self.len() > i64::MAX as u64 {
            return Err(Problem::TooLarge { what: "the global heap".to_owned(), limit: i64::MAX as u64 });
        }
        self.place(bytes);
        Ok(())
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the size of all collections in bytes.
    pub fn len(&self) -> u64 {
        self.collections.last().map_or(0, |(_, start)| start + self.filled.max(SMALLEST))
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements == 0
    }

    /// Adds an element, and returns its place.
    fn place(&mut self, bytes: u64) -> HeapPlace {
        let object = HEADER + bytes.next_multiple_of(8);
        if self.collections.is_empty() || self.filled + object > COLLECTION {
            self.collections.push((self.elements, self.len()));
            self.filled = HEADER;
        }
        let (first, collection) = self.collections.last().copied().unwrap_or_default();
        self.filled += object;
        if self.filled > COLLECTION {
            self.long.insert(self.collections.len() - 1, bytes);
        }
        self.elements += 1;
        HeapPlace { collection, index: index_of(self.elements - 1, first) }
    }

    /// Returns the collection that contains a byte of the heap.
    pub(crate) fn collection_at(&self, byte: u64) -> Option<Collection> {
        self.collection(self.collections.partition_point(|(_, start)| *start <= byte).checked_sub(1)?)
    }

    /// Returns the collection that contains an element.
    pub(crate) fn collection_of(&self, element: u64) -> Option<Collection> {
        self.collection(self.collections.partition_point(|(first, _)| *first <= element).checked_sub(1)?)
    }

    fn collection(&self, number: usize) -> Option<Collection> {
        let (first, start) = *self.collections.get(number)?;
        let (end_element, end) = self.collections.get(number + 1).copied().unwrap_or((self.elements, self.len()));
        let long = self.long.get(&number).copied();
        Some(Collection { elements: first..end_element, bytes: start..end, long })
    }
}

/// Returns the number of an element in its collection; `first` is the collection's first element.
fn index_of(element: u64, first: u64) -> u32 {
    // A collection has fewer than 4096 objects; 0 is the free space.
    (element.saturating_sub(first) + 1) as u32
}

/// A collection of a heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collection {
    pub elements: Range<u64>,
    /// Relative to the start of the heap.
    pub bytes: Range<u64>,
    /// The length of its only element, if that is longer than 64 KiB.
    pub long: Option<u64>,
}

impl Collection {
    /// Appends the ID of an element, preceded by its length in units.
    pub fn id(&self, heap: u64, element: u64, parts: u32, out: &mut Vec<u8>) {
        out.extend(id(parts, heap + self.bytes.start, index_of(element, self.elements.start)));
    }

    /// Returns whether an element of `bytes` bytes fits.
    pub fn can_hold(&self, bytes: u64) -> bool {
        self.long.map_or(HEADER + HEADER + bytes <= self.bytes.end - self.bytes.start, |long| long == bytes)
    }

    /// Returns the bytes of the collection, given those of its elements.
    ///
    /// # Errors
    /// Fails if the elements differ from those of the plan.
    pub fn encode<'a>(&self, elements: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, Problem> {
        let length = self.bytes.end - self.bytes.start;
        let mut out = Vec::with_capacity(length.min(COLLECTION) as usize);
        collection_header(length, &mut out);
        let (mut count, mut used) = (0, HEADER);
        for element in elements {
            used += HEADER + (element.len() as u64).next_multiple_of(8);
            if used > length {
                return Err(CHANGED);
            }
            count += 1;
            object_header(count as u16, element.len() as u64, &mut out);
            out.extend(element);
            out.resize(used as usize, 0);
        }
        if count != self.elements.end - self.elements.start || (length > SMALLEST && used != length) {
            return Err(CHANGED);
        }
        free_space(length - used, &mut out);
        Ok(out)
    }

    /// Returns the bytes before a long element, and those after it.
    pub fn around(&self, long: u64) -> (Vec<u8>, Vec<u8>) {
        let length = self.bytes.end - self.bytes.start;
        let mut before = Vec::with_capacity(2 * HEADER as usize);
        collection_header(length, &mut before);
        object_header(1, long, &mut before);
        let behind = length.saturating_sub(2 * HEADER).saturating_sub(long);
        (before, vec![0; behind as usize])
    }
}

const CHANGED: Problem = Problem::Changed { what: "the length of an element in the global heap" };

fn id(parts: u32, collection: u64, index: u32) -> [u8; ID as usize] {
    let mut id = NIL;
    id[..4].copy_from_slice(&parts.to_le_bytes());
    id[4..12].copy_from_slice(&collection.to_le_bytes());
    id[12..].copy_from_slice(&index.to_le_bytes());
    id
}

fn collection_header(length: u64, out: &mut Vec<u8>) {
    // Version 1.
    out.extend(b"GCOL\x01\0\0\0");
    out.extend(length.to_le_bytes());
}

fn object_header(index: u16, length: u64, out: &mut Vec<u8>) {
    out.extend(index.to_le_bytes());
    // The reference count, which the library leaves at 0, and reserved bytes.
    out.extend([0; 6]);
    out.extend(length.to_le_bytes());
}

/// Appends the free space after the last object: the object 0, if its header fits.
fn free_space(length: u64, out: &mut Vec<u8>) {
    let end = out.len() + length as usize;
    if length >= HEADER {
        object_header(0, length, out);
    }
    out.resize(end, 0);
}

/// The heap of the attributes' values, which is held in memory.
pub(crate) struct AttributeHeap {
    start: u64,
    plan: HeapPlan,
    objects: Vec<Vec<u8>>,
}

impl AttributeHeap {
    /// Creates a heap that begins at this address of the file.
    pub fn new(start: u64) -> Self {
        AttributeHeap { start, plan: HeapPlan::new(), objects: Vec::new() }
    }

    /// Adds an object with a length of `parts` units; returns its ID, preceded by the length.
    pub fn insert(&mut self, bytes: &[u8], parts: usize) -> [u8; ID as usize] {
        let HeapPlace { collection, index } = self.plan.place(bytes.len() as u64);
        self.objects.push(bytes.to_vec());
        // Attributes with texts of 4 GiB or more were rejected.
        id(parts as u32, self.start + collection, index)
    }

    /// Returns the size of the heap in bytes.
    pub fn len(&self) -> u64 {
        self.plan.len()
    }

    /// Appends the collections.
    ///
    /// # Errors
    /// Never: the objects are those of the plan.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Problem> {
        let mut objects = self.objects.iter().map(Vec::as_slice);
        for number in 0..self.plan.collections.len() {
            let Some(collection) = self.plan.collection(number) else { continue };
            let count = (collection.elements.end - collection.elements.start) as usize;
            out.extend(collection.encode(objects.by_ref().take(count))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(lengths: &[u64]) -> HeapPlan {
        let mut plan = HeapPlan::new();
        for length in lengths {
            plan.push(*length).unwrap();
        }
        plan
    }

    #[test]
    fn fills_the_smallest_collection_with_free_space() {
        let collection = plan(&[3, 0]).collection_at(0).unwrap();
        let bytes = collection.encode([&b"abc"[..], b""]).unwrap();
        assert_eq!(bytes.len(), 4096);
        let mut expected = b"GCOL\x01\0\0\0\0\x10\0\0\0\0\0\0".to_vec();
        expected.extend(b"\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0abc\0\0\0\0\0");
        expected.extend(b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        // 16 + 24 + 16 bytes are used.
        expected.extend(b"\0\0\0\0\0\0\0\0\xc8\x0f\0\0\0\0\0\0");
        assert_eq!(bytes[..expected.len()], expected);
    }

    #[test]
    fn leaves_free_space_without_room_for_a_header_empty() {
        // 16 + 16 + 4056 = 4088 bytes.
        let collection = plan(&[4056]).collection_at(0).unwrap();
        let bytes = collection.encode([&[7; 4056][..]]).unwrap();
        assert_eq!(bytes[4080..], [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn starts_a_collection_where_the_last_is_full() {
        let heap = plan(&vec![84; 1000]);
        // Objects of 104 bytes: 630 of them are 65520 bytes, and the header is 16.
        assert_eq!(heap.collection_of(629).unwrap().elements, 0..630);
        assert_eq!(heap.collection_of(630).unwrap().elements, 630..1000);
        assert_eq!(heap.collection_of(630).unwrap().bytes.start, 65536);
        assert_eq!(heap.len(), 65536 + 16 + 370 * 104);
    }

    #[test]
    fn long_elements_are_alone() {
        let heap = plan(&[1, 70_001, 1]);
        let long = heap.collection_of(1).unwrap();
        assert_eq!((long.elements.clone(), long.long), (1..2, Some(70_001)));
        let (before, behind) = long.around(70_001);
        let whole = long.encode([&[9; 70_001][..]]).unwrap();
        assert_eq!(whole, [before, vec![9; 70_001], behind].concat());
        assert_eq!(heap.collection_at(heap.len() - 1).unwrap().elements, 2..3);
    }

    #[test]
    fn refuses_other_elements_than_those_of_the_plan() {
        let collection = plan(&[3000, 3000]).collection_at(0).unwrap();
        let element = [0; 3008];
        assert!(collection.encode([&element[..3000], &element[..3000]]).is_ok());
        for wrong in [vec![3000], vec![3000, 3008], vec![3000, 2000], vec![3000, 3000, 0]] {
            let elements = wrong.iter().map(|length| &element[..*length]);
            assert!(collection.encode(elements).is_err(), "{wrong:?}");
        }
    }
}
