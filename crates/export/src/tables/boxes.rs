//! The boxes around geometries, and the geometries of points, as columns that are computed when they are read.

use std::ops::Range;
use std::sync::Arc;

use tilefs_base::content::Content;
use tilefs_base::error::Result;
use tilefs_base::inputs::Recorder;
use tilefs_base::lru_cache::LruCache;
use tilefs_base::output::Output;
use tilefs_format::datatype::Datatype;
use tilefs_reader::array::ValueBounds;

use super::geometries::{BLOCK_ROWS, StoredGeometries, geometry_of};
use crate::column::{Column, ColumnStatistics, Field};
use crate::content::element::{BLOCK, Computed, by_elements};

/// The names of the sides of a box in GeoParquet, in the order of the columns of [`boxes`].
pub const SIDES: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// Number of blocks of boxes to keep: a reader asks for the four sides one after the other.
const RECENT_BLOCKS: usize = 256;

/// Returns columns of the least and the greatest coordinates of the geometries of a column of well-known binary. A null and
/// an empty geometry have no box: its sides are "not a number". The box of a curve is everything.
pub fn boxes(geometries: &Column) -> Option<[Column; 4]> {
    let geometries = StoredGeometries::of(geometries)?;
    let boxes = Arc::new(GeometryBoxes { geometries, recent: LruCache::new(RECENT_BLOCKS) });
    Some(std::array::from_fn(|side| {
        let content = BoxSide { of: boxes.clone(), side };
        Column::fixed(Field::new(SIDES[side], Datatype::Float64), vec![boxes.geometries.rows], Arc::new(content))
    }))
}

/// The boxes around the geometries of a column.
struct GeometryBoxes {
    geometries: StoredGeometries,
    /// Recently computed blocks, by number.
    recent: LruCache<u64, Arc<Vec<[f64; 4]>>>,
}

impl GeometryBoxes {
    fn block(&self, number: u64) -> Result<Arc<Vec<[f64; 4]>>> {
        self.recent.get_or_make(number, || {
            let rows = self.geometries.block(number);
            let mut boxes = Vec::with_capacity((rows.end - rows.start) as usize);
            self.geometries.for_each(rows, &mut |row, geometry| {
                boxes.push(geometry.map_or(Ok(NO_BOX), |geometry| box_of(geometry, row))?);
                Ok(())
            })?;
            Ok(Arc::new(boxes))
        })
    }
}

const NO_BOX: [f64; 4] = [f64::NAN; 4];

const EVERYTHING: [f64; 4] = [f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY];

pub(super) fn box_of(bytes: &[u8], row: u64) -> Result<[f64; 4]> {
    // A curve extends beyond its vertices.
    let Some(geometry) = geometry_of(bytes, row)? else { return Ok(EVERYTHING) };
    let mut found = NO_BOX;
    geometry.for_each_vertex(&mut |vertex| {
        // Of a number and "not a number", these functions return the number.
        found = [found[0].min(vertex.x), found[1].min(vertex.y), found[2].max(vertex.x), found[3].max(vertex.y)];
    });
    Ok(found)
}

/// One side of all boxes.
struct BoxSide {
    of: Arc<GeometryBoxes>,
    side: usize,
}

impl Content for BoxSide {
    fn len(&self) -> u64 {
        self.of.geometries.rows.saturating_mul(8)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        by_elements(8, BLOCK_ROWS as usize, offset, out, |first, mut out| {
            let rows = first..first + out.len() / 8;
            let Some(out) = out.wanted() else { return self.of.geometries.read_ahead(rows) };
            let mut block = (u64::MAX, Arc::default());
            for (row, bytes) in rows.zip(out.as_chunks_mut().0) {
                if block.0 != row / BLOCK_ROWS {
                    block = (row / BLOCK_ROWS, self.of.block(row / BLOCK_ROWS)?);
                }
                let around = block.1.get((row % BLOCK_ROWS) as usize).copied().unwrap_or(NO_BOX);
                *bytes = around[self.side].to_le_bytes();
            }
            Ok(())
        })
    }
}

/// Returns points in well-known binary, given the columns of their two or three coordinates.
pub fn points(name: &str, coordinates: &[Column]) -> Column {
    let rows = coordinates.first().map_or(0, Column::cells);
    // ISO's types: 1 is a point, 1001 one with a height.
    let kind: u32 = if coordinates.len() > 2 { 1001 } else { 1 };
    let mut head = vec![1];
    head.extend(kind.to_le_bytes());
    let size = (head.len() + 8 * coordinates.len()) as u64;
    let values = coordinates.iter().map(|column| column.values.clone()).collect();
    let offsets =
        Computed::by_rule(rows + 1, "ends of points", size, |size, row| row.saturating_mul(*size).to_le_bytes());
    let field = Field::new(name, Datatype::GeomWkb).with_values_per_cell(None);
    Column::variable(field, vec![rows], Arc::new(Points { head, coordinates: values, rows }), Arc::new(offsets))
}

/// Points in well-known binary.
struct Points {
    /// The bytes of a point before its coordinates.
    head: Vec<u8>,
    coordinates: Vec<Arc<dyn Content>>,
    rows: u64,
}

impl Points {
    fn size(&self) -> usize {
        self.head.len() + 8 * self.coordinates.len()
    }
}

impl Content for Points {
    fn record(&self, recorder: &mut Recorder) {
        let Self { head, coordinates, rows } = self;
        recorder.add::<Self>((head, rows, coordinates.len()));
        coordinates.iter().for_each(|coordinates| coordinates.record(recorder));
    }

    fn len(&self) -> u64 {
        self.rows.saturating_mul(self.size() as u64)
    }

    fn fill(&self, offset: u64, out: Output<'_>) -> Result<()> {
        let (size, mut read) = (self.size(), Vec::new());
        by_elements(size, BLOCK / size, offset, out, |first, mut out| {
            let count = out.len() / size as u64;
            for point in out.wanted().into_iter().flat_map(|out| out.chunks_exact_mut(size)) {
                point[..self.head.len()].copy_from_slice(&self.head);
            }
            for (axis, coordinates) in self.coordinates.iter().enumerate() {
                coordinates.read(8 * first, out.aside(8 * count, &mut read))?;
                let place = self.head.len() + 8 * axis;
                for (point, bytes) in
                    out.wanted().into_iter().flat_map(|out| out.chunks_exact_mut(size)).zip(read.as_chunks::<8>().0)
                {
                    point[place..place + 8].copy_from_slice(bytes);
                }
            }
            Ok(())
        })
    }
}

/// Bounds of a side of boxes, given those of the centres of the boxes.
pub struct AroundCentres {
    pub centres: Arc<dyn ColumnStatistics>,
    /// The greatest distances by which a side is below and above the centre.
    pub below: f64,
    pub above: f64,
}

impl ColumnStatistics for AroundCentres {
    fn bounds(&self, rows: Range<u64>) -> Result<Option<ValueBounds>> {
        let Some(ValueBounds { least, greatest, .. }) = self.centres.bounds(rows)? else { return Ok(None) };
        let (Ok(least), Ok(greatest)) = (least.try_into(), greatest.try_into()) else { return Ok(None) };
        let [mut least, mut greatest] = [least, greatest].map(f64::from_le_bytes);
        // The centre and the distance were rounded, each by less than this part of the larger one.
        let most = |most: f64, centre: f64| match most {
            0.0 => 0.0,
            most => most + 4.0 * f64::EPSILON * (centre.abs() + most),
        };
        least -= most(self.below, least);
        greatest += most(self.above, greatest);
        let [least, greatest] = [least, greatest].map(|bound| bound.to_le_bytes().to_vec());
        Ok(Some(ValueBounds { least, greatest, ..ValueBounds::default() }))
    }

    fn nulls(&self, _rows: Range<u64>) -> Result<Option<u64>> {
        Ok(Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::wkb::Geometry;
    use crate::testing::{assert_random_access, assert_reads_ahead_within, read_all};

    fn wkb(kind: u32, coordinates: &[f64]) -> Vec<u8> {
        let mut bytes = [&[1][..], &kind.to_le_bytes()].concat();
        if kind != 1 {
            bytes.extend((coordinates.len() as u32 / 2).to_le_bytes());
        }
        bytes.extend(coordinates.iter().flat_map(|coordinate| coordinate.to_le_bytes()));
        bytes
    }

    fn column(cells: &[Vec<u8>]) -> Column {
        let ends = cells.iter().scan(0, |end, cell| {
            *end += cell.len() as u64;
            Some(*end)
        });
        let offsets: Vec<u8> = std::iter::once(0).chain(ends).flat_map(u64::to_le_bytes).collect();
        let field = Field::new("g", Datatype::GeomWkb).with_values_per_cell(None);
        Column::variable(field, vec![cells.len() as u64], Arc::new(cells.concat()), Arc::new(offsets))
    }

    fn numbers(content: &dyn Content) -> Vec<f64> {
        read_all(content).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn boxes_are_around_all_vertices() {
        let line = wkb(2, &[3.0, -4.0, 1.0, 5.0, 2.0, 0.0]);
        let cells = [line.clone(), wkb(1, &[f64::NAN; 2]), wkb(8, &[]), line.clone(), wkb(1, &[0.5, 0.25])];
        let column = column(&cells).with_validity(Arc::new(vec![1, 1, 1, 0, 1]));
        let sides = boxes(&column).unwrap();
        let expected = [
            [1.0, f64::NAN, f64::NEG_INFINITY, f64::NAN, 0.5],
            [-4.0, f64::NAN, f64::NEG_INFINITY, f64::NAN, 0.25],
            [3.0, f64::NAN, f64::INFINITY, f64::NAN, 0.5],
            [5.0, f64::NAN, f64::INFINITY, f64::NAN, 0.25],
        ];
        for (side, expected) in sides.iter().zip(expected) {
            let found = numbers(&*side.values);
            let is_same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
            assert!(found.len() == 5 && found.iter().zip(&expected).all(is_same), "{}: {found:?}", side.field.name);
        }
        assert_eq!(sides.map(|side| side.field.name), SIDES);
    }

    #[test]
    fn any_part_of_many_boxes_can_be_read_and_prefetched() {
        let cells: Vec<Vec<u8>> = (0..2500).map(|row| wkb(2, &[row as f64, 1.0].repeat(1 + row % 3))).collect();
        let column = column(&cells);
        let [x, ..] = boxes(&column).unwrap();
        assert!(numbers(&*x.values).into_iter().eq((0..2500).map(f64::from)));
        assert_random_access(&*x.values);
        assert_reads_ahead_within(u64::MAX / 2, |sources| {
            let [x, ..] = boxes(&sources.column(column.clone())).unwrap();
            x.values
        });
    }

    #[test]
    fn bytes_that_are_no_geometry_are_an_error_with_their_row() {
        let [x, ..] = boxes(&column(&[wkb(1, &[1.0, 2.0]), vec![9; 7]])).unwrap();
        let error = x.values.read_at(0, &mut [0; 16]).unwrap_err().to_string();
        assert!(error.contains("g") && error.contains("the geometry of row 1"), "{error}");
    }

    #[test]
    fn points_are_made_of_coordinates() {
        let axis = |name: &str, first: f64| {
            let values: Vec<u8> = (0..40).flat_map(|row| (first + f64::from(row)).to_le_bytes()).collect();
            Column::fixed(Field::new(name, Datatype::Float64), vec![40], Arc::new(values))
        };
        let axes = [axis("x", 0.5), axis("y", -3.0), axis("z", 100.0)];
        for count in [2, 3] {
            let points = points("p", &axes[..count]);
            points.check().unwrap();
            assert_random_access(&*points.values);
            let size = 5 + 8 * count;
            for (row, cell) in read_all(&*points.values).chunks(size).enumerate() {
                let geometry = Geometry::read(cell).unwrap();
                let mut found = Vec::new();
                geometry.for_each_vertex(&mut |vertex| found.extend([Some(vertex.x), Some(vertex.y), vertex.z]));
                let row = row as f64;
                assert_eq!(found, [Some(0.5 + row), Some(row - 3.0), Some(100.0 + row).filter(|_| count > 2)]);
            }
            let offsets = read_all(&*points.offsets.unwrap());
            assert!(
                offsets
                    .as_chunks()
                    .0
                    .iter()
                    .map(|bytes| u64::from_le_bytes(*bytes))
                    .eq((0..=40).map(|row| row * size as u64))
            );
        }
    }

    /// The same bounds for all rows.
    struct Everywhere([f64; 2]);

    impl ColumnStatistics for Everywhere {
        fn bounds(&self, _rows: Range<u64>) -> Result<Option<ValueBounds>> {
            let [least, greatest] = self.0.map(|bound| bound.to_le_bytes().to_vec());
            Ok(Some(ValueBounds { least, greatest, ..ValueBounds::default() }))
        }

        fn nulls(&self, _rows: Range<u64>) -> Result<Option<u64>> {
            Ok(Some(0))
        }
    }

    proptest::proptest! {
        /// GDAL computes the centre as `min + (max - min) / 2`, and the distance as `(max - min) / 2`.
        #[test]
        fn sides_are_within_their_bounds(low in -1e9f64..1e9, width in 0f64..1e9) {
            let high = low + width;
            let (centre, most) = (low + (high - low) / 2.0, (high - low) / 2.0);
            for (side, is_lower) in [(low, true), (high, false)] {
                let [below, above] = if is_lower { [most, 0.0] } else { [0.0, most] };
                let of = AroundCentres { centres: Arc::new(Everywhere([centre; 2])), below, above };
                let bounds = of.bounds(0..1).unwrap().unwrap();
                let [least, greatest] = [bounds.least, bounds.greatest].map(|bound| f64::from_le_bytes(bound.try_into().unwrap()));
                proptest::prop_assert!(least <= side && side <= greatest, "{side} in {least}..{greatest}");
            }
        }
    }
}
