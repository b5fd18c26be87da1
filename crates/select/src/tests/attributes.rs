//! Selections by the labels of an enumeration: which codes they are.

use tilefs_format::enumeration::Enumeration;

use super::super::attributes::codes;
use super::super::syntax::parse;
use super::*;

/// Returns an enumeration of fixed size, or of texts, with these values.
fn enumeration(datatype: Datatype, is_ordered: bool, values: &[&[u8]]) -> Arc<Enumeration> {
    let is_text = datatype == Datatype::StringUtf8;
    let count = if is_text { u32::MAX } else { 1 };
    let data = values.concat();
    let mut payload = [0u32.to_le_bytes(), 0u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    payload.push(datatype as u8);
    payload.extend(count.to_le_bytes());
    payload.push(u8::from(is_ordered));
    payload.extend((data.len() as u64).to_le_bytes());
    payload.extend(&data);
    if is_text {
        payload.extend((8 * values.len() as u64).to_le_bytes());
        let mut start = 0u64;
        for value in values {
            payload.extend(start.to_le_bytes());
            start += value.len() as u64;
        }
    }
    Arc::new(Enumeration::parse(&payload).unwrap())
}

/// Returns the codes that a text selects, or the reason why none.
fn selected(labels: &Arc<Enumeration>, text: &str) -> std::result::Result<Vec<u64>, String> {
    let text = format!("a={text}");
    let texts = parse(&text).unwrap();
    let mut found = Vec::new();
    for range in &texts[0].ranges {
        for codes in codes(range, labels, Datatype::UInt8).map_err(|error| error.message)? {
            let [Some(Scalar::Unsigned(low)), Some(Scalar::Unsigned(high))] = [codes.low, codes.high] else {
                panic!("codes have ends")
            };
            found.extend(low..=high);
        }
    }
    Ok(found)
}

#[test]
fn labels_of_texts_are_codes() {
    let values: [&[u8]; 4] = [b"mid", b"low", b"", b"high"];
    for is_ordered in [false, true] {
        let labels = enumeration(Datatype::StringUtf8, is_ordered, &values);
        assert_eq!(selected(&labels, "low"), Ok(vec![1]));
        assert_eq!(selected(&labels, "%"), Ok(vec![2]));
        assert_eq!(selected(&labels, "high+mid"), Ok(vec![3, 0]));
        assert!(selected(&labels, "none").unwrap_err().contains("no such label"));
    }
    // By value, and by place in the list.
    let [by_value, by_place] = [false, true].map(|one| enumeration(Datatype::StringUtf8, one, &values));
    assert_eq!(selected(&by_value, "high..low"), Ok(vec![1, 3]));
    assert_eq!(selected(&by_value, "i.."), Ok(vec![0, 1]));
    assert_eq!(selected(&by_place, "low.."), Ok(vec![1, 2, 3]));
    assert_eq!(selected(&by_place, "..low"), Ok(vec![0, 1]));
    assert!(selected(&by_place, "i..").unwrap_err().contains("labels of the list"));
    assert!(selected(&by_place, "high..mid").is_err());
}

#[test]
fn labels_of_numbers_are_codes() {
    let values: Vec<[u8; 4]> = [2000i32, 2010, 1990, 2020].map(i32::to_le_bytes).to_vec();
    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    let [by_value, by_place] = [false, true].map(|one| enumeration(Datatype::Int32, one, &values));
    for labels in [&by_value, &by_place] {
        assert_eq!(selected(labels, "1990"), Ok(vec![2]));
        assert_eq!(selected(labels, "1990:2010"), Ok(vec![0, 2]));
        assert_eq!(selected(labels, ".."), Ok(vec![0, 1, 2, 3]));
    }
    assert_eq!(selected(&by_value, "2010.."), Ok(vec![1, 3]));
    assert_eq!(selected(&by_value, "..2005"), Ok(vec![0, 2]));
    assert_eq!(selected(&by_place, "2010.."), Ok(vec![1, 2, 3]));
    assert_eq!(selected(&by_place, "..2010"), Ok(vec![0, 1]));
}
