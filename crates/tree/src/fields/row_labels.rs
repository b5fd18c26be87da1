//! The labels of the rows of a sparse array: for each row, the value of a dimension label at the row's coordinate.

use std::sync::Arc;

use tilefs_base::error::{Error, Locate, Result};
use tilefs_export::content::element::Converted;
use tilefs_export::{Column, Field, Labels, number};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_select::bounds::integer_ends;

use crate::cells::FieldId;
use crate::cells::label_search::{LabelValues, label_values};
use crate::fields::FieldFolder;
use crate::fields::columns::column_of;

/// Returns a column for each label of a sparse array whose values are single numbers, dates or texts. Rows at
/// coordinates without a label are null. Texts are labels of codes, as those of an enumeration.
///
/// Memory: that of [`LabelValues`] for each label. Labels with more values are left out.
///
/// # Errors
/// Fails if the array of a label cannot be read.
pub fn row_labels(fields: &FieldFolder) -> Result<Vec<Column>> {
    let array = fields.subarray.array();
    let schema = array.schema();
    if !schema.is_sparse() {
        return Ok(Vec::new());
    }
    let mut columns = Vec::new();
    for label in &schema.labels {
        let number = label.dimension as usize;
        let lowest = schema.dimensions.get(number).and_then(|dimension| dimension.domain.as_ref());
        let Some((lowest, _)) = lowest.and_then(integer_ends) else { continue };
        let values = match label_values(array, label) {
            Ok(Some(values)) => values,
            // `labels/` reports the reason.
            Ok(None) | Err(Error::Unsupported { .. }) => continue,
            Err(error) => return Err(error).in_field(&label.name).in_array(array.path()),
        };
        let coordinates = column_of(fields, FieldId::Dimension(number))?;
        columns.push(labelled(&coordinates, &label.name, label.datatype, lowest, values));
    }
    Ok(columns)
}

/// Returns the values at coordinates. `lowest` is the coordinate of position 0.
fn labelled(coordinates: &Column, name: &str, datatype: Datatype, lowest: i128, values: LabelValues) -> Column {
    let (of, shape) = (coordinates.field.datatype, coordinates.shape.clone());
    let first = lowest.saturating_add(values.first.into());
    let converted =
        |size: usize, what: &'static str, labelled: &Arc<LabelledCoordinates>, convert: ConvertCoordinate| {
            let values = coordinates.values.clone();
            Arc::new(Converted::by_rule(values, (of.size(), size), what, labelled, convert))
        };
    let mut labelled = LabelledCoordinates { of, first, count: values.values.len(), size: 8, table: Vec::new() };
    if datatype.kind() == Kind::Bytes {
        let codes = converted(8, "codes", &Arc::new(labelled), |labelled, coordinate, code| {
            let number = labelled.number(coordinate).and_then(|number| i64::try_from(number).ok());
            code.copy_from_slice(&number.unwrap_or(-1).to_le_bytes());
        });
        let labels = Labels { name: name.to_owned(), datatype, ordered: false, values: values.values };
        return Column::fixed(Field::new(name, Datatype::Int64).with_labels(Arc::new(labels)), shape, codes);
    }
    (labelled.size, labelled.table) = (datatype.size(), values.values.concat());
    let labelled = Arc::new(labelled);
    let valid = converted(1, "validity", &labelled, |labelled, coordinate, valid| {
        valid.fill(u8::from(labelled.number(coordinate).is_some()));
    });
    let values = converted(labelled.size, "values", &labelled, |labelled, coordinate, value| {
        match labelled.number(coordinate).and_then(|number| labelled.table.chunks_exact(labelled.size).nth(number)) {
            Some(found) => value.copy_from_slice(found),
            None => value.fill(0),
        }
    });
    Column::fixed(Field::new(name, datatype), shape, values).with_validity(valid)
}

/// The coordinates that have labels, and the values of these.
#[derive(Hash)]
struct LabelledCoordinates {
    /// The type of coordinates.
    of: Datatype,
    /// The coordinate of the first label, and the number of labels.
    first: i128,
    count: usize,
    /// The size of a value in bytes, and all values; none if these are not numbers.
    size: usize,
    table: Vec<u8>,
}

/// Makes a value of a coordinate.
type ConvertCoordinate = fn(&LabelledCoordinates, &[u8], &mut [u8]);

impl LabelledCoordinates {
    /// Returns the number of the label at a coordinate.
    fn number(&self, coordinate: &[u8]) -> Option<usize> {
        let number = number::integer(self.of, coordinate)?.checked_sub(self.first)?;
        usize::try_from(number).ok().filter(|number| *number < self.count)
    }
}
