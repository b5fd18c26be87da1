//! Distributes a stream of bytes to the ranges they belong to.

use tilefs_storage::ReadRange;

/// Accepts the bytes from the first range's offset on, in parts of any size, and skips the gaps between ranges.
pub struct Scatter<'r, 'a> {
    run: &'r mut [ReadRange<'a>],
    /// Index of the next range to fill.
    next: usize,
    at: u64,
}

impl<'r, 'a> Scatter<'r, 'a> {
    /// Creates a distributor for ranges that are sorted by offset and do not overlap.
    pub fn new(run: &'r mut [ReadRange<'a>]) -> Self {
        let at = run.first().map_or(0, |range| range.offset);
        Scatter { run, next: 0, at }
    }

    /// Returns the offset of the next byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Accepts the next bytes. Bytes past the last range are ignored.
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
    fn bytes_are_distributed_correctly_for_any_split() {
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
