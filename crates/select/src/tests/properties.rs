//! Compares the grammar with an independent second implementation: selections are generated as structures, written as
//! text, and evaluated by loops over the coordinates.

use proptest::prelude::*;

use super::super::bounds::integer;
use super::*;

/// A range as a structure, which can be written as text and evaluated by loops.
#[derive(Debug, Clone)]
enum Typed {
    One(i128),
    Span(Option<i128>, Option<i128>, Option<i128>),
    HalfOpen(Option<i128>, Option<i128>, Option<i128>),
}

impl Typed {
    fn text(&self) -> String {
        let show = |value: &Option<i128>| value.map(|value| value.to_string()).unwrap_or_default();
        match self {
            Typed::One(value) => value.to_string(),
            Typed::Span(from, to, None) => format!("{}..{}", show(from), show(to)),
            Typed::Span(from, to, step) => format!("{}..{}..{}", show(from), show(to), show(step)),
            Typed::HalfOpen(from, to, None) => format!("{}:{}", show(from), show(to)),
            Typed::HalfOpen(from, to, step) => format!("{}:{}:{}", show(from), show(to), show(step)),
        }
    }

    /// Returns the coordinates within the limit in order; `None` if it is an error.
    fn coordinates(&self, limit: (i128, i128), shown: (i128, i128)) -> Option<Vec<i128>> {
        let walk = |first: i128, step: i128, goes_on: &dyn Fn(i128) -> bool| {
            let mut walked = Vec::new();
            let mut next = first;
            while goes_on(next) {
                walked.push(next);
                next += step;
            }
            walked
        };
        let within = |all: Vec<i128>| -> Vec<i128> {
            all.into_iter().filter(|value| (limit.0..=limit.1).contains(value)).collect()
        };
        match *self {
            Typed::One(value) => Some(within(vec![value])).filter(|all| !all.is_empty()),
            Typed::Span(from, to, step) => {
                let step = step.unwrap_or(1);
                let (low, high) = if step > 0 { shown } else { (shown.1, shown.0) };
                let (first, last) = (from.unwrap_or(low), to.unwrap_or(high));
                let all = walk(first, step, &|value| if step > 0 { value <= last } else { value >= last });
                Some(within(all)).filter(|all| !all.is_empty())
            }
            Typed::HalfOpen(from, to, step) => {
                let step = step.unwrap_or(1);
                let (low, high) = if step > 0 { (shown.0, shown.1 + 1) } else { (shown.1, shown.0 - 1) };
                let (first, past) = (from.unwrap_or(low), to.unwrap_or(high));
                let all = walk(first, step, &|value| if step > 0 { value < past } else { value > past });
                let clipped = within(all.clone());
                if clipped.is_empty() && !all.is_empty() { None } else { Some(clipped) }
            }
        }
    }

    /// Returns the positions by NumPy's rules for an axis of `length`: the result of `range(length)[a:b:c]` in Python,
    /// by trying all.
    fn positions(&self, length: i128) -> Option<Vec<i128>> {
        let (from, to, step) = match *self {
            Typed::One(value) => {
                let value = if value < 0 { value + length } else { value };
                return (0..length).contains(&value).then(|| vec![value]);
            }
            Typed::Span(from, to, step) | Typed::HalfOpen(from, to, step) => (from, to, step.unwrap_or(1)),
        };
        let from_end = |value: i128| if value < 0 { value + length } else { value };
        let order: Vec<i128> = if step > 0 { (0..length).collect() } else { (0..length).rev().collect() };
        let mut taken = Vec::new();
        let mut wait = 0;
        for value in order {
            let begun =
                from.is_none_or(|from| if step > 0 { value >= from_end(from) } else { value <= from_end(from) });
            let ended = to.is_some_and(|to| if step > 0 { value >= from_end(to) } else { value <= from_end(to) });
            if !begun || ended {
                continue;
            }
            if wait == 0 {
                taken.push(value);
                wait = step.abs();
            }
            wait -= 1;
        }
        Some(taken)
    }
}

fn typed() -> impl Strategy<Value = Typed> {
    let end = || prop::option::weighted(0.8, -12i128..25);
    let step = || prop::option::of(prop_oneof![1i128..6, -6i128..-1, Just(-1), Just(40)]);
    prop_oneof![
        (-9i128..20).prop_map(Typed::One),
        (end(), end(), step()).prop_map(|(from, to, step)| Typed::Span(from, to, step)),
        (end(), end(), step()).prop_map(|(from, to, step)| Typed::HalfOpen(from, to, step)),
    ]
}

fn text_of(ranges: &[Typed]) -> String {
    ranges.iter().map(Typed::text).collect::<Vec<_>>().join("+")
}

/// The domain, the limit and the shown range, each within the one before.
fn bounds() -> impl Strategy<Value = (DimensionBounds, (i128, i128), (i128, i128))> {
    (-6i128..6, 0i128..12, 0i128..4, 0i128..4, 0i128..4, 0i128..4).prop_map(|(low, length, a, b, c, d)| {
        let ends = |low, high| Range { low: Scalar::Signed(low as i64), high: Scalar::Signed(high as i64) };
        let limit = (low, low + length);
        let (first, last) = (low + c.min(length), low + length - d);
        let shown = (first.min(last.max(low)), first.max(last.max(low)));
        let bounds = DimensionBounds {
            domain: Some(ends(low - a, low + length + b)),
            limit: Some(ends(limit.0, limit.1)),
            shown: Some(ends(shown.0, shown.1)),
            ..counted("x", Datatype::Int8, 0, 0)
        };
        (bounds, limit, shown)
    })
}

fn naive(ranges: &[Typed], each: impl Fn(&Typed) -> Option<Vec<i128>>) -> Option<Vec<i128>> {
    ranges.iter().map(each).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn slices_match_loops(ranges in prop::collection::vec(typed(), 1..4), (bounds, limit, shown) in bounds()) {
        let wanted = naive(&ranges, |range| range.coordinates(limit, shown));
        let text = text_of(&ranges);
        let found = coordinates(&text, Addressing::Coordinate, std::slice::from_ref(&bounds)).ok().map(|mut all| all.remove(0));
        prop_assert_eq!(&found, &wanted, "{}", text);
        let selected = sparse(&text, Addressing::Coordinate, &[bounds]).ok();
        prop_assert_eq!(selected.is_some(), wanted.is_some());
        if let (Some(selected), Some(wanted)) = (selected, wanted) {
            for value in -30..40 {
                let scalar = Scalar::Signed(value as i64);
                let contained = selected[0].iter().any(|range| contains(range, &scalar));
                prop_assert_eq!(contained, wanted.contains(&value), "{} {}", text, value);
            }
            prop_assert!(selected[0].is_sorted_by_key(|range| integer(range.low.as_ref().unwrap())));
            // Ranges without steps that overlap or meet are one.
            let ends = |range: &CoordinateRange| [&range.low, &range.high].map(|end| integer(end.as_ref().unwrap()).unwrap());
            let spans: Vec<[i128; 2]> = selected[0].iter().filter(|range| range.step == 1).map(ends).collect();
            prop_assert!(spans.windows(2).all(|pair| pair[1][0] > pair[0][1] + 1), "{}", text);
        }
    }

    #[test]
    fn positions_match_python(ranges in prop::collection::vec(typed(), 1..4), (bounds, _, shown) in bounds()) {
        let length = shown.1 - shown.0 + 1;
        let wanted = naive(&ranges, |range| range.positions(length));
        let wanted = wanted.map(|all| all.into_iter().map(|position| shown.0 + position).collect::<Vec<_>>());
        let text = text_of(&ranges);
        let found = coordinates(&text, Addressing::Position, &[bounds]).ok().map(|mut all| all.remove(0));
        prop_assert_eq!(found, wanted, "{}", text);
    }

    #[test]
    fn floats_are_compared(ranges in prop::collection::vec((prop::option::of(-12i32..12), prop::option::of(-12i32..12)), 1..5)) {
        let number = |value: &Option<i32>| value.map(|value| format!("{:?}", f64::from(value) / 4.0)).unwrap_or_default();
        let text: Vec<String> = ranges.iter().map(|(from, to)| format!("{}..{}", number(from), number(to))).collect();
        let ends: Vec<(i32, i32)> = ranges.iter().map(|(from, to)| (from.unwrap_or(-8), to.unwrap_or(8))).collect();
        let wrong = ends.iter().any(|&(from, to)| from > to || from > 8 || to < -8);
        match sparse(&text.join("+"), Addressing::Coordinate, &[floats("x", -2.0, 2.0)]) {
            Err(_) => prop_assert!(wrong),
            Ok(selected) => {
                prop_assert!(!wrong);
                for value in -24..24 {
                    let scalar = Scalar::Float64(f64::from(value) / 8.0);
                    let wanted = (-16..=16).contains(&value)
                        && ends.iter().any(|&(from, to)| (2 * from..=2 * to).contains(&value));
                    prop_assert_eq!(selected[0].iter().any(|range| contains(range, &scalar)), wanted);
                }
                prop_assert!(selected[0].windows(2).all(|pair| pair[0].high.as_ref().unwrap().compare(pair[1].low.as_ref().unwrap()).is_lt()));
            }
        }
    }

    #[test]
    fn texts_are_compared(ranges in prop::collection::vec(("|[ab]{1,3}", "|[ab]{1,3}"), 1..5)) {
        let text: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}..{to}")).collect();
        let wrong = ranges.iter().any(|(from, to)| !to.is_empty() && from > to);
        match sparse(&text.join("+"), Addressing::Coordinate, &[strings("s")]) {
            Err(_) => prop_assert!(wrong),
            Ok(selected) => {
                prop_assert!(!wrong);
                for value in ["", "a", "aa", "ab", "b", "ba", "bbbb", "c", "aab"] {
                    let scalar = Scalar::Text(value.as_bytes().to_vec());
                    let inside = |(from, to): &(String, String)| *from.as_str() <= *value && (to.is_empty() || *value <= *to.as_str());
                    prop_assert_eq!(selected[0].iter().any(|range| contains(range, &scalar)), ranges.iter().any(inside));
                    let point = Range { low: scalar.clone(), high: scalar };
                    prop_assert_eq!(selected[0].iter().any(|range| overlaps(range, &point)), ranges.iter().any(inside));
                }
            }
        }
    }

    #[test]
    fn a_coordinate_s_text_selects_it(number in 0u8..44, bits: u64, text in prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8), "\\PC{0,8}|[.,+%=/:]{0,6}|first|last-1".prop_map(String::into_bytes)]) {
        let datatype = Datatype::from_number(number).unwrap();
        let coordinate = match datatype.kind() {
            Kind::Bytes => Scalar::Text(text),
            _ => Scalar::parse(datatype, &bits.to_le_bytes()[..datatype.size()]).unwrap(),
        };
        prop_assume!(coordinate.is_finite());
        let bounds = match coordinate {
            Scalar::Signed(_) => counted("x", datatype, i128::from(i64::MIN), i128::from(i64::MAX)),
            Scalar::Unsigned(_) => counted("x", datatype, 0, i128::from(u64::MAX)),
            _ => DimensionBounds { datatype, ..strings("x") },
        };
        let text = coordinate_text(datatype, &coordinate);
        prop_assert!(!text.contains(['/', ',', '+', '=']) && !text.chars().any(char::is_control));
        let one = sparse(&format!("x={text}"), Addressing::Coordinate, std::slice::from_ref(&bounds)).unwrap();
        let wanted = CoordinateRange { low: Some(coordinate.clone()), high: Some(coordinate.clone()), step: 1 };
        prop_assert_eq!(&one[0], &[wanted], "{}", text);
        let range = Range { low: coordinate.clone(), high: coordinate };
        let text = range_text(datatype, &range);
        prop_assert_eq!(&sparse(&text, Addressing::Coordinate, &[bounds]).unwrap()[0], &one[0], "{}", text);
    }

    #[test]
    fn no_text_panics(text in prop_oneof!["[0-9a-z.,+=:%T-]{0,30}", "\\PC{0,30}", any::<String>()]) {
        let dimensions = [
            counted("x", Datatype::Int8, -100, 100), floats("f", -1.0, 1.0), strings("s"),
            counted("t", Datatype::DateTimeNs, i128::from(i64::MIN), i128::from(i64::MAX)),
            counted("c", Datatype::TimeAs, 0, 1), counted("u", Datatype::UInt64, 0, i128::from(u64::MAX)),
        ];
        for by in [Addressing::Coordinate, Addressing::Position] {
            for prefix in ["", "f=", "s=", "t=", "c=", "u=", "1,2,"] {
                let text = format!("{prefix}{text}");
                if let Err(error) = sparse(&text, by, &dimensions) {
                    prop_assert!(error.at + error.length <= text.len() && text.is_char_boundary(error.at));
                    explain(&text, &error);
                    prop_assert!(!error.into_error(&text).to_string().is_empty());
                }
                let _ = dense(&text, by, &dimensions);
                let _ = dense(&text, by, &[dimensions[0].clone(), dimensions[5].clone()]);
            }
        }
    }
}
