//! Compares text with a simple second writer, which formats cell by cell.

use tilefs_base::content::Forward;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;

use super::matrix_market::{self, MatrixDomain, matrix_market};
use super::*;
use crate::content::compose::Repeat;
use crate::testing::{Sources, assert_random_access, assert_reads_ahead, assert_reads_ahead_within, read_all};
use proptest::prelude::*;

fn le<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

fn text_of(content: &dyn Content) -> String {
    String::from_utf8(read_all(content)).unwrap()
}

fn strings(name: &str, datatype: Datatype, values: &[&[u8]]) -> Column {
    let field = Field::new(name, datatype).with_values_per_cell(None);
    let mut offsets = vec![0u64];
    values.iter().for_each(|value| offsets.push(offsets[offsets.len() - 1] + value.len() as u64));
    Column::variable(
        field,
        vec![values.len() as u64],
        Arc::new(values.concat()),
        le(offsets.iter().map(|o| o.to_le_bytes())),
    )
}

#[test]
fn a_grid_has_a_line_for_each_row() {
    let field = Field::new("a", Datatype::Int8);
    let column = Column::fixed(field.clone(), vec![2, 3], Arc::new(vec![1, 0xff, 0x80, 4, 5, 127]));
    assert_eq!(text_of(&grid(&column).unwrap()), "   1   -1 -128\n   4    5  127\n");
    let column = Column::fixed(field.clone(), vec![3], Arc::new(vec![1, 2, 3]));
    assert_eq!(text_of(&grid(&column).unwrap()), "   1\n   2\n   3\n");
    let column = Column::fixed(field.with_values_per_cell(Some(2)), vec![1, 2], Arc::new(vec![1, 2, 3, 4]));
    assert_eq!(text_of(&grid(&column).unwrap()), "    1    2     3    4\n");
    let words = Field::new("a", Datatype::StringAscii).with_values_per_cell(Some(3));
    let column = Column::fixed(words, vec![2, 2], Arc::new(b"abcd\nfghijkl".to_vec()));
    assert_eq!(text_of(&grid(&column).unwrap()), "abc d f\nghi jkl\n");
}

#[test]
fn nulls_are_readable() {
    let valid = || Arc::new(vec![1u8, 0]) as Arc<dyn Content>;
    let int = Column::fixed(Field::new("a", Datatype::UInt8), vec![2], Arc::new(vec![7, 8])).with_validity(valid());
    assert_eq!(text_of(&grid(&int).unwrap()), "  7\n NA\n");
    let float = Column::fixed(Field::new("a", Datatype::Float32), vec![2], le([1f32, 2.0].map(f32::to_le_bytes)));
    let text = text_of(&grid(&float.with_validity(valid())).unwrap());
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["1.0", "NaN"]);
    let names = strings("a", Datatype::StringUtf8, &[b"x", b"yz"]).with_validity(valid());
    assert_eq!(text_of(&lines(&names).unwrap()), "x\n  \n");
}

#[test]
fn lines_have_one_byte_more_than_values() {
    let column = strings("a", Datatype::StringUtf8, &[b"one", b"", b"t\nw\ro", "drü".as_bytes()]);
    let content = lines(&column).unwrap();
    assert_eq!(text_of(&content), "one\n\nt w o\ndrü\n");
    assert_eq!(content.len(), column.values.len() + 4);
    assert!(lines(&strings("a", Datatype::Blob, &[b"x"])).is_err());
    assert!(lines(&strings("a", Datatype::StringUtf16, &[b"x\0"])).is_err());
    assert_eq!(text_of(&lines(&strings("a", Datatype::StringAscii, &[])).unwrap()), "");
}

fn labelled(name: &str, labels: &[&[u8]], codes: &[u8]) -> Column {
    let values = labels.iter().map(|label| label.to_vec()).collect();
    let labels = Labels { name: "l".into(), datatype: Datatype::StringUtf8, ordered: false, values };
    let field = Field::new(name, Datatype::Int8).with_labels(Arc::new(labels));
    Column::fixed(field, vec![codes.len() as u64], Arc::new(codes.to_vec()))
}

fn measured(columns: &[Column], style: Style) -> Measured {
    Measured::new(table(columns, style).unwrap().table).unwrap()
}

/// Returns everything that [`super::forward`] produces.
fn forward(table: Arc<Table>) -> Vec<u8> {
    let (mut forward, mut all, mut part) = (super::forward(table), Vec::new(), vec![b'#']);
    while forward.next(&mut part).unwrap() {
        all.extend_from_slice(&part);
    }
    all
}

fn sample() -> Vec<Column> {
    let days = [0i64, 19_753, i64::MIN];
    let day = Column::fixed(Field::new("day", Datatype::DateTimeDay), vec![3], le(days.map(i64::to_le_bytes)));
    let pair = Field::new("pair", Datatype::Int16).with_values_per_cell(Some(2));
    vec![
        day,
        labelled("ki,nd\t", &[b"T, \"cell\"", b"B"], &[0, 1, 2]),
        strings("name", Datatype::StringUtf8, &[b"a\tb\"c\"", b"\n", b""]),
        strings("or null", Datatype::StringUtf8, &[b"x\0", b"", b"NA"]).with_validity(Arc::new(vec![1, 0, 1])),
        strings("blob", Datatype::Blob, &[&[0xde, 0xad], &[], &[1]]),
        strings("wide", Datatype::StringUtf16, &[b"", b"", b""]),
        Column::fixed(pair, vec![3], le([1i16, -2, 3, 4, 5, 6].map(i16::to_le_bytes)))
            .with_validity(Arc::new(vec![1, 1, 0])),
    ]
}

#[test]
fn tables_have_names_and_list_omitted_columns() {
    let made = table(&sample(), Style::Tsv).unwrap();
    assert_eq!(made.left_out[0].0, "wide");
    let expected = "day\t\"ki,nd\t\"\tname\tor null\tblob\tpair\n\
        1970-01-01\t\"T, \"\"cell\"\"\"\t\"a\tb\"\"c\"\"\"\tx\0\tdead\t1 -2\n\
        2024-01-31\tB\t\"\n\"\t\t\"\"\t3 4\n\
        \t\t\"\"\t\"NA\"\t01\t\n";
    assert_eq!(text_of(&Measured::new(made.table.clone()).unwrap()), expected);
    assert_eq!(String::from_utf8(forward(made.table)).unwrap(), expected);
    let expected = "day,\"ki,nd\t\",name,or null,blob,pair\n\
        1970-01-01,\"T, \"\"cell\"\"\",\"a\tb\"\"c\"\"\",\"x\0\",\"dead\",1 -2\n\
        2024-01-31,\"B\",\"\n\",,\"\",3 4\n\
        ,,\"\",\"NA\",\"01\",\n";
    assert_eq!(text_of(&measured(&sample(), Style::Csv)), expected);
    let expected = "day\tki,nd\\t\tname\tor null\tblob\tpair\n\
        1970-01-01\tT, \"cell\"\ta\\tb\"c\"\tx\\0\tdead\t1 -2\n\
        2024-01-31\tB\t\\n\t\\N\t\t3 4\n\
        \\N\t\\N\t\tNA\t01\t\\N\n";
    assert_eq!(text_of(&measured(&sample(), Style::Escaped)), expected);
    assert!(table(&[], Style::Tsv).is_err());
    assert!(table(&sample()[5..6], Style::Tsv).is_err());
}

#[test]
fn plain_tables_are_texts_as_they_are() {
    let names: [&[u8]; 5] = [b"#c1", b"NA", b" a ", b"", b"\"x\""];
    let kinds: [&[u8]; 3] = [b"NA", b"", b"#"];
    let columns = [
        strings("a\tb", Datatype::StringUtf8, &names),
        labelled("kind", &kinds, &[0, 1, 2, 3, 0]).with_validity(Arc::new(vec![1, 1, 1, 1, 0])),
    ];
    let plain = |columns: &[Column]| table_without_header(columns, Style::Plain);
    let text = text_of(&Measured::new(plain(&columns).unwrap().table).unwrap());
    assert_eq!(text, "#c1\tNA\nNA\t\n a \t#\n\t\n\"x\"\t\n");
    let long = [b"x".repeat(style::LONG), b"y".to_vec()].concat();
    let content = Measured::new(plain(&[strings("a", Datatype::StringUtf8, &[&long, b"z"])]).unwrap().table).unwrap();
    assert_eq!(read_all(&content), [long.as_slice(), b"\nz\n"].concat());
    for separated in [&b"a\tb"[..], b"a\n", b"\r", &[long.as_slice(), b"\t"].concat()] {
        let table = plain(&[strings("a", Datatype::StringUtf8, &[b"fine", separated])]).unwrap().table;
        let error = Measured::new(table).err().map(|error| error.to_string()).unwrap();
        assert!(error.contains("row 1") && error.contains("a tab or a line break"), "{error}");
    }
    let reason = plain(&[labelled("kind", &[b"a\nb"], &[0])]).err().unwrap().to_string();
    assert!(reason.contains("kind") && reason.contains("a\\nb"), "{reason}");
}

#[test]
fn booleans_are_words_in_tables_and_numbers_in_grids() {
    let column = Column::fixed(Field::new("b", Datatype::Bool), vec![3], le([[0u8], [1], [7]]))
        .with_validity(Arc::new(vec![1, 1, 1]));
    let pair = Field::new("pair", Datatype::Bool).with_values_per_cell(Some(2));
    let pairs = Column::fixed(pair, vec![3], le([[1u8, 0], [0, 0], [1, 1]]));
    for (style, separator) in [(Style::Tsv, "\t"), (Style::Csv, ",")] {
        let text = text_of(&measured(&[column.clone(), pairs.clone()], style));
        let expected = "b|pair\nfalse|true false\ntrue|false false\ntrue|true true\n";
        assert_eq!(text, expected.replace('|', separator));
    }
    assert_eq!(text_of(&*grid(&column).unwrap()).split_whitespace().collect::<Vec<_>>(), ["0", "1", "7"]);
}

#[test]
fn final_nul_of_a_char_is_dropped() {
    let long = [vec![b'x'; style::LONG], b"\0".to_vec()].concat();
    let texts: [&[u8]; 5] = [b"A,<NON_REF>\0", b"\0", b"a\0b", b"", &long];
    let text = text_of(&measured(&[strings("c", Datatype::Char, &texts)], Style::Tsv));
    assert_eq!(text, format!("c\nA,<NON_REF>\n\"\"\na\0b\n\"\"\n\"{}\"\n", "x".repeat(style::LONG)));
    // In other texts it is part of the text.
    let text = text_of(&measured(&[strings("c", Datatype::StringAscii, &texts[..2])], Style::Tsv));
    assert_eq!(text, "c\nA,<NON_REF>\0\n\0\n");
}

#[test]
fn labels_replace_codes() {
    let column = labelled("kind", &[b"T\ncell", b"", b"B", "it's \"ß\" \\".as_bytes()], &[2, 0, 1, 3, 4, 255]);
    assert_eq!(text_of(&Measured::new(label_lines(&column).unwrap()).unwrap()), "B\nT cell\n\nit's \"ß\" \\\n\n\n");
    let lines = label_lines(&column.clone().with_validity(Arc::new(vec![0, 1, 1, 1, 1, 1]))).unwrap();
    assert!(text_of(&Measured::new(lines).unwrap()).starts_with("\nT cell\n"));
    // In a grid, which readers split at blanks.
    let grid = grid(&Column { shape: vec![3, 2], ..column }).unwrap();
    let width = r#""it's \"ß\" \\""#.len();
    let rows: Vec<&str> = vec!["B \"T cell\"", r#""" "it's \"ß\" \\""#, "NA NA"];
    let text = text_of(&grid);
    assert_eq!(
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>(),
        rows
    );
    assert!(text.lines().all(|line| line.len() == 2 * width + 1));
    let numbers = Labels { name: "l".into(), datatype: Datatype::Int16, ordered: false, values: vec![vec![1, 1]] };
    let field = Field::new("a", Datatype::Int8).with_labels(Arc::new(numbers));
    let column = Column::fixed(field.clone(), vec![1], Arc::new(vec![0]));
    assert_eq!(text_of(&measured(&[column], Style::Csv)), "a\n257\n");
    for (datatype, label, text, json) in [
        (Datatype::Bool, vec![1], "true", "true"),
        (Datatype::DateTimeDay, 1i64.to_le_bytes().to_vec(), "1970-01-02", "\"1970-01-02\""),
        (Datatype::Blob, vec![0xff, 0], "\"ff00\"", "\"/wA=\""),
        (Datatype::StringUtf8, b"\xff".to_vec(), "\"\u{fffd}\"", "\"/w==\""),
    ] {
        let labels = Labels { name: "l".into(), datatype, ordered: false, values: vec![label] };
        let field = Field::new("a", Datatype::Int8).with_labels(Arc::new(labels));
        let column = Column::fixed(field, vec![1], Arc::new(vec![0]));
        let csv = read_all(&measured(std::slice::from_ref(&column), Style::Csv));
        assert_eq!(String::from_utf8_lossy(&csv), format!("a\n{text}\n"));
        let lines = Measured::new(json_lines(&[column], |_| false).unwrap().table).unwrap();
        assert_eq!(text_of(&lines), format!("{{\"a\":{json}}}\n"));
    }
    // Several codes per cell have no label.
    let several = Column::fixed(field.with_values_per_cell(Some(2)), vec![1], Arc::new(vec![0, 0]));
    assert_eq!(text_of(&measured(std::slice::from_ref(&several), Style::Csv)), "a\n0 0\n");
    assert!(label_lines(&several).is_err());
}

#[test]
fn matrix_market_counts_from_one() {
    let dimension = |name, values: [i64; 3]| {
        Column::fixed(Field::new(name, Datatype::Int64), vec![3], le(values.map(i64::to_le_bytes)))
    };
    let values =
        Column::fixed(Field::new("v", Datatype::Float32), vec![3], le([1f32, -2.5, 1e30].map(f32::to_le_bytes)));
    let domain = MatrixDomain { first: [-1, 0], lengths: [5, 100] };
    let (rows, columns) = (dimension("r", [-1, 0, 3]), dimension("c", [0, 99, 5]));
    let text = text_of(&matrix_market(&rows, &columns, &values, domain).unwrap());
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["%%MatrixMarket", "matrix", "coordinate", "real", "general"]);
    assert_eq!(words[1], ["5", "100", "3"]);
    assert_eq!(words[2..], [["1", "1", "1.0"], ["2", "100", "-2.5"], ["5", "6", "1e+30"]]);
    let outside = MatrixDomain { first: [0, 0], lengths: [5, 100] };
    let content = matrix_market(&rows, &columns, &values, outside).unwrap();
    assert!(content.read_at(0, &mut vec![0; content.len() as usize]).is_err());
    let dates = Field::new("v", Datatype::DateTimeDay);
    assert!(matrix_market::check(&rows.field, &columns.field, &dates).is_err());
}

#[test]
fn wrong_offsets_are_errors_and_nothing_else() {
    let with = |offsets: &[u64], shape: u64| {
        let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
        let offsets = le(offsets.iter().map(|offset| offset.to_le_bytes()));
        lines(&Column::variable(field, vec![shape], Arc::new(b"abcdef".to_vec()), offsets)).unwrap()
    };
    for offsets in [[0, 3, 2, 6], [0, 1, 2, 5], [1, 2, 3, 6], [0, u64::MAX, 3, 6], [0, 7, 7, 7]] {
        let content = with(&offsets, 3);
        let mut all = vec![0; content.len() as usize];
        assert!(content.read_at(0, &mut all).is_err(), "{offsets:?}");
        for at in 0..all.len() {
            let _ = content.read_at(at as u64, &mut all[at..]);
        }
    }
}

#[test]
fn huge_texts_cost_only_the_part_read() {
    let field = Field::new("a", Datatype::Float32);
    let column = Column::fixed(field.clone(), vec![1 << 20, 1 << 20], Arc::new(Repeat::zeros(4 << 40)));
    let content = grid(&column).unwrap();
    assert_eq!(content.len(), 17 << 40);
    let mut line_end = [0; 8];
    content.read_at((17 << 40) - 8, &mut line_end).unwrap();
    assert_eq!(&line_end, b"    0.0\n");
    // One cell of 2^40 bytes between two short ones.
    let long = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
    let offsets = [0, 1, 1 + (1u64 << 40), 2 + (1u64 << 40)];
    let values = Arc::new(Repeat::new(*b"x", 2 + (1 << 40)));
    let content = lines(&Column::variable(long, vec![3], values, le(offsets.map(u64::to_le_bytes)))).unwrap();
    let mut middle = [0; 1000];
    content.read_at(1 << 39, &mut middle).unwrap();
    assert_eq!(middle, [b'x'; 1000]);
    let mut end = [0; 5];
    content.read_at(content.len() - 5, &mut end).unwrap();
    assert_eq!(&end, b"xx\nx\n");
    let many = field.with_values_per_cell(Some(u32::MAX));
    let values = Arc::new(Repeat::zeros(4 * u64::from(u32::MAX)));
    let content = grid(&Column::fixed(many, vec![1], values)).unwrap();
    content.read_at(1 << 35, &mut middle).unwrap();
    assert!(middle.iter().all(|byte| b" 0.".contains(byte)));
}

/// Returns the text of one cell, formatted the simple way.
fn plain_cell(column: &Column, row: usize, values: &[u8], offsets: &[u64], valid: bool, style: Style) -> Vec<u8> {
    let datatype = column.field.datatype;
    let (from, to) = match column.field.values_per_cell {
        Some(count) => (row * count as usize * datatype.size(), (row + 1) * count as usize * datatype.size()),
        None => (offsets[row] as usize, offsets[row + 1] as usize),
    };
    let values = &values[from..to];
    if !valid {
        return if style == Style::Escaped { b"\\N".to_vec() } else { Vec::new() };
    }
    let quoted = |text: &str| match style {
        Style::Escaped => {
            let escapes = [("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0")];
            escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)).into_bytes()
        }
        _ => format!("\"{}\"", text.replace('"', "\"\"")).into_bytes(),
    };
    if datatype.is_string() {
        let text = std::str::from_utf8(values).unwrap();
        let special = text.contains(['\t', '\n', '\r', '"']) || text.starts_with([' ', '#']) || text.ends_with(' ');
        return match style {
            Style::Tsv if !special && !text.is_empty() && text != "NA" => values.to_vec(),
            _ => quoted(text),
        };
    }
    if datatype == Datatype::Blob {
        let hex: String = values.iter().map(|byte| format!("{byte:02x}")).collect();
        return if style == Style::Csv || hex.is_empty() { quoted(&hex) } else { hex.into_bytes() };
    }
    let words: Vec<String> = values
        .chunks(datatype.size())
        .map(|value| {
            let mut text = Vec::new();
            value::Printer::new(&column.field, None).unwrap().append(value, &mut text);
            String::from_utf8(text).unwrap()
        })
        .collect();
    if words.is_empty() { quoted("") } else { words.join(" ").into_bytes() }
}

fn any_column(rows: usize) -> impl Strategy<Value = (Column, Vec<u8>, Vec<u64>, Vec<u8>)> {
    let types = [
        Datatype::Int16,
        Datatype::Float64,
        Datatype::StringUtf8,
        Datatype::Blob,
        Datatype::DateTimeMs,
        Datatype::UInt8,
    ];
    let lengths = proptest::collection::vec(0u64..6, rows);
    (prop::sample::select(types.to_vec()), 0u32..4, lengths, any::<u64>(), any::<bool>()).prop_map(
        move |(datatype, count, lengths, seed, nullable)| {
            let size = datatype.size() as u64;
            let mut offsets = vec![0];
            for length in lengths {
                let length = if count == 0 { length } else { u64::from(count) };
                offsets.push(offsets[offsets.len() - 1] + length * size);
            }
            let mut state = seed | 1;
            let values: Vec<u8> = (0..offsets[rows])
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as u8 & if datatype.is_string() { 0x7f } else { 0xff }
                })
                .collect();
            let validity: Vec<u8> = (0..rows).map(|row| (!nullable || seed >> (row % 64) & 1 == 1).into()).collect();
            let field = Field::new("c", datatype).with_values_per_cell((count > 0).then_some(count));
            let content: Arc<dyn Content> = Arc::new(values.clone());
            let mut column = match count {
                0 => Column::variable(field, vec![rows as u64], content, le(offsets.iter().map(|o| o.to_le_bytes()))),
                _ => Column::fixed(field, vec![rows as u64], content),
            };
            if nullable {
                column = column.with_validity(Arc::new(validity.clone()));
            }
            (column, values, offsets, validity)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn tables_match_a_simple_writer(
        columns in (0usize..30).prop_flat_map(|rows| proptest::collection::vec(any_column(rows), 1..5)),
        style in prop::sample::select(vec![Style::Tsv, Style::Csv, Style::Escaped]),
    ) {
        let rows = columns[0].3.len();
        let separator = if style == Style::Csv { b',' } else { b'\t' };
        let mut expected = vec![b"c".to_vec(); columns.len()].join(&separator);
        expected.push(b'\n');
        for row in 0..rows {
            let cells: Vec<Vec<u8>> = columns
                .iter()
                .map(|(column, values, offsets, validity)| plain_cell(column, row, values, offsets, validity[row] != 0, style))
                .collect();
            expected.extend(cells.join(&separator));
            expected.push(b'\n');
        }
        let all: Vec<Column> = columns.into_iter().map(|(column, ..)| column).collect();
        let content = measured(&all, style);
        let found = read_all(&content);
        prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected));
        prop_assert_eq!(forward(table(&all, style).unwrap().table), expected);
        assert_random_access(&content);
    }
}

#[test]
fn many_batches_join_without_a_seam() {
    let values: Vec<String> = (0..150_000).map(|i| "x".repeat(i % 17 + 1)).collect();
    let slices: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let numbers = le((0..150_000u32).map(u32::to_le_bytes));
    let numbers = Column::fixed(Field::new("n", Datatype::UInt32), vec![150_000], numbers);
    let columns = [strings("s", Datatype::StringUtf8, &slices), numbers];
    let content = measured(&columns, Style::Tsv);
    let expected: String = values.iter().enumerate().map(|(i, value)| format!("{value}\t{i}\n")).collect();
    let expected = format!("s\tn\n{expected}");
    assert!(text_of(&content) == expected);
    assert!(forward(table(&columns, Style::Tsv).unwrap().table) == expected.as_bytes());
    // In sequence, as a reader does; backwards; and at random.
    let mut parts = vec![0; content.len() as usize];
    for (number, part) in parts.chunks_mut(99_991).enumerate() {
        content.read_at(number as u64 * 99_991, part).unwrap();
    }
    assert!(parts == expected.as_bytes());
    for (number, part) in parts.chunks_mut(99_991).enumerate().rev().step_by(2) {
        part.fill(0);
        content.read_at(number as u64 * 99_991, part).unwrap();
    }
    assert!(parts == expected.as_bytes());
    let mut few = [0; 100];
    for at in (0..expected.len() - 100).step_by(12_347) {
        content.read_at(at as u64, &mut few).unwrap();
        assert_eq!(few, expected.as_bytes()[at..at + 100]);
    }
}

#[test]
fn cells_that_are_longer_than_a_batch_are_whole() {
    let long = style::LONG;
    let quotes = "a\"".repeat(3 * long);
    let texts: [&[u8]; 4] = [b"one", quotes.as_bytes(), &b"x".repeat(long), b"NA"];
    let blob = vec![0xab; 2 * long];
    let blobs: [&[u8]; 4] = [b"", &blob, b"", b"\x01"];
    let numbers: Vec<Vec<u8>> = [0usize, 1, long, 2].iter().map(|n| vec![1; 2 * n]).collect();
    let numbers: Vec<&[u8]> = numbers.iter().map(Vec::as_slice).collect();
    let columns = [
        strings("text", Datatype::StringUtf8, &texts),
        strings("blob", Datatype::Blob, &blobs).with_validity(Arc::new(vec![1, 1, 0, 1])),
        strings("list", Datatype::Int16, &numbers),
        strings("null", Datatype::StringUtf8, &texts).with_validity(Arc::new(vec![0, 0, 0, 1])),
    ];
    let list = |count: usize| vec!["257"; count].join(",").replace(',', " ");
    let doubled = quotes.replace('"', "\"\"");
    for (style, separator) in [(Style::Tsv, "\t"), (Style::Csv, ",")] {
        let text = |text: &str| if style == Style::Csv { format!("\"{text}\"") } else { text.to_owned() };
        let rows = [
            ["text", "blob", "list", "null"].map(str::to_owned),
            [text("one"), "\"\"".to_owned(), "\"\"".to_owned(), String::new()],
            [format!("\"{doubled}\""), text(&"ab".repeat(2 * long)), list(1), String::new()],
            [text(&"x".repeat(long)), String::new(), list(long), String::new()],
            ["\"NA\"".to_owned(), text("01"), list(2), "\"NA\"".to_owned()],
        ];
        let expected: String = rows.iter().map(|row| row.join(separator) + "\n").collect();
        let content = measured(&columns, style);
        assert!(text_of(&content) == expected, "{style:?}");
        assert!(forward(table(&columns, style).unwrap().table) == expected.as_bytes());
        let mut few = [0; 10];
        for at in (0..expected.len() - 10).step_by(7919) {
            content.read_at(at as u64, &mut few).unwrap();
            assert_eq!(few, expected.as_bytes()[at..at + 10], "{style:?} at {at}");
        }
    }
}

#[test]
fn unmeasurable_tables_are_errors() {
    let field = Field::new("a", Datatype::StringUtf8).with_values_per_cell(None);
    for offsets in [[0u64, 3, 2, 6], [0, u64::MAX, 3, 6], [0, 7, 7, 7]] {
        let offsets = le(offsets.map(u64::to_le_bytes));
        let column = Column::variable(field.clone(), vec![3], Arc::new(b"abcdef".to_vec()), offsets);
        let table = table(&[column], Style::Tsv).unwrap().table;
        assert!(Measured::new(table.clone()).is_err());
        let (mut forward, mut out) = (super::forward(table), Vec::new());
        assert!(forward.next(&mut out).unwrap());
        assert!(forward.next(&mut out).is_err());
    }
}

/// Texts and, for each, a number that may be null.
fn texts_and_numbers(rows: usize) -> [Column; 2] {
    let texts: Vec<String> = (0..rows).map(|row| "x".repeat(row * 7 % 41)).collect();
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let numbers = Column::fixed(Field::new("n", Datatype::UInt32), vec![rows as u64], Arc::new(vec![1; 4 * rows]));
    let validity = Arc::new((0..rows).map(|row| u8::from(row % 3 > 0)).collect::<Vec<u8>>());
    [strings("s", Datatype::StringUtf8, &texts), numbers.with_validity(validity)]
}

#[test]
fn rows_of_fixed_width_are_prefetched() {
    let [texts, numbers] = texts_and_numbers(900);
    assert_reads_ahead(|sources| grid(&sources.column(numbers.clone())).unwrap());
    assert_reads_ahead(|sources| lines(&sources.column(texts.clone())).unwrap());
    let pairs = Field::new("p", Datatype::Int16).with_values_per_cell(Some(2));
    let pairs = Column::fixed(pairs, vec![900], Arc::new(vec![2; 3600]));
    assert_reads_ahead(|sources| {
        let columns = [&pairs, &texts, &numbers].map(|column| sources.column(column.clone()));
        let columns = columns.map(|column| TextColumn::new(&column, None).unwrap());
        Arc::new(TextLines::new(b"a header\n".to_vec(), columns.into(), 900, b' ', 1).unwrap())
    });
    // For more rows than are written together, unneeded offsets are read; prefetching reads more of them.
    let [texts, numbers] = texts_and_numbers(40_000);
    assert_reads_ahead(|sources| grid(&sources.column(numbers.clone())).unwrap());
    assert_reads_ahead_within(1 << 20, |sources| lines(&sources.column(texts.clone())).unwrap());
}

#[test]
fn rows_between_checkpoints_are_prefetched() {
    let columns = texts_and_numbers(8_000);
    let table_of = |sources: &mut Sources, columns: &[Column]| -> Arc<dyn Content> {
        let columns: Vec<Column> = columns.iter().map(|column| sources.column(column.clone())).collect();
        Arc::new(measured(&columns, Style::Csv))
    };
    assert_reads_ahead_within(64 << 10, |sources| table_of(sources, &columns));
    // For cells longer than what is read at a time, only parts are read.
    let long = style::LONG;
    let texts: [&[u8]; 4] = [b"one", &b"x".repeat(9 * long), b"", b"three"];
    let blobs: [&[u8]; 4] = [b"", &[0xab; 7], &vec![0xab; 5 * long], b"\x01"];
    let columns = [strings("text", Datatype::StringUtf8, &texts), strings("blob", Datatype::Blob, &blobs)];
    assert_reads_ahead_within(256 << 10, |sources| table_of(sources, &columns));
}

#[test]
fn prefetching_formats_nothing() {
    let rows = 1 << 55;
    let column = Column::fixed(Field::new("a", Datatype::Float32), vec![rows], Arc::new(Repeat::zeros(4 * rows)));
    let content = grid(&column).unwrap();
    content.read(3, Output::Ahead(content.len() - 5)).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn saved_tables_restore_and_damaged_ones_fail(
        lengths in prop::collection::vec(0usize..120, 0..2500),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 8),
    ) {
        let values: Vec<Vec<u8>> = lengths.iter().map(|length| vec![b'a' + (length % 26) as u8; *length]).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let table = table(&[strings("name", Datatype::StringUtf8, &values)], Style::Tsv).unwrap().table;
        let measured = Measured::new(table.clone()).unwrap();
        let (bytes, text) = (measured.to_bytes(), read_all(&measured));
        let again = Measured::of_saved(table.clone(), &bytes).unwrap();
        prop_assert_eq!(&read_all(&again), &text);
        assert_random_access(&again);
        prop_assert!(Measured::of_saved(table.clone(), &bytes[..bytes.len() - 1]).is_none());
        for (at, byte) in changes {
            let mut altered = bytes.clone();
            altered[at.index(bytes.len())] = byte;
            let Some(altered) = Measured::of_saved(table.clone(), &altered) else { continue };
            let mut out = vec![0; altered.len().min(1 << 20) as usize];
            // Reading from the front passes every checkpoint.
            if altered.read_at(0, &mut out).is_ok() {
                prop_assert!(text.starts_with(&out));
            }
            let middle = out.len() as u64 / 2;
            let _ = altered.read_at(middle, &mut out[..(altered.len() - middle).min(100) as usize]);
        }
    }
}

fn json(columns: &[Column]) -> Measured {
    Measured::new(json_lines(columns, |_| false).unwrap().table).unwrap()
}

#[test]
fn rows_are_json_objects() {
    let valid = || Arc::new(vec![1u8, 1, 0]) as Arc<dyn Content>;
    let of = |name: &str, datatype, values| Column::fixed(Field::new(name, datatype), vec![3], values);
    let floats = [0.5f64, f64::NEG_INFINITY, f64::NAN];
    let days = [19_753i64, i64::MIN, 0];
    let blob = Field::new("blob", Datatype::Blob).with_values_per_cell(Some(2));
    let pair = Field::new("pair", Datatype::Float32).with_values_per_cell(Some(2));
    let columns = [
        of("small", Datatype::Int32, le([1i32, -2, i32::MAX].map(i32::to_le_bytes))),
        of("large", Datatype::UInt64, le([1u64, u64::MAX, 0].map(u64::to_le_bytes))).with_validity(valid()),
        of("float", Datatype::Float64, le(floats.map(f64::to_le_bytes))),
        of("is", Datatype::Bool, Arc::new(vec![0, 1, 1])),
        of("day", Datatype::DateTimeDay, le(days.map(i64::to_le_bytes))),
        Column::fixed(blob, vec![3], Arc::new(vec![0, 255, 1, 2, 3, 4])),
        Column::fixed(pair, vec![3], le([1f32, 2.0, -0.0, f32::NAN, 0.1, 1e30].map(f32::to_le_bytes))),
        strings("a \"b\"", Datatype::StringUtf8, &["é\n\u{1}\\".as_bytes(), b"", b"x"]),
        labelled("kind", &[b"T cell", b"B"], &[1, 0, 5]),
    ];
    let content = json(&columns);
    let text = text_of(&content);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        r#"{"small":1,"large":"1","float":0.5,"is":false,"day":"2024-01-31","blob":"AP8=","pair":[1.0,2.0],"a \"b\"":"é\n\u0001\\","kind":"B"}"#
    );
    assert_eq!(
        lines[1],
        r#"{"small":-2,"large":"18446744073709551615","float":"-Infinity","is":true,"day":null,"blob":"AQI=","pair":[-0.0,"NaN"],"a \"b\"":"","kind":"T cell"}"#
    );
    assert!(
        lines[2].contains(r#""large":null,"float":"NaN""#) && lines[2].ends_with(r#""kind":null}"#),
        "{}",
        lines[2]
    );
    for line in lines {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert_random_access(&content);
    let numbers = json_lines(&columns[1..2], |_| true).unwrap().table;
    assert_eq!(
        text_of(&Measured::new(numbers).unwrap()),
        "{\"large\":1}\n{\"large\":18446744073709551615}\n{\"large\":null}\n"
    );
}

/// The bytes of a point in well-known binary.
fn point(x: f64, y: f64) -> Vec<u8> {
    [&[1, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat()
}

#[test]
fn features_have_identifiers_and_exact_numbers() {
    const EXACT: i64 = 1 << 53;
    let [here, there] = [point(1.0, 2.0), point(0.5, -1.0)];
    let shapes =
        strings("shape", Datatype::GeomWkb, &[&here, b"", &there, &here]).with_validity(Arc::new(vec![1, 1, 1, 0]));
    let of = |name: &str, datatype, values| Column::fixed(Field::new(name, datatype), vec![4], values);
    let ids = of("FID", Datatype::Int64, le([7i64, EXACT, -EXACT - 1, i64::MIN].map(i64::to_le_bytes)));
    let counts = of("id", Datatype::UInt64, le([0, EXACT as u64 + 1, EXACT as u64, u64::MAX].map(u64::to_le_bytes)));
    let columns = [ids.clone(), counts, of("small", Datatype::Int32, le([i32::MIN; 4].map(i32::to_le_bytes)))];
    let content = Measured::new(geojson_lines(&shapes, Some(&ids), &columns).unwrap().table).unwrap();
    assert_random_access(&content);
    let text = text_of(&content);
    let expected = [
        r#"{"type":"Feature","id":7,"geometry":{"type":"Point","coordinates":[1.0,2.0]},"properties":{"FID":7,"id":0,"small":-2147483648}}"#,
        r#"{"type":"Feature","id":9007199254740992,"geometry":null,"properties":{"FID":9007199254740992,"id":"9007199254740993","small":-2147483648}}"#,
        r#"{"type":"Feature","id":"-9007199254740993","geometry":{"type":"Point","coordinates":[0.5,-1.0]},"properties":{"FID":"-9007199254740993","id":9007199254740992,"small":-2147483648}}"#,
        r#"{"type":"Feature","id":"-9223372036854775808","geometry":null,"properties":{"FID":"-9223372036854775808","id":"18446744073709551615","small":-2147483648}}"#,
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let without = Measured::new(geojson_lines(&shapes, None, &columns[2..]).unwrap().table).unwrap();
    assert!(text_of(&without).starts_with(r#"{"type":"Feature","geometry":{"type":"Point""#));
}

#[test]
fn long_values_in_json_are_cut_between_characters() {
    let long = "a".to_owned() + &"é\"".repeat(style::LONG);
    let bytes: Vec<u8> = (0..style::LONG * 2 + 5).map(|number| number as u8).collect();
    let list: Vec<u8> = vec![7; style::LONG + 3];
    let columns = [
        strings("text", Datatype::StringUtf8, &[long.as_bytes(), b"short"]),
        strings("blob", Datatype::Blob, &[&bytes, b"\0"]),
        strings("list", Datatype::UInt8, &[&list, b""]),
    ];
    let content = json(&columns);
    let text = text_of(&content);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["text"], long.as_str());
    assert_eq!(first["list"].as_array().unwrap().len(), list.len());
    use base64::Engine;
    assert_eq!(base64::engine::general_purpose::STANDARD.decode(first["blob"].as_str().unwrap()).unwrap(), bytes);
    assert_eq!(text.lines().nth(1).unwrap(), r#"{"text":"short","blob":"AA==","list":[]}"#);
    assert_random_access(&content);
}

#[test]
fn json_of_what_is_not_utf8_is_an_error() {
    let cut = [b"x".repeat(style::LONG), b"\xc3".to_vec()].concat();
    for text in [&b"\xff"[..], b"\xc3", &cut] {
        let column = strings("a", Datatype::StringAscii, &[text]);
        assert!(Measured::new(json_lines(&[column], |_| false).unwrap().table).is_err());
    }
}
