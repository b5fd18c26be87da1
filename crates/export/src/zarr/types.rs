//! The representation of a field's cells: Zarr's data type, and the bytes of a chunk.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text::{self, is_utf8};

use super::numbers::number;
use super::strings::Interleaved;
use crate::cf;
use crate::column::boxes::Framed;
use crate::column::{Column, Field, FormatResult, Unrepresentable};
use crate::content::blanked::Blanked;
use crate::content::element::{Converted, ConvertedColumn};
use crate::content::offsets::Offsets;
use crate::content::refusal::TOO_FAR;
use crate::content::utf8::Utf8Values;

/// The type of an array's elements, and the conversion of cells to them.
#[derive(Debug, Clone)]
pub struct ZarrType {
    pub data_type: Value,
    pub codecs: Value,
    pub fill_value: Value,
    /// Number of elements per cell, which then need an axis of their own; `None` for one.
    pub values: Option<u64>,
    pub(super) datatype: Datatype,
    layout: CellEncoding,
    /// Whether readers decode the bytes of a cell of variable length as UTF-8.
    is_text: bool,
}

/// The elements of an array in one piece.
pub struct WholeElements {
    /// Little-endian; elements of variable length are concatenated.
    pub values: Arc<dyn Content>,
    /// The offsets of elements of variable length, as in a [`Column`].
    pub offsets: Option<Offsets>,
}

/// The encoding of the cells of a chunk.
#[derive(Debug, Clone)]
enum CellEncoding {
    /// Cells of fixed size; `fill` is the padding cell.
    Fixed { fill: Vec<u8> },
    /// Each cell preceded by its length.
    Variable,
}

impl ZarrType {
    /// Returns the type of a field's array; returns the reason if there is none.
    pub fn of(field: &Field) -> FormatResult<Self> {
        let (datatype, size) = (field.datatype, field.datatype.size() as u64);
        let is_bytes = datatype.kind() == Kind::Bytes && size == 1;
        let is_text = is_utf8(datatype);
        let Some(cell_size) = field.cell_size() else {
            let (data_type, codec) = match is_bytes {
                true if is_text => ("string", "vlen-utf8"),
                true => ("variable_length_bytes", "vlen-bytes"),
                false => {
                    return Err(Unrepresentable::varying_cells());
                }
            };
            return Ok(ZarrType {
                data_type: data_type.into(),
                codecs: json!([{"name": codec}]),
                fill_value: "".into(),
                values: None,
                datatype,
                layout: CellEncoding::Variable,
                is_text,
            });
        };
        let is_characters = is_bytes && text::is_text(datatype);
        let fill = match field.fill.len() as u64 == cell_size {
            true => in_days(datatype, &field.fill).unwrap_or_else(|| vec![0; field.fill.len()]),
            false => vec![0; usize::try_from(cell_size).unwrap_or(0)],
        };
        let one = field.fill_of_one_value().and_then(|value| in_days(datatype, value));
        let one = one.unwrap_or_else(|| vec![0; datatype.size()]);
        let (data_type, fill_value) = match (datatype.kind(), size) {
            _ if is_characters => {
                let text = json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": cell_size}});
                (text, STANDARD.encode(&fill).into())
            }
            _ if datatype == Datatype::Bool => ("bool".into(), one.iter().any(|&byte| byte != 0).into()),
            (Kind::Signed, _) => (format!("int{}", 8 * size).into(), number(datatype, &one)),
            (Kind::Float, _) => (format!("float{}", 8 * size).into(), number(datatype, &one)),
            (Kind::Unsigned | Kind::Bytes, _) => (format!("uint{}", 8 * size).into(), number(datatype, &one)),
        };
        Ok(ZarrType {
            data_type,
            codecs: json!([{"name": "bytes", "configuration": {"endian": "little"}}]),
            fill_value,
            values: field.values_per_cell.filter(|&values| values != 1 && !is_characters).map(u64::from),
            datatype,
            layout: CellEncoding::Fixed { fill },
            is_text: false,
        })
    }

    /// Like [`ZarrType::of`], but dates in the units that pandas supports are dates instead of counts.
    pub fn with_dates(field: &Field) -> FormatResult<Self> {
        use Datatype::{DateTimeMs, DateTimeNs, DateTimeSec, DateTimeUs};
        let mut kind = Self::of(field)?;
        if let (DateTimeSec | DateTimeMs | DateTimeUs | DateTimeNs, Some(unit)) =
            (field.datatype, field.datatype.time_unit())
        {
            let configuration = json!({"unit": unit.symbol(), "scale_factor": 1});
            kind.data_type = json!({"name": "numpy.datetime64", "configuration": configuration});
        }
        Ok(kind)
    }

    /// Returns the size of a cell in bytes; `None` if it varies.
    pub fn cell_size(&self) -> Option<u64> {
        match &self.layout {
            CellEncoding::Fixed { fill } => Some(fill.len() as u64),
            CellEncoding::Variable => None,
        }
    }

    /// Returns the type of an array that marks valid or null cells.
    pub fn booleans() -> Self {
        ZarrType {
            data_type: "bool".into(),
            codecs: json!([{"name": "bytes"}]),
            fill_value: false.into(),
            values: None,
            datatype: Datatype::Bool,
            layout: CellEncoding::Fixed { fill: vec![0] },
            is_text: false,
        }
    }

    /// Returns the elements of the cells of a column. Errors name the row of an element if the first element is that of
    /// `first_row`.
    pub fn elements(&self, column: Column, first_row: Option<u64>) -> WholeElements {
        let values: Arc<dyn Content> = match &column.offsets {
            Some(offsets) if self.is_text => {
                let values = Blanked::of(column.values, offsets, column.validity.as_ref());
                Arc::new(Utf8Values::new(values, offsets.clone(), None, &column.field.name))
            }
            Some(_) => column.values,
            None => self.encoded(column.values, ConvertedColumn::new(&column.field.name).from_row(first_row)),
        };
        WholeElements { values, offsets: column.offsets }
    }

    /// Returns the chunk with these lengths that holds the cells of a column; see [`ZarrType::elements`].
    ///
    /// # Errors
    /// Fails if offsets cannot be read.
    pub fn chunk(&self, column: Column, chunk: &[u64], first_row: Option<u64>) -> Result<Arc<dyn Content>> {
        let shape = column.shape.clone();
        let WholeElements { values, offsets } = self.elements(column, first_row);
        match (&self.layout, offsets) {
            (CellEncoding::Fixed { fill }, _) => Ok(Framed::within(values, &shape, chunk, fill.clone())),
            (CellEncoding::Variable, Some(offsets)) => Ok(Arc::new(Interleaved::new(values, offsets, &shape, chunk)?)),
            (CellEncoding::Variable, None) => {
                Err(tilefs_base::error::Error::internal("cells of variable length without offsets"))
            }
        }
    }

    /// Returns one value in the array's type; `None` if it does not fit.
    pub fn value(&self, value: &[u8]) -> Option<Value> {
        let value = in_days(self.datatype, value)?;
        (value.len() == self.datatype.size()).then(|| number(self.datatype, &value))
    }

    /// Returns a value in the form of xarray's attribute `_FillValue`: floats as the bytes of a double in base 64.
    pub fn fill_value_attribute(&self, value: &[u8]) -> Option<Value> {
        let double = match self.datatype {
            Datatype::Float32 => f64::from(f32::from_le_bytes(value.try_into().ok()?)),
            Datatype::Float64 => f64::from_le_bytes(value.try_into().ok()?),
            _ => return self.value(value),
        };
        Some(STANDARD.encode(double.to_le_bytes()).into())
    }

    fn encoded(&self, values: Arc<dyn Content>, column: ConvertedColumn) -> Arc<dyn Content> {
        match cf::counted_days(self.datatype) {
            Some(days) => {
                let each = move |value| days(value).map(i64::to_le_bytes);
                Arc::new(Converted::integers(values, TOO_FAR, column, each))
            }
            None => values,
        }
    }
}

/// Converts a date that CF counts in days; `None` if the day does not fit.
fn in_days(datatype: Datatype, value: &[u8]) -> Option<Vec<u8>> {
    let Some(days) = cf::counted_days(datatype) else { return Some(value.to_vec()) };
    let counts = value.as_chunks().0.iter().map(|count| i64::from_le_bytes(*count));
    Some(counts.map(days).collect::<Option<Vec<i64>>>()?.into_iter().flat_map(i64::to_le_bytes).collect())
}
