//! Where values come from, as `tilefs explain` prints it: for people ([`text`]) and for programs ([`json`]).

pub mod json;
mod names;
pub mod text;
