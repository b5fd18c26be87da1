//! Finds the contigs on which samples of a dataset have records. Headers may name millions of contigs without records,
//! so the boxes of tiles are asked, and the cells of those tiles that hold several contigs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_format::fragment::Descent;
use tilefs_format::scalar::{Range, Scalar};
use tilefs_reader::RowReader;
use tilefs_reader::array::sparse::CoordinateRange;
use tilefs_threads::cancellation;

use super::arrays::{Sample, VariantDataset};
use crate::layout::{ContigStretch, Contigs};

/// The dimension of contigs in layout 4, and its number.
pub const CONTIG: &str = "contig";
const CONTIG_AXIS: usize = 0;

/// The number of the dimension of positions in layouts 2 and 3.
const POSITION_AXIS: usize = 1;

/// Number of names of a header after which cancellation is checked.
pub const NAMES_OF_A_CHECK: usize = 1 << 12;

/// Some positions of a dataset, all on one contig or between contigs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupiedContig {
    /// The contig; `None` for positions between contigs.
    pub name: Option<Vec<u8>>,
    /// Its positions in the dataset: in layout 4 all, otherwise those of the contig.
    pub positions: RangeInclusive<u32>,
}

/// Returns the contigs on which some samples may have records: the contigs of a header in its order, then all other
/// contigs, sorted by name in layout 4 and otherwise by position, then positions between contigs that have cells.
/// `is_all` says whether these are all samples of the dataset. Memory: these contigs, and a batch of coordinates.
///
/// # Errors
/// Fails if a footer, an R-tree or a coordinate cannot be read.
pub fn occupied_contigs<'h>(
    dataset: &VariantDataset,
    samples: &[Sample],
    is_all: bool,
    header: impl Iterator<Item = &'h [u8]>,
) -> Result<Vec<OccupiedContig>> {
    let Some(numbered) = dataset.numbered()? else {
        let mut found = contigs_of_cells(dataset, samples, is_all)?;
        let named = in_order_of(header, |name| found.take(name))?;
        let all = named.into_iter().chain(found);
        return Ok(all.map(|name| OccupiedContig { name: Some(name), positions: 0..=u32::MAX }).collect());
    };
    let found = stretches_of_cells(dataset, samples, is_all, &numbered.contigs)?;
    let (mut by_name, mut gaps) = (HashMap::new(), Vec::new());
    for ContigStretch { contig, positions } in found.into_values() {
        match contig {
            Some(name) => _ = by_name.insert(name, positions),
            None => gaps.push(OccupiedContig { name: None, positions }),
        }
    }
    let of_name = |(name, positions): (&[u8], _)| OccupiedContig { name: Some(name.to_vec()), positions };
    let mut all = in_order_of(header, |name| by_name.remove_entry(name).map(of_name))?;
    let mut others: Vec<_> = by_name.into_iter().collect();
    others.sort_by_key(|(_, positions)| *positions.start());
    all.extend(others.into_iter().map(of_name).chain(gaps));
    Ok(all)
}

/// Returns what `take` has for the names of a header, in the order of the header.
fn in_order_of<'h, T>(
    header: impl Iterator<Item = &'h [u8]>,
    mut take: impl FnMut(&[u8]) -> Option<T>,
) -> Result<Vec<T>> {
    let mut taken = Vec::new();
    for (number, name) in header.enumerate() {
        if number.is_multiple_of(NAMES_OF_A_CHECK) {
            cancellation::check()?;
        }
        taken.extend(take(name));
    }
    Ok(taken)
}

/// Returns the contigs of layout 4 on which some samples have cells.
fn contigs_of_cells(dataset: &VariantDataset, samples: &[Sample], is_all: bool) -> Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    let rows = rows_of(dataset, CONTIG, samples, is_all, |samples| vec![None, None, samples])?;
    let several = rows.within_boxes(CONTIG_AXIS, |range| match range {
        Range { low: Scalar::Text(low), high: Scalar::Text(high) } if low == high => {
            if !found.contains(low) {
                found.insert(low.clone());
            }
            Ok(Descent::Skip)
        }
        _ => Ok(Descent::Enter),
    })?;
    add_contigs(several, &mut found)?;
    Ok(found)
}

/// Adds the contigs of all rows, which have that column.
fn add_contigs(rows: RowReader, found: &mut BTreeSet<Vec<u8>>) -> Result<()> {
    for batch in rows.batches()? {
        cancellation::check()?;
        let batch = batch?;
        let contigs = batch.column(CONTIG)?;
        for contig in (0..batch.len()).filter_map(|row| contigs.get(row)) {
            if !found.contains(contig) {
                found.insert(contig.to_vec());
            }
        }
    }
    Ok(())
}

/// Returns the contigs of layouts 2 and 3, and the gaps between them, on which some samples may have cells, by their
/// first positions.
fn stretches_of_cells<'c>(
    dataset: &VariantDataset,
    samples: &[Sample],
    is_all: bool,
    contigs: &'c Contigs,
) -> Result<BTreeMap<u32, ContigStretch<'c>>> {
    let mut found: BTreeMap<u32, ContigStretch<'c>> = BTreeMap::new();
    let dimension = dataset.position_dimension();
    let rows = rows_of(dataset, dimension, samples, is_all, |samples| vec![samples, None])?;
    let several = rows.within_boxes(POSITION_AXIS, |range| {
        let (Scalar::Unsigned(low), Scalar::Unsigned(high)) = (&range.low, &range.high) else {
            return Err(Error::damaged("a position that is not a number").in_field(dimension));
        };
        let first = dataset.layout.first_start(u32::try_from(*low).unwrap_or(u32::MAX));
        let stretch = contigs.stretch_at(first);
        if *high > u64::from(*stretch.positions.end()) {
            return Ok(Descent::Enter);
        }
        found.insert(*stretch.positions.start(), stretch);
        Ok(Descent::Skip)
    })?;
    // Most cells are on the contigs of the cell before.
    let mut known: Option<RangeInclusive<u32>> = None;
    for batch in several.batches()? {
        cancellation::check()?;
        let batch = batch?;
        for position in batch.column(dimension)?.to_vec::<u32>()? {
            let mut next = Some(dataset.layout.first_start(position));
            if known.as_ref().is_some_and(|known| next >= Some(*known.start()) && position <= *known.end()) {
                continue;
            }
            while let Some(start) = next.filter(|start| *start <= position) {
                let stretch = contigs.stretch_at(start);
                (known, next) = (Some(stretch.positions.clone()), stretch.positions.end().checked_add(1));
                found.insert(*stretch.positions.start(), stretch);
            }
        }
    }
    Ok(found)
}

/// Returns the rows of some samples with one column. `ranges` are those of all dimensions, given those of the samples.
fn rows_of(
    dataset: &VariantDataset,
    column: &str,
    samples: &[Sample],
    is_all: bool,
    ranges: impl FnOnce(Option<Vec<CoordinateRange>>) -> Vec<Option<Vec<CoordinateRange>>>,
) -> Result<RowReader> {
    let rows = dataset.data.rows()?.columns(&[column])?;
    if is_all { Ok(rows) } else { rows.select(&ranges(Some(samples.iter().map(Sample::range).collect()))) }
}

/// Returns whether some samples of a dataset of layout 4 have a record on a contig.
///
/// # Errors
/// Fails if a footer, an R-tree or a coordinate cannot be read.
pub fn has_records(dataset: &VariantDataset, samples: Option<&[Sample]>, contig: &[u8]) -> Result<bool> {
    let rows = rows_on(dataset, samples, &[contig])?;
    Ok(rows.known_count()?.most() > 0 && rows.count()? > 0)
}

/// Returns those of some contigs of a dataset of layout 4 on which some samples have records. Memory: their names, and a
/// batch of cells.
///
/// # Errors
/// Fails if a footer, an R-tree or a coordinate cannot be read.
pub fn with_records(
    dataset: &VariantDataset,
    samples: Option<&[Sample]>,
    contigs: &[&[u8]],
) -> Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    if contigs.is_empty() {
        return Ok(found);
    }
    add_contigs(rows_on(dataset, samples, contigs)?, &mut found)?;
    Ok(found)
}

/// Returns the rows of some samples on some contigs of layout 4, with the contigs.
fn rows_on(dataset: &VariantDataset, samples: Option<&[Sample]>, contigs: &[&[u8]]) -> Result<RowReader> {
    let only = |contig: &&[u8]| {
        let name = Some(Scalar::Text(contig.to_vec()));
        CoordinateRange { low: name.clone(), high: name, step: 1 }
    };
    let samples = samples.map(|samples| samples.iter().map(Sample::range).collect());
    dataset.data.rows()?.columns(&[CONTIG])?.select(&[Some(contigs.iter().map(only).collect()), None, samples])
}

#[cfg(test)]
mod tests {
    use tilefs_reader::{OpenedObject, open};
    use tilefs_threads::cancellation::Token;

    use super::*;

    fn dataset(name: &str) -> VariantDataset {
        let path = tilefs_fixtures::fixtures().join("variants").join(name);
        let array = |member: &str| match open(path.join(member).to_str().unwrap()).unwrap() {
            OpenedObject::Array(array) => array,
            OpenedObject::Group(_) => panic!("{name}/{member} is no array"),
        };
        let headers = ["vcf_headers", "metadata/vcf_headers"].into_iter().find(|member| path.join(member).is_dir());
        VariantDataset::new(array("data"), array(headers.unwrap())).unwrap().unwrap()
    }

    /// Returns the contigs on which a sample has records, or all samples if it has no name; `-` for a gap.
    fn occupied(dataset: &VariantDataset, sample: &str, header: &[&str]) -> Result<Vec<String>> {
        let mut samples = dataset.all_samples()?;
        samples.retain(|one| sample.is_empty() || one.name == sample.as_bytes());
        let header = header.iter().map(|name| name.as_bytes());
        let found = occupied_contigs(dataset, &samples, sample.is_empty(), header)?.into_iter();
        Ok(found.map(|one| one.name.map_or("-".to_owned(), |name| String::from_utf8(name).unwrap())).collect())
    }

    #[test]
    fn only_contigs_with_records_are_gone_through() {
        let decoys: Vec<String> = (0..2500).map(|number| format!("chrUn_KI27{number:04}v1_decoy")).collect();
        let decoys = decoys.iter().map(String::as_str);
        let header: Vec<&str> = ["chrEmpty", "chr2", "chr10"].into_iter().chain(decoys).chain(["chr2"]).collect();
        let of_all = [&["chr2", "chr10", "HLA:01:01", "chr1", "chrUn"][..], &["chr2", "chr10", "chr1", "HLA:01:01"]];
        let of_one = [&["chr10", "chr1", "chrUn"][..], &["chr10", "chr1"]];
        for (name, layout) in [("v4", 0), ("extracted", 0), ("v3", 1)] {
            let dataset = dataset(name);
            assert_eq!(occupied(&dataset, "B 2", &header).unwrap(), of_one[layout], "{name}");
            assert_eq!(occupied(&dataset, "", &header).unwrap(), of_all[layout], "{name}");
        }
        // In layout 2, the first record of a contig may begin before it, as far as coordinates tell.
        let dataset = dataset("v2");
        assert_eq!(occupied(&dataset, "B 2", &header).unwrap(), of_one[1]);
        assert_eq!(occupied(&dataset, "", &header).unwrap(), [&["chrEmpty"][..], of_all[1]].concat());
    }

    #[test]
    fn finding_contigs_ends_on_cancellation() {
        for name in ["v3", "v4"] {
            let dataset = dataset(name);
            let token = Token::new();
            token.cancel();
            let found = token.cover(|| occupied(&dataset, "", &["chr10"]));
            assert!(matches!(found, Err(Error::Cancelled)), "{name}");
            assert!(occupied(&dataset, "", &["chr10"]).is_ok());
        }
    }
}
