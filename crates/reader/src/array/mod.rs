//! Arrays, each as of one point in time: live fragments, dense reads, sparse reads.
//!
//! From the lowest to the highest, and each uses only those before it: `field_id`, `undecodable`, `order`, `directory`
//! (what a listing of an array's folder says), `context`, `visits`, `metadata_tiles`, `folder` (the fragments and schemas
//! opened from it), `tiles`, `fragment`, `spaced_lists`, `metadata`; then `opened_array`, which has the [`OpenedArray`];
//! and on top of it `bounds`, `identity`, `labels`, [`sparse`], [`dense`], `lost_cells`, [`origin`] and [`verify`].

mod bounds;
pub(crate) mod context;
pub mod dense;
pub(crate) mod directory;
pub(crate) mod field_id;
pub(crate) mod folder;
pub(crate) mod fragment;
mod identity;
mod labels;
mod lost_cells;
pub(crate) mod metadata;
pub(crate) mod metadata_tiles;
mod opened_array;
pub(crate) mod order;
pub mod origin;
mod spaced_lists;
pub mod sparse;
pub(crate) mod tiles;
mod undecodable;
pub mod verify;
mod visits;

pub use bounds::ValueBounds;
pub use context::budget::Budget;
pub use context::running_sums::RunningSums;
pub use context::saved::SavedIndexes;
pub use context::watch::{Fingerprint, FolderWatch};
pub use context::{Context, IndexKey, Indexes};
pub use directory::listing::FolderListing;
pub use directory::object::{kind_of_entries, object_kind};
pub use directory::window::TimeWindow;
pub use field_id::FieldId;
pub use folder::ArrayFolder;
pub use folder::enumeration_pages::EnumerationPages;
pub use folder::outline::{FieldFile, Outline};
pub use labels::LabelArray;
pub use metadata::{LongKey, Metadata, MetadataItem};
pub use metadata_tiles::generic_tile::decode_inline_tile;
pub use metadata_tiles::tile_boxes::TileBoxes;
pub use metadata_tiles::tile_numbers::TileNumbers;
pub use opened_array::OpenedArray;
pub use undecodable::undecodable_fields;
pub use visits::Visits;
