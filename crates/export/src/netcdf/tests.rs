//! Reads the files with a second, simple reader of the classic format.

use std::collections::HashMap;

use tilefs_format::datatype::Datatype;

use super::*;
use crate::column::dataset::Variable;
use crate::column::{AuxiliaryCoordinates, Column, Field, Labels, Metadatum};
use crate::geo::georeference::{Georeference, GeoreferencedAxes};
use crate::hdf5::{Form, hdf5};
use crate::testing::{assert_random_access, assert_reads_ahead, read_all};
use proptest::prelude::*;

/// The result of the simple reader: attributes by name, and the dimensions and data of each variable.
struct Read {
    version: u8,
    attributes: HashMap<String, (u32, Vec<u8>)>,
    variables: HashMap<String, ReadVariable>,
}

struct ReadVariable {
    shape: Vec<(String, u64)>,
    attributes: HashMap<String, (u32, Vec<u8>)>,
    nc_type: u32,
    data: Vec<u8>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    wide: bool,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> &[u8] {
        self.at += length;
        &self.bytes[self.at - length..self.at]
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn count(&mut self) -> u64 {
        if self.wide { self.u64() } else { u64::from(self.u32()) }
    }

    fn padded(&mut self, length: usize) -> Vec<u8> {
        let bytes = self.take(length).to_vec();
        while !self.at.is_multiple_of(4) {
            assert_eq!(self.take(1), [0]);
        }
        bytes
    }

    fn name(&mut self) -> String {
        let length = self.count() as usize;
        String::from_utf8(self.padded(length)).unwrap()
    }

    fn list(&mut self, tag: u32) -> u64 {
        let found = self.u32();
        let count = self.count();
        assert_eq!(found, if count == 0 { 0 } else { tag });
        count
    }

    fn attributes(&mut self) -> HashMap<String, (u32, Vec<u8>)> {
        let count = self.list(0x0c);
        (0..count)
            .map(|_| {
                let name = self.name();
                let nc_type = self.u32();
                let length = self.count() as usize * size_of(nc_type);
                (name, (nc_type, self.padded(length)))
            })
            .collect()
    }
}

fn size_of(nc_type: u32) -> usize {
    [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][nc_type as usize]
}

fn read(content: &dyn Content) -> Read {
    let bytes = read_all(content);
    assert_eq!(&bytes[..3], b"CDF");
    let mut reader = Reader { bytes: &bytes, at: 4, wide: bytes[3] == 5 };
    assert_eq!(reader.count(), 0, "no records");
    let dimensions: Vec<(String, u64)> = (0..reader.list(0x0a)).map(|_| (reader.name(), reader.count())).collect();
    let attributes = reader.attributes();
    let (mut last_end, mut last_record) = (0, 0);
    let variables = (0..reader.list(0x0b))
        .map(|_| {
            let name = reader.name();
            let rank = reader.count();
            let shape: Vec<(String, u64)> = (0..rank).map(|_| dimensions[reader.count() as usize].clone()).collect();
            let attributes = reader.attributes();
            let nc_type = reader.u32();
            let length = shape.iter().map(|(_, length)| *length).product::<u64>() as usize * size_of(nc_type);
            let vsize = reader.count();
            let is_record = shape.iter().any(|(_, length)| *length == 0);
            assert!(is_record || vsize == length.next_multiple_of(4) as u64);
            let begin = reader.u64() as usize;
            assert!(begin.is_multiple_of(4));
            // Records have a section of their own, at the end.
            if is_record {
                assert!(begin >= last_record && begin >= bytes.len());
                last_record = begin + vsize as usize;
            } else {
                assert!(begin >= last_end);
                last_end = begin + length;
            }
            let data = if is_record { Vec::new() } else { bytes[begin..begin + length].to_vec() };
            (name, ReadVariable { shape, attributes, nc_type, data })
        })
        .collect();
    Read { version: bytes[3], attributes, variables }
}

fn le<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Arc<dyn Content> {
    Arc::new(values.into_iter().flatten().collect::<Vec<u8>>())
}

fn axis(name: &str, first: i64, length: u64) -> Column {
    let values = le((0..length as i64).map(|i| (first + i).to_le_bytes()));
    let last = first + length as i64 - 1;
    Column::fixed(Field::new(name, Datatype::Int64), vec![length], values).with_bounds(first.into(), last.into())
}

fn dense(attributes: Vec<Column>) -> Columns {
    let dimensions = vec![axis("y", -1, 2), axis("x", 10, 3)];
    Columns { sparse: false, dimensions, attributes, metadata: Vec::new(), auxiliary: Vec::new(), georeference: None }
}

fn text(attribute: &(u32, Vec<u8>)) -> &str {
    assert_eq!(attribute.0, 2, "a text");
    std::str::from_utf8(&attribute.1).unwrap()
}

#[test]
fn a_dense_array_is_cdf2_with_coordinate_variables() {
    let values = [1.5f32, 2.5, f32::NAN, -1.0, 0.0, 3e38];
    let field = Field::new("temp", Datatype::Float32).with_no_data(f32::NAN.to_le_bytes());
    let temp = Column::fixed(field, vec![2, 3], le(values.map(f32::to_le_bytes)));
    let count = Column::fixed(Field::new("count", Datatype::UInt16), vec![2, 3], le((0..6u16).map(u16::to_le_bytes)))
        .with_validity(Arc::new(vec![1, 0, 1, 1, 1, 0]));
    let mut columns = dense(vec![temp, count]);
    columns.metadata.push(Metadatum { key: "title".into(), datatype: Datatype::StringUtf8, value: b"T".to_vec() });
    let made = netcdf(&columns).unwrap();
    assert_eq!(made.version, Version::Cdf2);
    let file = read(&made.file.content);
    assert_eq!(file.version, 2);
    assert_eq!(text(&file.attributes["title"]), "T");
    assert_eq!(text(&file.attributes["Conventions"]), "CF-1.8");
    assert_eq!(file.variables["y"].shape, [("y".to_owned(), 2)]);
    assert_eq!(file.variables["y"].data, [-1i32, 0].map(i32::to_be_bytes).concat());
    let temp = &file.variables["temp"];
    assert_eq!(temp.shape, [("y".to_owned(), 2), ("x".to_owned(), 3)]);
    assert_eq!((temp.nc_type, &temp.data), (5, &values.map(f32::to_be_bytes).concat()));
    assert_eq!(temp.attributes["_FillValue"], (5, f32::NAN.to_be_bytes().to_vec()));
    let count = &file.variables["count"];
    assert_eq!((count.nc_type, text(&count.attributes["_Unsigned"])), (3, "true"));
    assert_eq!(text(&count.attributes["ancillary_variables"]), "count_valid");
    assert_eq!(file.variables["count_valid"].data, [1, 0, 1, 1, 1, 0]);
    assert_random_access(&made.file.content);
}

#[test]
fn rows_and_columns_of_a_raster_have_the_coordinates_of_their_pixels() {
    let utm = "PROJCS[\"a\",GEOGCS[\"b\",DATUM[\"c\",SPHEROID[\"d\",6378137,298.25]],UNIT[\"degree\",0.0174532925199433]],\
               PROJECTION[\"Transverse_Mercator\"],PARAMETER[\"central_meridian\",9],PARAMETER[\"latitude_of_origin\",0],\
               PARAMETER[\"scale_factor\",0.9996],UNIT[\"metre\",1]]";
    let values = Column::fixed(Field::new("temp", Datatype::UInt8), vec![2, 3], Arc::new(vec![0; 6]));
    let of = |transform: [f64; 6], system: &str, lines, samples| {
        let mut columns = dense(vec![values.clone()]);
        columns.georeference = Some(GeoreferencedAxes {
            place: Georeference::new(transform, system),
            lines,
            samples,
            are_labelled: false,
        });
        read(&netcdf(&columns).unwrap().file.content)
    };
    let doubles = |values: &[f64]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let file = of([10.0, 2.0, 0.0, 50.0, 0.0, -4.0], utm, 0, 1);
    let (y, x, crs) = (&file.variables["y"], &file.variables["x"], &file.variables["crs"]);
    assert_eq!((y.nc_type, &y.data), (6, &doubles(&[48.0, 44.0])));
    assert_eq!((x.nc_type, &x.data), (6, &doubles(&[11.0, 13.0, 15.0])));
    assert_eq!(text(&x.attributes["standard_name"]), "projection_x_coordinate");
    assert_eq!((text(&y.attributes["units"]), text(&y.attributes["axis"])), ("m", "Y"));
    assert_eq!(text(&file.variables["temp"].attributes["grid_mapping"]), "crs");
    assert_eq!(text(&crs.attributes["grid_mapping_name"]), "transverse_mercator");
    assert_eq!(crs.attributes["longitude_of_central_meridian"], (6, doubles(&[9.0])));
    assert_eq!(text(&crs.attributes["GeoTransform"]), "10 2 0 50 0 -4");
    // With the axes exchanged, in degrees.
    let file = of([10.0, 2.0, 0.0, 50.0, 0.0, -4.0], "GEOGCS[\"b\",UNIT[\"degree\",0.0174532925199433]]", 1, 0);
    assert_eq!(text(&file.variables["y"].attributes["units"]), "degrees_east");
    assert_eq!(file.variables["x"].data, doubles(&[48.0, 44.0, 40.0]));
    // The pixels of a row of a rotated raster do not share a coordinate.
    let file = of([10.0, 2.0, 1.0, 50.0, 0.0, -4.0], utm, 0, 1);
    assert_eq!(file.variables["y"].nc_type, 4);
    assert_eq!(text(&file.variables["crs"].attributes["GeoTransform"]), "10 2 1 50 0 -4");
}

#[test]
fn nulls_hold_the_value_for_missing_ones() {
    let validity = Arc::new(vec![1, 0, 1, 1, 1, 0]);
    let column = |no_data: Option<u8>, null: Option<u8>| {
        let mut field = Field::new("a", Datatype::Int8);
        field.no_data = no_data.map(|value| vec![value]);
        field.null = null.map(|value| vec![value]);
        Column::fixed(field, vec![2, 3], Arc::new(vec![1, 2, 3, 4, 5, 6])).with_validity(validity.clone())
    };
    let of = |column: Column| read(&netcdf(&dense(vec![column])).unwrap().file.content).variables.remove("a").unwrap();
    let masked = of(column(None, Some(100)));
    assert_eq!((&masked.data[..], &masked.attributes["_FillValue"]), (&[1, 100, 3, 4, 5, 100][..], &(1, vec![100])));
    let chosen = of(column(Some(9), Some(100)));
    assert_eq!((&chosen.data[..], &chosen.attributes["_FillValue"]), (&[1, 9, 3, 4, 5, 9][..], &(1, vec![9])));
    let none = of(column(None, None));
    assert_eq!((&none.data[..], none.attributes.contains_key("_FillValue")), (&[1, 2, 3, 4, 5, 6][..], false));
    assert_eq!(text(&none.attributes["ancillary_variables"]), "a_valid");
}

#[test]
fn notes_become_attributes_of_their_variable() {
    let note =
        |key: &str, datatype: Datatype, value: &[u8]| Metadatum { key: key.into(), datatype, value: value.to_vec() };
    let mut field = Field::new("a/b", Datatype::UInt8);
    field.notes = vec![
        note("units", Datatype::StringUtf8, b"K"),
        note("long_name", Datatype::StringUtf8, b"temperature"),
        note("ancillary_variables", Datatype::StringUtf8, b"quality"),
        note("scale_factor", Datatype::Float64, &0.5f64.to_le_bytes()),
        note("valid_range", Datatype::UInt8, &[1, 200]),
        note("_FillValue", Datatype::UInt8, &[255]),
        note("_Unsigned", Datatype::StringUtf8, b"false"),
        note("bad/name", Datatype::Int32, &7i32.to_le_bytes()),
    ];
    let column = Column::fixed(field, vec![2, 3], Arc::new(vec![0; 6])).with_validity(Arc::new(vec![1; 6]));
    let mut columns = dense(vec![column]);
    columns.dimensions[0].field.notes = vec![note("standard_name", Datatype::StringUtf8, b"depth")];
    let file = read(&netcdf(&columns).unwrap().file.content);
    let attributes = &file.variables["a_b"].attributes;
    assert_eq!((text(&attributes["units"]), text(&attributes["long_name"])), ("K", "temperature"));
    assert_eq!(text(&attributes["ancillary_variables"]), "a/b_valid quality".replace('/', "_"));
    assert_eq!(attributes["scale_factor"], (6, 0.5f64.to_be_bytes().to_vec()));
    assert_eq!((&attributes["valid_range"], text(&attributes["_Unsigned"])), (&(1, vec![1, 200]), "true"));
    assert_eq!(attributes["bad_name"], (4, 7i32.to_be_bytes().to_vec()));
    assert!(!attributes.contains_key("_FillValue"));
    assert_eq!(text(&file.variables["y"].attributes["standard_name"]), "depth");
    // The units of dates are generated, whatever the metadata contain.
    let mut day = Field::new("a", Datatype::DateTimeDay);
    day.notes = vec![note("units", Datatype::StringUtf8, b"fortnights")];
    let file = read(&netcdf(&dense(vec![Column::fixed(day, vec![2, 3], Arc::new(vec![0; 48]))])).unwrap().file.content);
    assert_eq!(text(&file.variables["a"].attributes["units"]), "days since 1970-01-01");
}

#[test]
fn text_of_any_length_is_padded_to_the_longest() {
    let mut columns = sparse(3);
    columns.attributes[1].offsets = Some(le([0u64, 1, 1, 6].map(u64::to_le_bytes)).into());
    columns.attributes[1].values = Arc::new(b"abcdef".to_vec());
    columns.attributes[1].longest = Some(5);
    let file = read(&netcdf(&columns).unwrap().file.content);
    let name = &file.variables["name"];
    assert_eq!(name.shape, [("cells".to_owned(), 3), ("name_length".to_owned(), 5)]);
    assert_eq!((name.nc_type, &name.data[..]), (2, &b"a\0\0\0\0\0\0\0\0\0bcdef"[..]));
    assert_eq!((text(&name.attributes["_Encoding"]), text(&name.attributes["coordinates"])), ("utf-8", "cells_2 y"));
    assert!(!file.variables.contains_key("name_offsets"));
    // Not if one long value would make the file much larger.
    columns.attributes[1].longest = Some(1 << 30);
    assert!(read(&netcdf(&columns).unwrap().file.content).variables.contains_key("name_offsets"));
}

#[test]
fn integers_without_bounds_make_it_cdf5() {
    let values = [1, -1, i64::MAX, i64::MIN, 0, 7];
    let field = Field::new("t", Datatype::DateTimeNs).with_no_data(i64::MIN.to_le_bytes());
    let made = netcdf(&dense(vec![Column::fixed(field, vec![2, 3], le(values.map(i64::to_le_bytes)))])).unwrap();
    assert_eq!(made.version, Version::Cdf5);
    let file = read(&made.file.content);
    let t = &file.variables["t"];
    assert_eq!((t.nc_type, &t.data), (10, &values.map(i64::to_be_bytes).concat()));
    assert_eq!(text(&t.attributes["units"]), "nanoseconds since 1970-01-01");
    // In CDF-5 the axes keep their type.
    assert_eq!(file.variables["y"].nc_type, 10);
}

#[test]
fn a_date_beyond_all_days_is_no_time() {
    let stored = [1, i64::MAX, i64::MIN, i64::MIN + 1, -1, 0];
    let column =
        |datatype: Datatype| Column::fixed(Field::new("when", datatype), vec![2, 3], le(stored.map(i64::to_le_bytes)));
    for datatype in [Datatype::DateTimeWeek, Datatype::DateTimeMonth, Datatype::DateTimeYear] {
        let columns = dense(vec![column(datatype)]);
        // An error would keep readers from opening the file.
        let when = read(&*netcdf(&columns).unwrap().file.content).variables.remove("when").unwrap();
        let days = when.data.as_chunks().0.iter().map(|day| i64::from_be_bytes(*day));
        let missing: Vec<usize> = days.enumerate().filter(|(_, day)| *day == i64::MIN).map(|(row, _)| row).collect();
        assert_eq!((missing, &when.attributes["_FillValue"].1), (vec![1, 2, 3], &i64::MIN.to_be_bytes().to_vec()));
    }
    // Days need no conversion.
    let file = netcdf(&dense(vec![column(Datatype::DateTimeDay)])).unwrap().file;
    let when = read(&*file.content).variables.remove("when").unwrap();
    assert_eq!(when.data, stored.map(i64::to_be_bytes).concat());
    assert!(!when.attributes.contains_key("_FillValue"));
}

/// Kernels ask for whole pages, so a damaged value must not share its page with the header or with another variable; small
/// variables of HDF5 share one with each other.
#[test]
fn variables_have_pages_of_their_own() {
    let files = |number: i32| {
        let column = |name: &str, number: i32| {
            let field = Field::new(name, Datatype::Int32).with_values_per_cell(Some(2800));
            Column::fixed(field, vec![2, 3], le([number; 6 * 2800].map(i32::to_le_bytes)))
        };
        let columns = dense(vec![column("before", 7), column("changed", number), column("after", 7)]);
        let forms = [Form::NetCdf4, Form::Plain].map(|form| read_all(&*hdf5(&columns, form).unwrap()));
        [vec![read_all(&*netcdf(&columns).unwrap().file.content)], forms.to_vec()].concat()
    };
    let values = [8i32.to_be_bytes(), 8i32.to_le_bytes(), 8i32.to_le_bytes()].map(|value| value.repeat(6 * 2800));
    for ((one, other), values) in files(8).iter().zip(files(9)).zip(values) {
        let pages = one.chunks(MEMORY_PAGE as usize).zip(other.chunks(MEMORY_PAGE as usize));
        let changed: Vec<&[u8]> = pages.filter(|(one, other)| one != other).map(|(one, _)| one).collect();
        let changed = changed.concat();
        assert!(changed.starts_with(&values) && changed.len() == 17 * MEMORY_PAGE as usize);
        assert!(changed[values.len()..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn dates_in_units_that_are_not_exact_become_days() {
    let stored = [1, i64::MIN, -1, 0, 2, 3];
    for (datatype, days) in [
        (Datatype::DateTimeWeek, [7, i64::MIN, -7, 0, 14, 21]),
        (Datatype::DateTimeMonth, [31, i64::MIN, -31, 0, 59, 90]),
        (Datatype::DateTimeYear, [365, i64::MIN, -365, 0, 730, 1096]),
    ] {
        let column = Column::fixed(Field::new("when", datatype), vec![2, 3], le(stored.map(i64::to_le_bytes)));
        let when = read(&*netcdf(&dense(vec![column])).unwrap().file.content).variables.remove("when").unwrap();
        assert_eq!(when.data, days.map(i64::to_be_bytes).concat(), "{datatype:?}");
        assert_eq!(when.attributes["_FillValue"].1, i64::MIN.to_be_bytes());
    }
}

#[test]
fn several_values_and_characters_are_another_dimension() {
    let pair = Field::new("pair", Datatype::Int16).with_values_per_cell(Some(2)).with_no_data([1, 0]);
    let word = Field::new("word", Datatype::StringAscii).with_values_per_cell(Some(3));
    let columns = dense(vec![
        Column::fixed(pair, vec![2, 3], le((0..12i16).map(i16::to_le_bytes))),
        Column::fixed(word, vec![2, 3], Arc::new(b"abcdefghijklmnopqr".to_vec())),
    ]);
    let file = read(&netcdf(&columns).unwrap().file.content);
    assert_eq!(file.variables["pair"].shape[2], ("pair_values".to_owned(), 2));
    assert_eq!(file.variables["pair"].attributes["_FillValue"], (3, vec![0, 1]));
    assert_eq!(file.variables["word"].data, b"abcdefghijklmnopqr");
    assert_eq!(text(&file.variables["word"].attributes["_Encoding"]), "utf-8");
    assert!(!file.variables["word"].attributes.contains_key("_FillValue"));
}

fn sparse(rows: u64) -> Columns {
    let labels = Labels {
        name: "kinds".into(),
        datatype: Datatype::StringUtf8,
        ordered: false,
        values: vec![b"T cell".to_vec(), b"B".to_vec()],
    };
    let kind = Field::new("kind", Datatype::Int8).with_labels(Arc::new(labels));
    let name = Field::new("name", Datatype::StringUtf8).with_values_per_cell(None);
    let offsets = le((0..=rows).map(|row| (row * 2).to_le_bytes()));
    let kinds: Vec<u8> = (0..rows).map(|row| (row % 2) as u8).collect();
    let mut id = axis("cells", 0, rows);
    id.bounds = Some((0, 100));
    Columns {
        sparse: true,
        dimensions: vec![id, axis("y", 5, rows)],
        attributes: vec![
            Column::fixed(kind, vec![rows], Arc::new(kinds)),
            Column::variable(name, vec![rows], Arc::new(vec![b'x'; rows as usize * 2]), offsets),
        ],
        metadata: Vec::new(),
        auxiliary: Vec::new(),
        georeference: None,
    }
}

#[test]
fn sparse_cells_are_rows_with_labels_and_ragged_text() {
    let made = netcdf(&sparse(3)).unwrap();
    assert_eq!(made.version, Version::Cdf2);
    let file = read(&made.file.content);
    assert_eq!(file.variables["cells_2"].data, [0i32, 1, 2].map(i32::to_be_bytes).concat());
    let kind = &file.variables["kind"];
    assert_eq!(kind.shape, [("cells".to_owned(), 3)]);
    assert_eq!(text(&kind.attributes["flag_meanings"]), "T_cell B");
    assert_eq!(text(&kind.attributes["coordinates"]), "cells_2 y");
    assert_eq!(kind.attributes["flag_values"], (1, vec![0, 1]));
    assert_eq!(file.variables["kind_labels"].data, b"T cellB\0\0\0\0\0");
    assert_eq!(file.variables["name"].data, b"xxxxxx");
    assert_eq!(file.variables["name_offsets"].data, [0i32, 2, 4, 6].map(i32::to_be_bytes).concat());
    assert!(!file.variables["name"].attributes.contains_key("coordinates"));
}

#[test]
fn the_only_dimension_of_cells_is_their_axis() {
    let mut columns = sparse(3);
    columns.dimensions.pop();
    let file = read(&netcdf(&columns).unwrap().file.content);
    let axis = [("cells".to_owned(), 3)];
    assert_eq!((&file.variables["cells"].shape[..], &file.variables["kind"].shape[..]), (&axis[..], &axis[..]));
    assert!(!file.variables["kind"].attributes.contains_key("coordinates"));
    // Texts without one value per cell are not an axis.
    let ragged = columns.attributes[1].clone();
    let of = |name: Column| read(&netcdf(&Columns { dimensions: vec![name], ..columns.clone() }).unwrap().file.content);
    assert_eq!(of(ragged.clone()).variables["kind"].shape, axis);
    let padded =
        of(Column { longest: Some(2), field: Field { name: "gene".into(), ..ragged.field.clone() }, ..ragged });
    assert_eq!(padded.variables["gene"].shape, [("gene".to_owned(), 3), ("gene_length".to_owned(), 2)]);
    assert_eq!(padded.variables["kind"].shape, [("gene".to_owned(), 3)]);
}

#[test]
fn labels_are_coordinates_along_their_axis() {
    let mut columns = dense(vec![]);
    let rows = columns.dimensions[0].cells();
    let name = Field::new("station", Datatype::StringAscii).with_values_per_cell(None);
    let offsets = le((0..=rows).map(|row| (row * 2).to_le_bytes()));
    let name = Column::variable(name, vec![rows], Arc::new(vec![b'x'; rows as usize * 2]), offsets);
    let height =
        Column::fixed(Field::new("height", Datatype::Float32), vec![rows], Arc::new(vec![0; rows as usize * 4]));
    let value = Column::fixed(Field::new("v", Datatype::UInt8), vec![2, 3], Arc::new(vec![0; 6]));
    columns.attributes = vec![value];
    columns.auxiliary = [Column { longest: Some(2), ..name.clone() }, height.clone()]
        .map(|column| AuxiliaryCoordinates { axis: 0, column })
        .into();
    let file = read(&netcdf(&columns).unwrap().file.content);
    assert_eq!(text(&file.variables["v"].attributes["coordinates"]), "station height");
    assert_eq!(file.variables["station"].shape[0], file.variables["v"].shape[0]);
    // The variable of texts stored end to end has no element for each label.
    columns.auxiliary[0].column = name;
    let file = read(&netcdf(&columns).unwrap().file.content);
    assert_eq!(text(&file.variables["v"].attributes["coordinates"]), "height");
    columns.auxiliary[1].axis = 1;
    assert!(netcdf(&columns).is_err());
}

#[test]
fn no_cells_are_an_unlimited_dimension_without_records() {
    let made = netcdf(&sparse(0)).unwrap();
    let file = read(&made.file.content);
    assert_eq!(file.variables["kind"].shape, [("cells".to_owned(), 0)]);
    assert_eq!(made.file.left_out[0].0, "name");
}

#[test]
fn large_variables_go_last_or_make_it_cdf5() {
    let large = |name: &str, length: u64| {
        let content = Arc::new(Repeat::zeros(length * (2 << 30)));
        Column::fixed(Field::new(name, Datatype::UInt8), vec![length, 2 << 30 >> 1, 2], content)
    };
    let columns = |attributes: Vec<Column>| Columns {
        sparse: false,
        dimensions: vec![axis("z", 0, 3), axis_of(1 << 30), axis("x", 0, 2)],
        attributes,
        metadata: Vec::new(),
        auxiliary: Vec::new(),
        georeference: None,
    };
    fn axis_of(length: u64) -> Column {
        Column::fixed(Field::new("y", Datatype::Int8), vec![length], Arc::new(Repeat::zeros(length)))
    }
    let one = netcdf(&columns(vec![large("a", 3)])).unwrap();
    assert_eq!(one.version, Version::Cdf2);
    assert_eq!(netcdf(&columns(vec![large("a", 3), large("b", 3)])).unwrap().version, Version::Cdf5);
    let mut last = [1; 16];
    one.file.content.read_at(one.file.content.len() - 16, &mut last).unwrap();
    assert_eq!(last, [0; 16]);
    // Only CDF-5 allows a dimension over 2^31.
    let long = Columns { dimensions: vec![axis_of(1 << 40)], ..columns(vec![]) };
    assert_eq!(netcdf(&long).unwrap().version, Version::Cdf5);
}

#[test]
fn sources_of_all_variables_are_prefetched() {
    let mut rows = sparse(400);
    // Texts padded to the longest, texts with separate offsets, and nulls that hold a value.
    rows.attributes.push(Column { longest: Some(2), ..rows.attributes[1].clone() });
    let number = Field { null: Some(vec![0, 0, 0, 9]), ..Field::new("number", Datatype::Int32) };
    let number = Column::fixed(number, vec![400], Arc::new(vec![1; 1600]));
    rows.attributes.push(number.with_validity(Arc::new(vec![0; 400])));
    assert_reads_ahead(|sources| {
        let mut watch = |columns: &[Column]| columns.iter().map(|column| sources.column(column.clone())).collect();
        let (dimensions, attributes) = (watch(&rows.dimensions), watch(&rows.attributes));
        netcdf(&Columns { dimensions, attributes, ..rows.clone() }).unwrap().file.content
    });
}

#[test]
fn inconsistent_columns_are_refused() {
    let wrong = Column::fixed(Field::new("a", Datatype::UInt8), vec![6], Arc::new(vec![0; 6]));
    assert!(netcdf(&dense(vec![wrong])).is_err());
    let empty = Columns { dimensions: vec![axis("x", 0, 0)], ..dense(vec![]) };
    assert!(netcdf(&empty).is_err());
}

proptest! {
    #[test]
    fn any_numeric_column_reads_back(number in 0u8..44, values in 1u32..4, seed: u64) {
        let datatype = Datatype::from_number(number).unwrap();
        let size = datatype.size();
        // Readers decode cells of several characters to texts.
        let most = if matches!(datatype, Datatype::StringAscii | Datatype::StringUtf8) { 0x7f } else { 0xff };
        // Small numbers, so that dates can be converted to days.
        let bytes: Vec<u8> = (0..6 * values as usize * size)
            .map(|i| if i % size < 2 { (seed >> (i % 60)) as u8 & most } else { 0 })
            .collect();
        let field = Field::new("a", datatype).with_values_per_cell(Some(values));
        let made = netcdf(&dense(vec![Column::fixed(field, vec![2, 3], Arc::new(bytes.clone()))])).unwrap();
        let file = read(&made.file.content);
        let expected: Vec<u8> = bytes.chunks(size).flat_map(|c| {
            let value = || i64::from_le_bytes(c.try_into().unwrap());
            match datatype {
                Datatype::DateTimeYear => tilefs_base::calendar::days_of_years(value()).unwrap().to_be_bytes().to_vec(),
                Datatype::DateTimeMonth => tilefs_base::calendar::days_of_months(value()).unwrap().to_be_bytes().to_vec(),
                Datatype::DateTimeWeek => (value() * 7).to_be_bytes().to_vec(),
                _ => c.iter().rev().copied().collect(),
            }
        }).collect();
        prop_assert_eq!(&file.variables["a"].data, &expected);
        prop_assert_eq!(made.version == Version::Cdf5, size == 8 && datatype != Datatype::Float64);
        assert_random_access(&made.file.content);
    }
}

#[test]
fn variables_along_the_record_dimension_lie_record_by_record() {
    let column = |name: &str, datatype: Datatype, shape: Vec<u64>| {
        let cells: u64 = shape.iter().product();
        let bytes: Vec<u8> = (0..cells * datatype.size() as u64).map(|byte| (byte as u8).wrapping_add(1)).collect();
        Column::fixed(Field::new(name, datatype), shape, Arc::new(bytes))
    };
    let variable = |axes: &[usize], column: Column| Variable { axes: axes.to_vec(), column };
    let dataset = |variables: Vec<Variable<Column>>| CfDataset {
        dimensions: vec![("time".to_owned(), 3), ("x".to_owned(), 5)],
        variables,
        growing: vec![1, 0],
        metadata: Vec::new(),
    };
    let several = dataset(vec![
        variable(&[1], column("x", Datatype::Int16, vec![5])),
        variable(&[0, 1], column("small", Datatype::UInt8, vec![3, 5])),
        variable(&[0], column("time", Datatype::Int16, vec![3])),
    ]);
    let whole = read_all(&*netcdf_of_dataset(&several).unwrap().file.content);
    // The number of records.
    assert_eq!(whole[4..8], [0, 0, 0, 3]);
    let records: Vec<u8> = (0..3u8)
        .flat_map(|record| {
            let small = (1..6).map(move |byte| 5 * record + byte);
            small.chain([0, 0, 0, 2 * record + 2, 2 * record + 1, 0, 0])
        })
        .collect();
    assert!(whole.ends_with(&records), "{whole:?}");
    // The only variable along it is not padded.
    let alone = dataset(vec![variable(&[0, 1], column("small", Datatype::UInt8, vec![3, 5]))]);
    let whole = read_all(&*netcdf_of_dataset(&alone).unwrap().file.content);
    assert!(whole[..whole.len() - 1].ends_with(&(1..16).collect::<Vec<u8>>()), "{whole:?}");
    // A dimension that is not the first one cannot grow.
    let inner = dataset(vec![variable(&[1, 0], column("a", Datatype::UInt8, vec![5, 3]))]);
    let whole = read_all(&*netcdf_of_dataset(&inner).unwrap().file.content);
    assert_eq!(whole[4..8], [0, 0, 0, 5], "along x");
    // Large records are read variable by variable.
    let mut large = dataset(vec![
        variable(&[0, 1], column("a", Datatype::UInt8, vec![2, 70_001])),
        variable(&[0, 1], column("b", Datatype::Int16, vec![2, 70_001])),
    ]);
    large.dimensions = vec![("time".to_owned(), 2), ("x".to_owned(), 70_001)];
    let content = netcdf_of_dataset(&large).unwrap().file.content;
    let whole = read_all(&*content);
    let record = &whole[whole.len() - 2 * (70_004 + 140_004)..];
    assert!(record[..70_001].iter().zip(0usize..).all(|(byte, number)| *byte == (number as u8).wrapping_add(1)));
    assert_eq!(record[70_001..70_008], [0, 0, 0, 2, 1, 4, 3]);
    for start in [whole.len() - 210_009, whole.len() - 140_010, whole.len() - 5] {
        let mut part = vec![0; whole.len() - start];
        content.read_at(start as u64, &mut part).unwrap();
        assert!(part == whole[start..]);
    }
}
