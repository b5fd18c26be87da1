//! How a raster program sees an array: samples along a line, lines, and bands.

use super::column::{Field, FormatResult, Unrepresentable};
use super::georeference::Georeference;
use super::pam::Band;

/// Which of bands, lines and samples varies slowest in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interleave {
    /// Band after band.
    Bands,
    /// Line after line, all bands of a line together.
    Lines,
    /// Pixel after pixel, all bands of a pixel together.
    Pixels,
}

/// The three lengths of a raster and the order they have in a row-major file, of which there may be several one after
/// the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    pub samples: u64,
    pub lines: u64,
    /// Of each raster.
    pub bands: u64,
    pub interleave: Interleave,
    /// How many rasters there are, by the axes in front of the three; 1 of an array of up to three.
    pub rasters: u64,
    /// Of the bands of all rasters, so many follow each other that are at one place along the axis of the bands, and
    /// there are so many places.
    along: (u64, u64),
}

/// Names of an axis along which the channels of a picture lie, in small letters.
const NAMES_OF_BANDS: [&str; 9] = ["band", "bands", "c", "ch", "chan", "channel", "channels", "rgb", "rgba"];

/// Names of an axis along which a line runs.
const NAMES_OF_SAMPLES: [&str; 9] = ["x", "lon", "long", "longitude", "easting", "col", "cols", "column", "columns"];

/// A last axis of so many is short enough for the channels of a picture: red, green, blue and opacity.
const MOST_CHANNELS: u64 = 4;

/// Which axis of an array of three or more is that of the bands: the one that is called so; else the last where it is
/// short, and shorter than the others; `None` where neither is. `lengths` are those of the whole array, since the
/// meaning of an axis does not change with how much of it is shown.
pub fn band_axis(names: &[String], lengths: &[u64]) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    if names.len() < 3 {
        return None;
    }
    let named = names.iter().rposition(|name| NAMES_OF_BANDS.contains(&name.as_str()));
    named.or_else(|| {
        let last = names.len() - 1;
        let length = *lengths.get(last)?;
        let is_short = length <= MOST_CHANNELS && lengths.iter().take(last).all(|&other| other > length);
        (is_short && !NAMES_OF_SAMPLES.contains(&names[last].as_str())).then_some(last)
    })
}

/// What is known of a raster besides its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// The axis of the bands; `None` for the first of three.
    pub band_axis: Option<usize>,
    /// Where the pixels lie on the Earth.
    pub place: Option<Georeference>,
    /// Columns of the file that are the raster, where those behind are padding.
    pub samples: Option<u64>,
    /// Rows of the file that are the raster.
    pub lines: Option<u64>,
    /// What is said of each band; as many as there are bands, or none.
    pub bands: Vec<Band>,
}

impl Scene {
    /// A raster of which nothing is known but its axes.
    pub fn of_axes(names: &[String], lengths: &[u64]) -> Self {
        Scene { band_axis: band_axis(names, lengths), ..Scene::default() }
    }

    /// What is the same for all bands.
    pub fn shared<T: PartialEq + Clone>(&self, of: impl Fn(&Band) -> Option<T>) -> Option<T> {
        let first = of(self.bands.first()?)?;
        self.bands.iter().all(|band| of(band).as_ref() == Some(&first)).then_some(first)
    }

    /// What is said of the band of that number from 0.
    pub fn band(&self, number: u64) -> Option<&Band> {
        self.bands.get(usize::try_from(number).ok()?)
    }
}

impl Raster {
    /// Whether an array of so many axes is a raster.
    pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
        let Some(values) = field.values_per_cell else {
            return Err(Unrepresentable::new("a raster's cells have one size, and here each cell has its own"));
        };
        let axes = rank + usize::from(values > 1);
        // A row of cells is a series, a table or an index: as a raster of one line it would only be misread.
        if rank < 2 || axes > 3 {
            return Err(Unrepresentable::new(match values {
                1 => format!("a raster has 2 or 3 axes, and this array has {rank}"),
                _ => format!("a raster has 2 or 3 axes, and this array has {rank} and several values a cell"),
            }));
        }
        Ok(())
    }

    /// Two axes are lines and samples. Of three one are the bands: `band_axis`, or the first. Several values a cell are
    /// the bands, pixel by pixel.
    pub fn of(field: &Field, shape: &[u64], band_axis: Option<usize>) -> FormatResult<Self> {
        Raster::check(field, shape.len())?;
        let values = u64::from(field.values_per_cell.unwrap_or(1));
        let (bands, lines, samples, interleave) = match (shape, band_axis) {
            (&[lines, samples], _) => (values, lines, samples, Interleave::Pixels),
            (&[lines, bands, samples], Some(1)) => (bands, lines, samples, Interleave::Lines),
            (&[lines, samples, bands], Some(2)) => (bands, lines, samples, Interleave::Pixels),
            (&[bands, lines, samples], _) => (bands, lines, samples, Interleave::Bands),
            _ => return Err(Unrepresentable::new("a raster has 2 or 3 axes")),
        };
        // With one band all three orders are the same; this is the one that every reader expects.
        let interleave = if bands == 1 { Interleave::Bands } else { interleave };
        Ok(Raster { samples, lines, bands, interleave, rasters: 1, along: (1, bands) })
    }

    /// The same for any number of axes: those in front of the two of lines and samples, and of the bands where these lie
    /// behind, are a row of rasters. Several values a cell are for arrays of two axes.
    pub fn all_of(field: &Field, shape: &[u64], band_axis: Option<usize>) -> FormatResult<Self> {
        let Some(outer) = shape.len().checked_sub(3).filter(|&outer| outer > 0) else {
            return Raster::of(field, shape, band_axis);
        };
        let product = |lengths: &[u64]| lengths.iter().fold(1u64, |all, &length| all.saturating_mul(length));
        match band_axis {
            Some(axis) if axis > outer => {
                let mut raster = Raster::of(field, &shape[outer..], Some(axis - outer))?;
                raster.rasters = product(&shape[..outer]);
                Ok(raster)
            }
            leading => {
                let mut raster = Raster::of(field, &shape[outer + 1..], None)?;
                raster.rasters = product(&shape[..=outer]);
                if let Some(axis) = leading {
                    raster.along = (product(&shape[axis + 1..=outer]), shape[axis]);
                }
                Ok(raster)
            }
        }
    }

    /// Where along the axis of the bands one of all bands of all rasters is; 0 where there is no such axis.
    pub fn place_of_band(&self, number: u64) -> u64 {
        let (each, places) = self.along;
        number / each.max(1) % places.max(1)
    }
}

/// The axes of an array's lines and samples; `None` where it has fewer than two besides that of the bands.
pub fn line_and_sample_axes(rank: usize, band_axis: Option<usize>) -> Option<[usize; 2]> {
    let mut axes = (0..rank).rev().filter(|&axis| band_axis != Some(axis));
    let (samples, lines) = (axes.next()?, axes.next()?);
    Some([lines, samples])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(names: &[&str], lengths: &[u64]) -> Option<usize> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        band_axis(&names, lengths)
    }

    #[test]
    fn bands_are_told_by_name_then_by_length() {
        assert_eq!(axis(&["y", "x", "c"], &[300, 400, 30]), Some(2));
        assert_eq!(axis(&["Y", "X", "BANDS"], &[300, 400, 7]), Some(2));
        assert_eq!(axis(&["BANDS", "Y", "X"], &[7, 300, 4]), Some(0));
        assert_eq!(axis(&["t", "channel", "x"], &[7, 300, 4]), Some(1));
        assert_eq!(axis(&["a", "b", "d"], &[300, 400, 3]), Some(2));
        assert_eq!(axis(&["a", "b", "d"], &[300, 400, 5]), None);
        assert_eq!(axis(&["a", "b", "d"], &[3, 400, 3]), None);
        assert_eq!(axis(&["t", "y", "x"], &[300, 400, 3]), None);
        assert_eq!(axis(&["c", "x"], &[300, 3]), None);
        assert_eq!(axis(&["z", "y", "x", "rgb"], &[9, 9, 9, 3]), Some(3));
    }

    #[test]
    fn more_than_three_axes_are_a_row_of_rasters() {
        let field = Field::new("a", tilefs_format::datatype::Datatype::UInt8);
        let of = |shape: &[u64], band_axis| {
            let raster = Raster::all_of(&field, shape, band_axis).unwrap();
            let places: Vec<u64> =
                (0..raster.rasters * raster.bands).map(|number| raster.place_of_band(number)).collect();
            ((raster.rasters, raster.bands, raster.lines, raster.samples), raster.interleave, places)
        };
        assert_eq!(of(&[2, 5, 4, 3], Some(3)), ((2, 3, 5, 4), Interleave::Pixels, vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(of(&[2, 5, 3, 4], Some(2)), ((2, 3, 5, 4), Interleave::Lines, vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(of(&[2, 3, 5, 4], Some(1)), ((6, 1, 5, 4), Interleave::Bands, vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(of(&[2, 3, 5, 4], Some(0)), ((6, 1, 5, 4), Interleave::Bands, vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(of(&[2, 2, 5, 4], None), ((4, 1, 5, 4), Interleave::Bands, vec![0; 4]));
        assert_eq!(of(&[2, 1, 1, 5, 4], Some(1)).0, (2, 1, 5, 4));
        assert_eq!(of(&[3, 5, 4], None), ((1, 3, 5, 4), Interleave::Bands, vec![0, 1, 2]));
    }

    #[test]
    fn lines_and_samples_are_the_other_axes() {
        assert_eq!(line_and_sample_axes(3, Some(2)), Some([0, 1]));
        assert_eq!(line_and_sample_axes(3, Some(1)), Some([0, 2]));
        assert_eq!(line_and_sample_axes(3, None), Some([1, 2]));
        assert_eq!(line_and_sample_axes(2, None), Some([0, 1]));
        assert_eq!(line_and_sample_axes(1, None), None);
    }
}
