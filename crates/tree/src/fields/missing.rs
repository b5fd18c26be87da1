//! Determines the value of an attribute that marks missing data.
//!
//! TileDB has a fill value for every attribute, which unwritten cells hold. The default for a type is a value like any
//! other: 255 is white, and the least integer an identifier. It therefore marks missing data only if unwritten cells
//! are shown, and no written cell has that value. A value that a writer chose always marks missing data.

use tilefs_base::error::Result;
use tilefs_export::number;
use tilefs_export::{Field, Metadatum};
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;

use crate::cells::FieldId;
use crate::fields::FieldFolder;

/// Sets the marker of missing values in the description of an attribute, and adds a note if there cannot be one.
///
/// # Errors
/// Fails if required metadata cannot be read.
pub fn describe(fields: &FieldFolder, id: FieldId, field: &mut Field) -> Result<()> {
    let FieldId::Attribute(attribute) = id else { return Ok(()) };
    // For bytes and booleans, 0 is an ordinary value.
    if field.is_bytes() || field.values_per_cell.is_none() || field.datatype == Datatype::Bool && !field.nullable {
        return Ok(());
    }
    if field.no_data.is_none() {
        field.no_data = no_data(fields, attribute, field)?;
    }
    if field.nullable && field.no_data.is_none() {
        field.null = null(fields, attribute, field)?;
    }
    Ok(())
}

/// Returns the fill value, if it marks missing data.
fn no_data(fields: &FieldFolder, attribute: usize, field: &mut Field) -> Result<Option<Vec<u8>>> {
    let Some(fill) = field.fill_of_one_value().map(<[u8]>::to_vec) else { return Ok(None) };
    if fields.subarray.are_rows() || field.datatype == Datatype::Bool {
        return Ok(None);
    }
    if !is_default(field.datatype, &fill) {
        return Ok(Some(fill));
    }
    if fields.subarray.all_written(attribute)? != Some(false) || field.nullable {
        // Nulls have their own marker, which unwritten cells have too.
        return Ok(None);
    }
    let is_free = match number::integer(field.datatype, &fill) {
        // Not an integer: no other value equals it.
        None => true,
        Some(value) => match fields.subarray.array().integer_extremes(attribute)? {
            Some((least, greatest)) => !(least..=greatest).contains(&value),
            // Without statistics, a type with few values probably uses this one, and a type with many probably does
            // not.
            None => field.datatype.size() > 2,
        },
    };
    if !is_free {
        let fill = number::text(field.datatype, &fill).unwrap_or_default();
        let remark = format!("cells that were never written hold {fill}, and so may others");
        field.notes.push(Metadatum::text("comment", remark));
    }
    Ok(is_free.then_some(fill))
}

/// Returns a value that no valid cell has.
fn null(fields: &FieldFolder, attribute: usize, field: &Field) -> Result<Option<Vec<u8>>> {
    let datatype = field.datatype;
    let default = datatype.default_fill().to_vec();
    if datatype.kind() == Kind::Float || datatype.time_unit().is_some() {
        // Not-a-number, and "not a time".
        return Ok(Some(default));
    }
    if datatype == Datatype::Bool {
        return Ok(Some(vec![0xff]));
    }
    let Some((least, greatest)) = fields.subarray.array().integer_extremes(attribute)? else { return Ok(None) };
    // An unwritten cell may be valid, and its fill value is then in use.
    let stored = &fields.schema().attributes[attribute];
    let is_fill = |value: &[u8]| stored.fill_validity != 0 && stored.fill == value;
    let size = datatype.size();
    let other_end = default.iter().map(|byte| !byte).collect();
    // 0 and -1.
    let candidates = [default, other_end, vec![0; size], vec![0xff; size]];
    Ok(candidates.into_iter().find(|candidate| {
        let value = number::integer(datatype, candidate);
        value.is_some_and(|value| !(least..=greatest).contains(&value)) && !is_fill(candidate)
    }))
}

/// Returns whether a fill value is TileDB's default for the type. Every not-a-number counts as the default.
fn is_default(datatype: Datatype, fill: &[u8]) -> bool {
    fill == datatype.default_fill()
        || datatype.kind() == Kind::Float && number::text(datatype, fill).as_deref() == Some("nan")
}

/// Converts a number in the metadata to a value of the type; `None` if it is not one.
pub fn number_of(datatype: Datatype, metadatum: &Metadatum) -> Option<Vec<u8>> {
    if metadatum.datatype == datatype {
        return (metadatum.value.len() == datatype.size()).then(|| metadatum.value.clone());
    }
    let printed = match text::decode(metadatum.datatype, &metadatum.value) {
        Some(text) => text.into_owned(),
        None => number::text(metadatum.datatype, &metadatum.value)?,
    };
    parsed(datatype, &printed)
}

/// Parses a printed number as a value of the type; `None` if the type cannot represent it.
pub fn parsed(datatype: Datatype, printed: &str) -> Option<Vec<u8>> {
    let printed = printed.trim();
    match datatype.kind() {
        Kind::Float if datatype.size() == 4 => Some(printed.parse::<f32>().ok()?.to_le_bytes().to_vec()),
        Kind::Float => Some(printed.parse::<f64>().ok()?.to_le_bytes().to_vec()),
        Kind::Signed | Kind::Unsigned => {
            let integer = printed.parse::<i128>().ok().or_else(|| {
                let float = printed.parse::<f64>().ok()?;
                (float.fract() == 0.0 && float.abs() <= 2f64.powi(64)).then_some(float as i128)
            })?;
            let bytes = integer.to_le_bytes().get(..datatype.size())?.to_vec();
            (number::integer(datatype, &bytes) == Some(integer)).then_some(bytes)
        }
        Kind::Bytes => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_numbers_become_values_of_the_type() {
        assert_eq!(parsed(Datatype::UInt8, "2.55000000000000E+02"), Some(vec![255]));
        assert_eq!(parsed(Datatype::UInt8, "256"), None);
        assert_eq!(parsed(Datatype::UInt8, "-1"), None);
        assert_eq!(parsed(Datatype::Int16, "-32768"), Some(vec![0, 0x80]));
        assert_eq!(parsed(Datatype::Int16, "0.5"), None);
        assert_eq!(parsed(Datatype::UInt64, "18446744073709551615"), Some(vec![0xff; 8]));
        assert_eq!(parsed(Datatype::Int32, "nan"), None);
        assert_eq!(parsed(Datatype::Float32, "-3.4028234663852886e+38"), Some(f32::MIN.to_le_bytes().to_vec()));
        assert!(is_default(Datatype::Float64, &parsed(Datatype::Float64, "nan").unwrap()));
        assert_eq!(parsed(Datatype::StringUtf8, "1"), None);
    }

    #[test]
    fn metadata_of_any_type_may_give_a_number() {
        let datum = |datatype, value: &[u8]| Metadatum { key: "k".into(), datatype, value: value.to_vec() };
        assert_eq!(
            number_of(Datatype::Int16, &datum(Datatype::Float64, &(-999f64).to_le_bytes())),
            Some(vec![0x19, 0xfc])
        );
        assert_eq!(number_of(Datatype::Int16, &datum(Datatype::StringUtf8, b"7")), Some(vec![7, 0]));
        assert_eq!(number_of(Datatype::Int16, &datum(Datatype::Int16, &[1, 2])), Some(vec![1, 2]));
        assert_eq!(number_of(Datatype::Int16, &datum(Datatype::Int16, &[1, 2, 3, 4])), None);
        assert_eq!(number_of(Datatype::Int16, &datum(Datatype::Float64, &[])), None);
    }
}
