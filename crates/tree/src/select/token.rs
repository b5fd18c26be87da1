//! A part of the text of a selection.

/// A part of the text, with its position in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> Token<'a> {
    /// Returns the bytes from `start` to `end` of this token, which must be character boundaries.
    pub fn part(self, start: usize, end: usize) -> Token<'a> {
        Token { text: &self.text[start..end], at: self.at + start }
    }

    /// Returns the parts between separators: one more than there are separators.
    pub fn split(self, separator: char) -> impl Iterator<Item = Token<'a>> {
        self.text.split(separator).scan(self.at, move |at, text| {
            let token = Token { text, at: *at };
            *at += text.len() + separator.len_utf8();
            Some(token)
        })
    }

    pub fn is_empty(self) -> bool {
        self.text.is_empty()
    }
}
