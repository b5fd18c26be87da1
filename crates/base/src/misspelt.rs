//! Misspelt names.

/// Maximum number of wrong letters in a name.
const MAX_WRONG: usize = 2;

/// Returns the number of wrong letters in a name that was probably meant to be another one, ignoring case; `None` if there
/// are too many.
pub fn wrong_letters(wanted: &str, name: &str) -> Option<usize> {
    let wrong = strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase());
    (wrong <= MAX_WRONG && wrong < wanted.chars().count()).then_some(wrong)
}
