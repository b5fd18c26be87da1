//! Converts dates along an axis to a unit that all readers of netCDF support. CDO and others support none below the
//! second, while pandas always writes nanoseconds.

use std::sync::Arc;

use tilefs_base::error::Result;
use tilefs_export::content::element::{Converted, ConvertedColumn};
use tilefs_export::{Column, Field};
use tilefs_format::datatype::Datatype;

use crate::fields::coordinates::each;

/// Maximum number of dates that are examined.
const MAX_VALUES: u64 = 10 << 20;

const SECONDS_OF_A_DAY: i64 = 86_400;

/// Converts the dates of an axis to days if all are whole days, or to seconds if all are whole seconds; returns other
/// columns unchanged. Reads the values.
///
/// # Errors
/// Fails if the values cannot be read.
pub fn in_whole_units(column: Column) -> Result<Column> {
    let per_second: i64 = match column.field.datatype {
        Datatype::DateTimeMs => 1000,
        Datatype::DateTimeUs => 1_000_000,
        Datatype::DateTimeNs => 1_000_000_000,
        _ => return Ok(column),
    };
    if column.field.values_per_cell != Some(1) || !(1..=MAX_VALUES).contains(&column.cells()) {
        return Ok(column);
    }
    let per_day = per_second * SECONDS_OF_A_DAY;
    let (mut are_days, mut are_seconds) = (true, true);
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    each(&column, |value| {
        let value = value.try_into().map_or(i64::MIN, i64::from_le_bytes);
        let is_time = value != i64::MIN;
        are_days &= is_time && value % per_day == 0;
        are_seconds &= is_time && value % per_second == 0;
        (least, greatest) = (least.min(value), greatest.max(value));
    })?;
    let (datatype, units) = match (are_days, are_seconds) {
        (true, _) => (Datatype::DateTimeDay, per_day),
        (false, true) => (Datatype::DateTimeSec, per_second),
        (false, false) => return Ok(column),
    };
    let whole = move |value: i64| (value % units == 0).then(|| (value / units).to_le_bytes());
    let named = ConvertedColumn::new(&column.field.name);
    let values = Converted::integers(column.values.clone(), "no whole day or second", named, whole);
    let stored_as = Some(column.field.datatype);
    let field = Field { datatype, stored_as, fill: Vec::new(), no_data: None, null: None, ..column.field.clone() };
    let bounds = Some(((least / units).into(), (greatest / units).into()));
    Ok(Column { field, values: Arc::new(values), bounds, ..column })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dates(datatype: Datatype, values: &[i64]) -> Column {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Column::fixed(Field::new("t", datatype), vec![values.len() as u64], Arc::new(bytes))
    }

    fn converted(datatype: Datatype, values: &[i64]) -> (Datatype, Vec<i64>, Option<(i128, i128)>) {
        let column = in_whole_units(dates(datatype, values)).unwrap();
        let mut bytes = vec![0; column.values.len() as usize];
        column.values.read_at(0, &mut bytes).unwrap();
        let values = bytes.as_chunks().0.iter().map(|value| i64::from_le_bytes(*value)).collect();
        (column.field.datatype, values, column.bounds)
    }

    #[test]
    fn the_coarsest_unit_that_holds_all_is_taken() {
        const DAY: i64 = 86_400_000_000_000;
        use Datatype::{DateTimeDay, DateTimeMs, DateTimeNs, DateTimeSec, Int64};
        let days = (DateTimeDay, vec![-2, 0, 3], Some((-2, 3)));
        assert_eq!(converted(DateTimeNs, &[-2 * DAY, 0, 3 * DAY]), days);
        let seconds = (DateTimeSec, vec![86_400, -1], Some((-1, 86_400)));
        assert_eq!(converted(DateTimeNs, &[DAY, -1_000_000_000]), seconds);
        assert_eq!(converted(DateTimeMs, &[5000]), (DateTimeSec, vec![5], Some((5, 5))));
        for (datatype, values) in [
            (DateTimeNs, vec![DAY, DAY + 1]),
            (DateTimeNs, vec![DAY, i64::MIN]),
            (DateTimeSec, vec![86_400]),
            (Int64, vec![DAY]),
            (DateTimeNs, vec![]),
        ] {
            assert_eq!(converted(datatype, &values), (datatype, values, None));
        }
    }
}
