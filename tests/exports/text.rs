//! awk, R, Fortran, NumPy, SciPy, pandas, Polars, DuckDB, pyarrow, SQLite and Python's own reader read the exact values
//! from our texts.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tilefs_base::content::Content;
use tilefs_export::text::matrix_market::{MatrixDomain, matrix_market};
use tilefs_export::text::{Measured, Style, grid, json_lines, lines, table};
use tilefs_export::{Column, Field, Labels};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, floats, has, python, r_has, run, write};

#[test]
fn grids_read_back_to_the_same_floats() {
    let folder = tempfile::tempdir().unwrap();
    let temp = floats("temp", &[40, 50]);
    write(folder.path(), "temp.f32", &temp.values);
    write(folder.path(), "temp.txt", &grid(&temp).unwrap());
    let doubles = bytes((0..2000).map(|i| ((i as f64).exp() * if i % 2 == 0 { 1.0 } else { -1e-200 }).to_le_bytes()));
    let wide = Column::fixed(Field::new("wide", Datatype::Float64), vec![40, 50], doubles);
    write(folder.path(), "wide.f64", &wide.values);
    write(folder.path(), "wide.txt", &grid(&wide).unwrap());
    python(
        folder.path(),
        "numpy",
        r#"
for name, type in ('temp', 'f4'), ('wide', 'f8'):
    raw = numpy.fromfile(f'{name}.{type.replace("f4", "f32").replace("f8", "f64")}', '<' + type).reshape(40, 50)
    text = numpy.loadtxt(name + '.txt', dtype=type)
    assert numpy.array_equal(text, raw, equal_nan=True), name
    assert numpy.array_equal(numpy.signbit(text[raw == 0]), numpy.signbit(raw[raw == 0]))
"#,
    );
    if has("awk") {
        // The second row, third column, and how many cells there are.
        let script = "{ n += NF } NR == 2 { printf \"%.6g \", $3 } END { print n, NR }";
        let expected = (52f32 * 0.7).sin() * 10f32.powi(52 % 30);
        let found = run(folder.path(), "awk", &[script, "temp.txt"]);
        let words: Vec<f64> = found.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert!((words[0] / f64::from(expected) - 1.0).abs() < 1e-5, "{found}");
        assert_eq!(words[1..], [2000.0, 40.0]);
    }
    if has("Rscript") {
        let script = r#"
text <- as.matrix(read.table("wide.txt"))
raw <- matrix(readBin("wide.f64", "numeric", 2000, 8), 40, 50, byrow = TRUE)
stopifnot(identical(unname(text), raw))
text <- as.matrix(read.table("temp.txt"))
raw <- matrix(readBin("temp.f32", "numeric", 2000, 4), 40, 50, byrow = TRUE)
stopifnot(is.nan(text[1, 1]), text[1, 2] == Inf, text[1, 3] == -Inf)
stopifnot(all(abs(text[-1, ] / raw[-1, ] - 1) < 1e-7))
"#;
        run(folder.path(), "Rscript", &["-e", script]);
    }
    if has("gfortran") {
        let program = r#"
program same
  real(8) :: text(50, 40), raw(50, 40)
  real(4) :: single(50, 40), single_raw(50, 40)
  open(10, file='wide.txt'); read(10, *) text
  open(11, file='wide.f64', access='stream', form='unformatted'); read(11) raw
  if (any(text /= raw .and. .not. (text /= text .and. raw /= raw))) stop 1
  open(12, file='temp.txt'); read(12, *) single
  open(13, file='temp.f32', access='stream', form='unformatted'); read(13) single_raw
  if (any(single /= single_raw .and. .not. (single /= single .and. single_raw /= single_raw))) stop 2
end program
"#;
        write(folder.path(), "same.f90", &program.as_bytes().to_vec());
        run(folder.path(), "gfortran", &["-o", "same", "same.f90"]);
        run(folder.path(), "./same", &[]);
    }
}

#[test]
fn dates_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<i64> = (-60..61).map(|i: i64| i.signum() * 3i64.pow(i.unsigned_abs().min(30) as u32) + i).collect();
    for (name, datatype) in [
        ("Y", Datatype::DateTimeYear),
        ("M", Datatype::DateTimeMonth),
        ("W", Datatype::DateTimeWeek),
        ("D", Datatype::DateTimeDay),
        ("h", Datatype::DateTimeHr),
        ("m", Datatype::DateTimeMin),
        ("s", Datatype::DateTimeSec),
        ("ms", Datatype::DateTimeMs),
        ("us", Datatype::DateTimeUs),
        ("ns", Datatype::DateTimeNs),
        ("ps", Datatype::DateTimePs),
        ("fs", Datatype::DateTimeFs),
        ("as", Datatype::DateTimeAs),
    ] {
        // Years that NumPy can parse.
        let values: Vec<i64> = values.iter().map(|v| if name.len() == 1 { v % 5000 } else { *v }).collect();
        let column = Column::fixed(Field::new("t", datatype), vec![121], bytes(values.iter().map(|v| v.to_le_bytes())));
        write(folder.path(), &format!("{name}.txt"), &grid(&column).unwrap());
        write(folder.path(), &format!("{name}.i64"), &column.values);
    }
    python(
        folder.path(),
        "numpy",
        r#"
for unit in 'Y M W D h m s ms us ns ps fs as'.split():
    raw = numpy.fromfile(unit + '.i64', '<i8').view(f'M8[{unit}]')
    for text, date in zip(open(unit + '.txt'), raw):
        # Where NumPy prints the years as ISO 8601 does; the finest units do not leave the century.
        if unit in ('ps', 'fs', 'as') or 0 <= date.astype('M8[Y]').astype(int) + 1970 < 10000:
            assert numpy.datetime64(text.strip(), unit) == date, (text, date)
            assert text.strip() == str(date), (text, date)
"#,
    );
}

fn texts(name: &str, values: &[&str]) -> Column {
    let field = Field::new(name, Datatype::StringUtf8).with_values_per_cell(None);
    let mut end = 0u64;
    let mut offsets = vec![0u64.to_le_bytes()];
    for value in values {
        end += value.len() as u64;
        offsets.push(end.to_le_bytes());
    }
    Column::variable(field, vec![values.len() as u64], Arc::new(values.concat().into_bytes()), bytes(offsets))
}

/// Texts that could break a table; `None` is null.
const TEXTS: [Option<&str>; 22] = [
    Some("Dendritic"),
    Some(""),
    None,
    Some("NA"),
    Some("comma, and"),
    Some("tab\tand"),
    Some("line\nbreak"),
    Some("return\rand"),
    Some("both\r\n"),
    Some("\"quo\"\"ted\""),
    Some("\""),
    Some(" before"),
    Some("after "),
    Some("null"),
    Some("NaN"),
    Some("# number"),
    Some("\\N \\t"),
    Some("Größe"),
    Some("it's"),
    Some("1e5"),
    Some("007"),
    Some("2024-01-31"),
];

/// The table of [`TEXTS`], numbers, dates and labels, as `cells.tsv` and `cells.csv`. `expected.json` has the values;
/// in `with_zeros.csv` and `with_zeros.tsv` one text has a zero byte. `cells.lines.tsv` has a line for each row.
fn write_tables(folder: &Path) {
    let rows = TEXTS.len();
    let is_null = |row: usize| row % 5 == 2;
    let valid = || Arc::new((0..rows).map(|row| u8::from(!is_null(row))).collect::<Vec<u8>>());
    let pick =
        |row: usize, values: &[Value]| if is_null(row) { Value::Null } else { values[row % values.len()].clone() };
    let column = |name: &str, datatype, values: Arc<dyn Content>| {
        Column::fixed(Field::new(name, datatype), vec![rows as u64], values)
    };
    let signed = [0, -1, i64::MAX, i64::MIN, 7];
    let unsigned = [0, 1 << 63, u64::MAX, 42];
    let floats = [0.1, 1e308, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -2.5e-7, 3.0];
    let days = [19_753i64, -1, 0];
    let instants = [1_706_696_100_250i64, -1, 0];
    let words = ["T cell, \"CD4\"", "B", "NA"];
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
    };
    let mut kind = column("kind", Datatype::Int8, Arc::new((0..rows).map(|row| (row % 3) as u8).collect::<Vec<u8>>()));
    kind.field.labels = Some(Arc::new(labels));
    let text = TEXTS.map(Option::unwrap_or_default);
    let text_valid = Arc::new(TEXTS.map(|text| u8::from(text.is_some())).to_vec());
    let mut columns = vec![
        column("id", Datatype::Int64, bytes((0..rows).map(|row| signed[row % 5].to_le_bytes()))),
        texts("text, \"quoted\"", &text).with_validity(text_valid.clone()),
        column("unsigned", Datatype::UInt64, bytes((0..rows).map(|row| unsigned[row % 4].to_le_bytes())))
            .with_validity(valid()),
        column("float", Datatype::Float64, bytes((0..rows).map(|row| floats[row % 9].to_le_bytes())))
            .with_validity(valid()),
        column("day", Datatype::DateTimeDay, bytes((0..rows).map(|row| days[row % 3].to_le_bytes())))
            .with_validity(valid()),
        column("instant", Datatype::DateTimeMs, bytes((0..rows).map(|row| instants[row % 3].to_le_bytes()))),
        kind.with_validity(valid()),
    ];
    // JSON has no infinities, so floats are texts that Python parses.
    let floats = floats.map(|float| json!(format!("{float:?}")));
    let all = |values: &[Value]| (0..rows).map(|row| pick(row, values)).collect::<Vec<_>>();
    let dates = |texts: [&str; 3]| texts.map(|text| json!(text));
    let expected = json!({
        "id": (0..rows).map(|row| signed[row % 5]).collect::<Vec<_>>(),
        "text": TEXTS,
        "unsigned": all(&unsigned.map(|value| json!(value))),
        "float": all(&floats),
        "day": all(&dates(["2024-01-31", "1969-12-31", "1970-01-01"])),
        "instant": (0..rows).map(|row| ["2024-01-31T10:15:00.250", "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000"][row % 3]).collect::<Vec<_>>(),
        "kind": all(&words.map(|word| json!(word))),
    });
    std::fs::write(folder.join("expected.json"), expected.to_string()).unwrap();
    for (style, extension) in [(Style::Tsv, "tsv"), (Style::Csv, "csv"), (Style::Escaped, "lines.tsv")] {
        let made = |columns: &[Column]| Measured::new(table(columns, style).unwrap().table).unwrap();
        write(folder, &format!("cells.{extension}"), &made(&columns));
    }
    write(folder, "cells.jsonl", &Measured::new(json_lines(&columns, |_| false).unwrap().table).unwrap());
    columns[1] = texts("text, \"quoted\"", &text.map(|text| if text == "it's" { "zero\0byte" } else { text }));
    for (style, extension) in [(Style::Tsv, "tsv"), (Style::Csv, "csv")] {
        let made = Measured::new(table(&columns[..2], style).unwrap().table).unwrap();
        write(folder, &format!("with_zeros.{extension}"), &made);
    }
}

/// The common part of the scripts below. `same` compares a column exactly: floats by their bits.
const COMPARE: &str = r#"
import json, math
expected = json.load(open('expected.json'))
expected['float'] = [None if value is None else float(value) for value in expected['float']]
name = 'text, "quoted"'

def same(got, column, null=None):
    want = [null if value is None else value for value in expected[column]]
    show = lambda value: (repr(value), type(value) is float)
    assert [show(value) for value in got] == [show(value) for value in want], (column, list(got), want)

files = (('cells.csv', ','), ('cells.tsv', '\t'))
def zeros(got):
    assert [value for value in got if value and '\0' in value] == ['zero\0byte'], got
"#;

#[test]
fn pandas_reads_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
for file, separator in files:
    # As it comes: the types are what they are.
    d = pandas.read_csv(file, sep=separator)
    assert list(d.columns) == ['id', name, 'unsigned', 'float', 'day', 'instant', 'kind'], d.columns
    assert d['id'].dtype == 'int64' and d['float'].dtype == 'float64', d.dtypes
    assert math.isinf(d['float'].max()) and d[name][0] == 'Dendritic'
    # Exactly: texts as they are, where an empty one and a null are one to pandas.
    exact = {'float_precision': 'round_trip'} if int(pandas.__version__.split('.')[0]) < 3 else {}
    d = pandas.read_csv(file, sep=separator, keep_default_na=False, dtype={name: str, 'kind': str, 'unsigned': 'UInt64'},
                        na_values={'unsigned': [''], 'float': ['', 'NaN'], 'day': ['']}, parse_dates=['day', 'instant'], **exact)
    same(d['id'].tolist(), 'id')
    same(d[name].tolist(), 'text', null='')
    same([None if value is pandas.NA else value for value in d['unsigned'].tolist()], 'unsigned')
    nan = [None if value is None or math.isnan(value) else value for value in expected['float']]
    assert [repr(None if math.isnan(value) else value) for value in d['float']] == [repr(value) for value in nan]
    same([None if pandas.isna(value) else str(value.date()) for value in d['day']], 'day')
    same([value.isoformat(timespec='milliseconds') for value in d['instant']], 'instant')
    same(d['kind'].tolist(), 'kind', null='')
    zeros(pandas.read_csv('with_zeros.' + file[-3:], sep=separator, keep_default_na=False)[name])
"#;
    python(folder.path(), "pandas", &format!("{COMPARE}{script}"));
}

/// Integers of 64 bits are strings of digits, and infinities and not-a-number strings that all readers cast to doubles.
#[test]
fn jq_duckdb_and_pandas_read_the_table_as_json() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
import io, shutil, subprocess
columns = ['id', name, 'unsigned', 'float', 'day', 'instant', 'kind']
def check(rows):
    assert [list(row) for row in rows] == [columns] * len(rows), rows
    integer = lambda value: None if value is None else int(value)
    same([integer(row['id']) for row in rows], 'id')
    same([integer(row['unsigned']) for row in rows], 'unsigned')
    same([row['float'] if row['float'] is None else float(row['float']) for row in rows], 'float')
    for column in 'day', 'instant', 'kind':
        same([row[column] for row in rows], column)
    same([row[name] for row in rows], 'text')

check([json.loads(line) for line in open('cells.jsonl', encoding='utf-8')])
if shutil.which('jq'):
    out = subprocess.run(['jq', '-c', '.', 'cells.jsonl'], check=True, capture_output=True, text=True).stdout
    # jq prints -0.0 as -0.
    check([json.loads(line, parse_int=float) for line in out.split('\n')[:-1]])
# pandas refuses denormal numbers.
lines = io.StringIO(open('cells.jsonl', encoding='utf-8').read().replace('5e-324', '"5e-324"'))
d = pandas.read_json(lines, lines=True, dtype=False, convert_dates=False, precise_float=True)
check([{key: None if not isinstance(value, str) and pandas.isna(value) else value for key, value in row.items()}
       for row in d.to_dict('records')])
types = {'id': 'BIGINT', name: 'VARCHAR', 'unsigned': 'UBIGINT', 'float': 'DOUBLE', 'day': 'DATE',
         'instant': 'TIMESTAMP', 'kind': 'VARCHAR'}
d = duckdb.sql(f"from read_json('cells.jsonl', columns={types!r})")
rows = [dict(zip(d.columns, row)) for row in d.fetchall()]
for row in rows:
    row['day'] = row['day'] and str(row['day'])
    row['instant'] = row['instant'].isoformat(timespec='milliseconds')
check(rows)
"#;
    python(folder.path(), "pandas, duckdb", &format!("{COMPARE}{script}"));
}

#[test]
fn polars_reads_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
for file, separator in files:
    # Polars leaves doubled quotes in names as they are.
    read = lambda file, **options: (lambda d: d.rename({d.columns[1]: d.columns[1].replace('""', '"')}))(
        polars.read_csv(file, separator=separator, **options))
    d = read(file)
    assert d.columns == ['id', name, 'unsigned', 'float', 'day', 'instant', 'kind'], d.columns
    for column in 'id', 'unsigned', 'float', 'kind':
        same(d[column].to_list(), column)
    same(d[name].to_list(), 'text')
    d = read(file, try_parse_dates=True)
    same([value and str(value) for value in d['day']], 'day')
    same([value.isoformat(timespec='milliseconds') for value in d['instant']], 'instant')
    zeros(read('with_zeros.' + file[-3:])[name])
"#;
    python(folder.path(), "polars", &format!("{COMPARE}{script}"));
}

#[test]
fn duckdb_reads_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
quoted = '"text, ""quoted"""'
for file, separator in files:
    # As it comes.
    assert duckdb.sql(f"select count(*) from '{file}' where {quoted} = 'Dendritic'").fetchall() == [(1,)]
    types = dict(zip(*(lambda table: (table.columns, map(str, table.types)))(duckdb.sql(f"from '{file}'"))))
    assert types == {'id': 'BIGINT', name: 'VARCHAR', 'unsigned': 'HUGEINT', 'float': 'DOUBLE', 'day': 'DATE',
                     'instant': 'TIMESTAMP', 'kind': 'VARCHAR'}, types
    # A null and an empty text apart.
    d = f"select row_number() over () as number, * from read_csv('{file}', allow_quoted_nulls=false, strict_mode=true, parallel=false)"
    rows = duckdb.sql(f"select * exclude (number) from ({d}) order by number").fetchall()
    columns = dict(zip(['id', 'text', 'unsigned', 'float', 'day', 'instant', 'kind'], zip(*rows)))
    for column in 'id', 'text', 'unsigned', 'float', 'kind':
        same(columns[column], column)
    same([value and str(value) for value in columns['day']], 'day')
    same([value.isoformat(timespec='milliseconds') for value in columns['instant']], 'instant')
    zeros([row[1] for row in duckdb.sql(f"from 'with_zeros.{file[-3:]}'").fetchall()])
"#;
    python(folder.path(), "duckdb", &format!("{COMPARE}{script}"));
}

#[test]
fn pyarrow_reads_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
read = lambda file, separator, **options: pyarrow.csv.read_csv(
    file, parse_options=pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=True),
    convert_options=pyarrow.csv.ConvertOptions(**options))
for file, separator in files:
    # Only the numbers over 2^63 need to be told to be what they are.
    t = read(file, separator, column_types={'unsigned': pyarrow.uint64()}, null_values=[''], strings_can_be_null=True,
             quoted_strings_can_be_null=False)
    for column in 'id', 'unsigned', 'float', 'kind':
        same(t[column].to_pylist(), column)
    same(t[name].to_pylist(), 'text')
    same([value and str(value) for value in t['day'].to_pylist()], 'day')
    same([value.isoformat(timespec='milliseconds') for value in t['instant'].cast(pyarrow.timestamp('ms')).to_pylist()], 'instant')
    assert str(t['day'].type) == 'date32[day]' and str(t['float'].type) == 'double'
    zeros(read('with_zeros.' + file[-3:], separator)[name].to_pylist())
"#;
    python(folder.path(), "pyarrow, pyarrow.csv", &format!("{COMPARE}{script}"));
}

#[test]
fn python_reads_the_table() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
for file, separator in files:
    head, *rows = csv.reader(open(file, newline=''), delimiter=separator)
    assert head == ['id', name, 'unsigned', 'float', 'day', 'instant', 'kind']
    columns = dict(zip(['id', 'text', 'unsigned', 'float', 'day', 'instant', 'kind'], zip(*rows)))
    for column in 'text', 'day', 'instant', 'kind':
        same(columns[column], column, null='')
    same([int(value) for value in columns['id']], 'id')
    same([int(value) if value else None for value in columns['unsigned']], 'unsigned')
    same([float(value) if value else None for value in columns['float']], 'float')
"#;
    python(folder.path(), "csv", &format!("{COMPARE}{script}"));
}

#[test]
fn r_reads_the_table() {
    if !has("Rscript") {
        return;
    }
    // Without the package, R reads the table with its own functions.
    r_has("data.table");
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    // R has no 64-bit integers, so their texts are compared. It also has no null, and only one kind of line break.
    let texts: Vec<String> =
        TEXTS.iter().map(|text| text.unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n")).collect();
    std::fs::write(folder.path().join("texts"), texts.join("\0") + "\0").unwrap();
    let script = r#"
texts <- readBin("texts", "character", 22)
Encoding(texts) <- "UTF-8"
check <- function(d) {
  stopifnot(names(d) == c("id", "text, \"quoted\"", "unsigned", "float", "day", "instant", "kind"), nrow(d) == 22)
  stopifnot(d$id[1:4] == c("0", "-1", "9223372036854775807", "-9223372036854775808"), is.na(d$unsigned[3]))
  stopifnot(d$unsigned[c(1, 2, 7)] == c("0", "9223372036854775808", "18446744073709551615"))
  stopifnot(identical(d$float[c(1, 2, 4, 5, 7)], c(0.1, 1e308, Inf, -Inf, 5e-324)), is.na(d$float[3]), is.nan(d$float[6]))
  stopifnot(1 / d$float[12] == -Inf, as.Date(d$day[c(1, 2)]) == as.Date(c("2024-01-31", "1969-12-31")), is.na(d$float[13]))
  stopifnot(d$kind[c(1, 2)] == c("T cell, \"CD4\"", "B"), d$kind[9] == "NA")
}
types <- c("character", "character", "character", "numeric", "character", "character", "character")
for (file in c("cells.csv", "cells.tsv")) {
  separator <- if (file == "cells.csv") "," else "\t"
  # As it comes.
  d <- read.csv(file, sep = separator)
  stopifnot(sapply(d, class)[3:4] == "numeric", sum(d[[2]] == "Dendritic", na.rm = TRUE) == 1)
  # Exactly; a null and an empty text are one.
  d <- read.csv(file, sep = separator, na.strings = "", check.names = FALSE, colClasses = types, encoding = "UTF-8")
  check(d)
  found <- d[[2]]
  found[is.na(found)] <- ""
  stopifnot(found == texts)
  if (requireNamespace("data.table", quietly = TRUE)) {
    # This leaves doubled quotes as they are.
    d <- data.table::fread(file, na.strings = "", strip.white = FALSE, colClasses = types, encoding = "UTF-8")
    text <- sapply(d, is.character)
    for (column in names(d)[text]) data.table::set(d, NULL, column, gsub('""', '"', d[[column]], fixed = TRUE))
    data.table::setnames(d, gsub('""', '"', names(d), fixed = TRUE))
    check(d)
    # A null and an empty text apart.
    stopifnot(d[[2]][2] == "", is.na(d[[2]][3]), d[[2]][4] == "NA")
    found <- gsub("\r", "\n", gsub("\r\n", "\n", d[[2]], fixed = TRUE), fixed = TRUE)
    stopifnot(found[-3] == texts[-3])
  }
}
"#;
    run(folder.path(), "Rscript", &["-e", script]);
}

#[test]
fn sqlite_imports_the_table() {
    if !has("sqlite3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    for (mode, file) in [("csv", "cells.csv"), ("tabs", "cells.tsv")] {
        // Without declared types, everything is text in SQLite.
        let query = "select count(*), sum(text = 'Dendritic'), sum(id = 9223372036854775807), sum(day = '2024-01-31'), \
                     max(unsigned), sum(text = 'tab' || char(9) || 'and'), sum(text = char(34)) from cells";
        let table = "create table cells (id integer, text text, \"unsigned\" text, float real, day text, instant text, kind text)";
        let import = format!(".import --skip 1 {file} cells");
        let mode = format!(".mode {mode}");
        let found = run(folder.path(), "sqlite3", &[":memory:", table, &mode, &import, ".mode list", query]);
        assert_eq!(found.trim(), "22|1|4|7|9223372036854775808|1|1", "{file}");
    }
}

/// The versions of awk, each as a command.
const AWKS: [&[&str]; 4] = [&["mawk"], &["gawk"], &["original-awk"], &["busybox", "awk"]];

/// Undoes the escapes: what they stand for has no other escape within.
const UNESCAPE: &str = r#"
import re
meant = {'n': '\n', 't': '\t', 'r': '\r', '0': '\0', '\\': '\\'}
def unescaped(cell):
    return None if cell == '\\N' else re.sub(r'\\(.)', lambda escape: meant[escape[1]], cell)
"#;

#[test]
fn pandas_and_duckdb_read_the_table_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let script = r#"
import csv, io
columns = ['id', name, 'unsigned', 'float', 'day', 'instant', 'kind']
def check(rows):
    rows = [[unescaped(cell) for cell in row] for row in rows]
    found = dict(zip(columns, zip(*rows)))
    for column in 'id', 'unsigned':
        same([value and int(value) for value in found[column]], column)
    same([value and float(value) for value in found['float']], 'float')
    for column in 'day', 'instant', 'kind':
        same(found[column], column)
    same(found[name], 'text')

lines = open('cells.lines.tsv', encoding='utf-8', newline='').read().split('\n')
assert lines.pop() == '' and [unescaped(cell) for cell in lines[0].split('\t')] == columns
check([line.split('\t') for line in lines[1:]])
d = pandas.read_csv('cells.lines.tsv', sep='\t', quoting=csv.QUOTE_NONE, keep_default_na=False, dtype=str)
assert list(d.columns) == columns
check(d.values.tolist())
# Numbers and nulls as they come.
d = pandas.read_csv('cells.lines.tsv', sep='\t', quoting=csv.QUOTE_NONE, keep_default_na=False, na_values={'unsigned': ['\\N'], 'float': ['\\N', 'NaN']},
                    dtype={'unsigned': 'UInt64'})
same([None if value is pandas.NA else value for value in d['unsigned'].tolist()], 'unsigned')
read = lambda types: duckdb.sql(f"from read_csv('cells.lines.tsv', delim='\t', quote='', escape='', header=true, columns={types!r}, nullstr='\\N')")
types = dict.fromkeys(columns, 'VARCHAR')
check([['\\N' if cell is None else cell for cell in row] for row in read(types).fetchall()])
d = read({**types, 'id': 'BIGINT', 'unsigned': 'UBIGINT', 'float': 'DOUBLE', 'day': 'DATE', 'instant': 'TIMESTAMP'}).fetchall()
same([row[0] for row in d], 'id')
same([row[2] for row in d], 'unsigned')
same([row[3] for row in d], 'float')
same([row[4] and str(row[4]) for row in d], 'day')
"#;
    python(folder.path(), "pandas, duckdb", &format!("{COMPARE}{UNESCAPE}{script}"));
}

#[test]
fn each_awk_reads_the_table_of_lines() {
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let count = TEXTS.len();
    let escaped = |text: &str| {
        let escapes = [("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")];
        escapes.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let texts: Vec<String> = TEXTS.map(|text| text.map_or("\\N".to_owned(), escaped)).to_vec();
    let file = &["cells.lines.tsv"][..];
    for awk in AWKS.into_iter().filter(|awk| has(awk[0])) {
        let awk_of = |program: &str| run(folder.path(), awk[0], &[&awk[1..], &["-F\t", program], file].concat());
        assert_eq!(awk_of("NR > 1 { print $2 }").lines().collect::<Vec<_>>(), texts, "{awk:?}");
        let counted =
            awk_of("NF != 7 { wrong++ } NR > 1 && $3 == \"\\\\N\" { nulls++ } END { print NR - 1, wrong + 0, nulls }");
        assert_eq!(counted.trim(), format!("{count} 0 4"), "{awk:?}");
    }
    let lines = run(folder.path(), "wc", &["-l", "cells.lines.tsv"]);
    assert_eq!(lines.split_whitespace().next(), Some((count + 1).to_string().as_str()));
    let sorted = run(folder.path(), "sort", &["-t\t", "-k2,2", "cells.lines.tsv"]);
    assert_eq!(sorted.lines().count(), count + 1);
}

#[test]
fn r_reads_the_table_of_lines() {
    if !has("Rscript") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_tables(folder.path());
    let texts: Vec<&str> = TEXTS.iter().map(|text| text.unwrap_or("<null>")).collect();
    std::fs::write(folder.path().join("texts"), texts.join("\0") + "\0").unwrap();
    let script = r#"
texts <- readBin("texts", "character", 22)
Encoding(texts) <- "UTF-8"
d <- read.delim("cells.lines.tsv", quote = "", na.strings = "\\N", comment.char = "", check.names = FALSE,
                colClasses = c("character", "character", "character", "numeric", "character", "character", "character"), encoding = "UTF-8")
stopifnot(nrow(d) == 22, d$id[3] == "9223372036854775807", is.na(d$unsigned[3]), d$unsigned[2] == "9223372036854775808")
stopifnot(identical(d$float[c(1, 2, 4, 5, 7)], c(0.1, 1e308, Inf, -Inf, 5e-324)), is.na(d$float[3]))
# No text here has the byte that stands for a backslash meanwhile.
found <- gsub("\\\\", "\001", d[["text, \"quoted\""]], fixed = TRUE)
for (escape in list(c("\\n", "\n"), c("\\t", "\t"), c("\\r", "\r"), c("\001", "\\"))) {
  found <- gsub(escape[1], escape[2], found, fixed = TRUE)
}
stopifnot(is.na(found[3]), found[-3] == texts[-3])
"#;
    run(folder.path(), "Rscript", &["-e", script]);
}

#[test]
fn awk_and_cut_read_the_table_of_plain_texts() {
    if !has("awk") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let number = Column::fixed(Field::new("n", Datatype::UInt8), vec![4], Arc::new(vec![1, 2, 3, 255]));
    let columns =
        [number.with_validity(Arc::new(vec![1, 0, 1, 1])), texts("name", &["B cell", "a,b", "it's", "B cell"])];
    write(folder.path(), "cells.tsv", &Measured::new(table(&columns, Style::Tsv).unwrap().table).unwrap());
    let found = run(
        folder.path(),
        "awk",
        &["-F\t", "NR > 1 && $2 == \"B cell\" { s += $1; n += NF } END { print s, n }", "cells.tsv"],
    );
    assert_eq!(found.trim(), "256 4");
    assert_eq!(run(folder.path(), "cut", &["-f2", "cells.tsv"]), "name\nB cell\na,b\nit's\nB cell\n");
}

#[test]
fn lines_are_lines() {
    let folder = tempfile::tempdir().unwrap();
    let column = texts("name", &["one", "", "two\nthree", "vier ü"]);
    write(folder.path(), "name.txt", &lines(&column).unwrap());
    assert_eq!(run(folder.path(), "sed", &["-n", "3p", "name.txt"]), "two three\n");
    assert_eq!(run(folder.path(), "grep", &["-nx", "vier ü", "name.txt"]), "4:vier ü\n");
    assert_eq!(run(folder.path(), "wc", &["-l", "name.txt"]).split_whitespace().next(), Some("4"));
}

#[test]
fn scipy_reads_matrix_market() {
    let folder = tempfile::tempdir().unwrap();
    let dimension = |name: &str, values: [i64; 4]| {
        Column::fixed(Field::new(name, Datatype::Int64), vec![4], bytes(values.map(i64::to_le_bytes)))
    };
    let (rows, columns) = (dimension("cell", [10, 11, 12, 1009]), dimension("gene", [0, 7, 3, 99]));
    let domain = MatrixDomain { first: [10, 0], lengths: [1000, 100] };
    let reals = Column::fixed(
        Field::new("v", Datatype::Float32),
        vec![4],
        bytes([0.1f32, -2.5, 1e30, 3.0].map(f32::to_le_bytes)),
    );
    write(folder.path(), "v.mtx", &matrix_market(&rows, &columns, &reals, domain).unwrap());
    let counts =
        Column::fixed(Field::new("n", Datatype::UInt16), vec![4], bytes([1u16, 2, 3, 65535].map(u16::to_le_bytes)));
    write(folder.path(), "n.mtx", &matrix_market(&rows, &columns, &counts, domain).unwrap());
    python(
        folder.path(),
        "numpy, scipy.io",
        r#"
m = scipy.io.mmread('v.mtx').tocsr()
assert m.shape == (1000, 100) and m.nnz == 4
assert numpy.float32(m[0, 0]) == numpy.float32(0.1) and m[1, 7] == -2.5 and m[999, 99] == 3
m = scipy.io.mmread('n.mtx').tocsr()
assert m.dtype.kind in 'iu' and m[2, 3] == 3 and m[999, 99] == 65535
"#,
    );
    if has("Rscript") {
        let script = r#"
if (!requireNamespace("Matrix", quietly = TRUE)) quit()
m <- Matrix::readMM("v.mtx")
stopifnot(dim(m) == c(1000, 100), m[2, 8] == -2.5, m[1000, 100] == 3)
"#;
        run(folder.path(), "Rscript", &["-e", script]);
    }
}
