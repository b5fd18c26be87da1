//! The virtual tree: names and nodes. Nothing here knows of the kernel; nothing below knows of names.

pub mod node;
pub mod options;
pub mod time;

pub use node::{Entry, EntryKind, File, Folder, Node};
pub use options::{Extent, OpenOptions};
