//! Metadata about a single attribute or dimension:
//!
//! * By TileDB-CF's convention the key is `__tiledb_attr.NAME.KEY` or `__tiledb_dim.NAME.KEY`; the NAME of the second
//!   may also be a label of a dimension. Keys are as given by the user of TileDB-Py.
//! * GDAL's multidimensional driver writes one variable per array: the unit of its values as `_UNIT`, its other
//!   attributes under their own names. Therefore keys that CF defines for variables but not for files belong to the
//!   only attribute of an array.

use std::borrow::Cow;
use std::collections::HashSet;

use tilefs_export::Metadatum;

use crate::cells::FieldId;
use crate::fields::FieldFolder;

const OF_ATTRIBUTES: &str = "__tiledb_attr.";
const OF_DIMENSIONS: &str = "__tiledb_dim.";

/// TileDB-Py's prefix of the key of a value that was a NumPy array.
const NUMPY: &str = "__np_flat_";

/// The key of the unit of all values of an array.
pub const UNIT: &str = "_UNIT";

/// Attributes that CF defines only for variables, and that refer to no other variable.
const OF_VARIABLES: [&str; 10] = [
    "units",
    "long_name",
    "standard_name",
    "cell_methods",
    "valid_min",
    "valid_max",
    "valid_range",
    "flag_values",
    "flag_masks",
    "flag_meanings",
];

/// The metadata of an array, assigned to the fields they describe.
pub struct Notes {
    of_fields: Vec<(FieldId, Metadatum)>,
    /// With the name of the label they describe.
    of_labels: Vec<(String, Metadatum)>,
    /// The metadata of the array as a whole.
    pub of_array: Vec<Metadatum>,
}

impl Notes {
    pub fn of(fields: &FieldFolder, metadata: Vec<Metadatum>) -> Self {
        let mut notes = Notes { of_fields: Vec::new(), of_labels: Vec::new(), of_array: Vec::new() };
        let attributes: Vec<FieldId> = fields.attributes().collect();
        let dimensions: Vec<FieldId> = fields.dimensions().collect();
        let labels: Vec<&str> = fields.schema().labels.iter().map(|label| label.name.as_str()).collect();
        // Metadata that apply to a field without naming it; named ones with the same key take precedence.
        let mut general: Vec<(FieldId, Metadatum)> = Vec::new();
        let is_taken: HashSet<String> = metadata.iter().map(|metadatum| metadatum.key.clone()).collect();
        for mut metadatum in metadata {
            if let Some(key) = metadatum.key.strip_prefix(NUMPY).filter(|key| !is_taken.contains(*key)) {
                metadatum.key = key.to_owned();
            }
            let found = owner(OF_ATTRIBUTES, &metadatum.key, &attributes, |id| fields.user_name(id))
                .or_else(|| owner(OF_DIMENSIONS, &metadatum.key, &dimensions, |id| fields.user_name(id)));
            let of_label =
                owner(OF_DIMENSIONS, &metadatum.key, &labels, |name| name.into()).filter(|_| found.is_none());
            if let Some((label, key)) = of_label {
                notes.of_labels.push((label.to_owned(), Metadatum { key: key.to_owned(), ..metadatum }));
                continue;
            }
            match (found, unit_of(&metadatum)) {
                (Some((id, key)), _) => notes.of_fields.push((id, Metadatum { key: key.to_owned(), ..metadatum })),
                (None, Some(unit)) => general.extend(attributes.iter().map(|&id| (id, unit.clone()))),
                (None, None) => match attributes[..] {
                    // Takes precedence over the unit of the array.
                    [only] if OF_VARIABLES.contains(&&*metadatum.key) => general.insert(0, (only, metadatum)),
                    _ => notes.of_array.push(metadatum),
                },
            }
        }
        for (id, metadatum) in general {
            if notes.of_fields.iter().all(|(owner, own)| *owner != id || own.key != metadatum.key) {
                notes.of_fields.push((id, metadatum));
            }
        }
        notes
    }

    /// Returns the metadata of one field, without the prefix.
    pub fn of_field(&self, id: FieldId) -> Vec<Metadatum> {
        let own = self.of_fields.iter().filter(|(owner, _)| *owner == id);
        own.map(|(_, metadatum)| metadatum.clone()).collect()
    }

    /// Returns the metadata of one label, without the prefix.
    pub fn of_label(&self, name: &str) -> Vec<Metadatum> {
        let own = self.of_labels.iter().filter(|(owner, _)| owner == name);
        own.map(|(_, metadatum)| metadatum.clone()).collect()
    }
}

/// Converts a unit of the array to CF's `units`; `None` for other metadata.
pub fn unit_of(metadatum: &Metadatum) -> Option<Metadatum> {
    let is_text = metadatum.key == UNIT && metadatum.datatype.is_string() && !metadatum.value.is_empty();
    is_text.then(|| Metadatum { key: "units".to_owned(), ..metadatum.clone() })
}

/// Returns the field that a key names and the rest of the key. Names may contain dots: the longest match wins.
fn owner<'a, 'b, T: Copy>(
    prefix: &str,
    key: &'a str,
    ids: &[T],
    name: impl Fn(T) -> Cow<'b, str>,
) -> Option<(T, &'a str)> {
    let rest = key.strip_prefix(prefix)?;
    let fits = |id: &T| {
        let key = rest.strip_prefix(&*name(*id))?.strip_prefix('.')?;
        (!key.is_empty()).then_some((*id, key))
    };
    ids.iter().filter_map(fits).min_by_key(|(_, key)| key.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_owns_a_key() {
        let names = ["a", "a.b", ""];
        let ids: Vec<FieldId> = (0..names.len()).map(FieldId::Attribute).collect();
        let name = |id: FieldId| match id {
            FieldId::Attribute(number) | FieldId::Dimension(number) => names[number].into(),
        };
        let found = |key| owner(OF_ATTRIBUTES, key, &ids, name);
        assert_eq!(found("__tiledb_attr.a.units"), Some((ids[0], "units")));
        assert_eq!(found("__tiledb_attr.a.b.units"), Some((ids[1], "units")));
        assert_eq!(found("__tiledb_attr.a.b"), Some((ids[0], "b")));
        assert_eq!(found("__tiledb_attr..units"), Some((ids[2], "units")));
        assert_eq!(found("__tiledb_attr.c.units"), None);
        assert_eq!(found("__tiledb_attr.a."), None);
        assert_eq!(found("__tiledb_dim.a.units"), None);
    }
}
