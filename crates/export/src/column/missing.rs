//! Which cells of a column have a value that a format with nulls can hold. A cell has none if it is null, if it is a code
//! without a label, if it is a date or a duration that is "not a time", or if it has the value that the writer chose for
//! missing cells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;

use crate::column::{Column, Labels};
use crate::content::element::{BLOCK, by_elements};
use crate::content::validity::Validity;
use crate::number;

/// The validity of a column whose missing values count as null: one byte for each cell, 0 if the cell has no value.
pub struct MissingAsNull {
    values: Arc<dyn Content>,
    datatype: Datatype,
    missing: Missing,
    validity: Option<Validity>,
    /// The column's name, for the log.
    name: String,
    fill: Vec<u8>,
    /// Whether a code without a label has been logged already.
    is_logged: AtomicBool,
}

/// The values that count as missing.
enum Missing {
    /// Numbers below 0, and numbers from this one on.
    WithoutLabel(i128),
    /// The least number, which means "not a time" for dates and durations.
    NotATime,
    /// The value with these bytes.
    This(Vec<u8>),
}

impl MissingAsNull {
    /// Marks the cells of a column of codes that have a label and are not null.
    ///
    /// A code without a label is logged, once per column, unless it is the fill value or -1, which pandas writes for
    /// missing values.
    fn of_codes(column: &Column, labels: &Labels) -> Self {
        Self::new(column, Missing::WithoutLabel(labels.values.len() as i128))
    }

    /// Marks the cells of a column of dates or durations that are a time and not null.
    fn of_times(column: &Column) -> Self {
        Self::new(column, Missing::NotATime)
    }

    /// Marks the cells of a column of single values that have other bytes than these, and are not null.
    fn of_other_than(column: &Column, missing: &[u8]) -> Self {
        Self::new(column, Missing::This(missing.to_vec()))
    }

    /// Returns the validity of a column in a format that shows its codes as `labels` or, if `has_times`, its values as
    /// dates or durations: other codes, and values that are "not a time", count as null.
    pub fn validity(column: &Column, labels: Option<&Labels>, has_times: bool) -> Option<Validity> {
        match labels {
            Some(labels) => Some(Arc::new(Self::of_codes(column, labels)).into()),
            None if has_times && Self::may_lack_times(column) => Some(Arc::new(Self::of_times(column)).into()),
            None => column.validity.clone(),
        }
    }

    /// Returns whether single values of a column can be "not a time": dates and durations can, unless bounds exclude
    /// it.
    pub fn may_lack_times(column: &Column) -> bool {
        column.field.datatype.time_unit().is_some()
            && column.field.values_per_cell == Some(1)
            && column.bounds.is_none_or(|(least, _)| least <= i64::MIN.into())
    }

    fn new(column: &Column, missing: Missing) -> Self {
        let datatype = column.field.datatype;
        MissingAsNull {
            values: column.values.clone(),
            datatype,
            missing,
            validity: column.validity.clone(),
            name: column.field.name.clone(),
            fill: column.field.fill.clone(),
            is_logged: AtomicBool::new(false),
        }
    }

    fn log(&self, code: i128, labels: i128) {
        if !self.is_logged.swap(true, Ordering::Relaxed) {
            log::warn!(
                "{}: the code {code} has no label, since the enumeration has {labels}; such codes are shown as null",
                self.name.escape_debug()
            );
        }
    }

    fn mark(&self, present: &mut [u8], values: &[u8]) {
        match self.missing {
            Missing::WithoutLabel(labels) => {
                for (present, bytes) in present.iter_mut().zip(values.chunks_exact(self.datatype.size())) {
                    let code = number::integer(self.datatype, bytes).unwrap_or(-1);
                    let has_label = (0..labels).contains(&code);
                    if *present != 0 && !has_label && code != -1 && bytes != self.fill {
                        self.log(code, labels);
                    }
                    *present = u8::from(*present != 0 && has_label);
                }
            }
            Missing::This(ref missing) => {
                for (present, bytes) in present.iter_mut().zip(values.chunks_exact(self.datatype.size())) {
                    *present = u8::from(*present != 0 && bytes != missing.as_slice());
                }
            }
            Missing::NotATime => {
                for (present, value) in present.iter_mut().zip(values.as_chunks().0) {
                    *present = u8::from(*present != 0 && i64::from_le_bytes(*value) != i64::MIN);
                }
            }
        }
    }
}

impl Column {
    /// Makes the cells with these bytes null; cells are single values.
    pub fn with_missing(self, value: &[u8]) -> Self {
        let validity = Arc::new(MissingAsNull::of_other_than(&self, value));
        self.with_validity(validity)
    }
}

impl Content for MissingAsNull {
    fn len(&self) -> u64 {
        self.values.len() / self.datatype.size() as u64
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let size = self.datatype.size();
        let mut values = Vec::new();
        by_elements(1, BLOCK / size, offset, out, |first, mut out| {
            let count = out.len();
            self.values.read(first * size as u64, out.aside(count.saturating_mul(size as u64), &mut values))?;
            match &self.validity {
                Some(validity) => validity.read(first, out.part(0..count))?,
                None => out.wanted().into_iter().for_each(|out| out.fill(1)),
            }
            if let Some(out) = out.wanted() {
                self.mark(out, &values);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};

    fn codes(count: u8) -> Column {
        let labels = Labels {
            name: "kinds".into(),
            datatype: Datatype::StringUtf8,
            ordered: false,
            values: vec![b"a".to_vec(), b"b".to_vec()],
        };
        let field = Field::new("kind", Datatype::Int8).with_labels(Arc::new(labels));
        let codes: Vec<u8> = (0..count).map(|i| [0, 1, 2, 0xff][usize::from(i % 4)]).collect();
        let column = Column::fixed(field, vec![count.into()], Arc::new(codes));
        column.with_validity(Arc::new((0..count).map(|i| u8::from(i % 8 != 1)).collect::<Vec<u8>>()))
    }

    #[test]
    fn codes_need_a_label_and_dates_a_time() {
        let column = codes(200);
        let present = MissingAsNull::of_codes(&column, column.field.labels.as_ref().unwrap());
        assert_eq!(read_all(&present)[..8], [1, 0, 0, 0, 1, 1, 0, 0]);
        assert_random_access(&present);
        // The code 2 has no label; -1 and the fill value mean that there is none.
        assert!(present.is_logged.load(Ordering::Relaxed));
        for (code, fill, is_logged) in [(0xff, vec![0x80], false), (0x80, vec![0x80], false), (0x80, vec![], true)] {
            let column = Column::fixed(column.field.clone().with_fill(fill), vec![1], Arc::new(vec![code]));
            let present = MissingAsNull::of_codes(&column, column.field.labels.as_ref().unwrap());
            assert_eq!(read_all(&present), [0]);
            assert_eq!(present.is_logged.load(Ordering::Relaxed), is_logged, "{code}");
        }
        let dates = [0, i64::MIN, -1, i64::MAX].map(i64::to_le_bytes).concat();
        let column = Column::fixed(Field::new("day", Datatype::DateTimeDay), vec![4], Arc::new(dates));
        assert_eq!(read_all(&MissingAsNull::of_times(&column)), [1, 0, 1, 1]);
        let column = column.with_validity(Arc::new(vec![2, 1, 0, 1]));
        assert_eq!(read_all(&MissingAsNull::of_times(&column)), [1, 0, 0, 1]);
    }

    #[test]
    fn values_and_validity_are_prefetched() {
        assert_reads_ahead(|sources| {
            let column = sources.column(codes(200));
            Arc::new(MissingAsNull::of_codes(&column, column.field.labels.as_ref().unwrap()))
        });
    }
}
