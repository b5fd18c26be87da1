//! The header of a netCDF classic file, in the big-endian encoding of its specification: dimensions, global attributes,
//! variables.

use super::plan::{FilePlan, NcAttribute, PlannedVariable};
use super::types::Version;

const DIMENSIONS: u32 = 0x0a;
const VARIABLES: u32 = 0x0b;
const ATTRIBUTES: u32 = 0x0c;

/// A variable and the offset of its data in the file.
pub struct PlacedVariable<'a> {
    pub variable: &'a PlannedVariable,
    pub begin: u64,
}

/// The contents of the header.
pub struct NcHeader<'a> {
    pub version: Version,
    pub plan: &'a FilePlan,
    pub variables: Vec<PlacedVariable<'a>>,
}

impl NcHeader<'_> {
    /// Returns the header's bytes. Their number depends only on names, attributes and the numbers of dimensions and
    /// variables.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder { wide: self.version == Version::Cdf5, bytes: b"CDF".to_vec() };
        out.bytes.push(if out.wide { 5 } else { 2 });
        let records = self.plan.record.and_then(|record| self.plan.dimensions.get(record));
        out.count(records.map_or(0, |dimension| dimension.length));
        out.list(DIMENSIONS, self.plan.dimensions.len());
        for (number, dimension) in self.plan.dimensions.iter().enumerate() {
            out.name(&dimension.name);
            out.count(if self.plan.record == Some(number) { 0 } else { dimension.length });
        }
        out.attributes(&self.plan.attributes);
        out.list(VARIABLES, self.variables.len());
        for PlacedVariable { variable, begin } in &self.variables {
            out.name(&variable.name);
            out.count(variable.dimensions.len() as u64);
            for &dimension in &variable.dimensions {
                out.count(dimension as u64);
            }
            out.attributes(&variable.attributes);
            out.u32(variable.nc_type as u32);
            // CDF-2 stores the largest number for a size that does not fit, and readers compute the size.
            out.count(self.plan.size_of(variable).div_ceil(4).saturating_mul(4));
            out.bytes.extend(begin.to_be_bytes());
        }
        out.bytes
    }
}

struct Encoder {
    /// Whether counts and lengths have 64 bits (CDF-5).
    wide: bool,
    bytes: Vec<u8>,
}

impl Encoder {
    fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_be_bytes());
    }

    fn count(&mut self, value: u64) {
        if self.wide {
            self.bytes.extend(value.to_be_bytes());
        } else {
            self.u32(u32::try_from(value).unwrap_or(u32::MAX));
        }
    }

    /// Writes the head of a list; an empty one has no tag.
    fn list(&mut self, tag: u32, length: usize) {
        self.u32(if length == 0 { 0 } else { tag });
        self.count(length as u64);
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.bytes.extend(name.as_bytes());
        self.pad();
    }

    fn attributes(&mut self, attributes: &[NcAttribute]) {
        self.list(ATTRIBUTES, attributes.len());
        for attribute in attributes {
            self.name(&attribute.name);
            self.u32(attribute.nc_type as u32);
            self.count((attribute.values.len() / attribute.nc_type.size()) as u64);
            self.bytes.extend(&attribute.values);
            self.pad();
        }
    }
}
