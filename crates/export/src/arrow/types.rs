//! The representation of a column in Arrow: its type, and its bytes if they differ from the column's own.

use std::sync::Arc;

use tilefs_base::calendar;
use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::memory;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text::is_utf8;
use tilefs_format::time_unit::TimeUnit;

use super::schema::{ArrowField, ArrowTimeUnit, DataType};
use crate::cf;
use crate::column::missing::MissingAsNull;
use crate::column::{Column, Elements, Field, FormatResult, Labels, Unrepresentable};
use crate::content::blanked::Blanked;
use crate::content::element::{Converted, ConvertedColumn};
use crate::content::masked::Masked;
use crate::content::offsets::Offsets;
use crate::content::refusal::TOO_FAR;
use crate::content::utf8::Utf8Values;
use crate::content::validity::Validity;

/// The arrangement of a column's cells in its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferLayout {
    /// One value of this many bytes per cell.
    Values(u64),
    /// One bit per cell; `values` has one byte per cell.
    Bits,
    /// A child with `values` values of `size` bytes per cell.
    List { values: u64, size: u64 },
    /// Byte offsets, then all bytes.
    Bytes,
    /// Offsets counted in values, then a child with values of this many bytes.
    VariableList(u64),
    /// Offsets counted in elements, then a child with its own validity, and values of this many bytes.
    Nullable(u64),
    /// Offsets counted in elements, then a child with its own validity, byte offsets and all bytes.
    Texts,
}

/// A column and its Arrow type.
pub struct ArrowColumn {
    pub field: ArrowField,
    pub layout: BufferLayout,
    /// The data buffer of all rows.
    pub values: Arc<dyn Content>,
    /// Offsets in bytes or elements, as in [`Column`].
    pub offsets: Option<Offsets>,
    /// For [`BufferLayout::Nullable`] and [`BufferLayout::Texts`].
    pub elements: Option<Elements>,
    pub validity: Option<Validity>,
    pub labels: Option<Arc<Labels>>,
}

impl ArrowColumn {
    /// Checks whether a field has an Arrow type; returns the reason if not.
    pub fn check(field: &Field) -> FormatResult<()> {
        data_type(field).map(drop)
    }

    /// Returns the column's type and contents.
    pub fn new(column: &Column) -> FormatResult<Self> {
        let field = &column.field;
        let (mut data_type, mut layout) = match &column.elements {
            Some(elements) => list_type(field, elements),
            None => data_type(field)?,
        };
        let days = days_of(field.datatype).filter(|_| data_type == DataType::Date32 && has_days(column));
        if data_type == DataType::Date32 && days.is_none() {
            (data_type, layout) = (DataType::Timestamp(ArrowTimeUnit::Second), BufferLayout::Values(8));
        }
        let labels = field.labels.clone().filter(|_| matches!(data_type, DataType::Dictionary(..)));
        let validity = MissingAsNull::validity(column, labels.as_deref(), true);
        let arrow_field = ArrowField {
            name: field.name.clone(),
            data_type,
            is_nullable: validity.is_some(),
            is_ordered: labels.as_ref().is_some_and(|labels| labels.ordered),
            datatype: Some(field.datatype),
        };
        let values: Arc<dyn Content> = match &column.offsets {
            // Readers also check the bytes of nulls.
            Some(offsets) if arrow_field.data_type == DataType::LargeUtf8 => {
                let values = Blanked::of(column.values.clone(), offsets, column.validity.as_ref());
                Arc::new(Utf8Values::new(values, offsets.clone(), None, &field.name))
            }
            _ => column.values.clone(),
        };
        let is_count = matches!(layout, BufferLayout::Values(_)) && field.datatype.time_unit().is_some();
        // "Not a time" is null, but the value under a null must be a valid time: DuckDB converts the durations of nulls
        // too.
        let under_null = |value: i64| if value == i64::MIN { 0 } else { value };
        let named = ConvertedColumn::new(&field.name);
        // The array may hold anything at a null, also a count that is too large for seconds.
        let values: Arc<dyn Content> = match &column.validity {
            Some(validity) if is_count && seconds_of(field.datatype).is_some() => {
                Arc::new(Masked::new(values, validity.clone(), vec![0; size_of::<i64>()]))
            }
            _ => values,
        };
        let values: Arc<dyn Content> = match (days, seconds_of(field.datatype)) {
            (Some(days), _) => as_days(values, named, move |value| days(under_null(value))),
            (None, Some(seconds)) if is_count => Arc::new(Converted::integers(values, TOO_FAR, named, move |value| {
                seconds(under_null(value)).map(i64::to_le_bytes)
            })),
            (None, None) if is_count && field.datatype.is_time() && MissingAsNull::may_lack_times(column) => {
                let each = move |value| Some(under_null(value).to_le_bytes());
                Arc::new(Converted::integers(values, TOO_FAR, named, each))
            }
            _ => values,
        };
        let (offsets, elements) = (column.offsets.clone(), column.elements.clone());
        Ok(ArrowColumn { field: arrow_field, layout, values, offsets, elements, validity, labels })
    }
}

/// Returns the type of lists of texts, or of numbers that can be null.
fn list_type(field: &Field, elements: &Elements) -> (DataType, BufferLayout) {
    let items = |data_type| DataType::LargeList(ArrowField::of_nullable_items("item", data_type));
    match &elements.offsets {
        Some(_) => (items(DataType::LargeUtf8), BufferLayout::Texts),
        None => (items(element_type(field.datatype)), BufferLayout::Nullable(field.datatype.size() as u64)),
    }
}

fn data_type(field: &Field) -> FormatResult<(DataType, BufferLayout)> {
    let datatype = field.datatype;
    let size = datatype.size() as u64;
    if let Some(bytes) = bytes_type(field, "Arrow")? {
        return Ok((
            bytes,
            field.values_per_cell.map_or(BufferLayout::Bytes, |values| BufferLayout::Values(values.into())),
        ));
    }
    let value = if days_of(datatype).is_some() { DataType::Date32 } else { value_type(datatype) };
    let items = || ArrowField::of_items("item", element_type(datatype));
    Ok(match field.values_per_cell {
        Some(1) => match code_labels(field) {
            Some(labels) => (
                DataType::Dictionary(Box::new(element_type(datatype)), Box::new(label_column(labels).data_type)),
                BufferLayout::Values(size),
            ),
            None if value == DataType::Boolean => (value, BufferLayout::Bits),
            None if value == DataType::Date32 => (value, BufferLayout::Values(size_of::<i32>() as u64)),
            None => (value, BufferLayout::Values(size)),
        },
        Some(values) => {
            let layout = BufferLayout::List { values: values.into(), size };
            (DataType::FixedSizeList(items(), cell_length(values, "Arrow")?), layout)
        }
        None => (DataType::LargeList(items()), BufferLayout::VariableList(size)),
    })
}

/// Returns the type of cells of bytes or one-byte characters; `None` for all other cells. `format` is the name of the
/// file format, for errors.
pub fn bytes_type(field: &Field, format: &str) -> FormatResult<Option<DataType>> {
    if !field.is_bytes() || field.datatype.size() != 1 {
        return Ok(None);
    }
    Ok(Some(match field.values_per_cell {
        Some(values) => DataType::FixedSizeBinary(cell_length(values, format)?),
        None if is_utf8(field.datatype) => DataType::LargeUtf8,
        None => DataType::LargeBinary,
    }))
}

fn cell_length(values: u32, format: &str) -> FormatResult<i32> {
    i32::try_from(values).map_err(|_| Unrepresentable::new(format!("{format} has no cells of that length")))
}

/// Returns the labels of a field whose cells are single codes of an enumeration.
pub fn code_labels(field: &Field) -> Option<&Labels> {
    let is_integer = matches!(field.datatype.kind(), Kind::Signed | Kind::Unsigned);
    field.labels.as_deref().filter(|_| is_integer && field.values_per_cell == Some(1))
}

/// Returns the type of one of a cell's several values. None of them can be null, and "not a time" is not a date, so
/// dates and times are the counts that TileDB stores. Bits of several cells could share a byte, so booleans are bytes.
pub fn element_type(datatype: Datatype) -> DataType {
    match value_type(datatype) {
        _ if datatype.time_unit().is_some() => DataType::Int64,
        DataType::Boolean => DataType::UInt8,
        value => value,
    }
}

/// Returns the type of one value that is not a byte of text.
pub fn value_type(datatype: Datatype) -> DataType {
    let unit = datatype.time_unit().and_then(|unit| match unit {
        TimeUnit::Millisecond => Some(ArrowTimeUnit::Millisecond),
        TimeUnit::Microsecond => Some(ArrowTimeUnit::Microsecond),
        TimeUnit::Nanosecond => Some(ArrowTimeUnit::Nanosecond),
        finer if finer > TimeUnit::Nanosecond => None,
        _ => Some(ArrowTimeUnit::Second),
    });
    match (unit, datatype.kind(), datatype.size()) {
        (Some(unit), ..) if datatype.is_datetime() => DataType::Timestamp(unit),
        (Some(unit), ..) => DataType::Duration(unit),
        _ if datatype == Datatype::Bool => DataType::Boolean,
        (_, Kind::Signed, 1) => DataType::Int8,
        (_, Kind::Signed, 2) => DataType::Int16,
        (_, Kind::Signed, 4) => DataType::Int32,
        (_, Kind::Signed, _) => DataType::Int64,
        (_, Kind::Float, 4) => DataType::Float32,
        (_, Kind::Float, _) => DataType::Float64,
        (_, _, 1) => DataType::UInt8,
        (_, _, 2) => DataType::UInt16,
        (_, _, 4) => DataType::UInt32,
        _ => DataType::UInt64,
    }
}

/// Returns the conversion to days since 1970 of dates in days or coarser units.
fn days_of(datatype: Datatype) -> Option<fn(i64) -> Option<i64>> {
    if datatype == Datatype::DateTimeDay { Some(Some) } else { cf::days_of(datatype) }
}

/// Returns whether the dates of a column are stored as days of 32 bits: unless it is known that some do not fit.
fn has_days(column: &Column) -> bool {
    let fits = |count: i128| {
        let days = days_of(column.field.datatype).zip(i64::try_from(count).ok()).and_then(|(days, count)| days(count));
        days.is_some_and(|days| i32::try_from(days).is_ok())
    };
    // "Not a time" tells nothing of the others.
    column.bounds.or(column.extremes).is_none_or(|(least, greatest)| {
        (fits(least) || least == i64::MIN.into()) && (fits(greatest) || greatest == i64::MIN.into())
    })
}

/// Converts values to 32-bit days since 1970.
pub fn as_days(
    values: Arc<dyn Content>,
    column: ConvertedColumn,
    of: impl Fn(i64) -> Option<i64> + Send + Sync + 'static,
) -> Arc<dyn Content> {
    Arc::new(Converted::integers(values, TOO_FAR, column, move |value| {
        of(value).and_then(|days| i32::try_from(days).ok()).map(i32::to_le_bytes)
    }))
}

/// Returns the conversion to seconds for dates and times in coarser units.
fn seconds_of(datatype: Datatype) -> Option<fn(i64) -> Option<i64>> {
    const DAY: i64 = 86_400;
    match datatype.time_unit()? {
        TimeUnit::Year => Some(|years| calendar::days_of_years(years)?.checked_mul(DAY)),
        TimeUnit::Month => Some(|months| calendar::days_of_months(months)?.checked_mul(DAY)),
        TimeUnit::Week => Some(|weeks| weeks.checked_mul(7 * DAY)),
        TimeUnit::Day => Some(|days| days.checked_mul(DAY)),
        TimeUnit::Hour => Some(|hours| hours.checked_mul(3600)),
        TimeUnit::Minute => Some(|minutes| minutes.checked_mul(60)),
        _ => None,
    }
}

/// The labels of an enumeration as the values of a dictionary.
pub struct LabelColumn {
    /// Text, bytes if some label is not text, numbers, booleans, dates or times.
    pub data_type: DataType,
    /// Their values, unless they are texts or bytes, or the numbers that TileDB stores.
    pub made: Option<ArrowColumn>,
}

/// Returns the labels as the values of a dictionary.
pub fn label_column(labels: &Labels) -> LabelColumn {
    let (data_type, made) = match labels.datatype.kind() {
        Kind::Bytes if labels.are_text() => (DataType::LargeUtf8, None),
        Kind::Bytes => (DataType::LargeBinary, None),
        _ => {
            let made = label_values(labels);
            (made.as_ref().map_or(element_type(labels.datatype), |made| made.field.data_type.clone()), made)
        }
    };
    LabelColumn { data_type, made }
}

/// Returns all bytes of a content made of labels.
///
/// # Errors
/// Fails if a label cannot be converted.
pub fn in_memory(labels: &dyn Content) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    memory::resize(&mut bytes, usize::try_from(labels.len()).unwrap_or(usize::MAX), "labels")?;
    labels.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Returns labels that are no text as a column of their own type. `None` if they are times of which one is "not a time",
/// which no dictionary may have, or does not fit the type: such labels are the counts that TileDB stores.
fn label_values(labels: &Labels) -> Option<ArrowColumn> {
    let column = labels.column(&labels.name);
    column.check().ok()?;
    let mut made = ArrowColumn::new(&column).ok()?;
    if labels.datatype.time_unit().is_some() {
        if made.validity.is_some() {
            return None;
        }
        // Converted only here: a reader of the values finds them in memory.
        made.values = Arc::new(in_memory(&*made.values).ok()?);
    }
    Some(made)
}
