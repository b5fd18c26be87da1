//! One stored number as a value and as text, for headers and other places where speed does not matter.

use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::time_text;

/// The greatest integer, and the negative of the least, up to which all integers are exact as doubles.
const MAX_EXACT: u128 = 1 << 53;

/// Returns whether an integer, and all that are closer to 0, are exact as doubles.
pub fn is_exact(value: impl Into<i128>) -> bool {
    value.into().unsigned_abs() <= MAX_EXACT
}

/// Returns an integer of any type, including dates and booleans; `None` if it is not an integer or has another size.
pub fn integer(datatype: Datatype, value: &[u8]) -> Option<i128> {
    let mut wide = [0; 8];
    if value.len() != datatype.size() {
        return None;
    }
    wide.get_mut(..value.len())?.copy_from_slice(value);
    let unused = 64 - 8 * value.len() as u32;
    match datatype.kind() {
        Kind::Signed => Some(i128::from((i64::from_le_bytes(wide) << unused) >> unused)),
        Kind::Unsigned => Some(i128::from(u64::from_le_bytes(wide))),
        Kind::Float | Kind::Bytes => None,
    }
}

/// Returns a number as text that parses back to it, not-a-number as `nan`; `None` if it is not a number.
pub fn text(datatype: Datatype, value: &[u8]) -> Option<String> {
    Some(match (datatype.kind(), datatype.size()) {
        (Kind::Float, 4) => float_text(f32::from_le_bytes(value.try_into().ok()?)),
        (Kind::Float, 8) => float_text(f64::from_le_bytes(value.try_into().ok()?)),
        _ => integer(datatype, value)?.to_string(),
    })
}

/// Returns a value that is no text in words: dates and times in ISO 8601, `NaT` for those that are none, booleans as `true`
/// and `false`; `None` if it has another size, or is text.
pub fn word(datatype: Datatype, value: &[u8]) -> Option<String> {
    Some(match (datatype.kind(), datatype.size()) {
        (Kind::Float, 4) => zmij::Buffer::new().format(f32::from_le_bytes(value.try_into().ok()?)).to_owned(),
        (Kind::Float, 8) => zmij::Buffer::new().format(f64::from_le_bytes(value.try_into().ok()?)).to_owned(),
        _ if datatype == Datatype::Bool => (integer(datatype, value)? != 0).to_string(),
        _ if datatype.time_unit().is_some() => {
            let mut text = String::new();
            let count = i64::from_le_bytes(value.try_into().ok()?);
            time_text::print(datatype, count, |bytes| text.push_str(&String::from_utf8_lossy(bytes)));
            text
        }
        _ => integer(datatype, value)?.to_string(),
    })
}

fn float_text(value: impl Into<f64> + std::fmt::Debug + Copy) -> String {
    if value.into().is_nan() { "nan".to_owned() } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_integers_have_exact_neighbours() {
        let is_itself = |value: i64| value as f64 as i128 == i128::from(value);
        let end = 1i64 << 53;
        for value in [0, 1, end - 1, end] {
            assert!([value, -value].into_iter().all(|value| is_exact(value) && is_itself(value)), "{value}");
        }
        assert!(!is_exact(end + 1) && !is_exact(-end - 1) && !is_itself(end + 1));
        assert!(!is_exact(u64::MAX) && !is_exact(i64::MIN) && !is_exact(i128::MIN));
    }

    #[test]
    fn integers_keep_their_sign() {
        assert_eq!(integer(Datatype::Int16, &[0xff, 0xff]), Some(-1));
        assert_eq!(integer(Datatype::UInt64, &[0xff; 8]), Some(i128::from(u64::MAX)));
        assert_eq!(integer(Datatype::Int64, &[0xff; 4]), None);
    }

    #[test]
    fn texts_read_back() {
        assert_eq!(text(Datatype::Float32, &0.1f32.to_le_bytes()).unwrap(), "0.1");
        assert_eq!(text(Datatype::Float64, &(-f64::MAX).to_le_bytes()).unwrap().parse(), Ok(-f64::MAX));
        assert_eq!(text(Datatype::Float64, &f64::NAN.to_le_bytes()).unwrap(), "nan");
        assert_eq!(text(Datatype::Int8, &[0x80]).unwrap(), "-128");
        assert_eq!(text(Datatype::Blob, &[1]), None);
    }

    #[test]
    fn words_are_those_of_tables() {
        assert_eq!(word(Datatype::Bool, &[1]).unwrap(), "true");
        assert_eq!(word(Datatype::DateTimeDay, &1i64.to_le_bytes()).unwrap(), "1970-01-02");
        assert_eq!(word(Datatype::TimeMin, &90i64.to_le_bytes()).unwrap(), "01:30");
        assert_eq!(word(Datatype::DateTimeNs, &i64::MIN.to_le_bytes()).unwrap(), "NaT");
        assert_eq!(word(Datatype::Float32, &f32::NAN.to_le_bytes()).unwrap(), "NaN");
        assert_eq!(word(Datatype::UInt8, &[255]).unwrap(), "255");
        assert_eq!(word(Datatype::DateTimeDay, &[1]), None);
        assert_eq!(word(Datatype::Blob, &[1]), None);
    }
}
