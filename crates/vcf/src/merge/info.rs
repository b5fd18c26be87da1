//! INFO of a merged record, as `bcftools merge` makes it by default.
//!
//! A field has the value of the first record with the field. `DP` and `DP4` are summed. Fields with a value per allele
//! or genotype combine the values of all records, each at its place in the line. `AN` and `AC` are counted in the
//! genotypes; without samples they are summed.

use super::super::fields::{Values, append_float};
use super::super::header::ValueCount;
use super::super::record::END;
use super::genotypes::{Placed, place};
use super::{END_NUMBER, Known, KnownField, Role};
use tilefs_format::error::Result;

/// The INFO fields of one line, field by field.
#[derive(Default)]
pub(super) struct Info<'a> {
    first: Vec<(Name<'a>, First<'a>)>,
    sums: Vec<(Name<'a>, Sum)>,
    placed: Vec<(Name<'a>, Placed<'a>)>,
}

/// The name of a field, and its number.
#[derive(Debug, Clone, Copy)]
struct Name<'a> {
    number: usize,
    text: &'a [u8],
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
    /// Adds a field of a record.
    ///
    /// # Errors
    /// Fails if a line would have too many values.
    pub(super) fn add(&mut self, field: &KnownField<'a>, has_samples: bool, alleles: &Alleles<'_>) -> Result<()> {
        let KnownField { name: text, values, known: Known { number, role, own: definition, merged } } = *field;
        if has_samples && role == Role::Counted {
            return Ok(());
        }
        let name = Name { number, text };
        let is_summed = merged.is_numeric && matches!(role, Role::Summed | Role::Counted);
        if is_summed && matches!(values, Values::Integers(_) | Values::Floats(_)) {
            // A field with a value per allele is summed allele by allele.
            let sum = match self.sums.iter().position(|(known, _)| known.number == number) {
                Some(known) => known,
                None => {
                    let is_float = matches!(values, Values::Floats(_));
                    self.sums.push((name, if is_float { Sum::Floats(Vec::new()) } else { Sum::Integers(Vec::new()) }));
                    self.sums.len() - 1
                }
            };
            let Some((_, sum)) = self.sums.get_mut(sum) else { return Ok(()) };
            match definition.count {
                ValueCount::Other => sum.add(values.each_number().into_iter().flatten()),
                count => sum.add(place(values, count, alleles, None)?.into_numbers().into_iter()),
            }
            return Ok(());
        }
        if definition.count != ValueCount::Other && !matches!(values, Values::Flag) {
            let placed = place(values, definition.count, alleles, None)?;
            match self.placed.iter_mut().find(|(known, _)| known.number == number) {
                Some((_, known)) => known.unite(placed),
                None => self.placed.push((name, placed)),
            }
            return Ok(());
        }
        self.add_first(name, First::Stored(values));
        Ok(())
    }

    /// Adds the `END` of a record that its writer left out, because its value follows from the record's end.
    pub(super) fn add_end(&mut self, position: u64) {
        self.add_first(Name { number: END_NUMBER, text: END }, First::Position(position));
    }

    fn add_first(&mut self, name: Name<'a>, value: First<'a>) {
        if self.first.iter().all(|(known, _)| known.number != name.number) {
            self.first.push((name, value));
        }
    }

    /// Appends the fields, then those of `last`.
    ///
    /// # Errors
    /// Fails for a text that VCF does not allow.
    pub(super) fn append(mut self, last: &[(&[u8], &[u64])], out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        let append_name = |name: &[u8], out: &mut Vec<u8>| {
            if out.len() > before {
                out.push(b';');
            }
            out.extend_from_slice(name);
            out.push(b'=');
        };
        for (name, values) in &self.first {
            append_name(name.text, out);
            match values {
                First::Position(position) => out.extend_from_slice(itoa::Buffer::new().format(*position).as_bytes()),
                First::Stored(values) if !values.append(b";", out)? => _ = out.pop(),
                First::Stored(_) => {}
            }
        }
        self.sums.sort_by_key(|(name, _)| name.text);
        for (name, sum) in &self.sums {
            append_name(name.text, out);
            sum.append(out);
        }
        for (name, placed) in &self.placed {
            append_name(name.text, out);
            if !placed.append(b";", out)? {
                out.pop();
            }
        }
        for (name, numbers) in last {
            append_name(name, out);
            append_numbers(numbers, out);
        }
        if out.len() == before {
            out.push(b'.');
        }
        Ok(())
    }
}

/// Appends integers, separated by commas.
fn append_numbers(numbers: &[impl itoa::Integer + Copy], out: &mut Vec<u8>) {
    for (place, number) in numbers.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
    }
}

impl Sum {
    /// Adds values, place by place.
    fn add(&mut self, values: impl Iterator<Item = Option<[u8; 4]>>) {
        match self {
            Sum::Integers(sums) => {
                for (place, value) in values.enumerate() {
                    let value = value.map_or(0, i32::from_le_bytes).into();
                    match sums.get_mut(place) {
                        Some(sum) => *sum = sum.saturating_add(value),
                        None => sums.push(value),
                    }
                }
            }
            Sum::Floats(sums) => {
                for (place, value) in values.enumerate() {
                    let value = value.map_or(0.0, f32::from_le_bytes);
                    match sums.get_mut(place) {
                        Some(sum) => *sum += value,
                        // A sum is never -0.0.
                        None => sums.push(0.0 + value),
                    }
                }
            }
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Sum::Integers(sums) => append_numbers(sums, out),
            Sum::Floats(sums) => sums.iter().enumerate().for_each(|(place, sum)| {
                if place > 0 {
                    out.push(b',');
                }
                append_float(sum.to_bits(), out);
            }),
        }
    }
}
