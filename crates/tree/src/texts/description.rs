//! The information about an array, or a slice of one, from which its explanatory files are written.

use std::sync::Arc;

use tilefs_export::{Labels, Metadatum};
use tilefs_format::datatype::Kind;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_format::schema::{ArraySchema, Dimension};
use tilefs_reader::array::TimeWindow;
use tilefs_reader::array::dense::AxisSelection;
use tilefs_reader::array::sparse::RowCount;

use crate::views::files::{FileFacts, Files};

/// An array, or a slice of one, as its folder shows it.
pub struct Description<'a> {
    /// The path of the array's folder in its storage.
    pub path: String,
    pub schema: &'a ArraySchema,
    pub cells: CellsSummary,
    /// The contents of `nonempty/`, if they are far fewer cells than are shown here.
    pub written: Option<Box<Description<'a>>>,
    /// The part that is a raster, if the array's metadata mark the rest as padding.
    pub image: Option<ImagePart>,
    /// The slice's folder, such as `slice/0..9`; `None` for the whole array.
    pub selection: Option<String>,
    /// What its Zarr group is as annotated data, if it can be that.
    pub annotated: Option<&'static str>,
    pub window: TimeWindow,
    /// The newest commit that is shown, in milliseconds since 1970.
    pub last_commit: Option<u64>,
    /// Number of visible fragments.
    pub fragments: usize,
    /// In the order in which they should be named.
    pub files: Arc<Files>,
    /// Files that a reader may look for but that do not exist, with the reasons.
    pub not_listed: Arc<Vec<(String, String)>>,
    /// In the order of the schema; unreadable ones are omitted, and mentioned in `warnings`.
    pub enumerations: Vec<Arc<Labels>>,
    pub metadata: Vec<Metadatum>,
    /// Sentences that people should read: unsupported features, damage.
    pub warnings: Vec<String>,
    /// Whether there are `slice/` and `islice/`.
    pub has_slices: bool,
    /// Whether there is `.history/`.
    pub has_history: bool,
    /// Whether the table is so long that its `parts/` serve readers better.
    pub is_long_table: bool,
}

/// The rows and columns of an array's raster, without the padding of its last tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePart {
    pub lines: u64,
    pub samples: u64,
    /// The name of the folder in `islice/` that shows only this part.
    pub selection: String,
}

/// The cells that the files hold.
#[derive(Debug, Clone, PartialEq)]
pub enum CellsSummary {
    Dense {
        /// One per dimension.
        axes: Vec<AxisSummary>,
        covers: CoveredBox,
    },
    Sparse {
        /// `None` if they could not be counted.
        rows: Option<RowCount>,
        /// The smallest box that holds all cells, if known.
        non_empty: Option<Vec<Range>>,
        /// Rows and columns, if the cells are those of a matrix.
        matrix: Option<[u64; 2]>,
    },
}

/// The box of a dense array that its files cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoveredBox {
    Domain,
    CurrentDomain,
    NonEmpty,
    Selection,
}

/// The coordinates along one axis of the files.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisSummary {
    pub length: u64,
    /// `None` if there is nothing along the axis.
    pub first: Option<Scalar>,
    pub last: Option<Scalar>,
    /// The difference between consecutive coordinates; `None` if it varies.
    pub step: Option<i64>,
}

impl Description<'_> {
    /// Returns the last component of the array's path, its usual name.
    pub fn name(&self) -> &str {
        self.path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("array")
    }

    /// Returns whether all files are one row of cells: those of a sparse array, and of a dense one with one dimension.
    pub fn has_one_axis(&self) -> bool {
        self.schema.is_sparse() || self.schema.dimensions.len() == 1
    }

    /// Returns the number of cells along each axis, or of rows; `None` if it is not known.
    pub fn shape(&self) -> Option<Vec<u64>> {
        match &self.cells {
            CellsSummary::Dense { axes, .. } => Some(axes.iter().map(|axis| axis.length).collect()),
            CellsSummary::Sparse { rows, .. } => rows.and_then(RowCount::exact).map(|rows| vec![rows]),
        }
    }

    /// Returns the files of a field.
    pub fn files_of<'d>(&'d self, field: &str) -> impl Iterator<Item = &'d FileFacts> {
        self.files.of_field(field)
    }
}

impl AxisSummary {
    /// Returns the coordinates of an axis of a dense array.
    pub fn of(selection: &AxisSelection, dimension: &Dimension) -> Self {
        let coordinate = |index: u64| {
            let position = selection.position(index)?;
            let value = match dimension.domain.as_ref()?.low {
                Scalar::Signed(low) => Scalar::Signed(low.wrapping_add(position as i64)),
                Scalar::Unsigned(low) => Scalar::Unsigned(low.wrapping_add(position)),
                _ => return None,
            };
            Some(value)
        };
        let step = match selection.ranges() {
            [] => None,
            [one] => Some(one.step),
            _ => None,
        };
        let length = selection.len();
        let last = length.checked_sub(1).and_then(coordinate);
        debug_assert!(dimension.datatype.kind() != Kind::Bytes);
        AxisSummary { length, first: coordinate(0), last, step }
    }
}

#[cfg(test)]
mod tests {
    use tilefs_reader::array::dense::AxisRange;

    use super::*;
    use crate::texts::testing;

    #[test]
    fn axis_summary_has_its_ends() {
        let schema = testing::dense_schema();
        let of = |ranges: &[AxisRange]| {
            let axis = AxisSelection::new(ranges.iter().copied(), 100).unwrap();
            let axis = AxisSummary::of(&axis, &schema.dimensions[0]);
            (axis.length, axis.first, axis.last, axis.step)
        };
        let range = |first, step, count| AxisRange { first, step, count };
        let signed = |value| Some(Scalar::Signed(value));
        assert_eq!(of(&[range(3, -2, 2)]), (2, signed(-2), signed(-4), Some(-2)));
        assert_eq!(of(&[range(3, 1, 2), range(9, 1, 1)]), (3, signed(-2), signed(4), None));
        assert_eq!(of(&[]), (0, None, None, None));
    }
}
