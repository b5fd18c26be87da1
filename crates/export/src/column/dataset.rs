//! Variables of several arrays that share dimensions, as in a netCDF file.

use crate::column::Metadatum;

/// The contents of one file or group: dimensions, the variables along them, and metadata. `C` is the representation of
/// the cells.
#[derive(Clone)]
pub struct CfDataset<C> {
    /// Name (unique) and length of each dimension.
    pub dimensions: Vec<(String, u64)>,
    /// The variables in the order of the file.
    pub variables: Vec<Variable<C>>,
    /// Indexes of the dimensions that can grow.
    pub growing: Vec<usize>,
    /// The attributes of the whole file.
    pub metadata: Vec<Metadatum>,
}

/// A variable. A variable whose only dimension has the variable's own name holds the coordinates of that dimension.
#[derive(Clone)]
pub struct Variable<C> {
    /// Indexes of its dimensions, slowest first; empty for a single value.
    pub axes: Vec<usize>,
    /// Its shape equals the lengths of the dimensions.
    pub column: C,
}

impl<C> CfDataset<C> {
    /// Returns the dimension whose coordinates a variable of this name along these axes holds, if any.
    pub(crate) fn dimension_of_coordinates(&self, name: &str, axes: &[usize]) -> Option<usize> {
        let &[axis] = axes else { return None };
        self.dimensions.get(axis).filter(|(dimension, _)| dimension == name).map(|_| axis)
    }
}
