//! Text within XML.

use roxmltree::Node;

/// Escapes a text for an element or an attribute. Characters that XML does not allow become spaces, and so do carriage
/// returns, which readers do not keep.
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.chars()
        .map(
            |c| {
                if c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{FFFE}' | '\u{FFFF}') {
                    ' '
                } else {
                    c
                }
            },
        )
        .collect()
}

/// Returns the text within an element, without surrounding blanks; `None` if there is none.
pub fn text(element: Node<'_, '_>) -> Option<String> {
    let text: String = element.children().filter_map(|child| child.text()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns an attribute by its lower-case name: the driver writes `KEY` in some places and `key` in others.
pub fn attribute(element: Node<'_, '_>, name: &str) -> Option<String> {
    let found = element.attributes().find(|attribute| attribute.name().eq_ignore_ascii_case(name));
    found.map(|attribute| attribute.value().to_owned())
}
