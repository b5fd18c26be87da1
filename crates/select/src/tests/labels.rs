//! Selections by labels, compared with a filter of all labels.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use tilefs_base::error;
use tilefs_format::scalar;

use super::*;
use crate::{Label, SelectableLabel};

/// Labels in memory, found by a linear search.
struct Listed {
    name: &'static str,
    datatype: Datatype,
    values: Vec<Scalar>,
}

impl Label for Listed {
    fn name(&self) -> &str {
        self.name
    }

    fn bounds(&self) -> error::Result<DimensionBounds> {
        let mut values = self.values.clone();
        values.sort_by(Scalar::compare);
        let ends = values.first().cloned().zip(values.last().cloned());
        let range = ends.map(|(low, high)| scalar::Range { low, high }).filter(|_| self.datatype.kind() != Kind::Bytes);
        let bounds = DimensionBounds { name: self.name.into(), datatype: self.datatype, ..strings("") };
        Ok(DimensionBounds { limit: range.clone(), shown: range, ..bounds })
    }

    fn positions(&self, low: Option<&Scalar>, high: Option<&Scalar>) -> error::Result<Vec<Range<u64>>> {
        let is_within = |value: &&Scalar| {
            low.is_none_or(|low| value.compare(low).is_ge()) && high.is_none_or(|high| value.compare(high).is_le())
        };
        let numbered = (0u64..).zip(&self.values).filter(|(_, value)| is_within(value));
        Ok(numbered.map(|(number, _)| number..number + 1).collect())
    }
}

/// A label that cannot be read.
struct Unreadable;

impl Label for Unreadable {
    fn name(&self) -> &str {
        "lost"
    }

    fn bounds(&self) -> error::Result<DimensionBounds> {
        Err(error::Error::damaged("no such tile"))
    }

    fn positions(&self, _: Option<&Scalar>, _: Option<&Scalar>) -> error::Result<Vec<Range<u64>>> {
        Err(error::Error::damaged("no such tile"))
    }
}

fn label(name: &'static str, datatype: Datatype, values: impl IntoIterator<Item = Scalar>) -> SelectableLabel {
    SelectableLabel(Arc::new(Listed { name, datatype, values: values.into_iter().collect() }))
}

/// Rows 10 to 15 with descending latitudes, and columns -2 to 1 with days, names and a label named like the rows.
fn grid() -> [DimensionBounds; 2] {
    let lat = label("lat", Datatype::Float64, [90.0, 60.0, 45.5, 45.0, 10.0, -30.0].map(Scalar::Float64));
    let days = [19_362, 19_363, 19_389, 19_420].map(Scalar::Signed);
    let names = ["d", "b", "b", "a"].map(|name| Scalar::Text(name.into()));
    let others = [
        label("time", Datatype::DateTimeDay, days),
        label("name", Datatype::StringAscii, names),
        label("y", Datatype::Int32, [7, 7, 7, 7].map(Scalar::Signed)),
        SelectableLabel(Arc::new(Unreadable)),
    ];
    [
        DimensionBounds { labels: vec![lat], ..counted("y", Datatype::UInt8, 10, 15) },
        DimensionBounds { labels: others.into(), ..counted("x", Datatype::Int32, -2, 1) },
    ]
}

#[test]
fn labels_name_the_cells_that_they_label() {
    let dimensions = grid();
    let of = |text: &str| {
        coordinates(text, Addressing::Coordinate, &dimensions).unwrap_or_else(|e| panic!("{}", explain(text, &e)))
    };
    let (all, none): (Vec<i128>, Vec<i128>) = ((-2..2).collect(), Vec::new());
    for (text, rows) in [
        ("lat=40..50", vec![12, 13]),
        ("lat=45", vec![13]),
        ("lat=..0+60..", vec![15, 10, 11]),
        ("lat=first", vec![15]),
        ("lat=last-30..", vec![10, 11]),
        // A dimension of that name takes precedence.
        ("y=10+15", vec![10, 15]),
    ] {
        assert_eq!(of(text), [rows, all.clone()], "{text}");
    }
    let rows: Vec<i128> = (10..16).collect();
    for (text, columns) in [
        ("time=2023", vec![-2, -1, 0, 1]),
        ("time=2023-01", vec![-2, -1]),
        ("time=2023-02..2023-03", vec![0, 1]),
        ("time=19363D", vec![-1]),
        ("name=b", vec![-1, 0]),
        ("name=b..", vec![-2, -1, 0]),
        ("..,name=a+d", vec![1, -2]),
    ] {
        assert_eq!(of(text), [rows.clone(), columns], "{text}");
    }
    assert_eq!(of("lat=45,time=2023-03"), [vec![13], vec![1]]);
    assert_ne!(of("lat=45")[1], none);
}

#[test]
fn errors_in_labels_are_explained() {
    let dimensions = grid();
    for (text, kind, at, message) in [
        ("lat=46..50", SelectionErrorKind::Outside, 4, "label lat: no cell has such a label"),
        ("lat=95..", SelectionErrorKind::Outside, 4, "label lat: nothing shown lies there; give both ends"),
        ("time=2024", SelectionErrorKind::Outside, 5, "label time: no part of this lies within the domain"),
        ("time=2023..2023..2", SelectionErrorKind::Syntax, 5, "label time: labels are selected without steps"),
        ("lat=10..90,y=1", SelectionErrorKind::Syntax, 11, "lat=10..90 selects along y already; write one of them"),
        ("10,lat=45", SelectionErrorKind::Syntax, 3, "10 selects along y already; write one of them"),
        (
            "depth=4",
            SelectionErrorKind::Syntax,
            0,
            "no such dimension or label; there are: y, x; and the labels lat, time, name, y, lost",
        ),
        ("lost=1", SelectionErrorKind::Unread, 0, "label lost: damaged data: no such tile"),
    ] {
        let error = dense(text, Addressing::Coordinate, &dimensions).expect_err(text);
        assert_eq!((error.kind, error.at, error.message.as_str()), (kind, at, message), "{text}");
        assert_eq!(error.cause.is_some(), kind == SelectionErrorKind::Unread);
    }
    let valid = dense("lat=95..99", Addressing::Coordinate, &dimensions).unwrap_err().valid;
    assert_eq!(valid.as_deref(), Some("-30.0..90.0"));
    let error = dense("lat=0:2", Addressing::Position, &dimensions).unwrap_err();
    assert_eq!(error.message, "label lat: a label has no positions of its own: use slice/, or positions of y");
}

#[test]
fn labels_within_a_current_domain_are_clipped_to_it() {
    let [mut rows, columns] = grid();
    rows.limit = Some(scalar::Range { low: Scalar::Unsigned(11), high: Scalar::Unsigned(12) });
    let dimensions = [rows, columns];
    assert_eq!(coordinates("lat=40..90", Addressing::Coordinate, &dimensions).unwrap()[0], [11, 12]);
    assert_eq!(dense("lat=45", Addressing::Coordinate, &dimensions).unwrap_err().kind, SelectionErrorKind::Outside);
}

proptest! {
    #[test]
    fn a_range_of_labels_is_a_filter(values in prop::collection::vec(-9i64..9, 1..12), low in -10i64..10, length in 0i64..9) {
        let last = values.len() as i128 - 1;
        let labelled = label("l", Datatype::Int16, values.iter().copied().map(Scalar::Signed));
        let dimensions = [DimensionBounds { labels: vec![labelled], ..counted("x", Datatype::Int8, 0, last) }];
        let wanted: Vec<i128> = (0..).zip(&values).filter(|(_, value)| (low..=low + length).contains(value)).map(|(n, _)| n).collect();
        let found = coordinates(&format!("l={low}..{}", low + length), Addressing::Coordinate, &dimensions);
        match wanted.is_empty() {
            true => prop_assert_eq!(found.unwrap_err().kind, SelectionErrorKind::Outside),
            false => prop_assert_eq!(&found.unwrap()[0], &wanted),
        }
    }
}
