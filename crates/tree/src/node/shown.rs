//! The optional views that are listed: those that words of `--show` name, and those whose values no group around an array
//! lists in a view of its own.
//!
//! A recursive copy would copy the values once more for each listed view, so most views are found only by name. File
//! dialogs, globs and completion see only listed files.

use std::fmt;
use std::sync::Arc;

use crate::node::listing::Listing;

/// A group, as far as what it lists decides what the arrays below it list.
pub trait GroupAround: Send + Sync {
    /// Returns whether the group, or one around it, lists a view that holds the values of all arrays below the group, and
    /// whether the result is final.
    fn lists_values(&self) -> (bool, bool);
}

/// The views that are listed of those that not every array lists.
#[derive(Clone, Default)]
pub struct ShownViews {
    are_all: bool,
    words: Vec<&'static str>,
    /// The innermost group around the array.
    around: Option<Arc<dyn GroupAround>>,
}

impl ShownViews {
    /// No views of `--show`.
    pub const NONE: ShownViews = ShownViews { are_all: false, words: Vec::new(), around: None };

    /// All views, with and without a word.
    pub const ALL: ShownViews = ShownViews { are_all: true, words: Vec::new(), around: None };

    #[must_use]
    pub fn with(mut self, word: &'static str) -> Self {
        self.words.push(word);
        self
    }

    /// Returns the views of both sets.
    #[must_use]
    pub fn and(mut self, others: &ShownViews) -> Self {
        self.are_all |= others.are_all;
        self.words.extend(&others.words);
        self
    }

    /// Returns the same for what is below a group.
    #[must_use]
    pub fn below(self, group: Arc<dyn GroupAround>) -> Self {
        ShownViews { around: Some(group), ..self }
    }

    /// Returns the same without the views that words name.
    pub fn without_words(&self) -> Self {
        ShownViews { around: self.around.clone(), ..Self::NONE }
    }

    pub fn are_all(&self) -> bool {
        self.are_all
    }

    pub fn has(&self, word: &str) -> bool {
        self.are_all || self.words.contains(&word)
    }

    /// Returns whether a group around the array lists a view of the array's values, and whether the result is final.
    pub fn group_lists_values(&self) -> (bool, bool) {
        self.around.as_ref().map_or((false, true), |group| group.lists_values())
    }

    /// Returns the listing of a view that is listed if no group around the array lists a view of the same values.
    pub fn unless_group_lists_values(&self) -> Listing {
        let Some(group) = self.around.clone() else { return Listing::Always };
        Listing::if_wanted(move || !group.lists_values().0)
    }
}

impl fmt::Debug for ShownViews {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = if self.are_all { &["all"] } else { &*self.words };
        formatter.debug_list().entries(words).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of which a test knows what it lists.
    struct KnownGroup(bool);

    impl GroupAround for KnownGroup {
        fn lists_values(&self) -> (bool, bool) {
            (self.0, true)
        }
    }

    #[test]
    fn each_word_lists_its_own_views() {
        let shown = ShownViews::NONE.with("tiff").and(&ShownViews::NONE.with("csv"));
        assert!(shown.has("tiff") && shown.has("csv") && !shown.has("vrt") && !shown.are_all());
        assert!(ShownViews::ALL.has("vrt") && ShownViews::ALL.are_all() && !ShownViews::NONE.has("vrt"));
    }

    #[test]
    fn a_group_that_lists_values_hides_the_views_of_its_arrays() {
        assert!(ShownViews::NONE.unless_group_lists_values().is_listed());
        for lists in [false, true] {
            let shown = ShownViews::NONE.with("csv").below(Arc::new(KnownGroup(lists)));
            assert_eq!(shown.unless_group_lists_values().is_listed(), !lists);
            let without = shown.without_words();
            assert!(!without.has("csv") && without.group_lists_values() == (lists, true));
        }
    }
}
