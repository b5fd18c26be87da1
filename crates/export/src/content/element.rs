//! Contents computed element by element: byte order, narrower and wider numbers, bits.

use std::hash::Hash;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::Recorder;
use tilefs_base::memory;
use tilefs_base::output::Output;

/// Splits a read of bytes into reads of whole elements of `width` bytes (at least 1). `produce` receives the number of
/// the first element of each read. Reads into memory cover at most `most` elements at a time, which bounds the
/// temporary memory; prefetching covers all at once. Elements cut by the ends of the range are produced in a separate
/// buffer.
///
/// The range must lie within the content.
pub(crate) fn by_elements(
    width: usize,
    most: usize,
    offset: u64,
    out: Output<'_>,
    mut produce: impl FnMut(u64, Output<'_>) -> Result<()>,
) -> Result<()> {
    let (mut number, mut into) = (offset / width as u64, offset % width as u64);
    let mut rest = match out {
        Output::Into(rest) => rest,
        Output::Ahead(0) => return Ok(()),
        Output::Ahead(length) => {
            let count = into.saturating_add(length).div_ceil(width as u64);
            return produce(number, Output::Ahead(count.saturating_mul(width as u64)));
        }
    };
    let mut cut = Vec::new();
    while !rest.is_empty() {
        let whole = (rest.len() / width).min(most.max(1));
        if into == 0 && whole > 0 {
            let (now, later) = rest.split_at_mut(whole * width);
            produce(number, Output::Into(now))?;
            (rest, number) = (later, number + whole as u64);
        } else {
            memory::resize(&mut cut, width, "one value")?;
            produce(number, Output::Into(&mut cut))?;
            let seen = &cut[into as usize..];
            let (now, later) = rest.split_at_mut(seen.len().min(rest.len()));
            now.copy_from_slice(&seen[..now.len()]);
            (rest, number, into) = (later, number + 1, 0);
        }
    }
    Ok(())
}

/// The elements of another content in the opposite byte order: little-endian to big-endian.
pub struct Swapped {
    of: Arc<dyn Content>,
    width: usize,
}

impl Swapped {
    /// Creates the content. `width` is 1, 2, 4 or 8 bytes; the length of `of` is a multiple of it.
    pub fn new(of: Arc<dyn Content>, width: usize) -> Self {
        Swapped { of, width }
    }
}

/// Reverses the bytes of each element in place. Simple enough for the compiler to use vector instructions.
fn swap_in_place(width: usize, bytes: &mut [u8]) {
    match width {
        2 => bytes.as_chunks_mut().0.iter_mut().for_each(|c| *c = u16::from_le_bytes(*c).to_be_bytes()),
        4 => bytes.as_chunks_mut().0.iter_mut().for_each(|c| *c = u32::from_le_bytes(*c).to_be_bytes()),
        8 => bytes.as_chunks_mut().0.iter_mut().for_each(|c| *c = u64::from_le_bytes(*c).to_be_bytes()),
        _ => {}
    }
}

impl Content for Swapped {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, width } = self;
        recorder.add::<Self>(width);
        of.record(recorder);
    }

    fn len(&self) -> u64 {
        self.of.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        // One read, because a long one may be decoded on several cores.
        by_elements(self.width, usize::MAX, offset, out, |first, mut out| {
            let length = out.len();
            self.of.read(first * self.width as u64, out.part(0..length))?;
            if let Some(out) = out.wanted() {
                swap_in_place(self.width, out);
            }
            Ok(())
        })
    }
}

/// Number of bytes fetched and converted at a time: they still are in the processor's cache when converted.
pub(crate) const BLOCK: usize = 64 << 10;

/// A conversion of whole elements, from bytes of one width to the same number of elements of another. It gets the number
/// of the first.
pub type Conversion = dyn Fn(u64, &[u8], &mut [u8]) -> Result<()> + Send + Sync;

/// Records the function that computes elements, with everything that it uses.
type RecordRule = dyn Fn(&mut Recorder) + Send + Sync;

/// Returns a record of a function, which `what` names, with the state that is all that it uses.
fn rule_of<S: Hash + Send + Sync + 'static>(what: &'static str, state: &Arc<S>) -> Option<Box<RecordRule>> {
    let state = state.clone();
    Some(Box::new(move |recorder| recorder.add::<S>((what, &*state))))
}

/// The column whose values are converted, as errors name it.
#[derive(Debug, Clone)]
pub struct ConvertedColumn {
    name: String,
    /// The row of the first value; `None` if some rows are skipped.
    first_row: Option<u64>,
}

impl ConvertedColumn {
    /// Creates the column of this name, whose first value is that of row 0.
    pub fn new(name: &str) -> Self {
        ConvertedColumn { name: name.to_owned(), first_row: Some(0) }
    }

    /// Sets the row of the first value; `None` if some rows are skipped.
    pub fn from_row(self, first_row: Option<u64>) -> Self {
        ConvertedColumn { first_row, ..self }
    }

    /// Returns the error of a value, by its number, that a format cannot hold: `what` the value is instead.
    fn refused(&self, number: u64, value: i64, what: &str) -> Error {
        let row = self.first_row.map(|first| format!(" of row {}", first.saturating_add(number))).unwrap_or_default();
        Error::unsupported(format!("the value {value}{row}, which is {what}")).in_field(&self.name)
    }
}

/// The elements of another content converted to another type.
pub struct Converted {
    of: Arc<dyn Content>,
    from: usize,
    to: usize,
    convert: Box<Conversion>,
    /// `None` if what `convert` has captured is not known.
    rule: Option<Box<RecordRule>>,
}

impl Converted {
    /// Converts elements of `from` bytes to elements of `to` bytes (both 1 to 64). `convert` gets whole elements, the
    /// same number on both sides.
    pub fn new(
        of: Arc<dyn Content>,
        from: usize,
        to: usize,
        convert: impl Fn(&[u8], &mut [u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Converted { of, from, to, convert: Box::new(move |_, from, to| convert(from, to)), rule: None }
    }

    /// As [`Converted::new`], for a function that makes one element of another and uses nothing but `state`, so that
    /// results made of these elements can be saved; `what` tells the function from others with such a state.
    pub fn by_rule<S: Hash + Send + Sync + 'static>(
        of: Arc<dyn Content>,
        (from, to): (usize, usize),
        what: &'static str,
        state: &Arc<S>,
        convert: fn(&S, &[u8], &mut [u8]),
    ) -> Self {
        let own = state.clone();
        let converted = Self::new(of, from, to, move |elements, made| {
            let pairs = elements.chunks_exact(from).zip(made.chunks_exact_mut(to));
            pairs.for_each(|(element, made)| convert(&own, element, made));
            Ok(())
        });
        Converted { rule: rule_of(what, state), ..converted }
    }

    /// Applies a function to 64-bit integers; `None` from it is an error that names the column and the row of the value,
    /// and says `what` the value is, such as "no integer of 32 bits".
    pub fn integers<const TO: usize>(
        of: Arc<dyn Content>,
        what: &'static str,
        column: ConvertedColumn,
        each: impl Fn(i64) -> Option<[u8; TO]> + Send + Sync + 'static,
    ) -> Self {
        let convert = move |first: u64, from: &[u8], to: &mut [u8]| {
            for (number, (from, to)) in (first..).zip(from.as_chunks().0.iter().zip(to.as_chunks_mut().0)) {
                let value = i64::from_le_bytes(*from);
                *to = each(value).ok_or_else(|| column.refused(number, value, what))?;
            }
            Ok(())
        };
        Converted { of, from: 8, to: TO, convert: Box::new(convert), rule: None }
    }
}

impl Content for Converted {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, from, to, convert: _, rule } = self;
        match rule {
            Some(rule) => rule(recorder),
            None => recorder.add_unknown(),
        }
        recorder.add::<Self>((from, to));
        of.record(recorder);
    }

    fn len(&self) -> u64 {
        (self.of.len() / self.from as u64).saturating_mul(self.to as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (from, to) = (self.from as u64, self.to as u64);
        let mut input = Vec::new();
        by_elements(self.to, BLOCK / self.from, offset, out, |first, mut out| {
            self.of.read(first * from, out.aside(out.len() / to * from, &mut input))?;
            match out.wanted() {
                Some(out) => (self.convert)(first, &input, out),
                None => Ok(()),
            }
        })
    }
}

/// Computes the bytes of a number from its index.
type ComputeNumber = dyn Fn(u64) -> [u8; 8] + Send + Sync;

/// A sequence of numbers of 64 bits that are computed.
pub(crate) struct Computed {
    count: u64,
    of: Box<ComputeNumber>,
    /// `None` if what `of` has captured is not known.
    rule: Option<Box<RecordRule>>,
}

impl Computed {
    pub(crate) fn new(count: u64, of: impl Fn(u64) -> [u8; 8] + Send + Sync + 'static) -> Self {
        Computed { count, of: Box::new(of), rule: None }
    }

    /// As [`Computed::new`], for a function that uses nothing but `state`; as [`Converted::by_rule`].
    pub(crate) fn by_rule<S: Hash + Send + Sync + 'static>(
        count: u64,
        what: &'static str,
        state: S,
        of: fn(&S, u64) -> [u8; 8],
    ) -> Self {
        let state = Arc::new(state);
        let rule = rule_of(what, &state);
        Computed { rule, ..Self::new(count, move |number| of(&state, number)) }
    }
}

impl Content for Computed {
    fn record(&self, recorder: &mut Recorder) {
        let Self { count, of: _, rule } = self;
        match rule {
            Some(rule) => rule(recorder),
            None => recorder.add_unknown(),
        }
        recorder.add::<Self>(count);
    }

    fn len(&self) -> u64 {
        self.count.saturating_mul(8)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(8, usize::MAX, offset, out, |first, mut out| {
            let numbers = out.wanted().into_iter().flat_map(|out| out.as_chunks_mut().0);
            (first..).zip(numbers).for_each(|(number, bytes)| *bytes = (self.of)(number));
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::compose::Repeat;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn swapped_reverses_each_element(width in prop::sample::select(vec![1usize, 2, 4, 8]), count in 0usize..40, seed: u64) {
            let bytes: Vec<u8> = (0..count * width).map(|i| (seed >> (i % 57)) as u8 ^ i as u8).collect();
            let expected: Vec<u8> = bytes.chunks(width).flat_map(|c| c.iter().rev().copied()).collect();
            let swapped = Swapped::new(Arc::new(bytes), width);
            prop_assert_eq!(read_all(&swapped), expected);
            assert_random_access(&swapped);
        }

        #[test]
        fn converted_maps_each_element(values in proptest::collection::vec(-1000i64..1000, 0..50)) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let expected: Vec<u8> = values.iter().flat_map(|&v| (v as i32 * 2).to_be_bytes()).collect();
            let column = ConvertedColumn::new("a");
            let doubled = Converted::integers(Arc::new(bytes), "i32", column, |v| {
                i32::try_from(v * 2).ok().map(i32::to_be_bytes)
            });
            prop_assert_eq!(read_all(&doubled), expected);
            assert_random_access(&doubled);
        }
    }

    #[test]
    fn blocks_join_without_a_seam() {
        let bytes: Vec<u8> = (0..3 * BLOCK as u32 / 4 + 5).flat_map(u32::to_le_bytes).collect();
        let expected: Vec<u8> = (0..3 * BLOCK as u32 / 4 + 5).flat_map(u32::to_be_bytes).collect();
        let content: Arc<dyn Content> = Arc::new(bytes);
        let swapped = Swapped::new(content.clone(), 4);
        let widened = Converted::new(content, 4, 4, |from, to| {
            to.copy_from_slice(from);
            swap_in_place(4, to);
            Ok(())
        });
        assert!(read_all(&swapped) == expected);
        assert!(read_all(&widened) == expected);
        let mut part = vec![0; 2 * BLOCK];
        swapped.read_at(3, &mut part).unwrap();
        assert!(part[..] == expected[3..3 + 2 * BLOCK]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_of_its_column_and_row() {
        let last = BLOCK as u64 / 4;
        let bytes = [vec![1i64; last as usize], vec![i64::MAX]].concat().into_iter().flat_map(i64::to_le_bytes);
        let bytes: Arc<dyn Content> = Arc::new(bytes.collect::<Vec<u8>>());
        let narrow = |column: ConvertedColumn| {
            let fitting = |value| i32::try_from(value).ok().map(i32::to_le_bytes);
            Converted::integers(bytes.clone(), "no integer of 32 bits", column, fitting)
        };
        let column = ConvertedColumn::new("count");
        let mut whole = vec![0; 4 * (last as usize + 1)];
        narrow(column.clone()).read_at(0, &mut whole[4..]).unwrap();
        let error = |column| narrow(column).read_at(0, &mut vec![0; 4 * (last as usize + 1)]).unwrap_err().to_string();
        let found = error(column.clone());
        assert!(
            found.contains("count") && found.contains(&format!("{} of row {last}, which is no integer", i64::MAX)),
            "{found}"
        );
        let found = error(column.clone().from_row(Some(7)));
        assert!(found.contains(&format!("of row {}, which is", last + 7)), "{found}");
        let found = error(column.from_row(None));
        assert!(found.contains("count") && !found.contains("row"), "{found}");
    }

    #[test]
    fn whole_elements_are_prefetched() {
        let bytes = |length: usize| Arc::new(vec![1; length]);
        assert_reads_ahead(|sources| Arc::new(Swapped::new(sources.values(bytes(4000)), 8)));
        // More than a block.
        assert_reads_ahead(|sources| {
            let source = sources.values(bytes(3 * BLOCK));
            Arc::new(Converted::new(source, 4, 3, |_, _| Ok(())))
        });
        let huge = Converted::new(Arc::new(Repeat::zeros(1 << 60)), 8, 1, |_, _| panic!("nothing is converted"));
        huge.read(7, Output::Ahead(1 << 56)).unwrap();
    }
}
