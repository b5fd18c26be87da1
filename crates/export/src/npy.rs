//! NumPy's `.npy`, version 1.0: a header that describes the values, followed by the raw values.
//!
//! `numpy.load(path, mmap_mode='r')` maps them without a copy, so everything after the header equals the raw file, byte
//! for byte.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};

use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::content::compose::Concat;

/// The order of the cells in the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last axis varies fastest: C order.
    RowMajor,
    /// The first axis varies fastest: Fortran order.
    ColumnMajor,
}

/// Maximum number of values per cell that get a field each; more are one sub-array field, because the header is limited
/// to 64 KiB.
const MAX_FIELDS: u32 = 256;

/// Checks whether `.npy` can hold a field; returns the reason if not.
pub fn check(field: &Field) -> FormatResult<()> {
    descr(field).map(drop)
}

/// Returns the `.npy` file of a column whose values are in `order`.
///
/// The header's length is a multiple of 64, as the format requires. Dates are `datetime64` and times `timedelta64` of
/// their unit; bytes and characters are `S` (text) or `V` (blobs) of the cell's length; UTF-16 and UTF-32 text are
/// unsigned integers. Several numbers per cell are a structure of fields `f0`, `f1` and so on; from 257 numbers on, one
/// sub-array field `f0`.
pub fn npy(column: &Column, order: Order) -> FormatResult<Arc<dyn Content>> {
    column.check()?;
    let header = header(&column.field, &column.shape, order)?;
    Ok(Arc::new(Concat::new(vec![Arc::new(header), column.values.clone()])))
}

/// Returns the mask of a nullable column as a `.npy` file of booleans: true for a value, false for null.
pub fn validity(column: &Column, order: Order) -> FormatResult<Arc<dyn Content>> {
    let Some(validity) = &column.validity else { return Err(Unrepresentable::new("it cannot be null")) };
    let field = Field::new(column.field.name.clone(), Datatype::Bool);
    npy(&Column::fixed(field, column.shape.clone(), Arc::new(validity.valid_cells())), order)
}

fn header(field: &Field, shape: &[u64], order: Order) -> FormatResult<Vec<u8>> {
    let fortran = if order == Order::ColumnMajor { "True" } else { "False" };
    // A tuple of one element ends with a comma.
    let lengths: String = shape.iter().map(|length| format!("{length}, ")).collect();
    let lengths = if shape.len() == 1 { lengths.trim_end() } else { lengths.trim_end_matches(", ") };
    let text = format!("{{'descr': {}, 'fortran_order': {fortran}, 'shape': ({lengths}), }}", descr(field)?);
    let before = b"\x93NUMPY\x01\x00".len() + 2;
    let total = (before + text.len() + 1).next_multiple_of(64);
    let length =
        u16::try_from(total - before).map_err(|_| Unrepresentable::new("the .npy header has at most 64 KiB"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(length.to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(total - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

/// Returns the header's `descr`: NumPy's spelling of the type of one cell.
fn descr(field: &Field) -> FormatResult<String> {
    let Some(values) = field.values_per_cell else {
        return Err(Unrepresentable::varying_cells());
    };
    let datatype = field.datatype;
    if field.is_bytes() && datatype.size() == 1 {
        let letter = if datatype.is_string() { 'S' } else { 'V' };
        return Ok(format!("'|{letter}{values}'"));
    }
    let one = dtype(datatype);
    Ok(match values {
        1 => format!("'{one}'"),
        2..=MAX_FIELDS => {
            let fields: Vec<String> = (0..values).map(|number| format!("('f{number}', '{one}')")).collect();
            format!("[{}]", fields.join(", "))
        }
        _ => format!("[('f0', '{one}', ({values},))]"),
    })
}

/// Returns NumPy's spelling of one value of a datatype; UTF-16 and UTF-32 characters are unsigned integers.
pub fn dtype(datatype: Datatype) -> String {
    let size = datatype.size();
    if let Some(unit) = datatype.time_unit() {
        let letter = if datatype.is_datetime() { 'M' } else { 'm' };
        return format!("<{letter}8[{unit}]");
    }
    let letter = match datatype.kind() {
        _ if datatype == Datatype::Bool => 'b',
        Kind::Signed => 'i',
        Kind::Float => 'f',
        Kind::Unsigned | Kind::Bytes => 'u',
    };
    let order = if size == 1 { '|' } else { '<' };
    format!("{order}{letter}{size}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_random_access, read_all};
    use proptest::prelude::*;

    fn text_of(field: &Field, shape: &[u64], order: Order) -> String {
        let header = header(field, shape, order).unwrap();
        assert_eq!(header.len() % 64, 0);
        assert_eq!(header.last(), Some(&b'\n'));
        assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])), header.len() - 10);
        String::from_utf8(header[10..].to_vec()).unwrap().trim_end().to_owned()
    }

    #[test]
    fn headers_are_python_literals() {
        let field = Field::new("a", Datatype::Float32);
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
        assert_eq!(text_of(&field, &[3, 4], Order::RowMajor), text);
        let text = "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }";
        assert_eq!(text_of(&field, &[3], Order::ColumnMajor), text);
    }

    #[test]
    fn types_have_numpy_s_names() {
        let descr = |datatype, values| descr(&Field::new("a", datatype).with_values_per_cell(Some(values))).unwrap();
        assert_eq!(descr(Datatype::Bool, 1), "'|b1'");
        assert_eq!(descr(Datatype::Int8, 1), "'|i1'");
        assert_eq!(descr(Datatype::UInt64, 1), "'<u8'");
        assert_eq!(descr(Datatype::DateTimeMs, 1), "'<M8[ms]'");
        assert_eq!(descr(Datatype::TimeHr, 1), "'<m8[h]'");
        assert_eq!(descr(Datatype::StringAscii, 5), "'|S5'");
        assert_eq!(descr(Datatype::Blob, 2), "'|V2'");
        assert_eq!(descr(Datatype::StringUtf16, 1), "'<u2'");
        assert_eq!(descr(Datatype::Int32, 2), "[('f0', '<i4'), ('f1', '<i4')]");
        assert_eq!(descr(Datatype::Int32, 4_000_000_000), "[('f0', '<i4', (4000000000,))]");
    }

    #[test]
    fn variable_cells_do_not_fit() {
        assert!(check(&Field::new("a", Datatype::Int32).with_values_per_cell(None)).is_err());
    }

    #[test]
    fn mask_consists_of_booleans() {
        let column = Column::fixed(Field::new("a", Datatype::Int16), vec![3], Arc::new(vec![0; 6]));
        assert!(validity(&column, Order::RowMajor).is_err());
        let all = read_all(&validity(&column.with_validity(Arc::new(vec![1, 0, 255])), Order::RowMajor).unwrap());
        assert!(all.windows(5).any(|part| part == b"'|b1'") && all.ends_with(&[b'\n', 1, 0, 1]));
    }

    #[test]
    fn an_array_of_2_to_the_40_cells_is_only_a_header() {
        let values = Arc::new(crate::content::compose::Repeat::zeros(8 << 40));
        let column = Column::fixed(Field::new("a", Datatype::Int64), vec![1 << 20, 1 << 20], values);
        assert_eq!(npy(&column, Order::RowMajor).unwrap().len(), 128 + (8 << 40));
    }

    proptest! {
        #[test]
        fn the_values_follow_the_header(values in proptest::collection::vec(any::<i16>(), 1..200)) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let column = Column::fixed(Field::new("a", Datatype::Int16), vec![values.len() as u64], Arc::new(bytes.clone()));
            let content = npy(&column, Order::RowMajor).unwrap();
            let all = read_all(&content);
            prop_assert_eq!(all.len() % 64, bytes.len() % 64);
            prop_assert_eq!(&all[all.len() - bytes.len()..], &bytes[..]);
            assert_random_access(&content);
        }
    }
}
