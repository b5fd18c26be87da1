//! Attaches a FUSE device to a folder and detaches it, with what has to be known of the folder and its mount.

pub mod attach;
pub mod detach;
pub mod mount_table;
pub mod mountpoint;
pub mod needs;
pub mod working_folders;
