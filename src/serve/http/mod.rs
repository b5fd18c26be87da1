//! The rules of HTTP, without what is served: who may read, paths, ranges, validators, media types and refusals.

pub mod access;
pub mod content_type;
pub mod host_paths;
pub mod path;
pub mod proxy;
pub mod ranges;
pub mod refusal;
pub mod validators;
