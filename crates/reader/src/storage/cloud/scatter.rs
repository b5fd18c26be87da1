//! Bytes that arrive one after the other, to the ranges they are for.

use crate::storage::ranges::ReadRange;

/// Takes the bytes from the first range's offset on, in whatever parts they come, and leaves out what lies between the
/// ranges.
pub struct Scatter<'r, 'a> {
    run: &'r mut [ReadRange<'a>],
    /// The range that comes next.
    next: usize,
    at: u64,
}

impl<'r, 'a> Scatter<'r, 'a> {
    /// The ranges are in the order of their offsets and do not overlap.
    pub fn new(run: &'r mut [ReadRange<'a>]) -> Self {
        let at = run.first().map_or(0, |range| range.offset);
        Scatter { run, next: 0, at }
    }

    /// The offset of the byte that comes next.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Takes what comes next. What is behind the last range is left out.
    pub fn put(&mut self, mut bytes: &[u8]) {
        while let Some(range) = self.run.get_mut(self.next)
            && !bytes.is_empty()
        {
            let gap = range.offset.saturating_sub(self.at).min(bytes.len() as u64);
            self.at += gap;
            bytes = &bytes[gap as usize..];
            let done = (self.at.saturating_sub(range.offset) as usize).min(range.into.len());
            let length = bytes.len().min(range.into.len() - done);
            if self.at >= range.offset {
                range.into[done..done + length].copy_from_slice(&bytes[..length]);
                self.at += length as u64;
                bytes = &bytes[length..];
            }
            if self.at >= range.end() {
                self.next += 1;
            }
        }
        self.at += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_parts_each_byte_comes_to_its_place() {
        let object: Vec<u8> = (0..100).collect();
        for part in 1..=40 {
            let (mut a, mut b, mut c) = ([0; 7], [0; 1], [0; 20]);
            let mut run = [
                ReadRange { offset: 10, into: &mut a },
                ReadRange { offset: 17, into: &mut b },
                ReadRange { offset: 30, into: &mut c },
            ];
            let mut scatter = Scatter::new(&mut run);
            for bytes in object[10..60].chunks(part) {
                assert!(scatter.at() >= 10);
                scatter.put(bytes);
            }
            assert_eq!(scatter.at(), 60);
            assert_eq!((&a[..], &b[..], &c[..]), (&object[10..17], &object[17..18], &object[30..50]), "{part}");
        }
    }
}
