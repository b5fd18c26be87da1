//! The variables along the record dimension of a classic file: record by record, each with a part of every variable.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;

use super::plan::{FilePlan, PlannedVariable};
use crate::content::compose::{Repeat, Slice};
use crate::content::element::{BLOCK, by_elements};
use crate::content::read_parts;

/// The records of a file.
pub struct RecordSection {
    variables: Vec<RecordVariable>,
    /// Bytes of a record, at least 1.
    size: u64,
    count: u64,
}

/// A variable along the record dimension.
struct RecordVariable {
    content: Arc<dyn Content>,
    /// Its first byte in a record, and its bytes in a record without the padding.
    start: u64,
    length: u64,
}

impl RecordSection {
    /// Returns the records of a file and the offset of each of its variables in a record, `None` for those that are not
    /// along the record dimension. Returns `None` if there are no records.
    pub fn of(plan: &FilePlan) -> Option<(Self, Vec<Option<u64>>)> {
        let count = plan.dimensions.get(plan.record?)?.length;
        let is_along = |variable: &&PlannedVariable| plan.is_record(variable);
        let is_alone = plan.variables.iter().filter(is_along).count() == 1;
        let (mut variables, mut size) = (Vec::new(), 0u64);
        let mut place = |variable: &PlannedVariable| {
            let length = Some(plan.size_of(variable)).filter(|_| plan.is_record(variable))?;
            let start = size;
            variables.push(RecordVariable { content: variable.content.clone(), start, length });
            // The only variable is not padded.
            size = start.saturating_add(if is_alone { length } else { length.div_ceil(4).saturating_mul(4) });
            Some(start)
        };
        let starts = plan.variables.iter().map(&mut place).collect();
        (size > 0 && count > 0).then_some((RecordSection { variables, size, count }, starts))
    }

    /// Reads whole records.
    fn records(&self, first: u64, mut out: Output<'_>) -> Result<()> {
        let count = out.len() / self.size;
        let mut values = Vec::new();
        if let Some(out) = out.wanted() {
            out.fill(0);
        }
        for variable in self.variables.iter().filter(|variable| variable.length > 0) {
            let aside = out.aside(count * variable.length, &mut values);
            variable.content.read(first * variable.length, aside)?;
            let records = out.wanted().into_iter().flat_map(|out| out.chunks_exact_mut(self.size as usize));
            for (record, values) in records.zip(values.chunks_exact(variable.length as usize)) {
                let place = record.get_mut(variable.start as usize..).and_then(|rest| rest.get_mut(..values.len()));
                place.into_iter().for_each(|place| place.copy_from_slice(values));
            }
        }
        Ok(())
    }

    /// Returns the place of a part of one variable in a large record, or of the padding after it, and its content.
    fn part(&self, offset: u64) -> (std::ops::Range<u64>, Arc<dyn Content>) {
        let (record, within) = (offset / self.size, offset % self.size);
        let number = self.variables.partition_point(|variable| variable.start <= within).saturating_sub(1);
        let next = self.variables.get(number + 1).map_or(self.size, |next| next.start);
        let (start, length) = self.variables.get(number).map_or((0, 0), |one| (one.start, one.length));
        let begin = record * self.size;
        match self.variables.get(number).filter(|_| within < start + length) {
            Some(variable) => {
                let values = Slice::new(variable.content.clone(), record * length, length);
                (begin + start..begin + start + length, Arc::new(values))
            }
            None => (begin + start + length..begin + next, Arc::new(Repeat::zeros(next - start - length))),
        }
    }
}

impl Content for RecordSection {
    fn len(&self) -> u64 {
        self.size.saturating_mul(self.count)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        match usize::try_from(self.size) {
            Ok(size) if size <= BLOCK => {
                by_elements(size, BLOCK / size, offset, out, |first, out| self.records(first, out))
            }
            _ => read_parts(offset, out, |at| Ok(self.part(at))),
        }
    }
}
