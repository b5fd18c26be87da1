//! Attributes that are too large for messages (specification, III.A.2 and III.G): all attributes of the object are
//! stored outside its header, as "huge objects" of a fractal heap that contains nothing else. One version 2 B-tree
//! finds them by the hash of their names, another one locates the objects of the heap.

use crate::UNDEFINED;
use crate::checksum::{self, lookup3};
use crate::error::Problem;

/// The attributes of an object, outside its header.
pub(crate) struct DenseAttributes {
    /// The address of the fractal heap.
    pub heap: u64,
    /// The address of the B-tree of names.
    pub names: u64,
    pub bytes: Vec<u8>,
}

/// Sizes in bytes of the headers of a fractal heap and of a version 2 B-tree.
const HEAP_HEADER: u64 = 146;
const TREE_HEADER: u64 = 38;

/// Sizes in bytes of the part of a leaf before its records, and of its checksum.
const LEAF_HEADER: u64 = 6;
const CHECKSUM: u64 = 4;

/// "Indirectly accessed, non-filtered 'huge' fractal heap objects": address, length, ID.
const HUGE_OBJECTS: u8 = 1;
const HUGE_RECORD: u64 = 24;

/// "'Name' field for attributes": heap ID, message flags, order of creation, hash.
const ATTRIBUTE_NAMES: u8 = 8;
const NAME_RECORD: u64 = 17;

/// Encodes attribute messages, at most 65,535, for storage at an address.
///
/// # Errors
/// Fails if their size exceeds the range of addresses.
pub(crate) fn encode(attributes: &[(&str, Vec<u8>)], address: u64) -> Result<DenseAttributes, Problem> {
    let count = attributes.len() as u64;
    let leaf = |record: u64| (LEAF_HEADER + count * record + CHECKSUM).next_multiple_of(8);
    let heap = address;
    let huge = (heap + HEAP_HEADER).next_multiple_of(8);
    let huge_leaf = (huge + TREE_HEADER).next_multiple_of(8);
    let names = huge_leaf + leaf(HUGE_RECORD);
    let names_leaf = (names + TREE_HEADER).next_multiple_of(8);
    let messages = names_leaf + leaf(NAME_RECORD);

    let mut out = Vec::new();
    let pad = |out: &mut Vec<u8>, to: u64| out.resize((to - address) as usize, 0);
    heap_header(count, attributes.iter().map(|(_, message)| message.len() as u64).sum(), huge, &mut out);
    pad(&mut out, huge);
    tree_header(HUGE_OBJECTS, HUGE_RECORD, leaf(HUGE_RECORD), huge_leaf, count, &mut out);
    pad(&mut out, huge_leaf);
    let mut records = Vec::new();
    let mut at = messages;
    for (id, (_, message)) in (1_u64..).zip(attributes) {
        records.extend([at, message.len() as u64, id].iter().flat_map(|field| field.to_le_bytes()));
        at += (message.len() as u64).next_multiple_of(8);
    }
    tree_leaf(HUGE_OBJECTS, &records, &mut out);
    pad(&mut out, names);
    tree_header(ATTRIBUTE_NAMES, NAME_RECORD, leaf(NAME_RECORD), names_leaf, count, &mut out);
    pad(&mut out, names_leaf);
    tree_leaf(ATTRIBUTE_NAMES, &name_records(attributes), &mut out);
    pad(&mut out, messages);
    for (_, message) in attributes {
        out.extend(message);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    Ok(DenseAttributes { heap, names, bytes: out })
}

/// Returns the records of names, sorted by hash and, for equal hashes, by name.
fn name_records(attributes: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut sorted: Vec<(u32, &str, u32)> =
        (0_u32..).zip(attributes).map(|(number, (name, _))| (lookup3(name.as_bytes()), *name, number)).collect();
    sorted.sort_unstable();
    let mut records = Vec::new();
    for (hash, _, number) in sorted {
        // A heap ID: version 0, a huge object, and the ID of its record.
        records.push(0x10);
        records.extend(&(u64::from(number) + 1).to_le_bytes()[..7]);
        records.push(0);
        records.extend(number.to_le_bytes());
        records.extend(hash.to_le_bytes());
    }
    records
}

/// Appends the header of a fractal heap without managed and tiny objects, with the library's parameters for attributes.
fn heap_header(objects: u64, bytes: u64, tree: u64, out: &mut Vec<u8>) {
    let start = out.len();
    // Version 0, 8-byte heap IDs, no filters; direct blocks have checksums; managed objects have at most 4096 bytes.
    out.extend(b"FRHP\0\x08\0\0\0\x02");
    out.extend(4096_u32.to_le_bytes());
    // The next ID of a huge object, and the address of their B-tree.
    out.extend((objects + 1).to_le_bytes());
    out.extend(tree.to_le_bytes());
    // Free space of managed blocks, its manager; managed space, its allocated size, the allocation offset, objects.
    out.extend([0, UNDEFINED, 0, 0, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    out.extend([bytes, objects, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    // The doubling table: width, smallest and largest direct block, bits of an offset, first rows, root block, its
    // rows.
    out.extend(4_u16.to_le_bytes());
    out.extend(1024_u64.to_le_bytes());
    out.extend(65536_u64.to_le_bytes());
    out.extend(40_u16.to_le_bytes());
    out.extend(1_u16.to_le_bytes());
    out.extend(UNDEFINED.to_le_bytes());
    out.extend(0_u16.to_le_bytes());
    checksum::append(out, start);
}

/// Appends the header of a version 2 B-tree with a single leaf that contains all records.
fn tree_header(kind: u8, record: u64, node: u64, root: u64, records: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(b"BTHD\0");
    out.push(kind);
    // At most 65,535 records of at most 24 bytes each.
    out.extend((node as u32).to_le_bytes());
    out.extend((record as u16).to_le_bytes());
    // Depth, and the percentages at which nodes are split and merged.
    out.extend([0, 0, 100, 40]);
    out.extend(root.to_le_bytes());
    out.extend((records as u16).to_le_bytes());
    out.extend(records.to_le_bytes());
    checksum::append(out, start);
}

fn tree_leaf(kind: u8, records: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(b"BTLF\0");
    out.push(kind);
    out.extend(records);
    checksum::append(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_lead_to_the_messages() {
        let attributes = [("b", vec![1; 70_000]), ("a", vec![2; 5]), ("c", vec![3; 80_000])];
        let base = 1 << 20;
        let dense = encode(&attributes, base).unwrap();
        let at = |address: u64| &dense.bytes[(address - base) as usize..];
        let field = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().unwrap());
        assert_eq!(at(dense.heap)[..4], *b"FRHP");
        let heap = at(dense.heap);
        assert_eq!(heap[142..146], lookup3(&heap[..142]).to_le_bytes());
        let objects = at(field(at(field(heap, 22)), 16));
        let names = at(field(at(dense.names), 16));
        assert_eq!((&objects[..6], &names[..6]), (&b"BTLF\0\x01"[..], &b"BTLF\0\x08"[..]));
        let mut hashes = Vec::new();
        for record in 0..3 {
            let name = &names[6 + 17 * record..][..17];
            let number = u32::from_le_bytes(name[9..13].try_into().unwrap()) as usize;
            let hash = u32::from_le_bytes(name[13..].try_into().unwrap());
            assert_eq!(hash, lookup3(attributes[number].0.as_bytes()));
            hashes.push(hash);
            assert_eq!(name[0], 0x10);
            let object = &objects[6 + 24 * (usize::from(name[1]) - 1)..][..24];
            assert_eq!(u64::from(name[1]), field(object, 16));
            let message = &at(field(object, 0))[..field(object, 8) as usize];
            assert_eq!(message, attributes[number].1);
        }
        assert!(hashes.is_sorted());
    }
}
