//! Determines the numbers of rows and columns of a sparse array with two dimensions as a matrix.

use tilefs_base::error::Result;
use tilefs_export::number;
use tilefs_export::text::matrix_market::MatrixDomain;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_reader::array::{Metadata, OpenedArray};

/// Maximum number of rows that counts as the size of a matrix rather than as reserved space: other programs hold a
/// pointer or a number per row, and SOMA gave matrices that may grow a domain of 2^31 - 1, later of 2^63.
const MAX_ROWS: u64 = 1 << 30;

/// Returns the ranges of the two dimensions of a matrix: the current domain, otherwise the domain if it is a plausible
/// size, otherwise the range given by the metadata and the fragments.
///
/// # Errors
/// Fails if required metadata or a footer cannot be read.
pub fn matrix_domain(array: &OpenedArray) -> Result<MatrixDomain> {
    let schema = array.schema();
    let mut domain = MatrixDomain { first: [0; 2], lengths: [0; 2] };
    for (number, dimension) in schema.dimensions.iter().enumerate().take(2) {
        let current = schema.current_domain.as_ref().and_then(|ranges| ranges.get(number));
        let Some(range) = current.or(dimension.domain.as_ref()) else { continue };
        let mut length = range.high.distance_above(&range.low).map_or(u64::MAX, |last| last.saturating_add(1));
        if length > MAX_ROWS {
            length = stated_length(&*array.metadata()?, &dimension.name, range)
                .unwrap_or(0)
                .max(written_length(array, number, range)?);
        }
        domain.first[number] = integer(&range.low).unwrap_or(0);
        domain.lengths[number] = length;
    }
    Ok(domain)
}

/// Returns the number of coordinates of a dimension according to SOMA.
///
/// TileDB-SOMA before 1.15 writes the last coordinate in use of a dimension `NAME`, an `INT64`, under the key
/// `NAME_domain_upper`.
fn stated_length(metadata: &Metadata, dimension: &str, domain: &Range) -> Option<u64> {
    let value = metadata.get(&format!("{dimension}_domain_upper"))?;
    let last = number::integer(value.datatype, value.bytes()?).filter(|_| value.count == 1)?;
    let (low, high) = (integer(&domain.low)?, integer(&domain.high)?);
    (low..=high).contains(&last).then(|| u64::try_from(last - low).ok()?.checked_add(1)).flatten()
}

/// Returns the number of coordinates that hold everything written along a dimension.
///
/// # Errors
/// Fails if a footer cannot be read.
pub fn written_length(array: &OpenedArray, dimension: usize, domain: &Range) -> Result<u64> {
    let mut length = 0;
    for fragment in 0..array.fragment_count() {
        let outline = array.outline(fragment)?;
        let found = outline.facts.non_empty_range(dimension);
        let last = found.and_then(|found| found.high.distance_above(&domain.low));
        length = length.max(last.map_or(0, |last| last.saturating_add(1)));
    }
    Ok(length)
}

fn integer(coordinate: &Scalar) -> Option<i128> {
    match *coordinate {
        Scalar::Signed(value) => Some(value.into()),
        Scalar::Unsigned(value) => Some(value.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tilefs_format::datatype::Datatype;
    use tilefs_format::metadata::MetadataValue;

    use super::*;

    #[test]
    fn soma_states_the_last_coordinate() {
        let range = |low, high| Range { low: Scalar::Signed(low), high: Scalar::Signed(high) };
        let stated = |value: i64, domain: Range| {
            let value = MetadataValue { datatype: Datatype::Int64, count: 1, bytes: value.to_le_bytes().to_vec() };
            let metadata = [(b"soma_dim_0_domain_upper".to_vec(), value)].into_iter().collect();
            stated_length(&metadata, "soma_dim_0", &domain)
        };
        assert_eq!(stated(79, range(0, i64::MAX - 1)), Some(80));
        assert_eq!(stated(79, range(10, i64::MAX - 1)), Some(70));
        for outside in [-1, 1000] {
            assert_eq!(stated(outside, range(0, 999)), None);
        }
        assert_eq!(stated_length(&Metadata::default(), "soma_dim_0", &range(0, 9)), None);
    }
}
