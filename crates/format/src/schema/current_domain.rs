//! The current domain: the part of the domain that an array uses at present.

use tilefs_base::error::{Error, Locate, Result};

use super::dimension::Dimension;
use crate::cursor::Cursor;
use crate::scalar::Range;
use crate::version::other_version;

/// Reads the current domain at the cursor: one range per dimension, or `None` if none is set.
pub(super) fn parse(cursor: &mut Cursor<'_>, dimensions: &[Dimension]) -> Result<Option<Vec<Range>>> {
    let version = cursor.u32("version of the current domain")?;
    if version != 0 {
        return Err(other_version("current domain", version, 0..=0)).in_field("version of the current domain");
    }
    if cursor.u8("empty current domain")? != 0 {
        return Ok(None);
    }
    let kind = cursor.u8("type of the current domain")?;
    if kind != 0 {
        return Err(Error::unsupported(format!("current domain of type {kind}")));
    }
    let mut ranges = Vec::new();
    for dimension in dimensions {
        let start = cursor.position() as u64;
        let range = Range::parse(cursor, dimension.datatype, dimension.is_variable(), "current domain")?;
        let inside = match &dimension.domain {
            Some(domain) => domain.contains(&range.low) && domain.contains(&range.high),
            None => true,
        };
        // String dimensions have no domain, and an empty bound means unbounded.
        if !inside || (dimension.domain.is_some() && !range.is_ordered()) {
            let reason = format!("current domain from {} to {}", range.low, range.high);
            return Err(Error::damaged(reason).in_field(&dimension.name).at(start));
        }
        ranges.push(range);
    }
    Ok(Some(ranges))
}
