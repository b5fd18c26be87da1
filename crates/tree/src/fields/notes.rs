//! Metadata about a single attribute or dimension:
//!
//! * By TileDB-CF's convention the key is `__tiledb_attr.NAME.KEY` or `__tiledb_dim.NAME.KEY`; the NAME of the second
//!   may also be a label of a dimension. Keys are as given by the user of TileDB-Py.
//! * GDAL's multidimensional driver writes one variable per array: the unit of its values as `_UNIT`, its other
//!   attributes under their own names. Therefore keys that CF defines for variables but not for files belong to the
//!   only attribute of an array.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use tilefs_export::Metadatum;
use tilefs_format::schema::ArraySchema;

use crate::cells::FieldId;

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

/// Maximum length of a unit in bytes that applies to all attributes, each of which gets a copy.
const LONGEST_UNIT: usize = 1024;

/// The metadata of an array, assigned to the fields they describe.
pub struct Notes {
    of_fields: HashMap<FieldId, Vec<Metadatum>>,
    /// By the name of the label they describe.
    of_labels: HashMap<String, Vec<Metadatum>>,
    /// The metadata of the array as a whole.
    pub of_array: Vec<Metadatum>,
}

impl Notes {
    pub fn of(schema: &ArraySchema, metadata: Vec<Metadatum>) -> Self {
        let mut notes = Notes { of_fields: HashMap::new(), of_labels: HashMap::new(), of_array: Vec::new() };
        let attributes: Vec<FieldId> = (0..schema.attributes.len()).map(FieldId::Attribute).collect();
        let owner = Owners::of(schema);
        // Metadata that apply to a field without naming it; named ones with the same key take precedence.
        let mut general: Vec<(FieldId, Metadatum)> = Vec::new();
        let is_taken: HashSet<String> = metadata.iter().map(|metadatum| metadatum.key.clone()).collect();
        for mut metadatum in metadata {
            if let Some(key) = metadatum.key.strip_prefix(NUMPY).filter(|key| !is_taken.contains(*key)) {
                metadatum.key = key.to_owned();
            }
            let found = owner.field(&metadatum.key);
            let of_label = owner.label(&metadatum.key).filter(|_| found.is_none());
            if let Some((label, key)) = of_label {
                let all = notes.of_labels.entry(label.to_owned()).or_default();
                all.push(Metadatum { key: key.to_owned(), ..metadatum });
                continue;
            }
            match (found, unit_of(&metadatum).filter(|unit| unit.value.len() <= LONGEST_UNIT)) {
                (Some((id, key)), _) => {
                    notes.of_fields.entry(id).or_default().push(Metadatum { key: key.to_owned(), ..metadatum });
                }
                (None, Some(unit)) => general.extend(attributes.iter().map(|&id| (id, unit.clone()))),
                (None, None) => match attributes[..] {
                    // Takes precedence over the unit of the array.
                    [only] if OF_VARIABLES.contains(&&*metadatum.key) => general.insert(0, (only, metadatum)),
                    _ => notes.of_array.push(metadatum),
                },
            }
        }
        for (id, metadatum) in general {
            let own = notes.of_fields.entry(id).or_default();
            // At most as many are general as there are keys in OF_VARIABLES.
            if own.iter().all(|own| own.key != metadatum.key) {
                own.push(metadatum);
            }
        }
        notes
    }

    /// Returns the metadata of one field, without the prefix.
    pub fn of_field(&self, id: FieldId) -> Vec<Metadatum> {
        self.of_fields.get(&id).cloned().unwrap_or_default()
    }

    /// Returns the metadata of one label, without the prefix.
    pub fn of_label(&self, name: &str) -> Vec<Metadatum> {
        self.of_labels.get(name).cloned().unwrap_or_default()
    }
}

/// Converts a unit of the array to CF's `units`; `None` for other metadata.
pub fn unit_of(metadatum: &Metadatum) -> Option<Metadatum> {
    let is_text = metadatum.key == UNIT && metadatum.datatype.is_string() && !metadatum.value.is_empty();
    is_text.then(|| Metadatum { key: "units".to_owned(), ..metadatum.clone() })
}

/// The names of an array's fields and labels, by which keys begin.
struct Owners<'a> {
    attributes: NameTree<'a, FieldId>,
    dimensions: NameTree<'a, FieldId>,
    labels: NameTree<'a, &'a str>,
}

impl<'a> Owners<'a> {
    fn of(schema: &'a ArraySchema) -> Self {
        let attributes = schema.attributes.iter().map(|attribute| attribute.name.as_str().into());
        let labels = schema.labels.iter().map(|label| (label.name.as_str().into(), label.name.as_str()));
        Owners {
            attributes: attributes.zip((0..).map(FieldId::Attribute)).collect(),
            dimensions: schema.dimension_names().zip((0..).map(FieldId::Dimension)).collect(),
            labels: labels.collect(),
        }
    }

    /// Returns the field that a key names, and the rest of the key.
    fn field<'k>(&self, key: &'k str) -> Option<(FieldId, &'k str)> {
        let attribute = key.strip_prefix(OF_ATTRIBUTES).and_then(|rest| self.attributes.longest(rest));
        attribute.or_else(|| self.dimensions.longest(key.strip_prefix(OF_DIMENSIONS)?))
    }

    /// Returns the label that a key names, and the rest of the key.
    fn label<'k>(&self, key: &'k str) -> Option<(&'a str, &'k str)> {
        self.labels.longest(key.strip_prefix(OF_DIMENSIONS)?)
    }
}

/// Names, which may contain dots, as a tree of their parts between dots: a key is compared with all names at once.
struct NameTree<'a, T> {
    /// The node of a part below another node; the root is 0.
    below: HashMap<(usize, Cow<'a, str>), usize>,
    /// The first owner whose name ends at a node.
    owners: Vec<Option<T>>,
}

impl<'a, T: Copy> FromIterator<(Cow<'a, str>, T)> for NameTree<'a, T> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, T)>>(names: I) -> Self {
        let mut tree = NameTree { below: HashMap::new(), owners: vec![None] };
        for (name, owner) in names {
            let mut node = 0;
            for part in name.split('.') {
                let next = tree.owners.len();
                node = *tree.below.entry((node, part.to_owned().into())).or_insert(next);
                if node == next {
                    tree.owners.push(None);
                }
            }
            if let Some(first) = tree.owners.get_mut(node) {
                first.get_or_insert(owner);
            }
        }
        tree
    }
}

impl<T: Copy> NameTree<'_, T> {
    /// Returns the owner of the longest name that is followed by a dot and the rest of a key, and that rest.
    fn longest<'k>(&self, key: &'k str) -> Option<(T, &'k str)> {
        let (mut node, mut rest, mut longest) = (0, key, None);
        while let Some((part, after)) = rest.split_once('.') {
            let Some(&next) = self.below.get(&(node, Cow::Borrowed(part))) else { break };
            if let Some(Some(owner)) = self.owners.get(next).filter(|_| !after.is_empty()) {
                longest = Some((*owner, after));
            }
            (node, rest) = (next, after);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the owner as a search through all names finds it.
    fn searched<'k>(names: &[String], key: &'k str) -> Option<(usize, &'k str)> {
        let fits = |(number, name): (usize, &String)| {
            let rest = key.strip_prefix(name.as_str())?.strip_prefix('.')?;
            (!rest.is_empty()).then_some((number, rest))
        };
        names.iter().enumerate().filter_map(fits).min_by_key(|(_, rest)| rest.len())
    }

    proptest! {
        #[test]
        fn the_longest_name_that_fits_owns_a_key(names in prop::collection::vec("[a.]{0,4}", 0..6), key in "[a.]{0,9}") {
            let tree: NameTree<'_, usize> = names.iter().enumerate().map(|(number, name)| (name.into(), number)).collect();
            prop_assert_eq!(tree.longest(&key), searched(&names, &key));
        }
    }

    #[test]
    fn names_may_be_empty_or_contain_dots() {
        let names = ["a", "a.b", ""];
        let tree: NameTree<'_, usize> = (0..).zip(names).map(|(number, name)| (name.into(), number)).collect();
        assert_eq!(tree.longest("a.units"), Some((0, "units")));
        assert_eq!(tree.longest("a.b.units"), Some((1, "units")));
        assert_eq!(tree.longest("a.b"), Some((0, "b")));
        assert_eq!(tree.longest(".units"), Some((2, "units")));
        assert_eq!(tree.longest("c.units"), None);
        assert_eq!(tree.longest("a."), None);
    }
}
