//! Errors in a selection: the reason, the position in its text, and a display for the user who typed it.

use std::fmt;

use tilefs_base::characters::steers;
use tilefs_base::error::Error;

use super::hint::meant;
use super::token::SelectionToken;

/// Maximum width in characters; of longer selections, only the part around the error is shown.
const WIDTH: usize = 76;

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionErrorKind {
    /// The text does not parse, or does not fit this array's dimensions.
    Syntax,
    /// A range selects nothing within the dimension.
    Outside,
    /// More cells than a file can hold.
    TooLarge,
    /// The selected labels cannot be read.
    Unread,
}

/// The reason why a selection has no folder.
#[derive(Debug, Clone)]
pub struct SelectionError {
    pub kind: SelectionErrorKind,
    /// The position in the selection's text, in bytes.
    pub at: usize,
    /// The number of wrong bytes; 0 if something is missing.
    pub length: usize,
    pub message: String,
    /// The selectable range, as a user would type it.
    pub valid: Option<String>,
    /// The underlying error, for [`SelectionErrorKind::Unread`].
    pub cause: Option<Box<Error>>,
}

pub type Result<T> = std::result::Result<T, SelectionError>;

impl SelectionError {
    /// Creates an error for a token that does not parse.
    pub(super) fn syntax(token: SelectionToken<'_>, message: impl Into<String>) -> Self {
        Self::of(SelectionErrorKind::Syntax, token, message)
    }

    /// Creates an error for a token that lies outside its dimension.
    pub(super) fn outside(token: SelectionToken<'_>, message: impl Into<String>) -> Self {
        Self::of(SelectionErrorKind::Outside, token, message)
    }

    /// Creates an error for a token that selects labels which cannot be read.
    pub(super) fn unread(token: SelectionToken<'_>, cause: Error) -> Self {
        let unread = Self::of(SelectionErrorKind::Unread, token, cause.to_string());
        SelectionError { cause: Some(Box::new(cause)), ..unread }
    }

    pub(super) fn of(kind: SelectionErrorKind, token: SelectionToken<'_>, message: impl Into<String>) -> Self {
        SelectionError {
            kind,
            at: token.at,
            length: token.text.len(),
            message: message.into(),
            valid: None,
            cause: None,
        }
    }

    /// Adds what a text that does not parse probably means, if there is a guess. `is_integral` tells whether the dimension is
    /// known to have integers.
    pub(super) fn with_guess(mut self, text: &str, is_integral: bool) -> Self {
        if self.kind == SelectionErrorKind::Syntax
            && let Some(guess) = meant(text, is_integral)
        {
            self.message += &format!("; write {guess}");
        }
        self
    }

    /// Adds the selectable range, unless it is set.
    pub(super) fn with_valid(mut self, valid: impl FnOnce() -> String) -> Self {
        self.valid.get_or_insert_with(valid);
        self
    }

    /// Converts to the library's error for a selection that has no folder.
    pub fn into_error(self, selection: &str) -> Error {
        if let Some(cause) = self.cause {
            return *cause;
        }
        Error::usage(format!("selection {}: {self}", excerpt(selection, self.at, self.length).0))
    }
}

/// Writes the message and the valid range, without the position.
impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.valid {
            Some(valid) => write!(f, " (valid: {valid})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SelectionError {}

/// Returns lines for people, each with a line break: the selection with a caret under the position of the error, the
/// message, and the valid range.
pub fn explain(selection: &str, error: &SelectionError) -> String {
    let (line, before, marked) = excerpt(selection, error.at, error.length);
    let carets = "^".repeat(marked.max(1));
    let mut text = format!("{line}\n{:before$}{carets}\n{}\n", "", error.message);
    if let Some(valid) = &error.valid {
        text.push_str(&format!("valid: {valid}\n"));
    }
    text
}

/// Returns one line of the text around a position, the number of columns before the position, and the number of marked
/// columns that are shown.
fn excerpt(text: &str, at: usize, length: usize) -> (String, usize, usize) {
    let shown = |text: &str| -> String { text.chars().map(|c| if steers(c) { '?' } else { c }).collect() };
    let at = floor(text, at);
    let end = floor(text, at.saturating_add(length)).max(at);
    let (before, place, after) = (&text[..at], &text[at..end], &text[end..]);
    let columns = |text: &str| text.chars().count();
    if columns(before) + columns(place) + columns(after) <= WIDTH {
        return (shown(text), columns(before), columns(place));
    }
    let third = WIDTH / 3;
    let mut line = String::new();
    if columns(before) > third {
        line.push_str("...");
        let skipped = columns(before) - third;
        line.extend(before.chars().skip(skipped));
    } else {
        line.push_str(before);
    }
    let start = columns(&line);
    let marked = columns(place).min(third);
    line.extend(place.chars().take(third));
    if columns(place) > third || columns(after) > third {
        line.extend(if columns(place) > third { "" } else { after }.chars().take(third));
        line.push_str("...");
    } else {
        line.push_str(after);
    }
    (shown(&line), start, marked)
}

/// Returns the start of the character that contains a byte.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(at: usize, length: usize) -> SelectionError {
        SelectionError {
            kind: SelectionErrorKind::Outside,
            at,
            length,
            message: "x has no such coordinates".into(),
            valid: Some("0..99".into()),
            cause: None,
        }
    }

    #[test]
    fn caret_marks_the_error() {
        let text = "10..19,200..300";
        let shown = "10..19,200..300\n       ^^^^^^^^\nx has no such coordinates\nvalid: 0..99\n";
        assert_eq!(explain(text, &error(7, 8)), shown);
        assert_eq!(explain("größe=7", &error(8, 1)).lines().nth(1), Some("      ^"));
        assert_eq!(explain("1..2..", &error(6, 0)).lines().nth(1), Some("      ^"));
    }

    #[test]
    fn long_selections_are_cut() {
        let text = format!("{}777{}", "1+".repeat(5000), "+2".repeat(5000));
        let shown = explain(&text, &error(10_000, 3));
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].len() < 100 && lines[0].starts_with("...") && lines[0].ends_with("..."));
        assert_eq!(lines[0].find("777"), lines[1].find("^^^"));
        assert!(error(10_000, 3).into_error(&text).to_string().len() < 200);
    }

    proptest! {
        #[test]
        fn any_place_of_any_text_has_one_line(text in "\\PC{0,300}|.{0,20}", at in 0usize..400, length in 0usize..400) {
            let shown = explain(&text, &error(at, length));
            prop_assert_eq!(shown.matches('\n').count(), 4);
            prop_assert!(shown.lines().all(|line| line.chars().count() <= WIDTH + 6));
        }
    }
}
