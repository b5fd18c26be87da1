//! Images of columns in memory, tag by tag.

use std::collections::BTreeMap;
use std::sync::Arc;

use tilefs_format::datatype::Datatype;
use tilefs_format::error::Result;
use tilefs_reader::array::dense::IndexBox;

use super::{check, ome_tiff, tiff};
use crate::boxes::Boxes;
use crate::column::{Column, Field};
use crate::content::Content;
use crate::georeference::Georeference;
use crate::pam::Band;
use crate::pyramid::{Level, Pyramid, Steps};
use crate::raster::Scene;
use crate::testing::{assert_random_access, read_all};

/// An array of numbers, each of which is its own index, truncated to the size of the type.
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
        let size = self.field.datatype.size();
        let values: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()[..size].to_vec()).collect();
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

/// The values of each tag.
type Tags = BTreeMap<u64, Vec<u64>>;

/// Returns the values of each tag of the only directory.
fn tags(file: &[u8]) -> Tags {
    assert_eq!(&file[..16], b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
    let (found, next) = directory(file, 16);
    assert_eq!(next, 0);
    found
}

/// Returns the values of each tag of the directory at a byte, and the position of the next directory.
fn directory(file: &[u8], at: usize) -> (Tags, usize) {
    let mut found = BTreeMap::new();
    let count = number(&file[at..at + 8]) as usize;
    for tag in file[at + 8..].chunks_exact(20).take(count) {
        let size = match number(&tag[2..4]) {
            2 => 1,
            3 => 2,
            4 => 4,
            12 | 16 | 18 => 8,
            kind => panic!("a value of type {kind}"),
        };
        let bytes = size * number(&tag[4..12]) as usize;
        let values = if bytes <= 8 { &tag[12..12 + bytes] } else { &file[number(&tag[12..]) as usize..][..bytes] };
        assert!(found.insert(number(&tag[..2]), values.chunks_exact(size).map(number).collect()).is_none());
    }
    assert!(found.keys().is_sorted() && at.is_multiple_of(8));
    (found, number(&file[at + 8 + 20 * count..][..8]) as usize)
}

/// Returns the values of the only image, band by band.
fn pixels(file: &[u8]) -> Vec<u64> {
    pixels_of(file, &tags(file))
}

/// Returns the values of the image of a directory, band by band.
fn pixels_of(file: &[u8], tags: &Tags) -> Vec<u64> {
    let one = |tag: u64| tags[&tag][0] as usize;
    let (width, height, bands, planar) = (one(256), one(257), one(277), one(284) == 2);
    let size = one(258) / 8;
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
            assert!(size * value < counts[tile] as usize);
            all.push(number(&file[offsets[tile] as usize + size * value..][..size]));
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
    for extents in [[16, 32], [32, 16], [5, 7], [1, 40], [100, 100], [64, 48], [37, 16]] {
        let (flat, found) = of(&[37, 40], &extents, None);
        assert_eq!(flat, (0..37 * 40).collect::<Vec<_>>(), "{extents:?}");
        // A tile that ends with the array is padded.
        assert_eq!(found.contains_key(&322), (extents[0] % 16 == 0 || extents == [37, 16]) && extents[1] % 16 == 0);
        let with_bands = |extent: u64, place: usize| {
            let mut all = extents.to_vec();
            all.insert(place, extent);
            all
        };
        let by = |strides: [u64; 3]| -> Vec<u64> {
            let places = (0..3).flat_map(|band| (0..37).flat_map(move |line| (0..40).map(move |s| [band, line, s])));
            places.map(|place| place.iter().zip(strides).map(|(index, stride)| index * stride).sum()).collect()
        };
        let (bands, found) = of(&[3, 37, 40], &with_bands(1, 0), Some(0));
        assert_eq!((bands, found[&284][0]), (by([37 * 40, 40, 1]), 2));
        let (lines, found) = of(&[37, 3, 40], &with_bands(2, 1), Some(1));
        assert_eq!((lines, found[&284][0]), (by([40, 120, 1]), 2));
        let (pixels, found) = of(&[37, 40, 3], &with_bands(3, 2), Some(2));
        assert_eq!((pixels, found[&284][0]), (by([1, 120, 3]), 1));
    }
}

#[test]
fn strips_that_are_too_long_are_cut() {
    let cells: Arc<dyn Boxes> = Arc::new(Counted {
        field: Field::new("a", Datatype::UInt16),
        shape: vec![2000, 1 << 20],
        extents: vec![1000, 1000],
    });
    let content = tiff(&cells, &Scene::default()).unwrap();
    let mut head = vec![0; 1 << 16];
    content.read_at(0, &mut head).unwrap();
    let found = tags(&head);
    assert_eq!((found[&322][0], found[&323][0]), (1008, 1008));
    // The first pixel of the second tile.
    let mut pixel = [0; 2];
    content.read_at(found[&324][1], &mut pixel).unwrap();
    assert_eq!(u16::from_le_bytes(pixel), 1008);
}

#[test]
fn the_edge_is_filled_and_missing_values_are_marked() {
    let file = read_all(&*picture(&[3, 5], &[16, 16], &Scene::default()));
    let found = tags(&file);
    let start = found[&324][0] as usize;
    assert_eq!((start % 64, found[&325][0], file.len() - start), (0, 512, 512));
    assert_eq!(file[start + 10..start + 14], [9, 9, 9, 9]);
    let text: Vec<u8> = found[&42113].iter().map(|&byte| byte as u8).collect();
    assert_eq!(text, b"2313\0");
}

#[test]
fn georeference_is_a_scale_or_a_transformation() {
    let doubles = |transform: [f64; 6], tag: u64| -> Option<Vec<f64>> {
        let scene = Scene { place: Some(Georeference::new(transform, "")), ..Scene::default() };
        let found = tags(&read_all(&*picture(&[3, 5], &[3, 5], &scene)));
        found.get(&tag).map(|values| values.iter().map(|&bits| f64::from_bits(bits)).collect())
    };
    let north_up = [10.0, 2.0, 0.0, 50.0, 0.0, -4.0];
    assert_eq!(doubles(north_up, 33550), Some(vec![2.0, 4.0, 0.0]));
    assert_eq!(doubles(north_up, 33922), Some(vec![0.0, 0.0, 0.0, 10.0, 50.0, 0.0]));
    let rotated = [10.0, 2.0, 1.0, 50.0, 3.0, -4.0];
    assert_eq!(doubles(rotated, 34264).unwrap()[..8], [2.0, 1.0, 0.0, 10.0, 3.0, -4.0, 0.0, 50.0]);
    assert_eq!(doubles(rotated, 33550), None);
}

#[test]
fn unsupported_columns_are_refused() {
    let field = Field::new("a", Datatype::UInt16);
    assert!(check(&field, 1).is_err() && check(&field, 2).is_ok() && check(&field, 4).is_err());
    assert!(check(&Field::new("a", Datatype::StringUtf8), 2).is_err());
    let cells = |shape: &[u64]| -> Arc<dyn Boxes> {
        Arc::new(Counted { field: field.clone(), shape: shape.to_vec(), extents: vec![16; shape.len()] })
    };
    assert!(tiff(&cells(&[0, 5]), &Scene::default()).is_err());
    assert!(tiff(&cells(&[1 << 31, 5]), &Scene::default()).is_err());
    assert!(tiff(&cells(&[70_000, 5, 5]), &Scene::default()).is_err());
    // So large that the positions are computed when read.
    let huge = tiff(&cells(&[1 << 30, 1 << 29]), &Scene::default()).unwrap();
    let mut end = [0; 2];
    huge.read_at(huge.len() - 2, &mut end).unwrap();
    assert_eq!(u16::from_le_bytes(end), u16::MAX);
}

#[test]
fn palette_is_a_colour_map() {
    let of = |datatype: Datatype, palette: Vec<[i16; 4]>| {
        let field = Field::new("a", datatype);
        let cells: Arc<dyn Boxes> = Arc::new(Counted { field, shape: vec![3, 5], extents: vec![3, 5] });
        let band = Band { colour: Some("Palette".to_owned()), palette, ..Band::default() };
        tags(&read_all(&*tiff(&cells, &Scene { bands: vec![band], ..Scene::default() }).unwrap()))
    };
    let colours = vec![[1, 2, 3, 255], [-7, 300, 255, 0]];
    let found = of(Datatype::UInt8, colours.clone());
    assert_eq!((found[&262][0], found[&320].len()), (3, 3 * 256));
    let part = |place: usize| found[&320][256 * place..][..3].to_vec();
    assert_eq!([0, 1, 2].map(part), [vec![257, 0, 0], vec![514, 65535, 0], vec![771, 65535, 0]]);
    assert_eq!(of(Datatype::UInt16, colours.clone())[&320].len(), 3 * 65536);
    assert_eq!(of(Datatype::Int16, colours)[&262], [1]);
    assert_eq!(of(Datatype::UInt8, Vec::new())[&262], [1]);
}

/// The levels of a pyramid, with all cells of each.
fn levels(axes: &str, datatype: Datatype, shapes: &[&[u64]], samples: u64) -> (Pyramid, Vec<Arc<dyn Boxes>>) {
    let level = |(number, shape): (usize, &&[u64])| Level {
        number: number as u64,
        name: format!("l_{number}.tdb"),
        axes: axes.to_owned(),
        shape: shape.iter().map(|&length| length as f64).collect(),
        samples,
    };
    let cells = |shape: &&[u64]| -> Arc<dyn Boxes> {
        let extents = shape.iter().map(|&length| length.min(16)).collect();
        Arc::new(Counted { field: Field::new("intensity", datatype), shape: shape.to_vec(), extents })
    };
    let pyramid = Pyramid {
        levels: shapes.iter().enumerate().map(level).collect(),
        channels: Vec::new(),
        steps: Steps::default(),
    };
    (pyramid, shapes.iter().map(cells).collect())
}

/// The bytes of the indexes from 0 on, in the order of an image: `axes` are the lengths and strides of its planes, then
/// bands, lines and columns.
fn places(size: u32, axes: &[(u64, u64)]) -> Vec<u64> {
    let mut all = vec![0];
    for &(length, stride) in axes {
        all = all.iter().flat_map(|place| (0..length).map(move |index| place + index * stride)).collect();
    }
    all.iter().map(|place| place % 2u64.pow(8 * size)).collect()
}

#[test]
fn a_pyramid_has_every_pixel_of_every_level() {
    type Order<'a> = &'a dyn Fn(&[u64]) -> Vec<(u64, u64)>;
    let check = |axes: &str, datatype: Datatype, shapes: &[&[u64]], samples: u64, order: Order| {
        let (pyramid, cells) = levels(axes, datatype, shapes, samples);
        let content = ome_tiff(&pyramid, &cells, "a").unwrap();
        assert_random_access(&*content);
        let file = read_all(&*content);
        let mut found: Vec<Vec<u64>> = vec![Vec::new(); shapes.len()];
        let (mut at, mut planes) = (16, 0);
        while at != 0 {
            let (main, next) = directory(&file, at);
            assert_eq!(main.contains_key(&270), planes == 0, "{axes}");
            found[0].extend(pixels_of(&file, &main));
            let smaller = main.get(&330).cloned().unwrap_or_default();
            assert_eq!(smaller.len(), shapes.len() - 1);
            for (place, found) in smaller.iter().zip(&mut found[1..]) {
                let (own, none) = directory(&file, *place as usize);
                assert_eq!((own[&254][0], none), (1, 0));
                found.extend(pixels_of(&file, &own));
            }
            (at, planes) = (next, planes + 1);
        }
        for (found, shape) in found.iter().zip(shapes) {
            assert!(*found == places(datatype.size() as u32, &order(shape)), "{axes} {shape:?}");
        }
        (planes, directory(&file, 16).0)
    };
    let plain: Order = &|shape| vec![(shape.iter().product(), 1)];
    let (planes, found) = check("CYX", Datatype::UInt16, &[&[3, 37, 40], &[3, 19, 20], &[3, 10, 10]], 1, plain);
    assert_eq!((planes, found[&277][0], found[&262][0]), (3, 1, 1));
    assert_eq!(check("YX", Datatype::Float32, &[&[5, 4]], 1, plain).0, 1);
    assert_eq!(check("TCZYX", Datatype::UInt8, &[&[2, 3, 4, 9, 8], &[2, 3, 4, 5, 4]], 1, plain).0, 24);
    // Channels after the columns: adjacent if they are colours.
    let last: Order = &|shape| vec![(shape[2], 1), (shape[0], shape[1] * shape[2]), (shape[1], shape[2])];
    let (planes, found) = check("YXC", Datatype::UInt8, &[&[37, 40, 3], &[19, 20, 3]], 1, last);
    assert_eq!((planes, found[&277][0], found[&262][0], found[&284][0]), (1, 3, 2, 1));
    assert_eq!(check("YXC", Datatype::UInt8, &[&[37, 40, 5]], 1, last).0, 5);
    assert_eq!(check("YXC", Datatype::UInt16, &[&[37, 40, 3]], 1, last).0, 3);
    // The same within the columns.
    let within: Order = &|shape| vec![(3, 1), (shape[0], shape[1]), (shape[1] / 3, 3)];
    let (planes, found) = check("YX", Datatype::UInt8, &[&[37, 120], &[19, 60]], 3, within);
    assert_eq!((planes, found[&256][0], found[&277][0], found[&262][0]), (1, 40, 3, 2));
}

#[test]
fn pyramid_describes_itself() {
    let (pyramid, cells) = levels("TCYX", Datatype::Int16, &[&[2, 3, 37, 40]], 1);
    let file = read_all(&*ome_tiff(&pyramid, &cells, "name").unwrap());
    let text: Vec<u8> = directory(&file, 16).0[&270].iter().map(|&byte| byte as u8).collect();
    let text = String::from_utf8(text).unwrap();
    for part in
        ["Name=\"name\"", "DimensionOrder=\"XYCTZ\"", "Type=\"int16\"", "SizeC=\"3\"", "SizeT=\"2\"", "</OME>\0"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn other_groups_are_refused() {
    let reason = |axes: &str, datatype: Datatype, shapes: &[&[u64]], samples: u64| {
        let (pyramid, cells) = levels(axes, datatype, shapes, samples);
        ome_tiff(&pyramid, &cells, "a").err().map(|reason| reason.to_string()).unwrap_or_default()
    };
    for (axes, shape, part) in [
        ("XY", &[4, 5][..], "do not follow each other"),
        ("YY", &[4, 5], "the axes of its level 0"),
        ("YXS", &[4, 5, 3], "the axes of its level 0"),
        ("YX", &[4, 5, 3], "the axes of its level 0"),
        ("CY", &[4, 5], "no lines, or no columns"),
        ("YX", &[0, 5], "a column and a line"),
        ("ZYX", &[0, 4, 5], "a plane at least"),
        ("TZYX", &[1 << 31, 2, 4, 5], "a plane at least"),
        ("CYX", &[70_000, 4, 5], "channels"),
    ] {
        let found = reason(axes, Datatype::UInt8, &[shape], 1);
        assert!(found.contains(part), "{axes} {shape:?}: {found}");
    }
    assert!(reason("YX", Datatype::Int64, &[&[4, 5]], 1).contains("32 bits"));
    assert!(reason("YX", Datatype::UInt8, &[&[4, 5]], 3).contains("are not 3 per pixel"));
    assert!(reason("CYX", Datatype::UInt8, &[&[3, 4, 5], &[2, 2, 3]], 1).contains("its level 1 has other axes"));
    assert!(reason("YX", Datatype::UInt8, &vec![&[4, 5][..]; 65], 1).contains("65 levels"));
}

#[test]
fn a_pyramid_of_very_many_planes_takes_no_time() {
    let (pyramid, cells) =
        levels("TZYX", Datatype::UInt16, &[&[1 << 20, 1 << 10, 40, 30], &[1 << 20, 1 << 10, 20, 15]], 1);
    let content = ome_tiff(&pyramid, &cells, "a").unwrap();
    let mut end = [0; 2];
    content.read_at(content.len() - 2, &mut end).unwrap();
    assert_eq!(u16::from_le_bytes(end), ((1u64 << 30) * 300 - 1) as u16);
    // The first directory contains the position of the second; after that, directories are evenly spaced.
    let mut head = vec![0; 4096];
    content.read_at(0, &mut head).unwrap();
    let next = |head: &[u8], at: usize| directory(head, at).1 as u64;
    let (second, third) = (next(&head, 16), next(&head, next(&head, 16) as usize));
    let last = second + ((1u64 << 30) - 2) * (third - second);
    let mut bytes = vec![0; (third - second) as usize];
    content.read_at(last, &mut bytes).unwrap();
    assert_eq!(number(&bytes[..8]), number(&head[second as usize..][..8]));
}
