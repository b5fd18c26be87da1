//! Dataspaces, and the Dataspace message (specification, IV.A.2.b).

use crate::datatype::MAX_RANK;
use crate::error::Problem;

/// The number of elements, and their axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dataspace {
    /// No elements, and no shape.
    Null,
    /// One element.
    Scalar,
    /// Elements in row-major order along one or more axes.
    Simple(Vec<u64>),
}

impl Dataspace {
    /// Creates a dataspace with `length` elements along one axis.
    pub fn vector(length: u64) -> Self {
        Dataspace::Simple(vec![length])
    }

    /// Returns the lengths of the axes.
    pub fn shape(&self) -> &[u64] {
        match self {
            Dataspace::Null | Dataspace::Scalar => &[],
            Dataspace::Simple(shape) => shape,
        }
    }

    /// Returns the number of elements.
    ///
    /// # Errors
    /// Fails if HDF5 does not support the dataspace.
    pub fn elements(&self) -> Result<u64, Problem> {
        match self {
            Dataspace::Null => Ok(0),
            Dataspace::Scalar => Ok(1),
            Dataspace::Simple(shape) if shape.is_empty() || shape.len() > MAX_RANK => {
                Err(Problem::Rank { rank: shape.len(), wanted: "1 to 32" })
            }
            Dataspace::Simple(shape) => product(shape),
        }
    }

    /// Appends the Dataspace message of a checked dataspace, which can grow along the axes with the numbers in `unlimited`.
    pub(crate) fn encode(&self, unlimited: &[usize], out: &mut Vec<u8>) {
        let kind = match self {
            Dataspace::Scalar => 0,
            Dataspace::Simple(_) => 1,
            Dataspace::Null => 2,
        };
        let shape = self.shape();
        // Version, dimensionality, flags: without maximum sizes, they equal the current ones.
        out.extend([2, shape.len() as u8, u8::from(!unlimited.is_empty()), kind]);
        out.extend(shape.iter().flat_map(|length| length.to_le_bytes()));
        if !unlimited.is_empty() {
            let most = |(axis, length)| if unlimited.contains(&axis) { u64::MAX } else { length };
            out.extend(shape.iter().copied().enumerate().map(most).flat_map(u64::to_le_bytes));
        }
    }
}

/// Returns the product of lengths; 0 as soon as one of them is 0.
pub(crate) fn product(lengths: &[u64]) -> Result<u64, Problem> {
    if lengths.contains(&0) {
        return Ok(0);
    }
    let all = lengths.iter().try_fold(1_u64, |all, length| all.checked_mul(*length));
    all.ok_or_else(|| Problem::TooLarge { what: "the number of elements".to_owned(), limit: u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_elements() {
        assert_eq!(Dataspace::Null.elements(), Ok(0));
        assert_eq!(Dataspace::Scalar.elements(), Ok(1));
        assert_eq!(Dataspace::Simple(vec![2, 3, 4]).elements(), Ok(24));
        assert_eq!(Dataspace::Simple(vec![u64::MAX, u64::MAX, 0]).elements(), Ok(0));
        assert!(Dataspace::Simple(vec![u64::MAX, 2]).elements().is_err());
        assert!(Dataspace::Simple(vec![]).elements().is_err());
        assert!(Dataspace::Simple(vec![1; 33]).elements().is_err());
    }

    #[test]
    fn encodes_the_second_version() {
        let mut out = Vec::new();
        let space = Dataspace::Simple(vec![3, 258]);
        space.encode(&[], &mut out);
        let lengths = [3, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(out, [&[2, 2, 0, 1], &lengths[..]].concat());
        out.clear();
        space.encode(&[0], &mut out);
        assert_eq!(out, [&[2, 2, 1, 1], &lengths[..], &[0xff; 8], &lengths[8..]].concat());
    }
}
