//! Text within XML.

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
