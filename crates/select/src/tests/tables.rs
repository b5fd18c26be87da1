//! Every form of a selection, and every error with its position.

use super::*;

fn along_one(text: &str, by: Addressing, bounds: DimensionBounds) -> Vec<i128> {
    coordinates(text, by, &[bounds]).unwrap_or_else(|error| panic!("{}", explain(text, &error))).remove(0)
}

/// A dense array of -5..14.
fn axis() -> DimensionBounds {
    counted("x", Datatype::Int32, -5, 14)
}

#[test]
fn every_form_of_a_range_of_integers() {
    for (text, wanted) in [
        ("5", vec![5]),
        ("-5", vec![-5]),
        ("007", vec![7]),
        ("first", vec![-5]),
        ("last", vec![14]),
        ("last-9", vec![5]),
        ("1..4", vec![1, 2, 3, 4]),
        ("-2..1", vec![-2, -1, 0, 1]),
        ("11..", vec![11, 12, 13, 14]),
        ("..-4", vec![-5, -4]),
        ("first..-4", vec![-5, -4]),
        ("last-1..last", vec![13, 14]),
        ("..", (-5..=14).collect()),
        ("0..10..5", vec![0, 5, 10]),
        ("0..9..5", vec![0, 5]),
        ("....7", vec![-5, 2, 9]),
        ("10....2", vec![10, 12, 14]),
        ("..-1..2", vec![-5, -3, -1]),
        ("4..1..-1", vec![4, 3, 2, 1]),
        ("....-9", vec![14, 5, -4]),
        ("4....-5", vec![4, -1]),
        // Clipping does not change the phase of the steps.
        ("13..99", vec![13, 14]),
        ("-99..-4", vec![-5, -4]),
        ("-12..99..10", vec![-2, 8]),
        ("20..0..-7", vec![13, 6]),
        ("-99999999999999999999999999999999999999999..99999999999999999999999999999999999999999", (-5..=14).collect()),
        ("0..99999999999999999999999999999999999999999..99999999999999999999999999999999", vec![0]),
        // Lists keep their order and repetitions.
        ("3+1..2+3", vec![3, 1, 2, 3]),
        ("last+first", vec![14, -5]),
        ("first+..-3", vec![-5, -5, -4, -3]),
        // Half-open.
        ("1:4", vec![1, 2, 3]),
        ("-2:1", vec![-2, -1, 0]),
        (":", (-5..=14).collect()),
        ("12:", vec![12, 13, 14]),
        (":-3", vec![-5, -4]),
        ("0:10:5", vec![0, 5]),
        ("::7", vec![-5, 2, 9]),
        ("1:4:", vec![1, 2, 3]),
        ("4:1:-1", vec![4, 3, 2]),
        ("::-9", vec![14, 5, -4]),
        ("5:5", vec![]),
        ("7:5", vec![]),
        ("5:5+6", vec![6]),
        ("13:99", vec![13, 14]),
        ("last-1:", vec![13, 14]),
        // Any character may be escaped.
        ("%35", vec![5]),
    ] {
        assert_eq!(along_one(text, Addressing::Coordinate, axis()), wanted, "{text}");
    }
}

#[test]
fn every_form_of_a_range_of_positions() {
    for (text, wanted) in [
        ("0", vec![-5]),
        ("-1", vec![14]),
        ("19", vec![14]),
        ("0:3", vec![-5, -4, -3]),
        ("0..3", vec![-5, -4, -3]),
        ("..2", vec![-5, -4]),
        ("-2..", vec![13, 14]),
        ("-2:", vec![13, 14]),
        ("18:99", vec![13, 14]),
        ("-99:2", vec![-5, -4]),
        ("::-10", vec![14, 4]),
        ("....-10", vec![14, 4]),
        ("2::-1", vec![-3, -4, -5]),
        ("-1:-4:-1", vec![14, 13, 12]),
        ("99::-15", vec![14, -1]),
        ("4:4", vec![]),
        ("50:60", vec![]),
        ("3:1", vec![]),
        ("0+-1+0", vec![-5, 14, -5]),
    ] {
        assert_eq!(along_one(text, Addressing::Position, axis()), wanted, "{text}");
    }
}

#[test]
fn dimensions_by_place_and_by_name() {
    let dimensions = [counted("y", Datatype::UInt8, 0, 9), counted("x=1", Datatype::Int16, -3, 3), axis()];
    let select = |text| coordinates(text, Addressing::Coordinate, &dimensions).unwrap();
    let [y, x, z]: [Vec<i128>; 3] = [(0..10).collect(), (-3..4).collect(), (-5..15).collect()];
    assert_eq!(select("5"), [vec![5], x.clone(), z.clone()]);
    assert_eq!(select("..,1"), [y.clone(), vec![1], z.clone()]);
    assert_eq!(select("x=-5,y=2..3"), [vec![2, 3], x.clone(), vec![-5]]);
    assert_eq!(select("7,x%3D1=3,x=0"), [vec![7], vec![3], vec![0]]);
    assert_eq!(select("x=1:2"), [y, x, vec![1]]);
}

#[test]
fn dates_and_times() {
    let days = |text| along_one(text, Addressing::Coordinate, counted("t", Datatype::DateTimeDay, 19_723, 20_088));
    assert_eq!(days("2024-01"), (19_723..=19_753).collect::<Vec<_>>());
    assert_eq!(days("2024-01-31"), [19_753]);
    assert_eq!(days("2024-12..2025"), (20_058..=20_088).collect::<Vec<_>>());
    assert_eq!(days("2024-01-01..2024-02-01..31"), [19_723, 19_754]);
    assert_eq!(days("2024-01-02..2024-01..-1"), [19_724, 19_723]);
    assert_eq!(days("2023..2024-01-02"), [19_723, 19_724]);
    assert_eq!(days("last-1.."), [20_087, 20_088]);
    assert_eq!(days("19725D+first"), [19_725, 19_723]);
    let seconds = |text| along_one(text, Addressing::Coordinate, counted("t", Datatype::TimeSec, 0, 86_399));
    assert_eq!(seconds("10:15"), (36_900..36_960).collect::<Vec<_>>());
    assert_eq!(seconds("10:15:00..10:15:02"), [36_900, 36_901, 36_902]);
    assert_eq!(seconds("00..23..3600").len(), 24);
    let hours =
        |text| along_one(text, Addressing::Coordinate, counted("t", Datatype::DateTimeHr, -1_000_000, 1_000_000));
    assert_eq!(hours("1969-12-31T23..1970-01-01T00"), [-1, 0]);
    // Dates are not positions.
    let hours = counted("t", Datatype::DateTimeHr, 5, 9);
    assert_eq!(along_one("1..3", Addressing::Position, hours.clone()), [6, 7]);
    assert!(dense("1970-01-01", Addressing::Position, &[hours]).is_err());
}

#[test]
fn floats_and_strings() {
    let dimensions = [floats("x", -10.0, 10.0), strings("name")];
    let select = |text: &str| {
        let mut ranges =
            sparse(text, Addressing::Coordinate, &dimensions).unwrap_or_else(|e| panic!("{}", explain(text, &e)));
        let show = |end: &Option<Scalar>| end.as_ref().map_or("*".to_owned(), Scalar::to_string);
        let show = |ranges: Vec<CoordinateRange>| -> Vec<String> {
            ranges.iter().map(|range| format!("{}..{}", show(&range.low), show(&range.high))).collect()
        };
        let text = show(ranges.pop().unwrap()).join(" ");
        (show(ranges.pop().unwrap()).join(" "), text)
    };
    let one = |text: &str| select(text).0;
    assert_eq!(one("1.5"), "1.5..1.5");
    assert_eq!(one("-2.5e-1..1e0"), "-0.25..1");
    assert_eq!(one("1e1"), "10..10");
    assert_eq!(one("1e%2B1"), "10..10");
    assert_eq!(one(".."), "-10..10");
    assert_eq!(one("9..1e999"), "9..10");
    assert_eq!(one("last-0.5.."), "9.5..10");
    assert_eq!(one("..first"), "-10..-10");
    assert_eq!(one("3..4+1..2+1.5..3.5+7"), "1..4 7..7");
    let two = |text: &str| select(&format!("name={text}")).1;
    assert_eq!(two("abc"), "abc..abc");
    assert_eq!(two(".."), "*..*");
    assert_eq!(two("b.."), "b..*");
    assert_eq!(two("..b"), "*..b");
    assert_eq!(two("a b..c"), "a b..c");
    assert_eq!(two("first..last-9"), "first..last-9");
    assert_eq!(two("chr1:5"), "chr1:5..chr1:5");
    assert_eq!(two("%"), "..");
    assert_eq!(two("%FF%2C"), "\\xff,..\\xff,");
    assert_eq!(two("1.5"), "1.5..1.5");
    assert_eq!(two("%2E%2E"), "......");
    assert_eq!(two("x..+a..b+..c+d"), "*..c d..d x..*");
    assert_eq!(select("..,q"), ("-10..10".to_owned(), "q..q".to_owned()));
}

#[test]
fn whole_dimensions_are_not_restricted() {
    let dimensions = [counted("x", Datatype::Int32, 0, 9), strings("name")];
    let restricted = |text: &str| restricted(text, Addressing::Coordinate, &dimensions).unwrap();
    let sparse = |text: &str| sparse(text, Addressing::Coordinate, &dimensions).unwrap();
    let limits = |text: &str| vec![Some(sparse(text).remove(0)), None];
    assert_eq!(restricted("2..4"), limits("2..4"));
    assert_eq!(restricted("2..4,.."), limits("2..4"));
    assert_eq!(restricted("2..4,..a+.."), limits("2..4"));
    for text in ["2..4,a..", "2..4,..a", "2..4,a", "2..4,a..b+d.."] {
        assert_eq!(restricted(text), sparse(text).into_iter().map(Some).collect::<Vec<_>>(), "{text}");
    }
}

#[test]
fn errors_say_what_and_where() {
    use SelectionErrorKind::{Outside, Syntax, TooLarge};
    let dense_dimensions = [counted("y", Datatype::UInt8, 0, 9), axis()];
    let large = [counted("y", Datatype::UInt64, 0, 1 << 40), counted("x", Datatype::UInt64, 0, 1 << 40)];
    let sparse_dimensions = [floats("f", 0.0, 1.0), strings("s"), counted("t", Datatype::DateTimeDay, 0, 99)];
    for (text, kind, at, length, message) in [
        ("", Syntax, 0, 0, "missing"),
        ("10", Outside, 0, 2, "within the domain"),
        ("5,15..20", Outside, 2, 6, "within the domain"),
        ("5,3+-9..-8+99", Outside, 4, 6, "within the domain"),
        ("5..3", Syntax, 0, 4, "backwards is 5..3..-1"),
        ("1..2..-1", Syntax, 0, 8, "upper end comes first"),
        ("1..2..0", Syntax, 6, 1, "step of 0"),
        ("1..2..x", Syntax, 6, 1, "step is an integer"),
        ("a", Syntax, 0, 1, "not an integer"),
        ("1.5", Syntax, 0, 3, "not an integer"),
        ("1e3", Syntax, 0, 3, "not an integer"),
        ("1..b", Syntax, 3, 1, "not an integer"),
        ("+1", Syntax, 0, 0, "missing"),
        ("--1", Syntax, 0, 3, "not an integer"),
        ("-", Syntax, 0, 1, "not an integer"),
        ("last-", Syntax, 0, 5, "last-9"),
        ("last-x", Syntax, 0, 6, "last-9"),
        ("lastly", Syntax, 0, 6, "not an integer"),
        ("1,2,3", Syntax, 4, 1, "only 2 dimensions"),
        ("x=1,2", Syntax, 4, 1, "without a name"),
        ("x=1,x=2", Syntax, 4, 3, "x=1 selects along x already; to add 2, write x=1+2"),
        ("1,y=2", Syntax, 2, 3, "1 selects along y already; to add 2, write 1+2"),
        ("z=1", Syntax, 0, 1, "there are: y, x"),
        ("%zz=1", Syntax, 0, 3, "hexadecimal"),
        ("5%", Syntax, 1, 1, "hexadecimal"),
        ("5,1%4", Syntax, 3, 2, "hexadecimal"),
        ("%FF", Syntax, 0, 3, "UTF-8"),
        ("1:2..3", Syntax, 0, 3, "not both"),
        ("1..2:3", Syntax, 3, 3, "not both"),
        ("1:2:3:4", Syntax, 0, 7, "a:b:step"),
        ("1:2:0", Syntax, 4, 1, "step of 0"),
        ("20:30", Outside, 0, 5, "within the domain"),
    ] {
        let error = dense(text, Addressing::Coordinate, &dense_dimensions).expect_err(text);
        assert_eq!((error.kind, error.at, error.length), (kind, at, length), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    let error = dense("..", Addressing::Coordinate, &large).unwrap_err();
    assert_eq!(error.kind, TooLarge);
    for (text, kind, at, length, message) in [
        ("1.5", Outside, 0, 3, "within the domain"),
        ("0..1..2", Syntax, 6, 1, "steps are for integers"),
        ("0:1", Syntax, 0, 3, "half-open form is for integers"),
        ("inf", Syntax, 0, 3, "not a number"),
        ("nan", Syntax, 0, 3, "not a number"),
        ("1e+0", Syntax, 0, 2, "write 1e5"),
        ("0.7..0.1", Syntax, 0, 8, "wrong way round"),
        ("last-x", Syntax, 0, 6, "last-0.5"),
        ("s=b..a", Syntax, 2, 4, "wrong way round"),
        ("s=a%2", Syntax, 3, 2, "hexadecimal"),
        ("s=a..b..2", Syntax, 8, 1, "steps are for integers"),
        ("t=1970-01-32", Syntax, 2, 10, "no such day"),
        ("t=1980", Outside, 2, 4, "within the domain"),
        ("t=5s", Syntax, 2, 2, "its unit, D"),
    ] {
        let error = sparse(text, Addressing::Coordinate, &sparse_dimensions).expect_err(text);
        assert_eq!((error.kind, error.at, error.length), (kind, at, length), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    for (text, kind, at, length, message) in [
        ("20", Outside, 0, 2, "20 positions"),
        ("-21", Outside, 0, 3, "20 positions"),
        ("last", Syntax, 0, 4, "-1 the last"),
        ("0:5:0", Syntax, 4, 1, "step of 0"),
        ("0:5..7", Syntax, 0, 3, "not a position"),
    ] {
        let error = dense(text, Addressing::Position, &[axis()]).expect_err(text);
        assert_eq!((error.kind, error.at, error.length), (kind, at, length), "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    let error = sparse("0.5", Addressing::Position, &sparse_dimensions).unwrap_err();
    assert!(error.message.contains("use slice/"));
}

#[test]
fn explanations_name_the_dimension_and_its_range() {
    let dimensions = [counted("y", Datatype::UInt8, 0, 9), counted("time", Datatype::DateTimeDay, 19_723, 20_088)];
    let text = "5,2023-05..2023-06";
    let error = dense(text, Addressing::Coordinate, &dimensions).unwrap_err();
    assert_eq!(
        explain(text, &error),
        "5,2023-05..2023-06\n  ^^^^^^^^^^^^^^^^\ndimension time: no part of this lies within the domain\n\
         valid: 2024-01-01..2024-12-31\n"
    );
    let error = dense("99", Addressing::Position, &dimensions).unwrap_err();
    assert_eq!(error.valid.as_deref(), Some("positions 0 to 9, or -10 to -1"));
}

#[test]
fn shown_range_may_be_smaller_than_selectable_range() {
    let ends = |low, high| Some(Range { low: Scalar::Signed(low), high: Scalar::Signed(high) });
    let bounds = DimensionBounds { limit: ends(0, 14), shown: ends(3, 6), ..axis() };
    let select = |text: &str| along_one(text, Addressing::Coordinate, bounds.clone());
    assert_eq!(select(".."), [3, 4, 5, 6]);
    assert_eq!(select("first+last"), [3, 6]);
    assert_eq!(select("1..4"), [1, 2, 3, 4]);
    assert_eq!(select("1.."), [1, 2, 3, 4, 5, 6]);
    assert_eq!(select("-5..1"), [0, 1]);
    assert_eq!(along_one("0", Addressing::Position, bounds.clone()), [3]);
    assert_eq!(along_one("99::-1", Addressing::Position, bounds.clone()), [6, 5, 4, 3]);
    let error = dense("9..", Addressing::Coordinate, std::slice::from_ref(&bounds)).unwrap_err();
    assert_eq!(error.kind, SelectionErrorKind::Outside);
    let nothing = DimensionBounds { shown: None, ..bounds };
    assert_eq!(along_one("..", Addressing::Coordinate, nothing.clone()), []);
    assert_eq!(along_one("2", Addressing::Coordinate, nothing.clone()), [2]);
    assert_eq!(along_one(":", Addressing::Position, nothing.clone()), []);
    assert!(dense("first", Addressing::Coordinate, std::slice::from_ref(&nothing)).is_err());
    assert!(dense("0", Addressing::Position, &[nothing]).is_err());
}

#[test]
fn domains_as_wide_as_their_type() {
    let whole = counted("x", Datatype::UInt64, 0, i128::from(u64::MAX));
    let all = &sparse("..", Addressing::Coordinate, std::slice::from_ref(&whole)).unwrap()[0];
    let wide = CoordinateRange { low: Some(Scalar::Unsigned(0)), high: Some(Scalar::Unsigned(u64::MAX)), step: 1 };
    assert_eq!(all, &[wide]);
    assert!(dense("..", Addressing::Coordinate, &[whole]).is_err());
    let most = counted("x", Datatype::UInt64, 1, i128::from(u64::MAX));
    assert_eq!(along_one("1....18446744073709551613", Addressing::Coordinate, most.clone()), [1, (1 << 64) - 2]);
    assert_eq!(along_one("last", Addressing::Coordinate, most.clone()), [(1 << 64) - 1]);
    assert_eq!(along_one("-1", Addressing::Position, most), [(1 << 64) - 1]);
    let signed = counted("x", Datatype::Int64, i128::from(i64::MIN), i128::from(i64::MAX) - 1);
    assert_eq!(along_one("-9223372036854775808", Addressing::Coordinate, signed.clone()), [i128::from(i64::MIN)]);
    assert_eq!(along_one("0", Addressing::Coordinate, signed), [0]);
}

#[test]
fn a_hundred_thousand_ranges_are_a_selection() {
    let bounds = [counted("x", Datatype::UInt64, 0, 1 << 40), counted("y", Datatype::UInt64, 0, 9)];
    let text = (0..100_000).map(|n| format!("{}..{}", n * 7 % 99_991, n + 99_991)).collect::<Vec<_>>().join("+");
    assert_eq!(dense(&text, Addressing::Coordinate, &bounds).unwrap().axes()[0].ranges().len(), 100_000);
    // If only the set matters, they are merged into one.
    assert_eq!(sparse(&text, Addressing::Coordinate, &bounds).unwrap()[0].len(), 1);
}

#[test]
fn meanings_are_valid_selections() {
    let dimensions = [counted("y", Datatype::UInt8, 0, 9), axis(), floats("f", 0.0, 1.0), strings("s")];
    let shown = meaning("5..99,last+0..9..4+3:3,f=0.5..,s=a%2Cb..+c", Addressing::Coordinate, &dimensions).unwrap();
    assert_eq!(
        shown,
        "5..99,last+0..9..4+3:3,f=0.5..,s=a%2Cb..+c\n  y: 5 coordinates: 5..9\n  x: 4 coordinates: 14 + 0..8..4\n  \
         f: a range: 0.5..1.0\n  s: ranges: a%2Cb.. + c\n"
    );
    let shown = meaning("0:0", Addressing::Position, &dimensions[..1]).unwrap();
    assert_eq!(shown, "0:0\n  y: nothing\n");
    assert!(meaning("77", Addressing::Position, &dimensions[..1]).unwrap_err().contains("\n^^\n"));
    let many = (0..10).map(|n| n.to_string()).collect::<Vec<_>>().join("+");
    assert!(meaning(&many, Addressing::Coordinate, &dimensions).unwrap().contains("10 coordinates: 0 + 1"));
}
