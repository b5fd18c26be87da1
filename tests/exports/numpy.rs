//! NumPy opens `.npy` files, mapped and not.

use std::sync::Arc;

use tilefs_export::npy::{Order, npy};
use tilefs_export::{Column, Field};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, floats, python, write};

#[test]
fn numpy_loads_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let counted = |datatype: Datatype, values: u32| {
        let field = Field::new("a", datatype).with_values_per_cell(Some(values));
        let length = 6 * field.cell_size().unwrap();
        // Booleans are 0 and 1.
        let byte = |i: u64| if datatype == Datatype::Bool { i as u8 % 2 } else { i as u8 };
        Column::fixed(field, vec![2, 3], Arc::new((0..length).map(byte).collect::<Vec<u8>>()))
    };
    for number in 0..44 {
        let datatype = Datatype::from_number(number).unwrap();
        for values in [1, 3, 300] {
            let column = counted(datatype, values);
            let name = format!("{number}_{values}");
            write(folder.path(), &format!("{name}.npy"), &npy(&column, Order::RowMajor).unwrap());
            write(folder.path(), &format!("{name}.raw"), &column.values);
        }
    }
    python(
        folder.path(),
        "numpy",
        r#"
np = numpy
for number in range(44):
    for values in 1, 3, 300:
        name = f'{number}_{values}'
        a = np.load(name + '.npy', mmap_mode='r')
        b = np.load(name + '.npy')
        assert isinstance(a, np.memmap) and a.shape == (2, 3), (name, a.shape)
        assert a.tobytes() == b.tobytes() == open(name + '.raw', 'rb').read(), name
        if values == 3 and a.dtype.kind not in 'SV' or values == 3 and a.dtype.names:
            assert a.dtype.names == ('f0', 'f1', 'f2'), (name, a.dtype)
assert np.load('27_1.npy').dtype == np.dtype('<M8[ns]')
assert np.load('31_1.npy').dtype == np.dtype('<m8[h]')
assert np.load('41_1.npy').dtype == np.dtype(bool)
assert np.load('11_3.npy').dtype == np.dtype('S3')
assert np.load('2_300.npy')['f0'].shape == (2, 3, 300)
"#,
    );
}

#[test]
fn numpy_sees_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    let rows = floats("temp", &[40, 50]);
    let column_major = {
        let all = read(&rows);
        let order = (0..50).flat_map(|x| (0..40).map(move |y| y * 50 + x));
        Column { values: bytes(order.map(|cell| all[cell])), ..rows.clone() }
    };
    write(folder.path(), "rows.npy", &npy(&rows, Order::RowMajor).unwrap());
    write(folder.path(), "columns.npy", &npy(&column_major, Order::ColumnMajor).unwrap());
    write(folder.path(), "temp.f32", &rows.values);
    python(
        folder.path(),
        "numpy",
        r#"
np = numpy
raw = np.fromfile('temp.f32', '<f4').reshape(40, 50)
for name in 'rows.npy', 'columns.npy':
    a = np.load(name, mmap_mode='r')
    assert np.array_equal(a, raw, equal_nan=True), name
assert np.load('columns.npy').flags.f_contiguous
"#,
    );
}

fn read(column: &Column) -> Vec<[u8; 4]> {
    let mut all = vec![0; column.values.len() as usize];
    column.values.read_at(0, &mut all).unwrap();
    all.chunks(4).map(|value| value.try_into().unwrap()).collect()
}
