//! The array's metadata as attributes of the file.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_format::datatype::{Datatype, Kind};
use tilefs_format::text;

use super::plan::NcAttribute;
use super::types::{NcEncoding, NcType, Version};
use crate::column::Metadatum;
use crate::number;

/// Converts one metadata entry to an attribute; `name` must be legal.
///
/// Dates are counts, text is text if it is valid UTF-8, and other text and blobs are bytes. In CDF-2, integers for
/// which it has no type become 32-bit integers, doubles or text: the first of these that holds all of them exactly.
pub fn attribute(name: String, metadatum: &Metadatum, version: Version) -> NcAttribute {
    let datatype = plain(metadatum);
    let values = metadatum.value.chunks_exact(datatype.size());
    let widened = datatype.size() == 8 && datatype != Datatype::Float64 || datatype.kind() == Kind::Unsigned;
    if version == Version::Cdf5 || !widened {
        return encoded(name, NcEncoding::of(datatype, None, version), values.flatten().copied().collect());
    }
    let integers: Vec<i128> = values.filter_map(|value| number::integer(datatype, value)).collect();
    let bounds = (integers.iter().min().copied().unwrap_or(0), integers.iter().max().copied().unwrap_or(0));
    match NcEncoding::of(Datatype::Int64, Some(bounds), version) {
        // The bounds fit in 64 bits, or no encoding was found.
        Some(encoding) => {
            encoded(name, Some(encoding), integers.iter().flat_map(|&value| (value as i64).to_le_bytes()).collect())
        }
        None => {
            let texts: Vec<String> = integers.iter().map(i128::to_string).collect();
            NcAttribute::text(&name, texts.join(", "))
        }
    }
}

/// Returns the datatype of an attribute's values, which cannot have attributes such as units themselves.
fn plain(metadatum: &Metadatum) -> Datatype {
    let datatype = metadatum.datatype;
    match (datatype.kind(), datatype.size()) {
        _ if datatype.time_unit().is_some() => Datatype::Int64,
        _ if datatype == Datatype::Bool => Datatype::Int8,
        (Kind::Bytes, 1) if text::decode(datatype, &metadatum.value).is_none() => Datatype::Int8,
        (Kind::Bytes, 2) => Datatype::UInt16,
        (Kind::Bytes, 4) => Datatype::UInt32,
        _ => datatype,
    }
}

fn encoded(name: String, encoding: Option<NcEncoding>, bytes: Vec<u8>) -> NcAttribute {
    let content: Option<(NcType, Arc<dyn Content>)> =
        encoding.map(|encoding| (encoding.nc_type, encoding.apply(Arc::new(bytes), "")));
    let encoded = content.and_then(|(nc_type, content)| {
        let mut values = vec![0; usize::try_from(content.len()).ok()?];
        content.read_at(0, &mut values).ok().map(|()| (nc_type, values))
    });
    let (nc_type, values) = encoded.unwrap_or((NcType::Byte, Vec::new()));
    NcAttribute { name, nc_type, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(datatype: Datatype, value: &[u8], version: Version) -> (NcType, Vec<u8>) {
        let metadatum = Metadatum { key: "k".into(), datatype, value: value.to_vec() };
        let attribute = attribute("k".into(), &metadatum, version);
        (attribute.nc_type, attribute.values)
    }

    #[test]
    fn every_type_is_representable() {
        let two = |v: i64| [7i64.to_le_bytes(), v.to_le_bytes()].concat();
        type Value = (NcType, Vec<u8>);
        let cases: [(Datatype, Vec<u8>, Value, Value); 7] = [
            (
                Datatype::Int64,
                two(-2),
                (NcType::Int, [7i32.to_be_bytes(), (-2i32).to_be_bytes()].concat()),
                (NcType::Int64, [7i64.to_be_bytes(), (-2i64).to_be_bytes()].concat()),
            ),
            (
                Datatype::DateTimeYear,
                two(1 << 40),
                (NcType::Double, [7f64.to_be_bytes(), ((1i64 << 40) as f64).to_be_bytes()].concat()),
                (NcType::Int64, [7i64.to_be_bytes(), (1i64 << 40).to_be_bytes()].concat()),
            ),
            (
                Datatype::UInt64,
                two(-1),
                (NcType::Char, b"7, 18446744073709551615".to_vec()),
                (NcType::UInt64, [7u64.to_be_bytes(), u64::MAX.to_be_bytes()].concat()),
            ),
            (Datatype::UInt8, vec![200], (NcType::Int, vec![0, 0, 0, 200]), (NcType::UByte, vec![200])),
            (Datatype::Blob, vec![200], (NcType::Byte, vec![200]), (NcType::Byte, vec![200])),
            (Datatype::StringUtf8, b"hi".to_vec(), (NcType::Char, b"hi".to_vec()), (NcType::Char, b"hi".to_vec())),
            (Datatype::Int16, vec![1, 2], (NcType::Short, vec![2, 1]), (NcType::Short, vec![2, 1])),
        ];
        for (datatype, value, old, new) in cases {
            assert_eq!(of(datatype, &value, Version::Cdf2), old, "{}", datatype.name());
            assert_eq!(of(datatype, &value, Version::Cdf5), new, "{}", datatype.name());
        }
        assert_eq!(of(Datatype::Int64, &[], Version::Cdf2), (NcType::Int, vec![]));
    }
}
