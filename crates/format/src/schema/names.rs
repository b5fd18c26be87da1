//! Look-up of attributes and enumerations by name. A schema may have many thousands.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::attribute::Attribute;

/// Indexes of names in the lists of a schema, built on the first look-up. Of equal names, the first counts.
#[derive(Debug, Default)]
pub struct Names {
    attributes: OnceLock<HashMap<String, usize>>,
    enumerations: OnceLock<HashMap<String, usize>>,
}

impl Names {
    /// Returns the index of the attribute of this name in `all`.
    pub(super) fn attribute(&self, name: &str, all: &[Attribute]) -> Option<usize> {
        let numbers = self.attributes.get_or_init(|| numbers(all.iter().map(|one| one.name.as_str())));
        numbers.get(name).copied()
    }

    /// Returns the enumeration of this name and its file.
    pub(super) fn enumeration<'a>(&self, name: &str, all: &'a [(String, String)]) -> Option<&'a (String, String)> {
        let numbers = self.enumerations.get_or_init(|| numbers(all.iter().map(|(name, _)| name.as_str())));
        all.get(*numbers.get(name)?)
    }
}

fn numbers<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<String, usize> {
    let mut numbers = HashMap::new();
    for (number, name) in names.enumerate() {
        numbers.entry(name.to_owned()).or_insert(number);
    }
    numbers
}

/// A clone starts empty, because the names in the cloned schema may be changed.
impl Clone for Names {
    fn clone(&self) -> Self {
        Names::default()
    }
}

/// All are equal: the index is derived data, and must not make schemas differ.
impl PartialEq for Names {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
