//! What is asked about the origin of values in the files of a folder, and the answer.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::origin::{CellOrigin, CellRun, StoredValue};
use tilefs_reader::array::sparse::RowCount;
use tilefs_reader::array::{FieldId, OpenedArray};

/// Tells where the values in the files of a folder come from.
pub trait Origins: Send + Sync {
    /// Explains a file by its path in the folder, or the folder itself if the path is empty.
    ///
    /// # Errors
    /// [`Error::Usage`](tilefs_base::error::Error::Usage) for a cell or a byte past the end; any damage in the data that
    /// determines where a cell comes from.
    fn explain(&self, path: &str, asked: AskedPart) -> Result<Explanation>;
}

/// The part of a file that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedPart {
    Whole,
    /// The cell of this number in the order of the file: a row of a sparse array.
    Cell(u64),
    /// The cell that this byte is of.
    Byte(u64),
}

/// Where the values of a file come from.
pub struct Explanation {
    pub array: Arc<OpenedArray>,
    /// The name of the view that the file belongs to.
    pub view: Option<&'static str>,
    /// Whether cells are rows, and not places along several axes.
    pub are_rows: bool,
    pub count: RowCount,
    /// The number of the cell that is explained, if it is one.
    pub cell: Option<u64>,
    /// Remarks, in one line each: for example, why a byte is of no cell.
    pub notes: Vec<String>,
    /// The explained cell, a field each.
    pub fields: Vec<FieldOrigin>,
    /// The selected cells that are not shown, if no single cell is explained.
    pub hidden: Option<CellOrigin>,
    /// Where the first cells come from, if no single cell is explained.
    pub runs: Vec<CellRun>,
}

/// Where the value of one field of a cell comes from.
pub struct FieldOrigin {
    pub id: FieldId,
    pub name: String,
    pub datatype: Datatype,
    pub source: FieldSource,
    /// The stored cell; `None` for coordinates that are computed.
    pub origin: Option<Arc<CellOrigin>>,
    pub stored: Vec<StoredValue>,
    /// The first bytes of the value; `None` if they cannot be decoded.
    pub value: Option<Vec<u8>>,
    pub is_null: bool,
}

/// The kinds of sources of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldSource {
    /// Bytes of a fragment.
    Stored,
    /// The schema: no fragment has a value.
    Fill,
    /// The domain: coordinates of dense arrays are not stored.
    Computed,
}
