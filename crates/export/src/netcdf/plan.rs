//! The header of a netCDF file before it is encoded: dimensions, variables and attributes, in the types of netCDF. The
//! variables are chosen in `cf/plan.rs`.

use std::sync::Arc;

use tilefs_base::content::Content;

use super::types::NcType;
use crate::cf::{CfAttribute, CfValue};
use crate::column::{FormatResult, LeftOut, Unrepresentable};
use crate::content::offsets::Offsets;

/// Everything that the header lists.
pub struct FilePlan {
    pub dimensions: Vec<NcDimension>,
    pub attributes: Vec<NcAttribute>,
    pub variables: Vec<PlannedVariable>,
    /// The dimension along which classic files can grow: their variables along it are stored record by record.
    pub record: Option<usize>,
    /// The dimensions along which files can grow. HDF5 has any number of them, along any axis.
    pub growing: Vec<usize>,
    pub left_out: LeftOut,
}

impl FilePlan {
    /// Returns whether a variable is stored record by record.
    pub fn is_record(&self, variable: &PlannedVariable) -> bool {
        self.record.is_some() && variable.dimensions.first() == self.record.as_ref()
    }

    /// Returns the size of a variable in bytes, or of one record if it has the unlimited dimension.
    pub fn size_of(&self, variable: &PlannedVariable) -> u64 {
        let others = variable.dimensions.iter().filter(|&&number| self.record != Some(number));
        let lengths = others.filter_map(|&number| self.dimensions.get(number)).map(|dimension| dimension.length);
        lengths.filter(|&length| length > 0).fold(variable.nc_type.size() as u64, u64::saturating_mul)
    }

    /// Makes these the dimensions that can grow, and the first of them the record dimension that can be: it comes first in
    /// all variables along it.
    pub fn grow_along(&mut self, dimensions: Vec<usize>) {
        let comes_first = |number: &usize| {
            let inner = |variable: &PlannedVariable| variable.dimensions.iter().skip(1).any(|inner| inner == number);
            self.variables.iter().any(|variable| variable.dimensions.first() == Some(number))
                && !self.variables.iter().any(inner)
        };
        self.record = dimensions.iter().copied().find(comes_first);
        self.growing = dimensions;
    }

    /// Moves the one variable over 4 GiB to the end, the only place where CDF-2 allows it. There is no such place before
    /// records, and in a record.
    pub fn move_longest_to_the_end(&mut self) -> FormatResult<()> {
        let sizes: Vec<u64> = self.variables.iter().map(|variable| self.size_of(variable)).collect();
        let too_long = |variable: &PlannedVariable| variable.content.len() > LONGEST_IN_CDF2;
        match sizes.iter().filter(|&&size| size > LONGEST_IN_CDF2).count() {
            0 => {}
            1 if self.record.is_none() => self.variables.sort_by_key(too_long),
            _ => return Err(Unrepresentable::new("CDF-2 has only one variable over 4 GiB")),
        }
        Ok(())
    }
}

/// The longest variable of CDF-2 that another may follow.
const LONGEST_IN_CDF2: u64 = u32::MAX as u64 - 3;

/// A named length. In the classic format, length 0 marks the unlimited dimension; without a record dimension there are no
/// records, so a dimension of length 0 does have that length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcDimension {
    pub name: String,
    pub length: u64,
}

/// A variable; its content is the data, big-endian in the classic forms and little-endian in netCDF-4.
pub struct PlannedVariable {
    pub name: String,
    /// Indexes into the list of dimensions, slowest first.
    pub dimensions: Vec<usize>,
    pub attributes: Vec<NcAttribute>,
    pub nc_type: NcType,
    pub content: Arc<dyn Content>,
    pub meaning: Meaning,
}

/// The meaning of a variable's values that netCDF's types do not express.
#[derive(Clone)]
pub enum Meaning {
    /// The values mean what their type says.
    Values,
    /// Bytes that are 0 or 1.
    Booleans,
    /// The last dimension is that of the characters of a text.
    Characters,
    /// Strings, which lie end to end in the content. `offsets` has the byte at which each string begins, and the end of
    /// the last string.
    Strings { offsets: Offsets },
}

/// A named text or list of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NcAttribute {
    pub name: String,
    pub nc_type: NcType,
    /// The values, big-endian.
    pub values: Vec<u8>,
}

impl NcAttribute {
    /// Creates a text attribute.
    pub fn text(name: &str, text: impl Into<String>) -> Self {
        NcAttribute { name: name.into(), nc_type: NcType::Char, values: text.into().into_bytes() }
    }
}

impl From<CfAttribute> for NcAttribute {
    fn from(attribute: CfAttribute) -> Self {
        match attribute.value {
            CfValue::Text(text) => NcAttribute::text(attribute.name, text),
            CfValue::Numbers(numbers) => {
                let values = numbers.into_iter().flat_map(f64::to_be_bytes).collect();
                NcAttribute { name: attribute.name.into(), nc_type: NcType::Double, values }
            }
        }
    }
}
