//! Reads JSON in time and memory that its length bounds.
//!
//! Whoever reads a JSON text that was stored with data reads it with [`parse`], which has the limits of all of them.

use std::io::{self, Read};

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Maximum length of a text in bytes.
pub const MAX_LENGTH: usize = 64 << 20;

/// Maximum number of values of one text. A value takes up to a hundred bytes of memory, besides its text.
pub const MAX_VALUES: usize = 1 << 18;

/// Number of bytes after which is asked again whether to go on.
const PORTION: usize = 1 << 12;

/// Parses a text. `check` is asked several times, and ends the reading with its error.
///
/// # Errors
/// [`Error::Damaged`] with the place if the text is malformed or of another form than wanted, [`Error::Unsupported`]
/// beyond a limit, and those of `check`. The depth is limited to 128 by `serde_json`.
pub fn parse<T: DeserializeOwned>(text: &str, check: fn() -> Result<()>) -> Result<T> {
    if text.len() > MAX_LENGTH {
        return Err(Error::unsupported(format!("JSON of more than {MAX_LENGTH} bytes")));
    }
    if values(text, check)? > MAX_VALUES {
        return Err(Error::unsupported(format!("JSON of more than {MAX_VALUES} values")));
    }
    let mut portions = CheckedText { rest: text.as_bytes(), check, stopped: None };
    let parsed = serde_json::from_reader(&mut portions);
    match portions.stopped {
        Some(error) => Err(error),
        None => parsed.map_err(|error| Error::refused("malformed JSON", error)),
    }
}

/// Returns the number of values in a text, at least. Each but the first follows a comma or an opening bracket.
fn values(text: &str, check: fn() -> Result<()>) -> Result<usize> {
    let (mut values, mut is_text, mut is_escaped) = (1, false, false);
    for portion in text.as_bytes().chunks(PORTION) {
        check()?;
        for byte in portion {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_text,
                b'"' => is_text = !is_text,
                b',' | b'[' | b'{' if !is_text => values += 1,
                _ => {}
            }
        }
    }
    Ok(values)
}

/// A text that is read in portions.
struct CheckedText<'t> {
    rest: &'t [u8],
    check: fn() -> Result<()>,
    stopped: Option<Error>,
}

impl Read for CheckedText<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // `serde_json` asks for single bytes.
        if self.stopped.is_none() && self.rest.len().is_multiple_of(PORTION) {
            self.stopped = (self.check)().err();
        }
        match self.stopped {
            Some(_) => Err(io::Error::other("nobody waits")),
            None => self.rest.read(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::{Value, json};

    use super::*;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    fn go_on() -> Result<()> {
        Ok(())
    }

    #[test]
    fn texts_are_parsed() {
        assert_eq!(parse::<Value>(" {\"a\": [1, \"b,[\"]}\n", go_on).unwrap(), json!({"a": [1, "b,["]}));
        assert_eq!(parse::<Option<String>>("null", go_on).unwrap(), None);
        for text in ["", "{", "{} x", "[1,]", "{\"a\"}", &"[".repeat(100_000)] {
            assert!(parse::<Value>(text, go_on).is_err());
        }
    }

    #[test]
    fn limits_are_kept() {
        let list = |count: usize| format!("[0{}]", ",0".repeat(count - 1));
        assert!(parse::<Value>(&list(MAX_VALUES - 1), go_on).is_ok());
        assert!(parse::<Value>(&format!("\"\\\"{}\"", ",".repeat(MAX_VALUES)), go_on).is_ok());
        assert!(matches!(parse::<Value>(&list(MAX_VALUES), go_on), Err(Error::Unsupported { .. })));
        assert!(matches!(parse::<Value>(&" ".repeat(MAX_LENGTH + 1), go_on), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn parsing_ends_when_nobody_waits() {
        fn gone() -> Result<()> {
            STEPS.set(STEPS.get() + 1);
            if STEPS.get() > 26 { Err(Error::Cancelled) } else { Ok(()) }
        }
        // 25 portions are counted, and the second of them is not parsed.
        let text = format!("[\"{}\"]", "x".repeat(25 * PORTION - 4));
        STEPS.set(0);
        assert!(parse::<Value>(&text, gone).unwrap_err().is_cancelled());
        assert_eq!(STEPS.get(), 27);
    }
}
