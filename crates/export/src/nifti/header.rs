//! The headers of NIfTI-1 and NIfTI-2, little-endian. Places of fields are those of nifti1.h and nifti2.h.

use crate::column::{Field, FormatResult, Metadatum, Unrepresentable};
use crate::nifti::affine::{Affine, distances};
use crate::nifti::voxel::VoxelType;
use crate::number;

/// NIfTI-1 has lengths of 16 bits.
const LONGEST_OF_FIRST: u64 = i16::MAX as u64;

/// The number of bytes of a description, with a final zero.
const DESCRIPTION: usize = 80;

/// The code of an affine transform to coordinates that another image has, too: those of a scanner or of an atlas.
const ALIGNED: u8 = 2;

/// The fields of a header, apart from their widths.
struct VolumeHeader<'a> {
    voxels: VoxelType,
    /// The number of axes, and seven lengths.
    lengths: [u64; 8],
    distances: [f64; 8],
    slope: f64,
    intercept: f64,
    affine: Option<Affine>,
    units: u8,
    name: &'a str,
}

/// Returns the header of an image with these lengths, and the four bytes after it.
pub(super) fn header(
    field: &Field,
    voxels: VoxelType,
    lengths: &[u64],
    affine: Option<Affine>,
    metadata: &[&Metadatum],
) -> FormatResult<Vec<u8>> {
    let entry = |key: &str| metadata.iter().find(|datum| datum.key == key);
    let number = |key: &str| -> Option<f64> {
        let datum = entry(key)?;
        number::text(datum.datatype, &datum.value)?.parse().ok().filter(|value: &f64| value.is_finite())
    };
    let (scale, offset) = (number("scale_factor"), number("add_offset"));
    let mut fields = VolumeHeader {
        voxels,
        lengths: [1; 8],
        distances: [1.0; 8],
        // A slope of 0 says that values are as stored.
        slope: scale.unwrap_or(if offset.is_some() { 1.0 } else { 0.0 }),
        intercept: offset.unwrap_or(0.0),
        affine,
        units: entry("xyzt_units")
            .and_then(|datum| u8::try_from(number::integer(datum.datatype, &datum.value)?).ok())
            .unwrap_or(0),
        name: &field.name,
    };
    fields.lengths[0] = lengths.len() as u64;
    fields.lengths.iter_mut().skip(1).zip(lengths).for_each(|(to, length)| *to = *length);
    if let Some(affine) = &affine {
        fields.distances[1..4].copy_from_slice(&distances(affine));
    }
    match lengths.iter().max() {
        Some(&longest) if longest > i64::MAX as u64 => Err(Unrepresentable::long_axis()),
        Some(&longest) if longest > LONGEST_OF_FIRST => Ok(fields.second()),
        _ => Ok(fields.first()),
    }
}

impl VolumeHeader<'_> {
    /// Returns NIfTI-1: 348 bytes, and 4.
    fn first(&self) -> Vec<u8> {
        let mut out = HeaderBytes(vec![0; 352]);
        out.put(0, &348i32.to_le_bytes());
        out.put(38, b"r");
        out.put_all(40, self.lengths.map(|length| (length as i16).to_le_bytes()));
        out.put(70, &self.voxels.code.to_le_bytes());
        out.put(72, &self.voxels.bits.to_le_bytes());
        out.put_all(76, self.distances.map(|distance| (distance as f32).to_le_bytes()));
        out.put(108, &352f32.to_le_bytes());
        out.put(112, &(self.slope as f32).to_le_bytes());
        out.put(116, &(self.intercept as f32).to_le_bytes());
        out.put(123, &[self.units]);
        out.put(148, self.description());
        if let Some(affine) = &self.affine {
            out.put(254, &[ALIGNED]);
            out.put_all(280, affine.as_flattened().iter().map(|number| (*number as f32).to_le_bytes()));
        }
        out.put(344, b"n+1\0");
        out.0
    }

    /// Returns NIfTI-2: 540 bytes, and 4.
    fn second(&self) -> Vec<u8> {
        let mut out = HeaderBytes(vec![0; 544]);
        out.put(0, &540i32.to_le_bytes());
        out.put(4, b"n+2\0\r\n\x1a\n");
        out.put(12, &self.voxels.code.to_le_bytes());
        out.put(14, &self.voxels.bits.to_le_bytes());
        out.put_all(16, self.lengths.map(u64::to_le_bytes));
        out.put_all(104, self.distances.map(f64::to_le_bytes));
        out.put(168, &544i64.to_le_bytes());
        out.put(176, &self.slope.to_le_bytes());
        out.put(184, &self.intercept.to_le_bytes());
        out.put(240, self.description());
        if let Some(affine) = &self.affine {
            out.put(348, &[ALIGNED]);
            out.put_all(400, affine.as_flattened().iter().map(|number| number.to_le_bytes()));
        }
        out.put(500, &[self.units]);
        out.0
    }

    /// Returns the name of the values, cut at a character.
    fn description(&self) -> &[u8] {
        let end = (0..DESCRIPTION).rev().find(|&end| self.name.is_char_boundary(end)).unwrap_or(0);
        self.name.as_bytes().get(..end).unwrap_or_default()
    }
}

/// A block of bytes in which fields have fixed places.
struct HeaderBytes(Vec<u8>);

impl HeaderBytes {
    fn put(&mut self, place: usize, bytes: &[u8]) {
        self.0.iter_mut().skip(place).zip(bytes).for_each(|(to, byte)| *to = *byte);
    }

    fn put_all<const N: usize>(&mut self, place: usize, values: impl IntoIterator<Item = [u8; N]>) {
        self.put(place, values.into_iter().collect::<Vec<_>>().as_flattened());
    }
}
