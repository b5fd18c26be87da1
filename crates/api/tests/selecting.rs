//! A program that uses only what the documentation shows selects rows.

use tilefs_api::format::scalar::Scalar;
use tilefs_api::{Array, CoordinateRange, Error, OpenOptions, RowCount};

fn open(name: &str) -> Array {
    let path = tilefs_fixtures::fixtures().join(name);
    OpenOptions::new().at(u64::MAX).open(path).unwrap().into_array().unwrap()
}

/// Returns all coordinates along the first dimension, which are of type `int64` or `int32`, row by row.
fn coordinates(array: &Array, rows: tilefs_api::RowReader) -> Vec<i64> {
    let name = array.schema().dimensions[0].name.clone();
    let mut all = Vec::new();
    for batch in rows.batches().unwrap() {
        let batch = batch.unwrap();
        let column = batch.column(&name).unwrap();
        all.extend(match column.datatype().size() {
            4 => column.to_vec::<i32>().unwrap().into_iter().map(i64::from).collect(),
            _ => column.to_vec::<i64>().unwrap(),
        });
    }
    all
}

#[test]
fn a_range_selects_the_rows_whose_coordinates_lie_in_it() {
    let array = open("arrays/sparse/overlap");
    let dimensions = array.schema().dimensions.len();
    let all = coordinates(&array, array.rows().unwrap());
    let (least, greatest) = (*all.iter().min().unwrap(), *all.iter().max().unwrap());
    for (low, high, step) in
        [(least, greatest, 1), (least + 1, greatest - 1, 1), (least, greatest, 2), (least, least, 1)]
    {
        let range = CoordinateRange { low: Some(Scalar::Signed(low)), high: Some(Scalar::Signed(high)), step };
        let mut ranges = vec![None; dimensions];
        ranges[0] = Some(vec![range]);
        let rows = array.rows().unwrap().select(&ranges).unwrap();
        let is_selected = |at: &&i64| (low..=high).contains(*at) && (**at - low) % step as i64 == 0;
        let due: Vec<i64> = all.iter().filter(is_selected).copied().collect();
        assert_eq!(rows.count().unwrap(), due.len() as u64, "{low}..{high}..{step}");
        assert_eq!(coordinates(&array, rows), due, "{low}..{high}..{step}");
    }
    let known: RowCount = array.rows().unwrap().known_count().unwrap();
    assert!(known.most() >= all.len() as u64 && known.exact().is_none_or(|rows| rows == all.len() as u64));
    let too_many = vec![None; dimensions + 1];
    assert!(matches!(array.rows().unwrap().select(&too_many).err(), Some(Error::Usage { .. })));
}

#[test]
fn a_text_selects_the_rows_that_a_path_selects() {
    let array = open("arrays/sparse/dim_times");
    let all = coordinates(&array, array.rows().unwrap());
    // Days since 1970 from 1 March to 31 May 2022.
    let spring = 19_052..=19_143;
    let due: Vec<i64> = all.iter().filter(|day| spring.contains(*day)).copied().collect();
    assert!(!due.is_empty() && due.len() < all.len());
    for text in ["day=2022-03..2022-05", "2022-03+2022-04..2022-05-31", "ns=..,day=2022-03-01..2022-05"] {
        assert_eq!(coordinates(&array, array.select(text).unwrap()), due, "{text}");
    }
    assert_eq!(coordinates(&array, array.select("..").unwrap()), all);
    for (text, reason) in [
        ("month=2022-03", "no such dimension or attribute; there are: day, ns, ms; and the attributes v, s"),
        ("day=1999", "dimension day: no part of this lies within the domain (valid: 2022-01-08..2024-10-04)"),
        ("day=2022-13", "dimension day: there is no such month"),
    ] {
        match array.select(text).err() {
            Some(error @ Error::Usage { .. }) => assert!(error.to_string().contains(reason), "{error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(matches!(open("arrays/dense/dim_datetime_day").select("2024").err(), Some(Error::Usage { .. })));
}

#[test]
fn groups_lead_to_their_members() {
    let group = OpenOptions::new().open(tilefs_fixtures::fixtures().join("arrays/groups")).err();
    assert!(matches!(group, Some(Error::NotAnArray { .. })), "{group:?}");
    let mut arrays = 0;
    for entry in std::fs::read_dir(tilefs_fixtures::fixtures().join("arrays/groups")).unwrap() {
        let Ok(group) = tilefs_api::open(entry.unwrap().path()).and_then(|opened| opened.into_group()) else {
            continue;
        };
        group.metadata().unwrap();
        for member in group.members().unwrap() {
            assert!(!member.name().is_empty() && !member.uri().is_empty());
            arrays += usize::from(group.open(&member).is_ok_and(|opened| opened.into_array().is_ok()));
        }
    }
    assert!(arrays > 0);
}
