//! Pictures whose samples lie side by side: lines of 3 · n values become lines of n pixels, with an axis for the samples.
//! TIFF has that axis last; OME-NGFF wants it before the axes of space.

use std::sync::Arc;

use tilefs_base::error::{Error, Result};
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::dense::IndexBox;

use super::boxes::{BoxedColumns, BoxedRows, Boxes};
use super::{Column, Field, FormatResult, Unrepresentable};
use crate::content::compose::{Concat, Slice};
use crate::content::element::{Computed, Converted};

/// Maximum size of a pixel in bytes: eight samples of eight bytes.
const MOST_PIXEL: u64 = 64;

/// Number of coordinates of an axis that are read together.
const COORDINATES: u64 = 1 << 20;

/// Returns columns of which each pixel's `samples` values lie side by side along the last axis, X, with an axis of
/// channels: behind T if that is the first axis, otherwise first. Refuses other axes and other lengths.
pub fn with_channels(columns: BoxedColumns, samples: u64) -> FormatResult<BoxedColumns> {
    let named: String = columns.dimensions.iter().map(|axis| axis.field().name.as_str()).collect();
    let axes = named.to_uppercase();
    let is_picture = !columns.sparse && axes.ends_with("YX") && axes.len() == columns.dimensions.len();
    if samples < 2 || !is_picture || axes.contains('C') {
        return Err(Unrepresentable::new(format!("the axes are {axes}, and adjacent samples lie along the last, X")));
    }
    let place = usize::from(axes.starts_with('T'));
    let attribute = |of: &Arc<dyn Boxes>| -> FormatResult<Arc<dyn Boxes>> {
        let field = of.field();
        let size = field.cell_size().ok_or_else(|| Unrepresentable::new("its pixels have no fixed size"))?;
        let are_samples =
            !field.nullable && field.values_per_cell == Some(1) && samples.saturating_mul(size) <= MOST_PIXEL;
        let separated = SeparatedSamples::new(of.clone(), samples, place).filter(|_| are_samples);
        let other = || Unrepresentable::new(format!("its columns are not {samples} values per pixel"));
        Ok(Arc::new(separated.ok_or_else(other)?))
    };
    let attributes = columns.attributes.iter().map(attribute).collect::<FormatResult<_>>()?;
    let mut dimensions = columns.dimensions;
    if let Some(last) = dimensions.last_mut() {
        let length = last.shape().first().map_or(0, |length| length / samples);
        *last = numbers(&last.field().name, length);
    }
    let channel = if named.ends_with('x') { "c" } else { "C" };
    dimensions.insert(place, numbers(channel, samples));
    Ok(BoxedColumns { dimensions, attributes, auxiliary: Vec::new(), georeference: None, ..columns })
}

/// Returns the coordinates 0, 1, 2 and so on of an axis.
fn numbers(name: &str, length: u64) -> Arc<dyn Boxes> {
    let values = Arc::new(Computed::new(length, u64::to_le_bytes));
    let column = Column::fixed(Field::new(name, Datatype::UInt64), vec![length], values);
    Arc::new(BoxedRows::of(column, COORDINATES))
}

/// Cells whose samples lie side by side along the last axis, with an axis for the samples.
pub(crate) struct SeparatedSamples {
    of: Arc<dyn Boxes>,
    samples: u64,
    /// The number of the axis of samples. If it is the last, boxes must contain all samples of their pixels; otherwise
    /// cells must be single values that are not nullable.
    place: usize,
    shape: Vec<u64>,
    /// The size of a sample in bytes.
    size: usize,
}

impl SeparatedSamples {
    /// Creates the view; `None` for cells without a fixed size, and if the length of the last axis is not a multiple of
    /// the samples.
    pub fn new(of: Arc<dyn Boxes>, samples: u64, place: usize) -> Option<Self> {
        let size = usize::try_from(of.field().cell_size()?).ok()?;
        let mut shape = of.shape().to_vec();
        let last = shape.last_mut().filter(|last| last.is_multiple_of(samples))?;
        *last = last.checked_div(samples)?;
        let place = place.min(shape.len());
        shape.insert(place, samples);
        Some(SeparatedSamples { of, samples, place, shape, size })
    }
}

impl Boxes for SeparatedSamples {
    fn field(&self) -> &Field {
        self.of.field()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        let mut extents = self.of.extents();
        if let Some(last) = extents.last_mut() {
            *last = last.div_ceil(self.samples);
        }
        extents.insert(self.place, self.samples);
        extents
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let mut within = cells.clone();
        if within.first.len() != self.shape.len() || within.count.len() != self.shape.len() {
            return Err(Error::internal("a box of another number of axes"));
        }
        let (channel, channels) = (within.first.remove(self.place), within.count.remove(self.place));
        let pixels = |axes: &[u64]| axes.iter().fold(1u64, |all, &count| all.saturating_mul(count));
        let (pictures, pixels) = (pixels(&within.count[..self.place]), pixels(&within.count[self.place..]));
        if let (Some(first), Some(count)) = (within.first.last_mut(), within.count.last_mut()) {
            (*first, *count) = (first.saturating_mul(self.samples), count.saturating_mul(self.samples));
        }
        let inner = self.of.column(&within)?;
        if self.place == within.first.len() {
            return match (channel, channels) == (0, self.samples) {
                true => Ok(Column { shape: cells.count.clone(), ..inner }),
                false => Err(Error::internal("a part of a pixel's samples")),
            };
        }
        let (size, pixel) = (self.size, self.size.saturating_mul(self.samples as usize));
        let bytes = pixels.saturating_mul(pixel as u64);
        let part = |picture: u64, channel: u64| {
            let own = Arc::new(Slice::new(inner.values.clone(), picture.saturating_mul(bytes), bytes));
            let first = size * channel as usize;
            Arc::new(Converted::new(own, pixel, size, move |from, to| {
                for (to, from) in to.chunks_exact_mut(size).zip(from.chunks_exact(pixel)) {
                    if let Some(sample) = from.get(first..first + size) {
                        to.copy_from_slice(sample);
                    }
                }
                Ok(())
            })) as _
        };
        let wanted = channel..channel.saturating_add(channels).min(self.samples);
        let parts = (0..pictures).flat_map(|picture| wanted.clone().map(move |channel| (picture, channel)));
        let values = Concat::new(parts.map(|(picture, channel)| part(picture, channel)).collect());
        Ok(Column { shape: cells.count.clone(), values: Arc::new(values), ..inner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_all;

    /// Bytes along T, Y and X, of which each is its number.
    struct Picture {
        field: Field,
        shape: [u64; 3],
    }

    impl Boxes for Picture {
        fn field(&self) -> &Field {
            &self.field
        }

        fn shape(&self) -> &[u64] {
            &self.shape
        }

        fn extents(&self) -> Vec<u64> {
            vec![1, 2, 6]
        }

        fn column(&self, cells: &IndexBox) -> Result<Column> {
            let along = |axis: usize| cells.first[axis]..cells.first[axis] + cells.count[axis];
            let [_, lines, columns] = self.shape;
            let lines = along(0).flat_map(|time| along(1).map(move |line| time * lines + line));
            let values = lines.flat_map(|line| along(2).map(move |column| (line * columns + column) as u8));
            Ok(Column::fixed(self.field.clone(), cells.count.clone(), Arc::new(values.collect::<Vec<u8>>())))
        }
    }

    fn columns(names: [&str; 3]) -> BoxedColumns {
        let picture = Picture { field: Field::new("intensity", Datatype::UInt8), shape: [2, 2, 9] };
        BoxedColumns {
            sparse: false,
            dimensions: names.iter().zip(picture.shape).map(|(name, length)| numbers(name, length)).collect(),
            attributes: vec![Arc::new(picture)],
            metadata: Vec::new(),
            auxiliary: Vec::new(),
            georeference: None,
        }
    }

    #[test]
    fn adjacent_samples_become_channels() {
        let made = with_channels(columns(["t", "y", "x"]), 3).unwrap();
        let axes: Vec<(&str, u64)> =
            made.dimensions.iter().map(|axis| (axis.field().name.as_str(), axis.shape()[0])).collect();
        assert_eq!(axes, [("t", 2), ("c", 3), ("y", 2), ("x", 3)]);
        let picture = &made.attributes[0];
        assert_eq!((picture.shape(), picture.extents()), (&[2, 3, 2, 3][..], vec![1, 3, 2, 2]));
        let all = picture.column(&IndexBox { first: vec![0; 4], count: vec![2, 3, 2, 3] }).unwrap();
        let expected = (0..2u8).flat_map(|time| {
            (0..3).flat_map(move |channel| {
                (0..2).flat_map(move |line| (0..3).map(move |column| time * 18 + line * 9 + column * 3 + channel))
            })
        });
        assert_eq!(read_all(&*all.values), expected.collect::<Vec<u8>>());
        let part = picture.column(&IndexBox { first: vec![1, 1, 1, 1], count: vec![1, 2, 1, 2] }).unwrap();
        assert_eq!(read_all(&*part.values), [31, 34, 32, 35]);
    }

    #[test]
    fn other_axes_and_lengths_are_refused() {
        for (names, samples) in [(["t", "x", "y"], 3), (["c", "y", "x"], 3), (["t", "y", "x"], 2), (["T", "Y", "X"], 1)]
        {
            assert!(with_channels(columns(names), samples).is_err(), "{names:?} {samples}");
        }
        assert!(with_channels(columns(["T", "Y", "X"]), u64::MAX).is_err());
    }
}
