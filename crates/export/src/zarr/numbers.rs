//! Numbers as Zarr writes them in JSON.

use serde_json::Value;
use tilefs_format::datatype::{Datatype, Kind};

use crate::number as stored;

/// Returns a number of a datatype in Zarr's form for fill values: not-a-number and infinities as words. Bytes and
/// characters are unsigned numbers.
pub fn number(datatype: Datatype, value: &[u8]) -> Value {
    let bits = || -> String { value.iter().rev().map(|byte| format!("{byte:02x}")).collect() };
    let float = match (datatype, value) {
        (Datatype::Float32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (Datatype::Float64, value) => value.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN),
        _ => {
            let plain = match (datatype.kind(), datatype.size()) {
                (Kind::Bytes, 1) => Datatype::UInt8,
                (Kind::Bytes, 2) => Datatype::UInt16,
                (Kind::Bytes, _) => Datatype::UInt32,
                _ => datatype,
            };
            let Some(integer) = stored::integer(plain, value) else { return Value::Null };
            return match i64::try_from(integer) {
                Ok(signed) => signed.into(),
                Err(_) => u64::try_from(integer).unwrap_or(u64::MAX).into(),
            };
        }
    };
    let is_usual = match datatype {
        Datatype::Float32 => bits() == "7fc00000",
        _ => bits() == "7ff8000000000000",
    };
    match float {
        _ if float.is_nan() && is_usual => "NaN".into(),
        _ if float.is_nan() => format!("0x{}", bits()).into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ => float.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_exact() {
        assert_eq!(number(Datatype::UInt64, &[255; 8]), json!(u64::MAX));
        assert_eq!(number(Datatype::Int64, &i64::MIN.to_le_bytes()), json!(i64::MIN));
        assert_eq!(number(Datatype::Float32, &0.1f32.to_le_bytes()), json!(f64::from(0.1f32)));
        assert_eq!(number(Datatype::Float32, &f32::NAN.to_le_bytes()), "NaN");
        assert_eq!(number(Datatype::Float32, &0x7fc0_0001u32.to_le_bytes()), "0x7fc00001");
        assert_eq!(number(Datatype::Float64, &f64::NEG_INFINITY.to_le_bytes()), "-Infinity");
        assert_eq!(number(Datatype::Float64, &0xfff8_0000_0000_0000u64.to_le_bytes()), "0xfff8000000000000");
    }
}
