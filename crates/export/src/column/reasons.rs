//! The reasons for which several formats cannot hold something, each worded once. A reason does not name the format: it
//! stands after the name of the file.

use super::Unrepresentable;

impl Unrepresentable {
    /// Returns the reason for cells of varying size in formats of cells of one size.
    pub fn varying_cells() -> Self {
        Unrepresentable::new("each cell has its own number of values, and this format has cells of one size")
    }

    /// Returns the reason for text and blobs in formats of numbers.
    pub(crate) fn bytes() -> Self {
        Unrepresentable::new("the values are text or bytes, and this format has numbers only")
    }

    /// Returns the reason for text of 16 or 32 bits per character.
    pub(crate) fn wide_text() -> Self {
        Unrepresentable::new("UTF-16 and UTF-32 text has no UTF-8 form of a length known without reading")
    }

    /// Returns the reason for dates and times in formats without them.
    pub(crate) fn times() -> Self {
        Unrepresentable::new("the values are dates or times, which this format does not have")
    }

    /// Returns the reason for nulls in formats without a mark of missing cells.
    pub(crate) fn nulls() -> Self {
        Unrepresentable::new("the cells can be null, and this format has no mark of missing cells")
    }

    /// Returns the reason for nulls among integers of 64 bits, any of which may be a value.
    pub(crate) fn nulls_among_integers() -> Self {
        Unrepresentable::new("the cells can be null, and all integers of 64 bits may be values of others")
    }

    /// Returns the reason for empty selections in formats without empty axes.
    pub fn empty_axis() -> Self {
        Unrepresentable::new("an axis has length 0, which this format does not have")
    }

    /// Returns the reason for axes whose length has no number.
    pub(crate) fn long_axis() -> Self {
        Unrepresentable::new("an axis has more than 2^63 cells")
    }

    /// Returns the reason for an enumeration whose labels are lists.
    pub(crate) fn several_values_of_labels(name: &str) -> Self {
        Unrepresentable::new(format!("the labels of {name} have several values each"))
    }
}
