//! An array as a raster program sees it: samples along a line, lines, and bands.

#[doc(hidden)]
pub mod axis;
pub mod envi;
pub(crate) mod pam_text;
#[doc(hidden)]
pub mod sidecar;

use std::borrow::Cow;
use std::sync::Arc;

use crate::column::{Field, FormatResult, Unrepresentable};
use crate::geo::bands::{Band, Bands};
use crate::geo::georeference::Georeference;
use crate::geo::pam_metadata::{ControlPoints, MetadataDomain};
use crate::number;

/// The order of bands, lines and samples in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interleave {
    /// One band after the other.
    Bands,
    /// One line after the other, with all bands of a line together.
    Lines,
    /// One pixel after the other, with all bands of a pixel together.
    Pixels,
}

/// The three lengths of a raster and their order in a row-major file, which may contain several rasters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    /// Columns of the raster.
    pub samples: u64,
    /// Rows of the raster.
    pub lines: u64,
    /// Number of bands of each raster.
    pub bands: u64,
    /// The order of the bands' values.
    pub interleave: Interleave,
    /// Number of rasters, the product of the axes in front of the three; 1 for an array of up to three axes.
    pub rasters: u64,
    /// Among the bands of all rasters, the number of consecutive bands at the same place along the band axis, and the
    /// number of places.
    along: (u64, u64),
}

/// Names, in lower case, of an axis along which the channels of an image lie.
const NAMES_OF_BANDS: [&str; 9] = ["band", "bands", "c", "ch", "chan", "channel", "channels", "rgb", "rgba"];

/// Names, in lower case, of an axis along a line.
const NAMES_OF_SAMPLES: [&str; 9] = ["x", "lon", "long", "longitude", "easting", "col", "cols", "column", "columns"];

/// Maximum length of a last axis that is taken for the channels of an image: red, green, blue and opacity.
const MAX_CHANNELS: u64 = 4;

/// Returns the band axis of an array of three or more axes: the axis with such a name, else the last axis if it is
/// short and shorter than all other axes; `None` otherwise. `lengths` are those of the whole array, since the meaning
/// of an axis does not depend on how much of it is shown.
pub fn band_axis(names: &[String], lengths: &[u64]) -> Option<usize> {
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    if names.len() < 3 {
        return None;
    }
    let named = names.iter().rposition(|name| NAMES_OF_BANDS.contains(&name.as_str()));
    named.or_else(|| {
        let last = names.len() - 1;
        let length = *lengths.get(last)?;
        let is_short = length <= MAX_CHANNELS && lengths.iter().take(last).all(|&other| other > length);
        (is_short && !NAMES_OF_SAMPLES.contains(&names[last].as_str())).then_some(last)
    })
}

/// The properties of a raster other than its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scene {
    /// The band axis; `None` for the first of three.
    pub band_axis: Option<usize>,
    /// Where the pixels lie on the Earth.
    pub place: Option<Georeference>,
    /// Number of columns of the file that belong to the raster; the rest is padding.
    pub samples: Option<u64>,
    /// Number of rows of the file that belong to the raster.
    pub lines: Option<u64>,
    /// Whether the two values of each cell are the parts of a complex number, and not two bands.
    pub is_complex: bool,
    /// The description of each band; none if nothing is known of them.
    pub bands: Bands,
    /// GDAL's metadata of the raster.
    pub metadata: Arc<Vec<MetadataDomain>>,
    /// Pixels whose coordinates are known.
    pub control_points: Option<Arc<ControlPoints>>,
}

impl Scene {
    /// Creates a scene of which only the axes are known.
    pub fn of_axes(names: &[String], lengths: &[u64]) -> Self {
        Scene { band_axis: band_axis(names, lengths), ..Scene::default() }
    }

    /// Returns the field with one value per cell if that is a complex number.
    pub(crate) fn of_pixels<'f>(&self, field: &'f Field) -> Cow<'f, Field> {
        match self.is_complex && field.values_per_cell == Some(2) {
            true => Cow::Owned(field.clone().with_values_per_cell(Some(1))),
            false => Cow::Borrowed(field),
        }
    }

    /// Returns the number that marks missing values of a band, numbered from 0: its own, or that of all values.
    pub fn no_data(&self, field: &Field, band: u64) -> Option<String> {
        let own = self.band(band).and_then(|band| band.no_data.clone());
        own.or_else(|| number::text(field.datatype, field.no_data.as_deref()?))
    }

    /// Returns the number that marks missing values in all of this many bands; `None` if they differ, or have none.
    pub fn common_no_data(&self, field: &Field, bands: u64) -> Option<String> {
        let first = self.no_data(field, 0).filter(|_| bands > 0)?;
        self.have_no_data(field, bands, |number| number == Some(&*first)).then_some(first)
    }

    /// Returns whether all of this many bands meet a condition on the number that marks missing values.
    pub fn have_no_data(&self, field: &Field, bands: u64, is_met: impl Fn(Option<&str>) -> bool) -> bool {
        let of_all = field.no_data.as_deref().and_then(|bytes| number::text(field.datatype, bytes));
        let is_one = |band: &Band| is_met(band.no_data.as_deref().or(of_all.as_deref()));
        let known = self.bands.count().min(bands);
        let described = self.bands.described().take_while(|(number, _)| *number < bands);
        let (mut count, mut are_met) = (0, true);
        for (_, band) in described {
            count += 1;
            are_met &= is_one(band);
        }
        let common = (count < known).then(|| self.bands.common());
        are_met && common.is_none_or(is_one) && (known == bands || is_met(of_all.as_deref()))
    }

    /// Returns whether the coordinates of a pixel are those of its centre, and not of the area that it covers.
    pub fn has_points(&self) -> bool {
        MetadataDomain::default_item(&self.metadata, "AREA_OR_POINT")
            .is_some_and(|value| value.eq_ignore_ascii_case("Point"))
    }

    /// Returns the description of a band, numbered from 0.
    pub fn band(&self, number: u64) -> Option<&Band> {
        self.bands.get(number)
    }
}

impl Raster {
    /// Checks whether an array of this rank is a raster.
    pub fn check(field: &Field, rank: usize) -> FormatResult<()> {
        let Some(values) = field.values_per_cell else {
            return Err(Unrepresentable::varying_cells());
        };
        let axes = rank + usize::from(values > 1);
        // A single row of cells is a series, a table or an index, which a raster of one line would misrepresent.
        if rank < 2 || axes > 3 {
            return Err(Unrepresentable::new(match values {
                1 => format!("a raster has 2 or 3 axes, and this array has {rank}"),
                _ => format!("a raster has 2 or 3 axes, and this array has {rank} and several values per cell"),
            }));
        }
        Ok(())
    }

    /// Returns the raster of an array. Two axes are lines and samples. With three axes, one is the bands: `band_axis`,
    /// or the first. Several values per cell are bands, interleaved by pixel.
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
        // With one band all three orders are the same; every reader expects this one.
        let interleave = if bands == 1 { Interleave::Bands } else { interleave };
        Ok(Raster { samples, lines, bands, interleave, rasters: 1, along: (1, bands) })
    }

    /// Returns the rasters of an array of any number of axes. The last axes are lines and samples, or these and bands;
    /// each index along the other axes is one raster. Several values per cell are allowed for arrays of two axes.
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

    /// Returns the index along the band axis of a band, numbered across all rasters; 0 if there is no such axis.
    pub(crate) fn place_of_band(&self, number: u64) -> u64 {
        let (each, places) = self.along;
        number / each.max(1) % places.max(1)
    }
}

/// Returns the axes of an array's lines and samples; `None` if it has fewer than two besides the band axis.
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
    fn bands_are_recognised_by_name_then_length() {
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
    fn more_than_three_axes_are_several_rasters() {
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
