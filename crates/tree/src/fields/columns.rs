//! The fields of an array as columns for the formats.

use tilefs_base::error::Result;
use tilefs_export::Column;
use tilefs_export::column::{AuxiliaryCoordinates, Columns};
use tilefs_export::content::offsets::Offsets;
use tilefs_export::content::padded::longest;
use tilefs_reader::array::Context;
use tilefs_threads::cancellation;

use crate::cells::{FieldId, column};
use crate::fields::rasters::{self, Rasters};
use crate::fields::whole_units::in_whole_units;
use crate::fields::{FieldFolder, enums};

/// Returns a column of a field.
///
/// # Errors
/// As for [`column()`].
pub fn column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    column(&*fields.subarray, id, fields.describe(id))
}

/// Returns a column of a field, with the labels of its enumeration.
pub fn labelled_column_of(fields: &FieldFolder, id: FieldId) -> Result<Column> {
    let mut field = fields.describe(id);
    if let FieldId::Attribute(number) = id {
        field.labels = enums::labels(fields.subarray.array(), number)?;
    }
    column(&*fields.subarray, id, field)
}

/// Whether a format pads texts, and therefore needs the length of the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    Measured,
    Unmeasured,
}

/// Returns all fields with their coordinates, metadata and georeference, for formats that can hold them all.
pub fn columns_of_all(fields: &FieldFolder, texts: Texts) -> Result<Columns> {
    let fields = &rasters::without_padding(fields)?;
    let rasters = Rasters::of(fields)?;
    // An earlier mount may have saved the length of a field's longest text.
    let field_column = |id: FieldId| -> Result<Column> {
        cancellation::check()?;
        let mut column = column(&*fields.subarray, id, rasters.describe_all(id)?)?;
        if let Some(offsets) = text_offsets(&column).filter(|_| texts == Texts::Measured) {
            column.longest = saved_longest(fields.context(), offsets)?;
        }
        Ok(column)
    };
    let label_column = |column: Column| if texts == Texts::Measured { padded(column) } else { Ok(column) };
    let (mut dimensions, mut auxiliary) = (Vec::new(), Vec::new());
    let sparse = fields.schema().is_sparse();
    // The coordinates of the cells are then those of an axis.
    let has_one_dimension = sparse && fields.dimensions().count() == 1;
    for (axis, id) in fields.dimensions().enumerate() {
        let coordinates = rasters.coordinates(axis)?;
        dimensions.push(match coordinates.main {
            Some(labels) => label_column(in_whole_units(labels)?)?,
            None if has_one_dimension => in_whole_units(field_column(id)?)?,
            None => field_column(id)?,
        });
        for coordinates in coordinates.auxiliary {
            auxiliary.push(AuxiliaryCoordinates { axis, column: label_column(coordinates)? });
        }
    }
    Ok(Columns {
        sparse,
        dimensions,
        auxiliary,
        attributes: fields.attributes().map(field_column).collect::<Result<_>>()?,
        metadata: rasters.told.notes.of_array.clone(),
        georeference: rasters.georeference_of_all()?,
    })
}

/// Returns the column with the length of its longest text.
pub fn padded(mut column: Column) -> Result<Column> {
    if let Some(offsets) = text_offsets(&column) {
        column.longest = longest(offsets)?;
    }
    Ok(column)
}

/// Returns the offsets of a column of texts of variable length.
fn text_offsets(column: &Column) -> Option<&Offsets> {
    let is_text = column.field.datatype.is_string() && column.field.datatype.size() == 1;
    column.offsets.as_ref().filter(|_| is_text)
}

/// Returns the length in bytes of the longest text with some offsets, possibly saved by an earlier mount; `None` if
/// finding it takes too long.
fn saved_longest(context: &Context, offsets: &Offsets) -> Result<Option<u64>> {
    let inputs = context.saved.inputs_of(("longest", offsets.count()), &**offsets);
    let decode = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    if let Some(known) = inputs.and_then(|inputs| context.saved.get(&inputs, decode)) {
        return Ok(Some(known));
    }
    let found = longest(offsets)?;
    if let Some(longest) = found {
        context.saved.note_measured(offsets.count());
        if let Some(inputs) = inputs {
            context.saved.put(&inputs, &longest.to_le_bytes());
        }
    }
    Ok(found)
}
