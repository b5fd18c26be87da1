//! Finds the contigs on which samples of a dataset have records.

use std::collections::{BTreeSet, HashSet};

use tilefs_format::error::Result;
use tilefs_format::scalar::Scalar;
use tilefs_reader::array::sparse::CoordinateRange;

use super::variants::{Sample, VariantDataset};

/// The number of the dimension of contigs in layout 4, and that of samples.
const CONTIG: &str = "contig";
const CONTIG_AXIS: usize = 0;
const SAMPLE_AXIS: usize = 2;

/// Returns the names of the contigs on which some samples may have records: the contigs of a header in its order, then
/// the others, sorted. Searches only for contigs that no header names, in the tiles that may contain some.
///
/// # Errors
/// Fails if a footer or a coordinate of these tiles cannot be read.
pub fn contig_names(dataset: &VariantDataset, samples: &[Sample], named: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    if let Some(numbered) = dataset.numbered()? {
        let mut names = named.to_vec();
        names.extend(
            numbered.contigs.names().filter(|name| !named.iter().any(|known| known == name)).map(<[u8]>::to_vec),
        );
        return Ok(names);
    }
    let spans = contig_spans(dataset, samples)?;
    let is_there = |contig: &&Vec<u8>| spans.iter().any(|(low, high)| (low..=high).contains(contig));
    let mut names: Vec<Vec<u8>> = named.iter().filter(is_there).cloned().collect();
    let known: HashSet<&Vec<u8>> = named.iter().collect();
    if spans.iter().any(|(low, high)| low != high || !known.contains(low)) {
        let mut others = BTreeSet::new();
        let rows = dataset.data.rows()?.columns(&[CONTIG])?;
        for batch in rows.select(&[Some(between(named)), None, None])?.batches()? {
            let batch = batch?;
            let contigs = batch.column(CONTIG)?;
            others.extend((0..batch.len()).filter_map(|row| contigs.get(row)).map(<[u8]>::to_vec));
        }
        names.extend(others);
    }
    Ok(names)
}

/// Returns the ranges of contigs, both ends included, of all fragments that may have records of some samples.
fn contig_spans(dataset: &VariantDataset, samples: &[Sample]) -> Result<BTreeSet<(Vec<u8>, Vec<u8>)>> {
    let (data, mut spans) = (&dataset.data, BTreeSet::new());
    let names: BTreeSet<&[u8]> = samples.iter().map(|sample| sample.name.as_slice()).collect();
    data.read_outlines();
    for fragment in 0..data.fragment_count() {
        let outline = data.outline(fragment)?;
        let span = |number: usize| {
            let range = outline.facts.non_empty_range(number)?;
            match (range.low, range.high) {
                (Scalar::Text(low), Scalar::Text(high)) => Some((low, high)),
                _ => None,
            }
        };
        let has_sample = span(SAMPLE_AXIS)
            .is_none_or(|(low, high)| low <= high && names.range(low.as_slice()..=high.as_slice()).next().is_some());
        if has_sample {
            // If the fragment has no range: from the empty text to one above all ASCII texts.
            spans.insert(span(CONTIG_AXIS).unwrap_or((Vec::new(), vec![0xff])));
        }
    }
    Ok(spans)
}

/// Returns ranges that contain every ASCII text except these names.
fn between(names: &[Vec<u8>]) -> Vec<CoordinateRange> {
    let sorted: BTreeSet<&Vec<u8>> = names.iter().collect();
    let mut ranges = Vec::new();
    // The lowest text that is not yet in a range and not one of the names so far.
    let mut low = Vec::new();
    for name in sorted {
        // A bound just below the name: greater than all ASCII texts with the same prefix and a lower last byte.
        let below = match name.split_last() {
            None => None,
            Some((0, rest)) => Some(rest.to_vec()),
            Some((last, rest)) => Some([rest, &[last - 1, 0xff]].concat()),
        };
        if let Some(below) = below.filter(|below| *below >= low) {
            ranges.push(texts(Some(low), Some(below)));
        }
        low = [name, &b"\0"[..]].concat();
    }
    ranges.push(texts(Some(low), None));
    ranges
}

fn texts(low: Option<Vec<u8>>, high: Option<Vec<u8>>) -> CoordinateRange {
    CoordinateRange { low: low.map(Scalar::Text), high: high.map(Scalar::Text), step: 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_text_is_a_name_or_between_names(names in proptest::collection::vec("[ab\0]{0,3}", 0..6), text in "[ab\0]{0,4}") {
            let names: Vec<Vec<u8>> = names.into_iter().map(String::into_bytes).collect();
            let text = Scalar::Text(text.into_bytes());
            let holds = |range: &CoordinateRange| {
                let (Some(Scalar::Text(low)), Scalar::Text(text)) = (&range.low, &text) else { panic!("{range:?}") };
                let high = match &range.high {
                    Some(Scalar::Text(high)) => Some(high),
                    _ => None,
                };
                low <= text && high.is_none_or(|high| text <= high)
            };
            let count = between(&names).iter().filter(|range| holds(range)).count();
            let is_name = names.iter().any(|name| Scalar::Text(name.clone()) == text);
            prop_assert_eq!(count, usize::from(!is_name));
        }
    }
}
