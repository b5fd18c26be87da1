//! Replies about folders: listings, the page of a folder for people, its properties for WebDAV, and the page that
//! `web/` builds.

pub mod application;
pub mod dav;
pub mod listing;
pub mod page;
pub mod properties;
