//! What was probably meant by a text that is no selection: the signs of other languages, blanks, and `5-9`.

/// Returns how the selection along one dimension is written that this text probably means; `None` if there is no such
/// guess. Of integers, `>10` is from 11 on; of others, a range cannot leave out its end.
pub fn meant(text: &str, is_integral: bool) -> Option<String> {
    let plain = without_blanks(text);
    let (name, range) = match plain.split_once('=') {
        Some((name, range)) if !name.ends_with(['<', '>', '!']) => (Some(name), range.trim_start_matches('=')),
        _ => (None, plain.as_str()),
    };
    let guess = match (comparison(range, is_integral), between(range)) {
        (Some((inner, range)), _) => joined(name.or(inner), &range),
        (None, Some(range)) => joined(name, &range),
        (None, None) => joined(name, range),
    };
    (guess != text).then_some(guess)
}

fn joined(name: Option<&str>, range: &str) -> String {
    name.map_or_else(|| range.to_owned(), |name| format!("{name}={range}"))
}

/// Returns a text without blanks at the ends of its names and values.
fn without_blanks(text: &str) -> String {
    let around = |text: &str, separator: &str| text.split(separator).map(str::trim).collect::<Vec<_>>().join(separator);
    let signs = ["..", "=", "<", ">"];
    signs.iter().fold(text.to_owned(), |text, sign| around(&text, sign))
}

/// Returns the range that a comparison means, and its name if it has one: `>=10`, `y>=10`, `y<10`.
fn comparison(text: &str, is_integral: bool) -> Option<(Option<&str>, String)> {
    let place = text.find(['<', '>'])?;
    let (name, sign) = text.split_at(place);
    let (is_lower, value) = (sign.starts_with('>'), &sign[1..]);
    let (is_strict, value) = value.strip_prefix('=').map_or((true, value), |value| (false, value));
    if value.is_empty() || value.contains(['<', '>', '=']) || is_number(name) {
        return None;
    }
    let nearest = value.parse::<i64>().ok().and_then(|value| value.checked_add(if is_lower { 1 } else { -1 }));
    let value =
        nearest.filter(|_| is_strict && is_integral).map_or_else(|| value.to_owned(), |nearest| nearest.to_string());
    let range = if is_lower { format!("{value}..") } else { format!("..{value}") };
    Some(((!name.is_empty()).then_some(name), range))
}

/// Returns the range between two numbers with a dash between them.
fn between(text: &str) -> Option<String> {
    let dashes = text.match_indices('-').map(|(place, _)| place).filter(|place| *place > 0);
    let mut pairs = dashes.map(|place| (&text[..place], &text[place + 1..]));
    let (from, to) = pairs.find(|(from, to)| is_number(from) && is_number(to))?;
    Some(format!("{from}..{to}"))
}

fn is_number(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_a_selection() {
        for (typed, guess) in [
            ("5-9", "5..9"),
            ("y=5-9", "y=5..9"),
            ("-5-9", "-5..9"),
            ("-9--5", "-9..-5"),
            ("0.5-1.5", "0.5..1.5"),
            ("5 .. 9", "5..9"),
            (" 5", "5"),
            ("y = 5", "y=5"),
            (">=10", "10.."),
            ("<=10", "..10"),
            (">10", "11.."),
            ("<-3", "..-4"),
            (">0.5", "0.5.."),
            ("y>=10", "y=10.."),
            ("y=>=10", "y=10.."),
            ("y >= 10", "y=10.."),
            ("y<10", "y=..9"),
            ("y==10", "y=10"),
            ("y=5 .. 9", "y=5..9"),
        ] {
            assert_eq!(meant(typed, true).as_deref(), Some(guess), "{typed}");
            assert!(crate::syntax::parse(guess).is_ok() && meant(guess, true).is_none(), "{guess}");
        }
        for (typed, guess) in [(">10", "10.."), ("<-3", "..-3"), ("y<10", "y=..10"), (">=10", "10..")] {
            assert_eq!(meant(typed, false).as_deref(), Some(guess), "{typed}");
        }
        for typed in
            ["", "5", "5..9", "a", "-", "--1", "2024-01-02", "a-b", "1e-3", ">", "5<y", "y><3", "1.5", "lastly"]
        {
            assert_eq!(meant(typed, false), None, "{typed}");
        }
    }
}
