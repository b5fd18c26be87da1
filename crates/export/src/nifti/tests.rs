use tilefs_format::datatype::{Datatype, Kind};

use super::*;
use crate::testing::{assert_random_access, assert_reads_ahead, read_all};

fn axis(positions: Option<(u64, i64)>) -> ImageAxis {
    ImageAxis { name: "a".to_owned(), datatype: Datatype::Int32, low: 0, positions }
}

fn whole() -> Vec<ImageAxis> {
    vec![axis(Some((0, 1))); 3]
}

fn affine(value: &str) -> Metadatum {
    Metadatum { key: "affine".to_owned(), datatype: Datatype::StringUtf8, value: value.as_bytes().to_vec() }
}

fn column(datatype: Datatype, shape: &[u64]) -> Column {
    let length = shape.iter().product::<u64>() * datatype.size() as u64;
    Column::fixed(
        Field::new("t1", datatype),
        shape.to_vec(),
        Arc::new((0..length).map(|i| i as u8).collect::<Vec<u8>>()),
    )
}

fn numbers<const N: usize, T>(bytes: &[u8], from: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|bytes| from(*bytes)).collect()
}

#[test]
fn the_fastest_axis_is_first() {
    let column = column(Datatype::Int16, &[2, 3, 4]);
    for (order, lengths) in [(Order::RowMajor, [3, 4, 3, 2, 1]), (Order::ColumnMajor, [3, 2, 3, 4, 1])] {
        let content = nifti(&column, order, &whole(), &[]).unwrap();
        assert_random_access(&content);
        let all = read_all(&content);
        assert_eq!(numbers(&all[40..50], i16::from_le_bytes), lengths);
        assert_eq!((&all[70..74], &all[344..352]), (&[4, 0, 16, 0][..], &b"n+1\0\0\0\0\0"[..]));
        assert_eq!(all[352..], read_all(&column.values));
        assert_eq!((all[254], &all[148..151]), (0, &b"t1\0"[..]));
    }
}

#[test]
fn long_axes_need_the_second_version() {
    let column = column(Datatype::UInt8, &[2, 40_000]);
    let metadata = [affine("[[1.5, 0, 0, 9], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]")];
    let all = read_all(&nifti(&column, Order::RowMajor, &whole()[..2], &metadata).unwrap());
    assert_eq!(numbers(&all[16..40], i64::from_le_bytes), [2, 40_000, 2]);
    assert_eq!(numbers(&all[112..128], f64::from_le_bytes), [1.5, 2.0]);
    assert_eq!((numbers(&all[400..432], f64::from_le_bytes), all[348]), (vec![1.5, 0.0, 0.0, 9.0], 2));
    assert_eq!(all[544..], read_all(&column.values));
}

#[test]
fn affine_is_that_of_the_part() {
    let text = "2 0 0 -90  0 3 0 -126  0 0.5 4 -72";
    let values: Vec<u8> = text.split_whitespace().flat_map(|word| word.parse::<f64>().unwrap().to_le_bytes()).collect();
    let stored = Metadatum { key: "affine".to_owned(), datatype: Datatype::Float64, value: values };
    let axes = [axis(Some((10, 1))), axis(Some((5, 2))), axis(Some((7, -1)))];
    for datum in [affine(text), stored] {
        let content = nifti(&column(Datatype::Float32, &[2, 2, 2]), Order::ColumnMajor, &axes, &[datum]).unwrap();
        let all = read_all(&content);
        let rows = numbers(&all[280..328], f32::from_le_bytes);
        assert_eq!(rows[..8], [2.0, 0.0, 0.0, -70.0, 0.0, 6.0, 0.0, -111.0]);
        assert_eq!(rows[8..], [0.0, 1.0, -4.0, -41.5]);
        assert_eq!(numbers(&all[80..92], f32::from_le_bytes), [2.0, 37f32.sqrt(), 4.0]);
    }
    let uneven = [axis(None), axis(Some((0, 1))), axis(Some((0, 1)))];
    let content = nifti(&column(Datatype::Float32, &[2, 2, 2]), Order::ColumnMajor, &uneven, &[affine(text)]).unwrap();
    assert_eq!(read_all(&content)[254], 0);
    for wrong in ["1 2 3", "1 0 0 0 0 1 0 0 0 0 1 0 0 0 1 1", "1 0 0 0 0 1 0 0 0 0 nan 0", "a"] {
        let content =
            nifti(&column(Datatype::Float32, &[2, 2, 2]), Order::RowMajor, &whole(), &[affine(wrong)]).unwrap();
        assert_eq!(read_all(&content)[254], 0, "{wrong}");
    }
}

#[test]
fn colours_have_types_of_their_own() {
    let codes = [(3, 128, 24), (4, 2304, 32)];
    for (values, code, bits) in codes {
        let field = Field::new("a", Datatype::UInt8).with_values_per_cell(Some(values));
        assert_eq!(VoxelType::of(&field), Ok(VoxelType { code, bits }));
    }
    for number in 0..44 {
        let datatype = Datatype::from_number(number).unwrap();
        let fits = VoxelType::of(&Field::new("a", datatype)).is_ok();
        let is_number = datatype.kind() != Kind::Bytes && datatype.time_unit().is_none();
        assert_eq!(fits, is_number, "{}", datatype.name());
    }
}

#[test]
fn volumes_have_two_to_seven_axes_and_no_nulls() {
    let field = Field::new("a", Datatype::Float64);
    assert!(check(&field, 2).is_ok() && check(&field, 7).is_ok());
    assert!(check(&field, 1).is_err() && check(&field, 8).is_err());
    assert!(check(&field.with_nullable(true), 3).is_err());
    assert!(nifti(&column(Datatype::Float32, &[0, 2]), Order::RowMajor, &whole()[..2], &[]).is_err());
}

#[test]
fn values_are_prefetched() {
    assert_reads_ahead(|sources| {
        let values = sources.values(Arc::new(vec![3; 4000]));
        let column = Column::fixed(Field::new("a", Datatype::Float32), vec![10, 10, 10], values);
        nifti(&column, Order::RowMajor, &whole(), &[]).unwrap()
    });
}
