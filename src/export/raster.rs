//! How a raster program sees an array: samples along a line, lines, and bands.

use super::column::{Field, Fit, Misfit};

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

/// The three lengths of a raster and the order they have in a row-major file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    pub samples: u64,
    pub lines: u64,
    pub bands: u64,
    pub interleave: Interleave,
}

impl Raster {
    /// Whether an array of so many axes is a raster.
    pub fn check(field: &Field, rank: usize) -> Fit<()> {
        let Some(values) = field.values_per_cell else {
            return Err(Misfit::new("a raster's cells have one size, and here each cell has its own"));
        };
        let axes = rank + usize::from(values > 1);
        if rank == 0 || axes > 3 {
            return Err(Misfit::new(match values {
                1 => format!("a raster has 1 to 3 axes, and this array has {rank}"),
                _ => format!("a raster has 1 to 3 axes, and this array has {rank} and several values a cell"),
            }));
        }
        Ok(())
    }

    /// Two axes are lines and samples, the last of one axis samples. Of three the one called `band` or
    /// `bands` is that, else the first. Several values a cell are the bands, pixel by pixel.
    pub fn of(field: &Field, shape: &[u64], axes: &[String]) -> Fit<Self> {
        Raster::check(field, shape.len())?;
        let values = u64::from(field.values_per_cell.unwrap_or(1));
        let band_axis = axes.iter().position(|name| ["band", "bands"].contains(&name.to_lowercase().as_str()));
        let (bands, lines, samples, interleave) = match (shape, band_axis) {
            (&[samples], _) => (values, 1, samples, Interleave::Pixels),
            (&[lines, samples], _) => (values, lines, samples, Interleave::Pixels),
            (&[lines, bands, samples], Some(1)) => (bands, lines, samples, Interleave::Lines),
            (&[lines, samples, bands], Some(2)) => (bands, lines, samples, Interleave::Pixels),
            (&[bands, lines, samples], _) => (bands, lines, samples, Interleave::Bands),
            _ => return Err(Misfit::new("a raster has 1 to 3 axes")),
        };
        // With one band all three orders are the same; this is the one that every reader expects.
        let interleave = if bands == 1 { Interleave::Bands } else { interleave };
        Ok(Raster { samples, lines, bands, interleave })
    }
}
