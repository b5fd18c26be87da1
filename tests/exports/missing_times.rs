//! "Not a time" is null to every reader of our Parquet and Arrow files, for dates and durations in every unit.

use tilefs_export::arrow::arrow;
use tilefs_export::parquet::parquet;
use tilefs_export::{Column, Field};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, python, write};

#[test]
fn a_time_that_is_none_is_null_to_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    let times: Vec<Datatype> = (0..=u8::MAX)
        .filter_map(|number| Datatype::from_number(number).ok())
        .filter(|of| of.time_unit().is_some())
        .collect();
    assert_eq!(times.len(), 22);
    let columns: Vec<Column> = times
        .into_iter()
        .map(|of| {
            let values = bytes([0i64, i64::MIN, 1, -1].map(i64::to_le_bytes));
            Column::fixed(Field::new(of.name(), of), vec![4], values)
        })
        .collect();
    let files = [parquet(&columns, None, Vec::new()).unwrap(), arrow(&columns, Vec::new()).unwrap()];
    for (name, file) in ["times.parquet", "times.arrow"].into_iter().zip(files) {
        assert_eq!(file.left_out.len(), 0, "{:?}", file.left_out);
        write(folder.path(), name, &file.content);
    }
    let script = r#"
import pyarrow.feather, pyarrow.parquet
tables = {'parquet': pyarrow.parquet.read_table('times.parquet'), 'arrow': pyarrow.feather.read_table('times.arrow')}
feather = tables['arrow']
views = {
    'pandas': [pandas.read_parquet('times.parquet'), pandas.read_feather('times.arrow')],
    'pyarrow': [table.to_pandas(timestamp_as_object=True) for table in tables.values()],
    'DuckDB': [duckdb.sql("from 'times.parquet'").df(), duckdb.sql('from feather').df()],
    'Polars': [polars.read_parquet('times.parquet').to_pandas(), polars.read_ipc('times.arrow').to_pandas()],
}
for table in tables.values():
    table.validate(full=True)
    assert len(table.column_names) == 22 and all(table[name].null_count == 1 for name in table.column_names)
for reader, frames in views.items():
    for form, frame in zip(tables, frames):
        assert list(frame.columns) == tables[form].column_names, (reader, form)
        for name in frame.columns:
            assert frame[name].isna().tolist() == [False, True, False, False], (reader, form, name, frame[name])
for name in feather.column_names:
    assert duckdb.sql(f'select count(*), count("{name}") from \'times.parquet\'').fetchall() == [(4, 3)], name
    assert duckdb.sql(f'select count(*), count("{name}") from feather').fetchall() == [(4, 3)], name
    assert polars.scan_parquet('times.parquet').filter(polars.col(name).is_null()).collect().height == 1, name
"#;
    python(folder.path(), "duckdb, pandas, polars, pyarrow", script);
}
