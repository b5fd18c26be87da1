//! Splits the text of a selection into dimensions, ranges, and ends of ranges. The meaning of the ends depends on their
//! dimension, and is resolved later.
//!
//! ```text
//! selection := dimension ( ',' dimension )*
//! dimension := [ name '=' ] range ( '+' range )*
//! range     := value  |  [value] '..' [value] [ '..' step ]
//! ```
//!
//! These characters are separators everywhere, so values may contain them only as percent escapes. A value may contain
//! single dots, and colons, which `a:b:c` uses if the dimension has integers.

use super::error::{Result, SelectionError};
use super::token::SelectionToken;

/// The selection along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionText<'a> {
    /// The whole text of it.
    pub whole: SelectionToken<'a>,
    /// Still escaped; `None` if the dimension is identified by its position.
    pub name: Option<SelectionToken<'a>>,
    /// At least one.
    pub ranges: Vec<RangeText<'a>>,
}

/// One range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeText<'a> {
    pub whole: SelectionToken<'a>,
    pub form: RangeForm<'a>,
}

/// The forms that can be distinguished without knowing the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeForm<'a> {
    /// A value, or the half-open form `a:b:c`. Not empty.
    One(SelectionToken<'a>),
    /// `from..to`, `from..to..step`. `from` and `to` are empty if the end is open.
    Span { from: SelectionToken<'a>, to: SelectionToken<'a>, step: Option<SelectionToken<'a>> },
}

/// Parses a selection in time linear in its length.
///
/// # Errors
/// With the kind `Syntax`: empty ranges, excess separators.
pub fn parse(text: &str) -> Result<Vec<DimensionText<'_>>> {
    SelectionToken { text, at: 0 }.split(',').map(dimension).collect()
}

fn dimension(whole: SelectionToken<'_>) -> Result<DimensionText<'_>> {
    let (name, ranges) = match whole.text.find('=') {
        Some(place) => (Some(whole.part(0, place)), whole.part(place + 1, whole.text.len())),
        None => (None, whole),
    };
    if let Some(place) = ranges.text.find('=') {
        let second = ranges.part(place, place + 1);
        let error = SelectionError::syntax(second, "a second '='; in a name or value it is written %3D");
        return Err(error.with_guess(whole.text, false));
    }
    Ok(DimensionText { whole, name, ranges: ranges.split('+').map(range).collect::<Result<_>>()? })
}

fn range(whole: SelectionToken<'_>) -> Result<RangeText<'_>> {
    if whole.is_empty() {
        return Err(SelectionError::syntax(whole, "a range is missing here; '..' is the whole dimension"));
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut rest = whole.text;
    while let Some(place) = rest.find("..") {
        let place = whole.text.len() - rest.len() + place;
        let dots = whole.text[place..].bytes().take_while(|&byte| byte == b'.').count();
        parts.push(whole.part(start, place));
        match dots {
            2 => {}
            // `a..` and `..step` with nothing in between.
            4 => parts.push(whole.part(place + 2, place + 2)),
            _ => {
                let message = "two dots are a range; a dot next to them is written %2E, or 0.5 for .5 and 5 for 5.";
                return Err(SelectionError::syntax(whole.part(place, place + dots), message));
            }
        }
        start = place + dots;
        rest = &whole.text[start..];
    }
    parts.push(whole.part(start, whole.text.len()));
    let form = match *parts.as_slice() {
        [one] => RangeForm::One(one),
        [from, to] => RangeForm::Span { from, to, step: None },
        [from, to, step] if !step.is_empty() => RangeForm::Span { from, to, step: Some(step) },
        [_, _, step] => return Err(SelectionError::syntax(step, "the step is missing after the second '..'")),
        _ => return Err(SelectionError::syntax(whole, "a range is from..to or from..to..step")),
    };
    Ok(RangeText { whole, form })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Formats a selection for comparison: `name=[from|to|step one]`.
    fn taken_apart(text: &str) -> String {
        let mut out = String::new();
        for dimension in parse(text).unwrap() {
            if let Some(name) = dimension.name {
                out += &format!("{}=", name.text);
            }
            for range in dimension.ranges {
                out += &match range.form {
                    RangeForm::One(one) => format!("[{}]", one.text),
                    RangeForm::Span { from, to, step } => {
                        format!(
                            "[{}|{}{}]",
                            from.text,
                            to.text,
                            step.map(|s| format!("|{}", s.text)).unwrap_or_default()
                        )
                    }
                };
            }
            out.push(' ');
        }
        out.trim_end().to_owned()
    }

    #[test]
    fn each_form_of_a_selection_is_split_into_its_parts() {
        for (text, parts) in [
            ("5", "[5]"),
            ("..", "[|]"),
            ("1..2", "[1|2]"),
            ("1..", "[1|]"),
            ("..2", "[|2]"),
            ("0..100..10", "[0|100|10]"),
            ("....10", "[||10]"),
            ("5....2", "[5||2]"),
            ("..9..2", "[|9|2]"),
            ("-5..-1", "[-5|-1]"),
            ("1.5..2.5", "[1.5|2.5]"),
            ("5:9:2", "[5:9:2]"),
            ("1+2..3+7", "[1][2|3][7]"),
            ("y=1..2,x=3", "y=[1|2] x=[3]"),
            ("1,x=3", "[1] x=[3]"),
            ("=3", "=[3]"),
            ("2024-01-01T10:00:00.5..last", "[2024-01-01T10:00:00.5|last]"),
        ] {
            assert_eq!(taken_apart(text), parts, "{text}");
        }
    }

    #[test]
    fn an_error_has_the_place_of_the_wrong_text() {
        for (text, at, length) in [
            ("", 0, 0),
            ("1,,2", 2, 0),
            ("1,", 2, 0),
            ("1++2", 2, 0),
            ("+1", 0, 0),
            ("x=", 2, 0),
            ("x=1=2", 3, 1),
            ("1...2", 1, 3),
            ("1.....2", 1, 5),
            ("1..2..", 6, 0),
            ("5,1..2..3..4", 2, 10),
            ("1....2..3", 0, 9),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!((error.at, error.length), (at, length), "{text}");
        }
    }

    proptest! {
        #[test]
        fn tokens_have_their_positions(text in "[0-9a.,+=:é%-]{0,40}") {
            if let Ok(dimensions) = parse(&text) {
                for dimension in dimensions {
                    let ranges = dimension.ranges.iter().flat_map(|range| match range.form {
                        RangeForm::One(one) => vec![range.whole, one],
                        RangeForm::Span { from, to, step } => [range.whole, from, to].into_iter().chain(step).collect(),
                    });
                    for token in ranges.chain([dimension.whole]).chain(dimension.name) {
                        prop_assert_eq!(&text[token.at..token.at + token.text.len()], token.text);
                    }
                }
            }
        }
    }
}
