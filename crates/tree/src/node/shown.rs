//! The optional views that are listed, by the words of `--show`.
//!
//! A recursive copy would copy the values once more for each listed view, so most views are found only by name. File
//! dialogs, globs and completion see only listed files.

/// A set of words that list views.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownViews {
    are_all: bool,
    words: Vec<&'static str>,
}

impl ShownViews {
    /// No views.
    pub const NONE: ShownViews = ShownViews { are_all: false, words: Vec::new() };

    /// All views, with and without a word.
    pub const ALL: ShownViews = ShownViews { are_all: true, words: Vec::new() };

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

    pub fn are_all(&self) -> bool {
        self.are_all
    }

    pub fn has(&self, word: &str) -> bool {
        self.are_all || self.words.contains(&word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_lists_its_own_views() {
        let shown = ShownViews::NONE.with("tiff").and(&ShownViews::NONE.with("csv"));
        assert!(shown.has("tiff") && shown.has("csv") && !shown.has("vrt") && !shown.are_all());
        assert!(ShownViews::ALL.has("vrt") && ShownViews::ALL.are_all() && !ShownViews::NONE.has("vrt"));
    }
}
