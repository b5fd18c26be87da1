//! The FUSE mount: receives the kernel's requests and sends replies. It knows only the interface of
//! [`node`](crate::node).
//!
//! * [`FuseMount`]: a mounted tree, from mounting to unmounting
//! * [`serve`]: serves a mount until a signal or `umount` ends it
//! * [`background`]: serves in a background process, detached from the terminal
//! * [`unmount`]: unmounts the mount of another process
//!
//! Mounting and unmounting are done here and not by the FUSE library, which only gets the open device: the library
//! behaves differently from what we need on errors, on drop, and when somebody else unmounts.

pub mod background;
mod counts;
mod error;
mod filesystem;
mod handles;
mod inodes;
mod mount;
mod mounting;
mod open_folders;
mod refresh;
mod reply_buffers;
mod requester;
mod requests;
mod serve;
mod server;
mod session_end;
mod sys;

pub use error::{MountError, errno};
pub use mount::{FuseMount, MountOptions};
pub use mounting::attach::Access;
pub use mounting::detach::{Detach, unmount};
pub use mounting::mountpoint::descriptor;
pub use serve::{Signals, serve};
pub use server::Ownership;
