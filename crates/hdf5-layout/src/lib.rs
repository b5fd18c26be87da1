//! The bytes of an HDF5 file around values that are read from elsewhere.
//!
//! A [`Tree`] describes the groups, datasets and attributes of a file. Its [`FileLayout`] has the file's exact length,
//! and the contents of each range of bytes ([`FileLayout::segments`]): metadata, which it generates, or values, which the
//! caller provides. A file of any size can thus be served without ever being written.
//!
//! The source of each structure is the *HDF5 File Format Specification*, version 3.0; the code names its sections.
//! If there are several structures for one purpose, this crate uses the one that most readers support, including
//! HDF5 1.8 and later: superblock version 2, version 2 object headers, links and attributes as messages, contiguous
//! storage or chunks without filters under a version 1 B-tree, and the global heap for elements of variable length.
//!
//! # Memory
//!
//! A layout holds the object headers and the attributes: about 150 bytes per object, 25 bytes and the name per link,
//! and 50 bytes, the name and the value per attribute. It holds nothing for a dataset's chunks: each node of their
//! index is computed when read. (In the file, a chunk's entry in the index takes 8 bytes per axis plus about 25.) The
//! memory for elements of variable length is that of [`HeapPlan`].
//!
//! ```
//! use hdf5_layout::{AttributeMessage, Dataset, Dataspace, Datatype, FileLayout, ObjectId, Segment, Tree};
//!
//! let mut tree = Tree::new();
//! let dataset = Dataset::new(Datatype::signed(4), Dataspace::Simple(vec![2, 3]));
//! let numbers = tree.dataset(ObjectId::ROOT, "numbers", dataset)?;
//! tree.attribute(numbers, "units", AttributeMessage::text("m"))?;
//! let layout = FileLayout::build(tree)?;
//! let mut file: Vec<u8> = Vec::new();
//! for segment in layout.segments(0..layout.len()) {
//!     match segment {
//!         Segment::Metadata(bytes) => file.extend(bytes.iter()),
//!         Segment::Values { range, .. } => {
//!             let values = [1_i32, 2, 3, 4, 5, 6].map(i32::to_le_bytes);
//!             file.extend(&values.as_flattened()[range.start as usize..range.end as usize]);
//!         }
//!         _ => unreachable!("nothing has variable length"),
//!     }
//! }
//! assert_eq!(file.len() as u64, layout.len());
//! # Ok::<(), hdf5_layout::Error>(())
//! ```

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)
)]

mod attribute;
mod checksum;
mod chunk_index;
mod dataset;
mod dataspace;
mod datatype;
mod dense_attributes;
mod dimension_scales;
mod error;
mod global_heap;
mod layout;
mod object_header;
mod object_id;
mod segment;
mod superblock;
mod tree;

pub use attribute::AttributeMessage;
pub use dataset::Dataset;
pub use dataspace::Dataspace;
pub use datatype::{CharacterSet, CompoundMember, Datatype, StringPadding};
pub use error::{Error, Problem, Result};
pub use global_heap::HeapPlan;
pub use layout::FileLayout;
pub use object_id::ObjectId;
pub use segment::{HeapCollection, HeapIds, Segment, SegmentValues, Segments};
pub use tree::Tree;

/// The address of a missing structure.
const UNDEFINED: u64 = u64::MAX;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Hdf5Readme;
