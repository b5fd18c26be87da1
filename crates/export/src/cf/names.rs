//! Names that netCDF and Zarr allow, each used once.

use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization;

/// Assigns unique names of one kind (variables, dimensions, attributes).
pub struct Names {
    taken: HashSet<String>,
    legal: fn(&str) -> String,
    /// Maximum length in bytes.
    longest: usize,
}

impl Names {
    /// Creates names that netCDF allows: UTF-8 of up to 256 bytes (255 here, because ncdump stops at longer ones)
    /// without control characters and slashes, beginning with a letter, digit or underscore and not ending with a
    /// space. Other characters become underscores. All names are in normalization form C: netCDF's library looks up no
    /// other form, so a program that lists the names and then asks for each would fail.
    pub fn of_netcdf() -> Self {
        Names { taken: HashSet::new(), legal: legal_in_netcdf, longest: 255 }
    }

    /// Creates names that Zarr allows, which are file names: not only dots, not beginning with two underscores, which
    /// Zarr reserves, and without `\`, which zarr-python treats as a separator.
    pub fn of_zarr() -> Self {
        Names { taken: HashSet::new(), legal: legal_in_zarr, longest: 224 }
    }

    /// Returns whether a name is legal as it is.
    pub fn is_legal(&self, name: &str) -> bool {
        (self.legal)(name) == name && name.len() <= self.longest && !name.ends_with(' ')
    }

    /// Gives no later name that is this one.
    pub fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// Returns a legal name as close to `wanted` as possible. A number is added to a name that is already taken.
    pub fn give(&mut self, wanted: &str) -> String {
        let mut name = (self.legal)(wanted);
        truncate(&mut name, self.longest);
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
            truncate(&mut unique, self.longest - suffix.len());
            unique += &suffix;
        }
        unique
    }
}

fn without_separators(wanted: &str, separators: &[char]) -> String {
    wanted.chars().map(|c| if c.is_control() || separators.contains(&c) { '_' } else { c }).collect()
}

fn legal_in_netcdf(wanted: &str) -> String {
    let mut name: String = without_separators(wanted, &['/']).nfc().collect();
    let first = name.chars().next();
    if !first.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()) {
        name.insert(0, '_');
    }
    name
}

fn legal_in_zarr(wanted: &str) -> String {
    let name = without_separators(wanted, &['/', '\\']);
    match name.strip_prefix("__") {
        Some(rest) => format!("_{}", rest.trim_start_matches('_')),
        None if name.chars().all(|c| c == '.') => format!("_{name}"),
        None => name,
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
    use unicode_normalization::is_nfc;

    const LONGEST: usize = 255;

    #[test]
    fn good_names_stay_and_others_change_little() {
        let mut names = Names::of_netcdf();
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
            ("\u{e9}", "\u{e9}"),
            ("e\u{301}", "\u{e9}_2"),
            ("\u{212a}", "K"),
            ("a\\b", "a\\b"),
        ] {
            assert_eq!(names.give(wanted), given);
        }
    }

    #[test]
    fn few_names_are_reserved_by_zarr() {
        let mut names = Names::of_zarr();
        for (wanted, given) in [
            ("temp", "temp"),
            ("%73chema", "%73chema"),
            ("__dim_0", "_dim_0"),
            ("..", "_.."),
            ("", "_"),
            ("a/b", "a_b"),
            ("a\\b", "a_b_2"),
            ("\\", "__2"),
            (".x", ".x"),
        ] {
            assert_eq!(names.give(wanted), given);
        }
    }

    proptest! {
        #[test]
        fn names_are_legal_and_differ(wanted in proptest::collection::vec("\\PC{0,90}|.{0,300}", 1..20)) {
            let mut names = Names::of_netcdf();
            let mut given = HashSet::new();
            for wanted in &wanted {
                let name = names.give(wanted);
                prop_assert!(!name.is_empty() && name.len() <= LONGEST);
                prop_assert!(!name.contains('/') && !name.ends_with(' ') && !name.chars().any(char::is_control));
                prop_assert!(is_nfc(&name));
                prop_assert!(given.insert(name));
            }
        }
    }
}
