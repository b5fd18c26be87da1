//! The version 1 B-tree of a dataset's chunks (specification, III.A.1, nodes of type 1).
//!
//! All chunks exist, have the same size and are consecutive, so each node is computed from its number when it is read,
//! and none is kept in memory. All readers support this index; the indexes that HDF5 1.10 introduced require a library
//! of that version.

use std::ops::Range;

use crate::UNDEFINED;

/// Number of children of a full node: twice the "Indexed Storage Internal Node K", which is 32 if the superblock has no
/// extension.
const CHILDREN: u64 = 64;

/// Size in bytes of the part of a node before its keys and children.
const HEADER: u64 = 24;

/// The index of a dataset's chunks.
#[derive(Debug, Clone)]
pub(crate) struct ChunkIndex {
    /// Number of chunks along each axis.
    grid: Vec<u64>,
    shape: Vec<u64>,
    chunk_bytes: u32,
    chunks: u64,
    /// Number of nodes of each level, from the leaves to the root.
    levels: Vec<u64>,
}

/// The positions in the file of the first node and of the first chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkAddresses {
    pub nodes: u64,
    pub chunks: u64,
}

impl ChunkIndex {
    /// Creates the index of `chunks` chunks, at least one, with this shape and size in bytes.
    pub fn new(grid: Vec<u64>, shape: Vec<u64>, chunk_bytes: u32, chunks: u64) -> Self {
        let mut levels = vec![chunks.div_ceil(CHILDREN)];
        while let Some(nodes) = levels.last().copied().filter(|nodes| *nodes > 1) {
            levels.push(nodes.div_ceil(CHILDREN));
        }
        ChunkIndex { grid, shape, chunk_bytes, chunks, levels }
    }

    /// Returns the size of a node in bytes.
    pub fn node_bytes(&self) -> u64 {
        let key = 8 + 8 * (self.grid.len() as u64 + 1);
        HEADER + (CHILDREN + 1) * key + CHILDREN * 8
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u64 {
        self.levels.iter().sum()
    }

    /// Returns the bytes of a node. The root is the first node, and each level follows the one above it.
    pub fn node(&self, number: u64, addresses: ChunkAddresses) -> Vec<u8> {
        let (level, at, first) = self.level_of(number);
        let nodes = self.levels.get(level).copied().unwrap_or(0);
        let children = self.children(level, at);
        let address = |number: u64| addresses.nodes + number * self.node_bytes();

        let mut out = Vec::with_capacity(self.node_bytes() as usize);
        out.extend(b"TREE");
        // There are fewer than 12 levels.
        out.extend([1, level as u8]);
        out.extend(((children.end - children.start) as u16).to_le_bytes());
        let left = if at > 0 { address(first + at - 1) } else { UNDEFINED };
        let right = if at + 1 < nodes { address(first + at + 1) } else { UNDEFINED };
        out.extend(left.to_le_bytes());
        out.extend(right.to_le_bytes());
        for child in children.clone() {
            self.key(self.first_chunk(level, child), &mut out);
            let below = match level {
                0 => addresses.chunks + child * u64::from(self.chunk_bytes),
                // The level below begins where this one ends.
                _ => address(first + nodes + child),
            };
            out.extend(below.to_le_bytes());
        }
        self.key(self.first_chunk(level, children.end), &mut out);
        out.resize(self.node_bytes() as usize, 0);
        out
    }

    /// Returns the level of a node, its number on that level, and the number of that level's first node.
    fn level_of(&self, number: u64) -> (usize, u64, u64) {
        let mut first = 0;
        for (level, nodes) in self.levels.iter().enumerate().rev() {
            if number < first + nodes {
                return (level, number - first, first);
            }
            first += nodes;
        }
        (0, 0, 0)
    }

    /// Returns the children of a node: nodes of the level below, or chunks.
    fn children(&self, level: usize, at: u64) -> Range<u64> {
        let all = match level.checked_sub(1) {
            Some(below) => self.levels.get(below).copied().unwrap_or(0),
            None => self.chunks,
        };
        let start = at * CHILDREN;
        start..start.saturating_add(CHILDREN).min(all)
    }

    /// Returns the first chunk below a child of a node on a level; the number of chunks after the last child.
    fn first_chunk(&self, level: usize, child: u64) -> u64 {
        let chunks = (0..level).try_fold(child, |chunks, _| chunks.checked_mul(CHILDREN));
        chunks.unwrap_or(self.chunks).min(self.chunks)
    }

    /// Appends the key of a chunk: its size, the mask of skipped filters, and its offset along each axis and within an
    /// element. The key after the last chunk has the offset of a chunk one further along all axes.
    fn key(&self, chunk: u64, out: &mut Vec<u8>) {
        let is_end = chunk >= self.chunks;
        out.extend(if is_end { 0 } else { self.chunk_bytes }.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        let start = out.len();
        out.resize(start + 8 * (self.grid.len() + 1), 0);
        let mut rest = if is_end { self.chunks - 1 } else { chunk };
        for (axis, (chunks, length)) in self.grid.iter().zip(&self.shape).enumerate().rev() {
            let at = rest % chunks + u64::from(is_end);
            rest /= chunks;
            let offset = at.saturating_mul(*length);
            out[start + 8 * axis..][..8].copy_from_slice(&offset.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: ChunkAddresses = ChunkAddresses { nodes: 1000, chunks: 1 << 40 };

    fn u64_at(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..][..8].try_into().unwrap())
    }

    /// Returns the chunks found by a search from the root, with their offsets, in order.
    fn walk(index: &ChunkIndex, node: u64) -> Vec<(Vec<u64>, u64)> {
        let bytes = index.node(node, ADDRESSES);
        assert_eq!(bytes.len() as u64, index.node_bytes());
        let (level, used) = (bytes[5], u16::from_le_bytes([bytes[6], bytes[7]]));
        let axes = index.grid.len();
        let mut found = Vec::new();
        for child in 0..usize::from(used) {
            let at = 24 + child * (8 + 8 * (axes + 1) + 8);
            let offsets: Vec<u64> = (0..axes).map(|axis| u64_at(&bytes, at + 8 + 8 * axis)).collect();
            let address = u64_at(&bytes, at + 8 + 8 * (axes + 1));
            if level == 0 {
                found.push((offsets, address));
            } else {
                let below = walk(index, (address - ADDRESSES.nodes) / index.node_bytes());
                assert_eq!(below[0].0, offsets);
                found.extend(below);
            }
        }
        found
    }

    #[test]
    fn leads_to_each_chunk() {
        for (grid, shape) in
            [(vec![1], vec![10]), (vec![64], vec![2]), (vec![65], vec![2]), (vec![70, 3, 40], vec![5, 1, 7])]
        {
            let chunks = grid.iter().product();
            let index = ChunkIndex::new(grid.clone(), shape.clone(), 48, chunks);
            let found = walk(&index, 0);
            assert_eq!(found.len() as u64, chunks);
            for (number, (offsets, address)) in found.iter().enumerate() {
                assert_eq!(*address, ADDRESSES.chunks + 48 * number as u64);
                let place = offsets
                    .iter()
                    .zip(&shape)
                    .zip(&grid)
                    .fold(0, |at, ((offset, length), chunks)| at * chunks + offset / length);
                assert_eq!(place, number as u64);
            }
        }
    }

    #[test]
    fn siblings_lead_through_a_level() {
        let index = ChunkIndex::new(vec![9000], vec![1], 8, 9000);
        assert_eq!(index.levels, [141, 3, 1]);
        // The leaves follow the root and the three nodes below it.
        let mut at = 4;
        for expected in 5..145 {
            let right = u64_at(&index.node(at, ADDRESSES), 16);
            at = (right - ADDRESSES.nodes) / index.node_bytes();
            assert_eq!(at, expected);
            assert_eq!(u64_at(&index.node(at, ADDRESSES), 8), ADDRESSES.nodes + (expected - 1) * index.node_bytes());
        }
        assert_eq!(u64_at(&index.node(at, ADDRESSES), 16), UNDEFINED);
    }

    #[test]
    fn no_number_of_chunks_overflows() {
        assert!(ChunkIndex::new(vec![u64::MAX], vec![1], 1, u64::MAX).nodes() > 1 << 58);
        // As many as fit into a file of 2^63 bytes.
        let chunks = 1 << 57;
        let index = ChunkIndex::new(vec![chunks], vec![1], 1, chunks);
        for node in [0, 1, 64, index.nodes() - 1] {
            let bytes = index.node(node, ChunkAddresses { nodes: 0, chunks: 1 << 62 });
            assert_eq!(bytes[..5], *b"TREE\x01");
        }
    }
}
