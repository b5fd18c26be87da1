//! netCDF4, SciPy, xarray, ncdump and GDAL open our netCDF files.

use std::sync::Arc;

use tilefs_export::geo::georeference::{Georeference, GeoreferencedAxes};
use tilefs_export::netcdf::{Version, netcdf};
use tilefs_export::{Column, Columns, Field, Labels, Metadatum};
use tilefs_format::datatype::Datatype;

use crate::tools::{axis, bytes, dense, floats, has, python, run, write};

/// Returns columns that CDF-2 can hold, with difficult names.
fn old() -> Columns {
    let shape = vec![40, 50];
    let cells = 2000u64;
    let number = |name: &str, datatype: Datatype| {
        let field = Field::new(name, datatype);
        let length = cells * field.cell_size().unwrap();
        Column::fixed(field, shape.clone(), Arc::new((0..length).map(|i| (i * 37 % 251) as u8).collect::<Vec<u8>>()))
    };
    let mut temp = floats("temp", &shape);
    temp.field.no_data = Some((-9999f32).to_le_bytes().to_vec());
    let complex = number("complex", Datatype::Float32).field.with_values_per_cell(Some(2));
    let complex = Column::fixed(complex, shape.clone(), bytes((0..2 * cells).map(|i| (i as f32).to_le_bytes())));
    let word = Field::new("word", Datatype::StringAscii).with_values_per_cell(Some(4));
    let word = Column::fixed(word, shape.clone(), Arc::new(b"ab\0\0efgh".repeat(1000)));
    let mut columns = dense(
        [40, 50],
        vec![
            temp,
            number("u8", Datatype::UInt8)
                .with_validity(Arc::new((0..cells).map(|i| (i % 3 != 0) as u8).collect::<Vec<u8>>())),
            number("i8", Datatype::Int8),
            number("u16", Datatype::UInt16),
            number("u32", Datatype::UInt32),
            number("größe/of it ", Datatype::Int32),
            number("a \"b\" ü", Datatype::Int16),
            complex,
            word,
        ],
    );
    let day = Field::new("y", Datatype::DateTimeDay);
    columns.dimensions[0] =
        Column::fixed(day, vec![40], bytes((0..40i64).map(|i| (10957 + i).to_le_bytes()))).with_bounds(10957, 10996);
    let datum = |key: &str, datatype, value: &[u8]| Metadatum { key: key.into(), datatype, value: value.to_vec() };
    columns.metadata = vec![
        datum("title", Datatype::StringUtf8, "größer".as_bytes()),
        datum("count", Datatype::Int64, &7i64.to_le_bytes()),
        datum("empty", Datatype::Int32, &[]),
    ];
    columns
}

#[test]
fn readers_of_cdf2_see_the_values() {
    let folder = tempfile::tempdir().unwrap();
    let columns = old();
    let made = netcdf(&columns).unwrap();
    assert_eq!(made.version, Version::Cdf2);
    assert!(made.file.left_out.is_empty());
    write(folder.path(), "array.nc", &made.file.content);
    for (number, column) in columns.attributes.iter().enumerate() {
        write(folder.path(), &number.to_string(), &column.values);
    }
    let names = "names = ['temp', 'u8', 'i8', 'u16', 'u32', 'größe_of it_', 'a \"b\" ü', 'complex', 'word']\n\
                 types = ['<f4', '<u1', '<i1', '<u2', '<u4', '<i4', '<i2', '<f4', 'S1']\n";
    python(
        folder.path(),
        "netCDF4, numpy",
        &format!(
            "{names}{}",
            r#"
np = numpy
d = netCDF4.Dataset('array.nc')
assert d.data_model == 'NETCDF3_64BIT_OFFSET', d.data_model
d.set_auto_mask(False)
d.set_auto_chartostring(False)
for i, (name, type) in enumerate(zip(names, types)):
    v = d[name]
    raw = np.fromfile(str(i), type)
    assert v[:].astype(type).tobytes() == raw.tobytes(), name
    assert v.dimensions[:2] == ('y', 'x')
assert d['größe_of it_'].long_name == 'größe/of it '
assert d['temp']._FillValue == -9999 and d['y'].units == 'days since 1970-01-01'
assert netCDF4.num2date(d['y'][0], d['y'].units, d['y'].calendar).isoformat() == '2000-01-01T00:00:00'
assert list(d['x'][:]) == list(range(10, 60))
assert d.title == 'größer' and d.count == 7 and d.Conventions == 'CF-1.8'
assert list(d['u8_valid'][0, :4]) == [0, 1, 1, 0]
"#
        ),
    );
    python(
        folder.path(),
        "numpy, scipy.io",
        &format!(
            "{names}{}",
            r#"
np = numpy
for mapped in True, False:
    d = scipy.io.netcdf_file('array.nc', mmap=mapped, maskandscale=False)
    for i, (name, type) in enumerate(zip(names, types)):
        raw = np.fromfile(str(i), type)
        # SciPy takes all names for Latin-1.
        value = np.array(d.variables[name.encode().decode('latin1')][:])
        assert value.astype(value.dtype.newbyteorder('=')).astype(type).tobytes() == raw.tobytes(), name
    assert d.variables['x'][3] == 13
    del value
    d.close()
"#
        ),
    );
    python(
        folder.path(),
        "numpy, xarray, netCDF4",
        &format!(
            "{names}{}",
            r#"
np = numpy
d = xarray.open_dataset('array.nc', mask_and_scale=False, engine='netcdf4')
for i, (name, type) in enumerate(zip(names[:-1], types)):
    assert d[name].values.astype(type).tobytes() == np.fromfile(str(i), type).tobytes(), name
assert d['word'].values[0, :2].tolist() == ['ab', 'efgh'] and d['word'].shape == (40, 50)
d = xarray.open_dataset('array.nc', engine='netcdf4')
assert d.u16.dtype == np.uint16 and d.u32.dtype == np.uint32
assert str(d.y.values[1])[:10] == '2000-01-02'
assert float(d.temp.sel(y='2000-01-01', x=17)) == np.float32(0.1)
"#
        ),
    );
    if has("ncdump") {
        let header = run(folder.path(), "ncdump", &["-h", "array.nc"]);
        assert!(header.contains("float temp(y, x) ;") && header.contains("u8:_Unsigned = \"true\" ;"), "{header}");
        assert_eq!(run(folder.path(), "ncdump", &["-k", "array.nc"]).trim(), "64-bit offset");
        assert!(
            run(folder.path(), "ncdump", &["-t", "-v", "y", "array.nc"]).contains("\"2000-01-01\", \"2000-01-02\"")
        );
    }
}

#[test]
fn readers_of_cdf5_see_the_values() {
    let folder = tempfile::tempdir().unwrap();
    let number = |name: &str, datatype: Datatype, values: [i64; 6]| {
        let field = Field::new(name, datatype).with_no_data(i64::MIN.to_le_bytes());
        Column::fixed(field, vec![2, 3], bytes(values.map(i64::to_le_bytes)))
    };
    let values = [0, 1, -1, i64::MAX, i64::MIN, 1 << 60];
    let columns = dense(
        [2, 3],
        vec![
            number("i64", Datatype::Int64, values),
            number("u64", Datatype::UInt64, values),
            number("ns", Datatype::DateTimeNs, [0, 1, -1, 86_400_000_000_001, i64::MIN, 1 << 60]),
            number("year", Datatype::DateTimeYear, [0, 30, -70, 54, i64::MIN, 200]),
            number("week", Datatype::DateTimeWeek, [0, 1, -1, 2, i64::MIN, 3]),
            number("as", Datatype::DateTimeAs, values),
            number("ms", Datatype::TimeMs, [0, 1, 2, 3, 4, 5]),
        ],
    );
    let made = netcdf(&columns).unwrap();
    assert_eq!(made.version, Version::Cdf5);
    write(folder.path(), "array.nc", &made.file.content);
    python(
        folder.path(),
        "netCDF4, numpy",
        r#"
np = numpy
d = netCDF4.Dataset('array.nc')
assert d.data_model == 'NETCDF3_64BIT_DATA', d.data_model
d.set_auto_mask(False)
expected = np.array([0, 1, -1, 2**63 - 1, -2**63, 2**60])
assert (d['i64'][:].ravel() == expected).all() and (d['as'][:].ravel() == expected).all()
assert d['u64'].dtype == np.uint64 and (d['u64'][:].ravel() == expected.view(np.uint64)).all()
"#,
    );
    python(
        folder.path(),
        "netCDF4, numpy, xarray",
        r#"
np = numpy
d = xarray.open_dataset('array.nc', engine='netcdf4', decode_timedelta=True)
ns = np.array([0, 1, -1, 86_400_000_000_001, -2**63, 2**60]).view('M8[ns]')
assert np.array_equal(d.ns.values.ravel(), ns, equal_nan=True), d.ns.values
year = np.array([0, 30, -70, 54, -2**63, 200]).view('M8[Y]').astype('M8[ns]')
assert np.array_equal(d.year.values.ravel().astype('M8[ns]'), year, equal_nan=True), d.year.values
week = np.array([0, 1, -1, 2, -2**63, 3]).view('M8[W]').astype('M8[ns]')
assert np.array_equal(d.week.values.ravel().astype('M8[ns]'), week, equal_nan=True), d.week.values
assert (d.ms.values.ravel() == np.arange(6).astype('m8[ms]')).all(), d.ms.values
"#,
    );
    if has("ncdump") {
        assert_eq!(run(folder.path(), "ncdump", &["-k", "array.nc"]).trim(), "cdf5");
        assert!(run(folder.path(), "ncdump", &["array.nc"]).contains("1152921504606846976"));
    }
}

fn sparse(rows: u64) -> Columns {
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"T cell".to_vec(), b"B".to_vec(), "größer".as_bytes().to_vec()],
    };
    let kind = Field::new("kind", Datatype::Int8).with_labels(Arc::new(labels));
    let name = Field::new("name", Datatype::StringUtf8).with_values_per_cell(None);
    let offsets = bytes((0..=rows).map(|row| (row * 2).to_le_bytes()));
    let kinds: Vec<u8> = (0..rows).map(|row| (row % 3) as u8).collect();
    let mut id = axis("id", 5, rows);
    id.bounds = Some((0, 100));
    Columns {
        sparse: true,
        dimensions: vec![id],
        attributes: vec![
            Column::fixed(kind, vec![rows], Arc::new(kinds)),
            Column::variable(name, vec![rows], Arc::new(b"ab".repeat(rows as usize)), offsets),
        ],
        metadata: Vec::new(),
        auxiliary: Vec::new(),
        georeference: None,
    }
}

#[test]
fn sparse_cells_are_rows_even_when_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "three.nc", &netcdf(&sparse(3)).unwrap().file.content);
    write(folder.path(), "none.nc", &netcdf(&sparse(0)).unwrap().file.content);
    python(
        folder.path(),
        "netCDF4",
        r#"
d = netCDF4.Dataset('three.nc')
assert list(d['id'][:]) == [5, 6, 7] and list(d['kind'][:]) == [0, 1, 2]
assert d['kind'].flag_meanings == 'T_cell B gr__er'
text, at = d['name'][:].tobytes(), d['name_offsets'][:]
assert [text[a:b] for a, b in zip(at, at[1:])] == [b'ab'] * 3
assert list(d['kind_labels'][:]) == ['T cell', 'B', 'größer'], d['kind_labels'][:]
d = netCDF4.Dataset('none.nc')
assert d['id'].shape == (0,) and len(d.dimensions['id']) == 0
"#,
    );
    python(
        folder.path(),
        "scipy.io",
        r#"
d = scipy.io.netcdf_file('none.nc', mmap=False)
assert d.variables['id'].shape == (0,), d.variables['id'].shape
d = scipy.io.netcdf_file('three.nc', mmap=False)
assert list(d.variables['id'][:]) == [5, 6, 7]
"#,
    );
    if has("ncdump") {
        assert!(run(folder.path(), "ncdump", &["none.nc"]).contains("id = UNLIMITED ; // (0 currently)"));
    }
}

#[test]
fn gdal_reads_the_grid_and_its_place() {
    if !has("gdalinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let system = r#"GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4326"]]"#;
    let mut columns = dense([40, 50], vec![floats("temp", &[40, 50])]);
    let place = Georeference::new([5.0, 0.5, 0.0, 50.0, 0.0, -0.25], system);
    columns.georeference = Some(GeoreferencedAxes { place, lines: 0, samples: 1, are_labelled: false });
    write(folder.path(), "array.nc", &netcdf(&columns).unwrap().file.content);
    let info = run(folder.path(), "gdalinfo", &["array.nc"]);
    assert!(info.contains("Size is 50, 40") && info.contains("Type=Float32"), "{info}");
    assert!(info.contains("WGS 84"), "{info}");
    assert!(info.contains("Pixel Size = (0.5") && info.contains(",-0.25"), "{info}");
    assert!(info.contains("Origin = (5.000000000000000,50.000000000000000)"), "{info}");
}
