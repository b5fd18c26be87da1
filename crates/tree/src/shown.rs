//! The optional views that are listed: those that words of `--show` name, the one that an array is stored for, and those
//! whose values no such view lists, of the array or of a group around it.
//!
//! A recursive copy would copy the values once more for each listed view, so most views are found only by name. File
//! dialogs, globs and completion see only listed files.

use std::fmt;
use std::sync::Arc;

use tilefs_vfs::node::listing::Listing;

/// A group, as far as what it lists decides what the arrays below it list.
pub trait GroupAround: Send + Sync {
    /// Returns whether the group, or one around it, lists a view that holds the values of all arrays below the group, and
    /// whether the result is final.
    fn lists_values(&self) -> (bool, bool);
}

/// An array, as far as its domain decides what it lists.
pub trait ArrayOfDomain: Send + Sync {
    /// Returns the word of the view that the array is stored for, if there is one, and whether the result is final.
    fn own_view(&self) -> (Option<&'static str>, bool);
}

/// The views that are listed of those that not every array lists.
#[derive(Clone, Default)]
pub struct ShownViews {
    are_all: bool,
    words: Vec<&'static str>,
    /// The innermost group around the array.
    around: Option<Arc<dyn GroupAround>>,
    /// The array itself, if it may be of a domain.
    array: Option<Arc<dyn ArrayOfDomain>>,
}

impl ShownViews {
    /// No views of `--show`.
    pub const NONE: ShownViews = ShownViews { are_all: false, words: Vec::new(), around: None, array: None };

    /// All views, with and without a word.
    pub const ALL: ShownViews = ShownViews { are_all: true, words: Vec::new(), around: None, array: None };

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

    /// Returns the same for an array that may be of a domain.
    #[must_use]
    pub fn of_array(self, array: Arc<dyn ArrayOfDomain>) -> Self {
        ShownViews { array: Some(array), ..self }
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

    /// Returns whether a view of the array's values is listed that is not one of every array: that of a group around it,
    /// or the one that the array is stored for. Also returns whether the result is final.
    pub fn lists_values(&self) -> (bool, bool) {
        let (of_group, group_lasts) = self.group_lists_values();
        let (own, own_lasts) = self.own_view();
        (of_group || own.is_some(), group_lasts && own_lasts)
    }

    fn own_view(&self) -> (Option<&'static str>, bool) {
        self.array.as_ref().map_or((None, true), |array| array.own_view())
    }

    /// Returns the listing of a view that is listed unless another view of the same values is.
    pub fn unless_values_are_listed(&self) -> Listing {
        if self.around.is_none() && self.array.is_none() {
            return Listing::Always;
        }
        let this = self.clone();
        Listing::if_wanted(move || !this.lists_values().0)
    }

    /// Returns the listing of a view that is listed if the array is stored for it.
    pub fn if_own_view(&self, word: &'static str) -> Listing {
        let Some(array) = self.array.clone() else { return Listing::Never };
        Listing::if_wanted(move || array.own_view().0 == Some(word))
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
        assert!(ShownViews::NONE.unless_values_are_listed().is_listed());
        for lists in [false, true] {
            let shown = ShownViews::NONE.with("csv").below(Arc::new(KnownGroup(lists)));
            assert_eq!(shown.unless_values_are_listed().is_listed(), !lists);
            let without = shown.without_words();
            assert!(!without.has("csv") && without.group_lists_values() == (lists, true));
        }
    }
}
