//! A part of the text of a selection.

/// A part of the text, with its position in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectionToken<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> SelectionToken<'a> {
    /// Returns the bytes from `start` to `end` of this token, which must be character boundaries.
    pub fn part(self, start: usize, end: usize) -> SelectionToken<'a> {
        SelectionToken { text: &self.text[start..end], at: self.at + start }
    }

    /// Returns the parts between separators: one more than there are separators.
    pub fn split(self, separator: char) -> impl Iterator<Item = SelectionToken<'a>> {
        self.text.split(separator).scan(self.at, move |at, text| {
            let token = SelectionToken { text, at: *at };
            *at += text.len() + separator.len_utf8();
            Some(token)
        })
    }

    pub fn is_empty(self) -> bool {
        self.text.is_empty()
    }
}
