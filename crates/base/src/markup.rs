//! Text within XML and HTML.

/// Escapes a text for an element or an attribute of an XML file. Characters that XML does not allow become spaces, and so
/// do carriage returns, which readers do not keep.
pub fn escape(text: &str) -> String {
    escaped(text, "'", ' ')
}

/// Escapes a text for an element or an attribute of a page, in HTML or XML, in either kind of quotes. Characters that XML
/// does not allow become U+FFFD.
pub fn escape_for_page(text: &str) -> String {
    escaped(text, "&#39;", '\u{FFFD}')
}

fn escaped(text: &str, apostrophe: &str, not_allowed: char) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str(apostrophe),
            '\n' | '\t' => escaped.push(character),
            _ if character.is_control() || matches!(character, '\u{FFFE}' | '\u{FFFF}') => escaped.push(not_allowed),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::XmlReader;
    use proptest::prelude::*;

    #[test]
    fn markup_is_text() {
        assert_eq!(
            escape_for_page("<a href=\"x\">'&'</a>\0"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;\u{FFFD}"
        );
        assert_eq!(escape("it's\r\n\0<b>"), "it's \n &lt;b&gt;");
    }

    proptest! {
        #[test]
        fn readers_of_xml_get_the_text_back(text in "\\PC*['\"<&>\\]\n\t]*\\PC*") {
            let line = text.replace(['\n', '\t'], " ");
            for escape in [escape, escape_for_page] {
                let whole = format!("<a b=\"{}\">{}</a>", escape(&line), escape(&text));
                let mut reader = XmlReader::new(&whole, || Ok(())).unwrap();
                let root = reader.root().unwrap();
                prop_assert_eq!(root.attribute("b"), Some(line.as_str()));
                prop_assert_eq!(reader.text(&root).unwrap(), text.clone());
            }
        }
    }
}
