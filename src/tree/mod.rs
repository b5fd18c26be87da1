//! The virtual tree: names and nodes. Nothing here knows of the kernel; nothing below knows of names.

pub mod array;
pub mod below;
pub mod builder;
pub mod dense;
pub mod enums;
pub mod explain;
pub mod fields;
pub mod filestore;
pub mod formats;
pub mod grammar;
pub mod group;
pub mod group_outline;
pub mod group_texts;
pub mod history;
pub mod labels;
pub mod made;
pub mod meta;
pub mod names;
pub mod node;
pub mod nonempty;
pub mod open;
pub mod options;
pub mod percent;
pub mod rasters;
pub mod shown;
pub mod slice;
pub mod sparse;
pub mod texts;
pub mod time;
pub mod xattrs;

pub use node::{Entry, EntryKind, File, Folder, Node};
pub use open::{Stored, local_path, open, open_array, open_stored, root};
pub use options::{Extent, OpenOptions};
