//! Pictures of columns in memory, tag by tag.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{check, tiff};
use crate::array::dense::IndexBox;
use crate::error::Result;
use crate::export::boxes::Boxes;
use crate::export::column::{Column, Field};
use crate::export::content::Content;
use crate::export::georeference::Georeference;
use crate::export::raster::Scene;
use crate::export::testing::{assert_random_access, read_all};
use crate::format::datatype::Datatype;

/// An array of 16-bit numbers, each of which is its place.
struct Counted {
    field: Field,
    shape: Vec<u64>,
    extents: Vec<u64>,
}

impl Boxes for Counted {
    fn field(&self) -> &Field {
        &self.field
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn extents(&self) -> Vec<u64> {
        self.extents.clone()
    }

    fn column(&self, cells: &IndexBox) -> Result<Column> {
        let mut places = vec![0u64];
        for (axis, &length) in self.shape.iter().enumerate() {
            let indices = cells.first[axis]..cells.first[axis] + cells.count[axis];
            places = places.iter().flat_map(|place| indices.clone().map(move |index| place * length + index)).collect();
        }
        let values: Vec<u8> = places.iter().flat_map(|&place| (place as u16).to_le_bytes()).collect();
        Ok(Column::fixed(self.field.clone(), cells.count.clone(), Arc::new(values)))
    }
}

fn picture(shape: &[u64], extents: &[u64], scene: &Scene) -> Arc<dyn Content> {
    let field = Field::new("a", Datatype::UInt16).with_fill([9, 9]).with_no_data([9, 9]);
    let cells: Arc<dyn Boxes> = Arc::new(Counted { field, shape: shape.to_vec(), extents: extents.to_vec() });
    let picture = tiff(&cells, scene).unwrap();
    assert_random_access(&*picture);
    for at in (0..picture.len()).step_by(97) {
        let band = picture.band(at);
        assert!(band.contains(&at) && band.end <= picture.len());
    }
    picture
}

fn number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// The values of each tag, as bytes, with the size of one.
fn tags(file: &[u8]) -> BTreeMap<u64, Vec<u64>> {
    assert_eq!(&file[..16], b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
    let mut found = BTreeMap::new();
    for tag in file[24..].chunks_exact(20).take(number(&file[16..24]) as usize) {
        let size = match number(&tag[2..4]) {
            2 => 1,
            3 => 2,
            4 => 4,
            12 | 16 => 8,
            kind => panic!("a value of type {kind}"),
        };
        let bytes = size * number(&tag[4..12]) as usize;
        let values = if bytes <= 8 { &tag[12..12 + bytes] } else { &file[number(&tag[12..]) as usize..][..bytes] };
        assert!(found.insert(number(&tag[..2]), values.chunks_exact(size).map(number).collect()).is_none());
    }
    found
}

/// The values of the picture, band after band.
fn pixels(file: &[u8]) -> Vec<u64> {
    let tags = tags(file);
    let one = |tag: u64| tags[&tag][0] as usize;
    let (width, height, bands, planar) = (one(256), one(257), one(277), one(284) == 2);
    let is_tiled = tags.contains_key(&322);
    let (wide, high) = if is_tiled { (one(322), one(323)) } else { (width, one(278)) };
    let (offsets, counts) = if is_tiled { (&tags[&324], &tags[&325]) } else { (&tags[&273], &tags[&279]) };
    let across = width.div_ceil(wide);
    let of_plane = across * height.div_ceil(high);
    let mut all = Vec::new();
    for band in 0..bands {
        for (line, sample) in (0..height).flat_map(|line| (0..width).map(move |sample| (line, sample))) {
            let tile = line / high * across + sample / wide + if planar { band * of_plane } else { 0 };
            let pixel = line % high * wide + sample % wide;
            let value = if planar { pixel } else { pixel * bands + band };
            assert!(2 * value < counts[tile] as usize);
            all.push(number(&file[offsets[tile] as usize + 2 * value..][..2]));
        }
    }
    all
}

#[test]
fn tiles_and_strips_have_every_pixel() {
    let of = |shape: &[u64], extents: &[u64], band_axis: Option<usize>| {
        let file = read_all(&*picture(shape, extents, &Scene { band_axis, ..Scene::default() }));
        (pixels(&file), tags(&file))
    };
    for extents in [[16, 32], [32, 16], [5, 7], [1, 40], [100, 100], [64, 48]] {
        let (flat, said) = of(&[37, 40], &extents, None);
        assert_eq!(flat, (0..37 * 40).collect::<Vec<_>>(), "{extents:?}");
        assert_eq!(said.contains_key(&322), extents[0] % 16 == 0 && extents[1] % 16 == 0);
        let with_bands = |extent: u64, place: usize| {
            let mut all = extents.to_vec();
            all.insert(place, extent);
            all
        };
        let by = |strides: [u64; 3]| -> Vec<u64> {
            let places = (0..3).flat_map(|band| (0..37).flat_map(move |line| (0..40).map(move |s| [band, line, s])));
            places.map(|place| place.iter().zip(strides).map(|(index, stride)| index * stride).sum()).collect()
        };
        let (bands, said) = of(&[3, 37, 40], &with_bands(1, 0), Some(0));
        assert_eq!((bands, said[&284][0]), (by([37 * 40, 40, 1]), 2));
        let (lines, said) = of(&[37, 3, 40], &with_bands(2, 1), Some(1));
        assert_eq!((lines, said[&284][0]), (by([40, 120, 1]), 2));
        let (pixels, said) = of(&[37, 40, 3], &with_bands(3, 2), Some(2));
        assert_eq!((pixels, said[&284][0]), (by([1, 120, 3]), 1));
    }
}

#[test]
fn the_edge_is_filled_and_missing_values_are_marked() {
    let file = read_all(&*picture(&[3, 5], &[16, 16], &Scene::default()));
    let said = tags(&file);
    let start = said[&324][0] as usize;
    assert_eq!((start % 64, said[&325][0], file.len() - start), (0, 512, 512));
    assert_eq!(file[start + 10..start + 14], [9, 9, 9, 9]);
    let text: Vec<u8> = said[&42113].iter().map(|&byte| byte as u8).collect();
    assert_eq!(text, b"2313\0");
}

#[test]
fn a_place_is_a_scale_or_a_transformation() {
    let doubles = |transform: [f64; 6], tag: u64| -> Option<Vec<f64>> {
        let scene = Scene { place: Some(Georeference::new(transform, "")), ..Scene::default() };
        let said = tags(&read_all(&*picture(&[3, 5], &[3, 5], &scene)));
        said.get(&tag).map(|values| values.iter().map(|&bits| f64::from_bits(bits)).collect())
    };
    let north_up = [10.0, 2.0, 0.0, 50.0, 0.0, -4.0];
    assert_eq!(doubles(north_up, 33550), Some(vec![2.0, 4.0, 0.0]));
    assert_eq!(doubles(north_up, 33922), Some(vec![0.0, 0.0, 0.0, 10.0, 50.0, 0.0]));
    let rotated = [10.0, 2.0, 1.0, 50.0, 3.0, -4.0];
    assert_eq!(doubles(rotated, 34264).unwrap()[..8], [2.0, 1.0, 0.0, 10.0, 3.0, -4.0, 0.0, 50.0]);
    assert_eq!(doubles(rotated, 33550), None);
}

#[test]
fn what_does_not_fit_is_refused() {
    let field = Field::new("a", Datatype::UInt16);
    assert!(check(&field, 1).is_err() && check(&field, 2).is_ok() && check(&field, 4).is_err());
    assert!(check(&Field::new("a", Datatype::StringUtf8), 2).is_err());
    let cells = |shape: &[u64]| -> Arc<dyn Boxes> {
        Arc::new(Counted { field: field.clone(), shape: shape.to_vec(), extents: vec![16; shape.len()] })
    };
    assert!(tiff(&cells(&[0, 5]), &Scene::default()).is_err());
    assert!(tiff(&cells(&[1 << 31, 5]), &Scene::default()).is_err());
    assert!(tiff(&cells(&[70_000, 5, 5]), &Scene::default()).is_err());
    // So large that its places are computed as they are read.
    let huge = tiff(&cells(&[1 << 30, 1 << 29]), &Scene::default()).unwrap();
    let mut end = [0; 2];
    huge.read_at(huge.len() - 2, &mut end).unwrap();
    assert_eq!(u16::from_le_bytes(end), u16::MAX);
}
