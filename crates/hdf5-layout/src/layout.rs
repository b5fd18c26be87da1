//! Assigns positions in the file.
//!
//! The superblock comes first, then object headers in the order of the tree, then the attributes' part of the global
//! heap. Then come the nodes of all chunk indexes, then for each dataset its values and its part of the global heap.
//! All positions are multiples of eight bytes. Systems read whole pages of memory: so that values that cannot be read
//! leave metadata and other datasets readable, a dataset of 64 KiB or more shares no page. Smaller ones share pages with
//! each other, because files of annotated data have hundreds of them.

use crate::UNDEFINED;
use crate::chunk_index::{self, ChunkIndex};
use crate::dataset::Dataset;
use crate::error::{Error, Problem, Result};
use crate::global_heap::{AttributeHeap, HeapPlan};
use crate::object_header::{HeaderContext, ObjectAddresses, located};
use crate::object_id::ObjectId;
use crate::superblock::{self, SUPERBLOCK};
use crate::tree::{NodeKind, Tree};

/// Maximum length of a file for HDF5 and file systems.
const LARGEST_FILE: u64 = i64::MAX as u64;

/// Alignment of metadata and small datasets.
const ALIGNMENT: u64 = 8;

/// Alignment of other datasets: a page of memory.
const PAGE: u64 = 4096;

/// Datasets of fewer bytes are small. Zeros around the others are an eighth of these at most.
const LEAST_ALIGNED: u64 = 16 * PAGE;

/// A file: its length, and the position of everything in it.
#[derive(Debug, Clone)]
pub struct FileLayout {
    length: u64,
    /// The bytes from the start of the file to the first node of a chunk index.
    metadata: Vec<u8>,
    /// Sorted by their starts.
    regions: Vec<FileRegion>,
    datasets: Vec<PlacedDataset>,
    /// The addresses of all object headers.
    headers: Vec<u64>,
}

/// Consecutive bytes of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileRegion {
    pub start: u64,
    /// Zeros follow up to the next region.
    pub end: u64,
    /// The index of the dataset to which they belong.
    pub dataset: usize,
    pub content: RegionContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionContent {
    /// Nodes of the index of the dataset's chunks.
    Nodes,
    /// Elements of a fixed length.
    Values,
    /// Global heap IDs of elements of variable length.
    HeapIds,
    /// Collections of the global heap.
    Heap,
}

/// A dataset that has bytes in the file.
#[derive(Debug, Clone)]
pub(crate) struct PlacedDataset {
    pub id: ObjectId,
    pub path: String,
    pub index: Option<ChunkIndex>,
    pub addresses: chunk_index::ChunkAddresses,
    pub heap: Option<HeapPlan>,
    pub heap_address: u64,
    /// Size in bytes of the units in which the lengths of elements in the heap are counted.
    pub heap_part: u32,
}

impl FileLayout {
    /// Computes the layout of a file.
    ///
    /// # Errors
    /// Fails if something in the tree does not fit into HDF5's structures, such as a type of 64 KiB, or if the file
    /// would have 2^63 bytes.
    pub fn build(mut tree: Tree) -> Result<Self> {
        let scale_attributes = tree.scale_attributes();
        let mut datasets = Vec::new();
        for id in tree.ids() {
            let path = tree.path(id);
            if tree.is_dataset(id) {
                let dataset = tree.dataset_mut(id)?;
                if let Some(stored) = located(PlacedDataset::of(id, &path, dataset), || path)? {
                    datasets.push(stored);
                }
            }
        }
        // The lengths of headers do not depend on addresses: they are encoded once to determine the addresses, and
        // again with them.
        let mut places =
            ObjectAddresses { headers: vec![0; tree.objects().len()], storage: vec![UNDEFINED; tree.objects().len()] };
        let draft = encode(&tree, &scale_attributes, &places, 0)?;
        places.headers.clone_from(&draft.addresses);
        let heap_start = draft.bytes.len() as u64;
        let metadata_end = heap_start + draft.heap_bytes;
        let (regions, length) = place(&tree, &mut datasets, metadata_end)?;
        for stored in &datasets {
            let address = if stored.index.is_some() { stored.addresses.nodes } else { stored.addresses.chunks };
            if let Some(storage) = places.storage.get_mut(stored.id.index()) {
                *storage = address;
            }
        }
        let Encoded { bytes: mut metadata, addresses: headers, heap, .. } =
            encode(&tree, &scale_attributes, &places, heap_start)?;
        located(heap.encode(&mut metadata), || "/".to_owned())?;
        let superblock = superblock::encode(length, headers.first().copied().unwrap_or(UNDEFINED));
        if let Some(start) = metadata.get_mut(..superblock.len()) {
            start.copy_from_slice(&superblock);
        }
        Ok(FileLayout { length, metadata, regions, datasets, headers })
    }

    /// Returns the length of the file in bytes.
    #[allow(clippy::len_without_is_empty)] // no file is empty
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns the number of bytes of metadata held in memory.
    pub fn metadata_bytes(&self) -> u64 {
        self.metadata.len() as u64
    }

    /// Returns the address of an object's header, the value of an [object reference](crate::Datatype::ObjectReference).
    pub fn address(&self, object: ObjectId) -> Option<u64> {
        self.headers.get(object.index()).copied()
    }

    /// Returns the address of the root of a dataset's chunk index, if it has one.
    pub fn chunk_index_address(&self, dataset: ObjectId) -> Option<u64> {
        let stored = self.datasets.iter().find(|stored| stored.id == dataset)?;
        stored.index.as_ref().map(|_| stored.addresses.nodes)
    }

    pub(crate) fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// Returns the region that contains a byte after the metadata or, for bytes between regions, the one before it.
    pub(crate) fn region_at(&self, byte: u64) -> Option<(&FileRegion, &PlacedDataset)> {
        let number = self.regions.partition_point(|region| region.start <= byte).checked_sub(1)?;
        let region = self.regions.get(number)?;
        Some((region, self.datasets.get(region.dataset)?))
    }

    /// Returns the start of the next region after a byte, or the end of the file.
    pub(crate) fn next_region(&self, byte: u64) -> u64 {
        let number = self.regions.partition_point(|region| region.start <= byte);
        self.regions.get(number).map_or(self.length, |region| region.start)
    }
}

impl PlacedDataset {
    /// Creates a dataset without addresses, if it has bytes in the file. Moves the plan of its heap out of `dataset`.
    fn of(id: ObjectId, path: &str, dataset: &mut Dataset) -> std::result::Result<Option<Self>, Problem> {
        if dataset.stored_bytes()? == 0 || dataset.is_unwritten {
            return Ok(None);
        }
        let index = match (dataset.chunk_grid(), &dataset.chunk_shape) {
            (Some(grid), Some(shape)) => {
                let bytes = u32::try_from(dataset.chunk_bytes()?);
                let bytes = bytes.map_err(|_| Problem::Chunk { reason: "4 GiB or more" })?;
                Some(ChunkIndex::new(grid, shape.clone(), bytes, dataset.chunks()?))
            }
            _ => None,
        };
        Ok(Some(PlacedDataset {
            id,
            path: path.to_owned(),
            index,
            addresses: chunk_index::ChunkAddresses { nodes: UNDEFINED, chunks: UNDEFINED },
            heap: dataset.heap.take(),
            heap_address: UNDEFINED,
            heap_part: dataset.datatype.heap_part(),
        }))
    }
}

/// The superblock's space, followed by all object headers.
struct Encoded {
    bytes: Vec<u8>,
    /// The addresses of the objects' headers.
    addresses: Vec<u64>,
    heap: AttributeHeap,
    heap_bytes: u64,
}

fn encode(
    tree: &Tree,
    scale_attributes: &[Vec<(String, crate::AttributeMessage)>],
    places: &ObjectAddresses,
    heap_start: u64,
) -> Result<Encoded> {
    let context = HeaderContext { objects: tree.objects(), addresses: places, scale_attributes };
    let mut heap = AttributeHeap::new(heap_start);
    let mut bytes = vec![0; SUPERBLOCK as usize];
    let mut addresses = Vec::with_capacity(tree.objects().len());
    for id in tree.ids() {
        let address = bytes.len() as u64;
        addresses.push(address);
        bytes.extend(located(context.encode(id, address, &mut heap), || tree.path(id))?);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    let heap_bytes = heap.len();
    Ok(Encoded { bytes, addresses, heap, heap_bytes })
}

/// Assigns datasets their positions after the metadata; returns the regions and the length of the file.
fn place(tree: &Tree, datasets: &mut [PlacedDataset], start: u64) -> Result<(Vec<FileRegion>, u64)> {
    let mut regions = Vec::new();
    let mut end = start;
    // Whether the last region may share its page with small datasets.
    let mut shares_page = false;
    let mut add = |number: usize, path: &str, content: RegionContent, bytes: Option<u64>| -> Result<u64> {
        let too_large = || Error::new(path, Problem::TooLarge { what: "the file".to_owned(), limit: LARGEST_FILE });
        let is_small = content != RegionContent::Nodes && bytes.is_some_and(|bytes| bytes < LEAST_ALIGNED);
        let alignment = if content == RegionContent::Nodes || is_small && shares_page { ALIGNMENT } else { PAGE };
        shares_page = is_small;
        let start = end.checked_next_multiple_of(alignment).ok_or_else(too_large)?;
        let region_end = bytes.and_then(|bytes| start.checked_add(bytes));
        end = region_end.filter(|end| *end <= LARGEST_FILE).ok_or_else(too_large)?;
        if end > start {
            regions.push(FileRegion { start, end, dataset: number, content });
        }
        Ok(start)
    };
    for (number, stored) in datasets.iter_mut().enumerate() {
        if let Some(index) = &stored.index {
            let bytes = index.nodes().checked_mul(index.node_bytes());
            stored.addresses.nodes = add(number, &stored.path, RegionContent::Nodes, bytes)?;
        }
    }
    for (number, stored) in datasets.iter_mut().enumerate() {
        let Some(NodeKind::Dataset(dataset)) = tree.objects().get(stored.id.index()).map(|object| &object.kind) else {
            continue;
        };
        let bytes = located(dataset.stored_bytes(), || stored.path.clone())?;
        let content = if stored.heap.is_some() { RegionContent::HeapIds } else { RegionContent::Values };
        stored.addresses.chunks = add(number, &stored.path, content, Some(bytes))?;
        if let Some(heap) = &stored.heap {
            stored.heap_address = add(number, &stored.path, RegionContent::Heap, Some(heap.len()))?;
        }
    }
    Ok((regions, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttributeMessage, Dataspace, Datatype};

    #[test]
    fn an_empty_tree_is_a_superblock_and_a_group() {
        let layout = FileLayout::build(Tree::new()).unwrap();
        assert_eq!(layout.address(ObjectId::ROOT), Some(48));
        assert_eq!(layout.len(), layout.metadata_bytes());
        assert_eq!(layout.metadata()[48..52], *b"OHDR");
        // Attribute Info comes first, because a reader (pyfive) reads past its end.
        assert_eq!(layout.metadata()[58], 0x15);
    }

    #[test]
    fn metadata_do_not_grow_with_the_values() {
        let layout = |length: u64| {
            let mut tree = Tree::new();
            let dataset = Dataset::new(Datatype::signed(8), Dataspace::vector(length)).chunked(vec![1]);
            tree.dataset(ObjectId::ROOT, "a", dataset).unwrap();
            FileLayout::build(tree).unwrap()
        };
        let (small, large) = (layout(1), layout(1 << 50));
        assert_eq!(small.metadata_bytes(), large.metadata_bytes());
        // For each chunk: its 8 bytes, an address, a key with two offsets, and a little for the rest of the nodes.
        let a_chunk = large.len() / (1 << 50);
        assert_eq!(a_chunk, 8 + 8 + 24 + 1);
    }

    #[test]
    fn refuses_files_too_long_for_file_systems() {
        let mut tree = Tree::new();
        for name in ["a", "b"] {
            let dataset = Dataset::new(Datatype::signed(1), Dataspace::vector(1 << 62));
            tree.dataset(ObjectId::ROOT, name, dataset).unwrap();
        }
        let error = FileLayout::build(tree).unwrap_err();
        assert_eq!(error.to_string(), "/b: the file is larger than HDF5's limit of 9223372036854775807");
    }

    #[test]
    fn refuses_types_too_large_for_a_message() {
        let members = (0..9000).map(|number| (format!("label {number}"), vec![0, 0])).collect();
        let datatype = Datatype::Enumeration { base: Box::new(Datatype::signed(2)), members };
        let mut tree = Tree::new();
        let group = tree.group(ObjectId::ROOT, "group").unwrap();
        tree.dataset(group, "labels", Dataset::new(datatype.clone(), Dataspace::Scalar)).unwrap();
        let error = FileLayout::build(tree).unwrap_err();
        assert_eq!(error.to_string(), "/group/labels: the datatype is larger than HDF5's limit of 65535");
        let mut tree = Tree::new();
        let attribute = AttributeMessage::new(datatype, Dataspace::Scalar, vec![0, 0]);
        tree.attribute(ObjectId::ROOT, "label", attribute).unwrap();
        assert!(FileLayout::build(tree).is_err());
    }

    #[test]
    fn refuses_attributes_with_reserved_names() {
        let mut tree = Tree::new();
        let scale = tree.dataset(ObjectId::ROOT, "x", Dataset::new(Datatype::signed(1), Dataspace::vector(1))).unwrap();
        tree.make_scale(scale, "x").unwrap();
        tree.attribute(scale, "CLASS", AttributeMessage::text("mine")).unwrap();
        assert!(FileLayout::build(tree).is_err());
    }
}
