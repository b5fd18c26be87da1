//! GDAL opens the raw file through the ENVI header or the `.vrt` beside it; other headers are for other readers.

use tilefs_export::geo::georeference::Georeference;
use tilefs_export::raster::Scene;
use tilefs_export::raster::{envi, sidecar};
use tilefs_export::{Column, Field};
use tilefs_format::datatype::Datatype;

use crate::tools::{bytes, floats, has, imagemagick, python, run, write};

const UTM: &str = r#"PROJCS["WGS 84 / UTM zone 32N",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],PARAMETER["central_meridian",9],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],PARAMETER["false_northing",0],UNIT["metre",1],AUTHORITY["EPSG","32632"]]"#;

/// Returns a raster with these axes.
fn scene(names: &[&str], shape: &[u64], place: Option<&Georeference>) -> Scene {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    Scene { place: place.cloned(), ..Scene::of_axes(&names, shape) }
}

/// Returns the value of a pixel of a band as GDAL reads it.
fn pixel(folder: &std::path::Path, file: &str, band: u64, x: u64, y: u64) -> String {
    let (band, x, y) = (band.to_string(), x.to_string(), y.to_string());
    run(folder, "gdallocationinfo", &["-valonly", "-b", &band, file, &x, &y]).trim().to_owned()
}

#[test]
fn gdal_reads_values_and_georeference() {
    if !has("gdalinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = Georeference::new([440720.0, 60.0, 0.0, 3751320.0, 0.0, -30.0], UTM);
    let field = Field::new("temp", Datatype::Float32).with_no_data((-9999f32).to_le_bytes());
    let temp = Column::fixed(field, vec![3, 4], bytes((0..12).map(|i| (i as f32 * 1.5).to_le_bytes())));
    write(folder.path(), "temp.f32", &temp.values);
    write(folder.path(), "temp.f32.hdr", &envi::header(&temp, &scene(&["y", "x"], &[3, 4], Some(&place))).unwrap());
    let info = run(folder.path(), "gdalinfo", &["temp.f32"]);
    for expected in [
        "Driver: ENVI",
        "Size is 4, 3",
        "WGS 84 / UTM zone 32N",
        "Origin = (440720.000000000000000,3751320.000000000000000)",
        "Pixel Size = (60.000000000000000,-30.000000000000000)",
        "Type=Float32",
        "NoData Value=-9999",
    ] {
        assert!(info.contains(expected), "{expected} is missing in\n{info}");
    }
    assert_eq!(pixel(folder.path(), "temp.f32", 1, 3, 2), "16.5");
    run(folder.path(), "gdal_translate", &["-q", "temp.f32", "out.tif"]);
    assert_eq!(pixel(folder.path(), "out.tif", 1, 1, 1), "7.5");
}

#[test]
fn gdal_finds_each_band_in_each_interleave() {
    if !has("gdalinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, [u64; 3], [&str; 3]); 3] = [
        ("bsq", [2, 3, 4], ["band", "y", "x"]),
        ("bil", [3, 2, 4], ["y", "BANDS", "x"]),
        ("bip", [3, 4, 2], ["y", "x", "bands"]),
    ];
    for (name, shape, names) in cases {
        // The value of a pixel encodes its position: band, line, sample.
        let mut values = Vec::new();
        for a in 0..shape[0] {
            for b in 0..shape[1] {
                for c in 0..shape[2] {
                    let (band, y, x) = match name {
                        "bsq" => (a, b, c),
                        "bil" => (b, a, c),
                        _ => (c, a, b),
                    };
                    values.push(((band * 100 + y * 10 + x) as u16).to_le_bytes());
                }
            }
        }
        let column = Column::fixed(Field::new("a", Datatype::UInt16), shape.to_vec(), bytes(values));
        let scene = scene(&names, &shape, None);
        write(folder.path(), &format!("{name}.u16"), &column.values);
        write(folder.path(), &format!("{name}.u16.hdr"), &envi::header(&column, &scene).unwrap());
        let vrt = sidecar::vrt(&column, &scene, &format!("{name}.u16")).unwrap();
        write(folder.path(), &format!("{name}.vrt"), &vrt);
        for (band, y, x) in [(0, 0, 0), (1, 2, 3), (0, 1, 2), (1, 0, 1)] {
            let expected = (band * 100 + y * 10 + x).to_string();
            assert_eq!(pixel(folder.path(), &format!("{name}.vrt"), band + 1, x, y), expected, "{name}.vrt");
            assert_eq!(pixel(folder.path(), &format!("{name}.u16"), band + 1, x, y), expected, "{name}");
        }
    }
}

#[test]
fn a_vrt_has_the_georeference_of_any_transform() {
    if !has("gdalinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Rows go north, which ENVI cannot express.
    let place = Georeference::new([10.0, 2.0, 0.0, 20.0, 0.0, 3.0], UTM);
    let mut column = floats("temp", &[5, 7]);
    column.field.no_data = Some(f32::NAN.to_le_bytes().to_vec());
    write(folder.path(), "a & b.f32", &column.values);
    write(
        folder.path(),
        "a.vrt",
        &sidecar::vrt(&column, &scene(&["y", "x"], &[5, 7], Some(&place)), "a & b.f32").unwrap(),
    );
    let info = run(folder.path(), "gdalinfo", &["a.vrt"]);
    for expected in ["UTM zone 32N", "Origin = (10.0", "Pixel Size = (2.000000000000000,3.0", "NoData Value=nan"] {
        assert!(info.contains(expected), "{expected} is missing in\n{info}");
    }
    assert_eq!(pixel(folder.path(), "a.vrt", 1, 0, 1), "0.100000001490116");
}

#[test]
fn image_readers_find_the_raw_file() {
    let folder = tempfile::tempdir().unwrap();
    let column = floats("temp", &[3, 5, 7]);
    write(folder.path(), "temp.f32", &column.values);
    write(folder.path(), "temp.nhdr", &sidecar::nhdr(&column, &Scene::default(), "temp.f32").unwrap());
    write(folder.path(), "temp.mhd", &sidecar::mhd(&column, &Scene::default(), "temp.f32").unwrap());
    python(
        folder.path(),
        "numpy, SimpleITK",
        r#"
raw = numpy.fromfile('temp.f32', '<f4').reshape(3, 5, 7)
for name in 'temp.nhdr', 'temp.mhd':
    image = SimpleITK.ReadImage(name)
    assert image.GetSize() == (7, 5, 3), image.GetSize()
    assert numpy.array_equal(SimpleITK.GetArrayFromImage(image), raw, equal_nan=True), name
"#,
    );
    if let Some(convert) = imagemagick() {
        // ImageMagick needs no header: size and type are arguments.
        let grey = Column::fixed(Field::new("a", Datatype::UInt8), vec![3, 4], bytes((0..12u8).map(|i| [i * 20])));
        write(folder.path(), "a.gray", &grey.values);
        let text = run(folder.path(), convert, &["-size", "4x3", "-depth", "8", "a.gray", "txt:-"]);
        assert!(text.lines().any(|line| line.starts_with("3,2:") && line.ends_with("gray(220)")), "{text}");
    }
}
