//! Texts of many lines that are made when read, and not kept.

use std::ops::Range;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads as threads;

/// Number of lines made at a time.
const STEP: u64 = 1024;

/// Number of steps per task, since single steps are too short for a thread.
const STEPS_AT_ONCE: usize = 64;

/// A text of lines, each made from its number. Memory: 8 bytes per 1,024 lines.
pub struct Lines<Make> {
    make: Make,
    count: u64,
    /// The start of each step, and the end of the last.
    starts: Vec<u64>,
}

impl<Make: Fn(Range<u64>, &mut Vec<u8>) -> Result<()> + Sync> Lines<Make> {
    /// Creates a text of `count` lines; `make` appends those of a range. All lines are made once, to determine the
    /// length of each step.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(count: u64, make: Make) -> Result<Self> {
        let mut lines = Lines { make, count, starts: vec![0] };
        let steps = usize::try_from(count.div_ceil(STEP)).map_err(|_| Error::unsupported("more lines than memory"))?;
        let lengths = threads::for_all(steps.div_ceil(STEPS_AT_ONCE), |group| {
            let (first, mut text) = (group * STEPS_AT_ONCE, Vec::new());
            let length = |step| lines.make_step(step as u64, &mut text).map(|()| text.len() as u64);
            (first..steps.min(first + STEPS_AT_ONCE)).map(length).collect::<Result<Vec<u64>>>()
        })?;
        let ends = lengths.iter().flatten().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        lines.starts.extend(ends);
        Ok(lines)
    }

    /// Makes the lines of one step, replacing the contents of `text`.
    fn make_step(&self, step: u64, text: &mut Vec<u8>) -> Result<()> {
        text.clear();
        (self.make)(step * STEP..((step + 1) * STEP).min(self.count), text)
    }
}

impl<Make: Fn(Range<u64>, &mut Vec<u8>) -> Result<()> + Send + Sync> Content for Lines<Make> {
    fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Prefetching has nothing to do: the lines are made from data in memory.
    fn fill(&self, mut offset: u64, out: Output<'_>) -> Result<()> {
        let Output::Into(mut out) = out else { return Ok(()) };
        let mut step = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        let mut text = Vec::new();
        while !out.is_empty() {
            let past = || Error::internal(format!("read past the end, at offset {offset}"));
            let start = *self.starts.get(step).filter(|_| offset < self.len()).ok_or_else(past)?;
            self.make_step(step as u64, &mut text)?;
            let rest = text.get((offset - start) as usize..).ok_or_else(past)?;
            let length = rest.len().min(out.len());
            let (now, later) = out.split_at_mut(length);
            now.copy_from_slice(&rest[..length]);
            (offset, out, step) = (offset + length as u64, later, step + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_the_text_is_there() {
        for count in [0u64, 1, 5, STEP - 1, STEP, STEP + 1, 3 * STEP + 7] {
            let line = |number: u64| format!("{}\n", "x".repeat(number as usize % 13));
            let whole: String = (0..count).map(line).collect();
            let lines = Lines::new(count, |range: Range<u64>, text: &mut Vec<u8>| {
                text.extend(range.flat_map(|number| line(number).into_bytes()));
                Ok(())
            });
            let lines = lines.unwrap();
            assert_eq!(lines.len(), whole.len() as u64);
            for start in (0..=whole.len()).step_by(97) {
                for length in [0, 1, 100, 9000] {
                    let mut part = vec![0; length.min(whole.len() - start)];
                    lines.read_at(start as u64, &mut part).unwrap();
                    assert_eq!(part, whole.as_bytes()[start..start + part.len()]);
                }
            }
            assert!(lines.read_at(whole.len() as u64, &mut [0]).is_err());
        }
        assert!(Lines::new(1, |_, _: &mut Vec<u8>| Err(Error::damaged("no"))).is_err());
    }
}
