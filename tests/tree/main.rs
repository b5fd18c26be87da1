//! What the tree shows: names, values, groups and datasets of variants, compared with what other readers of the same
//! arrays say.

mod attributes;
mod calendars;
mod copies;
mod corpus;
mod described;
mod extremes;
mod groups;
mod origins;
mod overviews;
mod random_arrays;
mod replaced;
mod saved_inputs;
mod variants;
mod verify;
