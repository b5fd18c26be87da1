//! The affine transform from the indices of a voxel to coordinates in space.

use tilefs_format::datatype::Kind;
use tilefs_format::text;

use crate::column::Metadatum;
use crate::number;
use crate::raster::axis::ImageAxis;

/// Three rows of four numbers: x, y and z are the first three times the indices, plus the fourth.
pub(super) type Affine = [[f64; 4]; 3];

/// Maximum number of bytes of an entry that is looked at.
const LONGEST: usize = 4096;

/// Returns the transform of an array that its metadata have.
pub(super) fn of(metadata: &[&Metadatum]) -> Option<Affine> {
    let numbers = |key: &str| metadata.iter().find(|datum| datum.key == key).and_then(|datum| numbers_of(datum));
    let all = match numbers("affine") {
        Some(all) => all,
        None => [numbers("srow_x")?, numbers("srow_y")?, numbers("srow_z")?].concat(),
    };
    let (rows, last) = all.as_chunks::<4>().0.split_at_checked(3)?;
    let is_affine = all.len() == 12 || (all.len() == 16 && last == [[0.0, 0.0, 0.0, 1.0]]);
    (is_affine && all.iter().all(|number| number.is_finite())).then(|| [rows[0], rows[1], rows[2]])
}

/// Returns the numbers of an entry: its values, or those in a text such as `[[1, 0], [0, 1]]`.
fn numbers_of(datum: &Metadatum) -> Option<Vec<f64>> {
    if datum.value.len() > LONGEST {
        return None;
    }
    if datum.datatype.kind() == Kind::Bytes {
        let text = text::decode(datum.datatype, &datum.value)?;
        let words = text.split(|c: char| c.is_whitespace() || "[](),;".contains(c)).filter(|word| !word.is_empty());
        return words.map(|word| word.parse().ok()).collect();
    }
    let values = datum.value.chunks(datum.datatype.size());
    values.map(|value| number::text(datum.datatype, value)?.parse().ok()).collect()
}

/// Returns the transform of the part of an array that an image shows. `axes` are those of the file, the first one varies
/// fastest. `None` if the part is not evenly spaced.
pub(super) fn of_part(whole: Affine, axes: &[&ImageAxis]) -> Option<Affine> {
    let mut part = whole;
    for (column, axis) in axes.iter().take(3).enumerate() {
        let (first, step) = axis.positions?;
        for row in &mut part {
            row[3] += row[column] * first as f64;
            row[column] *= step as f64;
        }
    }
    Some(part)
}

/// Returns the distances between voxels along the first three axes.
pub(super) fn distances(affine: &Affine) -> [f64; 3] {
    [0, 1, 2].map(|column| affine.iter().map(|row| row[column] * row[column]).sum::<f64>().sqrt())
}
