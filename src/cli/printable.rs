//! Stored names for a terminal or a log: characters that could control it are escaped.

use std::borrow::Cow;

/// Returns a line without control characters: they become escapes such as `
/// ` and `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control, |character, out| out.extend(character.escape_debug()))
}

/// Returns a text of several lines: control characters are escaped, except line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    let steers = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    escaped(text, steers, |character, out| out.extend(character.escape_debug()))
}

/// Returns JSON, in which control characters occur only in strings: they become JSON escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    let steers = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    escaped(text, steers, |character, out| *out += &format!("\\u{:04x}", u32::from(character)))
}

fn escaped(text: &str, steers: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if steers(character) { escape(character, &mut out) } else { out.push(character) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "größe\t\x1b[2J\u{9b}1m\n\x07\x7f";
        assert_eq!(line(text), "größe\\t\\u{1b}[2J\\u{9b}1m\\n\\u{7}\\u{7f}");
        assert_eq!(lines(text), "größe\t\\u{1b}[2J\\u{9b}1m\n\\u{7}\\u{7f}");
        assert_eq!(json("{\n\"a\": \"\u{9b}\x7f\"}"), "{\n\"a\": \"\\u009b\\u007f\"}");
        assert!(matches!(lines("plain\n"), Cow::Borrowed(_)));
    }
}
