//! The bytes of an HDF5 file around values that are read from elsewhere.
//!
//! A [`Tree`] says which groups, datasets and attributes a file has. A [`Layout`] of it knows the file's exact length,
//! and of each range of bytes what is in it ([`Layout::segments`]): metadata, which it makes, or values, which the
//! caller reads. So a file can be served that was never written, whatever its size.
//!
//! The source of each structure is the *HDF5 File Format Specification*, version 3.0; sections are named where they are
//! used. Of several structures for one purpose this crate uses the one that most readers know, HDF5 1.8 and later among
//! them: superblock version 2, version 2 object headers, links and attributes as messages, contiguous storage or
//! chunks without filters under a version 1 B-tree, and the global heap for elements of variable length.
//!
//! # Memory
//!
//! A layout holds the object headers and the attributes: for each object some 150 bytes, for each link about 25 and its
//! name, for each attribute about 50, its name and its value. Of a dataset's chunks it holds nothing: each node of
//! their index is computed when it is read. In the file a chunk's place in it takes 8 bytes for each axis and about 25. Of elements of
//! variable length it holds what [`HeapPlan`] says.
//!
//! ```
//! use hdf5_layout::{Attribute, Dataset, Dataspace, Datatype, Layout, ObjectId, Segment, Tree};
//!
//! let mut tree = Tree::new();
//! let dataset = Dataset::new(Datatype::signed(4), Dataspace::Simple(vec![2, 3]));
//! let numbers = tree.dataset(ObjectId::ROOT, "numbers", dataset)?;
//! tree.attribute(numbers, "units", Attribute::text("m"))?;
//! let layout = Layout::build(tree)?;
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
mod segment;
mod superblock;
mod tree;

pub use attribute::Attribute;
pub use dataset::Dataset;
pub use dataspace::Dataspace;
pub use datatype::{CharacterSet, Datatype, Member, StringPadding};
pub use error::{Error, Problem, Result};
pub use global_heap::HeapPlan;
pub use layout::Layout;
pub use segment::{HeapCollection, HeapIds, Segment, Segments, Values};
pub use tree::{ObjectId, Tree};

/// The address of what is not there.
const UNDEFINED: u64 = u64::MAX;
