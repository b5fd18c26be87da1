//! Users' text in generated text: in commands, in lines, between quotes.

use tilefs_base::characters::steers;

/// Returns a word of a shell command, quoted if necessary.
pub fn shell_word(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || "_-./,+:@%".contains(c) || (!c.is_ascii() && c.is_alphanumeric());
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Returns a relative path as a word of a command that cannot be taken for an option.
pub fn path_word(path: &str) -> String {
    if path.starts_with('-') { shell_word(&format!("./{path}")) } else { shell_word(path) }
}

/// Returns a string literal in double quotes that Python, R and JSON read alike. Paths have no control characters.
pub fn literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns text for use within a line: characters that steer how text is shown are escaped.
pub fn in_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if steers(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Returns a title, underlined, and an empty line.
pub fn heading(title: &str) -> String {
    format!("{title}\n{}\n\n", "=".repeat(title.chars().count()))
}

/// Maximum number of folders that are listed.
const MAX_LISTED: usize = 20;

/// Returns a line for each of the first folders, and a line that counts the folders after these.
pub fn list_of_folders(names: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for name in names.iter().take(MAX_LISTED) {
        text += &format!("    {}/\n", in_line(name.as_ref()));
    }
    if names.len() > MAX_LISTED {
        text += &format!("    ... {} more\n", names.len() - MAX_LISTED);
    }
    text
}

/// Returns text in double quotes for use within a line, at most `most` characters of it.
pub fn quoted(text: &str, most: usize) -> String {
    let mut out = String::from("\"");
    for (number, character) in text.chars().enumerate() {
        if number == most {
            out.push_str("\"...");
            return out;
        }
        if steers(character) || "\"\\".contains(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_only_where_necessary() {
        assert_eq!(shell_word("npy/temp.npy"), "npy/temp.npy");
        assert_eq!(shell_word("größe.f32"), "größe.f32");
        assert_eq!(shell_word("it's $1.f32"), "'it'\\''s $1.f32'");
        assert_eq!(path_word("-x.f32"), "./-x.f32");
        assert_eq!(literal("a\"b\\c"), r#""a\"b\\c""#);
        assert_eq!(quoted("a\n\"ä\"", 9), r#""a\n\"ä\"""#);
        assert_eq!(quoted("abc", 2), "\"ab\"...");
        assert_eq!(in_line("a\tb\u{7f}\u{202e}"), "a\\tb\\u{7f}\\u{202e}");
        assert_eq!(quoted("\u{2066}", 9), "\"\\u{2066}\"");
    }

    proptest! {
        #[test]
        fn a_shell_reads_the_word_back(word in "[^\\x00]{0,12}") {
            let output = std::process::Command::new("sh").args(["-c", &format!("printf %s {}", shell_word(&word))]).output();
            let output = output.expect("there is a shell");
            prop_assert_eq!(output.stdout, word.as_bytes());
        }
    }
}
