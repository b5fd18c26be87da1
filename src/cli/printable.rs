//! Stored names for a terminal or a log: characters that could control it, or reverse or hide what it shows, are escaped.

use std::borrow::Cow;

use tilefs_base::characters::steers;

/// Returns a line in which they are escapes such as `\n` and `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, steers, |character, out| out.extend(character.escape_default()))
}

/// Returns a text of several lines: line breaks and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, steers_lines, |character, out| out.extend(character.escape_default()))
}

/// Returns JSON, in which they occur only in strings: they become JSON escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(text, steers_lines, |character, out| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            *out += &format!("\\u{unit:04x}");
        }
    })
}

fn steers_lines(character: char) -> bool {
    steers(character) && !matches!(character, '\n' | '\t')
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
    fn characters_that_steer_are_escaped() {
        let text = "größe\t\x1b[2J\u{9b}1m\n\x07\x7f";
        assert_eq!(line(text), "größe\\t\\u{1b}[2J\\u{9b}1m\\n\\u{7}\\u{7f}");
        assert_eq!(lines(text), "größe\t\\u{1b}[2J\\u{9b}1m\n\\u{7}\\u{7f}");
        assert_eq!(json("{\n\"a\": \"\u{9b}\x7f\"}"), "{\n\"a\": \"\\u009b\\u007f\"}");
        assert!(matches!(lines("plain\n"), Cow::Borrowed(_)));
        // It reverses what follows it.
        assert_eq!(line("a\u{202e}fdp.f32"), "a\\u{202e}fdp.f32");
        assert_eq!(lines("\u{2066}\n\u{200b}"), "\\u{2066}\n\\u{200b}");
        assert_eq!(json("\"\u{202e}\u{e0041}\""), "\"\\u202e\\udb40\\udc41\"");
    }
}
