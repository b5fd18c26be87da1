//! pyarrow, DuckDB, Polars, pandas and Spark open our Parquet files.

use std::sync::Arc;

use tempfile::TempDir;
use tilefs_base::content::Content;
use tilefs_export::column::microseconds::in_microseconds;
use tilefs_export::parquet::parquet;
use tilefs_export::{Column, Field, Labels};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, python, write};
use support::skip::has_spark;

/// More rows than a row group has.
const ROWS: u64 = 300_000;

fn fixed(name: &str, datatype: Datatype, values: Arc<dyn Content>) -> Column {
    Column::fixed(Field::new(name, datatype), vec![ROWS], values)
}

fn marks(of: impl Fn(u64) -> bool) -> Arc<dyn Content> {
    Arc::new((0..ROWS).map(|row| u8::from(of(row))).collect::<Vec<u8>>())
}

fn text(name: &str, datatype: Datatype, of: impl Fn(u64) -> String) -> Column {
    let texts: Vec<String> = (0..ROWS).map(of).collect();
    let ends = texts.iter().scan(0, |end, text| {
        *end += text.len() as u64;
        Some(*end)
    });
    let offsets = bytes(std::iter::once(0).chain(ends).map(u64::to_le_bytes));
    let field = Field::new(name, datatype).with_values_per_cell(None);
    Column::variable(field, vec![ROWS], Arc::new(texts.concat().into_bytes()), offsets)
}

fn labelled(name: &str, codes: Vec<u8>, datatype: Datatype, labels: Labels) -> Column {
    let mut column = fixed(name, datatype, Arc::new(codes));
    column.field.labels = Some(Arc::new(labels));
    column
}

fn labels(datatype: Datatype, values: Vec<Vec<u8>>) -> Labels {
    Labels { name: "kinds".into(), datatype, ordered: true, values }
}

/// Returns lists whose lengths are the row modulo 4, and whose values are the numbers from the row on.
fn lists<const N: usize>(name: &str, datatype: Datatype, of: impl Fn(u64) -> [u8; N]) -> Column {
    let ends = (0..ROWS).scan(0, |end, row| {
        *end += row % 4 * N as u64;
        Some(*end)
    });
    let offsets = bytes(std::iter::once(0).chain(ends).map(u64::to_le_bytes));
    let values = bytes((0..ROWS).flat_map(|row| (row..row + row % 4).map(&of).collect::<Vec<_>>()));
    let field = Field::new(name, datatype).with_values_per_cell(None);
    Column::variable(field, vec![ROWS], values, offsets)
}

/// Writes files with columns of every kind. The value of each row follows from its number, and is null if the number
/// modulo 7 is 3.
fn sample(folder: &TempDir) {
    let counts = || bytes((0..ROWS as i64).map(|row| (row - 5).to_le_bytes()));
    let valid = || marks(|row| row % 7 != 3);
    let mut columns = vec![
        fixed("count", Datatype::Int64, counts()),
        fixed("nullable", Datatype::Int64, counts()).with_validity(valid()),
        fixed("small", Datatype::Int8, bytes((0..ROWS).map(|row| [row as u8]))).with_validity(valid()),
        fixed("short", Datatype::UInt16, bytes((0..ROWS).map(|row| (row as u16).to_le_bytes()))),
        fixed("unsigned", Datatype::UInt32, bytes((0..ROWS).map(|row| (u32::MAX - row as u32).to_le_bytes()))),
        fixed("long", Datatype::UInt64, bytes((0..ROWS).map(|row| (u64::MAX - row).to_le_bytes()))),
        fixed("float", Datatype::Float32, bytes((0..ROWS).map(|row| (row as f32 / 3.0).to_le_bytes()))),
        fixed("double", Datatype::Float64, bytes((0..ROWS).map(|row| (row as f64 / 3.0).to_le_bytes())))
            .with_validity(valid()),
        fixed("flag", Datatype::Bool, marks(|row| row % 3 == 0)),
        fixed("maybe", Datatype::Bool, marks(|row| row % 3 == 0)).with_validity(valid()),
        text("name", Datatype::StringUtf8, |row| "ä".repeat(row as usize % 5)),
        text("word", Datatype::StringAscii, |row| row.to_string()).with_validity(valid()),
        text("blob", Datatype::Blob, |row| "b".repeat(row as usize % 3)),
        Column::fixed(
            Field::new("code", Datatype::StringAscii).with_values_per_cell(Some(3)),
            vec![ROWS],
            bytes((0..ROWS).map(|row| [b'a' + (row % 26) as u8, b'b', b'c'])),
        )
        .with_validity(valid()),
        Column::fixed(
            Field::new("pair", Datatype::Float32).with_values_per_cell(Some(2)),
            vec![ROWS],
            bytes((0..2 * ROWS).map(|i| (i as f32).to_le_bytes())),
        ),
        Column::fixed(
            Field::new("triple", Datatype::Int16).with_values_per_cell(Some(3)),
            vec![ROWS],
            bytes((0..3 * ROWS).map(|i| (i as i16).to_le_bytes())),
        )
        .with_validity(valid()),
        lists("list", Datatype::Float64, |number| (number as f64).to_le_bytes()),
        lists("maybe_list", Datatype::Int8, |number| [number as u8]).with_validity(valid()),
        labelled(
            "kind",
            (0..ROWS).map(|row| if row % 3 == 2 { 255 } else { (row % 3) as u8 }).collect(),
            Datatype::Int8,
            labels(Datatype::StringUtf8, vec![b"T cell".to_vec(), "größer".into()]),
        )
        .with_validity(valid()),
        labelled(
            "level",
            (0..ROWS).flat_map(|row| (row as i64 % 300).to_le_bytes()).collect(),
            Datatype::Int64,
            labels(Datatype::Int16, (0..300i16).map(|label| (-label).to_le_bytes().to_vec()).collect()),
        ),
        labelled("nothing", vec![0; ROWS as usize], Datatype::Int8, labels(Datatype::StringUtf8, Vec::new())),
    ];
    let units = [
        (Datatype::DateTimeYear, 4000),
        (Datatype::DateTimeMonth, 50_000),
        (Datatype::DateTimeWeek, 200_000),
        (Datatype::DateTimeDay, i64::MAX),
        (Datatype::DateTimeHr, i64::MAX),
        (Datatype::DateTimeMin, i64::MAX),
        (Datatype::DateTimeSec, i64::MAX),
        (Datatype::DateTimeMs, i64::MAX),
        (Datatype::DateTimeUs, i64::MAX),
        (Datatype::DateTimeNs, i64::MAX),
        (Datatype::DateTimePs, i64::MAX),
        (Datatype::TimeHr, i64::MAX),
        (Datatype::TimeMs, i64::MAX),
        (Datatype::TimeAs, i64::MAX),
    ];
    for (datatype, most) in units {
        let value = |row: i64| if row == 9 { i64::MIN } else { (row - 5) % most };
        let datatype_values = bytes((0..ROWS as i64).map(|row| value(row).to_le_bytes()));
        let is_time = datatype.is_time();
        let values = if is_time { counts() } else { datatype_values };
        columns.push(fixed(datatype.name(), datatype, values));
    }
    write(folder.path(), "cells.parquet", &parquet(&columns, None, Vec::new()).unwrap().content);
    for (name, value) in [("whole", 1000), ("finer", 1)] {
        let dates =
            bytes((0..ROWS as i64).map(|row| if row == 9 { i64::MIN } else { (row - 5) * value }.to_le_bytes()));
        let columns = [fixed("count", Datatype::Int64, counts()), fixed("time", Datatype::DateTimeNs, dates)];
        write(folder.path(), &format!("{name}.parquet"), &parquet(&columns, None, Vec::new()).unwrap().content);
        let columns = columns.map(in_microseconds);
        let content = parquet(&columns, None, Vec::new()).unwrap().content;
        match value {
            1 => assert!(content.read_at(0, &mut vec![0; content.len() as usize]).is_err()),
            _ => write(folder.path(), &format!("{name}.us.parquet"), &content),
        }
    }
    let none = Column::fixed(Field::new("a", Datatype::Int8), vec![0], Arc::new(vec![]));
    write(folder.path(), "none.parquet", &parquet(&[none], None, Vec::new()).unwrap().content);
}

/// The expected columns, for all readers.
const EXPECTED: &str = r#"
n = 300000
null = lambda value: [None if i % 7 == 3 else value(i) for i in range(n)]
every = lambda value: [value(i) for i in range(n)]
wrap = lambda value, bits: (value + 2 ** (bits - 1)) % 2 ** bits - 2 ** (bits - 1)
import datetime, struct
single = lambda value: struct.unpack('f', struct.pack('f', value))[0]
plain = {
    'count': every(lambda i: i - 5), 'nullable': null(lambda i: i - 5), 'small': null(lambda i: wrap(i, 8)),
    'short': every(lambda i: i % 65536), 'unsigned': every(lambda i: 2**32 - 1 - i), 'long': every(lambda i: 2**64 - 1 - i),
    'float': every(lambda i: single(i / 3)), 'double': null(lambda i: i / 3),
    'flag': every(lambda i: i % 3 == 0), 'maybe': null(lambda i: i % 3 == 0),
    'name': every(lambda i: 'ä' * (i % 5)), 'word': null(str), 'blob': every(lambda i: b'b' * (i % 3)),
    'code': null(lambda i: bytes([97 + i % 26]) + b'bc'), 'pair': every(lambda i: [2. * i, 2. * i + 1]),
    'triple': null(lambda i: [wrap(3 * i + k, 16) for k in range(3)]),
    'list': every(lambda i: [float(i + k) for k in range(i % 4)]),
    'maybe_list': null(lambda i: [wrap(i + k, 8) for k in range(i % 4)]),
    'kind': null(lambda i: ['T cell', 'größer', None][i % 3]), 'level': every(lambda i: -(i % 300)),
    'nothing': every(lambda i: None), 'DATETIME_PS': every(lambda i: None if i == 9 else i - 5),
    'TIME_AS': every(lambda i: i - 5),
}
import numpy as np
def times(unit, most=2**63 - 1):
    counts = np.array([(abs(i - 5) % most) * (1 if i >= 5 else -1) for i in range(n)])
    dates = counts.astype(f'M8[{unit}]')
    dates[9] = 'NaT'
    return dates
dates = {'DATETIME_YEAR': times('Y', 4000), 'DATETIME_MONTH': times('M', 50000), 'DATETIME_WEEK': times('W', 200000), 'DATETIME_DAY': times('D')}
stamps = {f'DATETIME_{name}': times(unit) for name, unit in dict(HR='h', MIN='m', SEC='s', MS='ms', US='us', NS='ns').items()}
"#;

#[test]
fn pyarrow_and_pandas_read_every_kind_of_column() {
    let folder = tempfile::tempdir().unwrap();
    sample(&folder);
    let script = r#"
file = pyarrow.parquet.ParquetFile('cells.parquet')
assert file.metadata.num_row_groups == 2, file.metadata
table = file.read()
table.validate(full=True)
for name, values in plain.items():
    assert table[name].to_pylist() == values, name
for name, values in {**dates, **stamps}.items():
    got = table[name].to_numpy()
    assert (np.isnat(got) == np.isnat(values)).all() and (got[~np.isnat(got)] == values[~np.isnat(values)]).all(), name
    assert table[name].null_count == 1, name
assert [str(table.schema.field(f'DATETIME_{unit}').type) for unit in ('DAY', 'HR', 'SEC', 'MS', 'US', 'NS')] == [
    'date32[day]', 'timestamp[ms]', 'timestamp[ms]', 'timestamp[ms]', 'timestamp[us]', 'timestamp[ns]']
assert (table['TIME_HR'].to_numpy() == np.arange(-5, n - 5) * np.timedelta64(1, 'h')).all()
assert (table['TIME_MS'].to_numpy() == np.arange(-5, n - 5) * np.timedelta64(1, 'ms')).all()
assert table.schema.field('kind').type.ordered and table.schema.field('short').type == pyarrow.uint16()
assert table.schema.field('count').metadata[b'tiledb.datatype'] == b'INT64'
assert not table.schema.field('count').nullable and table.schema.field('word').nullable
# A reader that knows nothing of Arrow's schema.
bare = file.schema.to_arrow_schema()
assert str(bare.field('word').type) in ('string', 'large_string', 'string_view')
for group in range(2):
    part = file.read_row_group(group, columns=['nullable', 'word', 'pair'])
    assert part.num_rows == file.metadata.row_group(group).num_rows
frame = pandas.read_parquet('cells.parquet', columns=['nullable', 'kind', 'name'])
assert list(frame['kind'].cat.categories) == ['T cell', 'größer'] and frame['kind'].cat.ordered
assert frame['nullable'].isna().sum() == sum(value is None for value in plain['nullable'])
assert pyarrow.parquet.read_table('none.parquet').num_rows == 0
fine, coarse = (pyarrow.parquet.read_table(f'whole{unit}.parquet')['time'] for unit in ('', '.us'))
assert str(coarse.type) == 'timestamp[us]' and coarse.cast(fine.type).equals(fine) and coarse.null_count == 1
"#;
    python(folder.path(), "pyarrow, pyarrow.parquet, pandas", &format!("{EXPECTED}{script}"));
}

#[test]
fn duckdb_reads_every_kind_of_column() {
    let folder = tempfile::tempdir().unwrap();
    sample(&folder);
    let script = r#"
table = duckdb.sql("from 'cells.parquet'")
for name, values in plain.items():
    got = [row[0] for row in duckdb.sql(f"select {name} from 'cells.parquet'").fetchall()]
    assert got == values, (name, got[:20], values[:20])
for name, values in {**dates, **stamps}.items():
    got = duckdb.sql(f"select {name} from 'cells.parquet'").fetchnumpy()[name]
    absent = np.ma.getmaskarray(got) | np.isnat(np.ma.getdata(got))
    assert (absent == np.isnat(values)).all() and (np.ma.getdata(got)[~absent] == values[~absent]).all(), name
types = dict(zip(table.columns, map(str, table.types)))
assert types['DATETIME_DAY'] == 'DATE' and types['DATETIME_SEC'] == 'TIMESTAMP' and types['DATETIME_NS'] == 'TIMESTAMP_NS', types
assert types['small'] == 'TINYINT' and types['long'] == 'UBIGINT' and types['kind'] == 'VARCHAR' and types['pair'] == 'FLOAT[]', types
assert duckdb.sql("from 'none.parquet'").fetchall() == []
"#;
    python(folder.path(), "duckdb", &format!("{EXPECTED}{script}"));
}

#[test]
fn polars_reads_every_kind_of_column() {
    let folder = tempfile::tempdir().unwrap();
    sample(&folder);
    let script = r#"
frame = polars.read_parquet('cells.parquet')
for name, values in plain.items():
    assert frame[name].to_list() == values, (name, frame[name])
for name, values in {**dates, **stamps}.items():
    got = frame[name].to_numpy()
    assert (np.isnat(got) == np.isnat(values)).all() and (got[~np.isnat(got)] == values[~np.isnat(values)]).all(), name
lazy = polars.scan_parquet('cells.parquet').filter(polars.col('nullable') > 200000).select('word').collect()
assert lazy['word'].to_list() == [str(i) for i in range(n) if i % 7 != 3 and i - 5 > 200000]
assert len(polars.read_parquet('none.parquet')) == 0
"#;
    python(folder.path(), "polars", &format!("{EXPECTED}{script}"));
}

#[test]
fn spark_reads_every_kind_of_column() {
    if !has_spark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    sample(&folder);
    let script = r#"
from pyspark.sql import SparkSession
spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', False).config('spark.driver.host', '127.0.0.1').config(
    'spark.driver.bindAddress', '127.0.0.1').config('spark.sql.parquet.inferTimestampNTZ.enabled', True).config(
    'spark.sql.legacy.parquet.nanosAsLong', True).getOrCreate()
spark.sparkContext.setLogLevel('ERROR')
# Some rows of each row group: they come one by one.
rows = [i for i in range(n) if i % 100000 < 500]
frame = spark.read.parquet('cells.parquet').where('(count + 5) % 100000 < 500').coalesce(1)
names = [name for name in plain if name != 'long']
counts = {name: f"unix_date({name})" for name in dates}
counts.update({name: f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {name})" for name in list(stamps)[:5]})
for vectorized in 'true', 'false':
    spark.conf.set('spark.sql.parquet.enableVectorizedReader', vectorized)
    got = frame.selectExpr(*names, 'cast(long as string)', *counts.values()).collect()
    for column, name in enumerate([*names, 'long']):
        values = [bytes(row[column]) if isinstance(row[column], bytearray) else row[column] for row in got]
        wanted = [str(plain[name][i]) if name == 'long' else plain[name][i] for i in rows]
        assert values == wanted, (vectorized, name, values[:20], wanted[:20])
    for column, name in enumerate(counts, len(names) + 1):
        values = {**dates, **stamps}[name][rows]
        numbers = values.astype('M8[D]' if name in dates else 'M8[us]').view('i8').tolist()
        wanted = [None if np.isnat(value) else number for value, number in zip(values, numbers)]
        assert [row[column] for row in got] == wanted, (vectorized, name)
assert spark.read.parquet('none.parquet').count() == 0
# As Spark is by default it refuses nanoseconds, and reads the file in microseconds.
spark.conf.unset('spark.sql.legacy.parquet.nanosAsLong')
try:
    spark.read.parquet('whole.parquet')
    raise SystemExit('Spark reads nanoseconds: the file in microseconds is no longer needed')
except Exception as error:
    assert 'NANOS' in str(error), error
micros = "timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', time)"
got = spark.read.parquet('whole.us.parquet').selectExpr('count', micros).where('count < 500').collect()
assert [tuple(row) for row in got] == [(i - 5, None if i == 9 else i - 5) for i in range(505)]
assert spark.read.parquet('whole.us.parquet').where('time is null').count() == 1
spark.stop()
"#;
    python(folder.path(), "pyspark", &format!("{EXPECTED}{script}"));
}
