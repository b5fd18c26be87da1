//! INFO of a merged record, as `bcftools merge` makes it by default.
//!
//! A field has the value of the first record with the field. `DP` and `DP4` are summed. Fields with a value per allele
//! or genotype combine the values of all records, each at its place in the line. `AN` and `AC` are counted in the
//! genotypes; without samples they are summed.

use tilefs_base::error::Result;

use super::super::fields::FieldValues;
use super::super::header::ValueCount;
use super::super::line::{InfoField, LineValue, Placed};
use super::super::record::END;
use super::genotypes::{Alleles, place};
use super::known::{END_NUMBER, FieldDefinitions, KnownField, Role};

/// The INFO fields of one line, field by field.
#[derive(Default)]
pub(super) struct MergedInfo<'a> {
    /// Values of the first record with the field.
    first: Vec<(FieldName<'a>, LineValue<'a>)>,
    sums: Vec<(FieldName<'a>, Sum)>,
    placed: Vec<(FieldName<'a>, Placed<'a>)>,
}

/// The name of a field, and its number.
#[derive(Debug, Clone, Copy)]
struct FieldName<'a> {
    number: usize,
    text: &'a [u8],
}

/// The sum of a field's values, place by place. A missing value counts as 0.
enum Sum {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
}

impl<'a> MergedInfo<'a> {
    /// Adds a field of a record.
    ///
    /// # Errors
    /// Fails if a line would have too many values.
    pub(super) fn add(&mut self, field: &KnownField<'a>, has_samples: bool, alleles: &Alleles<'_>) -> Result<()> {
        let KnownField { name: text, values, known: FieldDefinitions { number, role, own: definition, merged } } =
            *field;
        if has_samples && role == Role::Counted {
            return Ok(());
        }
        let name = FieldName { number, text };
        let is_summed = merged.is_numeric && matches!(role, Role::Summed | Role::Counted);
        if is_summed && matches!(values, FieldValues::Integers(_) | FieldValues::Floats(_)) {
            // A field with a value per allele is summed allele by allele.
            let sum = match self.sums.iter().position(|(known, _)| known.number == number) {
                Some(known) => known,
                None => {
                    let is_float = matches!(values, FieldValues::Floats(_));
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
        if definition.count != ValueCount::Other && !matches!(values, FieldValues::Flag) {
            match self.placed.iter_mut().find(|(known, _)| known.number == number) {
                Some((_, known)) => known.add(values, definition.count, alleles)?,
                None => self.placed.push((name, place(values, definition.count, alleles, None)?)),
            }
            return Ok(());
        }
        self.add_first(name, LineValue::Stored(values));
        Ok(())
    }

    /// Adds the `END` of a record that its writer left out, because its value follows from the record's end.
    pub(super) fn add_end(&mut self, position: i64) {
        self.add_first(FieldName { number: END_NUMBER, text: END }, LineValue::Integers(vec![position]));
    }

    fn add_first(&mut self, name: FieldName<'a>, value: LineValue<'a>) {
        if self.first.iter().all(|(known, _)| known.number != name.number) {
            self.first.push((name, value));
        }
    }

    /// Returns the fields, then those of `last`.
    pub(super) fn into_fields(mut self, last: Vec<InfoField<'a>>) -> Vec<InfoField<'a>> {
        self.sums.sort_by_key(|(name, _)| name.text);
        let sums = self.sums.into_iter().map(|(name, sum)| (name.text, sum.into_value()));
        let placed = self.placed.into_iter().map(|(name, placed)| (name.text, LineValue::Placed(placed)));
        let first = self.first.into_iter().map(|(name, value)| (name.text, value));
        first.chain(sums).chain(placed).chain(last).collect()
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

    fn into_value<'a>(self) -> LineValue<'a> {
        match self {
            Sum::Integers(sums) => LineValue::Integers(sums),
            Sum::Floats(sums) => LineValue::Floats(sums),
        }
    }
}
