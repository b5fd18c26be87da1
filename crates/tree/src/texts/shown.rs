//! The optional views that are listed.
//!
//! A recursive copy would copy the values once more for each listed view, so most views are found only by name. File
//! dialogs, globs and completion see only listed files.

use crate::texts::Format;

/// A kind of view that is listed only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Vrt,
    Tiff,
    Parquet,
    Zarr,
    Arrow,
    Csv,
    /// All others: NRRD and MetaImage headers, Matrix Market, column-major order, HDF5, netCDF-4, Zarr version 2.
    Other,
}

impl View {
    /// The views that a user can ask for, by their names.
    pub const NAMED: [(&'static str, View); 6] = [
        ("vrt", View::Vrt),
        ("tiff", View::Tiff),
        ("parquet", View::Parquet),
        ("zarr", View::Zarr),
        ("arrow", View::Arrow),
        ("csv", View::Csv),
    ];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of [`View`]s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShownViews(u8);

impl ShownViews {
    /// No views.
    pub const NONE: ShownViews = ShownViews(0);

    /// All views.
    pub const ALL: ShownViews = ShownViews(u8::MAX);

    #[must_use]
    pub fn with(self, view: View) -> Self {
        ShownViews(self.0 | view.bit())
    }

    /// Returns the views of both sets.
    #[must_use]
    pub fn and(self, others: ShownViews) -> Self {
        ShownViews(self.0 | others.0)
    }

    pub fn has(self, view: View) -> bool {
        self.0 & view.bit() != 0
    }

    /// Returns whether files of this format are listed because of the set.
    pub fn has_format(self, format: Format) -> bool {
        format.facts().view.is_some_and(|view| self.has(view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_view_is_shown_by_itself() {
        let views: Vec<View> = View::NAMED.into_iter().map(|(_, view)| view).chain([View::Other]).collect();
        for view in views.iter().copied() {
            let shown = ShownViews::NONE.with(view);
            assert_eq!(views.iter().filter(|other| shown.has(**other)).collect::<Vec<_>>(), [&view]);
            assert!(ShownViews::ALL.has(view) && !ShownViews::NONE.has(view));
        }
        assert!(ShownViews::ALL.has_format(Format::Tiff) && !ShownViews::NONE.with(View::Vrt).has_format(Format::Tiff));
        // A second table of the same rows is never listed.
        assert!(!ShownViews::ALL.has_format(Format::ParquetMicroseconds));
    }
}
