//! The commands, one file each.

pub mod cat;
pub mod completions;
pub mod explain;
pub mod info;
pub mod ls;
pub mod man;
pub mod mount;
#[cfg(feature = "serve")]
pub mod open;
#[cfg(feature = "serve")]
pub mod serve;
pub mod umount;
pub mod verify;
