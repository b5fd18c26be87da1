//! The information about an array, or a slice of one, from which its explanatory files are written.

use std::sync::Arc;

use tilefs_export::{Labels, Metadatum};
use tilefs_format::scalar::Range;
use tilefs_format::schema::ArraySchema;
use tilefs_reader::array::TimeWindow;
use tilefs_reader::array::sparse::RowCount;

use crate::cells::axis_summary::AxisSummary;
use crate::cells::dense::CoveredBox;
use crate::fields::rasters::ImagePart;
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
    /// The form of its Zarr group as annotated data, if it can be opened as such.
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
