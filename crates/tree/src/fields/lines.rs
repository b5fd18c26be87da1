//! Texts of many lines that are made when read. Only the lines that were read last are kept.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Result};
use tilefs_base::output::Output;
use tilefs_threads::{self as threads, cancellation};

/// Greatest number of lines made at a time.
const STEP: u64 = 1024;

/// After so many bytes, a step ends, so that a part of a text with long lines is not made of many of them.
pub const LONG: usize = 64 << 10;

/// Number of steps of [`STEP`] lines per task, since single steps are too short for a thread.
const STEPS_AT_ONCE: usize = 64;

/// A text of lines, each made from its number. Memory: 16 bytes per 1,024 lines or 64 KiB, and the step that was read
/// last.
pub struct Lines<Make> {
    make: Make,
    /// In order; the last is the end of the text.
    steps: Vec<Step>,
    last: Mutex<Option<MadeStep>>,
}

/// A step by its number, and its text.
type MadeStep = (usize, Arc<Vec<u8>>);

/// Lines that are made together.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The number of the first line.
    line: u64,
    /// Where it begins in the text.
    start: u64,
}

impl<Make: Fn(Range<u64>, &mut Vec<u8>) -> Result<u64> + Sync> Lines<Make> {
    /// Creates a text of `count` lines; `make` appends those of a range, at least one of them, may stop once the text has
    /// [`LONG`] bytes, and returns the number of the line after the last one. All lines are made once, to determine the
    /// length of each step.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(count: u64, make: Make) -> Result<Self> {
        let tasks = usize::try_from(count.div_ceil(STEP)).map_err(|_| Error::unsupported("more lines than memory"))?;
        let lines = Lines { make, steps: Vec::new(), last: Mutex::default() };
        let measured = threads::for_all(tasks.div_ceil(STEPS_AT_ONCE), |task| {
            let first = (task * STEPS_AT_ONCE) as u64 * STEP;
            lines.measure(first..count.min(first + STEPS_AT_ONCE as u64 * STEP))
        })?;
        let mut steps = vec![Step { line: 0, start: 0 }];
        let mut end = 0u64;
        for (line, length) in measured.into_iter().flatten() {
            end = end.saturating_add(length);
            steps.push(Step { line, start: end });
        }
        Ok(Lines { steps, ..lines })
    }

    /// Returns the end of each step in a range of lines, and the length of its text.
    fn measure(&self, lines: Range<u64>) -> Result<Vec<(u64, u64)>> {
        let (mut found, mut text, mut line) = (Vec::new(), Vec::new(), lines.start);
        while line < lines.end {
            text.clear();
            line = self.append(line..lines.end.min(line.saturating_add(STEP)), &mut text)?;
            found.push((line, text.len() as u64));
        }
        Ok(found)
    }

    /// Appends the first lines of a range, and returns the number of the line after them.
    fn append(&self, lines: Range<u64>, text: &mut Vec<u8>) -> Result<u64> {
        cancellation::check()?;
        let next = (self.make)(lines.clone(), text)?;
        match next > lines.start && next <= lines.end {
            true => Ok(next),
            false => Err(Error::internal(format!("line {next} after those of {lines:?}"))),
        }
    }

    /// Returns the text of a step.
    fn text_of(&self, number: usize) -> Result<Arc<Vec<u8>>> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = last().as_ref().filter(|(known, _)| *known == number) {
            return Ok(text.clone());
        }
        let Some([step, next]) = self.steps.get(number..).and_then(<[Step]>::first_chunk) else {
            return Err(Error::internal(format!("there is no step {number}")));
        };
        let (mut text, mut line) = (Vec::new(), step.line);
        while line < next.line {
            line = self.append(line..next.line, &mut text)?;
        }
        if text.len() as u64 != next.start - step.start {
            return Err(Error::damaged("what the text is made of has changed"));
        }
        let text = Arc::new(text);
        *last() = Some((number, text.clone()));
        Ok(text)
    }
}

impl<Make: Fn(Range<u64>, &mut Vec<u8>) -> Result<u64> + Send + Sync> Content for Lines<Make> {
    fn len(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.start)
    }

    /// Prefetching has nothing to do: the lines are made from data in memory, or in pages of metadata.
    fn fill(&self, mut offset: u64, out: Output<'_>) -> Result<()> {
        let Output::Into(mut out) = out else { return Ok(()) };
        let mut number = self.steps.partition_point(|step| step.start <= offset).saturating_sub(1);
        while !out.is_empty() {
            let past = || Error::internal(format!("read past the end, at offset {offset}"));
            let step = *self.steps.get(number).filter(|_| offset < self.len()).ok_or_else(past)?;
            let text = self.text_of(number)?;
            let rest = text.get((offset - step.start) as usize..).ok_or_else(past)?;
            let length = rest.len().min(out.len());
            let (now, later) = out.split_at_mut(length);
            now.copy_from_slice(&rest[..length]);
            (offset, out, number) = (offset + length as u64, later, number + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn any_range_of_the_text_is_there() {
        for (count, longest) in
            [(0, 13), (1, 13), (5, 13), (STEP - 1, 13), (STEP, 13), (STEP + 1, 13), (3 * STEP + 7, 13)]
                .into_iter()
                .chain([(1, 200_000), (40, 9000), (700, 500)])
        {
            let line = |number: u64| format!("{}\n", "x".repeat(number as usize * 7919 % longest));
            let whole: String = (0..count).map(line).collect();
            let lines = Lines::new(count, |range: Range<u64>, text: &mut Vec<u8>| {
                let mut number = range.start;
                while number < range.end && (number == range.start || text.len() < LONG) {
                    text.extend(line(number).into_bytes());
                    number += 1;
                }
                Ok(number)
            });
            let lines = lines.unwrap();
            assert_eq!(lines.len(), whole.len() as u64);
            for start in (0..=whole.len()).step_by(97 + whole.len() / 1000) {
                for length in [0, 1, 100, 9000, 200_000] {
                    let mut part = vec![0; length.min(whole.len() - start)];
                    lines.read_at(start as u64, &mut part).unwrap();
                    assert_eq!(part, whole.as_bytes()[start..start + part.len()]);
                }
            }
            assert!(lines.read_at(whole.len() as u64, &mut [0]).is_err());
        }
        assert!(Lines::new(1, |_, _: &mut Vec<u8>| Err(Error::damaged("no"))).is_err());
        assert!(Lines::new(1, |range, _: &mut Vec<u8>| Ok(range.start)).is_err());
    }

    #[test]
    fn a_text_that_has_changed_is_damage() {
        let length = AtomicU64::new(3);
        let lines = Lines::new(2, |range: Range<u64>, text: &mut Vec<u8>| {
            text.extend("x".repeat(length.load(Ordering::Relaxed) as usize).bytes());
            Ok(range.end)
        });
        let lines = lines.unwrap();
        length.store(4, Ordering::Relaxed);
        assert!(matches!(lines.read_at(0, &mut [0; 2]), Err(Error::Damaged { .. })));
        length.store(3, Ordering::Relaxed);
        lines.read_at(0, &mut [0; 2]).unwrap();
    }
}
