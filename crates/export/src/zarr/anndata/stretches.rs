//! Stretches: consecutive stored cells of one band of rows.
//!
//! A matrix that was written in parts has the cells of a band in several places, each part its own. If the boxes of the
//! parts are disjoint, their cells need not be merged: the cells of a row in one part stay together.

use std::ops::Range;

use tilefs_base::error::Result;

use super::runs::out_of_order;

/// Bytes of an encoded stretch.
const ENCODED: usize = 3 * size_of::<u64>();

/// Sections of the stored cells, each of which is sorted by bands of rows. Cells of the same row in two sections are in
/// the order of the sections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sections {
    /// Number of rows of a band, at least 1.
    extent: u64,
    /// The first cell of each section, ascending.
    firsts: Vec<u64>,
}

impl Sections {
    /// Memory in bytes of each stretch: there is one for each band that a section has cells in.
    pub const STRETCH_BYTES: usize = size_of::<Stretch>();

    /// Creates the sections that begin at these cells. `None` for bands without rows.
    pub fn new(extent: u64, firsts: Vec<u64>) -> Option<Self> {
        (extent > 0).then_some(Sections { extent, firsts })
    }
}

/// Stored cells of one band that follow each other. Stretches sort by bands, and those of a band as stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    band: u64,
    first: u64,
    end: u64,
}

/// Collects stretches in stored order.
pub struct StretchFinder<'s> {
    sections: &'s Sections,
    found: Vec<Stretch>,
    /// The rows of the last one's band.
    rows: Range<u64>,
}

impl<'s> StretchFinder<'s> {
    /// Starts without a cell.
    pub fn new(sections: &'s Sections) -> Self {
        StretchFinder { sections, found: Vec::new(), rows: 0..0 }
    }

    /// Adds cells of a row, which follow those that were added before.
    ///
    /// # Errors
    /// [`Error::Damaged`](tilefs_base::error::Error::Damaged) for a row in an earlier band than the last row
    /// added in the section.
    pub fn add_cells(&mut self, row: u64, cells: Range<u64>) -> Result<()> {
        if !self.rows.contains(&row) {
            let band = row / self.sections.extent;
            let first = band * self.sections.extent;
            self.rows = first..first.saturating_add(self.sections.extent);
            return self.add(Stretch { band, first: cells.start, end: cells.end });
        }
        if let Some(last) = self.found.last_mut() {
            last.end = cells.end;
        }
        Ok(())
    }

    /// Adds the stretches of cells that follow those that were added before.
    ///
    /// # Errors
    /// As [`StretchFinder::add_cells`].
    pub fn add_all(&mut self, behind: StretchFinder<'_>) -> Result<()> {
        behind.found.into_iter().try_for_each(|stretch| self.add(stretch))
    }

    fn add(&mut self, stretch: Stretch) -> Result<()> {
        match self.found.last_mut() {
            Some(last) if last.band == stretch.band => last.end = stretch.end,
            Some(last) if last.band > stretch.band && self.sections.firsts.binary_search(&stretch.first).is_err() => {
                return Err(out_of_order());
            }
            _ => self.found.push(stretch),
        }
        Ok(())
    }

    /// Returns all stretches.
    pub fn finish(self) -> Stretches {
        let mut found = self.found;
        found.sort_unstable();
        found.shrink_to_fit();
        Stretches(found)
    }
}

/// The stretches of a matrix. Memory: [`Sections::STRETCH_BYTES`] each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Returns the stored cells of a band.
    pub fn of_band(&self, band: u64) -> impl Iterator<Item = Range<u64>> {
        let first = self.0.partition_point(|stretch| stretch.band < band);
        let own = self.0[first..].iter().take_while(move |stretch| stretch.band == band);
        own.map(|stretch| stretch.first..stretch.end)
    }

    /// Appends the stretches, encoded.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let numbers = self.0.iter().flat_map(|stretch| [stretch.band, stretch.first, stretch.end]);
        out.extend(numbers.flat_map(u64::to_le_bytes));
    }

    /// Decodes the stretches of all cells of a matrix whose rows begin at `starts`; `None` for other bytes.
    pub fn decode(bytes: &[u8], sections: &Sections, starts: &[u64]) -> Option<Self> {
        let (encoded, []) = bytes.as_chunks::<ENCODED>() else { return None };
        let stretch = |bytes: &[u8; ENCODED]| {
            let mut numbers = bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number));
            Some(Stretch { band: numbers.next()?, first: numbers.next()?, end: numbers.next()? })
        };
        let all = encoded.iter().map(stretch).collect::<Option<Vec<_>>>()?;
        let (last, cells) = (starts.len().checked_sub(1)?, *starts.last()?);
        let has_its_cells = |band: &[Stretch]| {
            let first = usize::try_from(band.first()?.band.checked_mul(sections.extent)?).ok()?;
            let end = usize::try_from(sections.extent).ok().and_then(|extent| first.checked_add(extent));
            let wanted = starts.get(end.map_or(last, |end| end.min(last)))?.checked_sub(*starts.get(first)?)?;
            let add = |sum: u64, own: &Stretch| sum.checked_add(own.end.checked_sub(own.first)?);
            (band.iter().try_fold(0, add)? == wanted).then_some(wanted)
        };
        let is_sound = all.is_sorted() && all.iter().all(|stretch| stretch.end <= cells);
        let counts = all.chunk_by(|a, b| a.band == b.band).map(has_its_cells);
        (is_sound && counts.sum::<Option<u64>>()? == cells).then_some(Stretches(all))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(sections: &Sections, rows: &[u64], first: u64) -> Result<Stretches> {
        finder(sections, rows, first).map(StretchFinder::finish)
    }

    fn finder<'s>(sections: &'s Sections, rows: &[u64], first: u64) -> Result<StretchFinder<'s>> {
        let mut finder = StretchFinder::new(sections);
        rows.iter().zip(first..).try_for_each(|(row, cell)| finder.add_cells(*row, cell..cell + 1))?;
        Ok(finder)
    }

    proptest! {
        /// However the cells are divided into pieces.
        #[test]
        fn stretches_are_the_cells_of_each_band(
            parts in prop::collection::vec(prop::collection::vec(0u64..30, 1..20), 1..5),
            extent in 1u64..12,
            cut in 0usize..80,
        ) {
            let bands = |rows: &[u64]| { let mut rows = rows.to_vec(); rows.sort_by_key(|row| row / extent); rows };
            let rows: Vec<u64> = parts.iter().flat_map(|part| bands(part)).collect();
            let firsts = parts.iter().scan(0, |first, part| { let own = *first; *first += part.len() as u64; Some(own) });
            let sections = Sections::new(extent, firsts.collect()).unwrap();
            let stretches = found(&sections, &rows, 0).unwrap();
            for band in 0..=30 / extent {
                let cells: Vec<u64> = stretches.of_band(band).flatten().collect();
                let expected = (0..rows.len()).filter(|cell| rows[*cell] / extent == band).map(|cell| cell as u64);
                prop_assert_eq!(cells, expected.collect::<Vec<_>>());
            }
            let (before, behind) = rows.split_at(cut.min(rows.len()));
            let mut joined = finder(&sections, before, 0).unwrap();
            joined.add_all(finder(&sections, behind, before.len() as u64).unwrap()).unwrap();
            prop_assert_eq!(&joined.finish(), &stretches);

            let mut bytes = Vec::new();
            stretches.encode(&mut bytes);
            let starts: Vec<u64> = (0..=30).map(|row| rows.iter().filter(|own| **own < row).count() as u64).collect();
            prop_assert_eq!(Stretches::decode(&bytes, &sections, &starts), Some(stretches));
            let others = (0..bytes.len()).step_by(8).map(|at| { let mut other = bytes.clone(); other[at] ^= 1; other });
            for other in others.chain([bytes[8..].to_vec(), bytes[ENCODED..].to_vec(), [bytes.clone(), vec![0; ENCODED]].concat()]) {
                let decoded = Stretches::decode(&other, &sections, &starts);
                prop_assert!(decoded.is_none_or(|decoded| (0..=30).all(|band| {
                    let row = |row: u64| starts[row.min(30) as usize];
                    decoded.of_band(band).map(|cells| cells.end - cells.start).sum::<u64>() == row((band + 1) * extent) - row(band * extent)
                })), "{:?}", other);
            }
        }
    }

    #[test]
    fn bands_that_fall_within_a_section_are_an_error() {
        let sections = Sections::new(4, vec![0, 3]).unwrap();
        assert!(found(&sections, &[0, 4, 8, 0, 4], 0).is_ok());
        assert!(found(&sections, &[3, 1, 8, 0, 4], 0).is_ok(), "in any order within a band");
        for rows in [&[4, 0, 8, 8][..], &[0, 4, 8, 8, 4], &[8, 4], &[0, 4, 8, 4, 0]] {
            assert!(found(&sections, rows, 0).is_err(), "{rows:?}");
            let mut joined = finder(&sections, &rows[..1], 0).unwrap();
            let behind: Result<()> = (1..rows.len())
                .try_for_each(|cell| joined.add_all(finder(&sections, &rows[cell..=cell], cell as u64)?));
            assert!(behind.is_err(), "{rows:?}");
        }
        assert!(Sections::new(0, vec![0]).is_none());
    }
}
