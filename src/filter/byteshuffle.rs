//! BYTESHUFFLE: each part holds the first bytes of all values, then all second bytes, and so on; what
//! is left over of a value at the end is as it was.

use super::element::Width;

/// Undoes one part. `part` and `out` have the same length.
pub(super) fn undo_part(width: Width, part: &[u8], out: &mut [u8]) {
    match width {
        Width::One => out.copy_from_slice(part),
        Width::Two => interleave::<2>(part, out),
        Width::Four => interleave::<4>(part, out),
        Width::Eight => interleave::<8>(part, out),
    }
}

fn interleave<const N: usize>(part: &[u8], out: &mut [u8]) {
    let (values, rest) = out.as_chunks_mut::<N>();
    let (shuffled, tail) = part.split_at(values.len() * N);
    rest.copy_from_slice(tail);
    if values.is_empty() {
        return;
    }
    let mut planes = [&[][..]; N];
    for (plane, bytes) in planes.iter_mut().zip(shuffled.chunks_exact(values.len())) {
        *plane = bytes;
    }
    for (i, value) in values.iter_mut().enumerate() {
        for (byte, plane) in value.iter_mut().zip(&planes) {
            *byte = plane[i];
        }
    }
}
