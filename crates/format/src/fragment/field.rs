//! The fields of a fragment and the names of their files.

use std::fmt::Write as _;

use tilefs_base::error::{Error, Locate, Result};

use crate::schema::ArraySchema;

/// A field that a fragment has files of. Numbers are indexes in the schema that the fragment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FragmentField {
    /// An attribute, by its number in the fragment's schema.
    Attribute(usize),
    /// Coordinates along one dimension, in sparse fragments from version 5.
    Dimension(usize),
    /// All coordinates in one file, in sparse fragments before version 5.
    Coordinates,
    /// The time when each cell was written: `u64` milliseconds.
    Timestamps,
    /// The time when each cell was deleted: `u64` milliseconds; `u64::MAX` for a cell that was not deleted.
    DeleteTimestamps,
    /// The index of the processed condition that deleted each cell: `u64`; `u64::MAX` for none.
    DeleteConditionIndex,
}

/// The file names of one field. The schema and the recorded sizes tell which files exist; a file whose recorded size is
/// 0 may be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFiles {
    stem: String,
}

impl FieldFiles {
    /// Returns the file names of a field in a fragment of this format version and schema.
    ///
    /// # Errors
    /// [`Error::Damaged`] if fragments of the version have no such field; [`Error::Unsupported`] for a name that would
    /// lead out of the fragment's folder, in the versions that use names unescaped.
    pub fn of(field: FragmentField, version: u32, schema: &ArraySchema) -> Result<Self> {
        let name = match field {
            FragmentField::Attribute(number) => schema.attributes.get(number).map(|attribute| attribute.name.as_str()),
            FragmentField::Dimension(number) if version >= 5 => {
                schema.dimensions.get(number).map(|dimension| dimension.name.as_str())
            }
            FragmentField::Dimension(_) => None,
            FragmentField::Coordinates => (version < 5).then_some("__coords"),
            FragmentField::Timestamps => (version >= 14).then_some("t"),
            FragmentField::DeleteTimestamps => (version >= 15).then_some("dt"),
            FragmentField::DeleteConditionIndex => (version >= 15).then_some("dci"),
        };
        let Some(name) = name else {
            return Err(Error::damaged(format!("no {field:?} in a fragment of version {version}")));
        };
        let stem = match (field, version) {
            (FragmentField::Attribute(number), 9..) => format!("a{number}"),
            (FragmentField::Dimension(number), 9..) => format!("d{number}"),
            (_, 8) => escape(name),
            _ => name.to_owned(),
        };
        if stem.contains(['/', '\0']) {
            return Err(Error::unsupported(format!("{stem:?} as part of a file name")).in_field(name));
        }
        Ok(FieldFiles { stem })
    }

    /// Returns the file of the values of a fixed-size field, or of the offsets of a variable-size one.
    pub fn data(&self) -> String {
        format!("{}.tdb", self.stem)
    }

    /// Returns the file of the values of a variable-size field.
    pub fn var(&self) -> String {
        format!("{}_var.tdb", self.stem)
    }

    /// Returns the file of the validity of a nullable field.
    pub fn validity(&self) -> String {
        format!("{}_validity.tdb", self.stem)
    }
}

/// Escapes a name as version 8 does. This is percent encoding, except for the last four characters: their codes belong
/// to other characters, but the files do have those names.
fn escape(name: &str) -> String {
    let mut escaped = String::new();
    for character in name.chars() {
        let code = match character {
            '!' | '#' | '$' | '%' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | '/' | ':' | ';' | '=' | '?' | '@'
            | '[' | ']' | '"' => u32::from(character),
            '<' => 0x20,
            '>' => 0x2d,
            '\\' => 0x30,
            '|' => 0x3c,
            _ => {
                escaped.push(character);
                continue;
            }
        };
        // Writing to a string cannot fail.
        let _ = write!(escaped, "%{code:02X}");
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::fixture;

    #[test]
    fn names_by_version() {
        let mut schema = fixture::sparse();
        schema.attributes[0].name = "v<x>|y".to_owned();
        schema.dimensions[0].name = "a/b\\".to_owned();
        let files = |field, version| FieldFiles::of(field, version, &schema).map(|files| files.data());
        assert_eq!(files(FragmentField::Attribute(0), 4).unwrap(), "v<x>|y.tdb");
        assert_eq!(files(FragmentField::Attribute(0), 7).unwrap(), "v<x>|y.tdb");
        assert_eq!(files(FragmentField::Attribute(0), 8).unwrap(), "v%20x%2D%3Cy.tdb");
        assert_eq!(files(FragmentField::Attribute(0), 9).unwrap(), "a0.tdb");
        assert_eq!(files(FragmentField::Coordinates, 4).unwrap(), "__coords.tdb");
        assert!(files(FragmentField::Coordinates, 5).is_err());
        assert!(files(FragmentField::Dimension(0), 4).is_err());
        assert!(matches!(files(FragmentField::Dimension(0), 7), Err(Error::Unsupported { .. })));
        assert_eq!(files(FragmentField::Dimension(0), 8).unwrap(), "a%2Fb%30.tdb");
        assert_eq!(files(FragmentField::Dimension(0), 22).unwrap(), "d0.tdb");
        assert!(files(FragmentField::Dimension(9), 22).is_err());
        assert_eq!(files(FragmentField::Timestamps, 14).unwrap(), "t.tdb");
        assert_eq!(files(FragmentField::DeleteTimestamps, 15).unwrap(), "dt.tdb");
        assert_eq!(files(FragmentField::DeleteConditionIndex, 15).unwrap(), "dci.tdb");
    }

    #[test]
    fn anonymous_fields_and_companions() {
        let mut schema = fixture::sparse();
        schema.attributes[0].name = String::new();
        let files = FieldFiles::of(FragmentField::Attribute(0), 5, &schema).unwrap();
        assert_eq!(
            (files.data(), files.var(), files.validity()),
            (".tdb".into(), "_var.tdb".into(), "_validity.tdb".into())
        );
    }

    #[test]
    fn common_percent_codes() {
        assert_eq!(
            escape("a b-c.d!#$%&'()*+,/:;=?@[]\""),
            "a b-c.d%21%23%24%25%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D%22"
        );
    }
}
