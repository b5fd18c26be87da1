//! The quoting of texts in tables with separated columns.
//!
//! Texts are never changed: a text that cannot be a cell as it is gets quotes, and the quotes in it are doubled (RFC
//! 4180). A null is empty, which distinguishes it from an empty text, `""`. Readers of such tables restore the same
//! values, including tabs, line breaks and zero bytes.

/// Texts of more bytes than this are always quoted, so that they need not be scanned first.
pub const LONG: usize = 64 << 10;

/// The form of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Tabs. Only texts that need quotes have quotes: `cut`, `awk` and `sort` would take quotes for parts of a text.
    Tsv,
    /// Commas. All texts are quoted, so that readers that guess types leave `007` and `true` as they are.
    Csv,
    /// A JSON object per row, whose keys are the names of the columns.
    JsonLines,
}

impl Style {
    /// Returns the byte between two cells of a row.
    pub fn separator(self) -> u8 {
        match self {
            Style::Tsv => b'\t',
            Style::Csv | Style::JsonLines => b',',
        }
    }

    /// Returns the end of a row.
    pub(crate) fn end_of_row(self) -> &'static [u8] {
        match self {
            Style::Tsv | Style::Csv => b"\n",
            Style::JsonLines => b"}\n",
        }
    }

    /// Appends a text, quoted if necessary.
    pub(crate) fn append_text(self, text: &[u8], out: &mut Vec<u8>) {
        if self == Style::Tsv && is_plain(text) {
            out.extend_from_slice(text);
        } else {
            append_quoted(text, out);
        }
    }

    /// Appends the name of a column, quoted only if necessary.
    pub(crate) fn append_name(self, name: &[u8], out: &mut Vec<u8>) {
        if is_plain(name) && !name.contains(&self.separator()) {
            out.extend_from_slice(name);
        } else {
            append_quoted(name, out);
        }
    }
}

fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    append_within_quotes(text, out);
    out.push(b'"');
}

/// Appends a part of a quoted text.
pub fn append_within_quotes(mut text: &[u8], out: &mut Vec<u8>) {
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
        style.append_text(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
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
