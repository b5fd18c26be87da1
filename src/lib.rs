//! tilefs reads TileDB arrays from first principles and presents them as plain files.
//!
//! The rooms, each using only the ones below it:
//!
//! * [`error`]: what can go wrong, and where
//! * [`format`]: what the stored bytes mean

pub mod error;
pub mod format;
