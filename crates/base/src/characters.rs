//! Characters of stored texts that people should not be shown as they are.

/// Returns whether a character changes how the text around it is shown, instead of being shown itself: control
/// characters, breaks of lines, and Unicode's format characters (category Cf), which turn the direction of text or cannot
/// be seen. Texts for people escape it, so that no stored name looks like another one. The joiners U+200C and U+200D are
/// no such characters: scripts and emoji need them within words.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{AD}'
                | '\u{600}'..='\u{605}'
                | '\u{61C}'
                | '\u{6DD}'
                | '\u{70F}'
                | '\u{890}'..='\u{891}'
                | '\u{8E2}'
                | '\u{180E}'
                | '\u{200B}'
                | '\u{200E}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{110BD}'
                | '\u{110CD}'
                | '\u{13430}'..='\u{1343F}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0001}'
                | '\u{E0020}'..='\u{E007F}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_or_turns_text_steers() {
        for character in
            "\n\u{1b}\u{7f}\u{9b}\u{ad}\u{61c}\u{200b}\u{200f}\u{2028}\u{202e}\u{2066}\u{feff}\u{e0041}".chars()
        {
            assert!(steers(character), "{character:?}");
        }
        for character in "a ä\u{a0}\u{200c}\u{200d}日😀\u{301}\u{fe0f}".chars() {
            assert!(!steers(character), "{character:?}");
        }
    }
}
