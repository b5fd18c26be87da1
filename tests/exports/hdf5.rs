//! h5py, netCDF4, xarray, ncdump and HDF5's own programs open our HDF5 and netCDF-4 files.

use std::sync::Arc;

use tilefs_export::hdf5::{Form, hdf5};
use tilefs_export::netcdf::netcdf;
use tilefs_export::{Column, Columns, Field, Labels, Metadatum};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, dense, floats, has, python, run, write};

/// Returns a dense array with columns of all kinds.
fn columns() -> Columns {
    let shape = vec![4, 5];
    let cells = 20u64;
    let fixed = |field: Field, values: Vec<u8>| Column::fixed(field, shape.clone(), Arc::new(values));
    let mut temp = floats("temp", &shape);
    temp.field.no_data = Some((-9999f32).to_le_bytes().to_vec());
    let counts = Field::new("count", Datatype::UInt64);
    let counts = fixed(counts, (0..cells).flat_map(|i| (u64::MAX - i).to_le_bytes()).collect());
    let valid = (0..cells).map(|i| (i % 3 != 0) as u8).collect::<Vec<u8>>();
    let flag = fixed(Field::new("flag", Datatype::Bool), (0..cells).map(|i| (i % 2) as u8).collect());
    let mut maybe = Field::new("maybe", Datatype::Bool);
    maybe.null = Some(vec![255]);
    let maybe = fixed(maybe, vec![1; 20]).with_validity(Arc::new(valid.clone()));
    let word = Field::new("word", Datatype::StringAscii).with_values_per_cell(Some(4));
    let pair = Field::new("pair", Datatype::Int16).with_values_per_cell(Some(2));
    let texts: Vec<String> = (0..cells).map(|i| "né".repeat(i as usize % 5)).collect();
    let offsets = (0..=cells as usize).map(|i| (texts[..i].concat().len() as u64).to_le_bytes());
    let text = Field::new("text", Datatype::StringUtf8).with_values_per_cell(None);
    let text = Column::variable(text, shape.clone(), Arc::new(texts.concat().into_bytes()), bytes(offsets));
    let some = Field::new("some", Datatype::Int32).with_values_per_cell(None);
    let offsets = bytes((0..=cells).map(|i| (i / 2 * 4).to_le_bytes()));
    let some = Column::variable(some, shape.clone(), bytes((0..10i32).map(i32::to_le_bytes)), offsets);
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"T cell".to_vec(), "größer".into()],
    };
    let kind = Field::new("kind/of it", Datatype::Int8).with_labels(Arc::new(labels));
    let day = Field::new("day", Datatype::DateTimeDay);
    let mut columns = dense(
        [4, 5],
        vec![
            temp,
            counts.with_validity(Arc::new(valid)),
            flag,
            maybe,
            fixed(word, b"ab\0\0efgh".repeat(10)),
            fixed(pair, (0..2 * cells as i16).flat_map(i16::to_le_bytes).collect()),
            text,
            some,
            fixed(kind, (0..cells).map(|i| (i % 2) as u8).collect()),
            fixed(day, (0..cells as i64).flat_map(|i| (10957 + i).to_le_bytes()).collect()),
        ],
    );
    let datum = |key: &str, datatype, value: &[u8]| Metadatum { key: key.into(), datatype, value: value.to_vec() };
    columns.metadata = vec![
        datum("title", Datatype::StringUtf8, "größer".as_bytes()),
        datum("number", Datatype::Int64, &(1i64 << 40).to_le_bytes()),
        datum("empty", Datatype::Int32, &[]),
        datum("large", Datatype::Float64, &[0; 80_000]),
        datum("CLASS", Datatype::StringUtf8, b"of mine"),
    ];
    columns
}

#[test]
fn readers_see_the_values_of_a_dense_array() {
    let folder = tempfile::tempdir().unwrap();
    let columns = columns();
    write(folder.path(), "array.nc", &hdf5(&columns, Form::NetCdf4).unwrap());
    write(folder.path(), "array.h5", &hdf5(&columns, Form::Plain).unwrap());
    write(folder.path(), "classic.nc", &netcdf(&columns).unwrap().file.content);
    let expected = r#"
np = numpy
texts = [('né' * (i % 5)) for i in range(20)]
"#;
    let h5py = r#"
for name in 'array.h5', 'array.nc':
    f = h5py.File(name)
    plain = name == 'array.h5'
    text = lambda value: value if isinstance(value, str) else value.decode()
    assert text(f.attrs['title']) == 'größer' and text(f.attrs['CLASS_']) == 'of mine' and f.attrs['number'] == 1 << 40
    assert f.attrs['large'].shape == (10_000,) and isinstance(f.attrs['empty'], h5py.Empty)
    assert f['temp'].dtype == '<f4' and f['temp'].fillvalue == -9999 and f['temp'].shape == (4, 5)
    assert f['count'].dtype == '<u8' and f['count'][3, 4] == 2**64 - 1 - 19
    assert f['x'][:].tolist() == list(range(10, 15)) and f['x'].is_scale and f['temp'].dims[1][0] == f['x']
    assert f['text'].asstr()[:].ravel().tolist() == texts
    assert f['some'][:].tolist() == list(range(10)) and f['some_offsets'][3] == 4
    assert f['pair'][1, 0].tolist() == [10, 11]
    assert f['kind_of it_labels'].asstr()[:].tolist() == ['T cell', 'größer']
    assert f['day'].dtype == '<i8' and f['day'][0, 1] == 10958
    if plain:
        assert f['flag'].dtype == '?' and f['flag'][0, :2].tolist() == [False, True]
        assert f['count_valid'].dtype == '?' and f['count_valid'][0, :4].tolist() == [False, True, True, False]
        assert f['maybe'].dtype == 'i1' and f['maybe'][0, :3].tolist() == [-1, 1, 1] and f['maybe'].attrs['_FillValue'] == -1
        assert f['word'].dtype == 'S4' and f['word'][0, :2].tolist() == [b'ab', b'efgh']
        assert set(f) == {'x', 'y', 'temp', 'count', 'count_valid', 'flag', 'maybe', 'maybe_valid', 'word', 'pair', 'text', 'some', 'some_offsets',
                          'kind_of it', 'kind_of it_labels', 'day'}, set(f)
    else:
        assert f['flag'].dtype == 'i1' and f['word'].shape == (4, 5, 4)
"#;
    python(folder.path(), "h5py, numpy", &format!("{expected}{h5py}"));
    let netcdf4 = r#"
d = netCDF4.Dataset('array.nc')
assert d.data_model == 'NETCDF4'
assert list(d.dimensions)[:2] == ['y', 'x'] and len(d.dimensions['pair_values']) == 2
assert d.title == 'größer' and d.number == 1 << 40 and d.Conventions == 'CF-1.8'
d.set_auto_mask(False)
assert d['count'].dtype == '<u8' and d['count'][3, 4] == 2**64 - 1 - 19
assert d['text'].dtype == str and d['text'][:].ravel().tolist() == texts
assert d['temp']._FillValue == -9999 and d['day'].units == 'days since 1970-01-01'
assert d['temp'].dimensions == ('y', 'x') and d['pair'].dimensions == ('y', 'x', 'pair_values')
# What the classic form of the file has, this one has as well, with the same values.
classic = netCDF4.Dataset('classic.nc')
classic.set_auto_mask(False)
for name, variable in classic.variables.items():
    if name in ('text', 'text_offsets', 'kind_of it_labels'):
        continue
    assert d[name].dimensions == variable.dimensions, name
    assert numpy.array_equal(d[name][:], variable[:], equal_nan=variable.dtype.kind == 'f'), name
    for key in variable.ncattrs():
        if key not in ('_Unsigned', '_FillValue', 'flag_values'):
            assert d[name].getncattr(key) == variable.getncattr(key), (name, key)
both = [xarray.open_dataset(name, engine='netcdf4') for name in ('array.nc', 'classic.nc')]
assert str(both[0].day.values[0, 1])[:10] == '2000-01-02' and both[0].text.values.ravel().tolist() == texts
for name in both[1].variables:
    if not name.startswith(('text', 'kind_of it_label')):
        xarray.testing.assert_equal(both[0][name], both[1][name])
"#;
    python(folder.path(), "netCDF4, numpy, xarray", &format!("{expected}{netcdf4}"));
    if has("ncdump") {
        let header = run(folder.path(), "ncdump", &["-h", "array.nc"]);
        for line in [
            "\tstring text(y, x) ;",
            "\tuint64 count(y, x) ;",
            "\tchar word(y, x, word_values) ;",
            "\tbyte flag(y, x) ;",
        ] {
            assert!(header.contains(line), "{line}\n{header}");
        }
        assert!(run(folder.path(), "ncdump", &["-v", "text", "array.nc"]).contains("\"nénénéné\""));
    }
    if has("h5dump") {
        for name in ["array.nc", "array.h5"] {
            run(folder.path(), "h5dump", &[name]);
        }
        let dumped = run(folder.path(), "h5dump", &["-d", "/flag", "array.h5"]);
        assert!(dumped.contains("\"FALSE\"") && dumped.contains("(0,0): FALSE, TRUE"), "{dumped}");
    }
}

#[test]
fn readers_see_the_rows_of_a_table_and_that_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let table = |rows: u64| {
        let id = Column::fixed(Field::new("id", Datatype::Int64), vec![rows], bytes((0..rows).map(u64::to_le_bytes)));
        let name = Field::new("name", Datatype::StringAscii).with_values_per_cell(None);
        let offsets = bytes((0..=rows).map(|row| (row * 3).to_le_bytes()));
        let name = Column::variable(name, vec![rows], Arc::new(b"abc".repeat(rows as usize)), offsets);
        Columns {
            sparse: true,
            dimensions: vec![id],
            auxiliary: Vec::new(),
            attributes: vec![name],
            metadata: Vec::new(),
            georeference: None,
        }
    };
    for rows in [0, 3, 5000] {
        for (form, extension) in [(Form::NetCdf4, "nc"), (Form::Plain, "h5")] {
            write(folder.path(), &format!("{rows}.{extension}"), &hdf5(&table(rows), form).unwrap());
        }
    }
    let script = r#"
for rows in 0, 3, 5000:
    for name in f'{rows}.nc', f'{rows}.h5':
        with h5py.File(name) as f:
            assert f['id'][:].tolist() == list(range(rows)) and f['name'].asstr()[:].tolist() == ['abc'] * rows
    with netCDF4.Dataset(f'{rows}.nc') as d:
        assert d['id'][:].tolist() == list(range(rows)) and d['name'][:].tolist() == ['abc'] * rows
        assert len(d.dimensions['id']) == rows and d['name'].dimensions == ('id',)
    with xarray.open_dataset(f'{rows}.nc', engine='netcdf4') as x:
        assert x.name.values.tolist() == ['abc'] * rows
"#;
    python(folder.path(), "h5py, netCDF4, xarray", script);
}

#[test]
fn cells_that_nobody_wrote_have_the_value_of_netcdf() {
    use Datatype::{Bool, Float32, Float64, Int8, Int16, Int32, Int64, StringUtf8, UInt8, UInt16, UInt32, UInt64};
    let folder = tempfile::tempdir().unwrap();
    let types = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64, Bool];
    let column = |datatype: Datatype| {
        let field = Field::new(datatype.name(), datatype);
        Column::fixed(field, vec![1, 1], Arc::new(vec![0; datatype.size()]))
    };
    let mut columns: Vec<Column> = types.into_iter().map(column).collect();
    let text = Field::new("text", StringUtf8).with_values_per_cell(None);
    columns.push(Column::variable(text, vec![1, 1], Arc::new(b"a".to_vec()), bytes([0, 1].map(u64::to_le_bytes))));
    let columns = dense([1, 1], columns);
    write(folder.path(), "array.nc", &hdf5(&columns, Form::NetCdf4).unwrap());
    write(folder.path(), "array.h5", &hdf5(&columns, Form::Plain).unwrap());
    let script = r#"
with netCDF4.Dataset('array.nc') as ours, netCDF4.Dataset('theirs.nc', 'w') as theirs:
    for name in ours.dimensions:
        theirs.createDimension(name, 1)
    for name, variable in ours.variables.items():
        theirs.createVariable(name, variable.dtype, variable.dimensions)
with h5py.File('array.nc') as ours, h5py.File('array.h5') as plain, h5py.File('theirs.nc') as theirs:
    assert len(ours) == 14, list(ours)
    for name, dataset in theirs.items():
        found = ours[name].fillvalue, plain[name].fillvalue
        # The enumeration of plain HDF5 has no value besides those of booleans.
        expected = dataset.fillvalue, False if plain[name].dtype == '?' else dataset.fillvalue
        assert found == expected, (name, found, expected)
"#;
    python(folder.path(), "h5py, netCDF4", script);
}
