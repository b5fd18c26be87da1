//! pyarrow opens our Arrow files, mapped and read.

use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_export::arrow::arrow;
use tilefs_export::{Column, Field, Labels};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, python, write};

#[test]
fn pyarrow_reads_every_kind_of_column() {
    let rows = 3000u64;
    let folder = tempfile::tempdir().unwrap();
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: true,
        values: vec![b"T cell".to_vec(), "größer".into()],
    };
    let fixed =
        |name: &str, datatype, values: Arc<dyn Content>| Column::fixed(Field::new(name, datatype), vec![rows], values);
    let codes: Vec<u8> = (0..rows).map(|i| if i % 3 == 2 { 255 } else { (i % 3) as u8 }).collect();
    let mut kind = fixed("kind", Datatype::Int8, Arc::new(codes));
    kind.field.labels = Some(Arc::new(labels));
    let count = bytes((0..rows as i64).map(|i| (i - 5).to_le_bytes()));
    let text: Vec<String> = (0..rows).map(|i| "ä".repeat(i as usize % 5)).collect();
    let mut end = 0u64;
    let offsets = bytes(
        std::iter::once(0)
            .chain(text.iter().map(|t| {
                end += t.len() as u64;
                end
            }))
            .map(u64::to_le_bytes),
    );
    let name = Field::new("name", Datatype::StringUtf8).with_values_per_cell(None);
    let pair = Field::new("pair", Datatype::Float32).with_values_per_cell(Some(2));
    // Dates beyond 32-bit days, as the array's metadata tell.
    let mut far = fixed("far", Datatype::DateTimeDay, bytes((0..rows as i64).map(|i| (i << 31).to_le_bytes())));
    far.extremes = Some((0, (rows as i128) << 31));
    let columns = [
        fixed("count", Datatype::Int64, count.clone())
            .with_validity(Arc::new((0..rows).map(|i| (i % 2) as u8).collect::<Vec<u8>>())),
        fixed("day", Datatype::DateTimeDay, count.clone()),
        fixed("week", Datatype::DateTimeWeek, count.clone()),
        far,
        fixed("ns", Datatype::DateTimeNs, count.clone()),
        fixed("hours", Datatype::TimeHr, count),
        fixed("flag", Datatype::Bool, Arc::new((0..rows).map(|i| (i % 2) as u8).collect::<Vec<u8>>())),
        kind,
        Column::variable(name, vec![rows], Arc::new(text.concat().into_bytes()), offsets),
        Column::fixed(pair, vec![rows], bytes((0..2 * rows).map(|i| (i as f32).to_le_bytes()))),
    ];
    write(folder.path(), "cells.arrow", &arrow(&columns, Vec::new()).unwrap().content);
    write(
        folder.path(),
        "none.arrow",
        &arrow(&[Column::fixed(Field::new("a", Datatype::Int8), vec![0], Arc::new(vec![]))], Vec::new())
            .unwrap()
            .content,
    );
    python(
        folder.path(),
        "pyarrow, pyarrow.feather, datetime",
        r#"
n = 3000
for source in pyarrow.memory_map('cells.arrow'), open('cells.arrow', 'rb'):
    t = pyarrow.ipc.open_file(source).read_all()
    t.validate(full=True)
    assert t['count'].to_pylist() == [i - 5 if i % 2 else None for i in range(n)]
    epoch = datetime.date(1970, 1, 1)
    assert t['week'].to_pylist() == [epoch + datetime.timedelta(days=7 * (i - 5)) for i in range(n)]
    assert t['far'].type == pyarrow.timestamp('s')
    assert t['far'].cast(pyarrow.int64()).to_pylist() == [(i << 31) * 86400 for i in range(n)]
    assert t['day'].type == t['week'].type == pyarrow.date32()
    assert t['day'].to_pylist() == [epoch + datetime.timedelta(days=i - 5) for i in range(n)]
    assert t['ns'].cast(pyarrow.int64()).to_pylist() == [i - 5 for i in range(n)]
    assert t['hours'].to_pylist() == [datetime.timedelta(hours=i - 5) for i in range(n)]
    assert t['flag'].to_pylist() == [i % 2 == 1 for i in range(n)]
    assert t['kind'].to_pylist() == [['T cell', 'größer', None][i % 3] for i in range(n)]
    assert t['kind'].type.ordered and t['kind'].null_count == n // 3
    assert t['name'].to_pylist() == ['ä' * (i % 5) for i in range(n)]
    assert t['pair'].to_pylist() == [[2. * i, 2. * i + 1] for i in range(n)]
    assert t.schema.field('day').metadata[b'tiledb.datatype'] == b'DATETIME_DAY'
assert pyarrow.feather.read_table('cells.arrow').num_rows == n
# A stream of messages is inside: what follows the magic bytes.
stream = pyarrow.ipc.open_stream(pyarrow.py_buffer(open('cells.arrow', 'rb').read()[8:]))
assert stream.read_all().num_rows == n
assert pyarrow.ipc.open_file('none.arrow').read_all().num_rows == 0
"#,
    );
}
