//! Names that netCDF allows, each used once.

use std::collections::HashSet;

/// The longest name in bytes.
const LONGEST: usize = 256;

/// Gives out names of one kind (variables, dimensions, attributes), none twice.
#[derive(Default)]
pub struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A legal name as close to `wanted` as possible. netCDF allows UTF-8 without control characters and
    /// slashes, with a letter, digit or underscore first and no space last; the others become underscores.
    /// A name that was given out already gets a number.
    pub fn give(&mut self, wanted: &str) -> String {
        let mut name: String = wanted.chars().map(|c| if c.is_control() || c == '/' { '_' } else { c }).collect();
        let first = name.chars().next();
        if !first.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()) {
            name.insert(0, '_');
        }
        truncate(&mut name, LONGEST);
        if name.ends_with(' ') {
            name.pop();
            name.push('_');
        }
        let mut number = 1u64;
        let mut unique = name.clone();
        while !self.taken.insert(unique.clone()) {
            number += 1;
            let suffix = format!("_{number}");
            unique.clone_from(&name);
            truncate(&mut unique, LONGEST - suffix.len());
            unique += &suffix;
        }
        unique
    }
}

fn truncate(name: &mut String, mut length: usize) {
    while !name.is_char_boundary(length.min(name.len())) {
        length -= 1;
    }
    name.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn good_names_stay_and_others_change_little() {
        let mut names = Names::default();
        for (wanted, given) in [
            ("temp", "temp"),
            ("temp", "temp_2"),
            ("temp_2", "temp_2_2"),
            ("a/b", "a_b"),
            ("a b ", "a b_"),
            ("", "_"),
            (" ", "__"),
            (".x", "_.x"),
            ("größe", "größe"),
            ("a\n", "a_"),
        ] {
            assert_eq!(names.give(wanted), given);
        }
    }

    proptest! {
        #[test]
        fn names_are_legal_and_differ(wanted in proptest::collection::vec("\\PC{0,90}|.{0,300}", 1..20)) {
            let mut names = Names::default();
            let mut given = HashSet::new();
            for wanted in &wanted {
                let name = names.give(wanted);
                prop_assert!(!name.is_empty() && name.len() <= LONGEST);
                prop_assert!(!name.contains('/') && !name.ends_with(' ') && !name.chars().any(char::is_control));
                prop_assert!(given.insert(name));
            }
        }
    }
}
