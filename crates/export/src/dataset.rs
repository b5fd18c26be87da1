//! Variables of several arrays that share their dimensions, as those of one netCDF file do.

use super::column::Metadatum;

/// What one file or group shows: dimensions, the variables along them, and what is said of all. `C` is how cells are given.
#[derive(Clone)]
pub struct Dataset<C> {
    /// Names, no two alike, and lengths.
    pub dimensions: Vec<(String, u64)>,
    pub variables: Vec<Variable<C>>,
    pub metadata: Vec<Metadatum>,
}

/// A variable. One that lies along the dimension of its own name alone has its coordinates.
#[derive(Clone)]
pub struct Variable<C> {
    /// The numbers of its dimensions, the slowest first; none where there is one value.
    pub axes: Vec<usize>,
    /// As long along each axis as the dimension.
    pub column: C,
}

impl<C> Dataset<C> {
    /// The number of the dimension whose coordinates a variable of a name has, if it has any.
    pub fn dimension_of_coordinates(&self, name: &str, axes: &[usize]) -> Option<usize> {
        let &[axis] = axes else { return None };
        self.dimensions.get(axis).filter(|(dimension, _)| dimension == name).map(|_| axis)
    }
}
