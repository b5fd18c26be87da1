//! How work grows with what is stored: a text of metadata that is four times as long takes about four times as many
//! steps, whatever is in it.
//!
//! A step is an allocation, a block of allocated memory, or a question whether to go on. Time is not measured.

mod arrays;
mod groups;
mod steps;
mod texts;

use support::counting_allocator::Counting;

#[global_allocator]
static MEMORY: Counting = Counting;
