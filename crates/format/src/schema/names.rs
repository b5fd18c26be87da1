//! Finds attributes and enumerations of a schema by name: there may be many thousand.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Attribute;

/// The numbers of names in the lists of a schema, made when the first name is looked for. It is no part of what the
/// schema says: all are equal. A name that is there twice is the first.
#[derive(Debug, Default)]
pub struct Names {
    attributes: OnceLock<HashMap<String, usize>>,
    enumerations: OnceLock<HashMap<String, usize>>,
}

impl Names {
    /// The number of the attribute of this name.
    pub(super) fn attribute(&self, name: &str, all: &[Attribute]) -> Option<usize> {
        let numbers = self.attributes.get_or_init(|| numbers(all.iter().map(|one| one.name.as_str())));
        numbers.get(name).copied()
    }

    /// The enumeration of this name and its file.
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

/// A copy may be changed, and then has other names.
impl Clone for Names {
    fn clone(&self) -> Self {
        Names::default()
    }
}

impl PartialEq for Names {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
