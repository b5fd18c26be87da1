//! Stored values, a few at a time, for people and for programs: fill values, metadata, ends of domains.

use serde_json::map::Entry;
use serde_json::{Value, json};
use tilefs_base::hex::hex;
use tilefs_export::number;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::scalar::Scalar;
use tilefs_format::text;
use tilefs_format::time_text;
use tilefs_vfs::node::quoting::quoted;

/// Formats consecutive values of one type: `1, 2, 3`, `"text"`, `0x00ff`. Beyond `most` values or characters, dots
/// replace the rest.
pub fn values_text(datatype: Datatype, bytes: &[u8], most: usize) -> String {
    if let Some(text) = text::decode(datatype, bytes) {
        return quoted(&text, most);
    }
    if datatype.kind() == Kind::Bytes {
        let shown = bytes.get(..most).unwrap_or(bytes);
        return format!("0x{}{}", hex(shown), if bytes.len() > shown.len() { "..." } else { "" });
    }
    let mut values = bytes.chunks_exact(datatype.size());
    let shown = values.by_ref().take(most).map(|one| number_text(datatype, one));
    let mut shown: Vec<String> = shown.collect();
    if values.len() > 0 {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}

/// Returns one value of one type, or a list of them: numbers, text, or bytes as hexadecimal digits.
pub fn values_json(datatype: Datatype, bytes: &[u8]) -> Value {
    if let Some(text) = text::decode(datatype, bytes) {
        return text.into();
    }
    if datatype.kind() == Kind::Bytes {
        return hex(bytes).into();
    }
    match bytes.len() == datatype.size() {
        true => number_json(datatype, bytes),
        false => bytes.chunks_exact(datatype.size()).map(|one| number_json(datatype, one)).collect(),
    }
}

/// Returns a number that parses back exactly: single precision with the digits of its double, non-finite values as
/// strings.
pub fn number_json(datatype: Datatype, bytes: &[u8]) -> Value {
    let float = match datatype {
        Datatype::Float32 => bytes.try_into().ok().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        Datatype::Float64 => bytes.try_into().ok().map(f64::from_le_bytes),
        _ => None,
    };
    if let Some(float) = float.filter(|float| float.is_finite()) {
        return json!(float);
    }
    match number::integer(datatype, bytes) {
        Some(integer) => i64::try_from(integer).map_or(json!(integer as u64), |signed| json!(signed)),
        None => number::text(datatype, bytes).into(),
    }
}

/// Returns one text; bytes that are not valid in its encoding become an object with hexadecimal digits under `hex`.
pub fn text_json(datatype: Datatype, bytes: &[u8]) -> Value {
    text::decode(datatype, bytes).map_or_else(|| json!({ "hex": hex(bytes) }), |text| text.into())
}

/// Formats a number; dates and times in ISO 8601, the smallest count as `NaT`.
fn number_text(datatype: Datatype, bytes: &[u8]) -> String {
    let mut text = String::new();
    match Scalar::parse(datatype, bytes) {
        Ok(Scalar::Signed(count)) if datatype.time_unit().is_some() => {
            time_text::print(datatype, count, |bytes| text.push_str(&String::from_utf8_lossy(bytes)));
            text
        }
        _ => number::text(datatype, bytes).unwrap_or_default(),
    }
}

/// Returns a coordinate: a number, or text. Dates and times are counts of their unit.
pub fn scalar_json(datatype: Datatype, scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Text(bytes) => text_json(datatype, bytes),
        number => number.to_bytes(datatype).map_or(Value::Null, |bytes| number_json(datatype, &bytes)),
    }
}

/// Repeats integers that a double may not represent as text: those under a key, or in a list under it, are added under
/// the key with the suffix `_text`, as decimal digits. An existing key of that name is kept.
pub fn with_large_integers_as_text(mut value: Value) -> Value {
    add_texts(&mut value);
    value
}

fn add_texts(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(add_texts),
        Value::Object(members) => {
            let text = |(key, value): (&String, &Value)| Some((format!("{key}_text"), large_as_text(value)?));
            let texts: Vec<(String, Value)> = members.iter().filter_map(text).collect();
            members.values_mut().for_each(add_texts);
            for (key, text) in texts {
                if let Entry::Vacant(free) = members.entry(key) {
                    free.insert(text);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the digits of an integer, or of all in a list, if one is too large for a double.
fn large_as_text(value: &Value) -> Option<Value> {
    let is_large = |one: &Value| match (one.as_u64(), one.as_i64()) {
        (Some(integer), _) => !number::is_exact(integer),
        (_, Some(integer)) => !number::is_exact(integer),
        _ => false,
    };
    let text = |one: &Value| if one.is_number() { one.to_string().into() } else { one.clone() };
    match value {
        Value::Array(values) if values.iter().any(is_large) => Some(values.iter().map(text).collect()),
        number if is_large(number) => Some(text(number)),
        _ => None,
    }
}

/// Returns the usual name of a datatype: `float32`, `string_utf8`, `datetime_day`.
pub fn datatype_text(datatype: Datatype) -> String {
    datatype.name().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_are_repeated_as_text() {
        let value = json!({
            "small": 1u64 << 53, "large": (1u64 << 53) + 1, "low": i64::MIN, "float": 1e300,
            "list": [0, u64::MAX, "nan"], "domain": [i64::MIN, 0], "domain_text": ["a", "b"],
            "inner": [{"x": -(1i64 << 53) - 1}],
        });
        let wanted = json!({
            "small": 1u64 << 53, "large": (1u64 << 53) + 1, "low": i64::MIN, "float": 1e300,
            "list": [0, u64::MAX, "nan"], "domain": [i64::MIN, 0], "domain_text": ["a", "b"],
            "inner": [{"x": -(1i64 << 53) - 1, "x_text": "-9007199254740993"}],
            "large_text": "9007199254740993", "low_text": "-9223372036854775808",
            "list_text": ["0", "18446744073709551615", "nan"],
        });
        assert_eq!(with_large_integers_as_text(value), wanted);
    }

    #[test]
    fn values_are_shown_by_their_type() {
        let both = |datatype, bytes: &[u8]| (values_text(datatype, bytes, 4), values_json(datatype, bytes).to_string());
        let pair = |text: &str, json: &str| (text.to_owned(), json.to_owned());
        assert_eq!(both(Datatype::Int16, &[1, 0]), pair("1", "1"));
        assert_eq!(both(Datatype::UInt8, &[1, 2, 3, 4, 5]), pair("1, 2, 3, 4, ...", "[1,2,3,4,5]"));
        assert_eq!(both(Datatype::Float32, &f32::NAN.to_le_bytes()), pair("nan", "\"nan\""));
        assert_eq!(both(Datatype::StringUtf8, "größe".as_bytes()), pair("\"größ\"...", "\"größe\""));
        assert_eq!(both(Datatype::Blob, &[0, 255]), pair("0x00ff", "\"00ff\""));
        assert_eq!(both(Datatype::StringAscii, &[0]), pair("\"\\u{0}\"", "\"\\u0000\""));
        assert_eq!(both(Datatype::Char, &[0x80]), pair("0x80", "\"80\""));
        assert_eq!(both(Datatype::DateTimeDay, &0i64.to_le_bytes()), pair("1970-01-01", "0"));
        assert_eq!(both(Datatype::DateTimeDay, &i64::MIN.to_le_bytes()).0, "NaT");
        assert_eq!(both(Datatype::Int32, &[]), pair("", "[]"));
    }
}
