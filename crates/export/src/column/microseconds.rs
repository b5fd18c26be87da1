//! Dates in nanoseconds as dates in microseconds, for readers that support nothing finer. Reading a date that would
//! lose precision is an error, so no reader gets a wrong one.
//!
//! Whether all dates of a column are whole microseconds is not known without reading them, so they are checked as they
//! are read.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::{Error, Locate, Result};
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::ValueBounds;

use crate::column::{Column, ColumnStatistics, Field};
use crate::content::element::{BLOCK, by_elements};
use crate::content::validity::Validity;

/// Nanoseconds of a microsecond.
const NANOSECONDS: i64 = 1000;

/// Returns whether the cells of a field are single dates in nanoseconds.
pub fn is_in_nanoseconds(field: &Field) -> bool {
    field.datatype == Datatype::DateTimeNs && field.values_per_cell == Some(1) && field.labels.is_none()
}

/// Converts a column of dates in nanoseconds to microseconds; returns any other column unchanged.
pub fn in_microseconds(column: Column) -> Column {
    if !is_in_nanoseconds(&column.field) {
        return column;
    }
    let values =
        Microseconds { of: column.values.clone(), validity: column.validity.clone(), name: column.field.name.clone() };
    // Bounds that include "not a time" tell nothing.
    let bounds = column.bounds.filter(|(least, _)| *least > i64::MIN.into());
    let of_microseconds = |bound: i128| bound.div_euclid(NANOSECONDS.into());
    let bounds = bounds.map(|(least, greatest)| (of_microseconds(least), of_microseconds(greatest) + 1));
    let statistics =
        column.statistics.clone().map(|of| Arc::new(StatisticsInMicroseconds(of)) as Arc<dyn ColumnStatistics>);
    let field = Field { datatype: Datatype::DateTimeUs, fill: Vec::new(), ..column.field.clone() };
    Column { field, values: Arc::new(values), bounds, statistics, ..column }
}

/// The values in microseconds; "not a time" is preserved.
struct Microseconds {
    of: Arc<dyn Content>,
    validity: Option<Validity>,
    name: String,
}

impl Microseconds {
    fn convert(&self, first: u64, values: &mut [u8]) -> Result<()> {
        for (row, bytes) in (first..).zip(values.as_chunks_mut().0) {
            let value = i64::from_le_bytes(*bytes);
            if value == i64::MIN {
                continue;
            }
            if value % NANOSECONDS != 0 && self.validity.as_ref().map_or(Ok(true), |validity| validity.is_valid(row))? {
                let reason = format!(
                    "the date of row {row}, which microseconds cannot represent: {value} ns since 1970; the table without \
                     \".us\" in its name has it"
                );
                return Err(Error::unsupported(reason)).in_field(&self.name);
            }
            *bytes = value.div_euclid(NANOSECONDS).to_le_bytes();
        }
        Ok(())
    }
}

impl Content for Microseconds {
    fn record(&self, recorder: &mut Recorder) {
        let Self { of, validity, name: _ } = self;
        recorder.add::<Self>(validity.is_some());
        of.record(recorder);
        validity.iter().for_each(|validity| validity.record(recorder));
    }

    fn len(&self) -> u64 {
        self.of.len()
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(8, BLOCK / 8, offset, out, |first, mut out| {
            let length = out.len();
            self.of.read(first.saturating_mul(8), out.part(0..length))?;
            out.wanted().map_or(Ok(()), |values| self.convert(first, values))
        })
    }
}

/// Bounds in nanoseconds as bounds in microseconds.
struct StatisticsInMicroseconds(Arc<dyn ColumnStatistics>);

impl ColumnStatistics for StatisticsInMicroseconds {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        let Some(ValueBounds { least, greatest, is_least_exact, is_greatest_exact }) = self.0.bounds(rows)? else {
            return Ok(None);
        };
        let number = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes).filter(|&value| value != i64::MIN);
        let Some((least, greatest)) = number(&least).zip(number(&greatest)) else { return Ok(None) };
        let is_whole = |value: i64| value.rem_euclid(NANOSECONDS) == 0;
        let up = i64::from(!is_whole(greatest));
        Ok(Some(ValueBounds {
            least: least.div_euclid(NANOSECONDS).to_le_bytes().to_vec(),
            greatest: (greatest.div_euclid(NANOSECONDS) + up).to_le_bytes().to_vec(),
            is_least_exact: is_least_exact && is_whole(least),
            is_greatest_exact: is_greatest_exact && is_whole(greatest),
        }))
    }

    fn nulls(&self, rows: Range<u64>) -> Result<Option<u64>> {
        self.0.nulls(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
    use proptest::prelude::*;

    fn column(values: &[i64]) -> Column {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Column::fixed(Field::new("t", Datatype::DateTimeNs), vec![values.len() as u64], Arc::new(bytes))
    }

    struct Bounds(i64, i64);

    impl ColumnStatistics for Bounds {
        fn bounds(&self, _rows: Range<u64>) -> Result<Option<ValueBounds>> {
            let (least, greatest) = (self.0.to_le_bytes().to_vec(), self.1.to_le_bytes().to_vec());
            Ok(Some(ValueBounds { least, greatest, is_least_exact: true, is_greatest_exact: true }))
        }

        fn nulls(&self, _rows: Range<u64>) -> Result<Option<u64>> {
            Ok(None)
        }
    }

    proptest! {
        /// Every date read equals the stored one divided by 1000; otherwise an error names the first row that is not
        /// whole.
        #[test]
        fn dates_are_exact_or_an_error(
            mut values in proptest::collection::vec((i64::MIN / 1000..=i64::MAX / 1000).prop_map(|us| us * 1000), 1..300),
            spoiled in proptest::option::of((0usize..300, 1i64..1000)),
            not_a_time in 0usize..300,
        ) {
            if let Some(value) = values.get_mut(not_a_time) {
                *value = i64::MIN;
            }
            let spoiled = spoiled.map(|(row, by)| (row % values.len(), by));
            if let Some((row, by)) = spoiled {
                values[row] = 5000 + by % 1000;
            }
            let converted = in_microseconds(column(&values));
            prop_assert_eq!(converted.field.datatype, Datatype::DateTimeUs);
            if let Some((row, _)) = spoiled {
                let mut all = vec![0; 8 * values.len()];
                let error = converted.values.read_at(0, &mut all).unwrap_err().to_string();
                let wanted = format!("row {row},");
                prop_assert!(error.contains(&wanted), "{}", error);
                // The other rows can be read.
                converted.values.read_at(0, &mut all[..8 * row]).unwrap();
                // The value of a null is not checked.
                let marks = (0..values.len()).map(|each| u8::from(each != row)).collect::<Vec<u8>>();
                let nullable = in_microseconds(column(&values).with_validity(Arc::new(marks)));
                nullable.values.read_at(0, &mut all).unwrap();
                return Ok(());
            }
            let read = read_all(&converted.values);
            for (bytes, value) in read.as_chunks().0.iter().zip(&values) {
                let micros = i64::from_le_bytes(*bytes);
                let wanted = if *value == i64::MIN { *value } else { *value / 1000 };
                prop_assert_eq!(micros, wanted);
            }
        }

        /// No value lies outside of the bounds of its column.
        #[test]
        fn bounds_hold_all_values(least in i64::MIN + 1..i64::MAX, greatest in i64::MIN + 1..i64::MAX) {
            let (least, greatest) = (least.min(greatest), least.max(greatest));
            let statistics: Option<Arc<dyn ColumnStatistics>> = Some(Arc::new(Bounds(least, greatest)));
            let column = Column { statistics, ..column(&[]) }.with_bounds(least.into(), greatest.into());
            let converted = in_microseconds(column);
            let bounds = converted.statistics.unwrap().bounds(0..1).unwrap().unwrap();
            let number = |bytes: &[u8]| i128::from(i64::from_le_bytes(bytes.try_into().unwrap())) * 1000;
            prop_assert!(number(&bounds.least) <= least.into() && number(&bounds.greatest) >= greatest.into());
            prop_assert_eq!(bounds.is_least_exact, number(&bounds.least) == least.into());
            prop_assert_eq!(bounds.is_greatest_exact, number(&bounds.greatest) == greatest.into());
            let (low, high) = converted.bounds.unwrap();
            prop_assert!(low * 1000 <= least.into() && high * 1000 >= greatest.into());
        }
    }

    #[test]
    fn only_single_dates_in_nanoseconds_change() {
        let others = [
            Field::new("t", Datatype::DateTimeUs),
            Field::new("t", Datatype::TimeNs),
            Field::new("t", Datatype::DateTimeNs).with_values_per_cell(Some(2)),
        ];
        for field in others {
            let values = Arc::new(vec![1; 16]);
            let cells = 16 / field.cell_size().unwrap();
            let same = in_microseconds(Column::fixed(field.clone(), vec![cells], values));
            assert_eq!(same.field.datatype, field.datatype);
            assert_eq!(read_all(&same.values), [1; 16]);
        }
        // Bounds that include "not a time" exclude nothing.
        assert_eq!(in_microseconds(column(&[0]).with_bounds(i64::MIN.into(), 0)).bounds, None);
    }

    #[test]
    fn any_part_can_be_read_and_prefetched() {
        let values: Vec<i64> = (0..9000).map(|row| row * 1_000_000 - 77_000).collect();
        assert_random_access(&in_microseconds(column(&values[..300])).values);
        assert_reads_ahead(|sources| in_microseconds(sources.column(column(&values))).values);
    }
}
