//! The quoting of texts in tables with separated columns.
//!
//! Texts are not changed unless the style says so: a text that cannot be a cell as it is gets quotes, and the quotes in it
//! are doubled (RFC 4180). A null is empty, which distinguishes it from an empty text, `""`. Readers of such tables
//! restore the same values, including tabs, line breaks and zero bytes.

use crate::content::refusal::NOT_UTF8;

/// Texts of more bytes than this are always quoted, so that they need not be scanned first.
pub const LONG: usize = 64 << 10;

/// The reason why a text of rows cannot hold a value.
#[derive(Debug)]
pub enum NotShown {
    /// A text is not UTF-8, for JSON.
    NotUtf8,
    /// A text has a tab or a line break, which separate cells and rows.
    Separator,
    /// A geometry is this instead.
    Geometry(&'static str),
}

impl NotShown {
    /// Returns what the value is, for a message.
    pub fn what(&self) -> &'static str {
        match self {
            NotShown::NotUtf8 => NOT_UTF8,
            NotShown::Separator => "a text with a tab or a line break",
            NotShown::Geometry(what) => what,
        }
    }
}

pub type ShownResult<T> = std::result::Result<T, NotShown>;

/// The form of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Tabs. Only texts that need quotes have quotes: `cut`, `awk` and `sort` would take quotes for parts of a text.
    Tsv,
    /// Tabs, and a line for each row: escapes instead of quotes, as PostgreSQL (`COPY`) and MySQL (`LOAD DATA`) read them.
    /// A line break is `\n`, a null is `\N`.
    Escaped,
    /// Tabs, and texts as they are: for readers that know neither quotes nor escapes. A null is empty; a text with a tab
    /// or a line break is an error.
    Plain,
    /// Commas. All texts are quoted, so that readers that guess types leave `007` and `true` as they are.
    Csv,
    /// A JSON object per row, whose keys are the names of the columns.
    JsonLines,
}

impl Style {
    /// Returns the byte between two cells of a row.
    pub fn separator(self) -> u8 {
        match self {
            Style::Tsv | Style::Escaped | Style::Plain => b'\t',
            Style::Csv | Style::JsonLines => b',',
        }
    }

    /// Returns the end of a row.
    pub(crate) fn end_of_row(self) -> &'static [u8] {
        match self {
            Style::Tsv | Style::Escaped | Style::Plain | Style::Csv => b"\n",
            Style::JsonLines => b"}\n",
        }
    }

    /// Returns whether texts may have quotes around them.
    pub(crate) fn has_quotes(self) -> bool {
        matches!(self, Style::Tsv | Style::Csv)
    }

    /// Returns what a null is.
    pub(crate) fn null(self) -> &'static [u8] {
        match self {
            Style::Tsv | Style::Csv | Style::Plain => b"",
            Style::Escaped => b"\\N",
            Style::JsonLines => b"null",
        }
    }

    /// Appends a text, quoted or escaped if necessary.
    ///
    /// # Errors
    /// Fails if the style cannot hold it.
    pub(crate) fn append_text(self, text: &[u8], out: &mut Vec<u8>) -> ShownResult<()> {
        let has_quotes = self.has_quotes() && !(self == Style::Tsv && is_plain(text));
        if has_quotes {
            out.push(b'"');
        }
        match self {
            Style::Tsv if !has_quotes => out.extend_from_slice(text),
            _ => self.append_part(text, out)?,
        }
        if has_quotes {
            out.push(b'"');
        }
        Ok(())
    }

    /// Appends a part of a text, without the quotes around it.
    ///
    /// # Errors
    /// As for [`Style::append_text`].
    pub(crate) fn append_part(self, text: &[u8], out: &mut Vec<u8>) -> ShownResult<()> {
        match self {
            Style::Escaped => append_escaped(text, out),
            Style::Plain if text.iter().any(|byte| matches!(byte, b'\t' | b'\n' | b'\r')) => {
                return Err(NotShown::Separator);
            }
            Style::Plain => out.extend_from_slice(text),
            Style::Tsv | Style::Csv | Style::JsonLines => append_within_quotes(text, out),
        }
        Ok(())
    }

    /// Appends the name of a column, quoted only if necessary.
    ///
    /// # Errors
    /// As for [`Style::append_text`].
    pub(crate) fn append_name(self, name: &[u8], out: &mut Vec<u8>) -> ShownResult<()> {
        if self.has_quotes() && is_plain(name) && !name.contains(&self.separator()) {
            out.extend_from_slice(name);
            return Ok(());
        }
        self.append_text(name, out)
    }
}

/// Appends a text in which what a line of separated cells cannot hold is escaped.
fn append_escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut plain_from = 0;
    for (place, byte) in text.iter().enumerate() {
        let escaped = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            // For many readers, a zero byte ends a line.
            0 => b'0',
            _ => continue,
        };
        out.extend_from_slice(&text[plain_from..place]);
        out.extend([b'\\', escaped]);
        plain_from = place + 1;
    }
    out.extend_from_slice(&text[plain_from..]);
}

/// Appends a part of a quoted text.
fn append_within_quotes(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(quote) = text.iter().position(|&byte| byte == b'"') {
        out.extend_from_slice(&text[..=quote]);
        out.push(b'"');
        text = &text[quote + 1..];
    }
    out.extend_from_slice(text);
}

/// Returns whether readers of a tab-separated table take a text literally, and not for a null, a comment, or padding
/// that may be dropped.
fn is_plain(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return false };
    let is_special = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b'"');
    !matches!(first, b' ' | b'#')
        && *last != b' '
        && text != b"NA"
        && text.len() <= LONG
        && !text.iter().any(is_special)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(style: Style, text: &str) -> String {
        let mut out = Vec::new();
        style.append_text(text.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Undoes the escapes, one character after the other; a null is `None`.
    fn unescaped(cell: &[u8]) -> Option<Vec<u8>> {
        let (mut text, mut rest) = (Vec::new(), cell.iter());
        if cell == Style::Escaped.null() {
            return None;
        }
        while let Some(byte) = rest.next() {
            text.push(match byte {
                b'\\' => match rest.next().unwrap() {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'0' => 0,
                    b'\\' => b'\\',
                    other => panic!("the escape \\{}", char::from(*other)),
                },
                byte => *byte,
            });
        }
        Some(text)
    }

    proptest::proptest! {
        #[test]
        fn escaped_texts_are_cells_of_lines_and_come_back(bytes in proptest::collection::vec(
            proptest::prop_oneof![proptest::sample::select(b"\t\n\r\\\0nrtN0 \"#".to_vec()), proptest::num::u8::ANY], 0..20,
        ), cut: proptest::sample::Index) {
            let mut out = Vec::new();
            Style::Escaped.append_text(&bytes, &mut out).unwrap();
            proptest::prop_assert!(!out.iter().any(|byte| b"\t\n\r\0".contains(byte)));
            proptest::prop_assert_eq!(unescaped(&out), Some(bytes.clone()));
            // A long text is made in parts.
            let (mut parts, cut) = (Vec::new(), cut.index(bytes.len() + 1));
            for part in [&bytes[..cut], &bytes[cut..]] {
                Style::Escaped.append_part(part, &mut parts).unwrap();
            }
            proptest::prop_assert_eq!(parts, out);
        }
    }

    #[test]
    fn plain_texts_are_themselves_or_refused() {
        for literal in ["", "NA", " a ", "#c1", "\"a\"", "a,b", "\\N", "'", &"x".repeat(LONG + 1)] {
            assert_eq!(text(Style::Plain, literal), literal);
        }
        for refused in ["a\tb", "\n", "a\r"] {
            assert!(Style::Plain.append_text(refused.as_bytes(), &mut Vec::new()).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn tsv_leaves_literal_texts_plain() {
        for plain in ["a", "a b", "a,b", "it's", "NAN", "a#", "ß\0", "-1", "\\t"] {
            assert_eq!(text(Style::Tsv, plain), plain);
        }
        for quoted in ["", "NA", " a", "a ", " ", "#a", "a\tb", "a\nb", "\r", &"x".repeat(LONG + 1)] {
            assert_eq!(text(Style::Tsv, quoted), format!("\"{quoted}\""));
        }
        assert_eq!(text(Style::Tsv, "a \"b\""), "\"a \"\"b\"\"\"");
    }

    #[test]
    fn csv_quotes_all_texts() {
        assert_eq!(text(Style::Csv, "a"), "\"a\"");
        assert_eq!(text(Style::Csv, ""), "\"\"");
        assert_eq!(text(Style::Csv, "\"\","), "\"\"\"\"\",\"");
    }
}
