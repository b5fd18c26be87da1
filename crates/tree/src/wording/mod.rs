//! Values, filters and sizes in words, for people, and in JSON, for programs.

pub mod filters;
pub mod size;
pub mod value;
