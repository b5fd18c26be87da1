//! INFO of a merged record, as `bcftools merge` makes it by default.
//!
//! A field has the value of the first record with the field. `DP` and `DP4` are summed. Fields with a value per allele
//! or genotype combine the values of all records, each at its place in the line. `AN` and `AC` are counted in the
//! genotypes; without samples they are summed.

use super::super::fields::{FieldValue, Values, append_float};
use super::super::header::{Definition, ValueCount};
use super::genotypes::{Placed, place};
use tilefs_format::error::Result;

/// The fields that are always summed, and those that are summed only if there are no genotypes to count them in.
const SUMMED: [&[u8]; 2] = [b"DP", b"DP4"];
const COUNTED: [&[u8]; 2] = [b"AN", b"AC"];

/// The INFO fields of one line, field by field.
#[derive(Default)]
pub(super) struct Info<'a> {
    first: Vec<(&'a [u8], First<'a>)>,
    sums: Vec<(&'a [u8], Sum)>,
    placed: Vec<(&'a [u8], Placed<'a>)>,
}

/// The value of a field that is taken from one record.
enum First<'a> {
    Stored(Values<'a>),
    /// A position derived from the end of the record.
    Position(u64),
}

/// The sum of a field's values, place by place. A missing value counts as 0.
enum Sum {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
}

/// The alleles of a record, mapped to those of its line.
pub(super) struct Alleles<'m> {
    /// For each allele of the record, its number in the line.
    pub map: &'m [usize],
    /// The number of alleles of the line.
    pub of_line: usize,
}

impl<'a> Info<'a> {
    /// Adds a field of a record, with its definition in the record's header. `is_summed`: the merged header defines the
    /// field as a number.
    ///
    /// # Errors
    /// Fails if a line would have too many values.
    pub(super) fn add(
        &mut self,
        field: FieldValue<'a>,
        definition: Definition,
        is_summed: bool,
        has_samples: bool,
        alleles: &Alleles<'_>,
    ) -> Result<()> {
        let FieldValue { name, values } = field;
        if has_samples && COUNTED.contains(&name) {
            return Ok(());
        }
        let is_summed = is_summed && (SUMMED.contains(&name) || COUNTED.contains(&name));
        if is_summed && matches!(values, Values::Integers(_) | Values::Floats(_)) {
            // A field with a value per allele is summed allele by allele.
            let values = match definition.count {
                ValueCount::Other => values.numbers().unwrap_or_default(),
                count => place(values, count, alleles, None)?.into_numbers(),
            };
            let is_float = matches!(field.values, Values::Floats(_));
            match self.sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => sum.add(&values),
                None => {
                    let mut sum = if is_float { Sum::Floats(Vec::new()) } else { Sum::Integers(Vec::new()) };
                    sum.add(&values);
                    self.sums.push((name, sum));
                }
            }
            return Ok(());
        }
        if definition.count != ValueCount::Other && !matches!(values, Values::Flag) {
            let placed = place(values, definition.count, alleles, None)?;
            match self.placed.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.unite(placed),
                None => self.placed.push((name, placed)),
            }
            return Ok(());
        }
        self.add_first(name, First::Stored(values));
        Ok(())
    }

    /// Adds the field of a record that its writer left out, because its value follows from the record's end.
    pub(super) fn add_position(&mut self, name: &'a [u8], position: u64) {
        self.add_first(name, First::Position(position));
    }

    fn add_first(&mut self, name: &'a [u8], value: First<'a>) {
        if self.first.iter().all(|(known, _)| *known != name) {
            self.first.push((name, value));
        }
    }

    /// Appends the fields, then `last`, which is already formatted.
    ///
    /// # Errors
    /// Fails for a text that VCF does not allow.
    pub(super) fn append(mut self, last: &[(&[u8], Vec<u8>)], out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        let append_name = |name: &[u8], out: &mut Vec<u8>| {
            if out.len() > before {
                out.push(b';');
            }
            out.extend_from_slice(name);
            out.push(b'=');
        };
        for (name, values) in &self.first {
            append_name(name, out);
            match values {
                First::Position(position) => out.extend_from_slice(itoa::Buffer::new().format(*position).as_bytes()),
                First::Stored(values) if !values.append(b";", out)? => _ = out.pop(),
                First::Stored(_) => {}
            }
        }
        self.sums.sort_by_key(|(name, _)| *name);
        for (name, sum) in &self.sums {
            append_name(name, out);
            sum.append(out);
        }
        for (name, placed) in &self.placed {
            append_name(name, out);
            if !placed.append(b";", out)? {
                out.pop();
            }
        }
        for (name, text) in last {
            append_name(name, out);
            out.extend_from_slice(text);
        }
        if out.len() == before {
            out.push(b'.');
        }
        Ok(())
    }
}

impl Sum {
    fn add(&mut self, values: &[Option<[u8; 4]>]) {
        match self {
            Sum::Integers(sums) => {
                sums.resize(sums.len().max(values.len()), 0);
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = sum.saturating_add(value.map_or(0, i32::from_le_bytes).into());
                }
            }
            Sum::Floats(sums) => {
                sums.resize(sums.len().max(values.len()), 0.0);
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value.map_or(0.0, f32::from_le_bytes);
                }
            }
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        let append_comma = |number: usize, out: &mut Vec<u8>| {
            if number > 0 {
                out.push(b',');
            }
        };
        match self {
            Sum::Integers(sums) => sums.iter().enumerate().for_each(|(number, sum)| {
                append_comma(number, out);
                out.extend_from_slice(itoa::Buffer::new().format(*sum).as_bytes());
            }),
            Sum::Floats(sums) => sums.iter().enumerate().for_each(|(number, sum)| {
                append_comma(number, out);
                append_float(sum.to_bits(), out);
            }),
        }
    }
}
