//! The mount: the kernel's requests in, replies out. No array logic, only the interface of [`crate::tree`].
//!
//! * [`Mount`]: a tree attached to a folder, from mounting to unmounting
//! * [`serve`]: keeps a mount until a signal or `umount` ends it
//! * [`background`]: the same in a process of its own, away from the terminal
//! * [`unmount`]: ends a mount of another process
//!
//! Mounting and unmounting are done here and not by the protocol library, which only gets the open device: what it
//! would do on errors, on drop and when somebody else unmounts differs from what is wanted.

mod attach;
pub mod background;
mod counts;
mod detach;
mod error_log;
mod filesystem;
mod handles;
mod inodes;
mod mount;
mod mount_table;
mod mountpoint;
mod needs;
mod own_files;
mod recent;
mod refresh;
mod reply_buffers;
mod requester;
mod requests;
mod serve;
mod sys;
mod working_folders;

pub use attach::Access;
pub use detach::{Detach, unmount};
pub use error_log::reason_of_panic;
pub use mount::{Mount, MountOptions, Ownership};
pub use serve::{Signals, serve};
