//! Images of columns in memory, tag by tag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::inputs::Recorder;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;
use tilefs_reader::ReaderOptions;
use tilefs_reader::array::Context;
use tilefs_reader::array::dense::{AxisSelection, IndexBox, Selection};
use tilefs_storage::MemoryStorage;

use super::sampling::{ImageSide, Sampling, Storing};
use super::{END_PADDING, OverviewStore, check, ome_tiff, tiff};
use crate::column::boxes::{Boxes, SpacedBoxes};
use crate::column::{Column, Field};
use crate::geo::bands::Band;
use crate::geo::georeference::Georeference;
use crate::pyramid::{Pyramid, PyramidLevel, Steps};
use crate::raster::Scene;
use crate::testing::{assert_random_access, read_all};

/// An array of numbers, each of which is its own index, truncated to the size of the type.
struct Counted {
    field: Field,
    shape: Vec<u64>,
    extents: Vec<u64>,
    /// How many times cells were requested.
    requests: AtomicUsize,
}

impl Counted {
    fn new(field: Field, shape: &[u64], extents: &[u64]) -> Arc<Self> {
        let (shape, extents) = (shape.to_vec(), extents.to_vec());
        Arc::new(Counted { field, shape, extents, requests: AtomicUsize::new(0) })
    }
}

impl Boxes for Counted {
    fn record(&self, recorder: &mut Recorder) {
        let Self { field, shape, extents, requests: _ } = self;
        recorder.add_shown::<Self>((field, shape, extents));
    }

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
        let axes = cells.first.iter().zip(&cells.count).map(|(&first, &count)| AxisSelection::contiguous(first, count));
        self.spaced_column(&Selection::new(axes.collect())?)
    }
}

impl SpacedBoxes for Counted {
    fn spaced_column(&self, indexes: &Selection) -> Result<Column> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut places = vec![0u64];
        for (axis, &length) in indexes.axes().iter().zip(&self.shape) {
            let indices: Vec<u64> = (0..axis.len()).map(|number| axis.position(number).unwrap()).collect();
            assert!(indices.iter().all(|&index| index < length));
            places = places.iter().flat_map(|place| indices.iter().map(move |index| place * length + index)).collect();
        }
        let size = self.field.datatype.size();
        let values: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()[..size].to_vec()).collect();
        Ok(Column::fixed(self.field.clone(), indexes.shape(), Arc::new(values)))
    }
}

/// Returns a store that saves nothing.
fn unsaved() -> OverviewStore {
    OverviewStore::new(Arc::new(Context::new(Arc::new(MemoryStorage::new()), 16 << 20, 1, None)))
}

/// Returns the image of an array of numbers with all of its overviews.
fn image(cells: &Arc<Counted>, scene: &Scene, store: OverviewStore) -> Arc<dyn Content> {
    let cells: Arc<dyn SpacedBoxes> = cells.clone();
    tiff(&cells, scene, store).unwrap()
}

fn picture(shape: &[u64], extents: &[u64], scene: &Scene) -> Arc<dyn Content> {
    let field = Field::new("a", Datatype::UInt16).with_fill([9, 9]).with_no_data([9, 9]);
    let picture = image(&Counted::new(field, shape, extents), scene, unsaved());
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
    let cells = Counted::new(Field::new("a", Datatype::UInt16), &[2000, 1 << 20], &[1000, 1000]);
    let content = image(&cells, &Scene::default(), unsaved());
    let mut head = vec![0; 1 << 16];
    content.read_at(0, &mut head).unwrap();
    let found = directory(&head, 16).0;
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
    let made = |datatype: Datatype, shape: &[u64]| {
        let cells: Arc<dyn SpacedBoxes> = Counted::new(Field::new("a", datatype), shape, &vec![16; shape.len()]);
        tiff(&cells, &Scene::default(), unsaved())
    };
    for shape in [&[0, 5][..], &[1 << 31, 5], &[70_000, 5, 5]] {
        assert!(made(Datatype::UInt16, shape).is_err(), "{shape:?}");
    }
    // So large that the positions are computed when read. The last pixel is that of the image.
    let huge = made(Datatype::UInt64, &[1 << 30, 1 << 29]).unwrap();
    let mut end = [0; 8];
    huge.read_at(huge.len() - END_PADDING - 8, &mut end).unwrap();
    assert_eq!(u64::from_le_bytes(end), (1 << 59) - 1);
}

#[test]
fn palette_is_a_colour_map() {
    let of = |datatype: Datatype, palette: Vec<[i16; 4]>| {
        let field = Field::new("a", datatype);
        let cells = Counted::new(field, &[3, 5], &[3, 5]);
        let band = Band { colour: Some("Palette".to_owned()), palette, ..Band::default() };
        tags(&read_all(&*image(&cells, &Scene { bands: vec![band].into(), ..Scene::default() }, unsaved())))
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
    let level = |(number, shape): (usize, &&[u64])| PyramidLevel {
        number: number as u64,
        name: format!("l_{number}.tdb"),
        axes: axes.to_owned(),
        shape: shape.iter().map(|&length| length as f64).collect(),
        samples,
    };
    let cells = |shape: &&[u64]| -> Arc<dyn Boxes> {
        let extents: Vec<u64> = shape.iter().map(|&length| length.min(16)).collect();
        Counted::new(Field::new("intensity", datatype), shape, &extents)
    };
    let pyramid = Pyramid {
        attribute: "intensity",
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

/// Returns the directories of an image and its overviews.
fn directories(file: &[u8]) -> Vec<Tags> {
    let (mut all, mut at) = (Vec::new(), 16);
    while at != 0 {
        let (tags, next) = directory(file, at);
        all.push(tags);
        at = next;
    }
    all
}

/// Returns the bytes of an image or overview: the first and the one after the last.
fn range(tags: &Tags) -> (u64, u64) {
    let [offsets, counts] = if tags.contains_key(&324) { [324, 325] } else { [273, 279] };
    (tags[&offsets][0], tags[&offsets].last().unwrap() + tags[&counts].last().unwrap())
}

#[test]
fn overviews_show_pixels_of_the_image() {
    let check = |shape: &[u64], extents: &[u64], band_axis: Option<usize>, is_contiguous: bool| {
        let cells = Counted::new(Field::new("a", Datatype::UInt32).with_no_data([9; 4]), shape, extents);
        let scene = Scene { band_axis, ..Scene::default() };
        let content = image(&cells, &scene, unsaved());
        let file = read_all(&*content);
        let all = directories(&file);
        let [columns, lines] = [256, 257].map(|tag| all[0][&tag][0]);
        let block = match all[0].get(&322) {
            Some(width) => [width[0], all[0][&323][0]],
            None => [columns, all[0][&278][0]],
        };
        let sampling = Sampling::of([columns, lines], Storing { is_contiguous, value: 4, block });
        assert_eq!(all.len(), 1 + sampling.overviews());
        let whole = pixels_of(&file, &all[0]);
        for (level, tags) in all.iter().enumerate().skip(1) {
            let [width, height] = sampling.size(level);
            assert_eq!((tags[&256][0], tags[&257][0], tags[&254][0]), (width, height, 1), "{shape:?}");
            assert!([258, 262, 277, 284, 339, 42113].iter().all(|tag| tags[tag] == all[0][tag]), "{shape:?}");
            let mut expected = Vec::new();
            for (band, line) in (0..all[0][&277][0]).flat_map(|band| (0..height).map(move |line| (band, line))) {
                let first = (band * lines + sampling.in_image(level, ImageSide::Lines, line)) * columns;
                let pixels = (0..width).map(|column| first + sampling.in_image(level, ImageSide::Columns, column));
                expected.extend(pixels.map(|pixel| whole[pixel as usize]));
            }
            assert!(pixels_of(&file, tags) == expected, "{shape:?} level {level}");
        }
        // The smallest overview comes first, and the image last.
        assert!(all.windows(2).all(|two| range(&two[1]).1 <= range(&two[0]).0), "{shape:?}");
        assert_eq!(range(&all[0]).1, content.len() - END_PADDING);
    };
    check(&[700, 530], &[64, 64], None, true);
    check(&[1031, 257], &[7, 257], None, true);
    check(&[520, 1400], &[100, 64], None, true);
    check(&[300, 515, 3], &[64, 64, 3], Some(2), true);
    check(&[2, 601, 303], &[1, 64, 64], Some(0), false);
    check(&[260, 2, 301], &[64, 1, 64], Some(1), false);
}

#[test]
fn overviews_are_not_much_longer_than_their_pixels() {
    for shape in [[2000, 1500], [100_000, 1], [1, 100_000], [5003, 7], [9, 70_001], [257, 256]] {
        let cells = Counted::new(Field::new("a", Datatype::UInt8), &shape, &[64, 64]);
        let content = image(&cells, &Scene::default(), unsaved());
        let mut head = vec![0; content.len().min(1 << 16) as usize];
        content.read_at(0, &mut head).unwrap();
        let all = directories(&head);
        let pixels: u64 = all[1..].iter().map(|tags| tags[&256][0] * tags[&257][0]).sum();
        let first = |tags: &Tags| if tags.contains_key(&324) { tags[&324][0] } else { tags[&273][0] };
        let bytes = first(&all[0]) - first(&all[all.len() - 1]);
        // Up to 15 lines of padding, and the starts of the images.
        let most = pixels + pixels / 4 + 64 * all.len() as u64 + 16 * 512 * all.len() as u64;
        assert!(bytes <= most, "{shape:?}: {bytes} for {pixels} pixels");
        assert_random_access(&*content);
    }
}

/// GDAL reads the end of each file, for which the last tile would be decoded.
#[test]
fn the_end_of_a_file_needs_no_cells() {
    let cells = Counted::new(Field::new("a", Datatype::UInt8), &[2000, 1500], &[500, 500]);
    let content = image(&cells, &Scene::default(), unsaved());
    let mut end = vec![1; 8192];
    content.read_at(content.len() - 8192, &mut end).unwrap();
    assert!(end.iter().all(|&byte| byte == 0));
    assert_eq!(cells.requests.load(Ordering::Relaxed), 0);
}

#[test]
fn tiles_of_overviews_are_taken_from_larger_ones_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let store_in = |name: &str| {
        let index = tilefs_reader::IndexOptions {
            folder: folder.path().join(name),
            most: 64 << 20,
            is_required: true,
            least_cells: 0,
        };
        let options = ReaderOptions { index: Some(index), ..ReaderOptions::default() };
        OverviewStore::new(options.context(Arc::new(MemoryStorage::new())).unwrap())
    };
    let store = || store_in("index");
    let cells = Counted::new(Field::new("a", Datatype::UInt8), &[5000, 3001], &[500, 500]);
    let requests = |cells: &Counted| cells.requests.load(Ordering::Relaxed);
    let expected = read_all(&*image(&cells, &Scene::default(), unsaved()));
    let all = directories(&expected);
    assert_eq!(all.len(), 6);
    let read = |content: &dyn Content, level: usize| {
        let before = requests(&cells);
        let (start, end) = range(&all[level]);
        let mut bytes = vec![0; (end - start) as usize];
        content.read_at(start, &mut bytes).unwrap();
        assert!(bytes == expected[start as usize..end as usize], "level {level}");
        requests(&cells) - before
    };
    let content = image(&cells, &Scene::default(), store());
    assert_eq!([5, 2, 3, 2].map(|level| read(&*content, level)), [1, 4, 0, 0]);
    // Another mount finds all of these saved, but not the largest, of which the next is computed more cheaply.
    let content = image(&cells, &Scene::default(), store());
    assert_eq!([2, 3, 4, 5].map(|level| read(&*content, level)), [0; 4]);
    assert_eq!([1, 1].map(|level| read(&*content, level)), [15, 0]);
    let other = image(&cells, &Scene::default(), store());
    assert_eq!(read(&*other, 1), 15);
    // A reader that goes on from one overview to the next reads all, so they are made of the largest that is saved.
    let copied = image(&cells, &Scene::default(), store_in("other"));
    assert_eq!([5, 4, 3, 2, 1].map(|level| read(&*copied, level)), [1, 4, 0, 0, 15]);
}

#[test]
fn reading_ahead_computes_no_overview_of_a_large_image() {
    let cells = Counted::new(Field::new("a", Datatype::UInt8), &[40_000, 30_000], &[500, 500]);
    let requests = || cells.requests.load(Ordering::Relaxed);
    let content = image(&cells, &Scene::default(), unsaved());
    // What file(1) reads, and what Linux reads ahead of it.
    let mut head = vec![0; 8 << 20];
    content.read_at(0, &mut head).unwrap();
    assert_eq!(requests(), 0);
    let (_, end) = range(&directories(&head)[5]);
    content.read_at(end - 1, &mut [0]).unwrap();
    let one_tile = requests();
    content.read_at(end, &mut vec![0; 1 << 20]).unwrap();
    assert_eq!(requests(), one_tile);
    assert!(one_tile > 0);
}

#[test]
fn prefetching_computes_tiles_of_overviews() {
    let cells = Counted::new(Field::new("a", Datatype::UInt8), &[2000, 1500], &[500, 500]);
    let content = image(&cells, &Scene::default(), unsaved());
    let head = read_all(&*content)[..4096].to_vec();
    let content = image(&cells, &Scene::default(), unsaved());
    let (start, end) = range(&directories(&head)[1]);
    content.read(start, Output::Ahead(end - start)).unwrap();
    let before = cells.requests.load(Ordering::Relaxed);
    content.read_at(start, &mut vec![0; (end - start) as usize]).unwrap();
    assert_eq!(cells.requests.load(Ordering::Relaxed), before);
}
