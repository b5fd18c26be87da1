//! Rows sorted by their coordinates.

use super::rows::RowMap;
use super::view::SparseView;
use crate::error::{Error, Result};

pub fn sorted(_: &SparseView) -> Result<RowMap> {
    Err(Error::unsupported("rows sorted by coordinates"))
}
