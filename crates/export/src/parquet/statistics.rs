//! The least and the greatest value of a chunk and its number of nulls, as far as they are known.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::Kind;
use tilefs_reader::array::ValueBounds;

use super::metadata::ChunkStatistics;
use super::types::{PageLayout, ParquetColumn};
use crate::content::element::ConvertedColumn;

/// Maximum length of a value in the footer.
pub const MAX_STATISTIC: usize = 64;

/// Returns what is known of the values of a column in a range of rows.
pub fn statistics(column: &ParquetColumn, rows: Range<u64>) -> ChunkStatistics {
    let Some(known) = &column.statistics else { return ChunkStatistics::default() };
    let log = |error| {
        log::debug!("no statistics of {} in rows {} to {}: {error}", column.field.name, rows.start, rows.end);
    };
    let bounds = known.bounds(rows.clone()).map_err(log).ok().flatten();
    let bounds = bounds.and_then(|bounds| stored_bounds(column, bounds));
    let nulls = match column.layout {
        // Codes without a label are null, too, and lists count elements.
        PageLayout::Values(_) | PageLayout::Bits | PageLayout::Bytes => {
            let nulls = if column.validity.is_some() { known.nulls(rows.clone()) } else { Ok(Some(0)) };
            nulls.map_err(log).ok().flatten()
        }
        _ => None,
    };
    // "Not a time" is null, too. If it may be among the values, their bounds are not known.
    let nulls = nulls.filter(|_| column.datatype.time_unit().is_none() || bounds.is_some());
    ChunkStatistics { bounds, nulls }
}

/// Returns bounds of a column's values as Parquet stores them. `None` if they cannot be. Exact bounds stay exact, since
/// each value is converted on its own; a zero equals one of the other sign.
///
/// Labels and lists have none: labels are ordered differently from their codes, and lists have no order.
fn stored_bounds(column: &ParquetColumn, bounds: ValueBounds) -> Option<ValueBounds> {
    let ValueBounds { least, greatest, .. } = bounds;
    let (least, greatest) = match column.layout {
        PageLayout::Values(_) => {
            (stored(column, least, Ordering::Least)?, stored(column, greatest, Ordering::Greatest)?)
        }
        PageLayout::Bits => (vec![u8::from(*least.first()? != 0)], vec![u8::from(*greatest.first()? != 0)]),
        PageLayout::Bytes => (least, greatest),
        PageLayout::Indices(_)
        | PageLayout::List { .. }
        | PageLayout::VaryingList { .. }
        | PageLayout::Elements { .. } => {
            return None;
        }
    };
    let are_short = least.len() <= MAX_STATISTIC && greatest.len() <= MAX_STATISTIC;
    are_short.then_some(ValueBounds { least, greatest, ..bounds })
}

#[derive(Clone, Copy)]
enum Ordering {
    Least,
    Greatest,
}

/// Returns a value as stored; `None` for "not a number" and "not a time", which have no place in the order of
/// numbers and times.
fn stored(column: &ParquetColumn, value: Vec<u8>, which: Ordering) -> Option<Vec<u8>> {
    let datatype = column.datatype;
    if value.len() != datatype.size() || datatype.time_unit().is_some() && value == i64::MIN.to_le_bytes() {
        return None;
    }
    if datatype.kind() == Kind::Float {
        return stored_float(value, which);
    }
    let Some(convert) = column.conversion else { return Some(value) };
    let converted = convert(Arc::new(value), ConvertedColumn::new(&column.field.name));
    let mut bytes = vec![0; usize::try_from(converted.len()).ok()?];
    converted.read_at(0, &mut bytes).ok()?;
    Some(bytes)
}

/// As a bound, a zero gets the sign that includes the other zero, since writers do not distinguish them.
fn stored_float(value: Vec<u8>, which: Ordering) -> Option<Vec<u8>> {
    let (is_nan, is_zero) = match value.len() {
        4 => value.as_chunks().0.first().map(|bytes| f32::from_le_bytes(*bytes)).map(|v| (v.is_nan(), v == 0.0))?,
        _ => value.as_chunks().0.first().map(|bytes| f64::from_le_bytes(*bytes)).map(|v| (v.is_nan(), v == 0.0))?,
    };
    if is_nan {
        return None;
    }
    if !is_zero {
        return Some(value);
    }
    let mut zero = vec![0; value.len()];
    if let (Ordering::Least, Some(sign)) = (which, zero.last_mut()) {
        *sign = 0x80;
    }
    Some(zero)
}
