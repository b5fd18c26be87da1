//! awk, R, Fortran, NumPy, SciPy, pyarrow and Python's own reader take our texts for the values they are.

use std::sync::Arc;

use tilefs::export::text::matrix_market::{MatrixDomain, matrix_market};
use tilefs::export::text::{Style, grid, lines, table};
use tilefs::export::{Column, Content, Field, Labels};
use tilefs::format::datatype::Datatype;

use crate::tools::{bytes, floats, has, python, run, write};

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

fn cells() -> Vec<Column> {
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"T cell, \"CD4\"".to_vec(), b"B".to_vec()],
    };
    let fixed =
        |name: &str, datatype, values: Arc<dyn Content>| Column::fixed(Field::new(name, datatype), vec![4], values);
    let mut kind = fixed("kind", Datatype::Int8, Arc::new(vec![0, 1, 0, 1])).with_validity(Arc::new(vec![1, 1, 0, 1]));
    kind.field.labels = Some(Arc::new(labels));
    vec![
        fixed("id", Datatype::Int64, bytes([-1i64, 2, i64::MAX, 4].map(i64::to_le_bytes))),
        texts("name, quoted", &["one", "", "tab\tand\nbreak", "comma, \"quote\" ü"]),
        kind,
        fixed("day", Datatype::DateTimeDay, bytes([0i64, 1, 19_753, -1].map(i64::to_le_bytes))),
        fixed("x", Datatype::Float64, bytes([0.1f64, f64::NAN, f64::INFINITY, -1e300].map(f64::to_le_bytes))),
        fixed("n", Datatype::UInt8, Arc::new(vec![1, 2, 3, 255])).with_validity(Arc::new(vec![1, 0, 1, 1])),
    ]
}

#[test]
fn tables_read_back() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "cells.tsv", &table(&cells(), Style::Tsv).unwrap().content);
    write(folder.path(), "cells.csv", &table(&cells(), Style::Csv).unwrap().content);
    python(
        folder.path(),
        "csv, math",
        r#"
for file, options in ('cells.tsv', dict(delimiter='\t', quoting=csv.QUOTE_NONE)), ('cells.csv', dict(skipinitialspace=True)):
    head, *rows = csv.reader(open(file, newline=''), **options)
    assert head == ['id', 'name, quoted', 'kind', 'day', 'x', 'n'], head
    assert [int(r[0]) for r in rows] == [-1, 2, 2**63 - 1, 4]
    tsv = file.endswith('tsv')
    tab, quote = (' ', '"') if tsv else ('\t', "'")
    assert [r[1] for r in rows] == ['one', '', f'tab{tab}and break', f'comma, {quote}quote{quote} ü'], rows
    assert [r[2].strip() for r in rows] == ['T cell, "CD4"', 'B', 'NA', 'B'], rows
    assert [r[3].strip() for r in rows] == ['1970-01-01', '1970-01-02', '2024-01-31', '1969-12-31']
    x = [float(r[4]) for r in rows]
    assert x[0] == 0.1 and math.isnan(x[1]) and x[2:] == [math.inf, -1e300]
    assert [r[5].strip() for r in rows] == ['1', 'NA', '3', '255']
"#,
    );
    python(
        folder.path(),
        "pandas",
        r#"
d = pandas.read_csv('cells.csv', skipinitialspace=True, keep_default_na=True)
assert list(d['id']) == [-1, 2, 2**63 - 1, 4] and d['x'][3] == -1e300
assert list(d['kind'][:2]) == ['T cell, "CD4"', 'B'] and pandas.isna(d['kind'][2])
assert pandas.isna(d['n'][1]) and d['n'][3] == 255
assert list(pandas.to_datetime(d['day']).dt.year) == [1970, 1970, 2024, 1969]
"#,
    );
    if has("Rscript") {
        let script = r#"
for (d in list(read.csv("cells.csv", strip.white = TRUE), read.delim("cells.tsv", quote = "", strip.white = TRUE))) {
  stopifnot(names(d) == c("id", "name..quoted", "kind", "day", "x", "n"))
  stopifnot(d$x[1] == 0.1, is.nan(d$x[2]), d$x[3] == Inf, d$x[4] == -1e300)
  stopifnot(identical(d$n, c(1L, NA, 3L, 255L)), d$kind[c(2, 4)] == "B", is.na(d$kind[3]))
  stopifnot(as.Date(d$day) == as.Date(c("1970-01-01", "1970-01-02", "2024-01-31", "1969-12-31")))
}
"#;
        run(folder.path(), "Rscript", &["-e", script]);
    }
    if has("awk") {
        let found = run(folder.path(), "awk", &["-F\t", "NR > 1 { s += $6 } END { print s, NF }", "cells.tsv"]);
        assert_eq!(found.trim(), "259 6");
    }
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
