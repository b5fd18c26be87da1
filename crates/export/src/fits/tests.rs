use proptest::prelude::*;
use tilefs_format::datatype::Datatype;

use super::*;
use crate::testing::{assert_random_access, assert_reads_ahead, read_all};

fn axis(name: &str, low: i128, positions: Option<(u64, i64)>) -> ImageAxis {
    ImageAxis { name: name.to_owned(), datatype: Datatype::Int32, low, positions }
}

fn datum(key: &str, datatype: Datatype, value: &[u8]) -> Metadatum {
    Metadatum { key: key.to_owned(), datatype, value: value.to_vec() }
}

fn text(key: &str, text: &str) -> Metadatum {
    datum(key, Datatype::StringUtf8, text.as_bytes())
}

/// Returns a column of two rows and three columns, whose bytes are 1, 2, 3, ...
fn column(field: Field) -> Column {
    let length = 6 * field.cell_size().unwrap();
    Column::fixed(field, vec![2, 3], Arc::new((1..=length).map(|byte| byte as u8).collect::<Vec<u8>>()))
}

/// Returns the cards before `END`, and the values.
fn parts(column: &Column, axes: &[ImageAxis], metadata: &[Metadatum]) -> (Vec<String>, Vec<u8>) {
    let content = fits(column, axes, metadata).unwrap();
    assert_random_access(&content);
    let all = read_all(&content);
    assert_eq!(all.len() % 2880, 0);
    let cards: Vec<String> = all.chunks(80).map(|card| String::from_utf8_lossy(card).trim_end().to_owned()).collect();
    let end = cards.iter().position(|card| card == "END").unwrap();
    let start = ((end + 1) * 80).next_multiple_of(2880);
    assert!(all[(end + 1) * 80..start].iter().all(|byte| *byte == b' '));
    let values = &all[start..start + column.values.len() as usize];
    assert!(all[start + values.len()..].iter().all(|byte| *byte == 0));
    (cards[..end].to_vec(), values.to_vec())
}

fn cards_of(column: &Column, axes: &[ImageAxis], metadata: &[Metadatum]) -> Vec<String> {
    parts(column, axes, metadata).0
}

#[test]
fn header_has_the_required_keywords_in_order() {
    let axes = [axis("y", -5, Some((0, 1))), axis("x", 10, Some((2, 3)))];
    let (cards, values) = parts(&column(Field::new("flux", Datatype::Int16)), &axes, &[]);
    let starts = ["SIMPLE  =                    T", "BITPIX  =                   16", "NAXIS   =                    2"];
    assert!(cards.iter().zip(starts).all(|(card, start)| card.starts_with(start)), "{cards:?}");
    assert_eq!(cards[3..5], ["NAXIS1  =                    3", "NAXIS2  =                    2"]);
    assert_eq!(
        cards[5..],
        [
            "EXTNAME = 'flux    '",
            "CTYPE1  = 'x       '",
            "CRPIX1  =                  1.0",
            "CRVAL1  =                 12.0",
            "CDELT1  =                  3.0",
            "CTYPE2  = 'y       '",
            "CRPIX2  =                  1.0",
            "CRVAL2  =                 -5.0",
            "CDELT2  =                  1.0",
        ]
    );
    assert_eq!(values, [2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11]);
}

#[test]
fn unsigned_integers_have_a_zero() {
    let (cards, values) = parts(&column(Field::new("a", Datatype::UInt16).with_no_data([0xff, 0xff])), &[], &[]);
    for card in ["BSCALE  =                    1", "BZERO   =                32768", "BLANK   =                32767"] {
        assert!(cards.iter().any(|own| own.starts_with(card)), "{card} is missing in {cards:?}");
    }
    assert_eq!(values[..4], [0x82, 1, 0x84, 3]);
    let (cards, values) = parts(&column(Field::new("a", Datatype::Int8)), &[], &[]);
    assert!(cards.iter().any(|card| card.starts_with("BZERO   =                 -128")));
    assert_eq!(values[..2], [0x81, 0x82]);
    let cards = cards_of(&column(Field::new("a", Datatype::UInt64)), &[], &[]);
    assert!(cards.iter().any(|card| card.starts_with("BZERO   =  9223372036854775808")), "{cards:?}");
    let cards = cards_of(&column(Field::new("a", Datatype::UInt8)), &[], &[]);
    assert!(!cards.iter().any(|card| card.starts_with("BZERO")));
}

#[test]
fn nulls_are_blank_or_not_a_number() {
    let marks = Arc::new(vec![1, 0, 1, 1, 1, 1]);
    let field = Field { null: Some(vec![7, 0]), ..Field::new("a", Datatype::Int16) };
    let (cards, values) = parts(&column(field).with_validity(marks.clone()), &[], &[]);
    assert!(cards.iter().any(|card| card.starts_with("BLANK   =                    7")));
    assert_eq!(values[..6], [2, 1, 0, 7, 6, 5]);
    let (_, values) = parts(&column(Field::new("a", Datatype::Float32)).with_validity(marks.clone()), &[], &[]);
    assert!(f32::from_be_bytes(values[4..8].try_into().unwrap()).is_nan());
    let content = fits(&column(Field::new("a", Datatype::UInt16)).with_validity(marks.clone()), &[], &[]).unwrap();
    assert_random_access(&content);
    let all = read_all(&content);
    assert!(all.windows(30).any(|card| card == b"BLANK   =          -2147483648"));
    assert_eq!(all[2880..2892], [0, 0, 2, 1, 128, 0, 0, 0, 0, 0, 6, 5]);
    assert!(fits(&column(Field::new("a", Datatype::Int64)).with_validity(marks), &[], &[]).is_err());
}

#[test]
fn metadata_are_keywords_if_they_can_be() {
    let metadata = [
        text("object", "O'Neil"),
        text("NAXIS1", "no"),
        text("COMMENT", "one\ntwo"),
        text("observer of it", "Ada"),
        text("name", "Zürich"),
        text(&"k".repeat(60), "too long"),
        datum("EXPTIME", Datatype::Float32, &1.5e-9f32.to_le_bytes()),
        datum("several", Datatype::Int16, &[1, 0, 2, 0]),
        datum("nan", Datatype::Float64, &f64::NAN.to_le_bytes()),
        text("long", &"'0123456789".repeat(12)),
    ];
    let cards = cards_of(&column(Field::new("a", Datatype::Int16)), &[], &metadata);
    let expected = [
        "OBJECT  = 'O''Neil '",
        "COMMENT one",
        "COMMENT two",
        "HIERARCH OBSERVER OF IT = 'Ada     '",
        "EXPTIME =               1.5E-9",
    ];
    assert_eq!(cards[6..11], expected);
    let part = |card: &String| card[11..card.len() - 1].trim_end_matches('&').to_owned();
    let joined: String = cards[11..].iter().map(part).collect();
    assert_eq!(joined, "''0123456789".repeat(12));
    assert!(cards[11].starts_with("LONG    = '") && cards[12].starts_with("CONTINUE  '") && cards.len() == 14);
}

#[test]
fn names_of_several_words_keep_their_blanks() {
    let metadata = [
        text("ESO DET OUT1 GAIN", "1"),
        text("HIERARCH ESO  INS\tMODE", "2"),
        text("a b", "3"),
        text("A_B", "4"),
        // The same names again.
        text("hierarch a b ", "5"),
        text("HIERARCH EXPTIME", "6"),
        // These are about the file, however they are written.
        text(" end", "no"),
        text("NAXIS1 ", "no"),
        text("hierarch bitpix", "no"),
        text(" \t", "no"),
        text(&"word ".repeat(9), "too long"),
    ];
    let cards = cards_of(&column(Field::new("a", Datatype::Int16)), &[], &metadata);
    let expected = [
        "HIERARCH ESO DET OUT1 GAIN = '1       '",
        "HIERARCH ESO INS MODE = '2       '",
        "HIERARCH A B = '3       '",
        "A_B     = '4       '",
        "EXPTIME = '6       '",
    ];
    assert_eq!(cards[6..], expected);
}

#[test]
fn the_unit_is_that_of_the_values_or_of_the_header_that_was_kept() {
    let unit = |field: Field, metadata: &[Metadatum]| {
        let cards = cards_of(&column(field), &[], metadata);
        let mut found = cards.iter().filter_map(|card| card.strip_prefix("BUNIT   = '"));
        let unit = found.next().map(|rest| rest.split('\'').next().unwrap().trim_end().to_owned());
        assert_eq!(found.next(), None);
        unit
    };
    let kept = [text("bunit", "adu")];
    let noted = Field { notes: vec![text("units", "Jy")], ..Field::new("a", Datatype::Int16) };
    assert_eq!(unit(noted, &kept).as_deref(), Some("Jy"));
    assert_eq!(unit(Field::new("a", Datatype::Int16), &kept).as_deref(), Some("adu"));
    assert_eq!(unit(Field::new("a", Datatype::TimeSec), &kept).as_deref(), Some("s"));
    for none in [text("BUNIT", "ä"), datum("BUNIT", Datatype::Int16, &[1, 0])] {
        assert_eq!(unit(Field::new("a", Datatype::Int16), &[none]), None);
    }
}

#[test]
fn keywords_of_axes_follow_the_part() {
    let float = |key: &str, value: f64| datum(key, Datatype::Float64, &value.to_le_bytes());
    let metadata = [
        float("CRPIX1", 100.0),
        text("CTYPE1", "RA---TAN"),
        text("CTYPE2", "DEC--TAN"),
        datum("WCSAXES", Datatype::Int32, &2i32.to_le_bytes()),
        text("PCOMMENT", "stays"),
    ];
    let column = column(Field::new("a", Datatype::Int16));
    let part = [axis("y", 0, Some((20, 1))), axis("x", 0, Some((10, 1)))];
    assert_eq!(
        cards_of(&column, &part, &metadata)[6..],
        [
            "WCSAXES =                    2",
            "CRPIX1  =                 90.0",
            "CTYPE1  = 'RA---TAN'",
            "CTYPE2  = 'DEC--TAN'",
            "CRPIX2  =                -20.0",
            "PCOMMENT= 'stays   '",
        ]
    );
    let thinned = [axis("y", 0, Some((0, 2))), axis("x", 0, Some((0, 1)))];
    assert_eq!(cards_of(&column, &thinned, &metadata)[6..], ["PCOMMENT= 'stays   '"]);
}

#[test]
fn scale_and_offset_are_those_of_the_values() {
    let mut field = Field::new("a", Datatype::UInt16).with_values_per_cell(Some(2));
    let number = |key: &str, value: f64| datum(key, Datatype::Float64, &value.to_le_bytes());
    field.notes = vec![number("scale_factor", 0.5), number("add_offset", 10.0), text("units", "Jy")];
    let cards = cards_of(&column(field), &[axis("y", 0, None), axis("x", 0, Some((0, 1)))], &[]);
    assert_eq!(cards[3..6].iter().map(|card| card[10..].trim()).collect::<Vec<_>>(), ["2", "3", "2"]);
    for card in ["BSCALE  =                  0.5", "BZERO   =              16394.0", "BUNIT   = 'Jy      '"] {
        assert!(cards.iter().any(|own| own.starts_with(card)), "{card} is missing in {cards:?}");
    }
    assert!(
        cards.iter().any(|card| card == "CTYPE2  = 'x       '") && !cards.iter().any(|card| card.starts_with("CTYPE3"))
    );
}

#[test]
fn text_and_cells_of_any_size_do_not_fit() {
    assert!(check(&Field::new("a", Datatype::StringAscii).with_values_per_cell(Some(3)), 2).is_err());
    assert!(check(&Field::new("a", Datatype::Int32).with_values_per_cell(None), 2).is_err());
    assert!(check(&Field::new("a", Datatype::Int32), 999).is_ok());
    assert!(check(&Field::new("a", Datatype::Int32).with_values_per_cell(Some(2)), 999).is_err());
}

#[test]
fn values_are_prefetched() {
    for datatype in [Datatype::Float64, Datatype::UInt16, Datatype::UInt8] {
        assert_reads_ahead(|sources| {
            let length = 40 * 50 * datatype.size();
            let values = sources.values(Arc::new(vec![3; length]));
            let validity = sources.values(Arc::new(vec![1; 40 * 50]));
            let field = Field { null: Some(vec![0; datatype.size()]), ..Field::new("a", datatype) };
            fits(&Column::fixed(field, vec![40, 50], values).with_validity(validity), &[], &[]).unwrap()
        });
    }
}

proptest! {
    /// Any metadata make cards of 80 printable characters, and each text is the value that its cards have.
    #[test]
    fn any_metadata_make_a_header(entries in proptest::collection::vec(("\\PC{0,12}", "\\PC{0,200}"), 0..12)) {
        let metadata: Vec<Metadatum> = entries.iter().map(|(key, value)| text(key, value)).collect();
        let content = fits(&column(Field::new("a", Datatype::Int16)), &[], &metadata).unwrap();
        let all = read_all(&content);
        prop_assert!(all[..all.len() - 2880].iter().all(|byte| (b' '..=b'~').contains(byte)));
    }
}
