//! The representation of a column in Parquet: its type, and its values if they differ from the column's own.

use std::sync::Arc;

use tilefs_base::calendar;
use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::time_unit::TimeUnit;

use crate::arrow::schema::{ArrowField, ArrowTimeUnit, DataType};
use crate::arrow::types::{
    LabelColumn, as_days, bytes_type, code_labels, element_type, in_memory, label_column, value_type,
};
use crate::column::missing::MissingAsNull;
use crate::column::{Column, ColumnStatistics, Elements, Field, FormatResult, Labels, Unrepresentable};
use crate::content::element::{Converted, ConvertedColumn};
use crate::content::offsets::Offsets;
use crate::content::refusal::TOO_FAR;
use crate::content::utf8::Utf8Values;
use crate::content::validity::Validity;
use crate::number;

/// The physical types, by their numbers in Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    Boolean = 0,
    Int32 = 1,
    Int64 = 2,
    Float = 4,
    Double = 5,
    ByteArray = 6,
    FixedLenByteArray = 7,
}

/// The meaning of stored values beyond their physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    String,
    Integer {
        bits: i8,
        is_signed: bool,
    },
    Date,
    /// A time in a unit other than seconds, which Parquet lacks. Parquet numbers the other units as Arrow does.
    Timestamp(ArrowTimeUnit),
}

/// The arrangement of a column's values in its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLayout {
    /// One value of this many bytes per cell.
    Values(u64),
    /// One bit per cell; `values` has one byte per cell.
    Bits,
    /// The length of each cell in four bytes, followed by the cell.
    Bytes,
    /// An index of this many bytes per cell into the chunk's dictionary.
    Indices(u64),
    /// A list of `values` values of `size` bytes per cell, never null.
    List { values: u64, size: u64 },
    /// A list of values of `size` bytes per cell. Lists can be null, and their lengths can vary.
    VaryingList { size: u64 },
    /// A list per cell. The list can be null, and so can each of its elements: a number of `size` bytes, or if `size` is
    /// 0, a text after its length.
    Elements { size: u64 },
}

impl PageLayout {
    pub fn is_list(self) -> bool {
        matches!(self, PageLayout::List { .. } | PageLayout::VaryingList { .. } | PageLayout::Elements { .. })
    }
}

/// A leaf of the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    pub physical: Physical,
    pub logical: Option<Logical>,
    /// The length in bytes of a [`Physical::FixedLenByteArray`].
    pub length: Option<i32>,
}

impl Leaf {
    /// Returns the leaf for values of an Arrow type, which is neither a list nor a dictionary.
    fn of(arrow: &DataType) -> Self {
        use Physical::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        let integer = |bits, is_signed| Some(Logical::Integer { bits, is_signed });
        let (physical, logical) = match arrow {
            DataType::Boolean => (Boolean, None),
            DataType::Int8 => (Int32, integer(8, true)),
            DataType::Int16 => (Int32, integer(16, true)),
            DataType::Int32 => (Int32, None),
            DataType::UInt8 => (Int32, integer(8, false)),
            DataType::UInt16 => (Int32, integer(16, false)),
            DataType::UInt32 => (Int32, integer(32, false)),
            DataType::UInt64 => (Int64, integer(64, false)),
            DataType::Float32 => (Float, None),
            DataType::Float64 => (Double, None),
            DataType::Date32 => (Int32, Some(Logical::Date)),
            DataType::Timestamp(unit) => (Int64, Some(Logical::Timestamp(*unit))),
            DataType::FixedSizeBinary(_) => (FixedLenByteArray, None),
            DataType::LargeBinary => (ByteArray, None),
            DataType::LargeUtf8 => (ByteArray, Some(Logical::String)),
            // Parquet has no durations.
            _ => (Int64, None),
        };
        let length = if let DataType::FixedSizeBinary(length) = arrow { Some(*length) } else { None };
        Leaf { physical, logical, length }
    }

    /// Returns the arrangement of cells with one value each.
    fn layout(&self) -> PageLayout {
        match self.physical {
            Physical::Boolean => PageLayout::Bits,
            Physical::ByteArray => PageLayout::Bytes,
            Physical::Int32 | Physical::Float => PageLayout::Values(4),
            Physical::Int64 | Physical::Double => PageLayout::Values(8),
            Physical::FixedLenByteArray => PageLayout::Values(self.length.unwrap_or(0).unsigned_abs().into()),
        }
    }
}

/// A conversion of the values before they are stored.
pub type ValueConversion = fn(Arc<dyn Content>, ConvertedColumn) -> Arc<dyn Content>;

/// A column and its Parquet type.
pub struct ParquetColumn {
    /// The Arrow field, for readers that convert Parquet to Arrow.
    pub field: ArrowField,
    /// The name of the struct of which the column is a member. Members of one struct follow each other.
    pub within: Option<String>,
    pub leaf: Leaf,
    pub layout: PageLayout,
    /// The values of all rows as the column stores them, of `size` bytes each, or all bytes if there are offsets.
    pub values: Arc<dyn Content>,
    pub size: u64,
    /// The conversion of the values that are not null.
    pub conversion: Option<ValueConversion>,
    /// For [`PageLayout::Bytes`] and lists of varying length, as in [`Column`].
    pub offsets: Option<Offsets>,
    /// For [`PageLayout::Elements`].
    pub elements: Option<Elements>,
    pub validity: Option<Validity>,
    pub dictionary: Option<LabelDictionary>,
    /// Whether reading fails for some values: texts that are not UTF-8, and dates that the type cannot represent.
    pub may_refuse: bool,
    /// Known bounds of the column's own values.
    pub statistics: Option<Arc<dyn ColumnStatistics>>,
    /// As in [`Column`].
    pub sort_rank: Option<usize>,
    pub datatype: Datatype,
}

/// The labels of an enumeration, stored end to end.
pub struct LabelDictionary {
    pub count: i32,
    pub plain: Arc<Vec<u8>>,
}

impl ParquetColumn {
    /// Checks whether a field has a Parquet type; returns the reason if not.
    pub fn check(field: &Field) -> FormatResult<()> {
        StoredType::of(field).map(drop)
    }

    /// Returns the column's type and contents.
    pub fn new(column: &Column) -> FormatResult<Self> {
        let field = &column.field;
        let stored = match &column.elements {
            Some(elements) => StoredType::of_elements(field, elements)?,
            None => StoredType::of(field)?,
        };
        let is_codes = matches!(stored.layout, PageLayout::Indices(_));
        let booleans = boolean_labels(field);
        let labels = field.labels.as_ref().filter(|_| is_codes || booleans.is_some());
        let has_times = matches!(stored.layout, PageLayout::Values(_));
        let validity = MissingAsNull::validity(column, labels.map(|labels| &**labels), has_times);
        let values: Arc<dyn Content> = match &column.offsets {
            Some(offsets) if stored.leaf.logical == Some(Logical::String) && column.elements.is_none() => {
                Arc::new(Utf8Values::new(column.values.clone(), offsets.clone(), validity.clone(), &field.name))
            }
            _ => match booleans {
                Some(labels) => booleans_of(column, labels),
                None => column.values.clone(),
            },
        };
        let is_text = stored.leaf.logical == Some(Logical::String) && column.offsets.is_some();
        let is_converted = stored.conversion.is_some() || field.datatype == Datatype::DateTimeUs;
        let may_refuse = is_text || labels.is_none() && is_converted && field.datatype.time_unit().is_some();
        Ok(ParquetColumn {
            field: ArrowField {
                name: field.name.clone(),
                data_type: stored.arrow,
                is_nullable: validity.is_some(),
                is_ordered: labels.is_some_and(|labels| labels.ordered),
                datatype: Some(field.datatype),
            },
            within: None,
            leaf: stored.leaf,
            layout: stored.layout,
            values,
            size: if booleans.is_some() { 1 } else { field.cell_size().unwrap_or(field.datatype.size() as u64) },
            conversion: stored.conversion,
            offsets: column.offsets.clone(),
            elements: column.elements.clone(),
            validity,
            dictionary: labels.filter(|_| is_codes).map(|labels| dictionary(labels)).transpose()?,
            may_refuse,
            statistics: column.statistics.clone().filter(|_| booleans.is_none()),
            sort_rank: column.sort_rank,
            datatype: if booleans.is_some() { Datatype::Bool } else { field.datatype },
        })
    }

    /// Returns the approximate size of a cell's values in a page, in bytes; `None` if it varies.
    pub fn row_length(&self) -> Option<u64> {
        match self.layout {
            PageLayout::Values(size) | PageLayout::Indices(size) => Some(size),
            PageLayout::Bits => Some(1),
            PageLayout::List { values, size } => values.checked_mul(size),
            PageLayout::VaryingList { .. } if self.offsets.is_none() => Some(self.size),
            PageLayout::VaryingList { .. } | PageLayout::Bytes | PageLayout::Elements { .. } => None,
        }
    }

    /// Returns the offset after the last cell: the number of all bytes, or of all elements.
    pub fn last_offset(&self) -> u64 {
        self.elements.as_ref().map_or(self.values.len(), Elements::count)
    }
}

/// Maximum number of values of a list of fixed length.
const MAX_LISTED: i32 = 1 << 16;

/// The types of a field, and the conversion of its cells to values of these types.
struct StoredType {
    leaf: Leaf,
    layout: PageLayout,
    conversion: Option<ValueConversion>,
    arrow: DataType,
}

impl StoredType {
    fn of(field: &Field) -> FormatResult<Self> {
        if let Some(bytes) = bytes_type(field, "Parquet")? {
            return Ok(StoredType::of_type(bytes));
        }
        let datatype = field.datatype;
        if boolean_labels(field).is_some() {
            return Ok(StoredType::of_type(DataType::Boolean));
        }
        if let Some(labels) = code_labels(field) {
            return Ok(StoredType::of_codes(datatype, labels));
        }
        if field.values_per_cell == Some(1) {
            let stored = StoredType::of_type(single_type(datatype));
            return Ok(StoredType { conversion: stored.conversion.or(time_conversion(datatype)), ..stored });
        }
        let element = StoredType::of_type(element_type(datatype));
        let PageLayout::Values(size) = element.layout else {
            return Err(Unrepresentable::new("Parquet cannot hold such lists"));
        };
        let items = ArrowField::of_items("element", element.arrow);
        let (layout, arrow) = match field.values_per_cell {
            None => (PageLayout::VaryingList { size }, DataType::LargeList(items)),
            Some(values) => {
                let length = i32::try_from(values).ok().filter(|&values| values <= MAX_LISTED);
                let length = length.ok_or_else(|| Unrepresentable::new("lists of more than 65,536 numbers"))?;
                match field.nullable {
                    // Below a null list of fixed size readers make null items, and then floats of integers.
                    true => (PageLayout::VaryingList { size }, DataType::LargeList(items)),
                    false => (PageLayout::List { values: values.into(), size }, DataType::FixedSizeList(items, length)),
                }
            }
        };
        Ok(StoredType { layout, arrow, ..element })
    }

    /// Returns the type of lists of texts, or of numbers that can be null.
    fn of_elements(field: &Field, elements: &Elements) -> FormatResult<Self> {
        let element = match elements.offsets {
            Some(_) => StoredType::of(field)?,
            None => StoredType::of_type(element_type(field.datatype)),
        };
        let size = match element.layout {
            PageLayout::Values(size) => size,
            PageLayout::Bytes => 0,
            _ => return Err(Unrepresentable::new("Parquet cannot hold such lists")),
        };
        let arrow = DataType::LargeList(ArrowField::of_nullable_items("element", element.arrow));
        Ok(StoredType { layout: PageLayout::Elements { size }, arrow, ..element })
    }

    fn of_codes(datatype: Datatype, labels: &Labels) -> Self {
        let wanted = match labels.values.len() {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let conversion: (u64, Option<ValueConversion>) = match (datatype.size(), wanted) {
            (1, _) => (1, None),
            (2, 1) => (1, Some(narrowed::<2, 1>)),
            (2, _) => (2, None),
            (4, 1) => (1, Some(narrowed::<4, 1>)),
            (4, 2) => (2, Some(narrowed::<4, 2>)),
            (4, _) => (4, None),
            (_, 1) => (1, Some(narrowed::<8, 1>)),
            (_, 2) => (2, Some(narrowed::<8, 2>)),
            _ => (4, Some(narrowed::<8, 4>)),
        };
        let (width, conversion) = conversion;
        let (values, arrow) = match label_column(labels).data_type {
            text @ (DataType::LargeUtf8 | DataType::LargeBinary) => {
                (text.clone(), DataType::Dictionary(Box::new(DataType::Int32), Box::new(text)))
            }
            // Readers restore durations from a type of their own, and make no dictionaries of numbers.
            DataType::Timestamp(ArrowTimeUnit::Second) => {
                let milliseconds = DataType::Timestamp(ArrowTimeUnit::Millisecond);
                (milliseconds.clone(), milliseconds)
            }
            other => (other.clone(), other),
        };
        let leaf = Leaf::of(&values);
        StoredType { leaf, layout: PageLayout::Indices(width), conversion, arrow }
    }

    /// Returns the type of cells with one value each of an Arrow type. Parquet has no integers below 32 bits.
    fn of_type(arrow: DataType) -> Self {
        let leaf = Leaf::of(&arrow);
        let conversion: Option<ValueConversion> = match arrow {
            DataType::Int8 => Some(widened::<1, true>),
            DataType::Int16 => Some(widened::<2, true>),
            DataType::UInt8 => Some(widened::<1, false>),
            DataType::UInt16 => Some(widened::<2, false>),
            _ => None,
        };
        StoredType { layout: leaf.layout(), leaf, conversion, arrow }
    }
}

/// Returns the Arrow type of single values that are not bytes of text. Parquet has dates, and no seconds.
fn single_type(datatype: Datatype) -> DataType {
    match (value_type(datatype), datatype.time_unit()) {
        (DataType::Timestamp(_), Some(unit)) if unit <= TimeUnit::Day => DataType::Date32,
        (DataType::Timestamp(ArrowTimeUnit::Second), _) => DataType::Timestamp(ArrowTimeUnit::Millisecond),
        (other, _) => other,
    }
}

/// Returns the conversion of dates and times to the unit of their type.
fn time_conversion(datatype: Datatype) -> Option<ValueConversion> {
    match (datatype.is_datetime(), datatype.time_unit()?) {
        (true, TimeUnit::Year) => Some(|values, column| as_days(values, column, calendar::days_of_years)),
        (true, TimeUnit::Month) => Some(|values, column| as_days(values, column, calendar::days_of_months)),
        (true, TimeUnit::Week) => Some(|values, column| as_days(values, column, |weeks| weeks.checked_mul(7))),
        (true, TimeUnit::Day) => Some(|values, column| as_days(values, column, Some)),
        (true, TimeUnit::Hour) => Some(|values, column| multiplied(values, column, 3_600_000)),
        (true, TimeUnit::Minute) => Some(|values, column| multiplied(values, column, 60_000)),
        (true, TimeUnit::Second) => Some(|values, column| multiplied(values, column, 1000)),
        (false, TimeUnit::Hour) => Some(|values, column| multiplied(values, column, 3600)),
        (false, TimeUnit::Minute) => Some(|values, column| multiplied(values, column, 60)),
        _ => None,
    }
}

/// Widens integers of `SIZE` bytes to four bytes.
fn widened<const SIZE: usize, const IS_SIGNED: bool>(values: Arc<dyn Content>, _: ConvertedColumn) -> Arc<dyn Content> {
    Arc::new(Converted::new(values, SIZE, 4, |from, to| {
        for (from, to) in from.as_chunks::<SIZE>().0.iter().zip(to.as_chunks_mut::<4>().0) {
            let is_negative = IS_SIGNED && from[SIZE - 1] & 0x80 != 0;
            *to = if is_negative { [0xff; 4] } else { [0; 4] };
            to[..SIZE].copy_from_slice(from);
        }
        Ok(())
    }))
}

/// Narrows integers of `FROM` bytes to `TO` bytes, in which they fit.
fn narrowed<const FROM: usize, const TO: usize>(values: Arc<dyn Content>, _: ConvertedColumn) -> Arc<dyn Content> {
    Arc::new(Converted::new(values, FROM, TO, |from, to| {
        for (from, to) in from.as_chunks::<FROM>().0.iter().zip(to.as_chunks_mut::<TO>().0) {
            to.copy_from_slice(&from[..TO]);
        }
        Ok(())
    }))
}

fn multiplied(values: Arc<dyn Content>, column: ConvertedColumn, factor: i64) -> Arc<dyn Content> {
    Arc::new(Converted::integers(values, TOO_FAR, column, move |value| value.checked_mul(factor).map(i64::to_le_bytes)))
}

/// Returns the labels of codes if they are booleans, of which Parquet has no dictionaries.
fn boolean_labels(field: &Field) -> Option<&Labels> {
    code_labels(field).filter(|labels| labels.datatype == Datatype::Bool)
}

/// Returns the labels of the codes of a column, a byte each; 0 for codes without a label.
fn booleans_of(column: &Column, labels: &Labels) -> Arc<dyn Content> {
    let datatype = column.field.datatype;
    let labels: Vec<u8> = labels.values.iter().map(|label| u8::from(label.iter().any(|byte| *byte != 0))).collect();
    let label = move |code: &[u8]| {
        let code = number::integer(datatype, code).and_then(|code| usize::try_from(code).ok());
        code.and_then(|code| labels.get(code)).copied().unwrap_or(0)
    };
    Arc::new(Converted::new(column.values.clone(), datatype.size(), 1, move |from, to| {
        from.chunks_exact(datatype.size()).zip(to).for_each(|(code, to)| *to = label(code));
        Ok(())
    }))
}

/// Returns the labels in the encoding PLAIN.
fn dictionary(labels: &Labels) -> FormatResult<LabelDictionary> {
    let too_long = || Unrepresentable::new(format!("the labels of {} take 2^31 bytes", labels.name));
    let count = i32::try_from(labels.values.len()).map_err(|_| too_long())?;
    let mut plain = Vec::new();
    if labels.datatype.kind() == Kind::Bytes {
        for label in labels.utf8_or_stored() {
            plain.extend(u32::try_from(label.len()).map_err(|_| too_long())?.to_le_bytes());
            plain.extend(label);
        }
    } else {
        if labels.values.iter().any(|label| label.len() != labels.datatype.size()) {
            return Err(Unrepresentable::several_values_of_labels(&labels.name));
        }
        let LabelColumn { data_type, made } = label_column(labels);
        let values = made.map_or_else(|| Arc::new(labels.values.concat()) as _, |made| made.values);
        let named = ConvertedColumn::new(&labels.name);
        let values = match StoredType::of_type(data_type.clone()).conversion {
            Some(convert) => convert(values, named),
            None if data_type == DataType::Timestamp(ArrowTimeUnit::Second) => multiplied(values, named, 1000),
            None => values,
        };
        plain = in_memory(&*values).map_err(|error| Unrepresentable::new(error.to_string()))?;
    }
    if i32::try_from(plain.len()).is_err() {
        return Err(too_long());
    }
    Ok(LabelDictionary { count, plain: Arc::new(plain) })
}
