//! Percent escapes for text in paths and selections.
//!
//! A byte is `%` and two upper-case hexadecimal digits; lower-case digits are accepted, too. The empty text is a lone
//! `%`, because an empty name is impossible.

/// Appends bytes as escapes.
pub fn escape(bytes: &[u8], out: &mut String) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for byte in bytes {
        out.push('%');
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Returns the bytes of a text with escapes.
///
/// # Errors
/// The byte offset of the first `%` without two hexadecimal digits after it.
pub fn unescape(text: &str) -> Result<Vec<u8>, usize> {
    if text == "%" {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = after;
            continue;
        }
        let digits = match after {
            [high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        let (high, low) = digits.ok_or(text.len() - rest.len())?;
        bytes.push(high << 4 | low);
        rest = &after[2..];
    }
    Ok(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescape("a%2Cb%2c%C3%A4ä").unwrap(), "a,b,ää".as_bytes());
        assert_eq!(unescape("").unwrap(), b"");
        assert_eq!(unescape("%").unwrap(), b"");
    }

    #[test]
    fn broken_escapes_are_errors() {
        for (text, place) in [("%%", 0), ("a%", 1), ("a%2", 1), ("%41%4g", 3), ("ä%+1", 2), ("%é", 0)] {
            assert_eq!(unescape(text), Err(place), "{text}");
        }
    }

    proptest! {
        #[test]
        fn all_bytes_survive_a_round_trip(bytes in prop::collection::vec(any::<u8>(), 1..50)) {
            let mut text = String::new();
            escape(&bytes, &mut text);
            prop_assert_eq!(unescape(&text), Ok(bytes));
        }
    }
}
