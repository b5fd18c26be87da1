//! Maps a record's values per allele or genotype to their places among those of the merged line.
//!
//! VCF orders the genotypes of a ploidy by their highest allele, then by the next lower one, and so on: those of two
//! alleles are 00, 01, 11 if diploid.

use tilefs_base::error::{Error, Result};

use super::super::fields::{FieldValues, unpadded};
use super::super::header::ValueCount;
use super::super::line::{MISSING, Placed};

/// Maximum number of values of a field in a line per sample: a record has at most 2^31 bytes in BCF, and memory must be
/// bounded.
const MAX_VALUES: usize = 1 << 20;

/// The highest ploidy to try if the genotypes do not determine it.
const MAX_PLOIDY: usize = 16;

/// The alleles of a record, mapped to those of its line.
pub(super) struct Alleles<'m> {
    /// For each allele of the record, its number in the line.
    pub map: &'m [usize],
    /// The number of alleles of the line.
    pub of_line: usize,
}

/// Arranges the values of a record for its line. Values without a place are left out, and places without a value are
/// missing. `ploidy` is the number of alleles in the sample's genotype.
///
/// # Errors
/// Fails if a line would have too many values.
pub(super) fn place<'a>(
    values: FieldValues<'a>,
    count: ValueCount,
    alleles: &Alleles<'_>,
    ploidy: Option<usize>,
) -> Result<Placed<'a>> {
    match values {
        FieldValues::Text(text) => {
            let parts: Vec<&[u8]> = unpadded(text).split(|&byte| byte == b',').collect();
            let targets = Targets::new(count, alleles, ploidy, parts.len())?;
            let mut texts = vec![MISSING; targets.length];
            for (&target, part) in targets.indexes.iter().zip(parts) {
                if let Some(place) = texts.get_mut(target).filter(|_| !part.is_empty()) {
                    *place = part;
                }
            }
            Ok(Placed::Texts(texts))
        }
        _ => {
            let found = values.numbers().unwrap_or_default();
            if is_in_place(count, alleles, ploidy, found.len()) {
                return Ok(Placed::Numbers { numbers: found, is_float: matches!(values, FieldValues::Floats(_)) });
            }
            let targets = Targets::new(count, alleles, ploidy, found.len())?;
            let mut numbers = vec![None; targets.length];
            for (&target, number) in targets.indexes.iter().zip(found) {
                if let Some(place) = numbers.get_mut(target) {
                    *place = number;
                }
            }
            Ok(Placed::Numbers { numbers, is_float: matches!(values, FieldValues::Floats(_)) })
        }
    }
}

/// Returns whether values keep their places: the line has the alleles of the record, and there is a value for each place.
fn is_in_place(count: ValueCount, alleles: &Alleles<'_>, ploidy: Option<usize>, found: usize) -> bool {
    let Alleles { map, of_line } = *alleles;
    let wanted = match count {
        ValueCount::Other => return true,
        ValueCount::PerAllele => Some(of_line),
        ValueCount::PerAlternative => of_line.checked_sub(1),
        ValueCount::PerGenotype => {
            ploidy_of(found, map.len(), ploidy).map(|_| found).filter(|found| *found <= MAX_VALUES)
        }
    };
    wanted == Some(found) && map.len() == of_line && map.iter().enumerate().all(|(own, number)| own == *number)
}

/// Returns whether a record with some alleles can have this number of values. A single missing value stands for all.
pub(super) fn is_complete(values: FieldValues<'_>, count: ValueCount, alleles: usize) -> bool {
    let Some(numbers) = values.each_number() else { return true };
    let found = numbers.clone().count();
    found <= 1 && numbers.flatten().next().is_none()
        || match count {
            ValueCount::Other => true,
            ValueCount::PerAlternative => found + 1 == alleles,
            ValueCount::PerAllele => found == alleles,
            ValueCount::PerGenotype => ploidy_of(found, alleles, None).is_some(),
        }
}

/// For each value of a record, its place in the line.
struct Targets {
    indexes: Vec<usize>,
    /// The number of places in the line.
    length: usize,
}

impl Targets {
    fn new(count: ValueCount, alleles: &Alleles<'_>, ploidy: Option<usize>, found: usize) -> Result<Self> {
        let (indexes, length) = match count {
            ValueCount::Other => ((0..found).collect(), found),
            ValueCount::PerAllele => (alleles.map.to_vec(), alleles.of_line),
            ValueCount::PerAlternative => {
                // The reference is always number 0.
                let others = alleles.map.iter().skip(1);
                (others.map(|number| number.saturating_sub(1)).collect(), alleles.of_line.saturating_sub(1))
            }
            ValueCount::PerGenotype => {
                let ploidy = ploidy_of(found, alleles.map.len(), ploidy).unwrap_or(2);
                let length = genotype_count(alleles.of_line, ploidy).filter(|&length| length <= MAX_VALUES);
                let too_many = || Error::unsupported(format!("more than {MAX_VALUES} genotypes of a line"));
                (genotype_indexes(alleles.map, ploidy, found), length.ok_or_else(too_many)?)
            }
        };
        Ok(Targets { indexes, length })
    }
}

/// Returns the ploidy for which the alleles have this many genotypes. Tries the likely one first, then 2, 1, and 3 and
/// more.
fn ploidy_of(genotypes: usize, alleles: usize, likely: Option<usize>) -> Option<usize> {
    let tried = likely.into_iter().chain([2, 1]).chain(3..=MAX_PLOIDY);
    tried.into_iter().find(|&ploidy| genotype_count(alleles, ploidy) == Some(genotypes))
}

/// Returns the number of genotypes; `None` if it is too large.
fn genotype_count(alleles: usize, ploidy: usize) -> Option<usize> {
    // The number of multisets of size `ploidy`, a binomial coefficient. Each intermediate result is an integer.
    (1..=ploidy).try_fold(1usize, |count, number| {
        let next = count.checked_mul(alleles.checked_add(number)?.checked_sub(1)?)? / number;
        (next <= 1 << 40).then_some(next)
    })
}

/// Returns the places in the line of the first `most` genotypes of a record.
fn genotype_indexes(map: &[usize], ploidy: usize, most: usize) -> Vec<usize> {
    let (mut indexes, mut genotype) = (Vec::with_capacity(most), vec![0; ploidy]);
    let last_allele = map.len().saturating_sub(1);
    while indexes.len() < most {
        let mut in_line: Vec<usize> = genotype.iter().filter_map(|&allele| map.get(allele).copied()).collect();
        in_line.sort_unstable();
        // A genotype comes after all with a lower highest allele, then those with the same one and a lower next, and so
        // on.
        let before = in_line.iter().enumerate().filter_map(|(place, &allele)| genotype_count(allele, place + 1));
        indexes.push(before.fold(0usize, usize::saturating_add));
        // Advance to the next genotype: raise the first allele that does not exceed the next one then.
        let bound = |place: usize| genotype.get(place + 1).copied().unwrap_or(last_allele);
        let Some(raised) = (0..genotype.len()).find(|&place| genotype[place] < bound(place)) else { break };
        genotype[raised] += 1;
        genotype[..raised].fill(0);
    }
    indexes
}

impl<'a> Placed<'a> {
    /// Returns the numbers; none for texts.
    pub(super) fn into_numbers(self) -> Vec<Option<[u8; 4]>> {
        match self {
            Placed::Numbers { numbers, .. } => numbers,
            Placed::Texts(_) => Vec::new(),
        }
    }

    /// Merges the values of another record: its numbers replace those of earlier records, its texts do not.
    ///
    /// # Errors
    /// As for [`place`].
    pub(super) fn add(&mut self, values: FieldValues<'a>, count: ValueCount, alleles: &Alleles<'_>) -> Result<()> {
        match (&mut *self, values.each_number()) {
            // Most records have all alleles of their line, in the same order.
            (Placed::Numbers { numbers, is_float }, Some(others))
                if *is_float == matches!(values, FieldValues::Floats(_))
                    && is_in_place(count, alleles, None, others.clone().count())
                    && numbers.len() >= others.clone().count() =>
            {
                numbers.iter_mut().zip(others).for_each(|(number, other)| *number = other.or(*number));
            }
            _ => self.unite(place(values, count, alleles, None)?),
        }
        Ok(())
    }

    fn unite(&mut self, other: Placed<'a>) {
        match (self, other) {
            (Placed::Numbers { numbers, is_float }, Placed::Numbers { numbers: others, is_float: other_float })
                if *is_float == other_float =>
            {
                // Genotypes of another ploidy may need more places.
                numbers.resize(numbers.len().max(others.len()), None);
                numbers.iter_mut().zip(others).for_each(|(number, other)| *number = other.or(*number));
            }
            (Placed::Texts(texts), Placed::Texts(others)) => {
                texts.resize(texts.len().max(others.len()), MISSING);
                let missing = texts.iter_mut().zip(others).filter(|(text, _)| **text == MISSING);
                missing.for_each(|(text, other)| *text = other);
            }
            // If files define the field with different types, the first takes precedence.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::line::LineValue;
    use super::*;

    fn genotypes(alleles: usize, ploidy: usize) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for _ in 0..ploidy {
            all = all
                .iter()
                .flat_map(|genotype: &Vec<usize>| {
                    let low = genotype.last().copied().unwrap_or(0);
                    (low..alleles).map(|allele| [genotype.as_slice(), &[allele]].concat())
                })
                .collect();
        }
        all.sort_by_key(|genotype| genotype.iter().rev().copied().collect::<Vec<_>>());
        all
    }

    proptest! {
        #[test]
        fn genotypes_keep_their_alleles(
            map in proptest::collection::vec(1usize..6, 0..4), ploidy in 1usize..5,
        ) {
            let map: Vec<usize> = [0].into_iter().chain(map).collect();
            let (own, of_line) = (genotypes(map.len(), ploidy), genotypes(6, ploidy));
            prop_assert_eq!(genotype_count(map.len(), ploidy), Some(own.len()));
            let indexes = genotype_indexes(&map, ploidy, own.len());
            prop_assert_eq!(indexes.len(), own.len());
            for (genotype, index) in own.iter().zip(indexes) {
                let mut mapped: Vec<usize> = genotype.iter().map(|&allele| map[allele]).collect();
                mapped.sort();
                prop_assert_eq!(&of_line[index], &mapped);
            }
        }
    }

    fn shown(
        values: FieldValues<'_>,
        count: ValueCount,
        map: &[usize],
        of_line: usize,
        ploidy: Option<usize>,
    ) -> String {
        let mut out = Vec::new();
        let placed = place(values, count, &Alleles { map, of_line }, ploidy).unwrap();
        LineValue::Placed(placed).append(b";", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_take_the_places_of_their_alleles() {
        let numbers = [7, i32::MIN, 9].map(i32::to_le_bytes);
        let values = FieldValues::Integers(&numbers);
        assert_eq!(shown(values, ValueCount::PerAllele, &[0, 3, 1], 4, None), "7,9,.,.");
        assert_eq!(shown(values, ValueCount::PerAlternative, &[0, 3, 1, 2], 4, None), ".,9,7");
        assert_eq!(shown(values, ValueCount::PerGenotype, &[0, 2], 3, None), "7,.,.,.,.,9");
        assert_eq!(shown(values, ValueCount::PerGenotype, &[0, 2, 1], 3, Some(1)), "7,9,.");
        assert_eq!(shown(values, ValueCount::PerGenotype, &[0, 2, 1], 3, None), "7,9,.");
        let text = FieldValues::Text(b"a,.,c");
        assert_eq!(shown(text, ValueCount::PerAllele, &[0, 3, 1], 4, None), "a,c,.,.");
        assert_eq!(shown(FieldValues::Text(b"."), ValueCount::PerAlternative, &[0, 1, 2], 3, None), ".,.");
    }

    #[test]
    fn values_of_any_number_and_ploidy_are_bounded() {
        let numbers = [0i32; 3].map(i32::to_le_bytes);
        let map: Vec<usize> = (0..3).collect();
        let alleles = Alleles { map: &map, of_line: 100_000 };
        assert!(place(FieldValues::Integers(&numbers), ValueCount::PerGenotype, &alleles, Some(2)).is_ok());
        let alleles = Alleles { map: &map[..2], of_line: 100_000 };
        assert!(place(FieldValues::Integers(&numbers), ValueCount::PerGenotype, &alleles, Some(2)).is_err());
        assert_eq!(genotype_count(usize::MAX, 3), None);
        assert!(is_complete(FieldValues::Integers(&numbers), ValueCount::PerGenotype, 2));
        assert!(!is_complete(FieldValues::Integers(&numbers), ValueCount::PerAlternative, 3));
        assert!(is_complete(FieldValues::Integers(&numbers[..0]), ValueCount::PerAllele, 3));
    }
}
